/*
 * A target's bounds in force: its own, those of its schedules, and those that the other side has.
 * They follow from the wall time of the present event alone, so that a clock that jumps leaves
 * nothing behind.
 */
#ifndef ALERTSCALER_SRC_ENGINE_ENGINE_SCHEDULES_H
#define ALERTSCALER_SRC_ENGINE_ENGINE_SCHEDULES_H

#include "engine_state.h"

/* Fills the bounds of a decision. */
void schedules_fill(struct as_engine *engine, const struct target *target,
                    const struct as_observation *observation, struct as_decide_input *input);

/* After new rules and after a restart: schedules and a floor go on without an alert that names
 * their target anew. */
void schedules_remake(struct as_engine *engine, struct target *target);

/* When the bounds in force change, if the clock does not jump; AS_MONO_NEVER: nothing is known. */
as_mono_time schedules_get_due(const struct as_engine *engine, const struct target *target);

#endif
