/*
 * Makes the survey of a pool (survey.h) from the facts of its cluster: what docs/pools.md and
 * docs/nodes.md say, up to the point where groups are compared. Pure, in slices.
 *
 * Pods that the scheduler called Unschedulable, those nominated, and those of leaving nodes are
 * first placed on all open Ready nodes of the cluster. Only then is the survey cut to its limits.
 */
#ifndef ALERTSCALER_CLUSTER_SURVEY_MAKE_H
#define ALERTSCALER_CLUSTER_SURVEY_MAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/arena.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/cluster/survey.h>

struct as_survey_member { /* one node group of the cluster, as the engine and its provider see it */
    const char *name, *id; /* of its target */
    bool is_member, is_balanced;
    int32_t size, min, max; /* size -1: could not be read; `message` says why */
    const char *message;
    enum as_reason closed; /* by the engine: cooldown, paused, dry_run; AS_REASON_SCALED: open */
    bool is_kept;          /* by the engine: it must not go down */
    bool chooses_itself;   /* which instances leave */
    bool in_progress;      /* the provider's own change */
    bool has_open_growth;  /* an increase of ours is under way: in_progress does not close it */
    int32_t refused;       /* what a refused increase lacks */
    int32_t in_doubt;      /* nodes of an increase whose outcome is unknown */
    int32_t unregistered;  /* that another controller has requested, too long ago */
    int32_t backed_off;    /* nodes of these for which the group has backed off already */
    int32_t surplus;       /* nodes of increases in doubt that were accepted */
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

struct as_survey_request {
    const struct as_cluster *cluster;
    const struct as_survey_member *members; /* of the pool first, in its order; then all others */
    size_t member_count;
    const struct as_pool_config *config;
    const struct as_unneeded *unneeded; /* remembered from the last decision */
    size_t unneeded_count;
    const struct as_asked *asked;
    size_t asked_count;
    uint64_t seed;
    as_wall_time now;
};

struct as_survey_work;

/* Borrows the request and the cluster until the survey is not used any more; memory of the arena.
 */
struct as_survey_work *as_survey_begin(const struct as_survey_request *request,
                                       struct as_arena *arena) AS_MUST_USE;
/* Works for about `fits` (node_pack.h). True: done, `survey_out` is set. */
bool as_survey_step(struct as_survey_work *work, uint64_t fits, struct as_survey *survey_out);
/* What a new node of a member is like, with all its labels: the survey only has labels that some
 * pod reads. Once the survey is done. */
const struct as_node_template *as_survey_get_template(const struct as_survey_work *work,
                                                      size_t member);

#endif
