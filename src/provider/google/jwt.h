/*
 * JSON Web Tokens with an RSA signature (RFC 7519; RS256 of RFC 7518).
 */
#ifndef ALERTSCALER_SRC_PROVIDER_JWT_H
#define ALERTSCALER_SRC_PROVIDER_JWT_H

#include <alertscaler/base/attr.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/error.h>

/*
 * Appends header.claims.signature, as a URL or a form may have it. `header` and `claims` are JSON
 * texts, `header` with "alg":"RS256" in it; `pem` is the private key. 0; -EINVAL with an error
 * where `pem` is no RSA key without a passphrase.
 */
int jwt_append_rs256(struct as_buf *out, const char *header, const char *claims, const char *pem,
                     struct as_error *error) AS_MUST_USE;

#endif
