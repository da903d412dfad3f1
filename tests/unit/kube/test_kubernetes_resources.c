/*
 * The Kubernetes adapter on resources of containers, against a scripted API server: the size is
 * that of the smallest pod, and what cannot be resized in place says why.
 */
#include <alertscaler/kube/kube_target.h>

#include "support.h"

#define CART_PATH   "/apis/apps/v1/namespaces/shop/deployments/cart"
#define LIST_PATH   "/api/v1/namespaces/shop/pods?labelSelector=app%3Dcart&limit=500"
#define POD_PATH(n) "/api/v1/namespaces/shop/pods/" n
#define EVENTS_PATH "/api/v1/namespaces/shop/events"
#define RESOURCES(request)                                                                         \
    "\"containers\":[{\"name\":\"app\",\"resources\":{\"requests\":{\"memory\":\"" request "\"}}}" \
    "]"
#define SELECTOR "\"selector\":{\"matchLabels\":{\"app\":\"cart\"}},"
#define CART_OF(version, more, containers)                                                         \
    "{\"kind\":\"Deployment\",\"metadata\":{\"name\":\"cart\",\"uid\":\"u-1\",\"resourceVersion\"" \
    ":\"" version "\"},\"spec\":{" more "\"template\":{\"spec\":{" containers "}}}}"
#define CART        CART_OF("100", SELECTOR, RESOURCES("256Mi"))
#define CART_PAUSED CART_OF("100", SELECTOR "\"paused\":true,", RESOURCES("256Mi"))
#define POD_AT(generation, kind, name, request)                                                    \
    "{" kind "\"metadata\":{\"name\":\"" name                                                      \
    "\",\"resourceVersion\":\"9\",\"generation\":" generation ","                                  \
    "\"labels\":{\"pod-template-hash\":\"a\"},\"ownerReferences\":[{\"kind\":\"ReplicaSet\","      \
    "\"name\":\"cart-a\",\"controller\":true}]},\"spec\":{\"nodeName\":\"n\"," RESOURCES(          \
        request) "},\"status\":{\"phase\":\"Running\",\"observedGeneration\":3}}"
#define POD_OF(kind, name, request) POD_AT("3", kind, name, request)
#define POD(name, request)          POD_OF("\"kind\":\"Pod\",", name, request)
#define LIST(first, second)                                                                        \
    "{\"kind\":\"PodList\",\"items\":[" POD_OF("", "a", first) "," POD_OF("", "b", second) "]}"

static char directory[] = "/tmp/as-kube-XXXXXX", kubeconfig[64];
static struct as_target_port *port;
static struct as_target_ref *cart;

static const char config_text[] = "current-context: c\n"
                                  "clusters: [{name: c, cluster: {server: 'https://k:6443'}}]\n"
                                  "contexts: [{name: c, context: {cluster: c, user: u}}]\n"
                                  "users: [{name: u, user: {token: t}}]\n";

static struct as_target_ref *make_workload(const char *kind, const char *name, const char *apply,
                                           const char *template_, const char *limits)
{
    const struct as_target_field fields[] = {{"cluster", "default"}, {"apiVersion", "apps/v1"},
                                             {"kind", kind},         {"namespace", "shop"},
                                             {"name", name},         {"unit", "64Mi"},
                                             {"container", "app"},   {"resource", "memory"},
                                             {"apply", apply},       {"template", template_},
                                             {"limits", limits}};
    return as_target_ref_make(
        &as_target_kind_kubernetes,
        "kubernetes/default/apps/v1/Deployment/shop/cart:container/app/memory", fields,
        AS_ARRAY_SIZE(fields));
}

static struct as_target_ref *make_cart(const char *apply)
{
    return make_workload("Deployment", "cart", apply, "false", "scale");
}

static void setup(void)
{
    struct as_error error = AS_ERROR_INIT;
    struct as_kube_access *access;
    setup_world();
    cr_assert_not_null(mkdtemp(directory));
    snprintf(kubeconfig, sizeof(kubeconfig), "%s/config", directory);
    write_file(kubeconfig, config_text);
    const struct as_kube_access_config config = {kubeconfig, NULL};
    cr_assert_eq(as_kube_access_new(&config, &env, &access, &error), 0, "%s", error.text);
    port = as_kubernetes_new(access, &env);
    cart = make_cart("pods");
}

