/*
 * Another object under the same name.
 */
#ifndef ALERTSCALER_SRC_CORE_ENGINE_TARGETS_ENGINE_OBJECTS_H
#define ALERTSCALER_SRC_CORE_ENGINE_TARGETS_ENGINE_OBJECTS_H

#include "engine/state/engine_state.h"

/* Before anything is made of an observation. What belongs to another object of the name is dropped,
 * recorded and committed. */
void object_see(struct as_engine *engine, struct target *target, const char *uid);

#endif
