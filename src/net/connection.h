/*
 * What server.c, connection.c and exchange.c share: one connection with its one exchange, and the
 * server that owns them.
 *
 * A connection is always on exactly one list, and the list is its state. as_connection_enter is the
 * only way from one to another. Each list is in the order of entry, so one timer a list is enough
 * for all deadlines. An event of its own frees a closed connection, never under a caller's feet.
 */
#ifndef NET_CONNECTION_H
#define NET_CONNECTION_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <time.h>

#include <event2/util.h>

#include <alertscaler/base/buf.h>
#include <alertscaler/base/throttle.h>
#include <alertscaler/net/http_parser.h>
#include <alertscaler/net/server.h>

#include "crowd.h"
#include "stream.h"

struct as_tls_context;
struct evconnlistener;

enum as_connection_state {
    AS_CONNECTION_FRESH,     /* the TLS handshake, then not a byte of the first request yet */
    AS_CONNECTION_IDLE,      /* likewise between requests */
    AS_CONNECTION_HEAD,      /* some */
    AS_CONNECTION_ADMITTING, /* the handler owes its admission; no deadline of ours */
    AS_CONNECTION_BODY,      /* admitted */
    AS_CONNECTION_HANDLING,  /* the handler owes a reply; no deadline of ours */
    AS_CONNECTION_WRITING,   /* replied, the peer has not taken all of it */
    AS_CONNECTION_LINGERING, /* replied before the request was read: see connection.c */
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
    struct as_buf input; /* what has arrived and is not taken yet; while running: */
    const char *arrived;
    size_t arrived_size;
    bool running;     /* what has arrived is gone through right now */
    bool peer_done;   /* it has sent its last byte */
    bool peer_gone;   /* nothing can be sent to it */
    bool unread;      /* of the present request something has not been read */
    bool close_after; /* what is being written */
    bool is_held;     /* answers wait for those of the requests behind them */
    size_t discarded;
    size_t body_held, unsent; /* what it adds to the server's sums */
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
    bool accept_failed;   /* and that was logged */
    struct as_connection_queue {
        struct as_http_server *server;
        struct as_connection_list list;
        int64_t limit_us; /* 0: none */
        struct event *timer;
        bool armed;
        unsigned count;
    } queues[AS_CONNECTION_STATES];
    unsigned connections; /* but the closed ones */
    struct event *reap, *losses_timer, *release;
    struct as_connection_list held;
    unsigned release_rounds;    /* since the first was held */
    unsigned accepted;          /* since the others had their turn */
    size_t bodies_held, unsent; /* memory of all connections */
    struct as_throttle losses[AS_HTTP_DROP_LIMIT + 1];
    size_t read_max; /* bytes of one peer that are read before they are parsed */
    char *scratch;   /* of so many bytes: what the last read brought */
    char *extra_headers;
    bool has_own_nosniff; /* X-Content-Type-Options is among them */
    struct as_buf out;    /* the head of the answer that is being made */
    time_t date_at;
    char date[32];
    bool draining;
    void (*drained)(void *context);
    void *drained_context;
};

int64_t as_http_server_now(void); /* monotonic, us */

/* server.c */
void as_connection_enter(struct as_connection *connection, enum as_connection_state state);

void as_connection_hold(struct as_connection *connection); /* its stream, until soon */
void as_connection_let_go(struct as_connection *connection);

/* connection.c. open takes the descriptor, also when it fails (NULL). */
struct as_connection *as_connection_open(struct as_http_server *server, evutil_socket_t fd,
                                         const struct sockaddr *peer);
void as_connection_refuse(struct as_connection *connection, int status, const char *reason);
void as_connection_expire(struct as_connection *connection); /* its state's time is over */
void as_connection_written(struct as_connection *connection);
void as_connection_release(struct as_connection *connection); /* what it holds is to go */
size_t as_connection_count_arrived(const struct as_connection *connection); /* of what comes next */
void as_connection_admitted(struct as_connection *connection);              /* its head was */
struct as_connection *as_connection_free(struct as_connection *connection);

/* exchange.c */
void as_http_exchange_begin(struct as_http_exchange *exchange, const char *head_bytes);
void as_http_exchange_reset(struct as_http_exchange *exchange);
void as_http_exchange_drop_data(struct as_http_exchange *exchange);
/* True: all of it is with the kernel, or the peer is gone. Else the rest is in the stream. */
bool as_connection_send(struct as_connection *connection, struct iovec *parts, int count);

/* listen.c: a listening, non-blocking socket; or a negative errno. */
int as_http_listen(const char *address, evutil_socket_t *fd_out, uint16_t *port_out,
                   struct as_error *error) AS_MUST_USE;

#endif
