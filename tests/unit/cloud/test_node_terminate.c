/*
 * Nodes that leave in the background, against a fake Auto Scaling group whose instances are nodes
 * of a fake cluster. Promises: a decrease is done with its marks; a growth has marked nodes back at
 * once; each step asks for a permit; another process goes on with what it finds.
 */
#include <inttypes.h>

#include <jansson.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>
#include <alertscaler/decide/choose.h>
#include <alertscaler/kube/target_outcome.h>

#include "../kube/kube_client.h"
#include "cloud/node_group.h"
#include "clouds.h"

#define NODES_MAX 500

struct machine {                                          /* an instance i-000 and its node n-000 */
    bool is_gone, has_no_node, is_not_ready, is_stubborn; /* stubborn: a budget keeps its pod */
    bool has_pod;
    bool is_cordoned, is_tainted;
    char mark[512];      /* "": none */
    const char *created; /* NULL: not said */
    const char *owner;   /* the controller of its pod; NULL: ReplicaSet */
};

static struct machine machines[NODES_MAX];
static int machine_count;
static int32_t desired, asked_for; /* asked_for: by SetDesiredCapacity; -1: never */
static unsigned deletions, evictions;
static int lacking;       /* the first so many nodes have no spec.providerID */
static bool is_forbidden; /* the provider refuses deletions */
static bool fails_later;  /* it accepts deletions, and its activity fails */
static char text[NODES_MAX * 1024];

static struct as_cluster_link cluster;
static struct as_clusters clusters = {.items = &cluster, .count = 1};
static struct as_target_port *port;
static struct as_target_ref *group;
static struct as_nodes_config config;
static struct as_group_provider provider;

/* ---- what was recorded ---- */

static char records[64 * 1024];

static void keep_record(void *context, const struct as_nodes_record *record)
{
    (void)context;
    const size_t at = strlen(records);
    (void)snprintf(records + at, sizeof(records) - at, "%s %zu %s %s: %s\n",
                   as_nodes_event_get_word(record->event), record->node_count, record->decision,
                   record->nodes[0], record->message);
    cr_expect_str_eq(record->target, "mine/web");
    cr_expect_leq(record->node_count, AS_RECORD_NODES_MAX);
}

static enum as_terminate_permit permit;

static enum as_terminate_permit get_terminate_permit(void *context, const char *target,
                                                     const char **why)
{
    (void)context;
    (void)target;
    *why = "paused";
    return permit;
}

/* ---- the cloud ---- */

static struct world_answer say(int status, const char *body)
{
    return (struct world_answer){.status = status, .body = body};
}

static struct world_answer serve_cloud(const char *body)
{
    const char *id = strstr(body, "InstanceId=i-");
    int at = 0;
    if (strstr(body, "Action=TerminateInstance")) {
        if (is_forbidden)
            return say(403, "<ErrorResponse><Error><Code>AccessDenied</Code><Message>no</Message>"
                            "</Error></ErrorResponse>");
        machines[atoi(id + strlen("InstanceId=i-"))].is_gone = !fails_later;
        deletions++;
        desired -= !fails_later;
        return say(200, "<TerminateInstanceInAutoScalingGroupResponse>"
                        "<TerminateInstanceInAutoScalingGroupResult><Activity>"
                        "<ActivityId>a-1</ActivityId></Activity>"
                        "</TerminateInstanceInAutoScalingGroupResult>"
                        "</TerminateInstanceInAutoScalingGroupResponse>");
    }
    if (strstr(body, "Action=SetDesiredCapacity")) {
        desired = asked_for = atoi(strstr(body, "DesiredCapacity=") + strlen("DesiredCapacity="));
        return say(200, AWS_RESPONSE("SetDesiredCapacity", ""));
    }
    if (strstr(body, "Action=DescribePolicies"))
        return say(200, AWS_RESPONSE("DescribePolicies", "<ScalingPolicies/>"));
    if (!strstr(body, "Action=DescribeAutoScalingGroups"))
        return say(200, fails_later ? AWS_ACTIVITY("Failed") : AWS_ACTIVITY("Successful"));
    at = snprintf(text, sizeof(text),
                  "<DescribeAutoScalingGroupsResponse><DescribeAutoScalingGroupsResult>"
                  "<AutoScalingGroups><member><AutoScalingGroupName>web</"
                  "AutoScalingGroupName><AutoScalingGroupARN>arn:g</AutoScalingGroupARN>"
                  "<DesiredCapacity>%d</DesiredCapacity><MaxSize>600</MaxSize><Instances>",
                  desired);
    for (int i = 0; i < machine_count; i++)
        if (!machines[i].is_gone)
            at += snprintf(text + at, sizeof(text) - (size_t)at,
                           "<member><InstanceId>i-%03d</InstanceId><LifecycleState>InService"
                           "</LifecycleState></member>",
                           i);
    (void)snprintf(text + at, sizeof(text) - (size_t)at,
                   "</Instances></member></AutoScalingGroups></DescribeAutoScalingGroupsResult>"
                   "</DescribeAutoScalingGroupsResponse>");
    return say(200, text);
}

