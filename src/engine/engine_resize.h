/*
 * The last change of a container's resource: a pod template whose rollout is waited for, or pods
 * that were resized in place.
 */
#ifndef ALERTSCALER_SRC_ENGINE_ENGINE_RESIZE_H
#define ALERTSCALER_SRC_ENGINE_ENGINE_RESIZE_H

#include "engine_state.h"

/* The change was applied. Of a put-back or a catch-up it returns what the record says; else NULL.
 */
const char *resize_on_applied(struct as_engine *engine, struct target *target,
                              const struct intent *intent);
bool resize_is_put_back(const struct target *target, const struct intent *intent);
/* Pods that came later get the target's last size: no change of it, and no lock. */
bool resize_is_catch_up(const struct target *target, const struct intent *intent);
bool resize_is_awaited(const struct target *target, const struct as_observation *observation);
/* The size that is to be set without a decision: what was before a rollout that did not end, or the
 * last size where pods came later. -1: none. */
int32_t resize_review(struct as_engine *engine, struct target *target,
                      const struct as_observation *observation);
bool resize_remake(struct as_engine *engine, struct target *target); /* as orders_remake */
/* Another object has the name, or sizes are counted in another unit. To be stored. */
void resize_forget(struct target *target);
/* The workload could not be read. True: to be stored. */
bool resize_on_unseen(struct target *target, enum as_reason outcome);
/* The put-back was refused for good: nobody tries again. */
void resize_give_up(struct as_engine *engine, struct target *target);

#endif
