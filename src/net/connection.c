/*
 * One connection: bytes to requests, one at a time. Invariants: at most max_head and READ_AHEAD
 * bytes wait unparsed; a body takes memory only for bytes that have arrived; while the handler owes
 * a reply the connection stays, also when the peer is gone.
 *
 * Lingering: who answers an unfinished request and closes would destroy its own answer, because
 * bytes that arrive at a closed socket make the kernel send RST, and a peer's kernel then drops
 * what the peer has not read. So our side is shut, and what still comes is dropped, for a limited
 * time and amount.
 */
#include <arpa/inet.h>
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <event2/event.h>
#include <openssl/err.h>
#include <openssl/sslerr.h>

#include <alertscaler/base/alloc.h>

#include "connection.h"
#include "tls.h"

#define READ_AHEAD    ((size_t)16 * 1024)
#define READ_SIZE     ((size_t)64 * 1024)
#define READ_AT_ONCE  ((size_t)256 * 1024) /* of one body in one turn: others wait meanwhile */
#define AHEAD_AT_ONCE 2                    /* likewise of requests that a peer has sent ahead */
#define LINGER_MAX    ((size_t)64 * 1024 * 1024)

void as_connection_refuse(struct as_connection *connection, int status, const char *reason)
{
    char body[160];
    int size = snprintf(body, sizeof(body), "%s\n", reason);
    connection->unread = true;
    connection->exchange.handler_name = "invalid";
    as_http_exchange_reply(&connection->exchange,
                           &(struct as_http_answer){
                               .status = status,
                               .headers = status == 503 ? "Retry-After: 1\r\n" : NULL,
                               .body = body,
                               .body_size = (size_t)size,
                               .close = true,
                           });
}

void as_connection_expire(struct as_connection *connection)
{
    if (connection->state == AS_CONNECTION_HEAD || connection->state == AS_CONNECTION_BODY)
        as_connection_refuse(connection, 408, "the request did not arrive in time");
    else if (connection->tls && !connection->shaken)
        as_connection_drop(connection, AS_HTTP_DROP_HANDSHAKE, "it was not done in time");
    else
        as_connection_enter(connection, AS_CONNECTION_CLOSED);
}

static void go_on_reading(struct as_connection *connection)
{
    if (!connection->not_reading || connection->state == AS_CONNECTION_CLOSED)
        return;
    connection->not_reading = false;
    bufferevent_enable(connection->stream, EV_READ);
}

/* TLS tells its peer that nothing was cut off; once. */
static void say_end(struct as_connection *connection)
{
    if (!connection->shaken || connection->peer_gone ||
        evbuffer_get_length(bufferevent_get_output(connection->stream)) > 0)
        return;
    ERR_clear_error();
    SSL_shutdown(bufferevent_openssl_get_ssl(connection->stream));
    ERR_clear_error();
}

/* The answer is out: on to the next request, or to the end. */
void as_connection_written(struct as_connection *connection)
{
    as_http_exchange_reset(&connection->exchange);
    bool more = evbuffer_get_length(bufferevent_get_input(connection->stream)) > 0;
    bool close = connection->close_after || connection->server->draining;
    if (connection->peer_gone || (close && !connection->unread && !more)) {
        as_connection_enter(connection, AS_CONNECTION_CLOSED);
    } else if (close) {
        say_end(connection);
        shutdown(bufferevent_getfd(connection->stream), SHUT_WR);
        as_connection_enter(connection, AS_CONNECTION_LINGERING);
    } else {
        as_connection_enter(connection, AS_CONNECTION_IDLE);
    }
    go_on_reading(connection);
    /* A reply from outside our own loop: go on from an event, not from the replier's stack. */
    if (!connection->running && connection->state != AS_CONNECTION_CLOSED &&
        (connection->peer_done || more))
        bufferevent_trigger(connection->stream, EV_READ,
                            BEV_TRIG_IGNORE_WATERMARKS | BEV_TRIG_DEFER_CALLBACKS);
}