/* ---- the cluster ---- */

static int print_node(int i, char *out, size_t size)
{
    const struct machine *machine = &machines[i];
    json_t *node = json_pack("{s:s, s:{s:s, s:s, s:{}}, s:{s:s, s:b, s:[]}, s:{s:[{s:s, s:s}]}}",
                             "kind", "Node", "metadata", "name", "n-000", "resourceVersion", "7",
                             "annotations", "spec", "providerID", "aws:///z/i-000", "unschedulable",
                             machine->is_cordoned, "taints", "status", "conditions", "type",
                             "Ready", "status", machine->is_not_ready ? "Unknown" : "True");
    char name[16], id[32];
    snprintf(name, sizeof(name), "n-%03d", i);
    snprintf(id, sizeof(id), "aws:///z/i-%03d", i);
    json_object_set_new(json_object_get(node, "metadata"), "name", json_string(name));
    json_object_set_new(json_object_get(node, "spec"), "providerID",
                        json_string(i < lacking ? "" : id));
    if (machine->created)
        json_object_set_new(json_object_get(node, "metadata"), "creationTimestamp",
                            json_string(machine->created));
    if (*machine->mark)
        json_object_set_new(json_object_get(json_object_get(node, "metadata"), "annotations"),
                            "alertscaler.io/drain", json_string(machine->mark));
    char *json = json_dumps(node, JSON_COMPACT);
    const int length = snprintf(out, size, "%s", json);
    free(json);
    json_decref(node);
    return length;
}

static struct world_answer list_nodes(void)
{
    int at = snprintf(text, sizeof(text), "{\"kind\":\"NodeList\",\"metadata\":{},\"items\":[");
    bool is_first = true;
    for (int i = 0; i < machine_count; i++) {
        if (machines[i].is_gone || machines[i].has_no_node)
            continue;
        if (!is_first)
            text[at++] = ',';
        is_first = false;
        at += print_node(i, text + at, sizeof(text) - (size_t)at);
    }
    (void)snprintf(text + at, sizeof(text) - (size_t)at, "]}");
    return say(200, text);
}

static void patch_node(struct machine *machine, const char *body)
{
    json_t *patch = json_loads(body, 0, NULL);
    const json_t *annotations = json_object_get(json_object_get(patch, "metadata"), "annotations");
    const json_t *spec = json_object_get(patch, "spec");
    const char *mark = json_string_value(json_object_get(annotations, "alertscaler.io/drain"));
    snprintf(machine->mark, sizeof(machine->mark), "%s", mark ? mark : "");
    machine->is_cordoned = json_is_true(json_object_get(spec, "unschedulable"));
    machine->is_tainted = json_array_size(json_object_get(spec, "taints")) > 0;
    json_decref(patch);
}

