/*
 * A strict, bounded HTTP/1.0 and 1.1 request parser (RFC 9110, 9112). Pure: bytes in, offsets out,
 * no I/O, no memory of its own. Fed with more of the same bytes it goes on where it stopped, and
 * the result does not depend on how they were cut.
 *
 * Two machines: as_http_head for the request line and headers, as_http_chunks for a chunked body.
 *
 * Refused where others guess: bare CR or LF, NUL and other control characters, folded headers,
 * space before a colon, more than one space in the request line, Content-Length twice or with
 * Transfer-Encoding, any transfer coding but a single `chunked`, more or less than one Host.
 */
#ifndef ALERTSCALER_NET_HTTP_PARSER_H
#define ALERTSCALER_NET_HTTP_PARSER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/attr.h>

#define AS_HTTP_FIELDS_MAX        100
#define AS_HTTP_HEAD_MAX          (1024 * 1024) /* the largest head that may be asked for */
#define AS_HTTP_CHUNK_LINE_MAX    256           /* size and extension of one chunk */
#define AS_HTTP_CHUNK_EXCESS_MAX  (16 * 1024)   /* extensions of all chunks */
#define AS_HTTP_CHUNK_TRAILER_MAX 4096

enum as_http_parse {
    AS_HTTP_PARSE_DONE = 0,
    AS_HTTP_PARSE_MORE,   /* all right so far: call again with more bytes */
    AS_HTTP_PARSE_REFUSED /* answer `status` and close; nothing behind can be trusted */
};

enum as_http_framing { AS_HTTP_BODY_NONE, AS_HTTP_BODY_LENGTH, AS_HTTP_BODY_CHUNKED };

struct as_http_span { /* a part of the head */
    uint32_t at, size;
};

struct as_http_field { /* the value without white space around it */
    struct as_http_span name, value;
};

struct as_http_head {
    /* Good after AS_HTTP_PARSE_DONE. */
    struct as_http_span method;
    struct as_http_span path;  /* as sent, not decoded; empty for "http://host", which means "/" */
    struct as_http_span query; /* behind the first '?'; empty where none */
    unsigned minor;            /* HTTP/1.minor: 0 or 1 */
    unsigned field_count;
    enum as_http_framing framing;
    uint64_t content_length; /* with AS_HTTP_BODY_LENGTH */
    bool keep_alive;         /* the peer lets the connection stay open */
    bool expects_continue;   /* it waits for "100 Continue" */
    size_t size;             /* of the whole head, the empty line included */

    /* Good after AS_HTTP_PARSE_REFUSED. */
    int status;
    const char *reason; /* one line, static */

    /* How far it is. */
    size_t max, line_at, scanned;
    bool have_request_line;
    unsigned seen;

    struct as_http_field fields[AS_HTTP_FIELDS_MAX];
};

/* For the next request; a head has at most `max` bytes, of which AS_HTTP_HEAD_MAX at most. */
void as_http_head_init(struct as_http_head *head, size_t max);

/* `bytes` begins with the first byte of the request each time; it may lie elsewhere each time. */
enum as_http_parse as_http_head_parse(struct as_http_head *head, const char *bytes,
                                      size_t size) AS_MUST_USE;

struct as_http_chunks {
    int status; /* after AS_HTTP_PARSE_REFUSED */
    const char *reason;

    int state; /* of http_parser.c */
    unsigned digits;
    uint64_t left; /* data bytes of the chunk still to come */
    size_t line;   /* bytes of this size line, or of the trailers */
    uint64_t excess;
    char name[20]; /* the beginning of this trailer's name */
    unsigned name_size;
};

void as_http_chunks_init(struct as_http_chunks *chunks);

/*
 * Takes the next bytes, each byte once, *used_out of them, and finds at most one run of body bytes
 * among those. Call again with the rest until all are used; AS_HTTP_PARSE_DONE comes with the end
 * of the body, before what follows it. Trailers are checked and dropped; those that
 * would say something of framing or routing are refused.
 */
enum as_http_parse as_http_chunks_step(struct as_http_chunks *chunks, const char *bytes,
                                       size_t size, size_t *used_out, const char **data_out,
                                       size_t *data_size_out) AS_MUST_USE;

#endif
