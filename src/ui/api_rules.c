/*
 * Rules as in the rule files. The forms of an action depend on its kind, so that a table of rows
 * does not describe them.
 */
#include <stdio.h>
#include <string.h>

#include <alertscaler/base/number.h>
#include <alertscaler/doc/rows.h>
#include <alertscaler/monitoring/query_checks.h>

#include "api_private.h"

#define MATCHER_MAX    ((size_t)64 * 1024)
#define NAME_FIRST     "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_:"
#define NAME_CONTINUED NAME_FIRST "0123456789"

static bool rules_is_plain_name(const char *name)
{
    return *name && strchr(NAME_FIRST, *name) && name[strspn(name, NAME_CONTINUED)] == '\0';
}

static void print_quoted(struct as_buf *out, const char *text)
{
    as_buf_append_char(out, '"');
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            as_buf_append_char(out, '\\');
        if (*text == '\n')
            as_buf_append_str(out, "\\n");
        else
            as_buf_append_char(out, *text);
    }
    as_buf_append_char(out, '"');
}

void api_print_matcher(const struct as_matcher *matcher, struct as_buf *out)
{
    static const char *const words[] = {
        [AS_MATCHER_EQUAL] = "=",
        [AS_MATCHER_NOT_EQUAL] = "!=",
        [AS_MATCHER_REGEX] = "=~",
        [AS_MATCHER_NOT_REGEX] = "!~",
    };
    if (rules_is_plain_name(matcher->name))
        as_buf_append_str(out, matcher->name);
    else
        print_quoted(out, matcher->name);
    as_buf_append_str(out, words[matcher->op]);
    print_quoted(out, matcher->value);
}

static void rule_matchers_write(struct as_json_writer *json, const struct as_row *row,
                                const void *base)
{
    const struct as_rule *rule = base;
    as_json_begin_array(json);
    for (size_t i = 0; i < rule->matcher_count; i++) {
        AS_CLEANUP(as_buf_deinit) struct as_buf text = AS_BUF_INIT(MATCHER_MAX);
        api_print_matcher(&rule->matchers[i], &text);
        as_json_write_string_size(json, text.data, text.size);
    }
    as_json_end_array(json);
}

static void rules_write_percent(struct as_json_writer *json, const char *key, double percent)
{
    char number[AS_NUMBER_SIZE], text[AS_NUMBER_SIZE + 1];
    as_number_print_double(percent, number);
    (void)snprintf(text, sizeof(text), "%s%%", number);
    as_json_write_member(json, key, text);
}

static void rules_write_amount(struct as_json_writer *json, const struct as_amount *amount)
{
    if (!amount->is_percent) {
        as_json_write_member_i64(json, "by", amount->size);
        return;
    }
    rules_write_percent(json, "by", (double)amount->milli_percent / 1000);
    as_json_write_member_i64(json, "at_least", amount->at_least);
}

static void write_source(struct as_json_writer *json, const struct as_source *source)
{
    switch (source->kind) {
    case AS_SOURCE_NONE: break;
    case AS_SOURCE_ANNOTATION: as_json_write_member(json, "annotation", source->name); break;
    case AS_SOURCE_LABEL: as_json_write_member(json, "label", source->name); break;
    case AS_SOURCE_NODES: as_json_write_member(json, "nodes", source->name); break;
    case AS_SOURCE_QUERY:
        as_json_write_member(json, "query", as_template_get_text(source->query));
        if (!source->per_pod)
            break;
        as_json_write_member_bool(json, "per_pod", true);
        as_json_write_member(json, "pod_label", source->pod_label);
        break;
    }
}

