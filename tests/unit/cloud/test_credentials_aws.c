/*
 * providers.h: every source of credentials, in its order, and the region.
 */
#include <errno.h>

#include "cloud/providers.h"
#include "talker.h"

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
#define EXPIRES (TALKER_NOW.us + 6 * AS_US_PER_H)

static struct talker_source given;
static struct as_talk *const talk = &given.talk.talk;

static void init(void)
{
    talker_set("HOME", "/h");
    talker_set("AWS_REGION", "eu-central-1");
}

static void deinit(void)
{
    talker_end_source(&given);
}

TestSuite(credentials_aws, .init = init, .fini = deinit);

static void begin(const char *source)
{
    if (given.talk.account)
        talker_end_source(&given);
    given.talk = (struct as_credentials_talk){0};
    talker_begin_source(&given, aws_credentials, source);
}

/* The files are asked for, and have this; NULL: they are not there. */
static void give_files(const char *credentials, const char *config)
{
    talker_expect_file(talk, CREDENTIALS);
    talker_content(talk, credentials, credentials ? 0 : ENOENT);
    if (talk->want == AS_TALK_END)
        return;
    talker_expect_file(talk, CONFIG);
    talker_content(talk, config, config ? 0 : ENOENT);
}

static void expect_not_here(void)
{
    talker_expect_end(talk, AS_TALK_OK, "");
    cr_assert(given.talk.is_not_here);
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
    talker_set("AWS_ACCESS_KEY_ID", "AKID");
    begin("environment");
    talker_expect_end(talk, AS_TALK_CONFIGURATION,
                      "of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY only one is set");
    talker_set("AWS_SECRET_ACCESS_KEY", "s3cret");
    begin("environment");
    talker_expect_found(&given, "AKID", "s3cret", NULL, "eu-central-1");
    cr_assert_not(given.talk.found.expires.set);
    talker_set("AWS_SESSION_TOKEN", "tok");
    talker_set("AWS_CREDENTIAL_EXPIRATION", "2024-05-17T16:20:30Z");
    begin("environment");
    talker_expect_found(&given, "AKID", "s3cret", "tok", "eu-central-1");
    cr_assert_eq(given.talk.found.expires.at.us, EXPIRES);
    talker_set("AWS_CREDENTIAL_EXPIRATION", "soon");
    begin("environment");
    talker_expect_end(talk, AS_TALK_CONFIGURATION,
                      "AWS_CREDENTIAL_EXPIRATION is not a time like 2026-11-20T10:00:00Z");
    talker_set("AWS_ACCESS_KEY_ID", "");
    begin("environment");
    talker_expect_end(talk, AS_TALK_CONFIGURATION,
                      "of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY only one is set");
    talker_source_option(&given, "profile", "prod");
    begin("environment");
    expect_not_here(); /* with a named profile the environment takes no part */
}

/* ---- region ---- */

static void set_keys(void)
{
    talker_set("AWS_ACCESS_KEY_ID", "K");
    talker_set("AWS_SECRET_ACCESS_KEY", "S");
}

Test(credentials_aws, region_of_account_environment_profile)
{
    set_keys();
    talker_set("AWS_DEFAULT_REGION", "eu-north-1");
    begin("environment");
    talker_expect_found(&given, "K", "S", NULL, "eu-central-1");
    talker_set("AWS_REGION", "");
    begin("environment");
    talker_expect_found(&given, "K", "S", NULL, "eu-north-1");
    talker_set("AWS_DEFAULT_REGION", "");
    begin("environment");
    give_files(NULL, "[default]\nregion = us-west-2\n");
    talker_expect_found(&given, "K", "S", NULL, "us-west-2");
    talker_set("AWS_PROFILE", "prod");
    begin("environment");
    give_files(NULL, "[profile prod]\nregion = us-west-1\n");
    talker_expect_found(&given, "K", "S", NULL, "us-west-1");
    talker_source_option(&given, "region", "sa-east-1");
    begin("environment");
    talker_expect_found(&given, "K", "S", NULL, "sa-east-1");
}

