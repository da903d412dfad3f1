/*
 * `alertscaler get` and `describe`: what a running daemon knows, as tables for people and documents
 * for programs. A kind of things is one row of a table: its path in the API, its columns, and the
 * keys by which a NAME finds it. `describe` shows one target with what belongs to it.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <curl/curl.h>
#include <jansson.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/safe_text.h>
#include <alertscaler/base/str.h>
#include <alertscaler/base/time.h>

#include "cli.h"
#include "client_file.h"
#include "http_call.h"
#include "table.h"
#include "target_text.h"
#include "watch.h"

#define FLOW_MAX      120 /* bytes of an action or of labels in a table */
#define DIGEST_SHOWN  12
#define GET_ALL       "?limit=1000000"
#define GET_NEWEST    "?limit=1000"       /* decisions: the daemon reads older ones from its log */
#define GET_OF_TARGET "?limit=10&target=" /* decisions of a target that is described */

/* --- cells --- */

struct get_column {
    const char *title;
    bool is_wide;                                      /* only with -o wide */
    char *(*make)(const json_t *item, int64_t now_us); /* for free() */
};

static char *get_copy(const json_t *item, const char *key)
{
    const char *text = target_text_get(item, key);
    return as_xstrdup(*text ? text : "-");
}

static char *get_copy_ago(const json_t *item, const char *key, int64_t now_us)
{
    char ago[64];
    if (!target_text_print_span(item, key, true, now_us, ago, sizeof(ago)))
        return as_xstrdup("-");
    return as_xasprintf("%s ago", ago);
}

static char *get_copy_number(const json_t *item, const char *key)
{
    const json_t *number = json_object_get(item, key);
    return json_is_integer(number)
               ? as_xasprintf("%" JSON_INTEGER_FORMAT, json_integer_value(number))
               : as_xstrdup("-");
}

/* In YAML's flow style. */
static void get_put_flow(FILE *out, const json_t *value)
{
    const char *key;
    const json_t *member;
    size_t count = 0, i;
    if (json_is_object(value)) {
        fputc('{', out);
        json_object_foreach((json_t *)(uintptr_t)value, key, member)
        {
            fprintf(out, "%s%s: ", count++ > 0 ? ", " : "", key);
            get_put_flow(out, member);
        }
        fputc('}', out);
    } else if (json_is_array(value)) {
        fputc('[', out);
        json_array_foreach(value, i, member)
        {
            fputs(i > 0 ? ", " : "", out);
            get_put_flow(out, member);
        }
        fputc(']', out);
    } else if (json_is_string(value)) {
        fputs(json_string_value(value), out);
    } else {
        AS_CLEANUP(as_free_p)
        char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(10));
        fputs(text ? text : "-", out);
    }
}

/* At most FLOW_MAX bytes. */
static char *get_make_flow(const json_t *value)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        abort(); /* only without memory */
    get_put_flow(out, value);
    if (fclose(out) != 0)
        abort();
    if (size <= FLOW_MAX)
        return text;
    char *cut = as_xasprintf("%.*s...", (int)as_str_cut_utf8(text, size, FLOW_MAX), text);
    free(text);
    return cut;
}

/* A list of words in one cell. */
static void get_add_word(char **words_io, const char *word)
{
    char *words = *words_io ? as_xasprintf("%s, %s", *words_io, word) : as_xstrdup(word);
    free(*words_io);
    *words_io = words;
}

static char *get_end_words(char *words)
{
    return words ? words : as_xstrdup("-");
}

/* --- targets --- */

static const char *get_target_name(const json_t *target)
{
    const char *name = target_text_get(target, "name");
    return *name && !json_is_true(json_object_get(target, "templated"))
               ? name
               : target_text_get(target, "id");
}

static char *target_make_name(const json_t *target, int64_t now_us)
{
    return as_xstrdup(get_target_name(target));
}

static char *target_make_size(const json_t *target, int64_t now_us)
{
    return target_text_make_size(target);
}

static bool get_is_at(const json_t *target, const char *bound)
{
    const json_t *size = json_object_get(target, "replicas");
    const json_t *limit = json_object_get(target, bound);
    return json_is_integer(size) && json_is_integer(limit) &&
           json_integer_value(size) == json_integer_value(limit);
}

