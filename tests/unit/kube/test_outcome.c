/*
 * target_outcome.h: every status and every end of a transfer has one reason; only requests that may
 * have been carried out are ambiguous.
 */
#include <alertscaler/kube/target_outcome.h>

#include <string.h>

#include <criterion/criterion.h>

#define NOW ((as_wall_time){INT64_C(784111777) * AS_US_PER_S}) /* Sun, 06 Nov 1994 08:49:37 GMT */

static struct as_http_response make(enum as_http_outcome outcome, int status)
{
    return (struct as_http_response){.outcome = outcome,
                                     .status = status,
                                     .body = "",
                                     .etag = "",
                                     .retry_after = "",
                                     .content_type = "",
                                     .error = "transport's words"};
}

Test(outcome, statuses)
{
    static const struct {
        int status;
        enum as_reason reason;
        bool is_ambiguous;
    } rows[] = {
        {200, AS_REASON_APPLIED, false},          {201, AS_REASON_APPLIED, false},
        {204, AS_REASON_APPLIED, false},          {301, AS_REASON_REJECTED, false},
        {307, AS_REASON_REJECTED, false},         {400, AS_REASON_REJECTED, false},
        {401, AS_REASON_FORBIDDEN, false},        {403, AS_REASON_FORBIDDEN, false},
        {404, AS_REASON_TARGET_NOT_FOUND, false}, {405, AS_REASON_REJECTED, false},
        {409, AS_REASON_CONFLICT, false},         {410, AS_REASON_TARGET_NOT_FOUND, false},
        {412, AS_REASON_CONFLICT, false},         {415, AS_REASON_REJECTED, false},
        {422, AS_REASON_REJECTED, false},         {429, AS_REASON_THROTTLED, false},
        {500, AS_REASON_UNREACHABLE, true},       {502, AS_REASON_UNREACHABLE, true},
        {503, AS_REASON_UNREACHABLE, true},       {504, AS_REASON_UNREACHABLE, true},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        struct as_http_response response = make(AS_HTTP_ANSWERED, rows[i].status);
        struct as_outcome outcome;
        as_outcome_init(&outcome, &response, true, NOW);
        cr_expect_eq(outcome.reason, rows[i].reason, "%d", rows[i].status);
        cr_expect_eq(outcome.is_ambiguous, rows[i].is_ambiguous, "%d", rows[i].status);
        cr_expect_eq(outcome.http_status, rows[i].status);
        cr_expect_eq(outcome.message[0] == '\0', outcome.reason == AS_REASON_APPLIED);
        as_outcome_init(&outcome, &response, false, NOW);
        cr_expect_not(outcome.is_ambiguous);
    }
}

Test(outcome, transports)
{
    static const struct {
        enum as_http_outcome transport;
        enum as_reason reason;
        bool is_ambiguous;
    } rows[] = {
        {AS_HTTP_UNREACHABLE, AS_REASON_UNREACHABLE, false},
        {AS_HTTP_BROKEN, AS_REASON_UNREACHABLE, true},
        {AS_HTTP_TIMEOUT, AS_REASON_TIMEOUT, true},
        {AS_HTTP_TOO_LARGE, AS_REASON_REJECTED, true},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        struct as_http_response response = make(rows[i].transport, 0);
        struct as_outcome outcome;
        as_outcome_init(&outcome, &response, true, NOW);
        cr_expect_eq(outcome.reason, rows[i].reason);
        cr_expect_eq(outcome.is_ambiguous, rows[i].is_ambiguous);
        cr_expect_eq(outcome.http_status, 0);
        cr_expect_str_eq(outcome.message, "transport's words");
        as_outcome_init(&outcome, &response, false, NOW);
        cr_expect_eq(outcome.reason, rows[i].reason);
        cr_expect_not(outcome.is_ambiguous);
    }
}

Test(outcome, a_question_cannot_conflict)
{
    struct as_http_response response = make(AS_HTTP_ANSWERED, 409);
    struct as_outcome outcome;
    as_outcome_init(&outcome, &response, false, NOW);
    cr_expect_eq(outcome.reason, AS_REASON_REJECTED);
}

Test(outcome, a_message_is_one_short_line)
{
    char text[600];
    struct as_outcome outcome;
    memset(text, 'x', sizeof(text));
    memcpy(text + AS_MESSAGE_SIZE - 2, "\xc3\xa4", 2); /* does not fit */
    text[sizeof(text) - 1] = '\0';
    text[3] = '\n';
    as_outcome_init_local(&outcome, AS_REASON_REJECTED, text);
    cr_expect_eq(strlen(outcome.message), AS_MESSAGE_SIZE - 2);
    cr_expect_eq(outcome.message[3], ' ');
    as_outcome_set_message(&outcome, "");
    cr_expect_eq(outcome.message[0], 'x');
}
