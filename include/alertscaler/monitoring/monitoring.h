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
#include <alertscaler/base/time.h>
#include <alertscaler/login/login_env.h>
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
    /* An answer shows the server's verdict about a query of `query`: accepted, or refused by a 4xx
     * with a text. `written`: the query in the rule file. May be NULL; has the same context. */
    void (*judged)(void *context, const char *written, enum as_query_verdict verdict,
                   const char *error);
    void *observer_context;
    /* For logins: */
    struct as_process_runner *runner;
    const char *(*get_variable)(const char *name); /* as getenv */
};

/* For the `http_config` of a server. */
static inline struct as_login_env as_source_env_get_login(const struct as_source_env *env)
{
    return (struct as_login_env){env->http, env->loop, env->runner, env->clock, env->get_variable};
}

/* Copies env, borrows the settings and what env points to. End it with the port's close, but not
 * from a callback. */
struct as_source_port *as_monitoring_new(const struct as_settings *settings,
                                         const struct as_source_env *env) AS_MUST_USE;

/*
 * Every limit of the source adapters, in one place.
 */

/* Size of an answer, in bytes. */
#define AS_QUERY_RESPONSE_MAX        ((size_t)16 * 1024 * 1024)
#define AS_ALERT_LIST_RESPONSE_MAX   ((size_t)64 * 1024 * 1024)
#define AS_ALERT_STATUS_RESPONSE_MAX ((size_t)4 * 1024 * 1024) /* with the configuration */

/* Time for one query that is only parsed, unless the time of a query is shorter. */
#define AS_PARSE_TIMEOUT_US (10 * AS_US_PER_S)

/* Time for one list, and as much for the status of its Alertmanager. The time of a query is
 * configured. */
#define AS_ALERT_LIST_TIMEOUT_US (10 * AS_US_PER_S)

/* How long an alert must have been unmuted until it is certain that Alertmanager sends it:
 * group_wait + group_interval of its route, and as much more; or if they are not known. */
#define AS_ALERT_WAIT_MARGIN_US  AS_US_PER_MIN
#define AS_ALERT_WAIT_UNKNOWN_US (6 * AS_US_PER_MIN)

/* A message to a receiver of `notify`: its time, and how much of the answer is read. */
#define AS_MESSAGE_TIMEOUT_US   (10 * AS_US_PER_S)
#define AS_MESSAGE_RESPONSE_MAX ((size_t)64 * 1024)

#endif