static void teardown(void)
{
    if (port)
        port->close(port);
    as_target_ref_free(cart);
    unlink(kubeconfig);
    rmdir(directory);
    teardown_world();
}

TestSuite(kubernetes_resources, .init = setup, .fini = teardown);

static void answer(const char *method, const char *path, int status, const char *body)
{
    world_answer(&world, (struct world_answer){method, path, .status = status, .body = body});
}

static void answer_list(const char *list)
{
    answer("GET", CART_PATH, 200, CART);
    answer("GET", LIST_PATH, 200, list);
}

Test(kubernetes_resources, the_size_is_that_of_the_smallest_living_pod)
{
    answer_list(LIST("320Mi", "512Mi"));
    observe(port, cart);
    cr_assert_eq(observation.outcome, AS_REASON_APPLIED, "%s", observation.message);
    cr_expect_eq(observation.replicas, 5);
    cr_expect_str_eq(observation.uid, "u-1*64Mi");
    answer_list("{\"kind\":\"PodList\",\"items\":[]}");
    observe(port, cart);
    cr_expect_eq(observation.replicas, 4, "without pods, the template's");
}

Test(kubernetes_resources, an_increase_raises_only_pods_that_have_less)
{
    answer_list(LIST("256Mi", "512Mi"));
    answer("GET", POD_PATH("a"), 200, POD("a", "256Mi"));
    answer("PATCH", POD_PATH("a") "/resize", 200, POD("a", "320Mi"));
    answer("POST", EVENTS_PATH, 201, "{}");
    scale(port, cart, 4, 5, "");
    cr_expect_eq(result.outcome, AS_REASON_APPLIED, "%s", result.message);
    cr_expect_str_eq(result.message, "1 of 2 pods resized");
    const struct world_request *patch = &world.requests[world.request_count - 2];
    cr_expect_str_eq(patch->body,
                     "{\"metadata\":{\"resourceVersion\":\"9\"},\"spec\":{\"containers\":[{"
                     "\"name\":\"app\",\"resources\":{\"requests\":{\"memory\":\"320Mi\"}}}]}}");
}

/* Kubernetes before 1.33 has no such subresource: that is no pod that has gone. */
Test(kubernetes_resources, an_api_server_without_resize_is_named)
{
    answer_list(LIST("256Mi", "256Mi"));
    answer("GET", POD_PATH("a"), 200, POD("a", "256Mi"));
    answer("PATCH", POD_PATH("a") "/resize", 404, "404 page not found\n");
    answer("POST", EVENTS_PATH, 201, "{}");
    scale(port, cart, 4, 5, "");
    cr_expect_eq(result.outcome, AS_REASON_REJECTED);
    cr_expect_eq(result.http_status, 404);
    cr_expect_not(result.is_ambiguous);
    cr_expect_str_eq(result.message,
                     "0 of 2 pods resized, then pod a: the API server has no `resize` of pods: "
                     "`apply: pods` needs Kubernetes 1.33; use `apply: template`");
}

Test(kubernetes_resources, a_pod_that_has_gone_is_left_out)
{
    answer_list(LIST("256Mi", "256Mi"));
    answer("GET", POD_PATH("a"), 200, POD("a", "256Mi"));
    answer("PATCH", POD_PATH("a") "/resize", 404,
           "{\"kind\":\"Status\",\"message\":\"gone\",\"details\":{\"name\":\"a\"}}");
    answer("GET", POD_PATH("b"), 200, POD("b", "256Mi"));
    answer("PATCH", POD_PATH("b") "/resize", 200, POD("b", "320Mi"));
    answer("POST", EVENTS_PATH, 201, "{}");
    scale(port, cart, 4, 5, "");
    cr_expect_eq(result.outcome, AS_REASON_APPLIED, "%s", result.message);
    cr_expect_str_eq(result.message, "1 of 2 pods resized, 1 gone meanwhile");
}

