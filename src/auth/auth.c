/*
 * The gate: one struct for all handlers, with an admission for each exchange. It finds the
 * credential of a request, at once or later, explains what is wrong if there is none, and stores
 * its name with the exchange.
 *
 * A given credential decides: with a wrong token neither a session nor a valid certificate helps.
 * The person whom the proxy reports counts where sessions count, and before them.
 *
 * Expensive checks are limited per address (auth_limit.h); each counts as a failure from its start
 * until it succeeds, so that many at once cannot bypass the limit. Cheap checks (comparing a token,
 * a malformed header) do not count: that would only block others at the address. Credentials that
 * were right lately are not delayed either.
 *
 * Not here: the credentials (credentials.h), the checks of passwords (auth_passwords.h), and the
 * reviews of tokens (auth_review.h).
 */
#include <alertscaler/auth/auth.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <openssl/evp.h>
#include <openssl/sha.h>

#include <alertscaler/auth/auth_passwords.h>
#include <alertscaler/auth/auth_review.h>
#include <alertscaler/auth/browser.h>
#include <alertscaler/auth/reply.h>
#include <alertscaler/base/address.h>
#include <alertscaler/base/alloc.h>
#include <alertscaler/base/encode.h>
#include <alertscaler/base/log.h>
#include <alertscaler/base/safe_text.h>
#include <alertscaler/base/str.h>
#include <alertscaler/base/throttle.h>
#include <alertscaler/model/scope.h>

#include "auth_limit.h"
#include "auth_signature.h"
#include "session.h"

struct auth_login { /* how a login is answered */
    as_login_fn *done;
    void *context;
    bool is_local;
    char *to;
    char *token; /* for the session, if the API server must be asked about it; to be wiped */
};

struct admission { /* stored with an exchange */
    struct as_auth *auth;
    struct as_http_exchange *exchange;
    const char *handler;
    enum as_permission permission;
    bool takes_session;
    bool is_repeat;            /* by the script of a page, not by a person */
    char *credential;          /* "" until known */
    bool may_order;            /* it has the permission `admin`, and that API is enabled */
    struct as_digest identity; /* of the session, or of the credential */
    bool is_session;
    struct auth_login login; /* done NULL: no login */
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
    struct as_sessions *sessions;
    struct as_form_key form_key;
    /* refusals: a wrong password in a loop must fill neither log nor disk */
    struct as_throttle denied_log, denied_record;
    struct as_throttle foreign_log; /* headers of the proxy that come from other peers */
    const char *denied_handler;     /* of the last refusal */
    int denied_status;
};

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

static bool log_foreign(const void *context, const struct as_throttle *foreign)
{
    as_log(AS_LOG_WARN, "headers of receiver.proxy ignored: they do not come from the proxy",
           AS_F("remote", foreign->remote), AS_F("header", foreign->error),
           AS_FI("count", foreign->count));
    return true;
}

static as_mono_time auth_now(const struct as_auth *auth)
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
    auth->foreign_log = AS_THROTTLE_INIT(AS_THROTTLE_EVERY_US, log_foreign, auth);
    return auth;
}

