/*
 * Converts the engine's state: for the store, and back.
 */
#ifndef ALERTSCALER_SRC_ENGINE_ENGINE_STORED_H
#define ALERTSCALER_SRC_ENGINE_ENGINE_STORED_H

#include "engine_state.h"

/* An incident's `seen` is stored when the stored one is older than this part of the expiry. */
#define SEEN_STORE_PART 16

struct as_incident_target binding_get_target(const struct binding *binding);
/* Without progress. */
struct as_incident_state incident_get_state(const struct incident *incident);
/* In the step's memory. */
struct as_incident_state *incident_fill_state(struct as_engine *engine,
                                              const struct incident *incident);
/* With the next serial; not in the tree yet. */
struct incident *incident_of_state(struct as_engine *engine, const struct as_incident_state *state);
struct as_intent_state *intent_fill_state(struct as_engine *engine, const struct target *target,
                                          const struct intent *intent, bool maybe);
void target_take_intent(const struct as_engine *engine, struct target *target,
                        const struct as_intent_state *state);
struct as_pause_state *pause_fill_state(struct as_engine *engine, const struct pause *pause);
struct as_target_state *target_fill_state(struct as_engine *engine, const struct target *target);
/* Only locks, of which the later counts, and the history if the target has none. */
void target_take_locks(struct target *target, const struct as_target_state *state);
/* Before the first event, united with that of another spelling of the target; without its pause. */
void target_take_state(struct as_engine *engine, struct target *target,
                       const struct as_target_state *state);

#endif