/* "paused, at max": in the order of what a person asks first. */
static char *target_make_state(const json_t *target, int64_t now_us)
{
    const char *failure = target_text_get(target, "failure");
    const json_t *locks = json_object_get(target, "locked_until");
    char *words = NULL;
    if (*failure) {
        AS_CLEANUP(as_free_p) char *text = as_xasprintf("failing: %s", failure);
        get_add_word(&words, text);
    }
    if (json_is_object(json_object_get(target, "paused")))
        get_add_word(&words, "paused");
    if (json_is_object(json_object_get(target, "contended")))
        get_add_word(&words, "contended");
    if (json_array_size(json_object_get(target, "holds")) > 0)
        get_add_word(&words, "held");
    if (json_array_size(json_object_get(target, "ineffective")) > 0)
        get_add_word(&words, "ineffective");
    if (json_is_true(json_object_get(target, "did_not_come")))
        get_add_word(&words, "did not come");
    if (json_is_string(json_object_get(target, "waits_for")))
        get_add_word(&words, "waits");
    if (json_is_string(json_object_get(locks, "up")) ||
        json_is_string(json_object_get(locks, "down")))
        get_add_word(&words, "locked");
    if (get_is_at(target, "max"))
        get_add_word(&words, "at max");
    else if (get_is_at(target, "min"))
        get_add_word(&words, "at min");
    if (json_is_true(json_object_get(target, "dry_run")))
        get_add_word(&words, "dry run");
    return get_end_words(words);
}

static char *target_make_incidents(const json_t *target, int64_t now_us)
{
    return get_copy_number(target, "open_incidents");
}

static char *target_make_ready(const json_t *target, int64_t now_us)
{
    return get_copy_number(target, "ready");
}

static char *target_make_id(const json_t *target, int64_t now_us)
{
    return get_copy(target, "id");
}

static const struct get_column target_columns[] = {
    {"NAME", false, target_make_name},
    {"SIZE", false, target_make_size},
    {"BOUNDS", false, target_text_make_bounds},
    {"STATE", false, target_make_state},
    {"INCIDENTS", false, target_make_incidents},
    {"LOCKED", true, target_text_make_locks},
    {"PAUSED", true, target_text_make_pause},
    {"READY", true, target_make_ready},
    {"ID", true, target_make_id},
    {"LAST DECISION", false, target_text_make_last},
    {0},
};

/* --- rules --- */

static char *rule_make_name(const json_t *rule, int64_t now_us)
{
    return get_copy(rule, "name");
}

static char *rule_make_target(const json_t *rule, int64_t now_us)
{
    return get_copy(rule, "target");
}

/* "scale_up {by: 50%}" */
static char *rule_make_action(const json_t *rule, int64_t now_us)
{
    const char *key;
    json_t *value;
    json_object_foreach(json_object_get(rule, "action"), key, value)
    {
        AS_CLEANUP(as_free_p) char *flow = get_make_flow(value);
        return as_xasprintf("%s %s", key, flow);
    }
    return as_xstrdup("-");
}

static char *rule_make_state(const json_t *rule, int64_t now_us)
{
    char *words = NULL;
    if (json_is_string(json_object_get(rule, "query_error")))
        get_add_word(&words, "query error");
    if (json_is_false(json_object_get(rule, "enabled")))
        get_add_word(&words, "disabled");
    if (json_is_true(json_object_get(rule, "dry_run")))
        get_add_word(&words, "dry run");
    return get_end_words(words);
}

static char *rule_make_match(const json_t *rule, int64_t now_us)
{
    return json_is_true(json_object_get(rule, "always"))
               ? as_xstrdup("always")
               : get_make_flow(json_object_get(rule, "match"));
}

static char *rule_make_ending(const json_t *rule, int64_t now_us)
{
    return get_make_flow(json_object_get(rule, "on_resolved"));
}

static const struct get_column rule_columns[] = {
    {"NAME", false, rule_make_name},
    {"TARGET", false, rule_make_target},
    {"ACTION", false, rule_make_action},
    {"STATE", false, rule_make_state},
    {"MATCH", true, rule_make_match},
    {"ON RESOLVED", true, rule_make_ending},
    {0},
};

/* --- incidents --- */

static char *incident_make_digest(const json_t *incident, int64_t now_us)
{
    return as_xasprintf("%.*s", DIGEST_SHOWN, target_text_get(incident, "digest"));
}

static char *incident_make_alert(const json_t *incident, int64_t now_us)
{
    return get_copy(json_object_get(incident, "labels"), "alertname");
}

/* The rules, or the targets, of its targets. */
static char *incident_make_list(const json_t *incident, const char *key)
{
    const json_t *target;
    char *words = NULL;
    size_t i;
    json_array_foreach(json_object_get(incident, "targets"), i, target)
        get_add_word(&words, target_text_get(target, key));
    return get_end_words(words);
}

static char *incident_make_rules(const json_t *incident, int64_t now_us)
{
    return incident_make_list(incident, "rule");
}

static char *incident_make_targets(const json_t *incident, int64_t now_us)
{
    return incident_make_list(incident, "target");
}

static char *incident_make_opened(const json_t *incident, int64_t now_us)
{
    return get_copy_ago(incident, "opened", now_us);
}

static char *incident_make_seen(const json_t *incident, int64_t now_us)
{
    return get_copy_ago(incident, "seen", now_us);
}

static char *incident_make_silenced(const json_t *incident, int64_t now_us)
{
    return as_xstrdup(json_is_true(json_object_get(incident, "silenced")) ? "yes" : "-");
}

static char *incident_make_labels(const json_t *incident, int64_t now_us)
{
    return get_make_flow(json_object_get(incident, "labels"));
}

