/*
 * Credentials of Google Cloud, and what its APIs have in common: errors.
 *
 * Errors are described in https://cloud.google.com/apis/design/errors and
 * https://cloud.google.com/compute/docs/troubleshooting/troubleshooting-resource-availability.
 * Credentials: https://google.aip.dev/auth/4110, and 4115 for the metadata service. A file of any
 * of its kinds: 4112 (keys of service accounts), 4113 (users), 4117 (external accounts: workload
 * identity federation).
 *
 * Nothing is kept: the file, and the token files that it names, are read each time.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/encode.h>
#include <alertscaler/base/error.h>
#include <alertscaler/base/str.h>
#include <alertscaler/base/url.h>
#include <alertscaler/login/cloud_answer.h>
#include <alertscaler/login/cloud_credentials.h>

/* JSON Web Tokens. */

#define SIGNATURE_MAX 2048 /* bytes: keys of 16384 bits */

/* Keys with a passphrase are refused; without this callback OpenSSL would ask on the terminal. */
static int have_no_passphrase(char *text, int size, int is_writing, void *context)
{
    return -1;
}

static EVP_PKEY *read_key(const char *pem)
{
    const size_t size = strlen(pem);
    if (size > INT_MAX)
        return NULL;
    BIO *bio = BIO_new_mem_buf(pem, (int)size);
    EVP_PKEY *key = bio ? PEM_read_bio_PrivateKey(bio, NULL, have_no_passphrase, NULL) : NULL;
    BIO_free(bio);
    return key;
}

static bool jwt_sign(EVP_PKEY *key, const char *text, size_t size,
                     unsigned char signature[SIGNATURE_MAX], size_t *size_out)
{
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    *size_out = SIGNATURE_MAX;
    const bool is_good =
        context && EVP_DigestSignInit(context, NULL, EVP_sha256(), NULL, key) == 1 &&
        EVP_DigestSign(context, signature, size_out, (const unsigned char *)text, size) == 1;
    EVP_MD_CTX_free(context);
    return is_good;
}

int jwt_append_rs256(struct as_buf *out, const char *header, const char *claims, const char *pem,
                     struct as_error *error)
{
    unsigned char signature[SIGNATURE_MAX];
    size_t size;
    const size_t start = out->size;
    EVP_PKEY *key = read_key(pem);
    if (!key || !EVP_PKEY_is_a(key, "RSA")) {
        EVP_PKEY_free(key);
        as_error_set(error, "the private key is not an RSA key in PEM form without a passphrase");
        return -EINVAL;
    }
    as_encode_base64url(out, header, strlen(header));
    as_buf_append_char(out, '.');
    as_encode_base64url(out, claims, strlen(claims));
    const bool is_signed = as_buf_check(out) == 0 &&
                           jwt_sign(key, out->data + start, out->size - start, signature, &size);
    EVP_PKEY_free(key);
    if (!is_signed) {
        as_error_set(error, "the token cannot be signed with the private key");
        return -EINVAL;
    }
    as_buf_append_char(out, '.');
    as_encode_base64url(out, signature, size);
    return 0;
}

/* By reason (of HTTP answers) and by code (of operations, and of attempts to add an instance). */
static const struct answer_word reasons[] = {
    /* in lower case */
    {"ratelimitexceeded", AS_CLOUD_OP_THROTTLED},
    {"userratelimitexceeded", AS_CLOUD_OP_THROTTLED},
    {"rate_limit_exceeded", AS_CLOUD_OP_THROTTLED},
    {"*resource_pool_exhausted*", AS_CLOUD_OP_CAPACITY},
    {"*resourcepoolexhausted*", AS_CLOUD_OP_CAPACITY},
    {"*insufficient_capacity*", AS_CLOUD_OP_CAPACITY},
    {"stockout", AS_CLOUD_OP_CAPACITY},
    {"ip_space_exhausted*", AS_CLOUD_OP_CAPACITY},
    {"*quota*", AS_CLOUD_OP_CAPACITY},
    {"conditionnotmet", AS_CLOUD_OP_BUSY},
    {"*resourcenotready", AS_CLOUD_OP_BUSY},
    {"*resource_not_ready", AS_CLOUD_OP_BUSY},
    {"resourceinusebyanotherresource", AS_CLOUD_OP_BUSY},
    {"resource_in_use_by_another_resource", AS_CLOUD_OP_BUSY},
    {"cluster_already_has_operation", AS_CLOUD_OP_BUSY},
    {"autherror", AS_CLOUD_OP_UNAUTHORIZED},
    {"accessnotconfigured", AS_CLOUD_OP_CONFIGURATION},
    {"service_disabled", AS_CLOUD_OP_CONFIGURATION},
    {"permissions_error", AS_CLOUD_OP_PERMISSION},
    {"access_token_scope_insufficient", AS_CLOUD_OP_PERMISSION},
    {"backenderror", AS_CLOUD_OP_RETRY},
    {"internalerror", AS_CLOUD_OP_RETRY},
    {"internal_error", AS_CLOUD_OP_RETRY},
    {"resource_not_found", AS_CLOUD_OP_GONE},
    {NULL, 0},
};

