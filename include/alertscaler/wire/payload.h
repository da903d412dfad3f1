/*
 * Alertmanager's webhook payload, "version": "4", in every shape it has had, and Grafana's
 * superset. Unknown members are ignored, a null is as good as absent. Needed: version (a text;
 * which one makes no difference), alerts, and of each alert status, labels and startsAt. An alert
 * without one of these, with a member of the wrong type or beyond a limit has a `problem` and
 * nothing else; the others are taken.
 */
#ifndef ALERTSCALER_WIRE_PAYLOAD_H
#define ALERTSCALER_WIRE_PAYLOAD_H

#include <stddef.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/error.h>
#include <alertscaler/core/notification.h>

/*
 * Reads a body (any bytes, needs no NUL). 0 and a notification with everything but what the request
 * gives (id, remote, credential, traceparent, body_*: empty texts and zeros).
 * -EINVAL: not such a payload; the error is one line for the sender's log: the line and column
 * where it is not JSON, or a path as in `alerts: expected an array, got a number`. Problems of
 * alerts are texts like `alerts[3].labels.severity: expected a string, got a number`; more than
 * AS_PAYLOAD_INVALID_MAX of them are -EINVAL too. -ENOMEM: no memory for it.
 *
 * The receiver's name is un-quoted. An alert is known by the digest of its labels; a
 * fingerprint of 16 hex digits is taken to be shown, else it is computed.
 */
int as_payload_decode(const char *body, size_t size, struct as_notification **notification_out,
                      struct as_error *error) AS_MUST_USE;

/* Appends the payload that Alertmanager would send, with its trailing newline. What a notification
 * does not know is made up: the group's labels are the common alertname. */
void as_payload_encode(const struct as_notification *notification, struct as_buf *out);

#endif
