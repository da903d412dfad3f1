/*
 * providers.h: every source of credentials, in its order, and the region.
 */
#include <errno.h>

#include "op_driver.h"
#include <alertscaler/login/cloud_credentials.h>

#define FORM_HEADER "Content-Type: application/x-www-form-urlencoded; charset=utf-8\n"
#define CREDENTIALS "/h/.aws/credentials"
#define CONFIG      "/h/.aws/config"
#define STS         "https://sts.eu-central-1.amazonaws.com/"
#define FOUND_JSON                                                                                 \
    "{\"Version\":1,\"Code\":\"Success\",\"AccessKeyId\":\"K\",\"SecretAccessKey\":\"S\","         \
    "\"Token\":\"T\",\"SessionToken\":\"T\",\"Expiration\":\"2024-05-17T16:20:30Z\"}"
#define ANSWER(action, id)                                                                         \
    "<" action "Response xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><" action "Result>"   \
    "<Credentials><AccessKeyId>" id "</AccessKeyId><SecretAccessKey>S</SecretAccessKey>"           \
    "<SessionToken>T</SessionToken><Expiration>2024-05-17T16:20:30Z</Expiration></Credentials>"    \
    "</" action "Result></" action "Response>"
#define EXPIRES (DRIVER_NOW.us + 6 * AS_US_PER_H)

static struct driver_source given;
static struct as_cloud_op *const op = &given.op.op;

static void init(void)
{
    driver_set("HOME", "/h");
    driver_set("AWS_REGION", "eu-central-1");
}

static void deinit(void)
{
    driver_end_source(&given);
}

TestSuite(credentials_aws, .init = init, .fini = deinit);

static void begin(const char *source)
{
    if (given.op.account)
        driver_end_source(&given);
    given.op = (struct as_credentials_op){0};
    driver_begin_source(&given, aws_credentials, source);
}

/* The files are asked for, and have this; NULL: they are not there. */
static void give_files(const char *credentials, const char *config)
{
    driver_expect_file(op, CREDENTIALS);
    driver_content(op, credentials, credentials ? 0 : ENOENT);
    if (op->want == AS_CLOUD_OP_END)
        return;
    driver_expect_file(op, CONFIG);
    driver_content(op, config, config ? 0 : ENOENT);
}

static void expect_not_here(void)
{
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    cr_assert(given.op.is_not_here);
}

Test(credentials_aws, order)
{
    static const char *const names[] = {"environment", "assumed role", "web identity",
                                        "profile",     "container",    "instance metadata"};
    for (size_t i = 0; i < AS_ARRAY_SIZE(names); i++)
        cr_assert_str_eq(aws_credentials[i].name, names[i]);
    cr_assert_null(aws_credentials[AS_ARRAY_SIZE(names)].name);
}

/* ---- environment ---- */

Test(credentials_aws, environment)
{
    begin("environment");
    expect_not_here();
    driver_set("AWS_ACCESS_KEY_ID", "AKID");
    begin("environment");
    driver_expect_end(op, AS_CLOUD_OP_CONFIGURATION,
                      "of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY only one is set");
    driver_set("AWS_SECRET_ACCESS_KEY", "s3cret");
    begin("environment");
    driver_expect_found(&given, "AKID", "s3cret", NULL, "eu-central-1");
    cr_assert_not(given.op.found.expires.set);
    driver_set("AWS_SESSION_TOKEN", "tok");
    driver_set("AWS_CREDENTIAL_EXPIRATION", "2024-05-17T16:20:30Z");
    begin("environment");
    driver_expect_found(&given, "AKID", "s3cret", "tok", "eu-central-1");
    cr_assert_eq(given.op.found.expires.at.us, EXPIRES);
    driver_set("AWS_CREDENTIAL_EXPIRATION", "soon");
    begin("environment");
    driver_expect_end(op, AS_CLOUD_OP_CONFIGURATION,
                      "AWS_CREDENTIAL_EXPIRATION is not a time like 2026-11-20T10:00:00Z");
    driver_set("AWS_ACCESS_KEY_ID", "");
    begin("environment");
    driver_expect_end(op, AS_CLOUD_OP_CONFIGURATION,
                      "of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY only one is set");
    driver_source_option(&given, "profile", "prod");
    begin("environment");
    expect_not_here(); /* with a named profile the environment takes no part */
}

/* ---- region ---- */

static void set_keys(void)
{
    driver_set("AWS_ACCESS_KEY_ID", "K");
    driver_set("AWS_SECRET_ACCESS_KEY", "S");
}

