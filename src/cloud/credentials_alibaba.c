/*
 * Credentials of Alibaba Cloud: see the header.
 * https://www.alibabacloud.com/help/en/sdk/developer-reference/v2-manage-access-credentials
 *
 * Tokens of roles for service accounts (RRSA) are exchanged at STS, unsigned; the token's file is
 * read each time, because it is replaced. Of the command line's configuration only keys are read.
 */
#include <errno.h>
#include <string.h>

#include <jansson.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/error.h>
#include <alertscaler/base/str.h>
#include <alertscaler/cloud/sign.h>

#include "provider_answer.h"
#include "providers.h"

#define METADATA_ENDPOINT   "http://100.100.100.200"
#define METADATA_TIMEOUT_US (2 * AS_US_PER_S)
#define NO_REGION           "no region is set, and the machine's metadata service does not tell it: "
#define ROLES_PATH          "latest/meta-data/ram/security-credentials/"
#define CONFIG_PATH         "/.aliyun/config.json" /* in the home folder */

struct state {
    const char *token; /* of the metadata service; NULL: no token */
};

const char *alibaba_find_region(const struct as_talk *talk,
                                const struct as_provider_settings *account,
                                const struct as_provider_credentials *credentials)
{
    const char *region = as_account_get(account, "region");
    if (!region)
        region = as_variable_find(talk, "ALIBABA_CLOUD_REGION_ID");
    return region ? region : credentials->region;
}

/* {"AccessKeyId": ..., "AccessKeySecret": ..., "SecurityToken": ..., "Expiration": ...}; false
 * after failing the talk. */
static bool find_in(struct as_talk *talk, const json_t *found)
{
    static const char *const names[] = {"AccessKeyId", "AccessKeySecret", "SecurityToken"};
    for (size_t i = 0; i < AS_ARRAY_SIZE(names); i++) {
        if (!*answer_text(found, names[i]))
            return answer_misses(talk, names[i]);
    }
    as_credentials_take_keys(as_credentials_get(talk), answer_text(found, names[0]),
                             answer_text(found, names[1]), answer_text(found, names[2]),
                             answer_time(found, "Expiration"));
    answer_wipe(talk->document);
    return true;
}

/* ---- environment ---- */

static void alibaba_auth_begin_environment(struct as_credentials_talk *given)
{
    struct as_talk *talk = &given->talk;
    const char *key_id = as_variable_find(talk, "ALIBABA_CLOUD_ACCESS_KEY_ID");
    const char *secret = as_variable_find(talk, "ALIBABA_CLOUD_ACCESS_KEY_SECRET");
    if (!key_id && !secret) {
        as_credentials_not_here(given);
    } else if (!key_id || !secret) {
        as_talk_fail(talk, AS_TALK_CONFIGURATION,
                     "of ALIBABA_CLOUD_ACCESS_KEY_ID and ALIBABA_CLOUD_ACCESS_KEY_SECRET only one "
                     "is set");
    } else {
        as_credentials_take_keys(given, key_id, secret,
                                 as_variable_find(talk, "ALIBABA_CLOUD_SECURITY_TOKEN"),
                                 (as_maybe_time){.set = false});
        as_talk_end(talk);
    }
}

/* ---- a role, by a service account's token ---- */

static bool alibaba_auth_is_good(struct as_talk *talk)
{
    if (as_talk_is_good(talk))
        return true;
    const json_t *error = talk->http_status ? answer_peek_json(talk) : NULL;
    const char *code = answer_text(error, "Code");
    const bool is_hopeless = talk->http_status < 500 && talk->fault != AS_TALK_THROTTLED;
    if (*code)
        as_talk_fail(talk,
                     as_str_starts_with(code, "Throttling") ? AS_TALK_THROTTLED
                     : is_hopeless                          ? AS_TALK_CONFIGURATION
                                                            : talk->fault,
                     "%s: %s: %s", talk->request.operation, code, answer_text(error, "Message"));
    return false;
}

