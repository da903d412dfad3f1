/*
 * The request parser. Promises: anything but exact HTTP/1.x is refused with the right status; the
 * result does not depend on how the bytes were cut; nothing after the head is touched.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "http/http_parser.h"

#define MAX_HEAD 512

struct text { /* may hold NUL bytes */
    const char *bytes;
    size_t size;
};
#define TEXT(literal)                                                                              \
    (struct text)                                                                                  \
    {                                                                                              \
        (literal), sizeof(literal) - 1                                                             \
    }
#define HOST   "Host: a\r\n"
#define GET(x) TEXT("GET /p HTTP/1.1\r\n" HOST x "\r\n")

/* Feeds `size` bytes in two pieces, the first one `cut` long; each from memory that ends there, so
 * that a sanitizer sees every read too far. */
static enum as_http_parse parse_cut(struct as_http_head *head, const char *bytes, size_t size,
                                    size_t cut)
{
    as_http_head_init(head, MAX_HEAD);
    const size_t ends[] = {cut, size};
    enum as_http_parse parsed = AS_HTTP_PARSE_MORE;
    for (size_t i = 0; i < 2 && parsed == AS_HTTP_PARSE_MORE; i++) {
        char *copy = malloc(ends[i] > 0 ? ends[i] : 1);
        memcpy(copy, bytes, ends[i]);
        parsed = as_http_head_parse(head, copy, ends[i]);
        free(copy);
    }
    return parsed;
}

/* What matters of a result, as text to compare. */
static void print(const struct as_http_head *head, enum as_http_parse parsed, const char *bytes,
                  char text[2048])
{
    if (parsed == AS_HTTP_PARSE_MORE) {
        snprintf(text, 2048, "more");
        return;
    }
    if (parsed == AS_HTTP_PARSE_REFUSED) {
        snprintf(text, 2048, "%d %s", head->status, head->reason);
        return;
    }
    int size =
        snprintf(text, 2048, "%.*s|%.*s|%.*s|1.%u|%d %llu|%s%s|%zu", (int)head->method.size,
                 bytes + head->method.at, (int)head->path.size, bytes + head->path.at,
                 (int)head->query.size, bytes + head->query.at, head->minor, (int)head->framing,
                 (unsigned long long)head->content_length, head->keep_alive ? "keep" : "close",
                 head->expects_continue ? " continue" : "", head->size);
    for (unsigned i = 0; i < head->field_count && size < 1900; i++)
        size += snprintf(text + size, 2048 - (size_t)size, "|%.*s=%.*s",
                         (int)head->fields[i].name.size, bytes + head->fields[i].name.at,
                         (int)head->fields[i].value.size, bytes + head->fields[i].value.at);
}

