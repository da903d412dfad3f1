/*
 * A pool's snapshot and plan: clusters of 100, 1,000 and 5,000 nodes with 20 pods a node in 1,000
 * pod classes, 20 groups, and as many pods that wait as nodes. A tenth of the nodes is empty, a
 * fifth is utilized too little. The work is done in slices of so many fits. The document of the
 * decision is measured too.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/random.h>
#include <alertscaler/cluster/pool_plan.h>
#include <alertscaler/cluster/snapshot.h>
#include <alertscaler/decide/decision.h>

#include "clock.h"

#define POD_CLASSES 1000
#define GROUPS      20
#define PODS_A_NODE 20
#define ROUNDS      7
#define SLICE       UINT64_C(100000) /* fits */
#define MIB         (INT64_C(1) << 20)
#define NOW         ((as_wall_time){INT64_C(1795168800) * AS_US_PER_S})
#define ALL_MAX     200e-3 /* seconds: snapshot and plan of 5,000 nodes */
#define SLICE_MAX   5e-3

static struct as_random dice;

struct world {
    struct as_arena arena;
    struct as_cluster cluster;
    struct as_snapshot_member members[GROUPS];
    const char **names[GROUPS];
    struct as_pod_class pod_classes[POD_CLASSES];
};

static int64_t roll(uint64_t from, uint64_t to)
{
    return (int64_t)(from + as_random_get_below(&dice, to - from + 1));
}

static const char *print(struct as_arena *arena, const char *prefix, size_t number)
{
    char text[64];

    snprintf(text, sizeof(text), "%s%05zu", prefix, number);
    return as_arena_strdup(arena, text);
}

static const struct as_labels *make_labels(struct as_arena *arena, const struct as_label *pairs,
                                           size_t count)
{
    const struct as_labels *labels;

    if (as_labels_new_in(arena, pairs, count, &labels) < 0)
        abort();
    return labels;
}

/* A third of the pod classes select a group. */
static void make_pod_classes(struct world *world)
{
    static const struct as_toleration tolerations[] = {{.key = "node.kubernetes.io/not-ready",
                                                        .value = "",
                                                        .is_exists = true,
                                                        .effects = AS_TAINT_NO_EXECUTE},
                                                       {.key = "node.kubernetes.io/unreachable",
                                                        .value = "",
                                                        .is_exists = true,
                                                        .effects = AS_TAINT_NO_EXECUTE}};

    for (size_t i = 0; i < POD_CLASSES; i++) {
        const struct as_label group = {"group", print(&world->arena, "group-", i % GROUPS)};
        const struct as_label app = {"app", print(&world->arena, "app-", i)};

        world->pod_classes[i] = (struct as_pod_class){
            .requests.amount = {[AS_RES_CPU] = roll(50, 700),
                                [AS_RES_MEMORY] = roll(64, 2000) * MIB,
                                [AS_RES_PODS] = 1},
            .selector = i % 3 == 0 ? make_labels(&world->arena, &group, 1) : NULL,
            .labels = make_labels(&world->arena, &app, 1),
            .namespace_ = "shop",
            .tolerations = tolerations,
            .toleration_count = AS_ARRAY_SIZE(tolerations),
        };
    }
}

static void make_node(struct world *world, struct as_node_fact *node, size_t index)
{
    const size_t group = index % GROUPS;
    struct as_snapshot_member *member = &world->members[group];
    const char *name = print(&world->arena, "ip.eu-central-1.compute.internal-", index);
    const struct as_label labels[] = {
        {"group", print(&world->arena, "group-", group)},
        {"kubernetes.io/arch", "amd64"},
        {"kubernetes.io/hostname", name},
        {"kubernetes.io/os", "linux"},
        {"node.kubernetes.io/instance-type", "m6i.2xlarge"},
        {"topology.kubernetes.io/region", "eu-central-1"},
        {"topology.kubernetes.io/zone", group % 2 ? "a" : "b"},
    };

    *node = (struct as_node_fact){
        .name = name,
        .provider_id = name,
        .labels = make_labels(&world->arena, labels, AS_ARRAY_SIZE(labels)),
        .allocatable.amount = {7900, 30000 * MIB, 0, 110},
        .capacity.amount = {8000, 32000 * MIB, 0, 110},
        .has_cpu = true,
        .has_memory = true,
        .is_ready = true,
        .created = {NOW.us - AS_US_PER_DAY},
    };
    world->names[group][member->node_count++] = name;
    member->size++;
}

/* Pods of a node: none, few, or many. */
static size_t make_pods(struct world *world, struct as_pod_fact *pods, size_t node)
{
    const size_t count = node % 10 == 0 ? 0 : node % 10 < 3 ? 6 : PODS_A_NODE + 5;

    for (size_t i = 0; i < count; i++)
        pods[i] = (struct as_pod_fact){.namespace_ = "shop",
                                       .pod_class = &world->pod_classes[roll(0, POD_CLASSES - 1)],
                                       .node = (uint32_t)node,
                                       .is_bound = true,
                                       .nominated = AS_NO_NODE};
    return count;
}

static struct world *make_world(size_t node_count)
{
    struct world *world = as_xcalloc(1, sizeof(*world));
    struct as_node_fact *nodes = as_arena_alloc(&world->arena, node_count, sizeof(*nodes));
    struct as_pod_fact *pods =
        as_arena_alloc(&world->arena, node_count * (PODS_A_NODE + 6), sizeof(*pods));
    struct as_budget_fact *budget = as_arena_alloc(&world->arena, 1, sizeof(*budget));

