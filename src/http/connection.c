/*
 * One connection: turns bytes into requests, one at a time. Invariants: at most the server's
 * `read_max` bytes wait unparsed; a body takes memory only for bytes that have arrived; while the
 * handler owes a reply the connection exists, even if the peer is gone.
 *
 * The bytes of a read are parsed in place, in a buffer of the server. Bytes that cannot be used yet
 * are then copied to the connection's `input`.
 *
 * Lingering: closing right after the answer to an unfinished request would destroy this answer:
 * bytes that arrive at a closed socket make our kernel send RST, and then the peer's kernel drops
 * what the peer has not read. So we shut our side, and read and drop what still comes, for a
 * limited time and amount.
 */
#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/sslerr.h>

#include <alertscaler/base/alloc.h>

#include "connection.h"
#include "tls.h"

#define READ_SIZE     ((size_t)64 * 1024)
#define READ_AT_ONCE  ((size_t)256 * 1024) /* of one body per turn */
#define AHEAD_AT_ONCE 2                    /* requests that a peer has sent ahead, per turn */
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
    if (!connection->peer_done && connection->state != AS_CONNECTION_CLOSED)
        as_stream_resume(&connection->stream);
}

size_t as_connection_count_arrived(const struct as_connection *connection)
{
    return connection->running ? connection->arrived_size : connection->input.size;
}

/* The answer is sent: goes on to the next request, or ends the connection. */
void as_connection_written(struct as_connection *connection)
{
    as_http_exchange_reset(&connection->exchange);
    bool more = as_connection_count_arrived(connection) > 0;
    bool close = connection->close_after || connection->server->draining;
    if (connection->peer_gone || (close && !connection->unread && !more)) {
        as_connection_enter(connection, AS_CONNECTION_CLOSED);
    } else if (close) {
        as_stream_shut(&connection->stream);
        as_connection_enter(connection, AS_CONNECTION_LINGERING);
    } else {
        as_connection_enter(connection, AS_CONNECTION_IDLE);
    }
    go_on_reading(connection);
    /* A reply from outside our own loop: continue from an event, not on the caller's stack. */
    if (!connection->running && connection->state != AS_CONNECTION_CLOSED &&
        (connection->peer_done || more))
        as_stream_wake(&connection->stream);
}

static void handle(struct as_connection *connection)
{
    struct as_http_handler *handler = &connection->server->handler;
    connection->unread = false;
    as_connection_enter(connection, AS_CONNECTION_HANDLING);
    handler->handle(handler->context, &connection->exchange);
}

/* Goes on to the body, or directly to the handler. */
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
        if (head->expects_continue && as_connection_count_arrived(connection) == 0)
            as_connection_send(connection, &(struct iovec){go_on, strlen(go_on)}, 1);
    }
}

/* The head is complete: the handler decides. */
static void start_request(struct as_connection *connection)
{
    struct as_http_server *server = connection->server;
    const struct as_http_head *head = &connection->exchange.head;
    connection->unread = head->framing == AS_HTTP_BODY_CHUNKED ||
                         (head->framing == AS_HTTP_BODY_LENGTH && head->content_length > 0);
    switch (server->handler.admit(server->handler.context, &connection->exchange)) {
    case AS_HTTP_ADMITTED:
        assert(connection->state == AS_CONNECTION_HEAD); /* the handler has not replied */
        begin_body(connection);
        break;
    case AS_HTTP_PENDING:
        assert(connection->state == AS_CONNECTION_HEAD);
        as_connection_enter(connection, AS_CONNECTION_ADMITTING);
        break;
    case AS_HTTP_REPLIED: assert(connection->state != AS_CONNECTION_HEAD); break;
    }
}

/* The body's time begins now; an event reads the bytes that have arrived. */
void as_connection_admitted(struct as_connection *connection)
{
    assert(connection->state == AS_CONNECTION_ADMITTING);
    begin_body(connection);
    if (connection->state != AS_CONNECTION_BODY)
        return;
    go_on_reading(connection);
    as_stream_wake(&connection->stream);
}

static void take(struct as_connection *connection, size_t size)
{
    connection->arrived += size;
    connection->arrived_size -= size;
}

/* The step functions return true if more can be done with the bytes that have arrived. */
static bool step_head(struct as_connection *connection)
{
    struct as_http_exchange *exchange = &connection->exchange;
    const char *bytes = connection->arrived;
    size_t size = connection->arrived_size;
    if (size == 0)
        return false;
    if (connection->state != AS_CONNECTION_HEAD) {
        as_connection_enter(connection, AS_CONNECTION_HEAD);
        exchange->started_us = connection->entered_us;
    }
    if (size > exchange->head.max)
        size = exchange->head.max;
    switch (as_http_head_parse(&exchange->head, bytes, size)) {
    case AS_HTTP_PARSE_MORE: return false;
    case AS_HTTP_PARSE_REFUSED:
        as_connection_refuse(connection, exchange->head.status, exchange->head.reason);
        return true;
    case AS_HTTP_PARSE_DONE: break;
    }
    as_http_exchange_begin(exchange, bytes);
    take(connection, exchange->head.size);
    start_request(connection);
    return true;
}

