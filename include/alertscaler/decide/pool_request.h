/*
 * What a pool's observation needs to know of its groups, and of what was decided before.
 */
#ifndef ALERTSCALER_DECIDE_POOL_REQUEST_H
#define ALERTSCALER_DECIDE_POOL_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/arena.h>
#include <alertscaler/cluster/survey.h>
#include <alertscaler/decide/target.h>

struct as_nodes_config; /* decide/choose.h */

#define AS_POOL_MEMBERS_MAX 1000 /* groups of one request */

/* Looks that are further apart do not count as one unbroken row: what was unneeded is counted
 * anew. */
#define AS_UNNEEDED_GAP_US (5 * AS_US_PER_MIN)

/* A node group as the engine sees it, for the survey of its pool. */
struct as_pool_member {
    const struct as_target_ref *ref;
    const char *name; /* of its target in the rule file */
    const struct as_nodes_config *nodes;
    bool is_member;        /* of this pool; else only what is on its way counts */
    int32_t min, max;      /* of the rule file */
    enum as_reason closed; /* for growth: cooldown (a back-off is one), paused, dry_run;
                              AS_REASON_SCALED: open */
    bool is_kept;          /* it must not go down: no node of it leaves */
    bool has_open_growth;  /* an increase of ours is under way */
    int32_t refused;       /* what a refused increase lacks */
    int32_t in_doubt;      /* nodes of an increase whose outcome is unknown */
    as_maybe_time open_at; /* when the back-off ends; unset: there is none */
    bool down_in_doubt;    /* a decrease in the pool has an unknown outcome: no node leaves */
    int32_t surplus;       /* nodes of increases in doubt that the provider has accepted */
    as_maybe_time surplus_since;
    int32_t unregistered; /* nodes of another controller for which it has backed off */
    int32_t last_size;    /* as last observed; 0: never */
};

/* All of it is borrowed for the call that asks. */
struct as_pool_request {
    const struct as_pool_config *config;
    const struct as_pool_member *members; /* of the pool first, in its order; then all other groups
                                             of the cluster */
    size_t member_count;
    int32_t min, max; /* of the pool */
    bool with_fit, with_take;
    const struct as_unneeded *unneeded;
    size_t unneeded_count;
    const struct as_asked *asked;
    size_t asked_count;
    uint64_t seed;
};

/* Memory of the arena, but for addresses and what nodes are configured to be: call the deinit
 * before the arena's. */
void as_pool_request_copy(const struct as_pool_request *request, struct as_arena *arena,
                          struct as_pool_request *copy_out);
void as_pool_request_deinit(struct as_pool_request *copy);

#endif
