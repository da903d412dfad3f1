/*
 * The generic HTTP node group's documents: see the header. Strict about what is there, forgiving
 * about what else is there: the other side is ten lines of somebody's script.
 */
#include <alertscaler/wire/http_group.h>

#include <errno.h>
#include <string.h>

#include <alertscaler/base/str.h>

#include "json/field.h"

int as_http_group_decode(const char *json, size_t size, struct as_http_group *group_out,
                         struct as_error *error)
{
    AS_CLEANUP(as_json_free_p) json_t *object = NULL;
    struct as_http_group group;
    int code = as_field_load_object(json, size, &object, error);
    if (code)
        return code;
    if ((code = as_field_get_size(object, "size", "size", -1, &group.size, error)) ||
        (code = as_field_get_size(object, "min", "min", -1, &group.min, error)) ||
        (code = as_field_get_size(object, "max", "max", -1, &group.max, error)) ||
        (code =
             as_field_get_bool(object, "in_progress", "in_progress", &group.in_progress, error)) ||
        (code =
             as_field_copy_string(object, "etag", "etag", group.etag, sizeof(group.etag), error)))
        return code;
    if (group.size < 0) {
        as_error_set(error, "size: missing");
        return -EBADMSG;
    }
    if (!as_http_group_etag_is_valid(group.etag)) {
        as_error_set(error, "etag: expected printable ASCII");
        return -EBADMSG;
    }
    *group_out = group;
    return 0;
}

void as_http_group_encode_change(int32_t size, int32_t observed, struct as_buf *out)
{
    as_buf_append_str(out, "{\"size\":");
    as_buf_append_i64(out, size);
    as_buf_append_str(out, ",\"observed\":");
    as_buf_append_i64(out, observed);
    as_buf_append_char(out, '}');
}

void as_http_group_decode_message(const char *json, size_t size, char message_out[AS_MESSAGE_SIZE])
{
    AS_CLEANUP(as_json_free_p) json_t *object = NULL;
    const char *text = NULL;
    if (as_field_load_object(json, size, &object, NULL) == 0) {
        text = as_field_find_string(object, "message");
        if (!text)
            text = as_field_find_string(object, "error");
    }
    as_str_copy_line(text ? text : "", message_out, AS_MESSAGE_SIZE);
}

bool as_http_group_etag_is_valid(const char *etag)
{
    size_t size = strlen(etag);
    for (size_t i = 0; i < size; i++)
        if (etag[i] <= ' ' || etag[i] > '~')
            return false;
    return size < AS_VERSION_SIZE;
}
