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
/* Bytes of the UTF-8 character at the start of `text`; 0 if the bytes are not valid UTF-8.
 * Surrogates and overlong forms are not valid. */
size_t as_str_measure_utf8(const char *text, size_t size);
bool as_str_is_utf8(const char *text, size_t size);

/* Whether all bytes are ASCII characters that can be seen: no blank, no control character. */
bool as_str_is_visible(const char *text, size_t size);

/* The longest prefix of at most `max` bytes that does not cut a UTF-8 sequence. */
size_t as_str_cut_utf8(const char *text, size_t size, size_t max);

/* Copies a text from outside as one line of at most `size` - 1 bytes of UTF-8. Control characters
 * become spaces, invalid bytes become question marks. A longer text is cut between characters. */
void as_str_copy_line(const char *text, char *line_out, size_t size);

/* Shell-like glob with * and ? over the whole text. No exponential backtracking. */
bool as_str_glob(const char *pattern, const char *text);

/* Edit distance between two words, for "did you mean"; a word above 64 bytes counts as far. */
unsigned as_str_distance(const char *a, const char *b);

/* Compares `size` bytes in a time that does not depend on their values. */
bool as_str_equal_constant_time(const void *a, const void *b, size_t size);

/* Reads a whole file of at most `max` bytes. 0 and NUL-terminated memory, which the caller frees
 * with free(); -EFBIG if the file is larger; else a negative errno. */
int as_file_read(const char *path, size_t max, char **data_out, size_t *size_out) AS_MUST_USE;

#endif
