/*
 * sign.h, sign.h: signatures of AWS are those of its own client library (vectors/make_aws.py),
 * and its published test suite's.
 */
#include <alertscaler/login/sign.h>

#include "signing.h"

static void add_headers(struct as_cloud_op *op, const json_t *row)
{
    size_t i;
    json_t *line;
    json_array_foreach(json_object_get(row, "headers"), i, line)
    {
        as_cloud_op_header(op, "%s", json_string_value(line));
    }
}

static void check(const struct as_cloud_op *op, const json_t *row)
{
    struct canonical_url parts;
    const char *host = signing_find_header(op, "Host");
    canonical_split(signing_get(row, "url"), &parts);
    cr_expect_eq(strlen(host), parts.host_size);
    cr_expect_eq(strncmp(host, parts.host, parts.host_size), 0);
    cr_expect_eq(strlen(signing_find_header(op, "X-Amz-Date")), 16);
}

Test(sign_aws, as_the_official_client_has_it)
{
    static const struct signing signing = {
        .sign = as_sign_aws,
        .token_header = "X-Amz-Security-Token",
        .add_headers = add_headers,
        .check = check,
    };
    signing_check_vectors(&signing, "aws.json", 33);
}

/* From the documentation of Signature Version 4, so that the vectors cannot be wrong together. */
Test(sign_aws, as_documented)
{
    struct as_cloud_op op;
    struct as_provider_credentials credentials = {
        .key_id = (char *)"AKIDEXAMPLE",
        .secret = (char *)"wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"};
    const struct as_sign_scope scope = {
        .region = "us-east-1", .service = "iam", .now = {INT64_C(1440938160) * AS_US_PER_S}};
    struct as_error error;
    as_cloud_op_init(&op, driver_get_variable);
    as_cloud_op_ask(&op, "GET", "https://iam.amazonaws.com/?Action=ListUsers&Version=2010-05-08");
    as_cloud_op_header(&op, "Content-Type: application/x-www-form-urlencoded; charset=utf-8");
    cr_assert_eq(as_sign_aws(&op, &credentials, &scope, &error), 0);
    driver_expect_headers(&op,
                          "Content-Type: application/x-www-form-urlencoded; charset=utf-8\n"
                          "Host: iam.amazonaws.com\n"
                          "X-Amz-Date: 20150830T123600Z\n"
                          "Authorization: AWS4-HMAC-SHA256 "
                          "Credential=AKIDEXAMPLE/20150830/us-east-1/iam/aws4_request, "
                          "SignedHeaders=content-type;host;x-amz-date, Signature="
                          "5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7\n");
    as_cloud_op_deinit(&op);
}

Test(sign_aws, nothing_is_signed_without_a_key)
{
    signing_expect_that_a_key_is_needed(as_sign_aws);
}

Test(sign_aws, a_query_with_too_many_parameters_is_not_signed)
{
    signing_expect_few_parameters(as_sign_aws, 256);
}

Test(canonical, parts_of_a_url)
{
    static const struct {
        const char *url, *host, *path, *query;
    } rows[] = {
        {"https://h:1/a/b?c=d&e#f", "h:1", "/a/b", "c=d&e"},
        {"https://h", "h", "", ""},
        {"https://h?x", "h", "", "x"},
        {"http://[::1]:80/", "[::1]:80", "/", ""},
        {"http://h/a#b?c", "h", "/a", ""},
        {"h/a", "h", "/a", ""},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        struct canonical_url parts;
        char text[256];
        canonical_split(rows[i].url, &parts);
        snprintf(text, sizeof(text), "%.*s %.*s %.*s", (int)parts.host_size, parts.host,
                 (int)parts.path_size, parts.path, (int)parts.query_size, parts.query);
        char want[256];
        snprintf(want, sizeof(want), "%s %s %s", rows[i].host, rows[i].path, rows[i].query);
        cr_expect_str_eq(text, want);
    }
}

Test(canonical, headers_are_sorted_joined_and_trimmed)
{
    struct as_cloud_op op;
    struct canonical_header headers[AS_CLOUD_OP_HEADERS_MAX];
    as_cloud_op_init(&op, driver_get_variable);
    as_cloud_op_ask(&op, "GET", "https://h/");
    as_cloud_op_header(&op, "X-B:  two \t words  ");
    as_cloud_op_header(&op, "Empty:");
    as_cloud_op_header(&op, "x-a: 1");
    as_cloud_op_header(&op, "X-b: 3");
    as_cloud_op_header(&op, "X-A:2");
    cr_assert_eq(canonical_headers(&op, headers), 3);
    cr_assert_str_eq(headers[0].name, "empty");
    cr_assert_str_eq(headers[0].value, "");
    cr_assert_str_eq(headers[1].name, "x-a");
    cr_assert_str_eq(headers[1].value, "1,2");
    cr_assert_str_eq(headers[2].name, "x-b");
    cr_assert_str_eq(headers[2].value, "two words,3");
    as_cloud_op_deinit(&op);
}

/* RFC 4231, test cases 2 and 6 (a key longer than a block); FIPS 180-2's "abc". */
Test(canonical, digests)
{
    char hex[CANONICAL_SHA_HEX], key[131];
    canonical_sha256("abc", 3, hex);
    cr_assert_str_eq(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    canonical_sha256(NULL, 0, hex);
    cr_assert_str_eq(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    canonical_hmac_hex("Jefe", 4, "what do ya want for nothing?", hex);
    cr_assert_str_eq(hex, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    memset(key, 0xaa, sizeof(key));
    canonical_hmac_hex(key, sizeof(key), "Test Using Larger Than Block-Size Key - Hash Key First",
                       hex);
    cr_assert_str_eq(hex, "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}
