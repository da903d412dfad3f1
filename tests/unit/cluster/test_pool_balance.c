/*
 * Caps of a pool, similar groups and how they share new nodes. The cases are those of Cluster
 * Autoscaler.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/cluster/pool_choice.h>
#include <alertscaler/model/labels.h>

#define GPU AS_RES_NAMED

static const struct as_res_names names = {.count = AS_RES_NAMED + 1,
                                          .name = {[GPU] = "nvidia.com/gpu"}};
static const struct as_labels no_labels;

static struct as_resources amounts(int64_t cpu, int64_t memory)
{
    return (struct as_resources){
        .amount = {[AS_RES_CPU] = cpu, [AS_RES_MEMORY] = memory, [AS_RES_PODS] = 100}};
}

/* Caps */

Test(pool_balance, caps)
{
    static const struct {
        struct as_pool_caps caps; /* nodes, cpu, memory */
        int64_t node_cpu, node_memory;
        uint64_t nodes, wanted;
    } rows[] = {
        {{AS_POOL_NO_CAP, 80, 160}, 8, 16, 10, 10},
        {{AS_POOL_NO_CAP, 80, 100}, 8, 16, 10, 6}, /* by memory */
        {{AS_POOL_NO_CAP, 39, 160}, 8, 16, 10, 4}, /* by cpu */
        {{AS_POOL_NO_CAP, 40, 80}, 8, 16, 10, 5},  /* by both */
        {{AS_POOL_NO_CAP, AS_POOL_NO_CAP, AS_POOL_NO_CAP}, 8, 16, 10, 10},
        {{AS_POOL_NO_CAP, 9000 - 6000, AS_POOL_NO_CAP}, 2000, 100, 2, 1}, /* 9 cores in all */
        {{AS_POOL_NO_CAP, AS_POOL_NO_CAP, 1300 - 1100}, 2000, 100, 3, 2}, /* 1300 MiB in all */
        {{3 - 2, AS_POOL_NO_CAP, AS_POOL_NO_CAP}, 4000, 1000, 3, 1},      /* 3 nodes in all */
        {{2, 80, 160}, 8, 16, 10, 2},
        {{0, 80, 160}, 8, 16, 10, 0},
        {{-3, 80, 160}, 8, 16, 10, 0}, /* the pool is above its max */
        {{5, 7, 160}, 8, 16, 10, 0},
        {{5, -7, 160}, 8, 16, 10, 0},
        {{5, 80, 15}, 8, 16, 10, 0},
        {{5, 0, 0}, 0, 0, 10, 5}, /* what a node does not have, no cap is for */
        {{5, 80, 160}, 8, 16, 0, 0},
        {{INT64_MAX - 1, 1, 1}, 1, 1, UINT64_MAX, 1},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        const struct as_resources node = amounts(rows[i].node_cpu, rows[i].node_memory);
        cr_expect_eq(as_pool_cap(&rows[i].caps, &node, rows[i].nodes), rows[i].wanted, "row %zu",
                     i);
    }
}

/* Similarity */

static struct as_node_template make_group(int64_t cpu, int64_t memory)
{
    return (struct as_node_template){
        .shape = {.labels = &no_labels, .allocatable = amounts(cpu, memory)},
        .capacity = amounts(cpu, memory),
        .allocatable = amounts(cpu, memory)};
}

static void expect_similar(const struct as_node_template *a, const struct as_node_template *b,
                           bool wanted, const char *what)
{
    cr_expect_eq(as_pool_is_similar(a, b, &names, NULL, 0), wanted, "%s", what);
    cr_expect_eq(as_pool_is_similar(b, a, &names, NULL, 0), wanted, "%s, turned", what);
    cr_expect(as_pool_is_similar(b, b, &names, NULL, 0), "%s, itself", what);
}

Test(pool_balance, similar_by_resources)
{
    const int64_t memory = 100000;
    const struct as_node_template one = make_group(1000, memory);
    struct as_node_template other = one;
    expect_similar(&one, &other, true, "equal");
    other = make_group(2000, 2 * memory);
    expect_similar(&one, &other, false, "twice as large");
    other = one;
    other.capacity.amount[AS_RES_CPU] = 1001;
    expect_similar(&one, &other, false, "capacity of cpu");
    other = one;
    other.allocatable.amount[AS_RES_CPU] = 999;
    expect_similar(&one, &other, true, "allocatable differs a little");
    other.allocatable.amount[AS_RES_CPU] = 950;
    expect_similar(&one, &other, true, "allocatable differs by 5 %");
    other.allocatable.amount[AS_RES_CPU] = 949;
    expect_similar(&one, &other, false, "allocatable differs by more");
    other.allocatable.amount[AS_RES_CPU] = 500;
    expect_similar(&one, &other, false, "allocatable is half");
    other = one;
    other.capacity.amount[GPU] = other.allocatable.amount[GPU] =
        other.shape.allocatable.amount[GPU] = 1;
    expect_similar(&one, &other, false, "only one has a GPU");
    other = one;
    other.capacity.amount[AS_RES_MEMORY] = memory - memory * 15 / 1000;
    expect_similar(&one, &other, true, "memory differs by 1.5 %");
    other.capacity.amount[AS_RES_MEMORY]--;
    expect_similar(&one, &other, false, "memory differs by more");
    other = one;
    other.capacity.amount[AS_RES_PODS] = 110;
    expect_similar(&one, &other, false, "capacity of pods");
}

