/*
 * credentials_alibaba.c: the sources of Alibaba Cloud's keys, and the errors if there is none.
 */
#include <errno.h>

#include "op_driver.h"
#include <alertscaler/login/cloud_credentials.h>

static struct driver_source given;
static struct as_cloud_op *const op = &given.op.op;

static void begin(const char *name)
{
    driver_begin_source(&given, alibaba_credentials, name);
}

static void end(void)
{
    driver_end_source(&given);
}

TestSuite(credentials_alibaba, .fini = end);

static void expect_not_here(void)
{
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    cr_assert(given.op.is_not_here);
}

static void expect_until(const char *text)
{
    as_wall_time time;
    cr_assert_eq(as_wall_time_parse(text, strlen(text), &time), 0);
    cr_assert(given.op.found.expires.set);
    cr_assert_eq(given.op.found.expires.at.us, time.us);
}

Test(credentials_alibaba, order_is_that_of_its_own_tools)
{
    static const char *const names[] = {"environment", "role of a service account",
                                        "command line's profile", "instance metadata"};
    size_t i = 0;
    for (; alibaba_credentials[i].name; i++)
        cr_assert_str_eq(alibaba_credentials[i].name, names[i]);
    cr_assert_eq(i, AS_ARRAY_SIZE(names));
    begin("environment");
    expect_not_here();
}

/* ---- environment ---- */

Test(credentials_alibaba, keys_of_the_environment)
{
    driver_set("ALIBABA_CLOUD_ACCESS_KEY_ID", "ak");
    driver_set("ALIBABA_CLOUD_ACCESS_KEY_SECRET", "sk");
    begin("environment");
    driver_expect_found(&given, "ak", "sk", NULL, NULL);
    cr_assert_not(given.op.found.expires.set);
    driver_end_source(&given);
    driver_set("ALIBABA_CLOUD_SECURITY_TOKEN", "tok");
    begin("environment");
    driver_expect_found(&given, "ak", "sk", "tok", NULL);
}

Test(credentials_alibaba, half_a_key_is_an_error)
{
    driver_set("ALIBABA_CLOUD_ACCESS_KEY_ID", "ak");
    driver_set("ALIBABA_CLOUD_ACCESS_KEY_SECRET", "");
    begin("environment");
    driver_expect_end(op, AS_CLOUD_OP_CONFIGURATION,
                      "of ALIBABA_CLOUD_ACCESS_KEY_ID and ALIBABA_CLOUD_ACCESS_KEY_SECRET only one "
                      "is set");
}

Test(credentials_alibaba, region)
{
    struct as_provider_option option = {.key = "region", .value = "a"};
    const struct as_provider_settings with = {.options = &option, .option_count = 1}, without = {0};
    const struct as_provider_credentials of_source = {.region = (char *)"c"}, none = {0};
    begin("environment");
    cr_assert_null(alibaba_find_region(op, &without, &none));
    cr_assert_str_eq(alibaba_find_region(op, &without, &of_source), "c");
    driver_set("ALIBABA_CLOUD_REGION_ID", "b");
    cr_assert_str_eq(alibaba_find_region(op, &without, &of_source), "b");
    cr_assert_str_eq(alibaba_find_region(op, &with, &of_source), "a");
}

/* It becomes part of a host's name. */
Test(credentials_alibaba, region_that_is_none)
{
    driver_source_option(&given, "region", "x.example.org/");
    driver_set("ALIBABA_CLOUD_ROLE_ARN", "acs:ram::1:role/x");
    driver_set("ALIBABA_CLOUD_OIDC_PROVIDER_ARN", "acs:ram::1:oidc-provider/y");
    driver_set("ALIBABA_CLOUD_OIDC_TOKEN_FILE", "/run/token");
    begin("role of a service account");
    driver_content(op, "eyJ", 0);
    driver_expect_end(
        op, AS_CLOUD_OP_CONFIGURATION,
        "the region \"x.example.org/\" is none: a region is small letters, digits and "
        "hyphens");
}

/* ---- the role of a service account ---- */

static void set_role(void)
{
    driver_set("ALIBABA_CLOUD_ROLE_ARN", "acs:ram::1:role/x");
    driver_set("ALIBABA_CLOUD_OIDC_PROVIDER_ARN", "acs:ram::1:oidc-provider/y");
    driver_set("ALIBABA_CLOUD_OIDC_TOKEN_FILE", "/run/token");
}

