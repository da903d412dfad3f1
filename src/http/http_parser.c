/*
 * The parsers of requests: the head, and chunked bodies. Invariants: every byte of a head is looked
 * at once, however the bytes arrive; bytes behind `max` are never looked at; the first wrong byte
 * or line decides the refusal, so the answer does not depend on how the bytes were cut.
 *
 * Deliberately not here: decoding of the path, the meaning of methods, limits on the body.
 */
#include "http_parser.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

enum http_char {
    HTTP_CHAR_TOKEN = 1 << 0,   /* methods, header names */
    HTTP_CHAR_TARGET = 1 << 1,  /* path and query: printable ASCII without space and '#' */
    HTTP_CHAR_REQUEST = 1 << 2, /* anywhere in a request line: printable ASCII and space */
    HTTP_CHAR_VALUE = 1 << 3,   /* header values: also tab and bytes above ASCII */
    HTTP_CHAR_HOST = 1 << 4,    /* reg-name, IPv6 literals, port */
    HTTP_CHAR_DIGIT = 1 << 5,
    HTTP_CHAR_HEX = 1 << 6,
    HTTP_CHAR_BLANK = 1 << 7, /* space and tab */
};

/* The character classes of RFC 9110 and 9112, as one table. Each row is a set of characters with
 * the same classes. */

#define PRINTED (HTTP_CHAR_TARGET | HTTP_CHAR_REQUEST | HTTP_CHAR_VALUE)
#define PLAIN   PRINTED /* in no grammar below */
#define MARK    (PRINTED | HTTP_CHAR_TOKEN | HTTP_CHAR_HOST)
#define NAME    (PRINTED | HTTP_CHAR_TOKEN) /* in names, but not in hosts */
#define DELIM   (PRINTED | HTTP_CHAR_HOST)  /* in hosts, but not in names */
#define HEX     (MARK | HTTP_CHAR_HEX)
#define DIGIT   (HEX | HTTP_CHAR_DIGIT)

static const unsigned char http_chars[256] = {
    ['\t'] = HTTP_CHAR_VALUE | HTTP_CHAR_BLANK,
    [' '] = HTTP_CHAR_VALUE | HTTP_CHAR_BLANK | HTTP_CHAR_REQUEST,
    ['!'] = MARK,
    ['"'] = PLAIN,
    ['#'] = HTTP_CHAR_TOKEN | HTTP_CHAR_REQUEST | HTTP_CHAR_VALUE,
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
    [0x80 ... 0xff] = HTTP_CHAR_VALUE,
};

static inline bool http_char_is(char byte, unsigned char class)
{
    return http_chars[(unsigned char)byte] & class;
}

/* The request head: request line and headers, a line at a time. */

enum seen {
    SEEN_HOST = 1 << 0,
    SEEN_CONTENT_LENGTH = 1 << 1,
    SEEN_TRANSFER_ENCODING = 1 << 2,
    SEEN_AUTHORIZATION = 1 << 3,
    SEEN_CONTENT_TYPE = 1 << 4,
    SEEN_CLOSE = 1 << 5,
    SEEN_KEEP_ALIVE = 1 << 6,
    SEEN_ORIGIN = 1 << 7,
    SEEN_FETCH_SITE = 1 << 8,
};

static enum as_http_parse head_refuse(struct as_http_head *head, int status, const char *reason)
{
    head->status = status;
    head->reason = reason;
    return AS_HTTP_PARSE_REFUSED;
}

static bool all_are(const char *text, size_t size, unsigned char class)
{
    for (size_t i = 0; i < size; i++)
        if (!http_char_is(text[i], class))
            return false;
    return true;
}

static bool head_is_word(const char *text, size_t size, const char *word)
{
    return size == strlen(word) && strncasecmp(text, word, size) == 0;
}

static struct as_http_span head_span(size_t from, size_t to)
{
    return (struct as_http_span){.at = (uint32_t)from, .size = (uint32_t)(to - from)};
}

static enum as_http_parse read_host(struct as_http_head *head, const char *value, size_t size)
{
    if (!all_are(value, size, HTTP_CHAR_HOST))
        return head_refuse(head, 400, "the Host header has a character that no host has");
    return AS_HTTP_PARSE_DONE;
}

