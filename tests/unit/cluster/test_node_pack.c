/*
 * Where pending pods find room, on nodes that are there and on new ones. The cases of the estimate
 * are those of Cluster Autoscaler; every result is that of placing pods one by one.
 */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/random.h>
#include <alertscaler/cluster/node_pack.h>

#define NO_LIMIT    UINT64_MAX
#define POD_CLASSES 8
#define GPU         AS_RES_NAMED

static const struct as_res_names names = {.count = AS_RES_NAMED + 1,
                                          .name = {[GPU] = "nvidia.com/gpu"}};
static const struct as_labels no_labels;
static struct as_arena arena;

static void end_arena(void)
{
    as_arena_deinit(&arena);
}

TestSuite(node_pack, .fini = end_arena);

static const struct as_labels *make_labels(const char *name, const char *value)
{
    struct as_labels *labels, *copy;
    cr_assert_eq(as_labels_new(&(struct as_label){name, value}, 1, &labels), 0);
    copy = as_labels_copy_to(&arena, labels);
    as_labels_free(labels);
    return copy;
}

static struct as_resources amounts(int64_t cpu, int64_t memory, int64_t pods)
{
    return (struct as_resources){
        .amount = {[AS_RES_CPU] = cpu, [AS_RES_MEMORY] = memory, [AS_RES_PODS] = pods}};
}

static struct as_node_shape make_node(int64_t cpu, int64_t memory, int64_t pods)
{
    return (struct as_node_shape){.labels = &no_labels, .allocatable = amounts(cpu, memory, pods)};
}

static struct as_pod_class make_pod_class(int64_t cpu, int64_t memory)
{
    return (struct as_pod_class){.requests = amounts(cpu, memory, 1), .labels = &no_labels};
}

static void run(struct as_pack *pack, uint64_t slice)
{
    while (!as_pack_step(pack, slice))
        ;
}

static struct as_pack_request make_request(const struct as_pending *pending, size_t count)
{
    return (struct as_pack_request){
        .names = &names, .pending = pending, .pending_count = count, .fits = AS_PACK_FITS_MAX};
}

static struct as_pack estimate(const struct as_node_shape *node, uint64_t limit,
                               const struct as_pending *pending, size_t count)
{
    const struct as_pack_request request = make_request(pending, count);
    struct as_pack pack;
    as_pack_init_on_new(&pack, &request, node, NULL, limit, &arena);
    run(&pack, UINT64_MAX);
    return pack;
}

static struct as_pack place(const struct as_node_run *runs, size_t run_count,
                            const struct as_pending *pending, size_t count)
{
    const struct as_pack_request request = make_request(pending, count);
    struct as_pack pack;
    as_pack_init_on_nodes(&pack, &request, runs, run_count, &arena);
    run(&pack, UINT64_MAX);
    return pack;
}

static struct as_node_run make_run(const struct as_node_shape *node, uint64_t count)
{
    return (struct as_node_run){.node = node, .room = {.left = node->allocatable}, .count = count};
}

/* Estimates */

