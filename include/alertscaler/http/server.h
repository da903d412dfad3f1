/*
 * The HTTP/1.1 server: libevent's listener and bufferevents around the strict parser of
 * http_parser.h.
 *
 * Life of a request: the head is parsed; `admit` decides by the head alone (authentication, size),
 * at once or later, before any byte of the body is read; the body is read within the limits;
 * `handle` runs; as_http_exchange_reply answers, at once or later. A connection answers its
 * requests in order, one at a time; pipelined bytes wait. Head, body (408) and write have absolute
 * deadlines; there is an idle time-out between requests. Malformed input is answered
 * 400/413/414/415/417/431/501/505, and the connection is closed.
 *
 * At the limit of connections, a new one replaces an existing one:
 * - the oldest that has not sent its first request, if more than half are of this kind;
 * - else the one that has been idle longest;
 * - else the oldest without an exchange in the handler.
 * If the handler owes every connection an answer, the new one is answered 503. At the limit of
 * memory for all bodies, the body that has been read for longest is answered 503.
 *
 * The process must ignore SIGPIPE.
 */
#ifndef ALERTSCALER_HTTP_SERVER_H
#define ALERTSCALER_HTTP_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>

struct as_tls_server;
struct event_base;
struct as_http_server;
struct as_http_exchange; /* one request and its future answer */

struct as_http_server_config {
    const char *listen_address; /* ":9096", "127.0.0.1:0", "[::1]:9096" */
    unsigned max_connections;
    size_t max_head;   /* request line and headers, bytes */
    size_t max_body;   /* default for all handlers */
    size_t max_bodies; /* of all connections together; at least max_body */
    size_t max_unsent; /* unsent answers of all connections; above it, the oldest is dropped */
    int64_t head_timeout_us, body_timeout_us, write_timeout_us, idle_timeout_us;
    int64_t losses_every_us;   /* interval of log lines that count connections without an answer */
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
    AS_HTTP_REPLIED,  /* it was refused; the connection is closed if a body was to come */
    AS_HTTP_PENDING   /* as_http_exchange_admit or _reply is called later */
};

struct as_http_handler {
    enum as_http_admission (*admit)(void *context, struct as_http_exchange *exchange);
    /* The whole request has been read. Must lead to exactly one reply, now or later. */
    void (*handle)(void *context, struct as_http_exchange *exchange);
    /* For metrics: a request was answered. If the server itself answered, `handler` is
     * "invalid". */
    void (*answered)(void *context, const char *handler, int status, int64_t duration_us);
    /* For metrics, may be NULL: a connection was closed without an answer. "handshake": TLS failed;
     * "limit": it was closed to make room. */
    void (*dropped)(void *context, const char *reason);
    void *context;
};

/* The request; its texts are valid until the reply. */
const char *as_http_exchange_get_method(const struct as_http_exchange *exchange);
const char *as_http_exchange_get_path(const struct as_http_exchange *exchange); /* without query */
/* Cuts bytes from the path's start: from then on it is as if they had not been sent. */
void as_http_exchange_cut_path(struct as_http_exchange *exchange, size_t size);
const char *as_http_exchange_get_query(const struct as_http_exchange *exchange); /* "" where none */
const char *as_http_exchange_find_header(const struct as_http_exchange *exchange, const char *name);
/* How often the header is in the request. */
size_t as_http_exchange_count_headers(const struct as_http_exchange *exchange, const char *name);
const char *as_http_exchange_get_body(const struct as_http_exchange *exchange, size_t *size_out);
const char *as_http_exchange_get_remote(
    const struct as_http_exchange *exchange); /* "127.0.0.1:41234" */
/* The name in the client's verified certificate: the allowed SAN that it contains, else its first
 * DNS name or URI, else its common name. NULL: no verified certificate. */
const char *as_http_exchange_find_client_name(const struct as_http_exchange *exchange);
/* Who answers: `handler_name` for metrics, and the handler's own route (may be NULL). Both point to
 * static memory. */
void as_http_exchange_set_route(struct as_http_exchange *exchange, const void *route,
                                const char *handler_name);
const void *as_http_exchange_get_route(const struct as_http_exchange *exchange);
/* Data that the handler keeps with the request from admission to reply. `free_data` (may be NULL)
 * is called when the exchange ends, for whatever reason. */
void as_http_exchange_set_data(struct as_http_exchange *exchange, void *data,
                               void (*free_data)(void *data));
void *as_http_exchange_get_data(const struct as_http_exchange *exchange); /* NULL: not set */
/* The narrowed credential of the request. While bodies of such requests have more than half of
 * `max_bodies`, they make room for others. */
void as_http_exchange_set_sender(struct as_http_exchange *exchange, const char *name);

/* After AS_HTTP_PENDING: goes on to the body. Not from within `admit`. Call it even if the peer has
 * disconnected meanwhile. */
void as_http_exchange_admit(struct as_http_exchange *exchange);

/* Answers and ends the exchange. Call it even if the peer has disconnected meanwhile. */
void as_http_exchange_reply(struct as_http_exchange *exchange, const struct as_http_answer *answer);

/* Listens. 0, or a negative errno with an error that names the address. */
int as_http_server_new(struct event_base *base, const struct as_http_server_config *config,
                       const struct as_http_handler *handler, struct as_http_server **server_out,
                       struct as_error *error) AS_MUST_USE;
/* Sets the TLS of new connections: `tls` is borrowed; NULL: plain. The former one may be freed. */
void as_http_server_set_tls(struct as_http_server *server, struct as_tls_server *tls);
uint16_t as_http_server_get_port(const struct as_http_server *server);
unsigned as_http_server_get_connections(const struct as_http_server *server);

/* Stops accepting, closes idle connections, lets exchanges in flight end with `Connection: close`.
 * `drained` is called once, in a later turn of the loop, when no connection is left. */
void as_http_server_drain(struct as_http_server *server, void (*drained)(void *context),
                          void *context);

/* Closes everything. Exchanges without a reply end here and must not be used any more. */
struct as_http_server *as_http_server_free(struct as_http_server *server);

#endif
