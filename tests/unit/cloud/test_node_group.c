/*
 * Node groups against scripted clouds. Promise: a change that a cloud has accepted is a step,
 * however its operation ends (product promise 9).
 */
#include "cloud/node_group.h"

#include <alertscaler/kube/cluster_watch.h>

#include "../kube/support.h"
#include "clouds.h"

static struct as_group_provider provider;
static struct as_provider_settings settings = {.name = "mine", .timeout_us = 10 * AS_US_PER_S};
static struct as_target_port *port;
static struct as_target_ref *group;
static const struct cloud *cloud;
static struct cloud_answer operation; /* what polls of an operation are answered */
static unsigned polls, changes;

/* A signature that needs no key. */
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
    op->found.endpoint = strdup("https://cloud");
    op->found.project = strdup("p");
    as_cloud_op_end(&op->op);
}

static const struct as_credentials_source sources[] = {{"test", begin_credentials}, {0}};

static bool fits(const struct cloud_answer *answer, const struct world_request *request)
{
    return strcmp(answer->method, request->method) == 0 &&
           (strstr(request->url, answer->part) || strstr(request->headers, answer->part) ||
            (request->body && strstr(request->body, answer->part)));
}

static struct world_answer serve(void *context, const struct world_request *request)
{
    (void)context;
    const struct cloud_answer *answer = NULL;
    if (changes > 0 && cloud->poll.method && fits(&cloud->poll, request)) {
        answer = &operation;
        polls++;
    }
    for (size_t i = 0; !answer && i < CLOUD_ANSWERS && cloud->answers[i].method; i++) {
        if (fits(&cloud->answers[i], request))
            answer = &cloud->answers[i];
    }
    cr_assert(answer, "%s: %s %s is not in the script:\n%s%s", cloud->type, request->method,
              request->url, request->headers, request->body ? request->body : "");
    changes += answer->is_change;
    return (struct world_answer){request->method,
                                 "",
                                 .status = answer->status ? answer->status : 200,
                                 .body = answer->body,
                                 .fields = answer->fields,
                                 .retry_after = answer->retry_after};
}

static void start(const struct cloud *which)
{
    cloud = which;
    polls = changes = 0;
    operation = (struct cloud_answer){.status = 200, .body = ""};
    provider = *as_group_provider_find(which->type);
    provider.credentials = sources;
    provider.sign = sign;
    settings.options = (struct as_provider_option *)(uintptr_t)which->options;
    settings.option_count = 0;
    while (which->options[settings.option_count].key)
        settings.option_count++;
    size_t fields = 0;
    while (which->fields[fields].key)
        fields++;
    group = as_target_ref_make(&as_target_kind_node_group, "mine/web", which->fields, fields);
    setup_world();
    world.serve = serve;
    port = as_node_group_new(&provider, &settings, &env, NULL, NULL);
}

static void stop(void)
{
    port->close(port);
    as_target_ref_free(group);
    teardown_world();
}

/* From 2; true: the port has told what came of it. */
static bool begin_scale(int32_t to)
{
    const struct as_scale_request request = {.from = 2, .to = to, .decision_id = "01HD"};
    const unsigned before = scaled_count;
    port->scale(port, 8, group, &request, keep_result, NULL);
    world_run(&world);
    return scaled_count > before;
}

static void scale_to(int32_t to)
{
    const unsigned before = scaled_count;
    bool is_told = begin_scale(to);
    for (int i = 0; i < 700 && !is_told; i++) {
        world_advance(&world, AS_US_PER_S);
        is_told = scaled_count > before;
    }
    cr_assert(is_told, "%s: it goes on for ever", cloud->type);
}

