/*
 * Objects: see the header.
 */
#include "kube_object.h"

#include <errno.h>

#include <alertscaler/base/str.h>

#include "json/field.h"

int kube_object_load(const char *json, size_t size, const char *kind, json_t **object_out,
                     struct as_error *error)
{
    const int code = as_field_load_object(json, size, object_out, error);
    if (code)
        return code;
    if (as_str_equal(as_field_find_string(*object_out, "kind"), kind))
        return 0;
    as_error_set(error, "kind: expected %s", kind);
    return -EBADMSG;
}
