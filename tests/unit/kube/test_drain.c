/*
 * Marking and emptying nodes against a scripted API server: each step, each of its failures, and
 * that each failure undoes our changes and nothing else.
 */
#include <alertscaler/kube/drain.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/kube/target_outcome.h>

#include "kube_client.h"

#define NODE_PATH   "/api/v1/nodes/n1"
#define NODES_PATH  "/api/v1/nodes?limit=500"
#define PODS_PATH   "/api/v1/pods?fieldSelector=spec.nodeName%3Dn1&limit=500"
#define EVICT(name) "/api/v1/namespaces/shop/pods/" name "/eviction"
#define CORE(version)                                                                              \
    "{\"kind\":\"APIResourceList\",\"resources\":[{\"name\":\"pods/eviction\",\"group\":"          \
    "\"policy\",\"version\":\"" version "\"}]}"

#define NODE_WITH(name, metadata, spec, ready)                                                     \
    "{\"kind\":\"Node\",\"metadata\":{\"name\":\"" name "\",\"resourceVersion\":\"7\"" metadata    \
    "},\"spec\":{\"providerID\":\"aws:///z/i-1\"" spec "},\"status\":{\"conditions\":[{"           \
    "\"type\":\"Ready\",\"status\":\"" ready "\"}]}}"
#define NODE NODE_WITH("n1", "", "", "True")
#define MARK_OF(owner, cordoned)                                                                   \
    ",\"annotations\":{\"alertscaler.io/drain\":\"{\\\"at\\\":\\\"2026-11-21T10:00:00Z\\\","       \
    "\\\"cordoned\\\":" cordoned ",\\\"decision\\\":\\\"01HD\\\",\\\"owner\\\":\\\"" owner         \
    "\\\",\\\"target\\\":\\\"group\\\"}\"}"
#define TAINTED                                                                                    \
    ",\"unschedulable\":true,\"taints\":[{\"effect\":\"NoSchedule\",\"key\":"                      \
    "\"alertscaler.io/draining\"}]"
#define MARKED NODE_WITH("n1", MARK_OF("me", "true"), TAINTED, "True")

#define POD_WITH(name, more)                                                                       \
    "{\"metadata\":{\"name\":\"" name "\",\"namespace\":\"shop\",\"uid\":\"u-" name                \
    "\",\"ownerReferences\":[{\"kind\":\"ReplicaSet\",\"controller\":true}]" more "}}"
#define POD(name)   POD_WITH(name, "")
#define GOING(name) POD_WITH(name, ",\"deletionTimestamp\":\"2026-11-21T10:00:00Z\"")
/* With a grace of an hour. */
#define GOING_SLOWLY(name) POD_WITH(name, ",\"deletionTimestamp\":\"2026-11-21T11:00:00Z\"")
#define DAEMON                                                                                     \
    "{\"metadata\":{\"name\":\"log\",\"namespace\":\"kube-system\",\"uid\":\"u\","                 \
    "\"ownerReferences\":[{\"kind\":\"DaemonSet\",\"controller\":true}]}}"
#define PODS(items) LIST_OF("PodList", "", items)

static struct as_drains *drains;
static unsigned told;
static enum as_drain_end end;
static struct as_outcome outcome;
static unsigned evicted;
static char told_node[64];

static void keep(void *context, const struct as_drain_result *drained)
{
    told++;
    end = drained->end;
    outcome = drained->outcome;
    evicted = drained->evicted;
    snprintf(told_node, sizeof(told_node), "%s", drained->node);
}

static void setup(void)
{
    setup_client();
    env.get_terminate_permit = NULL;
    drains = as_drains_new(&client, "me");
}

static void teardown(void)
{
    as_drains_free(drains);
    teardown_client();
}

TestSuite(drain, .init = setup, .fini = teardown);

static struct as_drain *start_task(enum as_drain_task task, const char *node)
{
    const struct as_drain_request request = {
        .task = task,
        .node = node,
        .provider_id = "i-1",
        .target = "group",
        .decision_id = "01HD",
        .evicts = true,
        .timeout_us = 10 * AS_US_PER_MIN,
        .grace_us = -1,
    };
    const unsigned before = told;
    struct as_drain *drain = as_drain_start(drains, &request, keep, NULL);
    cr_assert_eq(told, before, "told in the same turn");
    return drain;
}

static struct as_drain *run_task(enum as_drain_task task)
{
    struct as_drain *drain = start_task(task, "n1");
    world_run(&world);
    return drain;
}

static void mark(void)
{
    (void)run_task(AS_DRAIN_MARK);
}

/* n1, which is marked. */
static struct as_drain *empty(void)
{
    return run_task(AS_DRAIN_EMPTY);
}

/* Second by second, as timers begin others. */
static void pass(int64_t us)
{
    for (; us > AS_US_PER_S; us -= AS_US_PER_S)
        world_advance(&world, AS_US_PER_S);
    world_advance(&world, us);
}

/* The questions before anything is touched. */
static void answer_questions(const char *node, const char *pods)
{
    answer("GET", "/api/v1", 200, CORE("v1"));
    answer("GET", NODE_PATH, 200, node);
    answer("GET", PODS_PATH, 200, pods);
}

/* Looks at a marked node twice: whether it is empty, and when it has its turn to be emptied. */
static void answer_looks(const char *pods)
{
    answer("GET", "/api/v1", 200, CORE("v1"));
    for (int i = 0; i < 2; i++) {
        answer("GET", NODE_PATH, 200, MARKED);
        answer("GET", PODS_PATH, 200, pods);
    }
}