/* Of pods that came after a moment, and no others. */
Test(kubernetes_resources, only_later_pods_are_resized)
{
#define OF(name, created) POD_OF("", name "\",\"creationTimestamp\":\"" created, "256Mi")
    static const char list[] = "{\"kind\":\"PodList\",\"items\":[" OF(
        "a", "2026-11-25T09:00:00Z") "," OF("b", "2026-11-25T09:05:00Z") "]}";
#undef OF
    struct as_scale_request request = {
        .from = 4, .to = 5, .decision_id = "d", .rule = "", .alert = ""};
    answer_list(list);
    observe(port, cart);
    const as_maybe_time newest = observation.resize.newest;
    cr_assert(newest.set);
    request.later_than = (as_maybe_time){true, {newest.at.us - AS_US_PER_MIN}};
    answer_list(list);
    answer("GET", POD_PATH("b"), 200, POD("b", "256Mi"));
    answer("PATCH", POD_PATH("b") "/resize", 200, POD("b", "320Mi"));
    answer("POST", EVENTS_PATH, 201, "{}");
    send_scale(port, cart, request, "");
    cr_expect_eq(result.outcome, AS_REASON_APPLIED, "%s", result.message);
    cr_expect_str_eq(result.message, "1 of 2 pods resized");
}

/* Nothing was resized: that is no step. */
Test(kubernetes_resources, without_pods_nothing_is_applied)
{
    answer_list("{\"kind\":\"PodList\",\"items\":[]}");
    scale(port, cart, 4, 5, "");
    cr_expect_eq(result.outcome, AS_REASON_NO_PODS);
    cr_expect_not(result.is_accepted);
    cr_expect_not(result.is_ambiguous);
    cr_expect_str_eq(result.message, "0 of 0 pods resized");
    answer_list(LIST("256Mi", "256Mi"));
    answer("GET", POD_PATH("a"), 404, "{\"kind\":\"Status\",\"details\":{\"name\":\"a\"}}");
    answer("GET", POD_PATH("b"), 404, "{\"kind\":\"Status\",\"details\":{\"name\":\"b\"}}");
    scale(port, cart, 4, 5, "");
    cr_expect_eq(result.outcome, AS_REASON_NO_PODS);
    cr_expect_str_eq(result.message, "0 of 2 pods resized, 2 gone meanwhile");
}

/* Who set it, if it is not what we set. */
Test(kubernetes_resources, a_template_that_others_have_changed_names_who_it_was)
{
    static const char managed[] =
        "{\"kind\":\"Deployment\",\"metadata\":{\"uid\":\"u-1\",\"resourceVersion\":\"101\","
        "\"managedFields\":[{\"manager\":\"vpa-updater\",\"time\":\"2026-11-24T10:00:09Z\","
        "\"fieldsV1\":{\"f:spec\":{\"f:template\":{\"f:spec\":{\"f:containers\":{"
        "\"k:{\\\"name\\\":\\\"app\\\"}\":{\"f:resources\":{\"f:requests\":{\"f:memory\":{}}}}}}}}}"
        "}"
        "]},\"spec\":{\"selector\":{\"matchLabels\":{\"app\":\"cart\"}},\"template\":{\"spec\":"
        "{" RESOURCES("256Mi") "}}}}";
    static const struct {
        const char *apply;
        int32_t own_size;
        const char *by;
    } cases[] = {{"template", 4, ""}, {"template", 6, "vpa-updater"}, {"pods", 6, ""}};
    for (size_t i = 0; i < AS_ARRAY_SIZE(cases); i++) {
        struct as_target_ref *ref = make_cart(cases[i].apply);
        answer("GET", CART_PATH, 200, managed);
        if (strcmp(cases[i].apply, "pods") == 0)
            answer("GET", LIST_PATH, 200, LIST("256Mi", "256Mi"));
        port->observe(
            port, 7, ref,
            &(struct as_observe_request){.has_own_size = true, .own_size = cases[i].own_size},
            keep_observation, NULL);
        world_run(&world);
        cr_expect_eq(observation.outcome, AS_REASON_APPLIED, "%s", observation.message);
        cr_expect_str_eq(observation.changed_by, cases[i].by, "%zu", i);
        as_target_ref_free(ref);
    }
}