static const struct accepted {
    struct text input;
    const char *result; /* up to the size and the headers, which are not named here */
} accepted[] = {
    {TEXT("GET / HTTP/1.1\r\n" HOST "\r\n"), "GET|/||1.1|0 0|keep"},
    {TEXT("\r\nGET / HTTP/1.1\r\n" HOST "\r\n"), "GET|/||1.1|0 0|keep"},
    {TEXT("GET /a/b?c=d?e HTTP/1.1\r\n" HOST "\r\n"), "GET|/a/b|c=d?e|1.1|0 0|keep"},
    {TEXT("GET /a? HTTP/1.1\r\n" HOST "\r\n"), "GET|/a||1.1|0 0|keep"},
    {TEXT("GET /%2e%00//..;x HTTP/1.1\r\n" HOST "\r\n"), "GET|/%2e%00//..;x||1.1|0 0|keep"},
    {TEXT("GET http://h:9/a?b HTTP/1.1\r\n" HOST "\r\n"), "GET|/a|b|1.1|0 0|keep"},
    {TEXT("GET HTTPS://[::1]:9/a HTTP/1.1\r\n" HOST "\r\n"), "GET|/a||1.1|0 0|keep"},
    {TEXT("GET http://h HTTP/1.1\r\n" HOST "\r\n"), "GET|||1.1|0 0|keep"},
    {TEXT("GET http://h?q HTTP/1.1\r\n" HOST "\r\n"), "GET||q|1.1|0 0|keep"},
    {TEXT("M!#$%&'*+-.^_`|~1 / HTTP/1.1\r\n" HOST "\r\n"), "M!#$%&'*+-.^_`|~1|/||1.1|0 0|keep"},
    {TEXT("GET / HTTP/1.0\r\n\r\n"), "GET|/||1.0|0 0|close"},
    {TEXT("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n"), "GET|/||1.0|0 0|keep"},
    {TEXT("GET / HTTP/1.0\r\nConnection: keep-alive, close\r\n\r\n"), "GET|/||1.0|0 0|close"},
    {GET("Connection: close\r\n"), "GET|/p||1.1|0 0|close"},
    {GET("Connection: x ,\tCLOSE ,,y\r\n"), "GET|/p||1.1|0 0|close"},
    {GET("Connection: x\r\nConnection: close\r\n"), "GET|/p||1.1|0 0|close"},
    {GET("Connection: closed\r\n"), "GET|/p||1.1|0 0|keep"},
    {GET("Connection:\r\n"), "GET|/p||1.1|0 0|keep"},
    {GET("Content-Length: 0\r\n"), "GET|/p||1.1|1 0|keep"},
    {GET("content-length:007\r\n"), "GET|/p||1.1|1 7|keep"},
    {GET("Content-Length: 18446744073709551615\r\n"), "GET|/p||1.1|1 18446744073709551615|keep"},
    {GET("Transfer-Encoding: Chunked\r\n"), "GET|/p||1.1|2 0|keep"},
    {GET("Content-Encoding: Identity\r\n"), "GET|/p||1.1|0 0|keep"},
    {GET("Expect: 100-Continue\r\n"), "GET|/p||1.1|0 0|keep continue"},
    {TEXT("GET / HTTP/1.0\r\nExpect: 100-continue\r\n\r\n"), "GET|/||1.0|0 0|close"},
    {TEXT("GET / HTTP/1.1\r\nHost:\r\n\r\n"), "GET|/||1.1|0 0|keep"},
    {TEXT("GET / HTTP/1.1\r\nHost: [fe80::1%25eth0]:80\r\n\r\n"), "GET|/||1.1|0 0|keep"},
    {GET("X: \t a \xc3\xa4\xff\tb \t \r\n"), "GET|/p||1.1|0 0|keep"},
};

Test(http_parser, takes_what_is_right_whatever_the_cut)
{
    struct as_http_head head;
    char whole[2048], cut_text[2048];
    for (size_t i = 0; i < AS_ARRAY_SIZE(accepted); i++) {
        struct text input = accepted[i].input;
        print(&head, parse_cut(&head, input.bytes, input.size, input.size), input.bytes, whole);
        size_t size = strlen(accepted[i].result);
        cr_assert(strncmp(whole, accepted[i].result, size) == 0 && strchr("| ", whole[size]),
                  "row %zu: got %s, expected %s", i, whole, accepted[i].result);
        cr_assert_eq(head.size, input.size, "row %zu", i);
        for (size_t cut = 0; cut < input.size; cut++) {
            print(&head, parse_cut(&head, input.bytes, input.size, cut), input.bytes, cut_text);
            cr_assert_str_eq(cut_text, whole, "row %zu, cut at %zu", i, cut);
            as_http_head_init(&head, MAX_HEAD);
            char *copy = malloc(cut + 1);
            memcpy(copy, input.bytes, cut);
            cr_assert_eq(as_http_head_parse(&head, copy, cut), AS_HTTP_PARSE_MORE, "row %zu: %zu",
                         i, cut);
            free(copy);
        }
    }
}

