/*
 * Objects: see the header.
 */
#include "kube_object.h"

#include <errno.h>
#include <string.h>

#include <alertscaler/base/str.h>

int kube_object_load(const char *json, size_t size, const char *kind, json_t **object_out,
                     struct as_error *error)
{
    const int status = as_json_load_object(json, size, object_out, error);
    if (status)
        return status;
    if (as_str_equal(as_json_find_text(*object_out, "kind"), kind))
        return 0;
    as_error_set(error, "kind: expected %s", kind);
    return -EBADMSG;
}

void kube_object_read_version(struct as_reader *metadata, char *version_out, size_t size)
{
    *version_out = '\0';
    as_read_copy(metadata, "resourceVersion", version_out, size);
    if (!*version_out)
        as_read_fail(metadata, "resourceVersion", "missing");
}

const char *kube_object_read_name(struct as_reader *metadata, const char *key, size_t max,
                                  const char *what)
{
    const json_t *value = as_read_any(metadata, key);
    const char *name = json_string_value(value);
    const size_t size = json_string_length(value);
    if (!as_str_is_empty(name) && size <= max && strlen(name) == size && *name != '.')
        return name;
    as_read_fail(metadata, key, "expected a %s of 1 to %zu bytes", what, max);
    return "";
}
