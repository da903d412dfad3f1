/*
 * The source `nodes`: see the header.
 */
#include "nodes_see.h"

#include <stdlib.h>
#include <string.h>

#include <bsd/sys/queue.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/core/nodes/node_pods.h>
#include <alertscaler/core/nodes/node_sums.h>
#include <alertscaler/core/nodes/node_template.h>

#define GROUPS_MAX 1000 /* with one more, the one seen first is forgotten */

struct group {
    TAILQ_ENTRY(group) entry;
    char *id;
    struct as_arena texts;
    struct as_node_template last; /* source NONE: there was none yet */
};

struct as_nodes_seer {
    TAILQ_HEAD(, group) groups;
    size_t group_count;
};

struct as_nodes_seer *as_nodes_seer_new(void)
{
    struct as_nodes_seer *seer = as_xcalloc(1, sizeof(*seer));
    TAILQ_INIT(&seer->groups);
    return seer;
}

static void forget(struct as_nodes_seer *seer, struct group *group)
{
    TAILQ_REMOVE(&seer->groups, group, entry);
    seer->group_count--;
    as_arena_deinit(&group->texts);
    free(group->id);
    free(group);
}

struct as_nodes_seer *as_nodes_seer_free(struct as_nodes_seer *seer)
{
    struct group *group;
    while (seer && (group = TAILQ_FIRST(&seer->groups)))
        forget(seer, group);
    free(seer);
    return NULL;
}

static struct group *get_group(struct as_nodes_seer *seer, const char *id)
{
    struct group *group;
    TAILQ_FOREACH (group, &seer->groups, entry) {
        if (strcmp(group->id, id) == 0)
            return group;
    }
    if (seer->group_count == GROUPS_MAX)
        forget(seer, TAILQ_FIRST(&seer->groups));
    group = as_xcalloc(1, sizeof(*group));
    group->id = as_xstrdup(id);
    group->texts = AS_ARENA_INIT;
    TAILQ_INSERT_TAIL(&seer->groups, group, entry);
    seer->group_count++;
    return group;
}

static void remember(struct group *group, const struct as_node_template *template)
{
    as_arena_reset(&group->texts);
    group->last = *as_node_template_copy(template, &group->texts);
}

const struct as_node_template *as_nodes_seer_get_last(struct as_nodes_seer *seer, const char *group)
{
    const struct as_node_template *last = &get_group(seer, group)->last;
    return last->source == AS_NODE_TEMPLATE_NONE ? NULL : last;
}

void as_nodes_seer_remember(struct as_nodes_seer *seer, const char *group,
                            const struct as_node_template *template)
{
    remember(get_group(seer, group), template);
}

/* ---- the group's nodes ---- */

static int compare_name(const void *name, const void *node)
{
    return strcmp(name, ((const struct as_node_fact *)node)->name);
}

/* Nodes of which the cluster knows nothing (yet) are left out. */
static uint32_t *find_nodes(const struct as_nodes_see_request *request, struct as_arena *arena,
                            size_t *count_out)
{
    const struct as_cluster *cluster = request->cluster;
    uint32_t *nodes = as_arena_alloc(arena, request->name_count, sizeof(*nodes));
    *count_out = 0;
    for (size_t i = 0; i < request->name_count; i++) {
        const struct as_node_fact *node =
            bsearch(request->names[i], cluster->nodes, cluster->node_count, sizeof(*cluster->nodes),
                    compare_name);
        if (node)
            nodes[(*count_out)++] = (uint32_t)(node - cluster->nodes);
    }
    return nodes;
}

/* ---- pending pods ---- */

struct pending {
    const struct as_node_shape *template; /* NULL: none is known */
    const struct as_node_shape **others;  /* of the other groups */
    size_t other_count;
    bool takes_any; /* pods that select nothing, too */
};

static bool is_for(const struct pending *pending, const struct as_pod_shape *shape)
{
    if (!pending->template)
        return false;
    if (pending->takes_any && !as_pod_has_selector(shape))
        return as_node_admits(pending->template, shape) == AS_FITS;
    return as_pod_selects(shape, pending->template, pending->others, pending->other_count);
}

/* Of the group, or of the cluster (NULL) all. */
static struct as_pod_count *find_pending(const struct as_cluster *cluster,
                                         const struct pending *pending, struct as_arena *arena,
                                         size_t *count_out)
{
    size_t waiting = 0;
    for (size_t i = 0; i < cluster->pod_count; i++)
        waiting += cluster->pods[i].node == AS_NO_NODE;
    struct as_pod_count *counts = as_arena_alloc(arena, waiting, sizeof(*counts));
    *count_out = 0;
    for (size_t i = 0; i < cluster->pod_count; i++) {
        const struct as_pod_fact *pod = &cluster->pods[i];
        if (pod->node == AS_NO_NODE && !pod->is_leaving &&
            (!pending || is_for(pending, pod->shape)))
            counts[(*count_out)++] = (struct as_pod_count){pod->shape, 1};
    }
    return counts;
}

/* ---- both together ---- */

static void see_group(struct as_nodes_seer *seer, const struct as_nodes_see_request *request,
                      struct as_node_sums_request *sums, struct as_arena *arena)
{
    struct group *group = get_group(seer, request->group), *other;
    sums->nodes = find_nodes(request, arena, &sums->node_count);
    struct as_node_template configured;
    if (request->config->template_)
        as_node_template_init_configured(&configured, request->config->template_,
                                         &request->cluster->resources, arena);
    const struct as_node_template_request asked = {
        .cluster = request->cluster,
        .pods = sums->pods,
        .nodes = sums->nodes,
        .node_count = sums->node_count,
        .startup_taints = (const char *const *)request->config->startup_taints,
        .startup_taint_count = request->config->startup_taint_count,
        .last = group->last.source == AS_NODE_TEMPLATE_NONE ? NULL : &group->last,
        .configured = request->config->template_ ? &configured : NULL,
        .now = request->now,
    };
    struct as_node_template *template = as_arena_alloc(arena, 1, sizeof(*template));
    as_node_template_init(template, &asked, arena);
    const bool is_known = template->source != AS_NODE_TEMPLATE_NONE;
    struct pending pending = {
        .template = is_known ? &template->shape : NULL,
        .others = as_arena_alloc(arena, seer->group_count, sizeof(*pending.others)),
        .takes_any = request->config->pending == AS_NODES_PENDING_ANY,
    };
    TAILQ_FOREACH (other, &seer->groups, entry) {
        if (other != group && other->last.source != AS_NODE_TEMPLATE_NONE)
            pending.others[pending.other_count++] = &other->last.shape;
    }
    sums->pending = find_pending(request->cluster, &pending, arena, &sums->pending_count);
    sums->template_ = is_known ? &template->allocatable : NULL;
    if (template->source == AS_NODE_TEMPLATE_NODE)
        remember(group, template);
}

void as_nodes_see(struct as_nodes_seer *seer, const struct as_nodes_see_request *request,
                  struct as_nodes_seen *seen_out)
{
    struct as_arena arena = AS_ARENA_INIT;
    struct as_node_pods pods;
    struct as_node_sums_request sums = {.cluster = request->cluster, .pods = &pods};
    as_node_pods_init(&pods, request->cluster, &arena);
    if (request->group)
        see_group(seer, request, &sums, &arena);
    else
        sums.pending = find_pending(request->cluster, NULL, &arena, &sums.pending_count);
    as_nodes_seen_init(seen_out, &sums);
    as_arena_deinit(&arena);
}
