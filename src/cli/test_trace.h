/*
 * The memory of a running test: for each target the last decision and the lines that led to it, for
 * each alert its outcome.
 */
#ifndef ALERTSCALER_SRC_CLI_TEST_TRACE_H
#define ALERTSCALER_SRC_CLI_TEST_TRACE_H

#define uthash_fatal(msg) abort() /* as for each small allocation of ours */
#include <uthash.h>

#include <alertscaler/decide/record.h>

#include "test_run.h"

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
    char *rule; /* NULL: none won */
    char *unit; /* of its sizes (decide/sized.h) */
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
    struct test_alert *alerts;   /* by digest */
    struct test_lines lines;     /* about alerts */
    struct test_result *result;  /* collects queries without an answer */
};

void test_trace_deinit(struct test_trace *trace);

/* For the callbacks of a rehearsal; `context` is the trace. */
void test_trace_on_decision(void *context, as_wall_time at,
                            const struct as_decision_record *record);
void test_trace_on_action(void *context, as_wall_time at, const struct as_action_record *record);
void test_trace_on_notification(void *context, as_wall_time at,
                                const struct as_notification_record *record);
void test_trace_on_no_data(void *context, as_wall_time at, const struct as_query *query);

/* By id or name; NULL: no decision on it. */
const struct test_target *test_trace_find_target(const struct test_trace *trace, const char *name);
struct test_alert *test_trace_get_alert(struct test_trace *trace,
                                        const struct as_digest *digest); /* created if new */

/* Copies the lines, oldest first. */
void test_lines_copy(const struct test_lines *lines, struct test_failure *failure);

#endif
