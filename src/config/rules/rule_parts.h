/*
 * What the actions of a rule share.
 */
#ifndef ALERTSCALER_SRC_CONFIG_RULES_RULE_PARTS_H
#define ALERTSCALER_SRC_CONFIG_RULES_RULE_PARTS_H

#include "yaml/tables.h"

extern const struct schema rule_source, rule_track;
extern const char *const rule_source_keys[]; /* one of them must be there; up to NULL */

/* A number that values are divided by. */
void rule_parse_goal(struct loader *loader, const struct as_yaml_node *value, double *out);

#endif