struct as_auth *as_auth_free(struct as_auth *auth)
{
    if (!auth)
        return NULL;
    as_throttle_end(&auth->denied_log, auth_now(auth));
    as_throttle_end(&auth->foreign_log, auth_now(auth));
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

/* Sessions: a browser logs in once, and its cookie then stands for the credential.
 *
 * Over TLS the cookie has the prefix `__Host-`, so that neither another host of the domain nor a
 * page without TLS can set it. From this machine without TLS it cannot: such a session has another
 * cookie, and counts only for requests from this machine. */

#define COOKIE       "__Host-alertscaler"
#define LOCAL_COOKIE "alertscaler"

static void print_cookie(bool is_local, const char *id, char cookie_out[AS_COOKIE_SIZE])
{
    (void)snprintf(
        cookie_out, AS_COOKIE_SIZE, "Set-Cookie: %s=%s; Path=/; HttpOnly; SameSite=Strict%s%s\r\n",
        is_local ? LOCAL_COOKIE : COOKIE, id, is_local ? "" : "; Secure", *id ? "" : "; Max-Age=0");
}

/* The value of the only cookie with this name. Two may come from two owners: neither counts. */
static bool find_cookie(const struct as_http_exchange *exchange, const char *name,
                        char id_out[AS_SESSION_ID_SIZE])
{
    const char *at = as_http_exchange_find_header(exchange, "Cookie");
    const size_t name_size = strlen(name);
    size_t count = 0;
    while (at && *at) {
        at += strspn(at, " ;");
        const size_t size = strcspn(at, ";");
        const bool is_it =
            size > name_size && strncmp(at, name, name_size) == 0 && at[name_size] == '=';
        if (is_it && size == name_size + AS_SESSION_ID_SIZE) {
            memcpy(id_out, at + name_size + 1, AS_SESSION_ID_SIZE - 1);
            id_out[AS_SESSION_ID_SIZE - 1] = '\0';
        }
        count += is_it;
        at += size;
    }
    return count == 1;
}

static const struct as_session *auth_find_session(struct as_auth *auth,
                                                  const struct as_http_exchange *exchange,
                                                  bool is_use)
{
    static const char *const names[] = {COOKIE, LOCAL_COOKIE};
    const bool is_local = as_browser_is_local(exchange);
    for (size_t i = 0; i < (is_local ? AS_ARRAY_SIZE(names) : 1); i++) {
        char id[AS_SESSION_ID_SIZE] = "";
        const struct as_session *session =
            find_cookie(exchange, names[i], id)
                ? as_sessions_find(auth->sessions, id, auth_now(auth), is_use)
                : NULL;
        explicit_bzero(id, sizeof(id));
        if (session && session->owner.is_local == (i > 0))
            return session;
    }
    return NULL;
}

/* The session's credential, if it is still the one that logged in; NULL: it is not. */
static const struct as_credential *auth_find_credential(const struct as_auth *auth,
                                                        const struct as_session_owner *owner)
{
    const struct as_credential *found =
        as_credentials_find_name(auth->credentials, owner->credential, auth_now(auth));
    return found && as_str_equal_constant_time(found->secret->bytes, owner->secret.bytes,
                                               sizeof(owner->secret.bytes))
               ? found
               : NULL;
}

static bool auth_keeps_session(void *context, const struct as_session_owner *owner)
{
    const struct as_auth *auth = context;
    return owner->token ? auth->reviewer != NULL : auth_find_credential(auth, owner) != NULL;
}

/* Ends the sessions that are over, or of other credentials. */
static void auth_end_sessions(struct as_auth *auth)
{
    if (auth->credentials)
        as_sessions_expire(auth->sessions, auth_now(auth), auth_keeps_session, auth);
}

/* Answers the login. */
static void auth_begin_session(struct admission *admission)
{
    struct as_auth *auth = admission->auth;
    const struct auth_login *login = &admission->login;
    const struct as_credential *credential =
        login->token
            ? NULL
            : as_credentials_find_name(auth->credentials, admission->credential, auth_now(auth));
    struct as_session_owner owner = {
        .credential = admission->credential, .token = login->token, .is_local = login->is_local};
    if (credential)
        owner.secret = *credential->secret;
    const struct as_session *old = auth_find_session(auth, admission->exchange, true);
    if (old) {
        const struct as_digest digest = old->digest;
        as_sessions_end(auth->sessions, &digest);
    }
    char id[AS_SESSION_ID_SIZE], cookie[AS_COOKIE_SIZE];
    as_sessions_begin(auth->sessions, &owner, auth_now(auth), id);
    print_cookie(login->is_local, id, cookie);
    explicit_bzero(id, sizeof(id));
    as_log(AS_LOG_INFO, "logged in", AS_F("credential", admission->credential),
           AS_F("remote", as_http_exchange_get_remote(admission->exchange)));
    const struct as_login_outcome outcome = {.status = 200, .headers = cookie, .to = login->to};
    login->done(login->context, admission->exchange, &outcome);
    explicit_bzero(cookie, sizeof(cookie));
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

static struct admission *auth_admission_new(struct as_auth *auth, struct as_http_exchange *exchange,
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

static void auth_deny(const struct admission *admission, int status, const char *problem)
{
    as_auth_note_refusal(admission->auth, admission->exchange, admission->handler, status, problem);
}

void as_auth_poll(struct as_auth *auth)
{
    as_throttle_refill(&auth->denied_log, auth_now(auth));
    as_throttle_refill(&auth->denied_record, auth_now(auth));
    as_throttle_refill(&auth->foreign_log, auth_now(auth));
    auth_end_sessions(auth);
    if (auth->reviewer)
        as_reviewer_poll(auth->reviewer);
}

void as_auth_conclude(struct as_auth *auth)
{
    as_throttle_end(&auth->denied_log, auth_now(auth));
    as_throttle_end(&auth->denied_record, auth_now(auth));
}

/* Answers */

static void auth_reply_text(const struct as_auth *auth, struct as_http_exchange *exchange,
                            int status, const char *headers, const char *problem)
{
    const struct as_auth_config *config = &auth->config;
    if (as_str_starts_with(as_http_exchange_get_path(exchange), "/api/"))
        as_reply_error(exchange, status, headers, "%s", problem);
    else if (!config->show_refusal ||
             !config->show_refusal(config->context, exchange, status, headers, problem))
        as_reply_text(exchange, status, headers, "%s", problem);
}

static void auth_reply(struct admission *admission, int status, const char *headers,
                       const char *problem)
{
    const struct auth_login *login = &admission->login;
    const struct as_login_outcome outcome = {status, headers, problem, login->to};
    if (login->done)
        login->done(login->context, admission->exchange, &outcome);
    else
        auth_reply_text(admission->auth, admission->exchange, status, headers, problem);
}

void as_auth_refuse(struct as_auth *auth, struct as_http_exchange *exchange, const char *handler,
                    int status, const char *problem)
{
    as_auth_note_refusal(auth, exchange, handler, status, problem);
    auth_reply_text(auth, exchange, status, NULL, problem);
}

/* Goes on with what was ADMITTED: to the body, or with the login. */
static void auth_go_on(struct admission *admission)
{
    if (admission->login.done)
        auth_begin_session(admission);
    else
        as_http_exchange_admit(admission->exchange);
}

static void auth_refuse(struct admission *admission, int status, const char *problem)
{
    struct as_auth *auth = admission->auth;
    const struct as_credential_counts counts = as_credentials_count(auth->credentials);
    const bool is_basic = counts.users > 0 && !admission->is_repeat; /* a browser shows a dialog */
    const bool is_bearer = counts.tokens > 0 || counts.reviews > 0 || !is_basic;
    char headers[HEADERS_MAX] = "";
    if (status == 401 && !admission->login.done)
        (void)snprintf(headers, sizeof(headers), "%s%s",
                       is_bearer ? "WWW-Authenticate: Bearer realm=\"alertscaler\"\r\n" : "",
                       is_basic ? "WWW-Authenticate: Basic realm=\"alertscaler\"\r\n" : "");
    auth_deny(admission, status, problem);
    auth_reply(admission, status, headers[0] ? headers : NULL, problem);
}

static void auth_count_failure(struct admission *admission)
{
    struct as_auth *auth = admission->auth;
    admission->has_cost = true;
    if (!admission->is_counted)
        as_auth_limit_add_failure(auth->limit, as_http_exchange_get_remote(admission->exchange),
                                  auth_now(auth));
    admission->is_counted = true;
}

static void auth_take_back_failure(struct admission *admission)
{
    if (admission->is_counted)
        as_auth_limit_take_back(admission->auth->limit,
                                as_http_exchange_get_remote(admission->exchange));
    admission->is_counted = false;
}

/* An invalid credential counts against its address only if checking it was expensive. A cheap
 * failure must not block others at the address. */
static void auth_refuse_wrong(struct admission *admission, const char *problem)
{
    if (admission->has_cost)
        auth_count_failure(admission);
    auth_refuse(admission, 401, problem);
}

static void auth_refuse_missing(struct admission *admission)
{
    struct as_auth *auth = admission->auth;
    const struct as_credential_counts counts = as_credentials_count(auth->credentials);
    if (admission->takes_session && !admission->is_repeat && auth->config.offer_login &&
        auth->config.offer_login(auth->config.context, admission->exchange))
        return;
    const struct {
        size_t count;
        const char *what;
    } kinds[] = {
        {counts.tokens + counts.reviews, "a bearer token (authorization.credentials_file)"},
        {counts.users, "a user with password (basic_auth)"},
        {counts.certificates, "a client certificate (tls_config.cert_file)"},
        {admission->takes_session && counts.proxy, "signing on at the proxy in front"},
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
static void auth_refuse_busy(struct admission *admission, int64_t wait_us)
{
    char headers[HEADERS_MAX];
    const int64_t seconds = wait_us / AS_US_PER_S + 1;
    auth_deny(admission, 503, "too many wrong credentials to check this one");
    (void)snprintf(headers, sizeof(headers), "Retry-After: %lld\r\n", (long long)seconds);
    auth_reply(admission, 503, headers,
               "there were too many wrong credentials to check this one now: send it again");
}

/* Another one when the credential's secret changes. */
static struct as_digest auth_get_identity(const struct as_credential *credential)
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

static enum as_http_admission auth_grant(struct admission *admission,
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
            admission->identity = auth_get_identity(credential);
        return AS_HTTP_ADMITTED;
    }
    char problem[AS_ERROR_SIZE];
    const char *word = as_permission_words[admission->permission];
    (void)snprintf(problem, sizeof(problem),
                   "the credential `%s` lacks the permission `%s`: use another credential, or add "
                   "`%s` to `permissions` of this credential in the configuration",
                   credential->name, word, word);
    auth_refuse(admission, 403, problem);
    return AS_HTTP_REPLIED;
}

#define BASIC_MAX ((size_t)4 * (AS_PASSWORD_MAX + 512) / 3) /* of the base64 */

/* Whether a given password or token is right, at once or later.
 * PENDING: continued later by auth_go_on, or by a refusal. */

/* Passwords */

static void on_password(void *context, bool is_right)
{
    struct admission *admission = context;
    admission->wait = NULL;
    /* searched again: credentials may have been reloaded */
    const struct as_credential_user *user =
        as_credentials_find_user(admission->auth->credentials, admission->user);
    if (user && !as_str_equal(user->hash, admission->hash)) {
        auth_take_back_failure(admission);
        auth_reply(admission, 503, "Retry-After: 1\r\n",
                   "the password was changed while it was checked: send it again");
    } else if (!user || !is_right) {
        auth_refuse_wrong(admission, "user or password is wrong");
    } else if (auth_grant(admission, &user->credential) == AS_HTTP_ADMITTED) {
        auth_go_on(admission);
    }
}

static enum as_http_admission auth_check_password(struct admission *admission, const char *name,
                                                  const char *password)
{
    struct as_auth *auth = admission->auth;
    const struct as_credential_user *user = as_credentials_find_user(auth->credentials, name);
    const char *hash = user ? user->hash : NULL;
    if (!auth->passwords)
        auth->passwords = as_passwords_new(auth->config.base);
    if (user && as_passwords_remember(auth->passwords, name, hash, password))
        return auth_grant(admission, &user->credential);
    const char *remote = as_http_exchange_get_remote(admission->exchange);
    const int64_t wait = as_auth_limit_get_wait(auth->limit, remote, auth_now(auth));
    if (wait > 0) {
        auth_refuse_busy(admission, wait);
        return AS_HTTP_REPLIED;
    }
    admission->user = as_xstrdup(name);
    admission->hash = hash ? as_xstrdup(hash) : NULL;
    const struct as_password_guess guess = {
        .user = name,
        .hash = hash,
        .like = as_credentials_find_dearest_hash(auth->credentials),
        .password = password,
        .is_suspect = as_auth_limit_has_failures(auth->limit, remote, auth_now(auth)),
    };
    switch (as_passwords_check(auth->passwords, &guess, on_password, admission, &admission->wait)) {
    case AS_PASSWORD_RIGHT: return auth_grant(admission, &user->credential);
    case AS_PASSWORD_PENDING:
        if (as_password_wait_is_first(admission->wait))
            auth_count_failure(admission);
        return AS_HTTP_PENDING;
    case AS_PASSWORD_WRONG: auth_refuse_wrong(admission, "user or password is wrong"); break;
    case AS_PASSWORD_BUSY: auth_refuse_busy(admission, 0); break;
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

static enum as_http_admission auth_check_basic(struct admission *admission, const char *given)
{
    unsigned char text[BASIC_MAX + 4];
    size_t size = 0;
    enum as_http_admission result = AS_HTTP_REPLIED;
    if (decode_basic(given, text, &size)) {
        char *password = strchr((char *)text, ':');
        *password++ = '\0';
        result = auth_check_password(admission, (const char *)text, password);
    } else {
        auth_refuse_wrong(admission,
                          "the Authorization header is not that of a user and a password");
    }
    explicit_bzero(text, sizeof(text));
    return result;
}

/* Tokens */

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
        as_auth_trust_add(auth->trust, &admission->digest, auth_now(auth));
        return auth_grant(admission, found);
    }
    as_auth_trust_remove(auth->trust, &admission->digest);
    if (admission->is_session) { /* it was right when it logged in: this is not a guess */
        auth_take_back_failure(admission);
        as_sessions_end(auth->sessions, &admission->identity);
        auth_refuse_missing(admission);
        return AS_HTTP_REPLIED;
    }
    auth_refuse_wrong(admission, reviewed->authenticated
                                     ? "the token's owner is not among receiver.token_review.allow"
                                     : "the bearer token is none that is known");
    return AS_HTTP_REPLIED;
}

static void on_review(void *context, const struct as_reviewed *reviewed)
{
    struct admission *admission = context;
    admission->review = NULL;
    if (!reviewed) {
        auth_take_back_failure(admission);
        auth_reply(admission, 503, AS_REPLY_LATER,
                   "the API server could not be asked whose token that is: send it again");
    } else if (use_review(admission, reviewed) == AS_HTTP_ADMITTED) {
        auth_go_on(admission);
    }
}

static enum as_http_admission auth_check_review(struct admission *admission, const char *given)
{
    struct as_auth *auth = admission->auth;
    const struct as_reviewed *known = as_reviewer_find(auth->reviewer, given);
    admission->digest = as_auth_trust_digest(given);
    if (known)
        return use_review(admission, known);
    const char *remote = as_http_exchange_get_remote(admission->exchange);
    const bool is_trusted = as_auth_trust_has(auth->trust, &admission->digest, auth_now(auth));
    const int64_t wait =
        is_trusted ? 0 : as_auth_limit_get_wait(auth->limit, remote, auth_now(auth));
    if (wait == 0)
        admission->review =
            as_reviewer_ask(auth->reviewer, given, is_trusted, on_review, admission);
    if (admission->review) {
        admission->has_cost = as_review_wait_is_first(admission->review);
        if (admission->has_cost && !is_trusted)
            auth_count_failure(admission);
        return AS_HTTP_PENDING;
    }
    auth_refuse_busy(admission, wait);
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

static enum as_http_admission auth_check_bearer(struct admission *admission, const char *given)
{
    struct as_auth *auth = admission->auth;
    const struct as_credential *found =
        as_credentials_find_token(auth->credentials, given, auth_now(auth));
    if (found)
        return auth_grant(admission, found);
    if (auth->reviewer && is_token(given)) {
        if (admission->login.done)
            admission->login.token = as_xstrdup(given);
        return auth_check_review(admission, given);
    }
    auth_refuse_wrong(admission, admission->login.done
                                     ? "this token is not valid: copy the whole token of a "
                                       "credential with the permission `read`"
                                     : "the bearer token is not one of receiver.tokens");
    return AS_HTTP_REPLIED;
}

static enum as_http_admission auth_use_session(struct admission *admission,
                                               const struct as_session *session)
{
    struct as_auth *auth = admission->auth;
    admission->is_session = true;
    admission->identity = session->digest;
    if (session->owner.token && auth->reviewer)
        return auth_check_review(admission, session->owner.token);
    const struct as_credential *credential =
        session->owner.token ? NULL : auth_find_credential(auth, &session->owner);
    if (credential)
        return auth_grant(admission, credential);
    as_sessions_end(auth->sessions, &admission->identity);
    auth_refuse_missing(admission);
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

/*
 * The person whom a proxy in front of alertscaler reports, as `receiver.proxy` says. Each header
 * may come once: a second one, or a name with a comma, may be what a client sent and the proxy did
 * not remove. The proof is of the connection: the proxy's client certificate, or its address.
 */

#define PROXIED_NAME_MAX 128 /* bytes of a person's name */

enum proxied {
    PROXIED_NONE,    /* no header, or no proxy is configured */
    PROXIED_FOREIGN, /* the header comes from another peer: it must be ignored */
    PROXIED_PERSON,
    PROXIED_INVALID /* with an error: the answer is 400 */
};

struct proxied_person {
    char name[sizeof(AS_SCOPE_PROXIED) + PROXIED_NAME_MAX]; /* "proxy:NAME" */
    unsigned permissions;                                   /* of all groups together */
};

static bool proxied_has_address(const struct as_proxy_settings *settings, const char *remote)
{
    struct as_address_range range;
    for (size_t i = 0; i < settings->address_count; i++) {
        if (as_address_range_parse(settings->addresses[i], &range) &&
            as_address_range_has(&range, remote))
            return true;
    }
    return settings->address_count == 0;
}

/* All proofs that are configured; without any, the proxy runs on this machine. */
static bool proxied_is_from_proxy(const struct as_proxy_settings *settings,
                                  const struct as_http_exchange *exchange)
{
    const char *remote = as_http_exchange_get_remote(exchange);
    const char *subject = as_http_exchange_find_client_name(exchange);
    if (!settings->certificate && settings->address_count == 0)
        return as_address_is_loopback(remote);
    return proxied_has_address(settings, remote) &&
           (!settings->certificate || (subject && as_scope_match(settings->certificate, subject)));
}

static bool proxied_is_name(const char *name)
{
    const size_t size = strlen(name);
    if (size == 0 || size > PROXIED_NAME_MAX || strchr(name, ','))
        return false;
    for (size_t i = 0; i < size;) {
        const struct as_safe_char read = as_safe_char_read(name + i, size - i);
        if (!read.is_valid || read.is_unsafe)
            return false;
        i += read.size;
    }
    return true;
}

static bool proxied_is_group(const struct as_proxy_group *group, const char *name, size_t size)
{
    return strlen(group->name) == size && memcmp(group->name, name, size) == 0;
}

static unsigned proxied_find_permissions(const struct as_proxy_settings *settings,
                                         const char *groups)
{
    static const char spaces[] = " \t";
    unsigned permissions = 0;
    for (size_t i = 0; i < settings->group_count; i++) {
        if (strcmp(settings->groups[i].name, "*") == 0)
            permissions |= settings->groups[i].permissions;
    }
    while (groups && *groups) {
        groups += strspn(groups, ", \t");
        const size_t end = strcspn(groups, ",");
        size_t size = end;
        while (size > 0 && strchr(spaces, groups[size - 1]))
            size--;
        for (size_t i = 0; size > 0 && i < settings->group_count; i++) {
            if (proxied_is_group(&settings->groups[i], groups, size))
                permissions |= settings->groups[i].permissions;
        }
        groups += end;
    }
    return permissions;
}

static enum proxied proxied_find(const struct as_proxy_settings *settings,
                                 const struct as_http_exchange *exchange,
                                 struct proxied_person *person_out, struct as_error *error)
{
    if (!settings)
        return PROXIED_NONE;
    const char *name = as_http_exchange_find_header(exchange, settings->header);
    const char *groups = as_http_exchange_find_header(exchange, settings->groups_header);
    if (!name && !groups)
        return PROXIED_NONE;
    if (!proxied_is_from_proxy(settings, exchange))
        return PROXIED_FOREIGN;
    const char *const headers[] = {settings->header, settings->groups_header};
    for (size_t i = 0; i < AS_ARRAY_SIZE(headers); i++) {
        if (as_http_exchange_count_headers(exchange, headers[i]) > 1) {
            as_error_set(error,
                         "the header %s came twice: let the proxy remove what the client sends",
                         headers[i]);
            return PROXIED_INVALID;
        }
    }
    if (as_str_is_empty(name))
        return PROXIED_NONE;
    if (!proxied_is_name(name)) {
        as_error_set(error,
                     "the header %s has no name: expected at most %d bytes without commas and "
                     "control characters, for example `ada@example.com`",
                     settings->header, PROXIED_NAME_MAX);
        return PROXIED_INVALID;
    }
    *person_out =
        (struct proxied_person){.permissions = proxied_find_permissions(settings, groups)};
    (void)snprintf(person_out->name, sizeof(person_out->name), AS_SCOPE_PROXIED "%s", name);
    return PROXIED_PERSON;
}

/* The person has no secret of ours: what the proxy reports counts for this request only. */
static enum as_http_admission auth_use_person(struct admission *admission,
                                              const struct proxied_person *person)
{
    const struct as_credential credential = {person->name, person->permissions, NULL};
    const char *word = as_permission_words[admission->permission];
    char problem[AS_ERROR_SIZE];
    if (person->permissions & 1U << admission->permission)
        return auth_grant(admission, &credential);
    (void)snprintf(problem, sizeof(problem),
                   "`%s` is in no group with the permission `%s`: add a group of this person to "
                   "receiver.proxy.permissions in the configuration",
                   person->name, word);
    auth_refuse(admission, 403, problem);
    return AS_HTTP_REPLIED;
}

static enum as_http_admission auth_identify(struct admission *admission,
                                            const struct proxied_person *person)
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
    if (person)
        return auth_use_person(admission, person);
    const struct as_session *session =
        admission->takes_session && !authorization
            ? auth_find_session(auth, exchange, !admission->is_repeat)
            : NULL;
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

static void auth_note_foreign(struct as_auth *auth, const struct as_http_exchange *exchange)
{
    as_throttle_add(&auth->foreign_log, as_http_exchange_get_remote(exchange),
                    as_credentials_count(auth->credentials).proxy->header, auth_now(auth));
    if (auth->config.proxy_ignored)
        auth->config.proxy_ignored(auth->config.context);
}

/* Why nobody can have the permission; NULL: somebody can. */
static const char *auth_find_obstacle(const struct as_auth *auth, enum as_permission permission)
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

static enum as_http_admission auth_admit(struct as_auth *auth, struct as_http_exchange *exchange,
                                         const char *handler, enum as_permission permission,
                                         bool takes_session, bool is_repeat)
{
    struct admission *admission = auth_admission_new(auth, exchange, handler, permission);
    admission->takes_session = takes_session;
    admission->is_repeat = is_repeat;
    const char *obstacle = auth_find_obstacle(auth, permission);
    if (obstacle) {
        auth_refuse(admission, 403, obstacle);
        return AS_HTTP_REPLIED;
    }
    struct proxied_person person;
    struct as_error error = AS_ERROR_INIT;
    const enum proxied proxied =
        proxied_find(as_credentials_count(auth->credentials).proxy, exchange, &person, &error);
    if (proxied == PROXIED_FOREIGN)
        auth_note_foreign(auth, exchange);
    if (proxied == PROXIED_INVALID && takes_session) {
        auth_refuse(admission, 400, error.text);
        return AS_HTTP_REPLIED;
    }
    if (as_credentials_is_empty(auth->credentials))
        return AS_HTTP_ADMITTED;
    return auth_identify(admission, proxied == PROXIED_PERSON && takes_session ? &person : NULL);
}

enum as_http_admission as_auth_admit(struct as_auth *auth, struct as_http_exchange *exchange,
                                     const char *handler, enum as_permission permission)
{
    return auth_admit(auth, exchange, handler, permission, permission == AS_PERMISSION_READ, false);
}

enum as_http_admission as_auth_admit_repeat(struct as_auth *auth, struct as_http_exchange *exchange,
                                            const char *handler)
{
    return auth_admit(auth, exchange, handler, AS_PERMISSION_READ, true, true);
}

enum as_http_admission as_auth_admit_form(struct as_auth *auth, struct as_http_exchange *exchange,
                                          const char *handler, enum as_permission permission)
{
    return auth_admit(auth, exchange, handler, permission, true, false);
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

void as_auth_log_in(struct as_auth *auth, struct as_http_exchange *exchange,
                    const struct as_login *login)
{
    struct admission *admission =
        auth_admission_new(auth, exchange, login->handler, AS_PERMISSION_READ);
    admission->login = (struct auth_login){.done = login->done,
                                           .context = login->context,
                                           .is_local = login->is_local,
                                           .to = as_xstrdup(login->to)};
    enum as_http_admission result = AS_HTTP_REPLIED;
    if (login->token)
        result = auth_check_bearer(admission, login->token);
    else if (as_credentials_count(auth->credentials).users > 0)
        result = auth_check_password(admission, login->user, login->password);
    else
        auth_refuse_wrong(admission, "user or password is wrong");
    if (result == AS_HTTP_ADMITTED)
        auth_begin_session(admission);
}

void as_auth_log_out(const struct as_http_exchange *exchange, char cookie_out[AS_COOKIE_SIZE])
{
    const struct admission *admission = as_http_exchange_get_data(exchange);
    const struct as_session *session = auth_find_session(admission->auth, exchange, true);
    print_cookie(session && session->owner.is_local, "", cookie_out);
    if (!admission->is_session)
        return;
    as_sessions_end(admission->auth->sessions, &admission->identity);
    as_log(AS_LOG_INFO, "logged out", AS_F("credential", admission->credential),
           AS_F("remote", as_http_exchange_get_remote(exchange)));
}

bool as_auth_is_logged_in(struct as_auth *auth, const struct as_http_exchange *exchange)
{
    const struct as_session *session = auth_find_session(auth, exchange, true);
    return session && auth_keeps_session(auth, &session->owner);
}

bool as_auth_may_order(const struct as_http_exchange *exchange)
{
    const struct admission *admission = as_http_exchange_get_data(exchange);
    return admission && admission->may_order;
}

bool as_auth_has_session(const struct as_http_exchange *exchange)
{
    const struct admission *admission = as_http_exchange_get_data(exchange);
    return admission && admission->is_session;
}

void as_auth_seal(const struct as_http_exchange *exchange, const char *text,
                  char seal_out[AS_FORM_TOKEN_SIZE])
{
    const struct admission *admission = as_http_exchange_get_data(exchange);
    as_form_token_print(&admission->auth->form_key, &admission->identity, text, seal_out);
}

bool as_auth_check_seal(const struct as_http_exchange *exchange, const char *text, const char *seal)
{
    const struct admission *admission = as_http_exchange_get_data(exchange);
    return admission &&
           as_form_token_check(&admission->auth->form_key, &admission->identity, text, seal);
}
