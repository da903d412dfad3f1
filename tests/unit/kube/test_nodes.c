/*
 * The nodes of a group's instances, against a scripted API server: matched by spec.providerID, with
 * their pods, all of it or a failure with a reason.
 */
#include <math.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/kube/nodes.h>
#include <alertscaler/kube/target_outcome.h>

#include "kube_client.h"

#define NODES      "/api/v1/nodes?limit=500"
#define PODS(node) "/api/v1/pods?fieldSelector=spec.nodeName%3D" node "&limit=500"
#define NODE(name, id)                                                                             \
    "{\"metadata\":{\"name\":\"" name "\"},\"spec\":{\"providerID\":\"" id "\"},\"status\":{"      \
    "\"allocatable\":{\"cpu\":\"4\",\"memory\":\"8Gi\"},\"conditions\":[{\"type\":\"Ready\","      \
    "\"status\":\"True\"}]}}"
#define POD(name, more, spec)                                                                      \
    "{\"metadata\":{\"name\":\"" name "\",\"namespace\":\"shop\",\"uid\":\"" name                  \
    "\",\"ownerReferences\":[{\"kind\":\"ReplicaSet\",\"controller\":true}]" more                  \
    "},\"spec\":{\"containers\":[{\"resources\":{\"requests\":{\"cpu\":\"500m\"}}}]" spec "}}"

static unsigned told;
static struct as_outcome outcome;
static struct as_instance_node found[8];
static size_t found_count;
static char names[8][64], kept[8][64], blocking[8][256], marks[8][32], instances_told[8][256];

static void keep(void *context, const struct as_outcome *failure,
                 const struct as_instance_node *nodes, size_t count)
{
    told++;
    outcome = *failure;
    found_count = count;
    for (size_t i = 0; i < count && i < AS_ARRAY_SIZE(found); i++) {
        found[i] = nodes[i];
        snprintf(names[i], sizeof(names[i]), "%s", nodes[i].is_found ? nodes[i].node.name : "none");
        snprintf(kept[i], sizeof(kept[i]), "%s", nodes[i].node.keep ? nodes[i].node.keep : "");
        snprintf(blocking[i], sizeof(blocking[i]), "%s",
                 nodes[i].node.blocking_pod ? nodes[i].node.blocking_pod : "");
        snprintf(instances_told[i], sizeof(instances_told[i]), "%s %s %s %d", nodes[i].instance->id,
                 nodes[i].instance->provider_id, nodes[i].instance->zone,
                 nodes[i].instance->created.set);
        snprintf(marks[i], sizeof(marks[i]), "%s", nodes[i].mark ? nodes[i].mark->decision : "");
    }
}

TestSuite(nodes, .init = setup_client, .fini = teardown_client);

static struct as_group_view list(const struct as_instance *instances, size_t count)
{
    return (struct as_group_view){.instances = (struct as_instance *)instances,
                                  .instance_count = count};
}

static void read_nodes(const struct as_instance *instances, size_t count, bool with_pods)
{
    const unsigned before = told;
    const struct as_group_view view = list(instances, count);
    struct as_nodes_reading *reading =
        as_nodes_read_start(&client, &view, with_pods, AS_KEEP_DEFAULT, keep, NULL);
    cr_assert_not_null(reading);
    cr_assert_eq(told, before, "told in the same turn");
    world_run(&world);
    cr_assert_eq(told, before + 1);
}

