/*
 * Reading single members of a JSON object that came from outside, each with an error that names the
 * member: "spec.replicas: expected an integer from 0 to 2147483647".
 */
#ifndef ALERTSCALER_SRC_WIRE_FIELD_H
#define ALERTSCALER_SRC_WIRE_FIELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/error.h>

static inline void as_json_free_p(json_t **json)
{
    json_decref(*json);
}

/* A JSON object with nothing behind it: 0 or -EBADMSG. The caller owns *object_out. */
int as_field_load_object(const char *json, size_t size, json_t **object_out,
                         struct as_error *error) AS_MUST_USE;

/* `name` (for errors: `path`) as a string of less than `size` bytes; "" where absent or null. */
int as_field_copy_string(const json_t *object, const char *name, const char *path, char *text_out,
                         size_t size, struct as_error *error) AS_MUST_USE;

/* A size, 0 to 2^31-1; `absent` where absent or null. */
int as_field_get_size(const json_t *object, const char *name, const char *path, int32_t absent,
                      int32_t *size_out, struct as_error *error) AS_MUST_USE;

/* An object; NULL (which has no members) where absent or null. */
int as_field_get_object(const json_t *object, const char *name, const char *path,
                        json_t **member_out, struct as_error *error) AS_MUST_USE;

int as_field_get_bool(const json_t *object, const char *name, const char *path, bool *value_out,
                      struct as_error *error) AS_MUST_USE; /* false where absent or null */

/* The text of a string member, NULL where there is none or it is no string; borrowed. */
const char *as_field_find_string(const json_t *object, const char *name);

/* Appends the compact text of `json`. */
void as_field_dump(const json_t *json, struct as_buf *out);

#endif