static void expect_step(const struct cloud *which, const struct cloud_end *end, int32_t to)
{
    start(which);
    operation = (struct cloud_answer){.status = 200, .body = end->body};
    scale_to(to);
    const bool is_up = to > 2;
    cr_expect_eq(changes, 1, "%s, %s: %u changes", which->name, end->words, changes);
    cr_expect_gt(polls, 0, "%s, %s: not polled", which->name, end->words);
    cr_expect(result.is_accepted, "%s to %d, %s: no step (%s: %s)", which->name, to, end->words,
              as_reason_get_word(result.outcome), result.message);
    cr_expect_eq(result.outcome, end->outcome, "%s, %s: %s", which->name, end->words,
                 as_reason_get_word(result.outcome));
    cr_expect_not(result.is_ambiguous, "%s, %s", which->name, end->words);
    cr_expect_eq(result.is_shortage, end->is_shortage, "%s, %s", which->name, end->words);
    cr_expect(strstr(result.message, end->words), "%s: %s", which->name, result.message);
    cr_expect(is_up ? !result.is_partial : result.is_partial && result.reached == 2,
              "%s to %d, %s: none of them is gone", which->name, to, end->words);
    stop();
}

Test(node_group, whatever_an_operation_ends_with_the_accepted_change_was_a_step)
{
    for (size_t i = 0; i < AS_ARRAY_SIZE(clouds); i++) {
        for (size_t j = 0; j < CLOUD_ENDS && clouds[i].ends[j].words; j++) {
            if (!clouds[i].has_no_growth)
                expect_step(&clouds[i], &clouds[i].ends[j], 4);
            if (!clouds[i].has_no_names)
                expect_step(&clouds[i], &clouds[i].ends[j], 1);
        }
    }
}

/* ---- while an operation goes on ---- */

static void pass(int64_t seconds)
{
    for (; seconds > 0; seconds--)
        world_advance(&world, AS_US_PER_S);
}

static void start_running(const struct cloud *which, const char *retry_after)
{
    start(which);
    operation =
        (struct cloud_answer){.status = 200, .body = which->running, .retry_after = retry_after};
}

static void expect_polls(const struct cloud *which, int32_t to, const char *retry_after,
                         int64_t seconds)
{
    start_running(which, retry_after);
    cr_assert_not(begin_scale(to));
    cr_expect_eq(polls, 1, "%s to %d", which->name, to);
    pass(seconds - 1);
    cr_expect_eq(polls, 1, "%s to %d: too early", which->name, to);
    pass(1);
    cr_expect_eq(polls, 2, "%s to %d: too late", which->name, to);
    stop();
}

Test(node_group, retry_after_holds_for_polls_of_operations_both_ways)
{
    for (size_t i = 0; i < AS_ARRAY_SIZE(clouds); i++) {
        for (int32_t to = 1; to <= 4; to += 3) {
            if (to > 2 ? clouds[i].has_no_growth : clouds[i].has_no_names)
                continue;
            const int64_t usual = to > 2 ? 2 : 5;
            expect_polls(&clouds[i], to, NULL, usual);
            expect_polls(&clouds[i], to, "1", usual);
            expect_polls(&clouds[i], to, "30", 30);
        }
    }
}

Test(node_group, what_is_to_be_asked_for_too_late_is_not_asked_for)
{
    start_running(&clouds[0], "3600");
    cr_assert(begin_scale(4));
    cr_expect_eq(result.outcome, AS_REASON_APPLIED);
    cr_expect_eq(polls, 1);
    stop();
}

/* Azure tells with the change when its operation is to be asked after. */
Test(node_group, retry_after_of_the_change_holds_for_the_first_poll)
{
    struct cloud late = clouds[0];
    for (size_t i = 0; i < CLOUD_ANSWERS; i++)
        late.answers[i].retry_after = late.answers[i].is_change ? "20" : NULL;
    start_running(&late, NULL);
    cr_assert_not(begin_scale(4));
    pass(19);
    cr_expect_eq(polls, 0);
    pass(1);
    cr_expect_eq(polls, 1);
    stop();
}

