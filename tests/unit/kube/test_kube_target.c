/*
 * The Kubernetes adapter against a scripted API server: discovery once, conditional updates, one
 * reason for each failure, new credentials after a 401, an Event for each action.
 */
#include <alertscaler/base/alloc.h>
#include <alertscaler/kube/kube_target.h>

#include <alertscaler/http/access_limits.h>
#include <alertscaler/kube/target_outcome.h>

#include "support.h"

#define SCALE_PATH  "/apis/apps/v1/namespaces/shop/deployments/web/scale"
#define EVENTS_PATH "/api/v1/namespaces/shop/events"
#define APPS                                                                                       \
    "{\"kind\":\"APIResourceList\",\"groupVersion\":\"apps/v1\",\"resources\":["                   \
    "{\"name\":\"deployments\",\"kind\":\"Deployment\",\"namespaced\":true},"                      \
    "{\"name\":\"deployments/scale\",\"kind\":\"Scale\",\"group\":\"autoscaling\","                \
    "\"version\":\"v1\",\"namespaced\":true},"                                                     \
    "{\"name\":\"daemonsets\",\"kind\":\"DaemonSet\",\"namespaced\":true}]}"
#define SCALE_OF(replicas, version)                                                                \
    "{\"kind\":\"Scale\",\"apiVersion\":\"autoscaling/v1\",\"metadata\":{\"name\":\"web\","        \
    "\"namespace\":\"shop\",\"uid\":\"u-1\",\"resourceVersion\":\"" version                        \
    "\"},\"spec\":{\"replicas\":" #replicas "},\"status\":{\"replicas\":3}}"
#define STATUS(message, more)                                                                      \
    "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"message\":\"" message     \
    "\",\"details\":{" more "}}"

static char directory[] = "/tmp/as-kube-XXXXXX", kubeconfig[64], token[64];
static struct as_target_port *port;
static struct as_target_ref *web;

static const char token_file_config[] =
    "current-context: c\n"
    "clusters: [{name: c, cluster: {server: 'https://k:6443', certificate-authority: ca.crt}}]\n"
    "contexts: [{name: c, context: {cluster: c, user: u}}]\n"
    "users: [{name: u, user: {tokenFile: token}}]\n";

static void open_port(const char *config_text)
{
    struct as_error error = AS_ERROR_INIT;
    struct as_kube_access *access;
    write_file(kubeconfig, config_text);
    struct as_kube_access_config config = {kubeconfig, NULL};
    cr_assert_eq(as_kube_access_new(&config, &env, &access, &error), 0, "%s", error.text);
    port = as_kubernetes_new(access, &env);
}

static void setup(void)
{
    setup_world();
    cr_assert_not_null(mkdtemp(directory));
    snprintf(kubeconfig, sizeof(kubeconfig), "%s/config", directory);
    snprintf(token, sizeof(token), "%s/token", directory);
    write_file(token, "token-1\n");
    open_port(token_file_config);
    web = make_ref("apps/v1", "Deployment", "shop", "web");
}

static void teardown(void)
{
    if (port)
        port->close(port);
    as_target_ref_free(web);
    unlink(kubeconfig);
    unlink(token);
    rmdir(directory);
    teardown_world();
}

TestSuite(kubernetes, .init = setup, .fini = teardown);

static void answer(const char *method, const char *path, int status, const char *body)
{
    world_answer(&world, (struct world_answer){method, path, .status = status, .body = body});
}

/* So that a test can begin with discovery behind it. */
static void discover(void)
{
    answer("GET", "/apis/apps/v1", 200, APPS);
    answer("GET", SCALE_PATH, 200, SCALE_OF(4, "100"));
    observe(port, web);
    cr_assert_eq(observation.outcome, AS_REASON_APPLIED, "%s", observation.message);
}

static const struct world_request *get_request(size_t from_end)
{
    return &world.requests[world.request_count - from_end];
}

