/*
 * The HTTP client behind port/http.h: curl's multi interface, driven by libevent
 * (multi_socket_action). At most 64 calls run against one origin at a time, and more of the other
 * classes (port/http.h). Further calls wait in a fair queue (base/fair_queue.h), and the wait
 * counts against their time limit. TLS 1.2 at least; HTTP/2 where TLS negotiates it.
 *
 * The process must ignore SIGPIPE. Do not free the client from inside a `done` callback.
 */
#ifndef ALERTSCALER_HTTP_CLIENT_H
#define ALERTSCALER_HTTP_CLIENT_H

#include <stdint.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/time.h>
#include <alertscaler/port/http.h>

struct as_http_client;
struct event_base;

/* For metrics, called when a transfer has ended. `code` is the status as text, or "unreachable",
 * "broken", "timeout", "too_large". */
typedef void as_http_client_observer_fn(void *context, const char *client_name,
                                        const char *operation, const char *code,
                                        int64_t duration_us);

struct as_http_client *as_http_client_new(struct event_base *base,
                                          as_http_client_observer_fn *observer,
                                          void *context) AS_MUST_USE;
struct as_http_client *as_http_client_free(struct as_http_client *client); /* cancels calls */
struct as_http *as_http_client_get_port(struct as_http_client *client);    /* borrowed */

/*
 * Times in the headers of an answer (RFC 9110): Retry-After is seconds or a date.
 */

/* Microseconds from `now`, at most AS_RETRY_AFTER_MAX_US; 0 if it is invalid or in the past. */
int64_t as_retry_after_parse(const char *text, as_wall_time now) AS_MUST_USE;

/* The preferred form of a date, "Sun, 06 Nov 1994 08:49:37 GMT"; servers send no other form today.
 * 0 or -EINVAL. */
int as_http_date_parse(const char *text, as_wall_time *time_out) AS_MUST_USE;

#endif