/* A quota of requests over time, not of machines: "Quota exceeded for quota metric 'Queries'". */
static bool is_rate(const char *message)
{
    return strstr(message, "quota metric") || strstr(message, "per minute") ||
           strstr(message, "per second") || strstr(message, "Rate Limit");
}

enum as_cloud_op_fault google_judge(const char *reason, const char *message,
                                    enum as_cloud_op_fault fallback)
{
    char lower[64];
    size_t size = 0;
    for (; reason[size] && size < sizeof(lower) - 1; size++)
        lower[size] =
            reason[size] >= 'A' && reason[size] <= 'Z' ? (char)(reason[size] + 32) : reason[size];
    lower[size] = '\0';
    return strstr(lower, "quota") && is_rate(message) ? AS_CLOUD_OP_THROTTLED
                                                      : answer_judge(reasons, lower, fallback);
}

/* Finds a value in the details: "reason" of google.rpc.ErrorInfo, "requestId" of
 * google.rpc.RequestInfo. */
static const char *find_detail(const json_t *error, const char *key)
{
    for (size_t i = 0; i < answer_count(error, "details"); i++) {
        const char *text = answer_text(answer_at(error, "details", i), key);
        if (*text)
            return text;
    }
    return "";
}

/* The container API reports a running operation only in words. */
static bool google_is_busy(const json_t *error, const char *message)
{
    return strcmp(answer_text(error, "status"), "FAILED_PRECONDITION") == 0 &&
           (strstr(message, "incompatible operation") || strstr(message, "try again") ||
            strstr(message, "is currently"));
}

/* Whether the answer is good. If not, the op has failed with the error's class and words. The
 * op's document is the answer's, if it has one. */
static bool google_is_good(struct as_cloud_op *op)
{
    if (as_cloud_op_is_good(op))
        return true;
    if (op->http_status == 0)
        return false;
    const json_t *error = answer_find(answer_peek_json(op), "error");
    const char *message = answer_text(error, "message");
    const char *detail = find_detail(error, "reason");
    const char *reason = answer_text(answer_at(error, "errors", 0), "reason");
    const char *word = *detail ? detail : *reason ? reason : answer_text(error, "status");
    as_cloud_op_take_request_id(op, find_detail(error, "requestId"));
    enum as_cloud_op_fault fault = google_judge(detail, message, op->fault);
    if (fault == op->fault)
        fault = google_judge(reason, message, fault);
    if (google_is_busy(error, message))
        fault = AS_CLOUD_OP_BUSY;
    if (*message)
        as_cloud_op_fail(op, fault, "%s: HTTP %d%s%s: %s", op->request.operation, op->http_status,
                         *word ? " " : "", word, message);
    return false;
}

const json_t *google_take_answer(struct as_cloud_op *op)
{
    return google_is_good(op) ? answer_json(op) : NULL;
}

/* Where credentials are found, and their tokens */

#define METADATA_US        (3 * AS_US_PER_S)
#define WITHOUT_PROJECT_US (5 * AS_US_PER_MIN)
#define WELL_KNOWN_FILE    "application_default_credentials.json"

struct google_search { /* a credentials op's state; texts are memory of the op */
    const char *path;  /* of the file with credentials */
    bool may_be_absent;
    /* for an external account: */
    const char *token_url, *audience, *subject_type, *user_project;
    const char *field; /* of the subject's token in JSON; NULL: the whole text */
    const char *basic; /* header line with the client's own credentials; NULL */
    /* the account to act as; NULL url: none */
    const char *impersonation_url, *impersonation_body;
};

