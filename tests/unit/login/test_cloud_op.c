/*
 * cloud_op.h: turns, faults by transport and status, limits.
 */
#include <alertscaler/login/cloud_op.h>

#include <errno.h>

#include <jansson.h>

#include "op_driver.h"

static struct as_cloud_op op;
static unsigned received;

static void on_response(struct as_cloud_op *received_op)
{
    received++;
    if (as_cloud_op_is_good(received_op))
        as_cloud_op_end(received_op);
}

static void init(void)
{
    as_cloud_op_init(&op, driver_get_variable);
}

static void deinit(void)
{
    as_cloud_op_deinit(&op);
}

TestSuite(cloud_op, .init = init, .fini = deinit);

static void ask(const char *method)
{
    as_cloud_op_ask(&op, method, "http://127.0.0.1/%s", "a");
    as_cloud_op_send(&op, "op", on_response);
}

Test(cloud_op, a_request_is_whole_and_the_next_one_begins_empty)
{
    as_cloud_op_ask(&op, "POST", "http://%s/%d", "h", 7);
    as_cloud_op_header(&op, "A: %s", "b");
    as_cloud_op_header(&op, "C: d");
    as_buf_append_str(&op.request.body, "x=1");
    op.request.timeout_us = 5;
    op.request.is_plain = op.request.without_proxy = true;
    as_cloud_op_send(&op, "op", on_response);
    driver_expect(&op, "POST", "http://h/7", "x=1");
    driver_expect_headers(&op, "A: b\nC: d\n");
    cr_assert(op.request.is_change);
    as_cloud_op_ask(&op, "GET", "http://h/8");
    as_cloud_op_send(&op, "op2", on_response);
    driver_expect(&op, "GET", "http://h/8", "");
    driver_expect_headers(&op, "");
    cr_assert_not(op.request.is_change || op.request.is_plain || op.request.without_proxy);
    cr_assert_eq(op.request.timeout_us, 0);
    cr_assert_str_eq(op.request.operation, "op2");
}

Test(cloud_op, document_is_the_body)
{
    as_cloud_op_ask(&op, "PUT", "http://h/7");
    as_cloud_op_write_json(&op, json_pack("{s:s, s:i, s:f}", "name", "a\"b", "n", 3, "p", 0.98765));
    as_cloud_op_send(&op, "op", on_response);
    driver_expect(&op, "PUT", "http://h/7", "{\"name\":\"a\\\"b\",\"n\":3,\"p\":0.98765}");
    driver_expect_headers(&op, "Content-Type: application/json\n");
}

/* Never an empty body in place of one that cannot be written. */
Test(cloud_op, a_document_that_is_none_is_not_sent)
{
    as_cloud_op_ask(&op, "PUT", "http://h/7");
    as_cloud_op_write_json(&op, json_pack("{s:s}", "name", "caf\xe9"));
    as_cloud_op_send(&op, "op", on_response);
    driver_expect_end(&op, AS_CLOUD_OP_CONFIGURATION, "op: a text in the request is not UTF-8");
    as_cloud_op_ask(&op, "PUT", "http://h/7");
    as_cloud_op_send(&op, "op", on_response);
    driver_expect(&op, "PUT", "http://h/7", "");
}

Test(cloud_op, a_question_changes_nothing_whatever_its_method)
{
    as_cloud_op_ask(&op, "POST", "http://h/");
    as_cloud_op_send_question(&op, "op", on_response);
    driver_answer(&op, 500, "");
    driver_expect_end(&op, AS_CLOUD_OP_RETRY, "op: HTTP 500");
    cr_assert_not(op.is_ambiguous);
}

Test(cloud_op, statuses)
{
    static const struct {
        int status;
        enum as_cloud_op_fault fault;
        bool is_ambiguous; /* of a change */
    } rows[] = {
        {200, AS_CLOUD_OP_OK, false},
        {204, AS_CLOUD_OP_OK, false},
        {299, AS_CLOUD_OP_OK, false},
        {300, AS_CLOUD_OP_CONFIGURATION, false},
        {301, AS_CLOUD_OP_CONFIGURATION, false},
        {400, AS_CLOUD_OP_CONFIGURATION, false},
        {401, AS_CLOUD_OP_UNAUTHORIZED, false},
        {403, AS_CLOUD_OP_PERMISSION, false},
        {404, AS_CLOUD_OP_GONE, false},
        {408, AS_CLOUD_OP_TIMEOUT, false},
        {409, AS_CLOUD_OP_BUSY, false},
        {410, AS_CLOUD_OP_GONE, false},
        {412, AS_CLOUD_OP_BUSY, false},
        {429, AS_CLOUD_OP_THROTTLED, false},
        {500, AS_CLOUD_OP_RETRY, true},
        {502, AS_CLOUD_OP_RETRY, true},
        {503, AS_CLOUD_OP_RETRY, true},
        {504, AS_CLOUD_OP_RETRY, true},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        op.is_ambiguous = false;
        ask("POST");
        driver_answer(&op, rows[i].status, "");
        cr_assert_eq(op.want, AS_CLOUD_OP_END);
        cr_expect_eq(op.fault, rows[i].fault, "%d", rows[i].status);
        cr_expect_eq(op.is_ambiguous, rows[i].is_ambiguous, "%d", rows[i].status);
        cr_expect_eq(op.http_status, rows[i].status);
        op.is_ambiguous = false;
        ask("GET");
        driver_answer(&op, rows[i].status, "");
        cr_expect_not(op.is_ambiguous, "%d", rows[i].status);
    }
}

