/*
 * A streaming JSON writer over as_buf: compact, no spaces. The canonical form (flags 0) asserts
 * that the keys of an object ascend by their bytes, so that equal content gives equal bytes. If the
 * buffer may reach its maximum, check once at the end with as_buf_check.
 *
 *   struct as_json_writer json;
 *   as_json_init(&json, &buf, 0);
 *   as_json_begin_object(&json);
 *   as_json_write_member_i64(&json, "from", 4);
 *   as_json_write_key(&json, "rules");
 *   as_json_begin_array(&json);
 *   as_json_write_string(&json, "slow");
 *   as_json_end_array(&json);
 *   as_json_end_object(&json);              {"from":4,"rules":["slow"]}
 *
 * Strings: only ", \ and control characters are escaped (\b \f \n \r \t, else \u00XX). Valid UTF-8
 * is copied; each byte that is not part of valid UTF-8 becomes U+FFFD.
 */
#ifndef ALERTSCALER_DOC_JSON_WRITER_H
#define ALERTSCALER_DOC_JSON_WRITER_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/buf.h>

enum as_json_flags {
    AS_JSON_ANY_ORDER = 1, /* the order of keys is not checked */
    AS_JSON_HTML = 2       /* <, >, &, U+2028 and U+2029 as \uXXXX too, as Go's encoder does */
};

#define AS_JSON_DEPTH_MAX 40 /* nested objects and arrays; more is a bug, asserted */

struct as_json_level {
    bool is_object;
    bool has_items;
    size_t key, key_size; /* where the last key is in the buffer; 0: not comparable */
};

struct as_json_writer {
    struct as_buf *buf;
    unsigned flags;
    unsigned depth;
    bool after_key;
    struct as_json_level levels[AS_JSON_DEPTH_MAX];
};

/* Borrows the buffer, which must outlive the writer; appends to its content. */
void as_json_init(struct as_json_writer *json, struct as_buf *buf, unsigned flags);

void as_json_begin_object(struct as_json_writer *json);
void as_json_end_object(struct as_json_writer *json);
void as_json_begin_array(struct as_json_writer *json);
void as_json_end_array(struct as_json_writer *json);
void as_json_write_key(struct as_json_writer *json, const char *key);

void as_json_write_string(struct as_json_writer *json, const char *text);
void as_json_write_string_size(struct as_json_writer *json, const char *text, size_t size);
void as_json_write_hex(struct as_json_writer *json, uint64_t number); /* a string of 16 digits */
void as_json_write_i64(struct as_json_writer *json, int64_t number);
void as_json_write_double(struct as_json_writer *json, double number); /* null if not finite */
void as_json_write_bool(struct as_json_writer *json, bool value);
void as_json_write_null(struct as_json_writer *json);
/* In an object: the place of the opening quote of the next key in the buffer. */
static inline size_t as_json_get_next_key(const struct as_json_writer *json)
{
    return json->buf->size + json->levels[json->depth - 1].has_items;
}
/* One value that is already JSON, unchanged. */
void as_json_write_raw(struct as_json_writer *json, const char *text, size_t size);

/* A key and its value. */
void as_json_write_member(struct as_json_writer *json, const char *key, const char *text);
void as_json_write_member_i64(struct as_json_writer *json, const char *key, int64_t number);
void as_json_write_member_bool(struct as_json_writer *json, const char *key, bool value);

/*
 * Writing documents that are made with jansson.
 */

static inline void as_json_free_p(json_t **json)
{
    json_decref(*json);
}

/* Appends the compact text of `json`. */
void as_json_dump(const json_t *json, struct as_buf *out);

#endif
