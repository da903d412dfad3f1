/*
 * Shared by the actions of a rule.
 */
#ifndef ALERTSCALER_SRC_CONFIG_RULES_RULE_PARTS_H
#define ALERTSCALER_SRC_CONFIG_RULES_RULE_PARTS_H

#include "yaml/tables.h"

extern const struct schema rule_source, rule_track;
extern const char *const rule_source_keys[]; /* one is required; ends with NULL */

/* A goal: a number to divide by. */
void rule_parse_goal(struct loader *loader, const struct as_yaml_node *value, double *out);

#endif