Test(kubernetes_resources, a_throttled_resize_says_when_to_come_back)
{
    answer_list(LIST("256Mi", "256Mi"));
    answer("GET", POD_PATH("a"), 429,
           "{\"kind\":\"Status\",\"message\":\"later\",\"details\":{\"retryAfterSeconds\":9}}");
    answer("POST", EVENTS_PATH, 201, "{}");
    scale(port, cart, 4, 5, "");
    cr_expect_eq(result.outcome, AS_REASON_THROTTLED);
    cr_expect_eq(result.retry_after_us, 9 * AS_US_PER_S);
    cr_expect_str_eq(result.message, "0 of 2 pods resized, then pod a: later");
}

static void expect_unusable(const char *message)
{
    cr_expect_eq(result.outcome, AS_REASON_REJECTED, "%s", result.message);
    cr_expect_eq(result.http_status, 200, "%s", result.message);
    cr_expect_not(result.is_ambiguous);
    cr_expect_str_eq(result.message, message);
    cr_expect_not_null(
        strstr(world.requests[world.request_count - 1].body, "\"reason\":\"FailedRescale\""));
}

/* 0 means that no response was received. */
Test(kubernetes_resources, a_response_that_is_of_no_use_has_its_http_status)
{
    static const char no_request[] =
        "{\"kind\":\"Deployment\",\"metadata\":{\"uid\":\"u-1\",\"resourceVersion\":\"100\"},"
        "\"spec\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"app\"}]}}}}";
    struct as_target_ref *template_ = make_cart("template");
    answer("GET", CART_PATH, 200, "{}");
    answer("POST", EVENTS_PATH, 201, "{}");
    scale(port, cart, 4, 5, "");
    expect_unusable("kind: expected Deployment");
    answer_list(LIST("256Mi", "256Mi"));
    answer("GET", POD_PATH("a"), 200, "{}");
    answer("POST", EVENTS_PATH, 201, "{}");
    scale(port, cart, 4, 5, "");
    expect_unusable("0 of 2 pods resized, then pod a: kind: expected Pod");
    answer("GET", CART_PATH, 200, CART);
    scale(port, template_, 4, 5, "99*64Mi");
    cr_expect_eq(result.outcome, AS_REASON_CONFLICT);
    cr_expect_eq(result.http_status, 200);
    cr_expect_str_eq(result.message, "it has changed since it was observed");
    answer("GET", CART_PATH, 200, no_request);
    observe(port, template_);
    cr_expect_eq(observation.outcome, AS_REASON_REJECTED);
    cr_expect_eq(observation.http_status, 200);
    cr_expect_str_eq(observation.message, "container app of the pod template: it has no request of "
                                          "memory: set one first");
    as_target_ref_free(template_);
}

/* Its pods were resized: that is a step, whatever keeps the template from its change. */
Test(kubernetes_resources, resized_pods_are_a_step_without_their_template)
{
    static const char limited[] =
        "{\"kind\":\"Deployment\",\"metadata\":{\"uid\":\"u-1\",\"resourceVersion\":\"100\"},"
        "\"spec\":{\"paused\":true,\"selector\":{\"matchLabels\":{\"app\":\"cart\"}},\"template\":"
        "{\"spec\":{\"containers\":[{\"name\":\"app\",\"resources\":{\"requests\":{\"memory\":"
        "\"256Mi\"},\"limits\":{\"memory\":\"256Mi\"}}}]}}}}";
    struct as_target_ref *ref = make_workload("Deployment", "cart", "pods", "true", "keep");
    answer("GET", CART_PATH, 200, limited);
    answer("GET", LIST_PATH, 200, LIST("256Mi", "320Mi"));
    answer("GET", POD_PATH("a"), 200, POD("a", "256Mi"));
    answer("PATCH", POD_PATH("a") "/resize", 200, POD("a", "320Mi"));
    scale(port, ref, 4, 5, "");
    cr_expect_eq(result.outcome, AS_REASON_REJECTED);
    cr_expect_str_eq(result.message, "a request of 320Mi would be above the limit, 256Mi, which "
                                     "`limits: keep` leaves");
    cr_expect(result.is_accepted);
    as_target_ref_free(ref);
}

