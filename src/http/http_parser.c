/*
 * The request head: request line and headers, a line at a time. Invariants: every byte is looked at
 * once, however the bytes arrive; bytes behind `max` are never looked at; the first wrong byte or
 * line decides the refusal, so the answer does not depend on how the bytes were cut.
 *
 * Deliberately not here: decoding of the path, the meaning of methods, limits on the body.
 */
#include <alertscaler/http/http_parser.h>

#include <string.h>
#include <strings.h>

#include "http_chars.h"

enum seen {
    SEEN_HOST = 1 << 0,
    SEEN_CONTENT_LENGTH = 1 << 1,
    SEEN_TRANSFER_ENCODING = 1 << 2,
    SEEN_AUTHORIZATION = 1 << 3,
    SEEN_CONTENT_TYPE = 1 << 4,
    SEEN_CLOSE = 1 << 5,
    SEEN_KEEP_ALIVE = 1 << 6,
};

static enum as_http_parse refuse(struct as_http_head *head, int status, const char *reason)
{
    head->status = status;
    head->reason = reason;
    return AS_HTTP_PARSE_REFUSED;
}

static bool all_are(const char *text, size_t size, unsigned char class)
{
    for (size_t i = 0; i < size; i++)
        if (!as_http_char_is(text[i], class))
            return false;
    return true;
}

static bool is_word(const char *text, size_t size, const char *word)
{
    return size == strlen(word) && strncasecmp(text, word, size) == 0;
}

static struct as_http_span span(size_t from, size_t to)
{
    return (struct as_http_span){.at = (uint32_t)from, .size = (uint32_t)(to - from)};
}

static enum as_http_parse read_host(struct as_http_head *head, const char *value, size_t size)
{
    if (!all_are(value, size, AS_HTTP_CHAR_HOST))
        return refuse(head, 400, "the Host header has a character that no host has");
    return AS_HTTP_PARSE_DONE;
}

static enum as_http_parse read_content_length(struct as_http_head *head, const char *value,
                                              size_t size)
{
    if (size == 0)
        return refuse(head, 400, "Content-Length is not a number");
    uint64_t length = 0;
    bool too_large = false;
    for (size_t i = 0; i < size; i++) {
        if (value[i] < '0' || value[i] > '9')
            return refuse(head, 400, "Content-Length is not a number");
        uint64_t digit = (uint64_t)(value[i] - '0');
        too_large = too_large || length > (UINT64_MAX - digit) / 10;
        length = length * 10 + digit;
    }
    if (too_large)
        return refuse(head, 413, "the body is too large");
    head->framing = AS_HTTP_BODY_LENGTH;
    head->content_length = length;
    return AS_HTTP_PARSE_DONE;
}

static enum as_http_parse read_transfer_encoding(struct as_http_head *head, const char *value,
                                                 size_t size)
{
    if (!is_word(value, size, "chunked"))
        return refuse(head, 501, "the only Transfer-Encoding understood is a single chunked");
    head->framing = AS_HTTP_BODY_CHUNKED;
    return AS_HTTP_PARSE_DONE;
}

static enum as_http_parse read_content_encoding(struct as_http_head *head, const char *value,
                                                size_t size)
{
    if (size > 0 && !is_word(value, size, "identity"))
        return refuse(head, 415, "send the body without Content-Encoding");
    return AS_HTTP_PARSE_DONE;
}

static enum as_http_parse read_expect(struct as_http_head *head, const char *value, size_t size)
{
    if (!is_word(value, size, "100-continue"))
        return refuse(head, 417, "the only expectation met is 100-continue");
    head->expects_continue = true;
    return AS_HTTP_PARSE_DONE;
}

static enum as_http_parse read_connection(struct as_http_head *head, const char *value, size_t size)
{
    size_t at = 0;
    while (at < size) {
        const char *comma = memchr(value + at, ',', size - at);
        size_t end = comma ? (size_t)(comma - value) : size;
        size_t from = at, to = end;
        while (from < to && as_http_char_is(value[from], AS_HTTP_CHAR_BLANK))
            from++;
        while (to > from && as_http_char_is(value[to - 1], AS_HTTP_CHAR_BLANK))
            to--;
        if (is_word(value + from, to - from, "close"))
            head->seen |= SEEN_CLOSE;
        else if (is_word(value + from, to - from, "keep-alive"))
            head->seen |= SEEN_KEEP_ALIVE;
        at = end + 1;
    }
    return AS_HTTP_PARSE_DONE;
}

