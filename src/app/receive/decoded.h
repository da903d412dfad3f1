/*
 * What notifications have been decoded, by their bytes: Alertmanager sends the same body for a
 * group until something in it changes. What a body says depends on nothing but its bytes, so who
 * sent it, and what came of it, play no part. Beside it is room for a shell to remember where the
 * log has the details of the body's repeats.
 */
#ifndef ALERTSCALER_SRC_APP_RECEIVE_DECODED_H
#define ALERTSCALER_SRC_APP_RECEIVE_DECODED_H

#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>
#include <alertscaler/core/notification.h>

struct as_decoded;

struct as_decoded_counts {
    uint64_t hits, misses;
    size_t bytes; /* now kept */
};

/* `max`: bytes of memory that all of it may take; what was used longest ago goes first. */
struct as_decoded *as_decoded_new(size_t max) AS_MUST_USE;
struct as_decoded *as_decoded_free(struct as_decoded *decoded);
void as_decoded_set_max(struct as_decoded *decoded, size_t max);

/*
 * The notification of a body, with `body_sha256` and `body_size`, but nothing else from the
 * request. It is lent until the next call of any of these functions: the texts from the request are
 * the caller's to fill until then. Errors as of as_payload_decode.
 */
int as_decoded_get(struct as_decoded *decoded, const char *body, size_t size,
                   struct as_notification **notification_out, struct as_error *error) AS_MUST_USE;

struct as_decoded_counts as_decoded_get_counts(const struct as_decoded *decoded);

#endif