static void answer_undo(void)
{
    answer("GET", NODE_PATH, 200, MARKED);
    answer("PATCH", NODE_PATH, 200, NODE);
}

#define UNMARK                                                                                     \
    "{\"metadata\":{\"annotations\":{\"alertscaler.io/drain\":null},\"resourceVersion\":\"7\"},"   \
    "\"spec\":{\"taints\":[],\"unschedulable\":null}}"

static void expect_undone(enum as_drain_end wanted, enum as_reason reason, const char *message)
{
    cr_assert_eq(told, 1, "%s", outcome.message);
    cr_expect_eq(end, wanted);
    cr_expect_eq(outcome.reason, reason);
    cr_expect_str_eq(outcome.message, message);
    cr_expect_str_eq(get_last_request()->method, "PATCH");
    cr_expect_str_eq(get_last_request()->body, UNMARK);
}

/* Failed before anything was done. */
static void expect_untouched(enum as_reason reason, const char *message)
{
    cr_assert_eq(told, 1);
    cr_expect_eq(end, AS_DRAIN_FAILED);
    cr_expect_eq(outcome.reason, reason);
    cr_expect_str_eq(outcome.message, message);
    for (size_t i = 0; i < world.request_count; i++)
        cr_expect_str_eq(world.requests[i].method, "GET");
}

/* The good way */

Test(drain, marks_a_node_whose_pods_may_all_go)
{
    answer_questions(NODE, PODS(POD("a") "," DAEMON));
    answer("PATCH", NODE_PATH, 200, MARKED);
    mark();
    cr_assert_eq(told, 1);
    cr_expect_eq(end, AS_DRAIN_DONE);
    cr_expect_str_eq(told_node, "n1");
    cr_expect_str_eq(get_last_request()->body,
                     "{\"metadata\":{\"annotations\":{\"alertscaler.io/drain\":\"{\\\"at\\\":"
                     "\\\"2026-11-21T10:00:00Z\\\",\\\"cordoned\\\":true,\\\"decision\\\":"
                     "\\\"01HD\\\",\\\"owner\\\":\\\"me\\\",\\\"target\\\":\\\"group\\\"}\"},"
                     "\"resourceVersion\":\"7\"},"
                     "\"spec\":{\"taints\":[{\"effect\":\"NoSchedule\",\"key\":"
                     "\"alertscaler.io/draining\"}],\"unschedulable\":true}}");
    cr_expect_not_null(
        strstr(get_last_request()->headers, "Content-Type: application/merge-patch+json\n"));
}

Test(drain, evicts_and_waits_until_all_are_gone)
{
    answer_looks(PODS(POD("a") "," POD("b") "," DAEMON));
    answer("POST", EVICT("a"), 201, "{}");
    answer("POST", EVICT("b"), 201, "{}");
    (void)empty();
    cr_expect_eq(told, 0);
    const struct world_request *eviction = &world.requests[5];
    cr_expect_not_null(strstr(eviction->headers, "Content-Type: application/json\n"));
    cr_expect_str_eq(eviction->body,
                     "{\"apiVersion\":\"policy/v1\",\"deleteOptions\":{\"preconditions\":{"
                     "\"uid\":\"u-a\"}},\"kind\":\"Eviction\",\"metadata\":{\"name\":\"a\","
                     "\"namespace\":\"shop\"}}");

    answer("GET", PODS_PATH, 200, PODS(GOING("a") "," DAEMON));
    pass(AS_DRAIN_POLL_US);
    cr_expect_eq(told, 0);
    answer("GET", PODS_PATH, 200, PODS(DAEMON));
    pass(AS_DRAIN_POLL_US);
    cr_assert_eq(told, 1);
    cr_expect_eq(end, AS_DRAIN_DONE);
    cr_expect_eq(outcome.reason, AS_REASON_APPLIED);
    cr_expect_eq(evicted, 2);
    cr_expect_str_eq(told_node, "n1");
}

Test(drain, an_empty_node_is_empty_at_the_first_look)
{
    answer_questions(MARKED, PODS(DAEMON));
    (void)empty();
    cr_assert_eq(told, 1);
    cr_expect_eq(end, AS_DRAIN_DONE);
    cr_expect_eq(evicted, 0);
}

Test(drain, a_look_changes_nothing)
{
    answer_questions(MARKED, PODS(POD("a")));
    (void)run_task(AS_DRAIN_LOOK);
    cr_assert_eq(told, 1);
    cr_expect_eq(end, AS_DRAIN_NOT_YET);
    answer("GET", NODE_PATH, 200, MARKED);
    answer("GET", PODS_PATH, 200, PODS(DAEMON));
    (void)run_task(AS_DRAIN_LOOK);
    cr_expect_eq(end, AS_DRAIN_DONE);
    answer("GET", NODE_PATH, 200, MARKED);
    (void)run_task(AS_DRAIN_CHECK);
    cr_expect_eq(end, AS_DRAIN_DONE, "with pods or without");
    for (size_t i = 0; i < world.request_count; i++)
        cr_expect_str_eq(world.requests[i].method, "GET");
}

