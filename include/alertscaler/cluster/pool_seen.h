/*
 * Numbers of a look at node groups, for metrics. Decisions do not read them, and decision documents
 * do not have them.
 */
#ifndef ALERTSCALER_CLUSTER_POOL_SEEN_H
#define ALERTSCALER_CLUSTER_POOL_SEEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/model/action.h>
#include <alertscaler/model/reason.h>

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
    int64_t coming, overdue; /* as in struct as_survey_group; -1: not known */
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
