/*
 * A file of rule tests as written, before its events are sorted by time.
 */
#ifndef ALERTSCALER_SRC_RULES_RULE_TESTS_PRIVATE_H
#define ALERTSCALER_SRC_RULES_RULE_TESTS_PRIVATE_H

#include <alertscaler/rules/rule_tests.h>

#include <alertscaler/doc/schema.h>

#define REPEATS_MAX 10000 /* of one row of `input` */

struct raw_labels {
    const struct as_label *pairs; /* NULL: not given */
    size_t count;
};

struct raw_resources { /* NaN: not given */
    double of[AS_RESOURCE_COUNT];
};

struct raw_container {
    const char *name;
    struct raw_resources requests, limits;
};

struct raw_pod {
    const char *name;
    unsigned phase, ready, owner;
    bool deleting;
    int64_t age_us, ready_for_us; /* ready_for: -1 where not given */
    struct raw_resources requests, limits;
    struct raw_container *containers;
    size_t container_count;
};

struct raw_nodes_seen {
    int32_t open;
    struct raw_resources requests, allocatable;
    bool is_template;
    int32_t waiting, coming;
    const char *error;
};

struct raw_state { /* of a target; `key` is the place of its name */
    const struct as_yaml_node *key;
    int32_t replicas; /* -1: not given */
    bool has_pods, has_nodes, has_rollout;
    int rollout; /* enum as_rollout_progress */
    struct raw_nodes_seen nodes;
    struct raw_pod *pods;
    size_t pod_count;
};

struct raw_cluster_pods {
    const struct as_yaml_node *node;
    int32_t count;
    struct as_pod_class pod_class;
    const char *on; /* NULL: not given */
    bool keep;
};

struct raw_cluster_nodes { /* of one group */
    const struct as_yaml_node *group;
    int32_t ready;
};

struct raw_cluster {
    const struct as_yaml_node *node; /* NULL: not given */
    struct raw_cluster_pods *pods;
    size_t pod_count;
    struct raw_cluster_nodes *nodes;
    size_t node_count;
};

struct raw_input {
    const struct as_yaml_node *node;
    int64_t at_us;
    struct raw_labels fire, resolve, annotations;
    int64_t starts_us; /* -1: not given */
    int64_t every_us;  /* 0: it fires once */
    int64_t until_us;
    const char *receiver;
    const char *target, *approve, *deny;
    struct raw_state state;
    struct raw_cluster cluster;
};

struct raw_query {
    const struct as_yaml_node *node;
    int64_t at_us;
    const char *query;
    double value;
    const struct as_sample *samples;
    size_t sample_count;
    const char *error;
};

struct raw_expect {
    const struct as_yaml_node *node;
    int64_t at_us;
    const char *target;
    struct as_rule_test_expected expected;
    struct raw_labels alert;
    unsigned outcome; /* index into test_outcomes */
};

struct raw_test {
    const struct as_yaml_node *node;
    const char *name;
    as_wall_time start;
    struct raw_state *targets;
    size_t target_count;
    struct raw_cluster cluster;
    struct raw_input *input;
    size_t input_count;
    struct raw_query *queries;
    size_t query_count;
    struct raw_expect *expect;
    size_t expect_count;
};

struct raw_test_file {
    const char *config_file;
    const char **rule_files;
    size_t rule_file_count;
    struct raw_test *tests;
    size_t test_count;
};

/* The tables of a file of rule tests. */
extern const struct schema schema_test_file, schema_test, schema_test_input, schema_test_query,
    schema_test_expect, schema_test_state, schema_test_pod, schema_test_container,
    schema_test_nodes, schema_test_resources, schema_test_cluster, schema_test_cluster_pods,
    schema_test_cluster_nodes;

#endif
