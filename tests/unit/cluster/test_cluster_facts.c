/*
 * cluster/cluster_facts.h: what was put is in the view, and nothing else, whatever the order of
 * changes; equal pods share a pod class; memory is given back, and limited.
 */
#include <criterion/criterion.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <alertscaler/base/random.h>
#include <alertscaler/cluster/cluster_facts.h>

#define NAME_SIZE 16

static struct as_cluster_facts *facts;
static struct as_error error;
static struct as_labels *no_labels;

static void begin(void)
{
    facts = as_cluster_facts_new(&(struct as_cluster_facts_limits){AS_CLUSTER_FACTS_BYTES});
    cr_assert_eq(as_labels_new(NULL, 0, &no_labels), 0);
}

static void end(void)
{
    facts = as_cluster_facts_free(facts);
    no_labels = as_labels_free(no_labels);
}

TestSuite(cluster_facts, .init = begin, .fini = end);

static void list_all(void)
{
    for (enum as_cluster_kind kind = 0; kind < AS_CLUSTER_KIND_COUNT; kind++) {
        as_cluster_facts_begin_list(facts, kind);
        as_cluster_facts_end_list(facts, kind);
    }
}

static void put_node(const char *name, int64_t cpu)
{
    const struct as_taint taints[] = {{"dedicated", name, AS_TAINT_NO_SCHEDULE}};
    const struct as_node_fact node = {
        .name = name,
        .provider_id = "",
        .labels = no_labels,
        .taints = taints,
        .taint_count = 1,
        .allocatable.amount[AS_RES_CPU] = cpu,
    };
    cr_assert_eq(as_cluster_facts_put_node(facts, &node, &error), 0, "%s", error.text);
}

static struct as_pod_class make_pod_class(int64_t cpu)
{
    return (struct as_pod_class){
        .requests.amount[AS_RES_CPU] = cpu,
        .labels = no_labels,
        .namespace_ = "shop",
    };
}

static int put_of_class(const char *name, const char *node, const struct as_pod_class *pod_class)
{
    const struct as_pod_put pod = {
        .fact = {.namespace_ = pod_class->namespace_, .name = name, .pod_class = pod_class},
        .node = node,
    };
    return as_cluster_facts_put_pod(facts, &pod, &error);
}

static void put_pod(const char *name, const char *node, int64_t cpu)
{
    const struct as_pod_class pod_class = make_pod_class(cpu);
    cr_assert_eq(put_of_class(name, node, &pod_class), 0, "%s", error.text);
}

static const struct as_cluster *view(void)
{
    const struct as_cluster *cluster = as_cluster_facts_view(facts, &error);
    cr_assert_not_null(cluster, "%s", error.text);
    return cluster;
}

static const struct as_pod_fact *find_pod(const struct as_cluster *cluster, const char *name)
{
    for (size_t i = 0; i < cluster->pod_count; i++)
        if (strcmp(cluster->pods[i].name, name) == 0)
            return &cluster->pods[i];
    return NULL;
}

static void put_budget_on(const char *key)
{
    const struct as_node_requirement requirement = {.key = key, .operator_ = AS_NODE_EXISTS};
    const struct as_budget_fact budget = {
        .namespace_ = "shop", .name = "web", .requirements = &requirement, .count = 1};
    cr_assert_eq(as_cluster_facts_put_budget(facts, &budget, &error), 0);
}

Test(cluster_facts, there_is_no_view_before_all_kinds_were_listed)
{
    put_node("a", 1);
    cr_expect_null(as_cluster_facts_view(facts, &error));
    cr_expect_str_eq(error.text, "the cluster's nodes have not been listed yet");
    as_cluster_facts_end_list(facts, AS_CLUSTER_NODES);
    cr_expect_null(as_cluster_facts_view(facts, &error));
    cr_expect_str_eq(error.text, "the cluster's pods have not been listed yet");
    as_cluster_facts_end_list(facts, AS_CLUSTER_PODS);
    as_cluster_facts_end_list(facts, AS_CLUSTER_BUDGETS);
    cr_expect_eq(view()->node_count, 1);
    as_cluster_facts_clear(facts);
    cr_expect_null(as_cluster_facts_view(facts, &error));
}

