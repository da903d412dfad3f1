/*
 * One test of rules, run through the engine in virtual time.
 *
 * At each moment, first the new data are set. Then alerts are sent, grouped by receiver into
 * notifications, as by Alertmanager. Then people answer; then the rules' due deadlines run; then
 * expectations are checked.
 */
#include "test_run.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define uthash_fatal(msg) abort() /* as for each small allocation of ours */
#include <uthash.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/quantity.h>
#include <alertscaler/base/str.h>
#include <alertscaler/decide/record.h>
#include <alertscaler/model/labels.h>
#include <alertscaler/model/reason.h>
#include <alertscaler/tools/engine_config.h>
#include <alertscaler/tools/explain.h>
#include <alertscaler/tools/simulation.h>

struct test_lines { /* the last ones */
    char *items[TEST_HISTORY];
    size_t total;
};

struct test_target {
    UT_hash_handle hh;
    char *id, *name;
    bool is_decided; /* the other members are set */
    enum as_reason reason;
    int32_t desired;
    char *rule;        /* NULL: none won */
    char *unit;        /* of its sizes (decide/sized.h) */
    char *why;         /* the last decision */
    char *last_change; /* how the last size that was set came about; NULL: unknown */
    /* The rule that has increased it, and the sizes that its give_back counts from. */
    char *grown_by;
    int32_t origin, peak;
    bool is_given_back;
    struct test_lines lines;
};

struct test_alert {
    UT_hash_handle hh;
    char digest[AS_DIGEST_TEXT_SIZE];
    as_wall_time starts_at; /* start of the firing that is open, or of the last one */
    bool is_firing, has_outcome, is_queued;
    enum as_reason outcome;
};

struct test_trace {
    as_wall_time start;
    struct test_target *targets; /* by id */
    const struct as_ruleset *ruleset;
    struct test_alert *alerts;  /* by digest */
    struct test_lines lines;    /* about alerts */
    struct test_result *result; /* collects queries without an answer */
};

/* --- the memory of a running test --- */

/* For each target the last decision and the lines that led to it, for each alert its outcome. */

#define LINE_MAX_SIZE 4096

static struct as_buf start_line(const struct test_trace *trace, as_wall_time at)
{
    struct as_buf line = AS_BUF_INIT(LINE_MAX_SIZE);
    char since[AS_DURATION_SIZE];
    as_duration_print(at.us - trace->start.us, since);
    as_buf_printf(&line, "%-8s ", since);
    return line;
}

static void test_run_end_line(struct test_lines *lines, struct as_buf *line)
{
    char **place = &lines->items[lines->total++ % TEST_HISTORY];
    size_t size;
    free(*place);
    *place = as_buf_take(line, &size);
}

/* Copies the lines, oldest first. */
static void test_lines_copy(const struct test_lines *lines, struct test_failure *failure)
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

static void test_trace_deinit(struct test_trace *trace)
{
    struct test_target *target, *next_target;
    HASH_ITER (hh, trace->targets, target, next_target) {
        HASH_DEL(trace->targets, target);
        free_lines(&target->lines);
        free(target->id);
        free(target->name);
        free(target->rule);
        free(target->unit);
        free(target->why);
        free(target->last_change);
        free(target->grown_by);
        free(target);
    }
    struct test_alert *alert, *next_alert;
    HASH_ITER (hh, trace->alerts, alert, next_alert) {
        HASH_DEL(trace->alerts, alert);
        free(alert);
    }
    free_lines(&trace->lines);
}

/* By id or name; NULL: no decision on it. */
static const struct test_target *test_trace_find_target(const struct test_trace *trace,
                                                        const char *name)
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

/* created if new */
static struct test_alert *test_trace_get_alert(struct test_trace *trace,
                                               const struct as_digest *digest)
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

/* A step of give_back: the decision has only its result. False: the rule gives nothing back, or the
 * begin of the step is not known. */
