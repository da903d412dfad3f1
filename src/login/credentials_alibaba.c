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
#include <alertscaler/login/cloud_answer.h>
#include <alertscaler/login/cloud_credentials.h>
#include <alertscaler/login/sign.h>

#define METADATA_ENDPOINT   "http://100.100.100.200"
#define METADATA_TIMEOUT_US (2 * AS_US_PER_S)
#define NO_REGION           "no region is set, and the machine's metadata service does not tell it: "
#define ROLES_PATH          "latest/meta-data/ram/security-credentials/"
#define CONFIG_PATH         "/.aliyun/config.json" /* in the home folder */

struct state {
    const char *token; /* of the metadata service; NULL: no token */
};

const char *alibaba_find_region(const struct as_cloud_op *op,
                                const struct as_provider_settings *account,
                                const struct as_provider_credentials *credentials)
{
    const char *region = as_account_get(account, "region");
    if (!region)
        region = as_variable_find(op, "ALIBABA_CLOUD_REGION_ID");
    return region ? region : credentials->region;
}

/* {"AccessKeyId": ..., "AccessKeySecret": ..., "SecurityToken": ..., "Expiration": ...}; false
 * after failing the op. */
static bool find_in(struct as_cloud_op *op, const json_t *found)
{
    static const char *const names[] = {"AccessKeyId", "AccessKeySecret", "SecurityToken"};
    for (size_t i = 0; i < AS_ARRAY_SIZE(names); i++) {
        if (!*answer_text(found, names[i]))
            return answer_misses(op, names[i]);
    }
    as_credentials_take_keys(as_credentials_get(op), answer_text(found, names[0]),
                             answer_text(found, names[1]), answer_text(found, names[2]),
                             answer_time(found, "Expiration"));
    answer_wipe(op->document);
    return true;
}

/* ---- environment ---- */

static void alibaba_auth_begin_environment(struct as_credentials_op *given)
{
    struct as_cloud_op *op = &given->op;
    const char *key_id = as_variable_find(op, "ALIBABA_CLOUD_ACCESS_KEY_ID");
    const char *secret = as_variable_find(op, "ALIBABA_CLOUD_ACCESS_KEY_SECRET");
    if (!key_id && !secret) {
        as_credentials_not_here(given);
    } else if (!key_id || !secret) {
        as_cloud_op_fail(
            op, AS_CLOUD_OP_CONFIGURATION,
            "of ALIBABA_CLOUD_ACCESS_KEY_ID and ALIBABA_CLOUD_ACCESS_KEY_SECRET only one "
            "is set");
    } else {
        as_credentials_take_keys(given, key_id, secret,
                                 as_variable_find(op, "ALIBABA_CLOUD_SECURITY_TOKEN"),
                                 (as_maybe_time){.set = false});
        as_cloud_op_end(op);
    }
}

/* ---- a role, by a service account's token ---- */

static bool alibaba_auth_is_good(struct as_cloud_op *op)
{
    if (as_cloud_op_is_good(op))
        return true;
    const json_t *error = op->http_status ? answer_peek_json(op) : NULL;
    const char *code = answer_text(error, "Code");
    const bool is_hopeless = op->http_status < 500 && op->fault != AS_CLOUD_OP_THROTTLED;
    if (*code)
        as_cloud_op_fail(op,
                         as_str_starts_with(code, "Throttling") ? AS_CLOUD_OP_THROTTLED
                         : is_hopeless                          ? AS_CLOUD_OP_CONFIGURATION
                                                                : op->fault,
                         "%s: %s: %s", op->request.operation, code, answer_text(error, "Message"));
    return false;
}

static void on_role(struct as_cloud_op *op)
{
    const json_t *document = alibaba_auth_is_good(op) ? answer_json(op) : NULL;
    if (document && find_in(op, answer_find(document, "Credentials")))
        as_cloud_op_end(op);
}