static void hear_role(struct as_talk *talk)
{
    const json_t *document = alibaba_auth_is_good(talk) ? answer_json(talk) : NULL;
    if (document && find_in(talk, answer_find(document, "Credentials")))
        as_talk_end(talk);
}

/* A text that no request has used before: not a secret, and never repeated. */
static const char *make_nonce(struct as_talk *talk, const char *token, const char *now)
{
    char digest[CANONICAL_SHA_HEX];
    const char *text = as_talk_print(talk, "%s %s %u", now, token, talk->turns);
    canonical_sha256(text, strlen(text), digest);
    return as_talk_print(talk, "%.32s", digest);
}

static void alibaba_auth_hear_token(struct as_talk *talk)
{
    const char *token = as_credentials_take_file(talk);
    if (!token)
        return;
    const struct as_provider_settings *account = as_credentials_get(talk)->account;
    const char *region = alibaba_find_region(talk, account, &as_credentials_get(talk)->found);
    const char *session = as_variable_find(talk, "ALIBABA_CLOUD_ROLE_SESSION_NAME");
    if (region && !as_region_check(talk, region))
        return;
    const char *usual = region ? as_talk_print(talk, "https://sts.%s.aliyuncs.com", region)
                               : "https://sts.aliyuncs.com";
    char now[AS_RFC3339_SIZE];
    as_wall_time_print(talk->now, now);
    as_talk_ask(talk, "POST",
                "%s/?Action=AssumeRoleWithOIDC&Format=JSON&Version=2015-04-01&Timestamp=%s"
                "&SignatureNonce=%s",
                as_account_get_endpoint(talk, account, "sts_endpoint", usual),
                as_talk_escaped(talk, as_talk_print(talk, "%.19sZ", now)),
                make_nonce(talk, token, now));
    as_talk_header(talk, "Content-Type: application/x-www-form-urlencoded");
    as_talk_add_parameter(talk, "RoleArn", as_variable_find(talk, "ALIBABA_CLOUD_ROLE_ARN"));
    as_talk_add_parameter(talk, "OIDCProviderArn",
                          as_variable_find(talk, "ALIBABA_CLOUD_OIDC_PROVIDER_ARN"));
    as_talk_add_parameter(talk, "OIDCToken", token);
    as_talk_add_parameter(talk, "RoleSessionName", session ? session : "alertscaler");
    as_talk_add_parameter(talk, "DurationSeconds", "3600");
    talk->request.is_plain = true;
    talk->request.is_timed = true;
    as_talk_send_question(talk, "assume_role_with_oidc", hear_role);
}

static void begin_role(struct as_credentials_talk *given)
{
    static const char *const names[] = {"ALIBABA_CLOUD_ROLE_ARN",
                                        "ALIBABA_CLOUD_OIDC_PROVIDER_ARN"};
    struct as_talk *talk = &given->talk;
    const char *path = as_variable_find(talk, "ALIBABA_CLOUD_OIDC_TOKEN_FILE");
    if (!path) {
        as_credentials_not_here(given);
        return;
    }
    for (size_t i = 0; i < AS_ARRAY_SIZE(names); i++) {
        if (!as_variable_find(talk, names[i])) {
            as_talk_fail(talk, AS_TALK_CONFIGURATION,
                         "ALIBABA_CLOUD_OIDC_TOKEN_FILE is set, but %s is not", names[i]);
            return;
        }
    }
    as_talk_read(talk, path, alibaba_auth_hear_token);
}

/* ---- the command line's configuration ---- */

static const json_t *find_profile(const json_t *document, const char *name)
{
    for (size_t i = 0; i < answer_count(document, "profiles"); i++) {
        const json_t *profile = answer_at(document, "profiles", i);
        if (strcmp(answer_text(profile, "name"), name) == 0)
            return profile;
    }
    return NULL;
}

