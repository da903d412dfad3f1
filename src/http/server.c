/*
 * The server: accepting, the lists of connections by state with their deadlines, draining.
 *
 * Invariants: `connections` counts the connections on all lists except CLOSED. A timer that is not
 * armed belongs to a list without deadlines, or to one that was empty when the timer last fired. A
 * timer stays armed when its list becomes empty: so the usual request needs no timer operation.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <event2/event.h>
#include <event2/listener.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/log.h>
#include <alertscaler/base/time.h>

#include "connection.h"

#define ANSWER_HEAD_MAX   ((size_t)64 * 1024)
#define READ_AHEAD        ((size_t)16 * 1024)
#define HOLD_ROUNDS       16 /* about eight answers */
#define LINGER_US         (2 * AS_US_PER_S)
#define ACCEPT_PAUSE_US   (100 * AS_US_PER_MS)
#define REFUSED_MAX       64 /* 503 answers beyond the limit, at a time */
#define TIMER_SHORTEST_US AS_US_PER_MS
#define ACCEPTS           64 /* per turn, so that others are not delayed */
#define ACCEPTS_TLS       8  /* a handshake takes about a millisecond */

const struct as_http_server_config as_http_server_config_default = {
    .listen_address = ":9096",
    .max_connections = 1000,
    .max_head = 16 * 1024,
    .max_body = 16 * 1024 * 1024,
    .max_bodies = 64 * 1024 * 1024,
    .max_unsent = 64 * 1024 * 1024,
    .head_timeout_us = 10 * AS_US_PER_S,
    .body_timeout_us = 30 * AS_US_PER_S,
    .write_timeout_us = 30 * AS_US_PER_S,
    .idle_timeout_us = 6 * AS_US_PER_MIN, /* Alertmanager keeps its connections for five minutes */
    .losses_every_us = AS_THROTTLE_EVERY_US,
};

int64_t as_http_server_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * AS_US_PER_S + now.tv_nsec / 1000;
}

static void arm(struct event *timer, int64_t delay_us)
{
    struct timeval delay = {.tv_sec = delay_us / AS_US_PER_S, .tv_usec = delay_us % AS_US_PER_S};
    if (evtimer_add(timer, &delay) != 0)
        as_log(AS_LOG_ERROR, "cannot set a timer", AS_FI("delay_us", delay_us));
}

void as_connection_hold(struct as_connection *connection)
{
    struct as_http_server *server = connection->server;
    if (TAILQ_EMPTY(&server->held))
        event_active(server->release, 0, 0);
    if (!connection->is_held)
        TAILQ_INSERT_TAIL(&server->held, connection, held_link);
    connection->is_held = true;
}

void as_connection_let_go(struct as_connection *connection)
{
    if (connection->is_held)
        TAILQ_REMOVE(&connection->server->held, connection, held_link);
    connection->is_held = false;
}

void as_connection_enter(struct as_connection *connection, enum as_connection_state state)
{
    struct as_http_server *server = connection->server;
    struct as_connection_queue *from = &server->queues[connection->state];
    struct as_connection_queue *to = &server->queues[state];
    TAILQ_REMOVE(&from->list, connection, link);
    TAILQ_INSERT_TAIL(&to->list, connection, link);
    from->count--;
    to->count++;
    server->unsent -= connection->unsent;
    connection->unsent = 0;
    server->connections += connection->state == AS_CONNECTION_CLOSED;
    server->connections -= state == AS_CONNECTION_CLOSED;
    connection->state = state;
    connection->entered_us = as_http_server_now();
    if (to->limit_us > 0 && !to->armed) {
        to->armed = true;
        arm(to->timer, to->limit_us);
    }
    if (state == AS_CONNECTION_CLOSED) {
        if (connection->is_held)
            (void)as_stream_flush(&connection->stream); /* sends the held answers */
        as_connection_let_go(connection);
        as_stream_stop(&connection->stream);
        event_active(server->reap, 0, 0);
    }
}

/* A request that has already arrived is answered a few events later: one event takes the request,
 * another writes its record. Wait for these behind all that is ready now, without polling. */
