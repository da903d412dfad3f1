/*
 * Sessions: a browser logs in once, and its cookie then stands for the credential.
 *
 * Over TLS the cookie has the prefix `__Host-`, so that neither another host of the domain nor a
 * page without TLS can set it. From this machine without TLS it cannot: such a session has another
 * cookie, and counts only for requests from this machine.
 */
#include "auth_private.h"

#include <stdio.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/log.h>
#include <alertscaler/base/str.h>

#include <alertscaler/auth/browser.h>

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

const struct as_session *auth_find_session(struct as_auth *auth,
                                           const struct as_http_exchange *exchange)
{
    static const char *const names[] = {COOKIE, LOCAL_COOKIE};
    const bool is_local = as_browser_is_local(exchange);
    for (size_t i = 0; i < (is_local ? AS_ARRAY_SIZE(names) : 1); i++) {
        char id[AS_SESSION_ID_SIZE] = "";
        const struct as_session *session =
            find_cookie(exchange, names[i], id)
                ? as_sessions_find(auth->sessions, id, auth_now(auth))
                : NULL;
        explicit_bzero(id, sizeof(id));
        if (session && session->owner.is_local == (i > 0))
            return session;
    }
    return NULL;
}

/* The session's credential, if it is still the one that logged in; NULL: it is not. */
static const struct as_credential *find_credential(const struct as_auth *auth,
                                                   const struct as_session_owner *owner)
{
    const struct as_credential *found =
        as_credentials_find_name(auth->credentials, owner->credential, auth_now(auth));
    return found && as_str_equal_constant_time(found->secret->bytes, owner->secret.bytes,
                                               sizeof(owner->secret.bytes))
               ? found
               : NULL;
}

static bool keeps(void *context, const struct as_session_owner *owner)
{
    const struct as_auth *auth = context;
    return owner->token ? auth->reviewer != NULL : find_credential(auth, owner) != NULL;
}

void auth_end_sessions(struct as_auth *auth)
{
    if (auth->credentials)
        as_sessions_look(auth->sessions, auth_now(auth), keeps, auth);
}

enum as_http_admission auth_use_session(struct admission *admission,
                                        const struct as_session *session)
{
    struct as_auth *auth = admission->auth;
    admission->is_session = true;
    admission->identity = session->digest;
    if (session->owner.token && auth->reviewer)
        return auth_check_review(admission, session->owner.token);
    const struct as_credential *credential =
        session->owner.token ? NULL : find_credential(auth, &session->owner);
    if (credential)
        return auth_grant(admission, credential);
    as_sessions_end(auth->sessions, &admission->identity);
    auth_refuse_missing(admission);
    return AS_HTTP_REPLIED;
}

void auth_begin_session(struct admission *admission)
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
    const struct as_session *old = auth_find_session(auth, admission->exchange);
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
    const struct as_session *session = auth_find_session(admission->auth, exchange);
    print_cookie(session && session->owner.is_local, "", cookie_out);
    if (!admission->is_session)
        return;
    as_sessions_end(admission->auth->sessions, &admission->identity);
    as_log(AS_LOG_INFO, "logged out", AS_F("credential", admission->credential),
           AS_F("remote", as_http_exchange_get_remote(exchange)));
}

bool as_auth_is_logged_in(struct as_auth *auth, const struct as_http_exchange *exchange)
{
    const struct as_session *session = auth_find_session(auth, exchange);
    return session && keeps(auth, &session->owner);
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