static enum as_http_parse read_content_length(struct as_http_head *head, const char *value,
                                              size_t size)
{
    if (size == 0)
        return head_refuse(head, 400, "Content-Length is not a number");
    uint64_t length = 0;
    bool too_large = false;
    for (size_t i = 0; i < size; i++) {
        if (value[i] < '0' || value[i] > '9')
            return head_refuse(head, 400, "Content-Length is not a number");
        uint64_t digit = (uint64_t)(value[i] - '0');
        too_large = too_large || length > (UINT64_MAX - digit) / 10;
        length = length * 10 + digit;
    }
    if (too_large)
        return head_refuse(head, 413, "the body is too large");
    head->framing = AS_HTTP_BODY_LENGTH;
    head->content_length = length;
    return AS_HTTP_PARSE_DONE;
}

static enum as_http_parse read_transfer_encoding(struct as_http_head *head, const char *value,
                                                 size_t size)
{
    if (!head_is_word(value, size, "chunked"))
        return head_refuse(head, 501, "the only Transfer-Encoding understood is a single chunked");
    head->framing = AS_HTTP_BODY_CHUNKED;
    return AS_HTTP_PARSE_DONE;
}

static enum as_http_parse read_content_encoding(struct as_http_head *head, const char *value,
                                                size_t size)
{
    if (size > 0 && !head_is_word(value, size, "identity"))
        return head_refuse(head, 415, "send the body without Content-Encoding");
    return AS_HTTP_PARSE_DONE;
}

static enum as_http_parse read_expect(struct as_http_head *head, const char *value, size_t size)
{
    if (!head_is_word(value, size, "100-continue"))
        return head_refuse(head, 417, "the only expectation met is 100-continue");
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
        while (from < to && http_char_is(value[from], HTTP_CHAR_BLANK))
            from++;
        while (to > from && http_char_is(value[to - 1], HTTP_CHAR_BLANK))
            to--;
        if (head_is_word(value + from, to - from, "close"))
            head->seen |= SEEN_CLOSE;
        else if (head_is_word(value + from, to - from, "keep-alive"))
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
    {"Origin", SEEN_ORIGIN, read_nothing},
    {"Sec-Fetch-Site", SEEN_FETCH_SITE, read_nothing},
    {"Content-Encoding", 0, read_content_encoding},
    {"Connection", 0, read_connection},
    {"Expect", 0, read_expect},
};

static const struct known_field *find_known_field(const char *name, size_t size)
{
    for (size_t i = 0; i < AS_ARRAY_SIZE(known_fields); i++)
        if (head_is_word(name, size, known_fields[i].name))
            return &known_fields[i];
    return NULL;
}

static enum as_http_parse head_read_field(struct as_http_head *head, const char *bytes, size_t from,
                                          size_t to)
{
    if (http_char_is(bytes[from], HTTP_CHAR_BLANK))
        return head_refuse(head, 400, "a header line begins with white space");
    size_t colon = from;
    while (colon < to && http_char_is(bytes[colon], HTTP_CHAR_TOKEN))
        colon++;
    if (colon == from || colon == to || bytes[colon] != ':')
        return head_refuse(head, 400, "a header line is not \"name: value\"");
    size_t value = colon + 1;
    while (value < to && http_char_is(bytes[value], HTTP_CHAR_BLANK))
        value++;
    while (to > value && http_char_is(bytes[to - 1], HTTP_CHAR_BLANK))
        to--;
    if (head->field_count == AS_HTTP_FIELDS_MAX)
        return head_refuse(head, 431, "too many headers");
    head->fields[head->field_count++] =
        (struct as_http_field){head_span(from, colon), head_span(value, to)};

    const struct known_field *known = find_known_field(bytes + from, colon - from);
    if (!known)
        return AS_HTTP_PARSE_DONE;
    if (head->seen & known->once)
        return head_refuse(head, 400, "a header that may come once came twice");
    head->seen |= known->once;
    return known->read(head, bytes + value, to - value);
}

