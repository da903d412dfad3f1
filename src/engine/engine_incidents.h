/*
 * Incidents: opened, repeated, held, resolved, expired.
 */
#ifndef ALERTSCALER_SRC_ENGINE_ENGINE_INCIDENTS_H
#define ALERTSCALER_SRC_ENGINE_ENGINE_INCIDENTS_H

#include "engine_effects.h"
#include "engine_state.h"

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

/*
 * When the alerts of incidents were last reported as firing.
 */

void news_note_listed(struct as_engine *engine, struct cause *cause, struct incident *incident,
                      const struct as_listed_alert *alert);
/* When a credential that may trigger the rule last reported the alert as firing; INT64_MIN: never
 * since the start. */
as_mono_time news_get(const struct as_engine *engine, const struct binding *binding);

/*
 * Time intervals of Alertmanager, as its lists show them.
 */

/* What a list proves about an alert that fires. */
enum muting {
    MUTING_SENT,    /* Alertmanager sends it, to a receiver that counts */
    MUTING_UNKNOWN, /* neither */
    MUTING_SILENCED /* it is silenced, inhibited, or muted by time */
};

/* Before the alerts of a list, or its error, are handled. */
void muting_note_list(struct as_engine *engine, const struct as_alert_list *list);

/* The receivers that count are the configured ones (else those that have notified us), and those of
 * the incident if it is open (NULL: none). Sets the receivers that get the alert for certain: in
 * the engine's arena, none unless MUTING_SENT. */
enum muting muting_judge(struct as_engine *engine, const struct as_listed_alert *alert,
                         const struct incident *incident, const char *const **receivers_out,
                         size_t *count_out);

void muting_deinit(struct as_engine *engine);

#endif
