/*
 * sign.h: signatures of Baidu AI Cloud are those of its own client library
 * (vectors/make_baidu.mjs), and the one in its documentation.
 */
#include <errno.h>

#include <alertscaler/login/sign.h>

#include "signing.h"

static void add_headers(struct as_cloud_op *op, const json_t *row)
{
    if (*signing_get(row, "body"))
        as_cloud_op_header(op, "Content-Type: application/json");
    as_cloud_op_header(op, "Accept: application/json"); /* is not signed */
}

static void check(const struct as_cloud_op *op, const json_t *row)
{
    cr_expect_str_eq(signing_find_header(op, "x-bce-date"), signing_get(row, "now"));
}

Test(sign_bce, as_the_official_client_has_it)
{
    static const struct signing signing = {
        .sign = as_sign_bce,
        .token_header = "x-bce-security-token",
        .add_headers = add_headers,
        .check = check,
    };
    signing_check_vectors(&signing, "baidu.json", 8);
}

/* The inputs of the documentation's example (https://cloud.baidu.com/doc/Reference/s/njwvz1yfu),
 * of which host and date are signed, so that the vectors cannot be wrong together. */
Test(sign_bce, as_documented)
{
    struct as_cloud_op op;
    struct as_provider_credentials credentials = {
        .key_id = (char *)"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        .secret = (char *)"bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"};
    const struct as_sign_scope scope = {.now = {INT64_C(1430123029) * AS_US_PER_S}};
    struct as_error error;
    as_cloud_op_init(&op, driver_get_variable);
    as_cloud_op_ask(&op, "PUT", "http://bj.bcebos.com/v1/test/myfolder/readme.txt?%s",
                    "uploadId=a44cc9bab11cbd156984767aad637851&partNumber=9");
    cr_assert_eq(as_sign_bce(&op, &credentials, &scope, &error), 0);
    driver_expect_headers(&op, "Host: bj.bcebos.com\n"
                               "x-bce-date: 2015-04-27T08:23:49Z\n"
                               "Authorization: bce-auth-v1/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa/"
                               "2015-04-27T08:23:49Z/1800/host;x-bce-date/"
                               "1b8de5a23a56eef657c69f94c621e7acd227d049a4ba577f537d5e5cebf0cf32"
                               "\n");
    as_cloud_op_deinit(&op);
}

Test(sign_bce, nothing_is_signed_without_a_key)
{
    signing_expect_that_a_key_is_needed(as_sign_bce);
}

Test(sign_bce, a_query_with_too_many_parameters_is_not_signed)
{
    signing_expect_few_parameters(as_sign_bce, 64);
}

Test(sign_bce, what_is_too_large_is_not_signed)
{
    struct as_cloud_op op;
    struct as_provider_credentials credentials = {.key_id = (char *)"A", .secret = (char *)"s"};
    const struct as_sign_scope scope = {.now = DRIVER_NOW};
    struct as_error error;
    char *path = calloc(1, CANONICAL_MAX + 1);
    memset(path, 'a', CANONICAL_MAX);
    as_cloud_op_init(&op, driver_get_variable);
    as_cloud_op_ask(&op, "GET", "https://h/%s", path);
    cr_expect_eq(as_sign_bce(&op, &credentials, &scope, &error), -EMSGSIZE);
    cr_expect_str_eq(error.text, "the request is too large to be signed");
    as_cloud_op_deinit(&op);
    free(path);
}
