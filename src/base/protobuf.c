/*
 * Protocol Buffers: see the header.
 */
#include <alertscaler/base/protobuf.h>

#include <string.h>

#include <alertscaler/base/str.h>

#define VARINT_BYTES_MAX 10 /* 7 bits each; the last byte has one */

/* ---- writing ---- */

static void write_varint(struct as_buf *buf, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        as_buf_append_char(buf, (char)(value | 0x80));
    as_buf_append_char(buf, (char)value);
}

static void write_tag(struct as_buf *buf, unsigned number, enum as_protobuf_type type)
{
    write_varint(buf, (uint64_t)number << 3 | (uint64_t)type);
}

static void write_bytes(struct as_buf *buf, unsigned number, const void *data, size_t size)
{
    write_tag(buf, number, AS_PROTOBUF_BYTES);
    write_varint(buf, size);
    as_buf_append(buf, data, size);
}

void as_protobuf_write_int32(struct as_buf *buf, unsigned number, int32_t value)
{
    if (value == 0)
        return;
    write_tag(buf, number, AS_PROTOBUF_VARINT);
    write_varint(buf, (uint64_t)(int64_t)value);
}

void as_protobuf_write_text(struct as_buf *buf, unsigned number, const char *text)
{
    if (*text)
        write_bytes(buf, number, text, strlen(text));
}

void as_protobuf_write_message(struct as_buf *buf, unsigned number, const struct as_buf *message)
{
    write_bytes(buf, number, message->data ? message->data : "", message->size);
}

/* ---- reading ---- */

void as_protobuf_reader_init(struct as_protobuf_reader *reader, const void *data, size_t size)
{
    const unsigned char *at = size > 0 ? data : (const void *)"";
    *reader = (struct as_protobuf_reader){.at = at, .end = at + size};
}

static size_t measure_rest(const struct as_protobuf_reader *reader)
{
    return (size_t)(reader->end - reader->at);
}

static bool read_varint(struct as_protobuf_reader *reader, uint64_t *value_out)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < VARINT_BYTES_MAX && reader->at < reader->end; i++) {
        const uint64_t byte = *reader->at++;
        if (i == VARINT_BYTES_MAX - 1 && byte > 1)
            return false;
        value |= (byte & 0x7f) << (7 * i);
        if (byte < 0x80) {
            *value_out = value;
            return true;
        }
    }
    return false;
}

/* Takes `size` bytes as the field's content. */
static bool take(struct as_protobuf_reader *reader, struct as_protobuf_field *field, uint64_t size)
{
    if (size > measure_rest(reader))
        return false;
    field->data = reader->at;
    field->size = (size_t)size;
    reader->at += size;
    return true;
}

static bool read_content(struct as_protobuf_reader *reader, struct as_protobuf_field *field)
{
    uint64_t size;
    switch (field->type) {
    case AS_PROTOBUF_VARINT: return read_varint(reader, &field->value);
    case AS_PROTOBUF_FIXED64: return take(reader, field, 8);
    case AS_PROTOBUF_FIXED32: return take(reader, field, 4);
    case AS_PROTOBUF_BYTES: return read_varint(reader, &size) && take(reader, field, size);
    }
    return false; /* a group, or an unknown type */
}

bool as_protobuf_next(struct as_protobuf_reader *reader, struct as_protobuf_field *field_out)
{
    uint64_t tag;
    struct as_protobuf_field field = {.number = 0};
    if (reader->is_malformed || reader->at == reader->end)
        return false;
    bool is_good = read_varint(reader, &tag) && tag <= UINT32_MAX && tag >> 3 != 0;
    if (is_good) {
        field.number = (unsigned)(tag >> 3);
        field.type = (enum as_protobuf_type)(tag & 7);
        is_good = read_content(reader, &field);
    }
    reader->is_malformed = !is_good;
    if (is_good)
        *field_out = field;
    return is_good;
}

bool as_protobuf_get_int32(const struct as_protobuf_field *field, int32_t *value_out)
{
    const int64_t value = (int64_t)field->value;
    if (field->type != AS_PROTOBUF_VARINT || value < INT32_MIN || value > INT32_MAX)
        return false;
    *value_out = (int32_t)value;
    return true;
}

bool as_protobuf_get_text(const struct as_protobuf_field *field, struct as_arena *arena,
                          const char **text_out)
{
    if (field->type != AS_PROTOBUF_BYTES ||
        (field->size > 0 && memchr(field->data, '\0', field->size)) ||
        !as_str_is_utf8((const char *)field->data, field->size))
        return false;
    char *text = as_arena_alloc(arena, field->size + 1, 1);
    memcpy(text, field->data, field->size);
    *text_out = text;
    return true;
}

bool as_protobuf_get_message(const struct as_protobuf_field *field,
                             struct as_protobuf_reader *reader_out)
{
    if (field->type != AS_PROTOBUF_BYTES)
        return false;
    as_protobuf_reader_init(reader_out, field->data, field->size);
    return true;
}