static const struct refused {
    struct text input;
    int status;
    const char *part_of_reason;
} refused[] = {
    /* request line */
    {TEXT("\x16\x03\x01"), 400, "not printable"},
    {TEXT("\r\n\r\n"), 400, "request line"},
    {TEXT("\n"), 400, "LF without CR"},
    {TEXT(" GET / HTTP/1.1\r\n"), 400, "request line"},
    {TEXT("GET  / HTTP/1.1\r\n"), 400, "request line"},
    {TEXT("GET /  HTTP/1.1\r\n"), 400, "request line"},
    {TEXT("GET / HTTP/1.1 \r\n"), 400, "request line"},
    {TEXT("GET / x HTTP/1.1\r\n"), 400, "request line"},
    {TEXT("GET\t/ HTTP/1.1\r\n"), 400, "not printable"},
    {TEXT("GET /\r\n"), 400, "request line"},
    {TEXT("GET\r\n"), 400, "request line"},
    {TEXT("G(T / HTTP/1.1\r\n"), 400, "request line"},
    {TEXT("GET / http/1.1\r\n"), 400, "request line"},
    {TEXT("GET / HTTP/1.1x\r\n"), 400, "request line"},
    {TEXT("GET / HTTP/11\r\n"), 400, "request line"},
    {TEXT("GET / HTTP/1,1\r\n"), 400, "request line"},
    {TEXT("GET / HTTP/0.9\r\n"), 505, "HTTP/1.1"},
    {TEXT("GET / HTTP/1.2\r\n"), 505, "HTTP/1.1"},
    {TEXT("PRI * HTTP/2.0\r\n"), 505, "HTTP/1.1"},
    {TEXT("GET /\x01 HTTP/1.1\r\n"), 400, "not printable"},
    {TEXT("GET /\xc3\xa4 HTTP/1.1\r\n"), 400, "not printable"},
    {TEXT("GET /\0 HTTP/1.1\r\n"), 400, "not printable"},
    {TEXT("GET /a#b HTTP/1.1\r\n"), 400, "escaped"},
    {TEXT("GET a HTTP/1.1\r\n"), 400, "neither"},
    {TEXT("OPTIONS * HTTP/1.1\r\n"), 400, "neither"},
    {TEXT("CONNECT h:80 HTTP/1.1\r\n"), 400, "neither"},
    {TEXT("GET ftp://h/ HTTP/1.1\r\n"), 400, "neither"},
    {TEXT("GET http:///a HTTP/1.1\r\n"), 400, "neither"},
    {TEXT("GET http://u@h/a HTTP/1.1\r\n"), 400, "neither"},
    {TEXT("GET http: HTTP/1.1\r\n"), 400, "neither"},
    {TEXT("GET / HTTP/1.1\n"), 400, "LF without CR"},
    {TEXT("GET / HTTP/1.1\r\r\n"), 400, "CR without LF"},
    {TEXT("GET /\r HTTP/1.1\r\n"), 400, "CR without LF"},
    /* headers */
    {TEXT("GET / HTTP/1.1\r\n X: y\r\n"), 400, "white space"},
    {GET("X: a\r\n b\r\n"), 400, "white space"},
    {GET("X : a\r\n"), 400, "name: value"},
    {GET(": a\r\n"), 400, "name: value"},
    {GET("X\r\n"), 400, "name: value"},
    {GET("X y: a\r\n"), 400, "name: value"},
    {GET("X\xc3\xa4: a\r\n"), 400, "name: value"},
    {GET("X: a\0b\r\n"), 400, "control"},
    {GET("X: a\x7f\r\n"), 400, "control"},
    {GET("X: a\n"), 400, "LF without CR"},
    {GET("X: a\rb\r\n"), 400, "CR without LF"},
    {TEXT("GET / HTTP/1.1\r\n" HOST "\n"), 400, "LF without CR"},
    {TEXT("GET / HTTP/1.1\r\n\r\n"), 400, "Host"},
    {GET("Host: b\r\n"), 400, "twice"},
    {TEXT("GET / HTTP/1.0\r\n" HOST "host: a\r\n\r\n"), 400, "twice"},
    {TEXT("GET / HTTP/1.1\r\nHost: a b\r\n\r\n"), 400, "Host"},
    {TEXT("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n"), 400, "Host"},
    {TEXT("GET / HTTP/1.1\r\nHost: u@b\r\n\r\n"), 400, "Host"},
    {GET("Authorization: a\r\nauthorization: a\r\n"), 400, "twice"},
    {GET("Origin: http://a\r\nOrigin: http://b\r\n"), 400, "twice"},
    {GET("Sec-Fetch-Site: same-origin\r\nSec-Fetch-Site: cross-site\r\n"), 400, "twice"},
    {GET("Content-Type: a\r\nContent-Type: a\r\n"), 400, "twice"},
    /* framing */
    {GET("Content-Length:\r\n"), 400, "number"},
    {GET("Content-Length: +1\r\n"), 400, "number"},
    {GET("Content-Length: -1\r\n"), 400, "number"},
    {GET("Content-Length: 1 1\r\n"), 400, "number"},
    {GET("Content-Length: 1,1\r\n"), 400, "number"},
    {GET("Content-Length: 0x1\r\n"), 400, "number"},
    {GET("Content-Length: 1.0\r\n"), 400, "number"},
    {GET("Content-Length: 99999999999999999999x\r\n"), 400, "number"},
    {GET("Content-Length: 18446744073709551616\r\n"), 413, "too large"},
    {GET("Content-Length: 99999999999999999999999999\r\n"), 413, "too large"},
    {GET("Content-Length: 1\r\nContent-Length: 1\r\n"), 400, "twice"},
    {GET("Content-Length: 1\r\nContent-Length: 2\r\n"), 400, "twice"},
    {GET("Content-Length: 1\r\nTransfer-Encoding: chunked\r\n"), 400, "exclude"},
    {GET("Transfer-Encoding: chunked\r\nContent-Length: 1\r\n"), 400, "exclude"},
    {GET("Transfer-Encoding: gzip, chunked\r\n"), 501, "chunked"},
    {GET("Transfer-Encoding: chunked, chunked\r\n"), 501, "chunked"},
    {GET("Transfer-Encoding: identity\r\n"), 501, "chunked"},
    {GET("Transfer-Encoding: \"chunked\"\r\n"), 501, "chunked"},
    {GET("Transfer-Encoding: chunked;a=b\r\n"), 501, "chunked"},
    {GET("Transfer-Encoding: xchunked\r\n"), 501, "chunked"},
    {GET("Transfer-Encoding:\r\n"), 501, "chunked"},
    {GET("Transfer-Encoding: chunked\x0b\r\n"), 400, "control"},
    {GET("Transfer-Encoding : chunked\r\n"), 400, "name: value"},
    {GET("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"), 400, "twice"},
    {TEXT("GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"), 400, "1.0"},
    {GET("Content-Encoding: gzip\r\n"), 415, "Content-Encoding"},
    {GET("Expect: 200-ok\r\n"), 417, "expectation"},
};

