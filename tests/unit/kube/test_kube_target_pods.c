/*
 * The Kubernetes adapter with pods requested, against a scripted API server: the selector of the
 * Scale, page after page, all pods or a failure with a reason.
 */
#include <math.h>
#include <stdio.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/http/access_limits.h>
#include <alertscaler/kube/kube_target.h>
#include <alertscaler/kube/target_outcome.h>

#include "kube/kube_owners.h"
#include "support.h"

#define SCALE_PATH "/apis/apps/v1/namespaces/shop/deployments/web/scale"
#define PODS_PATH                                                                                  \
    "/api/v1/namespaces/shop/pods?labelSelector=app%3Dweb%2Ctier%20in%20%28a%29&limit=500"
#define NEXT(token) PODS_PATH "&continue=" token
#define APPS                                                                                       \
    "{\"groupVersion\":\"apps/v1\",\"resources\":[{\"name\":\"deployments\",\"kind\":"             \
    "\"Deployment\",\"namespaced\":true},{\"name\":\"deployments/scale\",\"kind\":\"Scale\","      \
    "\"group\":\"autoscaling\",\"version\":\"v1\"},{\"name\":\"pools\",\"kind\":\"Pool\","         \
    "\"namespaced\":false},{\"name\":\"pools/scale\",\"kind\":\"Scale\"},{\"name\":"               \
    "\"statefulsets\",\"kind\":\"StatefulSet\",\"namespaced\":true},{\"name\":"                    \
    "\"statefulsets/scale\",\"kind\":\"Scale\",\"group\":\"autoscaling\",\"version\":\"v1\"}]}"
#define SCALE_WITH(status)                                                                         \
    "{\"kind\":\"Scale\",\"metadata\":{\"name\":\"web\",\"uid\":\"u-1\",\"resourceVersion\":"      \
    "\"100\"},\"spec\":{\"replicas\":4},\"status\":{\"replicas\":3" status "}}"
#define SCALE SCALE_WITH(",\"selector\":\"app=web,tier in (a)\"")
#define STATUS(message, more)                                                                      \
    "{\"kind\":\"Status\",\"message\":\"" message "\",\"details\":{" more "}}"
#define PAGE(token, pods)                                                                          \
    "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"9\","         \
    "\"continue\":\"" token "\"},\"items\":[" pods "]}"
#define POD(name)                                                                                  \
    "{\"metadata\":{\"name\":\"" name "\"},\"spec\":{\"containers\":[{\"resources\":{"             \
    "\"requests\":{\"cpu\":\"250m\"}}}]},\"status\":{\"phase\":\"Running\",\"startTime\":"         \
    "\"2026-11-21T09:00:00Z\",\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\","            \
    "\"lastTransitionTime\":\"2026-11-21T09:00:20Z\"}]}}"

static char kubeconfig[64], token[80];
static const char scale_text[] = SCALE; /* one place, to be told from others by it */
static struct as_target_port *port;
static struct as_target_ref *web;
static char *names;             /* of the pods that were told, with ' ' behind each */
static struct as_pod_seen last; /* of the pods; its name is not to be read */

static void open_port(const char *user)
{
    struct as_error error = AS_ERROR_INIT;
    struct as_kube_access *access;
    AS_CLEANUP(as_free_p)
    char *text = as_xasprintf("current-context: c\n"
                              "clusters: [{name: c, cluster: {server: 'https://k:6443'}}]\n"
                              "contexts: [{name: c, context: {cluster: c, user: u}}]\n"
                              "users: [{name: u, user: %s}]\n",
                              user);
    write_file(kubeconfig, text);
    struct as_kube_access_config config = {kubeconfig, NULL};
    cr_assert_eq(as_kube_access_new(&config, &env, &access, &error), 0, "%s", error.text);
    port = as_kubernetes_new(access, &env);
}

static void answer(const char *path, int status, const char *body)
{
    world_answer(&world, (struct world_answer){"GET", path, .status = status, .body = body});
}

static void setup(void)
{
    setup_world();
    snprintf(kubeconfig, sizeof(kubeconfig), "/tmp/as-pods-XXXXXX");
    close(mkstemp(kubeconfig));
    snprintf(token, sizeof(token), "%s.token", kubeconfig);
    open_port("{token: secret}");
    web = make_ref("apps/v1", "Deployment", "shop", "web");
    answer("/apis/apps/v1", 200, APPS);
}

static void teardown(void)
{
    if (port)
        port->close(port);
    as_target_ref_free(web);
    free(names);
    unlink(kubeconfig);
    unlink(token);
    teardown_world();
}

TestSuite(kubernetes_pods, .init = setup, .fini = teardown);

