/*
 * The gate: finds the credential, at once or later, explains what is wrong if there is none, and
 * stores its name with the exchange.
 *
 * A given credential decides: with a wrong token neither a session nor a valid certificate helps.
 */
#include "auth_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <openssl/sha.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/log.h>
#include <alertscaler/base/str.h>

#include "auth_signature.h"
#include <alertscaler/auth/reply.h>

#define HEADERS_MAX 256

static bool log_denied(const void *context, const struct as_throttle *denied)
{
    const struct as_auth *auth = context;
    as_log(AS_LOG_WARN, "request denied", AS_F("remote", denied->remote),
           AS_F("handler", auth->denied_handler), AS_F("error", denied->error),
           AS_FI("count", denied->count));
    return true;
}

static bool record_denied(const void *context, const struct as_throttle *denied)
{
    const struct as_auth *auth = context;
    const struct as_denied_record record = {
        .remote = denied->remote,
        .handler = auth->denied_handler,
        .error = denied->error,
        .status = auth->denied_status,
        .count = denied->count,
    };
    return auth->config.denied(auth->config.context, &record);
}

as_mono_time auth_now(const struct as_auth *auth)
{
    return auth->config.clock->get_mono(auth->config.clock);
}

struct as_auth *as_auth_new(const struct as_auth_config *config)
{
    struct as_auth *auth = as_xcalloc(1, sizeof(*auth));
    auth->config = *config;
    auth->limit = as_auth_limit_new();
    auth->trust = as_auth_trust_new();
    auth->sessions = as_sessions_new();
    as_form_key_init(&auth->form_key);
    auth->denied_log = AS_THROTTLE_INIT(AS_THROTTLE_EVERY_US, log_denied, auth);
    auth->denied_record = AS_THROTTLE_INIT(AS_THROTTLE_EVERY_US, record_denied, auth);
    return auth;
}

struct as_auth *as_auth_free(struct as_auth *auth)
{
    if (!auth)
        return NULL;
    as_throttle_end(&auth->denied_log, auth_now(auth));
    as_reviewer_free(auth->reviewer);
    as_passwords_free(auth->passwords);
    as_auth_limit_free(auth->limit);
    as_auth_trust_free(auth->trust);
    as_sessions_free(auth->sessions);
    explicit_bzero(&auth->form_key, sizeof(auth->form_key));
    as_credentials_free(auth->credentials);
    free(auth);
    return NULL;
}

struct as_credentials *as_auth_swap_credentials(struct as_auth *auth,
                                                struct as_credentials *credentials)
{
    struct as_credentials *old = auth->credentials;
    auth->credentials = credentials;
    auth_end_sessions(auth);
    return old;
}

struct as_reviewer *as_auth_swap_reviewer(struct as_auth *auth, struct as_reviewer *reviewer)
{
    struct as_reviewer *old = auth->reviewer;
    auth->reviewer = reviewer;
    auth_end_sessions(auth);
    return old;
}

const struct as_credentials *as_auth_get_credentials(const struct as_auth *auth)
{
    return auth->credentials;
}

/* The exchange has ended: cancels its password check or token review. */
static void admission_free(void *data)
{
    struct admission *admission = data;
    if (admission->wait)
        as_password_wait_cancel(admission->wait);
    if (admission->review)
        as_review_wait_cancel(admission->review);
    free(admission->credential);
    free(admission->user);
    if (admission->hash)
        explicit_bzero(admission->hash, strlen(admission->hash));
    free(admission->hash);
    as_wipe_free(admission->login.token);
    free(admission->login.to);
    explicit_bzero(&admission->identity, sizeof(admission->identity));
    free(admission);
}

struct admission *auth_admission_new(struct as_auth *auth, struct as_http_exchange *exchange,
                                     const char *handler, enum as_permission permission)
{
    struct admission *admission = as_xcalloc(1, sizeof(*admission));
    *admission = (struct admission){.auth = auth,
                                    .exchange = exchange,
                                    .handler = handler,
                                    .permission = permission,
                                    .credential = as_xstrdup("")};
    as_http_exchange_set_data(exchange, admission, admission_free);
    return admission;
}

const char *as_auth_get_credential(const struct as_http_exchange *exchange)
{
    const struct admission *admission = as_http_exchange_get_data(exchange);
    return admission ? admission->credential : "";
}