static void finish_handshake(struct as_connection *connection)
{
    connection->shaken = true;
    connection->client_name = as_tls_context_find_name(connection->tls, connection->stream.ssl);
}

/* A peer that leaves without sending a byte (a port check) is no failure. */
static void fail_handshake(struct as_connection *connection, ssize_t status)
{
    static const char hint[] = "HTTP/1.0 400 Bad Request\r\nContent-Length: 34\r\n\r\n"
                               "this is an HTTPS port: use https:\n";
    char error[256];
    const unsigned long code = connection->stream.tls_error;
    if (ERR_GET_LIB(code) == ERR_LIB_SSL && ERR_GET_REASON(code) == SSL_R_HTTP_REQUEST)
        (void)send(connection->stream.fd, hint, sizeof(hint) - 1, MSG_DONTWAIT | MSG_NOSIGNAL);
    as_tls_explain(connection->stream.ssl, code, error, sizeof(error));
    if (status < 0)
        as_connection_drop(connection, AS_HTTP_DROP_HANDSHAKE, error);
    else
        as_connection_enter(connection, AS_CONNECTION_CLOSED);
}

/* A peer that has stopped sending may still read: a reply that is owed is still sent. */
static void note_end(struct as_connection *connection, ssize_t status)
{
    connection->peer_done = true;
    connection->peer_gone |= status < 0;
    as_stream_pause(&connection->stream);
    if (connection->tls && !connection->shaken)
        fail_handshake(connection, status);
}

/* Returns how many bytes came. */
static size_t read_some(struct as_connection *connection, char *room, size_t size)
{
    if (connection->peer_done)
        return 0;
    const ssize_t got = as_stream_read(&connection->stream, room, size);
    if (connection->tls && !connection->shaken && SSL_is_init_finished(connection->stream.ssl))
        finish_handshake(connection);
    if (got == 0 || (got < 0 && got != -EAGAIN))
        note_end(connection, got);
    return got > 0 ? (size_t)got : 0;
}

static bool reads_body(const struct as_connection *connection)
{
    return connection->state == AS_CONNECTION_BODY &&
           connection->exchange.head.framing == AS_HTTP_BODY_LENGTH;
}

/* Reads once, behind the unparsed bytes; but a body with a length is read directly to its place. */
static void read_ahead(struct as_connection *connection)
{
    struct as_http_server *server = connection->server;
    struct as_buf *input = &connection->input;
    if (input->size == 0 && !reads_body(connection)) {
        connection->arrived = server->scratch;
        connection->arrived_size = read_some(connection, server->scratch, server->read_max);
    } else if (input->size > 0 && input->size < server->read_max) {
        const size_t size = server->read_max - input->size;
        char *room = as_buf_reserve(input, size);
        input->size += room ? read_some(connection, room, size) : 0;
        connection->arrived = input->data;
        connection->arrived_size = input->size;
    }
}

/* Keeps what is not yet parsed. Wipes the server's buffer, which may have held a password. */
static void keep_rest(struct as_connection *connection, size_t arrived_size)
{
    struct as_buf *input = &connection->input;
    const size_t rest = connection->arrived_size;
    if (input->size > 0) {
        memmove(input->data, connection->arrived, rest);
        input->size = rest;
    } else {
        as_buf_append(input, connection->arrived, rest);
        explicit_bzero(connection->server->scratch, arrived_size);
    }
    if (as_buf_check(input) != 0) /* out of memory: the peer will ask again */
        connection->peer_done = connection->peer_gone = true;
    if (rest == 0)
        as_buf_deinit(input);
}

/* Moves body bytes out of what has arrived; false if there is no room for them. */
static bool take_body(struct as_connection *connection, size_t size)
{
    struct as_buf *body = &connection->exchange.body;
    char *room = as_buf_reserve(body, size);
    if (!room)
        return false;
    memcpy(room, connection->arrived, size);
    body->size += size;
    take(connection, size);
    return true;
}

/* As take_body, directly from the peer. A plain socket that gave less than asked has no more. */
static bool read_body(struct as_connection *connection, size_t missing)
{
    struct as_buf *body = &connection->exchange.body;
    size_t turn = 0;
    while (missing > 0 && turn < READ_AT_ONCE) {
        const size_t size = missing < READ_SIZE ? missing : READ_SIZE;
        char *room = as_buf_reserve(body, size);
        if (!room)
            return false;
        const size_t got = read_some(connection, room, size);
        body->size += got;
        missing -= got;
        turn += got;
        if (got == 0 || (got < size && !connection->tls))
            break;
    }
    return true;
}

/* Called after the body has grown. */
static bool fits(struct as_connection *connection)
{
    as_connection_count_body(connection);
    return as_http_server_fits_body(connection->server, connection);
}