Test(credentials_aws, region_of_the_instance)
{
    set_keys();
    talker_set("AWS_REGION", "");
    begin("environment");
    give_files(NULL, NULL);
    talker_expect(talk, "PUT", "http://169.254.169.254/latest/api/token", "");
    talker_answer(talk, 200, "AQAE==");
    talker_expect(talk, "GET", "http://169.254.169.254/latest/meta-data/placement/region", "");
    talker_expect_headers(talk, "x-aws-ec2-metadata-token: AQAE==\n");
    talker_answer(talk, 200, "eu-west-3");
    talker_expect_found(&given, "K", "S", NULL, "eu-west-3");
}

/* The credentials are good all the same where there is no such service, or no region in it: the
 * account may say the region. */
Test(credentials_aws, no_region_is_no_failure)
{
    set_keys();
    talker_set("AWS_REGION", "");
    for (int i = 0; i < 3; i++) {
        begin("environment");
        give_files(NULL, NULL);
        if (i == 0) {
            talker_break(talk, AS_HTTP_UNREACHABLE, "no route");
        } else if (i == 1) {
            talker_answer(talk, 403, ""); /* switched off at the instance */
        } else {
            talker_answer(talk, 200, "t");
            talker_answer(talk, 404, "");
        }
        talker_expect_found(&given, "K", "S", NULL, NULL);
    }
    talker_set("AWS_EC2_METADATA_DISABLED", "TRUE");
    begin("environment");
    give_files(NULL, NULL);
    talker_expect_found(&given, "K", "S", NULL, NULL);
}

#define NO_REGION "no region is set, and the instance metadata service does not tell it: "

/* It is asked again: keys of the environment never expire, and would be without a region for good.
 */
Test(credentials_aws, a_region_whose_answer_is_lost_is_asked_for_again)
{
    static const struct {
        int token, region; /* statuses; 0: no answer */
        const char *body;
        enum as_talk_fault fault;
        const char *message;
    } rows[] = {
        {200, 0, "", AS_TALK_TIMEOUT, NO_REGION "get_instance_region: late"},
        {0, 0, "", AS_TALK_TIMEOUT, NO_REGION "get_instance_region: late"},
        {200, 500, "", AS_TALK_RETRY, NO_REGION "get_instance_region: HTTP 500"},
        {500, 503, "", AS_TALK_RETRY, NO_REGION "get_instance_region: HTTP 503"},
        {200, 200, "<html>", AS_TALK_RETRY, NO_REGION "get_instance_region: it is none"},
        {200, 200, "Evil.example.org/", AS_TALK_RETRY, NO_REGION "get_instance_region: it is none"},
        {0, 401, "", AS_TALK_CONFIGURATION,
         "the instance metadata service wants a token, and gave none: behind a container's "
         "network its hop limit has to be 2"},
    };
    set_keys();
    talker_set("AWS_REGION", "");
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        begin("environment");
        give_files(NULL, NULL);
        if (rows[i].token)
            talker_answer(talk, rows[i].token, "t");
        else
            talker_break(talk, AS_HTTP_TIMEOUT, "late");
        if (rows[i].region)
            talker_answer(talk, rows[i].region, rows[i].body);
        else
            talker_break(talk, AS_HTTP_TIMEOUT, "late");
        talker_expect_end(talk, rows[i].fault, rows[i].message);
    }
    begin("environment"); /* version 1 of the service tells it too */
    give_files(NULL, NULL);
    talker_answer(talk, 404, "");
    talker_answer(talk, 200, "eu-west-3\n");
    talker_expect_found(&given, "K", "S", NULL, "eu-west-3");
}

