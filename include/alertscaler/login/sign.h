/*
 * Signatures of requests: each function adds header lines to an otherwise complete request. Pure:
 * the caller gives the time. 0; or a negative errno with an error if the credentials cannot sign.
 */
#ifndef ALERTSCALER_LOGIN_SIGN_H
#define ALERTSCALER_LOGIN_SIGN_H

#include <stddef.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/error.h>
#include <alertscaler/base/time.h>
#include <alertscaler/login/cloud_op.h>
#include <alertscaler/login/provider_credentials.h>

struct as_sign_scope {
    const char *region, *service;
    as_wall_time now;  /* by the other side's clock */
    const char *nonce; /* unique per request */
};

typedef int as_sign_fn(struct as_cloud_op *op, const struct as_provider_credentials *credentials,
                       const struct as_sign_scope *scope, struct as_error *error);

as_sign_fn as_sign_bearer; /* Authorization: Bearer <token> (RFC 6750) */
as_sign_fn as_sign_token;  /* X-Auth-Token: <token> */
as_sign_fn as_sign_aws;    /* AWS Signature Version 4 */
as_sign_fn as_sign_acs;    /* Alibaba Cloud's ACS3-HMAC-SHA256 */
as_sign_fn as_sign_bce;    /* Baidu's bce-auth-v1 */

/*
 * What the signatures of the clouds have in common: requests in canonical form, and keyed digests.
 */

#define CANONICAL_MAX     (2 * AS_CLOUD_OP_BODY_MAX)
#define CANONICAL_SHA_HEX 65 /* SHA-256 in hexadecimal, with NUL */

struct canonical_url { /* parts of a URL; not NUL-terminated */
    const char *host, *path, *query;
    size_t host_size, path_size, query_size; /* the host with its port; the path may be empty */
};

void canonical_split(const char *url, struct canonical_url *parts_out);

struct canonical_header {
    const char *name;  /* in lower case */
    const char *value; /* trimmed, with single spaces */
};
/* The request's headers in ascending order of names; equal names are joined by commas. */
size_t canonical_headers(struct as_cloud_op *op,
                         struct canonical_header headers_out[AS_CLOUD_OP_HEADERS_MAX]);

void canonical_sha256(const void *data, size_t size, char hex_out[CANONICAL_SHA_HEX]);
/* HMAC-SHA256; key_size may be 0. */
void canonical_hmac_hex(const void *key, size_t key_size, const char *text,
                        char hex_out[CANONICAL_SHA_HEX]);

#endif
