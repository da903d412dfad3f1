/*
 * The gate: finds the credential, at once or later, explains what is wrong if there is none, and
 * stores its name with the exchange.
 *
 * A given credential decides: with a wrong token a valid certificate does not help. Expensive
 * checks are limited per address (auth_limit.h); each counts as a failure from its start until it
 * succeeds, so that many at once cannot bypass the limit. Cheap checks (comparing a token, a
 * malformed header) do not count: that would only block others at the address. Credentials that
 * were right lately are not delayed either.
 */
#include "auth.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <openssl/evp.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/log.h>
#include <alertscaler/base/str.h>
#include <alertscaler/base/throttle.h>

#include "auth_limit.h"
#include "auth_passwords.h"
#include "auth_review.h"
#include "auth_signature.h"
#include "auth_trust.h"
#include "http/reply.h"

#define HEADERS_MAX 256
#define BASIC_MAX   ((size_t)4 * (AS_PASSWORD_MAX + 512) / 3) /* of the base64 */

struct admission { /* stored with an exchange */
    struct as_auth *auth;
    struct as_http_exchange *exchange;
    const char *handler;
    enum as_permission permission;
    char *credential; /* "" until known */
    bool needs_signature;
    char *user, *hash; /* password's owner, and the hash it is checked against */
    struct as_password_wait *wait;
    struct as_review_wait *review;
    struct as_auth_digest digest; /* of the token that is being reviewed */
    bool has_cost;                /* an expensive check ran only for it, */
    bool is_counted;              /* and counts as a failure until it succeeds */
};

struct as_auth {
    struct as_auth_config config;
    struct as_credentials *credentials;
    struct as_auth_limit *limit;
    struct as_auth_trust *trust;
    struct as_reviewer *reviewer;
    struct as_passwords *passwords; /* created for the first check */
    /* refusals: a wrong password in a loop must fill neither log nor disk */
    struct as_throttle denied_log, denied_record;
    const char *denied_handler; /* of the last refusal */
    int denied_status;
};

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

static as_mono_time get_now(const struct as_auth *auth)
{
    return auth->config.clock->get_mono(auth->config.clock);
}

struct as_auth *as_auth_new(const struct as_auth_config *config)
{
    struct as_auth *auth = as_xcalloc(1, sizeof(*auth));
    auth->config = *config;
    auth->limit = as_auth_limit_new();
    auth->trust = as_auth_trust_new();
    auth->denied_log = AS_THROTTLE_INIT(AS_THROTTLE_EVERY_US, log_denied, auth);
    auth->denied_record = AS_THROTTLE_INIT(AS_THROTTLE_EVERY_US, record_denied, auth);
    return auth;
}

struct as_auth *as_auth_free(struct as_auth *auth)
{
    if (!auth)
        return NULL;
    as_throttle_end(&auth->denied_log, get_now(auth));
    as_reviewer_free(auth->reviewer);
    as_passwords_free(auth->passwords);
    as_auth_limit_free(auth->limit);
    as_auth_trust_free(auth->trust);
    as_credentials_free(auth->credentials);
    free(auth);
    return NULL;
}

struct as_credentials *as_auth_swap_credentials(struct as_auth *auth,
                                                struct as_credentials *credentials)
{
    struct as_credentials *old = auth->credentials;
    auth->credentials = credentials;
    return old;
}

struct as_reviewer *as_auth_swap_reviewer(struct as_auth *auth, struct as_reviewer *reviewer)
{
    struct as_reviewer *old = auth->reviewer;
    auth->reviewer = reviewer;
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
    free(admission);
}

const char *as_auth_get_credential(const struct as_http_exchange *exchange)
{
    const struct admission *admission = as_http_exchange_get_data(exchange);
    return admission ? admission->credential : "";
}

static void deny(struct admission *admission, int status, const char *problem)
{
    struct as_auth *auth = admission->auth;
    const char *remote = as_http_exchange_get_remote(admission->exchange);
    auth->denied_handler = admission->handler;
    auth->denied_status = status;
    as_throttle_add(&auth->denied_log, remote, problem, get_now(auth));
    as_throttle_add(&auth->denied_record, remote, problem, get_now(auth));
}

