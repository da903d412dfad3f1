/*
 * The HTTP server over real sockets on loopback, client and server taking turns in one thread.
 * Promises: see the tests' names; every exchange is always reported exactly once.
 */
#include "server_harness.h"

Test(server, keeps_the_connection_and_hands_over_the_request)
{
    start(short_config());
    int fd = dial();
    put_str(fd, "POST /a/b?c=d HTTP/1.1\r\n" HOST "X-Test:  some thing \r\nContent-Length: 5\r\n"
                "\r\nhello");
    expect(fd, 200, "POST /a/b ?c=d [some thing] 5:hello");
    put_str(fd, GET("http://x"));
    expect(fd, 200, "GET / ? [] 0:");
    put_str(fd, "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    struct answer answer = get_answer(fd, false);
    cr_assert(strstr(answer.head, "\r\nConnection: keep-alive\r\n"));
    cr_assert(strstr(answer.head, "\r\nX-Content-Type-Options: nosniff\r\n"));
    cr_assert(strstr(answer.head, "\r\nContent-Type: text/plain; charset=utf-8\r\n"));
    cr_assert(strstr(answer.head, " GMT\r\n"));
    put_str(fd, "HEAD /big HTTP/1.1\r\n" HOST "\r\n" GET("/empty"));
    answer = get_answer(fd, true);
    cr_assert(strstr(answer.head, "\r\nContent-Length: 8388608\r\n"));
    expect(fd, 204, "");
    put_str(fd, "GET / HTTP/1.0\r\n\r\n");
    expect(fd, 200, "GET /");
    expect_clean_end(fd);
    cr_assert_eq(answered_count, 6);
    cr_assert_str_eq(answered_name, "test");
    close(fd);
    stop();
}

Test(server, takes_a_request_a_byte_at_a_time)
{
    start(short_config());
    int fd = dial();
    static const char request[] = "POST / HTTP/1.1\r\n" HOST
                                  "Transfer-Encoding: chunked\r\n\r\n3;x\r\nabc\r\n2\r\nde\r\n0\r\n"
                                  "T: r\r\n\r\n"
                                  "POST / HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\nxyz";
    for (size_t i = 0; i < sizeof(request) - 1; i++) {
        cr_assert(put(fd, request + i, 1));
        turn();
    }
    expect(fd, 200, "5:abcde");
    expect(fd, 200, "3:xyz");
    close(fd);
    stop();
}

Test(server, answers_pipelined_requests_in_order_one_at_a_time)
{
    start(short_config());
    int fd = dial();
    put_str(fd, GET("/1") GET("/later") GET("/later") GET("/4"));
    expect(fd, 200, "/1");
    run_for(20);
    cr_assert_eq(kept_count, 1, "the second waits for the first's reply");
    cr_assert_eq(handled, 2);
    reply(kept[0]);
    cr_assert_eq(kept_count, 1, "never handled on the replier's stack");
    expect(fd, 200, "/later");
    WAIT_FOR(kept_count == 2);
    shutdown(fd, SHUT_WR); /* done sending, still reading */
    run_for(10);
    reply(kept[1]);
    expect(fd, 200, "/later");
    expect(fd, 200, "/4");
    expect_clean_end(fd);
    close(fd);
    stop();
}

Test(server, says_continue_only_to_the_admitted)
{
    start(short_config());
    int fd = dial();
    put_str(fd, "POST / HTTP/1.1\r\n" HOST "Content-Length: 2\r\nExpect: 100-continue\r\n\r\n");
    struct answer answer = get_answer(fd, false);
    cr_assert_eq(answer.status, 100);
    put_str(fd, "ok");
    expect(fd, 200, "2:ok");
    put_str(fd,
            "POST /denied HTTP/1.1\r\n" HOST "Content-Length: 2\r\nExpect: 100-continue\r\n\r\n");
    answer = get_answer(fd, false);
    cr_assert_eq(answer.status, 401);
    cr_assert(strstr(answer.head, "\r\nWWW-Authenticate: Bearer\r\n"));
    cr_assert(strstr(answer.head, "\r\nConnection: close\r\n"));
    expect_clean_end(fd);
    cr_assert_eq(handled, 1);
    cr_assert_str_eq(answered_name, "denied");
    close(fd);
    fd = dial();
    put_str(fd, GET("/denied") GET("/next")); /* no body to come: the connection can stay */
    expect(fd, 401, "no");
    expect(fd, 200, "/next");
    close(fd);
    stop();
}

Test(server, refuses_malformed_requests)
{
    static const struct {
        const char *request;
        int status;
    } rows[] = {
        {"GET\r\n", 400},
        {"GET / HTTP/1.1\r\n\r\n", 400},
        {"GET / HTTP/2.0\r\n", 505},
        {"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: gzip\r\n\r\n", 501},
        {"POST / HTTP/1.1\r\n" HOST "Content-Encoding: gzip\r\n\r\n", 415},
        {"POST / HTTP/1.1\r\n" HOST "Expect: x\r\n\r\n", 417},
        {"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n3\r\nabcd", 400},
        {"\x16\x03\x01", 400},
    };
    start(short_config());
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        int fd = dial();
        put_str(fd, rows[i].request);
        struct answer answer = get_answer(fd, false);
        cr_assert_eq(answer.status, rows[i].status, "row %zu: %s", i, answer.head);
        cr_assert(strchr(answer.body, '\n'), "row %zu: %s", i, answer.body);
        expect_clean_end(fd);
        close(fd);
        cr_assert_str_eq(answered_name, "invalid");
        cr_assert_eq(answered_status, rows[i].status);
    }
    cr_assert_eq(answered_count, AS_ARRAY_SIZE(rows));
    cr_assert_eq(handled, 0);
    stop();
}

