/*
 * talk.h: turns, faults by transport and status, limits.
 */
#include <alertscaler/cloud/talk.h>

#include <errno.h>

#include <jansson.h>

#include "talker.h"

static struct as_talk talk;
static unsigned heard;

static void hear(struct as_talk *heard_talk)
{
    heard++;
    if (as_talk_is_good(heard_talk))
        as_talk_end(heard_talk);
}

static void init(void)
{
    as_talk_init(&talk, talker_get_variable);
}

static void deinit(void)
{
    as_talk_deinit(&talk);
}

TestSuite(talk, .init = init, .fini = deinit);

static void ask(const char *method)
{
    as_talk_ask(&talk, method, "http://127.0.0.1/%s", "a");
    as_talk_send(&talk, "op", hear);
}

Test(talk, a_request_is_whole_and_the_next_one_begins_empty)
{
    as_talk_ask(&talk, "POST", "http://%s/%d", "h", 7);
    as_talk_header(&talk, "A: %s", "b");
    as_talk_header(&talk, "C: d");
    as_buf_append_str(&talk.request.body, "x=1");
    talk.request.timeout_us = 5;
    talk.request.is_plain = talk.request.without_proxy = true;
    as_talk_send(&talk, "op", hear);
    talker_expect(&talk, "POST", "http://h/7", "x=1");
    talker_expect_headers(&talk, "A: b\nC: d\n");
    cr_assert(talk.request.is_change);
    as_talk_ask(&talk, "GET", "http://h/8");
    as_talk_send(&talk, "op2", hear);
    talker_expect(&talk, "GET", "http://h/8", "");
    talker_expect_headers(&talk, "");
    cr_assert_not(talk.request.is_change || talk.request.is_plain || talk.request.without_proxy);
    cr_assert_eq(talk.request.timeout_us, 0);
    cr_assert_str_eq(talk.request.operation, "op2");
}

Test(talk, document_is_the_body)
{
    as_talk_ask(&talk, "PUT", "http://h/7");
    as_talk_write_json(&talk, json_pack("{s:s, s:i, s:f}", "name", "a\"b", "n", 3, "p", 0.98765));
    as_talk_send(&talk, "op", hear);
    talker_expect(&talk, "PUT", "http://h/7", "{\"name\":\"a\\\"b\",\"n\":3,\"p\":0.98765}");
    talker_expect_headers(&talk, "Content-Type: application/json\n");
}

/* Never an empty body in place of one that cannot be written. */
Test(talk, a_document_that_is_none_is_not_sent)
{
    as_talk_ask(&talk, "PUT", "http://h/7");
    as_talk_write_json(&talk, json_pack("{s:s}", "name", "caf\xe9"));
    as_talk_send(&talk, "op", hear);
    talker_expect_end(&talk, AS_TALK_CONFIGURATION, "op: a text in the request is not UTF-8");
    as_talk_ask(&talk, "PUT", "http://h/7");
    as_talk_send(&talk, "op", hear);
    talker_expect(&talk, "PUT", "http://h/7", "");
}

Test(talk, a_question_changes_nothing_whatever_its_method)
{
    as_talk_ask(&talk, "POST", "http://h/");
    as_talk_send_question(&talk, "op", hear);
    talker_answer(&talk, 500, "");
    talker_expect_end(&talk, AS_TALK_RETRY, "op: HTTP 500");
    cr_assert_not(talk.is_ambiguous);
}