static void keep_pods(void *context, uint64_t call_id, const struct as_observation *told)
{
    keep_observation(context, call_id, told);
    free(names);
    names = as_xstrdup("");
    for (size_t i = 0; i < told->pod_count; i++) {
        char *longer = as_xasprintf("%s%s ", names, told->pods[i].name);
        free(names);
        names = longer;
        last = told->pods[i];
    }
}

static void observe_pods(const struct as_target_ref *ref)
{
    unsigned before = observed_count;
    port->observe(port, 7, ref, &(struct as_observe_request){.with_pods = true}, keep_pods, NULL);
    cr_assert_eq(observed_count, before, "told in the same turn");
    world_run(&world);
    cr_assert_eq(observed_count, before + 1);
    cr_assert_eq(told_call_id, 7);
}

Test(kubernetes_pods, are_those_that_the_scale_selects)
{
    answer(SCALE_PATH, 200, SCALE);
    answer(PODS_PATH, 200, PAGE("", POD("web-2") "," POD("web-1")));
    observe_pods(web);
    cr_expect_eq(observation.outcome, AS_REASON_APPLIED, "%s", observation.message);
    cr_expect_eq(observation.replicas, 4);
    cr_expect_eq(observation.status_replicas, 3);
    cr_expect_str_eq(observation.version, "100");
    cr_expect_str_eq(observation.message, "");
    cr_expect(observation.has_pods);
    cr_expect_eq(observation.pod_count, 2);
    cr_expect_str_eq(names, "web-1 web-2 ");
    cr_expect_eq(last.phase, AS_POD_RUNNING);
    cr_expect_eq(last.ready, AS_TRUE);
    cr_expect_eq(last.requests[AS_RESOURCE_CPU], 0.25);
    cr_expect(isnan(last.requests[AS_RESOURCE_MEMORY]));
    cr_expect_eq(last.start_time.at.us, world.wall.us - AS_US_PER_H);
    const struct world_request *request = &world.requests[2];
    cr_expect_str_eq(request->url, "https://k:6443" PODS_PATH);
    cr_expect_str_eq(request->headers, "Accept: application/json\nAuthorization: Bearer secret\n");
    cr_expect_eq(request->timeout_us, AS_KUBE_TIMEOUT_US);
    cr_expect_eq(request->max_response, AS_KUBE_PODS_PAGE_BYTES_MAX);
}

Test(kubernetes_pods, are_not_asked_for_unless_wanted)
{
    answer(SCALE_PATH, 200, SCALE);
    observe(port, web);
    cr_expect_eq(observation.outcome, AS_REASON_APPLIED);
    cr_expect_not(observation.has_pods);
    cr_expect_eq(world.request_count, 2);
}

Test(kubernetes_pods, may_be_none)
{
    answer(SCALE_PATH, 200, SCALE);
    answer(PODS_PATH, 200, PAGE("", ""));
    observe_pods(web);
    cr_expect_eq(observation.outcome, AS_REASON_APPLIED);
    cr_expect(observation.has_pods);
    cr_expect_eq(observation.pod_count, 0);
}