/* A text that no request has used before: not a secret, and never repeated. */
static const char *make_nonce(struct as_cloud_op *op, const char *token, const char *now)
{
    char digest[CANONICAL_SHA_HEX];
    const char *text = as_cloud_op_print(op, "%s %s %u", now, token, op->turns);
    canonical_sha256(text, strlen(text), digest);
    return as_cloud_op_print(op, "%.32s", digest);
}

static void alibaba_auth_on_token(struct as_cloud_op *op)
{
    const char *token = as_credentials_take_file(op);
    if (!token)
        return;
    const struct as_provider_settings *account = as_credentials_get(op)->account;
    const char *region = alibaba_find_region(op, account, &as_credentials_get(op)->found);
    const char *session = as_variable_find(op, "ALIBABA_CLOUD_ROLE_SESSION_NAME");
    if (region && !as_region_check(op, region))
        return;
    const char *usual = region ? as_cloud_op_print(op, "https://sts.%s.aliyuncs.com", region)
                               : "https://sts.aliyuncs.com";
    char now[AS_RFC3339_SIZE];
    as_wall_time_print(op->now, now);
    as_cloud_op_ask(op, "POST",
                    "%s/?Action=AssumeRoleWithOIDC&Format=JSON&Version=2015-04-01&Timestamp=%s"
                    "&SignatureNonce=%s",
                    as_account_get_endpoint(op, account, "sts_endpoint", usual),
                    as_cloud_op_escaped(op, as_cloud_op_print(op, "%.19sZ", now)),
                    make_nonce(op, token, now));
    as_cloud_op_header(op, "Content-Type: application/x-www-form-urlencoded");
    as_cloud_op_add_parameter(op, "RoleArn", as_variable_find(op, "ALIBABA_CLOUD_ROLE_ARN"));
    as_cloud_op_add_parameter(op, "OIDCProviderArn",
                              as_variable_find(op, "ALIBABA_CLOUD_OIDC_PROVIDER_ARN"));
    as_cloud_op_add_parameter(op, "OIDCToken", token);
    as_cloud_op_add_parameter(op, "RoleSessionName", session ? session : "alertscaler");
    as_cloud_op_add_parameter(op, "DurationSeconds", "3600");
    op->request.is_plain = true;
    op->request.is_timed = true;
    as_cloud_op_send_question(op, "assume_role_with_oidc", on_role);
}

