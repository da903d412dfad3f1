/*
 * HMAC-SHA256 of a request's body, in lower-case hex, as Grafana's webhook contact point sends it.
 * If the time is signed too, it comes first: "1700000000:" and the body.
 */
#ifndef ALERTSCALER_SRC_AUTH_AUTH_SIGNATURE_H
#define ALERTSCALER_SRC_AUTH_AUTH_SIGNATURE_H

#include <stddef.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>
#include <alertscaler/port/clock.h>

#include <alertscaler/auth/credentials.h>

struct as_signed_request { /* borrowed */
    const char *signature; /* the header */
    const char *timestamp; /* its header; NULL: none was sent */
    const char *body;
    size_t body_size;
};

/* 0; or a negative errno with an error for the client, which reveals no secret: -EACCES if wrong or
 * too old, others if the secret cannot be read. */
int as_signature_check(struct as_credential_signature *signature,
                       const struct as_signed_request *request, const struct as_clock *clock,
                       struct as_error *error) AS_MUST_USE;

#endif