static void handle(struct as_connection *connection)
{
    struct as_http_handler *handler = &connection->server->handler;
    connection->unread = false;
    as_connection_enter(connection, AS_CONNECTION_HANDLING);
    handler->handle(handler->context, &connection->exchange);
}

/* Goes on to the body, or straight to the handling. */
static void begin_body(struct as_connection *connection)
{
    static char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";
    const struct as_http_server *server = connection->server;
    const struct as_http_head *head = &connection->exchange.head;
    if (head->framing == AS_HTTP_BODY_LENGTH && head->content_length > server->config.max_body) {
        as_connection_refuse(connection, 413, "the body is too large");
    } else if (!connection->unread) {
        handle(connection);
    } else {
        as_http_chunks_init(&connection->chunks);
        as_connection_enter(connection, AS_CONNECTION_BODY);
        if (head->expects_continue &&
            evbuffer_get_length(bufferevent_get_input(connection->stream)) == 0)
            as_connection_send(connection, &(struct iovec){go_on, strlen(go_on)}, 1);
    }
}

/* The head is there: the handler decides. */
static void start_request(struct as_connection *connection)
{
    struct as_http_server *server = connection->server;
    const struct as_http_head *head = &connection->exchange.head;
    connection->unread = head->framing == AS_HTTP_BODY_CHUNKED ||
                         (head->framing == AS_HTTP_BODY_LENGTH && head->content_length > 0);
    switch (server->handler.admit(server->handler.context, &connection->exchange)) {
    case AS_HTTP_ADMITTED:
        assert(connection->state == AS_CONNECTION_HEAD); /* it has not replied */
        begin_body(connection);
        break;
    case AS_HTTP_PENDING:
        assert(connection->state == AS_CONNECTION_HEAD);
        as_connection_enter(connection, AS_CONNECTION_ADMITTING);
        break;
    case AS_HTTP_REPLIED: assert(connection->state != AS_CONNECTION_HEAD); break;
    }
}

/* The body's time begins now: what has arrived of it is read from an event. */
void as_connection_admitted(struct as_connection *connection)
{
    assert(connection->state == AS_CONNECTION_ADMITTING);
    begin_body(connection);
    if (connection->state != AS_CONNECTION_BODY)
        return;
    go_on_reading(connection);
    bufferevent_trigger(connection->stream, EV_READ,
                        BEV_TRIG_IGNORE_WATERMARKS | BEV_TRIG_DEFER_CALLBACKS);
}

/* The step functions return true where there may be more to do with what has arrived. */
static bool step_head(struct as_connection *connection)
{
    struct evbuffer *input = bufferevent_get_input(connection->stream);
    struct as_http_exchange *exchange = &connection->exchange;
    size_t size = evbuffer_get_length(input);
    if (size == 0)
        return false;
    if (connection->state != AS_CONNECTION_HEAD) {
        as_connection_enter(connection, AS_CONNECTION_HEAD);
        exchange->started_us = connection->entered_us;
    }
    if (size > exchange->head.max)
        size = exchange->head.max;
    const char *bytes = (const char *)evbuffer_pullup(input, (ev_ssize_t)size);
    if (!bytes) {
        as_connection_refuse(connection, 503, "out of memory");
        return true;
    }
    switch (as_http_head_parse(&exchange->head, bytes, size)) {
    case AS_HTTP_PARSE_MORE: return false;
    case AS_HTTP_PARSE_REFUSED:
        as_connection_refuse(connection, exchange->head.status, exchange->head.reason);
        return true;
    case AS_HTTP_PARSE_DONE: break;
    }
    as_http_exchange_begin(exchange, bytes);
    evbuffer_drain(input, exchange->head.size);
    start_request(connection);
    return true;
}