Test(credentials_aws, region_of_account_environment_profile)
{
    set_keys();
    driver_set("AWS_DEFAULT_REGION", "eu-north-1");
    begin("environment");
    driver_expect_found(&given, "K", "S", NULL, "eu-central-1");
    driver_set("AWS_REGION", "");
    begin("environment");
    driver_expect_found(&given, "K", "S", NULL, "eu-north-1");
    driver_set("AWS_DEFAULT_REGION", "");
    begin("environment");
    give_files(NULL, "[default]\nregion = us-west-2\n");
    driver_expect_found(&given, "K", "S", NULL, "us-west-2");
    driver_set("AWS_PROFILE", "prod");
    begin("environment");
    give_files(NULL, "[profile prod]\nregion = us-west-1\n");
    driver_expect_found(&given, "K", "S", NULL, "us-west-1");
    driver_source_option(&given, "region", "sa-east-1");
    begin("environment");
    driver_expect_found(&given, "K", "S", NULL, "sa-east-1");
}

Test(credentials_aws, region_of_the_instance)
{
    set_keys();
    driver_set("AWS_REGION", "");
    begin("environment");
    give_files(NULL, NULL);
    driver_expect(op, "PUT", "http://169.254.169.254/latest/api/token", "");
    driver_answer(op, 200, "AQAE==");
    driver_expect(op, "GET", "http://169.254.169.254/latest/meta-data/placement/region", "");
    driver_expect_headers(op, "x-aws-ec2-metadata-token: AQAE==\n");
    driver_answer(op, 200, "eu-west-3");
    driver_expect_found(&given, "K", "S", NULL, "eu-west-3");
}

/* The credentials are good all the same where there is no such service, or no region in it: the
 * account may say the region. */
Test(credentials_aws, no_region_is_no_failure)
{
    set_keys();
    driver_set("AWS_REGION", "");
    for (int i = 0; i < 3; i++) {
        begin("environment");
        give_files(NULL, NULL);
        if (i == 0) {
            driver_break(op, AS_HTTP_UNREACHABLE, "no route");
        } else if (i == 1) {
            driver_answer(op, 403, ""); /* switched off at the instance */
        } else {
            driver_answer(op, 200, "t");
            driver_answer(op, 404, "");
        }
        driver_expect_found(&given, "K", "S", NULL, NULL);
    }
    driver_set("AWS_EC2_METADATA_DISABLED", "TRUE");
    begin("environment");
    give_files(NULL, NULL);
    driver_expect_found(&given, "K", "S", NULL, NULL);
}

#define NO_REGION "no region is set, and the instance metadata service does not tell it: "

/* It is asked again: keys of the environment never expire, and would be without a region for good.
 */
Test(credentials_aws, a_region_whose_answer_is_lost_is_asked_for_again)
{
    static const struct {
        int token, region; /* statuses; 0: no answer */
        const char *body;
        enum as_cloud_op_fault fault;
        const char *message;
    } rows[] = {
        {200, 0, "", AS_CLOUD_OP_TIMEOUT, NO_REGION "get_instance_region: late"},
        {0, 0, "", AS_CLOUD_OP_TIMEOUT, NO_REGION "get_instance_region: late"},
        {200, 500, "", AS_CLOUD_OP_RETRY, NO_REGION "get_instance_region: HTTP 500"},
        {500, 503, "", AS_CLOUD_OP_RETRY, NO_REGION "get_instance_region: HTTP 503"},
        {200, 200, "<html>", AS_CLOUD_OP_RETRY, NO_REGION "get_instance_region: it is none"},
        {200, 200, "Evil.example.org/", AS_CLOUD_OP_RETRY,
         NO_REGION "get_instance_region: it is none"},
        {0, 401, "", AS_CLOUD_OP_CONFIGURATION,
         "the instance metadata service wants a token, and gave none: behind a container's "
         "network its hop limit has to be 2"},
    };
    set_keys();
    driver_set("AWS_REGION", "");
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        begin("environment");
        give_files(NULL, NULL);
        if (rows[i].token)
            driver_answer(op, rows[i].token, "t");
        else
            driver_break(op, AS_HTTP_TIMEOUT, "late");
        if (rows[i].region)
            driver_answer(op, rows[i].region, rows[i].body);
        else
            driver_break(op, AS_HTTP_TIMEOUT, "late");
        driver_expect_end(op, rows[i].fault, rows[i].message);
    }
    begin("environment"); /* version 1 of the service tells it too */
    give_files(NULL, NULL);
    driver_answer(op, 404, "");
    driver_answer(op, 200, "eu-west-3\n");
    driver_expect_found(&given, "K", "S", NULL, "eu-west-3");
}

/* It becomes part of a host's name. */
Test(credentials_aws, a_region_that_is_none_is_refused)
{
    driver_set("AWS_REGION", "x.example.org/");
    set_keys();
    begin("assumed role");
    give_files(NULL, "[default]\nrole_arn=arn:aws:iam::1:role/x\ncredential_source=Environment\n");
    driver_expect_end(
        op, AS_CLOUD_OP_CONFIGURATION,
        "the region \"x.example.org/\" is none: a region is small letters, digits and "
        "hyphens");
}

