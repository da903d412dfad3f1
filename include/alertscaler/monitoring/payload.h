/*
 * Alertmanager's webhook payload, "version": "4", in all its historic forms, and Grafana's
 * superset. Unknown members are ignored; null counts as absent. Required: version (any text),
 * alerts, and in each alert status, labels and startsAt. An alert that lacks one of these, has a
 * member of the wrong type or exceeds a limit has a `problem` and nothing else; the other alerts
 * are accepted.
 */
#ifndef ALERTSCALER_MONITORING_PAYLOAD_H
#define ALERTSCALER_MONITORING_PAYLOAD_H

#include <stddef.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/error.h>
#include <alertscaler/decide/notification.h>

/*
 * Reads a body (any bytes, needs no NUL). 0 and a notification; what comes from the request (id,
 * remote, credential, traceparent, body_*) is left empty or zero. -EINVAL: no such payload; the
 * error is one line for the sender's log: line and column if it is not JSON, else a path as in
 * `alerts: expected an array, got a number`. Problems of alerts are texts like
 * `alerts[3].labels.severity: expected a string, got a number`; more than AS_PAYLOAD_INVALID_MAX of
 * them are -EINVAL too. -ENOMEM: out of memory.
 *
 * The receiver's name is un-quoted. The digest of its labels identifies an alert; the fingerprint
 * is only for display: 16 hex digits are kept, else it is computed. A URL that cannot become a link
 * is dropped.
 */
int as_payload_decode(const char *body, size_t size, struct as_notification **notification_out,
                      struct as_error *error) AS_MUST_USE;

/* Appends the payload that Alertmanager would send, with its trailing newline. Members that a
 * notification does not store are made up: the only group label is the common alertname. */
void as_payload_encode(const struct as_notification *notification, struct as_buf *out);

#endif
