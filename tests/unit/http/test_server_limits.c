/*
 * The server under overload. Promises: a peer that sends its request at once is answered, whatever
 * number of other connections are in whatever state; the memory of bodies and unread answers is
 * limited over all connections, and requests within the limit are served.
 */
#include "server_harness.h"

#define MANY 20

static void close_all(int *fds, size_t count)
{
    for (size_t i = 0; i < count; i++)
        close(fds[i]);
}

static bool is_open(int fd)
{
    char byte;
    ssize_t got = recv(fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK);
    return got == 1 || (got < 0 && errno == EAGAIN);
}

static unsigned count_open(const int *fds, size_t count)
{
    unsigned open = 0;
    for (size_t i = 0; i < count; i++)
        open += is_open(fds[i]);
    return open;
}

static void start_with_connections(unsigned max)
{
    struct as_http_server_config config = short_config();
    config.max_connections = max;
    start(config);
}

/* All places are taken by peers that say `words` and no more. */
static void expect_room_beside(const char *words, unsigned answers)
{
    start_with_connections(MANY);
    int hogs[MANY];
    for (size_t i = 0; i < MANY; i++) {
        hogs[i] = dial();
        put_str(hogs[i], words);
        run_for(2);
    }
    WAIT_FOR(answered_count == answers);
    for (unsigned i = 0; i < answers; i++)
        expect(hogs[i], 200, "");
    cr_assert_eq(as_http_server_get_connections(server), MANY);
    for (unsigned i = 0; i < 3; i++) {
        int fd = dial();
        put_str(fd, "POST / HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhello");
        expect(fd, 200, "5:hello");
        put_str(fd, GET("/")); /* and stays: others go before it */
        expect(fd, 200, "/");
        cr_assert(!is_open(hogs[i]), "the oldest goes");
        cr_assert(is_open(hogs[i + 1]));
        cr_assert_eq(as_http_server_get_connections(server), MANY);
        cr_assert_eq(dropped_count, i + 1);
        if (answers > 0)
            break; /* idle: the next to go would be the hogs too, see below */
        close(fd);
        WAIT_FOR(as_http_server_get_connections(server) == MANY - 1);
        hogs[i] = dial();
        put_str(hogs[i], words);
        run_for(5);
    }
    close_all(hogs, MANY);
    stop();
}

Test(server_limits, makes_room_beside_silent_peers)
{
    expect_room_beside("", 0);
}

Test(server_limits, makes_room_beside_slow_heads)
{
    expect_room_beside("POST / HTTP/1.1\r\nHo", 0);
}

Test(server_limits, makes_room_beside_slow_bodies)
{
    expect_room_beside("POST / HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhell", 0);
}

Test(server_limits, makes_room_beside_slow_chunks)
{
    expect_room_beside("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n1;", 0);
}

Test(server_limits, makes_room_beside_idle_peers)
{
    expect_room_beside(GET("/"), MANY);
}

Test(server_limits, makes_room_beside_peers_that_do_not_read)
{
    struct as_http_server_config config = short_config();
    config.max_connections = 4;
    start(config);
    int hogs[4];
    for (unsigned i = 0; i < 4; i++) {
        hogs[i] = dial();
        put_str(hogs[i], GET("/big"));
        WAIT_FOR(answered_count == i + 1);
    }
    int fd = dial();
    put_str(fd, GET("/"));
    expect(fd, 200, "/");
    cr_assert_eq(dropped_count, 1);
    close(fd);
    close_all(hogs, 4);
    stop();
}

/* Of what one peer has sent ahead only a few requests are handled before others have their turn. */
/* The sum of the counts in the log so far. */
static unsigned sum_losses(int log, unsigned *lines_out)
{
    char text[8192] = "";
    unsigned sum = 0;
    cr_assert_geq(pread(log, text, sizeof(text) - 1, 0), 0);
    *lines_out = 0;
    for (const char *at = text; (at = strstr(at, "make room for others\" count=")); at++) {
        at = strstr(at, "count=");
        sum += (unsigned)strtoul(at + 6, NULL, 10);
        ++*lines_out;
    }
    return sum;
}

Test(server_limits, says_how_many_had_to_go_although_no_other_has_to)
{
    struct as_http_server_config config = short_config();
    config.max_connections = MANY;
    config.losses_every_us = 300 * MS;
    start(config);
    FILE *file = tmpfile();
    cr_assert_not_null(file);
    const int log = fileno(file);
    as_log_configure(AS_LOG_WARN, AS_LOG_LOGFMT, log);
    int hogs[3 * MANY];
    unsigned lines = 0;
    for (size_t i = 0; i < 2 * MANY; i++)
        hogs[i] = dial();
    WAIT_FOR(dropped_count == MANY);
    WAIT_FOR(sum_losses(log, &lines) == MANY);
    cr_expect_eq(lines, 2);
    for (size_t i = 2 * MANY; i < 3 * MANY; i++)
        hogs[i] = dial();
    WAIT_FOR(dropped_count == 2 * MANY);
    stop(); /* at the end the interval does not matter */
    as_log_configure(AS_LOG_WARN, AS_LOG_LOGFMT, STDERR_FILENO);
    cr_expect_eq(sum_losses(log, &lines), 2 * MANY);
    close_all(hogs, AS_ARRAY_SIZE(hogs));
    (void)fclose(file);
}