static enum as_http_parse read_nothing(struct as_http_head *head, const char *value, size_t size)
{
    return AS_HTTP_PARSE_DONE;
}

/* The headers with a meaning here; `once`: a second one is refused. */
static const struct known_field {
    const char *name;
    unsigned once;
    enum as_http_parse (*read)(struct as_http_head *head, const char *value, size_t size);
} known_fields[] = {
    {"Host", SEEN_HOST, read_host},
    {"Content-Length", SEEN_CONTENT_LENGTH, read_content_length},
    {"Transfer-Encoding", SEEN_TRANSFER_ENCODING, read_transfer_encoding},
    {"Authorization", SEEN_AUTHORIZATION, read_nothing},
    {"Content-Type", SEEN_CONTENT_TYPE, read_nothing},
    {"Content-Encoding", 0, read_content_encoding},
    {"Connection", 0, read_connection},
    {"Expect", 0, read_expect},
};

static const struct known_field *find_known_field(const char *name, size_t size)
{
    for (size_t i = 0; i < AS_ARRAY_SIZE(known_fields); i++)
        if (is_word(name, size, known_fields[i].name))
            return &known_fields[i];
    return NULL;
}

static enum as_http_parse read_field(struct as_http_head *head, const char *bytes, size_t from,
                                     size_t to)
{
    if (as_http_char_is(bytes[from], AS_HTTP_CHAR_BLANK))
        return refuse(head, 400, "a header line begins with white space");
    size_t colon = from;
    while (colon < to && as_http_char_is(bytes[colon], AS_HTTP_CHAR_TOKEN))
        colon++;
    if (colon == from || colon == to || bytes[colon] != ':')
        return refuse(head, 400, "a header line is not \"name: value\"");
    size_t value = colon + 1;
    while (value < to && as_http_char_is(bytes[value], AS_HTTP_CHAR_BLANK))
        value++;
    while (to > value && as_http_char_is(bytes[to - 1], AS_HTTP_CHAR_BLANK))
        to--;
    if (head->field_count == AS_HTTP_FIELDS_MAX)
        return refuse(head, 431, "too many headers");
    head->fields[head->field_count++] = (struct as_http_field){span(from, colon), span(value, to)};

    const struct known_field *known = find_known_field(bytes + from, colon - from);
    if (!known)
        return AS_HTTP_PARSE_DONE;
    if (head->seen & known->once)
        return refuse(head, 400, "a header that may come once came twice");
    head->seen |= known->once;
    return known->read(head, bytes + value, to - value);
}

static enum as_http_parse read_version(struct as_http_head *head, const char *text, size_t size)
{
    if (size != strlen("HTTP/1.1") || memcmp(text, "HTTP/", 5) != 0 || text[6] != '.' ||
        !as_http_char_is(text[5], AS_HTTP_CHAR_DIGIT) ||
        !as_http_char_is(text[7], AS_HTTP_CHAR_DIGIT))
        return refuse(head, 400, "the request line is not \"METHOD /path HTTP/1.1\"");
    if (text[5] != '1' || text[7] > '1')
        return refuse(head, 505, "speak HTTP/1.1");
    head->minor = (unsigned)(text[7] - '0');
    return AS_HTTP_PARSE_DONE;
}

/* The authority of absolute-form is checked and dropped: this server does not distinguish hosts. */
static enum as_http_parse skip_authority(struct as_http_head *head, const char *bytes,
                                         size_t *from_io, size_t to)
{
    static const char *const schemes[] = {"http://", "https://"};
    for (size_t i = 0; i < AS_ARRAY_SIZE(schemes); i++) {
        size_t at = *from_io, size = strlen(schemes[i]);
        if (to - at < size || strncasecmp(bytes + at, schemes[i], size) != 0)
            continue;
        at += size;
        size_t authority = at;
        while (at < to && as_http_char_is(bytes[at], AS_HTTP_CHAR_HOST))
            at++;
        if (at == authority || (at < to && bytes[at] != '/' && bytes[at] != '?'))
            break;
        *from_io = at;
        return AS_HTTP_PARSE_DONE;
    }
    return refuse(head, 400, "the request target is neither a path nor an http URL");
}

static enum as_http_parse read_target(struct as_http_head *head, const char *bytes, size_t from,
                                      size_t to)
{
    if (!all_are(bytes + from, to - from, AS_HTTP_CHAR_TARGET))
        return refuse(head, 400, "the request target has a character that must be escaped");
    if (bytes[from] != '/') {
        enum as_http_parse parsed = skip_authority(head, bytes, &from, to);
        if (parsed != AS_HTTP_PARSE_DONE)
            return parsed;
    }
    const char *mark = memchr(bytes + from, '?', to - from);
    size_t path_end = mark ? (size_t)(mark - bytes) : to;
    head->path = span(from, path_end);
    head->query = mark ? span(path_end + 1, to) : span(to, to);
    return AS_HTTP_PARSE_DONE;
}

