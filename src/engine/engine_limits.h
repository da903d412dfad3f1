/*
 * Limits on actions and removals over all targets.
 */
#ifndef ALERTSCALER_SRC_ENGINE_ENGINE_LIMITS_H
#define ALERTSCALER_SRC_ENGINE_ENGINE_LIMITS_H

#include "engine_state.h"

void limits_deinit(struct as_engine *engine);
/* True: the change would exceed a limit now; the target waits for its turn. */
bool limits_refuse(struct as_engine *engine, struct target *target, int32_t from, int32_t to);
void limits_note_begun(struct as_engine *engine, struct target *target, int32_t from, int32_t to);
/* With the new size and `in_doubt` in the target: while `in_doubt` is open, nothing has ended. */
void limits_note_ended(struct as_engine *engine, struct target *target, int32_t from, int32_t to,
                       bool applied);
/* When a refused change may fit; AS_MONO_NEVER: not by time alone. */
as_mono_time limits_get_free_time(const struct as_engine *engine, const struct target *target,
                                  int32_t from, int32_t to);
void limits_on_evaluate(struct target *target);
/* The target waits no more, or for something else: its place goes to others. */
void limits_give_up(struct as_engine *engine, struct target *target);
void limits_on_idle(struct as_engine *engine, struct target *target);
void limits_forget(struct as_engine *engine, struct target *target);
void limits_restore(struct as_engine *engine);
void limits_on_rules(struct as_engine *engine, const struct as_limits *old);

#endif
