/*
 * The server: accepting, the lists of connections by state with their deadlines, limits, requests
 * and answers, draining.
 *
 * Invariants:
 * - Only connection_enter moves a connection to another list. `connections` counts the connections
 * on all lists except CLOSED.
 * - A timer that is not armed belongs to a list without deadlines, or to one that was empty when
 * the timer last fired. A timer stays armed when its list becomes empty: so the usual request needs
 * no timer operation.
 * - At most the server's `read_max` bytes of a connection wait unparsed; a body takes memory only
 * for bytes that have arrived; while the handler owes a reply the connection exists, even if the
 * peer is gone.
 *
 * Not here: parsing (http_parser.h), writing to sockets (stream.h), TLS (tls.h), the listening
 * socket (listen.c).
 *
 * Long because the server, a connection and its exchange are read as one.
 */
#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <openssl/err.h>
#include <openssl/sslerr.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/log.h>
#include <alertscaler/base/throttle.h>
#include <alertscaler/base/time.h>

#include "connection.h"
#include "tls.h"

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

static void server_arm(struct event *timer, int64_t delay_us)
{
    struct timeval delay = {.tv_sec = delay_us / AS_US_PER_S, .tv_usec = delay_us % AS_US_PER_S};
    if (evtimer_add(timer, &delay) != 0)
        as_log(AS_LOG_ERROR, "cannot set a timer", AS_FI("delay_us", delay_us));
}

static void connection_hold(struct as_connection *connection)
{
    struct as_http_server *server = connection->server;
    if (TAILQ_EMPTY(&server->held))
        event_active(server->release, 0, 0);
    if (!connection->is_held)
        TAILQ_INSERT_TAIL(&server->held, connection, held_link);
    connection->is_held = true;
}

static void connection_let_go(struct as_connection *connection)
{
    if (connection->is_held)
        TAILQ_REMOVE(&connection->server->held, connection, held_link);
    connection->is_held = false;
}

static void connection_enter(struct as_connection *connection, enum as_connection_state state)
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
        server_arm(to->timer, to->limit_us);
    }
    if (state == AS_CONNECTION_CLOSED) {
        if (connection->is_held)
            (void)as_stream_flush(&connection->stream); /* sends the held answers */
        connection_let_go(connection);
        as_stream_stop(&connection->stream);
        event_active(server->reap, 0, 0);
    }
}

/* Connection limits: which connection must go when there are too many connections, bodies or unsent
 * answers.
 *
 * The newest always gets a place, and the connection that had its chance for longest loses it. So a
 * peer that sends its request at once is answered, however many others hold connections; unless
 * more new ones come during its request than there are places. */

#define SMALL_BODY   ((size_t)64 * 1024) /* below this, not worth an answer of 503 */
#define STATES(list) (list), AS_ARRAY_SIZE(list)

static const struct drop_kind {
    const char *name, *event;
} drop_kinds[] = {
    [AS_HTTP_DROP_HANDSHAKE] = {"handshake", "TLS handshakes failed"},
    [AS_HTTP_DROP_LIMIT] = {"limit", "connections closed to make room for others"},
};

static bool log_losses(const void *context, const struct as_throttle *losses)
{
    const struct drop_kind *kind = context;
    as_log(AS_LOG_WARN, kind->event, AS_FI("count", losses->count),
           AS_F("last_remote", losses->remote), AS_F("last_reason", losses->error));
    return true;
}

static as_mono_time server_get_now(void)
{
    return (as_mono_time){as_http_server_now()};
}

/* The timer runs while there are losses that are not yet logged. */
static void watch_losses(struct as_http_server *server)
{
    for (size_t i = 0; i < AS_ARRAY_SIZE(server->losses); i++) {
        const int64_t wait = as_throttle_get_wait(&server->losses[i], server_get_now());
        const struct timeval delay = {wait / AS_US_PER_S, wait % AS_US_PER_S + 1};
        if (wait >= 0 && !evtimer_pending(server->losses_timer, NULL) &&
            evtimer_add(server->losses_timer, &delay) != 0)
            as_log(AS_LOG_ERROR, "cannot set a timer", AS_FI("delay_us", wait));
    }
}

static void on_losses(evutil_socket_t fd, short what, void *context)
{
    struct as_http_server *server = context;
    for (size_t i = 0; i < AS_ARRAY_SIZE(server->losses); i++)
        as_throttle_refill(&server->losses[i], server_get_now());
    watch_losses(server);
}

static void server_init_losses(struct as_http_server *server)
{
    server->losses_timer = evtimer_new(server->base, on_losses, server);
    if (!server->losses_timer)
        abort(); /* at the start, and only without memory */
    for (size_t i = 0; i < AS_ARRAY_SIZE(server->losses); i++)
        server->losses[i] =
            AS_THROTTLE_INIT(server->config.losses_every_us, log_losses, &drop_kinds[i]);
}

static void server_deinit_losses(struct as_http_server *server)
{
    for (size_t i = 0; i < AS_ARRAY_SIZE(server->losses); i++)
        as_throttle_end(&server->losses[i], server_get_now());
    event_free(server->losses_timer);
}