static void on_release(evutil_socket_t fd, short what, void *context)
{
    struct as_http_server *server = context;
    struct as_connection *connection;
    if (++server->release_rounds < HOLD_ROUNDS) {
        event_active(server->release, 0, 0);
        return;
    }
    server->release_rounds = 0;
    while ((connection = TAILQ_FIRST(&server->held)))
        as_connection_release(connection);
}

static void on_deadline(evutil_socket_t fd, short what, void *context)
{
    struct as_connection_queue *queue = context;
    struct as_connection *first;
    int64_t now = as_http_server_now();
    queue->armed = true; /* entering the list while entries move must not arm the timer */
    while ((first = TAILQ_FIRST(&queue->list)) && first->entered_us + queue->limit_us <= now)
        as_connection_expire(first);
    queue->armed = first != NULL;
    if (!first)
        return;
    int64_t left = first->entered_us + queue->limit_us - now;
    arm(queue->timer, left > TIMER_SHORTEST_US ? left : TIMER_SHORTEST_US);
}

static void on_reap(evutil_socket_t fd, short what, void *context)
{
    struct as_http_server *server = context;
    struct as_connection_list *closed = &server->queues[AS_CONNECTION_CLOSED].list;
    struct as_connection *connection;
    while ((connection = TAILQ_FIRST(closed))) {
        TAILQ_REMOVE(closed, connection, link);
        server->queues[AS_CONNECTION_CLOSED].count--;
        as_connection_free(connection);
    }
    if (server->draining && server->connections == 0 && server->drained) {
        void (*drained)(void *context) = server->drained;
        server->drained = NULL;
        drained(server->drained_context); /* may free the server */
    }
}

static bool close_oldest(struct as_http_server *server, enum as_connection_state state)
{
    struct as_connection *oldest = TAILQ_FIRST(&server->queues[state].list);
    if (!oldest)
        return false;
    as_connection_enter(oldest, AS_CONNECTION_CLOSED);
    return true;
}

static void on_accept(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *peer,
                      int peer_size, void *context)
{
    struct as_http_server *server = context;
    unsigned max = server->config.max_connections;
    server->accept_failed = false;
    if (++server->accepted >= (server->config.tls ? ACCEPTS_TLS : ACCEPTS)) {
        evconnlistener_disable(listener); /* its callback accepts as long as connections come */
        event_active(server->resume, 0, 0);
    }
    bool room = as_http_server_make_room(server);
    if (!room && server->config.tls) {
        evutil_closesocket(fd); /* a 503 would need a handshake */
        return;
    }
    if (!room && server->connections - max >= REFUSED_MAX) {
        evutil_closesocket(fd);
        return;
    }
    struct as_connection *connection = as_connection_open(server, fd, peer);
    if (connection && !room)
        as_connection_refuse(connection, 503, "too many connections");
}

/* Out of descriptors or memory: the connection stays in the backlog, and trying again at once would
 * keep the loop busy. */
static void on_accept_error(struct evconnlistener *listener, void *context)
{
    struct as_http_server *server = context;
    int code = EVUTIL_SOCKET_ERROR();
    if (!server->accept_failed)
        as_log(AS_LOG_ERROR, "cannot accept connections", AS_F("error", strerror(code)),
               AS_FI("connections", server->connections));
    server->accept_failed = true;
    close_oldest(server, AS_CONNECTION_IDLE);
    evconnlistener_disable(listener);
    arm(server->resume, ACCEPT_PAUSE_US);
}

static void on_resume(evutil_socket_t fd, short what, void *context)
{
    struct as_http_server *server = context;
    server->accepted = 0;
    if (server->listener)
        evconnlistener_enable(server->listener);
}

static struct event *make_event(struct event_base *base, event_callback_fn callback, void *context)
{
    struct event *event = event_new(base, -1, 0, callback, context);
    if (!event)
        abort(); /* a small allocation of ours */
    return event;
}

