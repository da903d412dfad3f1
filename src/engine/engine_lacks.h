/*
 * Since when rules with `fallback` lack their values, of each rule on a target.
 */
#ifndef ALERTSCALER_SRC_ENGINE_ENGINE_LACKS_H
#define ALERTSCALER_SRC_ENGINE_ENGINE_LACKS_H

#include "engine_decisions.h"
#include "engine_state.h"

/* Tells the proposals what their rules fall back to, and since when they lack their values. */
void lacks_fill(struct as_engine *engine, const struct target *target, struct proposals *proposals);
/* Begins and ends stretches without a value. True: the target is to be stored. */
bool lacks_note(struct as_engine *engine, struct target *target, const struct proposals *proposals,
                const struct as_proposal_result *results);
/* Forgets those of rules that have no open incident any more. True: the target is to be stored. */
bool lacks_review(struct target *target);
/* When a rule first falls back. */
as_mono_time lacks_get_next_due(const struct as_engine *engine, struct target *target);

void lacks_fill_state(struct as_engine *engine, const struct target *target,
                      struct as_target_state *state);
void lacks_take_state(struct target *target, const struct as_target_state *state);

#endif