int as_auth_check_whole(const struct as_auth *auth, const struct as_http_exchange *exchange,
                        struct as_error *error)
{
    const char *name = as_auth_get_credential(exchange);
    size_t count = 0;
    const struct as_scope *scopes = as_credentials_get_scopes(auth->credentials, &count);
    if (as_scope_is_whole(scopes, count, name))
        return 0;
    as_error_set(error,
                 "the credential `%s` is narrowed by `rules` or `targets`: only a credential "
                 "without them may do what concerns all targets",
                 name);
    return -EPERM;
}

void as_auth_note_refusal(struct as_auth *auth, const struct as_http_exchange *exchange,
                          const char *handler, int status, const char *problem)
{
    const char *remote = as_http_exchange_get_remote(exchange);
    auth->denied_handler = handler;
    auth->denied_status = status;
    as_throttle_add(&auth->denied_log, remote, problem, auth_now(auth));
    as_throttle_add(&auth->denied_record, remote, problem, auth_now(auth));
}

static void deny(const struct admission *admission, int status, const char *problem)
{
    as_auth_note_refusal(admission->auth, admission->exchange, admission->handler, status, problem);
}

void as_auth_look(struct as_auth *auth)
{
    as_throttle_look(&auth->denied_log, auth_now(auth));
    as_throttle_look(&auth->denied_record, auth_now(auth));
    auth_end_sessions(auth);
    if (auth->reviewer)
        as_reviewer_look(auth->reviewer);
}

void as_auth_conclude(struct as_auth *auth)
{
    as_throttle_end(&auth->denied_log, auth_now(auth));
    as_throttle_end(&auth->denied_record, auth_now(auth));
}

/* Answers */

static void reply(struct as_http_exchange *exchange, int status, const char *headers,
                  const char *problem)
{
    if (as_str_starts_with(as_http_exchange_get_path(exchange), "/api/"))
        as_reply_error(exchange, status, headers, "%s", problem);
    else
        as_reply_text(exchange, status, headers, "%s", problem);
}

void auth_reply(struct admission *admission, int status, const char *headers, const char *problem)
{
    const struct auth_login *login = &admission->login;
    const struct as_login_outcome outcome = {status, headers, problem, login->to};
    if (login->done)
        login->done(login->context, admission->exchange, &outcome);
    else
        reply(admission->exchange, status, headers, problem);
}

void as_auth_refuse(struct as_auth *auth, struct as_http_exchange *exchange, const char *handler,
                    int status, const char *problem)
{
    as_auth_note_refusal(auth, exchange, handler, status, problem);
    reply(exchange, status, NULL, problem);
}

void auth_go_on(struct admission *admission)
{
    if (admission->login.done)
        auth_begin_session(admission);
    else
        as_http_exchange_admit(admission->exchange);
}

void auth_refuse(struct admission *admission, int status, const char *problem)
{
    struct as_auth *auth = admission->auth;
    const struct as_credential_counts counts = as_credentials_count(auth->credentials);
    const bool is_basic = counts.users > 0;
    const bool is_bearer = counts.tokens > 0 || counts.reviews > 0 || !is_basic;
    char headers[HEADERS_MAX] = "";
    if (status == 401 && !admission->login.done)
        (void)snprintf(headers, sizeof(headers), "%s%s",
                       is_bearer ? "WWW-Authenticate: Bearer realm=\"alertscaler\"\r\n" : "",
                       is_basic ? "WWW-Authenticate: Basic realm=\"alertscaler\"\r\n" : "");
    deny(admission, status, problem);
    auth_reply(admission, status, headers[0] ? headers : NULL, problem);
}

void auth_count_failure(struct admission *admission)
{
    struct as_auth *auth = admission->auth;
    admission->has_cost = true;
    if (!admission->is_counted)
        as_auth_limit_add_failure(auth->limit, as_http_exchange_get_remote(admission->exchange),
                                  auth_now(auth));
    admission->is_counted = true;
}

void auth_take_back_failure(struct admission *admission)
{
    if (admission->is_counted)
        as_auth_limit_take_back(admission->auth->limit,
                                as_http_exchange_get_remote(admission->exchange));
    admission->is_counted = false;
}

/* An invalid credential counts against its address only if checking it was expensive. A cheap
 * failure must not block others at the address. */
