/*
 * A cache of decoded notifications by their bytes: Alertmanager repeats the same body for a group
 * until something changes. The decoded content depends only on the bytes, not on the sender or the
 * outcome. Each entry has room for the shell's base of small records of repeats.
 */
#ifndef ALERTSCALER_RUNTIME_DECODED_H
#define ALERTSCALER_RUNTIME_DECODED_H

#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>
#include <alertscaler/decide/notification.h>

struct as_decoded;

struct as_decoded_counts {
    uint64_t hits, misses;
    size_t bytes; /* present size */
};

/* `max`: bytes of memory for the whole cache; the least recently used entry is evicted first. While
 * narrowed credentials have more than half of the memory, one of that with most of it is. */
struct as_decoded *as_decoded_new(size_t max) AS_MUST_USE;
struct as_decoded *as_decoded_free(struct as_decoded *decoded);
void as_decoded_set_max(struct as_decoded *decoded, size_t max);

/*
 * The notification of a body, with `body_sha256` and `body_size`, but nothing else from the
 * request. It is lent until the next call of any of these functions: the caller fills in the texts
 * from the request until then. Errors as of as_payload_decode. `narrowed`: the
 * sender's credential, if it is narrowed; else NULL.
 */
int as_decoded_get(struct as_decoded *decoded, const char *body, size_t size, const char *narrowed,
                   struct as_notification **notification_out, struct as_error *error) AS_MUST_USE;

struct as_decoded_counts as_decoded_get_counts(const struct as_decoded *decoded);

#endif