/* ---- the files ---- */

Test(credentials_aws, keys_of_a_profile)
{
    begin("profile");
    give_files(NULL, NULL);
    expect_not_here();
    begin("profile");
    give_files("[default]\naws_access_key_id = K1\naws_secret_access_key = S1\n"
               "aws_session_token = T1\n[prod]\naws_access_key_id=K2\naws_secret_access_key=S2\n",
               "[default]\naws_access_key_id = K3\naws_secret_access_key = S3\n");
    driver_expect_found(&given, "K1", "S1", "T1", "eu-central-1");
    driver_set("AWS_PROFILE", "prod");
    begin("profile");
    give_files("[default]\naws_access_key_id = K1\n[prod]\naws_access_key_id=K2\n"
               "aws_secret_access_key=S2\n",
               NULL);
    driver_expect_found(&given, "K2", "S2", NULL, "eu-central-1");
    driver_source_option(&given, "profile", "other");
    begin("profile");
    give_files(NULL, "[profile other]\naws_access_key_id = K3\naws_secret_access_key = S3\n");
    driver_expect_found(&given, "K3", "S3", NULL, "eu-central-1");
}

Test(credentials_aws, places_of_the_files)
{
    driver_set("AWS_SHARED_CREDENTIALS_FILE", "/etc/aws/c");
    driver_set("AWS_CONFIG_FILE", "~/conf");
    begin("profile");
    driver_expect_file(op, "/etc/aws/c");
    driver_content(op, NULL, EACCES);
    driver_expect_file(op, "/h/conf");
    driver_content(op, NULL, EISDIR);
    driver_expect_end(op, AS_CLOUD_OP_CONFIGURATION, "/h/conf: Is a directory");
    driver_set("AWS_SHARED_CREDENTIALS_FILE", "");
    driver_set("HOME", "");
    begin("profile");
    expect_not_here(); /* without a home there are no files in it */
}

Test(credentials_aws, profiles_that_give_nothing)
{
    static const struct {
        const char *credentials, *config, *message;
    } rows[] = {
        {"[default]\naws_access_key_id = K\n", NULL,
         "profile default: it has aws_access_key_id, but no aws_secret_access_key"},
        {"[default\n", NULL, CREDENTIALS ": line 1: a section has no ]"},
        {NULL, "[default]\nx\n", CONFIG ": line 2: expected a section or `key = value`"},
        {NULL, "[default]\nsso_session = s\n",
         "profile default: it signs a person in (sso_...): give a service a role, or use "
         "credential_process"},
        {NULL, "[default]\ncredential_process = 'a\n",
         "profile default: credential_process is no command: a quote is open, or it is empty"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        begin("profile");
        give_files(rows[i].credentials, rows[i].config);
        driver_expect_end(op, AS_CLOUD_OP_CONFIGURATION, rows[i].message);
    }
    driver_set("AWS_PROFILE", "prod");
    begin("profile");
    give_files("[default]\naws_access_key_id = K\n", NULL);
    driver_expect_end(op, AS_CLOUD_OP_CONFIGURATION,
                      "there is no profile prod in " CONFIG " or " CREDENTIALS);
}

Test(credentials_aws, a_program)
{
    static const char config[] = "[default]\ncredential_process = /opt/get \"my key\" --json\n";
    static const struct {
        const char *output;
        enum as_cloud_op_fault fault;
        const char *message;
    } rows[] = {
        {NULL, AS_CLOUD_OP_CONFIGURATION, "credential_process /opt/get: No such file or directory"},
        {"no", AS_CLOUD_OP_CONFIGURATION, "credential_process /opt/get: its output is not JSON"},
        {"{\"Version\":2}", AS_CLOUD_OP_CONFIGURATION,
         "credential_process /opt/get: its output is not of `Version` 1"},
        {"{\"Version\":1,\"AccessKeyId\":\"K\"}", AS_CLOUD_OP_RETRY,
         "there is no SecretAccessKey in what it answers"},
    };
    begin("profile");
    give_files(NULL, config);
    driver_expect_program(op, "/opt/get my key --json");
    driver_content(op, FOUND_JSON, 0);
    driver_expect_found(&given, "K", "S", "T", "eu-central-1");
    cr_assert_eq(given.op.found.expires.at.us, EXPIRES);
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        begin("profile");
        give_files(NULL, config);
        driver_content(op, rows[i].output, rows[i].output ? 0 : ENOENT);
        driver_expect_end(op, rows[i].fault, rows[i].message);
    }
}

/* ---- web identity ---- */

#define TOKEN_FILE "/var/run/secrets/eks.amazonaws.com/serviceaccount/token"
#define IDENTITY                                                                                   \
    "Action=AssumeRoleWithWebIdentity&Version=2011-06-15"                                          \
    "&RoleArn=arn%3Aaws%3Aiam%3A%3A123456789012%3Arole%2Fscaler"

