/*
 * Unsafe characters: see the header. C0, DEL and C1 may be terminal commands. Bidirectional
 * controls and line separators change what a reader sees. U+FEFF is invisible; U+FFFE and U+FFFF
 * are no characters.
 */
#include <alertscaler/base/safe_text.h>

#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/str.h>

static const struct {
    uint32_t first, last;
} unsafe[] = {
    {0x00, 0x1f},     {0x7f, 0x9f},     {0x61c, 0x61c},   {0x200e, 0x200f},
    {0x2028, 0x202e}, {0x2066, 0x2069}, {0xfeff, 0xfeff}, {0xfffe, 0xffff},
};

static uint32_t decode(const unsigned char *bytes, size_t size)
{
    static const unsigned char masks[] = {[1] = 0x7f, [2] = 0x1f, [3] = 0x0f, [4] = 0x07};
    uint32_t code = bytes[0] & masks[size];
    for (size_t i = 1; i < size; i++)
        code = code << 6 | (bytes[i] & 0x3f);
    return code;
}

struct as_safe_char as_safe_char_read(const char *text, size_t size)
{
    const size_t length = as_str_measure_utf8(text, size);
    if (length == 0)
        return (struct as_safe_char){(unsigned char)*text, 1, false, true};
    const uint32_t code = decode((const unsigned char *)text, length);
    bool is_unsafe = false;
    for (size_t i = 0; i < AS_ARRAY_SIZE(unsafe); i++)
        is_unsafe = is_unsafe || (code >= unsafe[i].first && code <= unsafe[i].last);
    return (struct as_safe_char){code, (unsigned)length, true, is_unsafe};
}

static void put(FILE *out, const char *text, const char *allowed)
{
    const size_t size = strlen(text);
    struct as_safe_char read;
    for (size_t i = 0; i < size; i += read.size) {
        read = as_safe_char_read(text + i, size - i);
        if (!read.is_unsafe || strchr(allowed, text[i]))
            fwrite(text + i, 1, read.size, out);
        else
            fprintf(out, read.code < 0x100 ? "\\x%02x" : "\\u%04x", (unsigned)read.code);
    }
}

void as_safe_text_put(FILE *out, const char *text)
{
    put(out, text, "");
}

void as_safe_text_put_lines(FILE *out, const char *text)
{
    put(out, text, "\n\t");
}

char *as_safe_text_take(char *text)
{
    char *safe = NULL;
    size_t size;
    FILE *out = open_memstream(&safe, &size);
    if (!out)
        abort(); /* only without memory */
    as_safe_text_put(out, text);
    if (fclose(out) != 0)
        abort();
    free(text);
    return safe;
}

/* Outside of JSON's texts there are only white space and ASCII. */
void as_safe_json_put(FILE *out, const char *json, size_t size)
{
    struct as_safe_char read;
    for (size_t i = 0; i < size; i += read.size) {
        read = as_safe_char_read(json + i, size - i);
        if (!read.is_unsafe || json[i] == '\n' || json[i] == '\t' || json[i] == '\r')
            fwrite(json + i, 1, read.size, out);
        else
            fprintf(out, "\\u%04x", read.is_valid ? (unsigned)read.code : 0xfffd);
    }
}
