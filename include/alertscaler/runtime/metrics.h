/*
 * The metrics of /metrics: counts events, reads present values, prints both. docs/metrics.md
 * describes each for users.
 *
 * Label values are our own words, names from the configuration, or bounded in number: beyond a
 * family's bound they are counted under "other". Label values of alerts are never used. Counting
 * something for the second time does not allocate.
 */
#ifndef ALERTSCALER_RUNTIME_METRICS_H
#define ALERTSCALER_RUNTIME_METRICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/engine/engine.h>
#include <alertscaler/notify/notifier.h>
#include <alertscaler/runtime/view.h>

struct as_metrics;

enum as_notification_result {
    AS_NOTIFICATION_OK,          /* 200 */
    AS_NOTIFICATION_INVALID,     /* 400, 405, 413, ...: the sender's fault */
    AS_NOTIFICATION_DENIED,      /* 401, 403 */
    AS_NOTIFICATION_UNAVAILABLE, /* 503 */
    AS_NOTIFICATION_RESULT_COUNT
};

struct as_metrics *as_metrics_new(void) AS_MUST_USE;
struct as_metrics *as_metrics_free(struct as_metrics *metrics);

/* Counts what is recorded: alerts, decisions, actions. Other effects are ignored. */
void as_metrics_on_effect(struct as_metrics *metrics, const struct as_effect *effect);
void as_metrics_on_notification(struct as_metrics *metrics, enum as_notification_result result);
/* For as_http_handler.answered; `handler` is static memory, "" counts as "other". */
void as_metrics_on_http(struct as_metrics *metrics, const char *handler, int status,
                        int64_t duration_us);
/* For as_http_handler.dropped. */
void as_metrics_on_http_drop(struct as_metrics *metrics, const char *reason);
/* So many reviews of policies were answered more; 0 makes the series. `outcome` has few values. */
void as_metrics_on_admission(struct as_metrics *metrics, const char *outcome, uint64_t count);
/* The certificate of the admission webhook is in use; `expiry` in seconds since the epoch. */
void as_metrics_on_admission_certificate(struct as_metrics *metrics, int64_t expiry);
/* For as_policy_definition_read_fn. */
void as_metrics_on_policy_definition(struct as_metrics *metrics, bool is_older);
/* For as_http_client_observer_fn. */
void as_metrics_on_client(struct as_metrics *metrics, const char *client_name,
                          const char *operation, const char *code, int64_t duration_us);
/* A request to monitoring; both texts have few values. */
void as_metrics_on_source(struct as_metrics *metrics, const char *source, const char *outcome,
                          int64_t duration_us);
/* For as_storage_callbacks.committed. */
void as_metrics_on_commit(struct as_metrics *metrics, int64_t duration_us, size_t batches,
                          size_t records, size_t log_bytes, as_wall_time now);
/* So many notices more; 0 makes the series. */
void as_metrics_on_notice(struct as_metrics *metrics, const char *receiver,
                          enum as_notifier_count what, uint64_t count);
/* For as_auth_config.proxy_ignored. */
void as_metrics_on_proxy_ignored(struct as_metrics *metrics);
/* After loading the configuration, at start too. */
void as_metrics_on_reload(struct as_metrics *metrics, bool ok, as_wall_time now);

/* Appends the exposition: Prometheus' text format 0.0.4, or OpenMetrics 1.0.0. */
enum as_metrics_format { AS_METRICS_TEXT, AS_METRICS_OPENMETRICS };
void as_metrics_print(struct as_metrics *metrics, const struct as_view *view,
                      enum as_metrics_format format, struct as_buf *out);

/* The format for a client with this Accept header (NULL: none), and its content type. */
enum as_metrics_format as_metrics_choose_format(const char *accept);
const char *as_metrics_get_content_type(enum as_metrics_format format);

AS_DEFINE_CLEANUP(struct as_metrics *, as_metrics_free)

#endif