Test(talk, statuses)
{
    static const struct {
        int status;
        enum as_talk_fault fault;
        bool is_ambiguous; /* of a change */
    } rows[] = {
        {200, AS_TALK_OK, false},
        {204, AS_TALK_OK, false},
        {299, AS_TALK_OK, false},
        {300, AS_TALK_CONFIGURATION, false},
        {301, AS_TALK_CONFIGURATION, false},
        {400, AS_TALK_CONFIGURATION, false},
        {401, AS_TALK_UNAUTHORIZED, false},
        {403, AS_TALK_PERMISSION, false},
        {404, AS_TALK_GONE, false},
        {408, AS_TALK_TIMEOUT, false},
        {409, AS_TALK_BUSY, false},
        {410, AS_TALK_GONE, false},
        {412, AS_TALK_BUSY, false},
        {429, AS_TALK_THROTTLED, false},
        {500, AS_TALK_RETRY, true},
        {502, AS_TALK_RETRY, true},
        {503, AS_TALK_RETRY, true},
        {504, AS_TALK_RETRY, true},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        talk.is_ambiguous = false;
        ask("POST");
        talker_answer(&talk, rows[i].status, "");
        cr_assert_eq(talk.want, AS_TALK_END);
        cr_expect_eq(talk.fault, rows[i].fault, "%d", rows[i].status);
        cr_expect_eq(talk.is_ambiguous, rows[i].is_ambiguous, "%d", rows[i].status);
        cr_expect_eq(talk.http_status, rows[i].status);
        talk.is_ambiguous = false;
        ask("GET");
        talker_answer(&talk, rows[i].status, "");
        cr_expect_not(talk.is_ambiguous, "%d", rows[i].status);
    }
}

Test(talk, no_answer)
{
    static const struct {
        enum as_http_outcome outcome;
        enum as_talk_fault fault;
        bool is_ambiguous;
    } rows[] = {
        {AS_HTTP_UNREACHABLE, AS_TALK_RETRY, false},
        {AS_HTTP_BROKEN, AS_TALK_RETRY, true},
        {AS_HTTP_TIMEOUT, AS_TALK_TIMEOUT, true},
        {AS_HTTP_TOO_LARGE, AS_TALK_CONFIGURATION, true},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        ask("PUT");
        talker_break(&talk, rows[i].outcome, "what happened");
        talker_expect_end(&talk, rows[i].fault, "op: what happened");
        cr_expect_eq(talk.is_ambiguous, rows[i].is_ambiguous, "%zu", i);
        cr_expect_eq(talk.http_status, 0);
    }
}

Test(talk, every_cloud_has_its_own_header_for_the_name_of_a_request)
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
        talk.request_id[0] = '\0';
        ask("GET");
        talker_hear(&talk, (struct as_http_response){.status = 200, .fields = fields[i]});
        cr_expect_str_eq(talk.request_id, "a-2", "%s", fields[i]);
    }
}

Test(talk, knows_when_to_come_again_and_the_name_of_the_request)
{
    ask("GET");
    talker_hear(&talk, (struct as_http_response){
                           .status = 429, .retry_after = "7", .fields = "X-Amzn-RequestId\0a-1\0"});
    talker_expect_end(&talk, AS_TALK_THROTTLED, "op: HTTP 429");
    cr_assert_eq(talk.retry_after_us, 7 * AS_US_PER_S);
    cr_assert_str_eq(talk.request_id, "a-1");
    ask("GET");
    talker_answer(&talk, 200, "");
    cr_assert_eq(talk.retry_after_us, 0);
    cr_assert_str_eq(talk.request_id, "a-1", "of the last answer that had one");
    as_talk_take_request_id(&talk, "b\n2");
    cr_assert_str_eq(talk.request_id, "b 2");
    as_talk_take_request_id(&talk, NULL);
    as_talk_take_request_id(&talk, "");
    cr_assert_str_eq(talk.request_id, "b 2");
}

static void ask_again(struct as_talk *heard_talk)
{
    heard++;
    as_talk_ask(heard_talk, "GET", "http://h/%u", heard);
    as_talk_send(heard_talk, "page", ask_again);
}

Test(talk, what_never_ends_is_given_up)
{
    ask_again(&talk);
    for (unsigned i = 0; i < AS_TALK_TURNS_MAX; i++)
        talker_answer(&talk, 200, "");
    cr_assert_eq(talk.want, AS_TALK_SEND);
    talker_answer(&talk, 200, "");
    talker_expect_end(&talk, AS_TALK_CONFIGURATION, "given up after 500 answers: it never ends");
}

static void ask_next_page(struct as_talk *heard_talk)
{
    char mark[16];
    snprintf(mark, sizeof(mark), "p-%u", ++heard);
    if (as_talk_turn_page(heard_talk, mark)) {
        as_talk_ask(heard_talk, "GET", "http://h/%s", mark);
        as_talk_send(heard_talk, "list", ask_next_page);
    }
}