Test(node_pack, as_many_nodes_as_cluster_autoscaler)
{
    static const struct as_host_port port = {"0.0.0.0", "TCP", 5555};
    static const struct {
        const char *what;
        int64_t node_cpu, node_memory, node_pods;
        uint64_t limit;
        struct {
            int64_t cpu, memory;
            uint64_t count, left;
        } pods[3];
        bool has_port, is_loner;
        uint64_t nodes;
        bool is_at_limit;
    } rows[] = {
        {"by resources", 1000, 2000, 10, NO_LIMIT, {{350, 1000, 10, 0}}, .nodes = 5},
        {"by the number of pods", 10000, 20000, 10, NO_LIMIT, {{10, 100, 20, 0}}, .nodes = 2},
        {"a host port: one a node",
         1000,
         5000,
         10,
         NO_LIMIT,
         {{200, 1000, 8, 0}},
         .has_port = true,
         .nodes = 8},
        {"anti-affinity to itself: one a node",
         1000,
         5000,
         10,
         NO_LIMIT,
         {{200, 1000, 8, 0}},
         .is_loner = true,
         .nodes = 8},
        {"a limit", 1000, 5000, 10, 5, {{500, 1000, 20, 10}}, .nodes = 5, .is_at_limit = true},
        {"large pods first",
         1000,
         5000,
         10,
         5,
         {{50, 1000, 10, 10}, {500, 1000, 10, 0}},
         .nodes = 5,
         .is_at_limit = true},
        {"its benchmark",
         1000,
         5000,
         100,
         3000,
         {{50, 100, 50000, 0}, {95, 190, 1000, 0}},
         .nodes = 2595},
        {"its order: cpu and memory",
         4,
         600,
         10,
         1,
         {{1, 1, 1, 1}, {2, 100, 1, 0}, {2, 1, 1, 0}},
         .nodes = 1,
         .is_at_limit = true},
        {"its order, given in that order",
         4,
         600,
         10,
         1,
         {{2, 100, 1, 0}, {2, 1, 1, 0}, {1, 1, 1, 1}},
         .nodes = 1,
         .is_at_limit = true},
        {"too large for an empty node",
         1000,
         5000,
         10,
         NO_LIMIT,
         {{2000, 100, 3, 3}, {100, 100, 3, 0}},
         .nodes = 1},
        {"only too large ones", 1000, 5000, 10, NO_LIMIT, {{2000, 100, 3, 3}}, .nodes = 0},
        {"a limit that one too large does not use up",
         1000,
         5000,
         10,
         1,
         {{2000, 100, 3, 3}, {100, 100, 3, 0}},
         .nodes = 1},
        {"the gap of an earlier node first",
         1000,
         5000,
         10,
         NO_LIMIT,
         {{600, 100, 2, 0}, {500, 100, 1, 0}, {400, 100, 2, 0}},
         .nodes = 3},
        {"without requests", 1000, 5000, 10, NO_LIMIT, {{0, 0, 25, 0}}, .nodes = 3},
        {"no room for more",
         1000,
         5000,
         10,
         0,
         {{100, 100, 1, 1}},
         .nodes = 0,
         .is_at_limit = true},
        {"nobody waits", 1000, 5000, 10, NO_LIMIT, {{100, 100, 0, 0}}, .nodes = 0},
        {"a million pods",
         1000,
         5000,
         10,
         1000,
         {{100, 100, 1000000, 990000}},
         .nodes = 1000,
         .is_at_limit = true},
        {"more pods than can be",
         1000,
         5000,
         10,
         7,
         {{100, 100, UINT64_MAX, UINT64_MAX - 70}},
         .nodes = 7,
         .is_at_limit = true},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        struct as_node_shape node =
            make_node(rows[i].node_cpu, rows[i].node_memory, rows[i].node_pods);
        struct as_pod_class pod_classes[AS_ARRAY_SIZE(rows[i].pods)];
        struct as_pending pending[AS_ARRAY_SIZE(rows[i].pods)];
        for (size_t k = 0; k < AS_ARRAY_SIZE(rows[i].pods); k++) {
            pod_classes[k] = make_pod_class(rows[i].pods[k].cpu, rows[i].pods[k].memory);
            if (rows[i].has_port) {
                pod_classes[k].ports = &port;
                pod_classes[k].port_count = 1;
            }
            pod_classes[k].loner = rows[i].is_loner;
            pending[k] = (struct as_pending){&pod_classes[k], rows[i].pods[k].count};
        }
        struct as_pack pack = estimate(&node, rows[i].limit, pending, AS_ARRAY_SIZE(pending));
        cr_expect_eq(pack.nodes, rows[i].nodes, "%s: %" PRIu64, rows[i].what, pack.nodes);
        cr_expect_eq(pack.is_at_limit, rows[i].is_at_limit, "%s", rows[i].what);
        cr_expect_not(pack.is_cut, "%s", rows[i].what);
        for (size_t k = 0; k < AS_ARRAY_SIZE(pending); k++)
            cr_expect_eq(pack.left[k], rows[i].pods[k].left, "%s: %" PRIu64 " of %zu", rows[i].what,
                         pack.left[k], k);
        as_arena_reset(&arena);
    }
}