Test(server, refuses_heads_and_request_lines_too_large)
{
    start(short_config());
    char many[2000];
    memset(many, 'a', sizeof(many));
    int fd = dial();
    put_str(fd, "GET / HTTP/1.1\r\nX: ");
    cr_assert(put(fd, many, sizeof(many)));
    expect(fd, 431, "too large");
    expect_clean_end(fd);
    close(fd);
    fd = dial();
    put_str(fd, "GET /");
    cr_assert(put(fd, many, sizeof(many)));
    expect(fd, 414, "too long");
    expect_clean_end(fd);
    close(fd);
    stop();
}

/* Who goes on sending for a while still gets the answer, and then a clean end. */
Test(server, refuses_bodies_too_large_and_the_peer_sees_why)
{
    struct as_http_server_config config = short_config();
    config.max_body = 1000;
    start(config);
    static const char *const framings[] = {"Content-Length: 99999999999999\r\n\r\n",
                                           "Transfer-Encoding: chunked\r\n\r\n800000\r\n"};
    for (size_t i = 0; i < 2; i++) {
        int fd = dial();
        put_str(fd, "POST / HTTP/1.1\r\n" HOST);
        put_str(fd, framings[i]);
        if (i == 1)
            cr_assert(put(fd, big, 1001));
        WAIT_FOR(answered_count == i + 1); /* before a byte of the body; or with byte 1001 */
        cr_assert(put(fd, big, BIG_SIZE / 2), "reset while sending");
        run_for(10);
        expect(fd, 413, "too large");
        shutdown(fd, SHUT_WR);
        expect_clean_end(fd);
        close(fd);
    }
    int fd = dial();
    put_str(fd, "POST / HTTP/1.1\r\n" HOST "Content-Length: 1000\r\n\r\n");
    cr_assert(put(fd, big, 1000));
    expect(fd, 200, "1000:bbb");
    put_str(fd, "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n3e8\r\n");
    cr_assert(put(fd, big, 1000));
    put_str(fd, "\r\n0\r\n\r\n");
    expect(fd, 200, "1000:bbb");
    close(fd);
    cr_assert_eq(handled, 2);
    stop();
}

Test(server, does_not_listen_for_ever_to_a_refused_peer)
{
    start(short_config());
    int fd = dial();
    put_str(fd, "bad\r\n");
    bool taken = true;
    for (size_t i = 0; taken && i < 100; i++)
        taken = put(fd, big, BIG_SIZE);
    cr_assert(!taken, "800 MB");
    close(fd);
    fd = dial();
    put_str(fd, "bad\r\n");
    expect(fd, 400, "");
    int64_t began = now_ms();
    WAIT_FOR(as_http_server_get_connections(server) == 0); /* though it stays silent */
    cr_assert(now_ms() - began < 4000);
    close(fd);
    stop();
}

