/*
 * sign.h: signatures of Baidu AI Cloud are those of its own client library
 * (vectors/make_baidu.mjs), and the one in its documentation.
 */
#include <alertscaler/provider/sign.h>

#include <errno.h>

#include <jansson.h>

#include "canonical.h"
#include "talker.h"

static const char *get(const json_t *row, const char *name)
{
    return json_string_value(json_object_get(row, name));
}

/* The header's value; NULL where there is none. */
static const char *find_header(const struct as_talk *talk, const char *name)
{
    for (size_t i = 0; i < talk->request.header_count; i++)
        if (as_str_starts_with(talk->request.headers[i], name))
            return talk->request.headers[i] + strlen(name) + 2;
    return NULL;
}

static void check_vector(const json_t *row)
{
    struct as_talk talk;
    struct as_credentials credentials = {.key_id = (char *)get(row, "key_id"),
                                         .secret = (char *)get(row, "secret"),
                                         .token = (char *)get(row, "token")};
    struct as_sign_scope scope = {0};
    struct as_error error;
    const char *now = get(row, "now");
    as_talk_init(&talk, talker_get_variable);
    cr_assert_eq(as_wall_time_parse(now, strlen(now), &scope.now), 0);
    as_talk_ask(&talk, get(row, "method"), "%s", get(row, "url"));
    if (*get(row, "body"))
        as_talk_header(&talk, "Content-Type: application/json");
    as_talk_header(&talk, "Accept: application/json"); /* is not signed */
    as_buf_append_str(&talk.request.body, get(row, "body"));
    cr_assert_eq(as_sign_bce(&talk, &credentials, &scope, &error), 0);
    const char *signature = find_header(&talk, "Authorization");
    cr_expect_str_eq(signature, get(row, "authorization"), "%s:\n%s\n%s", get(row, "name"),
                     signature, get(row, "authorization"));
    cr_expect_str_eq(find_header(&talk, "x-bce-date"), now);
    cr_expect(as_str_equal(find_header(&talk, "x-bce-security-token"), credentials.token));
    as_talk_deinit(&talk);
}

Test(sign_bce, as_the_official_client_has_it)
{
    json_error_t problem;
    json_t *file =
        json_load_file(TEST_SOURCE_ROOT "/tests/unit/provider/vectors/baidu.json", 0, &problem);
    cr_assert_not_null(file, "%s", problem.text);
    const json_t *rows = json_object_get(file, "vectors");
    cr_assert_eq(json_array_size(rows), 8);
    for (size_t i = 0; i < json_array_size(rows); i++)
        check_vector(json_array_get(rows, i));
    json_decref(file);
}

/* The inputs of the documentation's example (https://cloud.baidu.com/doc/Reference/s/njwvz1yfu),
 * of which host and date are signed, so that the vectors cannot be wrong together. */
Test(sign_bce, as_documented)
{
    struct as_talk talk;
    struct as_credentials credentials = {.key_id = (char *)"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
                                         .secret = (char *)"bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"};
    const struct as_sign_scope scope = {.now = {INT64_C(1430123029) * AS_US_PER_S}};
    struct as_error error;
    as_talk_init(&talk, talker_get_variable);
    as_talk_ask(&talk, "PUT", "http://bj.bcebos.com/v1/test/myfolder/readme.txt?%s",
                "uploadId=a44cc9bab11cbd156984767aad637851&partNumber=9");
    cr_assert_eq(as_sign_bce(&talk, &credentials, &scope, &error), 0);
    talker_expect_headers(&talk, "Host: bj.bcebos.com\n"
                                 "x-bce-date: 2015-04-27T08:23:49Z\n"
                                 "Authorization: bce-auth-v1/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa/"
                                 "2015-04-27T08:23:49Z/1800/host;x-bce-date/"
                                 "1b8de5a23a56eef657c69f94c621e7acd227d049a4ba577f537d5e5cebf0cf32"
                                 "\n");
    as_talk_deinit(&talk);
}

Test(sign_bce, nothing_is_signed_without_a_key)
{
    struct as_talk talk;
    const struct as_sign_scope scope = {.now = TALKER_NOW};
    struct as_credentials rows[] = {{0},
                                    {.key_id = (char *)"A"},
                                    {.key_id = (char *)"A", .secret = (char *)""},
                                    {.key_id = (char *)"", .secret = (char *)"s"}};
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        struct as_error error;
        as_talk_init(&talk, talker_get_variable);
        as_talk_ask(&talk, "GET", "https://h/");
        cr_expect_eq(as_sign_bce(&talk, &rows[i], &scope, &error), -EINVAL);
        cr_expect_str_eq(error.text, "the credentials have no access key");
        talker_expect_headers(&talk, "");
        as_talk_deinit(&talk);
    }
}

Test(sign_bce, what_is_too_large_is_not_signed)
{
    struct as_talk talk;
    struct as_credentials credentials = {.key_id = (char *)"A", .secret = (char *)"s"};
    const struct as_sign_scope scope = {.now = TALKER_NOW};
    struct as_error error;
    char *path = calloc(1, CANONICAL_MAX + 1);
    memset(path, 'a', CANONICAL_MAX);
    as_talk_init(&talk, talker_get_variable);
    as_talk_ask(&talk, "GET", "https://h/%s", path);
    cr_expect_eq(as_sign_bce(&talk, &credentials, &scope, &error), -EMSGSIZE);
    cr_expect_str_eq(error.text, "the request is too large to be signed");
    as_talk_deinit(&talk);
    free(path);
}
