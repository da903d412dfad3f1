/*
 * The credentials of one configuration: who there is, by what they prove it, and what each may do.
 *
 * Bearer tokens are in files that are read again when they change; while a changed file cannot be
 * read the old token stays. Tokens are kept and compared only as SHA-256, in constant time.
 */
#ifndef ALERTSCALER_APP_CREDENTIALS_H
#define ALERTSCALER_APP_CREDENTIALS_H

#include <stdbool.h>
#include <stddef.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>
#include <alertscaler/base/time.h>
#include <alertscaler/config/settings.h>
#include <alertscaler/core/scope.h>

#define AS_TOKEN_MAX 4096 /* bytes of a token; surrounding white space is not counted */

struct as_credentials;

struct as_credential {    /* immutable, of its set */
    const char *name;     /* in the action log */
    unsigned permissions; /* bits 1 << enum as_permission */
};

/* Everything is copied. 0; or a negative errno with an error that names the file (also -EINVAL for
 * an empty one). */
int as_credentials_new(const struct as_receiver_settings *settings,
                       struct as_credentials **credentials_out, struct as_error *error) AS_MUST_USE;
struct as_credentials *as_credentials_free(struct as_credentials *credentials);

/* None are configured: everyone may notify and read. */
bool as_credentials_is_empty(const struct as_credentials *credentials);
/* One of them has this permission. */
bool as_credentials_has_permission(const struct as_credentials *credentials,
                                   enum as_permission permission);

/* What each may trigger, for the engine; lives as long as they do. */
const struct as_scope *as_credentials_get_scopes(const struct as_credentials *credentials,
                                                 size_t *count_out);

/* The credential that this token proves; NULL: none. */
const struct as_credential *as_credentials_find_token(struct as_credentials *credentials,
                                                      const char *token, as_mono_time now);

AS_DEFINE_CLEANUP(struct as_credentials *, as_credentials_free)

#endif