void as_auth_look(struct as_auth *auth)
{
    as_throttle_look(&auth->denied_log, get_now(auth));
    as_throttle_look(&auth->denied_record, get_now(auth));
    if (auth->reviewer)
        as_reviewer_look(auth->reviewer);
}

void as_auth_conclude(struct as_auth *auth)
{
    as_throttle_end(&auth->denied_log, get_now(auth));
    as_throttle_end(&auth->denied_record, get_now(auth));
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

static void refuse(struct admission *admission, int status, const char *problem)
{
    struct as_auth *auth = admission->auth;
    const struct as_credential_counts counts = as_credentials_count(auth->credentials);
    const bool is_basic = counts.users > 0;
    const bool is_bearer = counts.tokens > 0 || counts.reviews > 0 || !is_basic;
    char headers[HEADERS_MAX] = "";
    if (status == 401)
        (void)snprintf(headers, sizeof(headers), "%s%s",
                       is_bearer ? "WWW-Authenticate: Bearer realm=\"alertscaler\"\r\n" : "",
                       is_basic ? "WWW-Authenticate: Basic realm=\"alertscaler\"\r\n" : "");
    deny(admission, status, problem);
    reply(admission->exchange, status, headers[0] ? headers : NULL, problem);
}

static void count_failure(struct admission *admission)
{
    struct as_auth *auth = admission->auth;
    admission->has_cost = true;
    if (!admission->is_counted)
        as_auth_limit_add_failure(auth->limit, as_http_exchange_get_remote(admission->exchange),
                                  get_now(auth));
    admission->is_counted = true;
}

static void take_back_failure(struct admission *admission)
{
    if (admission->is_counted)
        as_auth_limit_take_back(admission->auth->limit,
                                as_http_exchange_get_remote(admission->exchange));
    admission->is_counted = false;
}

/* An invalid credential counts against its address only if checking it was expensive. A cheap
 * failure must not block others at the address. */
static void refuse_wrong(struct admission *admission, const char *problem)
{
    if (admission->has_cost)
        count_failure(admission);
    refuse(admission, 401, problem);
}

static void refuse_missing(struct admission *admission)
{
    const struct as_credential_counts counts = as_credentials_count(admission->auth->credentials);
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
    refuse(admission, 401, problem);
}

/* Too much to check now: the client must retry. */
static void refuse_busy(struct admission *admission, int64_t wait_us)
{
    char headers[HEADERS_MAX];
    const int64_t seconds = wait_us / AS_US_PER_S + 1;
    deny(admission, 503, "too many wrong credentials to check this one");
    (void)snprintf(headers, sizeof(headers), "Retry-After: %lld\r\n", (long long)seconds);
    reply(admission->exchange, 503, headers,
          "there were too many wrong credentials to check this one now: send it again");
}

static enum as_http_admission grant(struct admission *admission,
                                    const struct as_credential *credential)
{
    take_back_failure(admission);
    if (credential->permissions & 1U << admission->permission) {
        free(admission->credential);
        admission->credential = as_xstrdup(credential->name);
        return AS_HTTP_ADMITTED;
    }
    char problem[AS_ERROR_SIZE];
    (void)snprintf(problem, sizeof(problem), "the credential `%s` lacks the permission `%s`",
                   credential->name, as_permission_words[admission->permission]);
    refuse(admission, 403, problem);
    return AS_HTTP_REPLIED;
}

/* Passwords */

static void on_password(void *context, bool is_right)
{
    struct admission *admission = context;
    admission->wait = NULL;
    /* searched again: credentials may have been reloaded */
    const struct as_credential_user *user =
        as_credentials_find_user(admission->auth->credentials, admission->user);
    if (user && !as_str_equal(user->hash, admission->hash)) {
        take_back_failure(admission);
        reply(admission->exchange, 503, "Retry-After: 1\r\n",
              "the password was changed while it was checked: send it again");
    } else if (!user || !is_right) {
        refuse_wrong(admission, "user or password is wrong");
    } else if (grant(admission, &user->credential) == AS_HTTP_ADMITTED) {
        as_http_exchange_admit(admission->exchange);
    }
}

static enum as_http_admission check_password(struct admission *admission, const char *name,
                                             const char *password)
{
    struct as_auth *auth = admission->auth;
    const struct as_credential_user *user = as_credentials_find_user(auth->credentials, name);
    const char *hash = user ? user->hash : NULL;
    if (!auth->passwords)
        auth->passwords = as_passwords_new(auth->config.base);
    if (user && as_passwords_remember(auth->passwords, name, hash, password))
        return grant(admission, &user->credential);
    const char *remote = as_http_exchange_get_remote(admission->exchange);
    const int64_t wait = as_auth_limit_get_wait(auth->limit, remote, get_now(auth));
    if (wait > 0) {
        refuse_busy(admission, wait);
        return AS_HTTP_REPLIED;
    }
    admission->user = as_xstrdup(name);
    admission->hash = hash ? as_xstrdup(hash) : NULL;
    const struct as_password_guess guess = {
        .user = name,
        .hash = hash,
        .like = as_credentials_find_dearest_hash(auth->credentials),
        .password = password,
        .is_suspect = as_auth_limit_has_failures(auth->limit, remote, get_now(auth)),
    };
    switch (as_passwords_check(auth->passwords, &guess, on_password, admission, &admission->wait)) {
    case AS_PASSWORD_RIGHT: return grant(admission, &user->credential);
    case AS_PASSWORD_PENDING:
        if (as_password_wait_is_first(admission->wait))
            count_failure(admission);
        return AS_HTTP_PENDING;
    case AS_PASSWORD_WRONG: refuse_wrong(admission, "user or password is wrong"); break;
    case AS_PASSWORD_BUSY: refuse_busy(admission, 0); break;
    }
    return AS_HTTP_REPLIED;
}

/* Decodes base64 "user:password"; false if malformed. */
static bool decode_basic(const char *given, unsigned char *text_out, size_t *size_out)
{
    const size_t size = strlen(given);
    if (size == 0 || size % 4 != 0 || size > BASIC_MAX)
        return false;
    const int decoded = EVP_DecodeBlock(text_out, (const unsigned char *)given, (int)size);
    if (decoded < 0)
        return false;
    const size_t padding = (size_t)(given[size - 1] == '=') + (size_t)(given[size - 2] == '=');
    *size_out = (size_t)decoded - padding;
    text_out[*size_out] = '\0';
    return strlen((const char *)text_out) == *size_out && strchr((const char *)text_out, ':');
}

static enum as_http_admission check_basic(struct admission *admission, const char *given)
{
    unsigned char text[BASIC_MAX + 4];
    size_t size = 0;
    enum as_http_admission result = AS_HTTP_REPLIED;
    if (decode_basic(given, text, &size)) {
        char *password = strchr((char *)text, ':');
        *password++ = '\0';
        result = check_password(admission, (const char *)text, password);
    } else {
        refuse_wrong(admission, "the Authorization header is not that of a user and a password");
    }
    explicit_bzero(text, sizeof(text));
    return result;
}

/* The kinds */

/* The API server's answer about the token's owner. */
static enum as_http_admission use_review(struct admission *admission,
                                         const struct as_reviewed *reviewed)
{
    struct as_auth *auth = admission->auth;
    const struct as_credential *found =
        reviewed->authenticated
            ? as_credentials_find_review(auth->credentials, reviewed->user, reviewed->groups,
                                         reviewed->group_count)
            : NULL;
    if (found) {
        as_auth_trust_add(auth->trust, &admission->digest, get_now(auth));
        return grant(admission, found);
    }
    as_auth_trust_remove(auth->trust, &admission->digest);
    refuse_wrong(admission, reviewed->authenticated
                                ? "the token's owner is not among receiver.token_review.allow"
                                : "the bearer token is none that is known");
    return AS_HTTP_REPLIED;
}

static void on_review(void *context, const struct as_reviewed *reviewed)
{
    struct admission *admission = context;
    admission->review = NULL;
    if (!reviewed) {
        take_back_failure(admission);
        reply(admission->exchange, 503, AS_REPLY_LATER,
              "the API server could not be asked whose token that is: send it again");
    } else if (use_review(admission, reviewed) == AS_HTTP_ADMITTED) {
        as_http_exchange_admit(admission->exchange);
    }
}

static enum as_http_admission review(struct admission *admission, const char *given)
{
    struct as_auth *auth = admission->auth;
    const struct as_reviewed *known = as_reviewer_find(auth->reviewer, given);
    admission->digest = as_auth_trust_digest(given);
    if (known)
        return use_review(admission, known);
    const char *remote = as_http_exchange_get_remote(admission->exchange);
    const bool is_trusted = as_auth_trust_has(auth->trust, &admission->digest, get_now(auth));
    const int64_t wait =
        is_trusted ? 0 : as_auth_limit_get_wait(auth->limit, remote, get_now(auth));
    if (wait == 0)
        admission->review =
            as_reviewer_ask(auth->reviewer, given, is_trusted, on_review, admission);
    if (admission->review) {
        admission->has_cost = as_review_wait_is_first(admission->review);
        if (admission->has_cost && !is_trusted)
            count_failure(admission);
        return AS_HTTP_PENDING;
    }
    refuse_busy(admission, wait);
    return AS_HTTP_REPLIED;
}

/* Syntax of RFC 6750: letters, digits and -._~+/, then `=`. All tokens of clusters have it. */
static bool is_token(const char *given)
{
    const size_t size = strspn(given, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                      "0123456789-._~+/");
    const size_t whole = size + strspn(given + size, "=");
    return size > 0 && given[whole] == '\0' && whole <= AS_TOKEN_MAX;
}

static enum as_http_admission check_bearer(struct admission *admission, const char *given)
{
    struct as_auth *auth = admission->auth;
    const struct as_credential *found =
        as_credentials_find_token(auth->credentials, given, get_now(auth));
    if (found)
        return grant(admission, found);
    if (auth->reviewer && is_token(given))
        return review(admission, given);
    refuse_wrong(admission, "the bearer token is not one of receiver.tokens");
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
        return check_bearer(admission, given);
    given = find_given(authorization, "Basic");
    if (given && counts.users > 0)
        return check_basic(admission, given);
    if (admission->permission == AS_PERMISSION_NOTIFY && find_signature(auth, exchange)) {
        admission->needs_signature = true;
        return AS_HTTP_ADMITTED;
    }
    const char *subject =
        counts.certificates > 0 ? as_http_exchange_find_client_name(exchange) : NULL;
    const struct as_credential *certificate =
        subject ? as_credentials_find_certificate(auth->credentials, subject) : NULL;
    if (certificate)
        return grant(admission, certificate);
    refuse_missing(admission);
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

enum as_http_admission as_auth_admit(struct as_auth *auth, struct as_http_exchange *exchange,
                                     const char *handler, enum as_permission permission)
{
    struct admission *admission = as_xcalloc(1, sizeof(*admission));
    *admission = (struct admission){.auth = auth,
                                    .exchange = exchange,
                                    .handler = handler,
                                    .permission = permission,
                                    .credential = as_xstrdup("")};
    as_http_exchange_set_data(exchange, admission, admission_free);
    const char *obstacle = find_obstacle(auth, permission);
    if (obstacle) {
        refuse(admission, 403, obstacle);
        return AS_HTTP_REPLIED;
    }
    return as_credentials_is_empty(auth->credentials) ? AS_HTTP_ADMITTED : identify(admission);
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
            return grant(admission, &signature->credential) == AS_HTTP_ADMITTED;
    }
    refuse_wrong(admission, error.text[0] ? error.text : "no signature is expected any more");
    return false;
}
