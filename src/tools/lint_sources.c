/*
 * What lint knows of the files of Alertmanager and Prometheus: receivers and the tree of routes,
 * and alerts; and what their matchers have in common. It reports nothing about the rules of
 * alertscaler.
 */
#include <ctype.h>
#include <errno.h>
#include <glob.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/number.h>
#include <alertscaler/base/str.h>
#include <alertscaler/base/time.h>
#include <alertscaler/doc/schema.h>
#include <alertscaler/doc/yaml_tree.h>
#include <alertscaler/tools/lint.h>

#include "lint_sources.h"

/*
 * Conjunctions of matchers, label by label: if one matcher allows only a few values, the others are
 * checked against each of them.
 */

void matcher_list_deinit(struct matcher_list *list)
{
    free(list->items);
    *list = (struct matcher_list){.items = NULL};
}

void matcher_list_add(struct matcher_list *list, const struct as_matcher *matchers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        list->items = as_xgrow(list->items, list->count, &list->capacity, sizeof(*list->items));
        list->items[list->count++] = &matchers[i];
    }
}

bool matcher_may_match(const struct as_matcher *matcher, const char *value)
{
    switch (matcher->op) {
    case AS_MATCHER_EQUAL: return strcmp(matcher->value, value) == 0;
    case AS_MATCHER_NOT_EQUAL: return strcmp(matcher->value, value) != 0;
    case AS_MATCHER_REGEX: return as_regex_try(matcher->regex, value) != AS_REGEX_NO;
    case AS_MATCHER_NOT_REGEX: return as_regex_try(matcher->regex, value) != AS_REGEX_YES;
    }
    return true;
}

/* As as_matcher_find_values; also `!~".+"`, which allows only the empty value. */
static bool find_values(const struct as_matcher *matcher, struct as_matcher_values *values_out)
{
    if (matcher->op != AS_MATCHER_NOT_REGEX || strcmp(matcher->value, ".+") != 0)
        return as_matcher_find_values(matcher, values_out);
    *values_out = (struct as_matcher_values){.text = as_xstrdup(""), .count = 1};
    values_out->items = as_xcalloc(1, sizeof(*values_out->items));
    values_out->items[0] = values_out->text;
    return true;
}

struct ranked {
    const struct as_matcher *matcher;
    size_t index;
};

static int lint_compare_ranked(const void *left, const void *right)
{
    const struct ranked *a = left, *b = right;
    int status = strcmp(a->matcher->name, b->matcher->name);
    return status ? status : (a->index > b->index) - (a->index < b->index);
}

static bool set_pair(size_t a, size_t b, size_t pair_out[2])
{
    pair_out[0] = a < b ? a : b;
    pair_out[1] = a < b ? b : a;
    return true;
}

/* Whether the others refuse all values that `base` allows. pair_out: `base` and the matcher that
 * refuses the last value. */
static bool refuse_values(const struct ranked *group, size_t count, size_t base, size_t pair_out[2])
{
    AS_CLEANUP(as_matcher_values_deinit) struct as_matcher_values values = {.text = NULL};
    size_t refuser = count;
    if (!find_values(group[base].matcher, &values))
        return false;
    for (size_t i = 0; i < count && values.count > 0; i++) {
        size_t kept = 0;
        for (size_t k = 0; k < values.count; k++) {
            if (matcher_may_match(group[i].matcher, values.items[k]))
                values.items[kept++] = values.items[k];
        }
        if (kept < values.count)
            refuser = i;
        values.count = kept;
    }
    return values.count == 0 && set_pair(group[base].index, group[refuser].index, pair_out);
}

/* Values without limit: compares only the texts of the matchers. */
static bool refuse_texts(const struct ranked *group, size_t count, size_t pair_out[2])
{
    const struct ranked *regex = NULL;
    for (size_t i = 0; i < count; i++) {
        const struct as_matcher *matcher = group[i].matcher;
        if (matcher->op == AS_MATCHER_NOT_REGEX && strcmp(matcher->value, ".*") == 0)
            return set_pair(group[i].index, group[i].index, pair_out);
        if (matcher->op == AS_MATCHER_REGEX)
            regex = &group[i];
    }
    for (size_t i = 0; regex && i < count; i++) {
        const struct as_matcher *matcher = group[i].matcher;
        if (matcher->op == AS_MATCHER_NOT_REGEX &&
            strcmp(matcher->value, regex->matcher->value) == 0)
            return set_pair(group[i].index, regex->index, pair_out);
    }
    return false;
}

/* The matchers of one label. The base is the matcher with the fewest values: an equality before an
 * alternation. */
static bool find_group_conflict(const struct ranked *group, size_t count, size_t pair_out[2])
{
    size_t base = count;
    for (size_t i = 0; i < count; i++) {
        if (group[i].matcher->op == AS_MATCHER_EQUAL)
            return refuse_values(group, count, i, pair_out);
        AS_CLEANUP(as_matcher_values_deinit) struct as_matcher_values values = {.text = NULL};
        if (base == count && find_values(group[i].matcher, &values))
            base = i;
    }
    if (base < count && refuse_values(group, count, base, pair_out))
        return true;
    return refuse_texts(group, count, pair_out);
}

bool matcher_list_find_conflict(const struct matcher_list *list, size_t pair_out[2])
{
    AS_CLEANUP(as_free_p) struct ranked *ranked = as_xcalloc(list->count + 1, sizeof(*ranked));
    for (size_t i = 0; i < list->count; i++)
        ranked[i] = (struct ranked){list->items[i], i};
    qsort(ranked, list->count, sizeof(*ranked), lint_compare_ranked);
    for (size_t start = 0, end = 0; start < list->count; start = end) {
        for (end = start + 1; end < list->count; end++) {
            if (strcmp(ranked[end].matcher->name, ranked[start].matcher->name) != 0)
                break;
        }
        if (find_group_conflict(ranked + start, end - start, pair_out))
            return true;
    }
    return false;
}

