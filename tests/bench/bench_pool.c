/*
 * The plan of a pool: 20 groups, 1,000 pod classes, and a snapshot of clusters of 100, 1,000 and
 * 5,000 nodes: 1,024 nodes that take pods, 64 candidates with pods, and a tenth of the cluster
 * empty. Every node has 20 pods that wait. The work is done in slices of so many fits.
 */
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/random.h>
#include <alertscaler/cluster/node_pack.h>
#include <alertscaler/cluster/pool_plan.h>
#include <alertscaler/decide/decide.h>

#include "clock.h"

#define POD_CLASSES 1000
#define GROUPS      20
#define PODS_A_NODE 20
#define SLICE       UINT64_C(100000) /* fits */
#define ROUNDS      15
#define MIB         (INT64_C(1) << 20)
#define PLAN_MAX    200e-3 /* seconds */
#define SLICE_MAX   5e-3
#define BYTES_MAX   ((size_t)64 << 20)

static struct as_random dice;

static int64_t roll(int64_t from, int64_t to)
{
    return from + (int64_t)as_random_get_below(&dice, (uint64_t)(to - from + 1));
}

static struct as_resources amounts(int64_t cpu, int64_t memory, int64_t pods)
{
    return (struct as_resources){
        .amount = {[AS_RES_CPU] = cpu, [AS_RES_MEMORY] = memory, [AS_RES_PODS] = pods}};
}

struct world {
    struct as_arena arena;
    struct as_snapshot snapshot;
    struct as_snapshot_group groups[GROUPS];
    struct as_snapshot_pod_class pod_classes[POD_CLASSES];
    struct as_snapshot_pods pending[POD_CLASSES];
    struct as_snapshot_node *nodes;
    struct as_pool_config config;
};

static const char *print_name(struct world *world, const char *what, size_t number)
{
    char name[32];
    snprintf(name, sizeof(name), "%s-%05zu", what, number);
    return as_arena_strdup(&world->arena, name);
}

static const struct as_labels *make_labels(struct world *world, size_t group, const char *hostname)
{
    const struct as_label pairs[] = {
        {"group", print_name(world, "group", group)},
        {"kubernetes.io/arch", "amd64"},
        {"kubernetes.io/hostname", hostname},
        {"kubernetes.io/os", "linux"},
        {"node.kubernetes.io/instance-type", "m6i.2xlarge"},
        {"topology.kubernetes.io/zone", print_name(world, "zone", group % 3)},
    };
    const struct as_labels *labels;
    if (as_labels_new_in(&world->arena, pairs, AS_ARRAY_SIZE(pairs), &labels) < 0)
        abort();
    return labels;
}

/* A quarter of the groups are tainted; all have the same nodes, so that they share. */
static void add_group(struct world *world, size_t number, size_t node_count)
{
    static const struct as_taint taint = {"dedicated", "batch", AS_TAINT_NO_SCHEDULE};
    const struct as_resources node = amounts(7900, 30000 * MIB, 110);
    const int32_t size = (int32_t)(node_count / GROUPS);
    world->groups[number] = (struct as_snapshot_group){
        .name = print_name(world, "group", number),
        .is_member = true,
        .size = size,
        .max = size + AS_PACK_NODES_MAX,
        .coming = 2,
        .closed = AS_REASON_SCALED,
        .template_ = {.source = AS_NODE_TEMPLATE_LAST,
                      .shape = {.labels = make_labels(world, number, ""),
                                .taints = &taint,
                                .taint_count = number % 4 == 0,
                                .allocatable = node},
                      .capacity = amounts(8000, 32000 * MIB, 110),
                      .allocatable = node},
        .unneeded = {.below = 50, .for_us = 10 * AS_US_PER_MIN, .unready_for_us = AS_US_PER_H},
        .nodes = size,
        .cpu = size * INT64_C(8000),
        .memory = size * 32000 * MIB,
    };
}

/* A third of the pod classes choose a group, a third a zone. */
static void add_pod_class(struct world *world, size_t number, size_t node_count)
{
    static const struct as_toleration toleration = {.key = "dedicated", .is_exists = true};
    struct as_snapshot_pod_class *pod_class = &world->pod_classes[number];
    struct as_label wanted = {"group", print_name(world, "group", (size_t)roll(0, GROUPS - 1))};
    *pod_class = (struct as_snapshot_pod_class){
        .pod = {.requests = amounts(roll(10, 900), roll(16, 3000) * MIB, 1),
                .tolerations = &toleration,
                .toleration_count = number % 2,
                .unchecked = number % 5 == 0 ? AS_UNCHECKED_VOLUMES : 0},
        .digest = as_random_get(&dice),
    };
    if (number % 3 == 1)
        wanted = (struct as_label){"topology.kubernetes.io/zone",
                                   print_name(world, "zone", (size_t)roll(0, 2))};
    if (number % 3 != 2 &&
        as_labels_new_in(&world->arena, &wanted, 1, &pod_class->pod.selector) < 0)
        abort();
    world->pending[number] = (struct as_snapshot_pods){
        (uint32_t)number, (uint32_t)(node_count * PODS_A_NODE / POD_CLASSES)};
}

static struct as_snapshot_node *add_node(struct world *world)
{
    struct as_snapshot_node *node = &world->nodes[world->snapshot.node_count];
    const char *name = print_name(world, "node", world->snapshot.node_count);
    const size_t group = world->snapshot.node_count++ % GROUPS;
    const struct as_node_template *template_ = &world->groups[group].template_;
    *node = (struct as_snapshot_node){
        .group = (uint32_t)group,
        .node = {.name = name,
                 .labels = make_labels(world, group, name),
                 .taints = template_->shape.taints,
                 .taint_count = template_->shape.taint_count,
                 .allocatable = template_->allocatable},
        .left = amounts(roll(0, 1500), roll(0, 4000) * MIB, roll(0, 60)),
        .is_ready = true,
        .stay = AS_STAY_UTILIZED,
    };
    return node;
}

