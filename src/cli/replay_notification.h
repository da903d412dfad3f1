/*
 * Rebuilds a notification from its record in the action log.
 */
#ifndef ALERTSCALER_SRC_CLI_REPLAY_NOTIFICATION_H
#define ALERTSCALER_SRC_CLI_REPLAY_NOTIFICATION_H

#include <stdbool.h>

#include <jansson.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/decide/notification.h>

#include "replay_scopes.h"

/*
 * From a `notification`; or from an `incident` that no notification opened or closed, as a
 * notification with its only alert. Missing members are empty. A known credential's permissions are
 * checked again; an unknown one is left out, with the alerts that it was forbidden to send.
 */
struct as_notification *replay_notification_make(const json_t *record,
                                                 const struct replay_scopes *scopes) AS_MUST_USE;

/* Number of its forbidden alerts. */
size_t replay_notification_count_forbidden(const json_t *record);

/* Whether the log has cut a label. */
bool replay_notification_is_cut(const json_t *record);

#endif
