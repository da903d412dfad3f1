/*
 * Which target waits for which others.
 */
#ifndef ALERTSCALER_SRC_CORE_ENGINE_TARGETS_ENGINE_AFTER_H
#define ALERTSCALER_SRC_CORE_ENGINE_TARGETS_ENGINE_AFTER_H

#include "engine/state/engine_state.h"

bool after_must_wait(struct as_engine *engine, struct target *target);
void after_release(struct as_engine *engine, struct target *target);
void after_forget(struct as_engine *engine, struct target *target);

#endif
