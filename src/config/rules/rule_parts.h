/*
 * Tables that targets and actions of rules are made of.
 */
#ifndef ALERTSCALER_SRC_CONFIG_RULES_RULE_PARTS_H
#define ALERTSCALER_SRC_CONFIG_RULES_RULE_PARTS_H

#include "yaml/tables.h"

/* `nodes` of a target (target_nodes.c) */
extern const struct schema target_nodes, nodes_template, nodes_taints, nodes_health;

extern const struct schema rule_source, rule_track;
extern const char *const rule_source_keys[]; /* one is required; ends with NULL */

/* A goal: a number to divide by. */
void rule_parse_goal(struct loader *loader, const struct as_yaml_node *value, double *out);

#endif
