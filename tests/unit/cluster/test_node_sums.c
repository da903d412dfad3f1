/*
 * The source `nodes`, and the utilization of one node, case by case; support/nodes_text.h has the
 * words. A node's pods stand behind it.
 */
#include <alertscaler/cluster/node_sums.h>

#include <errno.h>
#include <math.h>
#include <string.h>

#include <criterion/criterion.h>

#include "../../support/nodes_text.h"

#define NODES_MAX 8
#define PODS_MAX  32
#define NOW       ((as_wall_time){INT64_C(1000) * AS_US_PER_H})

static struct nodes_text texts;
static struct as_node_fact nodes[NODES_MAX];
static struct as_pod_fact pods[PODS_MAX];
static struct as_cluster cluster;
static struct as_node_pods by_node;
static struct as_error error;

static void prepare(void)
{
    nodes_text_init(&texts);
    error = AS_ERROR_INIT;
}

static void clean(void)
{
    nodes_text_deinit(&texts);
}

TestSuite(node_sums, .init = prepare, .fini = clean);

/* "cpu:10 memory:10; cpu:1; cpu:2 | cpu:20 memory:5": two nodes, n0 and n1, two pods on n0. */
static void read_cluster(const char *text)
{
    char *rest = as_arena_strdup(&texts.arena, text), *node;

    cluster = (struct as_cluster){.nodes = nodes, .pods = pods};
    while (*text && (node = strsep(&rest, "|")) != NULL) {
        const uint32_t index = (uint32_t)cluster.node_count++;
        const char name[] = {'n', (char)('0' + index), '\0'};
        char *pod;

        cr_assert_lt(index, NODES_MAX);
        nodes[index] = nodes_text_read_node(&texts, name, strsep(&node, ";"));
        while ((pod = strsep(&node, ";")) != NULL) {
            cr_assert_lt(cluster.pod_count, PODS_MAX);
            pods[cluster.pod_count++] =
                (struct as_pod_fact){.pod_class = nodes_text_read_pod(&texts, pod),
                                     .node = index,
                                     .nominated = AS_NO_NODE};
        }
    }
    cluster.resources = texts.names;
    as_node_pods_init(&by_node, &cluster, &texts.arena);
}

Test(node_sums, pods_by_node)
{
    static const uint32_t places[] = {2, AS_NO_NODE, 0, 2, 2, AS_NO_NODE, 0};
    static const uint32_t on_0[] = {2, 6}, on_2[] = {0, 3, 4};
    size_t count;

    for (size_t i = 0; i < AS_ARRAY_SIZE(places); i++)
        pods[i] = (struct as_pod_fact){.node = places[i]};
    cluster = (struct as_cluster){
        .nodes = nodes, .node_count = 4, .pods = pods, .pod_count = AS_ARRAY_SIZE(places)};
    as_node_pods_init(&by_node, &cluster, &texts.arena);
    cr_assert_arr_eq(as_node_pods_get(&by_node, 0, &count), on_0, sizeof(on_0));
    cr_assert_eq(count, 2);
    as_node_pods_get(&by_node, 1, &count);
    cr_assert_eq(count, 0);
    cr_assert_arr_eq(as_node_pods_get(&by_node, 2, &count), on_2, sizeof(on_2));
    cr_assert_eq(count, 3);
    as_node_pods_get(&by_node, 3, &count);
    cr_assert_eq(count, 0);

    cluster = (struct as_cluster){.node_count = 0};
    as_node_pods_init(&by_node, &cluster, &texts.arena);
    cr_assert_eq(by_node.starts[0], 0);
}

struct row {
    const char *cluster, *pending, *template_;
    uint64_t pending_count;
    double utilization, count, cores; /* NaN: unavailable */
    const char *why;                  /* there is no utilization */
};

static void check_value(const struct row *row, const struct as_nodes_seen *sums,
                        enum as_nodes_word value, double wanted)
{
    double got = NAN;
    const int status = as_nodes_seen_get(sums, value, &got, &error);

    cr_assert_eq(status, isnan(wanted) ? -ENODATA : 0, "%s", row->cluster);
    cr_assert(isnan(wanted) ? isnan(got) : got == wanted, "%s: %s: %g", row->cluster,
              as_nodes_word_get_text(value), got);
}

static void check(const struct row *row)
{
    struct as_nodes_seen sums;
    struct as_resources template_;
    struct as_pod_count pending = {.count = row->pending_count};

    read_cluster(row->cluster);
    if (row->template_)
        template_ = nodes_text_read_node(&texts, "new", row->template_).allocatable;
    pending.pod_class = nodes_text_read_pod(&texts, row->pending ? row->pending : "");
    const struct as_node_sums_request request = {.cluster = &cluster,
                                                 .pods = &by_node,
                                                 .pending = &pending,
                                                 .pending_count = row->pending ? 1 : 0,
                                                 .template_ = row->template_ ? &template_ : NULL};
    as_nodes_seen_init(&sums, &request);
    check_value(row, &sums, AS_NODES_COUNT, row->count);
    check_value(row, &sums, AS_NODES_CORES, row->cores);
    check_value(row, &sums, AS_NODES_UTILIZATION, row->utilization);
    if (row->why)
        cr_assert_str_eq(error.text, row->why);
}