static struct google_search *google_get_state(struct as_cloud_op *op)
{
    return as_credentials_get(op)->state;
}

/* ---- answers with tokens ---- */

/* The document of a good answer; NULL after failing the op with the words of OAuth 2.0 (RFC 6749,
 * section 5.2) or of Google's APIs. */
static const json_t *google_take_token_answer(struct as_cloud_op *op)
{
    if (google_is_good(op))
        return answer_json(op);
    const json_t *document = op->document;
    const char *code = op->http_status ? answer_text(document, "error") : "";
    const char *text = answer_text(document, "error_description");
    if (*code)
        as_cloud_op_fail(op,
                         strcmp(code, "invalid_grant") == 0 ? AS_CLOUD_OP_UNAUTHORIZED : op->fault,
                         "%s: %s%s%s", op->request.operation, code, *text ? ": " : "", text);
    return NULL;
}

static void google_find(struct as_cloud_op *op, const char *token)
{
    char **place = &as_credentials_get(op)->found.token;
    as_wipe_free(*place);
    *place = as_xstrdup(token);
    as_cloud_op_end(op);
}

static void google_on_impersonation(struct as_cloud_op *op)
{
    const json_t *document = google_take_token_answer(op);
    if (!document)
        return;
    const char *token = answer_text(document, "accessToken");
    as_credentials_get(op)->found.expires = answer_time(document, "expireTime");
    if (*token)
        google_find(op, token);
    else
        (void)answer_misses(op, "accessToken");
}

static void google_impersonate(struct as_cloud_op *op, const char *token)
{
    const struct google_search *state = google_get_state(op);
    as_cloud_op_ask(op, "POST", "%s", state->impersonation_url);
    op->request.is_plain = true;
    as_cloud_op_header(op, "Content-Type: application/json");
    as_cloud_op_header(op, "Authorization: Bearer %s", token);
    as_buf_append_str(&op->request.body, state->impersonation_body);
    as_cloud_op_send_question(op, "impersonate", google_on_impersonation);
}

/* {"access_token":...,"expires_in":...}; false after failing the op. */
static bool google_take_token(struct as_cloud_op *op, const char **token_out)
{
    const json_t *document = google_take_token_answer(op);
    if (!document)
        return false;
    *token_out = answer_text(document, "access_token");
    if (!**token_out)
        return answer_misses(op, "access_token");
    const int32_t seconds = answer_size(document, "expires_in", -1);
    if (seconds >= 0)
        as_credentials_get(op)->found.expires =
            (as_maybe_time){true, {as_time_add(op->now.us, seconds * AS_US_PER_S)}};
    return true;
}

/* The answer to a request for a token: the wanted token, or one to be exchanged for it. */
static void google_on_token(struct as_cloud_op *op)
{
    const char *token;
    if (!google_take_token(op, &token))
        return;
    if (google_get_state(op)->impersonation_url)
        google_impersonate(op, token);
    else
        google_find(op, token);
}

/* Credentials from a file */

#define SCOPE           "https://www.googleapis.com/auth/cloud-platform"
#define IAM_SCOPE       "https://www.googleapis.com/auth/iam"
#define TOKEN_URL       "https://oauth2.googleapis.com/token"
#define STS_URL         "https://sts.googleapis.com/v1/token"
#define LIFETIME_S      3600
#define SUBJECT_HEADERS 16 /* of a request for a token to be exchanged */

/* The scope of the token that is kept. */
static const char *google_get_scope(struct as_cloud_op *op)
{
    const char *scope = as_credentials_get(op)->scope;
    return scope ? scope : SCOPE;
}

/* The scope of the next token: one that is exchanged for another needs no more than that right. */
static const char *google_get_next_scope(struct as_cloud_op *op)
{
    return as_credentials_get(op)->scope && google_get_state(op)->impersonation_url
               ? IAM_SCOPE
               : google_get_scope(op);
}

static void fail_misses(struct as_cloud_op *op, const char *key)
{
    as_cloud_op_fail(op, AS_CLOUD_OP_CONFIGURATION, "%s: `%s` is missing",
                     google_get_state(op)->path, key);
}

