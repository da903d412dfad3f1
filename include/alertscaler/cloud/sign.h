/*
 * Signatures of requests: each function adds header lines to an otherwise complete request. Pure:
 * the caller gives the time. 0; or a negative errno with an error if the credentials cannot sign.
 */
#ifndef ALERTSCALER_CLOUD_SIGN_H
#define ALERTSCALER_CLOUD_SIGN_H

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>
#include <alertscaler/base/time.h>
#include <alertscaler/cloud/provider_credentials.h>
#include <alertscaler/cloud/talk.h>

struct as_sign_scope {
    const char *region, *service;
    as_wall_time now;  /* by the other side's clock */
    const char *nonce; /* unique per request */
};

typedef int as_sign_fn(struct as_talk *talk, const struct as_provider_credentials *credentials,
                       const struct as_sign_scope *scope, struct as_error *error);

as_sign_fn as_sign_bearer; /* Authorization: Bearer <token> (RFC 6750) */
as_sign_fn as_sign_token;  /* X-Auth-Token: <token> */
as_sign_fn as_sign_aws;    /* AWS Signature Version 4 */
as_sign_fn as_sign_acs;    /* Alibaba Cloud's ACS3-HMAC-SHA256 */
as_sign_fn as_sign_bce;    /* Baidu's bce-auth-v1 */

#endif
