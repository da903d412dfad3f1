/*
 * The facts of one cluster: see the header.
 *
 * Pods stand in an array without gaps, in no order, and are found by hash tables; the last pod
 * fills the place of a deleted one. There are several tables because one that grows moves all that
 * it has: in a table of all pods that takes longer than a turn of the event loop may last. Nodes
 * and budgets are sorted. A pod holds the slot of its node's name, and the slot knows the node's
 * rank: so a change of a pod touches nothing else. A change of the set of nodes makes the ranks
 * stale; the next view renews them, in all pods.
 */
#include <alertscaler/cluster/cluster_facts.h>

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define uthash_fatal(msg) abort() /* as for each small allocation of ours */
#include <uthash.h>

#include <alertscaler/base/alloc.h>

#include "fact_block.h"
#include "fact_rows.h"
#include "label_keys.h"
#include "node_names.h"
#include "pod_shapes.h"

#define KEY_SIZE   (2 * AS_CLUSTER_NAME_MAX + 2)
#define TABLE_BITS 5 /* of a hash, the highest: its table */
#define TABLES     (1 << TABLE_BITS)

struct pod {
    UT_hash_handle hh;
    uint32_t place; /* among all */
    uint32_t list;  /* that named it last */
    char key[];     /* "namespace/name" */
};

struct place { /* beside a pod's fact */
    struct pod *pod;
    uint32_t node, nominated; /* slots */
};

struct as_cluster_facts {
    size_t bytes_max;
    struct as_cluster view;
    struct fact_rows nodes, budgets;
    struct as_pod_fact *pods;
    struct place *places;
    size_t pod_count, pod_capacity, place_capacity;
    struct pod *tables[TABLES];
    size_t pod_bytes; /* of struct pod */
    struct node_names names;
    struct pod_shapes shapes;
    struct label_keys keys; /* of the pods' labels that are kept */
    bool lacks_labels;
    char *resource_names[AS_RES_MAX];
    uint32_t list[AS_CLUSTER_KIND_COUNT]; /* its number */
    bool is_known[AS_CLUSTER_KIND_COUNT];
    bool is_stale; /* ranks */
    bool is_full;  /* the limit was reached */
};

static const char *const kinds[] = {"nodes", "pods", "budgets"};

static size_t measure_tables(const struct as_cluster_facts *facts)
{
    size_t bytes = 0;

    for (size_t i = 0; i < TABLES; i++)
        bytes += HASH_OVERHEAD(hh, facts->tables[i]);
    return bytes - facts->pod_count * sizeof(UT_hash_handle); /* which are part of the pods */
}

size_t as_cluster_facts_measure(const struct as_cluster_facts *facts)
{
    return sizeof(*facts) + fact_rows_measure(&facts->nodes) + fact_rows_measure(&facts->budgets) +
           facts->pod_capacity * sizeof(struct as_pod_fact) +
           facts->place_capacity * sizeof(struct place) + facts->pod_bytes + measure_tables(facts) +
           node_names_measure(&facts->names) + pod_shapes_measure(&facts->shapes) +
           label_keys_measure(&facts->keys);
}

/* "namespace/name" */
static size_t make_key(char key[KEY_SIZE], const char *namespace_, const char *name)
{
    const size_t namespace_size = strlen(namespace_), name_size = strlen(name);

    assert(namespace_size <= AS_CLUSTER_NAME_MAX && name_size <= AS_CLUSTER_NAME_MAX);
    memcpy(key, namespace_, namespace_size);
    key[namespace_size] = '/';
    memcpy(key + namespace_size + 1, name, name_size + 1);
    return namespace_size + 1 + name_size;
}

/* Pods */

static struct pod **get_table(struct as_cluster_facts *facts, unsigned hash)
{
    return &facts->tables[hash >> (32 - TABLE_BITS)];
}

static struct pod *find_pod(struct as_cluster_facts *facts, const char *key, size_t size)
{
    struct pod *pod;
    unsigned hash;

    HASH_VALUE(key, size, hash);
    HASH_FIND_BYHASHVALUE(hh, *get_table(facts, hash), key, size, hash, pod);
    return pod;
}

static size_t measure_pod(const struct pod *pod)
{
    return sizeof(*pod) + strlen(pod->key) + 1 + AS_ALLOC_EXTRA;
}

static struct pod *add_pod(struct as_cluster_facts *facts, const char *key, size_t size)
{
    struct pod *pod = as_xcalloc(1, sizeof(*pod) + size + 1);
    unsigned hash;

