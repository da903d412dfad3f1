/*
 * The webhook: from an HTTP request to a durable notification and its answer.
 *
 * `200` is sent after the notification is durable, never before. If it cannot be made durable, the
 * answer is `503` and nothing is kept, so that Alertmanager sends it again.
 */
#ifndef ALERTSCALER_RUNTIME_RECEIVER_H
#define ALERTSCALER_RUNTIME_RECEIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/random.h>
#include <alertscaler/http/server.h>
#include <alertscaler/port/clock.h>
#include <alertscaler/runtime/metrics.h>
#include <alertscaler/runtime/shell.h>

#include <alertscaler/auth/auth.h>
#include <alertscaler/runtime/decoded.h>
#include <alertscaler/runtime/waiting.h>

#define AS_RECEIVER_HANDLER "webhook" /* the handler's name in metrics and logs */

struct as_receiver;

struct as_receiver_config {
    const struct as_clock *clock;
    struct as_metrics *metrics;
    struct as_auth *auth;
    struct as_waiting *waiting;
    uint64_t seed;
};

struct as_receiver *as_receiver_new(const struct as_receiver_config *config) AS_MUST_USE;
struct as_receiver *as_receiver_free(struct as_receiver *receiver);

/* Both are borrowed. Without a shell every request is answered 503 with `why` (static memory). */
void as_receiver_set_shell(struct as_receiver *receiver, struct as_shell *shell,
                           struct as_storage *storage, const char *why);

/* Bytes of memory for the cache (decoded.h), and the number of connections, each of which can wait
 * for the disk; both 0 until set. */
void as_receiver_set_limits(struct as_receiver *receiver, size_t cache, unsigned connections);
struct as_decoded_counts as_receiver_get_cache(const struct as_receiver *receiver);

/* Whether a notification can be accepted now; false if it has answered 503. */
bool as_receiver_check(struct as_receiver *receiver, struct as_http_exchange *exchange) AS_MUST_USE;
void as_receiver_handle(struct as_receiver *receiver, struct as_http_exchange *exchange);
/* For a POST to another path: tells the sender and, throttled, the log where to send
 * notifications. */
void as_receiver_refuse_path(struct as_receiver *receiver, struct as_http_exchange *exchange,
                             const char *prefix);
void as_receiver_on_answered(struct as_receiver *receiver, const char *handler, int status);

/* The outcome of a notification: AS_EFFECT_RECORD_NOTIFICATION. */
void as_receiver_on_outcome(struct as_receiver *receiver, uint64_t request,
                            const struct as_notification_record *record);

/* Call about once a second: logs the number of refused bodies since the last time, if due. */
void as_receiver_look(struct as_receiver *receiver);

size_t as_receiver_count_waiting(const struct as_receiver *receiver);

#endif
