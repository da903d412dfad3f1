/*
 * The JSON writer. Strings are copied in runs: eight bytes at a time are asked whether one of them
 * is special, and only at such a byte the writer looks closer.
 */
#include <alertscaler/wire/json_writer.h>

#include <assert.h>
#include <math.h>
#include <string.h>

#include <alertscaler/base/number.h>
#include <alertscaler/base/str.h>

#include "json_plain.h"

void as_json_init(struct as_json_writer *json, struct as_buf *buf, unsigned flags)
{
    *json = (struct as_json_writer){.buf = buf, .flags = flags};
}

/* Before every value: the comma, and the rule that in an object a key comes first. */
static void begin_value(struct as_json_writer *json)
{
    if (json->depth == 0)
        return;
    assert(json->after_key == json->levels[json->depth - 1].is_object);
    if (!json->after_key) {
        if (json->levels[json->depth - 1].has_items)
            as_buf_append_char(json->buf, ',');
        json->levels[json->depth - 1].has_items = true;
    }
    json->after_key = false;
}

static void begin(struct as_json_writer *json, bool is_object)
{
    begin_value(json);
    assert(json->depth < AS_JSON_DEPTH_MAX);
    as_buf_append_char(json->buf, is_object ? '{' : '[');
    json->levels[json->depth].is_object = is_object;
    json->levels[json->depth].has_items = false;
    json->levels[json->depth].key = 0;
    json->depth++;
}

static void end(struct as_json_writer *json, bool is_object)
{
    assert(json->depth > 0 && !json->after_key);
    assert(json->levels[json->depth - 1].is_object == is_object);
    json->depth--;
    as_buf_append_char(json->buf, is_object ? '}' : ']');
}

void as_json_begin_object(struct as_json_writer *json)
{
    begin(json, true);
}

void as_json_end_object(struct as_json_writer *json)
{
    end(json, true);
}

void as_json_begin_array(struct as_json_writer *json)
{
    begin(json, false);
}

void as_json_end_array(struct as_json_writer *json)
{
    end(json, false);
}

static bool is_special(unsigned char c, bool html)
{
    return c < 0x20 || c >= 0x80 || c == '"' || c == '\\' ||
           (html && (c == '<' || c == '>' || c == '&'));
}

/* U+2028 and U+2029, which end a line in JavaScript. */
static bool is_line_end(const char *text, size_t size)
{
    return size >= 3 && memcmp(text, "\xE2\x80", 2) == 0 && ((unsigned char)text[2] & 0xFE) == 0xA8;
}

/* How many bytes from `text` on are plain; for HTML they are looked at one by one. */
static size_t count_plain(const char *text, size_t size, bool html)
{
    char rest[8] = {'"', '"', '"', '"', '"', '"', '"', '"'};
    size_t at = 0, count = 8;

    for (; !html && count == 8 && size - at >= 8; at += count)
        count = json_count_plain(text + at);
    if (html || count < 8 || at == size)
        return at;
    memcpy(rest, text + at, size - at);
    return at + json_count_plain(rest);
}

/* How many bytes from `text` on stand for themselves. */
static size_t get_run(const char *text, size_t size, bool html)
{
    size_t at = count_plain(text, size, html);

    while (at < size) {
        const unsigned char byte = (unsigned char)text[at];
        size_t width = !is_special(byte, html);
        if (byte >= 0x80 && !(html && is_line_end(text + at, size - at)))
            width = as_str_measure_utf8(text + at, size - at);
        if (width == 0)
            break;
        at += width;
        at += count_plain(text + at, size - at, html);
    }
    return at;
}

