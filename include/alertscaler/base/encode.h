/*
 * Text encodings: hexadecimal digits, percent-encoding (RFC 3986), base 64 (RFC 4648), UTF-8; and
 * digests.
 */
#ifndef ALERTSCALER_BASE_ENCODE_H
#define ALERTSCALER_BASE_ENCODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/buf.h>

/* Computed, not looked up: so the compiler makes many at once. */
static inline char as_encode_hex_digit(unsigned number)
{
    return (char)(number + (number < 10 ? '0' : 'a' - 10));
}

/* Two lower-case digits per byte; no NUL behind them. Inline: sizes are known to the compiler. */
static inline void as_encode_hex_digits(char *restrict digits_out, const void *restrict data,
                                        size_t size)
{
    const unsigned char *bytes = data;
    for (size_t i = 0; i < size; i++) {
        digits_out[2 * i] = as_encode_hex_digit(bytes[i] >> 4);
        digits_out[2 * i + 1] = as_encode_hex_digit(bytes[i] & 15);
    }
}

void as_encode_hex(struct as_buf *buf, const void *data, size_t size);
/* False where the text is not two lower-case digits a byte. */
bool as_decode_hex(const char *digits, size_t digit_count, void *data_out) AS_MUST_USE;

/* Writes %XX (upper-case digits) for all but A-Z a-z 0-9 - . _ ~ and the bytes in `keep`. */
void as_encode_percent(struct as_buf *buf, const char *text, size_t size, const char *keep);

/* base64: with + and / and padding. base64url: the URL-safe alphabet, without padding. */
void as_encode_base64(struct as_buf *buf, const void *data, size_t size);
void as_encode_base64url(struct as_buf *buf, const void *data, size_t size);

/* Writes one character in UTF-8, at most four bytes; returns the end of what was written. */
char *as_encode_utf8(char *out, uint32_t code);

/*
 * A SHA-256 as a value, and as text: 64 hex digits. It is computed in layers that use OpenSSL.
 */

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
