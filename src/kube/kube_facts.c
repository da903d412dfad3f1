/*
 * Objects into facts: see the header. A tree of the wanted fields is made, read, put and freed.
 */
#include <alertscaler/kube/kube_facts.h>

#include <errno.h>

#include <alertscaler/kube/kubernetes_pods.h>

#include "kube_facts_private.h"
#include "kube_parts.h"
#include "kube_protobuf.h"

static const struct {
    const char *word;
    const struct tree_part *parts, *name_parts;
} kinds[AS_CLUSTER_KIND_COUNT] = {
    [AS_CLUSTER_NODES] = {"node", kube_node_parts, kube_node_name_parts},
    [AS_CLUSTER_PODS] = {"pod", kube_pod_parts, kube_name_parts},
    [AS_CLUSTER_BUDGETS] = {"budget", kube_budget_parts, kube_name_parts},
};

/* Whether it succeeds or not, the tree must be freed. */
static int parse(struct tree *tree, enum as_cluster_kind kind, const struct tree_part *parts,
                 const struct as_kube_bytes *bytes, struct as_error *error)
{
    int status = 0;

    *tree = TREE_INIT(AS_KUBE_ITEM_MEMORY_MAX);
    if (bytes->size > AS_KUBE_OBJECT_MAX)
        as_error_set(error, "larger than %zu bytes", AS_KUBE_OBJECT_MAX);
    else if (bytes->form == AS_KUBE_JSON)
        status = tree_parse(tree, bytes->data, bytes->size, parts, error);
    else
        status = kube_protobuf_read(tree, bytes->data, bytes->size, parts, error);
    if (status == 0 && tree->has_nuls)
        as_error_set(error, "a NUL in a text");
    if (status == 0 && tree->root && !tree->has_nuls)
        return 0;
    as_error_wrap(error, "%s", kinds[kind].word);
    return -EBADMSG;
}

/* Values */

static const struct tree_value *check_count(struct as_reader *parent, const char *name,
                                            const struct tree_value *first, size_t *count)
{
    if (*count <= FACT_ITEMS_MAX)
        return first;
    as_read_fail(parent, name, "more than %d", FACT_ITEMS_MAX);
    *count = 0;
    return NULL;
}

const struct tree_value *fact_read_list(struct as_reader *parent, const char *name,
                                        size_t *count_out)
{
    return check_count(parent, name, as_read_list(parent, name, count_out), count_out);
}

const struct tree_value *fact_read_map(struct as_reader *parent, const char *name,
                                       size_t *count_out)
{
    return check_count(parent, name, as_read_map(parent, name, count_out), count_out);
}

bool fact_get_bool(struct as_reader *parent, const char *name)
{
    bool value = false;

    as_read_bool(parent, name, &value);
    return value;
}

int64_t fact_get_i64(struct as_reader *parent, const char *name, int64_t low, int64_t high)
{
    int64_t number = 0;

    as_read_i64(parent, name, low, high, &number);
    return number;
}

as_maybe_time fact_get_time(struct as_reader *parent, const char *name)
{
    as_maybe_time time = {.set = false};

    if (*as_read_string(parent, name))
        as_read_time(parent, name, &time);
    return time;
}

/* Objects */

static const char *get_name(const struct tree_value *root, const char *key)
{
    const char *text = tree_get_text(tree_find(tree_find(root, "metadata"), key));
    return text ? text : "";
}

/* -EBADMSG where something could not be read: "pod shop/web-1: spec.priority: expected ...". */
static int check(const struct as_reader *root, enum as_cluster_kind kind, struct as_error *error)
{
    const char *namespace_ = kind == AS_CLUSTER_NODES ? "" : get_name(root->object, "namespace");
    const char *name = get_name(root->object, "name");

    if (as_read_result(root) == 0)
        return 0;
    as_error_wrap(error, "%s%s%.64s%s%.256s", kinds[kind].word, *name ? " " : "", namespace_,
                  *namespace_ ? "/" : "", name);
    return -EBADMSG;
}

static int put_node(struct fact_reader *reader, struct as_reader *root, struct as_error *error)
{
    struct as_node_fact node;

    fact_read_node(reader, root, &node);
    int status = check(root, AS_CLUSTER_NODES, error);
    return status < 0 ? status : as_cluster_facts_put_node(reader->facts, &node, error);
}

static int put_pod(struct fact_reader *reader, struct as_reader *root, struct as_error *error)
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

static int put_budget(struct fact_reader *reader, struct as_reader *root, struct as_error *error)
{
    struct as_budget_fact budget;

    fact_read_budget(reader, root, &budget);
    int status = check(root, AS_CLUSTER_BUDGETS, error);
    return status < 0 ? status : as_cluster_facts_put_budget(reader->facts, &budget, error);
}

static int put(struct fact_reader *reader, enum as_cluster_kind kind,
               const struct as_kube_bytes *bytes, struct as_error *error)
{
    AS_CLEANUP(tree_deinit) struct tree tree;
    struct as_reader root;
    int status = parse(&tree, kind, kinds[kind].parts, bytes, error);

    if (status < 0)
        return status;
    as_read_lenient(&root, tree.root, error);
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

    const int status = put(&reader, kind, bytes, error);

    as_arena_reset(scratch);
    return status;
}

int as_kube_fact_delete(struct as_cluster_facts *facts, enum as_cluster_kind kind,
                        const struct as_kube_bytes *bytes, struct as_error *error)
{
    AS_CLEANUP(tree_deinit) struct tree tree;
    struct as_reader root, metadata;
    int status = parse(&tree, kind, kinds[kind].name_parts, bytes, error);

    if (status < 0)
        return status;
    as_read_lenient(&root, tree.root, error);
    as_read_object(&metadata, &root, "metadata");
    const char *name = fact_read_name(&metadata, "name");
    const char *namespace_ = kind == AS_CLUSTER_NODES ? "" : fact_read_name(&metadata, "namespace");
    if ((status = check(&root, kind, error)) == 0)
        as_cluster_facts_delete(facts, kind, namespace_, name);
    return status;
}