    as_random_init(&dice, 1);
    make_pod_classes(world);
    for (size_t i = 0; i < GROUPS; i++) {
        world->names[i] = as_arena_alloc(&world->arena, node_count, sizeof(char *));
        world->members[i] = (struct as_snapshot_member){
            .name = print(&world->arena, "group-", i),
            .id = print(&world->arena, "group-", i),
            .is_member = true,
            .max = 1000,
            .closed = AS_REASON_SCALED,
            .nodes = world->names[i],
            .ready_timeout_us = 15 * AS_US_PER_MIN,
            .unneeded = {.below = 50,
                         .for_us = 10 * AS_US_PER_MIN,
                         .unready_for_us = 20 * AS_US_PER_MIN,
                         .keep = AS_KEEP_DEFAULT},
        };
    }
    for (size_t i = 0; i < node_count; i++) {
        make_node(world, &nodes[i], i);
        world->cluster.pod_count += make_pods(world, &pods[world->cluster.pod_count], i);
    }
    for (size_t i = 0; i < node_count; i++)
        pods[world->cluster.pod_count++] =
            (struct as_pod_fact){.namespace_ = "shop",
                                 .pod_class = &world->pod_classes[roll(0, POD_CLASSES - 1)],
                                 .node = AS_NO_NODE,
                                 .nominated = AS_NO_NODE,
                                 .is_unschedulable = true,
                                 .created = {NOW.us - roll(1, 1000) * AS_US_PER_S}};
    *budget = (struct as_budget_fact){.namespace_ = "shop", .name = "all", .allowed = 100};
    world->cluster.resources.count = AS_RES_NAMED;
    world->cluster.nodes = nodes;
    world->cluster.node_count = node_count;
    world->cluster.pods = pods;
    world->cluster.budgets = budget;
    world->cluster.budget_count = 1;
    return world;
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

static struct times make_snapshot(const struct as_snapshot_request *request, struct as_arena *arena,
                                  struct as_snapshot *snapshot)
{
    struct times times = {0};
    bool is_done = false;
    double start = clock_get_seconds();
    struct as_snapshot_work *work = as_snapshot_begin(request, arena);

    count(&times, start);
    while (!is_done) {
        start = clock_get_seconds();
        is_done = as_snapshot_step(work, SLICE, snapshot);
        count(&times, start);
    }
    return times;
}

static struct times make_plan(const struct as_pool_plan_request *request, struct as_arena *arena,
                              struct as_pool_plan *plan)
{
    struct times times = {0};
    bool is_done = false;
    double start = clock_get_seconds();
    struct as_pool_work *work = as_pool_begin(request, arena);

    count(&times, start);
    while (!is_done) {
        start = clock_get_seconds();
        is_done = as_pool_step(work, SLICE, plan);
        count(&times, start);
    }
    return times;
}

static size_t measure_document(const struct as_snapshot *snapshot,
                               const struct as_pool_config *config)
{
    const struct as_decide_input input = {.version = AS_DECIDE_VERSION,
                                          .now = NOW,
                                          .config.max = 100000,
                                          .snapshot = snapshot,
                                          .pool = config};
    struct as_buf out = AS_BUF_INIT((size_t)16 << 20);

    as_decision_encode_input(&input, &out);
    const size_t size = out.size;
    as_buf_deinit(&out);
    return size;
}

static struct times get_quicker(struct times best, struct times times)
{
    return best.all == 0 || times.all < best.all ? times : best;
}

/* Returns whether it kept its bounds. */
static bool measure(size_t node_count)
{
    const struct as_pool_config config = {.cpu.max = AS_POOL_NO_CAP,
                                          .memory.max = AS_POOL_NO_CAP,
                                          .at_once_empty = 10,
                                          .at_once_drain = 1};
    struct world *world = make_world(node_count);
    const struct as_snapshot_request request = {.cluster = &world->cluster,
                                                .members = world->members,
                                                .member_count = GROUPS,
                                                .config = &config,
                                                .now = NOW};
    struct times made = {0}, planned = {0};
    struct as_snapshot snapshot = {0};
    struct as_pool_plan plan = {0};
    struct as_arena arena = AS_ARENA_INIT;

    for (int i = 0; i < ROUNDS; i++) {
        as_arena_reset(&arena);
        made = get_quicker(made, make_snapshot(&request, &arena, &snapshot));
        const struct as_pool_plan_request pool = {
            .version = AS_DECIDE_VERSION,
            .snapshot = &snapshot,
            .config = &config,
            .terms = {.now = NOW, .max = 100000, .with_fit = true, .with_take = true}};
        planned = get_quicker(planned, make_plan(&pool, &arena, &plan));
    }
    const size_t size = measure_document(&snapshot, &config);
    printf(
        "survey: %zu nodes, %zu pods: %.2f ms, longest slice %.2f ms; plan %.2f ms, longest "
        "slice %.2f ms (at most %.0f ms together, %.0f ms a slice); %zu shapes, %zu pending, %zu "
        "nodes, %zu KiB\n",
        node_count, world->cluster.pod_count, made.all * 1e3, made.longest * 1e3, planned.all * 1e3,
        planned.longest * 1e3, ALL_MAX * 1e3, SLICE_MAX * 1e3, snapshot.pod_class_count,
        snapshot.pending_count, snapshot.node_count, size >> 10);
    as_arena_deinit(&arena);
    as_arena_deinit(&world->arena);
    free(world);
    return made.all + planned.all <= ALL_MAX && made.longest <= SLICE_MAX &&
           planned.longest <= SLICE_MAX && size <= AS_SNAPSHOT_BYTES_MAX;
}

int main(void)
{
    bool is_kept = measure(100);

    is_kept &= measure(1000);
    is_kept &= measure(5000);
    return !is_kept;
}
