/*
 * Another object under the same name.
 */
#ifndef ALERTSCALER_SRC_ENGINE_ENGINE_OBJECTS_H
#define ALERTSCALER_SRC_ENGINE_ENGINE_OBJECTS_H

#include "engine_state.h"

/* Call it before an observation is used. Drops what belongs to the former object; records and
 * commits that. */
void object_see(struct as_engine *engine, struct target *target, const char *uid);

#endif