Test(node_group, the_time_that_alibaba_leaves_holds_for_polls)
{
    for (int32_t to = 1; to <= 4; to += 3) {
        for (size_t i = 0; i < AS_ARRAY_SIZE(clouds); i++) {
            if (strcmp(clouds[i].type, "alibaba") != 0)
                continue;
            start(&clouds[i]);
            operation = (struct cloud_answer){
                .status = 429,
                .body = "{\"Code\":\"Throttling.Api\",\"Message\":\"m\"}",
                .fields = "x-ratelimit-user-api\0Limit:10,Remain:0,Window:1000,TimeLeft:40000\0"};
            cr_assert_not(begin_scale(to));
            pass(39);
            cr_expect_eq(polls, 1, "to %d", to);
            pass(1);
            cr_expect_eq(polls, 2, "to %d", to);
            stop();
        }
    }
}

static enum as_permit permit_finish(void *context)
{
    (void)context;
    return AS_PERMIT_FINISH;
}

Test(node_group, a_stop_does_not_wait_for_what_is_accepted)
{
    for (size_t i = 0; i < AS_ARRAY_SIZE(clouds); i++) {
        for (int32_t to = 1; to <= 4; to += 3) {
            if (to > 2 ? clouds[i].has_no_growth : clouds[i].has_no_names)
                continue;
            start_running(&clouds[i], "50");
            cr_assert_not(begin_scale(to));
            const unsigned before = scaled_count;
            env.get_permit = permit_finish;
            pass(5);
            cr_assert_eq(scaled_count, before + 1, "%s to %d", clouds[i].name, to);
            cr_expect_eq(result.outcome, AS_REASON_APPLIED, "%s to %d", clouds[i].name, to);
            cr_expect_not(result.is_partial, "%s to %d", clouds[i].name, to);
            stop();
        }
    }
}

/* ---- gone already ---- */

Test(node_group, what_is_gone_is_not_waited_for_though_the_list_still_has_it)
{
    for (size_t i = 0; i < AS_ARRAY_SIZE(behind); i++) {
        start(&behind[i]);
        const unsigned before = scaled_count;
        (void)begin_scale(1);
        pass(1);
        cr_assert_eq(scaled_count, before + 1, "%s: it waits", behind[i].name);
        cr_expect_eq(result.outcome, AS_REASON_APPLIED, "%s: %s", behind[i].name, result.message);
        cr_expect_eq(changes, 1, "%s", behind[i].name);
        stop();
    }
}

/* ---- accepted in part ---- */

Test(node_group, a_part_that_was_accepted_is_a_step_of_its_size)
{
    struct cloud pool = clouds[0];
    for (size_t i = 0; i < AS_ARRAY_SIZE(clouds); i++)
        pool = strcmp(clouds[i].type, "gke") == 0 ? clouds[i] : pool;
    const struct cloud_answer zones[CLOUD_ANSWERS] = {
        {"POST", "zone-a/instanceGroupManagers/a/resize?", .is_change = true,
         .body = "{\"name\":\"op-1\",\"status\":\"RUNNING\"}"},
        {"POST", "zone-b/instanceGroupManagers/b/resize?", .status = 403,
         .body =
             "{\"error\":{\"errors\":[{\"reason\":\"quotaExceeded\"}],\"message\":\"no more\"}}"},
        {"POST", "/listManagedInstances?", .body = "{}"},
        {"GET", "/instanceGroupManagers/", .body = "{\"id\":\"7\",\"targetSize\":1}"},
        {"GET", "/nodePools/web",
         .body = "{\"status\":\"RUNNING\",\"instanceGroupUrls\":["
                 "\"https://x/compute/v1/projects/p/zones/zone-a/instanceGroupManagers/a\","
                 "\"https://x/compute/v1/projects/p/zones/zone-b/instanceGroupManagers/b\"]}"},
    };
    memcpy(pool.answers, zones, sizeof(zones));
    pool.poll = (struct cloud_answer){.method = "GET", .part = "zone-a/instanceGroupManagers/a"};
    start(&pool);
    operation = (struct cloud_answer){.status = 200, .body = "{\"id\":\"7\",\"targetSize\":2}"};
    scale_to(4);
    cr_expect(result.is_accepted, "%s", result.message);
    cr_expect_not(result.is_ambiguous);
    cr_expect(result.is_partial);
    cr_expect_eq(result.reached, 3);
    cr_expect(result.is_shortage);
    cr_expect(strstr(result.message, "accepted in part: resize: HTTP 403"), "%s", result.message);
    stop();
}