Test(cluster_facts, a_pod_may_come_before_its_node)
{
    list_all();
    put_pod("p", "b", 1);
    put_node("c", 1);
    cr_expect_eq(view()->pods[0].node, AS_NO_NODE);
    cr_expect(view()->pods[0].is_bound);
    put_node("b", 1);
    cr_expect_eq(view()->pods[0].node, 0);
    put_node("a", 1);
    cr_expect_eq(view()->pods[0].node, 1);
    cr_expect_str_eq(view()->nodes[1].name, "b");
    cr_expect_str_eq(view()->nodes[1].taints[0].value, "b");
    as_cluster_facts_delete(facts, AS_CLUSTER_NODES, NULL, "b");
    cr_expect_eq(view()->pods[0].node, AS_NO_NODE);
    put_pod("q", NULL, 1);
    cr_expect_not(find_pod(view(), "q")->is_bound);
    cr_expect_eq(find_pod(view(), "q")->node, AS_NO_NODE);
}

Test(cluster_facts, a_new_list_drops_what_it_does_not_name)
{
    static const struct as_budget_fact budgets[] = {
        {.namespace_ = "shop", .name = "b", .allowed = 1}, {.namespace_ = "shop", .name = "a"}};
    list_all();
    for (size_t i = 0; i < 2; i++)
        cr_assert_eq(as_cluster_facts_put_budget(facts, &budgets[i], &error), 0);
    for (const char *const *name = (const char *const[]){"d", "a", "c", "b", NULL}; *name; name++) {
        put_node(*name, 1);
        put_pod(*name, *name, 1);
    }
    for (enum as_cluster_kind kind = 0; kind < AS_CLUSTER_KIND_COUNT; kind++)
        as_cluster_facts_begin_list(facts, kind);
    put_node("b", 2);
    put_pod("b", "a", 1);
    cr_assert_eq(as_cluster_facts_put_budget(facts, &budgets[0], &error), 0);
    cr_expect_eq(view()->node_count, 4);
    cr_expect_eq(view()->budget_count, 2);
    cr_expect_str_eq(view()->budgets[0].name, "a");
    for (enum as_cluster_kind kind = 0; kind < AS_CLUSTER_KIND_COUNT; kind++)
        as_cluster_facts_end_list(facts, kind);
    cr_assert_eq(view()->node_count, 1);
    cr_expect_eq(view()->nodes[0].allocatable.amount[AS_RES_CPU], 2);
    cr_assert_eq(view()->pod_count, 1);
    cr_expect_eq(view()->pods[0].node, AS_NO_NODE);
    cr_assert_eq(view()->budget_count, 1);
    cr_expect_eq(view()->budgets[0].allowed, 1);
    as_cluster_facts_delete(facts, AS_CLUSTER_BUDGETS, "shop", "b");
    as_cluster_facts_delete(facts, AS_CLUSTER_BUDGETS, "shop", "b");
    cr_expect_eq(view()->budget_count, 0);
}

