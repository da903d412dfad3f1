/*
 * TokenReview of authentication.k8s.io/v1: asks an API server to whom a token belongs.
 */
#ifndef ALERTSCALER_KUBE_TOKEN_REVIEW_H
#define ALERTSCALER_KUBE_TOKEN_REVIEW_H

#include <stdbool.h>
#include <stddef.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/error.h>

#define AS_REVIEW_GROUPS_MAX 1000

struct as_reviewed {    /* its owner */
    bool authenticated; /* false: invalid, or for other audiences; the rest is empty */
    const char *user;
    const char *const *groups;
    size_t group_count;
};

/* Afterwards the buffer contains the token: wipe it. */
void as_token_review_encode(const char *token, const char *const *audiences, size_t audience_count,
                            struct as_buf *out);

/*
 * Calls `use` before it returns; the data are valid for that call. 0; or -EBADMSG with an error,
 * also if audiences were requested and the answer names none of them: an API server that does not
 * know audiences omits them, and would accept every token.
 */
typedef void as_reviewed_fn(void *context, const struct as_reviewed *reviewed);
int as_token_review_decode(const char *json, size_t size, const char *const *audiences,
                           size_t audience_count, as_reviewed_fn *use, void *context,
                           struct as_error *error) AS_MUST_USE;

#endif
