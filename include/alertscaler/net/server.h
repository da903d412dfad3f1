/*
 * The HTTP/1.1 server: libevent's listener and bufferevents around the strict parser of
 * http_parser.h.
 *
 * Life of a request: head parsed -> `admit` decides on the head alone (authentication, size; before
 * a byte of the body is read), at once or later -> body read within the limits -> `handle` ->
 * as_http_exchange_reply, at once or later. A connection answers its requests in order, one at a
 * time; pipelined bytes wait. Absolute deadlines for head and body (408) and write; idle time-out
 * between requests. Malformed input is answered 400/413/414/415/417/431/501/505 and the connection
 * closed.
 *
 * At the limit of connections a new one takes the place of another: of the oldest that has not sent
 * its first request, where those are more than half; else of the longest idle; else of the oldest
 * that the handler owes nothing. Only where it owes something to all of them, the new one is
 * answered 503. Likewise for memory: at the limit of all bodies together, the one that has been
 * read for longest is answered 503.
 *
 * The process must ignore SIGPIPE.
 */
#ifndef ALERTSCALER_NET_SERVER_H
#define ALERTSCALER_NET_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>

struct as_tls_server;
struct event_base;
struct as_http_server;
struct as_http_exchange; /* one request and its answer-to-be */

struct as_http_server_config {
    const char *listen_address; /* ":9096", "127.0.0.1:0", "[::1]:9096" */
    unsigned max_connections;
    size_t max_head;   /* request line and headers, bytes */
    size_t max_body;   /* default for all handlers */
    size_t max_bodies; /* of all connections together; at least one of max_body fits */
    size_t max_unsent; /* answers that peers do not take, together; the oldest is given up */
    int64_t head_timeout_us, body_timeout_us, write_timeout_us, idle_timeout_us;
    int64_t losses_every_us;   /* connections without an answer are logged so often, counted */
    struct as_tls_server *tls; /* borrowed; NULL: plain */
    const char *extra_headers; /* "Name: value\r\n" lines of every answer, or NULL; copied */
};

extern const struct as_http_server_config as_http_server_config_default;

struct as_http_answer { /* all borrowed for the call */
    int status;
    const char *content_type; /* NULL: text/plain; charset=utf-8 */
    const char *headers;      /* further "Name: value\r\n" lines, or NULL */
    const void *body;
    size_t body_size;
    bool close; /* close the connection after it */
};

enum as_http_admission {
    AS_HTTP_ADMITTED, /* go on to the body */
    AS_HTTP_REPLIED,  /* it was refused: the connection is closed if a body was to come */
    AS_HTTP_PENDING   /* as_http_exchange_admit or _reply comes later */
};

struct as_http_handler {
    enum as_http_admission (*admit)(void *context, struct as_http_exchange *exchange);
    /* The whole request is there. Must lead to exactly one reply, now or later. */
    void (*handle)(void *context, struct as_http_exchange *exchange);
    /* For metrics: a request was answered (also by the server itself: then handler is "invalid").
     */
    void (*answered)(void *context, const char *handler, int status, int64_t duration_us);
    /* For metrics, may be NULL: a connection was closed without an answer. "handshake": TLS failed;
     * "limit": it had to make room. */
    void (*dropped)(void *context, const char *reason);
    void *context;
};

/* The request; texts are good until the reply. */
const char *as_http_exchange_get_method(const struct as_http_exchange *exchange);
const char *as_http_exchange_get_path(const struct as_http_exchange *exchange);  /* without query */
const char *as_http_exchange_get_query(const struct as_http_exchange *exchange); /* "" where none */
const char *as_http_exchange_find_header(const struct as_http_exchange *exchange, const char *name);
const char *as_http_exchange_get_body(const struct as_http_exchange *exchange, size_t *size_out);
const char *as_http_exchange_get_remote(
    const struct as_http_exchange *exchange); /* "127.0.0.1:41234" */
/* Whom the client's certificate names, where one was verified: the allowed SAN that it has, else
 * its first DNS name or URI, else its common name. NULL: nobody. */
const char *as_http_exchange_find_client_name(const struct as_http_exchange *exchange);
/* Who answers: `handler_name` for metrics, and what the handler keeps to find that again (may be
 * NULL). Both static memory. */
void as_http_exchange_set_route(struct as_http_exchange *exchange, const void *route,
                                const char *handler_name);
const void *as_http_exchange_get_route(const struct as_http_exchange *exchange);
/* What the handler keeps with the request from admission to reply; `free_data` (may be NULL) is
 * called when the exchange ends, however it does. */
void as_http_exchange_set_data(struct as_http_exchange *exchange, void *data,
                               void (*free_data)(void *data));
void *as_http_exchange_get_data(const struct as_http_exchange *exchange); /* NULL: none */

/* After AS_HTTP_PENDING: goes on to the body. Not from within `admit`. Safe (and needed) also when
 * the peer is gone meanwhile. */
void as_http_exchange_admit(struct as_http_exchange *exchange);

/* Answers and ends the exchange. Safe (and needed) also when the peer is gone meanwhile. */
void as_http_exchange_reply(struct as_http_exchange *exchange, const struct as_http_answer *answer);

/* Listens. 0, or a negative errno with an error that names the address. */
int as_http_server_new(struct event_base *base, const struct as_http_server_config *config,
                       const struct as_http_handler *handler, struct as_http_server **server_out,
                       struct as_error *error) AS_MUST_USE;
/* For the connections from now on: `tls` (borrowed; NULL: plain). The one before may be freed. */
void as_http_server_set_tls(struct as_http_server *server, struct as_tls_server *tls);
uint16_t as_http_server_get_port(const struct as_http_server *server);
unsigned as_http_server_get_connections(const struct as_http_server *server);

/* Stops accepting, closes idle connections, lets exchanges in flight end with `Connection: close`;
 * `drained` is called once, in a later turn of the loop, when none is left. */
void as_http_server_drain(struct as_http_server *server, void (*drained)(void *context),
                          void *context);

/* Closes everything; exchanges without a reply end there, and must not be touched any more. */
struct as_http_server *as_http_server_free(struct as_http_server *server);

#endif
