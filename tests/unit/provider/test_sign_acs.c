/*
 * sign.h: signatures of Alibaba Cloud are those of its own client library
 * (vectors/make_alibaba.mjs), and the one in its documentation.
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

static void add_header(struct as_talk *talk, const char *name, const char *value)
{
    if (value)
        as_talk_header(talk, "%s: %s", name, value);
}

static void check_vector(const json_t *row)
{
    struct as_talk talk;
    struct as_credentials credentials = {.key_id = (char *)get(row, "key_id"),
                                         .secret = (char *)get(row, "secret"),
                                         .token = (char *)get(row, "token")};
    struct as_sign_scope scope = {.nonce = get(row, "nonce")};
    struct as_error error;
    const char *now = get(row, "now");
    as_talk_init(&talk, talker_get_variable);
    cr_assert_eq(as_wall_time_parse(now, strlen(now), &scope.now), 0);
    as_talk_ask(&talk, get(row, "method"), "%s", get(row, "url"));
    add_header(&talk, "x-acs-action", get(row, "action"));
    add_header(&talk, "x-acs-version", get(row, "version"));
    add_header(&talk, "Content-Type", get(row, "content_type"));
    add_header(&talk, "X-Acs-Credentials-Provider", get(row, "provider"));
    add_header(&talk, "Accept", "application/json"); /* is not signed */
    as_buf_append_str(&talk.request.body, get(row, "body"));
    cr_assert_eq(as_sign_acs(&talk, &credentials, &scope, &error), 0);
    const char *signature = find_header(&talk, "Authorization");
    cr_expect_str_eq(signature, get(row, "authorization"), "%s:\n%s\n%s", get(row, "name"),
                     signature, get(row, "authorization"));
    cr_expect_str_eq(find_header(&talk, "x-acs-date"), now);
    cr_expect(as_str_equal(find_header(&talk, "x-acs-security-token"), credentials.token));
    as_talk_deinit(&talk);
}

Test(sign_acs, as_the_official_client_has_it)
{
    json_error_t problem;
    json_t *file =
        json_load_file(TEST_SOURCE_ROOT "/tests/unit/provider/vectors/alibaba.json", 0, &problem);
    cr_assert_not_null(file, "%s", problem.text);
    const json_t *rows = json_object_get(file, "vectors");
    cr_assert_eq(json_array_size(rows), 8);
    for (size_t i = 0; i < json_array_size(rows); i++)
        check_vector(json_array_get(rows, i));
    json_decref(file);
}

/* The example with fixed parameters, so that the vectors cannot be wrong together. */
Test(sign_acs, as_documented)
{
    struct as_talk talk;
    struct as_credentials credentials = {.key_id = (char *)"YourAccessKeyId",
                                         .secret = (char *)"YourAccessKeySecret"};
    const struct as_sign_scope scope = {.now = {INT64_C(1698315752) * AS_US_PER_S},
                                        .nonce = "3156853299f313e23d1673dc12e1703d"};
    struct as_error error;
    as_talk_init(&talk, talker_get_variable);
    as_talk_ask(&talk, "POST",
                "https://ecs.cn-shanghai.aliyuncs.com/?RegionId=cn-shanghai&ImageId="
                "win2019_1809_x64_dtc_zh-cn_40G_alibase_20230811.vhd");
    as_talk_header(&talk, "x-acs-action: RunInstances");
    as_talk_header(&talk, "x-acs-version: 2014-05-26");
    cr_assert_eq(as_sign_acs(&talk, &credentials, &scope, &error), 0);
    talker_expect_headers(
        &talk, "x-acs-action: RunInstances\n"
               "x-acs-version: 2014-05-26\n"
               "Host: ecs.cn-shanghai.aliyuncs.com\n"
               "x-acs-date: 2023-10-26T10:22:32Z\n"
               "x-acs-signature-nonce: 3156853299f313e23d1673dc12e1703d\n"
               "x-acs-content-sha256: "
               "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\n"
               "Authorization: ACS3-HMAC-SHA256 Credential=YourAccessKeyId,SignedHeaders=host;"
               "x-acs-action;x-acs-content-sha256;x-acs-date;x-acs-signature-nonce;x-acs-version,"
               "Signature=06563a9e1b43f5dfe96b81484da74bceab24a1d853912eee15083a6f0f3283c0\n");
    as_talk_deinit(&talk);
}

Test(sign_acs, nothing_is_signed_without_a_key)
{
    struct as_talk talk;
    const struct as_sign_scope scope = {.now = TALKER_NOW, .nonce = "n"};
    struct as_credentials rows[] = {{0},
                                    {.key_id = (char *)"A"},
                                    {.key_id = (char *)"A", .secret = (char *)""},
                                    {.key_id = (char *)"", .secret = (char *)"s"}};
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        struct as_error error;
        as_talk_init(&talk, talker_get_variable);
        as_talk_ask(&talk, "POST", "https://h/");
        cr_expect_eq(as_sign_acs(&talk, &rows[i], &scope, &error), -EINVAL);
        cr_expect_str_eq(error.text, "the credentials have no access key");
        talker_expect_headers(&talk, "");
        as_talk_deinit(&talk);
    }
}
