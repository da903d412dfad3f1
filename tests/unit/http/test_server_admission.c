/*
 * Requests whose admission is decided later (AS_HTTP_PENDING). Promises: no body is read before;
 * the result equals that of an immediate decision; the handler's data of an exchange are freed
 * exactly once, whatever happens to peer and server.
 */
#include "server_harness.h"

#define POST_PENDING(fields) "POST /pending HTTP/1.1\r\n" HOST fields "\r\n"
#define HELLO                "Content-Length: 5\r\n"

static void wait_pending(unsigned count)
{
    WAIT_FOR(pending_count == count);
    run_for(5); /* in which nothing happens */
    cr_assert_eq(handled, 0);
}

static void expect_ended(unsigned count)
{
    WAIT_FOR(as_http_server_get_connections(server) == 0);
    run_for(5);
    cr_assert_eq(freed_count, count);
}

Test(server_admission, goes_on_to_a_body_that_is_there)
{
    start(short_config());
    int fd = dial();
    put_str(fd, POST_PENDING(HELLO) "hello" GET("/next"));
    wait_pending(1);
    cr_assert_str_eq(as_http_exchange_get_path(pending[0]), "/pending");
    cr_assert_str_eq(as_http_exchange_get_data(pending[0]), "data");
    as_http_exchange_admit(pending[0]);
    cr_assert_eq(handled, 0, "from an event, not from here");
    expect(fd, 200, "POST /pending ? [] 5:hello");
    expect(fd, 200, "GET /next");
    cr_assert_eq(freed_count, 1);
    close(fd);
    expect_ended(1);
    stop();
}

Test(server_admission, goes_on_to_a_body_in_pieces)
{
    start(short_config());
    int fd = dial();
    for (unsigned i = 1; i <= 2; i++) { /* on a connection that stays */
        put_str(fd, POST_PENDING(HELLO) "he");
        WAIT_FOR(pending_count == i);
        run_for(5);
        as_http_exchange_admit(pending[i - 1]);
        run_for(5);
        cr_assert_eq(handled, i - 1);
        put_str(fd, "llo");
        expect(fd, 200, "5:hello");
        cr_assert_eq(freed_count, i);
    }
    put_str(fd, POST_PENDING("Transfer-Encoding: chunked\r\n") "3\r\nab");
    WAIT_FOR(pending_count == 3);
    as_http_exchange_admit(pending[2]);
    run_for(5);
    put_str(fd, "c\r\n0\r\n\r\n" GET("/next"));
    expect(fd, 200, "3:abc");
    expect(fd, 200, "GET /next");
    close(fd);
    expect_ended(3);
    stop();
}

Test(server_admission, goes_on_where_there_is_no_body)
{
    start(short_config());
    int fd = dial();
    put_str(fd, GET("/pending") GET("/pending") GET("/next"));
    wait_pending(1); /* one at a time */
    as_http_exchange_admit(pending[0]);
    WAIT_FOR(pending_count == 2);
    as_http_exchange_admit(pending[1]);
    expect(fd, 200, "GET /pending");
    expect(fd, 200, "GET /pending");
    expect(fd, 200, "GET /next");
    close(fd);
    expect_ended(2);
    stop();
}

Test(server_admission, takes_no_more_than_it_reads_ahead)
{
    start(short_config());
    int fd = dial();
    put_str(fd, POST_PENDING("Content-Length: 8388608\r\n"));
    wait_pending(1);
    size_t sent = 0;
    for (int64_t end = now_ms() + 100; now_ms() < end; turn()) {
        ssize_t some = send(fd, big, BIG_SIZE - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
        sent += some > 0 ? (size_t)some : 0;
    }
    cr_assert(sent < BIG_SIZE, "the kernel's buffers are full, and stay so");
    cr_assert_eq(pending[0]->body.size, 0);
    as_http_exchange_admit(pending[0]);
    cr_assert(put(fd, big, BIG_SIZE - sent));
    expect(fd, 200, "8388608:bbb");
    close(fd);
    expect_ended(1);
    stop();
}

Test(server_admission, says_continue_only_then)
{
    start(short_config());
    int fd = dial();
    put_str(fd, POST_PENDING("Expect: 100-continue\r\n" HELLO));
    wait_pending(1);
    char byte;
    cr_assert_eq(recv(fd, &byte, 1, MSG_DONTWAIT), -1);
    as_http_exchange_admit(pending[0]);
    cr_assert_eq(get_answer(fd, true).status, 100);
    put_str(fd, "hello");
    expect(fd, 200, "5:hello");
    close(fd);
    expect_ended(1);
    stop();
}

static void refuse(struct as_http_exchange *exchange)
{
    as_http_exchange_reply(exchange,
                           &(struct as_http_answer){.status = 401, .body = "no\n", .body_size = 3});
}

Test(server_admission, may_be_refused)
{
    start(short_config());
    int fd = dial();
    put_str(fd, GET("/pending") GET("/next"));
    wait_pending(1);
    refuse(pending[0]);
    expect(fd, 401, "no");
    expect(fd, 200, "GET /next");
    close(fd);
    fd = dial();
    put_str(fd, POST_PENDING(HELLO) "he");
    WAIT_FOR(pending_count == 2);
    refuse(pending[1]);
    expect(fd, 401, "no");
    expect_clean_end(fd); /* the rest of the body is not to be taken for a request */
    close(fd);
    expect_ended(2);
    cr_assert_eq(handled, 1);
    stop();
}

Test(server_admission, holds_the_body_to_its_limit_and_its_time)
{
    struct as_http_server_config config = short_config();
    config.max_body = 1000;
    config.body_timeout_us = 100 * MS;
    start(config);
    int fd = dial();
    put_str(fd, POST_PENDING("Content-Length: 1001\r\n"));
    wait_pending(1);
    as_http_exchange_admit(pending[0]);
    expect(fd, 413, "too large");
    expect_clean_end(fd);
    close(fd);
    fd = dial();
    put_str(fd, POST_PENDING(HELLO) "he");
    WAIT_FOR(pending_count == 2);
    run_for(200); /* the handler's time, not the peer's */
    int64_t began = now_ms();
    as_http_exchange_admit(pending[1]);
    expect(fd, 408, "in time");
    cr_assert(now_ms() - began >= 90);
    close(fd);
    WAIT_FOR(as_http_server_get_connections(server) == 0);
    cr_assert_eq(freed_count, 2);
    cr_assert_eq(handled, 0);
    stop();
}

static void reset_connection(int fd)
{
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &(struct linger){.l_onoff = 1}, sizeof(struct linger));
    close(fd);
}