static void add_candidate(struct world *world, size_t pods)
{
    struct as_snapshot_node *node = add_node(world);
    struct as_snapshot_pods *list = as_arena_alloc(&world->arena, pods, sizeof(*list));
    for (size_t i = 0; i < pods; i++)
        list[i] =
            (struct as_snapshot_pods){(uint32_t)roll(0, POD_CLASSES - 1), (uint32_t)roll(1, 2)};
    node->is_candidate = true;
    node->utilization = (double)roll(0, 50);
    node->left = node->node.allocatable;
    node->pods = list;
    node->pod_count = pods;
}

static size_t get_less(size_t a, size_t b)
{
    return a < b ? a : b;
}

static struct world *make_world(size_t node_count)
{
    struct world *world = as_xcalloc(1, sizeof(*world));
    static char group[] = "group", *ignored[] = {group};
    const size_t empty = node_count / 10;
    as_random_init(&dice, 1);
    world->arena = AS_ARENA_INIT;
    world->nodes = as_xcalloc(node_count + AS_SNAPSHOT_DRAINED_MAX, sizeof(*world->nodes));
    world->config = (struct as_pool_config){.balance = true,
                                            .ignore_labels = ignored,
                                            .ignore_label_count = 1,
                                            .cpu.max = AS_POOL_NO_CAP,
                                            .memory.max = AS_POOL_NO_CAP,
                                            .at_once_empty = 10,
                                            .at_once_drain = 1};
    for (size_t i = 0; i < GROUPS; i++)
        add_group(world, i, node_count);
    for (size_t i = 0; i < POD_CLASSES; i++)
        add_pod_class(world, i, node_count);
    for (size_t i = 0; i < get_less(node_count - empty, AS_SNAPSHOT_NODES_MAX); i++)
        add_node(world);
    for (size_t i = 0; i < AS_SNAPSHOT_DRAINED_MAX; i++)
        add_candidate(world, PODS_A_NODE);
    for (size_t i = 0; i < empty; i++)
        add_candidate(world, 0);
    world->snapshot.resources.count = AS_RES_NAMED;
    world->snapshot.groups = world->groups;
    world->snapshot.group_count = GROUPS;
    world->snapshot.pod_classes = world->pod_classes;
    world->snapshot.pod_class_count = POD_CLASSES;
    world->snapshot.pending = world->pending;
    world->snapshot.pending_count = POD_CLASSES;
    world->snapshot.nodes = world->nodes;
    world->snapshot.cluster_nodes = node_count;
    return world;
}

static struct world *free_world(struct world *world)
{
    as_arena_deinit(&world->arena);
    free(world->nodes);
    free(world);
    return NULL;
}

struct times { /* seconds */
    double all, longest;
};

static void count(struct times *times, double start)
{
    const double took = clock_get_seconds() - start;
    times->all += took;
    times->longest = took > times->longest ? took : times->longest;
}

static struct times plan_once(struct world *world, struct as_arena *arena,
                              struct as_pool_plan *plan)
{
    const struct as_pool_plan_request request = {
        .version = AS_DECIDE_VERSION,
        .snapshot = &world->snapshot,
        .config = &world->config,
        .terms = {.now = {AS_US_PER_DAY}, .max = INT32_MAX, .with_fit = true, .with_take = true}};
    struct times times = {0};
    double start = clock_get_seconds();
    struct as_pool_work *work = as_pool_begin(&request, arena);
    count(&times, start);
    for (bool is_done = false; !is_done;) {
        start = clock_get_seconds();
        is_done = as_pool_step(work, SLICE, plan);
        count(&times, start);
    }
    return times;
}

static size_t measure_heap(void)
{
    const struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

/* Returns whether it kept its bounds. */
static bool measure(size_t node_count)
{
    struct world *world = make_world(node_count);
    struct times best = {0};
    struct as_pool_plan plan = {.size = 0};
    size_t bytes = 0, unneeded = 0;
    for (int i = 0; i < ROUNDS; i++) {
        struct as_arena arena = AS_ARENA_INIT;
        const size_t before = measure_heap();
        const struct times times = plan_once(world, &arena, &plan);
        bytes = measure_heap() - before;
        unneeded = plan.unneeded_count;
        if (best.all == 0 || times.all < best.all)
            best = times;
        as_arena_deinit(&arena);
    }
    printf("pool: %zu nodes, %zu in the survey, %zu pods wait, %d groups: planned in %.2f ms, "
           "longest slice %.2f ms, %.1f MiB; %d new nodes, %zu remembered%s (at most %.0f ms, %.0f "
           "ms, %zu MiB)\n",
           node_count, world->snapshot.node_count, node_count * PODS_A_NODE, GROUPS, best.all * 1e3,
           best.longest * 1e3, (double)bytes / (double)MIB, plan.fit_size - plan.size, unneeded,
           plan.is_cut ? ", cut" : "", PLAN_MAX * 1e3, SLICE_MAX * 1e3, BYTES_MAX >> 20);
    free_world(world);
    return best.all <= PLAN_MAX && best.longest <= SLICE_MAX && bytes <= BYTES_MAX;
}

int main(void)
{
    bool is_kept = measure(100);
    is_kept &= measure(1000);
    is_kept &= measure(5000);
    return !is_kept;
}
