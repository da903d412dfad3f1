/*
 * The nodes behind the instances of a group, and the pods on these nodes. Which node is which
 * instance is found in listed nodes, or in the facts about the cluster. Nothing is changed: drain.c
 * changes nodes.
 */
#include <alertscaler/kube/nodes.h>

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>
#include <alertscaler/kube/kube_client.h>
#include <alertscaler/kube/kube_nodes.h>
#include <alertscaler/kube/target_outcome.h>

#include "kube_pods.h"

/* Lists */

static int nodes_take(void *into, const char *json, size_t size, char **next_out,
                      struct as_error *error)
{
    return as_kube_nodes_decode(into, json, size, next_out, error);
}

static void nodes_clear(void *into)
{
    as_kube_nodes_clear(into);
}

struct as_kube_pages *as_nodes_list(struct as_kube_client *client, const char *label,
                                    struct as_kube_nodes *nodes, as_kube_pages_done_fn *done,
                                    void *context)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf path = AS_BUF_INIT(AS_TARGET_URL_MAX);
    as_buf_append_str(&path, "/api/v1/nodes");
    if (label)
        as_kube_path_append_parameter(&path, "labelSelector", label);
    const struct as_kube_pages_spec spec = {
        .path = as_buf_check(&path) ? NULL : path.data,
        .trouble = "the node label is too long",
        .operation = "list_nodes",
        .what = "list nodes",
        .right = "nodes: list",
        .take = nodes_take,
        .clear = nodes_clear,
        .into = nodes,
        .done = done,
        .context = context,
    };
    *nodes = AS_KUBE_NODES_INIT(AS_NODES_MAX);
    return as_kube_pages_start(client, &spec);
}

static int node_pods_take(void *into, const char *json, size_t size, char **next_out,
                          struct as_error *error)
{
    return as_kube_node_pods_decode(into, json, size, next_out, error);
}

static void node_pods_clear(void *into)
{
    as_kube_node_pods_clear(into);
}

struct as_kube_pages *as_node_pods_list(struct as_kube_client *client, const char *node,
                                        struct as_kube_node_pods *pods, as_kube_pages_done_fn *done,
                                        void *context)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf path = AS_BUF_INIT(AS_TARGET_URL_MAX);
    char selector[AS_KUBE_POD_NAME_MAX + 32];
    snprintf(selector, sizeof(selector), "spec.nodeName=%s", node);
    as_buf_append_str(&path, "/api/v1/pods");
    as_kube_path_append_parameter(&path, "fieldSelector", selector);
    const struct as_kube_pages_spec spec = {
        .path = as_buf_check(&path) ? NULL : path.data,
        .trouble = "the node's name is too long for a request",
        .operation = "list_node_pods",
        .what = "list pods of a node",
        .right = "pods: list (in all namespaces)",
        .take = node_pods_take,
        .clear = node_pods_clear,
        .into = pods,
        .done = done,
        .context = context,
    };
    *pods = AS_KUBE_NODE_PODS_INIT(AS_NODE_PODS_MAX);
    return as_kube_pages_start(client, &spec);
}

/* Instances and their nodes. */

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

static void nodes_take_node(struct as_instance_node *found, const struct as_kube_node *node)
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
        nodes_take_node(found, &index->nodes[n]);
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