Test(kubernetes_pods, are_not_known_without_a_selector)
{
    static const struct {
        const char *scale, *message;
    } rows[] = {
        {SCALE_WITH(""), "pods are not known: the scale subresource has no selector"},
        {SCALE_WITH(",\"selector\":\"\""),
         "pods are not known: the scale subresource has no selector"},
        {SCALE_WITH(",\"selector\":7"), "pods are not known: status.selector: expected a string"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        answer(SCALE_PATH, 200, rows[i].scale);
        observe_pods(web);
        cr_expect_eq(observation.outcome, AS_REASON_APPLIED);
        cr_expect_eq(observation.replicas, 4);
        cr_expect_not(observation.has_pods);
        cr_expect_str_eq(observation.message, rows[i].message);
    }
}

Test(kubernetes_pods, are_not_known_of_what_is_in_no_namespace)
{
    struct as_target_ref *pool = make_ref("apps/v1", "Pool", "ignored", "p");
    answer("/apis/apps/v1/pools/p/scale", 200, SCALE);
    observe_pods(pool);
    cr_expect_eq(observation.outcome, AS_REASON_APPLIED);
    cr_expect_not(observation.has_pods);
    cr_expect_str_eq(observation.message, "pods are not known: the object is in no namespace");
    as_target_ref_free(pool);
}

Test(kubernetes_pods, come_page_by_page)
{
    answer(SCALE_PATH, 200, SCALE);
    answer(PODS_PATH, 200, PAGE("a+b/c=", POD("web-3") "," POD("web-1")));
    answer(NEXT("a%2Bb%2Fc%3D"), 200, PAGE("2", ""));
    answer(NEXT("2"), 200, PAGE("", POD("web-2") "," POD("web-3")));
    observe_pods(web);
    cr_expect_eq(observation.outcome, AS_REASON_APPLIED, "%s", observation.message);
    cr_expect_str_eq(names, "web-1 web-2 web-3 ");
}

/* 410: the API server has forgotten the moment that the pages show. */
Test(kubernetes_pods, begin_anew_once_when_a_token_has_expired)
{
    answer(SCALE_PATH, 200, SCALE);
    answer(PODS_PATH, 200, PAGE("1", POD("old")));
    answer(NEXT("1"), 410, STATUS("the provided continue parameter is too old", ""));
    answer(PODS_PATH, 200, PAGE("2", POD("web-1")));
    answer(NEXT("2"), 200, PAGE("", POD("web-2")));
    observe_pods(web);
    cr_expect_eq(observation.outcome, AS_REASON_APPLIED, "%s", observation.message);
    cr_expect_str_eq(names, "web-1 web-2 ");

    answer(SCALE_PATH, 200, SCALE);
    answer(PODS_PATH, 200, PAGE("1", POD("web-1")));
    answer(NEXT("1"), 410, STATUS("too old", ""));
    answer(PODS_PATH, 200, PAGE("2", POD("web-1")));
    answer(NEXT("2"), 410, STATUS("too old", ""));
    observe_pods(web);
    cr_expect_eq(observation.outcome, AS_REASON_UNREACHABLE);
    cr_expect_eq(observation.http_status, 410);
    cr_expect_str_eq(observation.message, "list pods: too old");
    cr_expect_not(observation.has_pods);
    cr_expect_eq(observation.pod_count, 0);
}

Test(kubernetes_pods, every_failure_is_one_of_the_observation)
{
    static const struct {
        enum as_http_outcome transport;
        int status;
        const char *body;
        enum as_reason reason;
        const char *message;
    } rows[] = {
        {AS_HTTP_ANSWERED, 400, STATUS("unable to parse requirement", ""), AS_REASON_REJECTED,
         "list pods: unable to parse requirement"},
        {AS_HTTP_ANSWERED, 401, STATUS("Unauthorized", ""), AS_REASON_FORBIDDEN,
         "list pods: Unauthorized"},
        {AS_HTTP_ANSWERED, 403, STATUS("pods is forbidden: User \\\"u\\\" cannot list", ""),
         AS_REASON_FORBIDDEN,
         "list pods: the right \"pods: list\" is missing: pods is forbidden: User \"u\" cannot "
         "list"},
        {AS_HTTP_ANSWERED, 403, "<html>", AS_REASON_FORBIDDEN,
         "list pods: the right \"pods: list\" is missing: HTTP 403"},
        /* the target is there, whatever else is not */
        {AS_HTTP_ANSWERED, 404, "404 page not found", AS_REASON_REJECTED, "list pods: HTTP 404"},
        {AS_HTTP_ANSWERED, 410, STATUS("gone", ""), AS_REASON_UNREACHABLE, "list pods: gone"},
        {AS_HTTP_ANSWERED, 409, "", AS_REASON_REJECTED, "list pods: HTTP 409"},
        {AS_HTTP_ANSWERED, 302, "", AS_REASON_REJECTED, "list pods: HTTP 302"},
        {AS_HTTP_ANSWERED, 429, "", AS_REASON_THROTTLED, "list pods: HTTP 429"},
        {AS_HTTP_ANSWERED, 500, STATUS("etcd\\nis slow", ""), AS_REASON_UNREACHABLE,
         "list pods: etcd is slow"},
        {AS_HTTP_UNREACHABLE, 0, "", AS_REASON_UNREACHABLE, "list pods: transport"},
        {AS_HTTP_BROKEN, 0, "", AS_REASON_UNREACHABLE, "list pods: transport"},
        {AS_HTTP_TIMEOUT, 0, "", AS_REASON_TIMEOUT, "list pods: transport"},
        {AS_HTTP_TOO_LARGE, 0, "", AS_REASON_REJECTED, "list pods: transport"},
        {AS_HTTP_ANSWERED, 200, "<html>", AS_REASON_REJECTED, "list pods: expected a JSON object"},
        {AS_HTTP_ANSWERED, 200, "{\"kind\":", AS_REASON_REJECTED, "list pods: not JSON"},
        {AS_HTTP_ANSWERED, 200, "", AS_REASON_REJECTED, "list pods: expected a JSON object"},
        {AS_HTTP_ANSWERED, 200, STATUS("", ""), AS_REASON_REJECTED,
         "list pods: kind: expected PodList"},
        {AS_HTTP_ANSWERED, 200,
         PAGE("", POD("web-1") ",{\"metadata\":{\"name\":\"web-2\"},\"spec\":{\"containers\":[{"
                               "\"resources\":{\"limits\":{\"memory\":\"lots\"}}}]}}"),
         AS_REASON_REJECTED,
         "list pods: items[1]: pod web-2: containers[0]: limits: memory: no quantity: \"lots\""},
    };
    for (size_t page = 0; page < 2; page++)
        for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
            if (page == 1 && rows[i].status == 410)
                continue;
            answer(SCALE_PATH, 200, SCALE);
            if (page == 1)
                answer(PODS_PATH, 200, PAGE("1", POD("web-0")));
            world_answer(&world, (struct world_answer){"GET", page ? NEXT("1") : PODS_PATH,
                                                       rows[i].transport, rows[i].status,
                                                       .body = rows[i].body, .error = "transport"});
            observe_pods(web);
            cr_expect_eq(observation.outcome, rows[i].reason, "row %zu", i);
            cr_expect_eq(observation.http_status, rows[i].status, "row %zu", i);
            cr_expect_eq(strncmp(observation.message, rows[i].message, strlen(rows[i].message)), 0,
                         "row %zu: %s", i, observation.message);
            cr_expect_not(observation.has_pods, "row %zu", i);
            cr_expect_eq(observation.pod_count, 0, "row %zu", i);
        }
}