static void begin_identity(void)
{
    driver_set("AWS_WEB_IDENTITY_TOKEN_FILE", TOKEN_FILE);
    driver_set("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/scaler");
    begin("web identity");
    give_files(NULL, NULL);
    driver_expect_file(op, TOKEN_FILE);
}

Test(credentials_aws, web_identity)
{
    begin_identity();
    driver_content(op, "ey.J+/=\n", 0);
    driver_expect(op, "POST", STS,
                  IDENTITY "&RoleSessionName=alertscaler&WebIdentityToken=ey.J%2B%2F%3D");
    driver_expect_headers(op, FORM_HEADER);
    cr_assert(op->request.is_plain, "it is not signed");
    cr_assert_not(op->request.is_change);
    driver_answer(op, 200, ANSWER("AssumeRoleWithWebIdentity", "K"));
    driver_expect_found(&given, "K", "S", "T", "eu-central-1");
    cr_assert_eq(given.op.found.expires.at.us, EXPIRES);
    driver_set("AWS_ROLE_SESSION_NAME", "pod-1");
    driver_source_option(&given, "sts_endpoint", "http://127.0.0.1:5000/");
    begin_identity(); /* the file is read anew */
    driver_content(op, "next", 0);
    driver_expect(op, "POST", "http://127.0.0.1:5000/",
                  IDENTITY "&RoleSessionName=pod-1&WebIdentityToken=next");
}

Test(credentials_aws, web_identity_without_a_region_asks_the_global_service)
{
    driver_set("AWS_REGION", "");
    begin_identity();
    driver_content(op, "t", 0);
    driver_expect(op, "POST", "https://sts.amazonaws.com/",
                  IDENTITY "&RoleSessionName=alertscaler&WebIdentityToken=t");
}

Test(credentials_aws, web_identity_of_a_profile)
{
    static const char config[] =
        "[default]\nweb_identity_token_file = " TOKEN_FILE "\nrole_session_name = s\n"
        "role_arn = arn:aws:iam::123456789012:role/scaler\n";
    begin("web identity");
    give_files(NULL, NULL);
    expect_not_here();
    begin("assumed role");
    give_files(NULL, config);
    expect_not_here(); /* its role is not taken on with other credentials */
    begin("web identity");
    give_files(NULL, config);
    driver_expect_file(op, TOKEN_FILE);
    driver_content(op, "t", 0);
    driver_expect(op, "POST", STS, IDENTITY "&RoleSessionName=s&WebIdentityToken=t");
    begin("web identity");
    give_files(NULL, "[default]\nweb_identity_token_file = t\n");
    driver_expect_end(op, AS_CLOUD_OP_CONFIGURATION,
                      "profile default: it has web_identity_token_file, but no role_arn");
}

Test(credentials_aws, web_identity_that_is_not_accepted)
{
    static const struct {
        int status;
        const char *code;
        enum as_cloud_op_fault fault;
    } rows[] = {
        {400, "InvalidIdentityToken", AS_CLOUD_OP_UNAUTHORIZED},
        {400, "ExpiredTokenException", AS_CLOUD_OP_UNAUTHORIZED},
        {403, "AccessDenied", AS_CLOUD_OP_PERMISSION},
        {400, "IDPCommunicationError", AS_CLOUD_OP_RETRY},
        {400, "Throttling", AS_CLOUD_OP_THROTTLED},
        {403, "RegionDisabledException", AS_CLOUD_OP_PERMISSION},
        {400, "ValidationError", AS_CLOUD_OP_CONFIGURATION},
        {500, "InternalFailure", AS_CLOUD_OP_RETRY},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        char answer[512], message[256];
        begin_identity();
        driver_content(op, "t", 0);
        snprintf(answer, sizeof(answer),
                 "<ErrorResponse><Error><Code>%s</Code><Message>Why.</Message></Error>"
                 "<RequestId>r-1</RequestId></ErrorResponse>",
                 rows[i].code);
        driver_answer(op, rows[i].status, answer);
        snprintf(message, sizeof(message), "assume_role_with_web_identity: %s: Why.", rows[i].code);
        driver_expect_end(op, rows[i].fault, message);
        cr_expect_str_eq(op->request_id, "r-1");
        cr_expect_not(op->is_ambiguous);
    }
    begin_identity();
    driver_content(op, NULL, ENOENT);
    driver_expect_end(op, AS_CLOUD_OP_CONFIGURATION, TOKEN_FILE ": No such file or directory");
    begin_identity();
    driver_content(op, " \n", 0);
    driver_expect_end(op, AS_CLOUD_OP_CONFIGURATION, TOKEN_FILE ": there is no token in it");
    begin_identity();
    driver_content(op, "t", 0);
    driver_answer(op, 200, "<AssumeRoleWithWebIdentityResponse/>");
    driver_expect_end(op, AS_CLOUD_OP_RETRY,
                      "assume_role_with_web_identity: the answer has no "
                      "AssumeRoleWithWebIdentityResponse.AssumeRoleWithWebIdentityResult."
                      "Credentials");
    driver_set("AWS_ROLE_ARN", "");
    begin("web identity");
    driver_expect_end(op, AS_CLOUD_OP_CONFIGURATION,
                      "AWS_WEB_IDENTITY_TOKEN_FILE is set, but not AWS_ROLE_ARN");
}

