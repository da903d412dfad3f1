/*
 * Worlds with a cluster whose node groups are scaled for its pods (pools.c), and what is promised
 * of them (check_pools.c).
 */
#ifndef ALERTSCALER_TESTS_SIM_POOLS_H
#define ALERTSCALER_TESTS_SIM_POOLS_H

#include "../support/fleet.h"
#include "sim.h"

#define FACTS_FRESH_US (2 * MINUTE) /* after the last word of the watch, from docs/nodes.md */

enum mood { /* of a node group's provider */
            MOOD_WELL,
            MOOD_REFUSES, /* for lack of capacity, like the next two */
            MOOD_SILENT,  /* accepts, and nothing comes */
            MOOD_TELLS,   /* likewise, and says why when it is asked */
            MOOD_FAILS,   /* it can be read, but requests fail or stay in doubt */
            MOOD_BROKEN,  /* instances never become nodes */
            MOOD_UNREADABLE,
            MOOD_COUNT
};

struct pools {
    struct fleet fleet;                 /* as it is */
    struct fleet facts;                 /* as the watch of the cluster tells */
    struct fleet looked, looked_before; /* the facts of the last two looks of a pool */
    int64_t facts_at;
    bool is_stale, is_cut_off; /* the watch has stopped; the API server is away */
    enum mood moods[FLEET_GROUPS];
    int64_t mood_at[FLEET_GROUPS];
    int lacking; /* this group stays without capacity in the calm; -1: none does */
    struct as_matcher watchdog;

    /* For the checks. */
    int64_t disturbed_at; /* others, or what was put back, changed a size */
    int64_t looked_at;    /* INT64_MIN: never */
    /* The most instances of a group that never became nodes, by its provider, at a look of the last
     * 30 seconds: so long a pool's decision to remove them holds. */
    int32_t unregistered[FLEET_GROUPS];
    int64_t unregistered_at[FLEET_GROUPS];
    int64_t heard_at; /* a watchdog's firing reached the daemon */
    int64_t calm_at;  /* 0: not yet */
    int64_t taken_at[FLEET_GROUPS];
    unsigned turns; /* in the calm: nodes are bought again after some have left */
};

void check_pools_look(struct world *world);
void check_pools_plan(struct world *world, const struct pool_look *look);
void check_pools_growth(struct world *world, const struct server_target *target,
                        const struct as_scale_request *request); /* where it arrives */
void check_pools_take(struct world *world, const struct server_target *target,
                      const struct as_scale_request *request);
void check_pools_clean_up(struct world *world, const struct server_target *target,
                          const struct as_scale_request *request);
void check_pools_applied(struct world *world, const struct server_target *target,
                         const struct as_scale_request *request);
void check_pools_leave(struct world *world, const struct fleet_node *node); /* it is deleted now */
void check_pools_calm(struct world *world);                                 /* it begins */

#endif
