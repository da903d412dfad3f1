/*
 * Reading and setting what is sized: see the header.
 */
#include "kube_sizing.h"

#include <alertscaler/kube/kube_field.h>
#include <alertscaler/kube/target_outcome.h>

static int read_scale(const struct as_target_ref *ref, const char *json, size_t size,
                      struct as_kube_scale *scale_out, struct as_error *error)
{
    (void)ref;
    return as_kube_scale_decode(json, size, scale_out, error);
}

static int write_scale(const struct as_kube_change *change, struct as_buf *body,
                       struct as_error *error)
{
    const struct as_kube_scale_update update = {
        .api_version = change->scale_version,
        .namespace_ = change->namespace_,
        .name = as_target_ref_get(change->ref, "name"),
        .resource_version = change->wanted->version,
        .replicas = change->wanted->to,
    };
    (void)error;
    as_kube_scale_encode(&update, body);
    return 0;
}

static int sizing_read_field(const struct as_target_ref *ref, const char *json, size_t size,
                             struct as_kube_scale *scale_out, struct as_error *error)
{
    struct as_sized sized;
    as_sized_read(ref, &sized);
    return as_kube_field_decode(json, size, as_target_ref_get(ref, "kind"), &sized, scale_out,
                                error);
}

static int sizing_write_field(const struct as_kube_change *change, struct as_buf *body,
                              struct as_error *error)
{
    struct as_sized sized;
    as_sized_read(change->ref, &sized);
    return as_kube_field_encode_patch(change->object, change->object_size,
                                      as_target_ref_get(change->ref, "kind"), &sized,
                                      change->wanted->to, body, error);
}

static const struct as_kube_sizing rows[] = {
    {
        .what = AS_SIZED_SCALE,
        .title = "a Scale object",
        .subresource = "/scale",
        .query = "",
        .get_operation = "get_scale",
        .set_operation = "update_scale",
        .set_method = "PUT",
        .max_response = AS_TARGET_RESPONSE_MAX,
        .read = read_scale,
        .write = write_scale,
    },
    {
        .what = AS_SIZED_FIELD,
        .title = "an object with this field",
        .subresource = "",
        .query = "?fieldManager=alertscaler",
        .get_operation = "get_object",
        .set_operation = "patch_object",
        .set_method = "PATCH",
        .set_type = "application/json-patch+json",
        .max_response = AS_KUBE_SIZED_OBJECT_MAX,
        .reads_first = true,
        .checks_test = true,
        .read = sizing_read_field,
        .write = sizing_write_field,
    },
};

const struct as_kube_sizing *as_kube_sizing_find(enum as_sized_what what)
{
    size_t i = 0;
    while (rows[i].what != what)
        i++;
    return &rows[i];
}