#define FORM                                                                                       \
    "RoleArn=acs%3Aram%3A%3A1%3Arole%2Fx&OIDCProviderArn=acs%3Aram%3A%3A1%3Aoidc-provider%2Fy"     \
    "&OIDCToken=eyJ.x%2By&RoleSessionName="
#define NONCE "SignatureNonce="

/* All but the nonce, which it gives back. */
static const char *expect_exchange(const char *base, const char *body)
{
    char *nonce = strstr(op->request.url, NONCE);
    cr_assert_not_null(nonce);
    nonce += strlen(NONCE);
    const char *kept = as_cloud_op_print(op, "%s", nonce);
    cr_assert_eq(strlen(kept), 32);
    driver_expect(op, "POST",
                  as_cloud_op_print(op,
                                    "%s/?Action=AssumeRoleWithOIDC&Format=JSON&Version=2015-04-01"
                                    "&Timestamp=2024-05-17T10%%3A20%%3A30Z&" NONCE "%s",
                                    base, kept),
                  body);
    driver_expect_headers(op, "Content-Type: application/x-www-form-urlencoded\n");
    cr_assert(op->request.is_plain && op->request.is_timed);
    cr_assert_not(op->request.is_change);
    return kept;
}

Test(credentials_alibaba, token_is_exchanged_for_a_role)
{
    set_role();
    driver_set("ALIBABA_CLOUD_REGION_ID", "cn-x");
    begin("role of a service account");
    driver_expect_file(op, "/run/token");
    driver_content(op, "eyJ.x+y\n", 0);
    expect_exchange("https://sts.cn-x.aliyuncs.com", FORM "alertscaler&DurationSeconds=3600");
    driver_answer(op, 200,
                  "{\"RequestId\":\"r\",\"Credentials\":{\"AccessKeyId\":\"STS.a\","
                  "\"AccessKeySecret\":\"s\",\"SecurityToken\":\"t\",\"Expiration\":"
                  "\"2024-05-17T11:20:30Z\"}}");
    driver_expect_found(&given, "STS.a", "s", "t", NULL);
    expect_until("2024-05-17T11:20:30Z");
}

Test(credentials_alibaba, session_endpoint_and_nonce)
{
    set_role();
    driver_set("ALIBABA_CLOUD_ROLE_SESSION_NAME", "a b");
    begin("role of a service account");
    driver_content(op, "eyJ.x+y", 0);
    expect_exchange("https://sts.aliyuncs.com", FORM "a%20b&DurationSeconds=3600");
    driver_end_source(&given);
    driver_source_option(&given, "sts_endpoint", "http://127.0.0.1:5000/");
    begin("role of a service account");
    driver_content(op, "eyJ.x+y", 0);
    expect_exchange("http://127.0.0.1:5000", FORM "a%20b&DurationSeconds=3600");
}

Test(credentials_alibaba, role_that_is_half_set_up)
{
    driver_set("ALIBABA_CLOUD_OIDC_TOKEN_FILE", "/run/token");
    begin("role of a service account");
    driver_expect_end(op, AS_CLOUD_OP_CONFIGURATION,
                      "ALIBABA_CLOUD_OIDC_TOKEN_FILE is set, but ALIBABA_CLOUD_ROLE_ARN is not");
    driver_end_source(&given);
    driver_set("ALIBABA_CLOUD_OIDC_TOKEN_FILE", "");
    begin("role of a service account");
    expect_not_here();
}

Test(credentials_alibaba, token_that_cannot_be_read)
{
    set_role();
    begin("role of a service account");
    driver_content(op, NULL, ENOENT);
    driver_expect_end(op, AS_CLOUD_OP_CONFIGURATION,
                      "cannot read /run/token: No such file or directory");
}