static bool put_give_back(const struct test_trace *trace, struct test_target *target,
                          const struct as_decide_input *input, const struct as_proposal *proposal,
                          FILE *out)
{
    const struct as_rule *rule =
        proposal->rule ? as_ruleset_find_rule(trace->ruleset, proposal->rule) : NULL;
    const int32_t size = input->replicas;
    if (!rule || rule->on_resolved.kind != AS_ENDING_GIVE_BACK || !target->grown_by ||
        strcmp(target->grown_by, rule->name) != 0 || proposal->action.kind != AS_ACTION_SCALE_TO ||
        proposal->action.steps || proposal->action.size >= size)
        return false;
    if (!target->is_given_back)
        target->peak = size;
    target->is_given_back = true;
    const struct as_amount step = {.is_percent = true,
                                   .milli_percent = rule->on_resolved.step_milli_percent};
    const int64_t all = (int64_t)target->peak - target->origin;
    const int64_t count = (all * step.milli_percent + 99999) / 100000;
    if (proposal->action.size == size - count)
        as_explain_put_change(out, size, false, &step, all, true);
    else if (proposal->action.size == target->origin)
        fputs("give_back: the size before the incident", out);
    else
        return false;
    fprintf(out, " is %" PRId64, proposal->action.size);
    return true;
}

/* What the bounds, windows and policies made of the size that the rule wants. */
static void put_limits(const struct as_decision *decision, int32_t wanted, FILE *out)
{
    static const struct {
        unsigned limit;
        const char *word;
    } limits[] = {{AS_LIMIT_MIN, "min"},
                  {AS_LIMIT_MAX, "max"},
                  {AS_LIMIT_STABILIZATION, "stabilization"},
                  {AS_LIMIT_POLICY, "a policy"}};
    const int32_t size = decision->has_would ? decision->would : decision->desired;
    const char *separator = "; limited by ";
    if (size == wanted)
        return;
    for (size_t i = 0; i < AS_ARRAY_SIZE(limits); i++) {
        if (!(decision->limited_by & limits[i].limit))
            continue;
        fprintf(out, "%s%s", separator, limits[i].word);
        separator = ", ";
    }
    if (decision->limited_by)
        fprintf(out, " to %" PRId32, size);
}

/* The highest proposal of the rule that counts; the count of proposals if it has none. */
static size_t find_winner(const struct as_decision_record *record)
{
    const size_t count = record->input->proposal_count;
    size_t best = count;
    for (size_t i = 0; record->output->rule && i < count; i++) {
        const char *rule = record->input->proposals[i].rule;
        if (rule && strcmp(rule, record->output->rule) == 0 && record->results[i].has_size &&
            (best == count || record->results[i].desired > record->results[best].desired))
            best = i;
    }
    return best;
}

/* How the rule that counts came to its size; NULL: unknown. For free(). */
static char *make_arithmetic(const struct test_trace *trace, struct test_target *target,
                             const struct as_decision_record *record)
{
    const struct as_decide_input *input = record->input;
    const struct as_decision *decision = record->output;
    const size_t i = find_winner(record);
    char *text = NULL;
    size_t size;
    if (i == input->proposal_count)
        return NULL;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        abort(); /* only without memory */
    const bool is_put = put_give_back(trace, target, input, &input->proposals[i], out) ||
                        as_explain_put_arithmetic(out, input, i, &record->results[i]);
    if (is_put)
        put_limits(decision, record->results[i].desired, out);
    if (fclose(out) != 0)
        abort();
    if (!is_put)
        as_free_p(&text);
    return text;
}

/* Where the change of a rule began, for its give_back. */
static void note_growth(struct test_target *target, const struct as_decision *decision)
{
    if (decision->reason != AS_REASON_SCALED || decision->desired <= decision->replicas ||
        !decision->rule)
        return;
    if (target->grown_by && strcmp(target->grown_by, decision->rule) == 0 && !target->is_given_back)
        return;
    free(target->grown_by);
    target->grown_by = as_xstrdup(decision->rule);
    target->origin = decision->replicas;
    target->is_given_back = false;
}

