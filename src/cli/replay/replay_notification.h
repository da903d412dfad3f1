/*
 * A notification again, from its record in the action log.
 */
#ifndef ALERTSCALER_SRC_CLI_REPLAY_REPLAY_NOTIFICATION_H
#define ALERTSCALER_SRC_CLI_REPLAY_REPLAY_NOTIFICATION_H

#include <stdbool.h>

#include <jansson.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/core/notification.h>

#include "replay_scopes.h"

/*
 * Of a `notification`; or of an `incident` that no notification opened or closed, as one with its
 * only alert. What the record lacks is empty. A credential that is known decides again what it may
 * trigger; where it is not, it is left out, and so are the alerts that were forbidden to it.
 */
struct as_notification *replay_notification_make(const json_t *record,
                                                 const struct replay_scopes *scopes) AS_MUST_USE;

/* How many of its alerts were forbidden. */
size_t replay_notification_count_forbidden(const json_t *record);

/* The log has cut a label. */
bool replay_notification_is_cut(const json_t *record);

#endif