static bool matches_all(const struct as_matcher *matcher, const struct as_matcher_values *values)
{
    for (size_t i = 0; i < values->count; i++) {
        if (!as_matcher_match_value(matcher, values->items[i]))
            return false;
    }
    return true;
}

bool matcher_list_implies(const struct matcher_list *list, const struct as_matcher *matcher)
{
    if (matcher->op == AS_MATCHER_REGEX && strcmp(matcher->value, ".*") == 0)
        return true;
    for (size_t i = 0; i < list->count; i++) {
        const struct as_matcher *item = list->items[i];
        AS_CLEANUP(as_matcher_values_deinit) struct as_matcher_values values = {.text = NULL};
        if (strcmp(item->name, matcher->name) != 0)
            continue;
        if (item->op == matcher->op && strcmp(item->value, matcher->value) == 0)
            return true;
        if (find_values(item, &values) && matches_all(matcher, &values))
            return true;
    }
    return false;
}

bool matcher_list_fixes(const struct matcher_list *list, const char *name)
{
    for (size_t i = 0; i < list->count; i++) {
        AS_CLEANUP(as_matcher_values_deinit) struct as_matcher_values values = {.text = NULL};
        if (strcmp(list->items[i]->name, name) == 0 && find_values(list->items[i], &values) &&
            values.count == 1)
            return true;
    }
    return false;
}

const char *matcher_print(const struct as_matcher *matcher, char text_out[MATCHER_TEXT_SIZE])
{
    static const char *const ops[] = {
        [AS_MATCHER_EQUAL] = "=",
        [AS_MATCHER_NOT_EQUAL] = "!=",
        [AS_MATCHER_REGEX] = "=~",
        [AS_MATCHER_NOT_REGEX] = "!~",
    };
    const size_t name_max = 50, value_max = 50;
    size_t name = as_str_cut_utf8(matcher->name, strlen(matcher->name), name_max);
    size_t value = as_str_cut_utf8(matcher->value, strlen(matcher->value), value_max);
    snprintf(text_out, MATCHER_TEXT_SIZE, "%.*s%s%s\"%.*s%s\"", (int)name, matcher->name,
             matcher->name[name] ? "..." : "", ops[matcher->op], (int)value, matcher->value,
             matcher->value[value] ? "..." : "");
    return text_out;
}

/*
 * Alertmanager's configuration: receivers, and the tree of routes with inherited settings; and the
 * way of an alert through it. Ignores silently what it does not understand: amtool checks whether
 * the file is correct. A matcher that is not understood makes its route unclear; then nothing is
 * concluded from what it would refuse.
 */

/* --- AlertmanagerConfig, the object of Prometheus' operator --- */

/*
 * It is read as what the operator makes of it: receivers are called NAMESPACE/OBJECT/RECEIVER, and
 * its route stands below a root route that is not in the object, with `continue: true` and the
 * matcher namespace="NAMESPACE" (alertmanagerConfigMatcherStrategy: OnNamespace, the operator's
 * default).
 */

#define KEY_MAX 40 /* bytes of our own keys */

/* "group_by": "groupBy" */
static void make_camel(const char *key, char out[KEY_MAX])
{
    size_t size = 0;
    for (; *key && size < KEY_MAX - 1; key++) {
        const bool is_mark = *key == '_' && key[1];
        key += is_mark;
        out[size++] = is_mark ? (char)toupper((unsigned char)*key) : *key;
    }
    out[size] = '\0';
}

const struct as_yaml_node *lint_find(const struct lint_alertmanager *alertmanager,
                                     const struct as_yaml_node *map, const char *key)
{
    char camel[KEY_MAX];
    if (!alertmanager->object_name)
        return as_yaml_find(map, key);
    make_camel(key, camel);
    return as_yaml_find(map, camel);
}

/* The name that Alertmanager knows a receiver by, in the arena. */
static const char *lint_name_receiver(struct lint_alertmanager *alertmanager, const char *name)
{
    if (!alertmanager->object_name)
        return name;
    AS_CLEANUP(as_free_p)
    char *whole =
        as_xasprintf("%s/%s/%s", alertmanager->object_namespace, alertmanager->object_name, name);
    return as_arena_strdup(&alertmanager->arena, whole);
}

static const char *lint_find_name(const struct as_yaml_node *metadata, const char *key)
{
    const struct as_yaml_node *node = as_yaml_find(metadata, key);
    return node && node->kind == AS_YAML_SCALAR && !as_yaml_is_null(node) ? node->text : NULL;
}

/* The map with `route` and `receivers`; NULL: an error was reported. Notes the object. */
static const struct as_yaml_node *lint_find_spec(struct lint_alertmanager *alertmanager,
                                                 struct as_diagnostics *diagnostics)
{
    const struct as_yaml_node *root = as_yaml_get_root(alertmanager->tree);
    const struct as_yaml_node *metadata = as_yaml_find(root, "metadata");
    if (!as_str_equal(lint_find_name(root, "kind"), "AlertmanagerConfig"))
        return root;
    alertmanager->object_namespace = lint_find_name(metadata, "namespace");
    alertmanager->object_name = lint_find_name(metadata, "name");
    if (!alertmanager->object_namespace || !alertmanager->object_name) {
        as_yaml_report(alertmanager->tree, metadata ? metadata : root, AS_YAML_HIDE, diagnostics,
                       "`metadata` needs `namespace` and `name` here: the operator calls receivers "
                       "NAMESPACE/NAME/RECEIVER, and routes only alerts of this namespace");
        return NULL;
    }
    const struct as_yaml_node *spec = as_yaml_find(root, "spec");
    return spec ? spec : root;
}

/* --- Alertmanager's routing --- */

/*
 * An alert goes down the tree. It goes to every child that matches, but not to those after a
 * matching child without `continue`. It stays at a route only if no child matches.
 */