static void init_queues(struct as_http_server *server)
{
    const int64_t limits[AS_CONNECTION_STATES] = {
        [AS_CONNECTION_FRESH] = server->config.head_timeout_us,
        [AS_CONNECTION_IDLE] = server->config.idle_timeout_us,
        [AS_CONNECTION_HEAD] = server->config.head_timeout_us,
        [AS_CONNECTION_BODY] = server->config.body_timeout_us,
        [AS_CONNECTION_WRITING] = server->config.write_timeout_us,
        [AS_CONNECTION_LINGERING] = LINGER_US,
    };
    for (unsigned state = 0; state < AS_CONNECTION_STATES; state++) {
        struct as_connection_queue *queue = &server->queues[state];
        TAILQ_INIT(&queue->list);
        queue->limit_us = limits[state];
        queue->timer = make_event(server->base, on_deadline, queue);
    }
}

int as_http_server_new(struct event_base *base, const struct as_http_server_config *config,
                       const struct as_http_handler *handler, struct as_http_server **server_out,
                       struct as_error *error)
{
    evutil_socket_t fd;
    uint16_t port;
    int status = as_http_listen(config->listen_address, &fd, &port, error);
    if (status != 0)
        return status;
    struct as_http_server *server = as_xcalloc(1, sizeof(*server));
    server->base = base;
    server->config = *config;
    server->config.listen_address = server->config.extra_headers = NULL; /* borrowed */
    if (server->config.max_bodies <= config->max_body)
        server->config.max_bodies = config->max_body + 1; /* and a NUL */
    server->extra_headers = config->extra_headers ? as_xstrdup(config->extra_headers) : NULL;
    server->has_own_nosniff =
        config->extra_headers && strcasestr(config->extra_headers, "X-Content-Type-Options:");
    server->handler = *handler;
    server->port = port;
    server->out = AS_BUF_INIT(ANSWER_HEAD_MAX);
    server->read_max = server->config.max_head + READ_AHEAD;
    server->scratch = as_xmalloc(server->read_max);
    server->reap = make_event(base, on_reap, server);
    server->resume = make_event(base, on_resume, server);
    server->release = make_event(base, on_release, server);
    TAILQ_INIT(&server->held);
    as_shares_init(&server->shares);
    init_queues(server);
    as_http_server_init_losses(server);
    server->listener = evconnlistener_new(base, on_accept, server,
                                          LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, -1, fd);
    if (!server->listener) {
        evutil_closesocket(fd);
        as_http_server_free(server);
        as_error_set(error, "listen: out of memory");
        return -ENOMEM;
    }
    evconnlistener_set_error_cb(server->listener, on_accept_error);
    *server_out = server;
    return 0;
}

void as_http_server_set_tls(struct as_http_server *server, struct as_tls_server *tls)
{
    server->config.tls = tls;
}

uint16_t as_http_server_get_port(const struct as_http_server *server)
{
    return server->port;
}

unsigned as_http_server_get_connections(const struct as_http_server *server)
{
    return server->connections;
}

static void stop_listening(struct as_http_server *server)
{
    if (server->listener)
        evconnlistener_free(server->listener);
    server->listener = NULL;
}

void as_http_server_drain(struct as_http_server *server, void (*drained)(void *context),
                          void *context)
{
    assert(!server->draining);
    server->draining = true;
    server->drained = drained;
    server->drained_context = context;
    stop_listening(server);
    while (close_oldest(server, AS_CONNECTION_FRESH) || close_oldest(server, AS_CONNECTION_IDLE))
        ;
    event_active(server->reap, 0, 0); /* called even if no connection is left */
}

struct as_http_server *as_http_server_free(struct as_http_server *server)
{
    if (!server)
        return NULL;
    stop_listening(server);
    for (unsigned state = 0; state < AS_CONNECTION_STATES; state++) {
        struct as_connection_queue *queue = &server->queues[state];
        struct as_connection *connection;
        while ((connection = TAILQ_FIRST(&queue->list))) {
            TAILQ_REMOVE(&queue->list, connection, link);
            as_connection_free(connection);
        }
        event_free(queue->timer);
    }
    as_http_server_deinit_losses(server);
    as_shares_deinit(&server->shares);
    event_free(server->reap);
    event_free(server->resume);
    event_free(server->release);
    as_buf_deinit(&server->out);
    free(server->scratch);
    free(server->extra_headers);
    free(server);
    return NULL;
}
