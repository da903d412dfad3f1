/*
 * Texts from outside, as people may see them: which characters could control a terminal, forge a
 * line, or show a text in another order than it has. Every output asks as_safe_char_read and writes
 * its own escape: pages and charts U+FFFD, the log and JSON \\uXXXX, terminals \\xXX or \\uXXXX.
 */
#ifndef ALERTSCALER_BASE_SAFE_TEXT_H
#define ALERTSCALER_BASE_SAFE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <alertscaler/base/attr.h>

struct as_safe_char {
    uint32_t code;  /* of an invalid byte: the byte */
    unsigned size;  /* in bytes, at least 1 */
    bool is_valid;  /* UTF-8 */
    bool is_unsafe; /* or not valid; also a newline and a tab, which some outputs allow */
};

/* The character at the start of a text of at least one byte. */
struct as_safe_char as_safe_char_read(const char *text, size_t size);

/* For a terminal: a text that stays within its line. */
void as_safe_text_put(FILE *out, const char *text);
/* The same of a text of several lines: newlines and tabs stay. */
void as_safe_text_put_lines(FILE *out, const char *text);
/* as_safe_text_put as a text for free(); frees the argument. */
char *as_safe_text_take(char *text) AS_MUST_USE;
/* A JSON document, which stays the same document. */
void as_safe_json_put(FILE *out, const char *json, size_t size);

#endif