/* Pod classes that differ in one thing each, and the same ones again from other memory. */
Test(cluster_facts, equal_pods_share_a_pod_class)
{
    struct as_labels *labels;
    const struct as_label pair = {"app", "db"};
    cr_assert_eq(as_labels_new(&pair, 1, &labels), 0);
    put_budget_on(pair.name);
    const char *values[] = {"x", "y"};
    const struct as_node_requirement requirements[] = {
        {.key = "k", .operator_ = AS_NODE_IN, .values = values, .value_count = 2},
        {.key = "k", .operator_ = AS_NODE_IN, .values = values, .value_count = 1},
        {.key = "k", .operator_ = AS_NODE_NOT_IN, .values = values, .value_count = 1},
        {.key = "k",
         .operator_ = AS_NODE_NOT_IN,
         .is_field = true,
         .values = values,
         .value_count = 1},
    };
    const struct as_node_term terms[] = {{requirements, 1},
                                         {requirements + 1, 1},
                                         {requirements + 2, 1},
                                         {requirements + 3, 1},
                                         {requirements, 4}};
    const struct as_toleration tolerations[] = {
        {"a", "", true, 0}, {"a", "", false, 0}, {"a", "", false, 1}, {"", "a", false, 1}};
    const struct as_host_port ports[] = {{"0.0.0.0", "TCP", 80},
                                         {"0.0.0.0", "UDP", 80},
                                         {"0.0.0.0", "TCP", 81},
                                         {"10.0.0.1", "TCP", 80}};
    struct as_pod_class pod_classes[64];
    size_t count = 0;
    for (size_t i = 0; i < 64; i++)
        pod_classes[i] = make_pod_class(0);
    count++;
    pod_classes[count++].requests.amount[AS_RES_CPU] = 1;
    pod_classes[count++].requests.amount[AS_RES_MEMORY] = 1;
    pod_classes[count++].selector = labels;
    pod_classes[count++].selector = no_labels;
    pod_classes[count++].labels = labels;
    pod_classes[count++].has_affinity = true;
    for (size_t i = 0; i < 5; i++) {
        pod_classes[count].terms = &terms[i];
        pod_classes[count++].term_count = 1;
    }
    pod_classes[count].terms = terms;
    pod_classes[count++].term_count = 2;
    for (size_t i = 0; i < 4; i++) {
        pod_classes[count].tolerations = &tolerations[i];
        pod_classes[count++].toleration_count = 1;
        pod_classes[count].ports = &ports[i];
        pod_classes[count++].port_count = 1;
    }
    pod_classes[count++].loner = 7;
    pod_classes[count++].namespace_ = "a";
    pod_classes[count++].zone = "z";
    pod_classes[count++].zone = "";
    pod_classes[count++].priority = -1;
    pod_classes[count++].unchecked = AS_UNCHECKED_SPREAD;
    pod_classes[count++].eviction = AS_EVICTION_MIRROR;
    list_all();
    const size_t empty = as_cluster_facts_measure(facts);
    for (size_t i = 0; i < 2 * count; i++) {
        char name[NAME_SIZE];
        snprintf(name, sizeof(name), "p%zu", i);
        cr_assert_eq(put_of_class(name, NULL, &pod_classes[i % count]), 0);
    }
    const struct as_cluster *cluster = view();
    for (size_t i = 0; i < count; i++) {
        cr_expect_eq(cluster->pods[i].pod_class, cluster->pods[count + i].pod_class, "%zu", i);
        for (size_t k = 0; k < i; k++)
            cr_expect_neq(cluster->pods[i].pod_class, cluster->pods[k].pod_class, "%zu %zu", i, k);
    }
    const struct as_pod_class *last = cluster->pods[11].pod_class;
    cr_expect_eq(last->term_count, 1);
    cr_expect_eq(last->terms[0].count, 4);
    cr_expect_str_eq(last->terms[0].requirements[0].values[1], "y");
    cr_expect_eq(cluster->pods[3].pod_class->selector, cluster->pods[5].pod_class->labels);
    as_cluster_facts_begin_list(facts, AS_CLUSTER_PODS);
    as_cluster_facts_end_list(facts, AS_CLUSTER_PODS);
    cr_expect_eq(view()->pod_count, 0);
    cr_expect_leq(as_cluster_facts_measure(facts), empty + 16384); /* arrays stay */
    as_labels_free(labels);
}

static const struct as_pod_class *put_labelled(const char *name, const struct as_label *pairs,
                                               size_t count)
{
    struct as_pod_class pod_class = make_pod_class(1);
    AS_CLEANUP(as_labels_free_p) struct as_labels *labels = NULL;
    cr_assert_eq(as_labels_new(pairs, count, &labels), 0);
    pod_class.labels = labels;
    cr_assert_eq(put_of_class(name, NULL, &pod_class), 0);
    const struct as_cluster *cluster = view();
    size_t i = 0;
    while (i < cluster->pod_count && strcmp(cluster->pods[i].name, name) != 0)
        i++;
    cr_assert_lt(i, cluster->pod_count);
    return cluster->pods[i].pod_class;
}

/* A label that is another one on each pod makes no pod class of each pod. */
Test(cluster_facts, labels_are_kept_if_a_budget_selects_by_them)
{
    static const struct as_label a[] = {{"app", "db"}, {"pod-name", "db-0"}},
                                 b[] = {{"app", "db"}, {"pod-name", "db-1"}},
                                 c[] = {{"app", "web"}, {"pod-name", "web-0"}};
    list_all();
    cr_expect_eq(put_labelled("db-0", a, 2), put_labelled("web-0", c, 2), "there is no budget");
    put_budget_on("app");
    cr_expect(as_cluster_facts_lacks_labels(facts));
    as_cluster_facts_begin_list(facts, AS_CLUSTER_PODS);
    cr_expect_not(as_cluster_facts_lacks_labels(facts));
    const struct as_pod_class *pod_class = put_labelled("db-0", a, 2);
    cr_expect_eq(put_labelled("db-1", b, 2), pod_class);
    cr_expect_neq(put_labelled("web-0", c, 2), pod_class);
    as_cluster_facts_end_list(facts, AS_CLUSTER_PODS);
    cr_expect_str_eq(as_labels_get(pod_class->labels, "app"), "db");
    cr_expect_null(as_labels_find(pod_class->labels, "pod-name"));
    put_budget_on("app");
    cr_expect_not(as_cluster_facts_lacks_labels(facts), "the label is there already");
}

