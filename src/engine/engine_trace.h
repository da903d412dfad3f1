/*
 * The trace: one line for each event, each change of a target's state and each effect, through the
 * callback of the engine's configuration. Without the callback the calls cost one comparison.
 */
#ifndef ALERTSCALER_SRC_ENGINE_ENGINE_TRACE_H
#define ALERTSCALER_SRC_ENGINE_ENGINE_TRACE_H

#include "engine_state.h"

/* Before the event is handled. */
void trace_event(struct as_engine *engine, const struct as_event *event);

/* Before the target leaves its phase. */
void trace_phase(struct as_engine *engine, const struct target *target, enum phase next);

/* The effects of the step, in order. */
void trace_effects(struct as_engine *engine);

#endif
