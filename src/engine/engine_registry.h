/*
 * All incidents, and the memory that they use.
 */
#ifndef ALERTSCALER_SRC_ENGINE_ENGINE_REGISTRY_H
#define ALERTSCALER_SRC_ENGINE_ENGINE_REGISTRY_H

#include "engine_state.h"

void room_account(struct as_engine *engine, struct incident *incident); /* after its change */
/* All incidents of one alert: the first, and the next ones; NULL: no more. */
struct incident *incident_find_first(const struct as_engine *engine,
                                     const struct as_digest *digest);
struct incident *incident_find_next(struct incident *incident);
struct incident *incident_find(const struct as_engine *engine, const struct as_digest *digest,
                               const char *owner);
bool incident_has_receiver(const struct incident *incident, const char *receiver);
void incident_insert(struct as_engine *engine, struct incident *incident);
/* Takes the incident out of the tree and the lists. It is freed at the next step, as effects point
 * to it. */
void incident_bury(struct as_engine *engine, struct incident *incident);
size_t room_get_used(const struct as_engine *engine); /* bytes */

/*
 * Several incidents of one alert.
 */

/* What rules have done for `from` counts for `incident` too. Neither is bound now. */
void owners_share_progress(struct incident *incident, const struct incident *from);
/* The same for one binding, from the alert's other incidents. */
void owners_inherit(const struct as_engine *engine, struct binding *binding);
/* After new rules or credentials, while no incident is bound: finds each owner. */
void owners_find(struct as_engine *engine);

#endif
