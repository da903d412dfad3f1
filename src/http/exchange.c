/*
 * One request as the handler sees it, and its answer on the way out.
 */
#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/uio.h>

#include <alertscaler/base/alloc.h>

#include "connection.h"

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

static const char *find_phrase(int status)
{
    for (size_t i = 0; i < AS_ARRAY_SIZE(status_phrases); i++)
        if (status_phrases[i].status == status)
            return status_phrases[i].phrase;
    return "";
}

static const char *get_string(const struct as_http_exchange *exchange, struct as_http_span span)
{
    return exchange->text.data + span.at;
}

const char *as_http_exchange_get_method(const struct as_http_exchange *exchange)
{
    return get_string(exchange, exchange->head.method);
}

const char *as_http_exchange_get_path(const struct as_http_exchange *exchange)
{
    return exchange->head.path.size > 0 ? get_string(exchange, exchange->head.path) : "/";
}

void as_http_exchange_cut_path(struct as_http_exchange *exchange, size_t size)
{
    assert(size <= exchange->head.path.size);
    exchange->head.path.at += (uint32_t)size;
    exchange->head.path.size -= (uint32_t)size;
}

const char *as_http_exchange_get_query(const struct as_http_exchange *exchange)
{
    return get_string(exchange, exchange->head.query);
}

const char *as_http_exchange_find_header(const struct as_http_exchange *exchange, const char *name)
{
    size_t size = strlen(name);
    for (unsigned i = 0; i < exchange->head.field_count; i++) {
        const struct as_http_field *field = &exchange->head.fields[i];
        if (field->name.size == size && strcasecmp(get_string(exchange, field->name), name) == 0)
            return get_string(exchange, field->value);
    }
    return NULL;
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

void as_http_exchange_set_data(struct as_http_exchange *exchange, void *data,
                               void (*free_data)(void *data))
{
    as_http_exchange_drop_data(exchange);
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

void as_http_exchange_drop_data(struct as_http_exchange *exchange)
{
    if (exchange->data && exchange->free_data)
        exchange->free_data(exchange->data);
    exchange->data = NULL;
    exchange->free_data = NULL;
}

void as_http_exchange_admit(struct as_http_exchange *exchange)
{
    as_connection_admitted(exchange->connection);
}

/* Ends the text of `span` with a NUL. It overwrites a byte that is no longer needed: a space, '?',
 * ':' or the CR of the line. */
static void cut(struct as_buf *text, struct as_http_span span)
{
    text->data[span.at + span.size] = '\0';
}

void as_http_exchange_begin(struct as_http_exchange *exchange, const char *head_bytes)
{
    const struct as_http_head *head = &exchange->head;
    as_buf_append(&exchange->text, head_bytes, head->size);
    assert(as_buf_check(&exchange->text) == 0); /* at most max_head */
    cut(&exchange->text, head->method);
    cut(&exchange->text, head->path);
    cut(&exchange->text, head->query);
    for (unsigned i = 0; i < head->field_count; i++) {
        cut(&exchange->text, head->fields[i].name);
        cut(&exchange->text, head->fields[i].value);
    }
    exchange->is_head_request = strcmp(as_http_exchange_get_method(exchange), "HEAD") == 0;
}

/* Wipes it: credentials were in it, or a login. */
static void empty(struct as_buf *buf)
{
    if (buf->capacity > KEEP_MEMORY)
        as_buf_deinit(buf);
    else if (buf->size > 0)
        explicit_bzero(buf->data, buf->size);
    as_buf_clear(buf);
}

/* Prepares for the next request. */
void as_http_exchange_reset(struct as_http_exchange *exchange)
{
    as_http_head_init(&exchange->head, exchange->connection->server->config.max_head);
    empty(&exchange->text);
    empty(&exchange->body);
    as_connection_count_body(exchange->connection);
    as_http_exchange_set_route(exchange, NULL, "");
    exchange->is_head_request = exchange->replied = false;
    as_http_exchange_drop_data(exchange);
    free(exchange->sender);
    exchange->sender = NULL;
}

bool as_connection_send(struct as_connection *connection, struct iovec *parts, int count)
{
    const int status = as_stream_send(&connection->stream, parts, count);
    if (status < 0 && status != -EAGAIN)
        connection->peer_gone = true;
    return status != -EAGAIN;
}

/* Whether the answer may wait: if more requests have arrived, their answers follow soon and are
 * sent together. Not for a peer that does not read: its answers count as unsent. */
static bool may_hold(const struct as_connection *connection)
{
    const size_t unsent = as_stream_count_unsent(&connection->stream);
    return !connection->close_after && as_connection_count_arrived(connection) > 0 &&
           unsent < HOLD_MAX && (unsent == 0 || connection->is_held);
}

static bool send_answer(struct as_connection *connection, struct iovec *parts, int count)
{
    if (!may_hold(connection) || as_stream_hold(&connection->stream, parts, count) != 0)
        return as_connection_send(connection, parts, count);
    as_connection_hold(connection);
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

static void print_head(struct as_http_server *server, const struct as_http_exchange *exchange,
                       const struct as_http_answer *answer, bool close)
{
    struct as_buf *out = &server->out;
    as_buf_clear(out);
    as_buf_append_str(out, "HTTP/1.1 ");
    as_buf_append_i64(out, answer->status);
    as_buf_append_char(out, ' ');
    as_buf_append_str(out, find_phrase(answer->status));
    as_buf_append_str(out, "\r\nDate: ");
    as_buf_append_str(out, get_date(server));
    if (answer->status != 204) {
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
        print_head(server, exchange, answer, connection->close_after);
        bool has_body =
            answer->body_size > 0 && !exchange->is_head_request && answer->status != 204;
        struct iovec parts[] = {{server->out.data, server->out.size},
                                {(void *)(uintptr_t)answer->body, answer->body_size}};
        sent = send_answer(connection, parts, has_body ? 2 : 1);
        explicit_bzero(server->out.data, server->out.size); /* a session's id may be in it */
    }
    const char *name = exchange->handler_name;
    int64_t duration_us = as_http_server_now() - exchange->started_us;
    int status = answer->status; /* the answer may point into memory that is reset now */
    if (sent) {
        as_connection_written(connection);
    } else {
        empty(&exchange->body);
        as_connection_count_body(connection);
        as_connection_enter(connection, AS_CONNECTION_WRITING);
        as_connection_count_unsent(connection);
    }
    if (server->handler.answered)
        server->handler.answered(server->handler.context, name, status, duration_us);
}