Test(http_parser, refuses_what_is_wrong_whatever_the_cut)
{
    struct as_http_head head;
    for (size_t i = 0; i < AS_ARRAY_SIZE(refused); i++) {
        struct text input = refused[i].input;
        for (size_t cut = 0; cut <= input.size; cut++) {
            cr_assert_eq(parse_cut(&head, input.bytes, input.size, cut), AS_HTTP_PARSE_REFUSED,
                         "row %zu, cut at %zu", i, cut);
            cr_assert(head.status == refused[i].status &&
                          strstr(head.reason, refused[i].part_of_reason),
                      "row %zu, cut at %zu: %d %s", i, cut, head.status, head.reason);
        }
    }
}

/* 414 and 431 come at exactly `max` bytes, and a fault behind that is not even looked at. */
Test(http_parser, limits_the_head)
{
    struct as_http_head head;
    char bytes[2 * MAX_HEAD];
    memset(bytes, 'a', sizeof(bytes));
    memcpy(bytes, "GET /", 5);
    as_http_head_init(&head, MAX_HEAD);
    cr_assert_eq(as_http_head_parse(&head, bytes, MAX_HEAD - 1), AS_HTTP_PARSE_MORE);
    cr_assert_eq(as_http_head_parse(&head, bytes, MAX_HEAD), AS_HTTP_PARSE_REFUSED);
    cr_assert_eq(head.status, 414);
    bytes[MAX_HEAD] = '\0';
    as_http_head_init(&head, MAX_HEAD);
    cr_assert_eq(as_http_head_parse(&head, bytes, sizeof(bytes)), AS_HTTP_PARSE_REFUSED);
    cr_assert_eq(head.status, 414);

    static const char start[] = "GET / HTTP/1.1\r\nHost: a\r\nX: ";
    memcpy(bytes, start, sizeof(start) - 1);
    bytes[MAX_HEAD] = 'a';
    as_http_head_init(&head, MAX_HEAD);
    cr_assert_eq(as_http_head_parse(&head, bytes, sizeof(bytes)), AS_HTTP_PARSE_REFUSED);
    cr_assert_eq(head.status, 431);

    memcpy(bytes + MAX_HEAD - 4, "\r\n\r\n", 4);
    as_http_head_init(&head, MAX_HEAD);
    cr_assert_eq(as_http_head_parse(&head, bytes, MAX_HEAD - 1), AS_HTTP_PARSE_MORE);
    cr_assert_eq(as_http_head_parse(&head, bytes, sizeof(bytes)), AS_HTTP_PARSE_DONE);
    cr_assert_eq(head.size, MAX_HEAD);
}

