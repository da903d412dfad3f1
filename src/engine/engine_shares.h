/*
 * Shares: what a pool has decided for one of its groups. The group decides and acts by itself, with
 * the share as its only proposal.
 *
 * A share ends when it is applied, when it has failed, or after SHARE_US. It does not end while its
 * request is open, while `after` holds the group, or while a limit over all targets holds an
 * increase. A decrease that such a limit holds, or that still fails after SHARE_US, is decided
 * anew, with a new proof. If an increase fails, the group backs off and its pool decides the rest
 * at once. A share that is not asked for yet ends with the last incident of its rule. Shares are
 * not stored: after a restart, and after new rules, pools decide anew.
 */
#ifndef ALERTSCALER_SRC_ENGINE_ENGINE_SHARES_H
#define ALERTSCALER_SRC_ENGINE_ENGINE_SHARES_H

#include "engine_state.h"

#define SHARE_US      (30 * AS_US_PER_S)
#define SHARE_LOOK_US (5 * AS_US_PER_S) /* how often its group is observed meanwhile */

struct share_terms {
    const char *rule, *decision; /* of the pool; copied */
    int32_t to;
    bool is_up;
    bool is_rest;            /* of what an earlier increase lacks: no step of its own */
    const char *const *take; /* down: names of the nodes that leave; copied */
    size_t take_count;
};

void share_give(struct as_engine *engine, struct target *pool, struct target *group,
                const struct share_terms *terms);

/* Drops the group's share if no incident wants it any more, and it is not asked for yet. */
void share_review(struct as_engine *engine, struct target *group);
/* Ends the pool's shares that are overdue or that no incident wants any more, and returns when the
 * next one is. */
as_mono_time shares_expire(struct as_engine *engine, const struct target *pool);
/* The group is held, and not decided before; the share does not end earlier. */
void share_prolong(struct target *group, as_mono_time until);
/* The group could not be observed. */
void share_on_unseen(struct as_engine *engine, struct target *group, enum as_reason outcome);
/* The group decided to stay at its size. */
void share_on_stay(struct as_engine *engine, struct target *group, enum as_reason reason);

/* The kill switch is set: ends the shares that are not requested yet. Their pools decide anew after
 * its removal, with a new approval where the rule needs it. */
void shares_on_halt(struct as_engine *engine);

bool share_is_of(const struct target *group, const struct intent *intent);
/* Both to be committed with the outcome. `is_short`: a part of the increase will not come. */
void share_on_applied(struct as_engine *engine, struct target *group, const struct intent *intent,
                      bool is_short);
void share_on_failure(struct as_engine *engine, struct target *group, const struct intent *intent,
                      const struct as_scale_result *result);

void shares_drop_all(struct as_engine *engine);

/* An increase of the group did not come, and was taken back: its pool decides anew, now. */
void shares_on_taken_back(struct as_engine *engine, struct target *group);

#endif
