/*
 * Questions about strings. Bytes are compared as bytes: no locale, no normal forms.
 */
#include <alertscaler/base/str.h>

#include <limits.h>
#include <stdint.h>
#include <string.h>

#define DISTANCE_MAX 64 /* bytes of a word */

bool as_str_equal(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

bool as_str_starts_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

static bool is_continuation(char byte)
{
    return ((unsigned char)byte & 0xc0) == 0x80;
}

/* Unicode, table 3-7. */
size_t as_str_measure_utf8(const char *bytes, size_t size)
{
    const unsigned char *text = (const unsigned char *)bytes, lead = size > 0 ? text[0] : 0xff;
    if (lead < 0x80)
        return 1;
    size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
    if (lead < 0xc2 || lead > 0xf4 || size < length)
        return 0;
    /* The second byte excludes overlong forms, surrogates and what is above U+10FFFF. */
    unsigned char low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
    unsigned char high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
    if (text[1] < low || text[1] > high)
        return 0;
    for (size_t i = 2; i < length; i++) {
        if (!is_continuation((char)text[i]))
            return 0;
    }
    return length;
}

bool as_str_is_utf8(const char *text, size_t size)
{
    for (size_t at = 0; at < size;) {
        size_t length = as_str_measure_utf8(text + at, size - at);
        if (length == 0)
            return false;
        at += length;
    }
    return true;
}

size_t as_str_cut_utf8(const char *text, size_t size, size_t max)
{
    if (size <= max)
        return size;
    size_t cut = max;
    while (cut > 0 && max - cut < 3 && is_continuation(text[cut]))
        cut--;
    return is_continuation(text[cut]) ? max : cut; /* not UTF-8 at all: cut at max */
}

void as_str_copy_line(const char *text, char *line_out, size_t size)
{
    size_t kept = as_str_cut_utf8(text, strlen(text), size - 1), width;
    for (size_t i = 0; i<kept; i += width> 0 ? width : 1) {
        width = as_str_measure_utf8(text + i, kept - i);
        if (width == 0)
            line_out[i] = '?';
        else if (width == 1 && ((unsigned char)text[i] < ' ' || text[i] == 0x7f))
            line_out[i] = ' ';
        else
            memcpy(line_out + i, text + i, width);
    }
    line_out[kept] = '\0';
}

static const char *next_character(const char *text)
{
    text++;
    while (is_continuation(*text))
        text++;
    return text;
}

bool as_str_is_visible(const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (text[i] <= ' ' || text[i] > '~')
            return false;
    }
    return true;
}

/* Only the last '*' is tried again, so it takes at most pattern times text steps. */
bool as_str_glob(const char *pattern, const char *text)
{
    const char *star = NULL, *star_text = NULL;
    while (*text) {
        if (*pattern == '*') {
            star = ++pattern;
            star_text = text;
        } else if (*pattern == '?') {
            pattern++;
            text = next_character(text);
        } else if (*pattern == *text) {
            pattern++;
            text++;
        } else if (star) {
            pattern = star;
            text = star_text = next_character(star_text);
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return *pattern == '\0';
}

static unsigned min_of(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* Levenshtein distance, where swapping two neighbours also counts as one edit ("optimal string
 * alignment"): the most common typing error should not count twice. */
unsigned as_str_distance(const char *a, const char *b)
{
    size_t a_size = strlen(a), b_size = strlen(b);
    if (a_size > DISTANCE_MAX || b_size > DISTANCE_MAX)
        return UINT_MAX;
    unsigned rows[3][DISTANCE_MAX + 1];
    for (unsigned j = 0; j <= b_size; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= a_size; i++) {
        unsigned *row = rows[i % 3];
        const unsigned *above = rows[(i + 2) % 3], *two_above = rows[(i + 1) % 3];
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= b_size; j++) {
            unsigned replaced = above[j - 1] + (a[i - 1] != b[j - 1]);
            row[j] = min_of(replaced, min_of(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = min_of(row[j], two_above[j - 2] + 1);
        }
    }
    return rows[a_size % 3][b_size];
}

bool as_str_equal_constant_time(const void *a, const void *b, size_t size)
{
    const volatile uint8_t *left = a, *right = b;
    unsigned difference = 0;
    for (size_t i = 0; i < size; i++)
        difference |= left[i] ^ (unsigned)right[i];
    return difference == 0;
}
