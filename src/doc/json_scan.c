/*
 * JSON in parts: see the header. One step takes one token, or a piece of one, and all that is
 * between the steps is in the struct. Strings and numbers may be cut; so may escapes and literals.
 */
#include <alertscaler/doc/json_scan.h>

#include <string.h>

#include <jansson.h>

enum state {
    AT_TOP, /* between documents */
    AT_VALUE,
    AT_FIRST_VALUE, /* or the end of the array */
    AT_NAME,
    AT_FIRST_NAME, /* or the end of the object */
    AT_COLON,
    AT_NEXT, /* a comma, or the end of the container */
    IN_NAME,
    IN_STRING,
    IN_NUMBER,
    IN_LITERAL,
    FAILED
};

enum number { MINUS, ZERO, INTEGER, POINT, FRACTION, EXPONENT, SIGN, DIGITS, BAD };

#define FIRST_OF_ESCAPE 5U /* behind the backslash; 4 to 1: digits of \u that are missing */

/* A string's bytes that need no look: all but '"', '\' and control characters. */
#define P4(c)  (c), (c), (c), (c)
#define P16(c) P4(c), P4(c), P4(c), P4(c)
static const bool plain[256] = {P16(false), P16(false), true,      true,      false,
                                true,       P4(true),   P4(true),  P4(true), /* '"' */
                                P16(true),  P16(true),  P4(true),  P4(true),  P4(true),
                                false,      true,       true,      true, /* '\' */
                                P16(true),  P16(true),  P16(true), P16(true), P16(true),
                                P16(true),  P16(true),  P16(true), P16(true), P16(true)};

void json_scan_init(struct json_scan *scan, unsigned told_depth)
{
    *scan = (struct json_scan){.told_depth = told_depth,
                               .kept = AS_BUF_INIT_OPEN(JSON_SCAN_TEXT_MAX),
                               .decoded = AS_BUF_INIT_OPEN(JSON_SCAN_TEXT_MAX + 2)};
}

void json_scan_deinit(struct json_scan *scan)
{
    as_buf_deinit(&scan->kept);
    as_buf_deinit(&scan->decoded);
}

void json_scan_feed(struct json_scan *scan, const char *bytes, size_t size)
{
    scan->offset += (uint64_t)(scan->end - scan->begin);
    scan->begin = scan->at = scan->from = bytes;
    scan->end = bytes + size;
}

uint64_t json_scan_get_offset(const struct json_scan *scan)
{
    return scan->offset + (uint64_t)(scan->at - scan->begin);
}

bool json_scan_is_inside(const struct json_scan *scan)
{
    return scan->depth > 0 || scan->state != AT_TOP;
}

static AS_RARE enum json_token fail(struct json_scan *scan, const char *error)
{
    scan->state = FAILED;
    scan->error = error;
    return JSON_TOKEN_ERROR;
}

/* The token stands in a container of the present depth. */
static enum json_token yield_token(const struct json_scan *scan, enum json_token token)
{
    return scan->depth <= scan->told_depth ? token : JSON_TOKEN_NONE;
}

static enum json_token end_value(struct json_scan *scan, enum json_token token)
{
    scan->state = scan->depth > 0 ? AT_NEXT : AT_TOP;
    return yield_token(scan, token);
}

/* ---- strings ---- */

static void begin_string(struct json_scan *scan, enum state state)
{
    scan->keeps_text = scan->depth <= scan->told_depth && (state == IN_NAME || scan->wants_text);
    scan->wants_text = false;
    scan->has_escape = false;
    scan->from = scan->at;
    scan->state = (int)state;
    as_buf_clear(&scan->kept);
}

/* Of the text in the present part, up to `at`. */
static bool keep(struct json_scan *scan)
{
    if (scan->keeps_text)
        as_buf_append(&scan->kept, scan->from, (size_t)(scan->at - scan->from));
    return as_buf_check(&scan->kept) == 0;
}

/* Rare: the names and texts that matter have no escapes. */
static AS_RARE bool decode(struct json_scan *scan)
{
    as_buf_clear(&scan->decoded);
    as_buf_append_char(&scan->decoded, '"');
    as_buf_append(&scan->decoded, scan->text, scan->text_size);
    as_buf_append_char(&scan->decoded, '"');
    json_t *value = as_buf_check(&scan->decoded) == 0
                        ? json_loadb(scan->decoded.data, scan->decoded.size,
                                     JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL)
                        : NULL;
    if (!value)
        return false;
    as_buf_clear(&scan->kept);
    as_buf_append(&scan->kept, json_string_value(value), json_string_length(value));
    scan->text = scan->kept.size > 0 ? scan->kept.data : "";
    scan->text_size = scan->kept.size;
    json_decref(value);
    return true;
}

