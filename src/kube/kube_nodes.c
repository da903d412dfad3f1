/*
 * Codecs for nodes and for the pods on them. Pure.
 *
 * A patch can replace only all taints of a Node, so patches contain all of them as they were read;
 * the resourceVersion prevents the loss of a change made meanwhile.
 *
 * https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/node-v1/
 */
#include <alertscaler/kube/kube_nodes.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/quantity.h>
#include <alertscaler/base/str.h>
#include <alertscaler/doc/json_reader.h>
#include <alertscaler/doc/json_writer.h>

#include "kube_annotations.h"
#include "kube_object.h"
#include "kube_pods.h"
#include "pod_requests.h"

/* The second was used before Kubernetes 1.17. */
static const char *const zone_labels[] = {
    "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/zone",
};

static const char *const resource_names[AS_RESOURCE_COUNT] = {
    [AS_RESOURCE_CPU] = "cpu",
    [AS_RESOURCE_MEMORY] = "memory",
};

static bool is_ready(const struct tree_value *status)
{
    const struct tree_value *condition = tree_get_first(tree_find(status, "conditions"));
    for (; condition; condition = condition->next) {
        if (as_str_equal(tree_find_text(condition, "type"), "Ready"))
            return as_str_equal(tree_find_text(condition, "status"), "True");
    }
    return false;
}

static const char *kube_nodes_find_zone(const struct tree_value *labels, struct as_arena *arena)
{
    const char *zone = NULL;
    for (size_t i = 0; i < AS_ARRAY_SIZE(zone_labels) && !zone; i++)
        zone = tree_find_text(labels, zone_labels[i]);
    return as_arena_strdup(arena, zone ? zone : "");
}

static as_maybe_time read_created(const struct tree_value *metadata)
{
    const char *text = tree_find_text(metadata, "creationTimestamp");
    as_maybe_time created = {.set = false};
    created.set = text && as_wall_time_parse(text, strlen(text), &created.at) == 0;
    return created;
}

/* An unreadable value is unknown: the node then counts as full. */
static void read_allocatable(const struct tree_value *status, double allocatable[])
{
    const struct tree_value *quantities = tree_find(status, "allocatable");
    for (int i = 0; i < AS_RESOURCE_COUNT; i++) {
        const struct tree_value *value = tree_find(quantities, resource_names[i]);
        allocatable[i] = NAN;
        if (tree_is(value, TREE_TEXT) &&
            as_quantity_parse(value->text, value->size, &allocatable[i]) < 0)
            allocatable[i] = NAN;
    }
}

static void kube_nodes_read_body(struct as_reader *root, struct as_reader *metadata,
                                 struct as_arena *arena, struct as_kube_node *node)
{
    struct as_reader spec, status, annotations;
    as_read_object(&spec, root, "spec");
    as_read_object(&status, root, "status");
    as_read_object(&annotations, metadata, "annotations");
    as_read_bool(&spec, "unschedulable", &node->is_cordoned);
    const char *provider_id = tree_find_text(spec.object, "providerID");
    node->provider_id = as_arena_strdup(arena, provider_id ? provider_id : "");
    node->zone = kube_nodes_find_zone(tree_find(metadata->object, "labels"), arena);
    node->created = read_created(metadata->object);
    node->is_ready = is_ready(status.object);
    node->is_marked = kube_read_mark(annotations.object, arena, &node->mark);
    node->keep = kube_find_keep(annotations.object, arena);
    read_allocatable(status.object, node->allocatable);
}

static int kube_nodes_read_node(const struct tree_value *item, struct as_arena *arena,
                                struct as_kube_node *node_out, struct as_error *error)
{
    struct as_kube_node node = {.mark = {.owner = "", .decision = "", .target = ""}};
    struct as_reader root, metadata;
    as_read_lenient(&root, item, error);
    as_read_object(&metadata, &root, "metadata");
    const char *name = kube_object_read_name(&metadata, "name", AS_KUBE_POD_NAME_MAX, "name");
    int status = as_read_result(&root);
    if (status)
        return status;
    node.name = as_arena_strdup(arena, name);
    kube_nodes_read_body(&root, &metadata, arena, &node);
    if ((status = as_read_result(&root)))
        as_error_wrap(error, "node %s", node.name);
    else
        *node_out = node;
    return status;
}

