/*
 * Objects and lists: see the header.
 */
#include "kube_object.h"

#include <errno.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>

#include "field.h"

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

static int take_items(const json_t *list, kube_item_fn *take, void *context, struct as_error *error)
{
    const json_t *item;
    size_t i;
    if (list && !json_is_null(list) && !json_is_array(list)) {
        as_error_set(error, "items: expected a list");
        return -EBADMSG;
    }
    json_array_foreach((json_t *)list, i, item)
    {
        if (!json_is_object(item)) {
            as_error_set(error, "items[%zu]: expected an object", i);
            return -EBADMSG;
        }
        const int code = take(context, item, error);
        if (code)
            return code;
    }
    return 0;
}

int kube_object_read_list(const char *json, size_t size, const char *kind, kube_item_fn *take,
                          void *context, char **next_out, struct as_error *error)
{
    AS_CLEANUP(as_json_free_p) json_t *object = NULL;
    json_t *metadata;
    int code = kube_object_load(json, size, kind, &object, error);
    if (!code)
        code = as_field_get_object(object, "metadata", "metadata", &metadata, error);
    if (!code)
        code = take_items(json_object_get(object, "items"), take, context, error);
    if (code)
        return code;
    const char *next = as_field_find_string(metadata, "continue");
    *next_out = as_str_is_empty(next) ? NULL : as_xstrdup(next);
    return 0;
}
