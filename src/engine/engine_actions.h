/*
 * Intents, results, and requests with unknown outcome.
 */
#ifndef ALERTSCALER_SRC_ENGINE_ENGINE_ACTIONS_H
#define ALERTSCALER_SRC_ENGINE_ENGINE_ACTIONS_H

#include "engine_decisions.h"

void actions_begin(struct as_engine *engine, struct target *target,
                   const struct as_observation *observation, const struct outcome *outcome);
void actions_begin_resize(struct as_engine *engine, struct target *target,
                          const struct as_observation *observation, int32_t to);
void actions_begin_ordered(struct as_engine *engine, struct target *target,
                           const struct as_observation *observation);
void actions_begin_clean_up(struct as_engine *engine, struct target *target,
                            const struct as_observation *observation, int32_t to);
void actions_begin_take_back(struct as_engine *engine, struct target *target,
                             const struct as_observation *observation, int32_t to);
void actions_on_intent(struct as_engine *engine, struct target *target);
void actions_on_scaled(struct as_engine *engine, struct target *target,
                       const struct as_scale_result *result);
void actions_supersede_maybe(struct as_engine *engine, struct target *target, const char *why);
bool actions_settle_maybe(struct as_engine *engine, struct target *target,
                          const struct as_observation *observation);
void actions_give_up_maybe(struct as_engine *engine, struct target *target);
void actions_record_failure(struct as_engine *engine, struct target *target,
                            const struct as_observation *observation);

#endif