static int kube_nodes_take_node(void *context, const struct tree_value *item,
                                struct as_error *error)
{
    struct as_kube_nodes *nodes = context;
    struct as_kube_node node;
    int status = kube_nodes_read_node(item, &nodes->texts, &node, error);
    if (status)
        return status;
    if (nodes->count == nodes->max) {
        as_error_set(error, "more than %zu nodes", nodes->max);
        return -E2BIG;
    }
    nodes->items = as_xgrow(nodes->items, nodes->count, &nodes->capacity, sizeof(*nodes->items));
    nodes->items[nodes->count++] = node;
    return 0;
}

int as_kube_nodes_decode(struct as_kube_nodes *nodes, const char *json, size_t size,
                         char **next_out, struct as_error *error)
{
    return kube_list_read(json, size, "NodeList", kube_nodes_take_node, nodes, next_out, error);
}

void as_kube_nodes_clear(struct as_kube_nodes *nodes)
{
    nodes->count = 0;
    as_arena_reset(&nodes->texts);
}

void as_kube_nodes_deinit(struct as_kube_nodes *nodes)
{
    free(nodes->items);
    as_arena_deinit(&nodes->texts);
    *nodes = AS_KUBE_NODES_INIT(nodes->max);
}

int as_kube_node_decode(const char *json, size_t size, struct as_arena *arena,
                        struct as_kube_node *node_out, struct as_error *error)
{
    AS_CLEANUP(tree_deinit) struct tree tree = TREE_INIT(TREE_NO_LIMIT);
    int status = kube_object_load(&tree, json, size, "Node", error);
    return status ? status : kube_nodes_read_node(tree.root, arena, node_out, error);
}

/* Patches */

struct source { /* the Node that a patch is for */
    struct tree tree;
    json_t *document; /* the same, to write its taints unchanged */
    struct as_kube_node node;
    const char *version;
};

static void close_source(struct source *source)
{
    tree_deinit(&source->tree);
    json_decref(source->document);
}

static int open_source(struct source *source, const char *json, size_t size, struct as_error *error)
{
    struct tree *tree = &source->tree;
    int status = kube_object_load(tree, json, size, "Node", error);
    if (status || (status = kube_nodes_read_node(tree->root, &tree->arena, &source->node, error)))
        return status;
    source->version = tree_find_text(tree_find(tree->root, "metadata"), "resourceVersion");
    source->document = json_loadb(json, size, 0, NULL);
    const struct tree_value *taints = tree_find(tree_find(tree->root, "spec"), "taints");
    if (as_str_is_empty(source->version) ||
        (taints && taints->kind != TREE_NULL && taints->kind != TREE_ARRAY)) {
        as_error_set(error, "node %s: %s", source->node.name,
                     as_str_is_empty(source->version) ? "metadata.resourceVersion: missing"
                                                      : "spec.taints: expected a list");
        return -EBADMSG;
    }
    return 0;
}

static bool kube_nodes_is_ours(const json_t *taint)
{
    return as_str_equal(json_string_value(json_object_get(taint, "key")), AS_NODE_TAINT);
}

/* The taints of others, unchanged; then ours. */
static void kube_nodes_write_taints(struct as_json_writer *json, const struct source *source,
                                    bool with_ours)
{
    const json_t *taint;
    size_t index;
    as_json_write_key(json, "taints");
    as_json_begin_array(json);
    json_array_foreach(json_object_get(json_object_get(source->document, "spec"), "taints"), index,
                       taint)
    {
        char *text =
            kube_nodes_is_ours(taint) ? NULL : json_dumps(taint, JSON_COMPACT | JSON_ENCODE_ANY);
        if (text)
            as_json_write_raw(json, text, strlen(text));
        free(text);
    }
    if (with_ours) {
        as_json_begin_object(json);
        as_json_write_member(json, "effect", "NoSchedule");
        as_json_write_member(json, "key", AS_NODE_TAINT);
        as_json_end_object(json);
    }
    as_json_end_array(json);
}

