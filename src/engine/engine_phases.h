/*
 * How events change a target: evaluated, decided, settled.
 */
#ifndef ALERTSCALER_SRC_ENGINE_ENGINE_PHASES_H
#define ALERTSCALER_SRC_ENGINE_ENGINE_PHASES_H

#include "engine_state.h"

/* The target is idle (again): what next? */
void target_settle_down(struct as_engine *engine, struct target *target);
void target_on_deadline(struct as_engine *engine, struct target *target);
void target_on_observed(struct as_engine *engine, struct target *target,
                        const struct as_observation *observation);
void target_on_queried(struct as_engine *engine, uint64_t ticket,
                       const struct as_query_result *result);
void targets_stop_sampling(struct as_engine *engine); /* at a stop */
/* After new rules: observations go on if they are of use. */
void targets_on_rules(struct as_engine *engine);
/* After new rules: all idle targets. */
void targets_settle(struct as_engine *engine);
/* At the end of a step: what became due in it. */
void targets_evaluate_ready(struct as_engine *engine);

#endif