/* Whether every alert that satisfies the list enters `route`. */
static bool route_takes_all(const struct lint_route *route, const struct matcher_list *list)
{
    for (size_t i = 0; i < route->matcher_count; i++) {
        if (!matcher_list_implies(list, &route->matchers[i]))
            return false;
    }
    return !route->is_unclear;
}

static const struct lint_route *find_taker(const struct lint_route *route,
                                           const struct matcher_list *list)
{
    for (const struct lint_route *child = route->youngest; child; child = child->elder) {
        if (route_takes_all(child, list))
            return child;
    }
    for (const struct lint_route *at = route; at; at = at->parent) {
        for (const struct lint_route *elder = at->elder; elder; elder = elder->elder) {
            if (!elder->continues && route_takes_all(elder, list))
                return elder;
        }
    }
    return NULL;
}

enum lint_reach lint_find_way(const struct lint_route *route, const struct as_matcher *matchers,
                              size_t count, struct lint_way *way_out)
{
    AS_CLEANUP(matcher_list_deinit) struct matcher_list list = {.items = NULL};
    size_t pair[2];
    *way_out = (struct lint_way){.taker = NULL};
    matcher_list_add(&list, matchers, count);
    const struct lint_route *at = route;
    do
        matcher_list_add(&list, at->matchers, at->matcher_count);
    while ((at = at->parent));
    if (matcher_list_find_conflict(&list, pair)) {
        way_out->refuser = pair[0] < count ? list.items[pair[1]] : NULL;
        return LINT_REFUSED;
    }
    way_out->taker = find_taker(route, &list);
    return way_out->taker ? LINT_TAKEN : LINT_REACHED;
}

bool lint_takes_all(const struct lint_route *route, const struct as_matcher *matchers, size_t count)
{
    AS_CLEANUP(matcher_list_deinit) struct matcher_list list = {.items = NULL};
    matcher_list_add(&list, matchers, count);
    for (const struct lint_route *at = route; at; at = at->parent) {
        if (!route_takes_all(at, &list))
            return false;
    }
    return true;
}

bool lint_groups_by(const struct lint_route *route, const char *label)
{
    const struct as_yaml_node *list = route->group_list;
    for (uint32_t i = 0; list && i < list->count; i++) {
        if (list->items[i]->kind == AS_YAML_SCALAR && strcmp(list->items[i]->text, label) == 0)
            return true;
    }
    return false;
}

bool lint_groups_all(const struct lint_route *route)
{
    return lint_groups_by(route, "...");
}

int64_t lint_get_repeat(const struct lint_route *route)
{
    int64_t group = route->group_interval.us, repeat = route->repeat_interval.us;
    if (group <= 0 || repeat % group == 0)
        return repeat;
    return repeat + (group - repeat % group);
}

/* The end of a matcher in a list: a comma outside quotes, or the text's end. */
static const char *lint_find_end(const char *at, const char *end)
{
    bool is_quoted = false;
    for (; at < end && (is_quoted || *at != ','); at++) {
        if (*at == '"')
            is_quoted = !is_quoted;
        else if (*at == '\\' && is_quoted && at + 1 < end)
            at++;
    }
    return at;
}

static bool lint_is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

bool lint_parse_matchers(const char *text, struct as_matcher **matchers_io, size_t *count_io,
                         size_t *capacity_io)
{
    const char *end = text + strlen(text);
    while (lint_is_space(*text))
        text++;
    while (end > text && lint_is_space(end[-1]))
        end--;
    if (end - text >= 2 && *text == '{' && end[-1] == '}') {
        text++;
        end--;
    }
    while (text < end) {
        const char *stop = lint_find_end(text, end);
        struct as_matcher matcher;
        AS_CLEANUP(as_free_p) char *one = as_xstrndup(text, (size_t)(stop - text));
        bool is_last_comma = stop == end && one[strspn(one, " \t\r\n")] == '\0';
        if (is_last_comma)
            return true;
        if (as_matcher_init(&matcher, one, NULL) < 0)
            return false;
        *matchers_io = as_xgrow(*matchers_io, *count_io, capacity_io, sizeof(matcher));
        (*matchers_io)[(*count_io)++] = matcher;
        text = stop < end ? stop + 1 : end;
    }
    return true;
}

/* --- the configuration --- */

#define GROUP_INTERVAL_DEFAULT  (5 * AS_US_PER_MIN)
#define REPEAT_INTERVAL_DEFAULT (4 * AS_US_PER_H)

static const char *lint_get_text(const struct as_yaml_node *node)
{
    return node && node->kind == AS_YAML_SCALAR && !as_yaml_is_null(node) ? node->text : NULL;
}

static bool is_true(const struct as_yaml_node *node)
{
    static const char *const words[] = {"true", "True", "TRUE", "yes", "Yes", "YES",
                                        "on",   "On",   "ON",   "y",   "Y"};
    for (size_t i = 0; node && node->kind == AS_YAML_SCALAR && i < AS_ARRAY_SIZE(words); i++) {
        if (strcmp(words[i], node->text) == 0)
            return true;
    }
    return false;
}

/* Lines that may hold a secret: credentials that a client sends, and addresses that are secrets. */

static bool lint_is_secret_key(const char *key, const char *value)
{
    static const char *const parts[] = {"password", "secret", "token", "key", "api_url"};
    for (size_t i = 0; i < AS_ARRAY_SIZE(parts); i++) {
        if (strstr(key, parts[i]))
            return true;
    }
    return strstr(key, "url") && (strchr(value, '@') || strstr(key, "webhook"));
}

static void add_secret(struct lint_alertmanager *out, const struct as_yaml_node *node)
{
    out->secret_lines = as_xgrow(out->secret_lines, out->secret_count, &out->secret_capacity,
                                 sizeof(*out->secret_lines));
    out->secret_lines[out->secret_count++] = node->place.line;
}

