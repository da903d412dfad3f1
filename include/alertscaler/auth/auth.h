/*
 * Authorization: the one gate of all handlers.
 *
 * as_auth_admit decides after the head of a request, before its body is read, and answers refusals:
 * 401 for a missing or wrong credential, 403 if the credential lacks the permission, 503 if too
 * many checks wait or the address has sent too many wrong credentials. A signature is checked once
 * the body is complete. The credential's name stays with the exchange until its end, even after a
 * reload.
 *
 * Browsers may log in: then a cookie names a session, which counts as its credential at requests
 * that only read, and at forms. It never counts at the API's requests that change something: these
 * have no token against other sites' pages.
 *
 * A proxy in front may report who signed on there (receiver.proxy). Such a person counts where a
 * session counts.
 *
 * While no credential is configured, everyone may notify and read. The admin API always needs
 * --web.enable-admin-api and a credential with the permission `admin`.
 */
#ifndef ALERTSCALER_AUTH_AUTH_H
#define ALERTSCALER_AUTH_AUTH_H

#include <stdbool.h>

#include <alertscaler/auth/credentials.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/base/encode.h>
#include <alertscaler/http/server.h>
#include <alertscaler/log/record.h>
#include <alertscaler/port/clock.h>
#include <alertscaler/rules/settings.h>

struct as_auth;
struct as_reviewer;
struct event_base;

/*
 * Seals of this process for one browser: an HMAC of a text and of who may use it, under a random
 * key. The token of a form is the seal of a fixed text: another site's page cannot have it. The
 * seal of a message shows that the message is ours.
 */

#define AS_FORM_TOKEN_SIZE 44 /* 32 bytes in base64url, with NUL */

struct as_form_key {
    unsigned char bytes[32];
};

void as_form_key_init(struct as_form_key *key); /* random */

/* `identity`: of the session, or of the credential. */
void as_form_token_print(const struct as_form_key *key, const struct as_digest *identity,
                         const char *text, char token_out[AS_FORM_TOKEN_SIZE]);
/* In constant time. `given` NULL: none, which is wrong. */
bool as_form_token_check(const struct as_form_key *key, const struct as_digest *identity,
                         const char *text, const char *given) AS_MUST_USE;

struct as_auth_config {
    const struct as_clock *clock;
    struct event_base *base;
    bool enable_admin_api; /* --web.enable-admin-api */
    /* Refusals, summed up over time, to be recorded; false: not recorded, tried again later. */
    bool (*denied)(void *context, const struct as_denied_record *record);
    /* A request without a credential that could have a session: true after answering a browser with
     * the way to log in. NULL: nobody can log in. */
    bool (*offer_login)(void *context, struct as_http_exchange *exchange);
    /* For metrics: headers of receiver.proxy did not come from the proxy. May be NULL. */
    void (*proxy_ignored)(void *context);
    /* True after answering a browser with a page about a refusal. NULL: browsers get a text. */
    bool (*show_refusal)(void *context, struct as_http_exchange *exchange, int status,
                         const char *headers, const char *problem);
    void *context;
};

struct as_login_outcome {
    int status;          /* 200; else as the gate answers: 401, 403, 503 */
    const char *headers; /* for the answer: the session's cookie, when to retry; or NULL */
    const char *problem; /* NULL: logged in */
    const char *to;      /* as in the login */
};
/* Must answer. */
typedef void as_login_fn(void *context, struct as_http_exchange *exchange,
                         const struct as_login_outcome *outcome);

struct as_login { /* borrowed for the call */
    const char *handler;
    const char *user, *password; /* of the web configuration; or NULL, with */
    const char *token;
    const char *to; /* where it leads; kept until `done` */
    bool is_local;  /* without TLS, from this machine: the cookie is not `Secure` */
    as_login_fn *done;
    void *context;
};

struct as_auth *as_auth_new(const struct as_auth_config *config) AS_MUST_USE;
/* Free the server first: waiting exchanges are not touched here. */
struct as_auth *as_auth_free(struct as_auth *auth);

/* Takes over new credentials and returns the old ones (NULL: there were none). */
struct as_credentials *as_auth_swap_credentials(struct as_auth *auth,
                                                struct as_credentials *credentials) AS_MUST_USE;
