/*
 * From what all rule files say to one rule set: names are resolved and everything is checked that
 * takes more than one key.
 */
#ifndef ALERTSCALER_SRC_CONFIG_RULES_RESOLVE_H
#define ALERTSCALER_SRC_CONFIG_RULES_RESOLVE_H

#include <alertscaler/core/ruleset.h>

#include "yaml/tables.h"

struct resolver {
    struct loader loader;               /* its tree is that of the thing looked at */
    const struct as_settings *settings; /* NULL: not known */
    struct raw_target **targets;        /* of all files */
    struct raw_target **by_name;        /* the same, sorted */
    size_t target_count;
    struct raw_rule **rules;
    size_t rule_count;
    unsigned compared; /* names, for "did you mean" */
    struct as_ruleset *ruleset;
};

/* Fills ruleset->targets and rules. What is wrong is reported; the rule set is of use only where
 * nothing is. */
void resolve_rules(struct resolver *resolver);

/* One rule: what it refers to, its queries, and what it needs of its target and of the
 * configuration. */
void resolve_rule(struct resolver *resolver, const struct raw_rule *raw, struct as_rule *rule);

/* The address of one target, with everything that needs to be known of its provider. */
void resolve_address(struct resolver *resolver, struct raw_target *raw,
                     struct as_target_config *config);

/* A way down that ends where a way up by the same value begins. */
void check_swings(struct resolver *resolver);

/* Two targets without templates cannot have one address. */
void check_addresses(struct resolver *resolver);

/* What `after` names, without going round in circles. */
void resolve_after(struct resolver *resolver);

struct raw_target *find_target(const struct resolver *resolver, const char *name);
char **copy_strings(const char *const *strings, size_t count);
void report_unknown_target(struct resolver *resolver, const struct as_yaml_node *node);

#endif
