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

/* One rule: its references, its queries, and its checks against target and configuration. */
void resolve_rule(struct resolver *resolver, const struct raw_rule *raw, struct as_rule *rule);

/* Its approval, or its target's (approval.c). */
void resolve_approval(const struct raw_rule *raw, const struct raw_target *target,
                      struct as_rule *rule);

/* Why the target has no nodes in a cluster; NULL: it has. */
const char *find_lack_of_nodes(const struct resolver *resolver, const struct raw_target *target);

/* The address of one target, with all checks that need its provider. */
void resolve_address(struct resolver *resolver, struct raw_target *raw,
                     struct as_target_config *config);

/* Its templates, and what limits them. After the address. */
void check_allow(struct resolver *resolver, const struct raw_target *raw,
                 const struct as_target_config *config);

/* Adds a field to the address. `node` is the place of its value; NULL: a default. */
void add_address_field(struct resolver *resolver, struct as_target_config *config, const char *key,
                       const char *value, const struct as_yaml_node *node, bool *is_good);
bool is_template(const struct as_yaml_node *node); /* NULL: no */

/* The keys of an address that say what is sized (decide/sized.h). False: reported. */
bool resolve_sized(struct resolver *resolver, const struct raw_target *raw,
                   struct as_target_config *config);

/* Why values per pod cannot be asked for: what the target is; NULL: it has pods. */
const char *find_lack_of_pods(const struct raw_target *target);

/* Reports a rule that could make a target smaller that only grows. */
void check_only_up(struct resolver *resolver, const struct raw_rule *raw,
                   const struct raw_target *target);

/* The version that the kind implies; NULL: none, which was reported. */
const char *find_api_version(struct resolver *resolver, const struct as_yaml_node *kind,
                             bool is_scale);
/* Whether the kind is known to have a scale subresource. */
bool kind_has_scale(const char *kind);

/* Reports a namespace that is missing, and warns of one where there is none. False: it is missing.
 * `kind` and `api_version`: NULL if they are not readable. */
bool check_namespace(struct resolver *resolver, const struct raw_target *raw, const char *kind,
                     const char *api_version);

/* Reports ways down that end where a way up by the same value begins. */
void check_swings(struct resolver *resolver);

/* A node must not be of two groups by their `nodes.select`. */
void check_selects(struct resolver *resolver);

/* Two targets without templates must not have the same address. */
void check_addresses(struct resolver *resolver);

/* Resolves the groups of pools, and checks what pools and their groups may have. */
void resolve_pools(struct resolver *resolver);

/* Opens the time zones of schedules, and looks for a `min` above `max` at any time. After pools. */
void resolve_schedules(struct resolver *resolver);

/* Resolves `after`; cycles are errors. */
void resolve_after(struct resolver *resolver);

/* The digests of entries. After pools. */
void resolve_entries(struct resolver *resolver);

struct raw_target *find_target(const struct resolver *resolver, const char *name);
char **copy_strings(const char *const *strings, size_t count);
void report_unknown_target(struct resolver *resolver, const struct as_yaml_node *node);

#endif