static enum as_http_parse read_request_line(struct as_http_head *head, const char *bytes,
                                            size_t from, size_t to)
{
    const char *first = memchr(bytes + from, ' ', to - from);
    size_t target = first ? (size_t)(first - bytes) + 1 : to;
    const char *second = memchr(bytes + target, ' ', to - target);
    size_t version = second ? (size_t)(second - bytes) + 1 : to;
    if (!first || !second || target - from == 1 || version - target == 1 ||
        !all_are(bytes + from, target - 1 - from, AS_HTTP_CHAR_TOKEN))
        return refuse(head, 400, "the request line is not \"METHOD /path HTTP/1.1\"");
    head->method = span(from, target - 1);
    enum as_http_parse parsed = read_version(head, bytes + version, to - version);
    if (parsed == AS_HTTP_PARSE_DONE)
        parsed = read_target(head, bytes, target, version - 1);
    head->have_request_line = true;
    return parsed;
}

static enum as_http_parse read_end(struct as_http_head *head, size_t size)
{
    if (head->minor == 1 && !(head->seen & SEEN_HOST))
        return refuse(head, 400, "the Host header is missing");
    if (head->seen & SEEN_TRANSFER_ENCODING && head->seen & SEEN_CONTENT_LENGTH)
        return refuse(head, 400, "Content-Length and Transfer-Encoding exclude each other");
    if (head->seen & SEEN_TRANSFER_ENCODING && head->minor == 0)
        return refuse(head, 400, "HTTP/1.0 has no Transfer-Encoding");
    if (head->minor == 0)
        head->expects_continue = false;
    head->keep_alive =
        !(head->seen & SEEN_CLOSE) && (head->minor == 1 || head->seen & SEEN_KEEP_ALIVE);
    head->size = size;
    return AS_HTTP_PARSE_DONE;
}

void as_http_head_init(struct as_http_head *head, size_t max)
{
    /* Not the fields: 1.6 KiB that is never read beyond field_count. */
    memset(head, 0, offsetof(struct as_http_head, fields));
    head->max = max < AS_HTTP_HEAD_MAX ? max : AS_HTTP_HEAD_MAX;
}

/* Scans to the end of the line or of the bytes; REFUSED at a byte that no line may contain. */
static enum as_http_parse scan_line(struct as_http_head *head, const char *bytes, size_t size)
{
    unsigned char allowed = head->have_request_line ? AS_HTTP_CHAR_VALUE : AS_HTTP_CHAR_REQUEST;
    size_t at = head->scanned;
    while (at < size && as_http_char_is(bytes[at], allowed))
        at++;
    head->scanned = at;
    if (at == size)
        return AS_HTTP_PARSE_MORE;
    if (bytes[at] == '\n')
        return refuse(head, 400, "a line ends in LF without CR");
    if (bytes[at] != '\r')
        return refuse(head, 400,
                      head->have_request_line
                          ? "a header has a control character"
                          : "the request line has a character that is not printable ASCII");
    if (at + 1 == size)
        return AS_HTTP_PARSE_MORE;
    if (bytes[at + 1] != '\n')
        return refuse(head, 400, "a CR without LF");
    return AS_HTTP_PARSE_DONE;
}

enum as_http_parse as_http_head_parse(struct as_http_head *head, const char *bytes, size_t size)
{
    bool full = size >= head->max;
    if (full)
        size = head->max;
    for (;;) {
        enum as_http_parse parsed = scan_line(head, bytes, size);
        if (parsed == AS_HTTP_PARSE_MORE && full)
            return head->have_request_line ? refuse(head, 431, "the headers are too large")
                                           : refuse(head, 414, "the request line is too long");
        if (parsed != AS_HTTP_PARSE_DONE)
            return parsed;
        size_t from = head->line_at, to = head->scanned;
        head->line_at = head->scanned = to + 2;
        if (head->have_request_line && from == to)
            return read_end(head, to + 2);
        if (head->have_request_line)
            parsed = read_field(head, bytes, from, to);
        else if (from > 0 || to > 0) /* one empty line before it is allowed: RFC 9112, 2.2 */
            parsed = read_request_line(head, bytes, from, to);
        if (parsed != AS_HTTP_PARSE_DONE)
            return parsed;
    }
}