/* ---- roles ---- */

#define ASSUME(role)                                                                               \
    "Action=AssumeRole&Version=2011-06-15&RoleArn=arn%3Aaws%3Aiam%3A%3A1%3Arole%2F" role

static void expect_signed_with(const char *key_id)
{
    char start[128];
    snprintf(start, sizeof(start),
             "Authorization: AWS4-HMAC-SHA256 Credential=%s/20240517/eu-central-1/sts/aws4_request",
             key_id);
    cr_assert(op->request.is_plain, "it is signed already");
    cr_assert(as_str_starts_with(op->request.headers[op->request.header_count - 1], start), "%s",
              op->request.headers[op->request.header_count - 1]);
    cr_assert(op->request.is_plain && op->request.is_timed);
}

Test(credentials_aws, a_chain_of_roles)
{
    driver_set("AWS_PROFILE", "outer");
    begin("assumed role");
    give_files("[base]\naws_access_key_id = AKBASE\naws_secret_access_key = S\n",
               "[profile outer]\nrole_arn = arn:aws:iam::1:role/outer\nsource_profile = inner\n"
               "role_session_name = me\nexternal_id = a/b\nduration_seconds = 900\n"
               "[profile inner]\nrole_arn = arn:aws:iam::1:role/inner\nsource_profile = base\n"
               "duration_seconds = long\n");
    driver_expect(op, "POST", STS, ASSUME("inner") "&RoleSessionName=alertscaler");
    expect_signed_with("AKBASE");
    driver_answer(op, 200, ANSWER("AssumeRole", "ASIAINNER"));
    driver_expect(op, "POST", STS,
                  ASSUME("outer") "&RoleSessionName=me&ExternalId=a%2Fb&DurationSeconds=900");
    expect_signed_with("ASIAINNER");
    driver_answer(op, 200, ANSWER("AssumeRole", "K"));
    driver_expect_found(&given, "K", "S", "T", "eu-central-1");
    cr_assert_eq(given.op.found.expires.at.us, EXPIRES);
}

Test(credentials_aws, a_profile_may_be_its_own_source)
{
    begin("assumed role");
    give_files("[default]\naws_access_key_id = AKSELF\naws_secret_access_key = S\n",
               "[default]\nrole_arn = arn:aws:iam::1:role/x\nsource_profile = default\n");
    driver_expect(op, "POST", STS, ASSUME("x") "&RoleSessionName=alertscaler");
    expect_signed_with("AKSELF");
    driver_answer(op, 403,
                  "<ErrorResponse><Error><Code>AccessDenied</Code><Message>User u is not "
                  "authorized to perform: sts:AssumeRole</Message></Error></ErrorResponse>");
    driver_expect_end(op, AS_CLOUD_OP_PERMISSION,
                      "assume_role: AccessDenied: User u is not authorized to perform: "
                      "sts:AssumeRole");
}

Test(credentials_aws, sources_of_a_role)
{
    set_keys();
    begin("assumed role");
    give_files(NULL,
               "[default]\nrole_arn=arn:aws:iam::1:role/x\ncredential_source = Environment\n");
    driver_expect(op, "POST", STS, ASSUME("x") "&RoleSessionName=alertscaler");
    expect_signed_with("K");

    begin("assumed role");
    give_files(NULL, "[default]\nrole_arn=arn:aws:iam::1:role/x\n"
                     "credential_source = Ec2InstanceMetadata\n");
    driver_expect(op, "PUT", "http://169.254.169.254/latest/api/token", "");
    driver_answer(op, 200, "t");
    driver_answer(op, 200, "role");
    driver_answer(op, 200, FOUND_JSON);
    expect_signed_with("K");

    driver_set("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/c");
    begin("assumed role");
    give_files(NULL,
               "[default]\nrole_arn=arn:aws:iam::1:role/x\ncredential_source = EcsContainer\n");
    driver_answer(op, 200, FOUND_JSON);
    expect_signed_with("K");

    begin("assumed role");
    give_files(NULL, "[default]\nrole_arn=arn:aws:iam::1:role/x\nsource_profile = p\n"
                     "[profile p]\ncredential_process = get\n");
    driver_expect_program(op, "get");
    driver_content(op, FOUND_JSON, 0);
    expect_signed_with("K");

    begin("assumed role");
    give_files(NULL, "[default]\nrole_arn=arn:aws:iam::1:role/x\nsource_profile = p\n"
                     "[profile p]\nweb_identity_token_file = /t\nrole_arn=arn:aws:iam::1:role/w\n");
    driver_expect_file(op, "/t");
    driver_content(op, "t", 0);
    driver_answer(op, 200, ANSWER("AssumeRoleWithWebIdentity", "ASIAWEB"));
    expect_signed_with("ASIAWEB");
}

