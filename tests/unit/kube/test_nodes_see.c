/*
 * The source `nodes` out of a cluster's facts: templates of groups that have no node, which a
 * former process may have seen; and clusters and groups that are unwell.
 */
#include <alertscaler/kube/nodes_see.h>

#include <stdio.h>
#include <string.h>

#include <criterion/criterion.h>

#include "../../support/nodes_text.h"

#define NODES_MAX 8
#define NOW       ((as_wall_time){INT64_C(1000) * AS_US_PER_H})
#define STORED(cpu, pool)                                                                          \
    "{\"allocatable\":{\"cpu\":" cpu ",\"example.com/fpga\":2,\"memory\":1000,\"pods\":110},"      \
    "\"capacity\":{},\"free\":{},\"labels\":{\"pool\":\"" pool "\"},\"taints\":[]}"

static struct nodes_text texts;
static struct as_node_fact nodes[NODES_MAX];
static struct as_pod_fact pods[NODES_MAX];
static struct as_cluster cluster;
static struct as_nodes_config config;
static struct as_nodes_seer *seer;
static const char *names[NODES_MAX];

static void prepare(void)
{
    nodes_text_init(&texts);
    seer = as_nodes_seer_new();
    cluster = (struct as_cluster){.nodes = nodes, .pods = pods};
    config = (struct as_nodes_config){.ready_timeout_us = 15 * AS_US_PER_MIN};
}

static void clean(void)
{
    seer = as_nodes_seer_free(seer);
    nodes_text_deinit(&texts);
}

TestSuite(nodes_see, .init = prepare, .fini = clean);

/* An hour old; nodes are added in the order of their names. */
static struct as_node_fact *add_node(const char *name, const char *text)
{
    struct as_node_fact *node = &nodes[cluster.node_count];
    *node = nodes_text_read_node(&texts, name, text);
    node->created.us = NOW.us - AS_US_PER_H;
    names[cluster.node_count++] = name;
    return node;
}

static void add_pending(const char *text)
{
    pods[cluster.pod_count++] = (struct as_pod_fact){.pod_class = nodes_text_read_pod(&texts, text),
                                                     .node = AS_NO_NODE,
                                                     .nominated = AS_NO_NODE};
}

/* `group` has the first `count` nodes of the cluster; NULL: a workload's look at all of them. */
static struct as_nodes_seen see(const char *group, size_t count)
{
    struct as_nodes_seen seen;
    cluster.resources = texts.names;
    const struct as_nodes_see_request request = {.cluster = &cluster,
                                                 .group = group,
                                                 .names = names,
                                                 .name_count = count,
                                                 .config = group ? &config : NULL,
                                                 .now = NOW,
                                                 .texts = &texts.arena};
    as_nodes_see(seer, &request, &seen);
    return seen;
}

static double get_utilization(const struct as_nodes_seen *seen)
{
    struct as_error error = AS_ERROR_INIT;
    double value = -1;
    cr_assert_eq(as_nodes_seen_get(seen, AS_NODES_UTILIZATION, &value, &error), 0, "%s",
                 error.text);
    return value;
}

Test(nodes_see, a_group_keeps_the_template_of_its_last_node)
{
    add_node("a", "cpu:2000 memory:8000 pool=spot");
    add_pending("cpu:500 pool=spot");
    const struct as_nodes_seen with_node = see("spot", 1);
    cr_expect_eq(get_utilization(&with_node), 25);
    cr_assert_not_null(with_node.template_);
    cr_expect(strstr(with_node.template_, "\"labels\":{\"pool\":\"spot\"}"), "%s",
              with_node.template_);
    cluster.node_count = 0;
    const struct as_nodes_seen without = see("spot", 0);
    cr_expect(without.is_template);
    cr_expect_eq(get_utilization(&without), 25);
    cr_expect_null(without.template_, "what is not seen is not told");
}

Test(nodes_see, a_stored_template_counts_before_the_configured_one)
{
    const struct as_group_template stored = {"spot", STORED("1000", "spot")};
    struct as_node_template_config configured = {
        .amount = {4000, 1000, 0, 110},
        .labels = as_labels_copy_to(&texts.arena, &(struct as_labels){.count = 0})};
    config.template_ = &configured;
    config.pending = AS_NODES_PENDING_ANY;
    add_pending("cpu:500");
    struct as_nodes_seen seen = see("spot", 0);
    cr_expect_eq(get_utilization(&seen), 12.5);
    as_nodes_seer_restore(seer, &stored, 1);
    seen = see("spot", 0);
    cr_expect_eq(get_utilization(&seen), 50);
    const struct as_group_template newer = {"spot", STORED("2000", "spot")};
    as_nodes_seer_restore(seer, &newer, 1);
    seen = see("spot", 0);
    cr_expect_eq(get_utilization(&seen), 25, "another replica has led meanwhile");
}

Test(nodes_see, pods_that_a_stored_template_of_another_group_takes_are_not_ours)
{
    const struct as_group_template stored[] = {{"spot", STORED("1000", "spot")},
                                               {"other", STORED("1000", "other")},
                                               {"twin", STORED("1000", "spot")}};
    as_nodes_seer_restore(seer, stored, 2);
    add_pending("cpu:500 pool=spot");
    struct as_nodes_seen seen = see("spot", 0);
    cr_expect_eq(get_utilization(&seen), 50);
    as_nodes_seer_restore(seer, stored, 3);
    seen = see("spot", 0);
    cr_expect_eq(get_utilization(&seen), 0);
}