Test(node_sums, values)
{
    static const struct row rows[] = {
        {"cpu:1000 memory:100; cpu:500 memory:10; cpu:200", NULL, NULL, 0, 70, 1, 1, NULL},
        {"cpu:1000 memory:100; cpu:100 memory:80", NULL, NULL, 0, 80, 1, 1, NULL},
        {"cpu:1000 memory:100; cpu:500|cpu:3000 memory:300; cpu:500", NULL, NULL, 0, 25, 2, 4,
         NULL},
        {"cpu:500 memory:100; cpu:600", NULL, NULL, 0, 120, 1, 0.5, NULL},
        {"cpu:1000 memory:100", NULL, NULL, 0, 0, 1, 1, NULL},
        /* DaemonSet and mirror pods do not count */
        {"cpu:1000 memory:100; cpu:500 daemon; cpu:300 mirror; cpu:100", NULL, NULL, 0, 10, 1, 1,
         NULL},
        /* nor do expendable pods, on nodes or pending */
        {"cpu:1000 memory:100; cpu:500 low; cpu:100", "cpu:50 low", NULL, 4, 10, 1, 1, NULL},
        /* a node that is not ready is open; one that is cordoned or marked is not, but its pods
         * still need a place */
        {"cpu:1000 memory:100 notready; cpu:500", NULL, NULL, 0, 50, 1, 1, NULL},
        {"cpu:1000 memory:100 cordoned; cpu:500|cpu:1000 memory:100", NULL, NULL, 0, 50, 1, 1,
         NULL},
        {"cpu:1000 memory:100 ours; cpu:500|cpu:1000 memory:100; cpu:500", NULL, NULL, 0, 100, 1, 1,
         NULL},
        /* pending pods */
        {"cpu:1000 memory:100; cpu:100", "cpu:50", NULL, 4, 30, 1, 1, NULL},
        {"cpu:1000 memory:100; cpu:100", "cpu:50 daemon", NULL, 4, 10, 1, 1, NULL},
        {"cpu:1000 memory:100", "cpu:50", NULL, 0, 0, 1, 1, NULL},
        /* no open node */
        {"", "cpu:50", "cpu:100 memory:10", 3, 150, 0, 0, NULL},
        {"", "memory:20", "cpu:100 memory:10", 1, 200, 0, 0, NULL},
        {"cpu:1000 memory:100 cordoned; cpu:50", NULL, "cpu:100 memory:10", 0, 50, 0, 0, NULL},
        {"", NULL, "cpu:100 memory:10", 0, 0, 0, 0, NULL},
        {"", "cpu:1", NULL, 1, 1000000, 0, 0, NULL},
        {"", "memory:1", NULL, 1, 1000000, 0, 0, NULL},
        {"", "gpu:1", NULL, 1, 0, 0, 0, NULL},
        {"", NULL, NULL, 0, 0, 0, 0, NULL},
        {"", NULL, "cpu:100", 0, NAN, 0, 0, "no node is open, and a new node would have no memory"},
        /* a template matters only where no node is open */
        {"cpu:1000 memory:100; cpu:500", NULL, "cpu:1", 0, 50, 1, 1, NULL},
        /* an allocatable that is needed */
        {"cpu:1000 memory:100|memory:100", NULL, NULL, 0, NAN, 2, NAN,
         "node n1: allocatable cpu is missing or 0"},
        {"cpu:1000 memory:100|cpu:1000", NULL, NULL, 0, NAN, 2, 2,
         "node n1: allocatable memory is missing or 0"},
        {"cpu:1000 memory:100; cpu:500|cordoned", NULL, NULL, 0, 50, 1, 1, NULL},
    };

    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++)
        check(&rows[i]);
}