Test(node_pack, equal_new_nodes_are_one_run)
{
    const struct as_node_shape node = make_node(1000, 5000, 100);
    const struct as_pod_class small = make_pod_class(50, 100), large = make_pod_class(95, 190);
    const struct as_pending pending[] = {{&small, 50000}, {&large, 1000}};
    const struct as_pack pack = estimate(&node, 3000, pending, AS_ARRAY_SIZE(pending));
    struct as_resources requests;
    cr_expect_eq(pack.run_count, 2);
    cr_expect_eq(pack.runs[0].count, 100);
    cr_expect_eq(pack.runs[0].received, 11);
    cr_expect_eq(pack.runs[1].count, 2495);
    cr_expect_eq(pack.runs[1].received, 20);
    cr_expect_lt(pack.fits, 20);
    cr_expect_eq(as_pack_get_placed(&pack, &requests), 51000);
    cr_expect_eq(requests.amount[AS_RES_CPU], 50000 * 50 + 1000 * 95);
    cr_expect_eq(requests.amount[AS_RES_MEMORY], 50000 * 100 + 1000 * 190);
    cr_expect_eq(requests.amount[AS_RES_PODS], 51000);
}

Test(node_pack, a_group_whose_taints_or_labels_refuse_a_pod_class_does_not_grow_for_it)
{
    static const struct as_taint taint = {"gpu", "true", AS_TAINT_NO_SCHEDULE};
    static const struct as_toleration toleration = {.key = "gpu", .is_exists = true};
    struct as_node_shape node = make_node(1000, 1000, 10);
    struct as_pod_class plain = make_pod_class(600, 1), tolerant = plain, choosy = plain;
    node.taints = &taint;
    node.taint_count = 1;
    tolerant.tolerations = choosy.tolerations = &toleration;
    tolerant.toleration_count = choosy.toleration_count = 1;
    choosy.selector = make_labels("life", "spot");
    const struct as_pending pending[] = {{&plain, 3}, {&tolerant, 3}, {&choosy, 3}};
    struct as_pack pack = estimate(&node, NO_LIMIT, pending, AS_ARRAY_SIZE(pending));
    cr_expect_eq(pack.nodes, 3);
    cr_expect_eq(pack.left[0], 3);
    cr_expect_eq(pack.left[1], 0);
    cr_expect_eq(pack.left[2], 3);
    node.labels = choosy.selector;
    pack = estimate(&node, NO_LIMIT, pending, AS_ARRAY_SIZE(pending));
    cr_expect_eq(pack.nodes, 6);
    cr_expect_eq(pack.left[2], 0);
}

Test(node_pack, what_daemonsets_take_of_a_new_node_is_gone)
{
    static const struct as_host_port port = {"0.0.0.0", "TCP", 9100};
    const struct as_node_shape node = make_node(1000, 1000, 10);
    struct as_pod_class daemon = make_pod_class(300, 10), web = make_pod_class(350, 10), same = web;
    struct as_node_room empty = {.left = node.allocatable};
    struct as_pack pack;
    daemon.ports = same.ports = &port;
    daemon.port_count = same.port_count = 1;
    as_node_room_take(&empty, &names, &daemon, 1, &arena);
    const size_t guests = empty.guest_count;
    const struct as_pending pending[] = {{&web, 4}, {&same, 2}};
    const struct as_pack_request request = make_request(pending, AS_ARRAY_SIZE(pending));
    as_pack_init_on_new(&pack, &request, &node, &empty, NO_LIMIT, &arena);
    run(&pack, UINT64_MAX);
    cr_expect_eq(pack.nodes, 2);
    cr_expect_eq(pack.left[0], 0);
    cr_expect_eq(pack.left[1], 2);
    cr_expect_eq(empty.guest_count, guests);
    cr_expect_eq(empty.left.amount[AS_RES_CPU], 700);
}

Test(node_pack, loners_of_two_kinds_share_nodes)
{
    const struct as_node_shape node = make_node(1000, 1000, 10);
    struct as_pod_class one = make_pod_class(100, 1), other = make_pod_class(90, 1);
    one.loner = 1;
    other.loner = 2;
    const struct as_pending pending[] = {{&one, 5}, {&other, 7}};
    const struct as_pack pack = estimate(&node, NO_LIMIT, pending, AS_ARRAY_SIZE(pending));
    cr_expect_eq(pack.nodes, 7);
    cr_expect_eq(pack.run_count, 2);
    cr_expect_eq(pack.runs[0].room.guest_count, 2);
    cr_expect_eq(pack.runs[1].room.guest_count, 1);
}

