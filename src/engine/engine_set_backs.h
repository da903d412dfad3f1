/*
 * What is remembered of sizes of ours that others set back: in memory, and in the store.
 */
#ifndef ALERTSCALER_SRC_ENGINE_ENGINE_SET_BACKS_H
#define ALERTSCALER_SRC_ENGINE_ENGINE_SET_BACKS_H

#include "engine_state.h"

void contention_clear(struct contention *contention); /* frees what it owns: nothing is known */
void contention_forget_own(struct contention *contention);
/* Copies its texts; the oldest makes room. */
void contention_add(struct contention *contention, const struct as_set_back *set_back);
void contention_drop_oldest(struct contention *contention);
/* In the step's memory. */
const struct as_set_back *contention_copy(struct as_engine *engine,
                                          const struct contention *contention);

void contention_fill_state(struct as_engine *engine, const struct contention *contention,
                           struct as_target_state *state);
/* Of two spellings of a target the later contention counts. */
void contention_take_state(struct contention *contention, const struct as_target_state *state);

#endif