Test(nodes, are_found_by_how_the_providerid_ends)
{
    static const struct {
        const char *node, *instance;
        bool is_it;
    } rows[] = {
        {"aws:///eu-west-1a/i-0abc", "i-0abc", true},
        {"aws:///eu-west-1a/i-10abc", "i-0abc", false},
        {"aws:///eu-west-1a/x-i-0abc", "i-0abc", false},
        {"aws:///eu-west-1a/I-0ABC", "i-0abc", false},
        {"gce://project/zone-b/pool-1", "zone-b/pool-1", true},
        {"gce://project/zone-a/pool-1", "zone-b/pool-1", false},
        {"cn-hangzhou.i-bp1", "i-bp1", true},
        {"openstack:///6b7f", "6b7f", true},
        {"6b7f", "6b7f", true},
        {"b7f", "6b7f", false},
        {"", "6b7f", false},
        {"openstack:///6b7f", "", false},
        {"azure:///subscriptions/S/resourceGroups/Rg/providers/Microsoft.Compute/"
         "virtualMachineScaleSets/V/virtualMachines/0",
         "/subscriptions/s/resourceGroups/rg/providers/microsoft.compute/"
         "virtualmachinescalesets/v/virtualmachines/0",
         true},
        {"azure:///subscriptions/S/resourceGroups/Rg/providers/Microsoft.Compute/"
         "virtualMachineScaleSets/V2/virtualMachines/0",
         "/subscriptions/s/resourceGroups/rg/providers/microsoft.compute/"
         "virtualmachinescalesets/v/virtualmachines/0",
         false},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        AS_CLEANUP(as_free_p)
        char *nodes =
            as_xasprintf("{\"kind\":\"NodeList\",\"items\":[" NODE("n1", "%s") "]}", rows[i].node);
        const struct as_instance instance = {.id = "unlike", .provider_id = rows[i].instance};
        cr_expect_eq(as_node_is_instance(rows[i].node, rows[i].instance), rows[i].is_it, "row %zu",
                     i);
        if (!*rows[i].instance)
            continue; /* then it is the id */
        answer("GET", NODES, 200, nodes);
        read_nodes(&instance, 1, false);
        cr_expect_eq(found[0].is_found, rows[i].is_it, "row %zu", i);
    }
}

Test(nodes, are_told_in_the_order_of_the_instances)
{
    static const struct as_instance instances[] = {
        {.id = "i-3", .provider_id = ""}, {.id = "i-1"}, {.id = "i-9"}, {.id = "i-2"}};
    answer("GET", NODES, 200,
           LIST_OF("NodeList", "t",
                   NODE("a", "aws:///z/i-1") "," NODE("b", "aws:///z/i-2") "," NODE(
                       "foreign", "aws:///z/i-7")));
    answer("GET", NODES "&continue=t", 200,
           LIST_OF("NodeList", "",
                   "{\"metadata\":{\"name\":\"c\",\"annotations\":{\"alertscaler.io/drain\":"
                   "\"{\\\"at\\\":\\\"2026-11-22T10:00:00Z\\\",\\\"decision\\\":\\\"01HD\\\","
                   "\\\"owner\\\":\\\"me\\\"}\",\"alertscaler.io/scale-down-disabled\":\"true\"}},"
                   "\"spec\":{\"providerID\":\"aws:///z/i-3\",\"unschedulable\":true}}"));
    read_nodes(instances, 4, false);
    cr_assert_eq(outcome.reason, AS_REASON_APPLIED, "%s", outcome.message);
    cr_assert_eq(found_count, 4);
    cr_expect_str_eq(names[0], "c");
    cr_expect_str_eq(names[1], "a");
    cr_expect_str_eq(names[2], "none");
    cr_expect_str_eq(names[3], "b");
    cr_expect(found[1].node.is_ready);
    cr_expect_not(found[0].node.is_ready);
    cr_expect(found[0].node.is_cordoned);
    cr_expect_not_null(found[0].node.keep);
    cr_expect_str_eq(marks[0], "01HD");
    cr_expect_str_eq(marks[1], "");
    cr_expect_eq(found[1].node.allocatable[AS_RESOURCE_CPU], 4);
    cr_expect(isnan(found[0].node.allocatable[AS_RESOURCE_CPU]));
}

Test(nodes, are_ambiguous_where_two_claim_to_be_one)
{
    static const struct as_instance instances[] = {
        {.id = "i-1"}, {.id = "i-2"}, {.id = "x", .provider_id = "z/i-2"}, {.id = "i-3"}};
    answer("GET", NODES, 200,
           LIST_OF("NodeList", "",
                   NODE("a", "aws:///z/i-1") "," NODE("b", "aws:///y/i-1") "," NODE(
                       "c", "aws:///z/i-2") "," NODE("d", "aws:///z/i-3")));
    answer("GET", PODS("d"), 200, LIST_OF("PodList", "", ""));
    read_nodes(instances, 4, true);
    cr_assert_eq(found_count, 4);
    cr_expect(found[0].is_ambiguous);
    cr_expect(found[1].is_ambiguous);
    cr_expect(found[2].is_ambiguous);
    cr_expect_not(found[3].is_ambiguous);
    cr_expect_eq(world.request_count, 2, "pods are read of what is clear");
}

