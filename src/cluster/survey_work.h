/*
 * The work on a survey, in phases that follow each other (survey.c has their table). A phase
 * works on one item after the other, `at` being the next; it returns once the slice is used up, and
 * goes on from there.
 */
#ifndef ALERTSCALER_SRC_CLUSTER_SURVEY_WORK_H
#define ALERTSCALER_SRC_CLUSTER_SURVEY_WORK_H

#include <alertscaler/cluster/node_pack.h>
#include <alertscaler/cluster/node_sums.h>
#include <alertscaler/cluster/survey.h>

#include "survey_shapes.h"

struct survey_group { /* one for each member */
    uint32_t *nodes;  /* indices of the nodes that only this group names; ascending */
    size_t node_count;
    int64_t ready, late; /* without marked ones: Ready; not Ready for longer than ready_timeout */
    int64_t marked;
    enum as_stay
        stay; /* why its nodes stay, whatever they are like; AS_STAY_COUNT: they may leave */
};

struct survey_node { /* one for each node of the cluster */
    struct as_node_shape shape;
    struct as_node_room room;        /* of an open Ready node */
    struct as_resources *expendable; /* that of the room */
    uint32_t group;                  /* of the request's members; AS_SURVEY_NO_GROUP */
    bool is_ready;                   /* without a startup taint */
    bool is_receiver;                /* open and Ready: pods may be placed there */
    bool is_starting;
    bool is_candidate;
    enum as_stay stay;                   /* why it is none */
    int64_t requests[AS_RESOURCE_COUNT]; /* without DaemonSet, mirror and expendable pods */
    double utilization;
    struct survey_load *load; /* of an eligible node: pods that must find room elsewhere */
    size_t load_count;
};

struct survey_load { /* equal pods */
    struct survey_shape *shape;
    uint32_t count;
};

struct survey_eligible { /* a node that may leave, as far as it alone is concerned */
    uint32_t node;
    bool is_last;        /* its pods had no room lately */
    as_maybe_time since; /* unneeded */
    double utilization;
    const char *name;
};

struct as_survey_work {
    const struct as_survey_request *request;
    const struct as_cluster *cluster;
    struct as_arena *arena;
    uint64_t slice; /* fits left of the step */
    size_t phase, at;

    struct as_node_pods pods;
    struct survey_group *groups;
    struct as_survey_group *shown_groups;
    struct as_node_template *templates; /* of the groups, before their labels are cut */
    struct survey_node *nodes;
    struct survey_shapes shapes;

    /* Placing */
    struct survey_shape **moving,
        **waiting; /* of leaving nodes; pending, as the scheduler tries them */
    size_t moving_count, waiting_count;
    struct as_pack pack;
    uint32_t *receivers; /* indices of nodes, in the order of the pack's runs */
    size_t receiver_count;

    /* Nodes that may leave */
    struct survey_eligible *empty, *drained;
    size_t empty_count, drained_count;

    /* What becomes part of the survey */
    bool *is_shown;                        /* by node */
    struct survey_shape **numbered;        /* by number */
    uint32_t number_count, moving_numbers; /* the latter are of pods that may need a place */
    size_t bytes;                          /* that the document still has room for */
    size_t shown_count;
    const char **keys; /* of labels that some shape reads */
    size_t key_count;
    struct survey_roomy *roomy; /* open Ready nodes that are no candidates */
    size_t roomy_count, roomy_share, roomy_of_group, roomy_shown;
    struct as_survey_node *shown_nodes;

    struct as_survey survey;
};

static inline void survey_spend(struct as_survey_work *work, uint64_t fits)
{
    work->slice -= fits < work->slice ? fits : work->slice;
}

/* Phases: true: done. */
bool survey_find_eligible(struct as_survey_work *work);
bool survey_choose_candidates(struct as_survey_work *work);
bool survey_cut(struct as_survey_work *work); /* numbers the shapes */
bool survey_show_candidates(struct as_survey_work *work);
bool survey_show_roomy(struct as_survey_work *work);
bool survey_list_nodes(struct as_survey_work *work);
bool survey_show_rest(struct as_survey_work *work);

/* The pods on a node that must find room elsewhere when it leaves: all but those of DaemonSets,
 * mirror pods, and pods that count as gone. */
bool survey_must_move(const struct as_survey_work *work, const struct as_pod_fact *pod);
/* Pods of higher priority that may preempt take its room (`pool.expendable_below`). */
static inline bool survey_is_expendable(const struct as_survey_work *work,
                                        const struct as_pod_shape *shape)
{
    return shape->priority < work->request->config->expendable_below;
}
/* The zone a pod must stay in, as its claims are there; NULL: any. */
const char *survey_find_zone(const struct as_node_fact *node, const struct as_pod_shape *shape);

#endif
