/*
 * Credentials of Azure: see the header. Entra ID gives a token for a secret or for another token:
 * https://learn.microsoft.com/entra/identity-platform/v2-oauth2-client-creds-grant-flow
 * The machine's metadata service, or App Service's, gives a token without a secret:
 * https://learn.microsoft.com/entra/identity/managed-identities-azure-resources/how-to-use-vm-token
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/number.h>
#include <alertscaler/base/str.h>
#include <alertscaler/base/url.h>
#include <alertscaler/login/cloud_answer.h>
#include <alertscaler/login/cloud_credentials.h>

#define METADATA_ENDPOINT   "http://169.254.169.254"
#define METADATA_TIMEOUT_US (3 * AS_US_PER_S)
#define METADATA_TRIES      3
#define METADATA_GONE_TRIES 7 /* after 410: the service is being updated, for up to 70 s */

static const struct cloud {
    const char *name, *endpoint, *authority;
} clouds[] = {
    {"public", "https://management.azure.com", "https://login.microsoftonline.com"},
    {"china", "https://management.chinacloudapi.cn", "https://login.chinacloudapi.cn"},
    {"usgovernment", "https://management.usgovcloudapi.net", "https://login.microsoftonline.us"},
};

/* ---- endpoints ---- */

static const struct cloud *find_cloud(struct as_cloud_op *op,
                                      const struct as_provider_settings *account)
{
    const char *name = as_account_get(account, "cloud");
    for (size_t i = 0; i < AS_ARRAY_SIZE(clouds); i++) {
        if (!name || strcmp(name, clouds[i].name) == 0)
            return &clouds[i];
    }
    as_cloud_op_fail(op, AS_CLOUD_OP_CONFIGURATION,
                     "`cloud` is \"%s\": expected public, china or usgovernment", name);
    return NULL;
}

/* Removes slashes at the end. NULL after failing the op: secrets would be sent in clear. */
static const char *clean_url(struct as_cloud_op *op, const char *key, const char *url)
{
    size_t size = strlen(url);
    while (size > 0 && url[size - 1] == '/')
        size--;
    if (as_url_is_private(url))
        return as_cloud_op_print(op, "%.*s", (int)size, url);
    as_cloud_op_fail(op, AS_CLOUD_OP_CONFIGURATION,
                     "%s is \"%s\": expected a URL with https:// (http:// only to this machine)",
                     key, url);
    return NULL;
}

const char *azure_make_endpoint(struct as_cloud_op *op, const struct as_provider_settings *account)
{
    const struct cloud *cloud = find_cloud(op, account);
    const char *given = as_account_get(account, "endpoint");
    return cloud ? clean_url(op, "`endpoint`", given ? given : cloud->endpoint) : NULL;
}

/* ---- what is set up ---- */

struct state {
    const char *tenant, *client;
    const char *authority;
    const char *resource; /* the token's audience */
    const char *scope;    /* the same for Entra ID */
    const char *url;      /* of a metadata service */
    const char *secret;   /* value of its header, if it needs one */
    unsigned tries;
};

static struct state *azure_auth_get_state(struct as_cloud_op *op)
{
    return as_credentials_get(op)->state;
}

/* The account's option, else the environment variable; NULL if both are missing. */
static const char *azure_auth_find(const struct as_credentials_op *op, const char *key,
                                   const char *variable)
{
    const char *value = key ? as_account_get(op->account, key) : NULL;
    if (!value && variable)
        value = op->op.get_variable(variable);
    return as_str_is_empty(value) ? NULL : value;
}