/* ---- the resources behind a group ---- */

Test(node_group, each_cloud_names_the_resources_behind_a_group)
{
    for (size_t i = 0; i < AS_ARRAY_SIZE(clouds); i++) {
        start(&clouds[i]);
        observe(port, group);
        cr_expect_eq(observation.outcome, AS_REASON_APPLIED, "%s: %s", clouds[i].name,
                     observation.message);
        cr_expect_gt(observation.backing_count, 0, "%s", clouds[i].name);
        stop();
    }
}

/* An Auto Scaling group was replaced after the decision, say. */
Test(node_group, a_group_with_other_resources_than_decided_is_not_changed)
{
    static const char *const others[] = {"other/1"};
    for (size_t i = 0; i < AS_ARRAY_SIZE(clouds); i++) {
        const struct as_scale_request request = {
            .from = 2, .to = 3, .decision_id = "01HD", .backing = others, .backing_count = 1};
        start(&clouds[i]);
        port->scale(port, 8, group, &request, keep_result, NULL);
        world_run(&world);
        cr_expect_eq(result.outcome, AS_REASON_CONFLICT, "%s: %s", clouds[i].name, result.message);
        cr_expect_eq(changes, 0, "%s", clouds[i].name);
        stop();
    }
}

/* ---- lists ---- */

Test(node_group, pages_that_never_end_are_rejected_and_not_asked_for_again_at_once)
{
    struct cloud endless = clouds[0];
    endless.answers[0].body = "{\"value\":[],\"nextLink\":\"https://cloud/virtualMachines?again\"}";
    start(&endless);
    observe(port, group);
    cr_expect_eq(observation.outcome, AS_REASON_REJECTED);
    cr_expect_str_eq(observation.message, "given up after 2 pages: it never ends");
    cr_expect_eq(observation.retry_after_us, AS_CLOUD_OP_ENDLESS_US);
    cr_expect_eq(world.request_count, 3, "the group, and two pages: %zu", world.request_count);
    stop();
}

/* ---- nodes of a cluster, which is watched ---- */

#define NODE(name, version, ready)                                                                 \
    "{\"kind\":\"Node\",\"metadata\":{\"name\":\"node-" name "\",\"labels\":{\"pool\":\"web\"},"   \
    "\"resourceVersion\":\"" version "\"},\"spec\":{\"providerID\":\"gce://p/europe-west1-b/" name \
    "\"},\"status\":{\"conditions\":["                                                             \
    "{\"type\":\"Ready\",\"status\":\"" ready "\"}]}}"
#define LIST(items)                                                                                \
    "{\"kind\":\"NodeList\",\"metadata\":{\"resourceVersion\":\"5\"},\"items\":[" items "]}"
#define EVENT(type, object) "{\"type\":\"" type "\",\"object\":" object "}\n"
#define BOOKMARK            EVENT("BOOKMARK", "{\"metadata\":{\"resourceVersion\":\"9\"}}")
#define MARK                                                                                       \
    "{\"kind\":\"Node\",\"metadata\":{\"name\":\"node-b\",\"resourceVersion\":\"8\","              \
    "\"annotations\":{"                                                                            \
    "\"alertscaler.io/"                                                                            \
    "drain\":\"{\\\"at\\\":\\\"2026-11-21T10:00:00Z\\\",\\\"decision\\\":\\\"01\\\","              \
    "\\\"owner\\\":\\\"other\\\"}\"}},\"spec\":{\"providerID\":\"gce://p/europe-west1-b/b\"}}"

