/*
 * The body of a form, read strictly.
 */
#include <string.h>

#include <criterion/criterion.h>

#include <alertscaler/base/attr.h>

#include "ui/form_body.h"

static int decode(const char *text, struct as_form_body *body, struct as_error *error)
{
    *body = (struct as_form_body){.names = {"user", "to", "token"}};
    *error = (struct as_error)AS_ERROR_INIT;
    return as_form_body_decode(text, strlen(text), body, error);
}

Test(form_body, fields_are_decoded)
{
    static const struct {
        const char *text, *user, *to;
    } rows[] = {
        {"user=alice&to=%2F", "alice", "/"},
        {"to=/a%3Fb%26c&user=a+b%2Bc", "a b+c", "/a?b&c"},
        {"user=", NULL, NULL}, /* sent, and empty */
        {"to=x", NULL, "x"},
        {"user=%C3%A4%0d%0A", "\xc3\xa4\r\n", NULL},
        {"user=a=b=", "a=b=", NULL},
        {"user=a&", "a", NULL},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        struct as_form_body body;
        struct as_error error;
        cr_assert_eq(decode(rows[i].text, &body, &error), 0, "%s: %s", rows[i].text, error.text);
        const char *user = as_form_body_find(&body, "user"), *to = as_form_body_find(&body, "to");
        cr_expect(rows[i].user ? user && strcmp(user, rows[i].user) == 0 : !user, "row %zu", i);
        cr_expect(rows[i].to ? to && strcmp(to, rows[i].to) == 0 : !to, "row %zu", i);
        cr_expect_null(as_form_body_find(&body, "token"));
        as_form_body_deinit(&body);
        cr_expect_null(as_form_body_find(&body, "user"));
    }
}

Test(form_body, what_our_pages_do_not_send_is_refused)
{
    static const char *const rows[][2] = {
        {"", "empty"},
        {"user=a&user=b", "`user` twice"},
        {"user=&user=", "`user` twice"},
        {"user", "does not belong"},
        {"=a", "does not belong"},
        {"&user=a", "does not belong"},
        {"user=a&&to=b", "does not belong"},
        {"other=a", "does not belong"},
        {"User=a", "does not belong"},
        {"use%72=a", "does not belong"},
        {"userx=a", "does not belong"},
        {"{\"user\":\"a\"}", "does not belong"},
        {"user=%", "not encoded text"},
        {"user=%4", "not encoded text"},
        {"user=%zz", "not encoded text"},
        {"user=%+1", "not encoded text"},
        {"user=%00", "not encoded text"},
        {"user=a%00b", "not encoded text"},
        {"user=%ff", "not encoded text"},
        {"user=%c3", "not encoded text"},
        {"user=%c0%80", "not encoded text"},
        {"user=%ed%a0%80", "not encoded text"},
        {"user=a&to=%", "not encoded text"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        struct as_form_body body;
        struct as_error error;
        cr_expect_lt(decode(rows[i][0], &body, &error), 0, "%s", rows[i][0]);
        cr_expect(strstr(error.text, rows[i][1]), "%s: %s", rows[i][0], error.text);
        cr_expect_null(as_form_body_find(&body, "user"), "%s", rows[i][0]);
    }
    struct as_form_body body = {.names = {"user"}};
    cr_expect_lt(as_form_body_decode("user=a\0b", 8, &body, NULL), 0);
}