/* At most once. `nodes` have the labels, and are borrowed as long as `found` is read. */
static void instance_nodes_match(struct as_instance_nodes *of, const struct as_kube_node *nodes,
                                 size_t count)
{
    if (of->label && of->knows_nodes) {
        take_all(of, nodes, count);
        for (size_t i = 0; i < count; i++)
            nodes_take_node(&of->found[i], &nodes[i]);
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

static struct as_kube_node read_fact(const struct as_node_fact *fact)
{
    const int64_t *amount = fact->allocatable.amount;
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
        .allocatable = {[AS_RESOURCE_CPU] = fact->has_cpu ? (double)amount[AS_RES_CPU] / 1000 : NAN,
                        [AS_RESOURCE_MEMORY] =
                            fact->has_memory ? (double)amount[AS_RES_MEMORY] : NAN},
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
    instance_nodes_match(of, nodes, count);
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

/*
 * A reading of a group's nodes. First it lists all nodes, because the API cannot select them by
 * providerID, or the nodes with a label. Then it reads the pods on the group's nodes, a few nodes
 * at a time, and keeps sums and at most one text per node.
 */

struct reader { /* of one node's pods */
    struct as_nodes_reading *owner;
    struct as_kube_pages *list; /* NULL: free */
    size_t index;               /* of the instance */
    struct as_kube_node_pods pods;
};

/* Waits for the list of nodes, or for the lists of its readers. */
struct as_nodes_reading {
    struct as_kube_client *client;
    as_nodes_done_fn *done;
    void *context;
    bool with_pods;
    unsigned keep;
    struct as_instance_nodes of; /* the group */
    size_t next;                 /* the instance whose node is read next */
    struct as_kube_pages *pages;
    struct as_kube_nodes nodes;
    struct reader readers[AS_NODES_PARALLEL];
    struct as_arena texts;
    as_mono_time started_at;
};

static void free_reading(struct as_nodes_reading *reading)
{
    as_kube_nodes_deinit(&reading->nodes);
    as_instance_nodes_deinit(&reading->of);
    as_arena_deinit(&reading->texts);
    free(reading);
}

static void cancel_readers(struct as_nodes_reading *reading)
{
    for (size_t i = 0; i < AS_NODES_PARALLEL; i++) {
        if (reading->readers[i].list)
            as_kube_pages_cancel(reading->readers[i].list);
        as_kube_node_pods_deinit(&reading->readers[i].pods);
    }
}

void as_nodes_read_cancel(struct as_nodes_reading *reading)
{
    if (reading->pages)
        as_kube_pages_cancel(reading->pages);
    cancel_readers(reading);
    free_reading(reading);
}

static void nodes_finish(struct as_nodes_reading *reading, const struct as_outcome *outcome)
{
    const bool is_read = outcome->reason == AS_REASON_APPLIED;
    cancel_readers(reading);
    reading->done(reading->context, outcome, is_read ? reading->of.found : NULL,
                  is_read ? reading->of.count : 0);
    free_reading(reading);
}

/* Pods */

static void add_pods(struct as_nodes_reading *reading, struct as_candidate_node *node,
                     const struct as_kube_node_pods *pods)
{
    for (size_t i = 0; i < pods->count; i++) {
        const struct as_kube_node_pod *pod = &pods->items[i];
        node->pod_count += pod->fate == AS_KUBE_POD_EVICT;
        for (int j = 0; j < AS_RESOURCE_COUNT; j++)
            node->requests[j] += pod->requests[j];
        if (as_kube_node_pod_blocks(pod, reading->keep) && !node->blocking_pod)
            node->blocking_pod = as_arena_strdup(&reading->texts, pod->blocking);
    }
}

static void read_more(struct as_nodes_reading *reading);

static void pods_read(void *context, const struct as_outcome *outcome)
{
    struct reader *reader = context;
    struct as_nodes_reading *reading = reader->owner;
    const struct as_clock *clock = reading->client->env->clock;
    reader->list = NULL;
    if (outcome->reason != AS_REASON_APPLIED) {
        nodes_finish(reading, outcome);
        return;
    }
    add_pods(reading, &reading->of.found[reader->index].node, &reader->pods);
    as_kube_node_pods_deinit(&reader->pods);
    if (clock->get_mono(clock).us - reading->started_at.us >= AS_NODES_TIMEOUT_US) {
        struct as_outcome late;
        as_outcome_init_local(&late, AS_REASON_TIMEOUT,
                              "list pods of nodes: all of them together take too long");
        nodes_finish(reading, &late);
        return;
    }
    read_more(reading);
}

/* The next instance with a node; `count` if there is none. */
static size_t take_next(struct as_nodes_reading *reading)
{
    while (reading->next < reading->of.count && (!reading->of.found[reading->next].is_found ||
                                                 reading->of.found[reading->next].is_ambiguous))
        reading->next++;
    return reading->next < reading->of.count ? reading->next++ : reading->of.count;
}

static void read_more(struct as_nodes_reading *reading)
{
    bool is_reading = false;
    for (size_t i = 0; i < AS_NODES_PARALLEL; i++) {
        struct reader *reader = &reading->readers[i];
        if (!reader->list && (reader->index = take_next(reading)) < reading->of.count)
            reader->list =
                as_node_pods_list(reading->client, reading->of.found[reader->index].node.name,
                                  &reader->pods, pods_read, reader);
        is_reading = is_reading || reader->list;
    }
    if (!is_reading)
        nodes_finish(reading,
                     &(struct as_outcome){.reason = AS_REASON_APPLIED, .http_status = 200});
}

/* Nodes */

static void nodes_read(void *context, const struct as_outcome *outcome)
{
    struct as_nodes_reading *reading = context;
    reading->pages = NULL;
    if (outcome->reason == AS_REASON_APPLIED)
        instance_nodes_match(&reading->of, reading->nodes.items, reading->nodes.count);
    if (outcome->reason != AS_REASON_APPLIED || !reading->with_pods)
        nodes_finish(reading, outcome);
    else
        read_more(reading);
}

static struct as_nodes_reading *new_reading(struct as_kube_client *client, unsigned keep,
                                            as_nodes_done_fn *done, void *context)
{
    struct as_nodes_reading *reading = as_xcalloc(1, sizeof(*reading));
    reading->client = client;
    reading->done = done;
    reading->context = context;
    reading->keep = keep;
    for (size_t i = 0; i < AS_NODES_PARALLEL; i++)
        reading->readers[i].owner = reading;
    reading->started_at = client->env->clock->get_mono(client->env->clock);
    return reading;
}

struct as_nodes_reading *as_nodes_read_start(struct as_kube_client *client,
                                             const struct as_group_view *view, bool with_pods,
                                             unsigned keep, as_nodes_done_fn *done, void *context)
{
    struct as_nodes_reading *reading = new_reading(client, keep, done, context);
    reading->with_pods = with_pods;
    as_instance_nodes_init(&reading->of, view);
    reading->pages = as_nodes_list(client, view->node_label, &reading->nodes, nodes_read, reading);
    return reading;
}

struct as_nodes_reading *as_nodes_read_pods_start(struct as_kube_client *client,
                                                  struct as_instance_nodes *of, unsigned keep,
                                                  as_nodes_done_fn *done, void *context)
{
    struct as_nodes_reading *reading = new_reading(client, keep, done, context);
    reading->of = *of;
    *of = (struct as_instance_nodes){.texts = AS_ARENA_INIT};
    for (size_t i = 0; i < reading->of.count; i++) {
        struct as_candidate_node *node = &reading->of.found[i].node;
        node->name = as_arena_strdup(&reading->texts, node->name);
        node->keep = as_arena_strdup(&reading->texts, node->keep);
    }
    read_more(reading);
    return reading;
}