Test(drain, a_node_whose_mark_somebody_removed_is_theirs)
{
    static const enum as_drain_task tasks[] = {AS_DRAIN_EMPTY, AS_DRAIN_LOOK, AS_DRAIN_CHECK};
    static const char *const nodes[] = {NODE,
                                        NODE_WITH("n1", MARK_OF("you", "true"), TAINTED, "True")};
    answer("GET", "/api/v1", 200, CORE("v1"));
    for (size_t i = 0; i < AS_ARRAY_SIZE(tasks); i++) {
        for (size_t j = 0; j < AS_ARRAY_SIZE(nodes); j++) {
            answer("GET", NODE_PATH, 200, nodes[j]);
            (void)run_task(tasks[i]);
            cr_expect_eq(end, AS_DRAIN_UNMARKED);
            cr_expect_str_eq(outcome.message, "drain node n1: somebody else has removed its mark");
        }
    }
    cr_expect_eq(told, 6);
}

Test(drain, speaks_the_eviction_api_that_is_served)
{
    const struct as_drain_request request = {.task = AS_DRAIN_EMPTY,
                                             .node = "n1",
                                             .provider_id = "i-1",
                                             .target = "group",
                                             .timeout_us = AS_US_PER_MIN,
                                             .grace_us = 30 * AS_US_PER_S};
    answer("GET", "/api/v1", 200, CORE("v1beta1"));
    for (int i = 0; i < 2; i++) {
        answer("GET", NODE_PATH, 200, MARKED);
        answer("GET", PODS_PATH, 200, PODS(POD("a")));
    }
    answer("POST", EVICT("a"), 201, "{}");
    (void)!as_drain_start(drains, &request, keep, NULL);
    world_run(&world);
    cr_expect_str_eq(get_last_request()->body,
                     "{\"apiVersion\":\"policy/v1beta1\",\"deleteOptions\":{"
                     "\"gracePeriodSeconds\":30,\"preconditions\":{\"uid\":\"u-a\"}},\"kind\":"
                     "\"Eviction\",\"metadata\":{\"name\":\"a\",\"namespace\":\"shop\"}}");
}

Test(drain, a_budget_is_respected_until_it_gives_way)
{
    answer_looks(PODS(POD("a") "," POD("b")));
    world_answer(&world, (struct world_answer){"POST", EVICT("a"), .status = 429,
                                               .body = STATUS("Cannot evict pod", ""),
                                               .retry_after = "10"});
    answer("POST", EVICT("b"), 201, "{}"); /* another's budget may allow it */
    (void)empty();
    pass(9 * AS_US_PER_S);
    cr_expect_eq(told, 0);
    answer("GET", PODS_PATH, 200, PODS(POD("a")));
    answer("POST", EVICT("a"), 201, "{}");
    pass(AS_US_PER_S);
    answer("GET", PODS_PATH, 200, PODS(""));
    pass(AS_DRAIN_POLL_US);
    cr_assert_eq(told, 1);
    cr_expect_eq(end, AS_DRAIN_DONE);
    cr_expect_eq(evicted, 2);
}

Test(drain, what_may_pass_is_tried_again)
{
    static const struct {
        enum as_http_outcome transport;
        int status;
        const char *body;
    } rows[] = {
        {AS_HTTP_ANSWERED, 409,
         STATUS("the UID in the precondition does not match", "\"name\":\"a\"")},
        {AS_HTTP_ANSWERED, 404, STATUS("pods \\\"a\\\" not found", "\"name\":\"a\"")},
        {AS_HTTP_ANSWERED, 500, STATUS("more than one PodDisruptionBudget", "")},
        {AS_HTTP_ANSWERED, 503, ""},
        {AS_HTTP_UNREACHABLE, 0, ""},
        {AS_HTTP_TIMEOUT, 0, ""},
    };
    answer_looks(PODS(POD("a")));
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        if (i > 0)
            answer("GET", PODS_PATH, 200, PODS(POD("a")));
        world_answer(&world, (struct world_answer){"POST", EVICT("a"), rows[i].transport,
                                                   rows[i].status, .body = rows[i].body});
    }
    answer("GET", PODS_PATH, 500, STATUS("etcd", ""));
    answer("GET", PODS_PATH, 200, PODS(""));
    (void)empty();
    pass(AS_US_PER_MIN);
    cr_assert_eq(told, 1);
    cr_expect_eq(end, AS_DRAIN_DONE, "%s", outcome.message);
    cr_expect_eq(evicted, 0);
}

Test(drain, a_look_that_fails_in_passing_is_for_later)
{
    answer("GET", "/api/v1", 503, "");
    (void)empty();
    cr_expect_eq(end, AS_DRAIN_NOT_YET);
    answer("GET", "/api/v1", 200, CORE("v1"));
    answer("GET", NODE_PATH, 503, "");
    (void)empty();
    cr_expect_eq(end, AS_DRAIN_NOT_YET);
    answer("GET", NODE_PATH, 200, MARKED);
    answer("GET", PODS_PATH, 503, "");
    (void)empty();
    cr_expect_eq(end, AS_DRAIN_NOT_YET);
    cr_expect_eq(told, 3);
    cr_expect_str_eq(get_last_request()->method, "GET", "nothing is undone");
}

Test(drain, a_conflict_at_the_mark_reads_the_node_again)
{
    answer_questions(NODE, PODS(""));
    answer("PATCH", NODE_PATH, 409, STATUS("the object has been modified", "\"name\":\"n1\""));
    answer("GET", NODE_PATH, 200, NODE);
    answer("GET", PODS_PATH, 200, PODS(""));
    answer("PATCH", NODE_PATH, 200, MARKED);
    mark();
    cr_assert_eq(told, 1);
    cr_expect_eq(end, AS_DRAIN_DONE);
}

