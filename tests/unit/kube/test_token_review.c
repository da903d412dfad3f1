/*
 * TokenReview: the request, and that no invalid answer gives access.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <criterion/criterion.h>

#include <alertscaler/kube/kube_documents.h>

static unsigned used;
static bool authenticated;
static char user[64], group[64];
static size_t groups;

static void on_reviewed(void *context, const struct as_reviewed *reviewed)
{
    (void)context;
    used++;
    authenticated = reviewed->authenticated;
    groups = reviewed->group_count;
    (void)snprintf(user, sizeof(user), "%s", reviewed->user ? reviewed->user : "");
    (void)snprintf(group, sizeof(group), "%s", groups > 0 ? reviewed->groups[groups - 1] : "");
}

static int decode(const char *json, const char *audience)
{
    struct as_error error = AS_ERROR_INIT;
    used = 0;
    const int r = as_token_review_decode(json, strlen(json), &audience, audience ? 1 : 0,
                                         on_reviewed, NULL, &error);
    cr_expect_eq(r == 0, used == 1, "%s", json);
    cr_expect_eq(r == 0, error.text[0] == '\0', "%s", json);
    return r;
}

Test(token_review, what_is_asked)
{
    static const char *const audiences[] = {"alertscaler", "other"};
    struct as_buf out = AS_BUF_INIT(4096);
    as_token_review_encode("a\"b", audiences, 2, &out);
    as_buf_append_char(&out, '\0');
    cr_expect(strstr(out.data, "\"authentication.k8s.io/v1\"") &&
              strstr(out.data, "\"TokenReview\""));
    cr_expect(strstr(out.data, "\"a\\\"b\"") && strstr(out.data, "[\"alertscaler\",\"other\"]"),
              "%s", out.data);
    as_buf_deinit(&out);
    out = AS_BUF_INIT(4096);
    as_token_review_encode("t", NULL, 0, &out);
    as_buf_append_char(&out, '\0');
    cr_expect_not(strstr(out.data, "audiences"));
    as_buf_deinit(&out);
}

Test(token_review, whose_it_is)
{
    cr_assert_eq(decode("{\"kind\":\"TokenReview\",\"status\":{\"authenticated\":true,\"user\":{"
                        "\"username\":\"system:serviceaccount:m:a\",\"groups\":[\"x\",\"y\"]},"
                        "\"audiences\":[\"api\",\"alertscaler\"]}}",
                        "alertscaler"),
                 0);
    cr_expect(authenticated);
    cr_expect_str_eq(user, "system:serviceaccount:m:a");
    cr_expect_eq(groups, 2);
    cr_expect_str_eq(group, "y");
    cr_assert_eq(decode("{\"kind\":\"TokenReview\",\"status\":{\"error\":\"expired\"}}", NULL), 0);
    cr_expect_not(authenticated);
    cr_assert_eq(decode("{\"kind\":\"TokenReview\",\"status\":{\"authenticated\":false,\"user\":{"
                        "\"username\":\"a\"}}}",
                        NULL),
                 0);
    cr_expect_not(authenticated);
}

Test(token_review, no_strange_answer_lets_anybody_in)
{
    static const struct {
        const char *json, *audience;
    } rows[] = {
        {"", NULL},
        {"{}", NULL},
        {"[]", NULL},
        {"{\"kind\":\"Status\",\"status\":{\"authenticated\":true,\"user\":{\"username\":\"a\"}}}",
         NULL},
        {"{\"kind\":\"TokenReview\"}", NULL},
        {"{\"kind\":\"TokenReview\",\"status\":[]}", NULL},
        {"{\"kind\":\"TokenReview\",\"status\":{\"authenticated\":1}}", NULL},
        {"{\"kind\":\"TokenReview\",\"status\":{\"authenticated\":\"true\"}}", NULL},
        {"{\"kind\":\"TokenReview\",\"status\":{\"authenticated\":true}}", NULL},
        {"{\"kind\":\"TokenReview\",\"status\":{\"authenticated\":true,\"user\":{\"username\":\"\"}"
         "}}",
         NULL},
        {"{\"kind\":\"TokenReview\",\"status\":{\"authenticated\":true,\"user\":{\"username\":"
         "\"a\","
         "\"groups\":\"g\"}}}",
         NULL},
        {"{\"kind\":\"TokenReview\",\"status\":{\"authenticated\":true,\"user\":{\"username\":"
         "\"a\","
         "\"groups\":[1]}}}",
         NULL},
        /* an API server that knows no audiences does not name them */
        {"{\"kind\":\"TokenReview\",\"status\":{\"authenticated\":true,\"user\":{\"username\":"
         "\"a\"}}}",
         "alertscaler"},
        {"{\"kind\":\"TokenReview\",\"status\":{\"authenticated\":true,\"user\":{\"username\":"
         "\"a\"},"
         "\"audiences\":[\"api\"]}}",
         "alertscaler"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++)
        cr_expect_lt(decode(rows[i].json, rows[i].audience), 0, "row %zu", i);
}
