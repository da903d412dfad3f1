/*
 * Restores the stored state, before the first event.
 */
#ifndef ALERTSCALER_SRC_ENGINE_ENGINE_RESTORE_H
#define ALERTSCALER_SRC_ENGINE_ENGINE_RESTORE_H

#include "engine_state.h"

void restore_finish(struct as_engine *engine);

#endif
