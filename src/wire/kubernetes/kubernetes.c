/*
 * The objects of the Kubernetes API that scaling needs: see the header. Credential plugins'
 * documents are in kubernetes_exec.c.
 */
#include <alertscaler/wire/kubernetes.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>

#include "kube_object.h"
#include "json/reader.h"

#define EVENT_MESSAGE_MAX 1024 /* the API's own limit */
#define RESOURCES_MAX     4096 /* in one group version; the largest groups have some hundred */

int as_kube_scale_decode(const char *json, size_t size, struct as_kube_scale *scale_out,
                         struct as_error *error)
{
    AS_CLEANUP(as_json_free_p) json_t *object = NULL;
    struct as_reader root, metadata, spec, status;
    struct as_kube_scale scale = {.replicas = 0};
    int code = kube_object_load(json, size, "Scale", &object, error);
    if (code)
        return code;
    as_read_lenient(&root, object, error);
    as_read_object(&metadata, &root, "metadata");
    as_read_object(&spec, &root, "spec");
    as_read_object(&status, &root, "status");
    as_read_i32(&spec, "replicas", 0, &scale.replicas);
    as_read_i32(&status, "replicas", 0, &scale.status_replicas);
    as_read_copy(&metadata, "uid", scale.uid, sizeof(scale.uid));
    kube_object_read_version(&metadata, scale.resource_version, sizeof(scale.resource_version));
    code = as_read_result(&root);
    if (code == 0)
        *scale_out = scale;
    return code;
}

/* Leaves out empty values, as the API does. */
static void set_string(json_t *object, const char *name, const char *text)
{
    if (!as_str_is_empty(text))
        json_object_set_new(object, name, json_string(text));
}

void as_kube_scale_encode(const struct as_kube_scale_update *update, struct as_buf *out)
{
    json_t *metadata = json_object();
    set_string(metadata, "name", update->name);
    set_string(metadata, "namespace", update->namespace_);
    set_string(metadata, "resourceVersion", update->resource_version);
    AS_CLEANUP(as_json_free_p)
    json_t *scale = json_pack("{s:s, s:s, s:o, s:{s:i}}", "apiVersion", update->api_version, "kind",
                              "Scale", "metadata", metadata, "spec", "replicas", update->replicas);
    as_json_dump(scale, out);
}

/* "deployments/scale" -> the length of "deployments"; 0 if it is no scale subresource. */
static size_t get_scale_stem(const char *name)
{
    const char *slash = strchr(name, '/');
    return slash && strcmp(slash, "/scale") == 0 ? (size_t)(slash - name) : 0;
}

/* Servers before 1.8 do not name the version of Scale: it is the list's own version. */
static char *get_scale_version(const json_t *subresource, const char *list_version)
{
    const char *group = as_json_find_text(subresource, "group");
    const char *version = as_json_find_text(subresource, "version");
    if (as_str_is_empty(version))
        return as_xstrdup(list_version);
    return as_str_is_empty(group) ? as_xstrdup(version) : as_xasprintf("%s/%s", group, version);
}

static void find_scale_version(const json_t *entries, struct as_kube_resource *resource,
                               const char *list_version)
{
    size_t index, stem, plural_size = strlen(resource->plural);
    const json_t *entry;
    json_array_foreach(entries, index, entry)
    {
        const char *name = as_json_find_text(entry, "name");
        if (!name || !(stem = get_scale_stem(name)))
            continue;
        if (stem == plural_size && memcmp(name, resource->plural, stem) == 0) {
            resource->scale_version = get_scale_version(entry, list_version);
            return;
        }
    }
}

static struct as_kube_resources *decode_entries(const json_t *entries, const char *list_version)
{
    struct as_kube_resources *list = as_xcalloc(1, sizeof(*list));
    list->items = as_xcalloc(json_array_size(entries), sizeof(*list->items));
    size_t index;
    const json_t *entry;
    json_array_foreach(entries, index, entry)
    {
        const char *name = as_json_find_text(entry, "name");
        const char *kind = as_json_find_text(entry, "kind");
        if (as_str_is_empty(name) || as_str_is_empty(kind) || strchr(name, '/'))
            continue;
        struct as_kube_resource *resource = &list->items[list->count++];
        resource->plural = as_xstrdup(name);
        resource->kind = as_xstrdup(kind);
        resource->is_namespaced = json_is_true(json_object_get(entry, "namespaced"));
        find_scale_version(entries, resource, list_version);
    }
    return list;
}