static void note_why(const struct test_trace *trace, struct test_target *target,
                     const struct as_decision_record *record)
{
    const enum as_reason reason = record->output->reason;
    const char *meaning = as_reason_get_meaning(reason);
    AS_CLEANUP(as_free_p) char *arithmetic = make_arithmetic(trace, target, record);
    free(target->why);
    if (!arithmetic)
        target->why = as_xstrdup(meaning);
    else if (reason == AS_REASON_SCALED) /* nothing else is to be said of it */
        target->why = as_xasprintf("%s.", arithmetic);
    else
        target->why = as_xasprintf("%s %s.", meaning, arithmetic);
    if (record->output->desired != record->output->replicas) {
        free(target->last_change);
        target->last_change = as_xstrdup(target->why);
    }
    note_growth(target, record->output);
}

/* `combine` and `bounds` are in each trail. */
static void note_reached(const struct test_trace *trace, const struct as_decision_record *record)
{
    struct test_reached *reached = &trace->result->reached;
    const struct as_decision *decision = record->output;
    reached->reasons[decision->reason] = true;
    for (size_t i = 0; i < decision->trail_count; i++) {
        const enum as_gate gate = decision->trail[i].gate;
        const bool is_idle =
            (gate == AS_GATE_COMBINE && !decision->rule) ||
            (gate == AS_GATE_BOUNDS && !(decision->limited_by & (AS_LIMIT_MIN | AS_LIMIT_MAX)));
        reached->gates[gate] = reached->gates[gate] || !is_idle;
    }
    for (size_t i = 0; i < record->input->proposal_count; i++) {
        const char *name = record->input->proposals[i].rule;
        const struct as_rule *rule = name ? as_ruleset_find_rule(trace->ruleset, name) : NULL;
        if (rule)
            reached->rules[rule->number] = true;
    }
}

/* For the callbacks of a simulation; `context` is the trace. */
static void test_trace_on_decision(void *context, as_wall_time at,
                                   const struct as_decision_record *record)
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
    note_why(trace, target, record);
    note_reached(trace, record);
    struct as_buf line = start_line(trace, at);
    describe_decision(trace, record, &line);
    test_run_end_line(&target->lines, &line);
}

/* The decision already shows a success. */
static void test_trace_on_action(void *context, as_wall_time at,
                                 const struct as_action_record *record)
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
    free(target->why);
    target->why = as_xstrdup(as_reason_get_meaning(record->outcome));
    struct as_buf line = start_line(trace, at);
    as_buf_printf(&line, "%s", as_reason_get_word(record->outcome));
    if (!as_str_is_empty(record->message))
        as_buf_printf(&line, ": %s", record->message);
    test_run_end_line(&target->lines, &line);
}

static void test_trace_on_no_data(void *context, as_wall_time at, const struct as_query *query)
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

static void report_alert(struct test_trace *trace, as_wall_time at, const struct as_alert *alert,
                         const struct as_alert_outcome *outcome)
{
    struct as_buf line = start_line(trace, at);
    as_buf_append_str(&line, alert->status == AS_ALERT_FIRING ? "fire " : "resolve ");
    describe_labels(alert->labels, &line);
    as_buf_printf(&line, "  %s",
                  as_rule_test_get_outcome_word(outcome->is_queued, outcome->reason));
    for (size_t i = 0; i < outcome->rule_count; i++)
        as_buf_printf(&line, "%s%s", i ? ", " : " for ", outcome->rules[i]);
    test_run_end_line(&trace->lines, &line);
}

static void test_trace_on_notification(void *context, as_wall_time at,
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
        if (!outcome->is_queued)
            trace->result->reached.reasons[outcome->reason] = true;
        report_alert(trace, at, &notification->alerts[i], outcome);
    }
}

/* --- the test --- */

#define SEED        1
#define OPEN_END_US (INT64_C(-62135596800) * AS_US_PER_S) /* year 1: no end */

struct run {
    const struct as_rule_test *test;
    struct as_simulation *simulation;
    struct test_trace trace;
    struct as_random random; /* for the ids of notifications */
    struct test_result *result;
};

const char *test_aspect_get_word(enum test_aspect aspect)
{
    static const char *const words[] = {
        [TEST_REPLICAS] = "replicas", [TEST_REASON] = "reason", [TEST_RULE] = "rule",
        [TEST_DESIRED] = "desired",   [TEST_ASKED] = "asked",   [TEST_ANSWER] = "waiting",
        [TEST_OUTCOME] = "outcome",
    };
    return words[aspect];
}