/* Of sums that come from elsewhere: a decision's document, a rule test. */
Test(node_sums, values_of_sums)
{
    static const struct {
        struct as_nodes_seen seen;
        double utilization, count, cores; /* NaN: unavailable */
        const char *why;                  /* there is no utilization */
    } rows[] = {
        {{.open = 2, .requests = {500, 30}, .allocatable = {2000, 100}}, 30, 2, 2, NULL},
        {{.open = 2, .requests = {500, 0}, .allocatable = {2000, 100}}, 25, 2, 2, NULL},
        {{.open = 1, .requests = {3, 0}, .allocatable = {1500, 100}}, 0.2, 1, 1.5, NULL},
        {{.open = 0, .requests = {500, 30}}, 1000000, 0, 0, NULL},
        {{.open = 0, .requests = {0, 30}}, 1000000, 0, 0, NULL},
        {{.open = 0}, 0, 0, 0, NULL},
        {{.requests = {500, 30}, .allocatable = {1000, 10}, .is_template = true}, 300, 0, 0, NULL},
        {{.requests = {500, 30}, .allocatable = {0, 10}, .is_template = true},
         NAN,
         0,
         0,
         "no node is open, and a new node would have no cpu"},
        {{.open = 2, .allocatable = {0, 10}, .lacking = {"n1", NULL}},
         NAN,
         2,
         NAN,
         "node n1: allocatable cpu is missing or 0"},
        {{.open = 2, .allocatable = {1000, 0}, .lacking = {NULL, "n1"}},
         NAN,
         2,
         1,
         "node n1: allocatable memory is missing or 0"},
        {{.open = 2, .allocatable = {1000, 0}}, NAN, 2, 1, "the nodes have no allocatable memory"},
        {{.error = "the cluster is unwell", .open = 2, .allocatable = {1000, 10}},
         NAN,
         NAN,
         NAN,
         "the cluster is unwell"},
    };

    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        const struct row row = {.cluster = "sums"};

        error = AS_ERROR_INIT;
        check_value(&row, &rows[i].seen, AS_NODES_COUNT, rows[i].count);
        check_value(&row, &rows[i].seen, AS_NODES_CORES, rows[i].cores);
        check_value(&row, &rows[i].seen, AS_NODES_UTILIZATION, rows[i].utilization);
        if (rows[i].why)
            cr_expect_str_eq(error.text, rows[i].why, "row %zu", i);
    }
}

Test(node_sums, words)
{
    cr_expect_null(as_nodes_word_get_text(AS_NODES_NONE));
    cr_expect_str_eq(as_nodes_word_get_text(AS_NODES_UTILIZATION), "utilization");
    cr_expect_str_eq(as_nodes_word_get_text(AS_NODES_COUNT), "count");
    cr_expect_str_eq(as_nodes_word_get_text(AS_NODES_CORES), "cores");
    cr_expect_null(as_nodes_words[AS_NODES_WORD_COUNT - 1]);
}

Test(node_sums, of_a_group)
{
    static const uint32_t group[] = {2, 0};
    struct as_nodes_seen sums;
    struct as_node_sums_request request = {
        .cluster = &cluster, .pods = &by_node, .nodes = group, .node_count = 2};

    read_cluster("cpu:1000 memory:10; cpu:1|cpu:2000 memory:20; cpu:2|cpu:4000 memory:40; cpu:4");
    as_nodes_seen_init(&sums, &request);
    cr_assert_eq(sums.open, 2);
    cr_assert_eq(sums.requests[AS_RES_CPU], 5);
    cr_assert_eq(sums.allocatable[AS_RES_CPU], 5000);
    cr_assert_eq(sums.allocatable[AS_RES_MEMORY], 50);
    request.node_count = 0; /* no nodes, which is not all of them */
    as_nodes_seen_init(&sums, &request);
    cr_assert_eq(sums.open, 0);
    cr_assert_eq(sums.requests[AS_RES_CPU], 0);
}

Test(node_sums, large_sums_saturate)
{
    struct as_nodes_seen sums;
    const struct as_node_sums_request request = {.cluster = &cluster, .pods = &by_node};
    double value;

    read_cluster("cpu:4611686018427387904 memory:4611686018427387904; cpu:4611686018427387904|"
                 "cpu:4611686018427387904 memory:4611686018427387904; cpu:4611686018427387904");
    as_nodes_seen_init(&sums, &request);
    cr_assert_eq(sums.allocatable[AS_RES_CPU], AS_RES_AMOUNT_MAX);
    cr_assert_eq(as_nodes_seen_get(&sums, AS_NODES_UTILIZATION, &value, &error), 0);
    cr_assert_eq(value, 100);
}