/* Takes body bytes out of libevent's buffer; false when there is no room for them. */
static bool take_buffered(struct as_connection *connection, size_t size)
{
    struct as_buf *body = &connection->exchange.body;
    char *room = as_buf_reserve(body, size);
    if (!room)
        return false;
    int got = evbuffer_remove(bufferevent_get_input(connection->stream), room, size);
    body->size += got > 0 ? (size_t)got : 0;
    return true;
}

/*
 * Reads what waits in a plain socket straight to its place: libevent reads 4 KiB a turn. End of
 * file and errors are left for it to find.
 */
static bool take_waiting(struct as_connection *connection, size_t missing)
{
    struct as_buf *body = &connection->exchange.body;
    size_t turn = 0;
    while (missing > 0 && turn < READ_AT_ONCE) {
        size_t size = missing < READ_SIZE ? missing : READ_SIZE;
        char *room = as_buf_reserve(body, size);
        if (!room)
            return false;
        ssize_t got = recv(connection->plain_fd, room, size, MSG_DONTWAIT);
        if (got <= 0)
            break;
        body->size += (size_t)got;
        missing -= (size_t)got;
        turn += (size_t)got;
    }
    return true;
}

/* After the body has grown. */
static bool fits(struct as_connection *connection)
{
    as_connection_count_body(connection);
    return as_http_server_fits_body(connection->server, connection);
}

static bool step_length_body(struct as_connection *connection)
{
    struct as_buf *body = &connection->exchange.body;
    size_t wanted = (size_t)connection->exchange.head.content_length; /* <= max_body */
    size_t waiting = evbuffer_get_length(bufferevent_get_input(connection->stream));
    size_t missing = wanted - body->size;
    bool room = take_buffered(connection, waiting < missing ? waiting : missing);
    if (room && body->size < wanted && connection->plain_fd >= 0)
        room = take_waiting(connection, wanted - body->size);
    if (!room || !fits(connection)) {
        as_connection_refuse(connection, 503, "out of memory");
        return true;
    }
    body->data[body->size] = '\0';
    if (body->size < wanted)
        return false;
    handle(connection);
    return true;
}

static bool step_chunked_body(struct as_connection *connection)
{
    struct evbuffer *input = bufferevent_get_input(connection->stream);
    struct as_buf *body = &connection->exchange.body;
    size_t size = evbuffer_get_contiguous_space(input), used = 0;
    if (size == 0)
        return false;
    const char *bytes = (const char *)evbuffer_pullup(input, (ev_ssize_t)size);
    enum as_http_parse parsed = AS_HTTP_PARSE_MORE;
    while (used < size && parsed == AS_HTTP_PARSE_MORE) {
        size_t step, data_size;
        const char *data;
        parsed = as_http_chunks_step(&connection->chunks, bytes + used, size - used, &step, &data,
                                     &data_size);
        as_buf_append(body, data, data_size);
        used += step;
    }
    evbuffer_drain(input, used);
    if (parsed == AS_HTTP_PARSE_REFUSED)
        as_connection_refuse(connection, connection->chunks.status, connection->chunks.reason);
    else if (as_buf_check(body) != 0)
        as_connection_refuse(connection, 413, "the body is too large");
    else if (!fits(connection))
        as_connection_refuse(connection, 503, "out of memory");
    else if (parsed == AS_HTTP_PARSE_DONE)
        handle(connection);
    return true;
}

static bool step_body(struct as_connection *connection)
{
    if (connection->exchange.head.framing == AS_HTTP_BODY_CHUNKED)
        return step_chunked_body(connection);
    return step_length_body(connection);
}

static bool step_lingering(struct as_connection *connection)
{
    struct evbuffer *input = bufferevent_get_input(connection->stream);
    size_t size = evbuffer_get_length(input);
    connection->discarded += size;
    evbuffer_drain(input, size);
    if (connection->discarded > LINGER_MAX)
        as_connection_enter(connection, AS_CONNECTION_CLOSED);
    return false;
}