Test(kubernetes, observing_is_discovery_once_and_one_get)
{
    discover();
    cr_expect_eq(observation.replicas, 4);
    cr_expect_eq(observation.status_replicas, 3);
    cr_expect_eq(observation.min, -1);
    cr_expect_eq(observation.max, -1);
    cr_expect_not(observation.in_progress);
    cr_expect_str_eq(observation.version, "100");
    cr_expect_eq(observation.http_status, 200);
    answer("GET", SCALE_PATH, 200, SCALE_OF(5, "101"));
    observe(port, web);
    cr_expect_eq(observation.replicas, 5);
    cr_expect_eq(world.request_count, 3);

    const struct world_request *request = get_request(1);
    cr_expect_str_eq(request->url, "https://k:6443" SCALE_PATH);
    cr_expect_str_eq(request->headers, "Accept: application/json\nAuthorization: Bearer token-1\n");
    cr_expect_null(request->body);
    cr_expect_eq(request->timeout_us, AS_KUBE_TIMEOUT_US);
    cr_expect_eq(request->max_response, AS_TARGET_RESPONSE_MAX);
    cr_expect_eq(world.requests[0].max_response, AS_KUBE_DISCOVERY_MAX);
    char ca[80];
    snprintf(ca, sizeof(ca), "%s/ca.crt", directory);
    cr_expect_str_eq(request->ca_file, ca);
}

Test(kubernetes, the_core_group_and_cluster_wide_kinds_have_their_own_paths)
{
    struct as_target_ref *controller = make_ref("v1", "ReplicationController", "shop", "rc");
    answer("GET", "/api/v1", 200,
           "{\"groupVersion\":\"v1\",\"resources\":[{\"name\":\"replicationcontrollers\",\"kind\":"
           "\"ReplicationController\",\"namespaced\":true},{\"name\":\"replicationcontrollers/"
           "scale\",\"kind\":\"Scale\"}]}");
    answer("GET", "/api/v1/namespaces/shop/replicationcontrollers/rc/scale", 200, SCALE_OF(1, "5"));
    observe(port, controller);
    cr_expect_eq(observation.outcome, AS_REASON_APPLIED);
    as_target_ref_free(controller);

    struct as_target_ref *pool = make_ref("example.com/v1", "Pool", "ignored", "p");
    answer("GET", "/apis/example.com/v1", 200,
           "{\"groupVersion\":\"example.com/v1\",\"resources\":[{\"name\":\"pools\",\"kind\":"
           "\"Pool\",\"namespaced\":false},{\"name\":\"pools/scale\",\"kind\":\"Scale\",\"group\":"
           "\"autoscaling\",\"version\":\"v1\"}]}");
    answer("PUT", "/apis/example.com/v1/pools/p/scale", 200, SCALE_OF(2, "6"));
    answer("POST", "/api/v1/namespaces/default/events", 201, "{}");
    scale(port, pool, 1, 2, "5");
    cr_expect_eq(result.outcome, AS_REASON_APPLIED);
    cr_expect_null(strstr(get_request(2)->body, "namespace"));
    as_target_ref_free(pool);
}

Test(kubernetes, the_event_of_an_operators_size_names_the_command)
{
    discover();
    answer("PUT", SCALE_PATH, 200, SCALE_OF(6, "101"));
    answer("POST", EVENTS_PATH, 201, "{}");
    const struct as_scale_request request = {
        .from = 4, .to = 6, .decision_id = "01HC", .is_ordered = true, .rule = "", .alert = ""};
    send_scale(port, web, request, "100");
    cr_expect_eq(result.outcome, AS_REASON_APPLIED);
    cr_expect_not_null(
        strstr(get_request(1)->body, "\"New size: 6; reason: an operator's command 01HC\""));
}

Test(kubernetes, scaling_is_a_conditional_put_and_an_event)
{
    discover();
    answer("PUT", SCALE_PATH, 200, SCALE_OF(6, "101"));
    answer("POST", EVENTS_PATH, 201, "{}");
    scale(port, web, 4, 6, "100");
    cr_expect_eq(result.outcome, AS_REASON_APPLIED);
    cr_expect_not(result.is_ambiguous);
    cr_expect_eq(result.http_status, 200);
    cr_expect_eq(result.attempts, 1);
    cr_expect_str_eq(result.method, "PUT");
    cr_expect_str_eq(result.path, SCALE_PATH);
    cr_expect_str_eq(result.message, "");
    const struct world_request *put = get_request(2), *post = get_request(1);
    cr_expect_str_eq(put->body,
                     "{\"apiVersion\":\"autoscaling/v1\",\"kind\":\"Scale\",\"metadata\":{\"name\":"
                     "\"web\",\"namespace\":\"shop\",\"resourceVersion\":\"100\"},\"spec\":{"
                     "\"replicas\":6}}");
    cr_expect_not_null(strstr(put->headers, "Content-Type: application/json\n"));
    cr_expect_not_null(strstr(post->body, "\"message\":\"New size: 6; reason: rule slow (alert "
                                          "Latency); decision 01HD\""));
    cr_expect_not_null(strstr(post->body, "\"reason\":\"SuccessfulRescale\""));
    cr_expect_not_null(strstr(post->body, "\"uid\":\"u-1\""));
}

