/*
 * Nodes: see the header.
 *
 * A patch can replace only all taints of a Node, so patches contain all of them as they were read;
 * the resourceVersion prevents the loss of a change made meanwhile.
 *
 * https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/node-v1/
 */
#include <alertscaler/kube/kube_nodes.h>

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/quantity.h>
#include <alertscaler/base/str.h>
#include <alertscaler/doc/json_writer.h>

#include "kube_annotations.h"
#include "kube_list.h"
#include "kube_object.h"
#include "kubernetes_pods.h"

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

static const char *find_zone(const struct tree_value *labels, struct as_arena *arena)
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

static void read_body(struct as_reader *root, struct as_reader *metadata, struct as_arena *arena,
                      struct as_kube_node *node)
{
    struct as_reader spec, status, annotations;
    as_read_object(&spec, root, "spec");
    as_read_object(&status, root, "status");
    as_read_object(&annotations, metadata, "annotations");
    as_read_bool(&spec, "unschedulable", &node->is_cordoned);
    const char *provider_id = tree_find_text(spec.object, "providerID");
    node->provider_id = as_arena_strdup(arena, provider_id ? provider_id : "");
    node->zone = find_zone(tree_find(metadata->object, "labels"), arena);
    node->created = read_created(metadata->object);
    node->is_ready = is_ready(status.object);
    node->is_marked = kube_read_mark(annotations.object, arena, &node->mark);
    node->keep = kube_find_keep(annotations.object, arena);
    read_allocatable(status.object, node->allocatable);
}

static int read_node(const struct tree_value *item, struct as_arena *arena,
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
    read_body(&root, &metadata, arena, &node);
    if ((status = as_read_result(&root)))
        as_error_wrap(error, "node %s", node.name);
    else
        *node_out = node;
    return status;
}

static int take_node(void *context, const struct tree_value *item, struct as_error *error)
{
    struct as_kube_nodes *nodes = context;
    struct as_kube_node node;
    int status = read_node(item, &nodes->texts, &node, error);
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
    return kube_list_read(json, size, "NodeList", take_node, nodes, next_out, error);
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
    return status ? status : read_node(tree.root, arena, node_out, error);
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
    if (status || (status = read_node(tree->root, &tree->arena, &source->node, error)))
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

static bool is_ours(const json_t *taint)
{
    return as_str_equal(json_string_value(json_object_get(taint, "key")), AS_NODE_TAINT);
}

/* The taints of others, unchanged; then ours. */
static void write_taints(struct as_json_writer *json, const struct source *source, bool with_ours)
{
    const json_t *taint;
    size_t index;
    as_json_write_key(json, "taints");
    as_json_begin_array(json);
    json_array_foreach(json_object_get(json_object_get(source->document, "spec"), "taints"), index,
                       taint)
    {
        char *text = is_ours(taint) ? NULL : json_dumps(taint, JSON_COMPACT | JSON_ENCODE_ANY);
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
    write_taints(&writer, &source, true);
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
    write_taints(&writer, &source, false);
    if (source.node.is_marked && source.node.mark.has_cordoned) {
        as_json_write_key(&writer, "unschedulable");
        as_json_write_null(&writer);
    }
    as_json_end_object(&writer);
    as_json_end_object(&writer);
    return as_buf_check(patch);
}