static bool step(struct as_connection *connection)
{
    switch (connection->state) {
    case AS_CONNECTION_FRESH:
    case AS_CONNECTION_IDLE:
    case AS_CONNECTION_HEAD: return step_head(connection);
    case AS_CONNECTION_BODY: return step_body(connection);
    case AS_CONNECTION_LINGERING: return step_lingering(connection);
    case AS_CONNECTION_ADMITTING:
    case AS_CONNECTION_HANDLING:
    case AS_CONNECTION_WRITING:
    case AS_CONNECTION_CLOSED: break;
    }
    return false;
}

static bool owes(const struct as_connection *connection)
{
    return connection->state == AS_CONNECTION_ADMITTING ||
           connection->state == AS_CONNECTION_HANDLING ||
           connection->state == AS_CONNECTION_WRITING;
}

/* libevent stops reading at the high watermark, but goes on to call for as long as nobody takes
 * what there is. */
static void pause_reading(struct as_connection *connection)
{
    size_t high = 0;
    bufferevent_getwatermark(connection->stream, EV_READ, NULL, &high);
    if (evbuffer_get_length(bufferevent_get_input(connection->stream)) < high)
        return;
    bufferevent_disable(connection->stream, EV_READ);
    connection->not_reading = true;
}

/* Requests that wait, for when others had their turn. */
static bool puts_off(struct as_connection *connection, unsigned answered)
{
    if (answered < AHEAD_AT_ONCE || connection->state != AS_CONNECTION_IDLE ||
        evbuffer_get_length(bufferevent_get_input(connection->stream)) == 0)
        return false;
    bufferevent_trigger(connection->stream, EV_READ,
                        BEV_TRIG_IGNORE_WATERMARKS | BEV_TRIG_DEFER_CALLBACKS);
    return true;
}

/* Does what can be done with what has arrived. */
static void run(struct as_connection *connection)
{
    unsigned answered = 0;
    connection->running = true;
    while (answered < AHEAD_AT_ONCE && step(connection))
        answered += connection->state == AS_CONNECTION_IDLE;
    connection->running = false;
    if (puts_off(connection, answered))
        return;
    if (owes(connection))
        pause_reading(connection);
    else if (connection->peer_done && connection->state != AS_CONNECTION_CLOSED)
        as_connection_enter(connection, AS_CONNECTION_CLOSED);
}

static void on_readable(struct bufferevent *stream, void *context)
{
    run(context);
}

static void on_written(struct bufferevent *stream, void *context)
{
    struct as_connection *connection = context;
    if (connection->state == AS_CONNECTION_WRITING)
        as_connection_written(connection);
}

static void finish_handshake(struct as_connection *connection)
{
    connection->shaken = true;
    connection->client_name =
        as_tls_context_find_name(connection->tls, bufferevent_openssl_get_ssl(connection->stream));
}

/* A peer that leaves without a word (whoever looks whether the port is open) is no failure. */
static void fail_handshake(struct as_connection *connection, short what)
{
    static const char hint[] = "HTTP/1.0 400 Bad Request\r\nContent-Length: 34\r\n\r\n"
                               "this is an HTTPS port: use https:\n";
    char error[256];
    unsigned long code = bufferevent_get_openssl_error(connection->stream);
    if (ERR_GET_LIB(code) == ERR_LIB_SSL && ERR_GET_REASON(code) == SSL_R_HTTP_REQUEST)
        (void)send(bufferevent_getfd(connection->stream), hint, sizeof(hint) - 1,
                   MSG_DONTWAIT | MSG_NOSIGNAL);
    as_tls_explain(bufferevent_openssl_get_ssl(connection->stream), code, error, sizeof(error));
    if (what & BEV_EVENT_ERROR)
        as_connection_drop(connection, AS_HTTP_DROP_HANDSHAKE, error);
    else
        as_connection_enter(connection, AS_CONNECTION_CLOSED);
}

/* The end of what the peer sends need not be the end of what it reads: a reply owed is still sent.
 */
