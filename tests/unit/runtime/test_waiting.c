/*
 * Requests that wait for the disk: answered in order, each with its outcome, or all lost together.
 * The exchange is simulated.
 */
#include <alertscaler/runtime/requests.h>

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>

#include "teardown.h"

struct as_http_exchange {
    int status;
    unsigned replies;
    char *headers, *body;
};

void as_http_exchange_reply(struct as_http_exchange *exchange, const struct as_http_answer *answer)
{
    exchange->replies++;
    exchange->status = answer->status;
    exchange->headers = as_xstrdup(answer->headers ? answer->headers : "");
    exchange->body = as_xstrndup(answer->body_size > 0 ? answer->body : "", answer->body_size);
}

static struct as_http_exchange exchanges[4];
static struct as_waiting *waiting;
static const char *sender; /* of the next requests */

static void lose(void *context, struct as_http_exchange *exchange)
{
    as_http_exchange_reply(exchange, &(struct as_http_answer){.status = 503, .headers = context});
}

static char notification[] = "notification", order[] = "order";
static struct as_waiting_kind notifications = {.lose = lose, .context = notification};
static struct as_waiting_kind orders = {.lose = lose, .context = order};

static void setup(void)
{
    waiting = as_waiting_new();
}

static void teardown(void)
{
    teardown_expect(notifications.count + orders.count == 0, "something waits");
    waiting = as_waiting_free(waiting);
    for (size_t i = 0; i < AS_ARRAY_SIZE(exchanges); i++) {
        free(exchanges[i].headers);
        free(exchanges[i].body);
    }
}

TestSuite(waiting, .init = setup, .fini = teardown);

static uint64_t add(struct as_waiting_kind *kind, size_t at)
{
    const uint64_t request =
        as_waiting_add(waiting, kind, &exchanges[at], &(struct as_waiting_claim){sender, 3});
    cr_assert_neq(request, 0);
    return request;
}

static void expect(size_t at, int status, const char *headers, const char *body)
{
    cr_assert_eq(exchanges[at].replies, 1);
    cr_assert_eq(exchanges[at].status, status);
    cr_assert_str_eq(exchanges[at].headers, headers);
    cr_assert_str_eq(exchanges[at].body, body);
}

Test(waiting, ends_as_the_outcome_says)
{
    const uint64_t first = add(&notifications, 0);
    as_buf_append_str(&as_waiting_find(waiting, first)->body, "{}");
    const uint64_t second = add(&orders, 1);
    cr_assert_null(as_waiting_find(waiting, 0));
    cr_assert_null(as_waiting_find(waiting, second + 1));
    struct as_waiting_answer *answer = as_waiting_find(waiting, second);
    answer->status = 409;
    answer->headers = "X: y\r\n";
    as_buf_append_str(&answer->body, "not \"paused\"");
    cr_assert_eq(notifications.count, 1);
    cr_assert_eq(orders.count, 1);

    as_waiting_end(waiting, second); /* not its turn */
    cr_assert_eq(exchanges[1].replies, 0);
    as_waiting_end(waiting, first);
    expect(0, 200, "", "{}");
    as_waiting_end(waiting, first); /* again */
    as_waiting_end(waiting, second);
    expect(1, 409, "",
           "{\"status\":\"error\",\"errorType\":\"conflict\",\"error\":\"not \\\"paused\\\"\"}\n");
}

Test(waiting, counts_what_a_sender_holds)
{
    sender = "team";
    const uint64_t first = add(&notifications, 0);
    (void)add(&notifications, 1);
    sender = NULL;
    (void)add(&notifications, 2);
    cr_assert_eq(as_waiting_get_held(waiting, "team"), 6);
    cr_assert_eq(as_waiting_get_held(waiting, "other"), 0);
    as_waiting_end(waiting, first);
    cr_assert_eq(as_waiting_get_held(waiting, "team"), 3);
    as_waiting_lose(waiting);
    cr_assert_eq(as_waiting_get_held(waiting, "team"), 0);
}

static void end(void *context, struct as_http_exchange *exchange,
                const struct as_waiting_answer *answer)
{
    as_http_exchange_reply(exchange, &(struct as_http_answer){.status = answer->status + 1,
                                                              .headers = context,
                                                              .body = answer->body.data,
                                                              .body_size = answer->body.size});
}

Test(waiting, a_kind_may_answer_itself)
{
    static char form[] = "form";
    static struct as_waiting_kind forms = {.lose = lose, .end = end, .context = form};
    const uint64_t first = add(&forms, 0), second = add(&orders, 1), third = add(&forms, 2);
    cr_assert_null(as_waiting_find(waiting, first)); /* only the last has no outcome yet */
    struct as_waiting_answer *answer = as_waiting_find(waiting, third);
    cr_assert_eq(answer->kind, &forms);
    answer->status = 409;
    as_buf_append_str(&answer->body, "text");
    as_waiting_end(waiting, first);
    expect(0, 201, "form", "");
    as_waiting_end(waiting, second);
    as_waiting_end(waiting, third);
    expect(2, 410, "form", "text");
    cr_assert_eq(forms.count, 0);
}

Test(waiting, loses_all)
{
    const uint64_t first = add(&notifications, 0);
    (void)add(&orders, 1);
    (void)add(&notifications, 2);
    as_waiting_lose(waiting);
    expect(0, 503, "notification", "");
    expect(1, 503, "order", "");
    expect(2, 503, "notification", "");
    as_waiting_end(waiting, first); /* too late */
    const uint64_t next = add(&orders, 3);
    cr_assert_gt(next, first);
    as_waiting_find(waiting, next)->headers = "X: y\r\n";
    as_waiting_end(waiting, next);
    expect(3, 200, "X: y\r\n", "");
}
