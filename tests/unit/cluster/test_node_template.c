/*
 * What a new node of a group would be like, case by case; support/nodes_text.h has the words.
 */
#include <alertscaler/cluster/node_template.h>

#include <stdio.h>
#include <string.h>

#include <criterion/criterion.h>

#include "../../support/nodes_text.h"

#define NODES_MAX 8
#define PODS_MAX  8
#define NOW       (INT64_C(1000) * AS_US_PER_H)

static struct nodes_text texts;
static struct as_node_fact nodes[NODES_MAX];
static struct as_pod_fact pods[PODS_MAX];
static struct as_cluster cluster;
static struct as_node_pods by_node;
static uint32_t indices[NODES_MAX];
static struct as_node_template_request request;

static void prepare(void)
{
    nodes_text_init(&texts);
    cluster = (struct as_cluster){.nodes = nodes, .pods = pods};
    request = (struct as_node_template_request){
        .cluster = &cluster, .pods = &by_node, .nodes = indices, .now = {NOW}};
}

static void clean(void)
{
    nodes_text_deinit(&texts);
}

TestSuite(node_template, .init = prepare, .fini = clean);

/* A node of the group, that old, Ready since it was made. */
static struct as_node_fact *add_node(const char *name, int64_t age_s, const char *text)
{
    const uint32_t index = (uint32_t)cluster.node_count++;

    nodes[index] = nodes_text_read_node(&texts, name, text);
    nodes[index].created.us = NOW - age_s * AS_US_PER_S;
    nodes[index].ready_since = (as_maybe_time){true, nodes[index].created};
    indices[request.node_count++] = index;
    return &nodes[index];
}

static void add_pod(uint32_t node, const char *text)
{
    pods[cluster.pod_count++] = (struct as_pod_fact){
        .pod_class = nodes_text_read_pod(&texts, text), .node = node, .nominated = AS_NO_NODE};
}

static struct as_node_template make(void)
{
    struct as_node_template template_;

    cluster.resources = texts.names;
    as_node_pods_init(&by_node, &cluster, &texts.arena);
    as_node_template_init(&template_, &request, &texts.arena);
    return template_;
}

/* "node n1 | labels | taints" */
static const char *print(const struct as_node_template *template_)
{
    static char text[512];
    const struct as_node_shape *shape = &template_->shape;
    size_t size = (size_t)snprintf(text, sizeof(text), "%s",
                                   as_node_template_source_get_word(template_->source));

    if (template_->node)
        size += (size_t)snprintf(text + size, sizeof(text) - size, " %s", template_->node);
    size += (size_t)snprintf(text + size, sizeof(text) - size, " |");
    for (size_t i = 0; shape->labels && i < shape->labels->count; i++)
        size += (size_t)snprintf(text + size, sizeof(text) - size, " %s=%s",
                                 shape->labels->items[i].name, shape->labels->items[i].value);
    size += (size_t)snprintf(text + size, sizeof(text) - size, " |");
    for (size_t i = 0; i < shape->taint_count; i++)
        size +=
            (size_t)snprintf(text + size, sizeof(text) - size, " %s=%s/%d", shape->taints[i].key,
                             shape->taints[i].value, (int)shape->taints[i].effect);
    cr_assert_lt(size, sizeof(text));
    return text;
}

static void expect(const char *text)
{
    const struct as_node_template template_ = make();

    cr_assert_str_eq(print(&template_), text);
    cr_assert_null(template_.shape.name);
}

#define HAS "cpu:4000 memory:100 "

Test(node_template, newest_node)
{
    add_node("n1", 900, HAS "a=1");
    add_node("n2", 100, HAS "a=1");
    add_node("n3", 500, HAS "a=1");
    expect("node n2 | a=1 |");
    add_node("n4", 100, HAS "a=1"); /* as old: the first by name */
    expect("node n2 | a=1 |");
    indices[1] = 3;
    indices[3] = 1; /* whatever the order of the group */
    expect("node n2 | a=1 |");
}

/* Nodes that are newer, and no templates. */
Test(node_template, nodes_that_do_not_count)
{
    static const char *const startup[] = {"example.com/agent-not-ready"};

    request.startup_taints = startup;
    request.startup_taint_count = 1;
    add_node("n0", 9000, HAS "a=1");
    add_node("n1", 900, HAS "a=1 notready");
    add_node("n2", 800, HAS "a=1 cordoned");
    add_node("n3", 700, HAS "a=1 ours");
    add_node("n4", 600, HAS "a=1 !example.com/agent-not-ready/X");
    add_node("n5", 500, HAS "a=1 !startup-taint.cluster-autoscaler.kubernetes.io/x/N");
    add_node("n6", 59, HAS "a=1");
    add_node("n7", 400, "cpu:1 a=1");
    expect("node n0 | a=1 |");
    nodes[6].created.us -= AS_US_PER_S;
    nodes[6].ready_since.at.us -= AS_US_PER_S; /* a minute */
    expect("node n6 | a=1 |");
    nodes[6].ready_since.at.us += AS_US_PER_S; /* it flaps */
    expect("node n0 | a=1 |");
    nodes[6].ready_since.set = false; /* not told: since it was made */
    expect("node n6 | a=1 |");
}