Test(credentials_alibaba, exchanges_that_fail)
{
    static const struct {
        int status;
        const char *body, *message;
        enum as_cloud_op_fault fault;
    } rows[] = {
        {400, "{\"Code\":\"AuthenticationFail.OIDCToken.Expired\",\"Message\":\"Expired.\"}",
         "assume_role_with_oidc: AuthenticationFail.OIDCToken.Expired: Expired.",
         AS_CLOUD_OP_CONFIGURATION},
        {403, "{\"Code\":\"NoPermission\",\"Message\":\"No.\"}",
         "assume_role_with_oidc: NoPermission: No.", AS_CLOUD_OP_CONFIGURATION},
        {404, "{\"Code\":\"EntityNotExist.Role\",\"Message\":\"No.\"}",
         "assume_role_with_oidc: EntityNotExist.Role: No.", AS_CLOUD_OP_CONFIGURATION},
        {400, "{\"Code\":\"Throttling.User\",\"Message\":\"Slow.\"}",
         "assume_role_with_oidc: Throttling.User: Slow.", AS_CLOUD_OP_THROTTLED},
        {500, "{\"Code\":\"InternalError\",\"Message\":\"Oh.\"}",
         "assume_role_with_oidc: InternalError: Oh.", AS_CLOUD_OP_RETRY},
        {503, "<html>", "assume_role_with_oidc: HTTP 503", AS_CLOUD_OP_RETRY},
        {200, "{}", "assume_role_with_oidc: the answer has no AccessKeyId", AS_CLOUD_OP_RETRY},
        {200, "{\"Credentials\":{\"AccessKeyId\":\"a\",\"AccessKeySecret\":\"s\"}}",
         "assume_role_with_oidc: the answer has no SecurityToken", AS_CLOUD_OP_RETRY},
    };
    set_role();
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        begin("role of a service account");
        driver_content(op, "eyJ", 0);
        driver_answer(op, rows[i].status, rows[i].body);
        driver_expect_end(op, rows[i].fault, rows[i].message);
        if (i + 1 < AS_ARRAY_SIZE(rows))
            driver_end_source(&given);
    }
}

/* ---- the command line's configuration ---- */

#define CONFIG                                                                                     \
    "{\"current\":\"prod\",\"profiles\":["                                                         \
    "{\"name\":\"default\",\"mode\":\"StsToken\",\"access_key_id\":\"STS.a\","                     \
    "\"access_key_secret\":\"b\",\"sts_token\":\"c\",\"region_id\":\"\"},"                         \
    "{\"name\":\"prod\",\"mode\":\"AK\",\"access_key_id\":\"ak\",\"access_key_secret\":\"sk\","    \
    "\"sts_token\":\"old\",\"region_id\":\"cn-x\"},"                                               \
    "{\"name\":\"machine\",\"mode\":\"EcsRamRole\"},"                                              \
    "{\"name\":\"sso\",\"mode\":\"CloudSSO\"},"                                                    \
    "{\"name\":\"empty\",\"mode\":\"AK\",\"access_key_id\":\"\"}]}"

static void read_config(const char *profile, const char *content, int error_number)
{
    driver_set("HOME", "/users/u");
    driver_set("ALIBABA_CLOUD_PROFILE", profile);
    begin("command line's profile");
    driver_expect_file(op, "/users/u/.aliyun/config.json");
    driver_content(op, content, error_number);
}

Test(credentials_alibaba, profile_of_the_command_line)
{
    read_config(NULL, CONFIG, 0);
    driver_expect_found(&given, "ak", "sk", NULL, "cn-x");
    driver_end_source(&given);
    read_config("default", CONFIG, 0);
    driver_expect_found(&given, "STS.a", "b", "c", NULL);
    driver_end_source(&given);
    read_config("machine", CONFIG, 0);
    expect_not_here();
}