static struct world_answer serve_cluster(const struct world_request *request)
{
    static char pods[512];
    const char *node = strstr(request->url, "n-"), *pod = strstr(request->url, "/pods/p-");
    if (pod && strstr(request->url, "/eviction")) {
        struct machine *machine = &machines[atoi(pod + strlen("/pods/p-"))];
        evictions++;
        if (machine->is_stubborn)
            return say(429, STATUS("needs 2 healthy pods", ""));
        machine->has_pod = false;
        return say(201, "{}");
    }
    if (!node)
        return strstr(request->url, "/nodes")
                   ? list_nodes()
                   : say(200, "{\"kind\":\"APIResourceList\",\"resources\":[{\"name\":"
                              "\"pods/eviction\",\"group\":\"policy\",\"version\":\"v1\"}]}");
    const int i = atoi(node + strlen("n-"));
    if (strstr(request->url, "/pods?")) {
        snprintf(pods, sizeof(pods),
                 "{\"kind\":\"PodList\",\"metadata\":{},\"items\":[{\"metadata\":{\"name\":"
                 "\"p-%03d\",\"namespace\":\"shop\",\"uid\":\"u\",\"ownerReferences\":[{\"kind\":"
                 "\"%s\",\"controller\":true}]}}]}",
                 i, machines[i].owner ? machines[i].owner : "ReplicaSet");
        return say(200, machines[i].has_pod ? pods : LIST_OF("PodList", "", ""));
    }
    if (machines[i].is_gone || machines[i].has_no_node)
        return say(404, STATUS("not found", "\"name\":\"n\""));
    if (strcmp(request->method, "PATCH") == 0)
        patch_node(&machines[i], request->body);
    (void)print_node(i, text, sizeof(text));
    return say(200, text);
}

static struct world_answer serve(void *context, const struct world_request *request)
{
    (void)context;
    return strstr(request->url, "https://k:6443") ? serve_cluster(request)
                                                  : serve_cloud(request->body);
}

static int sign(struct as_cloud_op *op, const struct as_provider_credentials *credentials,
                const struct as_sign_scope *scope, struct as_error *error)
{
    (void)credentials;
    (void)scope;
    (void)error;
    as_cloud_op_header(op, "Authorization: test");
    return 0;
}

static void begin_credentials(struct as_credentials_op *op)
{
    op->found.token = strdup("t");
    as_cloud_op_end(&op->op);
}

static const struct as_credentials_source sources[] = {{"test", begin_credentials}, {0}};
static const struct as_provider_option options[] = {{"region", "eu-central-1"},
                                                    {"endpoint", "https://cloud"}};
static const struct as_provider_settings settings = {
    .name = "mine",
    .timeout_us = 10 * AS_US_PER_S,
    .options = (struct as_provider_option *)(uintptr_t)options,
    .option_count = 2};

/* ---- a process ---- */

static void begin(const char *owner)
{
    cluster.name = "default";
    cluster.access = access_;
    cluster.client = client;
    cluster.drains = as_drains_new(&cluster.client, owner);
    cluster.watch = as_cluster_watch_new(&cluster.client);
    port = as_node_group_new(&provider, &settings, &env, &clusters, NULL);
}

static void die(void)
{
    port->close(port);
    as_drains_free(cluster.drains);
    as_cluster_watch_free(cluster.watch);
}

static void setup(void)
{
    static const struct as_target_field fields[] = {{"provider", "mine"}, {"name", "web"}};
    setup_client();
    world.serve = serve;
    env.record_nodes = keep_record;
    env.get_terminate_permit = get_terminate_permit;
    permit = AS_TERMINATE_GO;
    provider = *as_group_provider_find("aws");
    provider.credentials = sources;
    provider.sign = sign;
    group =
        as_target_ref_make(&as_target_kind_node_group, "mine/web", fields, AS_ARRAY_SIZE(fields));
    config = (struct as_nodes_config){.cluster = (char *)(uintptr_t) "default",
                                      .choose = AS_CHOOSE_EMPTY_FIRST,
                                      .drain = AS_NODES_DRAIN_TRUE,
                                      .drain_after_us = 5 * AS_US_PER_MIN,
                                      .drain_timeout_us = 10 * AS_US_PER_MIN,
                                      .grace_us = -1,
                                      .ready_timeout_us = 15 * AS_US_PER_MIN,
                                      .unneeded.keep = AS_KEEP_DEFAULT};
    memset(machines, 0, sizeof(machines));
    machine_count = 5;
    desired = 5;
    asked_for = -1;
    deletions = evictions = 0;
    lacking = 0;
    is_forbidden = fails_later = false;
    *records = '\0';
    begin("me");
}