/* `at` is at the closing quote. */
static enum json_token end_string(struct json_scan *scan)
{
    const bool is_whole = scan->kept.size == 0; /* in the present part */
    if (scan->keeps_text && !is_whole && !keep(scan))
        return fail(scan, "a shorter text");
    scan->text = is_whole ? scan->from : scan->kept.data;
    scan->text_size = is_whole ? (size_t)(scan->at - scan->from) : scan->kept.size;
    if (scan->keeps_text && (scan->text_size > JSON_SCAN_TEXT_MAX))
        return fail(scan, "a shorter text");
    if (scan->keeps_text && scan->has_escape && !decode(scan))
        return fail(scan, "a text that can be decoded");
    scan->at++;
    if (scan->state == IN_STRING)
        return end_value(scan, JSON_TOKEN_STRING);
    scan->state = AT_COLON;
    return yield_token(scan, JSON_TOKEN_NAME);
}

static bool is_hex(char byte)
{
    return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'f') ||
           (byte >= 'A' && byte <= 'F');
}

/* The next byte of an escape. */
static bool pass_escape(struct json_scan *scan)
{
    const char byte = *scan->at;
    bool is_good = scan->escape == FIRST_OF_ESCAPE ? byte && strchr("\"\\/bfnrtu", byte) != NULL
                                                   : is_hex(byte);
    scan->escape = scan->escape == FIRST_OF_ESCAPE && byte != 'u' ? 0 : scan->escape - 1;
    scan->at += is_good;
    return is_good;
}

static enum json_token read_string(struct json_scan *scan)
{
    while (scan->at < scan->end) {
        if (scan->escape > 0) {
            if (!pass_escape(scan))
                return fail(scan, "an escape");
            continue;
        }
        const char *at = scan->at, *end = scan->end;
        while (at < end && plain[(unsigned char)*at])
            at++;
        scan->at = at;
        if (at == end)
            break;
        if (*at == '"')
            return end_string(scan);
        if (*at != '\\')
            return fail(scan, "no control character in a text");
        scan->escape = FIRST_OF_ESCAPE;
        scan->has_escape = true;
        scan->at++;
    }
    return keep(scan) ? JSON_TOKEN_MORE : fail(scan, "a shorter text");
}

/* ---- numbers and words ---- */

static enum number step_number(enum number state, char byte)
{
    static const unsigned char digits[] = {
        [MINUS] = INTEGER,     [ZERO] = BAD,        [INTEGER] = INTEGER, [POINT] = FRACTION,
        [FRACTION] = FRACTION, [EXPONENT] = DIGITS, [SIGN] = DIGITS,     [DIGITS] = DIGITS};
    if (byte == '0' && state == MINUS)
        return ZERO;
    if (byte >= '0' && byte <= '9')
        return (enum number)digits[state];
    if (byte == '.')
        return state == ZERO || state == INTEGER ? POINT : BAD;
    if (byte == 'e' || byte == 'E')
        return state == ZERO || state == INTEGER || state == FRACTION ? EXPONENT : BAD;
    return state == EXPONENT ? SIGN : BAD; /* '+' or '-' */
}

static bool is_in_number(char byte)
{
    return (byte >= '0' && byte <= '9') || byte == '.' || byte == 'e' || byte == 'E' ||
           byte == '+' || byte == '-';
}

static enum json_token read_number(struct json_scan *scan)
{
    enum number state = (enum number)scan->number;
    while (scan->at < scan->end && is_in_number(*scan->at)) {
        state = step_number(state, *scan->at);
        if (state == BAD)
            return fail(scan, "a number");
        scan->at++;
    }
    scan->number = state;
    if (scan->at == scan->end)
        return JSON_TOKEN_MORE;
    if (state != ZERO && state != INTEGER && state != FRACTION && state != DIGITS)
        return fail(scan, "a digit");
    return end_value(scan, JSON_TOKEN_OTHER);
}

static enum json_token read_literal(struct json_scan *scan)
{
    while (scan->at < scan->end && *scan->rest && *scan->at == *scan->rest) {
        scan->at++;
        scan->rest++;
    }
    if (!*scan->rest)
        return end_value(scan, scan->rest[-1] == 'l' ? JSON_TOKEN_NULL : JSON_TOKEN_OTHER);
    return scan->at == scan->end ? JSON_TOKEN_MORE : fail(scan, "true, false or null");
}

/* ---- containers ---- */

static enum json_token open_container(struct json_scan *scan, bool is_array)
{
    enum json_token token = yield_token(scan, is_array ? JSON_TOKEN_ARRAY : JSON_TOKEN_OBJECT);
    if (scan->depth == JSON_SCAN_DEPTH_MAX)
        return fail(scan, "no deeper nesting");
    scan->arrays = scan->arrays << 1 | is_array;
    scan->depth++;
    scan->state = is_array ? AT_FIRST_VALUE : AT_FIRST_NAME;
    return token;
}

static enum json_token close_container(struct json_scan *scan)
{
    scan->arrays >>= 1;
    scan->depth--;
    return end_value(scan, JSON_TOKEN_CLOSE);
}