    memcpy(pod->key, key, size);
    facts->pods =
        as_xgrow(facts->pods, facts->pod_count, &facts->pod_capacity, sizeof(*facts->pods));
    facts->places =
        as_xgrow(facts->places, facts->pod_count, &facts->place_capacity, sizeof(*facts->places));
    pod->place = (uint32_t)facts->pod_count++;
    facts->places[pod->place] = (struct place){.pod = pod};
    HASH_VALUE(key, size, hash);
    struct pod **table = get_table(facts, hash);
    HASH_ADD_KEYPTR_BYHASHVALUE(hh, *table, pod->key, size, hash, pod);
    facts->pod_bytes += measure_pod(pod);
    return pod;
}

/* What the place held before is released after the new one is taken: mostly they are the same. */
static void set_pod(struct as_cluster_facts *facts, struct pod *pod, const struct as_pod_put *put,
                    const struct as_pod_shape *former)
{
    struct place *place = &facts->places[pod->place];
    struct as_pod_fact *fact = &facts->pods[pod->place];
    const struct place before = *place;
    struct as_pod_shape shape = *put->fact.shape;

    shape.labels = label_keys_filter(&facts->keys, shape.labels);
    *fact = put->fact;
    fact->shape = pod_shapes_take(&facts->shapes, &shape);
    fact->namespace_ = fact->shape->namespace_;
    fact->name = strchr(pod->key, '/') + 1;
    fact->is_bound = put->node != NULL;
    place->node = node_names_take(&facts->names, put->node);
    place->nominated = node_names_take(&facts->names, put->nominated);
    fact->node = facts->names.ranks ? facts->names.ranks[place->node] : AS_NO_NODE;
    fact->nominated = facts->names.ranks ? facts->names.ranks[place->nominated] : AS_NO_NODE;
    node_names_release(&facts->names, before.node);
    node_names_release(&facts->names, before.nominated);
    if (former)
        pod_shapes_release(&facts->shapes, former);
}

static void delete_pod(struct as_cluster_facts *facts, struct pod *pod)
{
    const size_t last = --facts->pod_count;
    struct pod **table = get_table(facts, pod->hh.hashv);

    node_names_release(&facts->names, facts->places[pod->place].node);
    node_names_release(&facts->names, facts->places[pod->place].nominated);
    pod_shapes_release(&facts->shapes, facts->pods[pod->place].shape);
    facts->pods[pod->place] = facts->pods[last];
    facts->places[pod->place] = facts->places[last];
    facts->places[pod->place].pod->place = pod->place;
    facts->pod_bytes -= measure_pod(pod);
    HASH_DEL(*table, pod);
    free(pod);
}

/* Nodes and budgets */

static void copy_node(struct fact_block *block, struct as_node_fact *node)
{
    node->taints = fact_block_taints(block, node->taints, node->taint_count);
    node->name = fact_block_text(block, node->name);
    node->provider_id = fact_block_text(block, node->provider_id);
    node->keep = fact_block_text(block, node->keep);
}

static void put_node(struct as_cluster_facts *facts, const struct as_node_fact *node)
{
    struct as_node_fact copy = *node;
    struct fact_block block = {.base = NULL};
    struct fact_row row = {.list = facts->list[AS_CLUSTER_NODES]};
    size_t place;

    copy_node(&block, &copy);
    copy = *node;
    row.block_size = block.used;
    row.block = as_xmalloc(row.block_size);
    block = (struct fact_block){.base = row.block};
    copy_node(&block, &copy);
    row.key = copy.name;
    copy.labels = row.labels = as_labels_copy(node->labels);
    if (fact_rows_find(&facts->nodes, copy.name, &place)) {
        row.slot = facts->nodes.rows[place].slot;
        fact_rows_replace(&facts->nodes, place, &row, &copy);
    } else {
        row.slot = node_names_take(&facts->names, copy.name);
        fact_rows_insert(&facts->nodes, place, &row, &copy);
        facts->is_stale = true;
    }
}

/* The rows are to be compacted. */
static void drop_node(struct as_cluster_facts *facts, size_t place)
{
    const uint32_t slot = facts->nodes.rows[place].slot;

    fact_rows_drop(&facts->nodes, place);
    facts->names.ranks[slot] = AS_NO_NODE;
    node_names_release(&facts->names, slot);
    facts->is_stale = true;
}

static const char *copy_budget(struct fact_block *block, struct as_budget_fact *budget,
                               const char *key)
{
    budget->requirements = fact_block_requirements(block, budget->requirements, budget->count);
    budget->namespace_ = fact_block_text(block, budget->namespace_);
    budget->name = fact_block_text(block, budget->name);
    return fact_block_text(block, key);
}

