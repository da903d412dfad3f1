/*
 * The nodes behind the instances of a group: see the header. First it lists all nodes, because the
 * API cannot select them by providerID, or the nodes with a label. Then it reads the pods on the
 * group's nodes, a few nodes at a time, and keeps sums and at most one text per node.
 */
#include <alertscaler/kube/nodes.h>

#include <stdio.h>
#include <stdlib.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/kube/instance_nodes.h>
#include <alertscaler/kube/kube_nodes.h>
#include <alertscaler/kube/target_limits.h>

#include "kube_pages.h"
#include "kube_path.h"
#include "node_pods.h"

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
    add_pods(reading, &reading->of.found[reader->index].node, pods);
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
            reader->list = as_node_pod_list_start(
                reading->client, reading->of.found[reader->index].node.name, pods_read, reader);
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
    if (outcome->reason == AS_REASON_APPLIED)
        as_instance_nodes_match(&reading->of, reading->nodes.items, reading->nodes.count);
    if (outcome->reason != AS_REASON_APPLIED || !reading->with_pods)
        finish(reading, outcome);
    else
        read_more(reading);
}

struct as_nodes_reading *as_nodes_read_start(struct as_kube_client *client,
                                             const struct as_group_view *view, bool with_pods,
                                             unsigned keep, as_nodes_done_fn *done, void *context)
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
    reading->keep = keep;
    as_instance_nodes_init(&reading->of, view);
    for (size_t i = 0; i < AS_NODES_PARALLEL; i++)
        reading->readers[i].owner = reading;
    reading->nodes = AS_KUBE_NODES_INIT(AS_NODES_MAX);
    reading->started_at = client->env->clock->get_mono(client->env->clock);
    reading->pages = as_kube_pages_start(client, &spec);
    return reading;
}