static void connection_count_drop(struct as_connection *connection, enum as_http_drop kind,
                                  const char *error)
{
    struct as_http_server *server = connection->server;
    as_throttle_add(&server->losses[kind], connection->exchange.remote, error, server_get_now());
    watch_losses(server);
    if (server->handler.dropped)
        server->handler.dropped(server->handler.context, drop_kinds[kind].name);
}

static void connection_drop(struct as_connection *connection, enum as_http_drop kind,
                            const char *error)
{
    assert(connection); /* the sum says that some connection holds memory */
    connection_count_drop(connection, kind, error);
    connection_enter(connection, AS_CONNECTION_CLOSED);
}

static struct as_connection *find_oldest(struct as_http_server *server,
                                         const enum as_connection_state *states, size_t count)
{
    struct as_connection *oldest = NULL;
    for (size_t i = 0; i < count; i++) {
        struct as_connection *first = TAILQ_FIRST(&server->queues[states[i]].list);
        if (first && (!oldest || first->entered_us < oldest->entered_us))
            oldest = first;
    }
    return oldest;
}

/* Idle connections lose only the handshake. Still they are spared while most others have not sent a
 * request: otherwise a flood of silent connections would close those of all regular peers. */
static struct as_connection *server_find_dispensable(struct as_http_server *server)
{
    static const enum as_connection_state unproven[] = {AS_CONNECTION_FRESH, AS_CONNECTION_HEAD};
    static const enum as_connection_state idle[] = {AS_CONNECTION_IDLE};
    static const enum as_connection_state others[] = {AS_CONNECTION_FRESH, AS_CONNECTION_HEAD,
                                                      AS_CONNECTION_BODY, AS_CONNECTION_WRITING,
                                                      AS_CONNECTION_LINGERING};
    unsigned count =
        server->queues[AS_CONNECTION_FRESH].count + server->queues[AS_CONNECTION_HEAD].count;
    struct as_connection *found = NULL;
    if (count > server->config.max_connections / 2)
        found = find_oldest(server, STATES(unproven));
    if (!found)
        found = find_oldest(server, STATES(idle));
    return found ? found : find_oldest(server, STATES(others));
}

static bool server_make_room(struct as_http_server *server)
{
    unsigned owed = server->queues[AS_CONNECTION_ADMITTING].count +
                    server->queues[AS_CONNECTION_HANDLING].count;
    if (owed >= server->config.max_connections)
        return false; /* connections that are owed a reply stay */
    while (server->connections >= server->config.max_connections)
        connection_drop(server_find_dispensable(server), AS_HTTP_DROP_LIMIT,
                        "as many connections as receiver.max_connections allows");
    return true;
}

static void connection_count_body(struct as_connection *connection)
{
    struct as_http_server *server = connection->server;
    const char *sender = connection->exchange.sender;
    size_t held = connection->exchange.body.capacity;
    server->bodies_held += held - connection->body_held; /* modulo 2^64 */
    as_shares_give(&server->shares, connection->share, connection->body_held);
    connection->share = held > 0 ? as_shares_take(&server->shares, sender, held) : NULL;
    connection->body_held = held;
}

/* With a share: one of its bodies. */
static struct as_connection *find_oldest_body(struct as_http_server *server,
                                              const struct as_connection *but,
                                              const struct as_share *share)
{
    struct as_connection *connection;
    TAILQ_FOREACH (connection, &server->queues[AS_CONNECTION_BODY].list, link)
        if (connection != but && connection->body_held > SMALL_BODY &&
            (!share || connection->share == share))
            return connection;
    return NULL;
}

/* While narrowed credentials have more than half of the memory, that with most of it makes room. */
static struct as_connection *find_large_body(struct as_http_server *server,
                                             const struct as_connection *but)
{
    const struct as_share *largest = server->shares.held > server->config.max_bodies / 2
                                         ? as_shares_find_largest(&server->shares)
                                         : NULL;
    struct as_connection *found = find_oldest_body(server, but, largest);
    if (found || !largest || but->share == largest)
        return found;
    return find_oldest_body(server, but, NULL);
}

static void connection_count_unsent(struct as_connection *connection)
{
    struct as_http_server *server = connection->server;
    static const enum as_connection_state writing[] = {AS_CONNECTION_WRITING};
    connection->unsent = as_stream_count_unsent(&connection->stream);
    server->unsent += connection->unsent;
    while (server->unsent > server->config.max_unsent)
        connection_drop(find_oldest(server, STATES(writing)), AS_HTTP_DROP_LIMIT,
                        "answers that their peers do not read take too much memory");
}

/* An exchange: one request as the handler sees it, and its answer on the way out. */

#define KEEP_MEMORY 4096 /* between requests */
#define HOLD_MAX    ((size_t)64 * 1024)