Test(kubernetes_pods, a_failed_scale_asks_for_none)
{
    answer(SCALE_PATH, 403, STATUS("no", ""));
    observe_pods(web);
    cr_expect_eq(observation.outcome, AS_REASON_FORBIDDEN);
    cr_expect_str_eq(observation.message, "no");
    cr_expect_eq(world.request_count, 2);
}

Test(kubernetes_pods, a_throttled_list_says_when_to_come_back)
{
    answer(SCALE_PATH, 200, SCALE);
    world_answer(&world, (struct world_answer){"GET", PODS_PATH, .status = 429,
                                               .body = STATUS("", "\"retryAfterSeconds\":9"),
                                               .retry_after = "2"});
    observe_pods(web);
    cr_expect_eq(observation.outcome, AS_REASON_THROTTLED);
    cr_expect_eq(observation.retry_after_us, 2 * AS_US_PER_S);
    answer(SCALE_PATH, 200, SCALE);
    answer(PODS_PATH, 429, STATUS("", "\"retryAfterSeconds\":9"));
    observe_pods(web);
    cr_expect_eq(observation.retry_after_us, 9 * AS_US_PER_S);
}

Test(kubernetes_pods, a_token_refused_between_pages_is_read_again)
{
    AS_CLEANUP(as_free_p) char *user = as_xasprintf("{tokenFile: %s}", token);
    port->close(port);
    write_file(token, "token-1");
    open_port(user);
    answer(SCALE_PATH, 200, SCALE);
    answer(PODS_PATH, 200, PAGE("1", POD("web-1")));
    answer(NEXT("1"), 401, STATUS("Unauthorized", ""));
    answer(NEXT("1"), 401, STATUS("Unauthorized", ""));
    observe_pods(web);
    cr_expect_eq(observation.outcome, AS_REASON_FORBIDDEN);
    cr_expect_str_eq(observation.message, "list pods: Unauthorized");

    write_file(token, "token-2");
    answer(SCALE_PATH, 200, SCALE);
    answer(PODS_PATH, 200, PAGE("1", POD("web-1")));
    answer(NEXT("1"), 401, STATUS("Unauthorized", ""));
    answer(NEXT("1"), 200, PAGE("", POD("web-2")));
    observe_pods(web);
    cr_expect_eq(observation.outcome, AS_REASON_APPLIED, "%s", observation.message);
    cr_expect_str_eq(names, "web-1 web-2 ");
}

/* Limits */

static struct {
    unsigned pages;
    int64_t takes_us; /* each */
    unsigned pods;    /* on each */
    size_t padding;   /* bytes on each */
    char *body;
} flood;

static struct world_answer serve_flood(void *context, const struct world_request *request)
{
    if (!strstr(request->url, "/pods?"))
        return (struct world_answer){.status = 200, .body = SCALE};
    flood.pages++;
    world.mono.us += flood.takes_us;
    free(flood.body);
    struct as_buf body = AS_BUF_INIT(AS_KUBE_PODS_PAGE_BYTES_MAX);
    as_buf_append_str(&body, "{\"kind\":\"PodList\",\"metadata\":{\"continue\":\"more\"},"
                             "\"items\":[");
    for (unsigned i = 0; i < flood.pods; i++)
        as_buf_printf(&body, "%s{\"metadata\":{\"name\":\"p-%u-%u\"}}", i ? "," : "", flood.pages,
                      i);
    as_buf_append_str(&body, "]}");
    char *padding = flood.padding ? as_buf_reserve(&body, flood.padding) : NULL;
    if (padding) {
        memset(padding, ' ', flood.padding);
        body.size += flood.padding;
        as_buf_append_char(&body, ' ');
    }
    cr_assert_eq(as_buf_check(&body), 0);
    flood.body = as_buf_take(&body, &body.size);
    return (struct world_answer){.status = 200, .body = flood.body};
}

