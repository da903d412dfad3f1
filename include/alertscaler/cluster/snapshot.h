/*
 * The snapshot: what a decision about a pool reads of a cluster, and the part of a decision
 * document that says it (docs/decision.md). It is a digest of the facts; what it leaves out errs
 * towards fewer changes. At the end stand the functions that make it from the facts of a cluster.
 *
 * Long because groups, nodes and pods refer to each other and are read together.
 */
#ifndef ALERTSCALER_CLUSTER_SNAPSHOT_H
#define ALERTSCALER_CLUSTER_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/arena.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/base/time.h>
#include <alertscaler/cluster/cluster.h>
#include <alertscaler/cluster/node_fit.h>
#include <alertscaler/cluster/node_template.h>
#include <alertscaler/cluster/pool.h>
#include <alertscaler/model/reason.h>

#define AS_SNAPSHOT_BYTES_MAX       ((size_t)1 << 20) /* of the document */
#define AS_SNAPSHOT_POD_CLASSES_MAX 1000
#define AS_SNAPSHOT_NODES_MAX       1024 /* open nodes in all, and of each group: */
#define AS_SNAPSHOT_ROOMY_MAX       64
#define AS_SNAPSHOT_DRAINED_MAX     64 /* candidates that are not empty */

#define AS_SNAPSHOT_NO_GROUP UINT32_MAX

/* Why a node stays, in this order. X(enumerator, word) */
#define AS_STAYS(X)                                                                                \
    X(AS_STAY_LEAVING, "leaving")         /* it is leaving already */                              \
    X(AS_STAY_DISABLED, "disabled")       /* by an annotation */                                   \
    X(AS_STAY_NO_GROUP, "no_group")       /* in no group of the pool */                            \
    X(AS_STAY_PAUSED, "paused")           /* its group is */                                       \
    X(AS_STAY_HELD, "held")               /* its group must not go down */                         \
    X(AS_STAY_DRY_RUN, "dry_run")         /* its group is in one */                                \
    X(AS_STAY_UNREADABLE, "unreadable")   /* its group could not be read */                        \
    X(AS_STAY_NO_CHOICE, "no_choice")     /* its group chooses itself which node leaves */         \
    X(AS_STAY_IN_PROGRESS, "in_progress") /* its group changes at the provider */                  \
    X(AS_STAY_STARTING, "starting")                                                                \
    X(AS_STAY_UTILIZED, "utilized")                                                                \
    X(AS_STAY_UNEVICTABLE, "unevictable") /* a pod that may not be evicted */                      \
    X(AS_STAY_BUDGET, "budget")           /* without a disruption left */                          \
    X(AS_STAY_NO_ROOM, "no_room")         /* its pods fit nowhere else */                          \
    X(AS_STAY_RECEIVES, "receives")       /* pods of another candidate were placed on it */        \
    X(AS_STAY_SHORTLY, "shortly")         /* unneeded, but not for long enough */                  \
    X(AS_STAY_AT_ONCE, "at_once")         /* enough others leave */                                \
    X(AS_STAY_AT_MIN, "at_min")           /* a minimum of its group or pool */

#define AS_STAY_ENUM(enumerator, word) enumerator,
enum as_stay { AS_STAYS(AS_STAY_ENUM) AS_STAY_COUNT };
const char *as_stay_get_word(enum as_stay stay);

