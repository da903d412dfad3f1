/*
 * Text encodings, and SHA-256 digests as text. Writers append to a buffer; readers refuse what is
 * not in the one form that the header names.
 */
#include <alertscaler/base/encode.h>

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

void as_encode_hex(struct as_buf *buf, const void *data, size_t size)
{
    char *end = as_buf_reserve(buf, 2 * size);
    if (!end)
        return;
    as_encode_hex_digits(end, data, size);
    end[2 * size] = '\0';
    buf->size += 2 * size;
}

bool as_decode_hex(const char *digits, size_t digit_count, void *data_out)
{
    static const char all[] = "0123456789abcdef";
    unsigned char *bytes = data_out;
    if (digit_count % 2 != 0)
        return false;
    for (size_t i = 0; i < digit_count; i++) {
        const char *digit = memchr(all, digits[i], sizeof(all) - 1);
        if (!digit)
            return false;
        bytes[i / 2] = (unsigned char)((i % 2 ? bytes[i / 2] << 4 : 0) | (digit - all));
    }
    return true;
}

static bool is_unreserved(char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
           (byte >= '0' && byte <= '9') || (byte && strchr("-._~", byte));
}

void as_encode_percent(struct as_buf *buf, const char *text, size_t size, const char *keep)
{
    static const char digits[] = "0123456789ABCDEF";
    for (size_t i = 0; i < size; i++) {
        const unsigned char byte = (unsigned char)text[i];
        if (is_unreserved(text[i]) || (text[i] && strchr(keep, text[i]))) {
            as_buf_append_char(buf, text[i]);
        } else {
            const char escape[] = {'%', digits[byte >> 4], digits[byte & 15]};
            as_buf_append(buf, escape, sizeof(escape));
        }
    }
}

static void encode_64(struct as_buf *buf, const unsigned char *bytes, size_t size,
                      const char alphabet[64], bool is_padded)
{
    for (size_t i = 0; i < size; i += 3) {
        const size_t count = size - i < 3 ? size - i : 3;
        const uint32_t group = (uint32_t)bytes[i] << 16 |
                               (count > 1 ? (uint32_t)bytes[i + 1] << 8 : 0) |
                               (count > 2 ? (uint32_t)bytes[i + 2] : 0);
        const char digits[] = {alphabet[group >> 18], alphabet[group >> 12 & 63],
                               alphabet[group >> 6 & 63], alphabet[group & 63]};
        as_buf_append(buf, digits, count + 1);
        as_buf_append(buf, "==", is_padded ? 3 - count : 0);
    }
}

#define LETTERS_AND_DIGITS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

void as_encode_base64(struct as_buf *buf, const void *data, size_t size)
{
    encode_64(buf, data, size, LETTERS_AND_DIGITS "+/", true);
}

void as_encode_base64url(struct as_buf *buf, const void *data, size_t size)
{
    encode_64(buf, data, size, LETTERS_AND_DIGITS "-_", false);
}

char *as_encode_utf8(char *out, uint32_t code)
{
    if (code < 0x80) {
        *out++ = (char)code;
    } else if (code < 0x800) {
        *out++ = (char)(0xC0 | code >> 6);
        *out++ = (char)(0x80 | (code & 0x3F));
    } else if (code < 0x10000) {
        *out++ = (char)(0xE0 | code >> 12);
        *out++ = (char)(0x80 | (code >> 6 & 0x3F));
        *out++ = (char)(0x80 | (code & 0x3F));
    } else {
        *out++ = (char)(0xF0 | code >> 18);
        *out++ = (char)(0x80 | (code >> 12 & 0x3F));
        *out++ = (char)(0x80 | (code >> 6 & 0x3F));
        *out++ = (char)(0x80 | (code & 0x3F));
    }
    return out;
}

/*
 * SHA-256 digests as text.
 */

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