Test(nodes, have_pods_that_are_counted)
{
    static const struct as_instance instances[] = {{.id = "i-1"}, {.id = "i-2"}};
    answer("GET", NODES, 200,
           LIST_OF("NodeList", "", NODE("a", "aws:///z/i-1") "," NODE("b", "aws:///z/i-2")));
    answer(
        "GET", PODS("a"), 200,
        LIST_OF("PodList", "",
                POD("p1", "", "") "," POD(
                    "p2", ",\"deletionTimestamp\":\"x\"",
                    "") ","
                        "{\"metadata\":{\"name\":\"d\",\"namespace\":\"kube-system\",\"uid\":\"d\","
                        "\"ownerReferences\":[{\"kind\":\"DaemonSet\",\"controller\":true}]},"
                        "\"spec\":{\"containers\":[{\"resources\":{\"requests\":{\"cpu\":\"100m\"}}"
                        "}]}}"));
    answer("GET", PODS("b"), 200,
           LIST_OF("PodList", "",
                   POD("p3", "", "") "," POD("p4", "",
                                             ",\"volumes\":[{\"name\":\"v\","
                                             "\"emptyDir\":{}}]")));
    read_nodes(instances, 2, true);
    cr_assert_eq(outcome.reason, AS_REASON_APPLIED, "%s", outcome.message);
    cr_expect_eq(found[0].node.pod_count, 1, "one to evict");
    cr_expect_float_eq(found[0].node.requests[AS_RESOURCE_CPU], 1.1, 1e-9, "of all");
    cr_expect_str_eq(blocking[0], "");
    cr_expect_eq(found[1].node.pod_count, 2);
    cr_expect_eq(strncmp(blocking[1], "shop/p4 may not be evicted: its volume v", 40), 0, "%s",
                 blocking[1]);
}

Test(nodes, a_group_without_nodes_asks_for_no_pods)
{
    static const struct as_instance instance = {.id = "i-1"};
    answer("GET", NODES, 200, LIST_OF("NodeList", "", ""));
    read_nodes(&instance, 1, true);
    cr_expect_eq(outcome.reason, AS_REASON_APPLIED);
    cr_expect_not(found[0].is_found);
    answer("GET", NODES, 200, LIST_OF("NodeList", "", NODE("a", "aws:///z/i-1")));
    read_nodes(NULL, 0, true);
    cr_expect_eq(outcome.reason, AS_REASON_APPLIED);
    cr_expect_eq(found_count, 0);
}

Test(nodes, every_failure_has_a_reason)
{
    static const struct {
        enum as_http_outcome transport;
        int status;
        const char *body;
        enum as_reason reason;
        const char *message; /* behind "list nodes: " */
    } rows[] = {
        {AS_HTTP_ANSWERED, 403, STATUS("nodes is forbidden", ""), AS_REASON_FORBIDDEN,
         "the right \"nodes: list\" is missing: nodes is forbidden"},
        {AS_HTTP_ANSWERED, 500, STATUS("etcd", ""), AS_REASON_UNREACHABLE, "etcd"},
        {AS_HTTP_ANSWERED, 200, "<html>", AS_REASON_REJECTED, "expected a JSON object"},
        {AS_HTTP_ANSWERED, 200, LIST_OF("PodList", "", ""), AS_REASON_REJECTED,
         "kind: expected NodeList"},
        {AS_HTTP_UNREACHABLE, 0, "", AS_REASON_UNREACHABLE, "transport"},
        {AS_HTTP_TIMEOUT, 0, "", AS_REASON_TIMEOUT, "transport"},
        {AS_HTTP_TOO_LARGE, 0, "", AS_REASON_REJECTED, "transport"},
    };
    static const struct as_instance instance = {.id = "i-1"};
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        char message[256];
        snprintf(message, sizeof(message), "list nodes: %s", rows[i].message);
        world_answer(&world, (struct world_answer){"GET", NODES, rows[i].transport, rows[i].status,
                                                   .body = rows[i].body, .error = "transport"});
        read_nodes(&instance, 1, true);
        cr_expect_eq(outcome.reason, rows[i].reason, "row %zu", i);
        cr_expect_str_eq(outcome.message, message);
        cr_expect_eq(found_count, 0);
    }
}

