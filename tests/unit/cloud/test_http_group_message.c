/*
 * cloud/http_group.h: the answer of a simple script is accepted, invalid fields are refused
 * by name.
 */
#include <criterion/criterion.h>

#include <errno.h>
#include <string.h>

#include <alertscaler/cloud/http_group.h>

static struct as_error error;

Test(http_group, documents_are_read)
{
    static const struct {
        const char *json;
        struct as_http_group want;
    } rows[] = {
        {"{\"size\": 0}", {0, -1, -1, false, false, ""}},
        {"{\"size\": 4, \"min\": 0, \"max\": 10, \"in_progress\": true, \"etag\": \"v7\"}",
         {4, 0, 10, true, false, "v7"}},
        {"{\"size\": 4, \"min\": null, \"etag\": null, \"color\": [1, {}]}\n",
         {4, -1, -1, false, false, ""}},
        {"{\"size\": 4, \"etag\": \"\\\"quoted\\\"\"}", {4, -1, -1, false, false, "\"quoted\""}},
        {"{\"size\": 4, \"removes_by_name\": true}", {4, -1, -1, false, true, ""}},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        struct as_http_group got;
        int code = as_http_group_decode(rows[i].json, strlen(rows[i].json), &got, &error);
        cr_assert(code == 0, "%s: %s", rows[i].json, error.text);
        cr_expect_eq(got.size, rows[i].want.size);
        cr_expect_eq(got.min, rows[i].want.min);
        cr_expect_eq(got.max, rows[i].want.max);
        cr_expect_eq(got.in_progress, rows[i].want.in_progress);
        cr_expect_eq(got.removes_by_name, rows[i].want.removes_by_name);
        cr_expect_str_eq(got.etag, rows[i].want.etag);
    }
}

Test(http_group, nonsense_is_refused_by_name)
{
    static const struct {
        const char *json, *error;
    } rows[] = {
        {"", "not JSON"},
        {"7", "not JSON"},
        {"[7]", "expected a JSON object"},
        {"{}", "size: missing"},
        {"{\"size\": null}", "size: missing"},
        {"{\"size\": -1}", "size: expected an integer"},
        {"{\"size\": 1e3}", "size: expected an integer"},
        {"{\"size\": 99999999999}", "size: expected an integer"},
        {"{\"size\": \"4\"}", "size: expected an integer"},
        {"{\"size\": 4, \"max\": 4.5}", "max: expected an integer"},
        {"{\"size\": 4, \"in_progress\": 1}", "in_progress: expected true or false"},
        {"{\"size\": 4, \"etag\": 7}", "etag: expected a string"},
        {"{\"size\": 4, \"etag\": \"a\\r\\nX: y\"}", "etag: expected printable ASCII"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        struct as_http_group got;
        int code = as_http_group_decode(rows[i].json, strlen(rows[i].json), &got, &error);
        cr_expect_eq(code, -EBADMSG, "%s", rows[i].json);
        cr_expect(strstr(error.text, rows[i].error) != NULL, "%s: %s", rows[i].json, error.text);
    }
}

Test(http_group, a_change_says_both_sizes)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf buf = AS_BUF_INIT(64);
    as_http_group_encode_change(6, 4, &buf);
    cr_expect_str_eq(buf.data, "{\"size\":6,\"observed\":4}");
}

Test(http_group, an_error_document_gives_one_line)
{
    static const struct {
        const char *body, *message;
    } rows[] = {
        {"{\"error\": \"no\\nroom\"}", "no room"},
        {"{\"message\": \"a\", \"error\": \"b\"}", "a"},
        {"{\"error\": {\"code\": 7}}", ""},
        {"<html>", ""},
        {"", ""},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        char message[AS_MESSAGE_SIZE];
        as_http_group_decode_message(rows[i].body, strlen(rows[i].body), message);
        cr_expect_str_eq(message, rows[i].message, "%s", rows[i].body);
    }
}