/* It becomes part of a host's name. */
Test(credentials_aws, a_region_that_is_none_is_refused)
{
    talker_set("AWS_REGION", "x.example.org/");
    set_keys();
    begin("assumed role");
    give_files(NULL, "[default]\nrole_arn=arn:aws:iam::1:role/x\ncredential_source=Environment\n");
    talker_expect_end(
        talk, AS_TALK_CONFIGURATION,
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
    talker_expect_found(&given, "K1", "S1", "T1", "eu-central-1");
    talker_set("AWS_PROFILE", "prod");
    begin("profile");
    give_files("[default]\naws_access_key_id = K1\n[prod]\naws_access_key_id=K2\n"
               "aws_secret_access_key=S2\n",
               NULL);
    talker_expect_found(&given, "K2", "S2", NULL, "eu-central-1");
    talker_source_option(&given, "profile", "other");
    begin("profile");
    give_files(NULL, "[profile other]\naws_access_key_id = K3\naws_secret_access_key = S3\n");
    talker_expect_found(&given, "K3", "S3", NULL, "eu-central-1");
}

Test(credentials_aws, places_of_the_files)
{
    talker_set("AWS_SHARED_CREDENTIALS_FILE", "/etc/aws/c");
    talker_set("AWS_CONFIG_FILE", "~/conf");
    begin("profile");
    talker_expect_file(talk, "/etc/aws/c");
    talker_content(talk, NULL, EACCES);
    talker_expect_file(talk, "/h/conf");
    talker_content(talk, NULL, EISDIR);
    talker_expect_end(talk, AS_TALK_CONFIGURATION, "/h/conf: Is a directory");
    talker_set("AWS_SHARED_CREDENTIALS_FILE", "");
    talker_set("HOME", "");
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
        talker_expect_end(talk, AS_TALK_CONFIGURATION, rows[i].message);
    }
    talker_set("AWS_PROFILE", "prod");
    begin("profile");
    give_files("[default]\naws_access_key_id = K\n", NULL);
    talker_expect_end(talk, AS_TALK_CONFIGURATION,
                      "there is no profile prod in " CONFIG " or " CREDENTIALS);
}

Test(credentials_aws, a_program)
{
    static const char config[] = "[default]\ncredential_process = /opt/get \"my key\" --json\n";
    static const struct {
        const char *output;
        enum as_talk_fault fault;
        const char *message;
    } rows[] = {
        {NULL, AS_TALK_CONFIGURATION, "credential_process /opt/get: No such file or directory"},
        {"no", AS_TALK_CONFIGURATION, "credential_process /opt/get: its output is not JSON"},
        {"{\"Version\":2}", AS_TALK_CONFIGURATION,
         "credential_process /opt/get: its output is not of `Version` 1"},
        {"{\"Version\":1,\"AccessKeyId\":\"K\"}", AS_TALK_RETRY,
         "there is no SecretAccessKey in what it answers"},
    };
    begin("profile");
    give_files(NULL, config);
    talker_expect_program(talk, "/opt/get my key --json");
    talker_content(talk, FOUND_JSON, 0);
    talker_expect_found(&given, "K", "S", "T", "eu-central-1");
    cr_assert_eq(given.talk.found.expires.at.us, EXPIRES);
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        begin("profile");
        give_files(NULL, config);
        talker_content(talk, rows[i].output, rows[i].output ? 0 : ENOENT);
        talker_expect_end(talk, rows[i].fault, rows[i].message);
    }
}

/* ---- web identity ---- */

#define TOKEN_FILE "/var/run/secrets/eks.amazonaws.com/serviceaccount/token"
#define IDENTITY                                                                                   \
    "Action=AssumeRoleWithWebIdentity&Version=2011-06-15"                                          \
    "&RoleArn=arn%3Aaws%3Aiam%3A%3A123456789012%3Arole%2Fscaler"

static void begin_identity(void)
{
    talker_set("AWS_WEB_IDENTITY_TOKEN_FILE", TOKEN_FILE);
    talker_set("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/scaler");
    begin("web identity");
    give_files(NULL, NULL);
    talker_expect_file(talk, TOKEN_FILE);
}

Test(credentials_aws, web_identity)
{
    begin_identity();
    talker_content(talk, "ey.J+/=\n", 0);
    talker_expect(talk, "POST", STS,
                  IDENTITY "&RoleSessionName=alertscaler&WebIdentityToken=ey.J%2B%2F%3D");
    talker_expect_headers(talk, FORM_HEADER);
    cr_assert(talk->request.is_plain, "it is not signed");
    cr_assert_not(talk->request.is_change);
    talker_answer(talk, 200, ANSWER("AssumeRoleWithWebIdentity", "K"));
    talker_expect_found(&given, "K", "S", "T", "eu-central-1");
    cr_assert_eq(given.talk.found.expires.at.us, EXPIRES);
    talker_set("AWS_ROLE_SESSION_NAME", "pod-1");
    talker_source_option(&given, "sts_endpoint", "http://127.0.0.1:5000/");
    begin_identity(); /* the file is read anew */
    talker_content(talk, "next", 0);
    talker_expect(talk, "POST", "http://127.0.0.1:5000/",
                  IDENTITY "&RoleSessionName=pod-1&WebIdentityToken=next");
}

