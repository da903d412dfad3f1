/*
 * Bearer tokens from files: several at once, each with a name. Files are read again when they
 * change; while a changed file cannot be read the old token stays. Tokens are kept and compared
 * only as SHA-256, in constant time.
 */
#ifndef ALERTSCALER_APP_AUTH_H
#define ALERTSCALER_APP_AUTH_H

#include <stddef.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>
#include <alertscaler/base/time.h>

#define AS_AUTH_TOKEN_MAX 4096 /* bytes of a token; surrounding white space is not counted */

struct as_auth;

struct as_auth_token {
    const char *name;
    const char *file;
};

enum as_auth_outcome {
    AS_AUTH_OK,
    AS_AUTH_MISSING, /* no `Authorization: Bearer` header */
    AS_AUTH_WRONG
};

/* Everything is copied. 0; or a negative errno with an error that names the file (also -EINVAL for
 * an empty one). */
int as_auth_new(const struct as_auth_token *tokens, size_t count, struct as_auth **auth_out,
                struct as_error *error) AS_MUST_USE;
struct as_auth *as_auth_free(struct as_auth *auth);

/* Without any token everything is AS_AUTH_OK with the name "". `name_out` lives as long as `auth`.
 */
enum as_auth_outcome as_auth_check(struct as_auth *auth, const char *authorization,
                                   as_mono_time now, const char **name_out);

AS_DEFINE_CLEANUP(struct as_auth *, as_auth_free)

#endif
