/*
 * For which incidents a change was a step.
 */
#ifndef ALERTSCALER_CORE_ENGINE_STEPS_H
#define ALERTSCALER_CORE_ENGINE_STEPS_H

#include "engine/state/engine_state.h"

void steps_count(struct as_engine *engine, struct target *target, const struct intent *intent);

#endif
