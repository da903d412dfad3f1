/*
 * A notification again, from its record in the action log.
 */
#ifndef ALERTSCALER_CLI_REPLAY_NOTIFICATION_PRIVATE_H
#define ALERTSCALER_CLI_REPLAY_NOTIFICATION_PRIVATE_H

#include <stdbool.h>

#include <jansson.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/core/notification.h>

/* Of a `notification`; or of an `incident` that no notification opened or closed, as one with its
 * only alert. What the record lacks is empty. */
struct as_notification *replay_notification_make(const json_t *record) AS_MUST_USE;

/* The log has cut a label. */
bool replay_notification_is_cut(const json_t *record);

#endif
