/*
 * One test of rules: see the header.
 *
 * At each moment, first the new data are set. Then alerts are sent, grouped by receiver into
 * notifications, as by Alertmanager. Then people answer; then the rules' due deadlines run; then
 * expectations are checked.
 */
#include "test_run.h"

#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>
#include <alertscaler/base/unit.h>
#include <alertscaler/model/labels_digest.h>
#include <alertscaler/model/reason.h>
#include <alertscaler/tools/engine_config.h>
#include <alertscaler/tools/rehearsal.h>

#include "test_trace.h"

#define SEED        1
#define OPEN_END_US (INT64_C(-62135596800) * AS_US_PER_S) /* year 1: no end */

struct run {
    const struct as_rule_test *test;
    struct as_rehearsal *rehearsal;
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

static as_wall_time get_time(const struct run *run, int64_t at_us)
{
    return (as_wall_time){as_time_add(run->test->start.us, at_us)};
}

static void set(struct run *run, const struct as_rule_test_event *event)
{
    if (event->kind == AS_RULE_TEST_SIZE)
        as_rehearsal_set_size(run->rehearsal, event->target, event->replicas);
    else if (event->kind == AS_RULE_TEST_PODS)
        as_rehearsal_set_pods(run->rehearsal, event->target, event->pods, event->pod_count);
    else if (event->kind == AS_RULE_TEST_NODES)
        as_rehearsal_set_nodes(run->rehearsal, event->target, &event->nodes);
    else if (event->kind == AS_RULE_TEST_CLUSTER)
        as_rehearsal_set_cluster(run->rehearsal, event->cluster);
    else
        as_rehearsal_set_query(run->rehearsal, event->query, &event->result);
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
    const as_wall_time now = get_time(run, event->at_us);
    if (event->alert.starts_us >= 0)
        known->starts_at = get_time(run, event->alert.starts_us);
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

static void notify(struct run *run, const char *receiver, struct as_alert *alerts, size_t count)
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
    as_ulid_print(as_rehearsal_get_now(run->rehearsal), &run->random, notification.id);
    as_rehearsal_notify(run->rehearsal, &notification);
}

/* Sends one notification with events from `from` on; returns how many it used. */
static size_t send(struct run *run, size_t from, size_t end)
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
    notify(run, receiver, alerts, count);
    free(alerts);
    return count;
}

/* --- what is expected --- */

static char *print_number(int32_t number)
{
    return number < 0 ? as_xstrdup("none") : as_xasprintf("%d", number);
}

/* "40 (40Gi)" of a target with a unit. */
static char *print_size(const struct test_target *seen, int32_t size)
{
    char text[AS_SIZE_TEXT_SIZE];
    return size < 0 || !seen || !seen->unit
               ? print_number(size)
               : as_xstrdup(as_unit_print_size(seen->unit, size, text));
}

/* Takes over `got`. */
static void compare(struct test_failure *failure, enum test_aspect aspect, const char *expected,
                    char *got)
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
    AS_CLEANUP(as_free_p) char *text = print_size(seen, expected);
    compare(failure, aspect, text, got);
}

/* What was decided on the target up to then, for a failure. */
static void tell_target(struct run *run, struct test_failure *failure)
{
    const struct test_target *seen = test_trace_find_target(&run->trace, failure->event->target);
    const bool is_decided = seen && seen->is_decided;
    test_lines_copy(is_decided ? &seen->lines : &run->trace.lines, failure);
    failure->why = is_decided ? as_reason_get_meaning(seen->reason) : NULL;
}