static void teardown(void)
{
    die();
    as_target_ref_free(group);
    teardown_client();
}

TestSuite(leave, .init = setup, .fini = teardown);

/* Second by second, as timers begin others. */
static void pass(int64_t us)
{
    for (; us > 0; us -= AS_US_PER_S)
        world_advance(&world, AS_US_PER_S);
}

static int32_t look(void)
{
    const struct as_observe_request request = {.nodes = &config};
    const unsigned before = observed_count;
    port->observe(port, 7, group, &request, keep_observation, NULL);
    world_run(&world);
    cr_assert_eq(observed_count, before + 1);
    cr_assert_eq(observation.outcome, AS_REASON_APPLIED, "%s", observation.message);
    return observation.replicas;
}

static void scale_to(int32_t to, const char *decision)
{
    const struct as_scale_request request = {
        .from = look(), .to = to, .decision_id = decision, .nodes = &config};
    const unsigned before = scaled_count;
    port->scale(port, 8, group, &request, keep_result, NULL);
    world_run(&world);
    cr_assert_eq(scaled_count, before + 1, "it waits for more than the marks");
}

static int count_marked(void)
{
    int marked = 0;
    for (int i = 0; i < machine_count; i++)
        marked += !machines[i].is_gone && *machines[i].mark && machines[i].is_cordoned;
    return marked;
}

static void keep_busy(int from, bool is_stubborn)
{
    for (int i = from; i < machine_count; i++) {
        machines[i].has_pod = true;
        machines[i].is_stubborn = is_stubborn;
    }
}

/* ---- the way of a node ---- */

Test(leave, a_decrease_is_done_with_the_marks_and_goes_on_in_the_background)
{
    keep_busy(0, false);
    scale_to(3, "01DOWN");
    cr_expect_eq(result.outcome, AS_REASON_APPLIED, "%s", result.message);
    cr_expect_not(result.is_partial);
    cr_expect_eq(count_marked(), 2);
    cr_expect_eq(desired, 5, "the provider knows nothing of it yet");
    cr_expect_eq(look(), 3);
    cr_expect_eq(observation.status_replicas, 3);
    cr_expect_str_eq(records, "marked 2 01DOWN n-000: \n");
    pass(30 * AS_US_PER_S);
    cr_expect_eq(evictions, 2);
    cr_expect_eq(desired, 3);
    cr_expect_eq(deletions, 2);
    cr_expect_eq(look(), 3);
    cr_expect_not_null(strstr(records, "removed 2 01DOWN n-000: \n"), "%s", records);
    cr_expect_not(observation.drain_failed.set);
}

Test(leave, a_surge_has_its_nodes_back_within_one_look)
{
    keep_busy(0, true);
    scale_to(4, "01A");
    pass(AS_US_PER_S);
    scale_to(2, "01B");
    pass(5 * AS_US_PER_S);
    cr_expect_eq(count_marked(), 3);
    scale_to(4, "01UP");
    cr_expect_eq(result.outcome, AS_REASON_APPLIED, "%s", result.message);
    cr_expect_eq(result.returned, 2);
    cr_expect_eq(asked_for, -1, "nothing is asked of the provider");
    cr_expect_eq(look(), 4);
    cr_expect(observation.drain_failed.set);
    cr_expect(*machines[0].mark, "the oldest mark stays");
    cr_expect_not_null(strstr(records, "kept 2 01B n-001: taken back: more are needed\n"), "%s",
                       records);
    scale_to(7, "01MORE");
    cr_expect_eq(result.returned, 1);
    cr_expect_eq(asked_for, 7, "only the rest is asked for");
    cr_expect_eq(count_marked(), 0);
    for (int i = 0; i < machine_count; i++)
        cr_expect(!machines[i].is_cordoned && !machines[i].is_tainted);
}