Test(nodes, pods_that_cannot_be_read_fail_it_all)
{
    static const struct as_instance instances[] = {{.id = "i-1"}, {.id = "i-2"}};
    answer("GET", NODES, 200,
           LIST_OF("NodeList", "", NODE("a", "aws:///z/i-1") "," NODE("b", "aws:///z/i-2")));
    answer("GET", PODS("a"), 403, STATUS("no", ""));
    read_nodes(instances, 2, true);
    cr_expect_eq(outcome.reason, AS_REASON_FORBIDDEN);
    cr_expect(get_last_request()->is_cancelled);
    cr_expect_str_eq(outcome.message, "list pods of a node: the right \"pods: list (in all "
                                      "namespaces)\" is missing: no");
    cr_expect_eq(found_count, 0);
}

/* A cluster of many nodes, some of whose pods are read at a time. */
static size_t served, most_under_way;

static struct world_answer serve_slowly(void *context, const struct world_request *request)
{
    static char list[64 * 1024];
    const size_t under_way = world.request_count - served++;
    if (under_way > most_under_way)
        most_under_way = under_way;
    if (!strstr(request->url, "/nodes?"))
        return (struct world_answer){.status = 200, .body = LIST_OF("PodList", "", "")};
    size_t size = (size_t)snprintf(list, sizeof(list), "{\"kind\":\"NodeList\",\"items\":[");
    for (int i = 0; i < 100; i++)
        size += (size_t)snprintf(list + size, sizeof(list) - size, "%s" NODE("n%d", "c:///i-%d"),
                                 i ? "," : "", i, i);
    snprintf(list + size, sizeof(list) - size, "]}");
    return (struct world_answer){.status = 200, .body = list};
}

static struct world_answer serve_late(void *context, const struct world_request *request)
{
    if (strstr(request->url, "/pods?"))
        world.mono.us += AS_NODES_TIMEOUT_US / 3;
    return serve_slowly(context, request);
}

static void read_many(void)
{
    static char ids[100][16];
    struct as_instance instances[100] = {{.id = NULL}};
    struct as_nodes_reading *reading;
    for (int i = 0; i < 100; i++) {
        snprintf(ids[i], sizeof(ids[i]), "i-%d", i);
        instances[i].id = ids[i];
    }
    told = 0;
    const struct as_group_view view = list(instances, 100);
    reading = as_nodes_read_start(&client, &view, true, AS_KEEP_DEFAULT, keep, NULL);
    cr_assert_not_null(reading);
    world_run(&world);
    cr_assert_eq(told, 1);
}

Test(nodes, are_read_some_at_a_time)
{
    world.serve = serve_slowly;
    read_many();
    cr_expect_eq(outcome.reason, AS_REASON_APPLIED);
    cr_expect_eq(found_count, 100);
    cr_expect_eq(world.request_count, 1 + 100);
    cr_expect_eq(most_under_way, AS_NODES_PARALLEL);
}

Test(nodes, not_for_ever)
{
    world.serve = serve_late;
    read_many();
    cr_expect_eq(outcome.reason, AS_REASON_TIMEOUT);
    cr_expect_str_eq(outcome.message, "list pods of nodes: all of them together take too long");
}