Test(pool_balance, similar_by_what_daemonsets_leave)
{
    struct as_node_template one = make_group(1000, 2000), other = one;
    one.shape.allocatable = amounts(500, 1000);
    other.allocatable = amounts(500, 1000);
    other.shape.allocatable = amounts(500, 1000);
    expect_similar(&one, &other, false, "free is equal, allocatable is not");
    other = one;
    expect_similar(&one, &other, true, "equal");
    other.allocatable = amounts(999, 2000);
    other.shape.allocatable = amounts(498, 999);
    expect_similar(&one, &other, true, "nearly");
    other.shape.allocatable = amounts(474, 999);
    expect_similar(&one, &other, false, "free differs by more than 5 %");
    other = one;
    other.shape.allocatable.amount[AS_RES_PODS] = 95;
    expect_similar(&one, &other, true, "free pods do not count");
    cr_expect(as_pool_has_similar_pods(&one, &other));
    other.shape.allocatable.amount[AS_RES_PODS] = 94;
    expect_similar(&one, &other, true, "free pods do not count");
    cr_expect_not(as_pool_has_similar_pods(&one, &other));
}

static struct as_labels *make_labels(const char *const texts[][2], size_t count)
{
    struct as_label pairs[8];
    struct as_labels *labels;
    for (size_t i = 0; i < count; i++)
        pairs[i] = (struct as_label){texts[i][0], texts[i][1]};
    cr_assert_eq(as_labels_new(pairs, count, &labels), 0);
    return labels;
}

static bool is_similar_but_for(const char *const a[][2], size_t a_count, const char *const b[][2],
                               size_t b_count, const char *ignored)
{
    AS_CLEANUP(as_labels_free_p) struct as_labels *left = make_labels(a, a_count);
    AS_CLEANUP(as_labels_free_p) struct as_labels *right = make_labels(b, b_count);
    struct as_node_template one = make_group(1000, 2000), other = one;
    one.shape.labels = left;
    other.shape.labels = right;
    const bool similar = as_pool_is_similar(&one, &other, &names, &ignored, ignored ? 1 : 0);
    cr_expect_eq(as_pool_is_similar(&other, &one, &names, &ignored, ignored ? 1 : 0), similar);
    return similar;
}

Test(pool_balance, similar_by_labels)
{
    static const char *const a[][2] = {{"character", "winnie"}, {"test", "value"}};
    static const char *const b[][2] = {{"test", "value"}};
    static const char *const c[][2] = {{"character", "piglet"}, {"test", "value"}};
    static const char *const d[][2] = {{"character", ""}, {"test", "value"}};
    cr_expect(is_similar_but_for(a, 2, a, 2, NULL));
    cr_expect_not(is_similar_but_for(a, 2, b, 1, NULL), "missing");
    cr_expect_not(is_similar_but_for(a, 2, c, 2, NULL), "other value");
    cr_expect_not(is_similar_but_for(d, 2, b, 1, NULL), "missing is not empty");
    cr_expect(is_similar_but_for(a, 2, b, 1, "character"));
    cr_expect(is_similar_but_for(a, 2, c, 2, "character"));
    cr_expect_not(is_similar_but_for(a, 2, c, 2, "test"));
    cr_expect(is_similar_but_for(b, 0, b, 0, NULL));
    cr_expect_not(is_similar_but_for(b, 0, b, 1, NULL));
}