Test(leave, growth_takes_back_the_newest_nodes_of_one_decision)
{
    static const char *const created[] = {"2025-11-20T09:00:00Z", "2025-11-20T07:00:00Z",
                                          "2025-11-20T08:00:00Z"};
    for (size_t i = 0; i < AS_ARRAY_SIZE(created); i++)
        machines[i].created = created[i];
    keep_busy(0, true);
    scale_to(2, "01A");
    cr_assert_eq(count_marked(), 3);
    scale_to(4, "01UP");
    cr_expect_eq(result.returned, 2);
    cr_expect(*machines[1].mark, "the oldest node stays marked");
    cr_expect_not(*machines[0].mark);
    cr_expect_not(*machines[2].mark);
}

/* Serving machines would be removed without a drain. */
Test(leave, where_nodes_have_no_providerid_nothing_is_removed)
{
    static const struct {
        int32_t to;
        bool is_take_back;
    } rows[] = {{3, false}, {3, true}};
    lacking = NODES_MAX;
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        const struct as_scale_request request = {.from = look(),
                                                 .to = rows[i].to,
                                                 .is_take_back = rows[i].is_take_back,
                                                 .decision_id = "D1",
                                                 .nodes = &config};
        port->scale(port, 8, group, &request, keep_result, NULL);
        world_run(&world);
        cr_expect_eq(result.outcome, AS_REASON_REJECTED);
        cr_expect(strstr(result.message, "none of the 5 instances is a node of cluster default by "
                                         "its spec.providerID"),
                  "%s", result.message);
        pass(20 * AS_US_PER_MIN);
    }
    cr_expect_eq(count_marked() + (int)deletions + (int)evictions, 0);
    cr_expect_eq(look(), 5);
    cr_expect_eq(asked_for, -1);
}

/* They may be the nodes. */
Test(leave, a_take_back_to_0_spares_running_instances_that_may_be_nodes_without_providerid)
{
    lacking = 5;
    const struct as_scale_request request = {
        .from = look(), .to = 0, .is_take_back = true, .decision_id = "D1", .nodes = &config};
    port->scale(port, 8, group, &request, keep_result, NULL);
    world_run(&world);
    cr_expect_eq(result.outcome, AS_REASON_REJECTED);
    cr_expect(strstr(result.message, "providerID"), "%s", result.message);
    pass(AS_US_PER_MIN);
    cr_expect_eq(deletions, 0);
    cr_expect_eq(look(), 5);
}

/* `nodes.cluster` names another cluster than theirs, where all of them serve. */
Test(leave, a_take_back_to_0_spares_a_group_that_never_had_a_node_in_this_cluster)
{
    for (int i = 0; i < machine_count; i++)
        machines[i].has_no_node = true;
    const struct as_scale_request request = {
        .from = look(), .to = 0, .is_take_back = true, .decision_id = "D1", .nodes = &config};
    port->scale(port, 8, group, &request, keep_result, NULL);
    pass(20 * AS_US_PER_MIN);
    cr_expect_eq(result.outcome, AS_REASON_REJECTED);
    cr_expect(strstr(result.message, "none of the 5 instances is a node of cluster default"), "%s",
              result.message);
    cr_expect(strstr(result.message, "remove what never became a node by hand"), "%s",
              result.message);
    cr_expect_eq(deletions, 0);
    cr_expect_eq(look(), 5);
}

Test(leave, a_take_back_to_0_removes_what_never_became_a_node)
{
    (void)look(); /* they were nodes */
    for (int i = 0; i < machine_count; i++)
        machines[i].has_no_node = true;
    const struct as_scale_request request = {
        .from = look(), .to = 0, .is_take_back = true, .decision_id = "D1", .nodes = &config};
    port->scale(port, 8, group, &request, keep_result, NULL);
    pass(AS_US_PER_MIN);
    cr_expect_eq(deletions, 5);
}

static int32_t removable;

static void keep_removable(void *context, uint64_t call_id, const struct as_observation *seen)
{
    (void)context;
    (void)call_id;
    cr_assert_not_null(seen->members, "%s", seen->message);
    removable = seen->members->removable;
}

static int32_t count_removable(void)
{
    const struct as_observe_request request = {.nodes = &config, .with_members = true};
    port->observe(port, 7, group, &request, keep_removable, NULL);
    world_run(&world);
    return removable;
}