/* Where the provider does not name them: the node without a providerID is nobody's. */
Test(nodes, with_a_label_are_the_instances)
{
    struct as_instance counted[] = {{.id = "10.0.0.4"}, {.id = "10.0.0.5"}, {.id = "10.0.0.6"}};
    const struct as_group_view view = {
        .node_label = "m.org/group=a b", .instances = counted, .instance_count = 3};
    answer(
        "GET", "/api/v1/nodes?labelSelector=m.org%2Fgroup%3Da%20b&limit=500", 200,
        LIST_OF(
            "NodeList", "",
            NODE("a", "openstack:///6b7f") "," NODE(
                "b",
                "") ","
                    "{\"metadata\":{\"name\":\"c\",\"creationTimestamp\":\"2026-11-22T10:00:00Z\","
                    "\"labels\":{\"failure-domain.beta.kubernetes.io/zone\":\"nova\"}},\"spec\":"
                    "{\"providerID\":\"openstack://RegionOne/8c9d\"}}"));
    answer("GET", PODS("a"), 200, LIST_OF("PodList", "", POD("p", "", "")));
    answer("GET", PODS("c"), 200, LIST_OF("PodList", "", ""));
    struct as_nodes_reading *reading =
        as_nodes_read_start(&client, &view, true, AS_KEEP_DEFAULT, keep, NULL);
    cr_assert_not_null(reading);
    world_run(&world);
    cr_assert_eq(outcome.reason, AS_REASON_APPLIED, "%s", outcome.message);
    cr_assert_eq(found_count, 2);
    cr_expect_str_eq(names[0], "a");
    cr_expect_str_eq(instances_told[0], "6b7f openstack:///6b7f  0");
    cr_expect_eq(found[0].node.pod_count, 1);
    cr_expect(found[0].node.is_ready);
    cr_expect_str_eq(names[1], "c");
    cr_expect_str_eq(instances_told[1], "8c9d openstack://RegionOne/8c9d nova 1");
    cr_expect_not(found[0].is_ambiguous || found[1].is_ambiguous);
}

Test(nodes, nothing_is_told_after_a_cancel)
{
    static const struct as_instance instances[] = {{.id = "i-1"}, {.id = "i-2"}};
    const struct as_group_view view = list(instances, 2);
    struct as_nodes_reading *reading =
        as_nodes_read_start(&client, &view, true, AS_KEEP_DEFAULT, keep, NULL);
    as_nodes_read_cancel(reading);
    world_run(&world);
    cr_expect_eq(told, 0);
    cr_expect(get_last_request()->is_cancelled);
}

/* ---- out of the facts about the cluster ---- */

static const struct as_labels no_labels = {.count = 0};

#define FACT(text, id, ...)                                                                        \
    (struct as_node_fact)                                                                          \
    {                                                                                              \
        .name = text, .provider_id = id, .labels = &no_labels, __VA_ARGS__                         \
    }

static void match_facts(struct as_instance_nodes *of, const struct as_group_view *view,
                        const struct as_node_fact *nodes, size_t count)
{
    const struct as_cluster cluster = {.nodes = nodes, .node_count = count};
    as_instance_nodes_init(of, view);
    as_instance_nodes_match_facts(of, &cluster);
    keep(NULL, &(struct as_outcome){.reason = AS_REASON_APPLIED}, of->found, of->count);
}

/* One mapping serves lists and facts: the same nodes are found, and the same are ambiguous. */
Test(nodes, of_facts_are_found_as_listed_ones)
{
    static const struct as_instance instances[] = {
        {.id = "i-3"}, {.id = "i-1"}, {.id = "x", .provider_id = "z/i-2"}, {.id = "i-9"}};
    const struct as_node_fact nodes[] = {
        FACT("a", "aws:///z/i-1", .is_ready = true),
        FACT("b", "aws:///y/i-1"),
        FACT("c", "aws:///z/i-2", .is_ready = true),
        FACT("d", "aws:///z/i-3", .is_cordoned = true, .leaving = AS_NODE_LEAVING_OURS,
             .keep = "annotated"),
        FACT("e", "aws:///z/i-33", .is_ready = true),
    };
    const struct as_group_view view = list(instances, AS_ARRAY_SIZE(instances));
    AS_CLEANUP(as_instance_nodes_deinit) struct as_instance_nodes of;
    match_facts(&of, &view, nodes, AS_ARRAY_SIZE(nodes));
    cr_assert_eq(found_count, 4);
    cr_expect_str_eq(names[0], "d");
    cr_expect(found[0].node.is_cordoned);
    cr_expect_not(found[0].node.is_ready);
    cr_expect_str_eq(found[0].node.keep, "annotated");
    cr_expect_not_null(found[0].mark);
    cr_expect(found[1].is_ambiguous, "two nodes claim to be it");
    cr_expect_str_eq(names[2], "c");
    cr_expect(found[2].node.is_ready);
    cr_expect_not(found[2].is_ambiguous);
    cr_expect_null(found[2].mark);
    cr_expect_str_eq(names[3], "none");
}