static void take_profile(struct as_talk *talk, const json_t *profile, const char *name)
{
    const char *mode = answer_text(profile, "mode");
    const bool is_session = strcmp(mode, "StsToken") == 0;
    if (strcmp(mode, "EcsRamRole") == 0) { /* the next source */
        as_credentials_not_here(as_credentials_get(talk));
        return;
    }
    if (strcmp(mode, "AK") != 0 && !is_session) {
        as_talk_fail(talk, AS_TALK_CONFIGURATION,
                     "%s: profile %s has mode \"%s\": expected AK, StsToken or EcsRamRole",
                     talk->path, name, mode);
        return;
    }
    const char *key_id = answer_text(profile, "access_key_id");
    const char *secret = answer_text(profile, "access_key_secret");
    const char *region = answer_text(profile, "region_id");
    if (!*key_id || !*secret) {
        as_talk_fail(talk, AS_TALK_CONFIGURATION, "%s: profile %s has no access key", talk->path,
                     name);
        return;
    }
    as_credentials_take_keys(as_credentials_get(talk), key_id, secret,
                             is_session ? answer_text(profile, "sts_token") : NULL,
                             (as_maybe_time){.set = false});
    if (*region)
        as_credentials_get(talk)->found.region = as_xstrdup(region);
    as_talk_end(talk);
}

static void hear_config(struct as_talk *talk)
{
    const char *wanted = as_variable_find(talk, "ALIBABA_CLOUD_PROFILE");
    const int number = talk->error_number;
    json_error_t problem;
    if (!talk->content && !wanted && (number == ENOENT || number == ENOTDIR || number == EACCES)) {
        as_credentials_not_here(as_credentials_get(talk));
        return;
    }
    if (!talk->content) {
        as_talk_fail(talk, AS_TALK_CONFIGURATION, "cannot read %s: %s", talk->path,
                     as_errno_get_text(number));
        return;
    }
    json_t *document = json_loadb(talk->content, talk->content_size, 0, &problem);
    if (!wanted)
        wanted = as_talk_print(talk, "%s", answer_text(document, "current"));
    const json_t *profile = find_profile(document, wanted);
    if (profile)
        take_profile(talk, profile, wanted);
    else if (document)
        as_talk_fail(talk, AS_TALK_CONFIGURATION, "%s: there is no profile \"%s\"", talk->path,
                     wanted);
    else
        as_talk_fail(talk, AS_TALK_CONFIGURATION, "%s: line %d: %s", talk->path, problem.line,
                     problem.text);
    answer_wipe(document);
    json_decref(document);
}

static void begin_config(struct as_credentials_talk *given)
{
    const char *home = as_variable_find(&given->talk, "HOME");
    if (!home || as_variable_is_on(&given->talk, "ALIBABA_CLOUD_CLI_PROFILE_DISABLED"))
        as_credentials_not_here(given);
    else
        as_talk_read(&given->talk, as_talk_print(&given->talk, "%s" CONFIG_PATH, home),
                     hear_config);
}

/* ---- the machine's role ---- */

static void alibaba_auth_ask_metadata(struct as_talk *talk, const char *method, const char *path)
{
    const struct state *state = as_credentials_get(talk)->state;
    as_talk_ask(talk, method, "%s/%s",
                as_account_get_endpoint(talk, as_credentials_get(talk)->account,
                                        "metadata_endpoint", METADATA_ENDPOINT),
                path);
    if (state->token)
        as_talk_header(talk, "X-aliyun-ecs-metadata-token: %s", state->token);
    talk->request.is_plain = true;
    talk->request.without_proxy = true;
    talk->request.timeout_us = METADATA_TIMEOUT_US;
}

/* A text that can be a header's value; else NULL. */
static const char *take_metadata_token(struct as_talk *talk)
{
    const char *body = talk->answer->body;
    const size_t size = strcspn(body, "\r\n");
    return size > 0 && as_str_is_visible(body, size) ? as_talk_print(talk, "%.*s", (int)size, body)
                                                     : NULL;
}

