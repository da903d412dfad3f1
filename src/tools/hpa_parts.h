/*
 * x
 */
#ifndef ALERTSCALER_SRC_TOOLS_HPA_PARTS_H
#define ALERTSCALER_SRC_TOOLS_HPA_PARTS_H

#include "convert_hpa.h"

struct raw_goal {
    unsigned type; /* index into goal_words */
    const struct as_yaml_node *node, *value, *average_value;
    int32_t average_utilization; /* 0: not given */
};

struct raw_identifier {
    const char *name;
    const struct as_yaml_node *selector; /* NULL: none */
};

struct raw_metric_source {
    const struct as_yaml_node *node;
    const char *resource, *container; /* of the types Resource, ContainerResource */
    struct raw_identifier metric;
    struct raw_reference described;
    struct raw_goal goal;
};

enum metric_type {
    METRIC_RESOURCE,
    METRIC_CONTAINER_RESOURCE,
    METRIC_PODS,
    METRIC_OBJECT,
    METRIC_EXTERNAL,
    METRIC_COUNT
};

struct raw_metric {
    unsigned type; /* a metric_type */
    const struct as_yaml_node *node;
    struct raw_metric_source sources[METRIC_COUNT];
};

extern const struct schema hpa_metric;

/* Adds the rule of a metric, or reports why not. */
void hpa_add_metric(struct convert *convert, struct plan_target *target,
                    const struct raw_metric *metric);

#endif