static struct as_clusters clusters;
static struct as_nodes_config nodes_config;
static const char *listed; /* the nodes, for lists */
static bool is_refused;    /* the watch of the nodes */
static const char *told;   /* by the watch of the nodes, while a change reads the group; or NULL */
static bool is_reopened;   /* the watch, meanwhile */
static unsigned node_lists;
static char marked[64];

static struct world_answer serve_cluster(const struct world_request *request)
{
    const char *path = request->url + strlen("https://k:6443");
    if (strcmp(request->method, "PATCH") == 0)
        snprintf(marked, sizeof(marked), "%s", strrchr(path, '/') + 1);
    if (strstr(path, "/nodes/node-a"))
        return (struct world_answer){.status = 200, .body = NODE("a", "7", "True")};
    if (strstr(path, "/nodes/"))
        return (struct world_answer){.status = 200, .body = NODE("b", "7", "True")};
    if (strstr(path, "watch=true"))
        return (struct world_answer){.status = !strstr(path, "/nodes?") ? 500
                                               : is_refused             ? 403
                                                                        : 200,
                                     .stays = strstr(path, "/nodes?") && !is_refused};
    if (strstr(path, "/nodes?")) {
        node_lists++;
        return (struct world_answer){.status = 200, .body = listed};
    }
    return (struct world_answer){
        .status = 200,
        .body = "{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"5\"},\"items\":[]}"};
}

static struct world_answer serve_both(void *context, const struct world_request *request)
{
    if (strstr(request->url, "https://k:6443"))
        return serve_cluster(request);
    const struct world_answer answer = serve(context, request);
    const char *text = told;
    told = NULL;
    world.mono.us += AS_US_PER_S;
    if (is_reopened)
        world_end(&world, AS_HTTP_ANSWERED, "");
    is_reopened = false;
    if (text)
        world_feed(&world, text, strlen(text));
    return answer;
}

/* By the facts node b is not ready: it is to leave. By lists from here on it is node a. */
static void start_watched(const char *type, const char *items)
{
    char kubeconfig[] = "/tmp/as-nodes-XXXXXX";
    struct as_cluster_settings cluster = {.name = "c", .kubeconfig = kubeconfig};
    const struct as_settings all = {
        .clusters = &cluster, .cluster_count = 1, .state.path = "/state"};
    close(mkstemp(kubeconfig));
    write_file(kubeconfig, "current-context: c\n"
                           "clusters: [{name: c, cluster: {server: 'https://k:6443'}}]\n"
                           "contexts: [{name: c, context: {cluster: c, user: u}}]\n"
                           "users: [{name: u, user: {token: secret}}]\n");
    nodes_config = (struct as_nodes_config){.cluster = (char *)(uintptr_t) "c",
                                            .select = (char *)(uintptr_t) "pool=web",
                                            .drain = AS_NODES_DRAIN_FALSE,
                                            .ready_timeout_us = 10 * AS_US_PER_MIN};
    for (size_t i = 0; i < AS_ARRAY_SIZE(clouds); i++) {
        if (strcmp(clouds[i].type, type) == 0)
            start(&clouds[i]);
    }
    port->close(port);
    as_clusters_init(&clusters, &all, &env);
    unlink(kubeconfig);
    port = as_node_group_new(&provider, &settings, &env, &clusters, NULL);
    world.serve = serve_both;
    listed = items;
    told = NULL;
    const struct as_observe_request request = {.with_nodes = true, .nodes = &nodes_config};
    port->observe(port, 7, group, &request, keep_observation, NULL);
    world_run(&world);
    cr_assert_eq(observation.outcome, AS_REASON_APPLIED, "%s", observation.message);
    world_advance(&world, 10 * AS_US_PER_S);
    listed = LIST(NODE("a", "5", "False") "," NODE("b", "5", "True"));
    node_lists = 0;
    *marked = '\0';
}

