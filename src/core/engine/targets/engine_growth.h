/*
 * Increases of node groups that have not come yet.
 */
#ifndef ALERTSCALER_SRC_CORE_ENGINE_TARGETS_ENGINE_GROWTH_H
#define ALERTSCALER_SRC_CORE_ENGINE_TARGETS_ENGINE_GROWTH_H

#include "engine/state/engine_state.h"

/* How often a node group that is to grow is looked at. */
#define GROWTH_LOOK_US (15 * AS_US_PER_S)

struct locks { /* of cooldowns, and of a back-off */
    struct as_moment up, down;
    struct as_cooldown cooldown;
};

struct locks growth_get_locks(const struct target *target, as_mono_time now);
void growth_begin(struct as_engine *engine, struct target *target, const struct intent *intent);
void growth_refuse(struct as_engine *engine, struct target *target); /* for want of capacity */
/* What has not come cannot be taken back either: the group is no longer held up by it. */
void growth_give_up(struct as_engine *engine, struct target *target);
bool growth_is_taken_back(const struct target *target, const struct intent *intent);
/* Before the target is stored. What is to be told of a taking back, else NULL. `why` it did not
 * come, in the provider's words; "" where they are not known. */
const char *growth_on_applied(struct as_engine *engine, struct target *target,
                              const struct intent *intent, const char *why);
bool growth_is_awaited(const struct target *target, const struct as_observation *observation);
/* The target is seen. The size that it is to be taken back to, without what has not come; -1: there
 * is nothing to take back. */
int32_t growth_review(struct as_engine *engine, struct target *target,
                      const struct as_observation *observation);
bool growth_remake(struct as_engine *engine, struct target *target); /* as orders_remake */

#endif
