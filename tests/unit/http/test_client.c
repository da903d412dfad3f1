/*
 * The HTTP client against our own server and against a scripted server that misbehaves. Promises:
 * every call ends exactly once, in a later turn, never after cancel; the outcome is true about
 * whether something was sent; only the request decides its destination.
 */
#include <alertscaler/http/client.h>

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <criterion/criterion.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>

#include <alertscaler/base/str.h>
#include <alertscaler/http/server.h>
#include <alertscaler/port/http.h>

#include "http/connection.h"

#define WAIT_MS 10000
#define MS      1000 /* us */
#define TAILS   5000

static struct event_base *base;
static struct as_http_client *client;
static struct as_http *http;
static unsigned observed_count;
static char observed[128];

/* The own server: /hang never answers, all else is answered at once. */
static struct as_http_server *server;
static unsigned served, quiet_at, peak_connections; /* quiet_at: `served` at /quiet */
static char last_remote[64];

static enum as_http_admission admit(void *context, struct as_http_exchange *exchange)
{
    return AS_HTTP_ADMITTED;
}

static void handle(void *context, struct as_http_exchange *exchange)
{
    char body[256];
    size_t size;
    as_http_exchange_get_body(exchange, &size);
    served++;
    if (as_http_server_get_connections(server) > peak_connections)
        peak_connections = as_http_server_get_connections(server);
    snprintf(last_remote, sizeof(last_remote), "%s", as_http_exchange_get_remote(exchange));
    const char *path = as_http_exchange_get_path(exchange);
    if (strcmp(path, "/hang") == 0)
        return;
    if (strcmp(path, "/quiet") == 0)
        quiet_at = served;
    const char *token = as_http_exchange_find_header(exchange, "Authorization");
    int length =
        snprintf(body, sizeof(body), "%s %s?%s %s %zu", as_http_exchange_get_method(exchange), path,
                 as_http_exchange_get_query(exchange), token ? token : "", size);
    as_http_exchange_reply(exchange, &(struct as_http_answer){.status = 200,
                                                              .content_type = "text/x",
                                                              .headers = "ETag:  \"a b\" \r\n"
                                                                         "Retry-After: 7\r\n",
                                                              .body = body,
                                                              .body_size = (size_t)length});
}

/* The scripted server: reads a request to the end of its head, writes the answer, closes or not. */
static struct script {
    const char *answer;
    bool close;
    const char *tail; /* written behind it, TAILS times */
} script;
static size_t script_size; /* of an answer with NULs in it; 0 */
static struct evconnlistener *scripted;
static uint16_t scripted_port;
static char seen[4096];
static unsigned scripted_accepts, scripted_requests;

static void on_scripted_event(struct bufferevent *stream, short what, void *context)
{
    bufferevent_free(stream);
}

static void on_scripted_written(struct bufferevent *stream, void *context)
{
    if (script.close)
        bufferevent_free(stream);
}

static void on_scripted_read(struct bufferevent *stream, void *context)
{
    struct evbuffer *input = bufferevent_get_input(stream);
    if (evbuffer_search(input, "\r\n\r\n", 4, NULL).pos < 0)
        return;
    scripted_requests++;
    int size = evbuffer_remove(input, seen, sizeof(seen) - 1);
    seen[size > 0 ? size : 0] = '\0';
    if (!script.answer && script.close)
        bufferevent_free(stream);
    else if (script.answer)
        bufferevent_write(stream, script.answer, script_size ? script_size : strlen(script.answer));
    for (size_t i = 0; script.tail && i < TAILS; i++)
        bufferevent_write(stream, script.tail, strlen(script.tail));
}

static void on_scripted_accept(struct evconnlistener *listener, evutil_socket_t fd,
                               struct sockaddr *peer, int peer_size, void *context)
{
    struct bufferevent *stream = bufferevent_socket_new(base, fd, BEV_OPT_CLOSE_ON_FREE);
    scripted_accepts++;
    bufferevent_setcb(stream, on_scripted_read, on_scripted_written, on_scripted_event, NULL);
    bufferevent_enable(stream, EV_READ);
}

static void observe(void *context, const char *client_name, const char *operation, const char *code,
                    int64_t duration_us)
{
    observed_count++;
    snprintf(observed, sizeof(observed), "%s/%s/%s", client_name, operation, code);
    cr_assert(duration_us >= 0 && duration_us < (int64_t)60 * 1000 * MS);
}