static void write_steps(struct as_json_writer *json, const struct as_action *action,
                        const struct as_source *source)
{
    as_json_write_key(json, "value");
    as_json_begin_object(json);
    write_source(json, source);
    as_json_end_object(json);
    as_json_write_key(json, "steps");
    as_json_begin_array(json);
    for (size_t i = 0; i < action->step_count; i++) {
        const struct as_step *step = &action->steps[i];
        as_json_begin_object(json);
        as_json_write_key(json, action->kind == AS_ACTION_SCALE_TO ? "from"
                                : step->is_above                   ? "above"
                                                                   : "below");
        as_json_write_double(json, step->bound);
        if (action->kind == AS_ACTION_SCALE_TO) {
            as_json_write_member_i64(json, "size", step->amount.size);
        } else if (step->to > 0) {
            as_json_write_key(json, "to");
            as_json_write_double(json, step->to);
        } else {
            rules_write_amount(json, &step->amount);
        }
        as_json_end_object(json);
    }
    as_json_end_array(json);
}

static void rules_write_track(struct as_json_writer *json, const struct as_track *track,
                              const struct as_source *source)
{
    static const char *const words[] = {[AS_RESOURCE_CPU] = "cpu", [AS_RESOURCE_MEMORY] = "memory"};
    static const char *const resources[][2] = {
        [AS_RESOURCE_CPU] = {"cpu_requests", "cpu_limits"},
        [AS_RESOURCE_MEMORY] = {"memory_requests", "memory_limits"},
    };
    switch (track->goal) {
    case AS_GOAL_VALUE:
        as_json_write_key(json, "value");
        as_json_write_double(json, track->value);
        break;
    case AS_GOAL_AVERAGE_VALUE:
        as_json_write_key(json, "average_value");
        as_json_write_double(json, track->value);
        if (track->is_resource)
            as_json_write_member(json, "resource", words[track->resource]);
        break;
    case AS_GOAL_UTILIZATION:
        rules_write_percent(json, "utilization", track->value);
        as_json_write_member(json, "of", resources[track->resource][track->of_limits]);
        if (track->container)
            as_json_write_member(json, "container", track->container);
        break;
    }
    if (track->by_owner)
        as_json_write_member(json, "pods", "owned");
    write_source(json, source);
}

/* `{"scale_up": {...}}`; `source` only for actions that have one. */
static void rules_write_action(struct as_json_writer *json, const struct as_action *action,
                               const struct as_source *source)
{
    as_json_begin_object(json);
    as_json_write_key(json, as_action_kind_get_word(action->kind));
    if (action->kind == AS_ACTION_HOLD) {
        as_json_write_string(json, as_ways_get_word(action->hold));
    } else if (action->kind == AS_ACTION_SCALE_TO && !action->steps) {
        as_json_write_i64(json, action->size);
    } else {
        as_json_begin_object(json);
        if (action->kind == AS_ACTION_TRACK)
            rules_write_track(json, &action->track, source);
        else if (action->kind == AS_ACTION_PASS_THROUGH)
            write_source(json, source);
        else if (action->step_count > 0)
            write_steps(json, action, source);
        else if (action->is_to)
            as_json_write_member_i64(json, "to", action->size);
        else
            rules_write_amount(json, &action->amount);
        as_json_end_object(json);
    }
    as_json_end_object(json);
}

void api_write_action(struct as_json_writer *json, const struct as_rule *rule)
{
    rules_write_action(json, &rule->action, &rule->source);
}

static void rule_action_write(struct as_json_writer *json, const struct as_row *row,
                              const void *base)
{
    api_write_action(json, base);
}

static void rule_ending_write(struct as_json_writer *json, const struct as_row *row,
                              const void *base)
{
    const struct as_ending *ending = &((const struct as_rule *)base)->on_resolved;
    static const struct as_source none = {.kind = AS_SOURCE_NONE};
    char after[AS_DURATION_SIZE];
    switch (ending->kind) {
    case AS_ENDING_NOTHING: as_json_write_string(json, "nothing"); break;
    case AS_ENDING_GIVE_BACK:
        as_duration_print(ending->after_us, after);
        as_json_begin_object(json);
        as_json_write_key(json, "give_back");
        as_json_begin_object(json);
        as_json_write_member(json, "after", after);
        rules_write_percent(json, "step", (double)ending->step_milli_percent / 1000);
        as_json_end_object(json);
        as_json_end_object(json);
        break;
    case AS_ENDING_SCALE: rules_write_action(json, &ending->action, &none); break;
    }
}

