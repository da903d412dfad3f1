/*
 * A target's history: its changes and recommendations.
 */
#ifndef ALERTSCALER_SRC_ENGINE_ENGINE_HISTORY_H
#define ALERTSCALER_SRC_ENGINE_ENGINE_HISTORY_H

#include "engine_state.h"

int64_t history_get_span(const struct as_engine *engine); /* of the stored changes */
void history_add_event(struct as_engine *engine, struct target *target, int32_t change);
bool history_add_recommendation(struct as_engine *engine, struct target *target, int32_t replicas);
void history_begin(struct as_engine *engine, struct target *target, int32_t replicas);
void history_fill(struct as_engine *engine, const struct target *target,
                  struct as_decide_input *input);

/*
 * Which incidents a change was a step of.
 */

void steps_count(struct as_engine *engine, struct target *target, const struct intent *intent);

#endif
