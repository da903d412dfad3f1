/*
 * When a cluster or a node group is unwell, case by case. The rows of Escalator's cases agree with
 * its tests of filterOutNodesTooNew, getMostRecentNodes, countUnhealthyNodes and
 * isNodegroupHealthy; those of the cluster with Cluster Autoscaler's IsClusterHealthy.
 */
#include <alertscaler/cluster/node_health.h>

#include <stdio.h>
#include <string.h>

#include <criterion/criterion.h>

#include <alertscaler/model/labels.h>

#define NODES_MAX 128
#define NOW       ((as_wall_time){INT64_C(1000) * AS_US_PER_H})

static const struct as_node_starting usual = {.ready_timeout_us = AS_NODE_READY_TIMEOUT_US};
static struct as_node_fact nodes[NODES_MAX];
static char names[NODES_MAX][8];
static uint32_t indices[NODES_MAX];
static struct as_cluster cluster = {.nodes = nodes};
static struct as_error error;

static struct as_node_fact *add_node(int64_t age_s, bool is_ready)
{
    const uint32_t index = (uint32_t)cluster.node_count++;
    cr_assert_lt(index, NODES_MAX);
    snprintf(names[index], sizeof(names[index]), "n%03u", index);
    nodes[index] = (struct as_node_fact){
        .name = names[index], .is_ready = is_ready, .created = {NOW.us - age_s * AS_US_PER_S}};
    indices[index] = index;
    return &nodes[index];
}

static void add_nodes(size_t count, int64_t age_s, bool is_ready)
{
    for (size_t i = 0; i < count; i++)
        (void)add_node(age_s, is_ready);
}

Test(node_health, a_cluster_is_unwell_above_45_percent_and_3_nodes)
{
    static const struct {
        size_t ready, unready;
        bool is_unwell;
    } rows[] = {
        {0, 0, false},   {10, 0, false}, {0, 3, false},
        {0, 4, true},    {4, 4, true},   {5, 4, false}, /* 44.4 % */
        {11, 9, false},                                 /* 45 % */
        {55, 45, false}, {54, 46, true}, {52, 48, true},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        cluster.node_count = 0;
        add_nodes(rows[i].ready, 3600, true);
        add_nodes(rows[i].unready, 3600, false);
        cr_expect_eq(as_cluster_is_unwell(&cluster, &usual, NOW, &error), rows[i].is_unwell,
                     "%zu Ready, %zu not", rows[i].ready, rows[i].unready);
    }
    cr_expect_str_eq(error.text,
                     "48 of 100 nodes of the cluster are not Ready: nothing is decided by nodes "
                     "until at most 45 % or at most 3 nodes are");
}

Test(node_health, starting_and_leaving_nodes_are_no_sign_of_an_unwell_cluster)
{
    static const struct as_taint agent = {"example.com/agent", "", AS_TAINT_NO_SCHEDULE};
    static const char *const keys[] = {"example.com/agent"};
    const struct as_node_starting with_taint = {.ready_timeout_us = AS_NODE_READY_TIMEOUT_US,
                                                .startup_taints = keys,
                                                .startup_taint_count = 1};
    add_nodes(3, 3600, false);
    struct as_node_fact *fourth = add_node(15 * 60 - 1, false);
    cr_expect_not(as_cluster_is_unwell(&cluster, &usual, NOW, &error), "it is young");
    fourth->created.us -= AS_US_PER_S;
    cr_expect(as_cluster_is_unwell(&cluster, &usual, NOW, &error));
    fourth->taints = &agent;
    fourth->taint_count = 1;
    cr_expect(as_cluster_is_unwell(&cluster, &usual, NOW, &error), "the taint means nothing");
    cr_expect_not(as_cluster_is_unwell(&cluster, &with_taint, NOW, &error));
    fourth->taint_count = 0;
    fourth->leaving = AS_NODE_LEAVING_CLUSTER_AUTOSCALER;
    cr_expect_not(as_cluster_is_unwell(&cluster, &usual, NOW, &error), "it is leaving");
    fourth->leaving = 0;
    fourth->is_cordoned = true;
    cr_expect(as_cluster_is_unwell(&cluster, &usual, NOW, &error), "cordoned is not leaving");
}