Test(node_pack, a_split_run_has_guests_of_its_own)
{
    const struct as_node_shape node = make_node(1000, 1000, 10);
    struct as_pod_class pod_classes[4];
    struct as_pending pending[4];
    for (size_t i = 0; i < 4; i++) {
        pod_classes[i] = make_pod_class(100, 1);
        pod_classes[i].loner = i + 1;
        pending[i] = (struct as_pending){&pod_classes[i], i == 0 ? 4 : i};
    }
    struct as_pack pack = estimate(&node, NO_LIMIT, pending, 4);
    cr_expect_eq(pack.nodes, 4);
    uint64_t guests = 0;
    for (size_t i = 0; i < pack.run_count; i++) {
        guests += pack.runs[i].room.guest_count * pack.runs[i].count;
        cr_expect_eq(pack.runs[i].room.guests[0], &pod_classes[0]);
        cr_expect_eq(pack.runs[i].received, pack.runs[i].room.guest_count);
    }
    cr_expect_eq(guests, 4 + 1 + 2 + 3);
}

/* Nodes that are there */

Test(node_pack, the_first_node_with_room_takes_a_pod)
{
    const struct as_node_shape node = make_node(1000, 1000, 10);
    struct as_node_run runs[] = {make_run(&node, 1), make_run(&node, 1), make_run(&node, 1)};
    const struct as_pod_class large = make_pod_class(700, 1), small = make_pod_class(300, 1),
                              none = make_pod_class(0, 0);
    const struct as_pending pending[] = {{&small, 2}, {&large, 3}, {&small, 9}, {&none, 4}};
    runs[0].room.left = amounts(650, 1000, 10);
    struct as_pack pack = place(runs, AS_ARRAY_SIZE(runs), pending, AS_ARRAY_SIZE(pending));
    cr_expect_eq(pack.left[0], 0);
    cr_expect_eq(pack.left[1], 1);
    cr_expect_eq(pack.left[2], 7);
    cr_expect_eq(pack.left[3], 0);
    cr_expect_eq(pack.run_count, 3);
    cr_expect_eq(pack.runs[0].received, 2 + 4);
    cr_expect_eq(pack.runs[1].received, 2);
    cr_expect_eq(pack.runs[2].received, 2);
    cr_expect_eq(pack.runs[1].room.left.amount[AS_RES_CPU], 0);
    cr_expect_eq(runs[1].room.left.amount[AS_RES_CPU], 1000, "what was given stays");
    cr_expect_eq(pack.nodes, 0);

    runs[0].room.left = amounts(-50, -1, 1); /* more is requested than there is */
    pack = place(runs, 1, pending, AS_ARRAY_SIZE(pending));
    cr_expect_eq(pack.left[0], 2);
    cr_expect_eq(pack.left[3], 3);
}

Test(node_pack, nodes_on_their_way_are_a_run)
{
    const struct as_node_shape node = make_node(1000, 1000, 10);
    struct as_node_run runs[] = {make_run(&node, 1), make_run(&node, 100)};
    const struct as_pod_class half = make_pod_class(500, 1), most = make_pod_class(700, 1);
    const struct as_pending pending[] = {{&most, 1}, {&half, 51}, {&most, 80}, {&half, 9}};
    const struct as_pack pack = place(runs, AS_ARRAY_SIZE(runs), pending, AS_ARRAY_SIZE(pending));
    uint64_t nodes = 0;
    for (size_t i = 0; i < pack.run_count; i++)
        nodes += pack.runs[i].count;
    cr_expect_eq(nodes, 101);
    cr_expect_eq(pack.left[0] + pack.left[1], 0);
    cr_expect_eq(pack.left[2], 80 - 74);
    cr_expect_eq(pack.left[3], 8);
    cr_expect_leq(pack.run_count, 4);
}

