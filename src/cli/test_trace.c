/*
 * The memory of a running test: see the header.
 */
#include "test_trace.h"

#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/str.h>
#include <alertscaler/base/unit.h>

#define LINE_MAX_SIZE 4096

static struct as_buf start_line(const struct test_trace *trace, as_wall_time at)
{
    struct as_buf line = AS_BUF_INIT(LINE_MAX_SIZE);
    char since[AS_DURATION_SIZE];
    as_duration_print(at.us - trace->start.us, since);
    as_buf_printf(&line, "%-8s ", since);
    return line;
}

static void end_line(struct test_lines *lines, struct as_buf *line)
{
    char **place = &lines->items[lines->total++ % TEST_HISTORY];
    size_t size;
    free(*place);
    *place = as_buf_take(line, &size);
}

void test_lines_copy(const struct test_lines *lines, struct test_failure *failure)
{
    const size_t first = lines->total > TEST_HISTORY ? lines->total - TEST_HISTORY : 0;
    failure->history_count = 0;
    for (size_t i = first; i < lines->total; i++)
        failure->history[failure->history_count++] = as_xstrdup(lines->items[i % TEST_HISTORY]);
}

static void free_lines(struct test_lines *lines)
{
    for (size_t i = 0; i < TEST_HISTORY; i++)
        free(lines->items[i]);
}

void test_trace_deinit(struct test_trace *trace)
{
    struct test_target *target, *next_target;
    HASH_ITER (hh, trace->targets, target, next_target) {
        HASH_DEL(trace->targets, target);
        free_lines(&target->lines);
        free(target->id);
        free(target->name);
        free(target->rule);
        free(target->unit);
        free(target);
    }
    struct test_alert *alert, *next_alert;
    HASH_ITER (hh, trace->alerts, alert, next_alert) {
        HASH_DEL(trace->alerts, alert);
        free(alert);
    }
    free_lines(&trace->lines);
}

const struct test_target *test_trace_find_target(const struct test_trace *trace, const char *name)
{
    struct test_target *target;
    HASH_FIND_STR(trace->targets, name, target);
    if (target)
        return target;
    for (target = trace->targets; target; target = target->hh.next) {
        if (strcmp(target->name, name) == 0)
            return target;
    }
    return NULL;
}

static struct test_target *get_target(struct test_trace *trace, const char *id, const char *name)
{
    struct test_target *target;
    HASH_FIND_STR(trace->targets, id, target);
    if (target)
        return target;
    target = as_xcalloc(1, sizeof(*target));
    target->id = as_xstrdup(id);
    target->name = as_xstrdup(name);
    HASH_ADD_STR(trace->targets, id, target);
    return target;
}

struct test_alert *test_trace_get_alert(struct test_trace *trace, const struct as_digest *digest)
{
    char text[AS_DIGEST_TEXT_SIZE];
    struct test_alert *alert;
    as_digest_print(digest, text);
    HASH_FIND_STR(trace->alerts, text, alert);
    if (alert)
        return alert;
    alert = as_xcalloc(1, sizeof(*alert));
    memcpy(alert->digest, text, sizeof(text));
    HASH_ADD_STR(trace->alerts, digest, alert);
    return alert;
}

/* "4 -> 6  scaled by slow", "6  cooldown by slow, wants 9 at 1m", "40 (40Gi)  at_max" */
static void describe_decision(const struct test_trace *trace,
                              const struct as_decision_record *record, struct as_buf *line)
{
    const struct as_decision *decision = record->output;
    char size[AS_SIZE_TEXT_SIZE];
    as_buf_append_str(line, as_unit_print_size(record->unit, decision->replicas, size));
    if (decision->desired != decision->replicas)
        as_buf_printf(line, " -> %s", as_unit_print_size(record->unit, decision->desired, size));
    as_buf_printf(line, "  %s", as_reason_get_word(decision->reason));
    if (decision->rule)
        as_buf_printf(line, " by %s", decision->rule);
    if (decision->has_would)
        as_buf_printf(line, ", wants %s", as_unit_print_size(record->unit, decision->would, size));
    if (decision->next_evaluation.set) {
        char next[AS_DURATION_SIZE];
        as_duration_print(decision->next_evaluation.at.us - trace->start.us, next);
        as_buf_printf(line, ", again at %s", next);
    }
    for (size_t i = 0; i < record->input->proposal_count; i++) {
        const struct as_proposal *proposal = &record->input->proposals[i];
        if (proposal->error)
            as_buf_printf(line, "; %s: %s", proposal->rule ? proposal->rule : "rule",
                          proposal->error);
    }
}

