/*
 * The files of Alertmanager and Prometheus as lint reads them, and what their matchers have in
 * common with the matchers of rules.
 */
#ifndef ALERTSCALER_SRC_TOOLS_LINT_SOURCES_H
#define ALERTSCALER_SRC_TOOLS_LINT_SOURCES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define uthash_fatal(msg) abort() /* as for each small allocation of ours */
#include <uthash.h>

#include <alertscaler/base/arena.h>
#include <alertscaler/doc/yaml_tree.h>
#include <alertscaler/model/matcher.h>

/*
 * A list of matchers that all must match: whether a label set can satisfy them, and what they
 * imply. Exact for equalities and plain alternations. All else is assumed possible, and never
 * implied.
 */

struct matcher_list { /* borrows the matchers */
    const struct as_matcher **items;
    size_t count, capacity;
};

void matcher_list_deinit(struct matcher_list *list);
void matcher_list_add(struct matcher_list *list, const struct as_matcher *matchers, size_t count);

/* Two matchers (or one, twice) that no label set satisfies together; ascending indices. */
bool matcher_list_find_conflict(const struct matcher_list *list, size_t pair_out[2]);

/* Whether all label sets that satisfy the list satisfy the matcher too. */
bool matcher_list_implies(const struct matcher_list *list, const struct as_matcher *matcher);

/* Whether the list allows only one value of a label. */
bool matcher_list_fixes(const struct matcher_list *list, const char *name);

/* False only if the value certainly does not match: a regular expression may be given up. */
bool matcher_may_match(const struct as_matcher *matcher, const char *value);

/* `severity=~"page|critical"`, cut if long. */
#define MATCHER_TEXT_SIZE 120
const char *matcher_print(const struct as_matcher *matcher, char text_out[MATCHER_TEXT_SIZE]);

/*
 * What a webhook receiver needs of alertmanager.yml, or of an AlertmanagerConfig of Prometheus'
 * operator: receivers, and the tree of routes with inherited settings.
 */

/* By a webhook's url. OURS: its path is /webhook or below. UNKNOWN: the url is in a file, or a
 * template without "/webhook". OTHER: anything else. */
enum lint_url { LINT_URL_OTHER, LINT_URL_UNKNOWN, LINT_URL_OURS };

struct lint_receiver {
    const char *name;
    const struct as_yaml_node *name_node;
    const struct as_yaml_node **webhooks; /* whose url is ours */
    size_t webhook_count;
    const struct as_yaml_node *unknown; /* the url of a webhook of unknown kind; NULL: none */
    bool has_others;                    /* also notifies others, or may do so */
    UT_hash_handle hh;
};

struct lint_interval {
    int64_t us;
    const struct as_yaml_node *node; /* NULL: Alertmanager's default */
};

struct lint_route {
    const struct lint_route *parent, *elder; /* elder: the sibling before */
    const struct lint_route *youngest;       /* the last child */
    const struct as_yaml_node *node;
    const struct as_yaml_node *place;     /* where to report: the route's receiver, or the route */
    const struct lint_receiver *receiver; /* NULL: no receiver of this name */
    struct as_matcher *matchers;
    size_t matcher_count;
    bool is_unclear; /* it has a matcher that cannot be read */
    bool continues;
    const struct as_yaml_node *group_key;  /* the effective key; NULL: none, one group for all */
    const struct as_yaml_node *group_list; /* its value */
    struct lint_interval group_interval, repeat_interval;
};

struct lint_alertmanager {
    struct as_yaml_tree *tree;
    struct as_arena arena;
    const char *webhook; /* our path */
    /* Of an AlertmanagerConfig: its object; NULL: a configuration. */
    const char *object_namespace, *object_name;
    const struct as_yaml_node *receivers_key;
    struct lint_receiver *receivers; /* a hash table, in the file's order */
    struct lint_route **routes;      /* parents before children */
    size_t route_count, route_capacity;
    uint32_t *secret_lines; /* sorted: lines not to be shown */
    size_t secret_count, secret_capacity;
};

/* `prefix`: before our path /webhook; NULL: none. 0; -EINVAL if it is no configuration of
 * Alertmanager, or another negative errno. */
int lint_alertmanager_load(const char *path, const char *prefix, struct as_diagnostics *diagnostics,
                           struct lint_alertmanager *out) AS_MUST_USE;
void lint_alertmanager_deinit(struct lint_alertmanager *alertmanager);

/* The value under a key of alertmanager.yml, which an AlertmanagerConfig has in camelCase; NULL:
 * none. */
const struct as_yaml_node *lint_find(const struct lint_alertmanager *alertmanager,
                                     const struct as_yaml_node *map, const char *key);

struct lint_receiver *lint_find_receiver(const struct lint_alertmanager *alertmanager,
                                         const char *name);

/* Whether the receiver sends to us, certainly or possibly. */
bool lint_is_ours(const struct lint_receiver *receiver);
bool lint_may_be_ours(const struct lint_receiver *receiver);

bool lint_groups_all(const struct lint_route *route); /* group_by: ['...'] */
bool lint_groups_by(const struct lint_route *route, const char *label);

/* The real interval of repeats: a multiple of group_interval. */
int64_t lint_get_repeat(const struct lint_route *route);

/* Whether an alert that satisfies some matchers can reach this route. */
enum lint_reach {
    LINT_REACHED,
    LINT_REFUSED, /* matchers on the way refuse it */
    LINT_TAKEN    /* an earlier route takes it */
};
struct lint_way {
    const struct lint_route *taker;
    const struct as_matcher *refuser; /* on a route; NULL: its matchers contradict each other */
};
enum lint_reach lint_find_way(const struct lint_route *route, const struct as_matcher *matchers,
                              size_t count, struct lint_way *way_out);

/* Whether the route and its parents accept every alert that satisfies some matchers. */
bool lint_takes_all(const struct lint_route *route, const struct as_matcher *matchers,
                    size_t count);

/* An Alertmanager list of matchers in one text: `a="b"`, `{a="b", c=~"d"}`. False if a matcher
 * cannot be read; those before it were appended. */
bool lint_parse_matchers(const char *text, struct as_matcher **matchers_io, size_t *count_io,
                         size_t *capacity_io);

/*
 * Prometheus' alerting rules: what is known of the alerts that they make.
 */

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
