/*
 * The nodes behind the instances of a group: see the header. First it lists all nodes, because the
 * API cannot select them by providerID, or the nodes with a label. Then it reads the pods on the
 * group's nodes, a few nodes at a time, and keeps sums and at most one text per node.
 */
#include "nodes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <alertscaler/access/kube_path.h>
#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>
#include <alertscaler/target/limits.h>
#include <alertscaler/wire/kube_nodes.h>

#include "kubernetes/kube_pages.h"
#include "node_pods.h"

#define NOBODY SIZE_MAX

struct reader { /* of one node's pods */
    struct as_nodes_reading *owner;
    struct as_node_pod_list *list; /* NULL: free */
    size_t index;                  /* of the instance */
};

/* Waits for the list of nodes, or for the lists of its readers. */
struct as_nodes_reading {
    struct as_kube_client *client;
    as_nodes_done_fn *done;
    void *context;
    bool with_pods;
    size_t count;
    struct as_instance *instances;  /* our own copy */
    struct as_instance_node *found; /* one per instance */
    bool is_by_label;               /* the listed nodes are the instances */
    size_t next;                    /* the instance whose node is read next */
    struct as_kube_pages *pages;
    struct as_kube_nodes nodes;
    struct reader readers[AS_NODES_PARALLEL];
    struct as_arena texts;
    as_mono_time started_at;
};

static void free_reading(struct as_nodes_reading *reading)
{
    as_kube_nodes_deinit(&reading->nodes);
    as_arena_deinit(&reading->texts);
    free(reading->instances);
    free(reading->found);
    free(reading);
}

static void cancel_readers(struct as_nodes_reading *reading)
{
    for (size_t i = 0; i < AS_NODES_PARALLEL; i++)
        if (reading->readers[i].list)
            as_node_pod_list_cancel(reading->readers[i].list);
}

void as_nodes_read_cancel(struct as_nodes_reading *reading)
{
    if (reading->pages)
        as_kube_pages_cancel(reading->pages);
    cancel_readers(reading);
    free_reading(reading);
}

static void finish(struct as_nodes_reading *reading, const struct as_outcome *outcome)
{
    const bool is_read = outcome->reason == AS_REASON_APPLIED;
    cancel_readers(reading);
    reading->done(reading->context, outcome, is_read ? reading->found : NULL,
                  is_read ? reading->count : 0);
    free_reading(reading);
}

/* Who is who */

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
    found->mark = node->is_marked ? &node->mark : NULL;
}

static void make_found(struct as_nodes_reading *reading)
{
    reading->found = as_xcalloc(reading->count + 1, sizeof(*reading->found));
    for (size_t i = 0; i < reading->count; i++)
        reading->found[i].instance = &reading->instances[i];
}

static void match_one(struct as_nodes_reading *reading, size_t i, const struct keyed *keys,
                      size_t *owners)
{
    const char *wanted = reading->instances[i].provider_id;
    const char *key = get_key(wanted);
    struct as_instance_node *found = &reading->found[i];
    size_t at = find_keyed(keys, reading->nodes.count, key);
    for (; at < reading->nodes.count && strcasecmp(keys[at].key, key) == 0; at++) {
        const size_t n = keys[at].node;
        const struct as_kube_node *node = &reading->nodes.items[n];
        if (!as_node_is_instance(node->provider_id, wanted))
            continue;
        found->is_ambiguous = found->is_ambiguous || found->is_found || owners[n] != NOBODY;
        if (owners[n] != NOBODY)
            reading->found[owners[n]].is_ambiguous = true;
        owners[n] = i;
        take_node(found, node);
    }
}

static void match(struct as_nodes_reading *reading)
{
    const size_t count = reading->nodes.count;
    struct keyed *keys = as_xcalloc(count + 1, sizeof(*keys));
    size_t *owners = as_xcalloc(count + 1, sizeof(*owners));
    for (size_t i = 0; i < count; i++) {
        keys[i] = (struct keyed){get_key(reading->nodes.items[i].provider_id), i};
        owners[i] = NOBODY;
    }
    qsort(keys, count, sizeof(*keys), compare_keyed);
    for (size_t i = 0; i < reading->count; i++)
        match_one(reading, i, keys, owners);
    free(keys);
    free(owners);
}

/* The nodes are the instances. Without a providerID the provider does not know a node's name. */
static void take_all(struct as_nodes_reading *reading)
{
    const size_t count = reading->nodes.count;
    reading->instances = as_xcalloc(count + 1, sizeof(*reading->instances));
    for (size_t i = 0; i < count; i++) {
        const struct as_kube_node *node = &reading->nodes.items[i];
        if (as_str_is_empty(node->provider_id))
            continue;
        reading->instances[reading->count++] = (struct as_instance){
            .id = get_key(node->provider_id),
            .provider_id = node->provider_id,
            .zone = node->zone,
            .state = AS_INSTANCE_RUNNING,
            .created = node->created,
        };
    }
    make_found(reading);
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
        if (pod->blocking && !node->blocking_pod)
            node->blocking_pod = as_arena_strdup(&reading->texts, pod->blocking);
    }
}

