/*
 * An HTTP server and its peers in one thread, in turns, over real sockets on loopback: shared by
 * the tests of the server. The handler echoes requests; some paths answer later, with much, or with
 * nothing, or decide admission later.
 */
#ifndef TESTS_SERVER_HARNESS_H
#define TESTS_SERVER_HARNESS_H

#include <alertscaler/http/server.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <criterion/criterion.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>

#include <alertscaler/base/log.h>
#include <alertscaler/base/time.h>

#include "http/connection.h"

#define WAIT_MS  5000
#define BIG_SIZE ((size_t)8 * 1024 * 1024)
#define MS       1000 /* us */

static struct event_base *base;
static struct as_http_server *server;
static struct as_http_exchange *kept[8]; /* by /later */
static unsigned kept_count, handled, answered_count;
static unsigned kept_handled;               /* how many were handled when the last one was kept */
static struct as_http_exchange *admitted;   /* the last one */
static struct as_http_exchange *pending[8]; /* by /pending */
static unsigned pending_count, freed_count, dropped_count;
static int answered_status;
static char answered_name[32];
static char *big;

static inline void free_data(void *data)
{
    freed_count++;
    free(data);
}

static inline enum as_http_admission admit(void *context, struct as_http_exchange *exchange)
{
    const char *sender = as_http_exchange_find_header(exchange, "X-Sender");
    admitted = exchange;
    if (sender)
        as_http_exchange_set_sender(exchange, sender);
    if (strcmp(as_http_exchange_get_path(exchange), "/pending") == 0) {
        pending[pending_count++ % 8] = exchange;
        as_http_exchange_set_data(exchange, strdup("data"), free_data);
        return AS_HTTP_PENDING;
    }
    if (strcmp(as_http_exchange_get_path(exchange), "/denied") != 0)
        return AS_HTTP_ADMITTED;
    as_http_exchange_set_route(exchange, NULL, "denied");
    as_http_exchange_reply(exchange,
                           &(struct as_http_answer){.status = 401,
                                                    .headers = "WWW-Authenticate: Bearer\r\n",
                                                    .body = "no\n",
                                                    .body_size = 3});
    return AS_HTTP_REPLIED;
}

static inline void reply(struct as_http_exchange *exchange)
{
    char body[512];
    size_t size;
    const char *sent = as_http_exchange_get_body(exchange, &size);
    const char *header = as_http_exchange_find_header(exchange, "x-test");
    int length = snprintf(body, sizeof(body), "%s %s ?%s [%s] %zu:%.*s",
                          as_http_exchange_get_method(exchange),
                          as_http_exchange_get_path(exchange), as_http_exchange_get_query(exchange),
                          header ? header : "", size, (int)(size < 100 ? size : 100), sent);
    as_http_exchange_reply(exchange, &(struct as_http_answer){
                                         .status = 200, .body = body, .body_size = (size_t)length});
}

static inline void handle(void *context, struct as_http_exchange *exchange)
{
    const char *path = as_http_exchange_get_path(exchange);
    handled++;
    as_http_exchange_set_route(exchange, NULL, "test");
    if (strcmp(path, "/later") == 0) {
        kept[kept_count++ % 8] = exchange;
        kept_handled = handled;
    } else if (strcmp(path, "/big") == 0)
        as_http_exchange_reply(
            exchange, &(struct as_http_answer){.status = 200, .body = big, .body_size = BIG_SIZE});
    else if (strcmp(path, "/empty") == 0)
        as_http_exchange_reply(exchange, &(struct as_http_answer){.status = 204});
    else if (strcmp(path, "/close") == 0)
        as_http_exchange_reply(exchange, &(struct as_http_answer){.status = 200, .close = true});
    else
        reply(exchange);
}

static inline void answered(void *context, const char *handler, int status, int64_t duration_us)
{
    answered_count++;
    answered_status = status;
    snprintf(answered_name, sizeof(answered_name), "%s", handler);
    cr_assert(duration_us >= 0 && duration_us < 60 * AS_US_PER_S, "%lld", (long long)duration_us);
}

static inline void dropped(void *context, const char *reason)
{
    dropped_count++;
    cr_assert_str_eq(reason, "limit");
}

static inline struct as_http_server_config short_config(void)
{
    struct as_http_server_config config = as_http_server_config_default;
    config.listen_address = "127.0.0.1:0";
    config.max_head = 1024;
    return config;
}

static inline void start(struct as_http_server_config config)
{
    sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
    as_log_configure(AS_LOG_ERROR, AS_LOG_LOGFMT, open("/dev/null", O_WRONLY));
    static const struct as_http_handler handler = {
        .admit = admit, .handle = handle, .answered = answered, .dropped = dropped};
    struct as_error error = AS_ERROR_INIT;
    base = event_base_new();
    big = malloc(BIG_SIZE);
    memset(big, 'b', BIG_SIZE);
    cr_assert_eq(as_http_server_new(base, &config, &handler, &server, &error), 0, "%s", error.text);
}