Test(kubernetes, every_failure_of_an_observation)
{
    static const struct {
        enum as_http_outcome transport;
        int status;
        const char *body;
        enum as_reason reason;
        const char *message;
    } rows[] = {
        {AS_HTTP_ANSWERED, 400, STATUS("bad", ""), AS_REASON_REJECTED, "bad"},
        {AS_HTTP_ANSWERED, 403, STATUS("no\\nentry", ""), AS_REASON_FORBIDDEN, "no entry"},
        {AS_HTTP_ANSWERED, 404, STATUS("not there", "\"name\":\"web\""), AS_REASON_TARGET_NOT_FOUND,
         "not there"},
        {AS_HTTP_ANSWERED, 500, "<html>", AS_REASON_UNREACHABLE, "HTTP 500"},
        {AS_HTTP_ANSWERED, 200, "{\"kind\":\"Deployment\"}", AS_REASON_REJECTED,
         "not a Scale object: kind: expected Scale"},
        {AS_HTTP_ANSWERED, 200, "", AS_REASON_REJECTED, "not a Scale object: not JSON"},
        {AS_HTTP_UNREACHABLE, 0, "", AS_REASON_UNREACHABLE, "transport"},
        {AS_HTTP_BROKEN, 0, "", AS_REASON_UNREACHABLE, "transport"},
        {AS_HTTP_TIMEOUT, 0, "", AS_REASON_TIMEOUT, "transport"},
        {AS_HTTP_TOO_LARGE, 0, "", AS_REASON_REJECTED, "transport"},
    };
    discover();
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        world_answer(&world,
                     (struct world_answer){"GET", SCALE_PATH, rows[i].transport, rows[i].status,
                                           .body = rows[i].body, .error = "transport"});
        observe(port, web);
        cr_expect_eq(observation.outcome, rows[i].reason, "row %zu", i);
        cr_expect_eq(observation.http_status, rows[i].status, "row %zu", i);
        cr_expect_eq(strncmp(observation.message, rows[i].message, strlen(rows[i].message)), 0,
                     "row %zu: %s", i, observation.message);
    }
}