/* deletionTimestamp is the end of the grace. */
static void expect_not_held_up(const char *node)
{
    told = 0;
    answer("GET", "/api/v1", 200, CORE("v1"));
    for (int i = 0; i < 2; i++) {
        answer("GET", NODE_PATH, 200, node);
        answer("GET", PODS_PATH, 200, PODS(GOING("a")));
    }
    (void)empty();
    world.wall.us += AS_DRAIN_LOST_POD_US - AS_DRAIN_POLL_US - AS_US_PER_S;
    answer("GET", PODS_PATH, 200, PODS(GOING("a")));
    pass(AS_DRAIN_POLL_US);
    cr_expect_eq(told, 0, "too early");
    answer("GET", PODS_PATH, 200, PODS(GOING("a")));
    pass(AS_DRAIN_POLL_US);
    cr_assert_eq(told, 1);
    cr_expect_eq(end, AS_DRAIN_DONE);
}

Test(drain, pods_that_are_going_for_longer_than_their_grace_and_30_s_count_as_gone)
{
    expect_not_held_up(MARKED);
}

Test(drain, so_do_pods_of_a_node_that_nobody_hears_of)
{
    expect_not_held_up(NODE_WITH("n1", MARK_OF("me", "true"), TAINTED, "Unknown"));
}

Test(drain, there_may_be_no_node)
{
    answer("GET", "/api/v1", 200, CORE("v1"));
    answer("GET", NODE_PATH, 404, STATUS("nodes \\\"n1\\\" not found", "\"name\":\"n1\""));
    mark();
    cr_assert_eq(told, 1);
    cr_expect_eq(end, AS_DRAIN_NO_NODE);
    cr_expect_eq(outcome.reason, AS_REASON_APPLIED);
}

/* What is found out before anything is touched */