static enum as_http_parse read_version(struct as_http_head *head, const char *text, size_t size)
{
    if (size != strlen("HTTP/1.1") || memcmp(text, "HTTP/", 5) != 0 || text[6] != '.' ||
        !http_char_is(text[5], HTTP_CHAR_DIGIT) || !http_char_is(text[7], HTTP_CHAR_DIGIT))
        return head_refuse(head, 400, "the request line is not \"METHOD /path HTTP/1.1\"");
    if (text[5] != '1' || text[7] > '1')
        return head_refuse(head, 505, "speak HTTP/1.1");
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
        while (at < to && http_char_is(bytes[at], HTTP_CHAR_HOST))
            at++;
        if (at == authority || (at < to && bytes[at] != '/' && bytes[at] != '?'))
            break;
        *from_io = at;
        return AS_HTTP_PARSE_DONE;
    }
    return head_refuse(head, 400, "the request target is neither a path nor an http URL");
}

static enum as_http_parse head_read_target(struct as_http_head *head, const char *bytes,
                                           size_t from, size_t to)
{
    if (!all_are(bytes + from, to - from, HTTP_CHAR_TARGET))
        return head_refuse(head, 400, "the request target has a character that must be escaped");
    if (bytes[from] != '/') {
        enum as_http_parse parsed = skip_authority(head, bytes, &from, to);
        if (parsed != AS_HTTP_PARSE_DONE)
            return parsed;
    }
    const char *mark = memchr(bytes + from, '?', to - from);
    size_t path_end = mark ? (size_t)(mark - bytes) : to;
    head->path = head_span(from, path_end);
    head->query = mark ? head_span(path_end + 1, to) : head_span(to, to);
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
        !all_are(bytes + from, target - 1 - from, HTTP_CHAR_TOKEN))
        return head_refuse(head, 400, "the request line is not \"METHOD /path HTTP/1.1\"");
    head->method = head_span(from, target - 1);
    enum as_http_parse parsed = read_version(head, bytes + version, to - version);
    if (parsed == AS_HTTP_PARSE_DONE)
        parsed = head_read_target(head, bytes, target, version - 1);
    head->have_request_line = true;
    return parsed;
}