static void look_for(int64_t us)
{
    for (; us > 0; us -= AS_US_PER_MIN) {
        pass(AS_US_PER_MIN);
        (void)look();
    }
}

static void clean_up(int32_t to)
{
    const struct as_scale_request request = {
        .from = look(), .to = to, .is_clean_up = true, .decision_id = "D1", .nodes = &config};
    port->scale(port, 8, group, &request, keep_result, NULL);
    pass(AS_US_PER_MIN);
}

Test(leave, a_clean_up_removes_by_name_what_never_became_a_node_and_nothing_else)
{
    machines[1].has_no_node = machines[3].has_no_node = true;
    (void)look();
    clean_up(3);
    cr_expect_eq(result.outcome, AS_REASON_REJECTED, "they may still come");
    look_for(13 * AS_US_PER_MIN);
    cr_expect_eq(count_removable(), 0);
    look_for(2 * AS_US_PER_MIN);
    machines[0].has_no_node = true; /* its node was deleted: it served a minute ago */
    cr_expect_eq(count_removable(), 2);
    clean_up(2);
    cr_expect_eq(result.outcome, AS_REASON_APPLIED, "%s", result.message);
    cr_expect(result.is_partial && result.reached == 3);
    cr_expect(machines[1].is_gone && machines[3].is_gone);
    cr_expect_eq(deletions, 2);
    cr_expect_eq(count_marked() + (int)evictions, 0);
    cr_expect_eq(count_removable(), 0);
}

Test(leave, in_doubt_nothing_is_cleaned_up)
{
    for (int i = 0; i < machine_count; i++)
        machines[i].has_no_node = true;
    look_for(40 * AS_US_PER_MIN);
    cr_expect_eq(count_removable(), 0, "no instance is a node: it may be the wrong cluster");
    clean_up(3);
    cr_expect_eq(result.outcome, AS_REASON_REJECTED);
    machines[0].has_no_node = machines[1].has_no_node = false;
    lacking = 1;
    look_for(20 * AS_US_PER_MIN);
    cr_expect_eq(count_removable(), 0, "any of them may be the node without a providerID");
    lacking = 0;
    look_for(20 * AS_US_PER_MIN);
    cr_expect_eq(count_removable(), 3);
    pass(6 * AS_US_PER_MIN);
    cr_expect_eq(count_removable(), 0, "nobody has looked meanwhile");
    die();
    begin("me");
    look_for(2 * AS_US_PER_MIN);
    cr_expect_eq(count_removable(), 0, "a new process has not seen them for long");
    cr_expect_eq(deletions, 0);
}

Test(leave, growth_takes_no_node_back_that_is_not_ready_or_whose_deletion_was_sent)
{
    keep_busy(0, true);
    scale_to(4, "01A");
    machines[0].is_not_ready = true;
    scale_to(5, "01UP");
    cr_expect_eq(result.returned, 0);
    cr_expect_eq(asked_for, 6, "it is still there, and counts no more");
    cr_expect_eq(count_marked(), 1);
}

Test(leave, a_pod_of_a_custom_controller_keeps_its_node)
{
    keep_busy(0, false);
    for (int i = 0; i < machine_count - 1; i++)
        machines[i].owner = "CloneSet";
    scale_to(3, "01A");
    cr_expect_eq(count_marked(), 1, "%s", result.message);
    cr_expect(*machines[machine_count - 1].mark);
    cr_expect_not_null(strstr(result.message, "its controller is a custom one, CloneSet"), "%s",
                       result.message);
}

Test(leave, without_keep_a_pod_of_a_custom_controller_is_evicted)
{
    keep_busy(0, false);
    for (int i = 0; i < machine_count; i++)
        machines[i].owner = "CloneSet";
    config.unneeded.keep = AS_KEEP_LOCAL_STORAGE;
    scale_to(3, "01A");
    cr_expect_eq(count_marked(), 2, "%s", result.message);
    pass(30 * AS_US_PER_S);
    cr_expect_eq(evictions, 2);
    cr_expect_eq(deletions, 2);
}

