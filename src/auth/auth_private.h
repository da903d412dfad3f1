/*
 * What the files of the gate share.
 *
 *   auth.c         life, refusals, admission by the head of a request
 *   auth_check.c   whether a password or a token is right
 *   auth_login.c   sessions of browsers: begin, use, end
 */
#ifndef ALERTSCALER_SRC_AUTH_AUTH_PRIVATE_H
#define ALERTSCALER_SRC_AUTH_AUTH_PRIVATE_H

#include <alertscaler/base/digest.h>
#include <alertscaler/base/throttle.h>

#include "auth_limit.h"
#include "auth_trust.h"
#include "session.h"
#include <alertscaler/auth/auth.h>
#include <alertscaler/auth/auth_passwords.h>
#include <alertscaler/auth/auth_review.h>
#include <alertscaler/auth/form_token.h>

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
    const char *denied_handler; /* of the last refusal */
    int denied_status;
};

/* auth.c */
as_mono_time auth_now(const struct as_auth *auth);
struct admission *auth_admission_new(struct as_auth *auth, struct as_http_exchange *exchange,
                                     const char *handler,
                                     enum as_permission permission) AS_MUST_USE;
/* Each of these answers: */
void auth_reply(struct admission *admission, int status, const char *headers, const char *problem);
void auth_refuse(struct admission *admission, int status, const char *problem);
void auth_refuse_wrong(struct admission *admission, const char *problem); /* 401 */
void auth_refuse_missing(struct admission *admission);                    /* 401 */
void auth_refuse_busy(struct admission *admission, int64_t wait_us);      /* 503 */
/* Goes on with what was ADMITTED: to the body, or with the login. */
void auth_go_on(struct admission *admission);
enum as_http_admission auth_grant(struct admission *admission,
                                  const struct as_credential *credential) AS_MUST_USE;
void auth_count_failure(struct admission *admission);
void auth_take_back_failure(struct admission *admission);

/* auth_check.c. PENDING: continued later by auth_go_on, or a refusal. */
enum as_http_admission auth_check_password(struct admission *admission, const char *name,
                                           const char *password) AS_MUST_USE;
enum as_http_admission auth_check_basic(struct admission *admission, const char *given) AS_MUST_USE;
enum as_http_admission auth_check_bearer(struct admission *admission,
                                         const char *given) AS_MUST_USE;
enum as_http_admission auth_check_review(struct admission *admission,
                                         const char *token) AS_MUST_USE;

/* auth_login.c */
const struct as_session *auth_find_session(struct as_auth *auth,
                                           const struct as_http_exchange *exchange);
enum as_http_admission auth_use_session(struct admission *admission,
                                        const struct as_session *session) AS_MUST_USE;
void auth_end_sessions(struct as_auth *auth); /* those that are over, or of other credentials */
void auth_begin_session(struct admission *admission); /* answers the login */

#endif