/* The same for the reviewer of tokens that are in no file; NULL: none. */
struct as_reviewer *as_auth_swap_reviewer(struct as_auth *auth,
                                          struct as_reviewer *reviewer) AS_MUST_USE;
const struct as_credentials *as_auth_get_credentials(const struct as_auth *auth);

/*
 * For as_http_handler.admit. `handler` (static memory) is for logs. Call it exactly once per
 * exchange, which must have no other data (as_http_exchange_set_data).
 */
enum as_http_admission as_auth_admit(struct as_auth *auth, struct as_http_exchange *exchange,
                                     const char *handler,
                                     enum as_permission permission) AS_MUST_USE;

/* The same for a page that its script requests again. This does not extend a session. A browser
 * without a credential gets 401, and no dialog. */
enum as_http_admission as_auth_admit_repeat(struct as_auth *auth, struct as_http_exchange *exchange,
                                            const char *handler) AS_MUST_USE;

/* The same for a form: a session may also have other permissions than `read`. A form that is let in
 * must still have the seal that was shown with it: AS_FORM_SEALED. */
enum as_http_admission as_auth_admit_form(struct as_auth *auth, struct as_http_exchange *exchange,
                                          const char *handler,
                                          enum as_permission permission) AS_MUST_USE;

/* For as_http_handler.handle, before anything else: false after answering 401 to a body with a
 * wrong signature. */
bool as_auth_verify_body(struct as_auth *auth, struct as_http_exchange *exchange) AS_MUST_USE;

/* Call about once a second: logs and records the refusals since the last time, if due. */
void as_auth_poll(struct as_auth *auth);
/* The same for all remaining refusals, due or not: call it before the last record. */
void as_auth_conclude(struct as_auth *auth);

/* The admitted credential's name; "": none was needed. Valid until the reply. */
const char *as_auth_get_credential(const struct as_http_exchange *exchange);

/* 0; or -EPERM with an error if `rules` or `targets` narrow the admitted credential: it may not do
 * what concerns all targets. */
int as_auth_check_whole(const struct as_auth *auth, const struct as_http_exchange *exchange,
                        struct as_error *error) AS_MUST_USE;

/* Whether the admitted credential may give orders by forms. */
bool as_auth_may_order(const struct as_http_exchange *exchange);
/* Whether it was admitted by a session. */
bool as_auth_has_session(const struct as_http_exchange *exchange);

/* The seal of a text for who was admitted: for one session, or for one credential. */
void as_auth_seal(const struct as_http_exchange *exchange, const char *text,
                  char seal_out[AS_FORM_TOKEN_SIZE]);
/* Whether this is the seal of the text for who was admitted. `seal` NULL: not given. */
bool as_auth_check_seal(const struct as_http_exchange *exchange, const char *text,
                        const char *seal) AS_MUST_USE;
#define AS_FORM_SEALED "form" /* the text that is sealed in forms */

/* Logs and records, as other refusals, a request that was refused before or after the gate. */
void as_auth_note_refusal(struct as_auth *auth, const struct as_http_exchange *exchange,
                          const char *handler, int status, const char *problem);

/* Answers a request that is refused before or after the gate, and notes the refusal. */
void as_auth_refuse(struct as_auth *auth, struct as_http_exchange *exchange, const char *handler,
                    int status, const char *problem);

/*
 * Begins a session of a credential with the permission `read`, if the given secret is right. Checks
 * and limits are those of other requests. A session of this browser ends. `done` comes once, now or
 * later. The exchange must have no data.
 */
void as_auth_log_in(struct as_auth *auth, struct as_http_exchange *exchange,
                    const struct as_login *login);
/* Ends the session that was admitted, if one was. `cookie_out`: the header for the answer. */
#define AS_COOKIE_SIZE 192
void as_auth_log_out(const struct as_http_exchange *exchange, char cookie_out[AS_COOKIE_SIZE]);
/* Whether this request has a session, at a path that asks for no credential. */
bool as_auth_is_logged_in(struct as_auth *auth, const struct as_http_exchange *exchange);

AS_DEFINE_CLEANUP(struct as_auth *, as_auth_free)

#endif