static void put_budget(struct as_cluster_facts *facts, const struct as_budget_fact *budget)
{
    struct as_budget_fact copy = *budget;
    struct fact_block block = {.base = NULL};
    struct fact_row row = {.list = facts->list[AS_CLUSTER_BUDGETS]};
    char key[KEY_SIZE];
    size_t place;

    make_key(key, budget->namespace_, budget->name);
    copy_budget(&block, &copy, key);
    copy = *budget;
    row.block_size = block.used;
    row.block = as_xmalloc(row.block_size);
    block = (struct fact_block){.base = row.block};
    row.key = copy_budget(&block, &copy, key);
    if (label_keys_add(&facts->keys, budget) && facts->pod_count > 0)
        facts->lacks_labels = true;
    if (fact_rows_find(&facts->budgets, key, &place))
        fact_rows_replace(&facts->budgets, place, &row, &copy);
    else
        fact_rows_insert(&facts->budgets, place, &row, &copy);
}

/* Life */

struct as_cluster_facts *as_cluster_facts_new(const struct as_cluster_facts_limits *limits)
{
    struct as_cluster_facts *facts = as_xcalloc(1, sizeof(*facts));

    facts->bytes_max = limits->bytes;
    facts->nodes.size = sizeof(struct as_node_fact);
    facts->budgets.size = sizeof(struct as_budget_fact);
    facts->shapes = POD_SHAPES_INIT;
    facts->keys = (struct label_keys){.scratch = AS_ARENA_INIT};
    facts->view.resources.count = AS_RES_NAMED;
    return facts;
}

static void forget_all(struct as_cluster_facts *facts)
{
    while (as_cluster_facts_forget_pods(facts, SIZE_MAX))
        ;
    for (size_t i = 0; i < facts->nodes.count; i++)
        drop_node(facts, i);
    for (size_t i = 0; i < facts->budgets.count; i++)
        fact_rows_drop(&facts->budgets, i);
    fact_rows_compact(&facts->nodes);
    fact_rows_compact(&facts->budgets);
    fact_rows_deinit(&facts->nodes);
    fact_rows_deinit(&facts->budgets);
    node_names_deinit(&facts->names);
    pod_shapes_deinit(&facts->shapes);
    label_keys_deinit(&facts->keys);
    facts->shapes = POD_SHAPES_INIT;
    facts->lacks_labels = false;
    free(facts->pods);
    free(facts->places);
    facts->pods = NULL;
    facts->places = NULL;
    facts->pod_capacity = facts->place_capacity = 0;
}

bool as_cluster_facts_forget_pods(struct as_cluster_facts *facts, size_t most)
{
    for (; most > 0 && facts->pod_count > 0; most--)
        delete_pod(facts, facts->places[facts->pod_count - 1].pod);
    return facts->pod_count > 0;
}

void as_cluster_facts_clear(struct as_cluster_facts *facts)
{
    forget_all(facts);
    for (size_t i = AS_RES_NAMED; i < facts->view.resources.count; i++)
        free(facts->resource_names[i]);
    facts->view = (struct as_cluster){.resources = {.count = AS_RES_NAMED}};
    memset(facts->is_known, 0, sizeof(facts->is_known));
    facts->is_full = false;
}

struct as_cluster_facts *as_cluster_facts_free(struct as_cluster_facts *facts)
{
    if (facts)
        as_cluster_facts_clear(facts);
    free(facts);
    return NULL;
}

int as_cluster_facts_name_resource(struct as_cluster_facts *facts, const char *name)
{
    struct as_res_names *names = &facts->view.resources;

    for (size_t i = AS_RES_NAMED; i < names->count; i++) {
        if (strcmp(names->name[i], name) == 0)
            return (int)i;
    }
    if (names->count == AS_RES_MAX)
        return -1;
    facts->resource_names[names->count] = as_xstrdup(name);
    names->name[names->count] = facts->resource_names[names->count];
    return (int)names->count++;
}

/* Changes */

void as_cluster_facts_begin_list(struct as_cluster_facts *facts, enum as_cluster_kind kind)
{
    facts->list[kind]++;
    if (kind == AS_CLUSTER_PODS)
        facts->lacks_labels = false;
}

bool as_cluster_facts_lacks_labels(const struct as_cluster_facts *facts)
{
    return facts->lacks_labels;
}

static void end_list_of_nodes(struct as_cluster_facts *facts)
{
    for (size_t i = 0; i < facts->nodes.count; i++) {
        if (facts->nodes.rows[i].list != facts->list[AS_CLUSTER_NODES])
            drop_node(facts, i);
    }
    fact_rows_compact(&facts->nodes);
}

/* From the end: the last pod, which fills a place, is one that stays. */
static void end_list_of_pods(struct as_cluster_facts *facts)
{
    for (size_t i = facts->pod_count; i-- > 0;) {
        if (facts->places[i].pod->list != facts->list[AS_CLUSTER_PODS])
            delete_pod(facts, facts->places[i].pod);
    }
}