Test(credentials_aws, web_identity_without_a_region_asks_the_global_service)
{
    talker_set("AWS_REGION", "");
    begin_identity();
    talker_content(talk, "t", 0);
    talker_expect(talk, "POST", "https://sts.amazonaws.com/",
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
    talker_expect_file(talk, TOKEN_FILE);
    talker_content(talk, "t", 0);
    talker_expect(talk, "POST", STS, IDENTITY "&RoleSessionName=s&WebIdentityToken=t");
    begin("web identity");
    give_files(NULL, "[default]\nweb_identity_token_file = t\n");
    talker_expect_end(talk, AS_TALK_CONFIGURATION,
                      "profile default: it has web_identity_token_file, but no role_arn");
}

Test(credentials_aws, web_identity_that_is_not_accepted)
{
    static const struct {
        int status;
        const char *code;
        enum as_talk_fault fault;
    } rows[] = {
        {400, "InvalidIdentityToken", AS_TALK_UNAUTHORIZED},
        {400, "ExpiredTokenException", AS_TALK_UNAUTHORIZED},
        {403, "AccessDenied", AS_TALK_PERMISSION},
        {400, "IDPCommunicationError", AS_TALK_RETRY},
        {400, "Throttling", AS_TALK_THROTTLED},
        {403, "RegionDisabledException", AS_TALK_PERMISSION},
        {400, "ValidationError", AS_TALK_CONFIGURATION},
        {500, "InternalFailure", AS_TALK_RETRY},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        char answer[512], message[256];
        begin_identity();
        talker_content(talk, "t", 0);
        snprintf(answer, sizeof(answer),
                 "<ErrorResponse><Error><Code>%s</Code><Message>Why.</Message></Error>"
                 "<RequestId>r-1</RequestId></ErrorResponse>",
                 rows[i].code);
        talker_answer(talk, rows[i].status, answer);
        snprintf(message, sizeof(message), "assume_role_with_web_identity: %s: Why.", rows[i].code);
        talker_expect_end(talk, rows[i].fault, message);
        cr_expect_str_eq(talk->request_id, "r-1");
        cr_expect_not(talk->is_ambiguous);
    }
    begin_identity();
    talker_content(talk, NULL, ENOENT);
    talker_expect_end(talk, AS_TALK_CONFIGURATION, TOKEN_FILE ": No such file or directory");
    begin_identity();
    talker_content(talk, " \n", 0);
    talker_expect_end(talk, AS_TALK_CONFIGURATION, TOKEN_FILE ": there is no token in it");
    begin_identity();
    talker_content(talk, "t", 0);
    talker_answer(talk, 200, "<AssumeRoleWithWebIdentityResponse/>");
    talker_expect_end(talk, AS_TALK_RETRY,
                      "assume_role_with_web_identity: the answer has no "
                      "AssumeRoleWithWebIdentityResponse.AssumeRoleWithWebIdentityResult."
                      "Credentials");
    talker_set("AWS_ROLE_ARN", "");
    begin("web identity");
    talker_expect_end(talk, AS_TALK_CONFIGURATION,
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
    cr_assert(talk->request.is_plain, "it is signed already");
    cr_assert(as_str_starts_with(talk->request.headers[talk->request.header_count - 1], start),
              "%s", talk->request.headers[talk->request.header_count - 1]);
    cr_assert(talk->request.is_plain && talk->request.is_timed);
}

Test(credentials_aws, a_chain_of_roles)
{
    talker_set("AWS_PROFILE", "outer");
    begin("assumed role");
    give_files("[base]\naws_access_key_id = AKBASE\naws_secret_access_key = S\n",
               "[profile outer]\nrole_arn = arn:aws:iam::1:role/outer\nsource_profile = inner\n"
               "role_session_name = me\nexternal_id = a/b\nduration_seconds = 900\n"
               "[profile inner]\nrole_arn = arn:aws:iam::1:role/inner\nsource_profile = base\n"
               "duration_seconds = long\n");
    talker_expect(talk, "POST", STS, ASSUME("inner") "&RoleSessionName=alertscaler");
    expect_signed_with("AKBASE");
    talker_answer(talk, 200, ANSWER("AssumeRole", "ASIAINNER"));
    talker_expect(talk, "POST", STS,
                  ASSUME("outer") "&RoleSessionName=me&ExternalId=a%2Fb&DurationSeconds=900");
    expect_signed_with("ASIAINNER");
    talker_answer(talk, 200, ANSWER("AssumeRole", "K"));
    talker_expect_found(&given, "K", "S", "T", "eu-central-1");
    cr_assert_eq(given.talk.found.expires.at.us, EXPIRES);
}

Test(credentials_aws, a_profile_may_be_its_own_source)
{
    begin("assumed role");
    give_files("[default]\naws_access_key_id = AKSELF\naws_secret_access_key = S\n",
               "[default]\nrole_arn = arn:aws:iam::1:role/x\nsource_profile = default\n");
    talker_expect(talk, "POST", STS, ASSUME("x") "&RoleSessionName=alertscaler");
    expect_signed_with("AKSELF");
    talker_answer(talk, 403,
                  "<ErrorResponse><Error><Code>AccessDenied</Code><Message>User u is not "
                  "authorized to perform: sts:AssumeRole</Message></Error></ErrorResponse>");
    talker_expect_end(talk, AS_TALK_PERMISSION,
                      "assume_role: AccessDenied: User u is not authorized to perform: "
                      "sts:AssumeRole");
}

Test(credentials_aws, sources_of_a_role)
{
    set_keys();
    begin("assumed role");
    give_files(NULL,
               "[default]\nrole_arn=arn:aws:iam::1:role/x\ncredential_source = Environment\n");
    talker_expect(talk, "POST", STS, ASSUME("x") "&RoleSessionName=alertscaler");
    expect_signed_with("K");

    begin("assumed role");
    give_files(NULL, "[default]\nrole_arn=arn:aws:iam::1:role/x\n"
                     "credential_source = Ec2InstanceMetadata\n");
    talker_expect(talk, "PUT", "http://169.254.169.254/latest/api/token", "");
    talker_answer(talk, 200, "t");
    talker_answer(talk, 200, "role");
    talker_answer(talk, 200, FOUND_JSON);
    expect_signed_with("K");

    talker_set("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/c");
    begin("assumed role");
    give_files(NULL,
               "[default]\nrole_arn=arn:aws:iam::1:role/x\ncredential_source = EcsContainer\n");
    talker_answer(talk, 200, FOUND_JSON);
    expect_signed_with("K");

    begin("assumed role");
    give_files(NULL, "[default]\nrole_arn=arn:aws:iam::1:role/x\nsource_profile = p\n"
                     "[profile p]\ncredential_process = get\n");
    talker_expect_program(talk, "get");
    talker_content(talk, FOUND_JSON, 0);
    expect_signed_with("K");

    begin("assumed role");
    give_files(NULL, "[default]\nrole_arn=arn:aws:iam::1:role/x\nsource_profile = p\n"
                     "[profile p]\nweb_identity_token_file = /t\nrole_arn=arn:aws:iam::1:role/w\n");
    talker_expect_file(talk, "/t");
    talker_content(talk, "t", 0);
    talker_answer(talk, 200, ANSWER("AssumeRoleWithWebIdentity", "ASIAWEB"));
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
        talker_expect_end(talk, AS_TALK_CONFIGURATION, rows[i].message);
    }
    struct as_buf buf = AS_BUF_INIT(4096);
    as_buf_append_str(&buf, ROLE "source_profile = p1\n");
    for (int i = 1; i <= 8; i++)
        as_buf_printf(&buf, "[profile p%d]\nrole_arn = r\nsource_profile = p%d\n", i, i + 1);
    begin("assumed role");
    give_files(NULL, buf.data);
    talker_expect_end(talk, AS_TALK_CONFIGURATION,
                      "profile p8: too many profiles lead to it by source_profile");
    as_buf_deinit(&buf);
}

/* ---- container ---- */

Test(credentials_aws, container)
{
    begin("container");
    expect_not_here();
    talker_set("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://169.254.170.23/v1/credentials");
    talker_set("AWS_CONTAINER_AUTHORIZATION_TOKEN", "unused");
    talker_set("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "/var/run/token");
    begin("container");
    talker_expect_file(talk, "/var/run/token");
    talker_content(talk, "tok", 0);
    talker_expect(talk, "GET", "http://169.254.170.23/v1/credentials", "");
    talker_expect_headers(talk, "Accept: application/json\nAuthorization: tok\n");
    cr_assert(talk->request.is_plain && talk->request.without_proxy);
    cr_assert_eq(talk->request.timeout_us, 2 * AS_US_PER_S);
    talker_answer(talk, 200, FOUND_JSON);
    talker_expect_found(&given, "K", "S", "T", "eu-central-1");
    cr_assert_eq(given.talk.found.expires.at.us, EXPIRES);

    begin("container");
    talker_content(talk, "tok\n", 0);
    talker_expect_end(talk, AS_TALK_CONFIGURATION,
                      "/var/run/token: a token is one line, without an end of line");
    begin("container");
    talker_content(talk, NULL, ENOENT);
    talker_expect_end(talk, AS_TALK_CONFIGURATION, "/var/run/token: No such file or directory");

    talker_set("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "");
    talker_set("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/v2/credentials/1?x=y");
    begin("container");
    talker_expect(talk, "GET", "http://169.254.170.2/v2/credentials/1?x=y", "");
    talker_expect_headers(talk, "Accept: application/json\nAuthorization: unused\n");
}

Test(credentials_aws, container_is_asked_three_times)
{
    talker_set("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/c");
    begin("container");
    talker_expect_headers(talk, "Accept: application/json\n");
    talker_answer(talk, 500, "");
    cr_assert_eq(talk->want, AS_TALK_WAIT);
    cr_assert_eq(talk->wait_us, AS_US_PER_S);
    as_talk_hear_time(talk, TALKER_NOW);
    talker_answer(talk, 200, "no JSON");
    cr_assert_eq(talk->want, AS_TALK_WAIT);
    as_talk_hear_time(talk, TALKER_NOW);
    talker_break(talk, AS_HTTP_TIMEOUT, "no answer within 2s");
    talker_expect_end(talk, AS_TALK_TIMEOUT, "get_container_credentials: no answer within 2s");
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
        talker_set("AWS_CONTAINER_CREDENTIALS_FULL_URI", rows[i].url);
        begin("container");
        cr_expect_eq(talk->want == AS_TALK_SEND, rows[i].is_allowed, "%s", rows[i].url);
        if (!rows[i].is_allowed)
            talker_expect_end(talk, AS_TALK_CONFIGURATION,
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
    talker_expect(talk, "PUT", IMDS "api/token", "");
    talker_expect_headers(talk, "x-aws-ec2-metadata-token-ttl-seconds: 21600\n");
    cr_assert(talk->request.is_plain && talk->request.without_proxy);
    cr_assert_eq(talk->request.timeout_us, 2 * AS_US_PER_S);
    talker_answer(talk, 200, "AQAE-_==");
    talker_expect(talk, "GET", ROLES_URL, "");
    talker_expect_headers(talk, V2_HEADERS);
    talker_answer(talk, 200, "my-role@x\n");
    talker_expect(talk, "GET", ROLES_URL "my-role@x", "");
    talker_expect_headers(talk, V2_HEADERS);
    cr_assert(talk->request.is_plain && talk->request.without_proxy);
    talker_answer(talk, 200, FOUND_JSON);
    talker_expect_found(&given, "K", "S", "T", "eu-central-1");
    cr_assert_eq(given.talk.found.expires.at.us, EXPIRES);
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
        talker_set(rows[i].variable, rows[i].value);
        begin("instance metadata");
        talker_expect(talk, "PUT", rows[i].url, "");
    }
    talker_set("AWS_EC2_METADATA_DISABLED", "true");
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
            talker_answer(talk, statuses[i], "");
        else
            talker_break(talk, AS_HTTP_TIMEOUT, "no answer within 2s");
        talker_expect(talk, "GET", ROLES_URL, "");
        talker_expect_headers(talk, "");
        talker_answer(talk, 200, "r");
        talker_expect(talk, "GET", ROLES_URL "r", "");
        talker_answer(talk, 200, FOUND_JSON);
        talker_expect_found(&given, "K", "S", "T", "eu-central-1");
    }
    begin("instance metadata");
    talker_answer(talk, 403, "");
    talker_answer(talk, 401, "");
    talker_expect_end(talk, AS_TALK_CONFIGURATION,
                      "the instance metadata service wants a token, and gave none: behind a "
                      "container's network its hop limit has to be 2");
    talker_set("AWS_EC2_METADATA_V1_DISABLED", "true");
    begin("instance metadata");
    talker_answer(talk, 403, "");
    talker_expect_end(talk, AS_TALK_RETRY,
                      "the instance metadata service gives no token, and "
                      "AWS_EC2_METADATA_V1_DISABLED is set");
}

Test(credentials_aws, no_instance_metadata)
{
    begin("instance metadata");
    talker_break(talk, AS_HTTP_UNREACHABLE, "connection refused");
    talker_expect_end(talk, AS_TALK_RETRY, UNREACHED "connection refused");
    begin("instance metadata"); /* it may be there when it is asked again */
    talker_break(talk, AS_HTTP_TIMEOUT, "no answer within 2s");
    talker_break(talk, AS_HTTP_UNREACHABLE, "connection refused");
    talker_expect_end(talk, AS_TALK_RETRY, UNREACHED "connection refused");
    begin("instance metadata"); /* no answer to anything */
    talker_break(talk, AS_HTTP_TIMEOUT, "no answer within 2s");
    talker_break(talk, AS_HTTP_TIMEOUT, "no answer within 2s");
    talker_expect_end(talk, AS_TALK_TIMEOUT, "get_instance_role: no answer within 2s");
    begin("instance metadata");
    talker_answer(talk, 200, "t");
    talker_break(talk, AS_HTTP_BROKEN, "cut");
    talker_expect_end(talk, AS_TALK_RETRY, "get_instance_role: cut");
    begin("instance metadata");
    talker_answer(talk, 200, "t");
    talker_answer(talk, 200, "role");
    talker_break(talk, AS_HTTP_TIMEOUT, "late");
    talker_expect_end(talk, AS_TALK_TIMEOUT, "get_instance_credentials: late");
    begin("instance metadata"); /* no role */
    talker_answer(talk, 200, "t");
    talker_answer(talk, 404, "");
    expect_not_here();
    begin("instance metadata");
    talker_answer(talk, 200, "t");
    talker_answer(talk, 200, "");
    expect_not_here();
    begin("instance metadata"); /* not a name: never part of a URL */
    talker_answer(talk, 200, "t");
    talker_answer(talk, 200, "../../api");
    expect_not_here();
    begin("instance metadata");
    talker_answer(talk, 400, "");
    talker_expect_end(talk, AS_TALK_CONFIGURATION,
                      "the instance metadata service does not understand how it is asked for a "
                      "token");
}

Test(credentials_aws, instance_roles_that_give_nothing)
{
    static const struct {
        int status;
        const char *body;
        enum as_talk_fault fault;
        const char *message;
    } rows[] = {
        {200, "{\"Code\":\"AssumeRoleUnauthorizedAccess\",\"Message\":\"EC2 cannot assume it\"}",
         AS_TALK_CONFIGURATION,
         "the instance's role gives no credentials: AssumeRoleUnauthorizedAccess: EC2 cannot "
         "assume it"},
        {200, "{\"Code\":\"Success\",\"AccessKeyId\":\"K\"}", AS_TALK_RETRY,
         "the instance's role gives no credentials"},
        {200, "<html>", AS_TALK_RETRY,
         "get_instance_credentials: the answer is not JSON: '[' or '{' expected near '<'"},
        {500, "", AS_TALK_RETRY, "get_instance_credentials: HTTP 500"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        begin("instance metadata");
        talker_answer(talk, 200, "t");
        talker_answer(talk, 200, "r");
        talker_answer(talk, rows[i].status, rows[i].body);
        talker_expect_end(talk, rows[i].fault, rows[i].message);
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
        talker_answer(talk, 200, "t");
        talker_answer(talk, 200, "r");
        snprintf(body, sizeof(body),
                 "{\"Code\":\"Success\",\"AccessKeyId\":\"K\",\"SecretAccessKey\":\"S\","
                 "\"Token\":\"T\",\"Expiration\":\"%s\"}",
                 times[i]);
        talker_answer(talk, 200, body);
        talker_expect_found(&given, "K", "S", "T", "eu-central-1");
        cr_expect_eq(given.talk.found.expires.at.us, TALKER_NOW.us + 20 * AS_US_PER_MIN);
    }
}
