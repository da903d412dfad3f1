/*
 * Protocol Buffers on the wire:
 * https://protobuf.dev/programming-guides/encoding/
 * Messages are written by appending fields, and read field by field. For a nested message the
 * caller starts a reader on the field's content, so nothing here recurses. Malformed input ends the
 * reading: a truncated field, a varint of more than 64 bits, a tag of more than 32 bits, field
 * number 0, groups (which proto3 does not have).
 */
#ifndef ALERTSCALER_BASE_PROTOBUF_H
#define ALERTSCALER_BASE_PROTOBUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/arena.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/base/buf.h>

enum as_protobuf_type { /* of the wire */
                        AS_PROTOBUF_VARINT = 0,
                        AS_PROTOBUF_FIXED64 = 1,
                        AS_PROTOBUF_BYTES = 2, /* texts, bytes, messages */
                        AS_PROTOBUF_FIXED32 = 5
};

/* ---- writing: defaults (0, "") are left out, as proto3 does ---- */

void as_protobuf_write_int32(struct as_buf *buf, unsigned number, int32_t value);
void as_protobuf_write_text(struct as_buf *buf, unsigned number, const char *text);
/* Appends a message that was written separately; an empty message is written too. */
void as_protobuf_write_message(struct as_buf *buf, unsigned number, const struct as_buf *message);

/* ---- reading ---- */

struct as_protobuf_reader {
    const unsigned char *at, *end; /* borrowed */
    bool is_malformed;
};

struct as_protobuf_field {
    unsigned number;
    enum as_protobuf_type type;
    uint64_t value;            /* of a varint */
    const unsigned char *data; /* of bytes; borrowed */
    size_t size;
};

void as_protobuf_reader_init(struct as_protobuf_reader *reader, const void *data, size_t size);

/* The next field. False at the end, and if the input is malformed. */
bool as_protobuf_next(struct as_protobuf_reader *reader,
                      struct as_protobuf_field *field_out) AS_MUST_USE;

/* The field as its declared type. False if it does not fit: another type on the wire, a number
 * beyond 32 bits, a text that is not UTF-8 or contains a NUL. Texts are memory of the arena. */
bool as_protobuf_get_int32(const struct as_protobuf_field *field, int32_t *value_out) AS_MUST_USE;
bool as_protobuf_get_text(const struct as_protobuf_field *field, struct as_arena *arena,
                          const char **text_out) AS_MUST_USE;
bool as_protobuf_get_message(const struct as_protobuf_field *field,
                             struct as_protobuf_reader *reader_out) AS_MUST_USE;

#endif
