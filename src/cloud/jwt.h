/*
 * JSON Web Tokens with an RSA signature (RFC 7519; RS256 of RFC 7518).
 */
#ifndef ALERTSCALER_SRC_CLOUD_JWT_H
#define ALERTSCALER_SRC_CLOUD_JWT_H

#include <alertscaler/base/attr.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/error.h>

/*
 * Appends header.claims.signature, in a form that is valid in URLs and forms. `header` and `claims`
 * are JSON texts, `header` contains "alg":"RS256"; `pem` is the private key. 0; -EINVAL with an
 * error if `pem` is not an RSA key without a passphrase.
 */
int jwt_append_rs256(struct as_buf *out, const char *header, const char *claims, const char *pem,
                     struct as_error *error) AS_MUST_USE;

#endif
