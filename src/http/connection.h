/*
 * The state of the server, for server.c, its tests and listen.c: a connection with its one
 * exchange, and the server that owns both.
 *
 * A connection is always on exactly one list, and the list is its state. Each list is in order of
 * entry, so one timer per list is enough. A closed connection is freed by a separate event, never
 * while a caller uses it.
 */
#ifndef ALERTSCALER_SRC_HTTP_CONNECTION_H
#define ALERTSCALER_SRC_HTTP_CONNECTION_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <time.h>

#include <bsd/sys/queue.h>
#include <event2/util.h>

#include <alertscaler/base/buf.h>
#include <alertscaler/base/shares.h>
#include <alertscaler/base/throttle.h>
#include <alertscaler/http/server.h>

#include "http_parser.h"
#include "stream.h"

struct as_tls_context;
struct evconnlistener;

enum as_http_drop { AS_HTTP_DROP_HANDSHAKE, AS_HTTP_DROP_LIMIT };

enum as_connection_state {
    AS_CONNECTION_FRESH,     /* TLS handshake, then no byte of the first request yet */
    AS_CONNECTION_IDLE,      /* no byte of the next request yet */
    AS_CONNECTION_HEAD,      /* some bytes of the head */
    AS_CONNECTION_ADMITTING, /* the handler must admit; no deadline of ours */
    AS_CONNECTION_BODY,      /* admitted; some bytes of the body */
    AS_CONNECTION_HANDLING,  /* the handler must reply; no deadline of ours */
    AS_CONNECTION_WRITING,   /* replied; the peer has not taken all of it */
    AS_CONNECTION_LINGERING, /* replied before the request was read: see server.c */
    AS_CONNECTION_CLOSED
};
#define AS_CONNECTION_STATES (AS_CONNECTION_CLOSED + 1)

struct as_http_exchange {
    struct as_connection *connection;
    struct as_http_head head;
    struct as_buf text; /* the head's bytes, cut into strings in place */
    struct as_buf body;
    int64_t started_us;
    const void *route;
    const char *handler_name;
    bool is_head_request, replied;
    void *data;
    void (*free_data)(void *data);
    char *sender; /* narrowed credential; NULL: none */
    char remote[INET6_ADDRSTRLEN + 10];
};

struct as_connection {
    TAILQ_ENTRY(as_connection) link, held_link;
    struct as_http_server *server;
    struct as_stream stream;
    struct as_tls_context *tls; /* NULL: plain */
    bool shaken;                /* the handshake is done */
    char *client_name;
    enum as_connection_state state;
    int64_t entered_us;
    struct as_buf input; /* has arrived, not yet taken; while running: */
    const char *arrived;
    size_t arrived_size;
    bool running;     /* the arrived bytes are being handled now */
    bool peer_done;   /* the peer has sent its last byte */
    bool peer_gone;   /* nothing can be sent to the peer */
    bool unread;      /* a part of the present request was not read */
    bool close_after; /* close when the present answer is written */
    bool is_held;     /* answers wait for those of the next requests */
    size_t discarded;
    size_t body_held, unsent; /* its part of the server's sums */
    struct as_share *share;   /* that has body_held; NULL: none */
    struct as_http_chunks chunks;
    struct as_http_exchange exchange;
};

TAILQ_HEAD(as_connection_list, as_connection);

struct as_http_server {
    struct event_base *base;
    struct as_http_server_config config;
    struct as_http_handler handler;
    struct evconnlistener *listener;
    uint16_t port;
    struct event *resume; /* listens again after a failed accept */
    bool accept_failed;   /* the failed accept was logged */
    struct as_connection_queue {
        struct as_http_server *server;
        struct as_connection_list list;
        int64_t limit_us; /* 0: no deadline */
        struct event *timer;
        bool armed;
        unsigned count;
    } queues[AS_CONNECTION_STATES];
    unsigned connections; /* without the closed ones */
    struct event *reap, *losses_timer, *release;
    struct as_connection_list held;
    unsigned release_rounds;    /* since the first answer was held */
    unsigned accepted;          /* connections since the others had their turn */
    size_t bodies_held, unsent; /* bytes of all connections */
    struct as_shares shares;    /* in bodies_held */
    struct as_throttle losses[AS_HTTP_DROP_LIMIT + 1];
    size_t read_max; /* bytes of a peer that are read before parsing */
    char *scratch;   /* of read_max bytes: the last read */
    char *extra_headers;
    bool has_own_nosniff; /* extra_headers contains X-Content-Type-Options */
    struct as_buf out;    /* the head of the present answer */
    time_t date_at;
    char date[32];
    bool draining;
    void (*drained)(void *context);
    void *drained_context;
};

int64_t as_http_server_now(void); /* monotonic, us */

/* A listening, non-blocking socket; or a negative errno. */
int as_http_listen(const char *address, evutil_socket_t *fd_out, uint16_t *port_out,
                   struct as_error *error) AS_MUST_USE;

#endif