static void start_all(void)
{
    sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
    base = event_base_new();
    struct as_http_server_config config = as_http_server_config_default;
    config.listen_address = "127.0.0.1:0";
    static const struct as_http_handler handler = {.admit = admit, .handle = handle};
    struct as_error error = AS_ERROR_INIT;
    cr_assert_eq(as_http_server_new(base, &config, &handler, &server, &error), 0, "%s", error.text);
    evutil_socket_t fd;
    cr_assert_eq(as_http_listen("127.0.0.1:0", &fd, &scripted_port, &error), 0);
    scripted = evconnlistener_new(base, on_scripted_accept, NULL, LEV_OPT_CLOSE_ON_FREE, -1, fd);
    client = as_http_client_new(base, observe, NULL);
    http = as_http_client_get_port(client);
}

static void stop_all(void)
{
    as_http_client_free(client);
    as_http_server_free(server);
    evconnlistener_free(scripted);
    for (int i = 0; i < 10; i++) /* the scripted connections see the end and go */
        event_base_loop(base, EVLOOP_NONBLOCK);
    event_base_free(base);
}

TestSuite(client, .init = start_all, .fini = stop_all);

static int64_t now_ms(void)
{
    return as_http_server_now() / 1000;
}

#define WAIT_FOR(condition)                                                                        \
    do {                                                                                           \
        for (int64_t end = now_ms() + WAIT_MS; !(condition) && now_ms() < end; poll(NULL, 0, 1))   \
            event_base_loop(base, EVLOOP_NONBLOCK);                                                \
        cr_assert(condition, "%s", #condition);                                                    \
    } while (0)

static void run_for(int ms)
{
    for (int64_t end = now_ms() + ms; now_ms() < end; poll(NULL, 0, 1))
        event_base_loop(base, EVLOOP_NONBLOCK);
}

struct result { /* the response, kept */
    unsigned count;
    enum as_http_outcome outcome;
    int status;
    size_t body_size;
    char body[256], etag[64], retry_after[64], content_type[64], location[64], error[256];
    char fields[512];
    struct as_http_call *cancel_next;
};

static size_t measure_fields(const char *fields)
{
    size_t size = 0;
    while (fields[size]) {
        size += strlen(fields + size) + 1;
        size += strlen(fields + size) + 1;
    }
    return size;
}

static void on_done(void *context, const struct as_http_response *response)
{
    struct result *result = context;
    result->count++;
    result->outcome = response->outcome;
    result->status = response->status;
    result->body_size = response->body_size;
    cr_assert_eq(strlen(response->body), response->body_size);
    snprintf(result->body, sizeof(result->body), "%s", response->body);
    snprintf(result->etag, sizeof(result->etag), "%s", response->etag);
    snprintf(result->retry_after, sizeof(result->retry_after), "%s", response->retry_after);
    snprintf(result->content_type, sizeof(result->content_type), "%s", response->content_type);
    snprintf(result->location, sizeof(result->location), "%s", response->location);
    snprintf(result->error, sizeof(result->error), "%s", response->error);
    if (response->fields) {
        const size_t size = measure_fields(response->fields);
        cr_assert_lt(size, sizeof(result->fields));
        memcpy(result->fields, response->fields, size + 1);
    }
    if (result->cancel_next)
        http->cancel(http, result->cancel_next);
}

static const char *url(uint16_t port, const char *path)
{
    static char text[256];
    snprintf(text, sizeof(text), "http://127.0.0.1:%u%s", port, path);
    return text;
}

static struct as_http_request get(const char *where)
{
    return (struct as_http_request){.method = "GET",
                                    .url = where,
                                    .timeout_us = 5000 * MS,
                                    .max_response = 1000,
                                    .client_name = "test",
                                    .operation = "op"};
}

/* Ends at once, without curl: it would send a header more than it says. */
static struct as_http_request malformed(void)
{
    static const char *const headers[] = {"X: a\r\nY: b", NULL};
    struct as_http_request request = get("http://127.0.0.1/");
    request.headers = headers;
    return request;
}

static struct result fetch(struct as_http_request request)
{
    struct result result = {0};
    cr_assert_not_null(http->start(http, &request, on_done, &result));
    cr_assert_eq(result.count, 0, "never on the starter's stack");
    WAIT_FOR(result.count > 0);
    cr_assert_eq(result.count, 1);
    return result;
}

Test(client, carries_request_and_answer)
{
    static const char *const headers[] = {"Authorization: Bearer x", "If-Match: \"1\"", NULL};
    struct as_http_request request = get(url(as_http_server_get_port(server), "/a/b?c=d"));
    request.method = "PATCH";
    request.headers = headers;
    request.body = "0123456789";
    request.body_size = 10;
    struct result result = fetch(request);
    cr_assert_eq(result.outcome, AS_HTTP_ANSWERED, "%s", result.error);
    cr_assert_eq(result.status, 200);
    cr_assert_str_eq(result.body, "PATCH /a/b?c=d Bearer x 10");
    cr_assert_str_eq(result.etag, "\"a b\"");
    cr_assert_str_eq(result.retry_after, "7");
    cr_assert_str_eq(result.content_type, "text/x");
    cr_assert_str_eq(result.error, "");
    cr_assert_str_eq(observed, "test/op/200");
    cr_assert_eq(observed_count, 1);
}

Test(client, sends_large_bodies)
{
    static char body[4 * 1024 * 1024];
    struct as_http_request request = get(url(as_http_server_get_port(server), "/"));
    request.method = "PUT";
    request.body = body;
    request.body_size = sizeof(body);
    cr_assert_str_eq(fetch(request).body, "PUT /?  4194304");
}

/* Not one header that we did not ask for, but these. */
Test(client, adds_nothing_of_its_own)
{
    static const struct {
        const char *method, *body, *headers[3], *expected_tail;
    } rows[] = {
        {"GET", NULL, {NULL}, ""},
        {"DELETE", NULL, {NULL}, ""},
        {"HEAD", NULL, {NULL}, ""},
        {"PUT", NULL, {NULL}, "Content-Length: 0\r\n"},
        {"POST",
         "{}",
         {"Content-Type: application/json", NULL},
         "Content-Type: application/json\r\nContent-Length: 2\r\n"},
        {"DELETE", "{}", {NULL}, "Content-Length: 2\r\n"},
        {"PATCH", "{}", {"Accept: x/y", NULL}, "Accept: x/y\r\nContent-Length: 2\r\n"},
    };
    script = (struct script){"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", false, NULL};
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        struct as_http_request request = get(url(scripted_port, "/x"));
        request.method = rows[i].method;
        request.headers = rows[i].headers;
        request.body = rows[i].body;
        request.body_size = rows[i].body ? strlen(rows[i].body) : 0;
        cr_assert_eq(fetch(request).status, 200);
        char expected[512];
        bool own_accept = rows[i].headers[0] && strncmp(rows[i].headers[0], "Accept:", 7) == 0;
        snprintf(expected, sizeof(expected),
                 "%s /x HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nUser-Agent: alertscaler\r\n%s%s\r\n%s",
                 rows[i].method, scripted_port, own_accept ? "" : "Accept: */*\r\n",
                 rows[i].expected_tail, rows[i].body ? rows[i].body : "");
        cr_assert_str_eq(seen, expected, "row %zu", i);
    }
}