Test(kubernetes, every_failure_of_a_scaling)
{
    static const struct {
        enum as_http_outcome transport;
        int status;
        const char *body;
        enum as_reason reason;
        bool is_ambiguous, has_event;
    } rows[] = {
        {AS_HTTP_ANSWERED, 400, "", AS_REASON_REJECTED, false, true},
        {AS_HTTP_ANSWERED, 403, "", AS_REASON_FORBIDDEN, false, true},
        {AS_HTTP_ANSWERED, 404, STATUS("", "\"name\":\"web\""), AS_REASON_TARGET_NOT_FOUND, false,
         false},
        {AS_HTTP_ANSWERED, 409, "", AS_REASON_CONFLICT, false, false},
        {AS_HTTP_ANSWERED, 422, "", AS_REASON_REJECTED, false, true},
        {AS_HTTP_ANSWERED, 429, "", AS_REASON_THROTTLED, false, true},
        {AS_HTTP_ANSWERED, 500, "", AS_REASON_UNREACHABLE, true, true},
        {AS_HTTP_ANSWERED, 503, "", AS_REASON_UNREACHABLE, true, true},
        {AS_HTTP_ANSWERED, 504, "", AS_REASON_UNREACHABLE, true, true},
        {AS_HTTP_ANSWERED, 200, "not json", AS_REASON_REJECTED, true, true},
        {AS_HTTP_UNREACHABLE, 0, "", AS_REASON_UNREACHABLE, false, false},
        {AS_HTTP_BROKEN, 0, "", AS_REASON_UNREACHABLE, true, true},
        {AS_HTTP_TIMEOUT, 0, "", AS_REASON_TIMEOUT, true, true},
        {AS_HTTP_TOO_LARGE, 0, "", AS_REASON_REJECTED, true, true},
    };
    discover();
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        size_t before = world.request_count;
        world_answer(&world,
                     (struct world_answer){"PUT", SCALE_PATH, rows[i].transport, rows[i].status,
                                           .body = rows[i].body, .error = "transport"});
        if (rows[i].has_event)
            answer("POST", EVENTS_PATH, 201, "{}");
        scale(port, web, 4, 6, "100");
        cr_expect_eq(result.outcome, rows[i].reason, "row %zu", i);
        cr_expect_eq(result.is_ambiguous, rows[i].is_ambiguous, "row %zu", i);
        cr_expect_eq(result.http_status, rows[i].status, "row %zu", i);
        cr_expect_eq(result.attempts, 1, "row %zu", i);
        cr_expect_eq(world.request_count, before + 1 + rows[i].has_event, "row %zu", i);
        if (rows[i].has_event) {
            cr_expect_not_null(strstr(get_request(1)->body, "\"FailedRescale\""));
            cr_expect_not_null(strstr(get_request(1)->body, "\"type\":\"Warning\""));
            cr_expect_not_null(strstr(get_request(1)->body, "\"uid\":\"u-1\""));
        }
    }
}

Test(kubernetes, retry_after_from_the_header_or_the_status)
{
    discover();
    world_answer(&world, (struct world_answer){"GET", SCALE_PATH, .status = 429,
                                               .body = STATUS("", "\"retryAfterSeconds\":9"),
                                               .retry_after = "2"});
    observe(port, web);
    cr_expect_eq(observation.outcome, AS_REASON_THROTTLED);
    cr_expect_eq(observation.retry_after_us, 2 * AS_US_PER_S);
    answer("GET", SCALE_PATH, 429, STATUS("", "\"retryAfterSeconds\":9"));
    observe(port, web);
    cr_expect_eq(observation.retry_after_us, 9 * AS_US_PER_S);
    world_answer(&world, (struct world_answer){"GET", SCALE_PATH, .status = 503,
                                               .retry_after = "Sat, 21 Nov 2026 10:01:00 GMT"});
    observe(port, web);
    cr_expect_eq(observation.retry_after_us, 60 * AS_US_PER_S);
}

Test(kubernetes, another_size_than_asked_for_is_rejected)
{
    discover();
    answer("PUT", SCALE_PATH, 200, SCALE_OF(5, "101"));
    answer("POST", EVENTS_PATH, 201, "{}");
    scale(port, web, 4, 6, "100");
    cr_expect_eq(result.outcome, AS_REASON_REJECTED);
    cr_expect(result.is_ambiguous);
    cr_expect_str_eq(result.message,
                     "asked for size 6, but the cluster made it 5 (an admission webhook?)");
}

/* Discovery */

Test(kubernetes, many_at_a_time_share_one_discovery)
{
    answer("GET", "/apis/apps/v1", 200, APPS);
    for (int i = 0; i < 3; i++) {
        answer("GET", SCALE_PATH, 200, SCALE_OF(4, "100"));
        port->observe(port, (uint64_t)i, web, &(struct as_observe_request){0}, keep_observation,
                      NULL);
    }
    world_run(&world);
    cr_expect_eq(observed_count, 3);
    cr_expect_eq(world.request_count, 4);
}

Test(kubernetes, a_failed_discovery_is_everyones_failure_and_is_asked_again)
{
    answer("GET", "/apis/apps/v1", 403, STATUS("no discovery for you", ""));
    port->observe(port, 1, web, &(struct as_observe_request){0}, keep_observation, NULL);
    port->observe(port, 2, web, &(struct as_observe_request){0}, keep_observation, NULL);
    world_run(&world);
    cr_expect_eq(observed_count, 2);
    cr_expect_eq(observation.outcome, AS_REASON_FORBIDDEN);
    cr_expect_str_eq(observation.message, "no discovery for you");
    world_answer(&world,
                 (struct world_answer){"GET", "/apis/apps/v1", AS_HTTP_TIMEOUT, .error = "t"});
    scale(port, web, 4, 6, "100");
    cr_expect_eq(result.outcome, AS_REASON_TIMEOUT);
    cr_expect_not(result.is_ambiguous);
    cr_expect_eq(result.attempts, 0);
    discover();
}

