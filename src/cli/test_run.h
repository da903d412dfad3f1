/*
 * One test of rules: runs it through the engine in virtual time, and returns the result.
 */
#ifndef ALERTSCALER_SRC_CLI_TEST_RUN_H
#define ALERTSCALER_SRC_CLI_TEST_RUN_H

#include <alertscaler/rules/rule_tests.h>

#define TEST_HISTORY 6 /* lines shown with a failure */
#define TEST_QUERIES 8 /* queries without an answer that are shown */

enum test_aspect {
    TEST_REPLICAS,
    TEST_REASON,
    TEST_RULE,
    TEST_DESIRED,
    TEST_ASKED,
    TEST_ANSWER,
    TEST_OUTCOME
};
/* The key of `expect`; of an answer that nobody waits for: "waiting". */
const char *test_aspect_get_word(enum test_aspect aspect);

struct test_difference {
    enum test_aspect aspect;
    char *expected, *got; /* got: "6", "cooldown", "no decision", ... */
};

struct test_failure {
    const struct as_rule_test_event *event; /* the expectation, or an answer that failed */
    struct test_difference differences[5];
    size_t difference_count;
    /* What happened until then, one line each, oldest first: the target's decisions; or alerts, if
     * there are none or an alert was expected. */
    char *history[TEST_HISTORY];
    size_t history_count;
    char *why; /* of the last decision: its reason as a sentence, or its arithmetic; NULL: none */
};

/* What the decisions and alerts of a test came to: for the coverage. */
struct test_reached {
    bool gates[AS_GATE_COUNT]; /* that changed or held a size */
    bool reasons[AS_REASON_COUNT];
    bool *rules; /* that took part in a decision, by their index in the rule set */
};

struct test_result {
    const struct as_rule_test *test;
    struct test_reached reached;
    struct test_failure *failures;
    size_t failure_count, failure_capacity;
    char *unanswered[TEST_QUERIES]; /* queries of rules that the test does not answer */
    size_t unanswered_count;
};

void test_run(const struct as_rule_tests *tests, const struct as_rule_test *test,
              struct test_result *result_out);
void test_result_deinit(struct test_result *result);

#endif
