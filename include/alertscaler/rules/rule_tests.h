/*
 * A file of rule tests (docs/testing.md), read and checked with the rules that it tests. A test is
 * a list of events in order of time. Order within one moment: changes of state, alerts in the order
 * of the file, answers of people, expectations.
 */
#ifndef ALERTSCALER_RULES_RULE_TESTS_H
#define ALERTSCALER_RULES_RULE_TESTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/arena.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/cluster/cluster.h>
#include <alertscaler/decide/observation.h>
#include <alertscaler/doc/diagnostics.h>
#include <alertscaler/model/labels.h>
#include <alertscaler/model/source.h>
#include <alertscaler/rules/config.h>

#define AS_RULE_TEST_TIME_MAX (366 * AS_US_PER_DAY) /* the longest test */

enum as_rule_test_event_kind {
    AS_RULE_TEST_SIZE,    /* a target's size, also set by someone else */
    AS_RULE_TEST_PODS,    /* a target's pods */
    AS_RULE_TEST_NODES,   /* the nodes behind a target */
    AS_RULE_TEST_ROLLOUT, /* whether a target's pods are being replaced */
    AS_RULE_TEST_CLUSTER, /* the pods of the cluster, for pools */
    AS_RULE_TEST_QUERY,   /* what a query returns */
    AS_RULE_TEST_FIRE,
    AS_RULE_TEST_RESOLVE,
    AS_RULE_TEST_APPROVE, /* what waits for an approval on a target */
    AS_RULE_TEST_DENY,
    AS_RULE_TEST_EXPECT_TARGET,
    AS_RULE_TEST_EXPECT_ALERT
};

/* The nodes of each group are as many as its size, and as its `nodes.template`. */
struct as_rule_test_pods { /* equal pods */
    struct as_pod_class pod_class;
    uint32_t count;
    const char *on; /* one after the other on the nodes of this group; NULL: where there is room */
};

struct as_rule_test_ready {
    const char *group;
    int32_t ready; /* of its nodes; the others are on their way */
};

struct as_rule_test_cluster {
    const struct as_rule_test_pods *pods;
    size_t pod_count;
    const struct as_rule_test_ready *ready;
    size_t ready_count;
};

struct as_rule_test_alert {
    struct as_labels *labels, *annotations;
    int64_t starts_us; /* after the test's start; -1: not given */
    const char *receiver;
};

/* A value that is not checked is -1, false or NULL. */
struct as_rule_test_expected {
    int32_t replicas, desired;
    bool has_reason;
    enum as_reason reason;
    const char *rule;
    bool has_asked;
    int32_t asked; /* the size that waits for an approval; -1: none waits */
};

struct as_rule_test_event {
    int64_t at_us; /* after the test's start */
    enum as_rule_test_event_kind kind;
    uint32_t order, line; /* in the file */
    const char *target;   /* name or id */
    int32_t replicas;     /* size */
    const struct as_pod_seen *pods;
    size_t pod_count;
    struct as_nodes_seen nodes;
    enum as_rollout_progress rollout;
    const struct as_rule_test_cluster *cluster;
    const char *query;
    struct as_query_result result;
    struct as_rule_test_alert alert;       /* fire, resolve; expect_alert: only its labels */
    struct as_rule_test_expected expected; /* expect_target */
    bool is_queued; /* expect_alert: the alert was queued; else see `outcome` */
    enum as_reason outcome;
};

struct as_rule_test {
    const char *name;
    uint32_t line;
    as_wall_time start;
    struct as_rule_test_event *events;
    size_t event_count;
};

struct as_rule_tests {
    char *path;
    struct as_config *config; /* with the rules; default settings if none are named */
    struct as_rule_test *tests;
    size_t test_count;
    struct as_arena arena;
};

/* Every error in the file, the rules and the configuration is added to `diagnostics` (at least one
 * if the result is not AS_CONFIG_OK), unsorted. */
int as_rule_tests_load(const char *path, struct as_rule_tests **tests_out,
                       struct as_diagnostics *diagnostics) AS_MUST_USE;
struct as_rule_tests *as_rule_tests_free(struct as_rule_tests *tests);

/* "queued", or the word of a reason. */
const char *as_rule_test_get_outcome_word(bool is_queued, enum as_reason outcome);

AS_DEFINE_CLEANUP(struct as_rule_tests *, as_rule_tests_free)

#endif