Test(kubernetes, kinds_that_cannot_be_scaled_say_so)
{
    struct as_target_ref *daemon = make_ref("apps/v1", "DaemonSet", "shop", "d");
    struct as_target_ref *unknown = make_ref("apps/v1", "Deploymnet", "shop", "d");
    struct as_target_ref *group = make_ref("nope.example/v1", "A", "shop", "d");
    discover();
    observe(port, daemon);
    cr_expect_eq(observation.outcome, AS_REASON_REJECTED);
    cr_expect_str_eq(observation.message, "DaemonSet of apps/v1 has no scale subresource");
    observe(port, unknown);
    cr_expect_eq(observation.outcome, AS_REASON_TARGET_NOT_FOUND);
    cr_expect_str_eq(observation.message, "the cluster has no kind Deploymnet in apps/v1");
    cr_expect_eq(world.request_count, 2);
    answer("GET", "/apis/nope.example/v1", 404, "404 page not found");
    observe(port, group);
    cr_expect_eq(observation.outcome, AS_REASON_TARGET_NOT_FOUND);
    cr_expect_str_eq(observation.message, "the cluster does not serve nope.example/v1");
    as_target_ref_free(daemon);
    as_target_ref_free(unknown);
    as_target_ref_free(group);
}

Test(kubernetes, what_was_not_there_is_looked_for_again_after_a_while)
{
    struct as_target_ref *group = make_ref("late.example/v1", "A", "shop", "d");
    answer("GET", "/apis/late.example/v1", 404, "");
    observe(port, group);
    world_advance(&world, AS_KUBE_DISCOVERY_REFRESH_US - 1);
    observe(port, group);
    cr_expect_eq(world.request_count, 1);
    world_advance(&world, 1);
    answer("GET", "/apis/late.example/v1", 200,
           "{\"groupVersion\":\"late.example/v1\",\"resources\":[{\"name\":\"as\",\"kind\":\"A\","
           "\"namespaced\":true},{\"name\":\"as/scale\",\"kind\":\"Scale\"}]}");
    answer("GET", "/apis/late.example/v1/namespaces/shop/as/d/scale", 200, SCALE_OF(1, "1"));
    observe(port, group);
    cr_expect_eq(observation.outcome, AS_REASON_APPLIED);
    as_target_ref_free(group);
}

/* A 404 about the path, not about the object: the kind may be served under another name now. */
Test(kubernetes, a_path_that_is_gone_is_looked_up_again_once)
{
    discover();
    world_advance(&world, AS_KUBE_DISCOVERY_REFRESH_US);
    answer("GET", SCALE_PATH, 404, "404 page not found");
    answer("GET", "/apis/apps/v1", 200,
           "{\"groupVersion\":\"apps/v1\",\"resources\":[{\"name\":\"deployments2\",\"kind\":"
           "\"Deployment\",\"namespaced\":true},{\"name\":\"deployments2/scale\",\"kind\":"
           "\"Scale\"}]}");
    answer("GET", "/apis/apps/v1/namespaces/shop/deployments2/web/scale", 200, SCALE_OF(4, "1"));
    observe(port, web);
    cr_expect_eq(observation.outcome, AS_REASON_APPLIED);
    world_advance(&world, 10 * AS_KUBE_DISCOVERY_REFRESH_US);
    answer("GET", "/deployments2/web/scale", 404, "");
    answer("GET", "/apis/apps/v1", 200, APPS);
    answer("GET", SCALE_PATH, 404, "");
    observe(port, web);
    cr_expect_eq(observation.outcome, AS_REASON_TARGET_NOT_FOUND);
    /* ... and not sooner than after a while. */
    answer("GET", SCALE_PATH, 404, "");
    observe(port, web);
    cr_expect_eq(observation.outcome, AS_REASON_TARGET_NOT_FOUND);
}

