/*
 * Source adapter: sends queries to the Prometheus of the settings, and reads the firing alerts from
 * all their Alertmanagers in parallel. A service that is not configured answers with an error.
 *
 * Every error is one line for a person, of less than AS_QUERY_ERROR_MAX bytes. It says which
 * service could not be asked, and why.
 */
#ifndef ALERTSCALER_MONITORING_MONITORING_H
#define ALERTSCALER_MONITORING_MONITORING_H

#include <stdint.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/port/clock.h>
#include <alertscaler/port/http.h>
#include <alertscaler/port/source.h>
#include <alertscaler/rules/settings.h>

struct as_source_env {
    struct as_http *http;
    struct as_loop *loop;
    const struct as_clock *clock;
    /*
     * For metrics: a request has ended. `source` is "prometheus" or "alertmanager"; the outcome is
     * "ok", "no_data", "unusable" (several series, not a finite number, warnings, ...), "refused"
     * (an HTTP status, `status: error`), "invalid", "too_large", "timeout" or "unreachable". May be
     * NULL.
     */
    void (*observer)(void *context, const char *source, const char *outcome, int64_t duration_us);
    void *observer_context;
};

/* Copies env, borrows the settings and what env points to. End it with the port's close, but not
 * from a callback. */
struct as_source_port *as_monitoring_new(const struct as_settings *settings,
                                         const struct as_source_env *env) AS_MUST_USE;

#endif