#define CHANGE                                                                                     \
    "{\"metadata\":{\"annotations\":{\"alertscaler.io/resized\":\"{\\\"container\\\":\\\"app\\\"," \
    "\\\"memory\\\":{\\\"requests\\\":{\\\"memory\\\":\\\"256Mi\\\"}}}\"},\"resourceVersion\":"    \
    "\"100\"},\"spec\":{\"template\":{\"spec\":{" RESOURCES("320Mi") "}}}}"

Test(kubernetes_resources, every_end_of_a_change_of_the_template)
{
    static const struct {
        int status;
        const char *body;
        enum as_reason reason;
        bool is_ambiguous, has_event;
        const char *message;
    } cases[] = {
        {200, CART_OF("101", SELECTOR, RESOURCES("320Mi")), AS_REASON_APPLIED, false, true, ""},
        {200, CART_OF("101", SELECTOR, RESOURCES("384Mi")), AS_REASON_REJECTED, true, true,
         "asked for size 5 (320Mi), but the cluster made it 384Mi (an admission webhook?)"},
        {200, CART_OF("101", SELECTOR, "\"containers\":[{\"name\":\"app\"}]"), AS_REASON_REJECTED,
         true, true, "asked for size 5 (320Mi), but the cluster made it  (an admission webhook?)"},
        {200, "{}", AS_REASON_REJECTED, true, true, "kind: expected Deployment"},
        {409, "{\"kind\":\"Status\",\"message\":\"changed\"}", AS_REASON_CONFLICT, false, false,
         "changed"},
        {422, "{\"kind\":\"Status\",\"message\":\"no\"}", AS_REASON_REJECTED, false, true, "no"},
        {404, "404 page not found", AS_REASON_TARGET_NOT_FOUND, false, false, "HTTP 404"},
        {500, "", AS_REASON_UNREACHABLE, true, true, "HTTP 500"},
    };
    struct as_target_ref *ref = make_cart("template");
    for (size_t i = 0; i < AS_ARRAY_SIZE(cases); i++) {
        const size_t before = world.request_count;
        answer("GET", CART_PATH, 200, CART);
        answer("PATCH", CART_PATH, cases[i].status, cases[i].body);
        if (cases[i].has_event)
            answer("POST", EVENTS_PATH, 201, "{}");
        scale(port, ref, 4, 5, "100*64Mi");
        cr_expect_eq(result.outcome, cases[i].reason, "%zu: %s", i, result.message);
        cr_expect_eq(result.is_ambiguous, cases[i].is_ambiguous, "%zu", i);
        cr_expect_not(result.is_accepted, "%zu", i);
        cr_expect_eq(result.http_status, cases[i].status, "%zu", i);
        cr_expect_str_eq(result.message, cases[i].message, "%zu", i);
        cr_expect_str_eq(result.method, "PATCH");
        cr_expect_str_eq(result.path, CART_PATH);
        cr_expect_eq(result.attempts, 2);
        const struct world_request *patch = &world.requests[before + 1];
        cr_expect_str_eq(patch->body, CHANGE);
        cr_expect_not_null(
            strstr(patch->headers, "Content-Type: application/strategic-merge-patch+json\n"));
        cr_expect_eq(world.request_count, before + 2 + cases[i].has_event, "%zu", i);
    }
    as_target_ref_free(ref);
}