#define OK_HEAD "HTTP/1.1 200 OK\r\n"

Test(client, tells_how_a_call_ended)
{
    static const struct {
        struct script script;
        enum as_http_outcome outcome;
        int status;
        const char *code;
    } rows[] = {
        {{OK_HEAD "Content-Length: 2\r\n\r\nok", false, NULL}, AS_HTTP_ANSWERED, 200, "200"},
        {{OK_HEAD "\r\nok until the end", true, NULL}, AS_HTTP_ANSWERED, 200, "200"},
        {{"HTTP/1.1 409 Conflict\r\nContent-Length: 0\r\n\r\n", false, NULL},
         AS_HTTP_ANSWERED,
         409,
         "409"},
        {{"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n", false,
          NULL},
         AS_HTTP_ANSWERED,
         302,
         "302"},
        {{NULL, true, NULL}, AS_HTTP_BROKEN, 0, "broken"},
        {{"HTTP/1.1 20", true, NULL}, AS_HTTP_BROKEN, 0, "broken"},
        {{"SSH-2.0-x\r\n\r\n", true, NULL}, AS_HTTP_BROKEN, 0, "broken"},
        {{OK_HEAD "Content-Length: 10\r\n\r\nshort", true, NULL}, AS_HTTP_BROKEN, 0, "broken"},
        {{"HTTP/1.1 401 Unauthorized\r\nContent-Length: 10\r\n\r\nshort", true, NULL},
         AS_HTTP_ANSWERED,
         401,
         "401"},
        {{"HTTP/1.1 403 Forbidden\r\nContent-Length: 10\r\n\r\nshort", true, NULL},
         AS_HTTP_BROKEN,
         0,
         "broken"},
        {{OK_HEAD "Transfer-Encoding: chunked\r\n\r\n5\r\nab", true, NULL},
         AS_HTTP_BROKEN,
         0,
         "broken"},
        {{OK_HEAD "Transfer-Encoding: chunked\r\n\r\nzz\r\n", false, NULL},
         AS_HTTP_BROKEN,
         0,
         "broken"},
        {{NULL, false, NULL}, AS_HTTP_TIMEOUT, 0, "timeout"},
        {{OK_HEAD "Content-Length: 10\r\n\r\nshort", false, NULL}, AS_HTTP_TIMEOUT, 0, "timeout"},
        {{OK_HEAD "\r\n", false, "endless"}, AS_HTTP_TOO_LARGE, 0, "too_large"},
        {{"HTTP/1.1 500 Broken\r\n\r\n", false, "endless"}, AS_HTTP_TOO_LARGE, 0, "too_large"},
        {{"HTTP/1.1 401 Unauthorized\r\n\r\n", false, "endless"}, AS_HTTP_ANSWERED, 401, "401"},
        {{"HTTP/1.1 403 Forbidden\r\n\r\n", false, "endless"}, AS_HTTP_ANSWERED, 403, "403"},
        {{"HTTP/1.1 401 Unauthorized\r\n", false, "X: 0123456789012345678901234567890\r\n"},
         AS_HTTP_TOO_LARGE,
         0,
         "too_large"},
        {{OK_HEAD, false, "X: 0123456789012345678901234567890\r\n"},
         AS_HTTP_TOO_LARGE,
         0,
         "too_large"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        script = rows[i].script;
        struct as_http_request request = get(url(scripted_port, "/"));
        if (rows[i].outcome == AS_HTTP_TIMEOUT)
            request.timeout_us = 100 * MS;
        struct result result = fetch(request);
        cr_assert_eq(result.outcome, rows[i].outcome, "row %zu: %d %s", i, result.outcome,
                     result.error);
        cr_assert_eq(result.status, rows[i].status, "row %zu", i);
        cr_assert_eq(result.error[0] != '\0', rows[i].outcome != AS_HTTP_ANSWERED, "row %zu", i);
        cr_assert_leq(result.body_size, request.max_response, "row %zu", i);
        cr_assert(strcmp(observed + strlen("test/op/"), rows[i].code) == 0, "row %zu: %s", i,
                  observed);
    }
    cr_assert_eq(observed_count, AS_ARRAY_SIZE(rows));
}

static uint16_t find_refusing_port(void)
{
    uint16_t port;
    evutil_socket_t fd;
    cr_assert_eq(as_http_listen("127.0.0.1:0", &fd, &port, NULL), 0);
    close(fd);
    return port;
}

Test(client, knows_when_nothing_was_sent)
{
    char https[64];
    snprintf(https, sizeof(https), "https://127.0.0.1:%u/", scripted_port);
    const struct {
        const char *url;
        const char *header;
    } rows[] = {
        {"http://127.0.0.1:1/", NULL},
        {"", NULL},
        {"http://", NULL},
        {"127.0.0.1:x", NULL},
        {"http://a b/", NULL},
        {"http://127.0.0.1:99999/", NULL},
        {"ftp://127.0.0.1/", NULL},
        {"file:///etc/passwd", NULL},
        {https, NULL}, /* the server never says hello */
        {"http://127.0.0.1/", "X: a\r\nY: b"},
    };
    char refusing[256];
    snprintf(refusing, sizeof(refusing), "%s", url(find_refusing_port(), "/"));
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        struct as_http_request request = get(i == 0 ? refusing : rows[i].url);
        const char *headers[] = {rows[i].header, NULL};
        request.headers = headers;
        request.timeout_us = 200 * MS;
        struct result result = fetch(request);
        cr_assert_eq(result.outcome, AS_HTTP_UNREACHABLE, "row %zu: %d %s", i, result.outcome,
                     result.error);
        cr_assert(result.error[0], "row %zu", i);
        cr_assert_str_eq(observed, "test/op/unreachable", "row %zu", i);
    }
    cr_assert_eq(served, 0);
}

