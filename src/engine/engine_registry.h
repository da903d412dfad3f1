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

#endif
