/*
 * One run of the checks on one configuration: the rules with their places, and what they are
 * compared with.
 */
#ifndef ALERTSCALER_SRC_TOOLS_LINT_RUN_H
#define ALERTSCALER_SRC_TOOLS_LINT_RUN_H

#include <alertscaler/tools/lint.h>

#include "lint_sources.h"

struct as_lint {
    struct as_lint_sources sources;         /* only the web configuration: the others were read */
    struct lint_alertmanager *alertmanager; /* NULL: no comparison */
    struct lint_prometheus prometheus;
    struct lint_alertmanager memory;
};

struct lint_rule {
    const struct as_rule *rule;
    const struct as_target_config *target;
    const struct as_yaml_tree *tree;
    const struct as_yaml_node *node;
    const struct as_yaml_tree *target_tree;
    const struct as_yaml_node *target_node;
    bool is_dead; /* no alert satisfies its matchers, or it is an `always` rule: it is compared with
                     no alert, route and other rule */
};

struct lint_run {
    const struct as_lint *lint;
    const struct as_config *config;
    struct as_diagnostics *diagnostics;
    struct as_yaml_tree **trees; /* of the rule files */
    size_t tree_count;
    struct lint_rule *rules; /* only enabled rules */
    size_t rule_count;
    struct as_yaml_tree *settings_tree; /* NULL: rule files without a configuration */
    struct lint_rule watchdog;          /* its matchers, as a rule without target; NULL: none */
    struct as_rule watchdog_rule;
    size_t work; /* left for comparisons */
};

/* Charges a comparison of rules with each other or with something else. False when the budget is
 * used up, which is reported once. */
enum lint_cost { LINT_CHEAP = 1, LINT_DEAR = 20 };
bool lint_spend(struct lint_run *run, enum lint_cost cost);

/* The rule's key `match`: reports about all its matchers go there. */
const struct as_yaml_node *lint_get_match(const struct lint_rule *rule);

/* One matcher of the rule, by its index. */
const struct as_yaml_node *lint_get_matcher(const struct lint_rule *rule, size_t index);

/* A warning and a hint in a rule file, and a warning in alertmanager.yml. */
void lint_warn(struct lint_run *run, const struct as_yaml_tree *tree,
               const struct as_yaml_node *node, const char *format, ...) AS_PRINTF(4, 5);
void lint_hint(struct lint_run *run, const struct as_yaml_tree *tree,
               const struct as_yaml_node *node, const char *format, ...) AS_PRINTF(4, 5);
void lint_warn_alertmanager(struct lint_run *run, const struct as_yaml_node *node,
                            const char *format, ...) AS_PRINTF(3, 4);

/* "rules/x.yaml:12", in the caller's memory. */
#define LINT_PLACE_SIZE 200
const char *lint_print_place(const struct as_yaml_tree *tree, const struct as_yaml_node *node,
                             char text_out[LINT_PLACE_SIZE]);

/* Whether the rule takes alerts of this receiver. */
bool lint_takes_receiver(const struct lint_rule *rule, const char *receiver);

/* The checks, called in this order: of the receiver's credentials; of the servers that the
 * configuration names; of rules by themselves and
 * against each other; of targets that are fields; of cooldowns beside `always` rules; of rules that
 * wait for an approval; against Prometheus' alerting rules; against Alertmanager's configuration.
 */
void lint_check_credentials(struct lint_run *run);
void lint_check_servers(struct lint_run *run);
void lint_check_rules(struct lint_run *run);
void lint_check_fields(struct lint_run *run);
void lint_check_cooldowns(struct lint_run *run);
void lint_check_approvals(struct lint_run *run);
void lint_check_alerts(struct lint_run *run);
void lint_check_routes(struct lint_run *run);

#endif