static void find_secrets(struct lint_alertmanager *out, const struct as_yaml_node *node,
                         const char *key, bool is_in_secret)
{
    is_in_secret =
        is_in_secret || strcmp(key, "http_config") == 0 || strcmp(key, "httpConfig") == 0;
    if (node->kind == AS_YAML_SCALAR && (is_in_secret || lint_is_secret_key(key, node->text)))
        add_secret(out, node);
    for (uint32_t i = 0; node->kind == AS_YAML_LIST && i < node->count; i++)
        find_secrets(out, node->items[i], key, is_in_secret);
    for (uint32_t i = 0; node->kind == AS_YAML_MAP && i < node->count; i++)
        find_secrets(out, node->pairs[i].value, node->pairs[i].key->text, is_in_secret);
}

static int lint_compare_lines(const void *left, const void *right)
{
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return (a > b) - (a < b);
}

/* Receivers */

static enum lint_url classify_url(const char *url, const char *path)
{
    bool is_template = strstr(url, "{{") != NULL;
    const char *host = strstr(url, "://");
    const char *rest = host ? strpbrk(host + 3, "/?#") : NULL;
    if (is_template)
        return strstr(url, path) ? LINT_URL_OURS : LINT_URL_UNKNOWN;
    if (!rest || !as_str_starts_with(rest, path))
        return LINT_URL_OTHER;
    return strchr("/?#", rest[strlen(path)]) ? LINT_URL_OURS : LINT_URL_OTHER;
}

static void read_webhooks(struct lint_alertmanager *out, struct lint_receiver *receiver,
                          const struct as_yaml_node *list)
{
    if (!list || list->kind != AS_YAML_LIST)
        return;
    receiver->webhooks = as_arena_alloc(&out->arena, list->count, sizeof(*receiver->webhooks));
    for (uint32_t i = 0; i < list->count; i++) {
        const struct as_yaml_node *url = as_yaml_find(list->items[i], "url");
        const struct as_yaml_node *file =
            as_yaml_find(list->items[i], out->object_name ? "urlSecret" : "url_file");
        enum lint_url kind =
            lint_get_text(url) ? classify_url(url->text, out->webhook) : LINT_URL_OTHER;
        if (kind == LINT_URL_OURS)
            receiver->webhooks[receiver->webhook_count++] = list->items[i];
        else if (kind == LINT_URL_UNKNOWN)
            receiver->unknown = url;
        else if (!lint_get_text(url) && (lint_get_text(file) || (file && out->object_name)))
            receiver->unknown = file;
    }
}

/* Of any kind: `slack_configs`, `email_configs`, ... */
static bool has_others(const struct lint_receiver *receiver, const struct as_yaml_node *map)
{
    size_t count = 0;
    for (uint32_t i = 0; i < map->count; i++) {
        const struct as_yaml_node *list = map->pairs[i].value;
        const char *key = map->pairs[i].key->text;
        if ((strstr(key, "_configs") || strstr(key, "Configs")) && list->kind == AS_YAML_LIST)
            count += list->count;
    }
    return count > receiver->webhook_count;
}

static void read_receivers(struct lint_alertmanager *out, const struct as_yaml_node *list)
{
    for (uint32_t i = 0; list && list->kind == AS_YAML_LIST && i < list->count; i++) {
        const struct as_yaml_node *name = as_yaml_find(list->items[i], "name");
        const char *whole = lint_get_text(name) ? lint_name_receiver(out, name->text) : NULL;
        if (!whole || lint_find_receiver(out, whole))
            continue;
        struct lint_receiver *receiver = as_arena_alloc(&out->arena, 1, sizeof(*receiver));
        receiver->name = whole;
        receiver->name_node = name;
        read_webhooks(out, receiver, lint_find(out, list->items[i], "webhook_configs"));
        receiver->has_others = has_others(receiver, list->items[i]);
        HASH_ADD_KEYPTR(hh, out->receivers, receiver->name, strlen(receiver->name), receiver);
    }
}

struct lint_receiver *lint_find_receiver(const struct lint_alertmanager *alertmanager,
                                         const char *name)
{
    struct lint_receiver *receiver = NULL;
    HASH_FIND_STR(alertmanager->receivers, name, receiver);
    return receiver;
}

bool lint_is_ours(const struct lint_receiver *receiver)
{
    return receiver && receiver->webhook_count > 0;
}

bool lint_may_be_ours(const struct lint_receiver *receiver)
{
    return receiver && (receiver->webhook_count > 0 || receiver->unknown);
}

/* Routes */

static void add_matcher(struct lint_route *route, size_t *capacity_io, const char *name,
                        const char *value, enum as_matcher_op op)
{
    struct as_matcher matcher = {.op = op};
    const bool is_regex = op == AS_MATCHER_REGEX || op == AS_MATCHER_NOT_REGEX;
    if (is_regex && as_regex_new(value, &matcher.regex, NULL) < 0) {
        route->is_unclear = true;
        return;
    }
    matcher.name = as_xstrdup(name);
    matcher.value = as_xstrdup(value);
    route->matchers = as_xgrow(route->matchers, route->matcher_count, capacity_io, sizeof(matcher));
    route->matchers[route->matcher_count++] = matcher;
}

static void read_matcher_map(struct lint_route *route, size_t *capacity_io, const char *key,
                             enum as_matcher_op op)
{
    const struct as_yaml_node *map = as_yaml_find(route->node, key);
    for (uint32_t i = 0; map && map->kind == AS_YAML_MAP && i < map->count; i++) {
        const struct as_yaml_node *value = map->pairs[i].value;
        if (value->kind == AS_YAML_SCALAR)
            add_matcher(route, capacity_io, map->pairs[i].key->text,
                        as_yaml_is_null(value) ? "" : value->text, op);
        else
            route->is_unclear = true;
    }
    route->is_unclear = route->is_unclear || (map && map->kind == AS_YAML_LIST);
}