Test(server, takes_memory_only_for_what_has_arrived)
{
    start(short_config());
    int fd = dial();
    put_str(fd, "POST / HTTP/1.1\r\n" HOST "Content-Length: 16777216\r\n\r\n0123456789");
    WAIT_FOR(admitted && admitted->body.size == 10);
    cr_assert(admitted->body.capacity <= 128 * 1024, "%zu", admitted->body.capacity);
    cr_assert(put(fd, big, BIG_SIZE));
    cr_assert(put(fd, big, BIG_SIZE - 10));
    expect(fd, 200, "16777216:0123456789b");
    cr_assert(admitted->body.capacity <= 4096, "%zu", admitted->body.capacity);
    close(fd);
    stop();
}

Test(server, large_bodies_and_answers_follow_one_another_on_a_connection)
{
    start(short_config());
    int fd = dial();
    put_str(fd, GET("/"));
    expect(fd, 200, "/");
    put_str(fd,
            "POST / HTTP/1.1\r\n" HOST "Expect: 100-continue\r\nContent-Length: 8388608\r\n\r\n");
    cr_assert_eq(get_answer(fd, false).status, 100);
    cr_assert(put(fd, big, BIG_SIZE));
    expect(fd, 200, "8388608:bbb");
    put_str(fd, GET("/big") GET("/later"));
    cr_assert_eq(get_answer(fd, false).body_size, BIG_SIZE);
    WAIT_FOR(kept_count == 1);
    reply(kept[0]);
    expect(fd, 200, "/later");
    put_str(fd, "bad\r\n");
    expect(fd, 400, "");
    expect_clean_end(fd);
    close(fd);
    stop();
}

Test(server, answers_who_ends_in_the_middle_of_a_further_request)
{
    start(short_config());
    int fd = dial();
    put_str(fd, GET("/") "GET /mo");
    shutdown(fd, SHUT_WR);
    expect(fd, 200, "/");
    expect_clean_end(fd);
    close(fd);
    stop();
}

Test(server, holds_deadlines_for_head_body_and_silence)
{
    struct as_http_server_config config = short_config();
    config.head_timeout_us = config.body_timeout_us = 100 * MS;
    config.idle_timeout_us = 200 * MS;
    start(config);
    int64_t began = now_ms();
    int fresh = dial(), idle = dial(), head = dial(), body = dial();
    put_str(idle, GET("/"));
    expect(idle, 200, "");
    put_str(body, "POST / HTTP/1.1\r\n" HOST "Content-Length: 100\r\n\r\n");
    while (answered_count < 3 &&
           now_ms() < began + WAIT_MS) { /* a byte now and then is no excuse */
        if (send(head, "G", 1, MSG_NOSIGNAL) < 0 || send(body, "x", 1, MSG_NOSIGNAL) < 0)
            break;
        run_for(5);
    }
    int64_t took = now_ms() - began;
    expect(head, 408, "in time");
    expect(body, 408, "in time");
    expect_clean_end(fresh);
    expect_clean_end(idle);
    cr_assert(took >= 90 && took < 2000, "%lld ms", (long long)took);
    cr_assert(now_ms() - began >= 190);
    cr_assert_eq(handled, 1);
    close(fresh);
    close(idle);
    close(head);
    close(body);
    WAIT_FOR(as_http_server_get_connections(server) == 0);
    stop();
}

Test(server, gives_up_on_a_peer_that_does_not_read)
{
    struct as_http_server_config config = short_config();
    config.write_timeout_us = 100 * MS;
    start(config);
    int fd = dial();
    put_str(fd, GET("/big"));
    WAIT_FOR(answered_count == 1);
    cr_assert_eq(as_http_server_get_connections(server), 1);
    WAIT_FOR(as_http_server_get_connections(server) == 0);
    close(fd);
    stop();
}

Test(server, writes_large_answers_to_slow_readers)
{
    start(short_config());
    int fd = dial();
    put_str(fd, GET("/big") GET("/next"));
    run_for(20);
    struct answer answer = get_answer(fd, false);
    cr_assert_eq(answer.body_size, BIG_SIZE);
    expect(fd, 200, "/next");
    close(fd);
    stop();
}

static void reset_connection(int fd)
{
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &(struct linger){.l_onoff = 1}, sizeof(struct linger));
    close(fd);
}