/* Whatever they are called; and nobody asks for all of them again the next minute. */
Test(talk, a_list_has_only_so_many_pages)
{
    ask_next_page(&talk);
    while (talk.want == AS_TALK_SEND)
        talker_answer(&talk, 200, "");
    cr_expect_eq(heard, AS_TALK_PAGES_MAX);
    talker_expect_end(&talk, AS_TALK_CONFIGURATION, "given up after 200 pages: it never ends");
    cr_expect_eq(talk.retry_after_us, AS_TALK_ENDLESS_US);
}

Test(talk, a_page_that_was_there_before_ends_the_list)
{
    cr_expect(as_talk_turn_page(&talk, "a"));
    cr_expect(as_talk_turn_page(&talk, "b"));
    cr_expect_not(as_talk_turn_page(&talk, "a"));
    talker_expect_end(&talk, AS_TALK_CONFIGURATION, "given up after 3 pages: it never ends");
    cr_expect_eq(talk.retry_after_us, AS_TALK_ENDLESS_US);
    as_talk_begin_list(&talk); /* another list, or the same once more */
    cr_expect(as_talk_turn_page(&talk, "a"));
}

Test(talk, a_request_that_is_too_large_is_not_sent)
{
    as_talk_ask(&talk, "POST", "http://h/");
    for (size_t i = 0; i <= AS_TALK_BODY_MAX / 1024; i++)
        as_buf_printf(&talk.request.body, "%1024d", 0);
    as_talk_send(&talk, "op", hear);
    talker_expect_end(&talk, AS_TALK_CONFIGURATION, "op: the request is larger than 262144 bytes");
    ask("GET"); /* the next one is not touched by it */
    talker_answer(&talk, 200, "");
    talker_expect_end(&talk, AS_TALK_OK, "");
}

static void hear_file(struct as_talk *heard_talk)
{
    if (heard_talk->content)
        as_talk_fail(heard_talk, AS_TALK_GONE, "%s: %s, %zu bytes", heard_talk->path,
                     heard_talk->content, heard_talk->content_size);
    else
        as_talk_fail(heard_talk, AS_TALK_GONE, "%s", strerror(heard_talk->error_number));
}

Test(talk, files_programs_and_time)
{
    static const char *program[] = {"get", "it", NULL};
    as_talk_read(&talk, "/etc/x", hear_file);
    talker_expect_file(&talk, "/etc/x");
    talker_content(&talk, "abc", 0);
    talker_expect_end(&talk, AS_TALK_GONE, "/etc/x: abc, 3 bytes");
    cr_assert_null(talk.content, "it is good during the turn only");
    as_talk_run(&talk, program, hear_file);
    talker_expect_program(&talk, "get it");
    talker_content(&talk, NULL, ENOENT);
    talker_expect_end(&talk, AS_TALK_GONE, "No such file or directory");
    as_talk_wait(&talk, 5 * AS_US_PER_S, ask_again);
    cr_assert_eq(talk.want, AS_TALK_WAIT);
    cr_assert_eq(talk.wait_us, 5 * AS_US_PER_S);
    as_talk_hear_time(&talk, TALKER_NOW);
    talker_expect(&talk, "GET", "http://h/1", "");
    cr_assert_eq(talk.now.us, TALKER_NOW.us);
}

Test(talk, words_of_others_are_one_short_line)
{
    char text[1000];
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    as_talk_fail(&talk, AS_TALK_RETRY, "a\nb\x01%s", text);
    cr_assert_eq(strlen(talk.message), AS_TALK_MESSAGE_SIZE - 1);
    cr_assert(as_str_starts_with(talk.message, "a b xxx"));
    as_talk_end(&talk);
    talker_expect_end(&talk, AS_TALK_OK, "");
}

Test(talk, escaped)
{
    cr_assert_str_eq(as_talk_escaped(&talk, "a b/c+d~e.f-g_h%\xc3\xa4"),
                     "a%20b%2Fc%2Bd~e.f-g_h%25%C3%A4");
    cr_assert_str_eq(as_talk_escaped(&talk, ""), "");
}
