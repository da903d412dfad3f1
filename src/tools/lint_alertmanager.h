/*
 * What a webhook receiver needs of alertmanager.yml, or of an AlertmanagerConfig of Prometheus'
 * operator: receivers, and the tree of routes with inherited settings.
 */
#ifndef ALERTSCALER_SRC_TOOLS_LINT_ALERTMANAGER_H
#define ALERTSCALER_SRC_TOOLS_LINT_ALERTMANAGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define uthash_fatal(msg) abort() /* as for each small allocation of ours */
#include <uthash.h>

#include <alertscaler/base/arena.h>
#include <alertscaler/doc/yaml_tree.h>

#include "lint_matchers.h"

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

#endif