/* ---- requests for tokens ---- */

static void ask_token(struct as_cloud_op *op, const char *url)
{
    as_cloud_op_ask(op, "POST", "%s", url);
    op->request.is_plain = true;
    as_cloud_op_header(op, "Content-Type: application/x-www-form-urlencoded");
}

/* ---- what a file says ---- */

/* A text of the document as memory of the op; `fallback` if it is missing. With a NULL fallback
 * it must be present: false after failing the op. */
static bool google_take_text(struct as_cloud_op *op, const json_t *document, const char *key,
                             const char *fallback, const char **text_out)
{
    const char *text = answer_text(document, key);
    *text_out = *text ? as_arena_strdup(&op->arena, text) : fallback;
    if (!*text_out)
        fail_misses(op, key);
    return *text_out;
}

/* Tokens and keys are sent only to addresses that others can neither read nor impersonate. */
static bool take_url(struct as_cloud_op *op, const json_t *document, const char *key,
                     const char *fallback, const char **url_out)
{
    if (!google_take_text(op, document, key, fallback, url_out))
        return false;
    if (!**url_out || as_url_is_private(*url_out))
        return true;
    as_cloud_op_fail(op, AS_CLOUD_OP_CONFIGURATION, "%s: `%s` is not an https address",
                     google_get_state(op)->path, key);
    return false;
}

static void take_project(struct as_cloud_op *op, const json_t *document)
{
    static const char *const keys[] = {"project_id", "quota_project_id"};
    struct as_provider_credentials *found = &as_credentials_get(op)->found;
    for (size_t i = 0; i < AS_ARRAY_SIZE(keys) && !found->project; i++) {
        const char *project = answer_text(document, keys[i]);
        found->project = *project ? as_xstrdup(project) : NULL;
    }
}

/* Takes `service_account_impersonation_url`; `delegates` may be NULL. False after failing. */
static bool take_impersonation(struct as_cloud_op *op, const json_t *document,
                               const json_t *delegates)
{
    struct google_search *state = google_get_state(op);
    const char *url;
    if (!take_url(op, document, "service_account_impersonation_url", "", &url))
        return false;
    if (!*url)
        return true;
    const int32_t seconds =
        answer_size(document, "service_account_impersonation.token_lifetime_seconds", LIFETIME_S);
    json_t *body = json_pack("{s:[s], s:o}", "scope", google_get_scope(op), "lifetime",
                             json_sprintf("%ds", (int)seconds));
    if (json_array_size(delegates) > 0)
        json_object_set(body, "delegates", (json_t *)delegates);
    char *text = json_dumps(body, JSON_COMPACT);
    json_decref(body);
    if (!text)
        abort();
    state->impersonation_url = url;
    state->impersonation_body = as_arena_strdup(&op->arena, text);
    free(text);
    return true;
}

/* ---- kinds of files ---- */

static void begin_document(struct as_cloud_op *op, const json_t *document, bool is_source);

static char *print_claims(const char *email, const char *scope, const char *audience,
                          as_wall_time now)
{
    const json_int_t issued = now.us / AS_US_PER_S;
    json_t *claims = json_pack("{s:s, s:s, s:s, s:I, s:I}", "iss", email, "scope", scope, "aud",
                               audience, "exp", issued + LIFETIME_S, "iat", issued);
    char *text = claims ? json_dumps(claims, JSON_COMPACT) : NULL;
    json_decref(claims);
    return text;
}

static char *print_header(const char *key_id)
{
    json_t *header = json_pack("{s:s, s:s}", "alg", "RS256", "typ", "JWT");
    if (*key_id)
        json_object_set_new(header, "kid", json_string(key_id));
    char *text = header ? json_dumps(header, JSON_COMPACT) : NULL;
    json_decref(header);
    return text;
}

