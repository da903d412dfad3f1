/*
 * sign.h: signatures of Alibaba Cloud are those of its own client library
 * (vectors/make_alibaba.mjs), and the one in its documentation.
 */
#include "signing.h"

static void add_header(struct as_cloud_op *op, const char *name, const char *value)
{
    if (value)
        as_cloud_op_header(op, "%s: %s", name, value);
}

static void add_headers(struct as_cloud_op *op, const json_t *row)
{
    add_header(op, "x-acs-action", signing_get(row, "action"));
    add_header(op, "x-acs-version", signing_get(row, "version"));
    add_header(op, "Content-Type", signing_get(row, "content_type"));
    add_header(op, "X-Acs-Credentials-Provider", signing_get(row, "provider"));
    add_header(op, "Accept", "application/json"); /* is not signed */
}

static void check(const struct as_cloud_op *op, const json_t *row)
{
    cr_expect_str_eq(signing_find_header(op, "x-acs-date"), signing_get(row, "now"));
}

Test(sign_acs, as_the_official_client_has_it)
{
    static const struct signing signing = {
        .sign = as_sign_acs,
        .token_header = "x-acs-security-token",
        .add_headers = add_headers,
        .check = check,
    };
    signing_check_vectors(&signing, "alibaba.json", 8);
}

/* The example with fixed parameters, so that the vectors cannot be wrong together. */
Test(sign_acs, as_documented)
{
    struct as_cloud_op op;
    struct as_provider_credentials credentials = {.key_id = (char *)"YourAccessKeyId",
                                                  .secret = (char *)"YourAccessKeySecret"};
    const struct as_sign_scope scope = {.now = {INT64_C(1698315752) * AS_US_PER_S},
                                        .nonce = "3156853299f313e23d1673dc12e1703d"};
    struct as_error error;
    as_cloud_op_init(&op, driver_get_variable);
    as_cloud_op_ask(&op, "POST",
                    "https://ecs.cn-shanghai.aliyuncs.com/?RegionId=cn-shanghai&ImageId="
                    "win2019_1809_x64_dtc_zh-cn_40G_alibase_20230811.vhd");
    as_cloud_op_header(&op, "x-acs-action: RunInstances");
    as_cloud_op_header(&op, "x-acs-version: 2014-05-26");
    cr_assert_eq(as_sign_acs(&op, &credentials, &scope, &error), 0);
    driver_expect_headers(
        &op, "x-acs-action: RunInstances\n"
             "x-acs-version: 2014-05-26\n"
             "Host: ecs.cn-shanghai.aliyuncs.com\n"
             "x-acs-date: 2023-10-26T10:22:32Z\n"
             "x-acs-signature-nonce: 3156853299f313e23d1673dc12e1703d\n"
             "x-acs-content-sha256: "
             "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\n"
             "Authorization: ACS3-HMAC-SHA256 Credential=YourAccessKeyId,SignedHeaders=host;"
             "x-acs-action;x-acs-content-sha256;x-acs-date;x-acs-signature-nonce;x-acs-version,"
             "Signature=06563a9e1b43f5dfe96b81484da74bceab24a1d853912eee15083a6f0f3283c0\n");
    as_cloud_op_deinit(&op);
}

Test(sign_acs, nothing_is_signed_without_a_key)
{
    signing_expect_that_a_key_is_needed(as_sign_acs);
}

Test(sign_acs, a_query_with_too_many_parameters_is_not_signed)
{
    signing_expect_few_parameters(as_sign_acs, 256);
}
