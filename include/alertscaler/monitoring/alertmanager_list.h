/*
 * Alertmanager's API v2, as far as the list of firing alerts needs it: GET /api/v2/alerts/groups,
 * GET /api/v2/status, and the merge of several Alertmanagers' lists. Receivers have their
 * configured names here; webhooks send them quoted.
 */
#ifndef ALERTSCALER_MONITORING_ALERTMANAGER_LIST_H
#define ALERTSCALER_MONITORING_ALERTMANAGER_LIST_H

#include <stddef.h>

#include <alertscaler/base/arena.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>
#include <alertscaler/model/source.h>

#define AS_ALERTMANAGER_GROUPS_PATH "/api/v2/alerts/groups?active=true&silenced=true&inhibited=true"
#define AS_ALERTMANAGER_STATUS_PATH "/api/v2/status"

struct as_alertmanager_alert {
    struct as_listed_alert listed;
    struct as_listed_route *routes; /* those of `listed`: the caller sets `wait_us` */
};

/* The answer of one Alertmanager, in its order. */
struct as_alertmanager_alerts {
    size_t count;
    struct as_alertmanager_alert *items; /* each once, with all they point to; owned */
    size_t unread;                       /* alerts left out because they could not be read */
    const char *problem;                 /* of the first unread alert; NULL: all were read */
    bool is_muting_unknown; /* no `mutedBy` in an alert's status: Alertmanager before 0.28 */
    struct as_arena arena;
};

/*
 * Reads the groups in the body of a 200. 0; -EINVAL with an error; -ENOMEM. An unreadable alert is
 * left out and counted, with a text that names the place, as in `alerts[3].status.state: expected
 * ...` (the number counts the alerts of all groups); more than AS_PAYLOAD_INVALID_MAX of them are
 * -EINVAL, as is an unreadable group. Unknown members are ignored. The digest of its labels
 * identifies an alert, which may be in several groups; the fingerprint is only for display: 16 hex
 * digits are kept, else it is computed. A route is muted if all groups of its receiver are, that
 * have the alert.
 */
int as_alertmanager_decode_groups(const char *json, size_t size,
                                  struct as_alertmanager_alerts **alerts_out,
                                  struct as_error *error) AS_MUST_USE;
struct as_alertmanager_alerts *as_alertmanager_alerts_free(struct as_alertmanager_alerts *alerts);

/*
 * Merges the lists of all Alertmanagers, ascending by digest, each alert once. If several list the
 * same alert: it is suppressed only if all say so (one sender is enough to notify); it is
 * inhibited, and a route is muted, if one says so (its mark may be the newest), and the longest
 * wait counts; the earliest start counts, so that a peer that learned of it later does not cause a
 * new incident; the routes of all are united, ascending; annotations and `updated_at` are the
 * newest. Borrows from the lists and the arena. More than AS_ALERT_LIST_MAX: only the error is set.
 */
void as_alertmanager_merge(struct as_alertmanager_alerts *const *lists, size_t list_count,
                           struct as_arena *arena, struct as_alert_list *merged_out);

struct as_alertmanager_status { /* in the arena */
    const char *config;         /* YAML; its secrets are masked */
    size_t config_size;
    const char *uptime; /* when it was started; "" if not given */
};

/* Reads the body of a 200. 0; -EINVAL with an error, also without a configuration. */
int as_alertmanager_decode_status(const char *json, size_t size, struct as_arena *arena,
                                  struct as_alertmanager_status *status_out,
                                  struct as_error *error) AS_MUST_USE;

/* The error of another status' body, on one line; "" if it has none. */
#define AS_ALERTMANAGER_ERROR_SIZE 256
void as_alertmanager_decode_error(const char *json, size_t size,
                                  char text_out[AS_ALERTMANAGER_ERROR_SIZE]);

AS_DEFINE_CLEANUP(struct as_alertmanager_alerts *, as_alertmanager_alerts_free)

#endif