Test(kubernetes_resources, the_template_is_changed_after_its_pods_unless_that_replaces_them)
{
    static const struct {
        const char *cart;
        int status; /* of the change of the template; 0: there is none */
        const char *body;
        enum as_reason reason;
        bool is_accepted;
        const char *message;
    } cases[] = {
        {CART_PAUSED, 200, CART_OF("101", SELECTOR, RESOURCES("320Mi")), AS_REASON_APPLIED, false,
         "1 of 2 pods resized; the template too"},
        {CART_PAUSED, 200, CART_PAUSED, AS_REASON_REJECTED, false,
         "asked for size 5 (320Mi), but the cluster made it 256Mi (an admission webhook?)"},
        {CART_PAUSED, 403, "{\"kind\":\"Status\",\"message\":\"no\"}", AS_REASON_FORBIDDEN, true,
         "no"},
        {CART_OF("100", SELECTOR "\"paused\":true,", RESOURCES("320Mi")), 0, "", AS_REASON_APPLIED,
         false, "1 of 2 pods resized"},
        {CART, 0, "", AS_REASON_APPLIED, false,
         "1 of 2 pods resized; the template is left alone, as its change would roll all pods"},
    };
    struct as_target_ref *ref = make_workload("Deployment", "cart", "pods", "true", "scale");
    for (size_t i = 0; i < AS_ARRAY_SIZE(cases); i++) {
        answer("GET", CART_PATH, 200, cases[i].cart);
        answer("GET", LIST_PATH, 200, LIST("256Mi", "320Mi"));
        answer("GET", POD_PATH("a"), 200, POD("a", "256Mi"));
        answer("PATCH", POD_PATH("a") "/resize", 200, POD("a", "320Mi"));
        if (cases[i].status)
            answer("PATCH", CART_PATH, cases[i].status, cases[i].body);
        answer("POST", EVENTS_PATH, 201, "{}");
        scale(port, ref, 4, 5, "");
        cr_expect_eq(result.outcome, cases[i].reason, "%zu: %s", i, result.message);
        cr_expect_eq(result.is_accepted, cases[i].is_accepted, "%zu", i);
        cr_expect_eq(result.is_ambiguous, i == 1, "%zu", i);
        cr_expect_str_eq(result.message, cases[i].message, "%zu", i);
        cr_expect_eq(result.attempts, cases[i].status ? 4 : 3, "%zu", i);
    }
    as_target_ref_free(ref);
}

Test(kubernetes_resources, what_cannot_be_resized_in_place_says_why)
{
    static const struct {
        const char *kind, *name, *cart, *message;
    } cases[] = {
        {"Job", "cart", NULL, "its kind has no pods whose resources can be sized"},
        {"Deployment", "..", NULL, "namespace or name cannot be part of a path"},
        {"Deployment", "cart", CART_OF("100", SELECTOR, "\"initContainers\":[{\"name\":\"app\"}]"),
         "the container is an init container, which ends before the others start: it cannot be "
         "resized in place; use `apply: template`"},
        {"Deployment", "cart", CART_OF("100", "", RESOURCES("256Mi")),
         "the workload has no selector: its pods are not known"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(cases); i++) {
        struct as_target_ref *ref =
            make_workload(cases[i].kind, cases[i].name, "pods", "false", "scale");
        if (cases[i].cart)
            answer("GET", CART_PATH, 200, cases[i].cart);
        observe(port, ref);
        cr_expect_eq(observation.outcome, AS_REASON_REJECTED);
        cr_expect_eq(observation.http_status, 0);
        cr_expect_str_eq(observation.message, cases[i].message);
        cr_expect_str_eq(observation.version, "");
        cr_expect_str_eq(observation.uid, cases[i].cart ? "u-1*64Mi" : "");
        as_target_ref_free(ref);
    }
}

/* The path of a workload is fixed: no discovery is asked about it. */
Test(kubernetes_resources, a_workload_that_is_gone_is_not_looked_up)
{
    answer("GET", CART_PATH, 404, "404 page not found");
    observe(port, cart);
    cr_expect_eq(observation.outcome, AS_REASON_TARGET_NOT_FOUND);
    cr_expect_eq(world.request_count, 1);
}

Test(kubernetes_resources, nothing_is_told_after_close)
{
    const struct as_scale_request request = {
        .from = 4, .to = 5, .decision_id = "d", .rule = "", .alert = ""};
    struct as_target_ref *job = make_workload("Job", "cart", "pods", "false", "scale");
    answer_list(LIST("256Mi", "256Mi"));
    answer("GET", POD_PATH("a"), 200, POD("a", "256Mi"));
    answer("PATCH", POD_PATH("a") "/resize", 200, POD_AT("4", "\"kind\":\"Pod\",", "a", "320Mi"));
    port->scale(port, 1, cart, &request, keep_result, NULL);
    world_run(&world); /* the kubelet has not answered: a timer */
    port->scale(port, 2, cart, &request, keep_result, NULL); /* a request */
    port->observe(port, 3, job, &(struct as_observe_request){0}, keep_observation, NULL);
    cr_expect_not(port->is_idle(port));
    port->close(port);
    port = NULL;
    world_run(&world);
    cr_expect_eq(observed_count + scaled_count, 0);
    as_target_ref_free(job);
}
