/*
 * Incidents: opened, repeated, held, resolved, expired.
 */
#ifndef ALERTSCALER_SRC_ENGINE_ENGINE_INCIDENTS_H
#define ALERTSCALER_SRC_ENGINE_ENGINE_INCIDENTS_H

#include "engine_effects.h"

/* Alertmanager lists the alert of an open incident. Nothing else changes. */
void incident_see_listed(struct as_engine *engine, struct cause *cause, struct incident *incident,
                         bool is_suppressed);
/* The alert fires. */
struct as_alert_outcome incident_see(struct as_engine *engine, struct cause *cause,
                                     const struct as_listed_alert *alert);
/* The alert of an open incident has stopped firing. */
void incident_close(struct as_engine *engine, struct cause *cause, struct incident *incident,
                    as_wall_time starts_at);
void incidents_handle(struct as_engine *engine, const struct as_notification *notification,
                      uint64_t request);
void incidents_expire(struct as_engine *engine);
as_mono_time incidents_get_deadline(const struct as_engine *engine);

#endif
