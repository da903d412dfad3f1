/*
 * The chunked body: a state machine over single bytes of framing and runs of data. Invariants: a
 * chunk size has at most 16 hex digits, so `left` cannot overflow; framing without data is limited
 * in total, not only per line (otherwise a peer could keep us busy with extensions forever).
 */
#include <alertscaler/http/http_parser.h>

#include <string.h>
#include <strings.h>

#include "http_chars.h"

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

static enum as_http_parse refuse(struct as_http_chunks *chunks, int status, const char *reason)
{
    chunks->status = status;
    chunks->reason = reason;
    return AS_HTTP_PARSE_REFUSED;
}

static enum as_http_parse go_on(struct as_http_chunks *chunks, enum chunks_state next)
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
    if (as_http_char_is(byte, AS_HTTP_CHAR_HEX)) {
        if (++chunks->digits > SIZE_DIGITS_MAX)
            return refuse(chunks, 400, "a chunk size has too many digits");
        chunks->left = chunks->left << 4 | read_hex(byte);
        return AS_HTTP_PARSE_MORE;
    }
    if (chunks->digits > 0 && byte == ';')
        return go_on(chunks, CHUNK_EXTENSION);
    if (chunks->digits > 0 && byte == '\r')
        return go_on(chunks, CHUNK_SIZE_LF);
    return refuse(chunks, 400, "a chunk size is not a hexadecimal number");
}

static enum as_http_parse step_extension(struct as_http_chunks *chunks, char byte)
{
    if (byte == '\r')
        return go_on(chunks, CHUNK_SIZE_LF);
    if (!as_http_char_is(byte, AS_HTTP_CHAR_VALUE))
        return refuse(chunks, 400, "a chunk extension has a control character");
    return AS_HTTP_PARSE_MORE;
}

static enum as_http_parse end_size_line(struct as_http_chunks *chunks)
{
    uint64_t credit = chunks->left > AS_HTTP_CHUNK_EXCESS_MAX ? UINT64_MAX : 16 + 2 * chunks->left;
    chunks->excess += chunks->line;
    chunks->excess -= chunks->excess < credit ? chunks->excess : credit;
    if (chunks->excess > AS_HTTP_CHUNK_EXCESS_MAX)
        return refuse(chunks, 400, "too many chunk extensions");
    chunks->line = 0;
    chunks->digits = 0;
    return go_on(chunks, chunks->left > 0 ? CHUNK_DATA : TRAILER_START);
}

/* Dropping these trailers would do for us, but a proxy that merges them sees another request. */
static bool is_forbidden(const struct as_http_chunks *chunks)
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
        return is_forbidden(chunks) ? refuse(chunks, 400, "a trailer that only a header may be")
                                    : go_on(chunks, TRAILER_VALUE);
    if (!as_http_char_is(byte, AS_HTTP_CHAR_TOKEN))
        return refuse(chunks, 400, "a trailer is not \"name: value\"");
    if (chunks->name_size < sizeof(chunks->name))
        chunks->name[chunks->name_size++] = byte;
    return go_on(chunks, TRAILER_NAME);
}

static enum as_http_parse step_trailer_value(struct as_http_chunks *chunks, char byte)
{
    if (byte == '\r')
        return go_on(chunks, TRAILER_LF);
    if (!as_http_char_is(byte, AS_HTTP_CHAR_VALUE))
        return refuse(chunks, 400, "a trailer has a control character");
    return AS_HTTP_PARSE_MORE;
}

static enum as_http_parse step_byte(struct as_http_chunks *chunks, char byte, char expected,
                                    enum chunks_state next)
{
    if (byte != expected)
        return refuse(chunks, 400, "a chunk does not end in CR LF");
    return go_on(chunks, next);
}

static enum as_http_parse step_framing(struct as_http_chunks *chunks, char byte)
{
    enum chunks_state state = (enum chunks_state)chunks->state;
    size_t line_max = state < CHUNK_DATA ? AS_HTTP_CHUNK_LINE_MAX : AS_HTTP_CHUNK_TRAILER_MAX;
    if (++chunks->line > line_max)
        return refuse(chunks, 400,
                      state < CHUNK_DATA ? "a chunk size line is too long"
                                         : "the trailers are too large");
    switch (state) {
    case CHUNK_SIZE: return step_size(chunks, byte);
    case CHUNK_EXTENSION: return step_extension(chunks, byte);
    case CHUNK_SIZE_LF:
        if (byte == '\n')
            return end_size_line(chunks);
        return refuse(chunks, 400, "a chunk size line does not end in CR LF");
    case CHUNK_DATA_CR: return step_byte(chunks, byte, '\r', CHUNK_DATA_LF);
    case CHUNK_DATA_LF: chunks->line = 0; return step_byte(chunks, byte, '\n', CHUNK_SIZE);
    case TRAILER_START:
        chunks->name_size = 0;
        return byte == '\r' ? go_on(chunks, LAST_LF) : step_trailer_name(chunks, byte);
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
