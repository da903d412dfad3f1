/*
 * What a snapshot leads to: how many new nodes of which groups for pods that wait (`fit`), and
 * which nodes are unneeded and may leave (`take`). Pure, in slices, and equal snapshots give equal
 * plans: `replay` makes it again from the document. docs/pools.md has the rules.
 */
#ifndef ALERTSCALER_CLUSTER_POOL_PLAN_H
#define ALERTSCALER_CLUSTER_POOL_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/arena.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/cluster/pool_choice.h>
#include <alertscaler/cluster/snapshot.h>

struct as_pool_plan_terms { /* what a decision's document adds to the snapshot */
    as_wall_time now;
    int32_t min, max;         /* of the pool */
    bool with_fit, with_take; /* whether a rule asks for it */
};

struct as_pool_plan_request {
    int32_t version; /* of the decision's document (decide.h): the plan follows its rules */
    const struct as_snapshot *snapshot;
    const struct as_pool_config *config; /* of the pool; of a lone group the default */
    struct as_pool_plan_terms terms;
};

struct as_pool_group_plan { /* one for each group of the snapshot */
    int32_t fit, take_to;   /* its size after growth; after nodes left */
    int32_t overdue;        /* instances that never became nodes, and may leave; with fit */
    bool has_option;
    struct as_pool_option option; /* with its scores */
    enum as_reason skipped;       /* closed for growth: why; AS_REASON_SCALED: it was not */
};

#define AS_POOL_CLASS_PLANS_MAX 10000

struct as_pool_class_plan { /* for `explain`: a pod class that waits, and one group */
    uint32_t pod_class, group;
    enum as_misfit misfit; /* AS_FITS: a new node of the group takes such a pod */
    bool is_in_vain;       /* but the group was asked for it in vain */
};

struct as_pool_plan {
    struct as_pool_plan_terms terms; /* of the request */
    enum as_reason fit_reason; /* SCALED: fit_size is above the size; NO_CHANGE: nothing waits, or
                                  what is on its way is enough; no_group; AT_MAX; no_template ... */
    int32_t size, fit_size, take_size; /* of the pool: now, and as each proposes */
    int32_t overdue;                   /* sum of the groups' */
    size_t chosen;                     /* group whose option was chosen; AS_POOL_NO_OPTION */
    struct as_pool_group_plan *groups;
    uint64_t homeless;                            /* pods that no group could ever take */
    const struct as_snapshot_pods *homeless_pods; /* by pod class */
    size_t homeless_count;
    struct as_pool_class_plan *pod_classes; /* pod classes that no node on its way takes x groups of
                                          the pool; the first AS_POOL_CLASS_PLANS_MAX */
    size_t pod_class_count;
    const char *const *take; /* names of the nodes that leave now, by group, then in order */
    const uint32_t *take_group;
    size_t take_count;
    struct as_unneeded *unneeded; /* to be remembered; ascending by node */
    size_t unneeded_count;
    struct as_asked *asked; /* to be stored before the increase; all that still counts */
    size_t asked_count;
    uint64_t kept[AS_STAY_COUNT]; /* all nodes of the cluster that stay */
    enum as_stay *stays; /* by node of the snapshot; AS_STAY_COUNT: it leaves; NULL without take */
    bool is_cut;         /* the work ended at AS_PACK_FITS_MAX */
};

struct as_pool_work;

/* Borrows the request's parts as long as the plan is used; memory of the arena. */
struct as_pool_work *as_pool_begin(const struct as_pool_plan_request *request,
                                   struct as_arena *arena) AS_MUST_USE;
/* Works for about `fits`. True: done, `plan_out` is set. The size of steps changes nothing. */
bool as_pool_step(struct as_pool_work *work, uint64_t fits, struct as_pool_plan *plan_out);

#endif
