/*
 * A Lease: see the header. As in client-go, absent and null members are zero.
 */
#include "lease.h"

#include <string.h>

#include <alertscaler/base/str.h>
#include <alertscaler/doc/json_writer.h>

#include "kube_object.h"

static void read_time(struct as_reader *spec, const char *name, as_maybe_time *time_out)
{
    char text[64] = ""; /* nine digits and an offset fit */
    as_read_copy(spec, name, text, sizeof(text));
    time_out->set = *text && as_wall_time_parse(text, strlen(text), &time_out->at) == 0;
    if (*text && !time_out->set)
        as_read_fail(spec, name, "expected a time");
}

static void read_spec(struct as_reader *spec, struct as_lease *lease)
{
    as_read_copy(spec, "holderIdentity", lease->holder, sizeof(lease->holder));
    as_read_i32(spec, "leaseDurationSeconds", 0, &lease->duration_s);
    as_read_i32(spec, "leaseTransitions", 0, &lease->transitions);
    read_time(spec, "acquireTime", &lease->acquired);
    read_time(spec, "renewTime", &lease->renewed);
}

int as_lease_decode(const char *json, size_t size, struct as_lease_object *object_out,
                    struct as_error *error)
{
    AS_CLEANUP(tree_deinit) struct tree tree = TREE_INIT(TREE_NO_LIMIT);
    struct as_reader root, metadata, spec, annotations;
    struct as_lease_object object = {.is_paused = false};
    int status = kube_object_load(&tree, json, size, "Lease", error);
    if (status)
        return status;
    as_read_lenient(&root, tree.root, error);
    as_read_object(&metadata, &root, "metadata");
    as_read_object(&spec, &root, "spec");
    as_read_object(&annotations, &metadata, "annotations");
    kube_object_read_version(&metadata, object.resource_version, sizeof(object.resource_version));
    read_spec(&spec, &object.lease);
    if ((status = as_read_result(&root)))
        return status;
    const struct tree_value *paused = tree_find(annotations.object, AS_LEASE_PAUSED_ANNOTATION);
    if (paused) {
        const char *reason = tree_get_text(paused);
        object.is_paused = true;
        as_str_copy_line(reason ? reason : "", object.paused, sizeof(object.paused));
    }
    *object_out = object;
    return 0;
}

static bool is_same_time(const as_maybe_time *a, const as_maybe_time *b)
{
    return a->set == b->set && (!a->set || a->at.us == b->at.us);
}

bool as_lease_is_same(const struct as_lease *a, const struct as_lease *b)
{
    return strcmp(a->holder, b->holder) == 0 && a->duration_s == b->duration_s &&
           a->transitions == b->transitions && is_same_time(&a->acquired, &b->acquired) &&
           is_same_time(&a->renewed, &b->renewed);
}

static void set_time(json_t *spec, const char *name, const as_maybe_time *time)
{
    char text[AS_RFC3339_SIZE]; /* six digits: a MicroTime */
    if (!time->set) {
        json_object_del(spec, name);
        return;
    }
    as_wall_time_print(time->at, text);
    json_object_set_new(spec, name, json_string(text));
}

static void set_spec(json_t *spec, const struct as_lease *lease)
{
    json_object_set_new(spec, "holderIdentity", json_string(lease->holder));
    json_object_set_new(spec, "leaseDurationSeconds", json_integer(lease->duration_s));
    json_object_set_new(spec, "leaseTransitions", json_integer(lease->transitions));
    set_time(spec, "acquireTime", &lease->acquired);
    set_time(spec, "renewTime", &lease->renewed);
}

void as_lease_encode_new(const char *namespace_, const char *name, const struct as_lease *lease,
                         struct as_buf *out)
{
    json_t *spec = json_object();
    set_spec(spec, lease);
    AS_CLEANUP(as_json_free_p)
    json_t *document =
        json_pack("{s:s, s:s, s:{s:s, s:s, s:{s:s}}, s:o}", "apiVersion", "coordination.k8s.io/v1",
                  "kind", "Lease", "metadata", "namespace", namespace_, "name", name, "labels",
                  "app.kubernetes.io/managed-by", "alertscaler", "spec", spec);
    as_json_dump(document, out);
}

int as_lease_encode_update(const char *json, size_t size, const struct as_lease *lease,
                           struct as_buf *out, struct as_error *error)
{
    AS_CLEANUP(tree_deinit) struct tree tree = TREE_INIT(TREE_NO_LIMIT);
    struct as_reader root, reader;
    int status = tree_load_object(&tree, json, size, error);
    if (status)
        return status;
    as_read_lenient(&root, tree.root, error);
    as_read_object(&reader, &root, "metadata");
    as_read_object(&reader, &root, "spec");
    if ((status = as_read_result(&root)))
        return status;
    AS_CLEANUP(as_json_free_p) json_t *document = json_loadb(json, size, 0, NULL);
    json_t *spec = json_object_get(document, "spec");
    if (!json_is_object(spec)) {
        spec = json_object();
        json_object_set_new(document, "spec", spec);
    }
    json_object_del(json_object_get(document, "metadata"),
                    "managedFields"); /* long, and only for the server */
    set_spec(spec, lease);
    as_json_dump(document, out);
    return 0;
}
