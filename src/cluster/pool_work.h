/*
 * The work on a plan (pool_plan.h), shared by the files that make it. pool_plan.c goes through the
 * phases and has those of nodes that leave; pool_fit.c has those of growth.
 */
#ifndef ALERTSCALER_SRC_CLUSTER_POOL_WORK_H
#define ALERTSCALER_SRC_CLUSTER_POOL_WORK_H

#include <alertscaler/cluster/node_pack.h>
#include <alertscaler/cluster/pool_plan.h>

#include "node_class.h"

struct pool_fit {
    uint32_t *pod_classes;      /* of the snapshot, by entry of `pending` */
    struct as_node_room *rooms; /* by group: of an empty new node */
    bool with_free_pods;        /* similar groups compare them too: before version 3 */
    struct as_pending *pending; /* in the order in which they are placed; counts: without those that
                                   fit on what is on its way */
    size_t count;
    struct as_pack pack;   /* the current one: on what is on its way, then of one group */
    bool is_packing;       /* `pack` is begun */
    size_t at;             /* the next pair of entry and group, then the next group */
    uint8_t *misfits;      /* enum as_misfit of an empty new node, by entry x group */
    uint8_t *in_vain;      /* bool: the pair was asked in vain */
    uint64_t share;        /* of the fits, for each open group */
    const uint64_t **left; /* of the estimate, by group and entry; NULL: no estimate */
    struct as_pool_caps caps;
};

struct pool_bin { /* room of a node that may receive pods */
    int64_t cpu, memory, pods;
    uint32_t node, class;
};

struct pool_undo {
    uint32_t bin;
    struct as_node_room room;
};

/* What is left above the minima, and of at_once. */
struct pool_margins {
    int64_t *groups; /* nodes, by group */
    int64_t nodes, cpu, memory, empty, drained;
};

struct pool_take {
    uint32_t *order; /* candidates: nodes of the snapshot */
    size_t count;
    size_t at;                           /* in the order */
    const struct as_snapshot_pods *pods; /* of the current candidate; NULL: not begun */
    size_t pod_at;
    struct pool_bin *bins; /* ascending by node */
    size_t bin_count;
    struct as_node_room *rooms; /* by bin */
    struct as_node_classes classes;
    uint8_t *verdicts; /* by pod class and node class */
    size_t class_max;
    struct pool_undo *undos; /* what the current candidate's pods changed: each bin once */
    size_t undo_count;
    size_t *touched_by; /* by bin: 1 + place in the order of the last candidate that used it */
    int32_t *allowed;   /* by budget: disruptions left */
    const struct as_unneeded **known; /* by node; NULL: nothing is remembered */
    uint64_t fits;                    /* left */
    struct pool_margins margins;
    bool is_bounded;  /* only as many nodes as may leave are simulated as leaving: from version 3 */
    bool *is_granted; /* by node, where is_bounded: its use is taken off the margins */
};

struct as_pool_work {
    struct as_pool_plan_request request;
    const struct as_snapshot *snapshot;
    struct as_arena *arena;
    struct as_pool_plan plan;
    size_t phase;
    uint64_t slice; /* fits left of the step */
    struct pool_fit fit;
    struct pool_take take;
};

/* Each does a part of a phase while there are fits to spend. True: the phase is over. */
typedef bool pool_phase_fn(struct as_pool_work *work);

pool_phase_fn pool_fit_begin, pool_fit_place, pool_fit_observe, pool_fit_estimate, pool_fit_choose;

static inline void pool_spend(struct as_pool_work *work, uint64_t fits)
{
    work->slice -= fits < work->slice ? fits : work->slice;
}

/* A copy in the order in which pods are placed: highest priority, largest, then by their digest. So
 * equal pods give equal plans, whatever order they are listed in. */
struct as_snapshot_pods *pool_sort_pods(const struct as_snapshot *snapshot,
                                        const struct as_snapshot_pods *pods, size_t count,
                                        struct as_arena *arena) AS_MUST_USE;

/* What was asked without a full check. */
void pool_asked_review(struct as_pool_work *work); /* sets plan.asked, and what was in vain */

/* cpu or memory of one node of a group that is there, on average, rounded up. */
static inline int64_t pool_get_average(int64_t all, int64_t nodes)
{
    return nodes > 0 ? all / nodes + (all % nodes > 0) : 0;
}

#endif
