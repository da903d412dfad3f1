/*
 * JSON (RFC 8259) that arrives in parts, cut anywhere: checked as it comes, without a tree. Reports
 * the tokens of shallow containers and passes over what is deeper.
 *
 * Checked are the grammar, the escapes and the nesting; not the UTF-8 of texts, surrogates, and
 * whether names repeat.
 */
#ifndef ALERTSCALER_DOC_JSON_SCAN_H
#define ALERTSCALER_DOC_JSON_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/error.h>

#define JSON_SCAN_DEPTH_MAX 64
#define JSON_SCAN_TEXT_MAX  ((size_t)16 * 1024) /* bytes of a name, or of a text that is wanted */

enum json_token {
    JSON_TOKEN_NONE,   /* not reported */
    JSON_TOKEN_MORE,   /* the part is used up */
    JSON_TOKEN_NAME,   /* of a member: `text` */
    JSON_TOKEN_STRING, /* `text`, if it is wanted */
    JSON_TOKEN_NULL,
    JSON_TOKEN_OTHER, /* a number, true, false */
    JSON_TOKEN_OBJECT,
    JSON_TOKEN_ARRAY,
    JSON_TOKEN_CLOSE, /* of an object or an array */
    JSON_TOKEN_ERROR
};

struct json_scan {
    /* The caller's: */
    unsigned told_depth; /* tokens in containers below this depth are not reported */
    bool wants_text;     /* of the next value, if it is a string; falls back to false */

    /* For the caller: */
    unsigned depth;   /* open containers; 0: between documents */
    const char *at;   /* behind the token, in the present part */
    const char *text; /* escapes decoded; valid until the next call */
    size_t text_size;
    const char *error; /* what was expected, behind JSON_TOKEN_ERROR; static memory */

    /* The scanner's own: */
    const char *begin, *end;
    uint64_t offset; /* of `begin` */
    uint64_t arrays; /* a bit for each open container: an array */
    int state;
    unsigned number, escape; /* states within a number; within an escape */
    const char *rest;        /* of a literal */
    const char *from;        /* of the text, in the present part */
    bool keeps_text, has_escape;
    struct as_buf kept, decoded;
};

void json_scan_init(struct json_scan *scan, unsigned told_depth);
void json_scan_deinit(struct json_scan *scan);

/* The next part, after JSON_TOKEN_MORE; borrowed until the next JSON_TOKEN_MORE. */
void json_scan_feed(struct json_scan *scan, const char *bytes, size_t size);
enum json_token json_scan_next(struct json_scan *scan) AS_MUST_USE;

/* The bytes since the beginning up to `at`. */
uint64_t json_scan_get_offset(const struct json_scan *scan);
/* Whether a document has begun and not ended. */
bool json_scan_is_inside(const struct json_scan *scan);

/* The bytes of a member's value, an object or an array, in a whole document; they are borrowed. The
 * first one counts. False: the document's root has no such member, or is no valid JSON up to its
 * end. */
bool json_scan_find_member(const char *json, size_t size, const char *name, const char **value_out,
                           size_t *size_out) AS_MUST_USE;

#endif