static void begin_service_account(struct as_cloud_op *op, const json_t *document)
{
    struct as_error error = AS_ERROR_INIT;
    const char *url, *email;
    if (!take_url(op, document, "token_uri", TOKEN_URL, &url) ||
        !google_take_text(op, document, "client_email", NULL, &email))
        return;
    AS_CLEANUP(as_free_p)
    char *header = print_header(answer_text(document, "private_key_id"));
    AS_CLEANUP(as_free_p)
    char *claims = print_claims(email, google_get_next_scope(op), url, op->now);
    if (!header || !claims)
        abort();
    ask_token(op, url);
    op->request.is_timed = true;
    as_cloud_op_add_parameter(op, "grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer");
    as_buf_append_str(&op->request.body, "&assertion=");
    if (jwt_append_rs256(&op->request.body, header, claims, answer_text(document, "private_key"),
                         &error) == 0)
        as_cloud_op_send_question(op, "token", google_on_token);
    else
        as_cloud_op_fail(op, AS_CLOUD_OP_CONFIGURATION, "%s: `private_key`: %s",
                         google_get_state(op)->path, error.text);
}

static void begin_authorized_user(struct as_cloud_op *op, const json_t *document)
{
    static const char *const keys[] = {"client_id", "client_secret", "refresh_token"};
    const char *url;
    if (!take_url(op, document, "token_uri", TOKEN_URL, &url))
        return;
    ask_token(op, url);
    as_cloud_op_add_parameter(op, "grant_type", "refresh_token");
    for (size_t i = 0; i < AS_ARRAY_SIZE(keys); i++) {
        const char *value = answer_text(document, keys[i]);
        if (!*value) {
            fail_misses(op, keys[i]);
            return;
        }
        as_cloud_op_add_parameter(op, keys[i], value);
    }
    as_cloud_op_send_question(op, "token", google_on_token);
}

static void begin_impersonated(struct as_cloud_op *op, const json_t *document)
{
    const json_t *source = answer_find(document, "source_credentials");
    if (!source)
        fail_misses(op, "source_credentials");
    else if (take_impersonation(op, document, answer_find(document, "delegates"))) {
        if (google_get_state(op)->impersonation_url)
            begin_document(op, source, true);
        else
            fail_misses(op, "service_account_impersonation_url");
    }
}

/* ---- external accounts: a foreign token is exchanged for Google's ---- */

static void google_exchange(struct as_cloud_op *op, const char *subject)
{
    const struct google_search *state = google_get_state(op);
    ask_token(op, state->token_url);
    if (state->basic)
        as_cloud_op_header(op, "%s", state->basic);
    as_cloud_op_add_parameter(op, "grant_type", "urn:ietf:params:oauth:grant-type:token-exchange");
    as_cloud_op_add_parameter(op, "audience", state->audience);
    as_cloud_op_add_parameter(op, "scope", google_get_next_scope(op));
    as_cloud_op_add_parameter(op, "requested_token_type",
                              "urn:ietf:params:oauth:token-type:access_token");
    as_cloud_op_add_parameter(op, "subject_token", subject);
    as_cloud_op_add_parameter(op, "subject_token_type", state->subject_type);
    if (*state->user_project)
        as_cloud_op_add_parameter(op, "options", state->user_project);
    as_cloud_op_send_question(op, "token_exchange", google_on_token);
}

/* Takes the subject's token from a text, or from a field of a JSON document, found at `where`. */
static void take_subject(struct as_cloud_op *op, const char *content, size_t size,
                         const char *where)
{
    const char *field = google_get_state(op)->field;
    json_t *document = field ? json_loadb(content, size, 0, NULL) : NULL;
    const char *token = field ? json_string_value(json_object_get(document, field)) : content;
    while (!field && size > 0 && strchr(" \t\r\n", token[size - 1]))
        size--;
    AS_CLEANUP(as_buf_wipe) struct as_buf subject = AS_BUF_INIT(AS_CLOUD_OP_ANSWER_MAX);
    if (token)
        as_buf_append(&subject, token, field ? strlen(token) : size);
    if (subject.size > 0)
        google_exchange(op, subject.data);
    else if (field)
        as_cloud_op_fail(op, AS_CLOUD_OP_CONFIGURATION, "%s: there is no JSON document with a `%s`",
                         where, field);
    else
        as_cloud_op_fail(op, AS_CLOUD_OP_CONFIGURATION, "%s: there is no token", where);
    answer_wipe(document);
    json_decref(document);
}