static void observe_flood(enum as_reason outcome, const char *message)
{
    world.serve = serve_flood;
    observe_pods(web);
    free(flood.body);
    cr_expect_eq(observation.outcome, outcome);
    cr_expect_str_eq(observation.message, message);
    cr_expect_not(observation.has_pods);
}

Test(kubernetes_pods, at_most_so_many)
{
    flood.pods = 500;
    observe_flood(AS_REASON_REJECTED, "list pods: more than 10000 pods");
    cr_expect_eq(flood.pages, AS_KUBE_PODS_MAX / 500 + 1);
}

Test(kubernetes_pods, at_most_so_many_pages)
{
    observe_flood(AS_REASON_REJECTED, "list pods: the list is too long");
    cr_expect_eq(flood.pages, AS_KUBE_PODS_PAGES_MAX);
}

Test(kubernetes_pods, at_most_so_many_bytes)
{
    flood.padding = AS_KUBE_PODS_PAGE_BYTES_MAX - 1024;
    observe_flood(AS_REASON_REJECTED, "list pods: the list is too long");
    cr_expect_eq(flood.pages, AS_KUBE_PODS_BYTES_MAX / AS_KUBE_PODS_PAGE_BYTES_MAX + 1);
}

Test(kubernetes_pods, not_for_ever)
{
    flood.takes_us = AS_KUBE_PODS_TIMEOUT_US / 3;
    observe_flood(AS_REASON_TIMEOUT, "list pods: the list takes too long");
    cr_expect_eq(flood.pages, 3);
}

static void write_long_scale(char *text, size_t size)
{
    char selector[AS_TARGET_URL_MAX + 1];
    memset(selector, 'a', sizeof(selector) - 1);
    selector[sizeof(selector) - 1] = '\0';
    snprintf(text, size, SCALE_WITH(",\"selector\":\"%s\""), selector);
}

Test(kubernetes_pods, a_selector_must_fit_into_a_request)
{
    char text[AS_TARGET_URL_MAX + 256];
    write_long_scale(text, sizeof(text));
    answer(SCALE_PATH, 200, text);
    observe_pods(web);
    cr_expect_eq(observation.outcome, AS_REASON_REJECTED);
    cr_expect_str_eq(observation.message, "list pods: the selector is too long for a request");
}

/* Owners */

#define OWNED(name, kind, owner, uid, more)                                                        \
    "{\"metadata\":{\"name\":\"" name "\"" more ",\"ownerReferences\":[{\"apiVersion\":\"v1\","    \
    "\"kind\":\"Node\",\"name\":\"n\",\"uid\":\"u-1\"},{\"apiVersion\":\"" kind                    \
    "\",\"name\":\"" owner "\",\"uid\":\"" uid "\",\"controller\":true}]}}"
#define RS            "apps/v1\",\"kind\":\"ReplicaSet"
#define JOB           "batch/v1\",\"kind\":\"Job"
#define DELETING      ",\"deletionTimestamp\":\"2026-11-21T09:00:00Z\""
#define SETS_PATH     "/apis/apps/v1/namespaces/shop/statefulsets/web/scale"
#define FLEETS_PATH   "/apis/example.com/v1/namespaces/shop/fleets/web/scale"
#define OF_RS_OF_NONE OWNED("b", RS, "web-7", "rs-7", "")
#define FLEETS                                                                                     \
    "{\"groupVersion\":\"example.com/"                                                             \
    "v1\",\"resources\":[{\"name\":\"fleets\",\"kind\":\"Fleet\",\"namespaced\":true},{\"name\":"  \
    "\"fleets/scale\",\"kind\":\"Scale\",\"group\":\"autoscaling\",\"version\":\"v1\"}]}"
#define JOBS                                                                                       \
    "{\"groupVersion\":\"batch/"                                                                   \
    "v1\",\"resources\":[{\"name\":\"jobs\",\"kind\":\"Job\",\"namespaced\":true}]}"
#define OF_RS(name, set) OWNED(name, RS, "web-" set, "rs-" set, "")
#define RS_PATH(set)     "/apis/apps/v1/namespaces/shop/replicasets/web-" set
#define META(uid, owner_uid)                                                                       \
    "{\"kind\":\"PartialObjectMetadata\",\"metadata\":{\"uid\":\"" uid                             \
    "\",\"ownerReferences\":[{\"kind\":\"Deployment\",\"uid\":\"" owner_uid                        \
    "\",\"controller\":true}]}}"

static char *owners; /* of the pods that were told: "web-1 target; " */

