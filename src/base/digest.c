/*
 * SHA-256 digests as text.
 */
#include <alertscaler/base/digest.h>

static const char digits[] = "0123456789abcdef";

/* Computed, not looked up, so that the compiler can vectorize it. */
static char get_digit(unsigned number)
{
    return (char)(number + (number < 10 ? '0' : 'a' - 10));
}

void as_digest_print(const struct as_digest *digest, char text_out[AS_DIGEST_TEXT_SIZE])
{
    const struct as_digest copy = *digest;
    for (size_t i = 0; i < sizeof(copy.bytes); i++) {
        text_out[2 * i] = get_digit(copy.bytes[i] >> 4);
        text_out[2 * i + 1] = get_digit(copy.bytes[i] & 15);
    }
    text_out[2 * sizeof(digest->bytes)] = '\0';
}

bool as_digest_parse(const char *text, size_t size, struct as_digest *digest_out)
{
    struct as_digest digest = {{0}};
    if (size != 2 * sizeof(digest.bytes))
        return false;
    for (size_t i = 0; i < size; i++) {
        const char *digit = memchr(digits, text[i], sizeof(digits) - 1);
        if (!digit)
            return false;
        digest.bytes[i / 2] = (unsigned char)(digest.bytes[i / 2] << 4 | (digit - digits));
    }
    *digest_out = digest;
    return true;
}