/* The facts may change while the pods are listed. */
Test(nodes, of_facts_need_lists_of_their_pods_only)
{
    static const struct as_instance instances[] = {{.id = "i-1"}, {.id = "i-2"}};
    char name[] = "a", why[] = "annotated";
    const struct as_node_fact nodes[] = {
        FACT(name, "aws:///z/i-1", .keep = why, .is_ready = true, .has_cpu = true,
             .allocatable = {.amount = {[AS_RES_CPU] = 3920, [AS_RES_MEMORY] = 1024}}),
        FACT("b", "aws:///z/i-2", .has_memory = true,
             .allocatable = {.amount = {[AS_RES_CPU] = 3920, [AS_RES_MEMORY] = 1024}}),
    };
    const struct as_group_view view = list(instances, AS_ARRAY_SIZE(instances));
    AS_CLEANUP(as_instance_nodes_deinit) struct as_instance_nodes of;
    match_facts(&of, &view, nodes, AS_ARRAY_SIZE(nodes));
    told = 0;
    struct as_nodes_reading *reading =
        as_nodes_read_pods_start(&client, &of, AS_KEEP_DEFAULT, keep, NULL);
    as_nodes_read_cancel(reading);
    world_run(&world);
    cr_expect_eq(told, 0);
    match_facts(&of, &view, nodes, AS_ARRAY_SIZE(nodes));
    answer("GET", PODS("a"), 200, LIST_OF("PodList", "", POD("p", "", "")));
    answer("GET", PODS("b"), 200, LIST_OF("PodList", "", ""));
    told = 0;
    reading = as_nodes_read_pods_start(&client, &of, AS_KEEP_DEFAULT, keep, NULL);
    cr_assert_not_null(reading);
    memset(name, 'x', sizeof(name) - 1);
    memset(why, 'x', sizeof(why) - 1);
    world_run(&world);
    cr_assert_eq(told, 1);
    cr_assert_eq(outcome.reason, AS_REASON_APPLIED, "%s", outcome.message);
    cr_expect_str_eq(names[0], "a");
    cr_expect(found[0].node.is_ready);
    cr_expect_str_eq(kept[0], "annotated");
    cr_expect_eq(found[0].node.pod_count, 1);
    cr_expect_float_eq(found[0].node.allocatable[AS_RESOURCE_CPU], 3.92, 1e-9);
    cr_expect(isnan(found[0].node.allocatable[AS_RESOURCE_MEMORY]));
    cr_expect_str_eq(names[1], "b");
    cr_expect(isnan(found[1].node.allocatable[AS_RESOURCE_CPU]));
    cr_expect_eq(found[1].node.allocatable[AS_RESOURCE_MEMORY], 1024);
}

Test(nodes, of_facts_with_a_label_are_the_instances)
{
    static const struct as_label pairs[][1] = {{{"m.org/group", "a b"}}, {{"m.org/group", "a"}}};
    struct as_labels *labels[2];
    for (int i = 0; i < 2; i++)
        cr_assert_eq(as_labels_new(pairs[i], 1, &labels[i]), 0);
    struct as_node_fact nodes[] = {FACT("a", "openstack:///6b7f"), FACT("b", ""),
                                   FACT("c", "openstack:///7777"), FACT("d", "openstack:///8888")};
    nodes[0].labels = nodes[1].labels = labels[0];
    nodes[2].labels = labels[1];
    struct as_instance counted = {.id = "10.0.0.4"};
    const struct as_group_view view = {
        .node_label = "m.org/group=a b", .instances = &counted, .instance_count = 1};
    AS_CLEANUP(as_instance_nodes_deinit) struct as_instance_nodes of;
    match_facts(&of, &view, nodes, AS_ARRAY_SIZE(nodes));
    cr_assert_eq(found_count, 1);
    cr_expect_str_eq(names[0], "a");
    cr_expect_str_eq(found[0].instance->id, "6b7f");
    for (int i = 0; i < 2; i++)
        as_labels_free(labels[i]);
}