/* False after failing the op. */
static bool prepare(struct as_credentials_op *credentials)
{
    struct as_cloud_op *op = &credentials->op;
    struct state *state = as_arena_alloc(&op->arena, 1, sizeof(*state));
    const struct cloud *cloud = find_cloud(op, credentials->account);
    credentials->state = state;
    if (!cloud)
        return false;
    const char *authority = azure_auth_find(credentials, "authority", "AZURE_AUTHORITY_HOST");
    *state = (struct state){
        .tenant = azure_auth_find(credentials, "tenant_id", "AZURE_TENANT_ID"),
        .client = azure_auth_find(credentials, "client_id", "AZURE_CLIENT_ID"),
        .authority = clean_url(op, "the authority", authority ? authority : cloud->authority),
        .resource =
            credentials->scope ? credentials->scope : as_cloud_op_print(op, "%s/", cloud->endpoint),
        .scope = as_cloud_op_print(op, "%s/.default",
                                   credentials->scope ? credentials->scope : cloud->endpoint),
    };
    return state->authority != NULL;
}

/* ---- tokens ---- */

/* A number or digits; 0 for anything else. */
static int64_t take_seconds(const json_t *document, const char *path)
{
    const json_t *value = answer_find(document, path);
    const char *text = json_is_string(value) ? json_string_value(value) : "";
    int64_t seconds = json_is_integer(value) ? json_integer_value(value) : 0;
    if (*text && as_number_parse_i64(text, strlen(text), &seconds) != 0)
        seconds = 0;
    return seconds > 0 && seconds < INT64_C(1) << 40 ? seconds : 0;
}

/* Takes the token of a good answer. */
static void azure_auth_take_token(struct as_cloud_op *op)
{
    struct as_credentials_op *credentials = as_credentials_get(op);
    const json_t *document = answer_json(op);
    if (!document)
        return;
    const char *token = answer_text(document, "access_token");
    const int64_t left = take_seconds(document, "expires_in");
    const int64_t end = take_seconds(document, "expires_on");
    if (!*token || !as_str_is_visible(token, strlen(token))) {
        (void)answer_misses(op, "access_token");
        return;
    }
    credentials->found.token = as_xstrdup(token);
    credentials->found.expires.set = left > 0 || end > 0;
    credentials->found.expires.at.us =
        left > 0 ? as_time_add(op->now.us, left * AS_US_PER_S) : end * AS_US_PER_S;
    as_cloud_op_end(op);
}

/* {"error": "invalid_client", "error_description": "AADSTS7000215: ..."} */
static bool azure_auth_is_good(struct as_cloud_op *op)
{
    if (as_cloud_op_is_good(op))
        return true;
    if (op->http_status == 0)
        return false;
    const json_t *document = answer_peek_json(op);
    const char *error = answer_text(document, "error");
    enum as_cloud_op_fault fault = op->fault;
    if (fault == AS_CLOUD_OP_GONE || strcmp(error, "invalid_request") == 0)
        fault = AS_CLOUD_OP_CONFIGURATION;
    if (strcmp(error, "temporarily_unavailable") == 0)
        fault = AS_CLOUD_OP_RETRY;
    if (*error)
        as_cloud_op_fail(op, fault, "%s: %s: %s", op->request.operation, error,
                         answer_text(document, "error_description"));
    else
        as_cloud_op_fail(op, fault, "%s: HTTP %d", op->request.operation, op->http_status);
    return false;
}

static void azure_auth_on_token(struct as_cloud_op *op)
{
    if (azure_auth_is_good(op))
        azure_auth_take_token(op);
}

/* `proof`: the client's proof, as form parameters. */
static void ask_entra(struct as_cloud_op *op, const char *proof_format, const char *proof)
{
    const struct state *state = azure_auth_get_state(op);
    struct as_buf *body = &op->request.body;
    as_cloud_op_ask(op, "POST", "%s/%s/oauth2/v2.0/token", state->authority,
                    as_cloud_op_escaped(op, state->tenant));
    as_cloud_op_header(op, "Content-Type: application/x-www-form-urlencoded");
    as_buf_printf(body, "grant_type=client_credentials&client_id=%s",
                  as_cloud_op_escaped(op, state->client));
    as_buf_printf(body, "&scope=%s&%s%s", as_cloud_op_escaped(op, state->scope), proof_format,
                  as_cloud_op_escaped(op, proof));
    op->request.is_plain = true;
    as_cloud_op_send_question(op, "get_entra_token", azure_auth_on_token);
}