Test(leave, empty_nodes_leave_together_and_not_five_at_a_time)
{
    machine_count = desired = NODES_MAX;
    scale_to(0, "01DOWN");
    cr_expect_eq(result.outcome, AS_REASON_APPLIED, "%s", result.message);
    cr_expect_eq(count_marked(), NODES_MAX);
    pass(AS_US_PER_MIN);
    cr_expect_eq(deletions, NODES_MAX);
    cr_expect_eq(desired, 0);
    cr_expect_eq(look(), 0);
}

Test(leave, not_emptied_in_time_it_stays)
{
    keep_busy(0, true);
    scale_to(4, "01DOWN");
    pass(11 * AS_US_PER_MIN);
    cr_expect_eq(count_marked(), 0);
    cr_expect_eq(desired, 5);
    cr_expect_eq(look(), 5);
    cr_expect(observation.drain_failed.set);
    cr_expect_not_null(strstr(records, "kept 1 01DOWN n-000: drain node n-000: not empty after "
                                       "10m: pod shop/p-000: needs 2 healthy pods"),
                       "%s", records);
}

/* ---- drain: wait, drain: false ---- */

Test(leave, who_waits_leaves_when_it_has_been_marked_for_long_and_is_empty)
{
    config.drain = AS_NODES_DRAIN_WAIT;
    keep_busy(1, true);
    scale_to(3, "01DOWN");
    cr_expect(*machines[0].mark && *machines[1].mark);
    pass(5 * AS_US_PER_MIN - 10 * AS_US_PER_S);
    cr_expect_eq(deletions, 0, "too early");
    pass(AS_US_PER_MIN);
    cr_expect_eq(deletions, 1);
    cr_expect(machines[0].is_gone);
    pass(3 * AS_US_PER_MIN);
    cr_expect_eq(deletions, 1, "the other has a pod");
    pass(2 * AS_US_PER_MIN);
    cr_expect_eq(deletions, 2, "even with a pod, after drain_timeout");
    cr_expect_eq(evictions, 0);
}

Test(leave, without_a_drain_it_is_deleted_with_its_pods)
{
    config.drain = AS_NODES_DRAIN_FALSE;
    keep_busy(0, true);
    scale_to(4, "01DOWN");
    cr_expect_eq(count_marked(), 1);
    pass(5 * AS_US_PER_S);
    cr_expect_eq(deletions, 1);
    cr_expect_eq(evictions, 0);
}

/* ---- permits ---- */

Test(leave, each_step_asks_for_a_permit)
{
    keep_busy(0, false);
    permit = AS_TERMINATE_HOLD;
    scale_to(4, "01DOWN");
    pass(AS_US_PER_MIN);
    cr_expect_eq(evictions, 0);
    cr_expect_eq(count_marked(), 1, "it is not put back either");
    permit = AS_TERMINATE_GO;
    for (int i = 0; i < 60 && evictions == 0; i++)
        pass(AS_US_PER_S);
    permit = AS_TERMINATE_HOLD;
    pass(AS_US_PER_MIN);
    cr_expect_eq(deletions, 0, "emptied, and not deleted");
    permit = AS_TERMINATE_GO;
    pass(AS_US_PER_MIN);
    cr_expect_eq(deletions, 1);
}

static enum as_permit permit_undo(void *context)
{
    (void)context;
    return AS_PERMIT_UNDO;
}

Test(leave, under_the_kill_switch_nothing_leaves)
{
    keep_busy(0, false);
    scale_to(4, "01DOWN");
    env.get_permit = permit_undo;
    pass(AS_US_PER_MIN);
    cr_expect_eq(evictions, 0);
    cr_expect_eq(deletions, 0);
    cr_expect_eq(count_marked(), 1);
    env.get_permit = NULL;
    pass(AS_US_PER_MIN);
    cr_expect_eq(deletions, 1);
}

Test(leave, where_no_rule_leads_to_the_group_any_more_it_stays)
{
    keep_busy(0, true);
    scale_to(4, "01DOWN");
    permit = AS_TERMINATE_GONE;
    pass(5 * AS_US_PER_S);
    cr_expect_eq(count_marked(), 0);
    cr_expect_not_null(strstr(records, "kept 1 01DOWN n-000: "), "%s", records);
}