Test(server_limits, a_pipeline_takes_turns_with_others)
{
    enum { COUNT = 60 };
    start(short_config());
    int greedy = dial(), other = dial();
    WAIT_FOR(as_http_server_get_connections(server) == 2);
    char requests[COUNT * sizeof(GET("/"))] = "";
    for (size_t i = 0; i < COUNT; i++)
        memcpy(requests + i * strlen(GET("/")), GET("/"), sizeof(GET("/")));
    cr_assert_eq(send(greedy, requests, strlen(requests), 0), (ssize_t)strlen(requests));
    cr_assert_eq(send(other, GET("/later"), strlen(GET("/later")), 0),
                 (ssize_t)strlen(GET("/later")));
    for (int64_t end = now_ms() + WAIT_MS; kept_count == 0 && now_ms() < end;)
        event_base_loop(base, EVLOOP_ONCE);
    cr_assert_eq(kept_count, 1);
    unsigned before = kept_handled - 1;
    cr_assert(before > 0 && before < COUNT / 4, "%u requests went before the other's", before);
    shutdown(greedy, SHUT_WR); /* what it has sent is answered all the same */
    for (size_t i = 0; i < COUNT; i++)
        expect(greedy, 200, "GET /");
    expect_clean_end(greedy);
    reply(kept[0]);
    expect(other, 200, "/later");
    cr_assert_eq(handled, COUNT + 1);
    close(greedy);
    close(other);
    stop();
}

/* Whom we know keeps its connection while strangers come in a flood. */
Test(server_limits, spares_idle_peers_in_a_flood)
{
    start_with_connections(MANY);
    int known[4], flood[10 * MANY];
    for (size_t i = 0; i < 4; i++) {
        known[i] = dial();
        put_str(known[i], GET("/"));
        expect(known[i], 200, "/");
    }
    for (size_t i = 0; i < AS_ARRAY_SIZE(flood); i++) {
        flood[i] = dial();
        if (i % 2)
            put_str(flood[i], "GET");
        turn();
    }
    run_for(10);
    cr_assert_eq(count_open(known, 4), 4);
    cr_assert_eq(count_open(flood, AS_ARRAY_SIZE(flood)), MANY - 4);
    cr_assert_eq(dropped_count, AS_ARRAY_SIZE(flood) - (MANY - 4));
    for (size_t i = 0; i < 4; i++) {
        put_str(known[i], GET("/"));
        expect(known[i], 200, "/");
    }
    close_all(known, 4);
    close_all(flood, AS_ARRAY_SIZE(flood));
    WAIT_FOR(as_http_server_get_connections(server) == 0);
    stop();
}

/* More connections at once than are accepted in one go. */
Test(server_limits, lets_others_have_their_turn_between_accepts)
{
    start_with_connections(1000);
    int known = dial(), flood[100];
    put_str(known, GET("/"));
    expect(known, 200, "/");
    for (size_t i = 0; i < AS_ARRAY_SIZE(flood); i++)
        flood[i] = dial();
    cr_assert(send(known, GET("/"), strlen(GET("/")), MSG_NOSIGNAL) > 0);
    event_base_loop(base, EVLOOP_ONCE);
    cr_assert_eq(answered_count, 2);
    cr_assert(as_http_server_get_connections(server) <= 65);
    WAIT_FOR(as_http_server_get_connections(server) == 101);
    close_all(flood, AS_ARRAY_SIZE(flood));
    close(known);
    WAIT_FOR(as_http_server_get_connections(server) == 0);
    stop();
}

#define MIB ((size_t)1024 * 1024)

static void begin_body(int fd, bool chunked, size_t size)
{
    put_str(fd, chunked ? "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n200000\r\n"
                        : "POST / HTTP/1.1\r\n" HOST "Content-Length: 2097152\r\n\r\n");
    cr_assert(put(fd, big, size));
    run_for(5);
}

static void expect_limit_of_bodies(bool chunked)
{
    struct as_http_server_config config = short_config();
    config.max_body = 2 * MIB;
    config.max_bodies = 5 * MIB;
    start(config);
    int large[4];
    for (size_t i = 0; i < 4; i++) {
        large[i] = dial();
        begin_body(large[i], chunked, 3 * MIB / 2);
        cr_assert(server->bodies_held <= config.max_bodies);
    }
    expect(large[0], 503, "too many large requests");
    expect_clean_end(large[0]);
    cr_assert_eq(answered_status, 503);
    int small = dial();
    put_str(small, "POST / HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhello");
    expect(small, 200, "5:hello");
    cr_assert(put(large[3], big, MIB / 2));
    if (chunked)
        put_str(large[3], "\r\n0\r\n\r\n");
    expect(large[3], 200, "2097152:bbb");
    close_all(large, 4);
    close(small);
    WAIT_FOR(as_http_server_get_connections(server) == 0);
    run_for(5);
    cr_assert_eq(server->bodies_held, 0);
    stop();
}