Test(credentials_alibaba, profiles_that_cannot_be_used)
{
    static const struct {
        const char *profile, *content;
        int number;
        const char *message;
    } rows[] = {
        {"sso", CONFIG, 0,
         "/users/u/.aliyun/config.json: profile sso has mode \"CloudSSO\": expected AK, StsToken "
         "or "
         "EcsRamRole"},
        {"empty", CONFIG, 0, "/users/u/.aliyun/config.json: profile empty has no access key"},
        {"none", CONFIG, 0, "/users/u/.aliyun/config.json: there is no profile \"none\""},
        {NULL, "[]", 0, "/users/u/.aliyun/config.json: there is no profile \"\""},
        {NULL, "{", 0,
         "/users/u/.aliyun/config.json: line 1: string or '}' expected near end of file"},
        {"none", NULL, ENOENT,
         "cannot read /users/u/.aliyun/config.json: No such file or directory"},
        {NULL, NULL, EIO, "cannot read /users/u/.aliyun/config.json: Input/output error"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        read_config(rows[i].profile, rows[i].content, rows[i].number);
        driver_expect_end(op, AS_CLOUD_OP_CONFIGURATION, rows[i].message);
        if (i + 1 < AS_ARRAY_SIZE(rows))
            driver_end_source(&given);
    }
}

Test(credentials_alibaba, no_configuration_of_the_command_line)
{
    read_config(NULL, NULL, ENOENT);
    expect_not_here();
    driver_end_source(&given);
    driver_set("ALIBABA_CLOUD_CLI_PROFILE_DISABLED", "true");
    begin("command line's profile");
    expect_not_here();
    driver_end_source(&given);
    driver_set("ALIBABA_CLOUD_CLI_PROFILE_DISABLED", "");
    driver_set("HOME", "");
    begin("command line's profile");
    expect_not_here();
}

/* ---- the machine's role ---- */

#define BASE "http://100.100.100.200/latest/"
#define ROLE BASE "meta-data/ram/security-credentials/"
#define KEYS                                                                                       \
    "{\"Code\":\"Success\",\"AccessKeyId\":\"STS.a\",\"AccessKeySecret\":\"s\","                   \
    "\"SecurityToken\":\"t\",\"Expiration\":\"2024-05-17T16:20:30Z\"}"
#define NO_REGION                                                                                  \
    "no region is set, and the machine's metadata service does not tell it: "                      \
    "get_instance_region: "
#define WITH_TOKEN "X-aliyun-ecs-metadata-token: mt\n"

static void expect_metadata(const char *method, const char *url, const char *headers)
{
    driver_expect(op, method, url, "");
    driver_expect_headers(op, headers);
    cr_assert(op->request.is_plain && op->request.without_proxy);
    cr_assert_eq(op->request.timeout_us, 2 * AS_US_PER_S);
    cr_assert_not(op->request.is_change);
}

Test(credentials_alibaba, role_of_the_machine)
{
    begin("instance metadata");
    expect_metadata("PUT", BASE "api/token", "X-aliyun-ecs-metadata-token-ttl-seconds: 21600\n");
    driver_answer(op, 200, "mt");
    expect_metadata("GET", ROLE, WITH_TOKEN);
    driver_answer(op, 200, "workers\n");
    expect_metadata("GET", ROLE "workers", WITH_TOKEN);
    driver_answer(op, 200, KEYS);
    expect_metadata("GET", BASE "meta-data/region-id", WITH_TOKEN);
    driver_answer(op, 200, "cn-hangzhou");
    driver_expect_found(&given, "STS.a", "s", "t", "cn-hangzhou");
    expect_until("2024-05-17T16:20:30Z");
}

Test(credentials_alibaba, role_by_name_and_service_without_tokens)
{
    driver_source_option(&given, "metadata_endpoint", "http://127.0.0.1:5000/");
    driver_set("ALIBABA_CLOUD_ECS_METADATA", "workers");
    begin("instance metadata");
    driver_expect(op, "PUT", "http://127.0.0.1:5000/latest/api/token", "");
    driver_answer(op, 404, "");
    expect_metadata("GET",
                    "http://127.0.0.1:5000/latest/meta-data/ram/security-credentials/workers", "");
    driver_answer(op, 200, KEYS);
    driver_answer(op, 404, "");
    driver_expect_found(&given, "STS.a", "s", "t", NULL);
}

/* Asked for only where nothing else says it; an answer that is lost is no answer. */
Test(credentials_alibaba, region_of_the_machine)
{
    static const struct {
        enum as_http_outcome outcome;
        int status;
        const char *body;
        enum as_cloud_op_fault fault;
        const char *message;
    } rows[] = {
        {AS_HTTP_UNREACHABLE, 0, "", AS_CLOUD_OP_OK, ""},
        {AS_HTTP_TIMEOUT, 0, "", AS_CLOUD_OP_TIMEOUT, NO_REGION "late"},
        {AS_HTTP_BROKEN, 0, "", AS_CLOUD_OP_RETRY, NO_REGION "late"},
        {AS_HTTP_ANSWERED, 500, "", AS_CLOUD_OP_RETRY, NO_REGION "HTTP 500"},
        {AS_HTTP_ANSWERED, 200, "<html>", AS_CLOUD_OP_RETRY, NO_REGION "it is none"},
        {AS_HTTP_ANSWERED, 200, "Evil.example.org", AS_CLOUD_OP_RETRY, NO_REGION "it is none"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        begin("instance metadata");
        driver_answer(op, 200, "mt");
        driver_answer(op, 200, "workers");
        driver_answer(op, 200, KEYS);
        driver_respond(op, (struct as_http_response){.outcome = rows[i].outcome,
                                                     .status = rows[i].status,
                                                     .body = rows[i].body,
                                                     .error = "late"});
        driver_expect_end(op, rows[i].fault, rows[i].message);
        driver_end_source(&given);
    }
    driver_set("ALIBABA_CLOUD_REGION_ID", "cn-beijing");
    begin("instance metadata");
    driver_answer(op, 200, "mt");
    driver_answer(op, 200, "workers");
    driver_answer(op, 200, KEYS);
    driver_expect_found(&given, "STS.a", "s", "t", NULL);
}

/* A token is whatever can stand in a header. */
Test(credentials_alibaba, token_of_the_metadata_service)
{
    begin("instance metadata");
    driver_answer(op, 200, "MTAw~./+=:;mt!\n");
    expect_metadata("GET", ROLE, "X-aliyun-ecs-metadata-token: MTAw~./+=:;mt!\n");
    driver_end_source(&given);
    begin("instance metadata");
    driver_answer(op, 200, "m\tt");
    expect_metadata("GET", ROLE, "");
}

Test(credentials_alibaba, machine_without_a_role_or_none_of_theirs)
{
    begin("instance metadata");
    driver_break(op, AS_HTTP_UNREACHABLE, "no route");
    driver_expect_end(
        op, AS_CLOUD_OP_RETRY,
        "no other credentials are set up, and the metadata service cannot be reached: "
        "no route");
    driver_end_source(&given);
    begin("instance metadata");
    driver_break(op, AS_HTTP_TIMEOUT, "late");
    driver_break(op, AS_HTTP_TIMEOUT, "late");
    driver_expect_end(op, AS_CLOUD_OP_TIMEOUT, "get_instance_role: late");
    driver_end_source(&given);
    begin("instance metadata");
    driver_answer(op, 200, "mt");
    driver_answer(op, 404, "");
    expect_not_here();
    driver_end_source(&given);
    begin("instance metadata");
    driver_answer(op, 200, "mt");
    driver_answer(op, 200, "<html>");
    expect_not_here();
    driver_end_source(&given);
    driver_set("ALIBABA_CLOUD_ECS_METADATA_DISABLED", "TRUE");
    begin("instance metadata");
    expect_not_here();
}

Test(credentials_alibaba, service_that_fails)
{
    driver_set("ALIBABA_CLOUD_IMDSV1_DISABLED", "true");
    begin("instance metadata");
    driver_answer(op, 403, "");
    driver_expect_end(op, AS_CLOUD_OP_RETRY,
                      "the machine's metadata service gives no token, and "
                      "ALIBABA_CLOUD_IMDSV1_DISABLED is set");
    driver_end_source(&given);
    begin("instance metadata");
    driver_answer(op, 200, "mt");
    driver_answer(op, 500, "");
    driver_expect_end(op, AS_CLOUD_OP_RETRY, "get_instance_role: HTTP 500");
    driver_end_source(&given);
    begin("instance metadata");
    driver_answer(op, 200, "mt");
    driver_answer(op, 200, "workers");
    driver_answer(op, 200, "{\"Code\":\"Failed\"}");
    driver_expect_end(op, AS_CLOUD_OP_CONFIGURATION,
                      "the machine's role gives no credentials: Failed");
    driver_end_source(&given);
    begin("instance metadata");
    driver_answer(op, 200, "mt");
    driver_answer(op, 200, "workers");
    driver_answer(op, 200, "{\"Code\":\"Success\",\"AccessKeyId\":\"a\"}");
    driver_expect_end(op, AS_CLOUD_OP_RETRY,
                      "get_instance_credentials: the answer has no AccessKeySecret");
}