Test(http_parser, limits_the_number_of_headers)
{
    char bytes[4096];
    for (unsigned extra = AS_HTTP_FIELDS_MAX - 1; extra <= AS_HTTP_FIELDS_MAX; extra++) {
        size_t size = (size_t)snprintf(bytes, sizeof(bytes), "GET / HTTP/1.1\r\n" HOST);
        for (unsigned i = 0; i < extra; i++)
            size += (size_t)snprintf(bytes + size, sizeof(bytes) - size, "x: y\r\n");
        size += (size_t)snprintf(bytes + size, sizeof(bytes) - size, "\r\n");
        struct as_http_head head;
        as_http_head_init(&head, sizeof(bytes));
        enum as_http_parse parsed = as_http_head_parse(&head, bytes, size);
        if (extra < AS_HTTP_FIELDS_MAX)
            cr_assert_eq(parsed, AS_HTTP_PARSE_DONE);
        else
            cr_assert(parsed == AS_HTTP_PARSE_REFUSED && head.status == 431);
    }
}

/* Chunked bodies. The body, then '|' and what is left; or "more", or the status. */
static void run_chunks(const char *bytes, size_t size, size_t cut, char text[1024])
{
    struct as_http_chunks chunks;
    as_http_chunks_init(&chunks);
    const size_t starts[] = {0, cut, size};
    enum as_http_parse parsed = AS_HTTP_PARSE_MORE;
    size_t at = 0, length = 0;
    for (size_t i = 0; i < 2 && parsed == AS_HTTP_PARSE_MORE; i++) {
        size_t piece = starts[i + 1] - starts[i];
        char *copy = malloc(piece > 0 ? piece : 1);
        memcpy(copy, bytes + starts[i], piece);
        for (size_t used = 0; used < piece && parsed == AS_HTTP_PARSE_MORE;) {
            size_t step, data_size;
            const char *data;
            parsed =
                as_http_chunks_step(&chunks, copy + used, piece - used, &step, &data, &data_size);
            memcpy(text + length, data, data_size);
            length += data_size;
            used += step;
            at += step;
        }
        free(copy);
    }
    if (parsed == AS_HTTP_PARSE_REFUSED)
        snprintf(text, 1024, "%d", chunks.status);
    else if (parsed == AS_HTTP_PARSE_MORE)
        snprintf(text, 1024, "more");
    else
        snprintf(text + length, 1024 - length, "|%.*s", (int)(size - at), bytes + at);
}

static const struct chunked {
    struct text input;
    const char *result;
} chunked[] = {
    {TEXT("0\r\n\r\n"), "|"},
    {TEXT("0\r\n\r\nGET /"), "|GET /"},
    {TEXT("3\r\nabc\r\n0\r\n\r\n"), "abc|"},
    {TEXT("3\r\nabc\r\n2\r\n\r\n\r\n0\r\n\r\n"), "abc\r\n|"},
    {TEXT("A\r\n0123456789\r\n0\r\n\r\n"), "0123456789|"},
    {TEXT("a\r\n0123456789\r\n0\r\n\r\n"), "0123456789|"},
    {TEXT("0000000000000003\r\nabc\r\n00\r\n\r\n"), "abc|"},
    {TEXT("3;x=\"y\"; z\r\nabc\r\n0;a\r\n\r\n"), "abc|"},
    {TEXT("0\r\nX: y\r\nZ:\r\n\r\nrest"), "|rest"},
    {TEXT("3\r\nabc\r\n0\r\n"), "more"},
    {TEXT(""), "more"},
    {TEXT("\r\n"), "400"},
    {TEXT(" 3\r\n"), "400"},
    {TEXT("3 \r\n"), "400"},
    {TEXT("+3\r\n"), "400"},
    {TEXT("0x3\r\n"), "400"},
    {TEXT("-1\r\n"), "400"},
    {TEXT("g\r\n"), "400"},
    {TEXT(";x\r\n"), "400"},
    {TEXT("3\n"), "400"},
    {TEXT("3\r\r\n"), "400"},
    {TEXT("3;\n"), "400"},
    {TEXT("3;\0\r\n"), "400"},
    {TEXT("00000000000000003\r\n"), "400"},
    {TEXT("10000000000000000\r\n"), "400"},
    {TEXT("3\r\nabcd"), "400"},
    {TEXT("3\r\nabc\n"), "400"},
    {TEXT("3\r\nabc\r\r"), "400"},
    {TEXT("3\r\nabc0\r\n"), "400"},
    {TEXT("0\r\n\r\r"), "400"},
    {TEXT("0\r\n\n"), "400"},
    {TEXT("0\r\nX\r\n"), "400"},
    {TEXT("0\r\nX : y\r\n"), "400"},
    {TEXT("0\r\n: y\r\n"), "400"},
    {TEXT("0\r\n X: y\r\n"), "400"},
    {TEXT("0\r\nX: y\n"), "400"},
    {TEXT("0\r\ntransfer-encoding: chunked\r\n"), "400"},
    {TEXT("0\r\nA: b\r\nContent-Length: 1\r\n"), "400"},
    {TEXT("0\r\nHost: a\r\n"), "400"},
    {TEXT("0\r\nHosts: a\r\nHos: b\r\nContent-Length-Of-Something: 1\r\n\r\n"), "|"},
    {TEXT("0\r\nX: \0\r\n"), "400"},
};