Test(cluster_facts, resources_have_indices)
{
    char name[NAME_SIZE];
    cr_expect_eq(as_cluster_facts_name_resource(facts, "nvidia.com/gpu"), AS_RES_NAMED);
    cr_expect_eq(as_cluster_facts_name_resource(facts, "hugepages-2Mi"), AS_RES_NAMED + 1);
    cr_expect_eq(as_cluster_facts_name_resource(facts, "nvidia.com/gpu"), AS_RES_NAMED);
    for (int i = AS_RES_NAMED + 2; i < AS_RES_MAX; i++) {
        snprintf(name, sizeof(name), "a/%d", i);
        cr_expect_eq(as_cluster_facts_name_resource(facts, name), i);
    }
    cr_expect_eq(as_cluster_facts_name_resource(facts, "a/b"), -1);
    list_all();
    cr_expect_eq(view()->resources.count, AS_RES_MAX);
    cr_expect_str_eq(view()->resources.name[AS_RES_NAMED], "nvidia.com/gpu");
}

Test(cluster_facts, beyond_the_limit_nothing_is_taken)
{
    char name[NAME_SIZE];
    int status = 0;
    as_cluster_facts_free(facts);
    facts = as_cluster_facts_new(&(struct as_cluster_facts_limits){(size_t)1 << 20});
    list_all();
    for (int i = 0; i < 100000 && status == 0; i++) {
        const struct as_pod_class pod_class = make_pod_class(i);
        snprintf(name, sizeof(name), "p%d", i);
        status = put_of_class(name, "n", &pod_class);
        cr_assert(status != 0 || as_cluster_facts_measure(facts) <= (size_t)1 << 20);
    }
    cr_expect_eq(status, -E2BIG);
    cr_expect_str_eq(
        error.text, "the cluster's nodes, pods and budgets need more than 1048576 bytes of memory");
    error.text[0] = '\0';
    cr_expect_null(as_cluster_facts_view(facts, &error));
    cr_expect(*error.text);
    const struct as_pod_class pod_class = make_pod_class(1);
    cr_expect_eq(put_of_class("p", NULL, &pod_class), -E2BIG);
    as_cluster_facts_delete(facts, AS_CLUSTER_PODS, "shop", "p1");
    list_all();
    cr_expect_null(as_cluster_facts_view(facts, &error));
    as_cluster_facts_clear(facts);
    cr_expect_eq(put_of_class("p", NULL, &pod_class), 0);
    list_all();
    cr_expect_eq(view()->pod_count, 0);
}

Test(cluster_facts, pods_are_forgotten_some_at_a_time)
{
    char name[NAME_SIZE];
    const struct as_pod_class pod_class = make_pod_class(1);
    for (int i = 0; i < 10; i++) {
        snprintf(name, sizeof(name), "p%d", i);
        cr_assert_eq(put_of_class(name, "n", &pod_class), 0);
    }
    list_all();
    for (int i = 0; i < 10; i++) {
        snprintf(name, sizeof(name), "p%d", i);
        cr_assert_eq(put_of_class(name, "n", &pod_class), 0);
    }
    cr_expect(as_cluster_facts_forget_pods(facts, 4));
    cr_expect_eq(view()->pod_count, 6);
    cr_expect(as_cluster_facts_forget_pods(facts, 5));
    cr_expect_not(as_cluster_facts_forget_pods(facts, 5));
    cr_expect_eq(view()->pod_count, 0);
}

/* Any changes, against the simplest model: what was put last of each name. */

#define NODES 12
#define PODS  60

static struct {
    bool nodes[NODES], pods[PODS];
    int64_t node_cpu[NODES], pod_cpu[PODS];
    int pod_node[PODS], pod_nominated[PODS]; /* -1: none */
} model;

static const char *print(char text[NAME_SIZE], const char *prefix, int number)
{
    snprintf(text, NAME_SIZE, "%s%d", prefix, number);
    return text;
}

static uint32_t find_node(const struct as_cluster *cluster, int node)
{
    char name[NAME_SIZE];
    for (uint32_t i = 0; node >= 0 && i < cluster->node_count; i++)
        if (strcmp(cluster->nodes[i].name, print(name, "n", node)) == 0)
            return i;
    return AS_NO_NODE;
}