struct as_snapshot_group {
    const char *name;     /* of its target in the rule file */
    bool is_member;       /* of this pool; else only what is on its way counts */
    int32_t size;         /* the provider's, less marked nodes that are still listed; -1: unknown */
    int32_t min, max;     /* the narrower of the rule file's and the provider's */
    int32_t coming;       /* nodes on their way */
    int32_t overdue;      /* instances that are no nodes, too late; at most size - min */
    int32_t removable;    /* of these: they may be removed, and no increase of ours is under way */
    int32_t last_size;    /* where the size is not known: as it last was; 0: never known */
    int32_t in_doubt;     /* nodes of an increase whose outcome is unknown: no part of `size` */
    int32_t unregistered; /* requested by another controller, too late, and no instance: part of
                             `size`, not of `coming` */
    int32_t surplus;      /* nodes of increases in doubt that were accepted: part of `size` */
    as_maybe_time surplus_since;
    enum as_reason closed; /* for growth: why; AS_REASON_SCALED: open */
    as_maybe_time open_at; /* when a back-off ends; unset: `closed` has no known end */
    const char *message;   /* why it could not be read; NULL */
    struct as_node_template template_;
    uint64_t template_digest; /* of the whole template, whatever labels are cut: for `asked` */
    bool has_priority, has_price;
    int32_t priority;
    double price;
    struct as_unneeded_config unneeded;
    int64_t nodes, cpu, memory; /* its nodes that are known, without marked ones: capacity in all */
    struct as_group_sums sums;  /* for metrics: not in the document */
};

struct as_snapshot_pod_class { /* budgets instead of labels */
    struct as_pod_class pod;   /* without `labels` and `namespace_` */
    const uint32_t *budgets;   /* that select it; ascending indices */
    size_t budget_count;
    uint64_t digest;  /* of what placing reads: equal over time, for `asked` */
    uint64_t waiting; /* its pods that wait, also those with room; read only with `unchecked` */
};

struct as_snapshot_pods { /* equal pods */
    uint32_t pod_class;
    uint32_t count;
};

struct as_snapshot_node {
    uint32_t group;            /* AS_SNAPSHOT_NO_GROUP */
    struct as_node_shape node; /* `name` is set; labels only as far as a pod class reads them;
                                  allocatable: of candidates only */
    struct as_resources left;  /* free, once pods that wait, are nominated or leave are placed */
    const struct as_resources *expendable; /* part of `left`, as in as_node_room; NULL: none */
    const struct as_snapshot_pods *guests; /* there, with ports or loners */
    size_t guest_count;
    bool is_ready;
    bool is_candidate;                   /* to leave; else it only takes pods, if it is Ready */
    enum as_stay stay;                   /* why it is no candidate */
    double utilization;                  /* of a candidate, in percent */
    const struct as_snapshot_pods *pods; /* of a candidate: those that must find room elsewhere */
    size_t pod_count;
};

struct as_snapshot_budget {
    const char *name; /* "namespace/name" */
    int32_t allowed;  /* disruptions */
};

struct as_unneeded { /* what is remembered of a node; the caller keeps it in memory */
    const char *node;
    as_maybe_time since;   /* unneeded in an unbroken row */
    as_maybe_time no_room; /* when its pods last had no room elsewhere */
    as_maybe_time seen;    /* the look that said so; unset: the one before this */
};

struct as_asked { /* stored: a pod class that was not fully checked, and a group asked for it */
    uint64_t pod_class; /* digest of the pod class */
    uint64_t template_; /* digest of the group's template then */
    const char *group;  /* name of its target, as in the snapshot */
    as_wall_time at;    /* when nodes were last on their way for it, to a minute; in vain: when that
                           was found */
    bool is_in_vain;    /* the nodes came, and such a pod still waited two minutes later */
};
#define AS_ASKED_MAX    1000
#define AS_ASKED_FOR_US (3 * AS_US_PER_H)

struct as_snapshot {
    const char
        *error; /* why nothing is known (stale facts, an unwell cluster); NULL: all below is */
    struct as_res_names resources;
    const struct as_snapshot_group *groups; /* in the order of the pool's `groups`, then others */
    size_t group_count;
    const struct as_snapshot_pod_class *pod_classes;
    size_t pod_class_count;
    const struct as_snapshot_pods *pending; /* that found no room on what exists */
    size_t pending_count;
    uint64_t pending_pods; /* all that wait, also those with room, and of pod classes cut off */
    const struct as_snapshot_node *nodes; /* ascending by name */
    size_t node_count;
    const struct as_snapshot_budget *budgets;
    size_t budget_count;
    uint64_t kept[AS_STAY_COUNT]; /* nodes that are no candidates, also those cut off */
    uint64_t cluster_nodes;
    uint64_t leaving_empty, leaving_drained; /* of the pool: nodes under way, for `at_once` */
    as_maybe_time drain_failed;              /* the last of the pool's */
    const struct as_unneeded *unneeded;      /* ascending by node */
    size_t unneeded_count;
    const struct as_asked *asked;
    size_t asked_count;
    uint64_t seed;
};

