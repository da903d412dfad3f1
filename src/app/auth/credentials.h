/*
 * The credentials of one configuration: who there is, by what they prove it, and what each may do
 * and trigger.
 *
 * Bearer tokens are in files that are read again when they change; while a changed file cannot be
 * read the old token stays. Tokens are kept and compared only as SHA-256, in constant time.
 */
#ifndef ALERTSCALER_SRC_APP_AUTH_CREDENTIALS_H
#define ALERTSCALER_SRC_APP_AUTH_CREDENTIALS_H

#include <stdbool.h>
#include <stddef.h>

#include <alertscaler/access/secret_file.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>
#include <alertscaler/base/time.h>
#include <alertscaler/config/settings.h>
#include <alertscaler/config/web_config.h>
#include <alertscaler/core/scope.h>

#define AS_TOKEN_MAX 4096 /* bytes of a token; surrounding white space is not counted */

struct as_credentials;

struct as_credential {    /* immutable, of its set */
    const char *name;     /* in the action log */
    unsigned permissions; /* bits 1 << enum as_permission */
};

struct as_credential_user { /* of the web configuration */
    struct as_credential credential;
    const char *hash;
};

struct as_credential_signature {
    struct as_credential credential;
    const char *header, *timestamp_header; /* the latter NULL: none is signed */
    int64_t max_skew_us;
    struct as_secret_file secret;
};

/* Everything is copied; `web` may be NULL. 0; or a negative errno with an error that names the file
 * (also -EINVAL for an empty one), or the name that two credentials have. */
int as_credentials_new(const struct as_receiver_settings *settings,
                       const struct as_web_settings *web, struct as_credentials **credentials_out,
                       struct as_error *error) AS_MUST_USE;
struct as_credentials *as_credentials_free(struct as_credentials *credentials);

/* None are configured: everyone may notify and read. */
bool as_credentials_is_empty(const struct as_credentials *credentials);
/* One of them has this permission. */
bool as_credentials_has_permission(const struct as_credentials *credentials,
                                   enum as_permission permission);

/* What each may trigger, for the engine; lives as long as they do. */
const struct as_scope *as_credentials_get_scopes(const struct as_credentials *credentials,
                                                 size_t *count_out);

/* How many there are of each kind, for what a client is told that has none. */
struct as_credential_counts {
    size_t tokens, users, certificates, signatures, reviews;
};
struct as_credential_counts as_credentials_count(const struct as_credentials *credentials);

/* The credential that this token proves; NULL: none. */
const struct as_credential *as_credentials_find_token(struct as_credentials *credentials,
                                                      const char *token, as_mono_time now);
const struct as_credential_user *as_credentials_find_user(const struct as_credentials *credentials,
                                                          const char *name); /* NULL: none */
/* The one that costs most to check; NULL: there are no users. */
const char *as_credentials_find_dearest_hash(const struct as_credentials *credentials);
/* For whom a verified certificate names; NULL: none. */
const struct as_credential *as_credentials_find_certificate(
    const struct as_credentials *credentials, const char *subject);
struct as_credential_signature *as_credentials_get_signature(struct as_credentials *credentials,
                                                             size_t index);
/* For whom the API server knows the owner of a token as; NULL: none. */
const struct as_credential *as_credentials_find_review(const struct as_credentials *credentials,
                                                       const char *user, const char *const *groups,
                                                       size_t group_count);

AS_DEFINE_CLEANUP(struct as_credentials *, as_credentials_free)

#endif
