/*
 * Increases of node groups, and of workloads with ready_timeout, that have not arrived yet.
 */
#ifndef ALERTSCALER_SRC_ENGINE_ENGINE_GROWTH_H
#define ALERTSCALER_SRC_ENGINE_ENGINE_GROWTH_H

#include "engine_state.h"

/* How often a growing target is observed, at least. */
#define GROWTH_LOOK_US (15 * AS_US_PER_S)

struct locks { /* of cooldowns, and of a back-off */
    struct as_moment up, down;
    struct as_cooldown cooldown;
};

struct locks growth_get_locks(const struct target *target, as_mono_time now);
void growth_begin(struct as_engine *engine, struct target *target, const struct intent *intent);
void growth_refuse(struct as_engine *engine, struct target *target); /* for lack of capacity */
/* The provider says that what was asked for does not come. True: this is new; to be stored. */
bool growth_hear_shortage(struct as_engine *engine, struct target *target,
                          const struct as_observation *observation);
/* An increase has failed for another reason. To be stored. */
void growth_fail(struct as_engine *engine, struct target *target);
/* Whether the group backs off for it: not where it may still be done, or was only too early. */
bool growth_is_failure(const struct as_scale_result *result);
bool growth_is_backing_off(const struct target *target, as_mono_time now);
/* When the back-off ends; unset: there is none. */
as_maybe_time growth_get_open_at(const struct as_engine *engine, const struct target *target);
/* An increase of a pool's group was in doubt, and the provider has accepted it. To be stored. */
void growth_note_surplus(struct as_engine *engine, struct target *target,
                         const struct intent *intent);
/* Nodes of such increases that are still in the size. */
int32_t growth_get_surplus(const struct target *target);
/* Nodes that another controller has requested do not register. True: the group backs off for them
 * from now on; to be stored. */
bool growth_note_unregistered(struct as_engine *engine, struct target *target, int32_t count);
/* What a refused increase lacks. */
int32_t growth_get_refused(const struct target *target);
/* What is missing cannot be taken back either: it does not block the group any more. */
void growth_give_up(struct as_engine *engine, struct target *target);
bool growth_is_taken_back(const struct target *target, const struct intent *intent);
/* Call it before the target is stored. Returns the message for a taking back, else NULL. `why`: the
 * provider's reason; "" if unknown. */
const char *growth_on_applied(struct as_engine *engine, struct target *target,
                              const struct intent *intent, const char *why);
int64_t growth_get_timeout(const struct target *target); /* of a workload; 0: nobody waits */
/* Instances that serve, or ready pods; where the pods are not known, the pods that there are. */
int32_t growth_count_ready(const struct as_observation *observation);
bool growth_needs_pods(const struct target *target);
int64_t growth_get_look_us(const struct as_engine *engine, const struct target *target);
void growth_forget_pods(struct target *target); /* another object has the name */
bool growth_is_awaited(const struct target *target, const struct as_observation *observation);
/* After an observation. Returns the size to take the group back to, without what did not come; -1:
 * nothing to take back. */
int32_t growth_review(struct as_engine *engine, struct target *target,
                      const struct as_observation *observation);
bool growth_remake(struct as_engine *engine, struct target *target); /* as orders_remake */

#endif
