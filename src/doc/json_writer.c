/*
 * The JSON writer. Most strings are plain: they are copied eight bytes at a time, and checked for
 * special characters meanwhile. Only a string with a special character is escaped run by run.
 */
#include <alertscaler/doc/json_writer.h>

#include <assert.h>
#include <math.h>
#include <string.h>

#include <alertscaler/base/encode.h>
#include <alertscaler/base/number.h>
#include <alertscaler/base/str.h>

#include "json_plain.h"

void as_json_init(struct as_json_writer *json, struct as_buf *buf, unsigned flags)
{
    *json = (struct as_json_writer){.buf = buf, .flags = flags};
}

/* Before every value: whether it needs a comma. Asserts that in an object a key came first. */
static bool needs_comma(struct as_json_writer *json)
{
    if (json->depth == 0)
        return false;
    struct as_json_level *level = &json->levels[json->depth - 1];
    const bool is_after_item = !json->after_key && level->has_items;
    assert(json->after_key == level->is_object);
    level->has_items = true;
    json->after_key = false;
    return is_after_item;
}

static void writer_begin_value(struct as_json_writer *json)
{
    if (needs_comma(json))
        as_buf_append_char(json->buf, ',');
}

static void writer_begin(struct as_json_writer *json, bool is_object)
{
    writer_begin_value(json);
    assert(json->depth < AS_JSON_DEPTH_MAX);
    as_buf_append_char(json->buf, is_object ? '{' : '[');
    json->levels[json->depth].is_object = is_object;
    json->levels[json->depth].has_items = false;
    json->levels[json->depth].key = 0;
    json->depth++;
}

static void writer_end(struct as_json_writer *json, bool is_object)
{
    assert(json->depth > 0 && !json->after_key);
    assert(json->levels[json->depth - 1].is_object == is_object);
    json->depth--;
    as_buf_append_char(json->buf, is_object ? '}' : ']');
}

void as_json_begin_object(struct as_json_writer *json)
{
    writer_begin(json, true);
}

void as_json_end_object(struct as_json_writer *json)
{
    writer_end(json, true);
}

void as_json_begin_array(struct as_json_writer *json)
{
    writer_begin(json, false);
}

void as_json_end_array(struct as_json_writer *json)
{
    writer_end(json, false);
}

static bool is_special(unsigned char c, bool html)
{
    return c < 0x20 || c >= 0x80 || c == '"' || c == '\\' ||
           (html && (c == '<' || c == '>' || c == '&'));
}

/* U+2028 and U+2029: line ends in JavaScript. */
static bool is_line_end(const char *text, size_t size)
{
    return size >= 3 && memcmp(text, "\xE2\x80", 2) == 0 && ((unsigned char)text[2] & 0xFE) == 0xA8;
}

/* Number of plain bytes from `text` on. */
static size_t get_run(const char *text, size_t size, bool html)
{
    size_t at = 0, width;

    do {
        for (width = 8; !html && width == 8 && size - at >= 8; at += width)
            width = json_count_plain(text + at);
        if (at == size)
            break;
        width = !is_special((unsigned char)text[at], html);
        if ((unsigned char)text[at] >= 0x80 && !(html && is_line_end(text + at, size - at)))
            width = as_str_measure_utf8(text + at, size - at);
        at += width;
    } while (width > 0);
    return at;
}

/* Copies a text and returns whether it is plain; if not, the copy is invalid. The last eight bytes
 * may overlap bytes copied before. */
static bool copy_plain(char *out, const char *text, size_t size)
{
    uint64_t bytes, special = 0;
    uint32_t first, last;

    if (size >= 8) {
        for (size_t at = 0; at < size; at += 8) {
            const size_t begin = size - at < 8 ? size - 8 : at;
            memcpy(&bytes, text + begin, 8);
            memcpy(out + begin, &bytes, 8);
            special |= json_mark_special(bytes);
        }
        return special == 0;
    }
    if (size >= 4) {
        memcpy(&first, text, 4);
        memcpy(&last, text + size - 4, 4);
        memcpy(out, &first, 4);
        memcpy(out + size - 4, &last, 4);
        return json_mark_special((uint64_t)last << 32 | first) == 0;
    }
    for (size_t at = 0; at < size; at++) {
        out[at] = text[at];
        special |= is_special((unsigned char)text[at], false);
    }
    return special == 0;
}

/* Escapes the special character at `text`; returns its size in the text. */
static size_t escape(struct as_buf *buf, const char *text, size_t size)
{
    static const char letters[] = "\"\\\b\f\n\r\t", names[] = "\"\\bfnrt";
    unsigned char c = (unsigned char)*text;
    const char *letter = c ? strchr(letters, *text) : NULL;

    if (letter) {
        as_buf_append(buf, (const char[]){'\\', names[letter - letters]}, 2);
        return 1;
    }
    if (c < 0x80) {
        as_buf_append_str(buf, "\\u00");
        as_encode_hex(buf, &c, 1);
        return 1;
    }
    if (is_line_end(text, size)) {
        as_buf_append_str(buf, text[2] == '\xA8' ? "\\u2028" : "\\u2029");
        return 3;
    }
    as_buf_append_str(buf, "\xEF\xBF\xBD");
    return 1;
}