Test(node_template, where_it_is_from)
{
    const struct as_node_fact old = nodes_text_read_node(&texts, "old", HAS "b=2 !t=1/N");
    const struct as_node_fact written = nodes_text_read_node(&texts, "w", HAS "c=3");
    const struct as_node_template last = {.source = AS_NODE_TEMPLATE_NODE,
                                          .node = "gone",
                                          .shape = nodes_text_get_shape(&old, NULL),
                                          .capacity = old.capacity,
                                          .allocatable = old.allocatable};
    const struct as_node_template configured = {.source = AS_NODE_TEMPLATE_CONFIGURED,
                                                .shape = nodes_text_get_shape(&written, NULL),
                                                .capacity = written.capacity,
                                                .allocatable = written.allocatable};
    static const char *const startup[] = {"t"};

    expect("none | |");
    request.configured = &configured;
    expect("configured | c=3 |");
    request.last = &last;
    expect("last | b=2 | t=1/1");
    request.startup_taints = startup; /* a rule that came later */
    request.startup_taint_count = 1;
    expect("last | b=2 |");
    cr_assert_eq(make().shape.allocatable.amount[AS_RES_CPU], 4000);
    add_node("n1", 900, HAS "a=1");
    expect("node n1 | a=1 |");
    nodes[0].is_ready = false;
    expect("last | b=2 |");
}

Test(node_template, labels)
{
    add_node("n1", 900, HAS "arch=arm kubernetes.io/hostname=h pool=a rack=1 zone=a");
    expect("node n1 | arch=arm pool=a rack=1 zone=a |");
    add_node("n2", 950, HAS "arch=arm kubernetes.io/hostname=h pool=a zone=b");
    expect("node n1 | arch=arm pool=a |");
    add_node("n3", 950, HAS "arch=arm more=1 cordoned notready"); /* all nodes of the group count */
    expect("node n1 | arch=arm |");
    request.node_count = 1; /* and no others */
    expect("node n1 | arch=arm pool=a rack=1 zone=a |");
}

Test(node_template, taints)
{
    static const char *const startup[] = {"s"};

    request.startup_taints = startup;
    request.startup_taint_count = 1;
    add_node("n1", 900,
             HAS "!z=1/N !b=2/X !b=2/N !b=1/P "
                 "!node.kubernetes.io/not-ready/X !node.kubernetes.io/unreachable/X "
                 "!node.kubernetes.io/unschedulable/N !node.kubernetes.io/memory-pressure/N "
                 "!node.kubernetes.io/disk-pressure/N !node.kubernetes.io/pid-pressure/N "
                 "!node.kubernetes.io/network-unavailable/N !node.kubernetes.io/out-of-service/N "
                 "!node.cloudprovider.kubernetes.io/uninitialized=true/N "
                 "!node.cloudprovider.kubernetes.io/shutdown/N "
                 "!ToBeDeletedByClusterAutoscaler=1/N !DeletionCandidateOfClusterAutoscaler=1/P "
                 "!status-taint.cluster-autoscaler.kubernetes.io/x/N "
                 "!atlassian.com/escalator=1/N !alertscaler.io/draining/N "
                 "!node.kubernetes.io/os=windows/N");
    expect("node n1 | | b=1/2 b=2/1 b=2/4 node.kubernetes.io/os=windows/1 z=1/1");
}

Test(node_template, what_daemons_take)
{
    add_node("n0", 9000, "cpu:1 memory:1");
    add_node("n1", 900, "cpu:4000 memory:100 pods:10 gpu:2");
    add_pod(1, "cpu:100 memory:5 daemon");
    add_pod(1, "cpu:50 memory:200 gpu:1 mirror");
    add_pod(1, "cpu:1000");
    add_pod(0, "cpu:7 daemon");

    const struct as_node_template template_ = make();
    const int64_t *left = template_.shape.allocatable.amount;
    cr_assert_eq(left[AS_RES_CPU], 3850);
    cr_assert_eq(left[AS_RES_MEMORY], 0); /* not less */
    cr_assert_eq(left[AS_RES_PODS], 8);
    cr_assert_eq(left[AS_RES_NAMED], 1);
    cr_assert_eq(template_.allocatable.amount[AS_RES_CPU], 4000);
    cr_assert_eq(template_.capacity.amount[AS_RES_CPU], 4000);
}