/* A backlog that is full: connecting hangs. */
Test(client, calls_a_time_out_before_the_connection_unreachable)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM, 0), fill[8];
    cr_assert(bind(fd, (struct sockaddr *)&address, size) == 0 && listen(fd, 0) == 0 &&
              getsockname(fd, (struct sockaddr *)&address, &size) == 0);
    for (size_t i = 0; i < AS_ARRAY_SIZE(fill); i++) {
        fill[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        connect(fill[i], (struct sockaddr *)&address, size);
    }
    struct as_http_request request = get(url(ntohs(address.sin_port), "/"));
    request.timeout_us = 200 * MS;
    struct result result = fetch(request);
    cr_assert_eq(result.outcome, AS_HTTP_UNREACHABLE, "%d %s", result.outcome, result.error);
    for (size_t i = 0; i < AS_ARRAY_SIZE(fill); i++)
        close(fill[i]);
    close(fd);
}

Test(client, a_redirect_is_an_answer_that_says_where_it_leads)
{
    script = (struct script){"HTTP/1.1 302 Found\r\nLocation: http://elsewhere/x\r\n"
                             "Content-Length: 0\r\n\r\n",
                             false, NULL};
    struct result result = fetch(get(url(scripted_port, "/")));
    cr_assert_eq(result.outcome, AS_HTTP_ANSWERED);
    cr_assert_eq(result.status, 302);
    cr_assert_str_eq(result.location, "http://elsewhere/x");
    cr_assert_eq(scripted_requests, 1);
}