/* The cluster may have named an extended resource after the template was stored. */
Test(nodes_see, extended_resources_of_a_stored_template_are_found_by_name)
{
    const struct as_group_template stored = {"spot", STORED("1000", "spot")};
    struct as_node_template last;
    as_nodes_seer_restore(seer, &stored, 1);
    (void)nodes_text_read_pod(&texts, "gpu:1 example.com/fpga:1");
    cr_assert(as_nodes_seer_get_last(seer, "spot", &texts.names, &texts.arena, &last));
    cr_expect_eq(last.allocatable.amount[AS_RES_NAMED], 0);
    cr_expect_eq(last.allocatable.amount[AS_RES_NAMED + 1], 2);
    cr_expect_not(as_nodes_seer_get_last(seer, "steady", &texts.names, &texts.arena, &last));
}

static struct as_nodes_seen see_coming(int32_t coming)
{
    struct as_nodes_seen seen;
    cluster.resources = texts.names;
    const struct as_nodes_see_request request = {.cluster = &cluster,
                                                 .group = "spot",
                                                 .names = names,
                                                 .name_count = cluster.node_count,
                                                 .coming = coming,
                                                 .config = &config,
                                                 .now = NOW,
                                                 .texts = &texts.arena};
    as_nodes_see(seer, &request, &seen);
    return seen;
}

Test(nodes_see, without_an_open_node_pods_wait_that_a_new_one_takes)
{
    const struct as_group_template stored = {
        "spot", "{\"allocatable\":{\"cpu\":2000,\"memory\":1000,\"pods\":110},\"capacity\":{},"
                "\"free\":{\"cpu\":1000,\"memory\":1000,\"pods\":110},"
                "\"labels\":{\"pool\":\"spot\"},\"taints\":[]}"};
    as_nodes_seer_restore(seer, &stored, 1);
    add_node("a", "cpu:1000 memory:8000 cordoned");
    add_pending("cpu:500 pool=spot");
    add_pending("cpu:2000 pool=spot");
    add_pending("cpu:500");
    add_pending("cpu:500 pool=other");
    add_pending("cpu:500 pool=spot daemon");
    add_pending("cpu:500 pool=spot");
    pods[5].nominated = 0;
    struct as_nodes_seen seen = see_coming(2);
    cr_expect_eq(seen.waiting, 1, "the first");
    cr_expect_eq(seen.coming, 2);
    config.pending = AS_NODES_PENDING_ANY;
    seen = see_coming(0);
    cr_expect_eq(seen.waiting, 2, "and the third");
    nodes[0].is_cordoned = false;
    seen = see_coming(2);
    cr_expect_eq(seen.waiting, 0, "a node is open");
    cr_expect_eq(seen.coming, 0);
}

Test(nodes_see, without_a_template_each_unschedulable_pod_waits_that_is_not_of_another_group)
{
    const struct as_group_template stored = {"other", STORED("1000", "other")};
    as_nodes_seer_restore(seer, &stored, 1);
    add_pending("cpu:500");
    add_pending("cpu:500 pool=spot");
    add_pending("cpu:500 pool=other");
    cr_expect_eq(see_coming(0).waiting, 0, "the scheduler has not looked at them");
    for (size_t i = 0; i < cluster.pod_count; i++)
        pods[i].is_unschedulable = true;
    cr_expect_eq(see_coming(0).waiting, 2);
    cr_expect_eq(see(NULL, 0).waiting, 0, "of a workload nothing waits for nodes");
}

Test(nodes_see, for_expendable_pods_no_node_is_requested)
{
    add_pending("cpu:500 low");
    pods[0].is_unschedulable = true;
    cr_expect_eq(see("spot", 0).waiting, 0);
}

Test(nodes_see, a_template_that_is_too_long_is_not_kept)
{
    static char value[AS_NODE_TEMPLATE_TEXT_MAX], text[sizeof(value) + 64];
    memset(value, 'v', sizeof(value) - 1);
    snprintf(text, sizeof(text), "cpu:2000 memory:8000 long=%s", value);
    add_node("a", text);
    const struct as_nodes_seen seen = see("spot", 1);
    cr_expect_str_eq(seen.template_, "");
    cluster.node_count = 0;
    cr_expect_not(see("spot", 0).is_template);
}

Test(nodes_see, in_an_unwell_cluster_nothing_is_available)
{
    static const char why[] = "4 of 4 nodes of the cluster are not Ready: nothing is decided by "
                              "nodes until at most 45 % or at most 3 nodes are";
    static char agent[] = "example.com/agent", *startup[] = {agent};
    static const char *const node_names[] = {"a", "b", "c", "d"};
    for (size_t i = 0; i < AS_ARRAY_SIZE(node_names); i++)
        add_node(node_names[i], "cpu:2000 memory:8000 notready !example.com/agent=/N");
    cr_expect_str_eq(see("spot", 1).error, why);
    cr_expect_str_eq(see(NULL, 0).error, why);
    config.startup_taints = startup;
    config.startup_taint_count = 1;
    cr_expect_null(see("spot", 1).error, "its nodes are starting");
    config.startup_taint_count = 0;
    config.ready_timeout_us = 2 * AS_US_PER_H;
    cr_expect_null(see("spot", 1).error, "its nodes may take that long");
    nodes[0].is_ready = true;
    cr_expect_null(see(NULL, 0).error);
}

Test(nodes_see, in_an_unwell_group_nothing_is_available)
{
    config.health = (struct as_node_health_config){.grace_us = AS_US_PER_MIN, .newest = 100000};
    add_node("a", "cpu:2000 memory:8000 notready");
    add_node("b", "cpu:2000 memory:8000");
    cr_expect_str_eq(see("spot", 2).error,
                     "1 of the newest 2 nodes of the group are not Ready, 50 %: nothing is decided "
                     "by its nodes until at most 0 % are");
    cr_expect_null(see(NULL, 0).error, "of other targets it is no matter");
}
