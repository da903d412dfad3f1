/*
 * Alertmanager's configuration: receivers, and the tree of routes with inherited settings; and the
 * way of an alert through it. Ignores silently what it does not understand: amtool checks whether
 * the file is correct. A matcher that is not understood makes its route unclear; then nothing is
 * concluded from what it would refuse.
 */
#include "lint_alertmanager.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>
#include <alertscaler/base/time.h>
#include <alertscaler/doc/schema.h>
#include <alertscaler/doc/yaml_tree.h>

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
static bool takes_all(const struct lint_route *route, const struct matcher_list *list)
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
        if (takes_all(child, list))
            return child;
    }
    for (const struct lint_route *at = route; at; at = at->parent) {
        for (const struct lint_route *elder = at->elder; elder; elder = elder->elder) {
            if (!elder->continues && takes_all(elder, list))
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
        if (!takes_all(at, &list))
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
