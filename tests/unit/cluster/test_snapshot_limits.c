/*
 * Clusters beyond the limits of a snapshot: what is cut off errs towards fewer changes, and the
 * document stays below its limit.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include <alertscaler/cluster/snapshot.h>
#include <alertscaler/decide/decision.h>

#define NOW ((as_wall_time){INT64_C(1000) * AS_US_PER_H})

static const struct as_labels no_labels;
static struct as_arena arena;
static struct as_cluster cluster;
static struct as_node_fact *nodes;
static struct as_pod_fact *pods;
static struct as_snapshot_member member;
static struct as_pool_config config;
static struct as_snapshot_request request;
static struct as_snapshot snapshot;

static const char *print(const char *prefix, size_t number)
{
    char text[300];

    snprintf(text, sizeof(text), "%s%05zu", prefix, number);
    return as_arena_strdup(&arena, text);
}

/* Nodes of one group with 10 cores each, and no pods yet. */
static void make_cluster(size_t node_count, size_t pod_max, const char *name)
{
    const char **names = as_arena_alloc(&arena, node_count, sizeof(*names));

    nodes = as_arena_alloc(&arena, node_count, sizeof(*nodes));
    pods = as_arena_alloc(&arena, pod_max, sizeof(*pods));
    for (size_t i = 0; i < node_count; i++) {
        names[i] = print(name, i);
        nodes[i] = (struct as_node_fact){
            .name = names[i],
            .labels = &no_labels,
            .allocatable.amount = {10000, 10000, 0, 110},
            .has_cpu = true,
            .has_memory = true,
            .is_ready = true,
        };
    }
    cluster = (struct as_cluster){
        .resources.count = AS_RES_NAMED, .nodes = nodes, .node_count = node_count, .pods = pods};
    member = (struct as_snapshot_member){.name = "a",
                                         .is_member = true,
                                         .size = (int32_t)node_count,
                                         .max = INT32_MAX,
                                         .closed = AS_REASON_SCALED,
                                         .nodes = names,
                                         .node_count = node_count,
                                         .unneeded = {.below = 50}};
    request = (struct as_snapshot_request){
        .cluster = &cluster, .members = &member, .member_count = 1, .config = &config, .now = NOW};
}

static struct as_pod_class *make_pod_class(int64_t cpu)
{
    struct as_pod_class *pod_class = as_arena_alloc(&arena, 1, sizeof(*pod_class));

    pod_class->requests.amount[AS_RES_CPU] = cpu;
    pod_class->requests.amount[AS_RES_PODS] = 1;
    return pod_class;
}

/* node AS_NO_NODE: it waits, longer than all that follow. */
static void add_pod(const struct as_pod_class *pod_class, uint32_t node)
{
    const size_t index = cluster.pod_count++;

    pods[index] = (struct as_pod_fact){
        .pod_class = pod_class,
        .node = node,
        .nominated = AS_NO_NODE,
        .is_bound = node != AS_NO_NODE,
        .is_unschedulable = node == AS_NO_NODE,
        .created = {NOW.us - AS_US_PER_DAY + (int64_t)index},
    };
}

static void make(void)
{
    struct as_snapshot_work *work = as_snapshot_begin(&request, &arena);

    while (!as_snapshot_step(work, 100000, &snapshot))
        ;
}

static size_t count_candidates(void)
{
    size_t count = 0;

    for (size_t i = 0; i < snapshot.node_count; i++)
        count += snapshot.nodes[i].is_candidate;
    return count;
}

static void begin(void)
{
    arena = AS_ARENA_INIT;
}

static void end(void)
{
    as_arena_deinit(&arena);
}

TestSuite(snapshot_limits, .init = begin, .fini = end);

Test(snapshot_limits, a_million_pods_of_one_pod_class_are_placed_by_division)
{
    make_cluster(100, 1000000, "n");
    const struct as_pod_class *pod_class = make_pod_class(1000);

    for (size_t i = 0; i < 1000000; i++)
        add_pod(pod_class, AS_NO_NODE);
    make();
    cr_assert_eq(snapshot.pending_pods, 1000000);
    cr_assert_eq(snapshot.pending_count, 1);
    cr_assert_eq(snapshot.pending[0].count, 1000000 - 100 * 10);
}

/* Remembered the longest, then the least utilized, then by name; without room lately: last. */
Test(snapshot_limits, of_candidates_with_pods_64_are_looked_at)
{
    make_cluster(70, 100, "n");
    for (uint32_t i = 0; i < 70; i++)
        add_pod(make_pod_class(i == 69 ? 100 : 1000), i);
    const struct as_unneeded known[] = {
        {.node = "n00000", .no_room = {.set = true, .at = {NOW.us - AS_US_PER_MIN}}},
        {.node = "n00068", .since = {.set = true, .at = {NOW.us - AS_US_PER_MIN}}},
    };
    request.unneeded = known;
    request.unneeded_count = 2;
    make();
    cr_assert_eq(count_candidates(), AS_SNAPSHOT_DRAINED_MAX);
    cr_assert_eq(snapshot.kept[AS_STAY_AT_ONCE], 6);
    for (size_t i = 0; i < snapshot.node_count; i++) {
        const char *name = snapshot.nodes[i].node.name;
        const bool is_wanted = (strcmp(name, "n00001") >= 0 && strcmp(name, "n00062") <= 0) ||
                               strcmp(name, "n00068") >= 0;

        cr_expect_eq(snapshot.nodes[i].is_candidate, is_wanted, "%s", name);
    }
}