Test(server_admission, outlives_its_peer)
{
    start(short_config());
    int closed = dial(), reset = dial(), whole = dial(), none = dial(), refused = dial();
    const int in_order[] = {closed, reset, whole, none, refused};
    static const char *const requests[] = {POST_PENDING(HELLO) "he", POST_PENDING(HELLO) "he",
                                           POST_PENDING(HELLO) "hello", GET("/pending"),
                                           POST_PENDING(HELLO)};
    for (unsigned i = 0; i < AS_ARRAY_SIZE(requests); i++) {
        put_str(in_order[i], requests[i]);
        wait_pending(i + 1);
    }
    close(closed);
    reset_connection(reset);
    shutdown(whole, SHUT_WR);
    reset_connection(none);
    reset_connection(refused);
    run_for(20);
    cr_assert_eq(as_http_server_get_connections(server), 5, "the handler has them");
    cr_assert_eq(freed_count, 0);
    for (unsigned i = 0; i < 4; i++) {
        cr_assert_str_eq(as_http_exchange_get_path(pending[i]), "/pending");
        as_http_exchange_admit(pending[i]);
    }
    refuse(pending[4]);
    expect(whole, 200, "5:hello");
    close(whole);
    expect_ended(5);
    cr_assert_eq(handled, 2, "the whole one, and the one without a body");
    stop();
}

static unsigned drained_count;

static void drained(void *context)
{
    drained_count++;
}

Test(server_admission, is_waited_for_while_draining)
{
    start(short_config());
    int fd = dial();
    put_str(fd, POST_PENDING(HELLO) "he");
    wait_pending(1);
    as_http_server_drain(server, drained, NULL);
    run_for(10);
    cr_assert_eq(drained_count, 0);
    as_http_exchange_admit(pending[0]);
    put_str(fd, "llo");
    struct answer answer = get_answer(fd, false);
    cr_assert_eq(answer.status, 200);
    cr_assert(strstr(answer.head, "\r\nConnection: close\r\n"));
    expect_clean_end(fd);
    close(fd);
    WAIT_FOR(drained_count == 1);
    expect_ended(1);
    stop();
}

Test(server_admission, may_end_with_the_server)
{
    start(short_config());
    int waiting = dial(), reading = dial(), later = dial();
    put_str(waiting, POST_PENDING(HELLO));
    wait_pending(1);
    put_str(reading, POST_PENDING(HELLO) "he");
    WAIT_FOR(pending_count == 2);
    as_http_exchange_admit(pending[1]);
    put_str(later, GET("/later"));
    WAIT_FOR(kept_count == 1);
    as_http_exchange_set_data(kept[0], strdup("first"), free_data);
    as_http_exchange_set_data(kept[0], strdup("second"), free_data);
    cr_assert_eq(freed_count, 1, "the first one was replaced");
    stop();
    cr_assert_eq(freed_count, 4);
    close(waiting);
    close(reading);
    close(later);
}

Test(server_admission, is_not_closed_to_make_room)
{
    struct as_http_server_config config = short_config();
    config.max_connections = 2;
    start(config);
    int first = dial(), second = dial();
    put_str(first, GET("/pending"));
    wait_pending(1);
    put_str(second, GET("/pending"));
    wait_pending(2);
    int third = dial();
    put_str(third, GET("/"));
    expect(third, 503, "too many connections");
    as_http_exchange_admit(pending[0]);
    as_http_exchange_admit(pending[1]);
    expect(first, 200, "/pending");
    expect(second, 200, "/pending");
    close(first);
    close(second);
    close(third);
    expect_ended(2);
    cr_assert_eq(dropped_count, 0);
    stop();
}
