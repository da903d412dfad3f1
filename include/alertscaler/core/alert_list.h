/*
 * What Alertmanager says is firing: the answer to a resync.
 */
#ifndef ALERTSCALER_CORE_ALERT_LIST_H
#define ALERTSCALER_CORE_ALERT_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/digest.h>
#include <alertscaler/base/time.h>
#include <alertscaler/core/labels.h>

#define AS_ALERT_LIST_MAX 100000 /* alerts; more is an error of the reading */

struct as_listed_alert {
    struct as_digest digest; /* of the labels */
    uint64_t fingerprint;    /* as Alertmanager says: shown */
    bool is_suppressed;      /* silenced, inhibited or muted: it fires, and nobody is notified */
    as_wall_time starts_at;
    as_wall_time updated_at; /* when Prometheus last told it, by Alertmanager's clock; year 1 where
                                not said */
    const struct as_labels *labels, *annotations;
    const char *const *receivers; /* that its routes lead to */
    size_t receiver_count;
};

struct as_alert_list {
    const char *error; /* NULL: there is a list of every Alertmanager; else why not */
    const struct as_listed_alert *alerts; /* ascending by digest, each once */
    size_t count;
    size_t unread;       /* alerts that could not be read: the list does not name all that fires */
    const char *problem; /* why not, of the first of them; NULL: there is none */
};

#endif