void auth_refuse_wrong(struct admission *admission, const char *problem)
{
    if (admission->has_cost)
        auth_count_failure(admission);
    auth_refuse(admission, 401, problem);
}

void auth_refuse_missing(struct admission *admission)
{
    struct as_auth *auth = admission->auth;
    const struct as_credential_counts counts = as_credentials_count(auth->credentials);
    if (admission->takes_session && auth->config.offer_login &&
        auth->config.offer_login(auth->config.context, admission->exchange))
        return;
    const struct {
        size_t count;
        const char *what;
    } kinds[] = {
        {counts.tokens + counts.reviews, "a bearer token (authorization.credentials_file)"},
        {counts.users, "a user with password (basic_auth)"},
        {counts.certificates, "a client certificate (tls_config.cert_file)"},
        {admission->permission == AS_PERMISSION_NOTIFY ? counts.signatures : 0,
         "a signature over the body (Grafana)"},
    };
    char problem[AS_ERROR_SIZE] = "";
    size_t size = 0;
    for (size_t i = 0; i < AS_ARRAY_SIZE(kinds); i++) {
        if (kinds[i].count > 0)
            size += (size_t)snprintf(problem + size, sizeof(problem) - size, "%s%s",
                                     size > 0 ? ", or " : "", kinds[i].what);
    }
    (void)snprintf(problem + size, sizeof(problem) - size, "%s",
                   size > 0 ? " is needed" : "no credential may do this");
    auth_refuse(admission, 401, problem);
}

/* Too much to check now: the client must retry. */
void auth_refuse_busy(struct admission *admission, int64_t wait_us)
{
    char headers[HEADERS_MAX];
    const int64_t seconds = wait_us / AS_US_PER_S + 1;
    deny(admission, 503, "too many wrong credentials to check this one");
    (void)snprintf(headers, sizeof(headers), "Retry-After: %lld\r\n", (long long)seconds);
    auth_reply(admission, 503, headers,
               "there were too many wrong credentials to check this one now: send it again");
}

/* Another one when the credential's secret changes. */
static struct as_digest get_identity(const struct as_credential *credential)
{
    static const struct as_digest none = {0};
    struct as_digest identity;
    const size_t size = strlen(credential->name);
    AS_CLEANUP(as_buf_wipe) struct as_buf text = AS_BUF_INIT(sizeof(none.bytes) + size);
    as_buf_append(&text, (credential->secret ? credential->secret : &none)->bytes,
                  sizeof(none.bytes));
    as_buf_append(&text, credential->name, size);
    SHA256((const unsigned char *)text.data, text.size, identity.bytes);
    return identity;
}

static void note_narrowed(struct admission *admission)
{
    size_t count;
    const struct as_scope *scopes = as_credentials_get_scopes(admission->auth->credentials, &count);
    if (!as_scope_is_whole(scopes, count, admission->credential))
        as_http_exchange_set_sender(admission->exchange, admission->credential);
}

enum as_http_admission auth_grant(struct admission *admission,
                                  const struct as_credential *credential)
{
    auth_take_back_failure(admission);
    if (credential->permissions & 1U << admission->permission) {
        free(admission->credential);
        admission->credential = as_xstrdup(credential->name);
        note_narrowed(admission);
        admission->may_order = admission->auth->config.enable_admin_api &&
                               credential->permissions & 1U << AS_PERMISSION_ADMIN;
        if (!admission->is_session)
            admission->identity = get_identity(credential);
        return AS_HTTP_ADMITTED;
    }
    char problem[AS_ERROR_SIZE];
    (void)snprintf(problem, sizeof(problem), "the credential `%s` lacks the permission `%s`",
                   credential->name, as_permission_words[admission->permission]);
    auth_refuse(admission, 403, problem);
    return AS_HTTP_REPLIED;
}

/* The text after the scheme; NULL: another scheme. */
static const char *find_given(const char *authorization, const char *scheme)
{
    const size_t size = strlen(scheme);
    if (!authorization || strncasecmp(authorization, scheme, size) != 0 ||
        authorization[size] != ' ')
        return NULL;
    return authorization + size + strspn(authorization + size, " ");
}

/* The first configured signature whose header is present; NULL: none. */
static struct as_credential_signature *find_signature(const struct as_auth *auth,
                                                      const struct as_http_exchange *exchange)
{
    const size_t count = as_credentials_count(auth->credentials).signatures;
    for (size_t i = 0; i < count; i++) {
        struct as_credential_signature *signature =
            as_credentials_get_signature(auth->credentials, i);
        if (as_http_exchange_find_header(exchange, signature->header))
            return signature;
    }
    return NULL;
}