/* Writes what stands for the special character at `text`; how many bytes of the text that was. */
static size_t escape(struct as_buf *buf, const char *text, size_t size)
{
    static const char letters[] = "\"\\\b\f\n\r\t", names[] = "\"\\bfnrt",
                      hex[] = "0123456789abcdef";
    unsigned char c = (unsigned char)*text;
    const char *letter = c ? strchr(letters, *text) : NULL;

    if (letter) {
        as_buf_append(buf, (const char[]){'\\', names[letter - letters]}, 2);
        return 1;
    }
    if (c < 0x80) {
        as_buf_append(buf, (const char[]){'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]}, 6);
        return 1;
    }
    if (is_line_end(text, size)) {
        as_buf_append_str(buf, text[2] == '\xA8' ? "\\u2028" : "\\u2029");
        return 3;
    }
    as_buf_append_str(buf, "\xEF\xBF\xBD");
    return 1;
}

/* True where nothing was escaped. */
static bool write_quoted(struct as_json_writer *json, const char *text, size_t size)
{
    struct as_buf *buf = json->buf;
    bool html = json->flags & AS_JSON_HTML;
    size_t run = get_run(text, size, html);

    if (run == size) {
        char *out = as_buf_reserve(buf, size + 2);
        if (!out)
            return true;
        out[0] = '"';
        if (size)
            memcpy(out + 1, text, size);
        out[size + 1] = '"';
        out[size + 2] = '\0';
        buf->size += size + 2;
        return true;
    }
    as_buf_append_char(buf, '"');
    for (size_t at = 0; at < size;) {
        run = get_run(text + at, size - at, html);
        as_buf_append(buf, text + at, run);
        at += run;
        if (at < size)
            at += escape(buf, text + at, size - at);
    }
    as_buf_append_char(buf, '"');
    return false;
}

/* The bytes of the last key still stand in the buffer: compare with them where neither key holds an
 * escape. */
static void check_order(struct as_json_writer *json, size_t key, size_t size)
{
    size_t last = json->levels[json->depth - 1].key;
    size_t last_size = json->levels[json->depth - 1].key_size;
    const char *data = json->buf->data;
    size_t common = last_size < size ? last_size : size;

    if (last && (json->flags & AS_JSON_ANY_ORDER) == 0) {
        int order = memcmp(data + last, data + key, common);
        assert(order < 0 || (order == 0 && last_size < size));
        (void)order; /* without asserts */
    }
    json->levels[json->depth - 1].key = key;
    json->levels[json->depth - 1].key_size = size;
}

void as_json_write_key(struct as_json_writer *json, const char *key)
{
    size_t size = strlen(key);

    assert(json->depth > 0 && json->levels[json->depth - 1].is_object && !json->after_key);
    if (json->levels[json->depth - 1].has_items)
        as_buf_append_char(json->buf, ',');
    json->levels[json->depth - 1].has_items = true;
    json->after_key = true;
    size_t at = json->buf->size + 1;
    if (!write_quoted(json, key, size))
        json->levels[json->depth - 1].key = 0;
    else if (!json->buf->failed)
        check_order(json, at, size);
    as_buf_append_char(json->buf, ':');
}

void as_json_write_string(struct as_json_writer *json, const char *text)
{
    as_json_write_string_size(json, text, strlen(text));
}

void as_json_write_string_size(struct as_json_writer *json, const char *text, size_t size)
{
    begin_value(json);
    (void)write_quoted(json, text, size);
}

void as_json_write_i64(struct as_json_writer *json, int64_t number)
{
    begin_value(json);
    as_buf_append_i64(json->buf, number);
}

void as_json_write_double(struct as_json_writer *json, double number)
{
    char text[AS_NUMBER_SIZE] = "null";

    begin_value(json);
    if (isfinite(number))
        as_number_print_double(number, text);
    as_buf_append_str(json->buf, text);
}

void as_json_write_bool(struct as_json_writer *json, bool value)
{
    begin_value(json);
    as_buf_append_str(json->buf, value ? "true" : "false");
}

void as_json_write_null(struct as_json_writer *json)
{
    begin_value(json);
    as_buf_append(json->buf, "null", 4);
}

void as_json_write_raw(struct as_json_writer *json, const char *text, size_t size)
{
    begin_value(json);
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
