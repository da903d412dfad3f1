/*
 * SHA-256 digests as text.
 */
#include <alertscaler/base/digest.h>

#include <alertscaler/base/encode.h>

void as_digest_print(const struct as_digest *digest, char text_out[AS_DIGEST_TEXT_SIZE])
{
    as_encode_hex_digits(text_out, digest->bytes, sizeof(digest->bytes));
    text_out[AS_DIGEST_TEXT_SIZE - 1] = '\0';
}

bool as_digest_parse(const char *text, size_t size, struct as_digest *digest_out)
{
    struct as_digest digest;
    if (size != 2 * sizeof(digest.bytes) || !as_decode_hex(text, size, digest.bytes))
        return false;
    *digest_out = digest;
    return true;
}