static const struct get_column incident_columns[] = {
    {"DIGEST", false, incident_make_digest},
    {"ALERT", false, incident_make_alert},
    {"RULES", false, incident_make_rules},
    {"OPENED", false, incident_make_opened},
    {"SEEN", false, incident_make_seen},
    {"SILENCED", false, incident_make_silenced},
    {"TARGETS", true, incident_make_targets},
    {"LABELS", true, incident_make_labels},
    {0},
};

/* --- decisions --- */

static char *decision_make_id(const json_t *decision, int64_t now_us)
{
    return get_copy(decision, "id");
}

static char *decision_make_time(const json_t *decision, int64_t now_us)
{
    return get_copy_ago(decision, "time", now_us);
}

static char *decision_make_target(const json_t *decision, int64_t now_us)
{
    return *target_text_get(decision, "target_name") ? get_copy(decision, "target_name")
                                                     : get_copy(decision, "target");
}

static char *decision_make_size(const json_t *decision, int64_t now_us)
{
    const json_int_t from = json_integer_value(json_object_get(decision, "replicas"));
    const json_int_t to = json_integer_value(json_object_get(decision, "desired"));
    return from == to ? as_xasprintf("%" JSON_INTEGER_FORMAT, to)
                      : as_xasprintf("%" JSON_INTEGER_FORMAT "->%" JSON_INTEGER_FORMAT, from, to);
}

static char *decision_make_reason(const json_t *decision, int64_t now_us)
{
    return get_copy(decision, "reason");
}

static char *decision_make_rule(const json_t *decision, int64_t now_us)
{
    return get_copy(decision, "rule");
}

static char *decision_make_would(const json_t *decision, int64_t now_us)
{
    return get_copy_number(decision, "would");
}

static char *decision_make_target_id(const json_t *decision, int64_t now_us)
{
    return get_copy(decision, "target");
}

static const struct get_column decision_columns[] = {
    {"ID", false, decision_make_id},
    {"TIME", false, decision_make_time},
    {"TARGET", false, decision_make_target},
    {"SIZE", false, decision_make_size},
    {"REASON", false, decision_make_reason},
    {"RULE", false, decision_make_rule},
    {"WOULD", true, decision_make_would},
    {"TARGET ID", true, decision_make_target_id},
    {0},
};

/* --- policies --- */

static char *policy_make_name(const json_t *policy, int64_t now_us)
{
    return get_copy(policy, "id");
}

static char *policy_make_target(const json_t *policy, int64_t now_us)
{
    return get_copy(policy, "target");
}

static char *policy_make_size(const json_t *policy, int64_t now_us)
{
    return get_copy_number(policy, "size");
}

static char *policy_make_desired(const json_t *policy, int64_t now_us)
{
    return get_copy_number(policy, "desired");
}

static char *policy_make_min(const json_t *policy, int64_t now_us)
{
    return get_copy_number(policy, "min");
}

static char *policy_make_max(const json_t *policy, int64_t now_us)
{
    return get_copy_number(policy, "max");
}

static char *policy_make_reason(const json_t *policy, int64_t now_us)
{
    return get_copy(policy, "reason");
}

/* As the condition's status in `kubectl get`. */
static char *policy_make_ready(const json_t *policy, int64_t now_us)
{
    const json_t *ready = json_object_get(policy, "ready");
    return as_xstrdup(json_is_true(ready) ? "True" : json_is_false(ready) ? "False" : "-");
}

static char *policy_make_obstacle(const json_t *policy, int64_t now_us)
{
    return get_copy(json_object_get(policy, "obstacle"), "reason");
}

static char *policy_make_value(const json_t *policy, int64_t now_us)
{
    return get_copy(policy, "value");
}

static char *policy_make_goal(const json_t *policy, int64_t now_us)
{
    return get_copy(policy, "goal");
}

static char *policy_make_locked(const json_t *policy, int64_t now_us)
{
    return get_copy(policy, "locked");
}

static char *policy_make_rule(const json_t *policy, int64_t now_us)
{
    return get_copy(policy, "rule");
}

static char *policy_make_message(const json_t *policy, int64_t now_us)
{
    return get_make_flow(json_object_get(json_object_get(policy, "obstacle"), "message"));
}

static char *policy_make_age(const json_t *policy, int64_t now_us)
{
    char age[64];
    return as_xstrdup(
        target_text_print_span(policy, "created", true, now_us, age, sizeof(age)) ? age : "-");
}

static const struct get_column policy_columns[] = {
    {"NAME", false, policy_make_name},         {"TARGET", false, policy_make_target},
    {"SIZE", false, policy_make_size},         {"DESIRED", false, policy_make_desired},
    {"MIN", false, policy_make_min},           {"MAX", false, policy_make_max},
    {"REASON", false, policy_make_reason},     {"READY", false, policy_make_ready},
    {"OBSTACLE", false, policy_make_obstacle}, {"VALUE", true, policy_make_value},
    {"GOAL", true, policy_make_goal},          {"LOCKED", true, policy_make_locked},
    {"RULE", true, policy_make_rule},          {"AGE", false, policy_make_age},
    {"MESSAGE", true, policy_make_message},    {0},
};