Test(snapshot_limits, of_each_group_64_nodes_with_most_room_take_pods)
{
    make_cluster(200, 300, "n");
    for (uint32_t i = 0; i < 200; i++)
        add_pod(make_pod_class(i == 0 ? 100 : 6000 + i), i);
    make();
    cr_assert_eq(snapshot.node_count, 1 + AS_SNAPSHOT_ROOMY_MAX);
    cr_assert_str_eq(snapshot.nodes[AS_SNAPSHOT_ROOMY_MAX].node.name, "n00064");
}

/* Pending pod classes come first, the oldest of them; a candidate whose pod class is cut off is
 * none. */
Test(snapshot_limits, of_pod_classes_1000_are_told)
{
    make_cluster(2, 1300, "n");
    add_pod(make_pod_class(1), 0);
    for (int64_t i = 0; i < 1200; i++)
        add_pod(make_pod_class(20000 + i), AS_NO_NODE);
    make();
    cr_assert_eq(snapshot.pod_class_count, AS_SNAPSHOT_POD_CLASSES_MAX);
    cr_assert_eq(snapshot.pending_count, AS_SNAPSHOT_POD_CLASSES_MAX);
    cr_assert_eq(snapshot.pending_pods, 1200);
    cr_assert_eq(snapshot.pod_classes[snapshot.pending[999].pod_class].pod.requests.amount[0],
                 20999);
    cr_assert_eq(count_candidates(), 1); /* the empty one */
    cr_assert_eq(snapshot.kept[AS_STAY_NO_ROOM], 1);
}

static size_t measure_document(void)
{
    struct as_buf out = AS_BUF_INIT((size_t)16 << 20);
    const struct as_decide_input input = {
        .version = AS_DECIDE_VERSION, .now = NOW, .snapshot = &snapshot, .pool = &config};

    as_decision_encode_input(&input, &out);
    const size_t size = out.size;
    AS_CLEANUP(as_decide_document_free_p) struct as_decide_document *copy = NULL;
    struct as_error error = AS_ERROR_INIT;
    cr_assert_eq(as_decision_decode_input(out.data, out.size, &copy, &error), 0, "%s", error.text);
    as_buf_deinit(&out);
    return size;
}

/* Labels that are no labels: control characters take six bytes each. */
Test(snapshot_limits, the_document_stays_below_a_mebibyte)
{
    const size_t count = 3000;
    char long_name[260], value[512];

    memset(long_name, 'x', 240);
    long_name[240] = '\0';
    memset(value, '\1', sizeof(value) - 1);
    value[sizeof(value) - 1] = '\0';
    make_cluster(count, 3000, long_name);
    for (uint32_t i = 0; i < 1500; i++) {
        const struct as_label label = {print("key-", i), value};
        struct as_pod_class *pod_class = make_pod_class(i < 1000 ? 20000 + i : 1);

        cr_assert_eq(as_labels_new_in(&arena, &label, 1, &pod_class->selector), 0);
        add_pod(pod_class, i < 1000 ? AS_NO_NODE : i);
    }
    make();
    const size_t size = measure_document();
    cr_expect_leq(size, AS_SNAPSHOT_BYTES_MAX);
    cr_expect_gt(size, AS_SNAPSHOT_BYTES_MAX / 4, "%zu: it is not cut more than needed", size);
    uint64_t all = count_candidates();
    for (size_t i = 0; i < AS_STAY_COUNT; i++)
        all += snapshot.kept[i];
    cr_expect_eq(all, count);
}

/* A pod class that is larger than any sensible one is no part of a snapshot. */
Test(snapshot_limits, a_giant_pod_class_is_cut_off)
{
    static char value[64 << 10];
    const struct as_label label = {"key", value};

    memset(value, 'x', sizeof(value) - 1);
    make_cluster(1, 10, "n");
    struct as_pod_class *pod_class = make_pod_class(1);
    cr_assert_eq(as_labels_new_in(&arena, &label, 1, &pod_class->selector), 0);
    add_pod(pod_class, 0);
    add_pod(pod_class, AS_NO_NODE);
    make();
    cr_expect_eq(snapshot.pod_class_count, 0);
    cr_expect_eq(snapshot.pending_count, 0);
    cr_expect_eq(snapshot.pending_pods, 1);
    cr_expect_eq(snapshot.kept[AS_STAY_NO_ROOM], 1);
}