static void google_on_subject_file(struct as_cloud_op *op)
{
    if (op->content)
        take_subject(op, op->content, op->content_size, op->path);
    else
        as_cloud_op_fail(op, AS_CLOUD_OP_CONFIGURATION, "%s: %s (`credential_source` of %s)",
                         op->path, as_errno_get_text(op->error_number), google_get_state(op)->path);
}

static void google_on_subject(struct as_cloud_op *op)
{
    if (as_cloud_op_is_good(op))
        take_subject(op, op->answer->body, op->answer->body_size, op->request.url);
}

/* False after failing the op. */
static bool ask_subject(struct as_cloud_op *op, const json_t *source, const char *url)
{
    const json_t *headers = answer_find(source, "headers");
    const char *name;
    json_t *value;
    if (json_object_size(headers) > SUBJECT_HEADERS) {
        as_cloud_op_fail(op, AS_CLOUD_OP_CONFIGURATION,
                         "%s: `credential_source` has more than %d headers",
                         google_get_state(op)->path, SUBJECT_HEADERS);
        return false;
    }
    as_cloud_op_ask(op, "GET", "%s", url);
    op->request.is_plain = true;
    op->request.without_proxy = as_str_starts_with(url, "http://");
    json_object_foreach((json_t *)headers, name, value)
    {
        if (json_is_string(value))
            as_cloud_op_header(op, "%s: %s", name, json_string_value(value));
    }
    return true;
}

/* Finds the subject's token. */
static void begin_subject(struct as_cloud_op *op, const json_t *source)
{
    static const struct {
        const char *key, *word;
    } refused[] = {
        {"executable", "programs are not run for a token"},
        {"certificate", "client certificates are not exchanged for a token"},
        {"environment_id", "credentials of AWS are not exchanged for a token"},
    };
    struct google_search *state = google_get_state(op);
    const char *file = answer_text(source, "file"), *url = answer_text(source, "url");
    for (size_t i = 0; i < AS_ARRAY_SIZE(refused); i++) {
        if (answer_find(source, refused[i].key)) {
            as_cloud_op_fail(op, AS_CLOUD_OP_CONFIGURATION,
                             "%s: `credential_source` has `%s`: %s here; use a `file` (a projected "
                             "service account token, say) or a `url`",
                             state->path, refused[i].key, refused[i].word);
            return;
        }
    }
    if (strcmp(answer_text(source, "format.type"), "json") == 0 &&
        !google_take_text(op, source, "format.subject_token_field_name", NULL, &state->field))
        return;
    if (*file)
        as_cloud_op_read(op, as_arena_strdup(&op->arena, file), google_on_subject_file);
    else if (!*url)
        as_cloud_op_fail(op, AS_CLOUD_OP_CONFIGURATION,
                         "%s: `credential_source` has no `file` or `url`", state->path);
    else if (!as_url_is_near(url))
        as_cloud_op_fail(
            op, AS_CLOUD_OP_CONFIGURATION,
            "%s: `credential_source.url` is not an https address, nor one of this machine "
            "or of its metadata service",
            state->path);
    else if (ask_subject(op, source, url))
        as_cloud_op_send(op, "subject_token", google_on_subject);
}

/* For a client with credentials of its own: workforce identity federation. */
static const char *make_basic(struct as_cloud_op *op, const json_t *document)
{
    AS_CLEANUP(as_buf_wipe) struct as_buf plain = AS_BUF_INIT(AS_CLOUD_OP_FILE_MAX);
    AS_CLEANUP(as_buf_wipe) struct as_buf line = AS_BUF_INIT(2 * AS_CLOUD_OP_FILE_MAX);
    if (!*answer_text(document, "client_id"))
        return NULL;
    as_buf_printf(&plain, "%s:%s", answer_text(document, "client_id"),
                  answer_text(document, "client_secret"));
    as_buf_append_str(&line, "Authorization: Basic ");
    as_encode_base64(&line, plain.data, plain.size);
    return as_arena_strdup(&op->arena, line.data);
}