static void on_event(struct bufferevent *stream, short what, void *context)
{
    struct as_connection *connection = context;
    if (what & BEV_EVENT_CONNECTED) {
        finish_handshake(connection);
        return;
    }
    connection->peer_done = true;
    if (connection->tls && !connection->shaken) {
        fail_handshake(connection, what);
        return;
    }
    if (what & BEV_EVENT_ERROR) {
        connection->peer_gone = true;
        if (connection->state != AS_CONNECTION_HANDLING &&
            connection->state != AS_CONNECTION_ADMITTING)
            as_connection_enter(connection, AS_CONNECTION_CLOSED);
    }
    if (connection->state != AS_CONNECTION_CLOSED)
        run(connection);
}

static void print_remote(const struct sockaddr *peer, char *text, size_t size)
{
    char host[INET6_ADDRSTRLEN] = "";
    if (peer->sa_family == AF_INET6) {
        const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)(const void *)peer;
        bool mapped = IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr);
        evutil_inet_ntop(mapped ? AF_INET : AF_INET6, &v6->sin6_addr.s6_addr[mapped ? 12 : 0], host,
                         sizeof(host));
        snprintf(text, size, mapped ? "%s:%u" : "[%s]:%u", host, ntohs(v6->sin6_port));
    } else {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)(const void *)peer;
        evutil_inet_ntop(AF_INET, &v4->sin_addr, host, sizeof(host));
        snprintf(text, size, "%s:%u", host, ntohs(v4->sin_port));
    }
}

/* The one place where a stream is made. */
static struct bufferevent *make_stream(struct as_http_server *server, struct as_tls_context *tls,
                                       evutil_socket_t fd)
{
    if (tls)
        return as_tls_context_open(tls, server->base, fd);
    return bufferevent_socket_new(server->base, fd, BEV_OPT_CLOSE_ON_FREE);
}

struct as_connection *as_connection_open(struct as_http_server *server, evutil_socket_t fd,
                                         const struct sockaddr *peer)
{
    struct as_tls_context *tls = NULL;
    if (server->config.tls)
        tls = as_tls_server_take_context(server->config.tls, as_http_server_now());
    struct bufferevent *stream = make_stream(server, tls, fd);
    if (!stream) {
        as_tls_context_release(tls);
        evutil_closesocket(fd);
        return NULL;
    }
    struct as_connection *connection = as_xcalloc(1, sizeof(*connection));
    connection->server = server;
    connection->stream = stream;
    connection->plain_fd = tls ? -1 : fd;
    connection->tls = tls;
    connection->exchange.connection = connection;
    connection->exchange.text = AS_BUF_INIT(server->config.max_head);
    connection->exchange.body = AS_BUF_INIT(server->config.max_body);
    as_http_exchange_reset(&connection->exchange);
    print_remote(peer, connection->exchange.remote, sizeof(connection->exchange.remote));
    connection->state = AS_CONNECTION_CLOSED;
    server->queues[AS_CONNECTION_CLOSED].count++;
    TAILQ_INSERT_TAIL(&server->queues[AS_CONNECTION_CLOSED].list, connection, link);
    as_connection_enter(connection, AS_CONNECTION_FRESH);
    connection->exchange.started_us = connection->entered_us;
    bufferevent_setcb(stream, on_readable, on_written, on_event, connection);
    bufferevent_setwatermark(stream, EV_READ, 0, server->config.max_head + READ_AHEAD);
    bufferevent_enable(stream, EV_READ); /* EV_WRITE is, and saying so would poll for it at once */
    return connection;
}

struct as_connection *as_connection_free(struct as_connection *connection)
{
    say_end(connection);
    bufferevent_free(connection->stream);
    as_tls_context_release(connection->tls);
    free(connection->client_name);
    as_http_exchange_drop_data(&connection->exchange);
    as_buf_deinit(&connection->exchange.text);
    as_buf_deinit(&connection->exchange.body);
    as_connection_count_body(connection);
    free(connection);
    return NULL;
}
