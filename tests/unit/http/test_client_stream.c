/*
 * Bodies that the HTTP client hands over while they arrive, from a server that dribbles, stalls and
 * breaks. Promises: the parts are the body, in order, at most AS_HTTP_PART_MAX in a turn; what has
 * arrived is handed over before `done`; other statuses are collected; on_body may start and cancel
 * calls.
 */
#include <alertscaler/http/client.h>

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/time.h>

#include "http/connection.h"

#define WAIT_MS 10000
#define MS      1000 /* us */

static struct event_base *base;
static struct as_http_client *client;
static struct as_http *http;
static struct evconnlistener *listener;
static uint16_t port;
static char observed[128];

/* The server: for each connection it writes the pieces, one every `pause_ms`. */
static struct script {
    const char *pieces[16];
    const char *filler; /* behind the pieces */
    size_t filler_size;
    int pause_ms;
    const unsigned
        *taken; /* a piece waits until the reader has taken so many parts; NULL: for none */
    bool stays; /* does not close behind the last piece */
} script;

struct peer {
    struct bufferevent *stream;
    struct event *timer;
    size_t next;
};

static void free_peer(struct peer *peer)
{
    bufferevent_free(peer->stream);
    event_free(peer->timer);
    free(peer);
}

static void on_written(struct bufferevent *stream, void *context)
{
    struct peer *peer = context;
    if (peer->next > 0 && !script.pieces[peer->next] && !script.stays)
        free_peer(peer);
}

static void write_pieces(evutil_socket_t fd, short what, void *context)
{
    struct peer *peer = context;
    struct timeval pause = {.tv_usec = script.pause_ms * MS};
    if (script.taken && *script.taken < peer->next) {
        evtimer_add(peer->timer, &pause);
        return;
    }
    const char *piece = script.pieces[peer->next];
    bool is_last = !script.pieces[++peer->next];
    bufferevent_write(peer->stream, piece, strlen(piece));
    if (is_last && script.filler_size > 0)
        bufferevent_write(peer->stream, script.filler, script.filler_size);
    if (!is_last)
        evtimer_add(peer->timer, &pause);
}

static void on_request(struct bufferevent *stream, void *context)
{
    struct peer *peer = context;
    struct evbuffer *input = bufferevent_get_input(stream);
    if (evbuffer_search(input, "\r\n\r\n", 4, NULL).pos < 0)
        return;
    evbuffer_drain(input, evbuffer_get_length(input));
    peer->next = 0;
    write_pieces(-1, 0, peer);
}

static void on_gone(struct bufferevent *stream, short what, void *context)
{
    free_peer(context);
}

static void on_accept(struct evconnlistener *from, evutil_socket_t fd, struct sockaddr *address,
                      int address_size, void *context)
{
    struct peer *peer = as_xcalloc(1, sizeof(*peer));
    peer->stream = bufferevent_socket_new(base, fd, BEV_OPT_CLOSE_ON_FREE);
    peer->timer = evtimer_new(base, write_pieces, peer);
    bufferevent_setcb(peer->stream, on_request, on_written, on_gone, peer);
    bufferevent_enable(peer->stream, EV_READ);
}

static void observe(void *context, const char *client_name, const char *operation, const char *code,
                    int64_t duration_us)
{
    snprintf(observed, sizeof(observed), "%s/%s/%s", client_name, operation, code);
}

static void start_all(void)
{
    struct as_error error = AS_ERROR_INIT;
    evutil_socket_t fd;
    sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
    base = event_base_new();
    cr_assert_eq(as_http_listen("127.0.0.1:0", &fd, &port, &error), 0, "%s", error.text);
    listener = evconnlistener_new(base, on_accept, NULL, LEV_OPT_CLOSE_ON_FREE, -1, fd);
    client = as_http_client_new(base, observe, NULL);
    http = as_http_client_get_port(client);
}

static void stop_all(void)
{
    as_http_client_free(client);
    evconnlistener_free(listener);
    for (int i = 0; i < 10; i++) /* the server's connections see the end and go */
        event_base_loop(base, EVLOOP_NONBLOCK);
    event_base_free(base);
}

TestSuite(client_stream, .init = start_all, .fini = stop_all);

static int64_t now_ms(void)
{
    return as_http_server_now() / 1000;
}

