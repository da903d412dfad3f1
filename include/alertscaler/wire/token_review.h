/*
 * TokenReview of authentication.k8s.io/v1: asking an API server whose token that is.
 */
#ifndef ALERTSCALER_WIRE_TOKEN_REVIEW_H
#define ALERTSCALER_WIRE_TOKEN_REVIEW_H

#include <stdbool.h>
#include <stddef.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/error.h>

#define AS_REVIEW_GROUPS_MAX 1000

struct as_reviewed {    /* whose it is */
    bool authenticated; /* false: nobody's, or for none of the audiences; the rest is empty */
    const char *user;
    const char *const *groups;
    size_t group_count;
};

/* The buffer holds the token then: wipe it. */
void as_token_review_encode(const char *token, const char *const *audiences, size_t audience_count,
                            struct as_buf *out);

/*
 * Calls `use` within the call, with what is good for that long. 0; or -EBADMSG with an error, also
 * where audiences were asked for and the answer names none of them: an API server that does not
 * know audiences says nothing of them, and would let every token through.
 */
typedef void as_reviewed_fn(void *context, const struct as_reviewed *reviewed);
int as_token_review_decode(const char *json, size_t size, const char *const *audiences,
                           size_t audience_count, as_reviewed_fn *use, void *context,
                           struct as_error *error) AS_MUST_USE;

#endif