static enum json_token begin_literal(struct json_scan *scan, const char *rest)
{
    scan->rest = rest;
    scan->state = IN_LITERAL;
    return JSON_TOKEN_NONE;
}

/* The caller has passed `byte`. */
static enum json_token begin_value(struct json_scan *scan, char byte)
{
    switch (byte) {
    case '{':
    case '[': return open_container(scan, byte == '[');
    case '"': begin_string(scan, IN_STRING); return JSON_TOKEN_NONE;
    case 't': return begin_literal(scan, "rue");
    case 'f': return begin_literal(scan, "alse");
    case 'n': return begin_literal(scan, "ull");
    default: break;
    }
    if (byte != '-' && (byte < '0' || byte > '9')) {
        scan->at--;
        return fail(scan, "a value");
    }
    scan->number = byte == '-' ? MINUS : byte == '0' ? ZERO : INTEGER;
    scan->state = IN_NUMBER;
    return JSON_TOKEN_NONE;
}

static enum json_token begin_name(struct json_scan *scan, char byte)
{
    if (byte != '"') {
        scan->at--;
        return fail(scan, "a name");
    }
    begin_string(scan, IN_NAME);
    return JSON_TOKEN_NONE;
}

static enum json_token pass_next(struct json_scan *scan, char byte)
{
    const bool is_array = scan->arrays & 1;
    if (byte == (is_array ? ']' : '}'))
        return close_container(scan);
    if (byte != ',') {
        scan->at--;
        return fail(scan, is_array ? "',' or ']'" : "',' or '}'");
    }
    scan->state = is_array ? AT_VALUE : AT_NAME;
    return JSON_TOKEN_NONE;
}

static enum json_token pass_colon(struct json_scan *scan, char byte)
{
    if (byte != ':') {
        scan->at--;
        return fail(scan, "':'");
    }
    scan->state = AT_VALUE;
    return JSON_TOKEN_NONE;
}

/* A byte that is no white space, between names and values. */
static enum json_token pass_byte(struct json_scan *scan, char byte)
{
    switch ((enum state)scan->state) {
    case AT_FIRST_VALUE: return byte == ']' ? close_container(scan) : begin_value(scan, byte);
    case AT_TOP:
    case AT_VALUE: return begin_value(scan, byte);
    case AT_FIRST_NAME: return byte == '}' ? close_container(scan) : begin_name(scan, byte);
    case AT_NAME: return begin_name(scan, byte);
    case AT_COLON: return pass_colon(scan, byte);
    case AT_NEXT: return pass_next(scan, byte);
    case IN_NAME:
    case IN_STRING:
    case IN_NUMBER:
    case IN_LITERAL:
    case FAILED: break;
    }
    return JSON_TOKEN_ERROR;
}

static enum json_token pass_space(struct json_scan *scan)
{
    while (scan->at < scan->end) {
        const char byte = *scan->at++;
        if (byte > ' ' || (byte != ' ' && byte != '\n' && byte != '\r' && byte != '\t'))
            return pass_byte(scan, byte);
    }
    return JSON_TOKEN_MORE;
}

static enum json_token step(struct json_scan *scan)
{
    switch ((enum state)scan->state) {
    case IN_NAME:
    case IN_STRING: return read_string(scan);
    case IN_NUMBER: return read_number(scan);
    case IN_LITERAL: return read_literal(scan);
    case FAILED: return JSON_TOKEN_ERROR;
    case AT_TOP:
    case AT_VALUE:
    case AT_FIRST_VALUE:
    case AT_NAME:
    case AT_FIRST_NAME:
    case AT_COLON:
    case AT_NEXT: break;
    }
    return pass_space(scan);
}

enum json_token json_scan_next(struct json_scan *scan)
{
    enum json_token token;
    do {
        token = step(scan);
    } while (token == JSON_TOKEN_NONE);
    return token;
}

bool json_scan_find_member(const char *json, size_t size, const char *name, const char **value_out,
                           size_t *size_out)
{
    struct json_scan scan;
    enum json_token token;
    const char *begin = NULL;
    bool is_next = false, is_found = false;

    json_scan_init(&scan, 1);
    json_scan_feed(&scan, json, size);
    do {
        token = json_scan_next(&scan);
        if (token == JSON_TOKEN_CLOSE && begin && scan.depth == 1) {
            *value_out = begin;
            *size_out = (size_t)(scan.at - begin);
            is_found = true;
        } else if ((token == JSON_TOKEN_OBJECT || token == JSON_TOKEN_ARRAY) && is_next) {
            begin = scan.at - 1;
        }
        is_next = token == JSON_TOKEN_NAME && scan.depth == 1 && scan.text_size == strlen(name) &&
                  memcmp(scan.text, name, scan.text_size) == 0;
    } while (token != JSON_TOKEN_MORE && token != JSON_TOKEN_ERROR && !is_found);
    json_scan_deinit(&scan);
    return is_found;
}