Test(pool_balance, labels_that_differ_between_groups_do_not_count)
{
    static const char *const free_labels[] = {
        "kubernetes.io/hostname", "topology.kubernetes.io/zone", "topology.kubernetes.io/region",
        "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region",
        "beta.kubernetes.io/fluentd-ds-ready", "kops.k8s.io/instancegroup",
        /* clouds */
        "alpha.eksctl.io/instance-id", "alpha.eksctl.io/nodegroup-name",
        "eks.amazonaws.com/nodegroup", "k8s.amazonaws.com/eniConfig",
        "topology.ebs.csi.aws.com/zone", "topology.k8s.aws/zone-id", "topology.gke.io/zone",
        "cloud.google.com/gke-nodepool", "agentpool", "kubernetes.azure.com/agentpool",
        "topology.disk.csi.azure.com/zone", "kubernetes.azure.com/node-image-version",
        "magnum.openstack.org/nodegroup"};
    for (size_t i = 0; i < AS_ARRAY_SIZE(free_labels); i++) {
        const char *const a[][2] = {{"app", "x"}, {free_labels[i], "one"}};
        const char *const b[][2] = {{"app", "x"}, {free_labels[i], "two"}};
        cr_expect(is_similar_but_for(a, 2, b, 2, NULL), "%s", free_labels[i]);
        cr_expect(is_similar_but_for(a, 2, b, 1, NULL), "%s on one only", free_labels[i]);
        cr_expect_not(as_pool_label_counts(free_labels[i], NULL, 0));
    }
    cr_expect(as_pool_label_counts("node.kubernetes.io/instance-type", NULL, 0));
    cr_expect(as_pool_label_counts("lifecycle", NULL, 0), "spot is another kind of group");
    cr_expect(as_pool_label_counts("kubernetes.io/host", NULL, 0));
}

/* Balance */

struct balance_row {
    int32_t groups[4][2]; /* size and max; max 0: no more of them */
    uint64_t nodes, shared;
    int32_t wanted[4];
};

static void check_rows(const struct balance_row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct as_pool_share shares[4];
        size_t groups = 0;
        for (; groups < 4 && rows[i].groups[groups][1] > 0; groups++)
            shares[groups] = (struct as_pool_share){
                .size = rows[i].groups[groups][0], .max = rows[i].groups[groups][1], .added = 77};
        cr_expect_eq(as_pool_balance(shares, groups, rows[i].nodes), rows[i].shared, "row %zu", i);
        for (size_t k = 0; k < groups; k++)
            cr_expect_eq(shares[k].size + shares[k].added, rows[i].wanted[k],
                         "row %zu, group %zu: %d", i, k, shares[k].size + shares[k].added);
    }
}

Test(pool_balance, each_node_goes_to_the_smallest_group)
{
    static const struct balance_row rows[] = {
        /* one group */
        {{{1, 10}}, 1, 1, {2}},
        {{{1, 10}}, 4, 4, {5}},
        /* below the max */
        {{{1, 10}, {3, 10}, {5, 10}, {5, 10}}, 1, 1, {2, 3, 5, 5}},
        {{{1, 10}, {3, 10}, {5, 10}, {5, 10}}, 2, 2, {3, 3, 5, 5}},
        {{{1, 10}, {3, 10}, {5, 10}, {5, 10}}, 4, 4, {4, 4, 5, 5}},
        {{{1, 10}, {3, 10}, {5, 10}, {5, 10}}, 5, 5, {5, 4, 5, 5}},
        {{{1, 10}, {3, 10}, {5, 10}, {5, 10}}, 10, 10, {6, 6, 6, 6}},
        /* the order of the groups does not matter but among equals */
        {{{5, 10}, {5, 10}, {3, 10}, {1, 10}}, 5, 5, {5, 5, 5, 4}},
        {{{5, 10}, {5, 10}, {5, 10}}, 2, 2, {6, 6, 5}},
        {{{5, 10}}, 0, 0, {5}},
    };
    check_rows(rows, AS_ARRAY_SIZE(rows));
}

Test(pool_balance, no_group_goes_above_its_max)
{
    static const struct balance_row rows[] = {
        {{{1, 1}}, 1, 0, {1}},
        {{{1, 1}, {1, 3}}, 1, 1, {1, 2}},
        {{{1, 1}, {1, 3}}, 5, 2, {1, 3}},
        {{{1, 3}, {3, 10}}, 4, 4, {3, 5}}, /* the first is full, then the next */
        {{{1, 3}, {3, 10}, {5, 7}}, 9, 9, {3, 8, 7}},
        {{{1, 3}, {3, 10}, {5, 7}}, 900, 11, {3, 10, 7}},
        {{{1, 3}, {6, 3}}, 1, 1, {2, 6}}, /* one is above its max */
        {{{6, 3}}, 5, 0, {6}},
        {{{INT32_MAX - 1, INT32_MAX}}, 5, 1, {INT32_MAX}},
    };
    check_rows(rows, AS_ARRAY_SIZE(rows));
    cr_expect_eq(as_pool_balance(NULL, 0, 5), 0);
}
