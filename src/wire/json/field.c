/*
 * Reading single members of a JSON object: see the header.
 */
#include "field.h"

#include <errno.h>
#include <string.h>

#include <alertscaler/base/str.h>

int as_field_load_object(const char *json, size_t size, json_t **object_out, struct as_error *error)
{
    json_error_t problem;
    json_t *value = json_loadb(json, size, 0, &problem);
    if (!value) {
        as_error_set(error, "not JSON: line %d: %s", problem.line, problem.text);
        return -EBADMSG;
    }
    if (!json_is_object(value)) {
        json_decref(value);
        as_error_set(error, "expected a JSON object");
        return -EBADMSG;
    }
    *object_out = value;
    return 0;
}

static bool is_absent(const json_t *value)
{
    return !value || json_is_null(value);
}

int as_field_copy_string(const json_t *object, const char *name, const char *path, char *text_out,
                         size_t size, struct as_error *error)
{
    const json_t *value = json_object_get(object, name);
    if (is_absent(value)) {
        text_out[0] = '\0';
        return 0;
    }
    if (!json_is_string(value)) {
        as_error_set(error, "%s: expected a string", path);
        return -EBADMSG;
    }
    if (json_string_length(value) >= size) {
        as_error_set(error, "%s: longer than %zu bytes", path, size - 1);
        return -EBADMSG;
    }
    memcpy(text_out, json_string_value(value), json_string_length(value) + 1);
    return 0;
}

int as_field_get_size(const json_t *object, const char *name, const char *path, int32_t absent,
                      int32_t *size_out, struct as_error *error)
{
    const json_t *value = json_object_get(object, name);
    if (is_absent(value)) {
        *size_out = absent;
        return 0;
    }
    json_int_t number = json_integer_value(value);
    if (!json_is_integer(value) || number < 0 || number > INT32_MAX) {
        as_error_set(error, "%s: expected an integer from 0 to %d", path, INT32_MAX);
        return -EBADMSG;
    }
    *size_out = (int32_t)number;
    return 0;
}

int as_field_get_object(const json_t *object, const char *name, const char *path,
                        json_t **member_out, struct as_error *error)
{
    json_t *member = json_object_get(object, name);
    if (is_absent(member))
        member = NULL;
    if (member && !json_is_object(member)) {
        as_error_set(error, "%s: expected an object", path);
        return -EBADMSG;
    }
    *member_out = member;
    return 0;
}

int as_field_get_bool(const json_t *object, const char *name, const char *path, bool *value_out,
                      struct as_error *error)
{
    const json_t *value = json_object_get(object, name);
    if (!is_absent(value) && !json_is_boolean(value)) {
        as_error_set(error, "%s: expected true or false", path);
        return -EBADMSG;
    }
    *value_out = json_is_true(value);
    return 0;
}

const char *as_field_find_string(const json_t *object, const char *name)
{
    return json_string_value(json_object_get(object, name));
}

static int append(const char *bytes, size_t size, void *out)
{
    as_buf_append(out, bytes, size);
    return 0;
}

void as_field_dump(const json_t *json, struct as_buf *out)
{
    /* Fails only out of memory, or for a NULL that was made so. */
    if (json_dump_callback(json, append, out, JSON_COMPACT) != 0)
        out->failed = true;
}
