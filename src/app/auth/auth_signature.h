/*
 * HMAC-SHA256 over the body of a request, in lower-case hex, as Grafana's webhook contact point
 * sends it; with a time in front where it is signed too: "1700000000:" and the body.
 */
#ifndef ALERTSCALER_SRC_APP_AUTH_AUTH_SIGNATURE_H
#define ALERTSCALER_SRC_APP_AUTH_AUTH_SIGNATURE_H

#include <stddef.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>
#include <alertscaler/port/clock.h>

#include "credentials.h"

struct as_signed_request { /* borrowed */
    const char *signature; /* the header */
    const char *timestamp; /* likewise; NULL: none was sent */
    const char *body;
    size_t body_size;
};

/* 0; or a negative errno with an error for the client, which tells no secret: -EACCES where it is
 * wrong or too old, another where the secret cannot be read. */
int as_signature_check(struct as_credential_signature *signature,
                       const struct as_signed_request *request, const struct as_clock *clock,
                       struct as_error *error) AS_MUST_USE;

#endif