static void write_mark(struct as_json_writer *json, const struct as_kube_node_mark *mark)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf text = AS_BUF_INIT(4096);
    struct as_json_writer inner;
    char at[AS_RFC3339_SIZE];
    as_wall_time_print_short(mark->at, at);
    as_json_init(&inner, &text, 0);
    as_json_begin_object(&inner);
    as_json_write_member(&inner, "at", at);
    as_json_write_member_bool(&inner, "cordoned", mark->has_cordoned);
    as_json_write_member(&inner, "decision", mark->decision);
    as_json_write_member(&inner, "owner", mark->owner);
    if (!as_str_is_empty(mark->target))
        as_json_write_member(&inner, "target", mark->target);
    as_json_end_object(&inner);
    as_json_write_member(json, AS_NODE_MARK_ANNOTATION, text.failed ? "" : text.data);
}

static void begin_patch(struct as_json_writer *json, struct as_buf *patch)
{
    as_json_init(json, patch, 0);
    as_json_begin_object(json);
    as_json_write_key(json, "metadata");
    as_json_begin_object(json);
    as_json_write_key(json, "annotations");
    as_json_begin_object(json);
}

static void begin_spec(struct as_json_writer *json, const struct source *source)
{
    as_json_end_object(json);
    as_json_write_member(json, "resourceVersion", source->version);
    as_json_end_object(json);
    as_json_write_key(json, "spec");
    as_json_begin_object(json);
}

int as_kube_node_mark_encode(const char *json, size_t size, const struct as_kube_node_mark *mark,
                             struct as_buf *patch, struct as_error *error)
{
    AS_CLEANUP(close_source) struct source source = {.tree = TREE_INIT(TREE_NO_LIMIT)};
    struct as_json_writer writer;
    int status = open_source(&source, json, size, error);
    if (status)
        return status;
    struct as_kube_node_mark written = *mark;
    /* If an earlier mark says that we cordoned it, that is still ours to undo. */
    written.has_cordoned =
        !source.node.is_cordoned || (source.node.is_marked && source.node.mark.has_cordoned);
    begin_patch(&writer, patch);
    write_mark(&writer, &written);
    begin_spec(&writer, &source);
    kube_nodes_write_taints(&writer, &source, true);
    as_json_write_member_bool(&writer, "unschedulable", true);
    as_json_end_object(&writer);
    as_json_end_object(&writer);
    return as_buf_check(patch);
}

int as_kube_node_unmark_encode(const char *json, size_t size, struct as_buf *patch,
                               struct as_error *error)
{
    AS_CLEANUP(close_source) struct source source = {.tree = TREE_INIT(TREE_NO_LIMIT)};
    struct as_json_writer writer;
    int status = open_source(&source, json, size, error);
    if (status)
        return status;
    begin_patch(&writer, patch);
    as_json_write_key(&writer, AS_NODE_MARK_ANNOTATION);
    as_json_write_null(&writer);
    begin_spec(&writer, &source);
    kube_nodes_write_taints(&writer, &source, false);
    if (source.node.is_marked && source.node.mark.has_cordoned) {
        as_json_write_key(&writer, "unschedulable");
        as_json_write_null(&writer);
    }
    as_json_end_object(&writer);
    as_json_end_object(&writer);
    return as_buf_check(patch);
}

/*
 * The pods on a node, and their eviction.
 *
 * Which pods may be evicted follows Cluster Autoscaler's documentation ("What types of pods can
 * prevent CA from removing a node?"), except that pods of kube-system are protected by their
 * budgets only: https://github.com/kubernetes/autoscaler/blob/master/cluster-autoscaler/FAQ.md
 */

#define NAMESPACE_MAX 63
#define BLOCKING_SIZE 640

/* Fates */

static bool is_finished(const struct tree_value *status)
{
    const char *phase = tree_find_text(status, "phase");
    return as_str_equal(phase, "Succeeded") || as_str_equal(phase, "Failed");
}

static bool kube_nodes_stays(const struct tree_value *metadata,
                             const struct tree_value *annotations, const struct tree_value *status)
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
    if (kube_nodes_stays(metadata, annotations, status))
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

static int kube_node_pods_read_body(struct as_reader *root, struct as_reader *metadata,
                                    struct as_arena *arena, struct as_kube_node_pod *pod)
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
    if ((status = kube_node_pods_read_body(&root, &metadata, &pods->texts, &pod))) {
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