static void keep_owners(void *context, uint64_t call_id, const struct as_observation *told)
{
    static const char *const words[] = {"target", "other", "gone"};
    keep_observation(context, call_id, told);
    free(owners);
    owners = as_xstrdup("");
    for (size_t i = 0; i < told->pod_count; i++) {
        const struct as_pod_seen *pod = &told->pods[i];
        char *longer =
            as_xasprintf("%s%s %s%s%s%s%s; ", owners, pod->name, words[pod->owner],
                         pod->owner_name ? ": " : "", pod->owner_name ? pod->owner_name : "",
                         pod->owner_error ? ", " : "", pod->owner_error ? pod->owner_error : "");
        free(owners);
        owners = longer;
    }
}

static void observe_owners(const struct as_target_ref *ref, const char *pods)
{
    const struct as_observe_request request = {.with_pods = true, .with_owners = true};
    const char *kind = as_target_ref_get(ref, "kind");
    answer(strcmp(kind, "Fleet") == 0         ? FLEETS_PATH
           : strcmp(kind, "StatefulSet") == 0 ? SETS_PATH
                                              : SCALE_PATH,
           200, SCALE);
    AS_CLEANUP(as_free_p) char *page = as_xasprintf(PAGE("", "%s"), pods);
    answer(PODS_PATH, 200, page);
    port->observe(port, 7, ref, &request, keep_owners, NULL);
    world_run(&world);
    cr_assert_eq(told_call_id, 7);
}

/* A Deployment owns its pods through ReplicaSets. Each is read once; a Job with the same labels is
 * not, and neither is a pod without a controller. */
Test(kubernetes_pods, belong_to_the_target_through_a_controller)
{
    answer(RS_PATH("1"), 200, META("rs-1", "u-1"));
    answer(RS_PATH("2"), 200, META("rs-2", "u-9"));
    observe_owners(
        web, OF_RS("a", "1") "," OF_RS("b", "1") "," OF_RS("c", "2") "," OWNED(
                 "d", JOB, "load", "j-1", "") "," POD("e") "," OWNED("f", RS, "x", "u-1", ""));
    cr_expect_eq(observation.outcome, AS_REASON_APPLIED, "%s", observation.message);
    cr_expect_str_eq(owners, "a target; b target; c other; d other; e other; f target; ");
    cr_expect_eq(world.request_count, 5);
    const struct world_request *request = &world.requests[3];
    cr_expect_str_eq(request->url, "https://k:6443" RS_PATH("1"));
    cr_expect_not_null(strstr(request->headers, "as=PartialObjectMetadata"));
    free(owners);
}

/* A ReplicaSet that is gone, or is another one of the same name. */
Test(kubernetes_pods, of_an_owner_that_is_gone_are_marked)
{
    answer(RS_PATH("1"), 200, META("rs-1", "u-1"));
    answer(RS_PATH("2"), 404, STATUS("replicasets \\\"web-2\\\" not found", "\"name\":\"web-2\""));
    answer(RS_PATH("3"), 200, META("rs-33", "u-1"));
    observe_owners(
        web, OF_RS("a", "1") "," OF_RS("b", "2") "," OF_RS("c", "3") "," OWNED(
                 "d", RS, "web-2", "rs-2", DELETING) "," OWNED("e", RS, "web-1", "rs-1", DELETING));
    cr_expect_eq(observation.outcome, AS_REASON_APPLIED, "%s", observation.message);
    cr_expect_str_eq(owners, "a target; b gone: ReplicaSet web-2; c gone: ReplicaSet web-3; "
                             "d other; e target; ");
    free(owners);
}