static enum as_http_admission identify(struct admission *admission)
{
    struct as_auth *auth = admission->auth;
    struct as_http_exchange *exchange = admission->exchange;
    const struct as_credential_counts counts = as_credentials_count(auth->credentials);
    const char *authorization = as_http_exchange_find_header(exchange, "Authorization");
    const char *given = find_given(authorization, "Bearer");
    if (given && counts.tokens + counts.reviews > 0)
        return auth_check_bearer(admission, given);
    given = find_given(authorization, "Basic");
    if (given && counts.users > 0)
        return auth_check_basic(admission, given);
    if (admission->permission == AS_PERMISSION_NOTIFY && find_signature(auth, exchange)) {
        admission->needs_signature = true;
        return AS_HTTP_ADMITTED;
    }
    const struct as_session *session =
        admission->takes_session && !authorization ? auth_find_session(auth, exchange) : NULL;
    if (session)
        return auth_use_session(admission, session);
    const char *subject =
        counts.certificates > 0 ? as_http_exchange_find_client_name(exchange) : NULL;
    const struct as_credential *certificate =
        subject ? as_credentials_find_certificate(auth->credentials, subject) : NULL;
    if (certificate)
        return auth_grant(admission, certificate);
    auth_refuse_missing(admission);
    return AS_HTTP_REPLIED;
}

/* Why nobody can have the permission; NULL: somebody can. */
static const char *find_obstacle(const struct as_auth *auth, enum as_permission permission)
{
    if (permission != AS_PERMISSION_ADMIN)
        return NULL;
    if (!auth->config.enable_admin_api)
        return "the admin API is not enabled: start with --web.enable-admin-api";
    if (!as_credentials_has_permission(auth->credentials, AS_PERMISSION_ADMIN))
        return "the admin API needs a credential of its own: give one in `receiver`, for example "
               "of receiver.tokens, `permissions: [admin]`";
    return NULL;
}

static enum as_http_admission admit(struct as_auth *auth, struct as_http_exchange *exchange,
                                    const char *handler, enum as_permission permission,
                                    bool takes_session)
{
    struct admission *admission = auth_admission_new(auth, exchange, handler, permission);
    admission->takes_session = takes_session;
    const char *obstacle = find_obstacle(auth, permission);
    if (obstacle) {
        auth_refuse(admission, 403, obstacle);
        return AS_HTTP_REPLIED;
    }
    return as_credentials_is_empty(auth->credentials) ? AS_HTTP_ADMITTED : identify(admission);
}

enum as_http_admission as_auth_admit(struct as_auth *auth, struct as_http_exchange *exchange,
                                     const char *handler, enum as_permission permission)
{
    return admit(auth, exchange, handler, permission, permission == AS_PERMISSION_READ);
}

enum as_http_admission as_auth_admit_form(struct as_auth *auth, struct as_http_exchange *exchange,
                                          const char *handler, enum as_permission permission)
{
    return admit(auth, exchange, handler, permission, true);
}

bool as_auth_verify_body(struct as_auth *auth, struct as_http_exchange *exchange)
{
    struct admission *admission = as_http_exchange_get_data(exchange);
    struct as_error error = AS_ERROR_INIT;
    if (!admission || !admission->needs_signature)
        return true;
    const size_t count = as_credentials_count(auth->credentials).signatures;
    struct as_signed_request request = {0};
    request.body = as_http_exchange_get_body(exchange, &request.body_size);
    for (size_t i = 0; i < count; i++) { /* several may use the same header */
        struct as_credential_signature *signature =
            as_credentials_get_signature(auth->credentials, i);
        request.signature = as_http_exchange_find_header(exchange, signature->header);
        request.timestamp =
            signature->timestamp_header
                ? as_http_exchange_find_header(exchange, signature->timestamp_header)
                : NULL;
        if (request.signature &&
            as_signature_check(signature, &request, auth->config.clock, &error) == 0)
            return auth_grant(admission, &signature->credential) == AS_HTTP_ADMITTED;
    }
    auth_refuse_wrong(admission, error.text[0] ? error.text : "no signature is expected any more");
    return false;
}
