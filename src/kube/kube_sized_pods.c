/*
 * Pods that are resized in place: see the header. KEP-1287: the conditions PodResizePending and
 * PodResizeInProgress, and the resources in a container's status, which are what the kubelet has
 * granted.
 */
#include <alertscaler/kube/kubernetes_resources.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>
#include <alertscaler/doc/json_writer.h>
#include <alertscaler/kube/kubernetes_pods.h>

#include "kube_container.h"
#include "kube_list.h"
#include "kube_object.h"
#include <alertscaler/doc/json_reader.h>

#define HASH_LABEL "pod-template-hash" /* a ReplicaSet of a Deployment is NAME-HASH */

/* ---- whose it is ---- */

static const struct tree_value *find_controller(const struct tree_value *metadata)
{
    const struct tree_value *owner = tree_get_first(tree_find(metadata, "ownerReferences"));
    while (owner && !tree_is_true(tree_find(owner, "controller")))
        owner = owner->next;
    return owner;
}

static bool is_of_deployment(const struct as_kube_sized_pods *pods,
                             const struct tree_value *metadata, const struct tree_value *owner)
{
    const char *hash = tree_find_text(tree_find(metadata, "labels"), HASH_LABEL);
    const char *name = tree_find_text(owner, "name");
    const size_t size = strlen(pods->name);
    return hash && name && as_str_equal(tree_find_text(owner, "kind"), "ReplicaSet") &&
           strncmp(name, pods->name, size) == 0 && name[size] == '-' &&
           strcmp(name + size + 1, hash) == 0;
}

static bool is_owned(const struct as_kube_sized_pods *pods, const struct tree_value *metadata)
{
    const struct tree_value *owner = find_controller(metadata);
    if (strcmp(pods->kind, "Deployment") == 0)
        return is_of_deployment(pods, metadata, owner);
    return as_str_equal(tree_find_text(owner, "uid"), pods->uid);
}

static bool is_living(const struct as_kube_sized_pods *pods, const struct tree_value *metadata,
                      const struct tree_value *status)
{
    const char *phase = tree_find_text(status, "phase");
    const struct tree_value *deleted = tree_find(metadata, "deletionTimestamp");
    return (!deleted || deleted->kind == TREE_NULL) && !as_str_equal(phase, "Succeeded") &&
           !as_str_equal(phase, "Failed") && is_owned(pods, metadata);
}

/* ---- what its kubelet says ---- */

static int64_t get_generation(const struct tree_value *object, const char *name)
{
    int64_t generation = 0;
    const struct tree_value *value = tree_find(object, name);
    return value && tree_get_i64(value, 0, INT64_MAX, &generation) ? generation : 0;
}

/* A condition of an earlier spec says nothing of this one. */
static bool is_current(const struct tree_value *condition, int64_t generation)
{
    const int64_t observed = get_generation(condition, "observedGeneration");
    return as_str_equal(tree_find_text(condition, "status"), "True") &&
           (observed == 0 || generation == 0 || observed >= generation);
}

static const char *make_message(struct as_kube_sized_pods *pods, const char *reason,
                                const struct tree_value *condition)
{
    const char *message = tree_find_text(condition, "message");
    char text[AS_MESSAGE_SIZE];
    snprintf(text, sizeof(text), "%s%s%.*s", reason, as_str_is_empty(message) ? "" : ": ",
             message ? (int)as_str_cut_utf8(message, strlen(message), AS_MESSAGE_SIZE / 2) : 0,
             message ? message : "");
    return as_arena_strdup(&pods->texts, text);
}

static void take_condition(struct as_kube_sized_pods *pods, const struct tree_value *condition,
                           struct as_kube_sized_pod *pod)
{
    static const struct {
        const char *type, *reason; /* NULL: any */
        enum as_kube_resize resize;
    } answers[] = {
        {"PodResizePending", "Infeasible", AS_KUBE_RESIZE_INFEASIBLE},
        {"PodResizePending", "Deferred", AS_KUBE_RESIZE_DEFERRED},
        {"PodResizeInProgress", NULL, AS_KUBE_RESIZE_IN_PROGRESS},
    };
    const char *type = tree_find_text(condition, "type");
    const char *reason = tree_find_text(condition, "reason");
    for (size_t i = 0; i < AS_ARRAY_SIZE(answers); i++) {
        if (!as_str_equal(type, answers[i].type) ||
            (answers[i].reason && !as_str_equal(reason, answers[i].reason)) ||
            answers[i].resize <= pod->resize)
            continue;
        pod->resize = answers[i].resize;
        pod->message =
            make_message(pods, as_str_is_empty(reason) ? "InProgress" : reason, condition);
    }
}