static as_wall_time test_run_get_time(const struct run *run, int64_t at_us)
{
    return (as_wall_time){as_time_add(run->test->start.us, at_us)};
}

static void test_run_set(struct run *run, const struct as_rule_test_event *event)
{
    if (event->kind == AS_RULE_TEST_SIZE)
        as_simulation_set_size(run->simulation, event->target, event->replicas);
    else if (event->kind == AS_RULE_TEST_PODS)
        as_simulation_set_pods(run->simulation, event->target, event->pods, event->pod_count);
    else if (event->kind == AS_RULE_TEST_NODES)
        as_simulation_set_nodes(run->simulation, event->target, &event->nodes);
    else if (event->kind == AS_RULE_TEST_ROLLOUT)
        as_simulation_set_rollout(run->simulation, event->target, event->rollout);
    else if (event->kind == AS_RULE_TEST_CLUSTER)
        as_simulation_set_cluster(run->simulation, event->cluster);
    else
        as_simulation_set_query(run->simulation, event->query, &event->result);
}

/* --- alerts --- */

static bool is_alert(const struct as_rule_test_event *event)
{
    return event->kind == AS_RULE_TEST_FIRE || event->kind == AS_RULE_TEST_RESOLVE;
}

static bool is_answer(const struct as_rule_test_event *event)
{
    return event->kind == AS_RULE_TEST_APPROVE || event->kind == AS_RULE_TEST_DENY;
}

/* A firing alert keeps its start; after it was resolved it gets a new one. */
static struct as_alert make_alert(struct run *run, const struct as_rule_test_event *event)
{
    const struct as_digest digest = as_labels_get_digest(event->alert.labels);
    struct test_alert *known = test_trace_get_alert(&run->trace, &digest);
    const bool fires = event->kind == AS_RULE_TEST_FIRE;
    const as_wall_time now = test_run_get_time(run, event->at_us);
    if (event->alert.starts_us >= 0)
        known->starts_at = test_run_get_time(run, event->alert.starts_us);
    else if (!known->is_firing)
        known->starts_at = now;
    known->is_firing = fires;
    struct as_alert alert = {
        .status = fires ? AS_ALERT_FIRING : AS_ALERT_RESOLVED,
        .digest = digest,
        .fingerprint = as_labels_get_fingerprint(event->alert.labels),
        .starts_at = known->starts_at,
        .ends_at = fires ? (as_wall_time){OPEN_END_US} : now,
        .labels = event->alert.labels,
        .annotations = event->alert.annotations,
    };
    return alert;
}

static bool has_alert(const struct as_alert *alerts, size_t count, const struct as_labels *labels)
{
    for (size_t i = 0; i < count; i++) {
        if (as_labels_equal(alerts[i].labels, labels))
            return true;
    }
    return false;
}

static void test_run_notify(struct run *run, const char *receiver, struct as_alert *alerts,
                            size_t count)
{
    char none[] = "";
    AS_CLEANUP(as_free_p) char *name = as_xstrdup(receiver);
    struct as_notification notification = {
        .receiver = name,
        .group_key = none,
        .reason = none,
        .alerts = alerts,
        .alert_count = count,
        .remote = none,
        .credential = none,
        .traceparent = none,
    };
    as_ulid_print(as_simulation_get_now(run->simulation), &run->random, notification.id);
    as_simulation_notify(run->simulation, &notification);
}

/* Sends one notification with events from `from` on; returns how many it used. */
static size_t test_run_send(struct run *run, size_t from, size_t end)
{
    const struct as_rule_test_event *events = run->test->events;
    const char *receiver = events[from].alert.receiver;
    struct as_alert *alerts = as_xcalloc(end - from, sizeof(*alerts));
    size_t count = 0;
    while (from + count < end && strcmp(events[from + count].alert.receiver, receiver) == 0 &&
           !has_alert(alerts, count, events[from + count].alert.labels)) {
        alerts[count] = make_alert(run, &events[from + count]);
        count++;
    }
    test_run_notify(run, receiver, alerts, count);
    free(alerts);
    return count;
}

