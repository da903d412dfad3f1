/*
 * Tables that targets and actions of rules are made of.
 */
#ifndef ALERTSCALER_SRC_RULES_RULE_PARTS_H
#define ALERTSCALER_SRC_RULES_RULE_PARTS_H

#include <alertscaler/rules/tables.h>

/* `nodes` of a target (target_nodes.c) */
extern const struct schema target_nodes, nodes_template, nodes_taints, nodes_unneeded, nodes_health;
void parse_nodes_keep(struct loader *loader, const struct as_yaml_node *value, void *object);
extern const struct schema_field schema_price_forms[], schema_keep_forms[];
void parse_nodes_price(struct loader *loader, const struct as_yaml_node *value, void *object);
#define NODES_SELECT_MAX 16
void parse_nodes_select(struct loader *loader, const struct as_yaml_node *value, void *object);

/* Kubernetes' keys and values of labels; false after a report. The value is memory of the loader's
 * arena. */
bool rule_check_label_key(struct loader *loader, const struct as_yaml_node *node);
bool rule_parse_label_value(struct loader *loader, const struct as_yaml_node *node,
                            const char **value_out);

/* `pool` of a target (target_pool.c) */
extern const struct schema target_pool, pool_cpu, pool_memory, pool_pod_price, pool_at_once;

/* `schedules` of a target (target_schedules.c) */
extern const struct schema target_schedules;

struct rule_amount_range {
    const char *expected;
    int scale; /* 3: counted in thousandths */
    int64_t min, max;
    bool is_whole; /* not to be had in parts; else rounded down */
};
void rule_parse_amount(struct loader *loader, const struct as_yaml_node *value,
                       const struct rule_amount_range *range, int64_t *amount_out);

extern const struct schema rule_source, rule_track, rule_fallback, rule_approval;
extern const char *const rule_source_keys[]; /* one is required; ends with NULL */

/* A goal: a number to divide by. */
#define RULE_GOAL_FORMS SCHEMA_FORMS(SCHEMA_FORM(NUMBER, .min = 1))
void rule_parse_goal(struct loader *loader, const struct as_yaml_node *value, double *out);

#endif