static void stop_watched(void)
{
    port->close(port);
    as_clusters_deinit(&clusters);
    as_target_ref_free(group);
    teardown_world();
}

static void change(int32_t to)
{
    const unsigned before = scaled_count;
    const struct as_scale_request request = {
        .from = 2, .to = to, .decision_id = "01HD", .nodes = &nodes_config};
    port->scale(port, 8, group, &request, keep_result, NULL);
    for (int i = 0; i < 100 && scaled_count == before; i++)
        world_advance(&world, AS_US_PER_S);
    cr_assert_eq(scaled_count, before + 1);
}

#define BOTH LIST(NODE("a", "5", "True") "," NODE("b", "5", "False"))

/* If the nodes are the instances, a node that is not told yet would not be missed. */
Test(node_group, who_of_labelled_nodes_leaves_is_chosen_by_a_list)
{
    for (int32_t to = 1; to <= 3; to += 2) {
        start_watched("magnum", BOTH);
        told = BOOKMARK;
        change(to);
        cr_expect_eq(node_lists, to < 2, "to %d: %u lists", to, node_lists);
        cr_expect_str_eq(marked, to < 2 ? "node-a" : "", "%s leaves", marked);
        stop_watched();
    }
}

/* A watch that is open and stalls must not choose who leaves. */
Test(node_group, a_change_uses_the_watch_that_told_something_since_else_a_list)
{
    static const struct {
        const char *name, *nodes, *told_before, *told;
        bool is_refused, is_reopened;
        unsigned lists;    /* to remove one */
        unsigned lists_up; /* to add one */
        const char *leaves;
    } rows[] = {
        {"a bookmark", BOTH, .told = BOOKMARK, .leaves = "node-b"},
        {"events", BOTH,
         .told =
             EVENT("MODIFIED", NODE("a", "6", "False")) EVENT("MODIFIED", NODE("b", "7", "True")),
         .leaves = "node-a"},
        {"stalled", BOTH, .lists = 1, .lists_up = 1, .leaves = "node-a"},
        {"stalled since a bookmark", BOTH, .told_before = BOOKMARK, .lists = 1, .lists_up = 1,
         .leaves = "node-a"},
        {"opened anew, and stalled", BOTH, .is_reopened = true, .lists = 1, .lists_up = 1,
         .leaves = "node-a"},
        {"refused", BOTH, .is_refused = true, .lists = 1, .lists_up = 1, .leaves = "node-a"},
        {"one instance has no node", LIST(NODE("b", "5", "False")), .told = BOOKMARK, .lists = 1,
         .leaves = "node-a"},
        {"two nodes say that they are one instance", BOTH,
         .told = EVENT("ADDED", "{\"kind\":\"Node\",\"metadata\":{\"name\":\"twin\","
                                "\"resourceVersion\":\"8\"},\"spec\":{\"providerID\":"
                                "\"gce://p/europe-west1-b/b\"}}"),
         .lists = 1, .leaves = "node-a"},
        {"a mark of another", BOTH, .told = EVENT("MODIFIED", MARK), .lists = 1, .lists_up = 1,
         .leaves = "node-a"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        for (int32_t to = 1; to <= 3; to += 2) {
            is_refused = rows[i].is_refused;
            start_watched("gce", rows[i].nodes);
            if (rows[i].told_before)
                world_feed(&world, rows[i].told_before, strlen(rows[i].told_before));
            told = rows[i].told;
            is_reopened = rows[i].is_reopened;
            change(to);
            cr_expect_eq(result.outcome, AS_REASON_APPLIED, "%s: %s", rows[i].name, result.message);
            cr_expect_eq(node_lists, to < 2 ? rows[i].lists : rows[i].lists_up,
                         "%s, to %d: %u lists", rows[i].name, to, node_lists);
            cr_expect_str_eq(marked, to < 2 ? rows[i].leaves : "", "%s: %s leaves", rows[i].name,
                             marked);
            stop_watched();
        }
    }
}