Test(kubernetes_pods, are_not_known_without_their_owners)
{
    static const struct {
        int status;
        const char *body;
        enum as_reason outcome;
        const char *message;
    } rows[] = {
        {403, STATUS("no", ""), AS_REASON_FORBIDDEN,
         "owners of pods: the right to get objects of the kind ReplicaSet is missing: no"},
        {429, STATUS("later", ""), AS_REASON_THROTTLED, "owners of pods: later"},
        {200, "[]", AS_REASON_REJECTED, "owners of pods: expected a JSON object"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        answer(RS_PATH("1"), rows[i].status, rows[i].body);
        observe_owners(web, OF_RS("a", "1"));
        cr_expect_eq(observation.outcome, rows[i].outcome, "%zu: %s", i, observation.message);
        cr_expect_str_eq(observation.message, rows[i].message);
    }
    free(owners);
}

Test(kubernetes_pods, of_a_statefulset_are_its_own)
{
    AS_CLEANUP(as_target_ref_free_p)
    struct as_target_ref *db = make_ref("apps/v1", "StatefulSet", "shop", "web");
    observe_owners(
        db, OWNED("a", "apps/v1\",\"kind\":\"StatefulSet", "web", "u-1", "") "," OF_RS("b", "1"));
    cr_expect_eq(observation.outcome, AS_REASON_APPLIED, "%s", observation.message);
    cr_expect_str_eq(owners, "a target; b other; ");
    free(owners);
}

/* A target of a custom kind; Jobs are known to the API server, too. */
static struct as_target_ref *make_fleet(void)
{
    answer(SCALE_PATH, 200, SCALE);
    observe(port, web); /* reads the answer of the setup */
    answer("/apis/example.com/v1", 200, FLEETS);
    answer("/apis/batch/v1", 200, JOBS);
    return make_ref("example.com/v1", "Fleet", "shop", "web");
}

/* The kind in between is looked up. The target is there, whatever becomes of that. */
Test(kubernetes_pods, of_a_custom_resource_belong_through_any_kind)
{
    AS_CLEANUP(as_target_ref_free_p)
    struct as_target_ref *fleet = make_fleet();
    answer(RS_PATH("7"), 404, STATUS("gone", "\"name\":\"web-7\""));
    answer("/apis/batch/v1/namespaces/shop/jobs/load", 200, META("j-1", "u-1"));
    observe_owners(fleet, OWNED("a", JOB, "load", "j-1", "") "," OF_RS_OF_NONE);
    cr_expect_eq(observation.outcome, AS_REASON_APPLIED, "%s", observation.message);
    cr_expect_str_eq(owners, "a target; b gone: ReplicaSet web-7; ");
    observe_owners(fleet, OWNED("a", "batch/v1\",\"kind\":\"Unknown", "x", "k-1", ""));
    cr_expect_eq(observation.outcome, AS_REASON_APPLIED, "%s", observation.message);
    cr_expect_str_eq(owners, "a gone: Unknown x; ");
    free(owners);
}

/* Whoever may create pods stops only the rules that ask for owners. */
Test(kubernetes_pods, of_a_controller_that_cannot_exist_are_marked)
{
    answer(RS_PATH("1"), 200, META("rs-1", "u-1"));
    observe_owners(web, OWNED("a", RS, "..", "u-2",
                              "") "," OF_RS("b", "1") "," OWNED("c", RS, "x", "u-3", DELETING));
    cr_expect_eq(observation.outcome, AS_REASON_APPLIED, "%s", observation.message);
    cr_expect_str_eq(owners, "a gone: ReplicaSet ..; b target; c other; ");
    cr_expect_eq(world.request_count, 4, "the owner of a pod that is being deleted is not read");
    free(owners);
}

/* Other kinds than ReplicaSet need a right of their own. A pod of such a kind, for example of a Job
 * with the same labels, stops only the rules that ask for owners; other failures go by. */
Test(kubernetes_pods, of_a_custom_kind_that_is_forbidden_are_marked)
{
    static const char job[] = "/apis/batch/v1/namespaces/shop/jobs/load";
    AS_CLEANUP(as_target_ref_free_p)
    struct as_target_ref *fleet = make_fleet();
    answer(RS_PATH("1"), 200, META("rs-1", "u-1"));
    answer(job, 403, STATUS("no", ""));
    observe_owners(fleet, OWNED("a", JOB, "load", "j-1", "") "," OF_RS("b", "1") "," OWNED(
                              "c", JOB, "load", "j-1", DELETING) "," POD("d"));
    cr_expect_eq(observation.outcome, AS_REASON_APPLIED, "%s", observation.message);
    cr_expect_str_eq(owners, "a gone: Job load, the right to get objects of the kind Job is "
                             "missing: no; b target; c other; d other; ");
    answer(job, 429, STATUS("later", ""));
    observe_owners(fleet, OWNED("a", JOB, "load", "j-1", ""));
    cr_expect_eq(observation.outcome, AS_REASON_THROTTLED);
    cr_expect_str_eq(observation.message, "owners of pods: later");
    answer(RS_PATH("1"), 403, STATUS("no", ""));
    observe_owners(fleet, OF_RS("a", "1"));
    cr_expect_eq(observation.outcome, AS_REASON_FORBIDDEN);
    free(owners);
}

/* Another target's API version is still found. */
Test(kubernetes_pods, of_ever_new_api_versions_fill_no_table)
{
    AS_CLEANUP(as_target_ref_free_p)
    struct as_target_ref *fleet = make_ref("example.com/v1", "Fleet", "shop", "web");
    AS_CLEANUP(as_target_ref_free_p)
    struct as_target_ref *late = make_ref("late.example.com/v1", "Fleet", "shop", "web");
    answer(SCALE_PATH, 200, SCALE);
    observe(port, web); /* reads the answer of the setup */
    answer("/apis/example.com/v1", 200, FLEETS);
    for (int i = 0; i < 300; i++) {
        static char path[64]; /* the script borrows it */
        (void)snprintf(path, sizeof(path), "/apis/g%d.example.com/v1", i);
        answer(path, 404, "404 page not found");
        AS_CLEANUP(as_free_p)
        char *pod =
            as_xasprintf(OWNED("a", "g%d.example.com/v1\",\"kind\":\"T", "x", "k-1", ""), i);
        observe_owners(fleet, pod);
        cr_assert_str_eq(owners, "a gone: T x; ");
    }
    answer("/apis/late.example.com/v1", 200, FLEETS);
    answer("/apis/late.example.com/v1/namespaces/shop/fleets/web/scale", 200, SCALE);
    observe(port, late);
    cr_expect_eq(observation.outcome, AS_REASON_APPLIED, "%s", observation.message);
    free(owners);
}

Test(kubernetes_pods, of_too_many_controllers_are_marked)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf pods = AS_BUF_INIT(1 << 20);
    for (int i = 0; i < AS_KUBE_OWNERS_MAX + 2; i++)
        as_buf_printf(&pods, "%s" OWNED("p-%03d", RS, "..", "u-%d", ""), i > 0 ? "," : "", i,
                      i + 2);
    observe_owners(web, pods.data);
    cr_expect_eq(observation.outcome, AS_REASON_APPLIED, "%s", observation.message);
    cr_expect_eq(strncmp(owners, "p-000 gone: ReplicaSet ..; ", 27), 0, "%s", owners);
    cr_expect_null(strstr(owners, " other"));
    free(owners);
}

