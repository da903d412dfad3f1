/*
 * One run of the checks over one configuration: the rules with their places, and what to compare
 * them with.
 */
#ifndef ALERTSCALER_SRC_CONFIG_LINT_LINT_PRIVATE_H
#define ALERTSCALER_SRC_CONFIG_LINT_LINT_PRIVATE_H

#include <alertscaler/config/lint.h>

#include "lint_alertmanager.h"
#include "lint_prometheus.h"

struct as_lint {
    struct as_lint_sources sources;         /* only the web configuration: the rest was read */
    struct lint_alertmanager *alertmanager; /* NULL: not compared with */
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
    bool is_dead; /* no alert satisfies its matchers: nothing else is said of it */
};

struct lint_run {
    const struct as_lint *lint;
    const struct as_config *config;
    struct as_diagnostics *diagnostics;
    struct as_yaml_tree **trees; /* of the rule files */
    size_t tree_count;
    struct lint_rule *rules; /* those that are enabled */
    size_t rule_count;
    struct as_yaml_tree *settings_tree; /* NULL: rule files alone */
    struct lint_rule watchdog;          /* its matchers, as a rule without a target; NULL: none */
    struct as_rule watchdog_rule;
    size_t work; /* for comparisons, left */
};

/* Counts a comparison of rules with each other or with something else, by what it costs. False, and
 * said once, when there were too many. */
enum lint_cost { LINT_CHEAP = 1, LINT_DEAR = 20 };
bool lint_spend(struct lint_run *run, enum lint_cost cost);

/* The rule's key `match`, where to report what is about all its matchers. */
const struct as_yaml_node *lint_get_match(const struct lint_rule *rule);

/* One matcher of it, by its index in the rule. */
const struct as_yaml_node *lint_get_matcher(const struct lint_rule *rule, size_t index);

/* A warning and a hint in a rule file, and a warning in alertmanager.yml. */
void lint_warn(struct lint_run *run, const struct as_yaml_tree *tree,
               const struct as_yaml_node *node, const char *format, ...) AS_PRINTF(4, 5);
void lint_hint(struct lint_run *run, const struct as_yaml_tree *tree,
               const struct as_yaml_node *node, const char *format, ...) AS_PRINTF(4, 5);
void lint_warn_alertmanager(struct lint_run *run, const struct as_yaml_node *node,
                            const char *format, ...) AS_PRINTF(3, 4);

/* "rules/x.yaml:12", in caller's memory. */
#define LINT_PLACE_SIZE 200
const char *lint_print_place(const struct as_yaml_tree *tree, const struct as_yaml_node *node,
                             char text_out[LINT_PLACE_SIZE]);

/* Whether the rule takes alerts that come by this receiver. */
bool lint_takes_receiver(const struct lint_rule *rule, const char *receiver);

/* A number that is 0, which Alertmanager takes for none; also nothing at all. */
bool lint_is_zero(const struct as_yaml_node *node);

/* Whether it is certain that alertscaler asks senders for a credential. */
bool lint_asks_for_credential(const struct lint_run *run);

/* A route that brings alerts to us and to nobody else (lint_people.c). */
void lint_check_people(struct lint_run *run, const struct lint_route *route);

/* Credentials (lint_credentials.c); rules by themselves and against each other (lint_rules.c),
 * against Prometheus' alerting rules (lint_alerts.c), against Alertmanager's configuration
 * (lint_routes.c, lint_webhooks.c). */
void lint_check_credentials(struct lint_run *run);
void lint_check_rules(struct lint_run *run);
void lint_check_bounds(struct lint_run *run, const struct lint_rule *rule);
void lint_check_alerts(struct lint_run *run);
void lint_check_webhooks(struct lint_run *run);
void lint_check_routes(struct lint_run *run);

#endif
