/*
 * Instances and their nodes: see the header.
 */
#include <alertscaler/kube/instance_nodes.h>

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>

#define NOBODY SIZE_MAX

bool as_node_is_instance(const char *node_provider_id, const char *provider_id)
{
    const size_t size = strlen(node_provider_id), wanted = strlen(provider_id);
    const bool any_case = as_str_starts_with(node_provider_id, "azure://");
    if (wanted == 0 || wanted > size)
        return false;
    const char *end = node_provider_id + size - wanted;
    if (any_case ? strcasecmp(end, provider_id) != 0 : strcmp(end, provider_id) != 0)
        return false;
    return end == node_provider_id || *provider_id == '/' || end[-1] == '/' || end[-1] == '.';
}

/* The text behind the last '/' or '.': equal, ignoring case, if one providerID ends with
 * another. */
static const char *get_key(const char *provider_id)
{
    const char *key = provider_id;
    for (const char *at = provider_id; *at; at++)
        if (*at == '/' || *at == '.')
            key = at + 1;
    return key;
}

struct keyed {
    const char *key;
    size_t node;
};

static int compare_keyed(const void *a, const void *b)
{
    return strcasecmp(((const struct keyed *)a)->key, ((const struct keyed *)b)->key);
}

/* The first entry with the key. */
static size_t find_keyed(const struct keyed *keys, size_t count, const char *key)
{
    size_t low = 0, high = count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (strcasecmp(keys[middle].key, key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void take_node(struct as_instance_node *found, const struct as_kube_node *node)
{
    found->is_found = true;
    found->node = (struct as_candidate_node){
        .name = node->name,
        .is_ready = node->is_ready,
        .is_cordoned = node->is_cordoned,
        .keep = node->keep,
    };
    memcpy(found->node.allocatable, node->allocatable, sizeof(node->allocatable));
    found->created = node->created;
    found->mark = node->is_marked ? &node->mark : NULL;
}

struct index { /* of the nodes */
    const struct as_kube_node *nodes;
    size_t count;
    struct keyed *keys; /* ascending */
    size_t *owners;     /* by node: its instance */
};

static void match_one(struct as_instance_nodes *of, size_t i, const struct index *index)
{
    const char *wanted = of->instances[i].provider_id;
    const char *key = get_key(wanted);
    struct as_instance_node *found = &of->found[i];
    size_t at = find_keyed(index->keys, index->count, key);
    for (; at < index->count && strcasecmp(index->keys[at].key, key) == 0; at++) {
        const size_t n = index->keys[at].node;
        size_t *owner = &index->owners[n];
        if (!as_node_is_instance(index->nodes[n].provider_id, wanted))
            continue;
        found->is_ambiguous = found->is_ambiguous || found->is_found || *owner != NOBODY;
        if (*owner != NOBODY)
            of->found[*owner].is_ambiguous = true;
        *owner = i;
        take_node(found, &index->nodes[n]);
    }
}

/* Clocks of providers and API servers differ by less. */
#define SKEW_US AS_US_PER_MIN

/* A node without a providerID that is not older than an instance without a node may be that
 * instance: it must not be taken for one that never became a node. */
static void doubt_others(struct as_instance_nodes *of, const struct as_kube_node *nodes,
                         size_t count)
{
    int64_t newest = INT64_MIN;
    for (size_t i = 0; i < count; i++) {
        const struct as_kube_node *node = &nodes[i];
        const int64_t created = node->created.set ? node->created.at.us : INT64_MAX;
        if (as_str_is_empty(node->provider_id) && created > newest)
            newest = created;
    }
    for (size_t i = 0; i < of->count && newest > INT64_MIN; i++) {
        const struct as_instance *instance = &of->instances[i];
        if (!of->found[i].is_found && instance->state != AS_INSTANCE_FAILED &&
            (!instance->created.set || instance->created.at.us <= as_time_add(newest, SKEW_US)))
            of->found[i].may_be_nameless = true;
    }
}

static void make_found(struct as_instance_nodes *of)
{
    of->found = as_xcalloc(of->count + 1, sizeof(*of->found));
    for (size_t i = 0; i < of->count; i++)
        of->found[i].instance = &of->instances[i];
}

/* The nodes are the instances. Who knows no nodes needs the name at the end of the providerID. */
static void take_all(struct as_instance_nodes *of, const struct as_kube_node *nodes, size_t count)
{
    of->instances = as_xcalloc(count + 1, sizeof(*of->instances));
    for (size_t i = 0; i < count; i++) {
        const struct as_kube_node *node = &nodes[i];
        if (!of->knows_nodes && as_str_is_empty(node->provider_id))
            continue;
        of->instances[of->count++] = (struct as_instance){
            .id = of->knows_nodes ? node->name : get_key(node->provider_id),
            .provider_id = node->provider_id,
            .zone = node->zone,
            .state = AS_INSTANCE_RUNNING,
            .created = node->created,
        };
    }
    make_found(of);
}

void as_instance_nodes_match(struct as_instance_nodes *of, const struct as_kube_node *nodes,
                             size_t count)
{
    if (of->label && of->knows_nodes) {
        take_all(of, nodes, count);
        for (size_t i = 0; i < count; i++)
            take_node(&of->found[i], &nodes[i]);
        return;
    }
    const struct index index = {.nodes = nodes,
                                .count = count,
                                .keys = as_xcalloc(count + 1, sizeof(*index.keys)),
                                .owners = as_xcalloc(count + 1, sizeof(*index.owners))};
    if (of->label)
        take_all(of, nodes, count);
    for (size_t i = 0; i < count; i++) {
        index.keys[i] = (struct keyed){get_key(nodes[i].provider_id), i};
        index.owners[i] = NOBODY;
    }
    qsort(index.keys, count, sizeof(*index.keys), compare_keyed);
    for (size_t i = 0; i < of->count; i++)
        match_one(of, i, &index);
    doubt_others(of, nodes, count);
    free(index.keys);
    free(index.owners);
}

/* ---- facts ---- */

/* Choosing, which needs the zone and what is allocatable, reads a node anew. */
static struct as_kube_node read_fact(const struct as_node_fact *fact)
{
    return (struct as_kube_node){
        .name = fact->name,
        .provider_id = fact->provider_id,
        .zone = "",
        .created = {.set = true, .at = fact->created},
        .is_ready = fact->is_ready,
        .is_cordoned = fact->is_cordoned,
        .is_marked = fact->leaving & AS_NODE_LEAVING_OURS,
        .mark = {.owner = "", .decision = "", .target = ""},
        .keep = fact->keep,
        .allocatable = {NAN, NAN},
    };
}

/* The labels of as_group_view.node_label. */
static size_t parse_wanted(struct as_arena *arena, const char *text, struct as_label **wanted_out)
{
    char *at = as_arena_strdup(arena, text ? text : "");
    struct as_label *wanted = as_arena_alloc(arena, strlen(at) / 2 + 1, sizeof(*wanted));
    size_t count = 0;
    while (*at) {
        char *value = strchr(at, '='), *end = value + strcspn(value, ",");
        const bool is_last = *end == '\0';
        *value = *end = '\0';
        wanted[count++] = (struct as_label){.name = at, .value = value + 1};
        at = is_last ? end : end + 1;
    }
    *wanted_out = wanted;
    return count;
}

static bool has_labels(const struct as_node_fact *fact, const struct as_label *wanted, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!as_str_equal(as_labels_find(fact->labels, wanted[i].name), wanted[i].value))
            return false;
    return true;
}

void as_instance_nodes_match_facts(struct as_instance_nodes *of, const struct as_cluster *cluster)
{
    struct as_kube_node *nodes = as_arena_alloc(&of->texts, cluster->node_count, sizeof(*nodes));
    struct as_label *wanted;
    const size_t wanted_count = parse_wanted(&of->texts, of->label, &wanted);
    size_t count = 0;
    for (size_t i = 0; i < cluster->node_count; i++) {
        const struct as_node_fact *fact = &cluster->nodes[i];
        if (has_labels(fact, wanted, wanted_count))
            nodes[count++] = read_fact(fact);
    }
    as_instance_nodes_match(of, nodes, count);
}

/* ---- the group ---- */

static void copy_instances(struct as_instance_nodes *of, const struct as_group_view *view)
{
    of->count = view->instance_count;
    of->instances = as_xcalloc(of->count + 1, sizeof(*of->instances));
    for (size_t i = 0; i < of->count; i++) {
        const struct as_instance *given = &view->instances[i];
        const bool has_own = !as_str_is_empty(given->provider_id);
        of->instances[i] = *given;
        of->instances[i].id = as_arena_strdup(&of->texts, given->id);
        of->instances[i].provider_id =
            as_arena_strdup(&of->texts, has_own ? given->provider_id : given->id);
        of->instances[i].zone = as_arena_strdup(&of->texts, given->zone ? given->zone : "");
    }
    make_found(of);
}

void as_instance_nodes_init(struct as_instance_nodes *of, const struct as_group_view *view)
{
    *of = (struct as_instance_nodes){.texts = AS_ARENA_INIT};
    of->label = view->node_label ? as_arena_strdup(&of->texts, view->node_label) : NULL;
    of->knows_nodes = view->knows_nodes;
    if (!of->label)
        copy_instances(of, view);
}

void as_instance_nodes_deinit(struct as_instance_nodes *of)
{
    as_arena_deinit(&of->texts);
    free(of->instances);
    free(of->found);
}