static const char *find_field(const struct result *result, const char *name)
{
    return as_http_response_find(&(struct as_http_response){.fields = result->fields}, name);
}

Test(client, keeps_every_header_field)
{
    script = (struct script){"HTTP/1.1 103 Early Hints\r\nX-Request-Id: early\r\n\r\n"
                             "HTTP/1.1 200 OK\r\nMetadata-Flavor:  Google \r\nx-request-id:a:b\r\n"
                             "X-Request-Id: second\r\nX-Empty:\r\nX-Folded: one\r\n two: three\r\n"
                             "Content-Length: 0\r\n\r\n",
                             false, NULL};
    struct result result = fetch(get(url(scripted_port, "/")));
    cr_assert_eq(result.status, 200);
    const char *const want[] = {"metadata-flavor", "Google", "X-REQUEST-ID", "a:b",
                                "x-empty",         "",       "x-absent",     "",
                                "content-length",  "0",      " two",         ""};
    for (size_t i = 0; i < AS_ARRAY_SIZE(want); i += 2)
        cr_expect_str_eq(find_field(&result, want[i]), want[i + 1], "%s", want[i]);
}

Test(client, keeps_trailer_fields)
{
    script = (struct script){OK_HEAD "Transfer-Encoding: chunked\r\n\r\n"
                                     "2\r\nok\r\n0\r\nGrpc-Status: 5\r\n\r\n",
                             false, NULL};
    struct result result = fetch(get(url(scripted_port, "/")));
    cr_assert_str_eq(result.body, "ok");
    cr_assert_str_eq(find_field(&result, "grpc-status"), "5");
}

/* Settings; a head with status 200; "ok"; a trailer. */
static const char http2_answer[] = "\0\0\0\4\0\0\0\0\0"
                                   "\0\0\1\1\4\0\0\0\1\x88"
                                   "\0\0\2\0\0\0\0\0\1ok"
                                   "\0\0\x0f\1\5\0\0\0\1\0\x0bgrpc-status\x01"
                                   "5";

Test(client, speaks_http2_in_the_clear_to_who_is_known_to)
{
    static const char *const headers[] = {"TE: trailers", NULL};
    struct as_http_request request = get(url(scripted_port, "/"));
    script = (struct script){.answer = http2_answer};
    script_size = sizeof(http2_answer) - 1;
    request.is_http2 = true;
    request.method = "POST";
    request.headers = headers;
    request.body = "\0\0";
    request.body_size = 2;
    for (unsigned i = 1; i <= 3; i++) { /* curl 7.88 cannot go on with such a connection */
        struct result result = fetch(request);
        cr_assert_eq(result.status, 200, "%s", result.error);
        cr_assert_str_eq(result.body, "ok");
        cr_assert_str_eq(find_field(&result, "grpc-status"), "5");
        cr_assert(as_str_starts_with(seen, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), "%s", seen);
        cr_assert_eq(scripted_accepts, i);
    }
    /* Others stay with what they find out. */
    script_size = 0;
    script = (struct script){.answer = OK_HEAD "Content-Length: 0\r\n\r\n"};
    cr_assert_eq(fetch(get(url(scripted_port, "/"))).status, 200);
    cr_assert(as_str_starts_with(seen, "GET / HTTP/1.1\r\n"), "%s", seen);
}

Test(client, what_has_no_name_is_not_counted)
{
    struct as_http_request request = get(url(as_http_server_get_port(server), "/"));
    request.client_name = request.operation = NULL;
    cr_assert_eq(fetch(request).status, 200);
    cr_assert_eq(observed_count, 0);
}

Test(client, forgets_the_headers_of_an_interim_answer)
{
    script = (struct script){"HTTP/1.1 103 Early Hints\r\nETag: \"old\"\r\nRetry-After: 9\r\n\r\n"
                             "HTTP/1.1 200 OK\r\netag:\"new\"\r\nContent-Length: 0\r\n\r\n",
                             false, NULL};
    struct result result = fetch(get(url(scripted_port, "/")));
    cr_assert_eq(result.status, 200);
    cr_assert_str_eq(result.etag, "\"new\"");
    cr_assert_str_eq(result.retry_after, "");
    cr_assert_str_eq(result.content_type, "");
}

