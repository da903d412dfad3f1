/*
 * The pods on a node, and their eviction: see the header.
 *
 * Which pods may be evicted follows Cluster Autoscaler's documentation ("What types of pods can
 * prevent CA from removing a node?"), except that pods of kube-system are protected by their
 * budgets only: https://github.com/kubernetes/autoscaler/blob/master/cluster-autoscaler/FAQ.md
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>
#include <alertscaler/doc/json_reader.h>
#include <alertscaler/doc/json_writer.h>
#include <alertscaler/kube/kube_nodes.h>

#include "kube_annotations.h"
#include "kube_list.h"
#include "kube_object.h"
#include "kubernetes_pods.h"
#include "pod_requests.h"

#define NAMESPACE_MAX 63
#define BLOCKING_SIZE 640

/* Fates */

static bool is_finished(const struct tree_value *status)
{
    const char *phase = tree_find_text(status, "phase");
    return as_str_equal(phase, "Succeeded") || as_str_equal(phase, "Failed");
}

static bool stays(const struct tree_value *metadata, const struct tree_value *annotations,
                  const struct tree_value *status)
{
    const char *controller = kube_find_controller(metadata);
    return as_str_equal(controller, "DaemonSet") || as_str_equal(controller, "Node") ||
           as_str_equal(tree_find_text(annotations, DAEMONSET_POD), "true") ||
           tree_find(annotations, MIRROR_POD) || is_finished(status);
}

static enum as_kube_pod_fate get_fate(const struct tree_value *metadata,
                                      const struct tree_value *annotations,
                                      const struct tree_value *status)
{
    const struct tree_value *deleted_at = tree_find(metadata, "deletionTimestamp");
    if (stays(metadata, annotations, status))
        return AS_KUBE_POD_STAYS;
    return deleted_at && deleted_at->kind != TREE_NULL ? AS_KUBE_POD_GOING : AS_KUBE_POD_EVICT;
}

static void find_blocking(struct as_kube_node_pod *pod, const struct tree_value *metadata,
                          const struct tree_value *spec, const struct tree_value *annotations,
                          struct as_arena *arena)
{
    const char *safe = tree_find_text(annotations, SAFE_TO_EVICT);
    const char *controller = kube_find_controller(metadata);
    const char *volume = kube_find_local_volume(spec, annotations);
    char text[BLOCKING_SIZE], why[384];
    if (as_str_equal(safe, "true"))
        return;
    if (as_str_equal(safe, "false")) {
        snprintf(why, sizeof(why), "it is annotated " SAFE_TO_EVICT ": \"false\"");
    } else if (!controller) {
        pod->keep = AS_KEEP_UNREPLICATED;
        snprintf(why, sizeof(why),
                 "no controller would make it anew (" SAFE_TO_EVICT ": \"true\" allows it)");
    } else if (!kube_is_replicated(controller)) {
        pod->keep = AS_KEEP_UNREPLICATED;
        snprintf(why, sizeof(why),
                 "its controller is a custom one, %.63s (" SAFE_TO_EVICT ": \"true\" allows it)",
                 controller);
    } else if (volume) {
        pod->keep = AS_KEEP_LOCAL_STORAGE;
        snprintf(why, sizeof(why),
                 "its volume %s is on the node (" SAFE_LOCAL_VOLUMES " or " SAFE_TO_EVICT
                 ": \"true\" allows it)",
                 volume);
    } else {
        return;
    }
    snprintf(text, sizeof(text), "%s/%s may not be evicted: %s", pod->namespace_, pod->name, why);
    pod->blocking = as_arena_strdup(arena, text);
}

/* Reading */

static const char *read_name(struct as_reader *metadata, const char *key, size_t max,
                             struct as_arena *arena)
{
    return as_arena_strdup(arena, kube_object_read_name(metadata, key, max, "text"));
}

static void read_names(struct as_reader *metadata, struct as_arena *arena,
                       struct as_kube_node_pod *pod)
{
    pod->name = read_name(metadata, "name", AS_KUBE_POD_NAME_MAX, arena);
    pod->namespace_ = read_name(metadata, "namespace", NAMESPACE_MAX, arena);
    pod->uid = read_name(metadata, "uid", NAMESPACE_MAX, arena);
}

static void read_gone_at(const struct tree_value *metadata, as_maybe_time *gone_at)
{
    const char *text = tree_find_text(metadata, "deletionTimestamp");
    gone_at->set = text && as_wall_time_parse(text, strlen(text), &gone_at->at) == 0;
}

