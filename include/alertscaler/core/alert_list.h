/*
 * Alertmanager's list of firing alerts: the answer to a resync.
 */
#ifndef ALERTSCALER_CORE_ALERT_LIST_H
#define ALERTSCALER_CORE_ALERT_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/digest.h>
#include <alertscaler/base/time.h>
#include <alertscaler/core/labels.h>

#define AS_ALERT_LIST_MAX 100000 /* alerts; more is a read error */

struct as_listed_alert {
    struct as_digest digest; /* of the labels */
    uint64_t fingerprint;    /* Alertmanager's: for display */
    bool is_suppressed;      /* silenced, inhibited or muted: it fires without notifications */
    as_wall_time starts_at;
    as_wall_time updated_at; /* the last update from Prometheus, by Alertmanager's clock; year 1 if
                                not given */
    const struct as_labels *labels, *annotations;
    const char *const *receivers; /* of the routes that it matches */
    size_t receiver_count;
};

struct as_alert_list {
    const char *error;                    /* NULL: every Alertmanager gave a list; else the error */
    const struct as_listed_alert *alerts; /* ascending by digest, each once */
    size_t count;
    size_t unread;       /* alerts that could not be read: the list is incomplete */
    const char *problem; /* of the first of these alerts; NULL: none */
};

#endif
