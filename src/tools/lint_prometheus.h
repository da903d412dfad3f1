/*
 * Prometheus' alerting rules: what is known of the alerts that they make.
 */
#ifndef ALERTSCALER_SRC_TOOLS_LINT_PROMETHEUS_H
#define ALERTSCALER_SRC_TOOLS_LINT_PROMETHEUS_H

#include <stdbool.h>
#include <stddef.h>

#include <alertscaler/base/arena.h>
#include <alertscaler/doc/yaml_tree.h>
#include <alertscaler/model/matcher.h>

/* An alert's expression as a threshold: a comparison with a number. */
struct threshold {
    char *subject; /* without comments and needless spaces; NULL: no threshold */
    double low, high;
    bool is_low_out, is_high_out; /* the bound itself is excluded */
};

/* Understands `SUBJECT OP NUMBER` and `NUMBER OP SUBJECT`. OP: > >= < <= ==. The subject has no
 * comparison, `and`, `or`, `unless` outside of parentheses. */
struct threshold threshold_parse(struct as_arena *arena, const char *expression);

/* Both are thresholds on the same subject, and some value satisfies both. */
bool threshold_overlaps(const struct threshold *a, const struct threshold *b);

struct lint_label {
    const char *name, *value; /* value NULL: known only when it fires */
};

struct lint_alert {
    const char *name;
    const struct as_yaml_tree *tree;
    const struct as_yaml_node *node; /* its name */
    struct lint_label *labels;       /* that the rule sets, alertname first */
    size_t label_count;
    const struct as_yaml_node *annotations; /* all of them; NULL: none */
    const char *expression;                 /* NULL: unknown */
    struct threshold threshold;
};

struct lint_prometheus {
    struct as_yaml_tree **trees;
    size_t tree_count, tree_capacity;
    struct lint_alert *alerts;
    size_t alert_count, alert_capacity;
    struct as_arena arena;
};

/* 0; -EINVAL if a file is invalid, or another negative errno. */
int lint_prometheus_load(const char *const *patterns, size_t count,
                         struct as_diagnostics *diagnostics,
                         struct lint_prometheus *out) AS_MUST_USE;
void lint_prometheus_deinit(struct lint_prometheus *prometheus);

/* Whether alerts of one rule satisfy a list of matchers. NO: certainly not. YES: at least one
 * matcher certainly matches, the others may. UNKNOWN: neither. */
enum lint_fit { LINT_FIT_NO, LINT_FIT_UNKNOWN, LINT_FIT_YES };
enum lint_fit lint_alert_fit(const struct lint_alert *alert, const struct as_matcher *matchers,
                             size_t count);

/* The value of a label if known, else NULL. */
const char *lint_alert_find(const struct lint_alert *alert, const char *label);

/* Whether the rule sets the label, or its expression mentions it. If neither, the label most likely
 * comes from outside the files, or does not exist. */
bool lint_alert_mentions(const struct lint_alert *alert, const char *label);

/* Whether one matcher certainly does not match. */
bool lint_alert_refuses(const struct lint_alert *alert, const struct as_matcher *matcher);

#endif