/* One of an AlertmanagerConfig: {name: ..., value: ..., matchType: =~}, formerly regex: true. */
static void read_object_matcher(struct lint_route *route, size_t *capacity_io,
                                const struct as_yaml_node *item)
{
    static const struct {
        const char *word;
        enum as_matcher_op op;
    } rows[] = {{"=", AS_MATCHER_EQUAL},
                {"!=", AS_MATCHER_NOT_EQUAL},
                {"=~", AS_MATCHER_REGEX},
                {"!~", AS_MATCHER_NOT_REGEX}};
    const char *name = lint_get_text(as_yaml_find(item, "name"));
    const struct as_yaml_node *value = as_yaml_find(item, "value");
    const char *type = lint_get_text(as_yaml_find(item, "matchType"));
    if (!type)
        type = is_true(as_yaml_find(item, "regex")) ? "=~" : "=";
    for (size_t i = 0; name && i < AS_ARRAY_SIZE(rows); i++) {
        if (strcmp(rows[i].word, type) == 0) {
            add_matcher(route, capacity_io, name, lint_get_text(value) ? value->text : "",
                        rows[i].op);
            return;
        }
    }
    route->is_unclear = true;
}

static void read_matchers(struct lint_route *route)
{
    const struct as_yaml_node *list = as_yaml_find(route->node, "matchers");
    size_t capacity = 0;
    for (uint32_t i = 0; list && list->kind == AS_YAML_LIST && i < list->count; i++) {
        const struct as_yaml_node *item = list->items[i];
        if (item->kind == AS_YAML_MAP)
            read_object_matcher(route, &capacity, item);
        else if (item->kind != AS_YAML_SCALAR ||
                 !lint_parse_matchers(item->text, &route->matchers, &route->matcher_count,
                                      &capacity))
            route->is_unclear = true;
    }
    if (list && list->kind != AS_YAML_LIST && !as_yaml_is_null(list))
        route->is_unclear = true;
    read_matcher_map(route, &capacity, "match", AS_MATCHER_EQUAL);
    read_matcher_map(route, &capacity, "match_re", AS_MATCHER_REGEX);
}

static void read_interval(const struct lint_alertmanager *out, const struct lint_route *route,
                          const char *key, struct lint_interval *interval)
{
    const struct as_yaml_node *node = lint_find(out, route->node, key);
    int64_t us = 0;
    if (lint_get_text(node) && as_duration_parse(node->text, &us, NULL) == 0)
        *interval = (struct lint_interval){us, node};
}

/* An empty list counts as absent, as in Alertmanager. */
static void read_group_by(const struct lint_alertmanager *out, struct lint_route *route)
{
    const char *key = out->object_name ? "groupBy" : "group_by";
    const struct as_yaml_node *list = as_yaml_find(route->node, key);
    if (!list || list->kind != AS_YAML_LIST || list->count == 0)
        return;
    route->group_list = list;
    route->group_key = schema_find_key(route->node, key);
}

static struct lint_route *lint_add_route(struct lint_alertmanager *out,
                                         const struct as_yaml_node *node,
                                         const struct lint_route *parent)
{
    struct lint_route *route = as_arena_alloc(&out->arena, 1, sizeof(*route));
    const struct as_yaml_node *receiver = as_yaml_find(node, "receiver");
    if (parent)
        *route = (struct lint_route){
            .receiver = parent->receiver,
            .group_key = parent->group_key,
            .group_list = parent->group_list,
            .group_interval = parent->group_interval,
            .repeat_interval = parent->repeat_interval,
        };
    else
        *route = (struct lint_route){
            .group_interval = {GROUP_INTERVAL_DEFAULT, NULL},
            .repeat_interval = {REPEAT_INTERVAL_DEFAULT, NULL},
        };
    route->parent = parent;
    route->node = node;
    route->place = lint_get_text(receiver) ? receiver : node;
    if (lint_get_text(receiver))
        route->receiver = lint_find_receiver(out, lint_name_receiver(out, receiver->text));
    route->continues = is_true(as_yaml_find(node, "continue"));
    read_matchers(route);
    read_group_by(out, route);
    read_interval(out, route, "group_interval", &route->group_interval);
    read_interval(out, route, "repeat_interval", &route->repeat_interval);
    out->routes = as_xgrow(out->routes, out->route_count, &out->route_capacity, sizeof(route));
    out->routes[out->route_count++] = route;
    return route;
}

/* Recursion is as deep as the file, which is bounded. */
static struct lint_route *read_routes(struct lint_alertmanager *out,
                                      const struct as_yaml_node *node,
                                      const struct lint_route *parent)
{
    struct lint_route *route = lint_add_route(out, node, parent);
    const struct as_yaml_node *list = as_yaml_find(node, "routes");
    for (uint32_t i = 0; list && list->kind == AS_YAML_LIST && i < list->count; i++) {
        if (list->items[i]->kind != AS_YAML_MAP)
            continue;
        struct lint_route *child = read_routes(out, list->items[i], route);
        child->elder = route->youngest;
        route->youngest = child;
    }
    return route;
}

/* The operator's root route is not in the object, and takes no alert from us. */
static void read_object_routes(struct lint_alertmanager *out, const struct as_yaml_node *node)
{
    struct lint_route *root = as_arena_alloc(&out->arena, 1, sizeof(*root));
    *root = (struct lint_route){.node = as_yaml_get_root(out->tree),
                                .place = node,
                                .group_interval = {GROUP_INTERVAL_DEFAULT, NULL},
                                .repeat_interval = {REPEAT_INTERVAL_DEFAULT, NULL}};
    out->routes = as_xgrow(out->routes, out->route_count, &out->route_capacity, sizeof(root));
    out->routes[out->route_count++] = root;
    struct lint_route *route = read_routes(out, node, root);
    size_t capacity = route->matcher_count;
    route->continues = true;
    add_matcher(route, &capacity, "namespace", out->object_namespace, AS_MATCHER_EQUAL);
    root->youngest = route;
}