static bool step_length_body(struct as_connection *connection)
{
    struct as_buf *body = &connection->exchange.body;
    const size_t wanted = (size_t)connection->exchange.head.content_length; /* <= max_body */
    const size_t arrived = connection->arrived_size, missing = wanted - body->size;
    bool room = arrived == 0 || take_body(connection, arrived < missing ? arrived : missing);
    if (room && arrived == 0)
        room = read_body(connection, missing);
    if (!room || !fits(connection)) {
        as_connection_refuse(connection, 503, "out of memory");
        return true;
    }
    if (body->size < wanted)
        return false;
    body->data[body->size] = '\0';
    handle(connection);
    return true;
}

static bool step_chunked_body(struct as_connection *connection)
{
    struct as_buf *body = &connection->exchange.body;
    const char *bytes = connection->arrived;
    const size_t size = connection->arrived_size;
    size_t used = 0;
    if (size == 0)
        return false;
    enum as_http_parse parsed = AS_HTTP_PARSE_MORE;
    while (used < size && parsed == AS_HTTP_PARSE_MORE) {
        size_t step, data_size;
        const char *data;
        parsed = as_http_chunks_step(&connection->chunks, bytes + used, size - used, &step, &data,
                                     &data_size);
        as_buf_append(body, data, data_size);
        used += step;
    }
    take(connection, used);
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
    connection->discarded += connection->arrived_size;
    take(connection, connection->arrived_size);
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

static bool is_handled(const struct as_connection *connection)
{
    return connection->state == AS_CONNECTION_HANDLING ||
           connection->state == AS_CONNECTION_ADMITTING;
}

static bool owes(const struct as_connection *connection)
{
    return is_handled(connection) || connection->state == AS_CONNECTION_WRITING;
}

/* Handles what has arrived. True: more can be done, after others had their turn. */
static bool run(struct as_connection *connection)
{
    unsigned answered = 0;
    while (answered < AHEAD_AT_ONCE && step(connection))
        answered += connection->state == AS_CONNECTION_IDLE;
    return answered == AHEAD_AT_ONCE && connection->state == AS_CONNECTION_IDLE &&
           connection->arrived_size > 0;
}

/* Sets what the connection waits for. */
static void settle(struct as_connection *connection)
{
    if (connection->state == AS_CONNECTION_CLOSED)
        return;
    if ((connection->peer_gone && !is_handled(connection)) ||
        (connection->peer_done && !owes(connection)))
        as_connection_enter(connection, AS_CONNECTION_CLOSED);
    else if (owes(connection) && connection->input.size >= connection->server->read_max)
        as_stream_pause(&connection->stream);
    else if (!owes(connection))
        go_on_reading(connection);
}

static void on_written(void *context, int status)
{
    struct as_connection *connection = context;
    if (status < 0)
        connection->peer_done = connection->peer_gone = true;
    if (connection->state == AS_CONNECTION_WRITING)
        as_connection_written(connection);
    else if (status < 0)
        settle(connection);
}

void as_connection_release(struct as_connection *connection)
{
    as_connection_let_go(connection);
    const int status = as_stream_flush(&connection->stream);
    if (status < 0 && status != -EAGAIN)
        on_written(connection, status);
}

static void on_ready(void *context, bool has_bytes)
{
    struct as_connection *connection = context;
    connection->running = true;
    connection->arrived = connection->input.data;
    connection->arrived_size = connection->input.size;
    if (has_bytes && connection->state != AS_CONNECTION_CLOSED)
        read_ahead(connection);
    const size_t arrived_size = connection->arrived_size;
    const bool puts_off = run(connection);
    connection->running = false;
    keep_rest(connection, arrived_size);
    if (puts_off)
        as_stream_wake(&connection->stream);
    else
        settle(connection);
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

struct as_connection *as_connection_open(struct as_http_server *server, evutil_socket_t fd,
                                         const struct sockaddr *peer)
{
    struct as_tls_context *tls = NULL;
    SSL *ssl = NULL;
    if (server->config.tls) {
        tls = as_tls_server_take_context(server->config.tls, as_http_server_now());
        ssl = SSL_new(tls->ssl);
    }
    struct as_connection *connection = as_xcalloc(1, sizeof(*connection));
    const struct as_stream_callbacks callbacks = {on_ready, on_written, connection};
    if ((tls && !ssl) ||
        as_stream_open(&connection->stream, server->base, fd, ssl, &callbacks) != 0) {
        SSL_free(ssl);
        as_tls_context_release(tls);
        close(fd);
        free(connection);
        return NULL;
    }
    connection->server = server;
    connection->tls = tls;
    connection->input = AS_BUF_INIT(server->read_max);
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
    return connection;
}

struct as_connection *as_connection_free(struct as_connection *connection)
{
    if (connection->shaken && !connection->peer_gone)
        as_stream_shut(&connection->stream);
    as_stream_close(&connection->stream);
    as_tls_context_release(connection->tls);
    free(connection->client_name);
    as_http_exchange_drop_data(&connection->exchange);
    as_buf_deinit(&connection->input);
    as_buf_deinit(&connection->exchange.text);
    as_buf_deinit(&connection->exchange.body);
    as_connection_count_body(connection);
    free(connection->exchange.sender);
    free(connection);
    return NULL;
}
