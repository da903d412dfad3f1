/*
 * The work on a snapshot, in phases that follow each other (snapshot.c has their table). A phase
 * works on one item after the other, `at` being the next; it returns once the slice is used up, and
 * goes on from there.
 */
#ifndef ALERTSCALER_SRC_CLUSTER_SNAPSHOT_WORK_H
#define ALERTSCALER_SRC_CLUSTER_SNAPSHOT_WORK_H

#include <alertscaler/cluster/node_pack.h>
#include <alertscaler/cluster/node_sums.h>
#include <alertscaler/cluster/snapshot.h>

#include "snapshot_pod_classes.h"

struct snapshot_group { /* one for each member */
    uint32_t *nodes;    /* indices of the nodes that only this group names; ascending */
    size_t node_count;
    int64_t ready, late; /* without marked ones: Ready; not Ready for longer than ready_timeout */
    int64_t marked;
    enum as_stay
        stay; /* why its nodes stay, whatever they are like; AS_STAY_COUNT: they may leave */
};

struct snapshot_node { /* one for each node of the cluster */
    struct as_node_shape shape;
    struct as_node_room room;        /* of an open Ready node */
    struct as_resources *expendable; /* that of the room */
    uint32_t group;                  /* of the request's members; AS_SNAPSHOT_NO_GROUP */
    bool is_ready;                   /* without a startup taint */
    bool is_receiver;                /* open and Ready: pods may be placed there */
    bool is_starting;
    bool is_candidate;
    enum as_stay stay;                   /* why it is none */
    int64_t requests[AS_RESOURCE_COUNT]; /* without DaemonSet, mirror and expendable pods */
    double utilization;
    struct snapshot_load *load; /* of an eligible node: pods that must find room elsewhere */
    size_t load_count;
};

struct snapshot_load { /* equal pods */
    struct snapshot_pod_class *pod_class;
    uint32_t count;
};

struct snapshot_eligible { /* a node that may leave, as far as it alone is concerned */
    uint32_t node;
    bool is_last;        /* its pods had no room lately */
    as_maybe_time since; /* unneeded */
    double utilization;
    const char *name;
};

struct as_snapshot_work {
    const struct as_snapshot_request *request;
    const struct as_cluster *cluster;
    struct as_arena *arena;
    uint64_t slice; /* fits left of the step */
    size_t phase, at;

    struct as_node_pods pods;
    struct snapshot_group *groups;
    struct as_snapshot_group *shown_groups;
    struct as_node_template *templates; /* of the groups, before their labels are cut */
    struct snapshot_node *nodes;
    struct snapshot_pod_classes pod_classes;

    /* Placing */
    struct snapshot_pod_class **moving,
        **waiting; /* of leaving nodes; pending, as the scheduler tries them */
    size_t moving_count, waiting_count;
    struct as_pack pack;
    uint32_t *receivers; /* indices of nodes, in the order of the pack's runs */
    size_t receiver_count;

    /* Nodes that may leave */
    struct snapshot_eligible *empty, *drained;
    size_t empty_count, drained_count;

    /* What becomes part of the snapshot */
    bool *is_shown;                        /* by node */
    struct snapshot_pod_class **numbered;  /* by number */
    uint32_t number_count, moving_numbers; /* the latter are of pods that may need a place */
    size_t bytes;                          /* that the document still has room for */
    size_t shown_count;
    const char **keys; /* of labels that some pod class reads */
    size_t key_count;
    struct snapshot_roomy *roomy; /* open Ready nodes that are no candidates */
    size_t roomy_count, roomy_share, roomy_of_group, roomy_shown;
    struct as_snapshot_node *shown_nodes;

    struct as_snapshot snapshot;
};

static inline void snapshot_spend(struct as_snapshot_work *work, uint64_t fits)
{
    work->slice -= fits < work->slice ? fits : work->slice;
}

/* Phases: true: done. */
bool snapshot_find_eligible(struct as_snapshot_work *work);
bool snapshot_choose_candidates(struct as_snapshot_work *work);
bool snapshot_cut(struct as_snapshot_work *work); /* numbers the pod classes */
bool snapshot_show_candidates(struct as_snapshot_work *work);
bool snapshot_show_roomy(struct as_snapshot_work *work);
bool snapshot_list_nodes(struct as_snapshot_work *work);
bool snapshot_show_rest(struct as_snapshot_work *work);

/* The pods on a node that must find room elsewhere when it leaves: all but those of DaemonSets,
 * mirror pods, and pods that count as gone. */
bool snapshot_must_move(const struct as_snapshot_work *work, const struct as_pod_fact *pod);
/* Pods of higher priority that may preempt take its room (`pool.expendable_below`). */
static inline bool snapshot_is_expendable(const struct as_snapshot_work *work,
                                          const struct as_pod_class *pod_class)
{
    return pod_class->priority < work->request->config->expendable_below;
}
/* The zone a pod must stay in, as its claims are there; NULL: any. */
const char *snapshot_find_zone(const struct as_node_fact *node,
                               const struct as_pod_class *pod_class);

#endif