int lint_alertmanager_load(const char *path, const char *prefix, struct as_diagnostics *diagnostics,
                           struct lint_alertmanager *out)
{
    *out = (struct lint_alertmanager){.tree = NULL};
    prefix = prefix ? prefix : "";
    const size_t size = strlen(prefix) + sizeof("/webhook");
    char *webhook = as_arena_alloc_raw(&out->arena, size);
    (void)snprintf(webhook, size, "%s/webhook", prefix);
    out->webhook = webhook;
    int status = as_yaml_input_load_foreign(path, diagnostics, &out->tree);
    if (status < 0)
        return status;
    const struct as_yaml_node *root = lint_find_spec(out, diagnostics);
    if (!root)
        return -EINVAL;
    const struct as_yaml_node *route = as_yaml_find(root, "route");
    const struct as_yaml_node *receivers = as_yaml_find(root, "receivers");
    if (status == AS_YAML_OK && (!route || route->kind != AS_YAML_MAP))
        as_yaml_report(out->tree, route ? route : root, AS_YAML_HIDE, diagnostics,
                       "this is no configuration of Alertmanager: it has no map `route`");
    else if (status == AS_YAML_OK && (!receivers || receivers->kind != AS_YAML_LIST))
        as_yaml_report(out->tree, receivers ? receivers : root, AS_YAML_HIDE, diagnostics,
                       "this is no configuration of Alertmanager: it has no list `receivers`");
    if (!route || route->kind != AS_YAML_MAP || !receivers || receivers->kind != AS_YAML_LIST)
        return -EINVAL;
    read_receivers(out, receivers);
    out->receivers_key = schema_find_key(root, "receivers");
    if (out->object_name)
        read_object_routes(out, route);
    else
        read_routes(out, route, NULL);
    find_secrets(out, root, "", false);
    if (out->secret_count > 0)
        qsort(out->secret_lines, out->secret_count, sizeof(*out->secret_lines), lint_compare_lines);
    return status == AS_YAML_OK ? 0 : -EINVAL;
}

void lint_alertmanager_deinit(struct lint_alertmanager *alertmanager)
{
    for (size_t i = 0; i < alertmanager->route_count; i++) {
        struct lint_route *route = alertmanager->routes[i];
        for (size_t k = 0; k < route->matcher_count; k++)
            as_matcher_deinit(&route->matchers[k]);
        free(route->matchers);
    }
    HASH_CLEAR(hh, alertmanager->receivers);
    free(alertmanager->routes);
    free(alertmanager->secret_lines);
    as_arena_deinit(&alertmanager->arena);
    as_yaml_free(alertmanager->tree);
    *alertmanager = (struct lint_alertmanager){.tree = NULL};
}

/*
 * Prometheus' alerting rules: what is known of the alerts that they make. Reads rule files of
 * Prometheus, also as PrometheusRule objects of its operator. Known of an alert are its name, the
 * labels that its rule sets without a template, and the names of its annotations. Other labels come
 * from the expression, external_labels or relabelling, and are unknown.
 */

/* --- an expression as a threshold --- */

/*
 * PromQL as far as a threshold needs it: quotes, parentheses, comments, words and operators. Not a
 * parser: only an obvious threshold counts.
 */

static bool lint_is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == ':' || c == '.' || (unsigned char)c >= 0x80;
}

/* The size of a literal in quotes; unclosed: up to the end of the text. */
static size_t get_quoted_size(const char *text)
{
    size_t size = 1;
    while (text[size] && text[size] != text[0]) {
        if (text[size] == '\\' && text[0] != '`' && text[size + 1])
            size++;
        size++;
    }
    return text[size] ? size + 1 : size;
}

/* Without comments; spaces are kept only between two words. */
static char *copy_tight(struct as_arena *arena, const char *text)
{
    char *copy = as_arena_alloc(arena, strlen(text) + 1, 1), *out = copy;
    bool is_apart = false;
    while (*text) {
        if (*text == '#') {
            text += strcspn(text, "\n");
        } else if (strchr(" \t\r\n", *text)) {
            is_apart = true;
            text++;
        } else {
            size_t size = strchr("\"'`", *text) ? get_quoted_size(text) : 1;
            if (is_apart && out > copy && lint_is_word(out[-1]) && lint_is_word(*text))
                *out++ = ' ';
            memcpy(out, text, size);
            out += size;
            text += size;
            is_apart = false;
        }
    }
    *out = '\0';
    return copy;
}

/* `and`, `or`, `unless`, `bool`: then the expression is more than one comparison. */
static bool is_connective(const char *word, size_t size)
{
    static const char *const words[] = {"and", "or", "unless", "bool"};
    for (size_t i = 0; i < AS_ARRAY_SIZE(words); i++) {
        bool is_same = strlen(words[i]) == size;
        for (size_t k = 0; is_same && k < size; k++)
            is_same = (word[k] | 0x20) == words[i][k];
        if (is_same)
            return true;
    }
    return false;
}

static size_t get_operator_size(const char *at)
{
    if (at[0] == '>' || at[0] == '<' || at[0] == '=' || at[0] == '!')
        return at[1] == '=' || at[1] == '~' ? 2 : 1;
    return 0;
}

/* The only comparison outside all brackets. NULL: none, or several. */
static const char *find_comparison(const char *text)
{
    const char *found = NULL;
    int depth = 0;
    for (const char *at = text; *at;) {
        size_t size = 1;
        if (strchr("\"'`", *at)) {
            size = get_quoted_size(at);
        } else if (strchr("([{", *at)) {
            depth++;
        } else if (strchr(")]}", *at)) {
            depth--;
        } else if (lint_is_word(*at)) {
            while (lint_is_word(at[size]))
                size++;
            if (depth == 0 && is_connective(at, size))
                return NULL;
        } else if (depth == 0 && get_operator_size(at) > 0) {
            if (found)
                return NULL;
            found = at;
            size = get_operator_size(at);
        }
        at += size;
    }
    return found;
}