static void read_more(struct as_nodes_reading *reading);

static void pods_read(void *context, const struct as_outcome *outcome,
                      const struct as_kube_node_pods *pods)
{
    struct reader *reader = context;
    struct as_nodes_reading *reading = reader->owner;
    const struct as_clock *clock = reading->client->env->clock;
    reader->list = NULL;
    if (outcome->reason != AS_REASON_APPLIED) {
        finish(reading, outcome);
        return;
    }
    add_pods(reading, &reading->found[reader->index].node, pods);
    if (clock->get_mono(clock).us - reading->started_at.us >= AS_NODES_TIMEOUT_US) {
        struct as_outcome late;
        as_outcome_init_local(&late, AS_REASON_TIMEOUT,
                              "list pods of nodes: all of them together take too long");
        finish(reading, &late);
        return;
    }
    read_more(reading);
}

/* The next instance with a node; `count` if there is none. */
static size_t take_next(struct as_nodes_reading *reading)
{
    while (reading->next < reading->count &&
           (!reading->found[reading->next].is_found || reading->found[reading->next].is_ambiguous))
        reading->next++;
    return reading->next < reading->count ? reading->next++ : reading->count;
}

static void read_more(struct as_nodes_reading *reading)
{
    bool is_reading = false;
    for (size_t i = 0; i < AS_NODES_PARALLEL; i++) {
        struct reader *reader = &reading->readers[i];
        if (!reader->list && (reader->index = take_next(reading)) < reading->count)
            reader->list = as_node_pod_list_start(
                reading->client, reading->found[reader->index].node.name, pods_read, reader);
        is_reading = is_reading || reader->list;
    }
    if (!is_reading)
        finish(reading, &(struct as_outcome){.reason = AS_REASON_APPLIED, .http_status = 200});
}

/* Nodes */

static int take(void *context, const char *json, size_t size, char **next_out,
                struct as_error *error)
{
    struct as_nodes_reading *reading = context;
    return as_kube_nodes_decode(&reading->nodes, json, size, next_out, error);
}

static void clear(void *context)
{
    struct as_nodes_reading *reading = context;
    as_kube_nodes_clear(&reading->nodes);
}

static void nodes_read(void *context, const struct as_outcome *outcome)
{
    struct as_nodes_reading *reading = context;
    reading->pages = NULL;
    if (outcome->reason == AS_REASON_APPLIED && reading->is_by_label)
        take_all(reading);
    if (outcome->reason == AS_REASON_APPLIED)
        match(reading);
    if (outcome->reason != AS_REASON_APPLIED || !reading->with_pods)
        finish(reading, outcome);
    else
        read_more(reading);
}

static void copy_instances(struct as_nodes_reading *reading, const struct as_group_view *view)
{
    reading->count = view->instance_count;
    reading->instances = as_xcalloc(reading->count + 1, sizeof(*reading->instances));
    for (size_t i = 0; i < reading->count; i++) {
        const struct as_instance *given = &view->instances[i];
        const bool has_own = !as_str_is_empty(given->provider_id);
        reading->instances[i] = *given;
        reading->instances[i].id = as_arena_strdup(&reading->texts, given->id);
        reading->instances[i].provider_id =
            as_arena_strdup(&reading->texts, has_own ? given->provider_id : given->id);
        reading->instances[i].zone =
            as_arena_strdup(&reading->texts, given->zone ? given->zone : "");
    }
    make_found(reading);
}

struct as_nodes_reading *as_nodes_read_start(struct as_kube_client *client,
                                             const struct as_group_view *view, bool with_pods,
                                             as_nodes_done_fn *done, void *context)
{
    struct as_nodes_reading *reading = as_xcalloc(1, sizeof(*reading));
    AS_CLEANUP(as_buf_deinit) struct as_buf path = AS_BUF_INIT(AS_TARGET_URL_MAX);
    as_buf_append_str(&path, "/api/v1/nodes");
    if (view->node_label)
        as_kube_path_append_parameter(&path, "labelSelector", view->node_label);
    const struct as_kube_pages_spec spec = {
        .path = as_buf_check(&path) ? NULL : path.data,
        .trouble = "the node label is too long",
        .operation = "list_nodes",
        .what = "list nodes",
        .right = "nodes: list",
        .take = take,
        .clear = clear,
        .done = nodes_read,
        .context = reading,
    };
    reading->client = client;
    reading->done = done;
    reading->context = context;
    reading->with_pods = with_pods;
    reading->is_by_label = view->node_label;
    if (!reading->is_by_label)
        copy_instances(reading, view);
    for (size_t i = 0; i < AS_NODES_PARALLEL; i++)
        reading->readers[i].owner = reading;
    reading->nodes = AS_KUBE_NODES_INIT(AS_NODES_MAX);
    reading->started_at = client->env->clock->get_mono(client->env->clock);
    reading->pages = as_kube_pages_start(client, &spec);
    return reading;
}
