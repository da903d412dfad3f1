/*
 * What an API server and a provider would tell of a fleet.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/decide/decide.h>

#include "fleet.h"

static int compare_nodes(const void *a, const void *b)
{
    return strcmp(((const struct as_node_fact *)a)->name, ((const struct as_node_fact *)b)->name);
}

static void fill_amounts(struct as_resources *resources, const struct fleet_group *group)
{
    resources->amount[AS_RES_CPU] = group->cpu;
    resources->amount[AS_RES_MEMORY] = group->memory;
    resources->amount[AS_RES_PODS] = 110;
}

static void fill_nodes(const struct fleet *fleet, struct as_arena *arena,
                       struct as_cluster *cluster)
{
    struct as_node_fact *nodes = as_arena_alloc(arena, FLEET_NODES, sizeof(*nodes));
    for (size_t i = 0; i < FLEET_NODES; i++) {
        const struct fleet_node *node = &fleet->nodes[i];
        if (!node->is_used || !node->is_node)
            continue;
        struct as_node_fact *fact = &nodes[cluster->node_count++];
        *fact = (struct as_node_fact){
            .name = as_arena_strdup(arena, node->name), /* the fleet changes while the plan lasts */
            .provider_id = as_arena_strdup(arena, node->name),
            .labels = node->labels,
            .has_cpu = true,
            .has_memory = true,
            .is_ready = node->is_ready,
            .is_cordoned = node->is_marked,
            .leaving = node->is_marked ? AS_NODE_LEAVING_OURS : 0,
            .created = node->made,
            .ready_since = node->ready_since,
        };
        fill_amounts(&fact->allocatable, &fleet->groups[node->group]);
        fact->capacity = fact->allocatable;
    }
    qsort(nodes, cluster->node_count, sizeof(*nodes), compare_nodes);
    cluster->nodes = nodes;
}

static uint32_t find_fact(const struct as_cluster *cluster, const char *name)
{
    for (size_t i = 0; i < cluster->node_count; i++) {
        if (strcmp(cluster->nodes[i].name, name) == 0)
            return (uint32_t)i;
    }
    return AS_NO_NODE;
}

static void fill_pods(const struct fleet *fleet, struct as_arena *arena, struct as_cluster *cluster)
{
    struct as_pod_fact *pods = as_arena_alloc(arena, FLEET_PODS, sizeof(*pods));
    for (size_t i = 0; i < FLEET_PODS; i++) {
        const struct fleet_pod *pod = &fleet->pods[i];
        char name[16];
        if (!pod->is_used)
            continue;
        (void)snprintf(name, sizeof(name), "pod-%zu", i);
        pods[cluster->pod_count++] = (struct as_pod_fact){
            .namespace_ = "shop",
            .name = as_arena_strdup(arena, name),
            .pod_class = &fleet->pod_classes[pod->pod_class],
            .node = pod->node < 0 ? AS_NO_NODE : find_fact(cluster, fleet->nodes[pod->node].name),
            .nominated = AS_NO_NODE,
            .is_bound = pod->node >= 0,
            .is_unschedulable = pod->is_unschedulable,
            .created = pod->created,
        };
    }
    cluster->pods = pods;
}