Test(server, survives_peers_that_vanish_before_the_reply)
{
    start(short_config());
    int gone = dial(), reset = dial(), partial = dial();
    put_str(gone, GET("/later"));
    put_str(reset, GET("/later"));
    put_str(partial, "GET /lat");
    WAIT_FOR(kept_count == 2);
    close(gone);
    reset_connection(reset);
    reset_connection(partial);
    WAIT_FOR(as_http_server_get_connections(server) == 2);
    cr_assert_str_eq(as_http_exchange_get_path(kept[0]), "/later");
    reply(kept[0]);
    reply(kept[1]);
    cr_assert_eq(answered_count, 2);
    WAIT_FOR(as_http_server_get_connections(server) == 0);

    reset = dial();
    put_str(reset, GET("/later"));
    WAIT_FOR(kept_count == 3);
    reset_connection(reset);
    reply(kept[2]); /* finds out by writing */
    cr_assert_eq(answered_count, 3);
    WAIT_FOR(as_http_server_get_connections(server) == 0);
    stop();
}

Test(server, answers_who_has_shut_its_side)
{
    start(short_config());
    int fd = dial();
    put_str(fd, GET("/later"));
    shutdown(fd, SHUT_WR);
    WAIT_FOR(kept_count == 1);
    run_for(10);
    reply(kept[0]);
    expect(fd, 200, "/later");
    expect_clean_end(fd);
    close(fd);
    stop();
}

Test(server, makes_room_by_closing_the_longest_idle)
{
    struct as_http_server_config config = short_config();
    config.max_connections = 3;
    start(config);
    int busy = dial(), old = dial(), newer = dial();
    put_str(busy, GET("/later"));
    WAIT_FOR(kept_count == 1);
    put_str(old, GET("/"));
    expect(old, 200, "");
    put_str(newer, GET("/"));
    expect(newer, 200, "");
    int fd = dial();
    put_str(fd, GET("/later"));
    WAIT_FOR(kept_count == 2);
    expect_clean_end(old);
    put_str(newer, GET("/later"));
    WAIT_FOR(kept_count == 3);
    int refused = dial(); /* nobody is idle now */
    put_str(refused, GET("/"));
    struct answer answer = get_answer(refused, false);
    cr_assert_eq(answer.status, 503);
    cr_assert(strstr(answer.head, "\r\nRetry-After: "));
    expect_clean_end(refused);
    cr_assert_str_eq(answered_name, "invalid");
    int many[200]; /* of which only some are told */
    for (size_t i = 0; i < AS_ARRAY_SIZE(many); i++) {
        many[i] = dial();
        turn();
        cr_assert(as_http_server_get_connections(server) <= 3 + 64);
    }
    for (size_t i = 0; i < AS_ARRAY_SIZE(many); i++)
        close(many[i]);
    for (unsigned i = 0; i < 3; i++)
        reply(kept[i]);
    expect(busy, 200, "/later");
    expect(fd, 200, "/later");
    expect(newer, 200, "/later");
    int all[] = {busy, old, newer, fd, refused};
    for (size_t i = 0; i < AS_ARRAY_SIZE(all); i++)
        close(all[i]);
    stop();
}

static unsigned drained_count;

static void drained(void *context)
{
    drained_count++;
}

Test(server, drains)
{
    start(short_config());
    int idle = dial(), busy = dial(), writing = dial();
    put_str(busy, GET("/later"));
    put_str(writing, GET("/big"));
    WAIT_FOR(kept_count == 1 && answered_count == 1);
    as_http_server_drain(server, drained, NULL);
    cr_assert_eq(drained_count, 0);
    expect_clean_end(idle);
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(as_http_server_get_port(server)),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int late = socket(AF_INET, SOCK_STREAM, 0);
    cr_assert_eq(connect(late, (struct sockaddr *)&address, sizeof(address)), -1);
    close(late);
    cr_assert_eq(get_answer(writing, false).body_size, BIG_SIZE);
    expect_clean_end(writing);
    run_for(10);
    cr_assert_eq(drained_count, 0);
    reply(kept[0]);
    struct answer answer = get_answer(busy, false);
    cr_assert(strstr(answer.head, "\r\nConnection: close\r\n"));
    expect_clean_end(busy);
    WAIT_FOR(drained_count == 1);
    run_for(10);
    cr_assert_eq(drained_count, 1);
    close(idle);
    close(busy);
    close(writing);
    stop();
}