Test(cloud_op, no_answer)
{
    static const struct {
        enum as_http_outcome outcome;
        enum as_cloud_op_fault fault;
        bool is_ambiguous;
    } rows[] = {
        {AS_HTTP_UNREACHABLE, AS_CLOUD_OP_RETRY, false},
        {AS_HTTP_BROKEN, AS_CLOUD_OP_RETRY, true},
        {AS_HTTP_TIMEOUT, AS_CLOUD_OP_TIMEOUT, true},
        {AS_HTTP_TOO_LARGE, AS_CLOUD_OP_CONFIGURATION, true},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        ask("PUT");
        driver_break(&op, rows[i].outcome, "what happened");
        driver_expect_end(&op, rows[i].fault, "op: what happened");
        cr_expect_eq(op.is_ambiguous, rows[i].is_ambiguous, "%zu", i);
        cr_expect_eq(op.http_status, 0);
    }
}

/* The answer to the request before is not its answer. */
Test(cloud_op, a_request_without_its_login_was_not_sent)
{
    ask("GET");
    driver_respond(&op, (struct as_http_response){.status = 200, .body = "", .retry_after = "7"});
    ask("PUT");
    driver_break(&op, AS_HTTP_UNSENT, "token: No such file");
    driver_expect_end(&op, AS_CLOUD_OP_CONFIGURATION, "op: token: No such file");
    cr_expect_not(op.is_ambiguous);
    cr_expect_eq(op.http_status, 0);
    cr_expect_eq(op.retry_after_us, 0);
    cr_expect_null(op.answer);
}

Test(cloud_op, every_cloud_has_its_own_header_for_the_name_of_a_request)
{
    static const char *const fields[] = {
        "X-Amzn-RequestId\0a-2\0",
        "x-ms-request-id\0a-2\0",
        "X-Openstack-Request-Id\0a-2\0",
        "x-acs-request-id\0a-2\0",
        "X-Bce-Request-Id\0a-2\0",
        "X-Request-Id\0a-2\0",
        "x-ms-request-id\0a-2\0x-request-id\0b\0",
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(fields); i++) {
        op.request_id[0] = '\0';
        ask("GET");
        driver_respond(&op, (struct as_http_response){.status = 200, .fields = fields[i]});
        cr_expect_str_eq(op.request_id, "a-2", "%s", fields[i]);
    }
}

Test(cloud_op, knows_when_to_come_again_and_the_name_of_the_request)
{
    ask("GET");
    driver_respond(&op, (struct as_http_response){.status = 429,
                                                  .retry_after = "7",
                                                  .fields = "X-Amzn-RequestId\0a-1\0"});
    driver_expect_end(&op, AS_CLOUD_OP_THROTTLED, "op: HTTP 429");
    cr_assert_eq(op.retry_after_us, 7 * AS_US_PER_S);
    cr_assert_str_eq(op.request_id, "a-1");
    ask("GET");
    driver_answer(&op, 200, "");
    cr_assert_eq(op.retry_after_us, 0);
    cr_assert_str_eq(op.request_id, "a-1", "of the last answer that had one");
    as_cloud_op_take_request_id(&op, "b\n2");
    cr_assert_str_eq(op.request_id, "b 2");
    as_cloud_op_take_request_id(&op, NULL);
    as_cloud_op_take_request_id(&op, "");
    cr_assert_str_eq(op.request_id, "b 2");
}

static void ask_again(struct as_cloud_op *received_op)
{
    received++;
    as_cloud_op_ask(received_op, "GET", "http://h/%u", received);
    as_cloud_op_send(received_op, "page", ask_again);
}

Test(cloud_op, what_never_ends_is_given_up)
{
    ask_again(&op);
    for (unsigned i = 0; i < AS_CLOUD_OP_TURNS_MAX; i++)
        driver_answer(&op, 200, "");
    cr_assert_eq(op.want, AS_CLOUD_OP_SEND);
    driver_answer(&op, 200, "");
    driver_expect_end(&op, AS_CLOUD_OP_CONFIGURATION, "given up after 500 answers: it never ends");
}