static void end_list_of_budgets(struct as_cluster_facts *facts)
{
    for (size_t i = 0; i < facts->budgets.count; i++) {
        if (facts->budgets.rows[i].list != facts->list[AS_CLUSTER_BUDGETS])
            fact_rows_drop(&facts->budgets, i);
    }
    fact_rows_compact(&facts->budgets);
}

void as_cluster_facts_end_list(struct as_cluster_facts *facts, enum as_cluster_kind kind)
{
    static void (*const end[])(struct as_cluster_facts *) = {
        [AS_CLUSTER_NODES] = end_list_of_nodes,
        [AS_CLUSTER_PODS] = end_list_of_pods,
        [AS_CLUSTER_BUDGETS] = end_list_of_budgets,
    };

    end[kind](facts);
    facts->is_known[kind] = true;
}

static int refuse(const struct as_cluster_facts *facts, struct as_error *error)
{
    as_error_set(error, "the cluster's nodes, pods and budgets need more than %zu bytes of memory",
                 facts->bytes_max);
    return -E2BIG;
}

static int check_room(struct as_cluster_facts *facts, struct as_error *error)
{
    if (as_cluster_facts_measure(facts) <= facts->bytes_max)
        return 0;
    facts->is_full = true;
    return refuse(facts, error);
}

int as_cluster_facts_put_node(struct as_cluster_facts *facts, const struct as_node_fact *node,
                              struct as_error *error)
{
    if (facts->is_full)
        return refuse(facts, error);
    put_node(facts, node);
    return check_room(facts, error);
}

int as_cluster_facts_put_pod(struct as_cluster_facts *facts, const struct as_pod_put *put,
                             struct as_error *error)
{
    char key[KEY_SIZE];

    if (facts->is_full)
        return refuse(facts, error);
    const size_t size = make_key(key, put->fact.namespace_, put->fact.name);
    struct pod *pod = find_pod(facts, key, size);
    const struct as_pod_shape *former = pod ? facts->pods[pod->place].shape : NULL;
    if (!pod)
        pod = add_pod(facts, key, size);
    pod->list = facts->list[AS_CLUSTER_PODS];
    set_pod(facts, pod, put, former);
    return check_room(facts, error);
}

int as_cluster_facts_put_budget(struct as_cluster_facts *facts, const struct as_budget_fact *budget,
                                struct as_error *error)
{
    if (facts->is_full)
        return refuse(facts, error);
    put_budget(facts, budget);
    return check_room(facts, error);
}

void as_cluster_facts_delete(struct as_cluster_facts *facts, enum as_cluster_kind kind,
                             const char *namespace_, const char *name)
{
    char key[KEY_SIZE];
    size_t place;

    if (kind == AS_CLUSTER_NODES) {
        if (fact_rows_find(&facts->nodes, name, &place))
            drop_node(facts, place);
        fact_rows_compact(&facts->nodes);
        return;
    }
    const size_t size = make_key(key, namespace_, name);
    if (kind == AS_CLUSTER_BUDGETS) {
        if (fact_rows_find(&facts->budgets, key, &place))
            fact_rows_drop(&facts->budgets, place);
        fact_rows_compact(&facts->budgets);
        return;
    }
    struct pod *pod = find_pod(facts, key, size);
    if (pod)
        delete_pod(facts, pod);
}

/* The view */

static void renew_ranks(struct as_cluster_facts *facts)
{
    const uint32_t *ranks = facts->names.ranks;

    for (size_t i = 0; i < facts->nodes.count; i++)
        facts->names.ranks[facts->nodes.rows[i].slot] = (uint32_t)i;
    for (size_t i = 0; ranks && i < facts->pod_count; i++) {
        facts->pods[i].node = ranks[facts->places[i].node];
        facts->pods[i].nominated = ranks[facts->places[i].nominated];
    }
    facts->is_stale = false;
}

const struct as_cluster *as_cluster_facts_view(struct as_cluster_facts *facts,
                                               struct as_error *error)
{
    if (facts->is_full && refuse(facts, error) < 0)
        return NULL;
    for (size_t i = 0; i < AS_CLUSTER_KIND_COUNT; i++) {
        if (facts->is_known[i])
            continue;
        as_error_set(error, "the cluster's %s have not been listed yet", kinds[i]);
        return NULL;
    }
    if (facts->is_stale)
        renew_ranks(facts);
    facts->view.nodes = (const struct as_node_fact *)facts->nodes.facts;
    facts->view.node_count = facts->nodes.count;
    facts->view.pods = facts->pods;
    facts->view.pod_count = facts->pod_count;
    facts->view.budgets = (const struct as_budget_fact *)facts->budgets.facts;
    facts->view.budget_count = facts->budgets.count;
    return &facts->view;
}