Test(client, takes_no_proxy_from_the_environment_but_the_one_it_is_given)
{
    static const char *const names[] = {"http_proxy", "https_proxy", "all_proxy", "ALL_PROXY"};
    for (size_t i = 0; i < AS_ARRAY_SIZE(names); i++)
        setenv(names[i], "http://127.0.0.1:1", 1);
    setenv("no_proxy", "*", 1);
    cr_assert_eq(fetch(get(url(as_http_server_get_port(server), "/"))).status, 200);

    script = (struct script){OK_HEAD "Content-Length: 0\r\n\r\n", false, NULL};
    char proxy[64];
    snprintf(proxy, sizeof(proxy), "http://127.0.0.1:%u", scripted_port);
    struct as_http_request request = get("http://service.example/x");
    request.proxy_url = proxy;
    cr_assert_eq(fetch(request).status, 200);
    cr_assert(strncmp(seen, "GET http://service.example/x HTTP/1.1\r\n", 39) == 0, "%s", seen);
}

Test(client, keeps_connections_and_survives_their_end)
{
    char first[64];
    for (unsigned i = 0; i < 3; i++) {
        cr_assert_eq(fetch(get(url(as_http_server_get_port(server), "/"))).status, 200);
        if (i == 0)
            snprintf(first, sizeof(first), "%s", last_remote);
        cr_assert_str_eq(last_remote, first);
    }
    script = (struct script){OK_HEAD "Content-Length: 0\r\n\r\n", true, NULL}; /* without a word */
    for (unsigned i = 0; i < 20; i++) {
        struct result result = fetch(get(url(scripted_port, "/")));
        cr_assert_eq(result.outcome, AS_HTTP_ANSWERED, "%u: %s", i, result.error);
    }
}

/* The server may have done what it was asked, and then a second request would be in conflict with
 * the first. */
Test(client, sends_a_change_once_and_a_read_again_when_a_kept_connection_ends)
{
    static const struct {
        const char *method;
        unsigned times;
    } rows[] = {{"PUT", 1}, {"PATCH", 1}, {"POST", 1}, {"DELETE", 1}, {"GET", 2}};
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        script = (struct script){OK_HEAD "Content-Length: 0\r\n\r\n", false, NULL};
        cr_assert_eq(fetch(get(url(scripted_port, "/x"))).status, 200);
        script = (struct script){NULL, true, NULL};
        scripted_requests = 0;
        struct as_http_request request = get(url(scripted_port, "/x"));
        request.method = rows[i].method;
        request.body = i < 3 ? "{}" : NULL;
        request.body_size = i < 3 ? 2 : 0;
        struct result result = fetch(request);
        cr_assert_eq(result.outcome, AS_HTTP_BROKEN, "%s", rows[i].method);
        cr_assert_neq(result.error[0], '\0');
        cr_assert_eq(scripted_requests, rows[i].times, "%s: %u", rows[i].method, scripted_requests);
    }
}

/* Not inherited by children, and not kept for a quarter of an hour when the peer is dead. */
Test(client, sets_up_its_sockets)
{
    cr_assert_eq(fetch(get(url(as_http_server_get_port(server), "/"))).status, 200);
    unsigned found = 0;
    for (int fd = 3; fd < 200; fd++) {
        struct sockaddr_in peer = {0};
        socklen_t size = sizeof(peer);
        if (getpeername(fd, (struct sockaddr *)&peer, &size) != 0 ||
            ntohs(peer.sin_port) != as_http_server_get_port(server))
            continue;
        found++;
        cr_assert(fcntl(fd, F_GETFD) & FD_CLOEXEC);
        int keep = 0, idle = 0, limit_ms = 0;
        size = sizeof(int);
        cr_assert(getsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &keep, &size) == 0 &&
                  getsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, &size) == 0 &&
                  getsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &limit_ms, &size) == 0);
        cr_assert(keep == 1 && idle == 30 && limit_ms == 30000);
    }
    cr_assert_eq(found, 1);
}

Test(client, says_nothing_after_cancel)
{
    struct as_http_request request = get(url(as_http_server_get_port(server), "/"));
    struct result results[3] = {0};
    http->cancel(http, http->start(http, &request, on_done, &results[0])); /* at once */
    request.url = url(as_http_server_get_port(server), "/hang");
    struct as_http_call *running = http->start(http, &request, on_done, &results[1]);
    WAIT_FOR(served == 1);
    http->cancel(http, running);
    request = malformed();
    http->cancel(http, http->start(http, &request, on_done, &results[2])); /* ended, not told */
    run_for(50);
    for (size_t i = 0; i < 3; i++)
        cr_assert_eq(results[i].count, 0);
    cr_assert_eq(observed_count, 0);
}

