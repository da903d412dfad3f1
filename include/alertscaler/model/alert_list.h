/*
 * Alertmanager's list of firing alerts, with the receivers of their groups: the answer to a resync.
 */
#ifndef ALERTSCALER_MODEL_ALERT_LIST_H
#define ALERTSCALER_MODEL_ALERT_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/digest.h>
#include <alertscaler/base/time.h>
#include <alertscaler/model/labels.h>

#define AS_ALERT_LIST_MAX 100000 /* alerts; more is a read error */

/* Whether time intervals mute the receiver cannot be known. */
#define AS_LISTED_NEVER INT64_MAX

/* A receiver, in whose groups the alert is. */
struct as_listed_route {
    const char *receiver;
    bool is_muted;   /* by time intervals: at one Alertmanager, all these groups are */
    int64_t wait_us; /* the alert must have been unmuted for so long until it is certain that
                        Alertmanager sends it; 0: no time interval mutes the receiver */
};

struct as_listed_alert {
    struct as_digest digest; /* of the labels */
    uint64_t fingerprint;    /* Alertmanager's: for display */
    bool is_suppressed;      /* silenced or inhibited: it fires without notifications */
    bool is_inhibited;       /* at one Alertmanager, which then does not check its time intervals */
    as_wall_time starts_at;
    as_wall_time updated_at; /* the last update from Prometheus, by Alertmanager's clock; year 1 if
                                not given */
    const struct as_labels *labels, *annotations;
    const struct as_listed_route *routes; /* ascending by receiver, each once */
    size_t route_count;
    const char *const *receivers; /* that get it for certain: of a notification, its receiver */
    size_t receiver_count;
};

struct as_alert_list {
    const char *error;                    /* NULL: every Alertmanager gave a list; else the error */
    const struct as_listed_alert *alerts; /* ascending by digest, each once */
    size_t count;
    size_t unread;       /* alerts that could not be read: the list is incomplete */
    const char *problem; /* of the first of these alerts; NULL: none */
    bool is_anew;        /* an Alertmanager has been started since the last list */
    const char *note;    /* why the list may open no incidents; NULL: it may */
};

#endif