static void check_model(void)
{
    const struct as_cluster *cluster = view();
    size_t nodes = 0, pods = 0;
    char name[NAME_SIZE];
    for (int i = 0; i < NODES; i++) {
        const uint32_t at = find_node(cluster, i);
        nodes += model.nodes[i];
        cr_assert_eq(at != AS_NO_NODE, model.nodes[i]);
        if (model.nodes[i])
            cr_assert_eq(cluster->nodes[at].allocatable.amount[AS_RES_CPU], model.node_cpu[i]);
    }
    for (size_t i = 1; i < cluster->node_count; i++)
        cr_assert_lt(strcmp(cluster->nodes[i - 1].name, cluster->nodes[i].name), 0);
    for (int i = 0; i < PODS; i++) {
        const struct as_pod_fact *pod = find_pod(cluster, print(name, "p", i));
        pods += model.pods[i];
        cr_assert_eq(pod != NULL, model.pods[i]);
        if (!pod)
            continue;
        cr_assert_eq(pod->pod_class->requests.amount[AS_RES_CPU], model.pod_cpu[i]);
        cr_assert_eq(pod->node, find_node(cluster, model.pod_node[i]));
        cr_assert_eq(pod->nominated, find_node(cluster, model.pod_nominated[i]));
        cr_assert_eq(pod->is_bound, model.pod_node[i] >= 0);
    }
    cr_assert_eq(cluster->node_count, nodes);
    cr_assert_eq(cluster->pod_count, pods);
}

static void put_random_pod(struct as_random *random, int number)
{
    char name[NAME_SIZE], node[NAME_SIZE], nominated[NAME_SIZE];
    const struct as_pod_class pod_class = make_pod_class((int64_t)as_random_get_below(random, 4));
    model.pods[number] = true;
    model.pod_cpu[number] = pod_class.requests.amount[AS_RES_CPU];
    model.pod_node[number] = (int)as_random_get_below(random, NODES + 1) - 1;
    model.pod_nominated[number] = (int)as_random_get_below(random, NODES + 1) - 1;
    const struct as_pod_put pod = {
        .fact = {.namespace_ = "shop", .name = print(name, "p", number), .pod_class = &pod_class},
        .node = model.pod_node[number] < 0 ? NULL : print(node, "n", model.pod_node[number]),
        .nominated = model.pod_nominated[number] < 0
                         ? NULL
                         : print(nominated, "n", model.pod_nominated[number]),
    };
    cr_assert_eq(as_cluster_facts_put_pod(facts, &pod, &error), 0);
}

static void change(struct as_random *random, int number)
{
    char name[NAME_SIZE];
    const int node = number % NODES;
    switch (as_random_get_below(random, 7)) {
    case 0:
        model.nodes[node] = true;
        model.node_cpu[node] = (int64_t)as_random_get_below(random, 100);
        put_node(print(name, "n", node), model.node_cpu[node]);
        break;
    case 1:
        model.nodes[node] = false;
        as_cluster_facts_delete(facts, AS_CLUSTER_NODES, "", print(name, "n", node));
        break;
    case 2:
    case 3:
        model.pods[number] = false;
        as_cluster_facts_delete(facts, AS_CLUSTER_PODS, "shop", print(name, "p", number));
        break;
    default: put_random_pod(random, number);
    }
}

/* Some objects stay, all others are gone. */
static void list_anew(struct as_random *random)
{
    const int kept = (int)as_random_get_below(random, NODES);
    char name[NAME_SIZE];
    as_cluster_facts_begin_list(facts, AS_CLUSTER_PODS);
    as_cluster_facts_begin_list(facts, AS_CLUSTER_NODES);
    for (int i = 0; i < PODS; i++) {
        model.pods[i] = model.pods[i] && i % NODES <= kept;
        if (model.pods[i])
            put_random_pod(random, i);
    }
    for (int i = 0; i < NODES; i++) {
        model.nodes[i] = model.nodes[i] && i != kept;
        if (model.nodes[i])
            put_node(print(name, "n", i), model.node_cpu[i]);
    }
    as_cluster_facts_end_list(facts, AS_CLUSTER_NODES);
    as_cluster_facts_end_list(facts, AS_CLUSTER_PODS);
}

Test(cluster_facts, any_order_of_changes)
{
    struct as_random random;
    as_random_init(&random, 11);
    list_all();
    for (int i = 0; i < 20000; i++) {
        change(&random, (int)as_random_get_below(&random, PODS));
        if (i % 997 == 0)
            list_anew(&random);
        if (i % 3 == 0)
            check_model();
    }
}
