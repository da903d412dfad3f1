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

#include <alertscaler/base/attr.h>
#include <alertscaler/port/http.h>

struct event_base;
struct as_http_client;

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

#endif
