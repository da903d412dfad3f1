/*
 * Any bytes as a request, cut in two where the first byte says. Whole or cut, the head and the
 * chunked body give the same result; every span lies in the head and contains only allowed
 * characters.
 */
#include <string.h>

#include <alertscaler/base/alloc.h>

#include "fuzz.h"
#include "http/http_parser.h"

#define MAX_HEAD 1024

/* In memory of exactly that size, where a sanitizer sees a read too far. */
static enum as_http_parse parse(struct as_http_head *head, const char *bytes, size_t size)
{
    AS_CLEANUP(as_free_p) char *copy = as_xmalloc(size > 0 ? size : 1);
    memcpy(copy, bytes, size);
    return as_http_head_parse(head, copy, size);
}

static void check_text(const struct as_http_head *head, const char *bytes, struct as_http_span span,
                       const char *forbidden)
{
    FUZZ_CHECK((size_t)span.at + span.size < head->size);
    for (size_t i = span.at; i < (size_t)span.at + span.size; i++) {
        unsigned char byte = (unsigned char)bytes[i];
        FUZZ_CHECK((byte >= 0x20 || byte == '\t') && byte != 0x7f);
        FUZZ_CHECK(!strchr(forbidden, bytes[i]));
    }
}

static void check_head(const struct as_http_head *head, const char *bytes, size_t size)
{
    FUZZ_CHECK(head->size <= size && head->size <= MAX_HEAD);
    FUZZ_CHECK(memcmp(bytes + head->size - 4, "\r\n\r\n", 4) == 0);
    FUZZ_CHECK(head->method.size > 0);
    FUZZ_CHECK(head->minor <= 1);
    FUZZ_CHECK(head->framing == AS_HTTP_BODY_LENGTH || head->content_length == 0);
    check_text(head, bytes, head->method, " \t:/?");
    check_text(head, bytes, head->path, " \t#?");
    check_text(head, bytes, head->query, " \t#");
    for (unsigned i = 0; i < head->field_count; i++) {
        check_text(head, bytes, head->fields[i].name, " \t:");
        check_text(head, bytes, head->fields[i].value, "");
        FUZZ_CHECK(head->fields[i].name.size > 0);
    }
}

static void check_equal(const struct as_http_head *a, const struct as_http_head *b,
                        enum as_http_parse parsed)
{
    FUZZ_CHECK(a->status == b->status && a->reason == b->reason);
    if (parsed != AS_HTTP_PARSE_DONE)
        return;
    FUZZ_CHECK(a->size == b->size && a->field_count == b->field_count);
    FUZZ_CHECK(a->framing == b->framing && a->content_length == b->content_length);
    FUZZ_CHECK(a->keep_alive == b->keep_alive && a->expects_continue == b->expects_continue);
    FUZZ_CHECK(memcmp(a->fields, b->fields, a->field_count * sizeof(a->fields[0])) == 0);
    FUZZ_CHECK(memcmp(&a->path, &b->path, sizeof(a->path)) == 0);
    FUZZ_CHECK(memcmp(&a->query, &b->query, sizeof(a->query)) == 0);
}

/* Body bytes go to `body`, as many as there were bytes at most. */
static enum as_http_parse read_chunks(struct as_http_chunks *chunks, const char *bytes, size_t size,
                                      size_t *used_io, char *body, size_t *body_size_io)
{
    enum as_http_parse parsed = AS_HTTP_PARSE_MORE;
    while (*used_io < size && parsed == AS_HTTP_PARSE_MORE) {
        size_t used, data_size;
        const char *data;
        parsed = as_http_chunks_step(chunks, bytes + *used_io, size - *used_io, &used, &data,
                                     &data_size);
        FUZZ_CHECK(used > 0 || parsed == AS_HTTP_PARSE_REFUSED);
        FUZZ_CHECK(used <= size - *used_io);
        FUZZ_CHECK(data >= bytes && data + data_size <= bytes + size);
        memcpy(body + *body_size_io, data, data_size);
        *body_size_io += data_size;
        *used_io += used;
    }
    return parsed;
}

static void check_chunks(const char *bytes, size_t size, size_t cut)
{
    AS_CLEANUP(as_free_p) char *whole_body = as_xmalloc(size + 1);
    AS_CLEANUP(as_free_p) char *cut_body = as_xmalloc(size + 1);
    struct as_http_chunks whole, pieces;
    size_t whole_used = 0, cut_used = 0, whole_size = 0, cut_size = 0;
    as_http_chunks_init(&whole);
    as_http_chunks_init(&pieces);
    enum as_http_parse expected =
        read_chunks(&whole, bytes, size, &whole_used, whole_body, &whole_size);
    enum as_http_parse parsed = read_chunks(&pieces, bytes, cut, &cut_used, cut_body, &cut_size);
    if (parsed == AS_HTTP_PARSE_MORE)
        parsed = read_chunks(&pieces, bytes, size, &cut_used, cut_body, &cut_size);
    FUZZ_CHECK(parsed == expected && cut_used == whole_used && cut_size == whole_size);
    FUZZ_CHECK(memcmp(whole_body, cut_body, whole_size) == 0);
    FUZZ_CHECK(parsed != AS_HTTP_PARSE_REFUSED || (whole.status == 400 && pieces.status == 400));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    const char *bytes = (const char *)data + 1;
    size_t cut = (size_t)data[0] * (size - 1) / 255;
    size--;

    struct as_http_head whole, pieces;
    as_http_head_init(&whole, MAX_HEAD);
    as_http_head_init(&pieces, MAX_HEAD);
    enum as_http_parse expected = parse(&whole, bytes, size);
    enum as_http_parse parsed = parse(&pieces, bytes, cut);
    if (parsed == AS_HTTP_PARSE_MORE)
        parsed = parse(&pieces, bytes, size);
    FUZZ_CHECK(parsed == expected);
    check_equal(&whole, &pieces, parsed);
    if (parsed == AS_HTTP_PARSE_DONE) {
        check_head(&whole, bytes, size);
        check_chunks(bytes + whole.size, size - whole.size,
                     cut < whole.size ? 0 : cut - whole.size);
    } else {
        FUZZ_CHECK(parsed == AS_HTTP_PARSE_MORE || (whole.status >= 400 && whole.status <= 505));
        check_chunks(bytes, size, cut); /* bodies need not stand behind a good head */
    }
    return 0;
}
