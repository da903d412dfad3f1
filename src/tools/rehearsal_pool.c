/*
 * Pools in a rehearsal: see the header. Nodes are named <group>-1 and so on, and are old. Pods are
 * placed anew each time, in the order of the test: first on the group that they name, one node
 * after the other; all others on the first node with room.
 */
#include "rehearsal_pool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/cluster/cluster_facts.h>
#include <alertscaler/cluster/node_pack.h>
#include <alertscaler/cluster/survey_make.h>
#include <alertscaler/decide/choose.h>
#include <alertscaler/decide/decide.h>

struct placing {
    const struct world *world;
    const struct as_pool_request *request;
    struct as_arena *arena;
    struct as_cluster cluster;
    struct as_node_fact *nodes;
    struct as_node_shape *shapes; /* of the nodes */
    struct as_node_room *rooms;
    struct as_pod_fact *pods;
};

static int32_t get_size(const struct placing *placing, size_t member)
{
    const struct world_target *target =
        world_find_target(placing->world, placing->request->members[member].ref->id);
    return target ? target->size : -1;
}

static int32_t get_ready(const struct placing *placing, const char *group, int32_t size)
{
    const struct as_rule_test_cluster *told = placing->world->cluster;
    for (size_t i = 0; i < told->ready_count; i++) {
        if (strcmp(told->ready[i].group, group) == 0)
            return told->ready[i].ready < size ? told->ready[i].ready : size;
    }
    return size;
}

static void add_node(struct placing *placing, const struct as_pool_member *member, int32_t number,
                     const struct as_node_template *template)
{
    char name[AS_CLUSTER_NAME_MAX + 1];
    const size_t index = placing->cluster.node_count++;
    snprintf(name, sizeof(name), "%s-%d", member->name, number);
    placing->nodes[index] = (struct as_node_fact){
        .name = as_arena_strdup(placing->arena, name),
        .provider_id = "",
        .labels = template->shape.labels,
        .taints = template->shape.taints,
        .taint_count = template->shape.taint_count,
        .allocatable = template->allocatable,
        .capacity = template->capacity,
        .has_cpu = true,
        .has_memory = true,
        .is_ready = true,
        .created = placing->world->old,
        .ready_since = {true, placing->world->old},
    };
}