static void set_bounds(struct threshold *threshold, char op, bool has_equal, double number)
{
    threshold->low = op == '<' ? -INFINITY : number;
    threshold->high = op == '>' ? INFINITY : number;
    threshold->is_low_out = op == '>' && !has_equal;
    threshold->is_high_out = op == '<' && !has_equal;
}

struct threshold threshold_parse(struct as_arena *arena, const char *expression)
{
    struct threshold threshold = {.subject = NULL};
    char *text = copy_tight(arena, expression);
    const char *comparison = find_comparison(text);
    if (!comparison || comparison == text)
        return threshold;
    size_t at = (size_t)(comparison - text), size = get_operator_size(comparison);
    char op = text[at];
    bool has_equal = text[at + 1] == '=';
    char *right = text + at + size;
    if (op == '!' || (op == '=' && !has_equal) || text[at + size - 1] == '~')
        return threshold;

    double number = 0;
    text[at] = '\0';
    bool is_number_left = as_number_parse_double(text, at, &number) == 0;
    if (is_number_left && op != '=')
        op = op == '<' ? '>' : '<';
    if (!is_number_left && as_number_parse_double(right, strlen(right), &number) < 0)
        return threshold;
    threshold.subject = is_number_left ? right : text;
    set_bounds(&threshold, op, has_equal, number);
    if (!*threshold.subject)
        threshold.subject = NULL;
    return threshold;
}

bool threshold_overlaps(const struct threshold *a, const struct threshold *b)
{
    if (!a->subject || !b->subject || strcmp(a->subject, b->subject) != 0)
        return false;
    double low = fmax(a->low, b->low), high = fmin(a->high, b->high);
    bool is_low_out = (a->low >= low && a->is_low_out) || (b->low >= low && b->is_low_out);
    bool is_high_out = (a->high <= high && a->is_high_out) || (b->high <= high && b->is_high_out);
    return low < high || (!(low > high) && !is_low_out && !is_high_out);
}

/* --- rule files --- */

struct file_list {
    char **items;
    size_t count, capacity;
};

static void file_list_deinit(struct file_list *files)
{
    for (size_t i = 0; i < files->count; i++)
        free(files->items[i]);
    free(files->items);
}

static void report_file(struct as_diagnostics *diagnostics, enum as_severity severity,
                        const char *file, const char *message)
{
    as_diagnostics_add(diagnostics, &(struct as_diagnostic){
                                        .severity = severity,
                                        .file = file,
                                        .message = message,
                                    });
}

static void lint_add_file(struct file_list *files, const char *path)
{
    for (size_t i = 0; i < files->count; i++) {
        if (strcmp(files->items[i], path) == 0)
            return;
    }
    files->items = as_xgrow(files->items, files->count, &files->capacity, sizeof(char *));
    files->items[files->count++] = as_xstrdup(path);
}

static int lint_stop_glob(const char *path, int code)
{
    return code != ENOENT && code != ENOTDIR;
}

static bool is_pattern(const char *text)
{
    struct stat status;
    return strpbrk(text, "*?[") && stat(text, &status) < 0;
}

static int lint_expand(const char *pattern, struct as_diagnostics *diagnostics,
                       struct file_list *files)
{
    glob_t found = {0};
    int status = glob(pattern, 0, lint_stop_glob, &found);
    for (size_t i = 0; status == 0 && i < found.gl_pathc && files->count < AS_LINT_FILES_MAX; i++)
        lint_add_file(files, found.gl_pathv[i]);
    globfree(&found);
    if (status == GLOB_NOMATCH) {
        report_file(diagnostics, AS_SEVERITY_WARNING, pattern, "no file matches this pattern");
    } else if (status != 0) {
        report_file(diagnostics, AS_SEVERITY_ERROR, pattern,
                    "cannot look for files that match this: a folder cannot be read");
        return -EACCES;
    }
    return 0;
}

static void set_label(struct lint_alert *alert, const char *name, const char *value)
{
    for (size_t i = 0; i < alert->label_count; i++) {
        if (strcmp(alert->labels[i].name, name) != 0)
            continue;
        alert->labels[i].value = value;
        return;
    }
    alert->labels[alert->label_count++] = (struct lint_label){name, value};
}

static void lint_read_labels(struct lint_alert *alert, const struct as_yaml_node *map)
{
    for (uint32_t i = 0; map && map->kind == AS_YAML_MAP && i < map->count; i++) {
        const struct as_yaml_node *value = map->pairs[i].value;
        bool is_known = value->kind == AS_YAML_SCALAR && !strstr(value->text, "{{");
        const char *text = as_yaml_is_null(value) ? "" : value->text;
        set_label(alert, map->pairs[i].key->text, is_known ? text : NULL);
    }
}

static size_t count_pairs(const struct as_yaml_node *map)
{
    return map && map->kind == AS_YAML_MAP ? map->count : 0;
}

static void lint_read_alert(struct lint_prometheus *out, const struct as_yaml_tree *tree,
                            const struct as_yaml_node *group, const struct as_yaml_node *rule)
{
    const struct as_yaml_node *name = as_yaml_find(rule, "alert");
    const struct as_yaml_node *shared = as_yaml_find(group, "labels");
    const struct as_yaml_node *labels = as_yaml_find(rule, "labels");
    const struct as_yaml_node *annotations = as_yaml_find(rule, "annotations");
    const char *expression = lint_get_text(as_yaml_find(rule, "expr"));
    if (!lint_get_text(name))
        return; /* a recording rule */
    out->alerts =
        as_xgrow(out->alerts, out->alert_count, &out->alert_capacity, sizeof(*out->alerts));
    struct lint_alert *alert = &out->alerts[out->alert_count++];
    *alert = (struct lint_alert){.name = name->text, .tree = tree, .node = name};
    alert->labels = as_arena_alloc(&out->arena, 1 + count_pairs(shared) + count_pairs(labels),
                                   sizeof(*alert->labels));
    lint_read_labels(alert, shared);
    lint_read_labels(alert, labels);
    set_label(alert, "alertname", name->text);
    if (annotations && annotations->kind == AS_YAML_MAP)
        alert->annotations = annotations;
    alert->expression = expression;
    if (expression)
        alert->threshold = threshold_parse(&out->arena, expression);
}

