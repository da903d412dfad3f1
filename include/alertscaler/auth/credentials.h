/*
 * The credentials of one configuration: their names, proofs, and what each may do and trigger.
 *
 * Files of bearer tokens are read again when they change; while a changed file cannot be read, the
 * old token stays valid. Tokens are stored and compared only as SHA-256, in constant time.
 */
#ifndef ALERTSCALER_AUTH_CREDENTIALS_H
#define ALERTSCALER_AUTH_CREDENTIALS_H

#include <stdbool.h>
#include <stddef.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/encode.h>
#include <alertscaler/base/error.h>
#include <alertscaler/base/time.h>
#include <alertscaler/http/secret_file.h>
#include <alertscaler/model/scope.h>
#include <alertscaler/rules/settings.h>
#include <alertscaler/rules/web_config.h>

#define AS_TOKEN_MAX 4096 /* bytes of a token without surrounding white space */

struct as_credentials;

struct as_credential {    /* immutable, owned by the set */
    const char *name;     /* in the action log */
    unsigned permissions; /* bits 1 << enum as_permission */
    /* Of the token, or of the password's hash: another one when it is changed. NULL: not ours. */
    const struct as_digest *secret;
};

struct as_credential_user { /* of the web configuration */
    struct as_credential credential;
    const char *hash;
};

struct as_credential_signature {
    struct as_credential credential;
    const char *header, *timestamp_header; /* the latter NULL: the time is not signed */
    int64_t max_skew_us;
    struct as_secret_file secret;
};

/* Everything is copied; `web` may be NULL. 0; or a negative errno with an error that names the file
 * (-EINVAL if empty), or a name that two credentials share. */
int as_credentials_new(const struct as_receiver_settings *settings,
                       const struct as_web_settings *web, struct as_credentials **credentials_out,
                       struct as_error *error) AS_MUST_USE;
struct as_credentials *as_credentials_free(struct as_credentials *credentials);

/* True: everyone may notify and read. */
bool as_credentials_is_empty(const struct as_credentials *credentials);
/* Whether any credential has this permission. */
bool as_credentials_has_permission(const struct as_credentials *credentials,
                                   enum as_permission permission);

/* What each credential may trigger, for the engine; owned by the credentials. */
const struct as_scope *as_credentials_get_scopes(const struct as_credentials *credentials,
                                                 size_t *count_out);

/* Number of each kind, to tell a client without a credential what it needs. */
struct as_credential_counts {
    size_t tokens, users, certificates, signatures, reviews;
    const struct as_proxy_settings *proxy; /* that reports who sends a request; NULL: none */
};
struct as_credential_counts as_credentials_count(const struct as_credentials *credentials);

/* The credential with this token; NULL: none. */
const struct as_credential *as_credentials_find_token(struct as_credentials *credentials,
                                                      const char *token, as_mono_time now);
const struct as_credential_user *as_credentials_find_user(const struct as_credentials *credentials,
                                                          const char *name); /* NULL: none */
/* The token or user with this name; NULL: none. */
const struct as_credential *as_credentials_find_name(struct as_credentials *credentials,
                                                     const char *name, as_mono_time now);
/* The most expensive hash; NULL: there are no users. */
const char *as_credentials_find_dearest_hash(const struct as_credentials *credentials);
/* The credential for a verified certificate's subject; NULL: none. */
const struct as_credential *as_credentials_find_certificate(
    const struct as_credentials *credentials, const char *subject);
struct as_credential_signature *as_credentials_get_signature(struct as_credentials *credentials,
                                                             size_t index);
/* The credential for a token's owner as the API server names it; NULL: none. */
const struct as_credential *as_credentials_find_review(const struct as_credentials *credentials,
                                                       const char *user, const char *const *groups,
                                                       size_t group_count);

AS_DEFINE_CLEANUP(struct as_credentials *, as_credentials_free)

#endif
