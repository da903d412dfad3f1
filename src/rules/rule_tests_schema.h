/*
 * The tables of a file of rule tests, and what they share.
 */
#ifndef ALERTSCALER_SRC_RULES_RULE_TESTS_SCHEMA_H
#define ALERTSCALER_SRC_RULES_RULE_TESTS_SCHEMA_H

#include "rule_tests_private.h"

#define RULE_TEST_AT(of)                                                                           \
    {                                                                                              \
        .key = "at", .type = SCHEMA_DURATION, .is_required = true,                                 \
        .offset = offsetof(struct of, at_us), .max = AS_RULE_TEST_TIME_MAX                         \
    }

extern const struct schema schema_test_file, schema_test, schema_test_input, schema_test_query,
    schema_test_expect, schema_test_state, schema_test_pod, schema_test_nodes,
    schema_test_resources, schema_test_cluster, schema_test_cluster_pods, schema_test_cluster_nodes;

extern const struct schema_field rule_test_label_forms[];
void rule_test_parse_labels(struct loader *loader, const struct as_yaml_node *map,
                            struct raw_labels *labels);

/* Reports each of these keys (up to NULL) that is there although it is not allowed beside others.
 */
void rule_test_check_companions(struct loader *loader, const struct as_yaml_node *node,
                                const char *const *keys, bool is_allowed, const char *beside);

#endif