/*
 * Making the snapshot of a pool from the facts of its cluster: what docs/pools.md and
 * docs/nodes.md say, up to the point where groups are compared. Pure, in slices.
 *
 * Pods that the scheduler called Unschedulable, those nominated, and those of leaving nodes are
 * first placed on all open Ready nodes of the cluster. Only then is the snapshot cut to its limits.
 */

struct as_snapshot_member { /* one node group of the cluster, as the engine and its provider see it
                             */
    const char *name, *id;  /* of its target */
    bool is_member, is_balanced;
    int32_t size, min, max; /* size -1: could not be read; `message` says why */
    const char *message;
    enum as_reason closed;    /* by the engine: cooldown, paused, dry_run; AS_REASON_SCALED: open */
    bool is_kept;             /* by the engine: it must not go down */
    bool chooses_itself;      /* which instances leave */
    bool in_progress;         /* the provider's own change */
    bool has_pending_scaleup; /* an increase of ours is under way: in_progress does not close it */
    int32_t refused;          /* what a refused increase lacks */
    int32_t in_doubt;         /* nodes of an increase whose outcome is unknown */
    int32_t unregistered;     /* that another controller has requested, too long ago */
    int32_t backed_off;       /* nodes of these for which the group has backed off already */
    int32_t surplus;          /* nodes of increases in doubt that were accepted */
    as_maybe_time surplus_since;
    bool down_in_doubt;       /* a decrease in the pool has an unknown outcome */
    as_maybe_time open_at;    /* when the back-off ends */
    const char *const *nodes; /* names of its nodes, ascending */
    size_t node_count;
    int32_t young;     /* instances that are no nodes yet, made less than ready_timeout ago */
    int32_t overdue;   /* ... longer ago */
    int32_t removable; /* of these: as in as_group_members */
    int32_t last_size; /* as last known; 0: never */
    int64_t ready_timeout_us;
    const char *const *startup_taints;
    size_t startup_taint_count;
    const struct as_node_template *last, *configured; /* NULL: none */
    bool has_priority, has_price;
    int32_t priority;
    double price;
    struct as_unneeded_config unneeded;
    as_maybe_time drain_failed;
};

struct as_snapshot_request {
    const struct as_cluster *cluster;
    const struct as_snapshot_member *members; /* of the pool first, in its order; then all others */
    size_t member_count;
    const struct as_pool_config *config;
    const struct as_unneeded *unneeded; /* remembered from the last decision */
    size_t unneeded_count;
    const struct as_asked *asked;
    size_t asked_count;
    uint64_t seed;
    as_wall_time now;
};

struct as_snapshot_work;

/* Borrows the request and the cluster until the snapshot is not used any more; memory of the arena.
 */
struct as_snapshot_work *as_snapshot_begin(const struct as_snapshot_request *request,
                                           struct as_arena *arena) AS_MUST_USE;
/* Works for about `fits` (node_pack.h). True: done, `snapshot_out` is set. */
bool as_snapshot_step(struct as_snapshot_work *work, uint64_t fits,
                      struct as_snapshot *snapshot_out);
/* What a new node of a member is like, with all its labels: the snapshot only has labels that some
 * pod reads. Once the snapshot is done. */
const struct as_node_template *as_snapshot_get_template(const struct as_snapshot_work *work,
                                                        size_t member);

#endif