/* --- contexts --- */

static char *context_make_current(const json_t *context, int64_t now_us)
{
    return as_xstrdup(json_is_true(json_object_get(context, "current")) ? "*" : "");
}

static char *context_make_name(const json_t *context, int64_t now_us)
{
    return get_copy(context, "name");
}

static char *context_make_url(const json_t *context, int64_t now_us)
{
    return get_copy(context, "url");
}

static char *context_make_token_file(const json_t *context, int64_t now_us)
{
    return get_copy(context, "token_file");
}

static char *context_make_ca_file(const json_t *context, int64_t now_us)
{
    return get_copy(context, "ca_file");
}

static const struct get_column context_columns[] = {
    {"CURRENT", false, context_make_current}, {"NAME", false, context_make_name},
    {"URL", false, context_make_url},         {"TOKEN FILE", true, context_make_token_file},
    {"CA FILE", true, context_make_ca_file},  {0},
};

/* --- kinds --- */

#define GET_KEYS_MAX 4

struct get_kind {
    const char *word, *singular;
    const char *path; /* NULL: from the client file */
    const struct get_column *columns;
    /* The members that a NAME may match: "labels.alertname" is in an object. The first one that is
     * not empty is what `-o name` prints. */
    const char *keys[GET_KEYS_MAX + 1];
};

static const struct get_kind get_kinds[] = {
    {"targets", "target", "/api/v1/targets" GET_ALL, target_columns, {"name", "id"}},
    {"rules", "rule", "/api/v1/rules" GET_ALL, rule_columns, {"name"}},
    {"incidents",
     "incident",
     "/api/v1/incidents" GET_ALL,
     incident_columns,
     {"digest", "fingerprint", "labels.alertname"}},
    {"decisions",
     "decision",
     "/api/v1/decisions" GET_NEWEST,
     decision_columns,
     {"id", "target_name", "target"}},
    {"policies", "policy", "/api/v1/policies" GET_ALL, policy_columns, {"id", "name"}},
    {"contexts", "context", NULL, context_columns, {"name"}},
};

/* The member at a path of keys; NULL: none. */
static const json_t *get_find_member(const json_t *item, const char *path)
{
    while (item) {
        const size_t size = strcspn(path, ".");
        AS_CLEANUP(as_free_p) char *key = as_xstrndup(path, size);
        item = json_object_get(item, key);
        if (!path[size])
            return item;
        path += size + 1;
    }
    return NULL;
}

static const char *get_find_text(const json_t *item, const char *path)
{
    const char *text = json_string_value(get_find_member(item, path));
    return text ? text : "";
}

/* NULL after an error message. */
static const struct get_kind *get_find_kind(const struct as_args *args, const char *word)
{
    struct as_spelling spelling = as_spelling_begin(word);
    for (size_t i = 0; i < AS_ARRAY_SIZE(get_kinds); i++) {
        if (strcmp(word, get_kinds[i].word) == 0 || strcmp(word, get_kinds[i].singular) == 0) {
            free(spelling.nearest);
            return &get_kinds[i];
        }
        as_spelling_offer(&spelling, get_kinds[i].word);
    }
    AS_CLEANUP(as_free_p) char *hint = as_spelling_end(&spelling);
    (void)as_cli_fail(args,
                      "there is no kind \"%s\": name targets, rules, incidents, decisions, "
                      "policies or contexts%s",
                      word, hint);
    return NULL;
}

static bool get_is_named(const struct get_kind *kind, const json_t *item, const char *pattern)
{
    for (size_t i = 0; kind->keys[i]; i++) {
        if (as_str_glob(pattern, get_find_text(item, kind->keys[i])))
            return true;
    }
    return false;
}

/* The items that a NAME matches, in the order of `items`: a new list. A NAME that matches nothing
 * is a problem. */
static json_t *get_select(const struct as_args *args, const struct get_kind *kind,
                          const json_t *items, char **problem_io, int *status_io)
{
    json_t *chosen = json_array();
    const json_t *item;
    size_t i;
    bool *matches = as_xcalloc(args->operand_count, sizeof(*matches));
    json_array_foreach(items, i, item)
    {
        bool is_chosen = args->operand_count < 2;
        for (size_t k = 1; k < args->operand_count; k++) {
            const bool is_match = get_is_named(kind, item, args->operands[k]);
            matches[k] = matches[k] || is_match;
            is_chosen = is_chosen || is_match;
        }
        if (is_chosen)
            json_array_append(chosen, (json_t *)(uintptr_t)item);
    }
    for (size_t k = 1; k < args->operand_count && *status_io == AS_EXIT_OK; k++) {
        if (matches[k])
            continue;
        struct as_spelling spelling = as_spelling_begin(args->operands[k]);
        json_array_foreach(strpbrk(args->operands[k], "*?") ? NULL : items, i, item)
        {
            for (size_t key = 0; kind->keys[key]; key++)
                as_spelling_offer(&spelling, get_find_text(item, kind->keys[key]));
        }
        AS_CLEANUP(as_free_p) char *hint = as_spelling_end(&spelling);
        free(*problem_io);
        *problem_io = as_safe_text_take(
            as_xasprintf("no %s has the name \"%s\"%s", kind->singular, args->operands[k], hint));
        *status_io = AS_EXIT_NO;
    }
    free(matches);
    return chosen;
}

