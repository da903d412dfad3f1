/*
 * prometheus-adapter: which series a metric of the metrics APIs is made of, and by which query.
 * Sources of the rules: its reference of the configuration, and pkg/naming of its code.
 *
 * The adapter asks Prometheus which series there are. Nothing is asked here, so a metric is traced
 * back: from its name through `name.as` and `name.matches` to the one series that it can come from.
 */
#ifndef ALERTSCALER_SRC_TOOLS_CONVERT_ADAPTER_H
#define ALERTSCALER_SRC_TOOLS_CONVERT_ADAPTER_H

#include "convert_plan.h"

struct raw_filter {
    const char *is, *is_not;
};

struct raw_resources {
    const char *template_;
    const struct as_yaml_node *overrides; /* a map; NULL: none */
    bool is_namespaced;
};

struct raw_naming {
    const char *matches, *as; /* NULL: none */
};

struct adapter_rule {
    const struct as_yaml_tree *tree;
    const struct as_yaml_node *node;
    const char *series_query;
    struct raw_filter *filters;
    size_t filter_count;
    struct raw_resources resources;
    struct raw_naming naming;
    const struct as_yaml_node *query; /* a template; NULL: none */
    bool has_replacements;            /* of label values */
};

struct adapter_resource {
    const struct as_yaml_tree *tree;
    const struct as_yaml_node *query; /* NULL: not given */
    struct raw_resources resources;
    const char *container_label;
};

struct adapter {
    const struct as_yaml_tree *tree;
    const struct as_yaml_node *node; /* the first configuration */
    struct adapter_rule *custom, *external;
    size_t custom_count, external_count;
    struct adapter_resource of[AS_RESOURCE_COUNT];
};

/* What a query is asked for. */
struct adapter_request {
    const char *metric;                  /* of the metrics API */
    const struct as_yaml_node *selector; /* a label selector; NULL: none */
    const char *space;
    const char *group, *resource; /* whose value it is, in the singular; NULL: external */
    const char *object;           /* its name, or with `is_pods` a regular expression of names */
    bool is_pods;
};

struct adapter_answer {
    const char *query; /* protected */
    const char *label; /* of the resource */
    const struct adapter_rule *rule;
    const struct adapter_rule *other; /* that may make the metric too; NULL: none */
};

/* False: *why_out says why there is no query, and what to do. */
bool adapter_find(struct convert *convert, const struct adapter_request *request,
                  struct adapter_answer *answer_out, const char **why_out);

/* The usage of pods, in samples of single pods; `container` NULL: of whole pods. By the adapter's
 * own query if there is one, else by cAdvisor's usual series. */
bool adapter_find_usage(struct convert *convert, const struct plan_target *target,
                        enum as_resource resource, const char *container,
                        struct adapter_answer *answer_out, const char **why_out);

#endif