/* Whether tenant and client are known, as Entra ID always needs. False after failing the op. */
static bool has_identity(struct as_cloud_op *op, const char *where)
{
    const struct state *state = azure_auth_get_state(op);
    const char *missing = !state->tenant   ? "`tenant_id` (or AZURE_TENANT_ID)"
                          : !state->client ? "`client_id` (or AZURE_CLIENT_ID)"
                                           : NULL;
    if (missing)
        as_cloud_op_fail(op, AS_CLOUD_OP_CONFIGURATION, "%s is set, but %s is not", where, missing);
    return !missing;
}

/* ---- client secret ---- */

static void use_secret(struct as_cloud_op *op, const char *secret)
{
    ask_entra(op, "client_secret=", secret);
}

static void on_secret(struct as_cloud_op *op)
{
    const char *secret = as_credentials_take_file(op);
    if (secret)
        use_secret(op, secret);
}

/* Whether the account itself names another way or another client: then the environment's client
 * settings are ignored. */
static bool is_elsewhere(const struct as_credentials_op *credentials)
{
    const char *client = azure_auth_find(credentials, "client_id", NULL);
    const char *of_environment = azure_auth_find(credentials, NULL, "AZURE_CLIENT_ID");
    return azure_auth_find(credentials, "federated_token_file", NULL) ||
           (client && of_environment && strcasecmp(client, of_environment) != 0);
}

static void begin_secret(struct as_credentials_op *credentials)
{
    struct as_cloud_op *op = &credentials->op;
    const bool is_alone = is_elsewhere(credentials);
    const char *file = azure_auth_find(credentials, "client_secret_file", NULL);
    const char *secret =
        is_alone ? NULL : azure_auth_find(credentials, NULL, "AZURE_CLIENT_SECRET");
    if (!file && !secret) {
        if (!is_alone && azure_auth_find(credentials, NULL, "AZURE_CLIENT_CERTIFICATE_PATH"))
            as_cloud_op_fail(
                op, AS_CLOUD_OP_CONFIGURATION,
                "AZURE_CLIENT_CERTIFICATE_PATH is set, but client certificates are not "
                "supported: use workload identity, or a client secret");
        else
            as_credentials_not_here(credentials);
        return;
    }
    if (!prepare(credentials) ||
        !has_identity(op, file ? "`client_secret_file`" : "AZURE_CLIENT_SECRET"))
        return;
    if (file)
        as_cloud_op_read(op, file, on_secret);
    else
        use_secret(op, secret);
}

/* ---- workload identity ---- */

/* The projected token's file is read each time: it rotates. */
static void on_assertion(struct as_cloud_op *op)
{
    const char *assertion = as_credentials_take_file(op);
    if (assertion)
        ask_entra(op,
                  "client_assertion_type=urn%3Aietf%3Aparams%3Aoauth%3Aclient-assertion-type%3A"
                  "jwt-bearer&client_assertion=",
                  assertion);
}

static void begin_workload(struct as_credentials_op *credentials)
{
    const char *file =
        azure_auth_find(credentials, "federated_token_file", "AZURE_FEDERATED_TOKEN_FILE");
    if (!file)
        as_credentials_not_here(credentials);
    else if (prepare(credentials) &&
             has_identity(&credentials->op,
                          "`federated_token_file` (or AZURE_FEDERATED_TOKEN_FILE)"))
        as_cloud_op_read(&credentials->op, file, on_assertion);
}

/* ---- managed identity ---- */

static void azure_auth_ask_metadata(struct as_cloud_op *op);

static bool is_worth_a_try(int status)
{
    return status == 404 || status == 408 || status == 429 || status >= 500;
}