/* --- sorting --- */

struct get_sorted {
    json_t *item;
    const json_t *value;
    size_t order; /* in the answer: the sort is stable */
    bool is_falling;
};

static int get_compare_values(const json_t *a, const json_t *b)
{
    if (json_is_number(a) && json_is_number(b)) {
        const double x = json_number_value(a), y = json_number_value(b);
        return (x > y) - (x < y);
    }
    if (json_is_string(a) && json_is_string(b))
        return strcmp(json_string_value(a), json_string_value(b));
    return (int)json_typeof(a) - (int)json_typeof(b);
}

/* Items without the value are last. */
static int get_compare(const void *left, const void *right)
{
    const struct get_sorted *a = left, *b = right;
    const bool has_a = a->value && !json_is_null(a->value);
    const bool has_b = b->value && !json_is_null(b->value);
    int order = has_a && has_b ? get_compare_values(a->value, b->value) : has_b - has_a;
    if (has_a && has_b && a->is_falling)
        order = -order;
    return order ? order : (a->order > b->order) - (a->order < b->order);
}

/* For free(). The keys of the first item are what can be meant. */
static char *get_explain_key(const json_t *items, const char *key)
{
    struct as_spelling spelling = as_spelling_begin(key);
    const char *name;
    json_t *unused;
    json_object_foreach(json_array_get(items, 0), name, unused) as_spelling_offer(&spelling, name);
    AS_CLEANUP(as_free_p) char *hint = as_spelling_end(&spelling);
    return as_safe_text_take(as_xasprintf(
        "--sort-by: nothing has the member \"%s\": -o json shows the members, such as %s%s", key,
        json_array_size(items) > 0
            ? json_object_iter_key(json_object_iter(json_array_get(items, 0)))
            : "name",
        hint));
}

/* In place. False with a problem: no item has the key. */
static bool get_sort(const struct as_args *args, json_t *items, char **problem_out)
{
    const char *by = as_args_get(args, "sort-by");
    const size_t count = json_array_size(items);
    if (!by || count == 0)
        return true;
    const bool is_falling = *by == '-';
    const char *key = by + is_falling;
    struct get_sorted *sorted = as_xcalloc(count, sizeof(*sorted));
    bool has_value = false;
    for (size_t i = 0; i < count; i++) {
        json_t *item = json_array_get(items, i);
        sorted[i] =
            (struct get_sorted){json_incref(item), get_find_member(item, key), i, is_falling};
        has_value = has_value || sorted[i].value;
    }
    if (has_value) {
        qsort(sorted, count, sizeof(*sorted), get_compare);
        for (size_t i = 0; i < count; i++)
            json_array_set(items, i, sorted[i].item);
    } else {
        free(*problem_out);
        *problem_out = get_explain_key(items, key);
    }
    for (size_t i = 0; i < count; i++)
        json_decref(sorted[i].item);
    free(sorted);
    return has_value;
}

/* --- formats --- */

static void get_print_table(const struct get_column *columns, const json_t *items, bool is_wide,
                            FILE *out)
{
    const int64_t now_us = target_text_get_now();
    const size_t count = json_array_size(items);
    const struct get_column *shown[16];
    const char *titles[AS_ARRAY_SIZE(shown)];
    size_t width = 0;
    for (; columns->title; columns++) {
        if (columns->is_wide && !is_wide)
            continue;
        titles[width] = columns->title;
        shown[width++] = columns;
    }
    char **cells = as_xcalloc(count * width + 1, sizeof(char *));
    for (size_t k = 0; k < count; k++) {
        for (size_t i = 0; i < width; i++)
            cells[k * width + i] = shown[i]->make(json_array_get(items, k), now_us);
    }
    table_print(titles, width, cells, count, out);
    free(cells);
}

static void get_print_names(const struct get_kind *kind, const json_t *items, FILE *out)
{
    const json_t *item;
    size_t i;
    json_array_foreach(items, i, item)
    {
        as_safe_text_put(out, kind->columns == target_columns ? get_target_name(item)
                                                              : get_find_text(item, kind->keys[0]));
        fputc('\n', out);
    }
}