#define WAIT_FOR(condition)                                                                        \
    do {                                                                                           \
        for (int64_t end = now_ms() + WAIT_MS; !(condition) && now_ms() < end; poll(NULL, 0, 1))   \
            turn();                                                                                \
        cr_assert(condition, "%s", #condition);                                                    \
    } while (0)

struct reading { /* of one call */
    struct as_http_call *call;
    struct as_buf body;
    unsigned parts, done;
    size_t largest, in_turn; /* bytes in one turn */
    char content_type[64];
    size_t refuse_at;  /* bytes; 0: never */
    bool is_cancelled; /* by on_body, when it has been given a byte */
    enum as_http_outcome outcome;
    int status;
    char error[256], collected[256];
    int64_t ended_ms;
    struct reading *start_next;
};

static struct reading reading, other;

static void turn(void)
{
    reading.in_turn = 0;
    event_base_loop(base, EVLOOP_NONBLOCK | EVLOOP_ONCE);
}

static void start(struct reading *into, struct as_http_request request);
static struct as_http_request request_to_stream(void);

static bool on_body(void *context, const char *content_type, const char *bytes, size_t size)
{
    struct reading *into = context;
    cr_assert_eq(into->done, 0);
    cr_assert(!into->is_cancelled || into->body.size == 0, "called after a cancel");
    into->parts++;
    into->in_turn += size;
    if (into->in_turn > into->largest)
        into->largest = into->in_turn;
    snprintf(into->content_type, sizeof(into->content_type), "%s", content_type);
    as_buf_append(&into->body, bytes, size);
    if (into->start_next) {
        start(into->start_next, request_to_stream());
        into->start_next = NULL;
    }
    if (into->is_cancelled && into->body.size > 0)
        http->cancel(http, into->call);
    return into->refuse_at == 0 || into->body.size < into->refuse_at;
}

static void on_done(void *context, const struct as_http_response *response)
{
    struct reading *into = context;
    into->done++;
    into->outcome = response->outcome;
    into->status = response->status;
    into->ended_ms = now_ms();
    snprintf(into->error, sizeof(into->error), "%s", response->error);
    snprintf(into->collected, sizeof(into->collected), "%s", response->body);
}

static struct as_http_request request_to_stream(void)
{
    static char url[64];
    snprintf(url, sizeof(url), "http://127.0.0.1:%u/", port);
    return (struct as_http_request){.method = "GET",
                                    .url = url,
                                    .timeout_us = 5000 * MS,
                                    .max_response = 200,
                                    .on_body = on_body,
                                    .client_name = "test",
                                    .operation = "op"};
}

static void start(struct reading *into, struct as_http_request request)
{
    into->body = AS_BUF_INIT((size_t)64 * 1024 * 1024);
    into->call = http->start(http, &request, on_done, into);
    cr_assert_eq(into->parts + into->done, 0, "never on the starter's stack");
}

static void fetch(struct as_http_request request)
{
    start(&reading, request);
    WAIT_FOR(reading.done > 0);
    cr_assert_eq(reading.done, 1);
    cr_assert_eq(as_buf_check(&reading.body), 0);
}

static const char *get_text(struct reading *of)
{
    return of->body.data ? of->body.data : "";
}

static void forget(struct reading *of)
{
    as_buf_deinit(&of->body);
    *of = (struct reading){.parts = 0};
}

#define HEAD "HTTP/1.1 200 OK\r\nContent-Type: a/b; c=d\r\n"

Test(client_stream, hands_over_what_arrives_when_it_arrives)
{
    script = (struct script){.pieces = {HEAD "Content-Length: 9\r\n\r\n", "one", "two", "six"},
                             .pause_ms = 5,
                             .taken = &reading.parts};
    start(&reading, request_to_stream());
    WAIT_FOR(reading.parts == 1);
    cr_expect_eq(reading.body.size, 0, "the head alone");
    cr_expect_str_eq(reading.content_type, "a/b; c=d");
    WAIT_FOR(reading.body.size == 3);
    WAIT_FOR(reading.body.size == 6);
    cr_expect_eq(reading.done, 0);
    WAIT_FOR(reading.done == 1);
    cr_expect_str_eq(get_text(&reading), "onetwosix");
    cr_expect_eq(reading.outcome, AS_HTTP_ANSWERED);
    cr_expect_eq(reading.status, 200);
    cr_expect_str_eq(reading.collected, "");
    cr_expect_str_eq(observed, "test/op/200");
    forget(&reading);
}

Test(client_stream, the_end_of_the_body_is_as_the_server_says_it)
{
    static const struct {
        const char *pieces[16];
        const char *body;
        enum as_http_outcome outcome;
    } rows[] = {
        {{HEAD "Content-Length: 0\r\n\r\n"}, "", AS_HTTP_ANSWERED},
        {{HEAD "\r\n", "to the end"}, "to the end", AS_HTTP_ANSWERED},
        {{HEAD "Content-Length: 4\r\n\r\nab", "c"}, "abc", AS_HTTP_BROKEN},
        {{HEAD "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", "1\r\nd\r\n0\r\nX: y\r\n\r\n"},
         "abcd",
         AS_HTTP_ANSWERED},
        {{HEAD "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", "2\r\nd"}, "abcd", AS_HTTP_BROKEN},
        {{HEAD "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", "no\r\n"}, "abc", AS_HTTP_BROKEN},
        {{"HTTP/1.1 103 Early\r\nX: y\r\n\r\n", HEAD "\r\nx"}, "x", AS_HTTP_ANSWERED},
        {{"HTTP/1.1 204 Nothing\r\n\r\n"}, "", AS_HTTP_ANSWERED},
        {{"HTTP/1.1 200"}, "", AS_HTTP_BROKEN},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        script = (struct script){.pause_ms = 5};
        memcpy(script.pieces, rows[i].pieces, sizeof(script.pieces));
        fetch(request_to_stream());
        cr_expect_eq(reading.outcome, rows[i].outcome, "row %zu: %s", i, reading.error);
        cr_expect_str_eq(get_text(&reading), rows[i].body, "row %zu", i);
        forget(&reading);
    }
}

Test(client_stream, other_statuses_are_collected_and_limited)
{
    script = (struct script){.pieces = {"HTTP/1.1 410 Gone\r\nContent-Length: 4\r\n\r\ngo", "ne"},
                             .pause_ms = 5};
    fetch(request_to_stream());
    cr_expect_eq(reading.parts, 0);
    cr_expect_eq(reading.status, 410);
    cr_expect_str_eq(reading.collected, "gone");
    forget(&reading);

    static char filler[1000];
    memset(filler, 'x', sizeof(filler));
    script = (struct script){.pieces = {"HTTP/1.1 500 No\r\nContent-Length: 1000\r\n\r\n"},
                             .filler = filler,
                             .filler_size = sizeof(filler)};
    fetch(request_to_stream());
    cr_expect_eq(reading.parts, 0);
    cr_expect_eq(reading.outcome, AS_HTTP_TOO_LARGE);
    forget(&reading);
}

/* 8 MiB at full speed: whole, in order, and never more than a part in a turn. */
Test(client_stream, a_large_body_comes_in_turns)
{
    enum { SIZE = 8 * 1024 * 1024 };
    char *filler = as_xmalloc(SIZE);
    for (size_t i = 0; i < SIZE; i++)
        filler[i] = (char)('a' + (i ^ i >> 9) % 26);
    script = (struct script){
        .pieces = {HEAD "Content-Length: 8388608\r\n\r\n"}, .filler = filler, .filler_size = SIZE};
    fetch(request_to_stream());
    cr_expect_eq(reading.outcome, AS_HTTP_ANSWERED, "%s", reading.error);
    cr_assert_eq(reading.body.size, SIZE);
    cr_expect_eq(memcmp(reading.body.data, filler, SIZE), 0);
    cr_expect_leq(reading.largest, AS_HTTP_PART_MAX);
    cr_expect_geq(reading.parts, SIZE / AS_HTTP_PART_MAX);
    forget(&reading);
    free(filler);
}

Test(client_stream, silence_ends_the_call)
{
    script = (struct script){
        .pieces = {HEAD "\r\n", "a", "b", "c", "d"}, .pause_ms = 150, .stays = true};
    struct as_http_request request = request_to_stream();
    request.idle_us = 1500 * MS; /* long enough for the slow start of a machine under load */
    int64_t started_ms = now_ms();
    fetch(request);
    cr_expect_eq(reading.outcome, AS_HTTP_TIMEOUT);
    cr_expect_str_eq(reading.error, "no byte has arrived for 1500 ms");
    cr_expect_str_eq(get_text(&reading), "abcd", "what dribbles is not silent");
    cr_expect_geq(reading.ended_ms - started_ms, 4 * 150 + 1500);
    cr_expect_str_eq(observed, "test/op/timeout");
    forget(&reading);
}

Test(client_stream, silence_before_the_head_counts_too)
{
    script = (struct script){.pieces = {"HTTP/1.1 "}, .stays = true};
    struct as_http_request request = request_to_stream();
    request.idle_us = 50 * MS;
    request.on_body = NULL;
    fetch(request);
    cr_expect_eq(reading.outcome, AS_HTTP_TIMEOUT);
    forget(&reading);
}

Test(client_stream, the_whole_transfer_is_limited_too)
{
    script = (struct script){.pieces = {HEAD "\r\n", "a", "b", "c", "d", "e", "f", "g", "h"},
                             .pause_ms = 400,
                             .stays = true};
    struct as_http_request request = request_to_stream();
    request.idle_us = 10000 * MS;
    request.timeout_us = 2500 * MS;
    fetch(request);
    cr_expect_eq(reading.outcome, AS_HTTP_TIMEOUT);
    cr_expect_geq(reading.body.size, 1);
    cr_expect_lt(reading.body.size, 8);
    forget(&reading);
}

Test(client_stream, a_reader_may_refuse)
{
    static char filler[300000];
    memset(filler, 'x', sizeof(filler));
    for (unsigned i = 0; i < 2; i++) { /* in the middle; and behind the end of the transfer */
        script = (struct script){.pieces = {HEAD "Content-Length: 300003\r\n\r\nabc"},
                                 .filler = filler,
                                 .filler_size = sizeof(filler)};
        if (i == 1)
            script = (struct script){.pieces = {HEAD "Content-Length: 3\r\n\r\nabc"}};
        reading.refuse_at = 3;
        fetch(request_to_stream());
        cr_expect_eq(reading.outcome, AS_HTTP_BROKEN);
        cr_expect_str_eq(reading.error, "the answer was not what its reader expects");
        cr_expect_leq(reading.body.size, AS_HTTP_PART_MAX);
        forget(&reading);
    }
}

Test(client_stream, a_reader_may_cancel_its_call_and_start_another)
{
    static char filler[300000];
    memset(filler, 'x', sizeof(filler));
    script = (struct script){.pieces = {HEAD "Content-Length: 300003\r\n\r\nabc"},
                             .filler = filler,
                             .filler_size = sizeof(filler)};
    reading.is_cancelled = true;
    reading.start_next = &other;
    start(&reading, request_to_stream());
    WAIT_FOR(other.done == 1);
    cr_expect_eq(other.body.size, 300003);
    cr_expect_eq(reading.done, 0);
    cr_expect_gt(reading.body.size, 0);
    forget(&reading);
    forget(&other);

    script = (struct script){.pieces = {HEAD "Content-Length: 3\r\n\r\nabc"}}; /* it has ended */
    reading.is_cancelled = true;
    start(&reading, request_to_stream());
    WAIT_FOR(reading.body.size == 3);
    for (unsigned i = 0; i < 20; i++)
        turn();
    cr_expect_eq(reading.done, 0);
    forget(&reading);
}

Test(client_stream, may_be_cancelled_with_a_part_that_waits)
{
    static char filler[300000];
    script = (struct script){.pieces = {HEAD "Content-Length: 300000\r\n\r\n"},
                             .filler = filler,
                             .filler_size = sizeof(filler),
                             .stays = true};
    start(&reading, request_to_stream());
    WAIT_FOR(reading.parts > 0);
    http->cancel(http, reading.call);
    unsigned parts = reading.parts;
    for (unsigned i = 0; i < 20; i++)
        turn();
    cr_expect_eq(reading.parts, parts);
    cr_expect_eq(reading.done, 0);
    forget(&reading);
    start(&reading, request_to_stream()); /* freed with the client */
    WAIT_FOR(reading.parts > 1);
    as_buf_deinit(&reading.body);
}