/* Kubernetes gives this taint to new nodes, and to old ones that are not Ready any more. */
Test(node_health, an_old_node_that_kubernetes_marked_as_not_ready_is_not_starting)
{
    static const struct as_taint not_ready = {"node.kubernetes.io/not-ready", "",
                                              AS_TAINT_NO_SCHEDULE};
    for (int i = 0; i < 4; i++) {
        struct as_node_fact *node = add_node(3600, false);
        node->taints = &not_ready;
        node->taint_count = 1;
    }
    cr_expect(as_cluster_is_unwell(&cluster, &usual, NOW, &error));
}

struct row {
    const char *group;    /* ages in minutes; `-` not Ready, `c` cordoned and not Ready */
    int64_t newest, most; /* percent */
    const char *why;      /* NULL: it is well */
};

static void read_group(const char *text)
{
    char word[8];
    int size, age;
    cluster.node_count = 0;
    while (sscanf(text, "%7s%n", word, &size) == 1) {
        text += size;
        cr_assert_eq(sscanf(word, "%d", &age), 1);
        struct as_node_fact *node = add_node(INT64_C(60) * age, !strpbrk(word, "-c"));
        node->is_cordoned = strchr(word, 'c');
    }
}

Test(node_health, a_group_is_unwell_as_for_escalator)
{
    static const struct row rows[] = {
        {"", 100, 0, NULL},
        {"5 15 20 30", 100, 0, NULL},
        {"15- 20 30 40", 100, 24,
         "1 of the newest 4 nodes of the group are not Ready, 25 %: nothing is decided by its "
         "nodes until at most 24 % are"},
        {"15- 20 30 40", 100, 25, NULL},
        /* the rest is dropped: 33.3 % is 33 % */
        {"15- 20 30", 100, 33, NULL},
        {"15- 20 30", 100, 32,
         "1 of the newest 3 nodes of the group are not Ready, 33 %: nothing is decided by its "
         "nodes until at most 32 % are"},
        /* as old as the grace is too young */
        {"5- 10-", 100, 0, NULL},
        {"5- 11-", 100, 0,
         "1 of the newest 1 nodes of the group are not Ready, 100 %: nothing is decided by its "
         "nodes until at most 0 % are"},
        /* the newest come first, rounded up; the others are not looked at */
        {"40- 30- 20 15", 50, 0, NULL},
        {"40- 30- 20 15", 51, 0,
         "1 of the newest 3 nodes of the group are not Ready, 33 %: nothing is decided by its "
         "nodes until at most 0 % are"},
        {"40- 20 30-", 49, 49,
         "1 of the newest 2 nodes of the group are not Ready, 50 %: nothing is decided by its "
         "nodes until at most 49 % are"},
        {"40-", 1, 99,
         "1 of the newest 1 nodes of the group are not Ready, 100 %: nothing is decided by its "
         "nodes until at most 99 % are"},
        /* of the same age the first by name */
        {"20 20-", 50, 0, NULL},
        {"20- 20", 50, 0,
         "1 of the newest 1 nodes of the group are not Ready, 100 %: nothing is decided by its "
         "nodes until at most 0 % are"},
        /* a cordoned node is looked at, but is none that is not Ready */
        {"15- 20 30- 30c 5-", 100, 50, NULL},
        {"15- 20 30- 30c 5-", 100, 49,
         "2 of the newest 4 nodes of the group are not Ready, 50 %: nothing is decided by its "
         "nodes until at most 49 % are"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        const struct as_node_health_config health = {.grace_us = 10 * AS_US_PER_MIN,
                                                     .newest = rows[i].newest * 1000,
                                                     .most = rows[i].most * 1000};
        read_group(rows[i].group);
        error = AS_ERROR_INIT;
        cr_expect_eq(
            as_group_is_unwell(&cluster, indices, cluster.node_count, &health, NOW, &error),
            rows[i].why != NULL, "row %zu", i);
        cr_expect_str_eq(error.text, rows[i].why ? rows[i].why : "", "row %zu", i);
    }
}

Test(node_health, a_group_is_its_own_nodes_and_needs_the_key)
{
    static const struct as_node_health_config health = {.grace_us = 1, .newest = 100000};
    static const struct as_node_health_config none = {0};
    read_group("20- 20 20-");
    cr_expect_not(as_group_is_unwell(&cluster, &indices[1], 1, &health, NOW, &error));
    cr_expect(as_group_is_unwell(&cluster, &indices[1], 2, &health, NOW, &error));
    cr_expect_not(as_group_is_unwell(&cluster, indices, 3, &none, NOW, &error));
}
