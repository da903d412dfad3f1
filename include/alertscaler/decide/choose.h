/*
 * Chooses which instances of a node group are removed on scale-in, and in which order. Says of each
 * instance that may not be removed why. Pure.
 *
 * The order: failed; never became a node; pending; nodes that are not ready; all others. Within a
 * class the fullest zone gives first (zones stay balanced: protected instances count too). Within
 * the zone the strategy decides, then the id (bytes).
 */
#ifndef ALERTSCALER_DECIDE_CHOOSE_H
#define ALERTSCALER_DECIDE_CHOOSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/arena.h>
#include <alertscaler/base/time.h>
#include <alertscaler/cluster/node_health.h>
#include <alertscaler/cluster/pool.h>
#include <alertscaler/model/action.h>

enum as_choose_strategy {
    AS_CHOOSE_EMPTY_FIRST, /* without pods to evict; then as least_utilized */
    AS_CHOOSE_OLDEST,
    AS_CHOOSE_NEWEST,
    AS_CHOOSE_LEAST_UTILIZED, /* the larger of requested/allocatable of CPU and of memory */
    AS_CHOOSE_STRATEGY_COUNT
};

/* Whose pending pods count for a group: those that select its nodes, or also those that select
 * none. */
enum as_nodes_pending { AS_NODES_PENDING_SELECTING, AS_NODES_PENDING_ANY };

/* How a marked node leaves. */
enum as_nodes_drain {
    AS_NODES_DRAIN_FALSE, /* it is deleted */
    AS_NODES_DRAIN_TRUE,  /* it is emptied at once, and deleted */
    AS_NODES_DRAIN_WAIT   /* it is deleted once it is empty, or has been marked for too long */
};

struct as_node_template_config; /* cluster/node_template.h */

/* `nodes` of a target: how its instances map to nodes of a cluster. */
struct as_nodes_config {
    char *cluster; /* NULL (`none`): the instances are no nodes; choose by the provider's facts */
    char *select;  /* "key=value,...", ascending: the labels of the group's nodes, where the
                      provider does not name its instances; NULL: none */
    enum as_choose_strategy choose;
    enum as_nodes_drain drain;
    int64_t drain_after_us; /* WAIT */
    int64_t drain_timeout_us;
    int64_t grace_us; /* of the pods; -1: each pod's own */
    int64_t ready_timeout_us;
    struct as_node_template_config *template_; /* what a new node has; NULL: not said */
    char **startup_taints;                     /* keys */
    size_t startup_taint_count;
    enum as_nodes_pending pending;
    bool has_priority, has_price; /* for a pool's filters */
    int32_t priority;
    double price; /* of one node, in the unit of the pod prices */
    struct as_unneeded_config unneeded;
    struct as_node_health_config health;
};

void as_nodes_config_copy(const struct as_nodes_config *config, struct as_nodes_config *copy_out);
void as_nodes_config_deinit(struct as_nodes_config *config);

struct as_candidate_node { /* what choosing needs of a node; texts are borrowed */
    const char *name;
    bool is_ready;
    bool is_cordoned;                   /* by anyone */
    const char *keep;                   /* why its annotations forbid removal; NULL: they do not */
    const char *blocking_pod;           /* a pod that may not be evicted, and why; NULL: none */
    size_t pod_count;                   /* pods that must be evicted */
    double requests[AS_RESOURCE_COUNT]; /* of all its pods */
    double allocatable[AS_RESOURCE_COUNT]; /* NaN: unknown */
};

struct as_candidate {
    const char *id;
    const char *zone; /* "" if unknown */
    as_maybe_time created;
    bool is_pending;   /* not running yet */
    bool is_leaving;   /* already being removed: neither chosen, counted nor reported */
    bool is_failed;    /* will not run, or the provider calls it unhealthy */
    bool is_protected; /* by the provider's own protection */
    bool is_ambiguous; /* several nodes or instances claim to be the same: never chosen */
    const struct as_candidate_node *node; /* NULL: none */
};

struct as_choose_request {
    enum as_choose_strategy strategy;
    bool has_nodes;      /* an instance without a node after ready_timeout_us never became one */
    bool spares_serving; /* remove nothing that serves */
    int64_t ready_timeout_us;
    as_wall_time now;
    const struct as_candidate *candidates;
    size_t count;
    int32_t size, min; /* of the group: it never shrinks below `min` */
    int32_t wanted;    /* how many to remove */
};

struct as_passed_over {
    size_t candidate;
    const char *why; /* "node n1: pod shop/db-0 may not be evicted: ..." */
};

struct as_choice {
    size_t *chosen; /* indices of candidates, in order of removal */
    size_t chosen_count;
    struct as_passed_over *passed; /* those that may not be removed, ascending by id */
    size_t passed_count;
    const char *shortfall; /* why fewer than wanted; NULL: as many as wanted */
};

/* The choice lives in `arena`, and borrows from the request. */
void as_choose(const struct as_choose_request *request, struct as_arena *arena,
               struct as_choice *choice_out);

#endif