Test(client, may_cancel_any_call_from_a_callback)
{
    struct as_http_request request = malformed();
    struct result first = {0}, ended = {0}, running = {0};
    cr_assert_not_null(http->start(http, &request, on_done, &first));
    first.cancel_next = http->start(http, &request, on_done, &ended);
    WAIT_FOR(first.count == 1);
    run_for(20);
    cr_assert_eq(ended.count, 0);

    request = get(url(as_http_server_get_port(server), "/hang"));
    first = (struct result){0};
    first.cancel_next = http->start(http, &request, on_done, &running);
    request.url = url(as_http_server_get_port(server), "/");
    cr_assert_not_null(http->start(http, &request, on_done, &first));
    WAIT_FOR(first.count == 1);
    run_for(20);
    cr_assert_eq(running.count, 0);

    ended = (struct result){0};
    ended.cancel_next = http->start(http, &request, on_done, &ended);
    /* itself: too late, and harmless */
    WAIT_FOR(ended.count == 1);
}

static struct result *awaited;

static void start_again(void *context, const struct as_http_response *response)
{
    unsigned *count = context;
    struct as_http_request request = malformed();
    ++*count;
    if (awaited->count == 0 && *count < 200000)
        cr_assert_not_null(http->start(http, &request, start_again, context));
}

/* A caller that starts the impossible again and again gets its turns, and so does everybody else.
 */
Test(client, does_not_starve_the_loop)
{
    unsigned count = 0;
    struct result result = {0};
    awaited = &result;
    struct as_http_request request = malformed();
    cr_assert_not_null(http->start(http, &request, start_again, &count));
    request = get("");
    request.url = url(as_http_server_get_port(server), "/");
    cr_assert_not_null(http->start(http, &request, on_done, &result));
    WAIT_FOR(result.count == 1);
    cr_assert_eq(result.status, 200);
    cr_assert(count < 200000);
    run_for(5);
}

Test(client, runs_a_thousand_at_a_time_over_few_connections)
{
    enum { COUNT = 1000 };
    static struct result results[COUNT];
    struct as_http_request request = get(url(as_http_server_get_port(server), "/"));
    for (size_t i = 0; i < COUNT; i++)
        cr_assert_not_null(http->start(http, &request, on_done, &results[i]));
    WAIT_FOR(observed_count == COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        cr_assert_eq(results[i].count, 1);
        cr_assert_eq(results[i].status, 200, "%zu: %s", i, results[i].error);
    }
    cr_assert_eq(served, COUNT);
    cr_assert(peak_connections <= 64, "%u", peak_connections);
}

Test(client, waits_for_a_busy_server_no_longer_than_it_may)
{
    enum { COUNT = 64 };
    static struct result hanging[COUNT], waiting[3];
    struct as_http_call *calls[COUNT];
    struct as_http_request request = get(url(as_http_server_get_port(server), "/hang"));
    for (size_t i = 0; i < COUNT; i++)
        calls[i] = http->start(http, &request, on_done, &hanging[i]);
    request.url = url(as_http_server_get_port(server), "/late");
    cr_assert_not_null(http->start(http, &request, on_done, &waiting[0]));
    request.timeout_us = 100 * MS;
    cr_assert_not_null(http->start(http, &request, on_done, &waiting[1]));
    struct as_http_call *cancelled = http->start(http, &request, on_done, &waiting[2]);
    http->cancel(http, cancelled);

    script = (struct script){OK_HEAD "Content-Length: 0\r\n\r\n", false, NULL};
    cr_assert_eq(fetch(get(url(scripted_port, "/"))).status, 200, "another server is not held up");
    WAIT_FOR(waiting[1].count == 1);
    cr_assert_eq(waiting[1].outcome, AS_HTTP_UNREACHABLE);
    cr_assert_eq(waiting[0].count, 0);
    http->cancel(http, calls[7]);
    WAIT_FOR(waiting[0].count == 1);
    cr_assert_eq(waiting[0].status, 200);
    cr_assert_eq(waiting[2].count, 0);
    cr_assert_eq(hanging[7].count, 0);
}

/* Calls that never end, until the server has as many of them as it gets. */
static void hang(struct as_http_request request, size_t count, unsigned expected)
{
    static struct result results[1024];
    const unsigned before = served;
    request.url = url(as_http_server_get_port(server), "/hang");
    for (size_t i = 0; i < count; i++)
        cr_assert_not_null(http->start(http, &request, on_done, &results[i]));
    WAIT_FOR(served >= before + expected);
    run_for(20);
    cr_assert_eq(served, before + expected, "%u more", served - before);
}

Test(client, each_class_has_places_of_its_own)
{
    static const enum as_http_class classes[] = {AS_HTTP_REVIEW, AS_HTTP_LEASE, AS_HTTP_WATCH};
    hang(get(""), 100, 64);
    for (size_t i = 0; i < AS_ARRAY_SIZE(classes); i++) {
        struct as_http_request request = get(url(as_http_server_get_port(server), "/"));
        request.class = classes[i];
        cr_assert_eq(fetch(request).status, 200);
    }
}