Test(drain, is_refused_where_it_may_not_be)
{
    static const struct {
        const char *core, *node, *pods; /* NULL: not asked */
        const char *message;
    } rows[] = {
        {"{\"kind\":\"APIResourceList\"}", NULL, NULL,
         "drain node n1: the cluster has no eviction API (policy/v1)"},
        {"<html>", NULL, NULL, "drain node n1: not JSON: line 1, column 1: '[' or '{' expected"},
        {CORE("v1"),
         "{\"kind\":\"Node\",\"metadata\":{\"name\":\"n1\",\"resourceVersion\":\"7\"},"
         "\"spec\":{\"providerID\":\"aws:///z/i-2\"}}",
         NULL, "drain node n1: its spec.providerID is \"aws:///z/i-2\", not one of \"i-1\""},
        {CORE("v1"),
         NODE_WITH("n1", ",\"annotations\":{\"alertscaler.io/scale-down-disabled\":\"true\"}", "",
                   "True"),
         NULL, "drain node n1: it is annotated alertscaler.io/scale-down-disabled: \"true\""},
        {CORE("v1"), NODE_WITH("n1", MARK_OF("somebody", "true"), "", "True"), NULL,
         "drain node n1: another alertscaler is draining it: somebody"},
        {CORE("v1"), "{\"kind\":\"Pod\"}", NULL, "drain node n1: kind: expected Node"},
        {CORE("v1"), NODE,
         PODS(POD("a") "," POD_WITH("b", ",\"annotations\":{\"cluster-autoscaler.kubernetes.io/"
                                         "safe-to-evict\":\"false\"}")),
         "drain node n1: pod shop/b may not be evicted: it is annotated "
         "cluster-autoscaler.kubernetes.io/safe-to-evict: \"false\""},
        {CORE("v1"), NODE, "<html>", "drain node n1: list pods of a node: expected a JSON object"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        told = 0;
        drains = as_drains_free(drains);
        drains = as_drains_new(&client, "me");
        answer("GET", "/api/v1", 200, rows[i].core);
        if (rows[i].node)
            answer("GET", NODE_PATH, 200, rows[i].node);
        if (rows[i].pods)
            answer("GET", PODS_PATH, 200, rows[i].pods);
        mark();
        expect_untouched(AS_REASON_REJECTED, rows[i].message);
    }
}

Test(drain, a_right_that_is_missing_has_a_name)
{
    answer("GET", "/api/v1", 200, CORE("v1"));
    answer("GET", NODE_PATH, 403, STATUS("no", ""));
    mark();
    expect_untouched(AS_REASON_FORBIDDEN, "drain node n1: the right \"nodes: get\" is missing: no");
    told = 0;
    answer("GET", NODE_PATH, 200, NODE);
    answer("GET", PODS_PATH, 403, STATUS("no", ""));
    mark();
    expect_untouched(AS_REASON_FORBIDDEN,
                     "drain node n1: list pods of a node: the right \"pods: list (in all "
                     "namespaces)\" is missing: no");
}

/* Back again */

Test(drain, a_forbidden_mark_is_looked_for_and_told)
{
    answer_questions(NODE, PODS(""));
    answer("PATCH", NODE_PATH, 403, STATUS("no", ""));
    answer("GET", NODE_PATH, 200, NODE); /* it is not there: nothing to undo */
    mark();
    cr_assert_eq(told, 1);
    cr_expect_eq(end, AS_DRAIN_FAILED);
    cr_expect_str_eq(outcome.message, "drain node n1: the right \"nodes: patch\" is missing: no");
    cr_expect_str_eq(get_last_request()->method, "GET");
}

Test(drain, a_mark_whose_answer_was_lost_is_taken_back)
{
    answer_questions(NODE, PODS(""));
    world_answer(&world,
                 (struct world_answer){"PATCH", NODE_PATH, AS_HTTP_TIMEOUT, .error = "no answer"});
    answer_undo();
    mark();
    expect_undone(AS_DRAIN_FAILED, AS_REASON_TIMEOUT, "drain node n1: no answer");
}

Test(drain, fails_and_undoes)
{
    static const struct {
        int status;
        const char *body;
        enum as_reason reason;
        const char *message;
    } rows[] = {
        {403, STATUS("no", ""), AS_REASON_FORBIDDEN,
         "drain node n1: the right \"pods/eviction: create\" is missing: pod shop/a: no"},
        {401, STATUS("Unauthorized", ""), AS_REASON_FORBIDDEN,
         "drain node n1: pod shop/a: Unauthorized"},
        {422, STATUS("invalid", ""), AS_REASON_REJECTED, "drain node n1: pod shop/a: invalid"},
        {404, "404 page not found", AS_REASON_TARGET_NOT_FOUND,
         "drain node n1: pod shop/a: HTTP 404"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        told = 0;
        drains = as_drains_free(drains);
        drains = as_drains_new(&client, "me");
        answer_looks(PODS(POD("a")));
        answer("POST", EVICT("a"), rows[i].status, rows[i].body);
        answer_undo();
        (void)empty();
        expect_undone(AS_DRAIN_FAILED, rows[i].reason, rows[i].message);
    }
}

Test(drain, a_pod_that_came_meanwhile_may_forbid_it)
{
    answer_questions(MARKED, PODS(POD_WITH("b", ",\"annotations\":{\"cluster-autoscaler."
                                                "kubernetes.io/safe-to-evict\":\"false\"}")));
    answer_undo();
    (void)empty();
    expect_undone(AS_DRAIN_FAILED, AS_REASON_REJECTED,
                  "drain node n1: pod shop/b may not be evicted: it is annotated "
                  "cluster-autoscaler.kubernetes.io/safe-to-evict: \"false\"");
}

static struct world_answer serve_stubborn(void *context, const struct world_request *request)
{
    if (strstr(request->url, "/eviction"))
        return (struct world_answer){.status = 429, .body = STATUS("needs 2 healthy pods", "")};
    if (strstr(request->url, "/pods?"))
        return (struct world_answer){.status = 200, .body = PODS(POD("a"))};
    return (struct world_answer){.status = 200,
                                 .body = strstr(request->url, "/nodes/") ? MARKED : CORE("v1")};
}

Test(drain, has_a_deadline)
{
    world.serve = serve_stubborn;
    (void)empty();
    pass(10 * AS_US_PER_MIN - 1);
    cr_expect_eq(told, 0);
    pass(1);
    expect_undone(AS_DRAIN_FAILED, AS_REASON_TIMEOUT,
                  "drain node n1: not empty after 10m: pod shop/a: needs 2 healthy pods");
    cr_expect_lt(world.request_count, 700, "polled at a decent pace");
}

static struct world_answer serve_going(void *context, const struct world_request *request)
{
    if (strstr(request->url, "/pods?"))
        return (struct world_answer){.status = 200, .body = PODS(GOING_SLOWLY("a"))};
    return (struct world_answer){.status = 200, .body = MARKED};
}

Test(drain, a_pod_that_does_not_end_is_named)
{
    answer("GET", "/api/v1", 200, CORE("v1"));
    world.serve = serve_going;
    (void)empty();
    pass(10 * AS_US_PER_MIN);
    expect_undone(AS_DRAIN_FAILED, AS_REASON_TIMEOUT,
                  "drain node n1: not empty after 10m: pod shop/a was evicted, and has not ended");
}

Test(drain, leaves_a_cordon_that_was_there_before)
{
    answer_questions(NODE_WITH("n1", "", ",\"unschedulable\":true", "True"), PODS(POD("a")));
    answer("PATCH", NODE_PATH, 200, MARKED);
    mark();
    cr_assert_eq(told, 1);
    cr_expect_not_null(strstr(get_last_request()->body, "\\\"cordoned\\\":false"));
    answer("GET", NODE_PATH, 200, NODE_WITH("n1", MARK_OF("me", "false"), TAINTED, "True"));
    answer("PATCH", NODE_PATH, 200, NODE);
    as_drain_undo_start(drains, "n1", keep, NULL);
    world_run(&world);
    cr_assert_eq(told, 2);
    cr_expect_str_eq(get_last_request()->body,
                     "{\"metadata\":{\"annotations\":{\"alertscaler.io/drain\":null},"
                     "\"resourceVersion\":\"7\"},\"spec\":{\"taints\":[]}}");
}

Test(drain, undoing_is_tried_again)
{
    answer_looks(PODS(POD("a")));
    answer("POST", EVICT("a"), 403, STATUS("no", ""));
    answer("GET", NODE_PATH, 500, "");
    answer("GET", NODE_PATH, 200, MARKED);
    answer("PATCH", NODE_PATH, 409, STATUS("modified", ""));
    answer("GET", NODE_PATH, 200, MARKED);
    world_answer(&world, (struct world_answer){"PATCH", NODE_PATH, .outcome = AS_HTTP_UNREACHABLE});
    answer_undo();
    (void)empty();
    cr_expect_eq(told, 0);
    pass(AS_US_PER_MIN);
    expect_undone(AS_DRAIN_FAILED, AS_REASON_FORBIDDEN,
                  "drain node n1: the right \"pods/eviction: create\" is missing: pod shop/a: no");
}

Test(drain, is_stuck_where_nothing_helps)
{
    answer_looks(PODS(POD("a")));
    answer("POST", EVICT("a"), 422, STATUS("invalid", ""));
    answer("GET", NODE_PATH, 403, STATUS("taken away", ""));
    (void)empty();
    cr_assert_eq(told, 1);
    cr_expect_eq(end, AS_DRAIN_STUCK);
    cr_expect_eq(outcome.reason, AS_REASON_FORBIDDEN);
    cr_expect_str_eq(outcome.message,
                     "drain node n1: it stays cordoned, as that could not be undone: taken away; "
                     "before: drain node n1: pod shop/a: invalid");
}

Test(drain, is_stuck_after_so_many_tries)
{
    answer_looks(PODS(POD("a")));
    answer("POST", EVICT("a"), 422, STATUS("invalid", ""));
    for (int i = 0; i < AS_DRAIN_UNDO_TRIES; i++)
        answer("GET", NODE_PATH, 503, "");
    (void)empty();
    pass(10 * AS_US_PER_MIN);
    cr_assert_eq(told, 1);
    cr_expect_eq(end, AS_DRAIN_STUCK);
    cr_expect_eq(outcome.reason, AS_REASON_UNREACHABLE);
}

Test(drain, a_node_that_is_gone_needs_no_undoing)
{
    answer_looks(PODS(POD("a")));
    answer("POST", EVICT("a"), 422, STATUS("invalid", ""));
    answer("GET", NODE_PATH, 404, STATUS("not found", "\"name\":\"n1\""));
    (void)empty();
    cr_assert_eq(told, 1);
    cr_expect_eq(end, AS_DRAIN_FAILED);
}

/* Given up */

Test(drain, what_is_dropped_is_left_as_it_is)
{
    as_drain_drop(start_task(AS_DRAIN_EMPTY, "n1"));
    world_run(&world);
    cr_expect_eq(world.request_count, 0, "before its turn");
    answer_looks(PODS(POD("a")));
    answer("POST", EVICT("a"), 201, "{}");
    as_drain_drop(empty());
    pass(AS_US_PER_MIN);
    cr_expect_eq(told, 0);
    cr_expect_str_eq(get_last_request()->method, "POST");
    cr_expect(as_drains_is_idle(drains));
}

/* What may be changed from the so-many-eth question on. */
static enum as_permit permit;
static unsigned permit_from, permit_asked;

static enum as_permit get_permit(void *context)
{
    (void)context;
    return ++permit_asked >= permit_from ? permit : AS_PERMIT_ALL;
}

static void withdraw(enum as_permit what, unsigned from)
{
    env.get_permit = get_permit;
    permit = what;
    permit_from = from;
    permit_asked = 0;
}

static void expect_waits(const char *message)
{
    cr_assert_eq(told, 1);
    cr_expect_eq(end, AS_DRAIN_NOT_YET);
    cr_expect_eq(outcome.reason, AS_REASON_SUPERSEDED);
    cr_expect_str_eq(outcome.message, message);
    cr_expect_str_neq(get_last_request()->method, "PATCH", "the mark stays");
    env.get_permit = NULL;
    env.get_terminate_permit = NULL;
}

Test(drain, under_the_kill_switch_no_more_pods_are_evicted)
{
    withdraw(AS_PERMIT_UNDO, 4); /* both turns, a pod, the next pod */
    answer_looks(PODS(POD("a") "," POD("b")));
    answer("POST", EVICT("a"), 201, "{}");
    (void)empty();
    expect_waits("drain node n1: given up: the kill switch stops everything");
    cr_expect_eq(evicted, 1);
}

static enum as_terminate_permit leave_permit;

static enum as_terminate_permit get_terminate_permit(void *context, const char *target,
                                                     const char **why)
{
    (void)context;
    cr_expect_str_eq(target, "group");
    *why = "paused";
    return leave_permit;
}

Test(drain, in_a_pause_no_more_pods_are_evicted)
{
    env.get_terminate_permit = get_terminate_permit;
    leave_permit = AS_TERMINATE_GO;
    answer_looks(PODS(GOING("a")));
    (void)empty();
    cr_expect_eq(told, 0);
    leave_permit = AS_TERMINATE_HOLD;
    pass(AS_DRAIN_POLL_US);
    expect_waits("drain node n1: paused");
}

Test(drain, a_node_whose_target_is_gone_is_put_back)
{
    env.get_terminate_permit = get_terminate_permit;
    leave_permit = AS_TERMINATE_GONE;
    answer_undo();
    (void)empty();
    expect_undone(AS_DRAIN_FAILED, AS_REASON_SUPERSEDED,
                  "drain node n1: no rule leads to its group");
    env.get_terminate_permit = NULL;
}

Test(drain, nothing_is_touched_under_the_kill_switch)
{
    withdraw(AS_PERMIT_UNDO, 2);
    answer_questions(NODE, PODS(POD("a")));
    mark();
    expect_untouched(AS_REASON_SUPERSEDED,
                     "drain node n1: given up: the kill switch stops everything");
    env.get_permit = NULL;
}

Test(drain, under_the_kill_switch_nothing_is_begun)
{
    withdraw(AS_PERMIT_UNDO, 1);
    mark();
    expect_untouched(AS_REASON_SUPERSEDED,
                     "drain node n1: given up: the kill switch stops everything");
    cr_expect_eq(world.request_count, 0);
    env.get_permit = NULL;
}

/* A stop has 20 seconds for all of it, and an API server may ask to wait for longer. */
Test(drain, who_waits_for_a_budget_ends_soon_when_the_process_stops)
{
    withdraw(AS_PERMIT_ALL, 1);
    answer_looks(PODS(POD("a")));
    world_answer(&world, (struct world_answer){"POST", EVICT("a"), .status = 429,
                                               .body = STATUS("Cannot evict pod", ""),
                                               .retry_after = "30"});
    (void)empty();
    pass(AS_US_PER_S);
    permit = AS_PERMIT_FINISH;
    cr_expect_eq(told, 0);
    pass(AS_DRAIN_POLL_US);
    expect_waits("drain node n1: given up: alertscaler stops");
}

Test(drain, who_does_not_lead_any_more_leaves_all_to_who_does)
{
    withdraw(AS_PERMIT_NONE, 4);
    answer_looks(PODS(POD("a") "," POD("b")));
    answer("POST", EVICT("a"), 201, "{}");
    (void)empty();
    cr_expect_eq(evicted, 1);
    expect_waits("drain node n1: given up: another may lead by now");
}

/* Side by side */

static size_t count_gets(const char *path)
{
    size_t count = 0;
    for (size_t i = 0; i < world.request_count; i++)
        count +=
            strcmp(world.requests[i].method, "GET") == 0 && strstr(world.requests[i].url, path);
    return count;
}

static struct world_answer serve_both(void *context, const struct world_request *request)
{
    if (strstr(request->url, "%3De") != NULL) /* pods of e0, e1, ... */
        return (struct world_answer){.status = 200, .body = PODS("")};
    return serve_stubborn(context, request);
}

/* Those without pods do not wait for those with pods. */
Test(drain, so_many_are_emptied_at_a_time_and_what_is_empty_does_not_wait)
{
    struct as_drain *all[AS_DRAINS_MAX + 2];
    char name[16];
    world.serve = serve_both;
    for (int i = 0; i < AS_DRAINS_MAX + 2; i++) {
        snprintf(name, sizeof(name), "m%d", i);
        all[i] = start_task(AS_DRAIN_EMPTY, name);
    }
    world_run(&world);
    cr_expect_eq(count_gets("/nodes/m"), 2 * AS_DRAINS_MAX + 2, "looked at, and emptied");
    for (int i = 0; i < 500; i++) {
        snprintf(name, sizeof(name), "e%d", i);
        (void)!start_task(AS_DRAIN_EMPTY, name);
    }
    world_run(&world);
    cr_expect_eq(told, 500, "%u", told);
    as_drain_drop(all[AS_DRAINS_MAX]); /* a waiting one */
    as_drain_drop(all[0]);
    world_run(&world);
    cr_expect_eq(count_gets("/nodes/m6"), 2, "the next has its turn");
    /* teardown: nothing is told of the others */
}

Test(drain, one_at_a_time_for_a_node)
{
    world.serve = serve_stubborn;
    (void)empty();
    (void)empty();
    cr_assert_eq(told, 1);
    cr_expect_eq(end, AS_DRAIN_FAILED);
    cr_expect_str_eq(outcome.message, "drain node n1: it is being worked on already");
}

Test(drain, of_no_nodes_name)
{
    static const char *const names[] = {"", ".", ".."};
    for (size_t i = 0; i < AS_ARRAY_SIZE(names); i++) {
        (void)!start_task(AS_DRAIN_MARK, names[i]);
        world_run(&world);
        cr_expect_eq(end, AS_DRAIN_FAILED);
        cr_expect_eq(outcome.reason, AS_REASON_REJECTED);
    }
    cr_expect_eq(told, 3);
}

/* After it */

static void mark_n1(void)
{
    answer_questions(NODE, PODS(""));
    answer("PATCH", NODE_PATH, 200, MARKED);
    mark();
    cr_assert_eq(end, AS_DRAIN_DONE);
    told = 0;
}

Test(drain, is_undone_when_the_instance_stays)
{
    mark_n1();
    answer_undo();
    as_drain_undo_start(drains, "n1", keep, NULL);
    cr_expect_eq(told, 0);
    world_run(&world);
    expect_undone(AS_DRAIN_FAILED, AS_REASON_APPLIED, "");
    answer("GET", NODE_PATH, 404, "");
    told = 0;
    as_drain_undo_start(drains, "n1", keep, NULL);
    world_run(&world);
    cr_assert_eq(told, 1);
    cr_expect_eq(end, AS_DRAIN_NO_NODE);
}

/* Recovery */

static unsigned recovered, undone;
static bool is_any_marked;

static void lose_target(void)
{
    env.get_terminate_permit = get_terminate_permit;
    leave_permit = AS_TERMINATE_GONE;
}

static void keep_recovery(void *context, const struct as_outcome *failure, unsigned count,
                          bool is_any)
{
    is_any_marked = is_any;
    recovered++;
    outcome = *failure;
    undone = count;
}

static void recover(void)
{
    const unsigned before = recovered;
    as_drain_recover(drains, keep_recovery, NULL);
    cr_assert_eq(recovered, before, "told in the same turn");
    world_run(&world);
    cr_assert_eq(recovered, before + 1);
}

static void expect_found_a_minute_later(void)
{
    answer("GET", NODES_PATH, 200, LIST_OF("NodeList", "", MARKED));
    answer_undo();
    world_advance(&world, AS_DRAIN_RECOVER_US);
    cr_expect_eq(recovered, 2);
    cr_expect_eq(undone, 1);
}

Test(drain, what_was_left_behind_is_undone)
{
    lose_target();
    mark_n1();
    answer("GET", NODES_PATH, 200,
           LIST_OF("NodeList", "",
                   MARKED "," NODE_WITH("n2", MARK_OF("me", "true"), TAINTED, "True") "," NODE_WITH(
                       "n3", MARK_OF("other", "true"), TAINTED,
                       "True") "," NODE_WITH("n4", "", TAINTED, "True")));
    answer("GET", "/api/v1/nodes/n2", 200, MARKED);
    answer("PATCH", "/api/v1/nodes/n2", 200, NODE);
    recover(); /* n1 is held, n3 another's, n4 nobody's */
    cr_expect_eq(outcome.reason, AS_REASON_APPLIED);
    cr_expect_eq(undone, 1);
    cr_expect(is_any_marked, "n1 has its mark");

    as_drain_release(drains, "n1");
    answer("GET", NODES_PATH, 200, LIST_OF("NodeList", "", MARKED));
    answer_undo();
    recover();
    cr_expect_eq(undone, 1);
    cr_expect_not(is_any_marked);
}

Test(drain, a_mark_is_left_to_who_goes_on_with_it_as_long_as_its_target_is_there)
{
    answer("GET", NODES_PATH, 200, LIST_OF("NodeList", "", MARKED));
    recover();
    cr_expect_eq(undone, 0);
    cr_expect(is_any_marked);
    lose_target();
    expect_found_a_minute_later();
    cr_expect_not(is_any_marked);
}

/* An earlier version did not say which target it was for. */
#define OLD_MARK                                                                                   \
    NODE_WITH("n1",                                                                                \
              ",\"annotations\":{\"alertscaler.io/drain\":\"{\\\"at\\\":"                          \
              "\\\"2026-11-21T10:00:00Z\\\",\\\"cordoned\\\":true,\\\"decision\\\":"               \
              "\\\"01HD\\\",\\\"owner\\\":\\\"me\\\"}\"}",                                         \
              TAINTED, "True")

Test(drain, a_mark_of_an_earlier_version_is_nobodys_if_no_group_has_the_node)
{
    const int64_t looks = AS_LEAVE_ORPHAN_US / AS_DRAIN_RECOVER_US;
    for (int64_t i = 0; i <= looks; i++)
        answer("GET", NODES_PATH, 200, LIST_OF("NodeList", "", OLD_MARK));
    recover();
    pass(AS_LEAVE_ORPHAN_US - AS_US_PER_S);
    cr_expect_eq(recovered, looks);
    cr_expect_eq(undone, 0);
    answer_undo();
    pass(AS_DRAIN_RECOVER_US);
    cr_expect_eq(undone, 1);
}

Test(drain, recovery_leaves_what_is_under_way)
{
    lose_target();
    leave_permit = AS_TERMINATE_GO;
    answer_looks(PODS(GOING("a")));
    (void)empty();
    answer("GET", NODES_PATH, 200, LIST_OF("NodeList", "", MARKED));
    recover();
    cr_expect_eq(undone, 0);
}

Test(drain, recovery_says_what_went_wrong)
{
    lose_target();
    answer("GET", NODES_PATH, 403, STATUS("no", ""));
    recover();
    cr_expect_eq(outcome.reason, AS_REASON_FORBIDDEN);
    cr_expect_str_eq(outcome.message, "list nodes: the right \"nodes: list\" is missing: no");
    cr_expect(is_any_marked, "it is not known");
    answer("GET", NODES_PATH, 200, LIST_OF("NodeList", "", MARKED));
    answer("GET", NODE_PATH, 403, STATUS("no", ""));
    recover();
    cr_expect_eq(undone, 0);
    cr_expect_eq(outcome.reason, AS_REASON_FORBIDDEN);
    cr_expect_str_eq(outcome.message,
                     "drain node n1: it stays cordoned, as that could not be undone: no");
}

Test(drain, recovery_goes_on_trying)
{
    lose_target();
    answer("GET", NODES_PATH, 503, STATUS("not now", ""));
    recover();
    cr_expect_eq(undone, 0);
    expect_found_a_minute_later();
    world_advance(&world, AS_DRAIN_RECOVER_US);
    cr_expect_eq(recovered, 2, "there is nothing left to be done");
}

Test(drain, a_mark_that_comes_late_is_found_by_recovery)
{
    answer("GET", NODES_PATH, 200, LIST_OF("NodeList", "", ""));
    recover();
    answer_questions(NODE, PODS(""));
    world_answer(&world,
                 (struct world_answer){"PATCH", NODE_PATH, AS_HTTP_TIMEOUT, .error = "no answer"});
    answer("GET", NODE_PATH, 200, NODE); /* not there yet */
    mark();
    cr_assert_eq(end, AS_DRAIN_FAILED);
    expect_found_a_minute_later();
}

Test(drain, what_is_stuck_is_tried_again_by_recovery)
{
    answer("GET", NODES_PATH, 200, LIST_OF("NodeList", "", ""));
    recover();
    mark_n1();
    answer("GET", NODE_PATH, 403, STATUS("no", ""));
    as_drain_undo_start(drains, "n1", keep, NULL);
    world_run(&world);
    cr_assert_eq(end, AS_DRAIN_STUCK);
    expect_found_a_minute_later();
}

Test(drain, an_undo_under_way_is_not_idle)
{
    mark_n1();
    cr_expect(as_drains_is_idle(drains));
    as_drain_undo_start(drains, "n1", keep, NULL);
    cr_expect_not(as_drains_is_idle(drains));
    answer_undo();
    world_run(&world);
    cr_expect(as_drains_is_idle(drains));
}

Test(drain, nothing_is_told_after_the_end)
{
    (void)!start_task(AS_DRAIN_MARK, "n1");
    as_drain_recover(drains, keep_recovery, NULL);
    drains = as_drains_free(drains);
    world_run(&world);
    cr_expect_eq(told, 0);
    cr_expect_eq(recovered, 0);
}
