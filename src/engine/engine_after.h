/*
 * Which target waits for which others, by `after`.
 */
#ifndef ALERTSCALER_SRC_ENGINE_ENGINE_AFTER_H
#define ALERTSCALER_SRC_ENGINE_ENGINE_AFTER_H

#include "engine_state.h"

/* True: the target must not be evaluated now; it has a deadline, or is made ready before. */
bool after_must_wait(struct as_engine *engine, struct target *target);
/* The target has decided to decrease. For which target it waits; NULL: for none. It is made ready
 * when that one has settled, and must be looked at again at `until_out`. */
const struct target *after_hold_decrease(struct as_engine *engine, struct target *target,
                                         as_mono_time *until_out);
/* The name of the target that it waits for; NULL: none. */
const char *after_get_blocker(const struct target *target);
void after_release(struct as_engine *engine, struct target *target);
void after_forget(struct as_engine *engine, struct target *target);

#endif