static inline void stop(void)
{
    server = as_http_server_free(server);
    event_base_loop(base, EVLOOP_NONBLOCK); /* streams that had something to do end in it */
    event_base_free(base);
    free(big);
}

static inline int64_t now_ms(void)
{
    return as_http_server_now() / 1000;
}

static inline void turn(void)
{
    event_base_loop(base, EVLOOP_NONBLOCK);
}

static inline void run_for(int ms)
{
    for (int64_t end = now_ms() + ms; now_ms() < end; poll(NULL, 0, 1))
        turn();
}

/* Turns the loop until `condition`, at most WAIT_MS. */
#define WAIT_FOR(condition)                                                                        \
    do {                                                                                           \
        for (int64_t end = now_ms() + WAIT_MS; !(condition) && now_ms() < end; poll(NULL, 0, 1))   \
            turn();                                                                                \
        cr_assert(condition, "%s", #condition);                                                    \
    } while (0)

static inline int dial(void)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(as_http_server_get_port(server)),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    cr_assert_eq(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0, "%s",
                 strerror(errno));
    return fd;
}

/* Sends what can be sent, all of it unless the peer resets. */
static inline bool put(int fd, const char *bytes, size_t size)
{
    for (int64_t end = now_ms() + WAIT_MS; size > 0 && now_ms() < end; turn()) {
        ssize_t sent = send(fd, bytes, size, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0 && errno != EAGAIN)
            return false;
        bytes += sent > 0 ? sent : 0;
        size -= sent > 0 ? (size_t)sent : 0;
    }
    return size == 0;
}

static inline void put_str(int fd, const char *text)
{
    cr_assert(put(fd, text, strlen(text)), "%s", strerror(errno));
}

struct answer {
    int status;
    char head[1024];
    char body[1024]; /* its beginning */
    size_t body_size;
    bool closed; /* end of file behind it */
};

static inline bool next_byte(int fd, char *byte, bool *reset)
{
    for (int64_t end = now_ms() + WAIT_MS; now_ms() < end;) {
        ssize_t got = recv(fd, byte, 1, MSG_DONTWAIT);
        if (got == 1)
            return true;
        if (got == 0)
            return false;
        if (errno != EAGAIN) {
            *reset = true;
            return false;
        }
        turn();
        struct pollfd poller = {.fd = fd, .events = POLLIN};
        poll(&poller, 1, 1);
    }
    cr_assert_fail("nothing came");
    return false;
}

static inline size_t skip_body(int fd, size_t size)
{
    static char bytes[65536];
    size_t got = 0;
    for (int64_t end = now_ms() + WAIT_MS; got < size && now_ms() < end; turn()) {
        ssize_t some =
            recv(fd, bytes, sizeof(bytes) < size - got ? sizeof(bytes) : size - got, MSG_DONTWAIT);
        if (some == 0)
            break;
        got += some > 0 ? (size_t)some : 0;
    }
    return got;
}

/* One answer; status 0 where the connection ended instead. */
static inline struct answer get_answer(int fd, bool without_body)
{
    struct answer answer = {0};
    size_t size = 0;
    while (size < sizeof(answer.head) - 1 && !strstr(answer.head, "\r\n\r\n") &&
           next_byte(fd, &answer.head[size], &answer.closed))
        size++;
    if (!strstr(answer.head, "\r\n\r\n")) {
        answer.closed = true;
        cr_assert_eq(size, 0, "cut: %s", answer.head);
        return answer;
    }
    cr_assert(strncmp(answer.head, "HTTP/1.1 ", 9) == 0);
    answer.status = (int)strtol(answer.head + 9, NULL, 10);
    const char *length = strstr(answer.head, "\r\nContent-Length: ");
    size_t expected = length ? strtoul(length + 18, NULL, 10) : 0;
    if (without_body)
        return answer;
    bool reset = false;
    while (answer.body_size < expected && answer.body_size < sizeof(answer.body) - 1 &&
           next_byte(fd, &answer.body[answer.body_size], &reset))
        answer.body_size++;
    if (answer.body_size < expected)
        answer.body_size += skip_body(fd, expected - answer.body_size);
    cr_assert_eq(answer.body_size, expected);
    return answer;
}

static inline void expect(int fd, int status, const char *part_of_body)
{
    struct answer answer = get_answer(fd, false);
    cr_assert_eq(answer.status, status, "got %d: %s%s", answer.status, answer.head, answer.body);
    cr_assert(strstr(answer.body, part_of_body), "%s", answer.body);
}

/* End of file, not a reset: the answer before it has certainly arrived. */
static inline void expect_clean_end(int fd)
{
    char byte;
    bool reset = false;
    cr_assert(!next_byte(fd, &byte, &reset));
    cr_assert(!reset);
}

#define HOST      "Host: a\r\n"
#define GET(path) "GET " path " HTTP/1.1\r\n" HOST "\r\n"

#endif
