/*
 * The character classes of RFC 9110 and 9112, as one table.
 */
#ifndef ALERTSCALER_SRC_HTTP_HTTP_CHARS_H
#define ALERTSCALER_SRC_HTTP_HTTP_CHARS_H

#include <stdbool.h>

enum as_http_char {
    AS_HTTP_CHAR_TOKEN = 1 << 0,   /* methods, header names */
    AS_HTTP_CHAR_TARGET = 1 << 1,  /* path and query: printable ASCII without space and '#' */
    AS_HTTP_CHAR_REQUEST = 1 << 2, /* anywhere in a request line: printable ASCII and space */
    AS_HTTP_CHAR_VALUE = 1 << 3,   /* header values: also tab and bytes above ASCII */
    AS_HTTP_CHAR_HOST = 1 << 4,    /* reg-name, IPv6 literals, port */
    AS_HTTP_CHAR_DIGIT = 1 << 5,
    AS_HTTP_CHAR_HEX = 1 << 6,
    AS_HTTP_CHAR_BLANK = 1 << 7, /* space and tab */
};

extern const unsigned char as_http_chars[256];

static inline bool as_http_char_is(char byte, unsigned char class)
{
    return as_http_chars[(unsigned char)byte] & class;
}

#endif