/* The end */

static const char *scale_told;
static struct as_timer *closing;

static void close_it(void *context)
{
    port->close(port);
    port = NULL;
}

/* Has the port closed when the answer has been told. */
static struct world_answer serve_and_close(void *context, const struct world_request *request)
{
    bool is_pods = strstr(request->url, "/pods?") != NULL;
    if (is_pods || scale_told != scale_text)
        closing = world.loop.start_timer(&world.loop, 0, close_it, NULL);
    return (struct world_answer){.status = 200,
                                 .body = is_pods ? PAGE("1", POD("web-1")) : scale_told};
}

static void observe_and_close(const char *told)
{
    answer(SCALE_PATH, 200, SCALE);
    observe(port, web);
    unsigned before = observed_count;
    scale_told = told;
    world.serve = serve_and_close;
    port->observe(port, 7, web, &(struct as_observe_request){.with_pods = true}, keep_pods, NULL);
    world_run(&world);
    cr_assert_not_null(closing);
    cr_expect_null(port);
    cr_expect_eq(observed_count, before);
}

Test(kubernetes_pods, nothing_is_told_after_close_between_pages)
{
    observe_and_close(scale_text);
    const struct world_request *request = &world.requests[world.request_count - 1];
    cr_expect_str_eq(request->url, "https://k:6443" NEXT("1"));
    cr_expect(request->is_cancelled);
}

Test(kubernetes_pods, nothing_is_told_after_close_of_what_could_not_be_asked)
{
    char text[AS_TARGET_URL_MAX + 256];
    write_long_scale(text, sizeof(text));
    observe_and_close(text);
}

/* Has the port closed while an owner is read, or its kind is looked up. */
static struct world_answer serve_owners_and_close(void *context,
                                                  const struct world_request *request)
{
    const char *pods = context;
    const bool is_pods = strstr(request->url, "/pods?") != NULL;
    if (is_pods) /* the next request is on its way */
        closing = world.loop.start_timer(&world.loop, 0, close_it, NULL);
    return (struct world_answer){.status = 200, .body = is_pods ? pods : SCALE};
}

static void observe_owners_and_close(const struct as_target_ref *ref, const char *path, char *pods)
{
    const struct as_observe_request request = {.with_pods = true, .with_owners = true};
    answer(path, 200, SCALE);
    observe(port, ref);
    const unsigned before = observed_count;
    world.serve = serve_owners_and_close;
    world.serve_context = pods;
    port->observe(port, 7, ref, &request, keep_owners, NULL);
    world_run(&world);
    cr_assert_not_null(closing);
    cr_expect_null(port);
    cr_expect_eq(observed_count, before);
    cr_expect(world.requests[world.request_count - 1].is_cancelled);
}

Test(kubernetes_pods, nothing_is_told_after_close_while_an_owner_is_read)
{
    static char pods[] = PAGE("", OF_RS("a", "1"));
    observe_owners_and_close(web, SCALE_PATH, pods);
}

Test(kubernetes_pods, nothing_is_told_after_close_while_an_owner_is_looked_up)
{
    static char pods[] = PAGE("", OWNED("a", JOB, "load", "j-1", ""));
    AS_CLEANUP(as_target_ref_free_p)
    struct as_target_ref *fleet = make_ref("example.com/v1", "Fleet", "shop", "web");
    answer(SCALE_PATH, 200, SCALE);
    observe(port, web); /* reads the answer of the setup */
    answer("/apis/example.com/v1", 200, FLEETS);
    observe_owners_and_close(fleet, FLEETS_PATH, pods);
}