/* Answers wait for those of the requests behind them, of which the last is never whole. */
Test(server, sends_what_it_has_answered_to_who_ends_in_the_middle_of_a_request)
{
    start(short_config());
    int fd = dial();
    put_str(fd, GET("/later"));
    WAIT_FOR(kept_count == 1);
    put_str(fd, GET("/2") "GET /mo");
    shutdown(fd, SHUT_WR);
    run_for(20);
    reply(kept[0]);
    expect(fd, 200, "/later");
    expect(fd, 200, "/2");
    expect_clean_end(fd);
    close(fd);
    stop();
}

static struct event *take_soon;

/* The kernel takes what it had not taken, between two turns of the requests that wait. */
static void on_take_soon(int fd, short what, void *context)
{
    struct as_connection *connection = TAILQ_FIRST(&server->queues[AS_CONNECTION_IDLE].list);
    if (answered_count < 2)
        event_active(take_soon, EV_TIMEOUT, 0);
    else if (connection && as_stream_flush(&connection->stream) == 0)
        connection->stream.callbacks.written(connection, 0);
}

Test(server, answers_all_that_was_sent_before_the_end_whenever_answers_leave)
{
    start(short_config());
    int fd = dial();
    put_str(fd, GET("/later"));
    WAIT_FOR(kept_count == 1);
    put_str(fd, GET("/2") GET("/3") GET("/4") GET("/5"));
    shutdown(fd, SHUT_WR);
    run_for(20);
    take_soon = evtimer_new(base, on_take_soon, NULL);
    event_active(take_soon, EV_TIMEOUT, 0);
    reply(kept[0]);
    expect(fd, 200, "/later");
    expect(fd, 200, "/2");
    expect(fd, 200, "/3");
    expect(fd, 200, "/4");
    expect(fd, 200, "/5");
    expect_clean_end(fd);
    close(fd);
    event_free(take_soon);
    stop();
}

static struct event *drain_soon;

/* In the turn in which requests are read, once the first two are answered. */
static void on_drain_soon(int fd, short what, void *context)
{
    if (answered_count < 2)
        event_active(drain_soon, EV_TIMEOUT, 0);
    else
        as_http_server_drain(server, drained, NULL);
}

Test(server, sends_what_it_has_answered_before_it_drains)
{
    start(short_config());
    int fd = dial();
    run_for(5);
    drain_soon = evtimer_new(base, on_drain_soon, NULL);
    cr_assert(send(fd, GET("/1") GET("/2") GET("/3"), 3 * strlen(GET("/1")), 0) > 0);
    event_active(drain_soon, EV_TIMEOUT, 0);
    WAIT_FOR(drained_count == 1);
    cr_assert_eq(answered_count, 2);
    expect(fd, 200, "/1");
    expect(fd, 200, "/2");
    close(fd);
    event_free(drain_soon);
    stop();
}

Test(server, drains_at_once_when_there_is_nothing)
{
    start(short_config());
    as_http_server_drain(server, drained, NULL);
    cr_assert_eq(drained_count, 0);
    WAIT_FOR(drained_count == 1);
    stop();
}

Test(server, may_be_freed_with_exchanges_in_flight)
{
    start(short_config());
    int fd = dial(), big_one = dial(), refused = dial();
    put_str(fd, GET("/later"));
    put_str(big_one, GET("/big"));
    put_str(refused, "bad\r\n");
    WAIT_FOR(kept_count == 1 && answered_count == 2);
    stop();
    close(fd);
    close(big_one);
    close(refused);
}

Test(server, closes_when_the_handler_says_so)
{
    start(short_config());
    int fd = dial();
    put_str(fd, GET("/close") GET("/never"));
    struct answer answer = get_answer(fd, false);
    cr_assert(strstr(answer.head, "\r\nConnection: close\r\n"));
    expect_clean_end(fd);
    cr_assert_eq(handled, 1);
    close(fd);
    stop();
}

/* Without a descriptor left the server waits instead of spinning, and goes on when there are some.
 */