/* ---- what goes wrong ---- */

Test(leave, a_provider_that_refuses_has_the_node_back)
{
    is_forbidden = true;
    scale_to(4, "01DOWN");
    pass(10 * AS_US_PER_S);
    cr_expect_eq(count_marked(), 0);
    cr_expect_eq(look(), 5);
    cr_expect(observation.drain_failed.set);
    cr_expect_not_null(strstr(records, "kept 1 01DOWN n-000: "), "%s", records);
}

Test(leave, a_removal_that_is_accepted_and_then_fails_has_the_node_back)
{
    fails_later = true;
    scale_to(4, "01DOWN");
    pass(AS_US_PER_MIN);
    cr_expect_eq(deletions, 1, "asked %u times", deletions);
    cr_expect_eq(count_marked(), 0);
    cr_expect_eq(look(), 5);
    cr_expect_not_null(strstr(records, "kept 1 01DOWN n-000: accepted, then failed"), "%s",
                       records);
}

Test(leave, a_node_that_vanishes_is_deleted_and_an_instance_that_does_is_forgotten)
{
    keep_busy(0, true);
    scale_to(3, "01DOWN");
    machines[0].has_no_node = true;
    machines[0].has_pod = false; /* as the garbage collector does */
    pass(20 * AS_US_PER_S);
    cr_expect_eq(deletions, 1);
    cr_expect_eq(look(), 3);
    machines[1].is_gone = true;
    cr_expect_eq(look(), 4, "the provider's size still has its place");
    cr_expect_not_null(strstr(records, "removed 1 01DOWN n-001: its instance was gone already\n"),
                       "%s", records);
}

Test(leave, what_somebody_unmarked_is_theirs)
{
    keep_busy(0, true);
    config.drain = AS_NODES_DRAIN_WAIT;
    scale_to(4, "01DOWN");
    *machines[0].mark = '\0';
    pass(10 * AS_US_PER_MIN + AS_US_PER_S);
    cr_expect_eq(deletions, 0);
    cr_expect_eq(look(), 5);
    cr_expect_not_null(strstr(records, "somebody else has removed its mark"), "%s", records);
}

/* ---- other processes ---- */

Test(leave, who_comes_after_a_kill_goes_on)
{
    keep_busy(0, true);
    scale_to(3, "01DOWN");
    pass(5 * AS_US_PER_S);
    die();
    keep_busy(0, false);
    begin("me");
    pass(AS_US_PER_MIN);
    cr_expect_eq(evictions > 0 && deletions == 0, true, "it has not looked at the group yet");
    cr_expect_eq(look(), 3, "the marks count");
    pass(AS_LEAVE_FOUND_US - AS_US_PER_S);
    cr_expect_eq(deletions, 0, "who died may just have sent them");
    pass(AS_US_PER_MIN);
    cr_expect_eq(deletions, 2);
    cr_expect_eq(look(), 3);
    cr_expect_not_null(strstr(records, "removed 2 01DOWN "), "%s", records);
}

Test(leave, another_alertscalers_marks_are_neither_counted_nor_touched)
{
    keep_busy(0, true);
    scale_to(4, "01DOWN");
    pass(5 * AS_US_PER_S);
    die();
    begin("you");
    keep_busy(0, false);
    cr_expect_eq(look(), 5);
    pass(5 * AS_US_PER_MIN);
    cr_expect_eq(deletions, 0);
    cr_expect_eq(count_marked(), 1);
    scale_to(4, "01YOU");
    pass(AS_US_PER_MIN);
    cr_expect_eq(deletions, 1);
    cr_expect(!machines[0].is_gone, "the marked one is not ours");
}

Test(leave, a_port_that_is_replaced_begins_nothing_more)
{
    keep_busy(0, false);
    scale_to(4, "01DOWN");
    as_node_group_retire(port);
    pass(AS_US_PER_MIN);
    cr_expect_eq(evictions, 0);
    cr_expect_eq(count_marked(), 1);
    cr_expect(port->is_idle(port));
}