static int compare_nodes(const void *a, const void *b)
{
    return strcmp(((const struct as_node_fact *)a)->name, ((const struct as_node_fact *)b)->name);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* A group without a template has no nodes. */
static void add_group(struct placing *placing, size_t index, struct as_survey_member *member_out)
{
    const struct as_pool_member *member = &placing->request->members[index];
    const struct as_nodes_config *config = member->nodes;
    const int32_t size = get_size(placing, index);
    struct as_node_template *template = as_arena_alloc(placing->arena, 1, sizeof(*template));
    const size_t before = placing->cluster.node_count;
    *member_out = (struct as_survey_member){
        .name = member->name,
        .id = member->ref->id,
        .is_member = member->is_member,
        .size = size,
        .min = member->min,
        .max = member->max,
        .message = size < 0 ? "the test does not say its size" : NULL,
        .closed = member->closed,
        .has_open_growth = member->has_open_growth,
        .refused = member->refused,
        .ready_timeout_us = config->ready_timeout_us,
        .has_priority = config->has_priority,
        .has_price = config->has_price,
        .priority = config->priority,
        .price = config->price,
        .unneeded = config->unneeded,
    };
    if (!config->template_ || size < 0)
        return;
    as_node_template_init_configured(template, config->template_, &placing->cluster.resources,
                                     placing->arena);
    const int32_t ready = get_ready(placing, member->name, size);
    for (int32_t i = 1; i <= ready; i++)
        add_node(placing, member, i, template);
    const char **names = as_arena_alloc(placing->arena, (size_t)ready, sizeof(*names));
    for (size_t i = before; i < placing->cluster.node_count; i++)
        names[i - before] = placing->nodes[i].name;
    qsort(names, (size_t)ready, sizeof(*names), compare_names);
    member_out->nodes = names;
    member_out->node_count = (size_t)ready;
    member_out->young = size - ready;
    member_out->configured = template;
}

/* ---- pods ---- */

static bool fits(struct placing *placing, size_t node, const struct as_pod_shape *shape)
{
    if (as_node_admits(&placing->shapes[node], shape) != AS_FITS ||
        as_node_room_count(&placing->rooms[node], &placing->cluster.resources, shape, 1, NULL) == 0)
        return false;
    as_node_room_take(&placing->rooms[node], &placing->cluster.resources, shape, 1, placing->arena);
    return true;
}

static bool is_of(const struct placing *placing, size_t node, const char *group)
{
    const char *name = placing->nodes[node].name;
    const size_t size = strlen(group);
    return strncmp(name, group, size) == 0 && name[size] == '-' && !strchr(name + size + 1, '-');
}

/* From `next` on, and round; AS_NO_NODE: nowhere. */
static uint32_t find_node(struct placing *placing, const struct as_rule_test_pods *pods,
                          size_t *next)
{
    for (size_t i = 0; i < placing->cluster.node_count; i++) {
        const size_t node = (*next + i) % placing->cluster.node_count;
        if ((pods->on && !is_of(placing, node, pods->on)) || !fits(placing, node, &pods->shape))
            continue;
        *next = pods->on ? node + 1 : node;
        return (uint32_t)node;
    }
    return AS_NO_NODE;
}

static void add_pods(struct placing *placing, const struct as_rule_test_pods *pods)
{
    size_t next = 0;
    for (uint32_t i = 0; i < pods->count; i++) {
        const uint32_t node = find_node(placing, pods, &next);
        placing->pods[placing->cluster.pod_count++] = (struct as_pod_fact){
            .namespace_ = "default",
            .name = "pod",
            .shape = &pods->shape,
            .node = node,
            .nominated = AS_NO_NODE,
            .is_bound = node != AS_NO_NODE,
            .is_unschedulable = node == AS_NO_NODE,
            .created = placing->world->old,
        };
    }
}

static void place_pods(struct placing *placing)
{
    const struct as_rule_test_cluster *told = placing->world->cluster;
    const size_t node_count = placing->cluster.node_count;
    size_t count = 0;
    placing->shapes = as_arena_alloc(placing->arena, node_count, sizeof(*placing->shapes));
    placing->rooms = as_arena_alloc(placing->arena, node_count, sizeof(*placing->rooms));
    for (size_t i = 0; i < node_count; i++) {
        const struct as_node_fact *node = &placing->nodes[i];
        placing->shapes[i] = (struct as_node_shape){.name = node->name,
                                                    .labels = node->labels,
                                                    .taints = node->taints,
                                                    .taint_count = node->taint_count,
                                                    .allocatable = node->allocatable};
        placing->rooms[i].left = node->allocatable;
    }
    for (size_t i = 0; i < told->pod_count; i++)
        count += told->pods[i].count;
    placing->pods = as_arena_alloc(placing->arena, count, sizeof(*placing->pods));
    placing->cluster.pods = placing->pods;
    for (size_t i = 0; i < told->pod_count; i++)
        if (told->pods[i].on)
            add_pods(placing, &told->pods[i]);
    for (size_t i = 0; i < told->pod_count; i++)
        if (!told->pods[i].on)
            add_pods(placing, &told->pods[i]);
}

/* ---- the survey ---- */

static int64_t add_members(struct placing *placing, struct as_survey_member *members)
{
    const struct as_pool_request *request = placing->request;
    int64_t size = 0, nodes = 0;
    for (size_t i = 0; i < request->member_count; i++) {
        const int32_t of = get_size(placing, i);
        nodes += of > 0 ? of : 0;
        size += of > 0 && request->members[i].is_member ? of : 0;
    }
    placing->nodes = as_arena_alloc(placing->arena, (size_t)nodes, sizeof(*placing->nodes));
    placing->cluster.nodes = placing->nodes;
    for (size_t i = 0; i < request->member_count; i++)
        add_group(placing, i, &members[i]);
    qsort(placing->nodes, placing->cluster.node_count, sizeof(*placing->nodes), compare_nodes);
    return size;
}

struct world_pool {
    struct as_arena arena;
    struct as_pool_request request;
    struct as_cluster cluster;
    struct as_survey_request asked;
    struct as_survey survey;
    struct as_pool_plan plan;
    bool has_plan;
    int64_t size;
};

static void make_plan(struct world_pool *pool, const struct as_survey_member *members,
                      as_wall_time now)
{
    const struct as_pool_request *request = &pool->request;
    pool->asked = (struct as_survey_request){
        .cluster = &pool->cluster,
        .members = members,
        .member_count = request->member_count,
        .config = request->config,
        .unneeded = request->unneeded,
        .unneeded_count = request->unneeded_count,
        .asked = request->asked,
        .asked_count = request->asked_count,
        .seed = request->seed,
        .now = now,
    };
    struct as_survey_work *surveying = as_survey_begin(&pool->asked, &pool->arena);
    while (!as_survey_step(surveying, AS_PACK_FITS_MAX, &pool->survey)) {
    }
    const struct as_pool_plan_request wanted = {
        .version = AS_DECIDE_VERSION,
        .survey = &pool->survey,
        .config = request->config,
        .terms = {.now = now,
                  .min = request->min,
                  .max = request->max,
                  .with_fit = request->with_fit,
                  .with_take = request->with_take},
    };
    struct as_pool_work *planning = as_pool_begin(&wanted, &pool->arena);
    while (!as_pool_step(planning, AS_PACK_FITS_MAX, &pool->plan)) {
    }
    pool->has_plan = true;
}

struct world_pool *world_pool_new(const struct world *world, const struct as_pool_request *request,
                                  as_wall_time now)
{
    struct world_pool *pool = as_xcalloc(1, sizeof(*pool));
    pool->arena = AS_ARENA_INIT;
    as_pool_request_copy(request, &pool->arena, &pool->request);
    struct placing placing = {.world = world, .request = &pool->request, .arena = &pool->arena};
    if (!world->cluster) {
        pool->survey.error = "nothing is said of the cluster";
        return pool;
    }
    struct as_survey_member *members =
        as_arena_alloc(&pool->arena, request->member_count, sizeof(*members));
    placing.cluster.resources.count = AS_RES_NAMED;
    pool->size = add_members(&placing, members);
    place_pods(&placing);
    pool->cluster = placing.cluster;
    make_plan(pool, members, now);
    return pool;
}

struct world_pool *world_pool_free(struct world_pool *pool)
{
    if (!pool)
        return NULL;
    as_pool_request_deinit(&pool->request);
    as_arena_deinit(&pool->arena);
    free(pool);
    return NULL;
}

void world_pool_tell(const struct world_pool *pool, struct as_observation *observation)
{
    observation->outcome = AS_REASON_APPLIED;
    observation->replicas = observation->status_replicas =
        pool->size < AS_SIZE_MAX ? (int32_t)pool->size : AS_SIZE_MAX;
    observation->survey = &pool->survey;
    observation->plan = pool->has_plan ? &pool->plan : NULL;
}