static const struct status_phrase {
    int status;
    const char *phrase;
} status_phrases[] = {
    {200, "OK"},
    {202, "Accepted"},
    {204, "No Content"},
    {303, "See Other"},
    {304, "Not Modified"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {408, "Request Timeout"},
    {409, "Conflict"},
    {411, "Length Required"},
    {413, "Content Too Large"},
    {414, "URI Too Long"},
    {415, "Unsupported Media Type"},
    {417, "Expectation Failed"},
    {422, "Unprocessable Content"},
    {431, "Request Header Fields Too Large"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {503, "Service Unavailable"},
    {505, "HTTP Version Not Supported"},
};

static const char *exchange_find_phrase(int status)
{
    for (size_t i = 0; i < AS_ARRAY_SIZE(status_phrases); i++)
        if (status_phrases[i].status == status)
            return status_phrases[i].phrase;
    return "";
}

static const char *exchange_get_string(const struct as_http_exchange *exchange,
                                       struct as_http_span span)
{
    return exchange->text.data + span.at;
}

const char *as_http_exchange_get_method(const struct as_http_exchange *exchange)
{
    return exchange_get_string(exchange, exchange->head.method);
}

const char *as_http_exchange_get_path(const struct as_http_exchange *exchange)
{
    return exchange->head.path.size > 0 ? exchange_get_string(exchange, exchange->head.path) : "/";
}

void as_http_exchange_cut_path(struct as_http_exchange *exchange, size_t size)
{
    assert(size <= exchange->head.path.size);
    exchange->head.path.at += (uint32_t)size;
    exchange->head.path.size -= (uint32_t)size;
}

const char *as_http_exchange_get_query(const struct as_http_exchange *exchange)
{
    return exchange_get_string(exchange, exchange->head.query);
}

static bool is_header(const struct as_http_exchange *exchange, const struct as_http_field *field,
                      const char *name, size_t size)
{
    return field->name.size == size &&
           strcasecmp(exchange_get_string(exchange, field->name), name) == 0;
}

const char *as_http_exchange_find_header(const struct as_http_exchange *exchange, const char *name)
{
    const size_t size = strlen(name);
    for (unsigned i = 0; i < exchange->head.field_count; i++) {
        const struct as_http_field *field = &exchange->head.fields[i];
        if (is_header(exchange, field, name, size))
            return exchange_get_string(exchange, field->value);
    }
    return NULL;
}

size_t as_http_exchange_count_headers(const struct as_http_exchange *exchange, const char *name)
{
    const size_t size = strlen(name);
    size_t count = 0;
    for (unsigned i = 0; i < exchange->head.field_count; i++)
        count += is_header(exchange, &exchange->head.fields[i], name, size);
    return count;
}

const char *as_http_exchange_get_body(const struct as_http_exchange *exchange, size_t *size_out)
{
    if (size_out)
        *size_out = exchange->body.size;
    return exchange->body.size > 0 ? exchange->body.data : "";
}

const char *as_http_exchange_get_remote(const struct as_http_exchange *exchange)
{
    return exchange->remote;
}

const char *as_http_exchange_find_client_name(const struct as_http_exchange *exchange)
{
    return exchange->connection->client_name;
}

void as_http_exchange_set_route(struct as_http_exchange *exchange, const void *route,
                                const char *handler_name)
{
    exchange->route = route;
    exchange->handler_name = handler_name;
}

const void *as_http_exchange_get_route(const struct as_http_exchange *exchange)
{
    return exchange->route;
}

static void exchange_drop_data(struct as_http_exchange *exchange)
{
    if (exchange->data && exchange->free_data)
        exchange->free_data(exchange->data);
    exchange->data = NULL;
    exchange->free_data = NULL;
}

void as_http_exchange_set_data(struct as_http_exchange *exchange, void *data,
                               void (*free_data)(void *data))
{
    exchange_drop_data(exchange);
    exchange->data = data;
    exchange->free_data = free_data;
}

void as_http_exchange_set_sender(struct as_http_exchange *exchange, const char *name)
{
    free(exchange->sender);
    exchange->sender = as_xstrdup(name);
}

void *as_http_exchange_get_data(const struct as_http_exchange *exchange)
{
    return exchange->data;
}

/* Ends the text of `span` with a NUL. It overwrites a byte that is no longer needed: a space, '?',
 * ':' or the CR of the line. */
static void exchange_cut(struct as_buf *text, struct as_http_span span)
{
    text->data[span.at + span.size] = '\0';
}

static void exchange_begin(struct as_http_exchange *exchange, const char *head_bytes)
{
    const struct as_http_head *head = &exchange->head;
    as_buf_append(&exchange->text, head_bytes, head->size);
    assert(as_buf_check(&exchange->text) == 0); /* at most max_head */
    exchange_cut(&exchange->text, head->method);
    exchange_cut(&exchange->text, head->path);
    exchange_cut(&exchange->text, head->query);
    for (unsigned i = 0; i < head->field_count; i++) {
        exchange_cut(&exchange->text, head->fields[i].name);
        exchange_cut(&exchange->text, head->fields[i].value);
    }
    exchange->is_head_request = strcmp(as_http_exchange_get_method(exchange), "HEAD") == 0;
}

/* Wipes it: credentials were in it, or a login. */
static void exchange_empty(struct as_buf *buf)
{
    if (buf->capacity > KEEP_MEMORY)
        as_buf_deinit(buf);
    else if (buf->size > 0)
        explicit_bzero(buf->data, buf->size);
    as_buf_clear(buf);
}

/* Prepares for the next request. */
static void exchange_reset(struct as_http_exchange *exchange)
{
    as_http_head_init(&exchange->head, exchange->connection->server->config.max_head);
    exchange_empty(&exchange->text);
    exchange_empty(&exchange->body);
    connection_count_body(exchange->connection);
    as_http_exchange_set_route(exchange, NULL, "");
    exchange->is_head_request = exchange->replied = false;
    exchange_drop_data(exchange);
    free(exchange->sender);
    exchange->sender = NULL;
}

static bool connection_send(struct as_connection *connection, struct iovec *parts, int count)
{
    const int status = as_stream_send(&connection->stream, parts, count);
    if (status < 0 && status != -EAGAIN)
        connection->peer_gone = true;
    return status != -EAGAIN;
}

static size_t connection_count_arrived(const struct as_connection *connection)
{
    return connection->running ? connection->arrived_size : connection->input.size;
}

static void connection_go_on_reading(struct as_connection *connection)
{
    if (!connection->peer_done && connection->state != AS_CONNECTION_CLOSED)
        as_stream_resume(&connection->stream);
}

static void connection_linger(struct as_connection *connection)
{
    as_stream_shut(&connection->stream);
    connection_enter(connection, AS_CONNECTION_LINGERING);
    connection_go_on_reading(connection);
}

/* The answer is sent: goes on to the next request, or ends the connection. */
static void connection_written(struct as_connection *connection)
{
    exchange_reset(&connection->exchange);
    bool more = connection_count_arrived(connection) > 0;
    bool close = connection->close_after || connection->server->draining;
    if (connection->peer_gone || (close && !connection->unread && !more)) {
        connection_enter(connection, AS_CONNECTION_CLOSED);
    } else if (close) {
        connection_linger(connection);
    } else {
        connection_enter(connection, AS_CONNECTION_IDLE);
    }
    connection_go_on_reading(connection);
    /* A reply from outside our own loop: continue from an event, not on the caller's stack. */
    if (!connection->running && connection->state != AS_CONNECTION_CLOSED &&
        (connection->peer_done || more))
        as_stream_wake(&connection->stream);
}

/* Whether the answer may wait: if more requests have arrived, their answers follow soon and are
 * sent together. Not for a peer that does not read: its answers count as unsent. */
static bool connection_may_hold(const struct as_connection *connection, const struct iovec *parts,
                                int count)
{
    const size_t unsent = as_stream_count_unsent(&connection->stream);
    size_t size = unsent;
    for (int i = 0; i < count; i++)
        size += parts[i].iov_len;
    return !connection->close_after && connection_count_arrived(connection) > 0 &&
           size < HOLD_MAX && (unsent == 0 || connection->is_held);
}

static bool connection_send_answer(struct as_connection *connection, struct iovec *parts, int count)
{
    if (!connection_may_hold(connection, parts, count) ||
        as_stream_hold(&connection->stream, parts, count) != 0)
        return connection_send(connection, parts, count);
    connection_hold(connection);
    return true;
}

static const char *get_date(struct as_http_server *server)
{
    static const char days[][4] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static const char months[][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    time_t now = time(NULL);
    if (now == server->date_at)
        return server->date;
    struct tm tm;
    if (!gmtime_r(&now, &tm))
        return server->date;
    server->date_at = now;
    snprintf(server->date, sizeof(server->date), "%s, %02d %s %d %02d:%02d:%02d GMT",
             days[tm.tm_wday], tm.tm_mday, months[tm.tm_mon], tm.tm_year + 1900, tm.tm_hour,
             tm.tm_min, tm.tm_sec);
    return server->date;
}

static void server_print_head(struct as_http_server *server,
                              const struct as_http_exchange *exchange,
                              const struct as_http_answer *answer, bool close)
{
    struct as_buf *out = &server->out;
    as_buf_clear(out);
    as_buf_append_str(out, "HTTP/1.1 ");
    as_buf_append_i64(out, answer->status);
    as_buf_append_char(out, ' ');
    as_buf_append_str(out, exchange_find_phrase(answer->status));
    as_buf_append_str(out, "\r\nDate: ");
    as_buf_append_str(out, get_date(server));
    if (answer->status != 204 && answer->status != 304) {
        as_buf_append_str(out, "\r\nContent-Type: ");
        as_buf_append_str(out, answer->content_type ? answer->content_type
                                                    : "text/plain; charset=utf-8");
        if (!server->has_own_nosniff)
            as_buf_append_str(out, "\r\nX-Content-Type-Options: nosniff");
        as_buf_append_str(out, "\r\nContent-Length: ");
        as_buf_append_i64(out, (int64_t)answer->body_size);
    }
    as_buf_append_str(out, "\r\n");
    if (close)
        as_buf_append_str(out, "Connection: close\r\n");
    else if (exchange->head.minor == 0)
        as_buf_append_str(out, "Connection: keep-alive\r\n");
    if (server->extra_headers)
        as_buf_append_str(out, server->extra_headers);
    if (answer->headers)
        as_buf_append_str(out, answer->headers);
    as_buf_append_str(out, "\r\n");
    assert(as_buf_check(out) == 0); /* the handler's own headers, not a peer's */
}

void as_http_exchange_reply(struct as_http_exchange *exchange, const struct as_http_answer *answer)
{
    struct as_connection *connection = exchange->connection;
    struct as_http_server *server = connection->server;
    assert(!exchange->replied);
    exchange->replied = true;
    connection->close_after =
        answer->close || connection->unread || server->draining || !exchange->head.keep_alive;
    bool sent = true;
    if (!connection->peer_gone) {
        server_print_head(server, exchange, answer, connection->close_after);
        bool has_body = answer->body_size > 0 && !exchange->is_head_request &&
                        answer->status != 204 && answer->status != 304;
        struct iovec parts[] = {{server->out.data, server->out.size},
                                {(void *)(uintptr_t)answer->body, answer->body_size}};
        sent = connection_send_answer(connection, parts, has_body ? 2 : 1);
        explicit_bzero(server->out.data, server->out.size); /* a session's id may be in it */
    }
    const char *name = exchange->handler_name;
    int64_t duration_us = as_http_server_now() - exchange->started_us;
    int status = answer->status; /* the answer may point into memory that is reset now */
    if (sent) {
        connection_written(connection);
    } else {
        exchange_empty(&exchange->body);
        connection_count_body(connection);
        connection_enter(connection, AS_CONNECTION_WRITING);
        connection_count_unsent(connection);
    }
    if (server->handler.answered)
        server->handler.answered(server->handler.context, name, status, duration_us);
}

/* A connection: turns bytes into requests, one at a time.
 *
 * The bytes of a read are parsed in place, in a buffer of the server. Bytes that cannot be used yet
 * are then copied to the connection's `input`.
 *
 * Lingering: closing right after the answer to an unfinished request would destroy this answer:
 * bytes that arrive at a closed socket make our kernel send RST, and then the peer's kernel drops
 * what the peer has not read. So we shut our side, and read and drop what still comes, for a
 * limited time and amount. */

#define READ_SIZE     ((size_t)64 * 1024)
#define READ_AT_ONCE  ((size_t)256 * 1024) /* of one body per turn */
#define AHEAD_AT_ONCE 2                    /* requests that a peer has sent ahead, per turn */
#define LINGER_MAX    ((size_t)64 * 1024 * 1024)

static void connection_refuse(struct as_connection *connection, int status, const char *reason)
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

static bool server_fits_body(struct as_http_server *server, struct as_connection *newest)
{
    struct as_connection *oldest;
    while (server->bodies_held > server->config.max_bodies &&
           (oldest = find_large_body(server, newest))) {
        as_buf_deinit(&oldest->exchange.body);
        connection_count_body(oldest);
        connection_refuse(oldest, 503, "too many large requests at once");
    }
    return server->bodies_held <= server->config.max_bodies || newest->body_held <= SMALL_BODY;
}

static void connection_expire(struct as_connection *connection)
{
    if (connection->state == AS_CONNECTION_HEAD || connection->state == AS_CONNECTION_BODY)
        connection_refuse(connection, 408, "the request did not arrive in time");
    else if (connection->tls && !connection->shaken)
        connection_drop(connection, AS_HTTP_DROP_HANDSHAKE, "it was not done in time");
    else
        connection_enter(connection, AS_CONNECTION_CLOSED);
}

static void connection_handle(struct as_connection *connection)
{
    struct as_http_handler *handler = &connection->server->handler;
    connection->unread = false;
    connection_enter(connection, AS_CONNECTION_HANDLING);
    handler->handle(handler->context, &connection->exchange);
}

/* Goes on to the body, or directly to the handler. */
static void connection_begin_body(struct as_connection *connection)
{
    static char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";
    const struct as_http_server *server = connection->server;
    const struct as_http_head *head = &connection->exchange.head;
    if (head->framing == AS_HTTP_BODY_LENGTH && head->content_length > server->config.max_body) {
        connection_refuse(connection, 413, "the body is too large");
    } else if (!connection->unread) {
        connection_handle(connection);
    } else {
        as_http_chunks_init(&connection->chunks);
        connection_enter(connection, AS_CONNECTION_BODY);
        if (head->expects_continue && connection_count_arrived(connection) == 0)
            connection_send(connection, &(struct iovec){go_on, strlen(go_on)}, 1);
    }
}

/* The head is complete: the handler decides. */
static void connection_start_request(struct as_connection *connection)
{
    struct as_http_server *server = connection->server;
    const struct as_http_head *head = &connection->exchange.head;
    connection->unread = head->framing == AS_HTTP_BODY_CHUNKED ||
                         (head->framing == AS_HTTP_BODY_LENGTH && head->content_length > 0);
    switch (server->handler.admit(server->handler.context, &connection->exchange)) {
    case AS_HTTP_ADMITTED:
        assert(connection->state == AS_CONNECTION_HEAD); /* the handler has not replied */
        connection_begin_body(connection);
        break;
    case AS_HTTP_PENDING:
        assert(connection->state == AS_CONNECTION_HEAD);
        connection_enter(connection, AS_CONNECTION_ADMITTING);
        break;
    case AS_HTTP_REPLIED: assert(connection->state != AS_CONNECTION_HEAD); break;
    }
}

/* The body's time begins now; an event reads the bytes that have arrived. */
static void connection_admitted(struct as_connection *connection)
{
    assert(connection->state == AS_CONNECTION_ADMITTING);
    connection_begin_body(connection);
    if (connection->state != AS_CONNECTION_BODY)
        return;
    connection_go_on_reading(connection);
    as_stream_wake(&connection->stream);
}

void as_http_exchange_admit(struct as_http_exchange *exchange)
{
    connection_admitted(exchange->connection);
}

static void connection_take(struct as_connection *connection, size_t size)
{
    connection->arrived += size;
    connection->arrived_size -= size;
}

/* The step functions return true if more can be done with the bytes that have arrived. */
static bool connection_step_head(struct as_connection *connection)
{
    struct as_http_exchange *exchange = &connection->exchange;
    const char *bytes = connection->arrived;
    size_t size = connection->arrived_size;
    if (size == 0)
        return false;
    if (connection->state != AS_CONNECTION_HEAD) {
        connection_enter(connection, AS_CONNECTION_HEAD);
        exchange->started_us = connection->entered_us;
    }
    if (size > exchange->head.max)
        size = exchange->head.max;
    switch (as_http_head_parse(&exchange->head, bytes, size)) {
    case AS_HTTP_PARSE_MORE: return false;
    case AS_HTTP_PARSE_REFUSED:
        connection_refuse(connection, exchange->head.status, exchange->head.reason);
        return true;
    case AS_HTTP_PARSE_DONE: break;
    }
    exchange_begin(exchange, bytes);
    connection_take(connection, exchange->head.size);
    connection_start_request(connection);
    return true;
}

static void connection_finish_handshake(struct as_connection *connection)
{
    connection->shaken = true;
    connection->client_name = as_tls_context_find_name(connection->tls, connection->stream.ssl);
}

/* What the peer still sends is read as plain bytes. */
static void connection_end_tls(struct as_connection *connection)
{
    as_stream_end_tls(&connection->stream);
    as_tls_context_release(connection->tls);
    connection->tls = NULL;
    connection->peer_done = connection->peer_gone = false;
}

/* A peer that leaves without sending a byte (a port check) is no failure. */
static void connection_fail_handshake(struct as_connection *connection, ssize_t status)
{
    static const char hint[] = "HTTP/1.0 400 Bad Request\r\nContent-Length: 34\r\n\r\n"
                               "this is an HTTPS port: use https:\n";
    char error[256];
    const unsigned long code = connection->stream.tls_error;
    as_tls_explain(connection->stream.ssl, code, error, sizeof(error));
    if (status < 0)
        connection_count_drop(connection, AS_HTTP_DROP_HANDSHAKE, error);
    if (ERR_GET_LIB(code) == ERR_LIB_SSL && ERR_GET_REASON(code) == SSL_R_HTTP_REQUEST) {
        (void)send(connection->stream.fd, hint, sizeof(hint) - 1, MSG_DONTWAIT | MSG_NOSIGNAL);
        connection_end_tls(connection);
        connection_linger(connection);
    } else {
        connection_enter(connection, AS_CONNECTION_CLOSED);
    }
}

/* A peer that has stopped sending may still read: a reply that is owed is still sent. */
static void connection_note_end(struct as_connection *connection, ssize_t status)
{
    connection->peer_done = true;
    connection->peer_gone |= status < 0;
    as_stream_pause(&connection->stream);
    if (connection->tls && !connection->shaken)
        connection_fail_handshake(connection, status);
}

/* Returns how many bytes came. */
static size_t connection_read_some(struct as_connection *connection, char *room, size_t size)
{
    if (connection->peer_done)
        return 0;
    const ssize_t got = as_stream_read(&connection->stream, room, size);
    if (connection->tls && !connection->shaken && SSL_is_init_finished(connection->stream.ssl))
        connection_finish_handshake(connection);
    if (got == 0 || (got < 0 && got != -EAGAIN))
        connection_note_end(connection, got);
    return got > 0 ? (size_t)got : 0;
}

static bool connection_reads_body(const struct as_connection *connection)
{
    return connection->state == AS_CONNECTION_BODY &&
           connection->exchange.head.framing == AS_HTTP_BODY_LENGTH;
}

/* Reads once, behind the unparsed bytes; but a body with a length is read directly to its place. */
static void connection_read_ahead(struct as_connection *connection)
{
    struct as_http_server *server = connection->server;
    struct as_buf *input = &connection->input;
    if (input->size == 0 && !connection_reads_body(connection)) {
        connection->arrived = server->scratch;
        connection->arrived_size =
            connection_read_some(connection, server->scratch, server->read_max);
    } else if (input->size > 0 && input->size < server->read_max) {
        const size_t size = server->read_max - input->size;
        char *room = as_buf_reserve(input, size);
        input->size += room ? connection_read_some(connection, room, size) : 0;
        connection->arrived = input->data;
        connection->arrived_size = input->size;
    }
}

/* Keeps what is not yet parsed. Wipes the server's buffer, which may have held a password. */
static void connection_keep_rest(struct as_connection *connection, size_t arrived_size)
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
static bool connection_take_body(struct as_connection *connection, size_t size)
{
    struct as_buf *body = &connection->exchange.body;
    char *room = as_buf_reserve(body, size);
    if (!room)
        return false;
    memcpy(room, connection->arrived, size);
    body->size += size;
    connection_take(connection, size);
    return true;
}

/* As take_body, directly from the peer. A plain socket that gave less than asked has no more. */
static bool connection_read_body(struct as_connection *connection, size_t missing)
{
    struct as_buf *body = &connection->exchange.body;
    size_t turn = 0;
    while (missing > 0 && turn < READ_AT_ONCE) {
        const size_t size = missing < READ_SIZE ? missing : READ_SIZE;
        char *room = as_buf_reserve(body, size);
        if (!room)
            return false;
        const size_t got = connection_read_some(connection, room, size);
        body->size += got;
        missing -= got;
        turn += got;
        if (got == 0 || (got < size && !connection->tls))
            break;
    }
    return true;
}

/* Called after the body has grown. */
static bool connection_fits(struct as_connection *connection)
{
    connection_count_body(connection);
    return server_fits_body(connection->server, connection);
}

static bool connection_step_length_body(struct as_connection *connection)
{
    struct as_buf *body = &connection->exchange.body;
    const size_t wanted = (size_t)connection->exchange.head.content_length; /* <= max_body */
    const size_t arrived = connection->arrived_size, missing = wanted - body->size;
    bool room =
        arrived == 0 || connection_take_body(connection, arrived < missing ? arrived : missing);
    if (room && arrived == 0)
        room = connection_read_body(connection, missing);
    if (!room || !connection_fits(connection)) {
        connection_refuse(connection, 503, "out of memory");
        return true;
    }
    if (body->size < wanted)
        return false;
    body->data[body->size] = '\0';
    connection_handle(connection);
    return true;
}

static bool connection_step_chunked_body(struct as_connection *connection)
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
    connection_take(connection, used);
    if (parsed == AS_HTTP_PARSE_REFUSED)
        connection_refuse(connection, connection->chunks.status, connection->chunks.reason);
    else if (as_buf_check(body) != 0)
        connection_refuse(connection, 413, "the body is too large");
    else if (!connection_fits(connection))
        connection_refuse(connection, 503, "out of memory");
    else if (parsed == AS_HTTP_PARSE_DONE)
        connection_handle(connection);
    return true;
}

static bool connection_step_body(struct as_connection *connection)
{
    if (connection->exchange.head.framing == AS_HTTP_BODY_CHUNKED)
        return connection_step_chunked_body(connection);
    return connection_step_length_body(connection);
}

static bool connection_step_lingering(struct as_connection *connection)
{
    connection->discarded += connection->arrived_size;
    connection_take(connection, connection->arrived_size);
    if (connection->discarded > LINGER_MAX)
        connection_enter(connection, AS_CONNECTION_CLOSED);
    return false;
}

static bool connection_step(struct as_connection *connection)
{
    switch (connection->state) {
    case AS_CONNECTION_FRESH:
    case AS_CONNECTION_IDLE:
    case AS_CONNECTION_HEAD: return connection_step_head(connection);
    case AS_CONNECTION_BODY: return connection_step_body(connection);
    case AS_CONNECTION_LINGERING: return connection_step_lingering(connection);
    case AS_CONNECTION_ADMITTING:
    case AS_CONNECTION_HANDLING:
    case AS_CONNECTION_WRITING:
    case AS_CONNECTION_CLOSED: break;
    }
    return false;
}

static bool connection_is_handled(const struct as_connection *connection)
{
    return connection->state == AS_CONNECTION_HANDLING ||
           connection->state == AS_CONNECTION_ADMITTING;
}

static bool connection_owes(const struct as_connection *connection)
{
    return connection_is_handled(connection) || connection->state == AS_CONNECTION_WRITING;
}

/* Handles what has arrived. True: more can be done, after others had their turn. */
static bool connection_run(struct as_connection *connection)
{
    unsigned answered = 0;
    while (answered < AHEAD_AT_ONCE && connection_step(connection))
        answered += connection->state == AS_CONNECTION_IDLE;
    return answered == AHEAD_AT_ONCE && connection->state == AS_CONNECTION_IDLE &&
           connection->arrived_size > 0;
}

/* Sets what the connection waits for. */
static void connection_settle(struct as_connection *connection)
{
    if (connection->state == AS_CONNECTION_CLOSED)
        return;
    if ((connection->peer_gone && !connection_is_handled(connection)) ||
        (connection->peer_done && !connection_owes(connection)))
        connection_enter(connection, AS_CONNECTION_CLOSED);
    else if (connection_owes(connection) && connection->input.size >= connection->server->read_max)
        as_stream_pause(&connection->stream);
    else if (!connection_owes(connection))
        connection_go_on_reading(connection);
}

static void connection_on_written(void *context, int status)
{
    struct as_connection *connection = context;
    if (status < 0)
        connection->peer_done = connection->peer_gone = true;
    if (connection->state == AS_CONNECTION_WRITING)
        connection_written(connection);
    else if (status < 0)
        connection_settle(connection);
}

static void connection_release(struct as_connection *connection)
{
    connection_let_go(connection);
    const int status = as_stream_flush(&connection->stream);
    if (status < 0 && status != -EAGAIN)
        connection_on_written(connection, status);
}

static void connection_on_ready(void *context, bool has_bytes)
{
    struct as_connection *connection = context;
    connection->running = true;
    connection->arrived = connection->input.data;
    connection->arrived_size = connection->input.size;
    if (has_bytes && connection->state != AS_CONNECTION_CLOSED)
        connection_read_ahead(connection);
    const size_t arrived_size = connection->arrived_size;
    const bool puts_off = connection_run(connection);
    connection->running = false;
    connection_keep_rest(connection, arrived_size);
    if (puts_off)
        as_stream_wake(&connection->stream);
    else
        connection_settle(connection);
}

static void connection_print_remote(const struct sockaddr *peer, char *text, size_t size)
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

static struct as_connection *connection_open(struct as_http_server *server, evutil_socket_t fd,
                                             const struct sockaddr *peer)
{
    struct as_tls_context *tls = NULL;
    SSL *ssl = NULL;
    if (server->config.tls) {
        tls = as_tls_server_take_context(server->config.tls, as_http_server_now());
        ssl = SSL_new(tls->ssl);
    }
    struct as_connection *connection = as_xcalloc(1, sizeof(*connection));
    const struct as_stream_callbacks callbacks = {connection_on_ready, connection_on_written,
                                                  connection};
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
    exchange_reset(&connection->exchange);
    connection_print_remote(peer, connection->exchange.remote, sizeof(connection->exchange.remote));
    connection->state = AS_CONNECTION_CLOSED;
    server->queues[AS_CONNECTION_CLOSED].count++;
    TAILQ_INSERT_TAIL(&server->queues[AS_CONNECTION_CLOSED].list, connection, link);
    connection_enter(connection, AS_CONNECTION_FRESH);
    connection->exchange.started_us = connection->entered_us;
    return connection;
}

static struct as_connection *connection_free(struct as_connection *connection)
{
    if (connection->shaken && !connection->peer_gone)
        as_stream_shut(&connection->stream);
    as_stream_close(&connection->stream);
    as_tls_context_release(connection->tls);
    free(connection->client_name);
    exchange_drop_data(&connection->exchange);
    as_buf_deinit(&connection->input);
    as_buf_deinit(&connection->exchange.text);
    as_buf_deinit(&connection->exchange.body);
    connection_count_body(connection);
    free(connection->exchange.sender);
    free(connection);
    return NULL;
}

/* The life of a server */

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
        connection_release(connection);
}

static void server_on_deadline(evutil_socket_t fd, short what, void *context)
{
    struct as_connection_queue *queue = context;
    struct as_connection *first;
    int64_t now = as_http_server_now();
    queue->armed = true; /* entering the list while entries move must not arm the timer */
    while ((first = TAILQ_FIRST(&queue->list)) && first->entered_us + queue->limit_us <= now)
        connection_expire(first);
    queue->armed = first != NULL;
    if (!first)
        return;
    int64_t left = first->entered_us + queue->limit_us - now;
    server_arm(queue->timer, left > TIMER_SHORTEST_US ? left : TIMER_SHORTEST_US);
}

static void on_reap(evutil_socket_t fd, short what, void *context)
{
    struct as_http_server *server = context;
    struct as_connection_list *closed = &server->queues[AS_CONNECTION_CLOSED].list;
    struct as_connection *connection;
    while ((connection = TAILQ_FIRST(closed))) {
        TAILQ_REMOVE(closed, connection, link);
        server->queues[AS_CONNECTION_CLOSED].count--;
        connection_free(connection);
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
    connection_enter(oldest, AS_CONNECTION_CLOSED);
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
    bool room = server_make_room(server);
    if (!room && server->config.tls) {
        evutil_closesocket(fd); /* a 503 would need a handshake */
        return;
    }
    if (!room && server->connections - max >= REFUSED_MAX) {
        evutil_closesocket(fd);
        return;
    }
    struct as_connection *connection = connection_open(server, fd, peer);
    if (connection && !room)
        connection_refuse(connection, 503, "too many connections");
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
    server_arm(server->resume, ACCEPT_PAUSE_US);
}

static void on_resume(evutil_socket_t fd, short what, void *context)
{
    struct as_http_server *server = context;
    server->accepted = 0;
    if (server->listener)
        evconnlistener_enable(server->listener);
}

static struct event *server_make_event(struct event_base *base, event_callback_fn callback,
                                       void *context)
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
        queue->timer = server_make_event(server->base, server_on_deadline, queue);
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
    server->reap = server_make_event(base, on_reap, server);
    server->resume = server_make_event(base, on_resume, server);
    server->release = server_make_event(base, on_release, server);
    TAILQ_INIT(&server->held);
    as_shares_init(&server->shares);
    init_queues(server);
    server_init_losses(server);
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
            connection_free(connection);
        }
        event_free(queue->timer);
    }
    server_deinit_losses(server);
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