/* --- what is expected --- */

static char *test_run_print_number(int32_t number)
{
    return number < 0 ? as_xstrdup("none") : as_xasprintf("%d", number);
}

/* "40 (40Gi)" of a target with a unit. */
static char *test_run_print_size(const struct test_target *seen, int32_t size)
{
    char text[AS_SIZE_TEXT_SIZE];
    return size < 0 || !seen || !seen->unit
               ? test_run_print_number(size)
               : as_xstrdup(as_unit_print_size(seen->unit, size, text));
}

/* Takes over `got`. */
static void test_run_compare(struct test_failure *failure, enum test_aspect aspect,
                             const char *expected, char *got)
{
    if (strcmp(expected, got) == 0) {
        free(got);
        return;
    }
    failure->differences[failure->difference_count++] =
        (struct test_difference){aspect, as_xstrdup(expected), got};
}

static void compare_size(struct test_failure *failure, enum test_aspect aspect,
                         const struct test_target *seen, int32_t expected, char *got)
{
    AS_CLEANUP(as_free_p) char *text = test_run_print_size(seen, expected);
    test_run_compare(failure, aspect, text, got);
}

/* What was decided on the target up to then, for a failure. */
static void report_target(struct run *run, struct test_failure *failure)
{
    const struct test_target *seen = test_trace_find_target(&run->trace, failure->event->target);
    const bool is_decided = seen && seen->is_decided;
    test_lines_copy(is_decided ? &seen->lines : &run->trace.lines, failure);
    const bool has_changed =
        is_decided && seen->last_change && !strstr(seen->why, seen->last_change);
    if (has_changed && failure->differences[0].aspect == TEST_REPLICAS)
        failure->why = as_xasprintf("%s The last change: %s", seen->why, seen->last_change);
    else
        failure->why = is_decided ? as_xstrdup(seen->why) : NULL;
}

static void test_run_check_target(struct run *run, struct test_failure *failure)
{
    const struct as_rule_test_event *event = failure->event;
    const struct as_rule_test_expected *expected = &event->expected;
    const struct test_target *seen = test_trace_find_target(&run->trace, event->target);
    const bool is_decided = seen && seen->is_decided;
    const char *nothing = "no decision";
    if (expected->replicas >= 0)
        compare_size(
            failure, TEST_REPLICAS, seen, expected->replicas,
            test_run_print_size(seen, as_simulation_get_size(run->simulation, event->target)));
    if (expected->has_reason)
        test_run_compare(failure, TEST_REASON, as_reason_get_word(expected->reason),
                         as_xstrdup(is_decided ? as_reason_get_word(seen->reason) : nothing));
    if (expected->rule)
        test_run_compare(failure, TEST_RULE, expected->rule,
                         as_xstrdup(!is_decided  ? nothing
                                    : seen->rule ? seen->rule
                                                 : "none"));
    if (expected->desired >= 0)
        compare_size(failure, TEST_DESIRED, seen, expected->desired,
                     is_decided ? test_run_print_size(seen, seen->desired) : as_xstrdup(nothing));
    if (expected->has_asked)
        compare_size(
            failure, TEST_ASKED, seen, expected->asked,
            test_run_print_size(seen, as_simulation_get_asked(run->simulation, event->target)));
    if (failure->difference_count > 0)
        report_target(run, failure);
}

/* A person cannot answer what nobody asks: the test is not about what it seems to be about. */
static void test_run_answer(struct run *run, struct test_failure *failure)
{
    const struct as_rule_test_event *event = failure->event;
    if (as_simulation_answer(run->simulation, event->target, NULL,
                             event->kind == AS_RULE_TEST_APPROVE))
        return;
    test_run_compare(failure, TEST_ANSWER, "a request for an approval", as_xstrdup("none"));
    report_target(run, failure);
}