Test(node_pack, labels_and_taints_are_read_once_a_class_and_the_hostname_on_each_node)
{
    enum { NODES = 600 };
    static const struct as_taint taint = {"spot", "", AS_TAINT_NO_SCHEDULE};
    static const struct as_toleration toleration = {.key = "spot", .is_exists = true};
    static const char *const zones[] = {"b"};
    static const struct as_node_requirement in_zone = {.key = "topology.kubernetes.io/zone",
                                                       .operator_ = AS_NODE_IN,
                                                       .values = zones,
                                                       .value_count = 1};
    static const struct as_node_term term = {&in_zone, 1};
    static struct as_node_shape nodes[NODES];
    static struct as_node_run runs[NODES];
    struct as_pod_class spot = make_pod_class(10, 1), zonal = spot, named = spot, claimed = spot;
    for (size_t i = 0; i < NODES; i++) {
        char name[16];
        struct as_labels *labels;
        snprintf(name, sizeof(name), "n%zu", i);
        const struct as_label pairs[] = {{"kubernetes.io/hostname", name},
                                         {"topology.kubernetes.io/zone", i % 2 ? "b" : "a"},
                                         {"serial", name}};
        cr_assert_eq(as_labels_new(pairs, AS_ARRAY_SIZE(pairs), &labels), 0);
        nodes[i] = make_node(10, 10, 1);
        nodes[i].name = as_arena_strdup(&arena, name);
        nodes[i].labels = as_labels_copy_to(&arena, labels);
        as_labels_free(labels);
        if (i >= NODES / 2) {
            nodes[i].taints = &taint;
            nodes[i].taint_count = 1;
        }
        runs[i] = make_run(&nodes[i], 1);
    }
    spot.tolerations = zonal.tolerations = &toleration;
    spot.toleration_count = zonal.toleration_count = 1;
    zonal.has_affinity = true;
    zonal.terms = &term;
    zonal.term_count = 1;
    named.selector = make_labels("kubernetes.io/hostname", "n299");
    claimed.zone = "a";
    const struct as_pending pending[] = {
        {&named, 2}, {&zonal, 299}, {&claimed, 1000}, {&spot, 1000}};
    const struct as_pack pack = place(runs, NODES, pending, AS_ARRAY_SIZE(pending));
    cr_expect_eq(pack.left[0], 1);
    cr_expect_eq(pack.left[1], 0);
    cr_expect_eq(pack.left[2], 1000 - 150);
    cr_expect_eq(pack.left[3], 1000 - 150);
    cr_expect_eq(pack.runs[299].received, 1);
    /* the labels of each node, each node and pod class, the hostname of each node; some to spare */
    cr_expect_lt(pack.fits, (3 + 4 + 2 + 1) * NODES);
}

Test(node_pack, other_resources_count_too)
{
    struct as_node_shape node = make_node(1000, 1000, 10);
    struct as_pod_class pod_class = make_pod_class(1, 1);
    node.allocatable.amount[GPU] = 4;
    pod_class.requests.amount[GPU] = 3;
    const struct as_pending pending = {&pod_class, 3};
    cr_expect_eq(estimate(&node, NO_LIMIT, &pending, 1).nodes, 3);
    const struct as_node_run runs[] = {make_run(&node, 2)};
    cr_expect_eq(place(runs, 1, &pending, 1).left[0], 1);
}

/* The budget */

Test(node_pack, what_was_packed_when_the_budget_ends_counts)
{
    const struct as_node_shape node = make_node(1000, 1000, 10);
    struct as_pod_class pod_classes[POD_CLASSES];
    struct as_pending pending[POD_CLASSES];
    struct as_pack pack;
    for (size_t i = 0; i < POD_CLASSES; i++) {
        pod_classes[i] = make_pod_class((int64_t)(600 + i), 1);
        pending[i] = (struct as_pending){&pod_classes[i], 10};
    }
    struct as_pack_request request = make_request(pending, POD_CLASSES);
    as_pack_init_on_new(&pack, &request, &node, NULL, NO_LIMIT, &arena);
    run(&pack, UINT64_MAX);
    const uint64_t all = pack.fits;
    cr_expect_eq(pack.nodes, 10 * POD_CLASSES);
    uint64_t before = 0;
    for (request.fits = 0; request.fits <= all; request.fits++) {
        as_pack_init_on_new(&pack, &request, &node, NULL, NO_LIMIT, &arena);
        run(&pack, 3);
        uint64_t left = 0;
        for (size_t i = 0; i < POD_CLASSES; i++)
            left += pack.left[i];
        cr_expect_eq(pack.is_cut, request.fits < all);
        cr_expect_eq(pack.fits, request.fits);
        cr_expect_eq(pack.nodes, 10 * POD_CLASSES - left, "each has a node of its own");
        cr_expect_geq(pack.nodes, before);
        before = pack.nodes;
    }
    cr_expect_eq(before, 10 * POD_CLASSES);
}

