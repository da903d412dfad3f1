/*
 * Bytes as text: see the header.
 */
#include <alertscaler/base/encode.h>

#include <string.h>

void as_encode_hex(struct as_buf *buf, const void *data, size_t size)
{
    static const char digits[] = "0123456789abcdef";
    const unsigned char *bytes = data;
    for (size_t i = 0; i < size; i++) {
        const char pair[] = {digits[bytes[i] >> 4], digits[bytes[i] & 15]};
        as_buf_append(buf, pair, sizeof(pair));
    }
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
