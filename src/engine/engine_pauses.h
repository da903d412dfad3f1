/*
 * Pauses and the kill switch.
 */
#ifndef ALERTSCALER_SRC_ENGINE_ENGINE_PAUSES_H
#define ALERTSCALER_SRC_ENGINE_ENGINE_PAUSES_H

#include "engine_state.h"

void pause_set(struct as_engine *engine, struct target *target, const struct as_order *order);
void pause_clear(struct as_engine *engine, struct target *target); /* NULL: the pause of all */
/* The pause that holds the target now, in both directions; NULL: none. */
const struct pause *pauses_find(const struct as_engine *engine, const struct target *target);
/* ... in this direction, or in both. */
const struct pause *pauses_find_in(const struct as_engine *engine, const struct target *target,
                                   enum as_ways ways);
const struct as_pause_note *pauses_note(struct as_engine *engine, const struct target *target);
/* Why the intent must not be sent; NULL: it may. Static memory. */
const char *pauses_find_obstacle(const struct as_engine *engine, const struct target *target,
                                 const struct intent *intent);
void pauses_touch_all(struct as_engine *engine, struct waiter *waiter);
/* True: the kill switch was newly set; this is to be committed. */
bool pauses_on_halt(struct as_engine *engine, const struct as_halt *halt);
void pauses_on_deadline(struct as_engine *engine);
void pauses_restore(struct as_engine *engine, struct target *target,
                    const struct as_pause_state *state);

#endif