/* Returns whether nothing was escaped. */
static AS_RARE bool write_runs(struct as_json_writer *json, const char *text, size_t size)
{
    struct as_buf *buf = json->buf;
    bool is_escaped = false;

    as_buf_append_char(buf, '"');
    for (size_t at = 0; at < size;) {
        const size_t run = get_run(text + at, size - at, json->flags & AS_JSON_HTML);
        as_buf_append(buf, text + at, run);
        at += run;
        if (at == size)
            break;
        at += escape(buf, text + at, size - at);
        is_escaped = true;
    }
    as_buf_append_char(buf, '"');
    return !is_escaped;
}

/* Writes the comma first if needed. Returns whether nothing was escaped. */
static bool write_quoted(struct as_json_writer *json, const char *text, size_t size, bool has_comma)
{
    struct as_buf *buf = json->buf;
    char *out = as_buf_reserve(buf, size + 3);

    if (!out)
        return true;
    *out = ',';
    out += has_comma;
    buf->size += has_comma;
    if ((json->flags & AS_JSON_HTML) || !copy_plain(out + 1, text, size))
        return write_runs(json, text, size);
    out[0] = '"';
    out[size + 1] = '"';
    out[size + 2] = '\0';
    buf->size += size + 2;
    return true;
}

/* Compares with the last key, whose bytes are still in the buffer, if neither key has an escape. */
static void check_order(struct as_json_writer *json, size_t key, size_t size)
{
    struct as_json_level *level = &json->levels[json->depth - 1];
    const size_t last = level->key, last_size = level->key_size;
    const char *data = json->buf->data;
    size_t common = last_size < size ? last_size : size;

    if (last && (json->flags & AS_JSON_ANY_ORDER) == 0) {
        int order = memcmp(data + last, data + key, common);
        assert(order < 0 || (order == 0 && last_size < size));
        (void)order; /* without asserts */
    }
    level->key = key;
    level->key_size = size;
}

void as_json_write_key(struct as_json_writer *json, const char *key)
{
    struct as_json_level *level = &json->levels[json->depth - 1];
    const size_t size = strlen(key), at = json->buf->size + level->has_items + 1;

    assert(json->depth > 0 && level->is_object && !json->after_key);
    json->after_key = true;
    if (!write_quoted(json, key, size, level->has_items))
        level->key = 0;
    else if (!json->buf->failed)
        check_order(json, at, size);
    level->has_items = true;
    as_buf_append_char(json->buf, ':');
}

void as_json_write_string(struct as_json_writer *json, const char *text)
{
    as_json_write_string_size(json, text, strlen(text));
}

void as_json_write_string_size(struct as_json_writer *json, const char *text, size_t size)
{
    (void)write_quoted(json, text, size, needs_comma(json));
}

void as_json_write_hex(struct as_json_writer *json, uint64_t number)
{
    unsigned char bytes[8];
    char text[16];
    for (unsigned i = 0; i < sizeof(bytes); i++)
        bytes[i] = (unsigned char)(number >> (56 - 8 * i));
    as_encode_hex_digits(text, bytes, sizeof(bytes));
    as_json_write_string_size(json, text, sizeof(text));
}

void as_json_write_i64(struct as_json_writer *json, int64_t number)
{
    writer_begin_value(json);
    as_buf_append_i64(json->buf, number);
}

void as_json_write_double(struct as_json_writer *json, double number)
{
    char text[AS_NUMBER_SIZE] = "null";

    writer_begin_value(json);
    if (isfinite(number))
        as_number_print_double(number, text);
    as_buf_append_str(json->buf, text);
}

void as_json_write_bool(struct as_json_writer *json, bool value)
{
    writer_begin_value(json);
    as_buf_append_str(json->buf, value ? "true" : "false");
}

void as_json_write_null(struct as_json_writer *json)
{
    writer_begin_value(json);
    as_buf_append(json->buf, "null", 4);
}

void as_json_write_raw(struct as_json_writer *json, const char *text, size_t size)
{
    writer_begin_value(json);
    as_buf_append(json->buf, text, size);
}

void as_json_write_member(struct as_json_writer *json, const char *key, const char *text)
{
    as_json_write_key(json, key);
    as_json_write_string(json, text);
}

void as_json_write_member_i64(struct as_json_writer *json, const char *key, int64_t number)
{
    as_json_write_key(json, key);
    as_json_write_i64(json, number);
}

void as_json_write_member_bool(struct as_json_writer *json, const char *key, bool value)
{
    as_json_write_key(json, key);
    as_json_write_bool(json, value);
}

static int writer_append(const char *bytes, size_t size, void *out)
{
    as_buf_append(out, bytes, size);
    return 0;
}

void as_json_dump(const json_t *json, struct as_buf *out)
{
    /* fails only without memory, or for NULL after such a failure */
    if (json_dump_callback(json, writer_append, out, JSON_COMPACT) != 0)
        out->failed = true;
}