static size_t find_group(const struct fleet *fleet, const char *name)
{
    for (size_t i = 0; i < fleet->group_count; i++) {
        if (strcmp(fleet->groups[i].name, name) == 0)
            return i;
    }
    abort(); /* the rule file has groups of the fleet only */
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void fill_members(const struct fleet *fleet, size_t group, struct as_arena *arena,
                         struct as_snapshot_member *member)
{
    const struct fleet_group *of = &fleet->groups[group];
    const char **names = as_arena_alloc(arena, FLEET_NODES, sizeof(*names));
    for (size_t i = 0; i < FLEET_NODES; i++) {
        const struct fleet_node *node = &fleet->nodes[i];
        if (!node->is_used || node->group != (int)group)
            continue;
        if (node->is_node)
            names[member->node_count++] = as_arena_strdup(arena, node->name);
        else if (fleet_is_overdue(fleet, node))
            member->overdue++;
        else
            member->young++;
    }
    qsort(names, member->node_count, sizeof(*names), compare_texts);
    member->nodes = names;
    member->removable = member->node_count > 0 ? member->overdue : 0;
    if (!member->has_pending_scaleup &&
        fleet->now.us - of->missing_since.us >= of->ready_timeout_us)
        member->unregistered = of->missing;
    member->size = of->is_unreadable ? -1 : fleet_get_size(fleet, group);
    member->in_progress = of->is_busy;
    member->drain_failed = of->drain_failed;
    member->message = of->is_unreadable ? "HTTP 500" : NULL;
    member->ready_timeout_us = of->ready_timeout_us;
}

static struct as_node_template *make_template(const struct fleet *fleet, size_t group,
                                              struct as_arena *arena)
{
    struct as_node_template *made = as_arena_alloc(arena, 1, sizeof(*made));
    made->source = AS_NODE_TEMPLATE_CONFIGURED;
    fill_amounts(&made->capacity, &fleet->groups[group]);
    made->allocatable = made->shape.allocatable = made->capacity;
    made->shape.labels = fleet->labels[group];
    return made;
}

static struct as_snapshot_member *make_members(const struct fleet *fleet,
                                               const struct as_pool_request *request,
                                               struct as_arena *arena)
{
    struct as_snapshot_member *members =
        as_arena_alloc(arena, request->member_count, sizeof(*members));
    for (size_t i = 0; i < request->member_count; i++) {
        const struct as_pool_member *given = &request->members[i];
        const size_t group = find_group(fleet, given->name);
        members[i] = (struct as_snapshot_member){
            .name = given->name,
            .id = given->ref->id,
            .is_member = given->is_member,
            .min = given->min,
            .max = given->max,
            .closed = given->closed,
            .is_kept = given->is_kept,
            .has_pending_scaleup = given->has_pending_scaleup,
            .refused = given->refused,
            .in_doubt = given->in_doubt,
            .backed_off = given->unregistered,
            .surplus = given->surplus,
            .surplus_since = given->surplus_since,
            .down_in_doubt = given->down_in_doubt,
            .open_at = given->open_at,
            .last_size = given->last_size,
            .configured = make_template(fleet, group, arena),
            .has_price = fleet->groups[group].price > 0,
            .price = fleet->groups[group].price,
            .unneeded = given->nodes->unneeded,
        };
        fill_members(fleet, group, arena, &members[i]);
    }
    return members;
}

void fleet_snapshot_from(const struct fleet *fleet, const struct fleet *facts,
                         const struct as_pool_request *request, struct as_arena *arena,
                         struct as_snapshot *snapshot_out, struct as_pool_plan *plan_out)
{
    struct as_cluster *cluster = as_arena_alloc(arena, 1, sizeof(*cluster));
    struct as_snapshot_request *asked = as_arena_alloc(arena, 1, sizeof(*asked));
    cluster->resources.count = AS_RES_NAMED;
    fill_nodes(facts, arena, cluster);
    fill_pods(facts, arena, cluster);
    *asked = (struct as_snapshot_request){
        .cluster = cluster,
        .members = make_members(fleet, request, arena),
        .member_count = request->member_count,
        .config = request->config,
        .unneeded = request->unneeded,
        .unneeded_count = request->unneeded_count,
        .asked = request->asked,
        .asked_count = request->asked_count,
        .seed = request->seed,
        .now = fleet->now,
    };
    struct as_snapshot_work *snapshot = as_snapshot_begin(asked, arena);
    while (!as_snapshot_step(snapshot, UINT64_MAX / 2, snapshot_out)) {
    }
    const struct as_pool_plan_request wanted = {
        .version = AS_DECIDE_VERSION,
        .snapshot = snapshot_out,
        .config = request->config,
        .terms = {.now = fleet->now,
                  .min = request->min,
                  .max = request->max,
                  .with_fit = request->with_fit,
                  .with_take = request->with_take},
    };
    struct as_pool_work *plan = as_pool_begin(&wanted, arena);
    while (!as_pool_step(plan, UINT64_MAX / 2, plan_out)) {
    }
}

void fleet_snapshot(struct fleet *fleet, const struct as_pool_request *request,
                    struct as_arena *arena, struct as_snapshot *snapshot_out,
                    struct as_pool_plan *plan_out)
{
    fleet_snapshot_from(fleet, fleet, request, arena, snapshot_out, plan_out);
}
