/*
 * Which instances of a node group leave when it shrinks, in which order, and for each that was
 * passed over why. Pure.
 *
 * The order: what failed; what never became a node; what is on its way; nodes that are not ready;
 * then the others. Among equals the fullest zone gives first (zones stay balanced: all that count
 * are counted, those that may not leave too), within it the strategy decides, then the id (bytes).
 */
#ifndef ALERTSCALER_CORE_CHOOSE_H
#define ALERTSCALER_CORE_CHOOSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/arena.h>
#include <alertscaler/base/time.h>
#include <alertscaler/core/action.h>

enum as_choose_strategy {
    AS_CHOOSE_EMPTY_FIRST, /* without pods to evict; then as least_utilized */
    AS_CHOOSE_OLDEST,
    AS_CHOOSE_NEWEST,
    AS_CHOOSE_LEAST_UTILIZED, /* the larger of requested/allocatable of CPU and of memory */
    AS_CHOOSE_STRATEGY_COUNT
};
const char *as_choose_strategy_get_word(enum as_choose_strategy strategy); /* "empty_first", ... */

/* `nodes` of a target: how its instances are nodes of a cluster. */
struct as_nodes_config {
    char *cluster; /* NULL (`none`): they are no nodes; only the provider's facts choose */
    enum as_choose_strategy choose;
    bool drain;
    int64_t drain_timeout_us;
    int64_t grace_us; /* of the pods; -1: their own */
    int64_t ready_timeout_us;
};

void as_nodes_config_copy(const struct as_nodes_config *config, struct as_nodes_config *copy_out);
void as_nodes_config_deinit(struct as_nodes_config *config);

struct as_candidate_node { /* a node, as far as it matters here; texts are borrowed */
    const char *name;
    bool is_ready;
    bool is_cordoned;                      /* by whomever */
    const char *keep;                      /* why it may not leave, by its annotations; NULL */
    const char *blocking_pod;              /* one that may not be evicted, and why; NULL */
    size_t pod_count;                      /* that would have to be evicted */
    double requests[AS_RESOURCE_COUNT];    /* of all its pods */
    double allocatable[AS_RESOURCE_COUNT]; /* NaN: not known */
};

struct as_candidate {
    const char *id;
    const char *zone; /* "" where unknown */
    as_maybe_time created;
    bool is_pending;   /* on its way */
    bool is_leaving;   /* it goes already: neither chosen, nor counted, nor told of */
    bool is_failed;    /* it will not run, or is unhealthy by the provider's word */
    bool is_protected; /* by the provider's means */
    bool is_ambiguous; /* several nodes or instances claim to be the same: never chosen */
    const struct as_candidate_node *node; /* NULL: none */
};

struct as_choose_request {
    enum as_choose_strategy strategy;
    bool has_nodes;      /* what has no node after ready_timeout_us never became one */
    bool spares_serving; /* none that serves leaves */
    int64_t ready_timeout_us;
    as_wall_time now;
    const struct as_candidate *candidates;
    size_t count;
    int32_t size, min; /* of the group: no more leave than are above its minimum */
    int32_t wanted;    /* how many should leave */
};

struct as_passed_over {
    size_t candidate;
    const char *why; /* "node n1: pod shop/db-0 may not be evicted: ..." */
};

struct as_choice {
    size_t *chosen; /* indices of candidates, the first to leave first */
    size_t chosen_count;
    struct as_passed_over *passed; /* those that may not leave, ascending by id */
    size_t passed_count;
    const char *shortfall; /* why fewer than wanted; NULL where it is not so */
};

/* The choice is memory of `arena`, and borrows from the request. */
void as_choose(const struct as_choose_request *request, struct as_arena *arena,
               struct as_choice *choice_out);

#endif