static void check_alert(struct run *run, struct test_failure *failure)
{
    const struct as_rule_test_event *event = failure->event;
    const struct as_digest digest = as_labels_get_digest(event->alert.labels);
    const struct test_alert *seen = test_trace_get_alert(&run->trace, &digest);
    test_run_compare(
        failure, TEST_OUTCOME, as_rule_test_get_outcome_word(event->is_queued, event->outcome),
        as_xstrdup(seen->has_outcome ? as_rule_test_get_outcome_word(seen->is_queued, seen->outcome)
                                     : "no such alert"));
    if (failure->difference_count == 0)
        return;
    test_lines_copy(&run->trace.lines, failure);
    if (seen->has_outcome && !seen->is_queued)
        failure->why = as_xstrdup(as_reason_get_meaning(seen->outcome));
}

static void test_run_check(struct run *run, const struct as_rule_test_event *event)
{
    struct test_failure failure = {.event = event};
    struct test_result *result = run->result;
    if (event->kind == AS_RULE_TEST_EXPECT_TARGET)
        test_run_check_target(run, &failure);
    else if (is_answer(event))
        test_run_answer(run, &failure);
    else
        check_alert(run, &failure);
    if (failure.difference_count == 0)
        return;
    result->failures = as_xgrow(result->failures, result->failure_count, &result->failure_capacity,
                                sizeof(*result->failures));
    result->failures[result->failure_count++] = failure;
}

/* --- all of it --- */

/* Runs all events of one moment; returns the index of the next one. */
static size_t run_moment(struct run *run, size_t at)
{
    const struct as_rule_test *test = run->test;
    const struct as_rule_test_event *events = test->events;
    const int64_t at_us = events[at].at_us;
    size_t end = at;
    while (end < test->event_count && events[end].at_us == at_us)
        end++;
    if (at_us > 0)
        as_simulation_approach(run->simulation, test_run_get_time(run, at_us));
    while (at < end && events[at].kind < AS_RULE_TEST_FIRE)
        test_run_set(run, &events[at++]);
    size_t alerts_end = at;
    while (alerts_end < end && is_alert(&events[alerts_end]))
        alerts_end++;
    while (at < alerts_end)
        at += test_run_send(run, at, alerts_end);
    while (at < end && is_answer(&events[at]))
        test_run_check(run, &events[at++]);
    as_simulation_advance(run->simulation, test_run_get_time(run, at_us));
    while (at < end)
        test_run_check(run, &events[at++]);
    return end;
}

void test_run(const struct as_rule_tests *tests, const struct as_rule_test *test,
              struct test_result *result_out)
{
    *result_out = (struct test_result){.test = test};
    result_out->reached.rules =
        as_xcalloc(tests->config->ruleset->rule_count + 1, sizeof(*result_out->reached.rules));
    struct run run = {
        .test = test,
        .trace = {.start = test->start, .ruleset = tests->config->ruleset, .result = result_out},
        .result = result_out};
    const struct as_simulation_config config = {
        .ruleset = tests->config->ruleset,
        .engine = as_engine_config_make(&tests->config->settings, SEED),
        .start = test->start,
        .callbacks = {.decision = test_trace_on_decision,
                      .action = test_trace_on_action,
                      .notification = test_trace_on_notification,
                      .no_data = test_trace_on_no_data,
                      .context = &run.trace},
    };
    as_random_init(&run.random, SEED);
    run.simulation = as_simulation_new(&config);
    for (size_t at = 0; at < test->event_count;)
        at = run_moment(&run, at);
    as_simulation_free(run.simulation);
    test_trace_deinit(&run.trace);
}

void test_result_deinit(struct test_result *result)
{
    for (size_t i = 0; i < result->failure_count; i++) {
        struct test_failure *failure = &result->failures[i];
        for (size_t j = 0; j < failure->difference_count; j++) {
            free(failure->differences[j].expected);
            free(failure->differences[j].got);
        }
        for (size_t j = 0; j < failure->history_count; j++)
            free(failure->history[j]);
        free(failure->why);
    }
    free(result->failures);
    free(result->reached.rules);
    for (size_t i = 0; i < result->unanswered_count; i++)
        free(result->unanswered[i]);
    *result = (struct test_result){0};
}
