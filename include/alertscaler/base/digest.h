/*
 * A SHA-256 as a value, and as text: 64 hex digits. It is computed in layers that use OpenSSL.
 */
#ifndef ALERTSCALER_BASE_DIGEST_H
#define ALERTSCALER_BASE_DIGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <alertscaler/base/attr.h>

#define AS_DIGEST_TEXT_SIZE 65

struct as_digest {
    unsigned char bytes[32];
};

static inline int as_digest_compare(const struct as_digest *a, const struct as_digest *b)
{
    return memcmp(a->bytes, b->bytes, sizeof(a->bytes));
}

void as_digest_print(const struct as_digest *digest, char text_out[AS_DIGEST_TEXT_SIZE]);

/* False if the text is not 64 lower-case hex digits. */
bool as_digest_parse(const char *text, size_t size, struct as_digest *digest_out) AS_MUST_USE;

#endif
