/*
 * What rule files say of a pool (docs/pools.md): several node groups of one cluster that are
 * decided together. A node group with a rule `fit` or `take` and without a pool is a pool of
 * itself. And what the last look at its nodes said, for metrics. Plain data.
 */
#ifndef ALERTSCALER_CLUSTER_POOL_H
#define ALERTSCALER_CLUSTER_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/cluster/pool_choice.h>
#include <alertscaler/model/action.h>
#include <alertscaler/model/reason.h>

#define AS_POOL_GROUPS_MAX 64
#define AS_POOL_LABELS_MAX 64 /* of ignore_labels */

struct as_pool_range {
    int64_t min, max; /* max: AS_POOL_NO_CAP where there is none */
};

struct as_pool_config {
    uint32_t *groups; /* indices of targets of the rule set */
    size_t group_count;
    enum as_pool_filter choose[AS_POOL_FILTER_COUNT]; /* each once */
    size_t choose_count;                              /* 0: least_waste */
    bool balance;
    char **ignore_labels;
    size_t ignore_label_count;
    struct as_pool_range cpu, memory;      /* of all nodes of the pool: millicores, bytes */
    double cpu_price, memory_price;        /* of a core, of a GiB that a pod asks for */
    uint32_t at_once_empty, at_once_drain; /* nodes that leave at a time: 10, 1 */
    int32_t expendable_below; /* pods of a lower priority do not wait, and take no room: -10 */
};

extern const struct as_pool_config as_pool_config_default; /* also of a group without a pool */

/* Classes of pods that keep their node, as `nodes.keep` names them; bits. */
enum as_keep { AS_KEEP_SYSTEM_PODS = 1, AS_KEEP_LOCAL_STORAGE = 2, AS_KEEP_UNREPLICATED = 4 };
#define AS_KEEP_DEFAULT (AS_KEEP_LOCAL_STORAGE | AS_KEEP_UNREPLICATED)

#define AS_UNREADY_NEVER (-1)

/* When a node of a group is unneeded. */
struct as_unneeded_config {
    double below;           /* utilization in percent: 50 */
    int64_t for_us;         /* 10m */
    int64_t unready_for_us; /* of a node that is not Ready: 20m; AS_UNREADY_NEVER */
    unsigned ignore;        /* of enum as_node_ignore (node_sums.h) */
    unsigned keep;          /* of enum as_keep */
};

extern const struct as_unneeded_config as_unneeded_config_default;

/*
 * Numbers of a look at node groups, for metrics. Decisions do not read them, and decision documents
 * do not have them.
 */

struct as_group_sums {
    int64_t open;    /* nodes that are neither cordoned nor leaving */
    int64_t ready;   /* of these: Ready; -1: not known */
    int64_t leaving; /* by a mark of anybody's; -1: not known */
    /* Millicores and bytes: what pods on its nodes ask for, without those of DaemonSets and mirror
     * pods; what the open nodes have for pods. */
    int64_t requests[AS_RESOURCE_COUNT], allocatable[AS_RESOURCE_COUNT];
};

struct as_group_seen {
    const char *name; /* of its target in the rule file; borrowed from the rule set */
    struct as_group_sums sums;
    int64_t coming, overdue; /* as in struct as_snapshot_group; -1: not known */
    enum as_reason closed;   /* for growth: why; AS_REASON_SCALED: open, or not known */
};

struct as_pool_seen {      /* of a pool, or of a node group without one */
    bool has_pods;         /* pods and unneeded nodes were asked for: a rule has `fit`, `take` */
    uint64_t pending_pods; /* all that wait, also those with room */
    uint64_t unneeded_nodes;
    size_t group_count;
    struct as_group_seen groups[]; /* of the pool */
};

#endif
