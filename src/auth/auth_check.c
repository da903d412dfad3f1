/*
 * Whether a given password or token is right, at once or later.
 *
 * Expensive checks are limited per address (auth_limit.h); each counts as a failure from its start
 * until it succeeds, so that many at once cannot bypass the limit. Cheap checks (comparing a token,
 * a malformed header) do not count: that would only block others at the address. Credentials that
 * were right lately are not delayed either.
 */
#include "auth_private.h"

#include <string.h>

#include <openssl/evp.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>

#include <alertscaler/auth/reply.h>

#define BASIC_MAX ((size_t)4 * (AS_PASSWORD_MAX + 512) / 3) /* of the base64 */

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

enum as_http_admission auth_check_password(struct admission *admission, const char *name,
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

enum as_http_admission auth_check_basic(struct admission *admission, const char *given)
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

enum as_http_admission auth_check_review(struct admission *admission, const char *given)
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

enum as_http_admission auth_check_bearer(struct admission *admission, const char *given)
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
    auth_refuse_wrong(admission, "the bearer token is not one of receiver.tokens");
    return AS_HTTP_REPLIED;
}