static int read_body(struct as_reader *root, struct as_reader *metadata, struct as_arena *arena,
                     struct as_kube_node_pod *pod)
{
    struct as_reader spec, status, annotations;
    as_read_object(&spec, root, "spec");
    as_read_object(&status, root, "status");
    as_read_object(&annotations, metadata, "annotations");
    if (as_read_result(root) != 0)
        return as_read_result(root);
    pod->fate = get_fate(metadata->object, annotations.object, status.object);
    if (pod->fate == AS_KUBE_POD_GOING)
        read_gone_at(metadata->object, &pod->gone_at);
    if (pod->fate == AS_KUBE_POD_EVICT)
        find_blocking(pod, metadata->object, spec.object, annotations.object, arena);
    if (!is_finished(status.object))
        pod_requests_read(&spec, 0, pod->requests);
    return as_read_result(root);
}

static int take_pod(void *context, const struct tree_value *item, struct as_error *error)
{
    struct as_kube_node_pods *pods = context;
    struct as_kube_node_pod pod = {.name = NULL};
    struct as_reader root, metadata;
    as_read_lenient(&root, item, error);
    as_read_object(&metadata, &root, "metadata");
    read_names(&metadata, &pods->texts, &pod);
    int status = as_read_result(&root);
    if (status)
        return status;
    if ((status = read_body(&root, &metadata, &pods->texts, &pod))) {
        as_error_wrap(error, "pod %s/%s", pod.namespace_, pod.name);
        return status;
    }
    if (pods->count == pods->max) {
        as_error_set(error, "more than %zu pods", pods->max);
        return -E2BIG;
    }
    pods->items = as_xgrow(pods->items, pods->count, &pods->capacity, sizeof(*pods->items));
    pods->items[pods->count++] = pod;
    return 0;
}

int as_kube_node_pods_decode(struct as_kube_node_pods *pods, const char *json, size_t size,
                             char **next_out, struct as_error *error)
{
    return kube_list_read(json, size, "PodList", take_pod, pods, next_out, error);
}

void as_kube_node_pods_clear(struct as_kube_node_pods *pods)
{
    pods->count = 0;
    as_arena_reset(&pods->texts);
}

void as_kube_node_pods_deinit(struct as_kube_node_pods *pods)
{
    free(pods->items);
    as_arena_deinit(&pods->texts);
    *pods = AS_KUBE_NODE_PODS_INIT(pods->max);
}

/* Eviction */

int as_kube_eviction_version_decode(const char *json, size_t size,
                                    char version_out[AS_KUBE_EVICTION_VERSION_SIZE],
                                    struct as_error *error)
{
    AS_CLEANUP(tree_deinit) struct tree tree = TREE_INIT(TREE_NO_LIMIT);
    const int status = kube_object_load(&tree, json, size, "APIResourceList", error);
    if (status)
        return status;
    *version_out = '\0';
    const struct tree_value *resource = tree_get_first(tree_find(tree.root, "resources"));
    for (; resource; resource = resource->next) {
        const char *group = tree_find_text(resource, "group");
        const char *version = tree_find_text(resource, "version");
        if (as_str_equal(tree_find_text(resource, "name"), "pods/eviction") &&
            as_str_equal(group, "policy") && version)
            snprintf(version_out, AS_KUBE_EVICTION_VERSION_SIZE, "policy/%s",
                     strcmp(version, "v1beta1") == 0 ? "v1beta1" : "v1");
    }
    return 0;
}

void as_kube_eviction_encode(const struct as_kube_node_pod *pod, const char *api_version,
                             int64_t grace_s, struct as_buf *out)
{
    struct as_json_writer json;
    as_json_init(&json, out, 0);
    as_json_begin_object(&json);
    as_json_write_member(&json, "apiVersion", api_version);
    as_json_write_key(&json, "deleteOptions");
    as_json_begin_object(&json);
    if (grace_s >= 0)
        as_json_write_member_i64(&json, "gracePeriodSeconds", grace_s);
    as_json_write_key(&json, "preconditions");
    as_json_begin_object(&json);
    as_json_write_member(&json, "uid", pod->uid);
    as_json_end_object(&json);
    as_json_end_object(&json);
    as_json_write_member(&json, "kind", "Eviction");
    as_json_write_key(&json, "metadata");
    as_json_begin_object(&json);
    as_json_write_member(&json, "name", pod->name);
    as_json_write_member(&json, "namespace", pod->namespace_);
    as_json_end_object(&json);
    as_json_end_object(&json);
}
