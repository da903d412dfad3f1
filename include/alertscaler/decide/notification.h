/*
 * A notification as Alertmanager sent it, already checked: the receiver hands it to the engine.
 */
#ifndef ALERTSCALER_DECIDE_NOTIFICATION_H
#define ALERTSCALER_DECIDE_NOTIFICATION_H

#include <stdbool.h>
#include <stdint.h>

#include <alertscaler/base/digest.h>
#include <alertscaler/base/random.h>
#include <alertscaler/base/time.h>
#include <alertscaler/model/labels.h>

enum as_alert_status { AS_ALERT_FIRING, AS_ALERT_RESOLVED };

struct as_alert {
    char *problem; /* why the alert could not be read, with the place: all else is void, labels are
                      empty. NULL: it was read */
    enum as_alert_status status;
    struct as_digest digest; /* of the labels: the alert's identity */
    uint64_t fingerprint;    /* the sender's: for display, never trusted */
    as_wall_time starts_at;
    as_wall_time ends_at; /* year 1: still firing */
    struct as_labels *labels;
    struct as_labels *annotations;
};

struct as_record_base; /* runtime/shell.h */

/* All texts owned, never NULL ("" where absent). */
struct as_notification {
    char id[AS_ULID_SIZE];
    char *receiver; /* unquoted */
    char *group_key;
    char *reason; /* notification_reason */
    uint64_t truncated;
    struct as_alert *alerts;
    size_t alert_count;
    /* from the request, filled by the receiver */
    char *remote;
    char *credential; /* the credential's name, never its secret */
    char *traceparent;
    char body_sha256[AS_DIGEST_TEXT_SIZE];
    uint64_t body_size;
    struct as_record_base *base; /* of the body; NULL: the body is not remembered */
};

/* Bytes of memory that it uses, without those of the request. */
size_t as_notification_measure(const struct as_notification *notification);
struct as_notification *as_notification_free(struct as_notification *notification);

AS_DEFINE_CLEANUP(struct as_notification *, as_notification_free)

#endif
