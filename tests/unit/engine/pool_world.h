/*
 * Snapshots for tests of plans: a world is filled in by hand, and planned. Amounts are millicores
 * and bytes. Names of nodes must be added in ascending order.
 */
#ifndef ALERTSCALER_TESTS_POOL_WORLD_H
#define ALERTSCALER_TESTS_POOL_WORLD_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include <alertscaler/cluster/node_pack.h>
#include <alertscaler/cluster/pool_plan.h>
#include <alertscaler/decide/decide.h>

#define WORLD_GROUPS      64
#define WORLD_POD_CLASSES 1000
#define WORLD_NODES       1200
#define WORLD_BUDGETS     8
#define WORLD_NOW         (INT64_C(1800000000) * AS_US_PER_S)

struct world {
    struct as_arena arena;
    struct as_snapshot snapshot;
    struct as_snapshot_group groups[WORLD_GROUPS];
    struct as_snapshot_pod_class pod_classes[WORLD_POD_CLASSES];
    struct as_snapshot_pods pending[WORLD_POD_CLASSES];
    struct as_snapshot_node nodes[WORLD_NODES];
    struct as_snapshot_budget budgets[WORLD_BUDGETS];
    struct as_pool_config config;
    struct as_pool_plan_request request;
};

static const struct as_labels world_no_labels;

static inline struct world *world_new(void)
{
    struct world *world = calloc(1, sizeof(*world));
    world->arena = AS_ARENA_INIT;
    world->snapshot = (struct as_snapshot){
        .resources = {.count = AS_RES_NAMED + 1, .name = {[AS_RES_NAMED] = "nvidia.com/gpu"}},
        .groups = world->groups,
        .pod_classes = world->pod_classes,
        .pending = world->pending,
        .nodes = world->nodes,
        .budgets = world->budgets};
    world->config = (struct as_pool_config){.cpu.max = AS_POOL_NO_CAP,
                                            .memory.max = AS_POOL_NO_CAP,
                                            .at_once_empty = 10,
                                            .at_once_drain = 1,
                                            .expendable_below = -10};
    world->request = (struct as_pool_plan_request){
        .version = AS_DECIDE_VERSION,
        .snapshot = &world->snapshot,
        .config = &world->config,
        .terms = {.now = {WORLD_NOW}, .max = INT32_MAX, .with_fit = true, .with_take = true}};
    return world;
}

static inline void world_free(struct world *world)
{
    as_arena_deinit(&world->arena);
    free(world);
}

static inline struct as_resources world_amounts(int64_t cpu, int64_t memory, int64_t pods)
{
    return (struct as_resources){
        .amount = {[AS_RES_CPU] = cpu, [AS_RES_MEMORY] = memory, [AS_RES_PODS] = pods}};
}

static inline const struct as_labels *world_labels(struct world *world, const char *name,
                                                   const char *value)
{
    const struct as_labels *labels;
    cr_assert_eq(as_labels_new_in(&world->arena, &(struct as_label){name, value}, 1, &labels), 0);
    return labels;
}

/* A member whose nodes are all there; a new node has so much for at most 110 pods. */
static inline struct as_snapshot_group *world_add_group(struct world *world, const char *name,
                                                        int64_t cpu, int64_t memory, int32_t size,
                                                        int32_t max)
{
    struct as_snapshot_group *group = &world->groups[world->snapshot.group_count++];
    const struct as_resources node = world_amounts(cpu, memory, 110);
    *group = (struct as_snapshot_group){
        .name = name,
        .is_member = true,
        .size = size,
        .max = max,
        .closed = AS_REASON_SCALED,
        .template_ = {.source = AS_NODE_TEMPLATE_LAST,
                      .shape = {.labels = &world_no_labels, .allocatable = node},
                      .capacity = node,
                      .allocatable = node},
        .unneeded = {.below = 50,
                     .for_us = 10 * AS_US_PER_MIN,
                     .unready_for_us = 20 * AS_US_PER_MIN},
        .nodes = size,
        .cpu = size * cpu,
        .memory = size * memory,
    };
    return group;
}

static inline struct as_snapshot_pod_class *world_add_pod_class(struct world *world, int64_t cpu,
                                                                int64_t memory)
{
    struct as_snapshot_pod_class *pod_class =
        &world->pod_classes[world->snapshot.pod_class_count++];
    *pod_class = (struct as_snapshot_pod_class){.pod = {.requests = world_amounts(cpu, memory, 1)},
                                                .digest = world->snapshot.pod_class_count};
    return pod_class;
}

static inline uint32_t world_index(const struct world *world,
                                   const struct as_snapshot_pod_class *pod_class)
{
    return (uint32_t)(pod_class - world->pod_classes);
}

/* Pods that wait, of a new pod class. */
static inline struct as_snapshot_pod_class *world_add_pending(struct world *world, int64_t cpu,
                                                              int64_t memory, uint32_t count)
{
    struct as_snapshot_pod_class *pod_class = world_add_pod_class(world, cpu, memory);
    world->pending[world->snapshot.pending_count++] =
        (struct as_snapshot_pods){world_index(world, pod_class), count};
    world->snapshot.pending_pods += count;
    return pod_class;
}

/* A Ready node that is no candidate. */
static inline struct as_snapshot_node *world_add_node(struct world *world, const char *name,
                                                      uint32_t group, int64_t cpu_left)
{
    struct as_snapshot_node *node = &world->nodes[world->snapshot.node_count++];
    const struct as_node_template *template_ = &world->groups[group].template_;
    *node = (struct as_snapshot_node){
        .group = group,
        .node = {.name = name, .labels = &world_no_labels, .allocatable = template_->allocatable},
        .left = template_->allocatable,
        .is_ready = true,
        .stay = AS_STAY_UTILIZED,
    };
    node->left.amount[AS_RES_CPU] = cpu_left;
    world->snapshot.cluster_nodes++;
    return node;
}

/* A candidate whose pods are `count` of the pod class; NULL: an empty one. */
static inline struct as_snapshot_node *world_add_candidate(
    struct world *world, const char *name, uint32_t group,
    const struct as_snapshot_pod_class *pod_class, uint32_t count)
{
    const int64_t all = world->groups[group].template_.allocatable.amount[AS_RES_CPU];
    const int64_t used = pod_class ? pod_class->pod.requests.amount[AS_RES_CPU] * count : 0;
    struct as_snapshot_node *node = world_add_node(world, name, group, all - used);
    struct as_snapshot_pods *pods = as_arena_alloc(&world->arena, 1, sizeof(*pods));
    node->is_candidate = true;
    node->utilization = all > 0 ? 100.0 * (double)used / (double)all : 0;
    if (!pod_class)
        return node;
    *pods = (struct as_snapshot_pods){world_index(world, pod_class), count};
    node->pods = pods;
    node->pod_count = 1;
    return node;
}

static inline struct as_pool_plan world_plan_in_steps(struct world *world, uint64_t fits)
{
    struct as_pool_work *work = as_pool_begin(&world->request, &world->arena);
    struct as_pool_plan plan;
    while (!as_pool_step(work, fits, &plan))
        ;
    return plan;
}

static inline struct as_pool_plan world_plan(struct world *world)
{
    return world_plan_in_steps(world, UINT64_MAX);
}

/* "a0007": names that ascend with their numbers. */
static inline const char *world_name(struct world *world, char letter, int number)
{
    char name[16];
    snprintf(name, sizeof(name), "%c%04d", letter, number);
    return as_arena_strdup(&world->arena, name);
}

#endif