Test(credentials_aws, roles_that_cannot_be_taken_on)
{
#define ROLE "[default]\nrole_arn = arn:aws:iam::1:role/x\n"
    static const struct {
        const char *config, *message;
    } rows[] = {
        {ROLE, "profile default: it has a role_arn, so it needs source_profile or "
               "credential_source, and not both"},
        {ROLE "source_profile = a\ncredential_source = Environment\n[profile a]\n",
         "profile default: it has a role_arn, so it needs source_profile or credential_source, "
         "and not both"},
        {ROLE "source_profile = a\n",
         "profile default: the profile that its source_profile names is not there"},
        {ROLE "source_profile = default\n", "profile default: its source_profile leads back to it"},
        {ROLE "source_profile = a\n[profile a]\nrole_arn = r\nsource_profile = default\n",
         "profile default: its source_profile leads back to it"},
        {ROLE "source_profile = a\n[profile a]\n",
         "profile default: where its credentials are to come from, there are none"},
        {ROLE "credential_source = Environment\n",
         "profile default: where its credentials are to come from, there are none"},
        {ROLE "credential_source = Moon\n",
         "profile default: its credential_source is none of Environment, EcsContainer, "
         "Ec2InstanceMetadata"},
        {ROLE "mfa_serial = arn:aws:iam::1:mfa/me\nsource_profile = a\n[profile a]\n",
         "profile default: its role wants a code of a person's device (mfa_serial)"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        begin("assumed role");
        give_files(NULL, rows[i].config);
        driver_expect_end(op, AS_CLOUD_OP_CONFIGURATION, rows[i].message);
    }
    struct as_buf buf = AS_BUF_INIT(4096);
    as_buf_append_str(&buf, ROLE "source_profile = p1\n");
    for (int i = 1; i <= 8; i++)
        as_buf_printf(&buf, "[profile p%d]\nrole_arn = r\nsource_profile = p%d\n", i, i + 1);
    begin("assumed role");
    give_files(NULL, buf.data);
    driver_expect_end(op, AS_CLOUD_OP_CONFIGURATION,
                      "profile p8: too many profiles lead to it by source_profile");
    as_buf_deinit(&buf);
}

/* ---- container ---- */

Test(credentials_aws, container)
{
    begin("container");
    expect_not_here();
    driver_set("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://169.254.170.23/v1/credentials");
    driver_set("AWS_CONTAINER_AUTHORIZATION_TOKEN", "unused");
    driver_set("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "/var/run/token");
    begin("container");
    driver_expect_file(op, "/var/run/token");
    driver_content(op, "tok", 0);
    driver_expect(op, "GET", "http://169.254.170.23/v1/credentials", "");
    driver_expect_headers(op, "Accept: application/json\nAuthorization: tok\n");
    cr_assert(op->request.is_plain && op->request.without_proxy);
    cr_assert_eq(op->request.timeout_us, 2 * AS_US_PER_S);
    driver_answer(op, 200, FOUND_JSON);
    driver_expect_found(&given, "K", "S", "T", "eu-central-1");
    cr_assert_eq(given.op.found.expires.at.us, EXPIRES);

    begin("container");
    driver_content(op, "tok\n", 0);
    driver_expect_end(op, AS_CLOUD_OP_CONFIGURATION,
                      "/var/run/token: a token is one line, without an end of line");
    begin("container");
    driver_content(op, NULL, ENOENT);
    driver_expect_end(op, AS_CLOUD_OP_CONFIGURATION, "/var/run/token: No such file or directory");

    driver_set("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "");
    driver_set("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/v2/credentials/1?x=y");
    begin("container");
    driver_expect(op, "GET", "http://169.254.170.2/v2/credentials/1?x=y", "");
    driver_expect_headers(op, "Accept: application/json\nAuthorization: unused\n");
}

Test(credentials_aws, container_is_asked_three_times)
{
    driver_set("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/c");
    begin("container");
    driver_expect_headers(op, "Accept: application/json\n");
    driver_answer(op, 500, "");
    cr_assert_eq(op->want, AS_CLOUD_OP_WAIT);
    cr_assert_eq(op->wait_us, AS_US_PER_S);
    as_cloud_op_on_time(op, DRIVER_NOW);
    driver_answer(op, 200, "no JSON");
    cr_assert_eq(op->want, AS_CLOUD_OP_WAIT);
    as_cloud_op_on_time(op, DRIVER_NOW);
    driver_break(op, AS_HTTP_TIMEOUT, "no answer within 2s");
    driver_expect_end(op, AS_CLOUD_OP_TIMEOUT, "get_container_credentials: no answer within 2s");
}

Test(credentials_aws, container_over_http_is_on_this_machine)
{
    static const struct {
        const char *url;
        bool is_allowed;
    } rows[] = {
        {"https://example.org/c", true},
        {"http://localhost:80/c", true},
        {"http://127.0.0.1/c", true},
        {"http://127.8.9.1:99/c", true},
        {"http://[::1]:99/c", true},
        {"http://169.254.170.2/c", true},
        {"http://[fd00:ec2::23]/c", true},
        {"http://example.org/c", false},
        {"http://127.0.0.1.example.org/c", false},
        {"http://127.0.0.1@example.org/c", false},
        {"https://127.0.0.1@example.org/c", false},
        {"http://169.254.169.254/c", false},
        {"http://[::2]/c", false},
        {"file:///etc/passwd", false},
        {"/c", false},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        driver_set("AWS_CONTAINER_CREDENTIALS_FULL_URI", rows[i].url);
        begin("container");
        cr_expect_eq(op->want == AS_CLOUD_OP_SEND, rows[i].is_allowed, "%s", rows[i].url);
        if (!rows[i].is_allowed)
            driver_expect_end(op, AS_CLOUD_OP_CONFIGURATION,
                              "AWS_CONTAINER_CREDENTIALS_FULL_URI: over http only this machine, "
                              "169.254.170.2, 169.254.170.23 and [fd00:ec2::23] are asked");
    }
}

/* ---- instance metadata ---- */

#define IMDS       "http://169.254.169.254/latest/"
#define ROLES_URL  IMDS "meta-data/iam/security-credentials/"
#define UNREACHED  "no other credentials are set up, and the metadata service cannot be reached: "
#define V2_HEADERS "x-aws-ec2-metadata-token: AQAE-_==\n"

Test(credentials_aws, instance_metadata)
{
    begin("instance metadata");
    driver_expect(op, "PUT", IMDS "api/token", "");
    driver_expect_headers(op, "x-aws-ec2-metadata-token-ttl-seconds: 21600\n");
    cr_assert(op->request.is_plain && op->request.without_proxy);
    cr_assert_eq(op->request.timeout_us, 2 * AS_US_PER_S);
    driver_answer(op, 200, "AQAE-_==");
    driver_expect(op, "GET", ROLES_URL, "");
    driver_expect_headers(op, V2_HEADERS);
    driver_answer(op, 200, "my-role@x\n");
    driver_expect(op, "GET", ROLES_URL "my-role@x", "");
    driver_expect_headers(op, V2_HEADERS);
    cr_assert(op->request.is_plain && op->request.without_proxy);
    driver_answer(op, 200, FOUND_JSON);
    driver_expect_found(&given, "K", "S", "T", "eu-central-1");
    cr_assert_eq(given.op.found.expires.at.us, EXPIRES);
}

Test(credentials_aws, instance_metadata_at_other_addresses)
{
    static const struct {
        const char *variable, *value, *url;
    } rows[] = {
        {"AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE", "IPv6",
         "http://[fd00:ec2::254]/latest/api/token"},
        {"AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://127.0.0.1:1338",
         "http://127.0.0.1:1338/latest/api/token"},
        {"AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://127.0.0.1:1338/x/",
         "http://127.0.0.1:1338/x/latest/api/token"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        driver_set(rows[i].variable, rows[i].value);
        begin("instance metadata");
        driver_expect(op, "PUT", rows[i].url, "");
    }
    driver_set("AWS_EC2_METADATA_DISABLED", "true");
    begin("instance metadata");
    expect_not_here();
}

/* No token: an old service, or a container's network that the answer does not get through. */
Test(credentials_aws, instance_metadata_of_version_1)
{
    static const int statuses[] = {403, 404, 405, 500, 0};
    for (size_t i = 0; i < AS_ARRAY_SIZE(statuses); i++) {
        begin("instance metadata");
        if (statuses[i])
            driver_answer(op, statuses[i], "");
        else
            driver_break(op, AS_HTTP_TIMEOUT, "no answer within 2s");
        driver_expect(op, "GET", ROLES_URL, "");
        driver_expect_headers(op, "");
        driver_answer(op, 200, "r");
        driver_expect(op, "GET", ROLES_URL "r", "");
        driver_answer(op, 200, FOUND_JSON);
        driver_expect_found(&given, "K", "S", "T", "eu-central-1");
    }
    begin("instance metadata");
    driver_answer(op, 403, "");
    driver_answer(op, 401, "");
    driver_expect_end(op, AS_CLOUD_OP_CONFIGURATION,
                      "the instance metadata service wants a token, and gave none: behind a "
                      "container's network its hop limit has to be 2");
    driver_set("AWS_EC2_METADATA_V1_DISABLED", "true");
    begin("instance metadata");
    driver_answer(op, 403, "");
    driver_expect_end(op, AS_CLOUD_OP_RETRY,
                      "the instance metadata service gives no token, and "
                      "AWS_EC2_METADATA_V1_DISABLED is set");
}

Test(credentials_aws, no_instance_metadata)
{
    begin("instance metadata");
    driver_break(op, AS_HTTP_UNREACHABLE, "connection refused");
    driver_expect_end(op, AS_CLOUD_OP_RETRY, UNREACHED "connection refused");
    begin("instance metadata"); /* it may be there when it is asked again */
    driver_break(op, AS_HTTP_TIMEOUT, "no answer within 2s");
    driver_break(op, AS_HTTP_UNREACHABLE, "connection refused");
    driver_expect_end(op, AS_CLOUD_OP_RETRY, UNREACHED "connection refused");
    begin("instance metadata"); /* no answer to anything */
    driver_break(op, AS_HTTP_TIMEOUT, "no answer within 2s");
    driver_break(op, AS_HTTP_TIMEOUT, "no answer within 2s");
    driver_expect_end(op, AS_CLOUD_OP_TIMEOUT, "get_instance_role: no answer within 2s");
    begin("instance metadata");
    driver_answer(op, 200, "t");
    driver_break(op, AS_HTTP_BROKEN, "cut");
    driver_expect_end(op, AS_CLOUD_OP_RETRY, "get_instance_role: cut");
    begin("instance metadata");
    driver_answer(op, 200, "t");
    driver_answer(op, 200, "role");
    driver_break(op, AS_HTTP_TIMEOUT, "late");
    driver_expect_end(op, AS_CLOUD_OP_TIMEOUT, "get_instance_credentials: late");
    begin("instance metadata"); /* no role */
    driver_answer(op, 200, "t");
    driver_answer(op, 404, "");
    expect_not_here();
    begin("instance metadata");
    driver_answer(op, 200, "t");
    driver_answer(op, 200, "");
    expect_not_here();
    begin("instance metadata"); /* not a name: never part of a URL */
    driver_answer(op, 200, "t");
    driver_answer(op, 200, "../../api");
    expect_not_here();
    begin("instance metadata");
    driver_answer(op, 400, "");
    driver_expect_end(op, AS_CLOUD_OP_CONFIGURATION,
                      "the instance metadata service does not understand how it is asked for a "
                      "token");
}

Test(credentials_aws, instance_roles_that_give_nothing)
{
    static const struct {
        int status;
        const char *body;
        enum as_cloud_op_fault fault;
        const char *message;
    } rows[] = {
        {200, "{\"Code\":\"AssumeRoleUnauthorizedAccess\",\"Message\":\"EC2 cannot assume it\"}",
         AS_CLOUD_OP_CONFIGURATION,
         "the instance's role gives no credentials: AssumeRoleUnauthorizedAccess: EC2 cannot "
         "assume it"},
        {200, "{\"Code\":\"Success\",\"AccessKeyId\":\"K\"}", AS_CLOUD_OP_RETRY,
         "the instance's role gives no credentials"},
        {200, "<html>", AS_CLOUD_OP_RETRY,
         "get_instance_credentials: the answer is not JSON: '[' or '{' expected near '<'"},
        {500, "", AS_CLOUD_OP_RETRY, "get_instance_credentials: HTTP 500"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        begin("instance metadata");
        driver_answer(op, 200, "t");
        driver_answer(op, 200, "r");
        driver_answer(op, rows[i].status, rows[i].body);
        driver_expect_end(op, rows[i].fault, rows[i].message);
    }
}

/* An outage behind the service: the old ones are accepted a while longer. */
Test(credentials_aws, credentials_of_an_instance_that_have_expired_are_used_on)
{
    static const char *const times[] = {"2024-05-17T10:20:29Z", "2024-05-17T10:35:29Z",
                                        "2024-05-16T00:00:00Z"};
    for (size_t i = 0; i < AS_ARRAY_SIZE(times); i++) {
        char body[256];
        begin("instance metadata");
        driver_answer(op, 200, "t");
        driver_answer(op, 200, "r");
        snprintf(body, sizeof(body),
                 "{\"Code\":\"Success\",\"AccessKeyId\":\"K\",\"SecretAccessKey\":\"S\","
                 "\"Token\":\"T\",\"Expiration\":\"%s\"}",
                 times[i]);
        driver_answer(op, 200, body);
        driver_expect_found(&given, "K", "S", "T", "eu-central-1");
        cr_expect_eq(given.op.found.expires.at.us, DRIVER_NOW.us + 20 * AS_US_PER_MIN);
    }
}
