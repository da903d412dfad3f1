/*
 * Makes one rule set of all rule files: resolves names, and checks whatever needs more than one
 * key.
 */
#ifndef ALERTSCALER_SRC_RULES_RESOLVE_H
#define ALERTSCALER_SRC_RULES_RESOLVE_H

#include <alertscaler/decide/ruleset.h>

#include <alertscaler/rules/tables.h>

struct resolver {
    struct loader loader;               /* its tree is that of the present object */
    const struct as_settings *settings; /* NULL: unknown */
    struct raw_target **targets;        /* of all files */
    struct raw_target **by_name;        /* the same, sorted */
    size_t target_count;
    struct raw_rule **rules;
    size_t rule_count;
    unsigned compared; /* names, for "did you mean" */
    struct as_ruleset *ruleset;
    const struct as_yaml_node *settings_root; /* of the configuration; NULL: none */
};

/* Fills ruleset->targets and rules. Errors are reported; after an error the rule set is
 * unusable. */
void resolve_rules(struct resolver *resolver);

/* Its approval, or its target's (approval.c). */
void resolve_approval(const struct raw_rule *raw, const struct raw_target *target,
                      struct as_rule *rule);

/* The address of one target, with all checks that need its provider. */
void resolve_address(struct resolver *resolver, struct raw_target *raw,
                     struct as_target_config *config);

/* Its templates, and what limits them. After the address. */
void check_allow(struct resolver *resolver, const struct raw_target *raw,
                 const struct as_target_config *config);

bool is_template(const struct as_yaml_node *node); /* NULL: no */

/* Why values per pod cannot be asked for: what the target is; NULL: it has pods. */
const char *find_pods_requirement(const struct raw_target *target);

/* Reports a rule that could make a target smaller that only grows. */
void check_only_up(struct resolver *resolver, const struct raw_rule *raw,
                   const struct raw_target *target);

/* A node must not be of two groups by their `nodes.select`. */
void check_selects(struct resolver *resolver);

/* Two targets without templates must not have the same address. */
void check_addresses(struct resolver *resolver);

struct raw_target *find_target(const struct resolver *resolver, const char *name);
char **copy_strings(const char *const *strings, size_t count);

#endif