static enum as_http_parse read_end(struct as_http_head *head, size_t size)
{
    if (head->minor == 1 && !(head->seen & SEEN_HOST))
        return head_refuse(head, 400, "the Host header is missing");
    if (head->seen & SEEN_TRANSFER_ENCODING && head->seen & SEEN_CONTENT_LENGTH)
        return head_refuse(head, 400, "Content-Length and Transfer-Encoding exclude each other");
    if (head->seen & SEEN_TRANSFER_ENCODING && head->minor == 0)
        return head_refuse(head, 400, "HTTP/1.0 has no Transfer-Encoding");
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
static enum as_http_parse head_scan_line(struct as_http_head *head, const char *bytes, size_t size)
{
    unsigned char allowed = head->have_request_line ? HTTP_CHAR_VALUE : HTTP_CHAR_REQUEST;
    size_t at = head->scanned;
    while (at < size && http_char_is(bytes[at], allowed))
        at++;
    head->scanned = at;
    if (at == size)
        return AS_HTTP_PARSE_MORE;
    if (bytes[at] == '\n')
        return head_refuse(head, 400, "a line ends in LF without CR");
    if (bytes[at] != '\r')
        return head_refuse(head, 400,
                           head->have_request_line
                               ? "a header has a control character"
                               : "the request line has a character that is not printable ASCII");
    if (at + 1 == size)
        return AS_HTTP_PARSE_MORE;
    if (bytes[at + 1] != '\n')
        return head_refuse(head, 400, "a CR without LF");
    return AS_HTTP_PARSE_DONE;
}

enum as_http_parse as_http_head_parse(struct as_http_head *head, const char *bytes, size_t size)
{
    bool full = size >= head->max;
    if (full)
        size = head->max;
    for (;;) {
        enum as_http_parse parsed = head_scan_line(head, bytes, size);
        if (parsed == AS_HTTP_PARSE_MORE && full)
            return head->have_request_line ? head_refuse(head, 431, "the headers are too large")
                                           : head_refuse(head, 414, "the request line is too long");
        if (parsed != AS_HTTP_PARSE_DONE)
            return parsed;
        size_t from = head->line_at, to = head->scanned;
        head->line_at = head->scanned = to + 2;
        if (head->have_request_line && from == to)
            return read_end(head, to + 2);
        if (head->have_request_line)
            parsed = head_read_field(head, bytes, from, to);
        else if (from > 0 || to > 0) /* one empty line before it is allowed: RFC 9112, 2.2 */
            parsed = read_request_line(head, bytes, from, to);
        if (parsed != AS_HTTP_PARSE_DONE)
            return parsed;
    }
}

/* The chunked body: a state machine over single bytes of framing and runs of data. Invariants: a
 * chunk size has at most 16 hex digits, so `left` cannot overflow; framing without data is limited
 * in total, not only per line (otherwise a peer could keep us busy with extensions forever). */

#define SIZE_DIGITS_MAX 16

enum chunks_state {
    CHUNK_SIZE,
    CHUNK_EXTENSION,
    CHUNK_SIZE_LF,
    CHUNK_DATA,
    CHUNK_DATA_CR,
    CHUNK_DATA_LF,
    TRAILER_START,
    TRAILER_NAME,
    TRAILER_VALUE,
    TRAILER_LF,
    LAST_LF,
    ENDED
};

static enum as_http_parse chunks_refuse(struct as_http_chunks *chunks, int status,
                                        const char *reason)
{
    chunks->status = status;
    chunks->reason = reason;
    return AS_HTTP_PARSE_REFUSED;
}

static enum as_http_parse chunks_go_on(struct as_http_chunks *chunks, enum chunks_state next)
{
    chunks->state = (int)next;
    return AS_HTTP_PARSE_MORE;
}

static uint64_t read_hex(char digit)
{
    if (digit <= '9')
        return (uint64_t)(digit - '0');
    return (uint64_t)((digit | 0x20) - 'a' + 10);
}

static enum as_http_parse step_size(struct as_http_chunks *chunks, char byte)
{
    if (http_char_is(byte, HTTP_CHAR_HEX)) {
        if (++chunks->digits > SIZE_DIGITS_MAX)
            return chunks_refuse(chunks, 400, "a chunk size has too many digits");
        chunks->left = chunks->left << 4 | read_hex(byte);
        return AS_HTTP_PARSE_MORE;
    }
    if (chunks->digits > 0 && byte == ';')
        return chunks_go_on(chunks, CHUNK_EXTENSION);
    if (chunks->digits > 0 && byte == '\r')
        return chunks_go_on(chunks, CHUNK_SIZE_LF);
    return chunks_refuse(chunks, 400, "a chunk size is not a hexadecimal number");
}

static enum as_http_parse step_extension(struct as_http_chunks *chunks, char byte)
{
    if (byte == '\r')
        return chunks_go_on(chunks, CHUNK_SIZE_LF);
    if (!http_char_is(byte, HTTP_CHAR_VALUE))
        return chunks_refuse(chunks, 400, "a chunk extension has a control character");
    return AS_HTTP_PARSE_MORE;
}

static enum as_http_parse end_size_line(struct as_http_chunks *chunks)
{
    uint64_t credit = chunks->left > AS_HTTP_CHUNK_EXCESS_MAX ? UINT64_MAX : 16 + 2 * chunks->left;
    chunks->excess += chunks->line;
    chunks->excess -= chunks->excess < credit ? chunks->excess : credit;
    if (chunks->excess > AS_HTTP_CHUNK_EXCESS_MAX)
        return chunks_refuse(chunks, 400, "too many chunk extensions");
    chunks->line = 0;
    chunks->digits = 0;
    return chunks_go_on(chunks, chunks->left > 0 ? CHUNK_DATA : TRAILER_START);
}

/* Dropping these trailers would do for us, but a proxy that merges them sees another request. */
static bool chunks_is_forbidden(const struct as_http_chunks *chunks)
{
    static const char *const names[] = {"Content-Length", "Transfer-Encoding", "Host"};
    for (size_t i = 0; i < AS_ARRAY_SIZE(names); i++)
        if (chunks->name_size == strlen(names[i]) &&
            strncasecmp(chunks->name, names[i], chunks->name_size) == 0)
            return true;
    return false;
}

static enum as_http_parse step_trailer_name(struct as_http_chunks *chunks, char byte)
{
    if (byte == ':' && chunks->name_size > 0)
        return chunks_is_forbidden(chunks)
                   ? chunks_refuse(chunks, 400, "a trailer that only a header may be")
                   : chunks_go_on(chunks, TRAILER_VALUE);
    if (!http_char_is(byte, HTTP_CHAR_TOKEN))
        return chunks_refuse(chunks, 400, "a trailer is not \"name: value\"");
    if (chunks->name_size < sizeof(chunks->name))
        chunks->name[chunks->name_size++] = byte;
    return chunks_go_on(chunks, TRAILER_NAME);
}

static enum as_http_parse step_trailer_value(struct as_http_chunks *chunks, char byte)
{
    if (byte == '\r')
        return chunks_go_on(chunks, TRAILER_LF);
    if (!http_char_is(byte, HTTP_CHAR_VALUE))
        return chunks_refuse(chunks, 400, "a trailer has a control character");
    return AS_HTTP_PARSE_MORE;
}

static enum as_http_parse step_byte(struct as_http_chunks *chunks, char byte, char expected,
                                    enum chunks_state next)
{
    if (byte != expected)
        return chunks_refuse(chunks, 400, "a chunk does not end in CR LF");
    return chunks_go_on(chunks, next);
}

static enum as_http_parse step_framing(struct as_http_chunks *chunks, char byte)
{
    enum chunks_state state = (enum chunks_state)chunks->state;
    size_t line_max = state < CHUNK_DATA ? AS_HTTP_CHUNK_LINE_MAX : AS_HTTP_CHUNK_TRAILER_MAX;
    if (++chunks->line > line_max)
        return chunks_refuse(chunks, 400,
                             state < CHUNK_DATA ? "a chunk size line is too long"
                                                : "the trailers are too large");
    switch (state) {
    case CHUNK_SIZE: return step_size(chunks, byte);
    case CHUNK_EXTENSION: return step_extension(chunks, byte);
    case CHUNK_SIZE_LF:
        if (byte == '\n')
            return end_size_line(chunks);
        return chunks_refuse(chunks, 400, "a chunk size line does not end in CR LF");
    case CHUNK_DATA_CR: return step_byte(chunks, byte, '\r', CHUNK_DATA_LF);
    case CHUNK_DATA_LF: chunks->line = 0; return step_byte(chunks, byte, '\n', CHUNK_SIZE);
    case TRAILER_START:
        chunks->name_size = 0;
        return byte == '\r' ? chunks_go_on(chunks, LAST_LF) : step_trailer_name(chunks, byte);
    case TRAILER_NAME: return step_trailer_name(chunks, byte);
    case TRAILER_VALUE: return step_trailer_value(chunks, byte);
    case TRAILER_LF: return step_byte(chunks, byte, '\n', TRAILER_START);
    case LAST_LF: return step_byte(chunks, byte, '\n', ENDED);
    case CHUNK_DATA:
    case ENDED: break; /* not framing: left to the caller */
    }
    return AS_HTTP_PARSE_MORE;
}

void as_http_chunks_init(struct as_http_chunks *chunks)
{
    *chunks = (struct as_http_chunks){.state = CHUNK_SIZE};
}

enum as_http_parse as_http_chunks_step(struct as_http_chunks *chunks, const char *bytes,
                                       size_t size, size_t *used_out, const char **data_out,
                                       size_t *data_size_out)
{
    enum as_http_parse parsed = chunks->state == ENDED ? AS_HTTP_PARSE_DONE : AS_HTTP_PARSE_MORE;
    size_t used = 0, data_size = 0;
    *data_out = bytes;
    while (used < size && parsed == AS_HTTP_PARSE_MORE && data_size == 0) {
        if (chunks->state != CHUNK_DATA) {
            parsed = step_framing(chunks, bytes[used]);
            used += parsed == AS_HTTP_PARSE_MORE;
            if (chunks->state == ENDED)
                parsed = AS_HTTP_PARSE_DONE;
            continue;
        }
        data_size = chunks->left < size - used ? (size_t)chunks->left : size - used;
        *data_out = bytes + used;
        used += data_size;
        chunks->left -= data_size;
        if (chunks->left == 0)
            chunks->state = CHUNK_DATA_CR;
    }
    *used_out = used;
    *data_size_out = data_size;
    return parsed;
}
