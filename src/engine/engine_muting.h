/*
 * Time intervals of Alertmanager, as its lists show them.
 */
#ifndef ALERTSCALER_SRC_ENGINE_ENGINE_MUTING_H
#define ALERTSCALER_SRC_ENGINE_ENGINE_MUTING_H

#include "engine_state.h"

/* What a list proves about an alert that fires. */
enum muting {
    MUTING_SENT,    /* Alertmanager sends it, to a receiver that counts */
    MUTING_UNKNOWN, /* neither */
    MUTING_SILENCED /* it is silenced, inhibited, or muted by time */
};

/* A notification for this receiver was received, from a credential that may trigger all rules. */
void muting_note_receiver(struct as_engine *engine, const char *receiver);

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