static void ask_next_page(struct as_cloud_op *received_op)
{
    char mark[16];
    snprintf(mark, sizeof(mark), "p-%u", ++received);
    if (as_cloud_op_turn_page(received_op, mark)) {
        as_cloud_op_ask(received_op, "GET", "http://h/%s", mark);
        as_cloud_op_send(received_op, "list", ask_next_page);
    }
}

/* Whatever they are called; and nobody asks for all of them again the next minute. */
Test(cloud_op, a_list_has_only_so_many_pages)
{
    ask_next_page(&op);
    while (op.want == AS_CLOUD_OP_SEND)
        driver_answer(&op, 200, "");
    cr_expect_eq(received, AS_CLOUD_OP_PAGES_MAX);
    driver_expect_end(&op, AS_CLOUD_OP_CONFIGURATION, "given up after 200 pages: it never ends");
    cr_expect_eq(op.retry_after_us, AS_CLOUD_OP_ENDLESS_US);
}

Test(cloud_op, a_page_that_was_there_before_ends_the_list)
{
    cr_expect(as_cloud_op_turn_page(&op, "a"));
    cr_expect(as_cloud_op_turn_page(&op, "b"));
    cr_expect_not(as_cloud_op_turn_page(&op, "a"));
    driver_expect_end(&op, AS_CLOUD_OP_CONFIGURATION, "given up after 3 pages: it never ends");
    cr_expect_eq(op.retry_after_us, AS_CLOUD_OP_ENDLESS_US);
    as_cloud_op_begin_list(&op); /* another list, or the same once more */
    cr_expect(as_cloud_op_turn_page(&op, "a"));
}

Test(cloud_op, a_request_that_is_too_large_is_not_sent)
{
    as_cloud_op_ask(&op, "POST", "http://h/");
    for (size_t i = 0; i <= AS_CLOUD_OP_BODY_MAX / 1024; i++)
        as_buf_printf(&op.request.body, "%1024d", 0);
    as_cloud_op_send(&op, "op", on_response);
    driver_expect_end(&op, AS_CLOUD_OP_CONFIGURATION,
                      "op: the request is larger than 262144 bytes");
    ask("GET"); /* the next one is not touched by it */
    driver_answer(&op, 200, "");
    driver_expect_end(&op, AS_CLOUD_OP_OK, "");
}

static void on_file(struct as_cloud_op *received_op)
{
    if (received_op->content)
        as_cloud_op_fail(received_op, AS_CLOUD_OP_GONE, "%s: %s, %zu bytes", received_op->path,
                         received_op->content, received_op->content_size);
    else
        as_cloud_op_fail(received_op, AS_CLOUD_OP_GONE, "%s", strerror(received_op->error_number));
}

Test(cloud_op, files_programs_and_time)
{
    static const char *program[] = {"get", "it", NULL};
    as_cloud_op_read(&op, "/etc/x", on_file);
    driver_expect_file(&op, "/etc/x");
    driver_content(&op, "abc", 0);
    driver_expect_end(&op, AS_CLOUD_OP_GONE, "/etc/x: abc, 3 bytes");
    cr_assert_null(op.content, "it is good during the turn only");
    as_cloud_op_run(&op, program, on_file);
    driver_expect_program(&op, "get it");
    driver_content(&op, NULL, ENOENT);
    driver_expect_end(&op, AS_CLOUD_OP_GONE, "No such file or directory");
    as_cloud_op_wait(&op, 5 * AS_US_PER_S, ask_again);
    cr_assert_eq(op.want, AS_CLOUD_OP_WAIT);
    cr_assert_eq(op.wait_us, 5 * AS_US_PER_S);
    as_cloud_op_on_time(&op, DRIVER_NOW);
    driver_expect(&op, "GET", "http://h/1", "");
    cr_assert_eq(op.now.us, DRIVER_NOW.us);
}

Test(cloud_op, words_of_others_are_one_short_line)
{
    char text[1000];
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    as_cloud_op_fail(&op, AS_CLOUD_OP_RETRY, "a\nb\x01%s", text);
    cr_assert_eq(strlen(op.message), AS_CLOUD_OP_MESSAGE_SIZE - 1);
    cr_assert(as_str_starts_with(op.message, "a b xxx"));
    as_cloud_op_end(&op);
    driver_expect_end(&op, AS_CLOUD_OP_OK, "");
}

Test(cloud_op, escaped)
{
    cr_assert_str_eq(as_cloud_op_escaped(&op, "a b/c+d~e.f-g_h%\xc3\xa4"),
                     "a%20b%2Fc%2Bd~e.f-g_h%25%C3%A4");
    cr_assert_str_eq(as_cloud_op_escaped(&op, ""), "");
}