/* A lost answer is asked for again; a missing region is no failure. */
static void hear_region(struct as_talk *talk)
{
    const bool is_answer = as_talk_is_good(talk);
    const char *region = is_answer ? as_credentials_take_word(talk) : NULL;
    if (is_answer && (!region || !as_region_is_good(region))) {
        as_talk_fail(talk, AS_TALK_RETRY, NO_REGION "%s: it is none", talk->request.operation);
    } else if (is_answer || talk->http_status == 404 ||
               talk->answer->outcome == AS_HTTP_UNREACHABLE) {
        as_credentials_get(talk)->found.region = region ? as_xstrdup(region) : NULL;
        as_talk_end(talk);
    } else {
        as_talk_fail(talk, talk->fault, NO_REGION "%s", talk->message);
    }
}

static void hear_credentials(struct as_talk *talk)
{
    const json_t *document = as_talk_is_good(talk) ? answer_json(talk) : NULL;
    if (!document)
        return;
    const char *code = answer_text(document, "Code");
    if (*code && strcmp(code, "Success") != 0) {
        as_talk_fail(talk, AS_TALK_CONFIGURATION, "the machine's role gives no credentials: %s",
                     code);
    } else if (find_in(talk, document)) {
        if (alibaba_find_region(talk, as_credentials_get(talk)->account,
                                &as_credentials_get(talk)->found)) {
            as_talk_end(talk);
            return;
        }
        alibaba_auth_ask_metadata(talk, "GET", "latest/meta-data/region-id");
        as_talk_send(talk, "get_instance_region", hear_region);
    }
}

static void ask_for_credentials(struct as_talk *talk, const char *role)
{
    alibaba_auth_ask_metadata(talk, "GET",
                              as_talk_print(talk, ROLES_PATH "%s", as_talk_escaped(talk, role)));
    as_talk_send(talk, "get_instance_credentials", hear_credentials);
}

static void hear_role_name(struct as_talk *talk)
{
    const char *role = as_talk_is_good(talk) ? as_credentials_take_word(talk) : NULL;
    if (role && !strchr(role, '/'))
        ask_for_credentials(talk, role);
    else if (talk->http_status == 200 || talk->http_status == 404)
        as_credentials_not_here(as_credentials_get(talk)); /* no role is attached */
    else if (talk->answer->outcome == AS_HTTP_UNREACHABLE)
        as_credentials_fail_unreached(as_credentials_get(talk));
}

static void hear_metadata_token(struct as_talk *talk)
{
    struct state *state = as_credentials_get(talk)->state;
    const char *role = as_variable_find(talk, "ALIBABA_CLOUD_ECS_METADATA");
    if (talk->answer->outcome == AS_HTTP_UNREACHABLE) {
        as_credentials_fail_unreached(as_credentials_get(talk));
        return;
    }
    state->token = as_talk_is_good(talk) ? take_metadata_token(talk) : NULL;
    if (!state->token && as_variable_is_on(talk, "ALIBABA_CLOUD_IMDSV1_DISABLED")) {
        as_talk_fail(talk, AS_TALK_RETRY,
                     "the machine's metadata service gives no token, and "
                     "ALIBABA_CLOUD_IMDSV1_DISABLED is set");
    } else if (role) {
        ask_for_credentials(talk, role);
    } else {
        alibaba_auth_ask_metadata(talk, "GET", ROLES_PATH);
        as_talk_send(talk, "get_instance_role", hear_role_name);
    }
}

static void begin_metadata(struct as_credentials_talk *given)
{
    struct as_talk *talk = &given->talk;
    given->state = as_arena_alloc(&talk->arena, 1, sizeof(struct state));
    if (as_variable_is_on(talk, "ALIBABA_CLOUD_ECS_METADATA_DISABLED")) {
        as_credentials_not_here(given);
        return;
    }
    alibaba_auth_ask_metadata(talk, "PUT", "latest/api/token");
    as_talk_header(talk, "X-aliyun-ecs-metadata-token-ttl-seconds: 21600");
    as_talk_send_question(talk, "get_metadata_token", hear_metadata_token);
}

const struct as_credentials_source alibaba_credentials[] = {
    {"environment", alibaba_auth_begin_environment},
    {"role of a service account", begin_role},
    {"command line's profile", begin_config},
    {"instance metadata", begin_metadata},
    {0},
};
