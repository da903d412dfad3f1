/*
 * What rules want after an incident was resolved.
 */
#ifndef ALERTSCALER_SRC_ENGINE_ENGINE_ENDINGS_H
#define ALERTSCALER_SRC_ENGINE_ENGINE_ENDINGS_H

#include "engine_state.h"

void endings_begin(struct as_engine *engine, const struct incident *incident);
bool endings_review(struct as_engine *engine, struct target *target, int32_t replicas);
bool ending_get_action(const struct as_engine *engine, const struct ending *ending,
                       int32_t replicas, struct as_action *action_out);
bool endings_finish(struct as_engine *engine, struct target *target,
                    const struct as_decision *decision, bool is_live);
bool ending_is_proven(const struct as_engine *engine, const struct target *target,
                      const struct ending *ending);
as_mono_time endings_get_next_due(const struct as_engine *engine, const struct target *target);
void endings_on_applied(struct as_engine *engine, struct target *target, const char *rule,
                        int32_t from, int32_t to);
bool endings_remake(struct as_engine *engine, struct target *target);
void endings_forget_sizes(struct target *target); /* of give_back: they are another object's */

#endif