Test(kubernetes, a_deleted_object_costs_no_discovery)
{
    discover();
    world_advance(&world, 10 * AS_KUBE_DISCOVERY_REFRESH_US);
    answer("GET", SCALE_PATH, 404, STATUS("deployments \\\"web\\\" not found", "\"name\":\"web\""));
    observe(port, web);
    cr_expect_eq(observation.outcome, AS_REASON_TARGET_NOT_FOUND);
    cr_expect_str_eq(observation.message, "deployments \"web\" not found");
}

/* Credentials */

Test(kubernetes, a_refused_token_is_read_again_and_tried_once_more)
{
    discover();
    write_file(token, "token-2");
    answer("PUT", SCALE_PATH, 401, STATUS("Unauthorized", ""));
    answer("PUT", SCALE_PATH, 200, SCALE_OF(6, "101"));
    answer("POST", EVENTS_PATH, 201, "{}");
    scale(port, web, 4, 6, "100");
    cr_expect_eq(result.outcome, AS_REASON_APPLIED);
    cr_expect_eq(result.attempts, 2);
    cr_expect_not_null(strstr(get_request(3)->headers, "Bearer token-1\n"));
    cr_expect_not_null(strstr(get_request(2)->headers, "Bearer token-2\n"));
}

Test(kubernetes, a_token_that_stays_refused_is_forbidden)
{
    discover();
    answer("GET", SCALE_PATH, 401, STATUS("Unauthorized", ""));
    answer("GET", SCALE_PATH, 401, STATUS("Unauthorized", ""));
    observe(port, web);
    cr_expect_eq(observation.outcome, AS_REASON_FORBIDDEN);
    cr_expect_str_eq(observation.message, "Unauthorized");
}

Test(kubernetes, a_rotated_token_is_seen_by_itself)
{
    discover();
    write_file(token, "token-2");
    answer("GET", SCALE_PATH, 200, SCALE_OF(4, "100"));
    observe(port, web);
    cr_expect_not_null(strstr(get_request(1)->headers, "Bearer token-1\n"));
    usleep(1100 * 1000); /* a younger change needs a second look */
    world_advance(&world, AS_SECRET_FILE_CHECK_US);
    answer("GET", SCALE_PATH, 200, SCALE_OF(4, "100"));
    observe(port, web);
    cr_expect_not_null(strstr(get_request(1)->headers, "Bearer token-2\n"));
}

Test(kubernetes, without_a_token_nothing_is_sent)
{
    unlink(token);
    observe(port, web);
    cr_expect_eq(observation.outcome, AS_REASON_UNREACHABLE);
    cr_expect_not_null(strstr(observation.message, "/token: No such file or directory"));
    cr_expect_eq(world.request_count, 0);
}

/* Events */

Test(kubernetes, a_failed_event_is_nobodys_failure)
{
    discover();
    for (int i = 0; i < 2; i++) {
        answer("PUT", SCALE_PATH, 200, SCALE_OF(6, "101"));
        answer("POST", EVENTS_PATH, 403, STATUS("no events for you", ""));
        scale(port, web, 4, 6, "100");
        cr_expect_eq(result.outcome, AS_REASON_APPLIED);
    }
}

static void expect_flow(size_t first, const char *credential)
{
    for (size_t i = first; i < world.request_count; i++) {
        cr_expect_str_eq(world.requests[i].target, web->id, "%s", world.requests[i].url);
        cr_expect_str_eq(world.requests[i].credential, credential, "%s", world.requests[i].url);
    }
}

Test(kubernetes, requests_belong_to_the_target_and_to_the_credential_that_caused_them)
{
    discover();
    const size_t first = world.request_count;
    answer("GET", SCALE_PATH, 200, SCALE_OF(4, "100"));
    port->observe(port, 7, web, &(struct as_observe_request){.credential = "team"},
                  keep_observation, NULL);
    answer("PUT", SCALE_PATH, 200, SCALE_OF(6, "101"));
    answer("POST", EVENTS_PATH, 201, "{}");
    send_scale(port, web,
               (struct as_scale_request){.credential = "team",
                                         .from = 4,
                                         .to = 6,
                                         .decision_id = "01HD",
                                         .rule = "slow",
                                         .alert = "Latency"},
               "100");
    cr_expect_eq(world.request_count, first + 3);
    expect_flow(first, "team");
}