void test_trace_on_decision(void *context, as_wall_time at, const struct as_decision_record *record)
{
    struct test_trace *trace = context;
    const struct as_decision *decision = record->output;
    struct test_target *target = get_target(trace, record->target, record->target_name);
    target->is_decided = true;
    target->reason = decision->reason;
    target->desired = decision->has_would ? decision->would : decision->desired;
    free(target->rule);
    target->rule = decision->rule ? as_xstrdup(decision->rule) : NULL;
    free(target->unit);
    target->unit = as_xstrdup(record->unit ? record->unit : "");
    struct as_buf line = start_line(trace, at);
    describe_decision(trace, record, &line);
    end_line(&target->lines, &line);
}

/* A success is already told by its decision. */
void test_trace_on_action(void *context, as_wall_time at, const struct as_action_record *record)
{
    struct test_trace *trace = context;
    if (record->outcome == AS_REASON_APPLIED)
        return;
    struct test_target *target = get_target(trace, record->target, record->target_name);
    target->is_decided = true;
    target->reason = record->outcome;
    target->desired = -1;
    free(target->rule);
    target->rule = record->rule ? as_xstrdup(record->rule) : NULL;
    struct as_buf line = start_line(trace, at);
    as_buf_printf(&line, "%s", as_reason_get_word(record->outcome));
    if (!as_str_is_empty(record->message))
        as_buf_printf(&line, ": %s", record->message);
    end_line(&target->lines, &line);
}

void test_trace_on_no_data(void *context, as_wall_time at, const struct as_query *query)
{
    const struct test_trace *trace = context;
    struct test_result *result = trace->result;
    for (size_t i = 0; i < result->unanswered_count; i++) {
        if (strcmp(result->unanswered[i], query->text) == 0)
            return;
    }
    if (result->unanswered_count < TEST_QUERIES)
        result->unanswered[result->unanswered_count++] = as_xstrdup(query->text);
}

/* {alertname="Slow", severity="page"} */
static void describe_labels(const struct as_labels *labels, struct as_buf *line)
{
    as_buf_append_char(line, '{');
    for (uint32_t i = 0; i < labels->count; i++)
        as_buf_printf(line, "%s%s=\"%s\"", i ? ", " : "", labels->items[i].name,
                      labels->items[i].value);
    as_buf_append_char(line, '}');
}

static void tell_alert(struct test_trace *trace, as_wall_time at, const struct as_alert *alert,
                       const struct as_alert_outcome *outcome)
{
    struct as_buf line = start_line(trace, at);
    as_buf_append_str(&line, alert->status == AS_ALERT_FIRING ? "fire " : "resolve ");
    describe_labels(alert->labels, &line);
    as_buf_printf(&line, "  %s",
                  as_rule_test_get_outcome_word(outcome->is_queued, outcome->reason));
    for (size_t i = 0; i < outcome->rule_count; i++)
        as_buf_printf(&line, "%s%s", i ? ", " : " for ", outcome->rules[i]);
    end_line(&trace->lines, &line);
}

void test_trace_on_notification(void *context, as_wall_time at,
                                const struct as_notification_record *record)
{
    struct test_trace *trace = context;
    const struct as_notification *notification = record->notification;
    for (size_t i = 0; i < notification->alert_count; i++) {
        const struct as_alert_outcome *outcome = &record->outcomes[i];
        struct test_alert *alert = test_trace_get_alert(trace, &notification->alerts[i].digest);
        alert->has_outcome = true;
        alert->is_queued = outcome->is_queued;
        alert->outcome = outcome->reason;
        tell_alert(trace, at, &notification->alerts[i], outcome);
    }
}
