/*
 * The objects of the Kubernetes API that scaling needs: see the header. Credential plugins'
 * documents are in kubernetes_exec.c.
 */
#include <alertscaler/kube/kube_documents.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>

#include "kube_object.h"
#include <alertscaler/doc/json_dump.h>

#define EVENT_MESSAGE_MAX 1024 /* the API's own limit */
#define RESOURCES_MAX     4096 /* in one group version; the largest groups have some hundred */

int as_kube_scale_decode(const char *json, size_t size, struct as_kube_scale *scale_out,
                         struct as_error *error)
{
    AS_CLEANUP(tree_deinit) struct tree tree = TREE_INIT(TREE_NO_LIMIT);
    struct as_reader root, metadata, spec, status;
    struct as_kube_scale scale = {.replicas = 0};
    int code = kube_object_load(&tree, json, size, "Scale", error);
    if (code)
        return code;
    as_read_lenient(&root, tree.root, error);
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
static char *get_scale_version(const struct tree_value *subresource, const char *list_version)
{
    const char *group = tree_find_text(subresource, "group");
    const char *version = tree_find_text(subresource, "version");
    if (as_str_is_empty(version))
        return as_xstrdup(list_version);
    return as_str_is_empty(group) ? as_xstrdup(version) : as_xasprintf("%s/%s", group, version);
}

static void find_scale_version(const struct tree_value *entries, struct as_kube_resource *resource,
                               const char *list_version)
{
    size_t stem, plural_size = strlen(resource->plural);
    for (const struct tree_value *entry = entries->first; entry; entry = entry->next) {
        const char *name = tree_find_text(entry, "name");
        if (!name || !(stem = get_scale_stem(name)))
            continue;
        if (stem == plural_size && memcmp(name, resource->plural, stem) == 0) {
            resource->scale_version = get_scale_version(entry, list_version);
            return;
        }
    }
}

static struct as_kube_resources *decode_entries(const struct tree_value *entries,
                                                const char *list_version)
{
    struct as_kube_resources *list = as_xcalloc(1, sizeof(*list));
    list->items = as_xcalloc(entries->size, sizeof(*list->items));
    for (const struct tree_value *entry = entries->first; entry; entry = entry->next) {
        const char *name = tree_find_text(entry, "name");
        const char *kind = tree_find_text(entry, "kind");
        if (as_str_is_empty(name) || as_str_is_empty(kind) || strchr(name, '/'))
            continue;
        struct as_kube_resource *resource = &list->items[list->count++];
        resource->plural = as_xstrdup(name);
        resource->kind = as_xstrdup(kind);
        resource->is_namespaced = tree_is_true(tree_find(entry, "namespaced"));
        find_scale_version(entries, resource, list_version);
    }
    return list;
}

int as_kube_resources_decode(const char *json, size_t size, struct as_kube_resources **list_out,
                             struct as_error *error)
{
    AS_CLEANUP(tree_deinit) struct tree tree = TREE_INIT(TREE_NO_LIMIT);
    int status = tree_load_object(&tree, json, size, error);
    if (status)
        return status;
    const char *list_version = tree_find_text(tree.root, "groupVersion");
    const struct tree_value *entries = tree_find(tree.root, "resources");
    if (tree_is(entries, TREE_ARRAY) && entries->size > RESOURCES_MAX) {
        as_error_set(error, "resources: more than %d", RESOURCES_MAX);
        return -EBADMSG;
    }
    if (as_str_is_empty(list_version) || !tree_is(entries, TREE_ARRAY)) {
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
    AS_CLEANUP(tree_deinit) struct tree tree = TREE_INIT(TREE_NO_LIMIT);
    int status = kube_object_load(&tree, json, size, "Status", error);
    if (status)
        return status;
    const char *message = tree_find_text(tree.root, "message");
    const char *reason = tree_find_text(tree.root, "reason");
    const struct tree_value *details = tree_find(tree.root, "details");
    int64_t seconds = 0, http_status = 0;
    (void)tree_get_i64(tree_find(details, "retryAfterSeconds"), 0, INT32_MAX, &seconds);
    (void)tree_get_i64(tree_find(tree.root, "code"), 1, 999, &http_status);
    status_out->code = (int)http_status;
    as_str_copy_line(reason ? reason : "", status_out->reason, AS_MESSAGE_SIZE);
    as_str_copy_line(message ? message : "", status_out->message, AS_MESSAGE_SIZE);
    status_out->names_object = !as_str_is_empty(tree_find_text(details, "name"));
    status_out->has_causes = tree_get_first(tree_find(details, "causes")) != NULL;
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