static bool is_same(const char *a, const char *b)
{
    double left, right;
    return as_quantity_parse(a, strlen(a), &left) == 0 &&
           as_quantity_parse(b, strlen(b), &right) == 0 && !(left < right) && !(left > right);
}

static int read_status(struct as_kube_sized_pods *pods, const struct tree_value *status,
                       int64_t generation, struct as_kube_sized_pod *pod)
{
    const struct tree_value *list =
        tree_find(status, pod->is_init ? "initContainerStatuses" : "containerStatuses");
    const struct tree_value *item = tree_is(list, TREE_ARRAY) ? list->first : NULL;
    while (item && !as_str_equal(tree_find_text(item, "name"), pods->part.container))
        item = item->next;
    const struct tree_value *granted = tree_find(item, "resources");
    if (!kube_read_amounts(granted, pods->part.resource, &pod->granted))
        return -EBADMSG;
    pod->is_silent = !granted;
    list = tree_find(status, "conditions");
    for (item = tree_is(list, TREE_ARRAY) ? list->first : NULL; item; item = item->next) {
        if (is_current(item, generation))
            take_condition(pods, item, pod);
    }
    const int64_t observed = get_generation(status, "observedGeneration");
    pod->is_answered =
        pod->resize != AS_KUBE_RESIZE_NONE ||
        (observed > 0 && generation > 0 ? observed >= generation
                                        : is_same(pod->granted.request, pod->amounts.request));
    return 0;
}

/* ---- the pod ---- */

static bool has_restart(const struct tree_value *container, const char *word)
{
    const struct tree_value *list = tree_find(container, "resizePolicy");
    const struct tree_value *item = tree_is(list, TREE_ARRAY) ? list->first : NULL;
    while (item && !as_str_equal(tree_find_text(item, "resourceName"), word))
        item = item->next;
    return as_str_equal(tree_find_text(item, "restartPolicy"), "RestartContainer");
}

static int read_container(struct as_kube_sized_pods *pods, const struct tree_value *root,
                          struct as_kube_sized_pod *pod)
{
    const struct tree_value *spec = tree_find(root, "spec"), *status = tree_find(root, "status");
    const struct tree_value *container =
        kube_find_container(spec, pods->part.container, &pod->is_init);
    pod->is_bound = !as_str_is_empty(tree_find_text(spec, "nodeName"));
    pod->has_container = container != NULL;
    if (!container)
        return 0;
    pod->is_sidecar = pod->is_init && kube_is_sidecar(container);
    pod->restarts = has_restart(container, as_kube_resource_get_word(pods->part.resource));
    if (!kube_read_amounts(tree_find(container, "resources"), pods->part.resource, &pod->amounts))
        return -EBADMSG;
    return read_status(pods, status, get_generation(tree_find(root, "metadata"), "generation"),
                       pod);
}

static int read_pod(struct as_kube_sized_pods *pods, const struct tree_value *root,
                    struct as_kube_sized_pod *pod_out, struct as_error *error)
{
    struct as_kube_sized_pod pod = {.name = NULL, .message = ""};
    struct as_reader reader, metadata;
    as_read_lenient(&reader, root, error);
    as_read_object(&metadata, &reader, "metadata");
    const char *name = kube_object_read_name(&metadata, "name", AS_KUBE_POD_NAME_MAX, "name");
    kube_object_read_version(&metadata, pod.version, sizeof(pod.version));
    as_read_time(&metadata, "creationTimestamp", &pod.created);
    int code = as_read_result(&reader);
    if (code)
        return code;
    pod.is_living = is_living(pods, metadata.object, tree_find(root, "status"));
    if ((code = read_container(pods, root, &pod))) {
        as_error_set(error, "pod %s: container %s: no quantity of %s", name, pods->part.container,
                     as_kube_resource_get_word(pods->part.resource));
        return code;
    }
    pod.name = as_arena_strdup(&pods->texts, name);
    *pod_out = pod;
    return 0;
}