static void expect_event(size_t request, const char *kind, const char *name, const char *uid)
{
    AS_CLEANUP(as_free_p)
    char *kind_text = as_xasprintf("\"kind\":\"%s\"", kind);
    AS_CLEANUP(as_free_p) char *name_text = as_xasprintf("\"name\":\"%s\"", name);
    AS_CLEANUP(as_free_p) char *uid_text = as_xasprintf("\"uid\":\"%s\"", uid);
    const char *body = world.requests[request].body;
    cr_expect(strstr(body, kind_text) && strstr(body, name_text) && strstr(body, uid_text), "%s",
              body);
    cr_expect(strstr(body, "New size: 6; reason: rule shop/checkout/slow (alert Latency)"), "%s",
              body);
}

Test(kubernetes, the_policy_of_a_target_gets_the_same_event)
{
    discover();
    answer("PUT", SCALE_PATH, 200, SCALE_OF(6, "101"));
    answer("POST", EVENTS_PATH, 201, "{}");
    answer("POST", EVENTS_PATH, 201, "{}");
    send_scale(port, web,
               (struct as_scale_request){.from = 4,
                                         .to = 6,
                                         .decision_id = "01HD",
                                         .rule = "shop/checkout/slow",
                                         .alert = "Latency",
                                         .policy = {"shop", "checkout", "uid-of-policy"}},
               "100");
    expect_event(world.request_count - 2, "Deployment", "web", "u-1");
    expect_event(world.request_count - 1, "ScalingPolicy", "checkout", "uid-of-policy");
    cr_expect(strstr(world.requests[world.request_count - 1].body,
                     "\"apiVersion\":\"alertscaler.io/v1alpha1\""));
}

Test(kubernetes, narrowed_credentials_leave_half_of_the_events_to_others)
{
    discover();
    for (int i = 0; i < AS_KUBE_EVENTS_BURST; i++) {
        answer("PUT", SCALE_PATH, 200, SCALE_OF(6, "101"));
        if (i < AS_KUBE_EVENTS_BURST / 2)
            answer("POST", EVENTS_PATH, 201, "{}");
        send_scale(port, web,
                   (struct as_scale_request){.credential = "team",
                                             .from = 4,
                                             .to = 6,
                                             .decision_id = "01HD",
                                             .rule = "slow",
                                             .alert = "Latency"},
                   "100");
    }
    answer("PUT", SCALE_PATH, 200, SCALE_OF(6, "101"));
    answer("POST", EVENTS_PATH, 201, "{}");
    scale(port, web, 4, 6, "100");
}

Test(kubernetes, events_are_limited_in_rate)
{
    discover();
    for (int i = 0; i < AS_KUBE_EVENTS_BURST + 5; i++) {
        answer("PUT", SCALE_PATH, 200, SCALE_OF(6, "101"));
        if (i < AS_KUBE_EVENTS_BURST)
            answer("POST", EVENTS_PATH, 201, "{}");
        scale(port, web, 4, 6, "100");
    }
    world_advance(&world, AS_US_PER_S / AS_KUBE_EVENTS_PER_S);
    answer("PUT", SCALE_PATH, 200, SCALE_OF(6, "101"));
    answer("POST", EVENTS_PATH, 201, "{}");
    scale(port, web, 4, 6, "100");
}

/* The end */

Test(kubernetes, nothing_is_told_after_close)
{
    discover();
    unsigned before = observed_count;
    struct as_target_ref *other = make_ref("other.example/v1", "A", "shop", "a");
    struct as_target_ref *daemon = make_ref("apps/v1", "DaemonSet", "shop", "d");
    port->observe(port, 1, web, &(struct as_observe_request){0}, keep_observation,
                  NULL); /* a request */
    port->observe(port, 2, other, &(struct as_observe_request){0}, keep_observation,
                  NULL); /* discovery */
    port->observe(port, 3, daemon, &(struct as_observe_request){0}, keep_observation,
                  NULL); /* a timer */
    port->close(port);
    port = NULL;
    world_run(&world);
    cr_expect_eq(observed_count, before);
    cr_expect(get_request(1)->is_cancelled);
    as_target_ref_free(other);
    as_target_ref_free(daemon);
}
