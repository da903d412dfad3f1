/*
 * A strict, bounded parser of HTTP/1.0 and 1.1 requests (RFC 9110, 9112). Pure: bytes in, offsets
 * out, no I/O, no memory of its own. Called again with more of the same bytes, it goes on where it
 * stopped; the result does not depend on how the bytes were cut.
 *
 * Two machines: as_http_head for the request line and headers, as_http_chunks for a chunked body.
 *
 * Refused, where other parsers guess: bare CR or LF, NUL and other control characters, folded
 * headers, space before a colon, more than one space in the request line, Content-Length twice or
 * with Transfer-Encoding, any transfer coding other than a single `chunked`, no Host or several.
 */
#ifndef ALERTSCALER_SRC_HTTP_HTTP_PARSER_H
#define ALERTSCALER_SRC_HTTP_HTTP_PARSER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/attr.h>

#define AS_HTTP_FIELDS_MAX        100
#define AS_HTTP_HEAD_MAX          (1024 * 1024) /* the largest `max` of as_http_head_init */
#define AS_HTTP_CHUNK_LINE_MAX    256           /* size and extension of one chunk */
#define AS_HTTP_CHUNK_EXCESS_MAX  (16 * 1024)   /* extensions of all chunks */
#define AS_HTTP_CHUNK_TRAILER_MAX 4096

enum as_http_parse {
    AS_HTTP_PARSE_DONE = 0,
    AS_HTTP_PARSE_MORE,   /* no error so far: call again with more bytes */
    AS_HTTP_PARSE_REFUSED /* answer `status` and close: later bytes cannot be trusted */
};

enum as_http_framing { AS_HTTP_BODY_NONE, AS_HTTP_BODY_LENGTH, AS_HTTP_BODY_CHUNKED };

struct as_http_span { /* a part of the head */
    uint32_t at, size;
};

struct as_http_field { /* the value without white space around it */
    struct as_http_span name, value;
};

struct as_http_head {
    /* Valid after AS_HTTP_PARSE_DONE. */
    struct as_http_span method;
    struct as_http_span path;  /* as sent, not decoded; empty for "http://host", which means "/" */
    struct as_http_span query; /* behind the first '?'; empty if there is no '?' */
    unsigned minor;            /* HTTP/1.minor: 0 or 1 */
    unsigned field_count;
    enum as_http_framing framing;
    uint64_t content_length; /* with AS_HTTP_BODY_LENGTH */
    bool keep_alive;         /* the peer allows the connection to stay open */
    bool expects_continue;   /* the peer waits for "100 Continue" */
    size_t size;             /* of the whole head, with its empty line */

    /* Valid after AS_HTTP_PARSE_REFUSED. */
    int status;
    const char *reason; /* one line, static */

    /* Progress of the parser. */
    size_t max, line_at, scanned;
    bool have_request_line;
    unsigned seen;

    struct as_http_field fields[AS_HTTP_FIELDS_MAX];
};

/* Prepares for the next request, whose head may have `max` bytes (at most AS_HTTP_HEAD_MAX). */
void as_http_head_init(struct as_http_head *head, size_t max);

/* `bytes` holds the request from its first byte in each call; its address may change. */
enum as_http_parse as_http_head_parse(struct as_http_head *head, const char *bytes,
                                      size_t size) AS_MUST_USE;

struct as_http_chunks {
    int status; /* after AS_HTTP_PARSE_REFUSED */
    const char *reason;

    int state; /* private to http_parser.c */
    unsigned digits;
    uint64_t left; /* data bytes of the chunk not yet seen */
    size_t line;   /* bytes of the present size line, or of the trailers */
    uint64_t excess;
    char name[20]; /* the beginning of the present trailer's name */
    unsigned name_size;
};

void as_http_chunks_init(struct as_http_chunks *chunks);

/*
 * Takes the next bytes of the body, each byte once. *used_out of them were used, and at most one
 * run of body bytes was found among them. Call again with the rest until all bytes are used.
 * AS_HTTP_PARSE_DONE comes at the end of the body, before the bytes that follow it. Trailers are
 * checked and dropped; a trailer that concerns framing or routing is refused.
 */
enum as_http_parse as_http_chunks_step(struct as_http_chunks *chunks, const char *bytes,
                                       size_t size, size_t *used_out, const char **data_out,
                                       size_t *data_size_out) AS_MUST_USE;

#endif