static void begin_external(struct as_cloud_op *op, const json_t *document)
{
    struct google_search *state = google_get_state(op);
    if (!take_url(op, document, "token_url", STS_URL, &state->token_url) ||
        !google_take_text(op, document, "audience", NULL, &state->audience) ||
        !google_take_text(op, document, "subject_token_type", NULL, &state->subject_type) ||
        !google_take_text(op, document, "workforce_pool_user_project", "", &state->user_project) ||
        !take_impersonation(op, document, NULL))
        return;
    state->basic = make_basic(op, document);
    if (state->basic)
        state->user_project = "";
    if (*state->user_project) {
        json_t *options = json_pack("{s:s}", "userProject", state->user_project);
        char *text = options ? json_dumps(options, JSON_COMPACT) : NULL;
        if (!text)
            abort();
        state->user_project = as_arena_strdup(&op->arena, text);
        free(text);
        json_decref(options);
    }
    begin_subject(op, answer_find(document, "credential_source"));
}

static void begin_document(struct as_cloud_op *op, const json_t *document, bool is_source)
{
    static const struct {
        const char *type;
        void (*begin)(struct as_cloud_op *op, const json_t *document);
        bool may_be_source;
    } kinds[] = {
        {"service_account", begin_service_account, true},
        {"authorized_user", begin_authorized_user, true},
        {"external_account", begin_external, false},
        {"impersonated_service_account", begin_impersonated, false},
    };
    const char *type = answer_text(document, "type");
    take_project(op, document);
    for (size_t i = 0; i < AS_ARRAY_SIZE(kinds); i++) {
        if (strcmp(kinds[i].type, type) == 0 && (kinds[i].may_be_source || !is_source)) {
            kinds[i].begin(op, document);
            return;
        }
    }
    as_cloud_op_fail(op, AS_CLOUD_OP_CONFIGURATION,
                     "%s: credentials of type \"%s\" are not supported%s",
                     google_get_state(op)->path, type, is_source ? " as `source_credentials`" : "");
}

/* Continues with the content of a credentials file of any kind. */
static void google_begin_document(struct as_cloud_op *op, const json_t *document)
{
    begin_document(op, document, false);
}

static void google_on_file(struct as_cloud_op *op)
{
    const struct google_search *state = google_get_state(op);
    json_error_t problem;
    const int number = op->error_number;
    const bool is_absent = number == ENOENT || number == ENOTDIR || number == EACCES;
    if (!op->content && is_absent && state->may_be_absent) { /* perhaps another user's home */
        as_credentials_not_here(as_credentials_get(op));
        return;
    }
    if (!op->content) {
        as_cloud_op_fail(op, AS_CLOUD_OP_CONFIGURATION, "%s: %s", state->path,
                         as_errno_get_text(number));
        return;
    }
    json_t *document = json_loadb(op->content, op->content_size, JSON_REJECT_DUPLICATES, &problem);
    if (json_is_object(document))
        google_begin_document(op, document);
    else
        as_cloud_op_fail(op, AS_CLOUD_OP_CONFIGURATION, "%s: not a JSON document of credentials",
                         state->path);
    answer_wipe(document);
    json_decref(document);
}

/* ---- the sources ---- */

static void google_begin_file(struct as_credentials_op *op, const char *path, bool may_be_absent)
{
    struct google_search *state = as_arena_alloc(&op->op.arena, 1, sizeof(*state));
    op->state = state;
    if (as_str_is_empty(path)) {
        as_credentials_not_here(op);
        return;
    }
    state->path = as_arena_strdup(&op->op.arena, path);
    state->may_be_absent = may_be_absent;
    as_cloud_op_read(&op->op, state->path, google_on_file);
}

static void begin_configured(struct as_credentials_op *op)
{
    google_begin_file(op, as_account_get(op->account, "credentials_file"), false);
}

static void google_begin_environment(struct as_credentials_op *op)
{
    google_begin_file(op, as_variable_find(&op->op, "GOOGLE_APPLICATION_CREDENTIALS"), false);
}

static void begin_well_known(struct as_credentials_op *op)
{
    const char *folder = as_variable_find(&op->op, "CLOUDSDK_CONFIG");
    const char *home = as_variable_find(&op->op, "HOME");
    const char *path = NULL;
    if (folder)
        path = as_cloud_op_print(&op->op, "%s/" WELL_KNOWN_FILE, folder);
    else if (home)
        path = as_cloud_op_print(&op->op, "%s/.config/gcloud/" WELL_KNOWN_FILE, home);
    google_begin_file(op, path, true);
}

