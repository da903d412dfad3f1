/*
 * The table behind http_chars.h. Each row is a set of characters with the same classes.
 */
#include "http_chars.h"

#define PRINTED (AS_HTTP_CHAR_TARGET | AS_HTTP_CHAR_REQUEST | AS_HTTP_CHAR_VALUE)
#define PLAIN   PRINTED /* in no grammar below */
#define MARK    (PRINTED | AS_HTTP_CHAR_TOKEN | AS_HTTP_CHAR_HOST)
#define NAME    (PRINTED | AS_HTTP_CHAR_TOKEN) /* in names, but not in hosts */
#define DELIM   (PRINTED | AS_HTTP_CHAR_HOST)  /* in hosts, but not in names */
#define HEX     (MARK | AS_HTTP_CHAR_HEX)
#define DIGIT   (HEX | AS_HTTP_CHAR_DIGIT)

const unsigned char as_http_chars[256] = {
    ['\t'] = AS_HTTP_CHAR_VALUE | AS_HTTP_CHAR_BLANK,
    [' '] = AS_HTTP_CHAR_VALUE | AS_HTTP_CHAR_BLANK | AS_HTTP_CHAR_REQUEST,
    ['!'] = MARK,
    ['"'] = PLAIN,
    ['#'] = AS_HTTP_CHAR_TOKEN | AS_HTTP_CHAR_REQUEST | AS_HTTP_CHAR_VALUE,
    ['$' ... '\''] = MARK,
    ['(' ... ')'] = DELIM,
    ['*' ... '+'] = MARK,
    [','] = DELIM,
    ['-' ... '.'] = MARK,
    ['/'] = PLAIN,
    ['0' ... '9'] = DIGIT,
    [':' ... ';'] = DELIM,
    ['<'] = PLAIN,
    ['='] = DELIM,
    ['>' ... '@'] = PLAIN,
    ['A' ... 'F'] = HEX,
    ['G' ... 'Z'] = MARK,
    ['['] = DELIM,
    ['\\'] = PLAIN,
    [']'] = DELIM,
    ['^'] = NAME,
    ['_'] = MARK,
    ['`'] = NAME,
    ['a' ... 'f'] = HEX,
    ['g' ... 'z'] = MARK,
    ['{'] = PLAIN,
    ['|'] = NAME,
    ['}'] = PLAIN,
    ['~'] = MARK,
    [0x80 ... 0xff] = AS_HTTP_CHAR_VALUE,
};