Test(client, watches_take_no_places_from_calls)
{
    struct as_http_request request = get("");
    char first[64];
    request.class = AS_HTTP_WATCH;
    hang(request, 300, 300);
    for (unsigned i = 0; i < 3; i++) {
        cr_assert_eq(fetch(get(url(as_http_server_get_port(server), "/"))).status, 200);
        if (i == 0)
            snprintf(first, sizeof(first), "%s", last_remote);
        cr_assert_str_eq(last_remote, first, "its connection is kept");
    }
    hang(get(""), 100, 64);
}

Test(client, narrowed_credentials_leave_half_of_the_places_to_others)
{
    struct as_http_request request = get("");
    request.flow = (struct as_flow){"target", "team"};
    hang(request, 1000, 32);
    request.flow = (struct as_flow){"target", "another team"};
    hang(request, 100, 0);
    cr_assert_eq(fetch(get(url(as_http_server_get_port(server), "/"))).status, 200);
    hang(get(""), 100, 32);
}

Test(client, the_next_call_is_of_another_target)
{
    static struct result results[400], other;
    struct as_http_request request = get(url(as_http_server_get_port(server), "/"));
    request.flow.target = "busy";
    for (size_t i = 0; i < AS_ARRAY_SIZE(results); i++)
        cr_assert_not_null(http->start(http, &request, on_done, &results[i]));
    request.url = url(as_http_server_get_port(server), "/quiet");
    request.flow.target = "quiet";
    cr_assert_not_null(http->start(http, &request, on_done, &other));
    WAIT_FOR(other.count == 1);
    cr_assert_leq(quiet_at, 64 + 2, "only calls that ran already come before it: %u", quiet_at);
    WAIT_FOR(observed_count == AS_ARRAY_SIZE(results) + 1);
}

Test(client, cancels_everything_when_freed)
{
    enum { COUNT = 80 };
    static struct result results[COUNT + 1];
    struct as_http_request request = get(url(as_http_server_get_port(server), "/hang"));
    for (size_t i = 0; i < COUNT; i++)
        cr_assert_not_null(http->start(http, &request, on_done, &results[i]));
    request = malformed();
    cr_assert_not_null(http->start(http, &request, on_done, &results[COUNT]));
    client = as_http_client_free(client);
    run_for(20);
    for (size_t i = 0; i <= COUNT; i++)
        cr_assert_eq(results[i].count, 0);
}

#define LOOKUP_MS 1000

static unsigned lookups_under_way; /* in curl's threads */

/* In place of libc's, also for curl: a name server that takes its time over *.slow. */
int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
                struct addrinfo **found)
{
    int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
    const char *dot = name ? strrchr(name, '.') : NULL;
    if (dot && strcmp(dot, ".slow") == 0) {
        __atomic_add_fetch(&lookups_under_way, 1, __ATOMIC_SEQ_CST);
        poll(NULL, 0, LOOKUP_MS);
        __atomic_sub_fetch(&lookups_under_way, 1, __ATOMIC_SEQ_CST);
        return EAI_AGAIN;
    }
    *(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
    return real(name, service, hints, found);
}

static unsigned get_lookups(void)
{
    return __atomic_load_n(&lookups_under_way, __ATOMIC_SEQ_CST);
}

/* Neither a time-out nor a cancel nor the end of the client waits for the name server. */
Test(client, does_not_wait_for_a_slow_name_server)
{
    struct result result = {0}, never = {0}, neither = {0};
    struct as_http_request request = get("http://a.slow/");
    struct as_http_call *cancelled = http->start(http, &request, on_done, &never);
    request.url = "http://b.slow/";
    cr_assert_not_null(http->start(http, &request, on_done, &neither));
    request.url = "http://c.slow/";
    request.timeout_us = 50 * MS;
    int64_t began = now_ms();
    cr_assert_not_null(http->start(http, &request, on_done, &result));
    WAIT_FOR(get_lookups() == 3);
    WAIT_FOR(result.count == 1);
    cr_assert_eq(result.outcome, AS_HTTP_UNREACHABLE);
    cr_assert_eq(never.count, 0, "the loop has stood still");
    http->cancel(http, cancelled);
    client = as_http_client_free(client);
    cr_assert(now_ms() - began < LOOKUP_MS, "%lld ms", (long long)(now_ms() - began));
    cr_assert_eq(get_lookups(), 3);
    WAIT_FOR(get_lookups() == 0);
    run_for(50); /* the threads end */
    cr_assert_eq(never.count + neither.count, 0);
}
