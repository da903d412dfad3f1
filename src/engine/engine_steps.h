/*
 * Which incidents a change was a step of.
 */
#ifndef ALERTSCALER_SRC_ENGINE_ENGINE_STEPS_H
#define ALERTSCALER_SRC_ENGINE_ENGINE_STEPS_H

#include "engine_state.h"

void steps_count(struct as_engine *engine, struct target *target, const struct intent *intent);

#endif
