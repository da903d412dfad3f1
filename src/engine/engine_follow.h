/*
 * Did it help? Actions of alerts are followed until their effect is known.
 */
#ifndef ALERTSCALER_SRC_ENGINE_ENGINE_FOLLOW_H
#define ALERTSCALER_SRC_ENGINE_ENGINE_FOLLOW_H

#include "engine_state.h"

/* Whether an open incident of its rule wants the change. */
bool follow_is_of_alert(struct as_engine *engine, struct target *target,
                        const struct intent *intent);
/* The size is set. Call it before the target is stored. */
void follow_begin(struct as_engine *engine, struct target *target, const struct intent *intent);
/* After an observation; commits. */
void follow_see(struct as_engine *engine, struct target *target,
                const struct as_observation *observation);
/* Call it before the incident's bindings are dropped; belongs to the commit of its end. */
void follow_on_end(struct as_engine *engine, const struct incident *incident, bool is_resolved);
void follow_on_deadline(struct as_engine *engine);
as_mono_time follow_get_deadline(const struct as_engine *engine);
/* After new rules or a restart; to be committed. */
void follow_remake(struct as_engine *engine);
/* Another object has the target's name. The target is to be stored. */
void follow_forget_pods(struct as_engine *engine, struct target *target);

/* Whether the rule is held on the target or, as its trials are those of the pool, on its pool. */
bool follow_holds(const struct as_engine *engine, const struct target *target, const char *rule);
/* Ends the target's holds; NULL: those of all targets. True: there were some; to be committed. */
bool follow_release(struct as_engine *engine, struct target *target);

#endif