Test(http_parser, takes_chunks_apart_whatever_the_cut)
{
    char text[1024];
    for (size_t i = 0; i < AS_ARRAY_SIZE(chunked); i++)
        for (size_t cut = 0; cut <= chunked[i].input.size; cut++) {
            run_chunks(chunked[i].input.bytes, chunked[i].input.size, cut, text);
            cr_assert_str_eq(text, chunked[i].result, "row %zu, cut at %zu", i, cut);
        }
}

static enum as_http_parse feed(struct as_http_chunks *chunks, const char *bytes, size_t size)
{
    enum as_http_parse parsed = AS_HTTP_PARSE_MORE;
    while (size > 0 && parsed == AS_HTTP_PARSE_MORE) {
        size_t used, data_size;
        const char *data;
        parsed = as_http_chunks_step(chunks, bytes, size, &used, &data, &data_size);
        bytes += used;
        size -= used;
    }
    return parsed;
}

Test(http_parser, limits_chunk_lines_and_trailers)
{
    struct as_http_chunks chunks;
    char many[AS_HTTP_CHUNK_TRAILER_MAX + 1];
    memset(many, 'a', sizeof(many));

    as_http_chunks_init(&chunks);
    cr_assert_eq(feed(&chunks, "1;", 2), AS_HTTP_PARSE_MORE);
    cr_assert_eq(feed(&chunks, many, AS_HTTP_CHUNK_LINE_MAX - 2), AS_HTTP_PARSE_MORE);
    cr_assert_eq(feed(&chunks, "a", 1), AS_HTTP_PARSE_REFUSED);
    cr_assert_eq(chunks.status, 400);

    as_http_chunks_init(&chunks);
    cr_assert_eq(feed(&chunks, "0\r\nX:", 5), AS_HTTP_PARSE_MORE);
    cr_assert_eq(feed(&chunks, many, AS_HTTP_CHUNK_TRAILER_MAX - 2), AS_HTTP_PARSE_MORE);
    cr_assert_eq(feed(&chunks, "a", 1), AS_HTTP_PARSE_REFUSED);
}

/* One-byte chunks are odd but allowed; long extensions on each of them are not. */
Test(http_parser, limits_extensions_in_all)
{
    struct as_http_chunks chunks;
    as_http_chunks_init(&chunks);
    for (unsigned i = 0; i < 100000; i++)
        cr_assert_eq(feed(&chunks, "1\r\na\r\n", 6), AS_HTTP_PARSE_MORE);

    char line[256] = "1;";
    memset(line + 2, 'x', 200);
    memcpy(line + 202, "\r\na\r\n", 6);
    unsigned taken = 0;
    while (taken < 1000 && feed(&chunks, line, 207) == AS_HTTP_PARSE_MORE)
        taken++;
    cr_assert(taken > 50 && taken < 120, "%u", taken);
    cr_assert_eq(chunks.status, 400);
}