/* A text that YAML reads as this text without quotes. */
static bool get_is_plain(const char *text)
{
    static const char *const words[] = {"true", "false", "null", "yes", "no",
                                        "on",   "off",   "y",    "n"};
    for (size_t i = 0; i < AS_ARRAY_SIZE(words); i++) {
        if (strcasecmp(text, words[i]) == 0)
            return false;
    }
    for (const char *at = text; *at; at++) {
        if (!isascii(*at) || !(isalnum((unsigned char)*at) || strchr("_-./", *at)))
            return false;
    }
    return isascii(*text) && isalpha((unsigned char)*text);
}

/* Other texts are as in JSON, which YAML reads too. An exponent has a sign: without it, YAML 1.1
 * reads a text. */
static void get_put_yaml_scalar(const json_t *value, FILE *out)
{
    const char *text = json_string_value(value);
    if (text && get_is_plain(text)) {
        fputs(text, out);
        return;
    }
    AS_CLEANUP(as_free_p) char *json = json_dumps(value, JSON_ENCODE_ANY);
    if (!json)
        abort(); /* only without memory */
    const char *exponent = json_is_real(value) ? strchr(json, 'e') : NULL;
    if (exponent && isdigit((unsigned char)exponent[1]))
        fprintf(out, "%.*se+%s", (int)(exponent - json), json, exponent + 1);
    else
        as_safe_json_put(out, json, strlen(json));
}

static void get_put_yaml_key(const char *key, FILE *out)
{
    json_t *text = json_string(key);
    get_put_yaml_scalar(text, out);
    json_decref(text);
    fputc(':', out);
}

/* A value after "-" or "KEY:"; its lines have `indent` blanks. */
static void get_put_yaml(const json_t *value, int indent, bool is_in_list, FILE *out)
{
    const char *key;
    const json_t *member;
    size_t i, count = 0;
    if (json_is_object(value) && json_object_size(value) > 0) {
        json_object_foreach((json_t *)(uintptr_t)value, key, member)
        {
            if (count++ > 0 || !is_in_list)
                fprintf(out, "\n%*s", indent, "");
            else
                fputc(' ', out);
            get_put_yaml_key(key, out);
            get_put_yaml(member, indent + 2, false, out);
        }
    } else if (json_is_array(value) && json_array_size(value) > 0) {
        json_array_foreach(value, i, member)
        {
            fprintf(out, "\n%*s-", indent, "");
            get_put_yaml(member, indent + 2, true, out);
        }
    } else {
        fputc(' ', out);
        get_put_yaml_scalar(value, out);
    }
}

static void get_print_yaml(const json_t *items, FILE *out)
{
    const json_t *item;
    size_t i;
    if (json_array_size(items) == 0)
        fputs("[]\n", out);
    json_array_foreach(items, i, item)
    {
        fputc('-', out);
        get_put_yaml(item, 2, true, out);
        fputc('\n', out);
    }
}

static void get_print_items(const struct as_args *args, const struct get_kind *kind,
                            const json_t *items, FILE *out)
{
    const char *format = as_args_get(args, "output");
    if (strcmp(format, "json") == 0)
        as_cli_print_json(items, JSON_INDENT(2), out);
    else if (strcmp(format, "yaml") == 0)
        get_print_yaml(items, out);
    else if (strcmp(format, "name") == 0)
        get_print_names(kind, items, out);
    else
        get_print_table(kind->columns, items, strcmp(format, "wide") == 0, out);
}

/* --- get --- */

/* The contexts as documents: a new list; NULL with a problem. */
static json_t *get_read_contexts(char **problem_out, int *status_out)
{
    AS_CLEANUP(client_file_deinit) struct client_file file = {0};
    struct as_error error = AS_ERROR_INIT;
    *status_out = AS_EXIT_USAGE;
    if (client_file_load(&file, &error) != 0) {
        *problem_out = as_safe_text_take(as_xstrdup(error.text));
        return NULL;
    }
    json_t *items = json_array();
    for (size_t i = 0; i < file.count; i++) {
        const struct client_context *context = &file.contexts[i];
        json_array_append_new(
            items,
            json_pack("{s:s, s:s, s:s?, s:s?, s:b}", "name", context->name, "url", context->url,
                      "token_file", context->token_file, "ca_file", context->ca_file, "current",
                      (int)(file.current && strcmp(file.current, context->name) == 0)));
    }
    *status_out = AS_EXIT_OK;
    return items;
}

/* A list of the API: a new reference, with the daemon's warning for free(), or a problem. */
static json_t *get_ask(const struct as_args *args, const char *path, char **problem_out,
                       int *status_out)
{
    json_t *json = http_call_ask(args, path, problem_out, status_out);
    const char *warning = json_string_value(json_array_get(json_object_get(json, "warnings"), 0));
    json_t *items = json_incref(json_object_get(json, "data"));
    if (warning)
        *problem_out = as_safe_text_take(as_xstrdup(warning));
    json_decref(json);
    if (items)
        *status_out = AS_EXIT_OK;
    return items;
}