const char *const google_files[] = {
    "$GOOGLE_APPLICATION_CREDENTIALS",
    "$CLOUDSDK_CONFIG/" WELL_KNOWN_FILE,
    "~/.config/gcloud/" WELL_KNOWN_FILE,
    NULL,
};

/* The file of an external account names the file with its own token. */
void google_read_names(const char *content, size_t size, as_provider_names_fn *on_name,
                       void *context)
{
    json_t *document = json_loadb(content, size, JSON_REJECT_DUPLICATES, NULL);
    const char *path = answer_text(document, "credential_source.file");
    if (*path)
        on_name(context, path, false);
    answer_wipe(document);
    json_decref(document);
}

/* ---- the metadata service ---- */

static void google_ask_metadata(struct as_cloud_op *op, const char *path, const char *operation,
                                as_cloud_op_response_fn *on_response)
{
    const char *host = as_variable_find(op, "GCE_METADATA_HOST");
    if (!host)
        host = as_variable_find(op, "GCE_METADATA_IP");
    if (!host)
        host = "metadata.google.internal";
    as_cloud_op_ask(op, "GET", "%s%s/computeMetadata/v1/%s", strstr(host, "://") ? "" : "http://",
                    host, path);
    as_cloud_op_header(op, "Metadata-Flavor: Google");
    op->request.is_plain = true;
    op->request.without_proxy = true;
    op->request.timeout_us = METADATA_US;
    as_cloud_op_send(op, operation, on_response);
}

/* Another server's answer is not a token. False after failing the op. */
static bool is_metadata_service(struct as_cloud_op *op)
{
    if (op->answer->outcome != AS_HTTP_ANSWERED ||
        strcmp(as_http_response_find(op->answer, "Metadata-Flavor"), "Google") == 0)
        return true;
    as_cloud_op_fail(op, AS_CLOUD_OP_CONFIGURATION,
                     "%s: this is not Google's metadata service: no `Metadata-Flavor: Google`",
                     op->request.url);
    return false;
}

/* The token is still good: groups may name the project. But it is not kept for long. */
static void google_on_metadata_project(struct as_cloud_op *op)
{
    struct as_provider_credentials *found = &as_credentials_get(op)->found;
    const as_wall_time soon = {as_time_add(op->now.us, WITHOUT_PROJECT_US)};
    char line[AS_CLOUD_OP_ID_SIZE] = "";
    if (is_metadata_service(op) && as_cloud_op_is_good(op))
        as_str_copy_line(op->answer->body, line, sizeof(line));
    if (*line)
        found->project = as_xstrdup(line);
    else if (!found->expires.set || found->expires.at.us > soon.us)
        found->expires = (as_maybe_time){true, soon};
    as_cloud_op_end(op);
}

static void google_on_metadata_token(struct as_cloud_op *op)
{
    const char *token;
    if (!is_metadata_service(op))
        return;
    if (op->answer->outcome == AS_HTTP_UNREACHABLE) {
        as_credentials_fail_unreached(as_credentials_get(op));
        return;
    }
    if (op->http_status == 404) {
        as_cloud_op_fail(op, AS_CLOUD_OP_CONFIGURATION,
                         "the metadata service has no service account for this machine or pod");
        return;
    }
    if (!google_take_token(op, &token))
        return;
    google_find(op, token);
    if (!as_credentials_get(op)->scope &&
        !as_account_get(as_credentials_get(op)->account, "project") &&
        !as_variable_find(op, "GOOGLE_CLOUD_PROJECT"))
        google_ask_metadata(op, "project/project-id", "metadata_project",
                            google_on_metadata_project);
}

static void google_begin_metadata(struct as_credentials_op *op)
{
    const char *scopes = op->scope ? as_cloud_op_print(&op->op, "?scopes=%s",
                                                       as_cloud_op_escaped(&op->op, op->scope))
                                   : "";
    google_ask_metadata(
        &op->op, as_cloud_op_print(&op->op, "instance/service-accounts/default/token%s", scopes),
        "metadata_token", google_on_metadata_token);
}

const struct as_credentials_source google_credentials[] = {
    {"credentials_file", begin_configured},
    {"GOOGLE_APPLICATION_CREDENTIALS", google_begin_environment},
    {"well-known file", begin_well_known},
    {"metadata service", google_begin_metadata},
    {0},
};