int as_kube_resources_decode(const char *json, size_t size, struct as_kube_resources **list_out,
                             struct as_error *error)
{
    AS_CLEANUP(as_json_free_p) json_t *object = NULL;
    int status = as_json_load_object(json, size, &object, error);
    if (status)
        return status;
    const char *list_version = as_json_find_text(object, "groupVersion");
    const json_t *entries = json_object_get(object, "resources");
    if (json_array_size(entries) > RESOURCES_MAX) {
        as_error_set(error, "resources: more than %d", RESOURCES_MAX);
        return -EBADMSG;
    }
    if (as_str_is_empty(list_version) || !json_is_array(entries)) {
        as_error_set(error, "not an APIResourceList: %s is missing",
                     as_str_is_empty(list_version) ? "groupVersion" : "resources");
        return -EBADMSG;
    }
    *list_out = decode_entries(entries, list_version);
    return 0;
}

struct as_kube_resources *as_kube_resources_free(struct as_kube_resources *list)
{
    if (!list)
        return NULL;
    for (size_t i = 0; i < list->count; i++) {
        free(list->items[i].kind);
        free(list->items[i].plural);
        free(list->items[i].scale_version);
    }
    free(list->items);
    free(list);
    return NULL;
}

const struct as_kube_resource *as_kube_resources_find(const struct as_kube_resources *list,
                                                      const char *kind)
{
    const struct as_kube_resource *found = NULL;
    for (size_t i = 0; i < list->count; i++) {
        const struct as_kube_resource *resource = &list->items[i];
        if (strcmp(resource->kind, kind) == 0 && (!found || !found->scale_version))
            found = resource;
    }
    return found;
}

int as_kube_status_decode(const char *json, size_t size, struct as_kube_status *status_out,
                          struct as_error *error)
{
    AS_CLEANUP(as_json_free_p) json_t *object = NULL;
    int status = kube_object_load(json, size, "Status", &object, error);
    if (status)
        return status;
    const char *message = as_json_find_text(object, "message");
    const json_t *details = json_object_get(object, "details");
    json_int_t seconds = json_integer_value(json_object_get(details, "retryAfterSeconds"));
    if (seconds < 0 || seconds > INT32_MAX)
        seconds = 0;
    const char *reason = as_json_find_text(object, "reason");
    const json_int_t status_code = json_integer_value(json_object_get(object, "code"));
    status_out->code = status_code > 0 && status_code < 1000 ? (int)status_code : 0;
    as_str_copy_line(reason ? reason : "", status_out->reason, AS_MESSAGE_SIZE);
    as_str_copy_line(message ? message : "", status_out->message, AS_MESSAGE_SIZE);
    status_out->names_object = !as_str_is_empty(as_json_find_text(details, "name"));
    status_out->retry_after_us = seconds * AS_US_PER_S;
    return 0;
}

static json_t *make_involved_object(const struct as_kube_event *event)
{
    json_t *object = json_object();
    set_string(object, "apiVersion", event->api_version);
    set_string(object, "kind", event->kind);
    set_string(object, "namespace", event->namespace_);
    set_string(object, "name", event->name);
    set_string(object, "uid", event->uid);
    return object;
}

void as_kube_event_encode(const struct as_kube_event *event, struct as_buf *out)
{
    /* metav1.Time has whole seconds. */
    as_wall_time second = {event->at.us - event->at.us % AS_US_PER_S};
    char at[AS_RFC3339_SIZE];
    as_wall_time_print_short(second, at);
    /* An event's namespace is its object's; events of cluster-wide objects are in `default`. */
    const char *namespace_ = as_str_is_empty(event->namespace_) ? "default" : event->namespace_;
    AS_CLEANUP(as_free_p) char *prefix = as_xasprintf("%s.", event->name);
    size_t message_size =
        as_str_cut_utf8(event->message, strlen(event->message), EVENT_MESSAGE_MAX);
    AS_CLEANUP(as_json_free_p)
    json_t *json = json_pack(
        "{s:s, s:s, s:{s:s, s:s}, s:o, s:s, s:s%, s:s, s:{s:s}, s:s, s:s, s:s, s:i}", "apiVersion",
        "v1", "kind", "Event", "metadata", "generateName", prefix, "namespace", namespace_,
        "involvedObject", make_involved_object(event), "reason", event->reason, "message",
        event->message, message_size, "type", event->is_warning ? "Warning" : "Normal", "source",
        "component", "alertscaler", "reportingComponent", "alertscaler", "firstTimestamp", at,
        "lastTimestamp", at, "count", 1);
    as_json_dump(json, out);
}