/* One by one: the second implementation, which knows no runs and no division */

struct single {
    struct as_node_room room;
    const struct as_node_shape *node;
    bool is_used;
};

static bool put(struct single *single, const struct as_pod_class *pod_class)
{
    if (as_node_admits(single->node, pod_class) != AS_FITS ||
        as_node_room_count(&single->room, &names, pod_class, 1, NULL) == 0)
        return false;
    as_node_room_take(&single->room, &names, pod_class, 1, &arena);
    single->is_used = true;
    return true;
}

static bool put_on_any(struct single *singles, size_t count, const struct as_pod_class *pod_class)
{
    for (size_t i = 0; i < count; i++)
        if (put(&singles[i], pod_class))
            return true;
    return false;
}

static double get_score(const struct as_node_shape *node, const struct as_pod_class *pod_class)
{
    const int64_t *has = node->allocatable.amount, *wants = pod_class->requests.amount;
    return (double)wants[AS_RES_CPU] / (double)has[AS_RES_CPU] +
           (double)wants[AS_RES_MEMORY] / (double)has[AS_RES_MEMORY];
}

/* The pod classes' order by insertion: stable, falling. */
static void order_by_score(const struct as_node_shape *node, const struct as_pending *pending,
                           size_t count, size_t *order)
{
    for (size_t i = 0; i < count; i++) {
        size_t at = i;
        for (; at > 0 && get_score(node, pending[order[at - 1]].pod_class) <
                             get_score(node, pending[i].pod_class);
             at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
}

static int compare_numbers(const void *a, const void *b)
{
    const int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
    return (left > right) - (left < right);
}

/* The same number of nodes with the same cpu left, whatever their order. */
static void check_rooms(const struct as_pack *pack, const struct single *singles, size_t count)
{
    int64_t *ours = as_arena_alloc(&arena, count, sizeof(*ours));
    int64_t *theirs = as_arena_alloc(&arena, count, sizeof(*theirs));
    size_t filled = 0;
    for (size_t i = 0; i < pack->run_count; i++)
        for (uint64_t k = 0; k < pack->runs[i].count; k++) {
            cr_assert_lt(filled, count);
            ours[filled++] = pack->runs[i].room.left.amount[AS_RES_CPU];
        }
    cr_assert_eq(filled, count);
    for (size_t i = 0; i < count; i++)
        theirs[i] = singles[i].room.left.amount[AS_RES_CPU];
    qsort(ours, count, sizeof(*ours), compare_numbers);
    qsort(theirs, count, sizeof(*theirs), compare_numbers);
    for (size_t i = 0; i < count; i++)
        cr_assert_eq(ours[i], theirs[i]);
}

static struct as_random dice;

static uint64_t roll(uint64_t sides)
{
    return as_random_get_below(&dice, sides);
}

static void roll_pod_classes(struct as_pod_class *pod_classes, struct as_pending *pending,
                             size_t count)
{
    static const struct as_host_port port = {"0.0.0.0", "TCP", 80};
    for (size_t i = 0; i < count; i++) {
        pod_classes[i] = make_pod_class((int64_t)roll(13) * 50, (int64_t)roll(13) * 50);
        pod_classes[i].requests.amount[GPU] = roll(5) == 0;
        pod_classes[i].loner = roll(4) == 0 ? 1 + roll(2) : 0;
        pod_classes[i].ports = &port;
        pod_classes[i].port_count = roll(5) == 0;
        pod_classes[i].selector = roll(4) == 0 ? make_labels("zone", roll(2) ? "a" : "b") : NULL;
        pending[i] = (struct as_pending){&pod_classes[i], roll(roll(3) == 0 ? 60 : 4)};
    }
}

static void check_left(const struct as_pack *pack, const uint64_t *left, size_t count)
{
    for (size_t i = 0; i < count; i++)
        cr_assert_eq(pack->left[i], left[i], "shape %zu: %" PRIu64 ", one by one %" PRIu64, i,
                     pack->left[i], left[i]);
}

Test(node_pack, new_nodes_as_one_by_one)
{
    enum { LIMIT = 40, POD_CLASSES_HERE = 3 * POD_CLASSES };
    static struct single singles[LIMIT];
    as_random_init(&dice, 1);
    for (int i = 0; i < 3000; i++) {
        struct as_node_shape node = make_node(1000, 800, 1 + (int64_t)roll(12));
        struct as_pod_class pod_classes[POD_CLASSES_HERE];
        struct as_pending pending[POD_CLASSES_HERE];
        size_t order[POD_CLASSES_HERE], nodes = 0;
        uint64_t left[POD_CLASSES_HERE];
        const uint64_t limit = roll(LIMIT + 1);
        node.allocatable.amount[GPU] = (int64_t)roll(3);
        node.labels = make_labels("zone", "a");
        roll_pod_classes(pod_classes, pending, POD_CLASSES_HERE);
        order_by_score(&node, pending, POD_CLASSES_HERE, order);
        for (size_t k = 0; k < POD_CLASSES_HERE; k++) {
            const struct as_pending *waits = &pending[order[k]];
            left[order[k]] = waits->count;
            for (uint64_t pod = 0; pod < waits->count; pod++) {
                struct single fresh = {.node = &node, .room = {.left = node.allocatable}};
                if (put_on_any(singles, nodes, waits->pod_class))
                    left[order[k]]--;
                else if (nodes < limit && put(&fresh, waits->pod_class)) {
                    singles[nodes++] = fresh;
                    left[order[k]]--;
                }
            }
        }
        struct as_pack pack = estimate(&node, limit, pending, POD_CLASSES_HERE);
        cr_assert_eq(pack.nodes, nodes);
        check_left(&pack, left, POD_CLASSES_HERE);
        check_rooms(&pack, singles, nodes);
        as_arena_reset(&arena);
    }
}

Test(node_pack, nodes_that_are_there_as_one_by_one_in_any_slices)
{
    enum { RUNS = 12, MOST = 5, POD_CLASSES_HERE = 3 * POD_CLASSES };
    static struct single singles[RUNS * MOST];
    as_random_init(&dice, 2);
    for (int i = 0; i < 2000; i++) {
        struct as_node_shape nodes[RUNS];
        struct as_node_run runs[RUNS];
        struct as_pod_class pod_classes[POD_CLASSES_HERE];
        struct as_pending pending[POD_CLASSES_HERE];
        uint64_t left[POD_CLASSES_HERE];
        size_t count = 0;
        for (size_t k = 0; k < RUNS; k++) {
            nodes[k] = make_node((int64_t)roll(20) * 100 - 200, (int64_t)roll(20) * 100, 10);
            nodes[k].allocatable.amount[GPU] = (int64_t)roll(3);
            nodes[k].labels = make_labels("zone", roll(2) ? "a" : "b");
            runs[k] = make_run(&nodes[k], 1 + (roll(2) ? roll(MOST) : 0));
            for (uint64_t n = 0; n < runs[k].count; n++)
                singles[count++] = (struct single){.room = runs[k].room, .node = &nodes[k]};
        }
        roll_pod_classes(pod_classes, pending, POD_CLASSES_HERE);
        for (size_t k = 0; k < POD_CLASSES_HERE; k++) {
            left[k] = pending[k].count;
            while (left[k] > 0 && put_on_any(singles, count, pending[k].pod_class))
                left[k]--;
        }
        struct as_pack pack = place(runs, RUNS, pending, POD_CLASSES_HERE), sliced;
        check_left(&pack, left, POD_CLASSES_HERE);
        check_rooms(&pack, singles, count);

        struct as_pack_request request = make_request(pending, POD_CLASSES_HERE);
        request.fits = roll(pack.fits + 10);
        as_pack_init_on_nodes(&pack, &request, runs, RUNS, &arena);
        run(&pack, UINT64_MAX);
        as_pack_init_on_nodes(&sliced, &request, runs, RUNS, &arena);
        run(&sliced, 1 + roll(20));
        cr_assert_eq(pack.is_cut, sliced.is_cut);
        cr_assert_eq(pack.fits, sliced.fits);
        check_left(&pack, sliced.left, POD_CLASSES_HERE);
        as_arena_reset(&arena);
    }
}
