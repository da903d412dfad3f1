/*
 * Alertmanager's API v2, as far as the list of firing alerts needs it: GET /api/v2/alerts, and the
 * merge of several Alertmanagers' lists. Receivers have their configured names here; webhooks send
 * them quoted.
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
    struct as_alertmanager_alert *items; /* with all they point to; owned */
    size_t unread;                       /* alerts left out because they could not be read */
    const char *problem;                 /* of the first unread alert; NULL: all were read */
    struct as_arena arena;
};

/*
 * Reads the body of a 200. 0; -EINVAL with an error; -ENOMEM. An unreadable alert is left out and
 * counted, with a text that names the place, as in `alerts[3].status.state: expected ...`; more
 * than AS_PAYLOAD_INVALID_MAX of them are -EINVAL. Unknown members are ignored. The digest of its
 * labels identifies an alert; the fingerprint is only for display: 16 hex digits are kept, else it
 * is computed.
 */
int as_alertmanager_decode_alerts(const char *json, size_t size,
                                  struct as_alertmanager_alerts **alerts_out,
                                  struct as_error *error) AS_MUST_USE;
struct as_alertmanager_alerts *as_alertmanager_alerts_free(struct as_alertmanager_alerts *alerts);

/*
 * Merges the lists of all Alertmanagers, ascending by digest, each alert once. If several list the
 * same alert: it is suppressed only if all say so (one sender is enough to notify); the earliest
 * start counts, so that a peer that learned of it later does not cause a new incident; the
 * receivers of all are united, ascending; annotations and `updated_at` are the newest. Borrows from
 * the lists and the arena. More than AS_ALERT_LIST_MAX: only the error is set.
 */
void as_alertmanager_merge(struct as_alertmanager_alerts *const *lists, size_t list_count,
                           struct as_arena *arena, struct as_alert_list *merged_out);

/* The error of another status' body, on one line; "" if it has none. */
#define AS_ALERTMANAGER_ERROR_SIZE 256
void as_alertmanager_decode_error(const char *json, size_t size,
                                  char text_out[AS_ALERTMANAGER_ERROR_SIZE]);

AS_DEFINE_CLEANUP(struct as_alertmanager_alerts *, as_alertmanager_alerts_free)

#endif