int as_kube_sized_pod_decode(struct as_kube_sized_pods *pods, const char *json, size_t size,
                             struct as_kube_sized_pod *pod_out, struct as_error *error)
{
    AS_CLEANUP(tree_deinit) struct tree tree = TREE_INIT(TREE_NO_LIMIT);
    const int code = kube_object_load(&tree, json, size, "Pod", error);
    return code ? code : read_pod(pods, tree.root, pod_out, error);
}

static int take_pod(void *context, const struct tree_value *item, struct as_error *error)
{
    struct as_kube_sized_pods *pods = context;
    struct as_kube_sized_pod pod;
    const int status = read_pod(pods, item, &pod, error);
    if (status)
        return status;
    if (!pod.is_living)
        return 0;
    if (pods->count + pods->without == pods->max) {
        as_error_set(error, "more than %zu pods", pods->max);
        return -E2BIG;
    }
    if (!pod.has_container) {
        pods->without++;
        return 0;
    }
    pods->items = as_xgrow(pods->items, pods->count, &pods->capacity, sizeof(*pods->items));
    pods->items[pods->count++] = pod;
    return 0;
}

int as_kube_sized_pods_decode(struct as_kube_sized_pods *pods, const char *json, size_t size,
                              char **next_out, struct as_error *error)
{
    return kube_list_read(json, size, "PodList", take_pod, pods, next_out, error);
}

static int compare(const void *a, const void *b)
{
    return strcmp(((const struct as_kube_sized_pod *)a)->name,
                  ((const struct as_kube_sized_pod *)b)->name);
}

/* The API server refuses to resize a pod that runs before its kubelet has said what it granted. One
 * that has not started may do so at any moment. */
static void leave_out_silent(struct as_kube_sized_pods *pods)
{
    size_t kept = 0;
    for (size_t i = 0; i < pods->count; i++)
        kept += !pods->items[i].is_silent;
    if (kept == 0) /* an old kubelet: the API server's refusal says so */
        return;
    pods->silent = pods->count - kept;
    kept = 0;
    for (size_t i = 0; i < pods->count; i++) {
        if (!pods->items[i].is_silent)
            pods->items[kept++] = pods->items[i];
    }
    pods->count = kept;
}

void as_kube_sized_pods_finish(struct as_kube_sized_pods *pods)
{
    leave_out_silent(pods);
    if (pods->count > 1)
        qsort(pods->items, pods->count, sizeof(*pods->items), compare);
}

void as_kube_sized_pods_clear(struct as_kube_sized_pods *pods)
{
    pods->count = pods->without = pods->silent = 0;
    as_arena_reset(&pods->texts);
}

void as_kube_sized_pods_deinit(struct as_kube_sized_pods *pods)
{
    free(pods->items);
    as_arena_deinit(&pods->texts);
    pods->items = NULL;
    pods->count = pods->capacity = pods->without = pods->silent = 0;
}

const struct as_kube_amounts *as_kube_sized_pod_get(const struct as_kube_sized_pod *pod)
{
    const bool is_refused =
        pod->resize == AS_KUBE_RESIZE_DEFERRED || pod->resize == AS_KUBE_RESIZE_INFEASIBLE;
    return is_refused && pod->granted.request[0] ? &pod->granted : &pod->amounts;
}

void as_kube_resize_patch_encode(const struct as_kube_part *part,
                                 const struct as_kube_sized_pod *pod,
                                 const struct as_kube_amounts *amounts, struct as_buf *out)
{
    struct as_json_writer json;
    as_json_init(&json, out, 0);
    as_json_begin_object(&json);
    as_json_write_key(&json, "metadata");
    as_json_begin_object(&json);
    as_json_write_member(&json, "resourceVersion", pod->version);
    as_json_end_object(&json);
    as_json_write_key(&json, "spec");
    as_json_begin_object(&json);
    kube_write_container(&json, part, pod->is_init, amounts);
    as_json_end_object(&json);
    as_json_end_object(&json);
}