Test(node_sums, whose_pending_pods)
{
    static const struct {
        const char *pod, *template_, *other; /* other NULL: no template */
        bool selects;
    } rows[] = {
        {"cpu:1", "a=1", "a=2", false}, /* names no nodes */
        {"a=1", "a=1", "a=2", true},
        {"a=1", "a=2", "a=3", false},
        {"a=1", "a=1 b=1", "a=1 b=2", false}, /* either would do */
        {"a=1 b=1", "a=1 b=1", "a=1 b=2", true},
        {"?a:in:1", "a=1", "a=2", true},
        {"?a:notin:2", "a=1", "a=2", true},
        {"?a:exists", "a=1", "a=2", false},
        {"a=1", "a=1", NULL, true},
        {"?=metadata.name:in:n1", "a=1", "a=2", false},
        {"a=1", "a=1 !t=1/N", "a=2", true}, /* what is asked for are labels */
        {"a=1", "a=1", "a=1 !t=1/N", false},
    };

    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        const struct as_node_fact node = nodes_text_read_node(&texts, "n", rows[i].template_);
        const struct as_node_fact other =
            nodes_text_read_node(&texts, "n", rows[i].other ? rows[i].other : "");
        const struct as_node_shape template_ = nodes_text_get_shape(&node, NULL);
        const struct as_node_shape other_template = nodes_text_get_shape(&other, NULL);
        const struct as_node_shape *const others[] = {rows[i].other ? &other_template : NULL};

        cr_assert_eq(
            as_pod_selects(nodes_text_read_pod(&texts, rows[i].pod), &template_, others, 1),
            rows[i].selects, "%s | %s", rows[i].pod, rows[i].template_);
    }
}

#define DAEMONS AS_NODE_IGNORE_DAEMONSETS
#define MIRROR  AS_NODE_IGNORE_MIRROR

Test(node_sums, utilization_of_a_node)
{
    static const struct {
        const char *node; /* with its pods */
        unsigned ignore;
        double percent; /* NaN: unavailable */
    } rows[] = {
        {"cpu:2000 memory:200; cpu:100 memory:40; cpu:300", 0, 20},
        {"cpu:2000 memory:200; cpu:100 memory:60; cpu:300", 0, 30},
        {"cpu:2000 memory:200", 0, 0},
        {"cpu:1000 memory:200; cpu:500; cpu:200 daemon; cpu:50 mirror", 0, 75},
        {"cpu:1000 memory:200; cpu:400; cpu:200 daemon; cpu:50 mirror", DAEMONS, 56.25},
        {"cpu:1000 memory:200; cpu:380; cpu:200 daemon; cpu:50 mirror", MIRROR, 100 * 580 / 950.0},
        {"cpu:1000 memory:200; cpu:300; cpu:200 daemon; cpu:50 mirror", DAEMONS | MIRROR, 40},
        {"cpu:1000 memory:200; cpu:1000 daemon; cpu:1", DAEMONS, 1000000},
        {"cpu:1000 memory:200; cpu:1000 daemon", DAEMONS, 0},
        /* an accelerator counts alone; other extended resources do not count */
        {"cpu:1000 memory:200 nvidia.com/gpu:4; cpu:1000 nvidia.com/gpu:1", 0, 25},
        {"cpu:1000 memory:200 nvidia.com/gpu:4; cpu:1000", 0, 0},
        {"cpu:1000 memory:200 nvidia.com/gpu:4 amd.com/gpu:2; amd.com/gpu:1; nvidia.com/gpu:1", 0,
         50},
        {"cpu:1000 memory:200 dongle:4; cpu:100 dongle:4", 0, 10},
        {"cpu:1000 memory:200 nvidia.com/gpu:0; cpu:100", 0, 10},
        {"nvidia.com/gpu:2; nvidia.com/gpu:1", 0, 50},
        {"memory:200; cpu:100", 0, NAN},
        {"cpu:100; cpu:100", 0, NAN},
    };

    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        double percent = NAN;

        read_cluster(rows[i].node);
        const int status = as_node_get_utilization(&cluster, &by_node, 0, rows[i].ignore, INT32_MIN,
                                                   NULL, NOW, &percent, &error);
        cr_assert_eq(status, isnan(rows[i].percent) ? -ENODATA : 0, "%s", rows[i].node);
        cr_assert(isnan(rows[i].percent) ? isnan(percent) : percent == rows[i].percent, "%s: %g",
                  rows[i].node, percent);
    }
    cr_assert_str_eq(error.text, "node n0: allocatable memory is missing or 0");
}

Test(node_sums, late_pods)
{
    static const struct {
        bool is_leaving, has_end;
        int64_t gone_since_s;
        double percent;
    } rows[] = {
        {false, false, 0, 50}, {true, false, 0, 50}, {true, true, -10, 50},
        {true, true, 30, 50},  {true, true, 31, 0},
    };

    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        double percent;

        read_cluster("cpu:1000 memory:100; cpu:500");
        pods[0].is_leaving = rows[i].is_leaving;
        pods[0].gone_at.set = rows[i].has_end;
        pods[0].gone_at.at.us = NOW.us - rows[i].gone_since_s * AS_US_PER_S;
        cr_assert_eq(as_node_get_utilization(&cluster, &by_node, 0, 0, INT32_MIN, NULL, NOW,
                                             &percent, &error),
                     0);
        cr_assert_eq(percent, rows[i].percent, "row %zu: %g", i, percent);
    }
}