/* Not those of other pods, each once, and ports that are not of the host are none. */
Test(node_template, host_ports_of_daemons)
{
    add_node("n1", 900, "cpu:4000 memory:100 pods:10");
    add_pod(0, "@UDP/0.0.0.0/53 @TCP/10.0.0.1/53 daemon");
    add_pod(0, "@TCP/0.0.0.0/22 @TCP/0.0.0.0/0 mirror");
    add_pod(0, "@UDP/0.0.0.0/53 daemon");
    add_pod(0, "@TCP/0.0.0.0/80");
    const struct as_node_template template_ = make();
    char text[128] = "";
    for (size_t i = 0; i < template_.port_count; i++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s/%s/%d ",
                 template_.ports[i].protocol, template_.ports[i].ip, template_.ports[i].port);
    cr_assert_str_eq(text, "TCP/0.0.0.0/22 TCP/10.0.0.1/53 UDP/0.0.0.0/53 ");
}

Test(node_template, equal_pod_classes)
{
    static const struct {
        const char *a, *b;
        bool is_equal;
    } rows[] = {
        {HAS "a=1 !t=1/N !s=1/N", HAS "a=1 !s=1/N !t=1/N", true},
        {HAS "a=1", HAS "a=2", false},
        {HAS "a=1", HAS "a=1 gpu:1", false},
        {HAS "!t=1/N", HAS "!t=1/X", false},
        {HAS "!t=1/N", HAS "!t=2/N", false},
        {HAS "!t=1/N", "cpu:4000 memory:100", false},
    };

    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        cluster.node_count = request.node_count = 0;
        add_node("n1", 900, rows[i].a);
        const struct as_node_template a = make();
        cluster.node_count = request.node_count = 0;
        add_node("n1", 900, rows[i].b);
        const struct as_node_template b = make();

        cr_assert_eq(as_node_shape_equal(&a.shape, &b.shape, &cluster.resources), rows[i].is_equal,
                     "%s | %s", rows[i].a, rows[i].b);
    }
}

/* As the configuration has it: for a cluster, by the names of the cluster's resources. */
Test(node_template, configured)
{
    static const struct as_label pairs[] = {{"zone", "a"}, {"life", "spot"}};
    static const struct as_taint taints[] = {{"b", "2", AS_TAINT_NO_EXECUTE},
                                             {"b", "1", AS_TAINT_NO_SCHEDULE},
                                             {"a", "", AS_TAINT_PREFER_NO_SCHEDULE}};
    const struct as_res_names names = {
        .count = AS_RES_NAMED + 2,
        .name = {[AS_RES_NAMED] = "nvidia.com/gpu", [AS_RES_NAMED + 1] = "hugepages-2Mi"}};
    AS_CLEANUP(as_labels_free_p) struct as_labels *labels = NULL;
    struct as_node_template template_, made;

    cr_assert_eq(as_labels_new(pairs, 2, &labels), 0);
    const struct as_node_template_config written = {
        .amount = {7900, 3000, 500, 110},
        .named = {{"example.com/unknown", 5}, {"nvidia.com/gpu", 2}},
        .named_count = 2,
        .labels = labels,
        .taints = taints,
        .taint_count = AS_ARRAY_SIZE(taints),
    };
    struct as_node_template_config *config = as_node_template_config_copy(&written);
    cr_assert(config->labels != labels && config->taints != taints);
    labels = as_labels_free(labels);

    as_node_template_init_configured(&template_, config, &names, &texts.arena);
    cr_expect_eq(template_.source, AS_NODE_TEMPLATE_CONFIGURED);
    cr_expect_null(template_.node);
    cr_expect_null(template_.shape.name);
    const int64_t *left = template_.shape.allocatable.amount;
    cr_expect(left[AS_RES_CPU] == 7900 && left[AS_RES_MEMORY] == 3000);
    cr_expect(left[AS_RES_EPHEMERAL] == 500 && left[AS_RES_PODS] == 110);
    cr_expect(left[AS_RES_NAMED] == 2 && left[AS_RES_NAMED + 1] == 0);
    cr_expect_arr_eq(template_.allocatable.amount, left, sizeof(template_.allocatable.amount));
    cr_expect_arr_eq(template_.capacity.amount, left, sizeof(template_.capacity.amount));
    cr_expect_str_eq(print(&template_), "configured | life=spot zone=a | a=/2 b=1/1 b=2/4");
    cr_expect_str_eq(config->taints[0].value, "2", "the configuration stays as it is");

    /* where nothing is seen of the group, it is the group's template */
    request.configured = &template_;
    made = make();
    cr_expect_eq(made.source, AS_NODE_TEMPLATE_CONFIGURED);
    cr_expect(as_node_shape_equal(&made.shape, &template_.shape, &names));
    cr_expect_null(as_node_template_config_free(config));
    cr_expect_null(as_node_template_config_copy(NULL));
    cr_expect_null(as_node_template_config_free(NULL));
}
