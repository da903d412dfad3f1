/*
 * Questions about strings that <string.h> does not answer.
 */
#ifndef ALERTSCALER_BASE_STR_H
#define ALERTSCALER_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>

#include <alertscaler/base/attr.h>

static inline bool as_str_is_empty(const char *text)
{
    return !text || !*text;
}

bool as_str_equal(const char *a, const char *b); /* NULL equals only NULL */
bool as_str_starts_with(const char *text, const char *prefix);
/* Bytes of the character at the start of `text`; 0 where none begins there. No surrogates, no
 * overlong forms. */
size_t as_str_measure_utf8(const char *text, size_t size);
bool as_str_is_utf8(const char *text, size_t size);

/* The longest prefix of at most `max` bytes that does not cut a UTF-8 sequence. */
size_t as_str_cut_utf8(const char *text, size_t size, size_t max);

/* Other people's words as one line of at most `size` - 1 bytes of UTF-8: control characters become
 * spaces, bytes of no character question marks; what does not fit is cut, between characters. */
void as_str_copy_line(const char *text, char *line_out, size_t size);

/* Shell-like glob with * and ? over the whole text; linear in practice, no backtracking blow-up. */
bool as_str_glob(const char *pattern, const char *text);

/* Number of edits between two short words (up to 64 bytes; more counts as "far"), for "did you
 * mean". */
unsigned as_str_distance(const char *a, const char *b);

/* Compares `size` bytes in a time that does not depend on what they hold. */
bool as_str_equal_constant_time(const void *a, const void *b, size_t size);

/* Whole content of a small file (at most `max` bytes): 0 and NUL-terminated memory for free();
 * -EFBIG when larger, else the negative errno. */
int as_file_read(const char *path, size_t max, char **data_out, size_t *size_out) AS_MUST_USE;

#endif
