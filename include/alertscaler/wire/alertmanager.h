/*
 * Alertmanager's API v2, as far as the list of firing alerts needs it: GET /api/v2/alerts, and the
 * lists of several Alertmanagers as one. The receiver's name stands here as it is configured, not
 * quoted as in webhooks.
 */
#ifndef ALERTSCALER_WIRE_ALERTMANAGER_H
#define ALERTSCALER_WIRE_ALERTMANAGER_H

#include <stddef.h>

#include <alertscaler/base/arena.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>
#include <alertscaler/core/alert_list.h>

#define AS_ALERTMANAGER_ALERTS_PATH "/api/v2/alerts?active=true&silenced=true&inhibited=true"

struct as_alertmanager_alert {
    struct as_listed_alert listed;
};

/* The answer of one Alertmanager, in its order. */
struct as_alertmanager_alerts {
    size_t count;
    struct as_alertmanager_alert *items; /* and all of theirs: owned */
    size_t unread;                       /* alerts that could not be read, beside them */
    const char *problem;                 /* of the first of these; NULL: there is none */
    struct as_arena arena;
};

/*
 * Reads the body of a 200. 0; -EINVAL with an error; -ENOMEM. An alert that cannot be read is left
 * out and counted, with a text that names the place, as in `alerts[3].status.state: expected ...`;
 * more than AS_PAYLOAD_INVALID_MAX of them are -EINVAL too. Unknown members are ignored. An alert
 * is known by the digest of its labels; a fingerprint of 16 hex digits is taken to be shown, else
 * it is computed.
 */
int as_alertmanager_decode_alerts(const char *json, size_t size,
                                  struct as_alertmanager_alerts **alerts_out,
                                  struct as_error *error) AS_MUST_USE;
struct as_alertmanager_alerts *as_alertmanager_alerts_free(struct as_alertmanager_alerts *alerts);

/*
 * One list out of those of all Alertmanagers, ascending by digest, each alert once. Where they
 * tell of the same alert: it is suppressed only where all say so (one that sends is enough to be
 * notified); it started when the first of them says, so that a peer that learned of it later does
 * not make a new incident of it; its receivers are everyone's, ascending, each once; its
 * annotations and `updated_at` are the newest. Borrows from the lists and the arena. More than
 * AS_ALERT_LIST_MAX: only the error is set.
 */
void as_alertmanager_merge(struct as_alertmanager_alerts *const *lists, size_t list_count,
                           struct as_arena *arena, struct as_alert_list *merged_out);

/* Of the body of another status, what it says on one line; "" where it does not say. */
#define AS_ALERTMANAGER_ERROR_SIZE 256
void as_alertmanager_decode_error(const char *json, size_t size,
                                  char text_out[AS_ALERTMANAGER_ERROR_SIZE]);

AS_DEFINE_CLEANUP(struct as_alertmanager_alerts *, as_alertmanager_alerts_free)

#endif