/* A watch_print_fn. The kind was checked before. */
static int get_print(const struct as_args *args, FILE *out, char **problem_out)
{
    const struct get_kind *kind = get_find_kind(args, args->operands[0]);
    int status = AS_EXIT_OK;
    json_t *items = kind->path ? get_ask(args, kind->path, problem_out, &status)
                               : get_read_contexts(problem_out, &status);
    if (!items)
        return status;
    json_t *chosen = get_select(args, kind, items, problem_out, &status);
    if (!get_sort(args, chosen, problem_out))
        status = AS_EXIT_USAGE;
    else if (json_array_size(chosen) > 0 || status == AS_EXIT_OK)
        get_print_items(args, kind, chosen, out);
    json_decref(chosen);
    json_decref(items);
    return status;
}

static int get_list_run(const struct as_args *args)
{
    AS_CLEANUP(as_free_p) char *problem = NULL;
    if (!get_find_kind(args, args->operands[0]))
        return AS_EXIT_USAGE;
    if (as_args_has(args, "watch"))
        return watch_run(args, get_print);
    const int status = get_print(args, stdout, &problem);
    if (problem)
        (void)as_cli_fail(args, "%s", problem);
    return status;
}

/* --- describe --- */

static void describe_put(FILE *out, const char *title, char *text)
{
    fprintf(out, "%-16s", title);
    as_safe_text_put(out, text);
    fputc('\n', out);
    free(text);
}

static void describe_print_failure(const json_t *target, FILE *out)
{
    const char *failure = target_text_get(target, "failure");
    const char *text = target_text_get(target, "failure_text");
    if (*failure)
        describe_put(out, "Failure:", as_xasprintf("%s%s%s", failure, *text ? ": " : "", text));
}

static void describe_print_lists(const json_t *target, int64_t now_us, FILE *out)
{
    const json_t *item;
    char span[64];
    size_t i;
    json_array_foreach(json_object_get(target, "next"), i, item) describe_put(
        out, "Next:",
        as_xasprintf("%s (rule %s)", target_text_get(item, "text"), target_text_get(item, "rule")));
    json_array_foreach(json_object_get(target, "ineffective"), i, item)
        describe_put(out, "Did not help:", get_copy(item, "rule"));
    json_array_foreach(json_object_get(target, "schedules"), i, item)
    {
        const bool has_change =
            target_text_print_span(item, "changes", false, now_us, span, sizeof(span));
        describe_put(out, "Schedule:",
                     as_xasprintf("%s: %s%s%s", target_text_get(item, "name"),
                                  json_is_true(json_object_get(item, "in_force")) ? "in force"
                                                                                  : "not in force",
                                  has_change ? ", changes in " : "", has_change ? span : ""));
    }
    json_array_foreach(json_object_get(target, "others"), i, item) describe_put(
        out, "Sized too by:",
        as_xasprintf("%s %s%s", target_text_get(item, "kind"), target_text_get(item, "name"),
                     json_is_true(json_object_get(item, "paused")) ? " (paused)" : ""));
}

/* Items of which `is_of` says that they belong to the target: a new list. */
static json_t *describe_filter(const json_t *items, const json_t *target,
                               bool (*is_of)(const json_t *item, const json_t *target))
{
    json_t *chosen = json_array(), *item;
    size_t i;
    json_array_foreach(items, i, item)
    {
        if (is_of(item, target))
            json_array_append(chosen, item);
    }
    return chosen;
}

static bool incident_is_of(const json_t *incident, const json_t *target)
{
    const json_t *each;
    size_t i;
    json_array_foreach(json_object_get(incident, "targets"), i, each)
    {
        if (strcmp(target_text_get(each, "target"), target_text_get(target, "id")) == 0)
            return true;
    }
    return false;
}

static bool rule_is_of(const json_t *rule, const json_t *target)
{
    return strcmp(target_text_get(rule, "target"), target_text_get(target, "name")) == 0;
}

static const struct {
    const char *title, *key, *path;
    const struct get_column *columns;
    bool (*is_of)(const json_t *item, const json_t *target); /* NULL: `path` ends with its id */
} describe_parts[] = {
    {"Rules", "rules", "/api/v1/rules" GET_ALL, rule_columns, rule_is_of},
    {"Open incidents", "incidents", "/api/v1/incidents" GET_ALL, incident_columns, incident_is_of},
    {"Last decisions", "decisions", "/api/v1/decisions" GET_OF_TARGET, decision_columns, NULL},
};

static void describe_print_target(const json_t *target, FILE *out)
{
    const int64_t now_us = target_text_get_now();
    describe_put(out, "Target:", get_copy(target, "name"));
    describe_put(out, "Id:", get_copy(target, "id"));
    describe_put(out, "Size:", target_text_make_size(target));
    describe_put(out, "Ready:", get_copy_number(target, "ready"));
    describe_put(out, "Bounds:", target_text_make_bounds(target, now_us));
    describe_put(out, "State:", target_make_state(target, now_us));
    describe_put(out, "Locked:", target_text_make_locks(target, now_us));
    describe_put(out, "Paused:", target_text_make_pause(target, now_us));
    describe_put(out, "Last decision:", target_text_make_last(target, now_us));
    describe_print_failure(target, out);
    describe_print_lists(target, now_us, out);
}

