/*
 * Who may do what: the one gate of all handlers.
 *
 * as_auth_admit decides on the head of a request, before a byte of its body is read, and answers
 * what it refuses: 401 without a credential or with a wrong one, 403 where the credential may not
 * do this, 503 where too much waits to be checked or the address has given too many wrong ones. A
 * signature is checked when the body is there. The credential's name stays with the exchange until
 * its end, whatever is reloaded meanwhile.
 *
 * As long as no credential is configured, everyone may notify and read. The admin API needs
 * --web.enable-admin-api and a credential with the permission `admin`, always.
 */
#ifndef ALERTSCALER_SRC_APP_AUTH_AUTH_H
#define ALERTSCALER_SRC_APP_AUTH_AUTH_H

#include <stdbool.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/config/settings.h>
#include <alertscaler/net/server.h>
#include <alertscaler/port/clock.h>
#include <alertscaler/wire/record.h>

#include "credentials.h"

struct event_base;
struct as_auth;
struct as_reviewer;

struct as_auth_config {
    const struct as_clock *clock;
    struct event_base *base;
    bool enable_admin_api; /* --web.enable-admin-api */
    /* Refusals, to be recorded once in a while; false: not taken, they are tried again. */
    bool (*denied)(void *context, const struct as_denied_record *record);
    void *context;
};

struct as_auth *as_auth_new(const struct as_auth_config *config) AS_MUST_USE;
/* After the server: exchanges that wait for an answer are not touched any more. */
struct as_auth *as_auth_free(struct as_auth *auth);

/* From now on these; takes them over, and gives back those before (NULL: there were none). */
struct as_credentials *as_auth_swap_credentials(struct as_auth *auth,
                                                struct as_credentials *credentials) AS_MUST_USE;
/* Likewise whom tokens are shown to that are in no file; NULL: nobody. */
struct as_reviewer *as_auth_swap_reviewer(struct as_auth *auth,
                                          struct as_reviewer *reviewer) AS_MUST_USE;
const struct as_credentials *as_auth_get_credentials(const struct as_auth *auth);

/*
 * For as_http_handler.admit: decides. `handler` (static memory) is for logs. Exactly once for an
 * exchange, which then has no other data (as_http_exchange_set_data).
 */
enum as_http_admission as_auth_admit(struct as_auth *auth, struct as_http_exchange *exchange,
                                     const char *handler,
                                     enum as_permission permission) AS_MUST_USE;

/* For as_http_handler.handle, before anything else: false after replying 401 to a body whose
 * signature is wrong. */
bool as_auth_verify_body(struct as_auth *auth, struct as_http_exchange *exchange) AS_MUST_USE;

/* Once a second or so: says and records the refusals that came since it was done last, when their
 * time has come. */
void as_auth_look(struct as_auth *auth);
/* Likewise those that are left, whatever the time: before the last record of all. */
void as_auth_conclude(struct as_auth *auth);

/* The name of the credential that was admitted: "" where none was needed. Good until the reply. */
const char *as_auth_get_credential(const struct as_http_exchange *exchange);

AS_DEFINE_CLEANUP(struct as_auth *, as_auth_free)

#endif
