/*
 * Objects into facts: see the header. A tree of the wanted fields is made in a pool, read, put, and
 * given back with it.
 */
#include <alertscaler/wire/kube_facts.h>

#include <errno.h>
#include <string.h>

#include <alertscaler/wire/kubernetes_pods.h>

#include "kube_facts_private.h"
#include "kube_parts.h"
#include "kube_protobuf.h"
#include "json/json_pool.h"

static const struct {
    const char *word;
    const struct tree_part *parts, *name_parts;
} kinds[AS_CLUSTER_KIND_COUNT] = {
    [AS_CLUSTER_NODES] = {"node", kube_node_parts, kube_node_name_parts},
    [AS_CLUSTER_PODS] = {"pod", kube_pod_parts, kube_name_parts},
    [AS_CLUSTER_BUDGETS] = {"budget", kube_budget_parts, kube_name_parts},
};

static int parse(const struct as_kube_bytes *bytes, const struct tree_part *parts,
                 const struct tree_value **root_out, struct as_error *error)
{
    bool has_nuls = false;

    if (bytes->size > AS_KUBE_OBJECT_MAX) {
        as_error_set(error, "larger than %zu bytes", AS_KUBE_OBJECT_MAX);
        return -EBADMSG;
    }
    int status = bytes->form == AS_KUBE_JSON
                     ? tree_parse_parts(bytes->data, bytes->size, parts, root_out, &has_nuls, error)
                     : kube_protobuf_read(bytes->data, bytes->size, parts, root_out, error);
    if (status < 0)
        return -EBADMSG;
    if (has_nuls) {
        as_error_set(error, "a NUL in a text");
        return -EBADMSG;
    }
    return 0;
}

static const char *get_name(const struct tree_value *root, const char *key)
{
    const char *text = tree_get_text(tree_find(tree_find(root, "metadata"), key));
    return text ? text : "";
}

/* -EBADMSG where something could not be read: "pod shop/web-1: spec.priority: expected ...". */
static int check(const struct spot *root, enum as_cluster_kind kind, struct as_error *error)
{
    const char *namespace_ = kind == AS_CLUSTER_NODES ? "" : get_name(root->object, "namespace");
    const char *name = get_name(root->object, "name");

    if (spot_result(root) == 0)
        return 0;
    as_error_wrap(error, "%s%s%.64s%s%.256s", kinds[kind].word, *name ? " " : "", namespace_,
                  *namespace_ ? "/" : "", name);
    return -EBADMSG;
}

static int put_node(struct fact_reader *reader, struct spot *root, struct as_error *error)
{
    struct as_node_fact node;

    fact_read_node(reader, root, &node);
    int status = check(root, AS_CLUSTER_NODES, error);
    return status < 0 ? status : as_cluster_facts_put_node(reader->facts, &node, error);
}

static int put_pod(struct fact_reader *reader, struct spot *root, struct as_error *error)
{
    struct as_pod_shape shape;
    struct as_pod_put pod;
    const bool is_finished = !fact_read_pod(reader, root, &shape, &pod);
    int status = check(root, AS_CLUSTER_PODS, error);

    if (status < 0 || !is_finished)
        return status < 0 ? status : as_cluster_facts_put_pod(reader->facts, &pod, error);
    as_cluster_facts_delete(reader->facts, AS_CLUSTER_PODS, pod.fact.namespace_, pod.fact.name);
    return 0;
}

static int put_budget(struct fact_reader *reader, struct spot *root, struct as_error *error)
{
    struct as_budget_fact budget;

    fact_read_budget(reader, root, &budget);
    int status = check(root, AS_CLUSTER_BUDGETS, error);
    return status < 0 ? status : as_cluster_facts_put_budget(reader->facts, &budget, error);
}

static int put(struct fact_reader *reader, enum as_cluster_kind kind,
               const struct as_kube_bytes *bytes, struct as_error *error)
{
    const struct tree_value *object;
    struct spot root;
    int status = parse(bytes, kinds[kind].parts, &object, error);

    if (status < 0) {
        as_error_wrap(error, "%s", kinds[kind].word);
        return status;
    }
    spot_init(&root, object, error);
    switch (kind) {
    case AS_CLUSTER_NODES: return put_node(reader, &root, error);
    case AS_CLUSTER_PODS: return put_pod(reader, &root, error);
    case AS_CLUSTER_BUDGETS: return put_budget(reader, &root, error);
    case AS_CLUSTER_KIND_COUNT: break;
    }
    return -EINVAL;
}

int as_kube_fact_put(struct as_cluster_facts *facts, enum as_cluster_kind kind,
                     const struct as_kube_bytes *bytes, struct as_arena *scratch,
                     struct as_error *error)
{
    struct fact_reader reader = {.facts = facts, .arena = scratch};

    json_pool_enter(AS_KUBE_ITEM_MEMORY_MAX);
    const int status = put(&reader, kind, bytes, error);
    json_pool_leave();
    as_arena_reset(scratch);
    return status;
}

static int delete (struct as_cluster_facts *facts, enum as_cluster_kind kind,
                   const struct as_kube_bytes *bytes, struct as_error *error)
{
    const struct tree_value *object;
    struct spot root, metadata;
    int status = parse(bytes, kinds[kind].name_parts, &object, error);

    if (status < 0) {
        as_error_wrap(error, "%s", kinds[kind].word);
        return status;
    }
    spot_init(&root, object, error);
    spot_enter(&metadata, &root, "metadata");
    const char *name = fact_read_name(&metadata, "name");
    const char *namespace_ = kind == AS_CLUSTER_NODES ? "" : fact_read_name(&metadata, "namespace");
    if ((status = check(&root, kind, error)) == 0)
        as_cluster_facts_delete(facts, kind, namespace_, name);
    return status;
}

int as_kube_fact_delete(struct as_cluster_facts *facts, enum as_cluster_kind kind,
                        const struct as_kube_bytes *bytes, struct as_error *error)
{
    json_pool_enter(AS_KUBE_ITEM_MEMORY_MAX);
    const int status = delete (facts, kind, bytes, error);
    json_pool_leave();
    return status;
}