static void check_target(struct run *run, struct test_failure *failure)
{
    const struct as_rule_test_event *event = failure->event;
    const struct as_rule_test_expected *expected = &event->expected;
    const struct test_target *seen = test_trace_find_target(&run->trace, event->target);
    const bool is_decided = seen && seen->is_decided;
    const char *nothing = "no decision";
    if (expected->replicas >= 0)
        compare_size(failure, TEST_REPLICAS, seen, expected->replicas,
                     print_size(seen, as_rehearsal_get_size(run->rehearsal, event->target)));
    if (expected->has_reason)
        compare(failure, TEST_REASON, as_reason_get_word(expected->reason),
                as_xstrdup(is_decided ? as_reason_get_word(seen->reason) : nothing));
    if (expected->rule)
        compare(failure, TEST_RULE, expected->rule,
                as_xstrdup(!is_decided  ? nothing
                           : seen->rule ? seen->rule
                                        : "none"));
    if (expected->desired >= 0)
        compare_size(failure, TEST_DESIRED, seen, expected->desired,
                     is_decided ? print_size(seen, seen->desired) : as_xstrdup(nothing));
    if (expected->has_asked)
        compare_size(failure, TEST_ASKED, seen, expected->asked,
                     print_size(seen, as_rehearsal_get_asked(run->rehearsal, event->target)));
    if (failure->difference_count > 0)
        tell_target(run, failure);
}

/* A person cannot answer what nobody asks: the test is not about what it seems to be about. */
static void answer(struct run *run, struct test_failure *failure)
{
    const struct as_rule_test_event *event = failure->event;
    if (as_rehearsal_answer(run->rehearsal, event->target, NULL,
                            event->kind == AS_RULE_TEST_APPROVE))
        return;
    compare(failure, TEST_ANSWER, "a request for an approval", as_xstrdup("none"));
    tell_target(run, failure);
}

static void check_alert(struct run *run, struct test_failure *failure)
{
    const struct as_rule_test_event *event = failure->event;
    const struct as_digest digest = as_labels_get_digest(event->alert.labels);
    const struct test_alert *seen = test_trace_get_alert(&run->trace, &digest);
    compare(failure, TEST_OUTCOME, as_rule_test_get_outcome_word(event->is_queued, event->outcome),
            as_xstrdup(seen->has_outcome
                           ? as_rule_test_get_outcome_word(seen->is_queued, seen->outcome)
                           : "no such alert"));
    if (failure->difference_count == 0)
        return;
    test_lines_copy(&run->trace.lines, failure);
    if (seen->has_outcome && !seen->is_queued)
        failure->why = as_reason_get_meaning(seen->outcome);
}

static void check(struct run *run, const struct as_rule_test_event *event)
{
    struct test_failure failure = {.event = event};
    struct test_result *result = run->result;
    if (event->kind == AS_RULE_TEST_EXPECT_TARGET)
        check_target(run, &failure);
    else if (is_answer(event))
        answer(run, &failure);
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
        as_rehearsal_approach(run->rehearsal, get_time(run, at_us));
    while (at < end && events[at].kind < AS_RULE_TEST_FIRE)
        set(run, &events[at++]);
    size_t alerts_end = at;
    while (alerts_end < end && is_alert(&events[alerts_end]))
        alerts_end++;
    while (at < alerts_end)
        at += send(run, at, alerts_end);
    while (at < end && is_answer(&events[at]))
        check(run, &events[at++]);
    as_rehearsal_advance(run->rehearsal, get_time(run, at_us));
    while (at < end)
        check(run, &events[at++]);
    return end;
}

void test_run(const struct as_rule_tests *tests, const struct as_rule_test *test,
              struct test_result *result_out)
{
    *result_out = (struct test_result){.test = test};
    struct run run = {
        .test = test, .trace = {.start = test->start, .result = result_out}, .result = result_out};
    const struct as_rehearsal_config config = {
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
    run.rehearsal = as_rehearsal_new(&config);
    for (size_t at = 0; at < test->event_count;)
        at = run_moment(&run, at);
    as_rehearsal_free(run.rehearsal);
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
    }
    free(result->failures);
    for (size_t i = 0; i < result->unanswered_count; i++)
        free(result->unanswered[i]);
    *result = (struct test_result){0};
}