static void on_metadata(struct as_cloud_op *op)
{
    struct state *state = azure_auth_get_state(op);
    if (op->answer->outcome == AS_HTTP_UNREACHABLE) {
        as_credentials_fail_unreached(as_credentials_get(op));
    } else if (azure_auth_is_good(op)) {
        azure_auth_take_token(op);
    } else if (op->http_status == 410 && state->tries < METADATA_GONE_TRIES) {
        state->tries++;
        as_cloud_op_wait(op, 10 * AS_US_PER_S, azure_auth_ask_metadata);
    } else if (op->http_status == 410) {
        as_cloud_op_fail(op, AS_CLOUD_OP_RETRY, "%s: HTTP 410", op->request.operation);
    } else if (is_worth_a_try(op->http_status) && state->tries < METADATA_TRIES) {
        as_cloud_op_wait(op, AS_US_PER_S << state->tries, azure_auth_ask_metadata);
        state->tries++;
    }
}

static void azure_auth_ask_metadata(struct as_cloud_op *op)
{
    const struct state *state = azure_auth_get_state(op);
    as_cloud_op_ask(op, "GET", "%s", state->url);
    if (state->secret)
        as_cloud_op_header(op, "X-IDENTITY-HEADER: %s", state->secret);
    else
        as_cloud_op_header(op, "Metadata: true");
    op->request.is_plain = true;
    op->request.without_proxy = true;
    op->request.timeout_us = METADATA_TIMEOUT_US;
    as_cloud_op_send_question(op, "get_identity_token", on_metadata);
}

static void begin_managed(struct as_credentials_op *credentials)
{
    struct as_cloud_op *op = &credentials->op;
    const char *app_service = azure_auth_find(credentials, NULL, "IDENTITY_ENDPOINT");
    const char *secret = azure_auth_find(credentials, NULL, "IDENTITY_HEADER");
    const char *metadata = as_account_get(credentials->account, "metadata_endpoint");
    if (!prepare(credentials))
        return;
    struct state *state = azure_auth_get_state(op);
    const char *client = state->client ? as_cloud_op_print(op, "&client_id=%s",
                                                           as_cloud_op_escaped(op, state->client))
                                       : "";
    const char *resource = as_cloud_op_escaped(op, state->resource);
    if (app_service && secret && !as_url_is_near(app_service)) {
        as_cloud_op_fail(
            op, AS_CLOUD_OP_CONFIGURATION,
            "IDENTITY_ENDPOINT is \"%s\": expected a URL with https:// (http:// only to "
            "this machine, or a link-local address)",
            app_service);
        return;
    }
    if (app_service && secret) {
        state->secret = secret;
        state->url = as_cloud_op_print(op, "%s?api-version=2019-08-01&resource=%s%s", app_service,
                                       resource, client);
    } else {
        state->url = as_cloud_op_print(
            op, "%s/metadata/identity/oauth2/token?api-version=2018-02-01&resource=%s%s",
            metadata ? metadata : METADATA_ENDPOINT, resource, client);
    }
    azure_auth_ask_metadata(op);
}

const struct as_credentials_source azure_credentials[] = {
    {"client secret", begin_secret},
    {"workload identity", begin_workload},
    {"managed identity", begin_managed},
    {0},
};

/* ---- one source alone ---- */

static void begin_workload_alone(struct as_credentials_op *credentials)
{
    if (azure_auth_find(credentials, "federated_token_file", "AZURE_FEDERATED_TOKEN_FILE"))
        begin_workload(credentials);
    else
        as_cloud_op_fail(&credentials->op, AS_CLOUD_OP_CONFIGURATION,
                         "the token's file is not known: set `token_file_path`, or "
                         "AZURE_FEDERATED_TOKEN_FILE");
}

const struct as_credentials_source azure_client_secret[] = {{"oauth", begin_secret}, {0}};
const struct as_credentials_source azure_workload_identity[] = {
    {"workload_identity", begin_workload_alone}, {0}};
const struct as_credentials_source azure_managed_identity[] = {{"managed_identity", begin_managed},
                                                               {0}};