Test(server, outlives_a_lack_of_descriptors)
{
    start(short_config());
    int fd = dial();
    struct rlimit old, tight;
    getrlimit(RLIMIT_NOFILE, &old);
    tight = old;
    tight.rlim_cur = (rlim_t)fd + 1;
    setrlimit(RLIMIT_NOFILE, &tight);
    run_for(50);
    cr_assert_eq(as_http_server_get_connections(server), 0);
    clock_t began = clock();
    run_for(120);
    cr_assert((double)(clock() - began) / CLOCKS_PER_SEC < 0.1, "it spins");
    setrlimit(RLIMIT_NOFILE, &old);
    int next = dial();
    put_str(next, GET("/"));
    expect(next, 200, "/");
    close(fd);
    close(next);
    stop();
}

static int dial_to(const char *host)
{
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6,
                              .sin6_port = htons(as_http_server_get_port(server))};
    cr_assert_eq(inet_pton(AF_INET6, host, &v6.sin6_addr), 1);
    int fd = socket(AF_INET6, SOCK_STREAM, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&v6, sizeof(v6)) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

Test(server, listens_on_both_families_and_names_the_peer)
{
    struct as_http_server_config config = short_config();
    config.listen_address = ":0";
    start(config);
    int fd = dial();
    put_str(fd, GET("/"));
    expect(fd, 200, "/");
    cr_assert(strncmp(as_http_exchange_get_remote(admitted), "127.0.0.1:", 10) == 0, "%s",
              as_http_exchange_get_remote(admitted));
    close(fd);
    fd = dial_to("::1");
    if (fd >= 0) {
        put_str(fd, GET("/"));
        expect(fd, 200, "/");
        cr_assert(strncmp(as_http_exchange_get_remote(admitted), "[::1]:", 6) == 0, "%s",
                  as_http_exchange_get_remote(admitted));
        close(fd);
    } else {
        cr_log_warn("this machine has no IPv6 loopback: only IPv4 was tried");
    }
    stop();
}

Test(server, says_which_address_is_wrong)
{
    start(short_config());
    char taken[32];
    snprintf(taken, sizeof(taken), "127.0.0.1:%u", as_http_server_get_port(server));
    const struct {
        const char *address, *part_of_error;
        int result;
    } rows[] = {
        {"9096", "HOST:PORT", -EINVAL},    {"", "HOST:PORT", -EINVAL},
        {":", "HOST:PORT", -EINVAL},       {":x", "HOST:PORT", -EINVAL},
        {":65536", "HOST:PORT", -EINVAL},  {":-1", "HOST:PORT", -EINVAL},
        {"::1:80", "HOST:PORT", -EINVAL},  {"[]:80", "HOST:PORT", -EINVAL},
        {taken, "in use", -EADDRINUSE},    {"192.0.2.1:0", "assign", -EADDRNOTAVAIL},
        {"[::1:80", "HOST:PORT", -EINVAL},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        struct as_http_server_config config = short_config();
        config.listen_address = rows[i].address;
        const struct as_http_handler handler = {.admit = admit, .handle = handle};
        struct as_http_server *other = NULL;
        struct as_error error = AS_ERROR_INIT;
        cr_assert_eq(as_http_server_new(base, &config, &handler, &other, &error), rows[i].result,
                     "row %zu: %s", i, error.text);
        cr_assert_null(other);
        cr_assert(strstr(error.text, rows[i].part_of_error) && strstr(error.text, rows[i].address),
                  "row %zu: %s", i, error.text);
    }
    stop();
}

Test(server, sends_further_headers_with_every_answer)
{
    struct as_http_server_config config = short_config();
    char headers[] = "X-Frame-Options: deny\r\nx-content-type-options: nosniff\r\n";
    config.extra_headers = headers;
    start(config);
    memset(headers, 'x', sizeof(headers)); /* a copy is kept */
    static const char *const requests[] = {GET("/"), GET("/denied"), "bad\r\n"};
    for (size_t i = 0; i < AS_ARRAY_SIZE(requests); i++) {
        int fd = dial();
        put_str(fd, requests[i]);
        struct answer answer = get_answer(fd, false);
        cr_assert(strstr(answer.head, "\r\nX-Frame-Options: deny\r\n"), "%s", answer.head);
        const char *nosniff = strcasestr(answer.head, "\r\nx-content-type-options: nosniff\r\n");
        cr_assert(nosniff && !strcasestr(nosniff + 20, "x-content-type-options"), "once");
        cr_assert(!strcasestr(answer.head, "\r\nserver:"), "%s", answer.head);
        close(fd);
    }
    stop();
}
