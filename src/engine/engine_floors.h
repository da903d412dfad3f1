/*
 * Floors that operators order: until its end, the size of a target does not go below one.
 */
#ifndef ALERTSCALER_SRC_ENGINE_ENGINE_FLOORS_H
#define ALERTSCALER_SRC_ENGINE_ENGINE_FLOORS_H

#include "engine_state.h"

/* Replaces an earlier one. The target is to be stored. */
void floor_set(struct as_engine *engine, struct target *target, const struct as_order *order);

/* Whether the intent is a rule's decrease that ends below the floor. */
bool floor_forbids(const struct as_engine *engine, const struct target *target,
                   const struct intent *intent);
as_mono_time floor_get_end(const struct target *target); /* NEVER: it has none */

void floor_fill_state(struct as_engine *engine, const struct target *target,
                      struct as_target_state *state);
void floor_take_state(struct target *target, const struct as_target_state *state);

#endif