static void rule_guard_write(struct as_json_writer *json, const struct as_row *row,
                             const void *base)
{
    const struct as_rule *rule = base;
    switch (rule->guard_kind) {
    case AS_GUARD_ABSENT: as_json_write_null(json); break;
    case AS_GUARD_WAIVED: as_json_write_string(json, "none"); break;
    case AS_GUARD_QUERY:
        as_json_begin_object(json);
        as_json_write_member(json, "query", as_template_get_text(rule->guard));
        as_json_end_object(json);
        break;
    }
}

static void duration_write(struct as_json_writer *json, const struct as_row *row, const void *base)
{
    char text[AS_DURATION_SIZE];
    as_duration_print(*(const int64_t *)as_row_at(row, base), text);
    as_json_write_string(json, text);
}

static bool duration_is_unset(const struct as_row *row, const void *base)
{
    return *(const int64_t *)as_row_at(row, base) == 0;
}

static const struct as_row_type as_row_duration = {.write = duration_write,
                                                   .is_unset = duration_is_unset};
#define AS_ROW_TYPE_duration int64_t

static void rule_target_write(struct as_json_writer *json, const struct as_row *row,
                              const void *base)
{
    as_json_write_string(json, ((const struct as_rule *)base)->target->name);
}

static void rule_query_error_write(struct as_json_writer *json, const struct as_row *row,
                                   const void *base)
{
    const struct as_view *view = &api_get_request(json)->view;
    const char *error = as_query_checks_find_error(view->query_checks, base);
    if (error)
        as_json_write_string(json, error);
    else
        as_json_write_null(json);
}

static bool rule_has_no_fallback(const void *rule)
{
    return ((const struct as_rule *)rule)->fallback.at_least == 0;
}

static const struct as_row fallback_rows[] = {
    {AS_ROW("after", duration, as_fallback, after_us, REQUIRED)},
    {AS_ROW("at_least", i32, as_fallback, at_least, REQUIRED)},
    {.name = NULL},
};

static const struct as_row rule_rows[] = {
    {AS_ROW("name", own_text, as_rule, name, REQUIRED)},
    {API_HOOK("match", rule_matchers_write)},
    {AS_ROW("always", flag, as_rule, is_always, REQUIRED)},
    {AS_ROW("receivers", own_texts, as_rule, receivers, REQUIRED),
     .count_at = AS_ROW_COUNT(as_rule, receiver_count)},
    {API_HOOK("target", rule_target_write)},
    {API_HOOK("action", rule_action_write)},
    {API_HOOK("on_resolved", rule_ending_write)},
    {AS_ROW("every", duration, as_rule, every_us, NULLABLE)},
    {AS_ROW_PART("fallback", as_rule, fallback, NULLABLE, fallback_rows),
     .is_unset = rule_has_no_fallback},
    {AS_ROW("max_steps", u32, as_rule, max_steps, NULLABLE)},
    {API_HOOK("guard", rule_guard_write)},
    {AS_ROW("dry_run", flag, as_rule, dry_run, REQUIRED)},
    {AS_ROW("enabled", flag, as_rule, enabled, REQUIRED)},
    {API_HOOK("query_error", rule_query_error_write)},
    {.name = NULL},
};

void api_answer_rules(struct api_request *request)
{
    const struct as_ruleset *ruleset = request->view.ruleset;
    struct api_list list;
    if (!api_list_begin(&list, request, API_LIMIT_MAX))
        return;
    for (size_t i = 0; i < ruleset->rule_count && !list.is_cut; i++) {
        const struct as_rule *rule = ruleset->rules[i];
        if (api_may_see_rule(request, rule->name, rule->target->name, ""))
            api_list_add(&list, rule_rows, rule);
    }
    api_list_end(&list);
}