static void lint_read_groups(struct lint_prometheus *out, const struct as_yaml_tree *tree,
                             const struct as_yaml_node *groups)
{
    for (uint32_t i = 0; groups->kind == AS_YAML_LIST && i < groups->count; i++) {
        const struct as_yaml_node *rules = as_yaml_find(groups->items[i], "rules");
        for (uint32_t k = 0; rules && rules->kind == AS_YAML_LIST && k < rules->count; k++)
            lint_read_alert(out, tree, groups->items[i], rules->items[k]);
    }
}

/* `is_found`: by a glob, which may also match other files. */
static int lint_read_file(const char *path, bool is_found, struct as_diagnostics *diagnostics,
                          struct lint_prometheus *out)
{
    AS_CLEANUP(as_yaml_free_p) struct as_yaml_tree *tree = NULL;
    int status = as_yaml_input_load_foreign(path, diagnostics, &tree);
    if (status != AS_YAML_OK)
        return status < 0 ? status : -EINVAL;
    const struct as_yaml_node *root = as_yaml_get_root(tree);
    const char *kind = lint_get_text(as_yaml_find(root, "kind"));
    const struct as_yaml_node *groups = as_yaml_find(root, "groups");
    if (as_str_equal(kind, "PrometheusRule"))
        groups = as_yaml_find(as_yaml_find(root, "spec"), "groups");
    bool is_empty = as_yaml_is_null(root);
    if (!groups && !is_empty && is_found)
        return 0;
    if (!groups && !is_empty) {
        as_yaml_report(tree, root, AS_YAML_HIDE, diagnostics,
                       "this is no file of Prometheus' rules: it has no `groups`");
        return -EINVAL;
    }
    out->trees = as_xgrow(out->trees, out->tree_count, &out->tree_capacity, sizeof(tree));
    out->trees[out->tree_count++] = tree;
    if (groups)
        lint_read_groups(out, tree, groups);
    tree = NULL;
    return 0;
}

/* Keeps the first error, but read errors before content errors. */
static void keep_worst(int status, int *worst_io)
{
    bool is_content = *worst_io == -EINVAL || *worst_io == -EFBIG;
    if (status < 0 && (*worst_io == 0 || (is_content && status != -EINVAL && status != -EFBIG)))
        *worst_io = status;
}

int lint_prometheus_load(const char *const *patterns, size_t count,
                         struct as_diagnostics *diagnostics, struct lint_prometheus *out)
{
    AS_CLEANUP(file_list_deinit) struct file_list named = {.items = NULL}, found = {.items = NULL};
    int worst = 0;
    *out = (struct lint_prometheus){.trees = NULL};
    for (size_t i = 0; i < count; i++) {
        if (is_pattern(patterns[i]))
            keep_worst(lint_expand(patterns[i], diagnostics, &found), &worst);
        else
            lint_add_file(&named, patterns[i]);
    }
    for (size_t i = 0; i < named.count; i++)
        keep_worst(lint_read_file(named.items[i], false, diagnostics, out), &worst);
    for (size_t i = 0; i < found.count; i++) {
        bool is_read = false;
        for (size_t k = 0; k < named.count && !is_read; k++)
            is_read = strcmp(named.items[k], found.items[i]) == 0;
        if (!is_read)
            keep_worst(lint_read_file(found.items[i], true, diagnostics, out), &worst);
    }
    if (worst == 0 && out->tree_count > 0 && out->alert_count == 0)
        report_file(diagnostics, AS_SEVERITY_WARNING, as_yaml_get_file(out->trees[0]),
                    "there is no alerting rule in this file, nor in others of --prometheus-rules");
    return worst;
}

void lint_prometheus_deinit(struct lint_prometheus *prometheus)
{
    for (size_t i = 0; i < prometheus->tree_count; i++)
        as_yaml_free(prometheus->trees[i]);
    free(prometheus->trees);
    free(prometheus->alerts);
    as_arena_deinit(&prometheus->arena);
    *prometheus = (struct lint_prometheus){.trees = NULL};
}

const char *lint_alert_find(const struct lint_alert *alert, const char *label)
{
    for (size_t i = 0; i < alert->label_count; i++) {
        if (strcmp(alert->labels[i].name, label) == 0)
            return alert->labels[i].value;
    }
    return NULL;
}

static bool is_word_character(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static bool lint_has_word(const char *text, const char *word)
{
    const size_t size = strlen(word);
    for (const char *at = strstr(text, word); at; at = strstr(at + 1, word)) {
        if ((at == text || !is_word_character(at[-1])) && !is_word_character(at[size]))
            return true;
    }
    return false;
}

bool lint_alert_mentions(const struct lint_alert *alert, const char *label)
{
    for (size_t i = 0; i < alert->label_count; i++) {
        if (strcmp(alert->labels[i].name, label) == 0)
            return true;
    }
    return !alert->expression || lint_has_word(alert->expression, label);
}

bool lint_alert_refuses(const struct lint_alert *alert, const struct as_matcher *matcher)
{
    const char *value = lint_alert_find(alert, matcher->name);
    return value && !matcher_may_match(matcher, value);
}

enum lint_fit lint_alert_fit(const struct lint_alert *alert, const struct as_matcher *matchers,
                             size_t count)
{
    enum lint_fit fit = LINT_FIT_UNKNOWN;
    for (size_t i = 0; i < count; i++) {
        const char *value = lint_alert_find(alert, matchers[i].name);
        if (value && !matcher_may_match(&matchers[i], value))
            return LINT_FIT_NO;
        if (value && *value)
            fit = LINT_FIT_YES;
    }
    return fit;
}