/* A path with a name or an id behind it, for free(). */
static char *describe_make_path(const char *path, const char *name)
{
    char *escaped = curl_easy_escape(NULL, name, 0);
    char *whole = as_xasprintf("%s%s", path, escaped ? escaped : "");
    curl_free(escaped);
    return whole;
}

/* Adds the parts to the document as members. A part that cannot be read is null. */
static int describe_read_parts(const struct as_args *args, json_t *target)
{
    int result = AS_EXIT_OK;
    for (size_t i = 0; i < AS_ARRAY_SIZE(describe_parts); i++) {
        AS_CLEANUP(as_free_p) char *problem = NULL;
        const bool is_filtered = !describe_parts[i].is_of; /* by the daemon */
        AS_CLEANUP(as_free_p)
        char *path = describe_make_path(describe_parts[i].path,
                                        is_filtered ? target_text_get(target, "id") : "");
        int status;
        json_t *items = get_ask(args, path, &problem, &status);
        if (!items) {
            (void)as_cli_fail(args, "%s: %s", describe_parts[i].key, problem);
            json_object_set_new(target, describe_parts[i].key, json_null());
            result = status;
        } else if (is_filtered) {
            json_object_set_new(target, describe_parts[i].key, items);
        } else {
            json_object_set_new(target, describe_parts[i].key,
                                describe_filter(items, target, describe_parts[i].is_of));
            json_decref(items);
        }
    }
    return result;
}

static int describe_run(const struct as_args *args)
{
    AS_CLEANUP(as_free_p) char *problem = NULL;
    const char *name = args->operands[1];
    int status;
    if (strcmp(args->operands[0], "target") != 0 && strcmp(args->operands[0], "targets") != 0)
        return as_cli_fail(args, "there is no description of \"%s\": write `describe target NAME`",
                           args->operands[0]);
    AS_CLEANUP(as_free_p) char *path = describe_make_path("/api/v1/targets/", name);
    json_t *target = get_ask(args, path, &problem, &status);
    if (!target) {
        (void)as_cli_fail(args, "%s", problem);
        if (status == AS_EXIT_NO)
            http_suggest_target(args, name);
        return status;
    }
    status = describe_read_parts(args, target);
    if (as_args_wants_json(args)) {
        as_cli_print_json(target, JSON_INDENT(2), stdout);
        json_decref(target);
        return status;
    }
    describe_print_target(target, stdout);
    for (size_t i = 0; i < AS_ARRAY_SIZE(describe_parts); i++) {
        const json_t *items = json_object_get(target, describe_parts[i].key);
        if (json_array_size(items) == 0)
            continue;
        printf("\n%s:\n", describe_parts[i].title);
        get_print_table(describe_parts[i].columns, items, false, stdout);
    }
    json_decref(target);
    return status;
}

/* --- the commands --- */

static const char *const get_output_choices[] = {"text", "wide", "json", "yaml", "name", NULL};

static const struct as_option get_options[] = {
    {.name = "sort-by",
     .value = "KEY",
     .help = "Sorts by a member of the documents: replicas, last_decision.time; -KEY: falling"},
    WATCH_OPTIONS,
    AS_OPTION_URL,
    AS_OPTION_TOKEN_FILE,
    AS_OPTION_CA_FILE,
    {.name = "output",
     .letter = 'o',
     .value = "FORMAT",
     .fallback = "text",
     .choices = get_output_choices,
     .help = "text or wide for people, json or yaml for programs, name for scripts"},
    {0},
};

static const struct as_option describe_options[] = {
    AS_OPTION_URL, AS_OPTION_TOKEN_FILE, AS_OPTION_CA_FILE, AS_OPTION_OUTPUT, {0},
};

const struct as_command as_commands_of_readers[] = {
    [AS_READER_GET] =
        {
            .name = "get",
            .operands = "targets|rules|incidents|decisions|policies|contexts [NAME...]",
            .summary = "Lists what a running daemon knows, or the contexts of the client file.",
            .help = "NAME may have wildcards: * and ?. It is the name or id of a target, the name "
                    "of a rule, the\n"
                    "alert name or digest of an incident, the id or target of a decision, or the "
                    "name or\n"
                    "NAMESPACE/NAME of a policy. Exit status 1 if a NAME matches nothing.",
            .options = get_options,
            .operands_min = 1,
            .operands_max = 1000,
            .first_words = "targets rules incidents decisions policies contexts",
            .names = "",
            .run = get_list_run,
        },
    [AS_READER_DESCRIBE] =
        {
            .name = "describe",
            .operands = "target NAME",
            .summary = "Shows one target of a running daemon with its rules and incidents.",
            .help = "NAME is a name in the rule files, or an id. Also shows the last decisions.",
            .options = describe_options,
            .operands_min = 2,
            .operands_max = 2,
            .first_words = "target",
            .names = "targets",
            .run = describe_run,
        },
};
