/*
 * Node groups of the restored state, whose nodes may have our marks.
 */
#ifndef ALERTSCALER_SRC_ENGINE_ENGINE_LEAVE_H
#define ALERTSCALER_SRC_ENGINE_ENGINE_LEAVE_H

#include "engine_state.h"

/* Call it at the start, after rules are bound and before targets are forgotten. */
void leave_on_start(struct as_engine *engine);

#endif