Test(server_limits, holds_all_bodies_to_a_limit)
{
    expect_limit_of_bodies(false);
}

Test(server_limits, holds_all_chunked_bodies_to_a_limit)
{
    expect_limit_of_bodies(true);
}

Test(server_limits, bodies_of_a_narrowed_credential_make_room_first)
{
    struct as_http_server_config config = short_config();
    config.max_body = 2 * MIB;
    config.max_bodies = 5 * MIB;
    start(config);
    int other = dial(), narrowed[3];
    begin_body(other, false, 3 * MIB / 2);
    for (size_t i = 0; i < 3; i++) {
        narrowed[i] = dial();
        put_str(narrowed[i],
                "POST / HTTP/1.1\r\n" HOST "X-Sender: team\r\nContent-Length: 2097152\r\n\r\n");
        cr_assert(put(narrowed[i], big, 3 * MIB / 2));
        run_for(5);
    }
    expect(narrowed[0], 503, "too many large requests");
    cr_assert(put(other, big, MIB / 2));
    expect(other, 200, "2097152:bbb");
    close_all(narrowed, 3);
    close(other);
    WAIT_FOR(as_http_server_get_connections(server) == 0);
    cr_assert_eq(server->shares.held, 0);
    stop();
}

/* What is being handled cannot be taken back: then the newest has to go. */
Test(server_limits, refuses_large_bodies_beside_those_it_handles)
{
    struct as_http_server_config config = short_config();
    config.max_body = config.max_bodies = 2 * MIB;
    start(config);
    int handled_one = dial(), large = dial(), small = dial();
    put_str(handled_one, "POST /later HTTP/1.1\r\n" HOST "Content-Length: 2000000\r\n\r\n");
    cr_assert(put(handled_one, big, 2000000));
    WAIT_FOR(kept_count == 1);
    put_str(large, "POST / HTTP/1.1\r\n" HOST "Content-Length: 2000000\r\n\r\n");
    cr_assert(put(large, big, 1000000));
    expect(large, 503, "out of memory");
    put_str(small, "POST / HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhello");
    expect(small, 200, "5:hello");
    reply(kept[0]);
    expect(handled_one, 200, "2000000:");
    close(handled_one);
    close(large);
    close(small);
    stop();
}

Test(server_limits, lets_one_body_of_the_largest_size_in)
{
    struct as_http_server_config config = short_config();
    config.max_body = 2 * MIB;
    config.max_bodies = 1000;
    start(config);
    int fd = dial();
    begin_body(fd, false, 2 * MIB);
    expect(fd, 200, "2097152:");
    close(fd);
    stop();
}

Test(server_limits, holds_answers_that_nobody_reads_to_a_limit)
{
    struct as_http_server_config config = short_config();
    config.max_unsent = 10 * MIB;
    start(config);
    int fds[4];
    for (unsigned i = 0; i < 4; i++) {
        fds[i] = dial();
        put_str(fds[i], GET("/big")); /* 8 MiB */
        WAIT_FOR(answered_count == i + 1);
        cr_assert(server->unsent <= config.max_unsent);
    }
    cr_assert(dropped_count >= 1 && dropped_count <= 3, "%u", dropped_count);
    cr_assert_eq(get_answer(fds[3], false).body_size, BIG_SIZE);
    close_all(fds, 4);
    WAIT_FOR(as_http_server_get_connections(server) == 0);
    cr_assert_eq(server->unsent, 0);
    stop();
}

/* Pipelined requests are not read faster than they are answered. */
Test(server_limits, reads_no_further_than_it_answers)
{
    start(short_config());
    int fd = dial();
    put_str(fd, GET("/later"));
    WAIT_FOR(kept_count == 1);
    size_t sent = 0;
    static const char more[] = GET("/");
    for (int64_t end = now_ms() + 200; now_ms() < end; turn()) /* it does not turn for ever */
        for (size_t i = 0; i < 1000; i++) {
            ssize_t some = send(fd, more, sizeof(more) - 1, MSG_DONTWAIT | MSG_NOSIGNAL);
            sent += some > 0 ? (size_t)some : 0;
        }
    cr_assert(sent < 64 * MIB);
    size_t waiting = kept[0]->connection->input.size;
    cr_assert(waiting > 0 && waiting <= 48 * 1024, "%zu", waiting);
    close(fd);
    reply(kept[0]);
    stop();
}
