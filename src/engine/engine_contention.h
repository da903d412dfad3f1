/*
 * Sizes of ours that others set back, and the target that is left alone because of them.
 *
 * A set-back: within AS_SET_BACK_WITHIN_US after we set A to B, the size is found changed from B
 * towards A, and no request of ours can have done it. Each change of ours is set back once at most.
 * AS_SET_BACKS_MAX of them within AS_CONTENDED_US make the target `contended` for as long.
 * Of pods that are resized in place the size is the smallest that they ask for; one that asks for
 * the template's is a new pod.
 */
#ifndef ALERTSCALER_SRC_ENGINE_ENGINE_CONTENTION_H
#define ALERTSCALER_SRC_ENGINE_ENGINE_CONTENTION_H

#include <stdbool.h>

#include "engine_state.h"

/* We have set a size; `outcome` is not AS_REASON_APPLIED where that failed in the middle, as with
 * pods that are resized one by one: it is no size then. To be stored with the target. */
void contention_note_own(const struct as_engine *engine, struct target *target,
                         const struct intent *intent, enum as_reason outcome);
/* Our size, if somebody may have set it back. */
void contention_fill_request(const struct as_engine *engine, const struct target *target,
                             struct as_observe_request *request);
/* The target was observed, and no request of ours is in question. Commits what it finds. */
void contention_see(struct as_engine *engine, struct target *target,
                    const struct as_observation *observation);

bool contention_holds(const struct as_engine *engine, const struct target *target);
as_mono_time contention_get_end(const struct target *target); /* NEVER: it is not contended */
/* NULL: it is not contended. */
const struct as_contended_note *contention_note(struct as_engine *engine,
                                                const struct target *target);

/* Ends it once its time is over; commits. */
void contention_review(struct as_engine *engine, struct target *target);
/* Ends it now, and forgets what led to it. To be committed with the target. `why`: static or of the
 * step. */
void contention_end(struct as_engine *engine, struct target *target, const char *why);

/* Until when a target that nothing uses must be remembered for it; INT64_MIN: not at all. */
as_mono_time contention_get_forget_time(const struct target *target);

/* Whether an object was changed between the two. False if either is "" (it has no version), and for
 * a smaller number: the server lacks the last changes, e.g. after a fail-over. */
bool version_is_newer(const char *version, const char *than);

#endif