static void begin_role(struct as_credentials_op *given)
{
    static const char *const names[] = {"ALIBABA_CLOUD_ROLE_ARN",
                                        "ALIBABA_CLOUD_OIDC_PROVIDER_ARN"};
    struct as_cloud_op *op = &given->op;
    const char *path = as_variable_find(op, "ALIBABA_CLOUD_OIDC_TOKEN_FILE");
    if (!path) {
        as_credentials_not_here(given);
        return;
    }
    for (size_t i = 0; i < AS_ARRAY_SIZE(names); i++) {
        if (!as_variable_find(op, names[i])) {
            as_cloud_op_fail(op, AS_CLOUD_OP_CONFIGURATION,
                             "ALIBABA_CLOUD_OIDC_TOKEN_FILE is set, but %s is not", names[i]);
            return;
        }
    }
    as_cloud_op_read(op, path, alibaba_auth_on_token);
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

static void take_profile(struct as_cloud_op *op, const json_t *profile, const char *name)
{
    const char *mode = answer_text(profile, "mode");
    const bool is_session = strcmp(mode, "StsToken") == 0;
    if (strcmp(mode, "EcsRamRole") == 0) { /* the next source */
        as_credentials_not_here(as_credentials_get(op));
        return;
    }
    if (strcmp(mode, "AK") != 0 && !is_session) {
        as_cloud_op_fail(op, AS_CLOUD_OP_CONFIGURATION,
                         "%s: profile %s has mode \"%s\": expected AK, StsToken or EcsRamRole",
                         op->path, name, mode);
        return;
    }
    const char *key_id = answer_text(profile, "access_key_id");
    const char *secret = answer_text(profile, "access_key_secret");
    const char *region = answer_text(profile, "region_id");
    if (!*key_id || !*secret) {
        as_cloud_op_fail(op, AS_CLOUD_OP_CONFIGURATION, "%s: profile %s has no access key",
                         op->path, name);
        return;
    }
    as_credentials_take_keys(as_credentials_get(op), key_id, secret,
                             is_session ? answer_text(profile, "sts_token") : NULL,
                             (as_maybe_time){.set = false});
    if (*region)
        as_credentials_get(op)->found.region = as_xstrdup(region);
    as_cloud_op_end(op);
}

static void on_config(struct as_cloud_op *op)
{
    const char *wanted = as_variable_find(op, "ALIBABA_CLOUD_PROFILE");
    const int number = op->error_number;
    json_error_t problem;
    if (!op->content && !wanted && (number == ENOENT || number == ENOTDIR || number == EACCES)) {
        as_credentials_not_here(as_credentials_get(op));
        return;
    }
    if (!op->content) {
        as_cloud_op_fail(op, AS_CLOUD_OP_CONFIGURATION, "cannot read %s: %s", op->path,
                         as_errno_get_text(number));
        return;
    }
    json_t *document = json_loadb(op->content, op->content_size, 0, &problem);
    if (!wanted)
        wanted = as_cloud_op_print(op, "%s", answer_text(document, "current"));
    const json_t *profile = find_profile(document, wanted);
    if (profile)
        take_profile(op, profile, wanted);
    else if (document)
        as_cloud_op_fail(op, AS_CLOUD_OP_CONFIGURATION, "%s: there is no profile \"%s\"", op->path,
                         wanted);
    else
        as_cloud_op_fail(op, AS_CLOUD_OP_CONFIGURATION, "%s: line %d: %s", op->path, problem.line,
                         problem.text);
    answer_wipe(document);
    json_decref(document);
}

static void begin_config(struct as_credentials_op *given)
{
    const char *home = as_variable_find(&given->op, "HOME");
    if (!home || as_variable_is_on(&given->op, "ALIBABA_CLOUD_CLI_PROFILE_DISABLED"))
        as_credentials_not_here(given);
    else
        as_cloud_op_read(&given->op, as_cloud_op_print(&given->op, "%s" CONFIG_PATH, home),
                         on_config);
}

/* ---- the machine's role ---- */

static void alibaba_auth_ask_metadata(struct as_cloud_op *op, const char *method, const char *path)
{
    const struct state *state = as_credentials_get(op)->state;
    as_cloud_op_ask(op, method, "%s/%s",
                    as_account_get_endpoint(op, as_credentials_get(op)->account,
                                            "metadata_endpoint", METADATA_ENDPOINT),
                    path);
    if (state->token)
        as_cloud_op_header(op, "X-aliyun-ecs-metadata-token: %s", state->token);
    op->request.is_plain = true;
    op->request.without_proxy = true;
    op->request.timeout_us = METADATA_TIMEOUT_US;
}

/* A text that can be a header's value; else NULL. */
static const char *take_metadata_token(struct as_cloud_op *op)
{
    const char *body = op->answer->body;
    const size_t size = strcspn(body, "\r\n");
    return size > 0 && as_str_is_visible(body, size)
               ? as_cloud_op_print(op, "%.*s", (int)size, body)
               : NULL;
}

/* A lost answer is asked for again; a missing region is no failure. */
static void on_region(struct as_cloud_op *op)
{
    const bool is_answer = as_cloud_op_is_good(op);
    const char *region = is_answer ? as_credentials_take_word(op) : NULL;
    if (is_answer && (!region || !as_region_is_good(region))) {
        as_cloud_op_fail(op, AS_CLOUD_OP_RETRY, NO_REGION "%s: it is none", op->request.operation);
    } else if (is_answer || op->http_status == 404 || op->answer->outcome == AS_HTTP_UNREACHABLE) {
        as_credentials_get(op)->found.region = region ? as_xstrdup(region) : NULL;
        as_cloud_op_end(op);
    } else {
        as_cloud_op_fail(op, op->fault, NO_REGION "%s", op->message);
    }
}

static void on_credentials(struct as_cloud_op *op)
{
    const json_t *document = as_cloud_op_is_good(op) ? answer_json(op) : NULL;
    if (!document)
        return;
    const char *code = answer_text(document, "Code");
    if (*code && strcmp(code, "Success") != 0) {
        as_cloud_op_fail(op, AS_CLOUD_OP_CONFIGURATION,
                         "the machine's role gives no credentials: %s", code);
    } else if (find_in(op, document)) {
        if (alibaba_find_region(op, as_credentials_get(op)->account,
                                &as_credentials_get(op)->found)) {
            as_cloud_op_end(op);
            return;
        }
        alibaba_auth_ask_metadata(op, "GET", "latest/meta-data/region-id");
        as_cloud_op_send(op, "get_instance_region", on_region);
    }
}

static void ask_for_credentials(struct as_cloud_op *op, const char *role)
{
    alibaba_auth_ask_metadata(
        op, "GET", as_cloud_op_print(op, ROLES_PATH "%s", as_cloud_op_escaped(op, role)));
    as_cloud_op_send(op, "get_instance_credentials", on_credentials);
}

static void on_role_name(struct as_cloud_op *op)
{
    const char *role = as_cloud_op_is_good(op) ? as_credentials_take_word(op) : NULL;
    if (role && !strchr(role, '/'))
        ask_for_credentials(op, role);
    else if (op->http_status == 200 || op->http_status == 404)
        as_credentials_not_here(as_credentials_get(op)); /* no role is attached */
    else if (op->answer->outcome == AS_HTTP_UNREACHABLE)
        as_credentials_fail_unreached(as_credentials_get(op));
}

static void on_metadata_token(struct as_cloud_op *op)
{
    struct state *state = as_credentials_get(op)->state;
    const char *role = as_variable_find(op, "ALIBABA_CLOUD_ECS_METADATA");
    if (op->answer->outcome == AS_HTTP_UNREACHABLE) {
        as_credentials_fail_unreached(as_credentials_get(op));
        return;
    }
    state->token = as_cloud_op_is_good(op) ? take_metadata_token(op) : NULL;
    if (!state->token && as_variable_is_on(op, "ALIBABA_CLOUD_IMDSV1_DISABLED")) {
        as_cloud_op_fail(op, AS_CLOUD_OP_RETRY,
                         "the machine's metadata service gives no token, and "
                         "ALIBABA_CLOUD_IMDSV1_DISABLED is set");
    } else if (role) {
        ask_for_credentials(op, role);
    } else {
        alibaba_auth_ask_metadata(op, "GET", ROLES_PATH);
        as_cloud_op_send(op, "get_instance_role", on_role_name);
    }
}

static void begin_metadata(struct as_credentials_op *given)
{
    struct as_cloud_op *op = &given->op;
    given->state = as_arena_alloc(&op->arena, 1, sizeof(struct state));
    if (as_variable_is_on(op, "ALIBABA_CLOUD_ECS_METADATA_DISABLED")) {
        as_credentials_not_here(given);
        return;
    }
    alibaba_auth_ask_metadata(op, "PUT", "latest/api/token");
    as_cloud_op_header(op, "X-aliyun-ecs-metadata-token-ttl-seconds: 21600");
    as_cloud_op_send_question(op, "get_metadata_token", on_metadata_token);
}

const struct as_credentials_source alibaba_credentials[] = {
    {"environment", alibaba_auth_begin_environment},
    {"role of a service account", begin_role},
    {"command line's profile", begin_config},
    {"instance metadata", begin_metadata},
    {0},
};
