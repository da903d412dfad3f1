/*
 * Authorization: the one gate of all handlers.
 *
 * as_auth_admit decides after the head of a request, before its body is read, and answers refusals:
 * 401 for a missing or wrong credential, 403 if the credential lacks the permission, 503 if too
 * many checks wait or the address has sent too many wrong credentials. A signature is checked once
 * the body is complete. The credential's name stays with the exchange until its end, even after a
 * reload.
 *
 * While no credential is configured, everyone may notify and read. The admin API always needs
 * --web.enable-admin-api and a credential with the permission `admin`.
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
    /* Refusals, summed up over time, to be recorded; false: not recorded, tried again later. */
    bool (*denied)(void *context, const struct as_denied_record *record);
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

/* For as_http_handler.handle, before anything else: false after answering 401 to a body with a
 * wrong signature. */
bool as_auth_verify_body(struct as_auth *auth, struct as_http_exchange *exchange) AS_MUST_USE;

/* Call about once a second: logs and records the refusals since the last time, if due. */
void as_auth_look(struct as_auth *auth);
/* The same for all remaining refusals, due or not: call it before the last record. */
void as_auth_conclude(struct as_auth *auth);

/* The admitted credential's name; "": none was needed. Valid until the reply. */
const char *as_auth_get_credential(const struct as_http_exchange *exchange);

AS_DEFINE_CLEANUP(struct as_auth *, as_auth_free)

#endif
