/*
 * The Kubernetes adapter on fields of objects, against a scripted API server: a change reads the
 * object first, and is refused or observed again whenever the object is not as it was decided for.
 */
#include <alertscaler/kube/kube_target.h>

#include <alertscaler/kube/target_outcome.h>

#include "support.h"

#define CLAIM_PATH  "/api/v1/namespaces/shop/persistentvolumeclaims/data"
#define PATCH_PATH  CLAIM_PATH "?fieldManager=alertscaler"
#define EVENTS_PATH "/api/v1/namespaces/shop/events"
#define CORE                                                                                       \
    "{\"kind\":\"APIResourceList\",\"groupVersion\":\"v1\",\"resources\":[{\"name\":"              \
    "\"persistentvolumeclaims\",\"kind\":\"PersistentVolumeClaim\",\"namespaced\":true}]}"
#define CLAIM_OF(storage, version)                                                                 \
    "{\"kind\":\"PersistentVolumeClaim\",\"metadata\":{\"name\":\"data\",\"uid\":\"u-1\","         \
    "\"resourceVersion\":\"" version "\"},\"spec\":{\"resources\":{\"requests\":{\"storage\":"     \
    "\"" storage "\"}}}}"
#define STATUS(message, more)                                                                      \
    "{\"kind\":\"Status\",\"status\":\"Failure\",\"message\":\"" message "\",\"details\":{" more   \
    "}}"

static char directory[] = "/tmp/as-kube-XXXXXX", kubeconfig[64];
static struct as_target_port *port;
static struct as_target_ref *claim;

static const char config_text[] = "current-context: c\n"
                                  "clusters: [{name: c, cluster: {server: 'https://k:6443'}}]\n"
                                  "contexts: [{name: c, context: {cluster: c, user: u}}]\n"
                                  "users: [{name: u, user: {token: t}}]\n";

static struct as_target_ref *make_field_ref(const char *api_version, const char *kind,
                                            const char *name, const char *field, const char *unit)
{
    const struct as_target_field fields[] = {{"cluster", "default"}, {"apiVersion", api_version},
                                             {"kind", kind},         {"namespace", "shop"},
                                             {"name", name},         {"field", field},
                                             {"unit", unit}};
    char id[AS_TARGET_ID_MAX];
    snprintf(id, sizeof(id), "kubernetes/default/%s/%s/shop/%s:field/%s", api_version, kind, name,
             field);
    return as_target_ref_make(&as_target_kind_kubernetes, id, fields, *unit ? 7 : 6);
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
    claim = make_field_ref("v1", "PersistentVolumeClaim", "data", "spec.resources.requests.storage",
                           "1Gi");
}

static void teardown(void)
{
    port->close(port);
    as_target_ref_free(claim);
    unlink(kubeconfig);
    rmdir(directory);
    teardown_world();
}

TestSuite(kubernetes_fields, .init = setup, .fini = teardown);

static void answer(const char *method, const char *path, int status, const char *body)
{
    world_answer(&world, (struct world_answer){method, path, .status = status, .body = body});
}

static void discover(void)
{
    answer("GET", "/api/v1", 200, CORE);
    answer("GET", CLAIM_PATH, 200, CLAIM_OF("10Gi", "100"));
    observe(port, claim);
    cr_assert_eq(observation.outcome, AS_REASON_APPLIED, "%s", observation.message);
}

static const struct world_request *get_request(size_t from_end)
{
    return &world.requests[world.request_count - from_end];
}

Test(kubernetes_fields, an_observation_says_the_unit_with_version_and_uid)
{
    discover();
    cr_expect_eq(observation.replicas, 10);
    cr_expect_eq(observation.status_replicas, 10);
    cr_expect_str_eq(observation.version, "100*1Gi");
    cr_expect_str_eq(observation.uid, "u-1*1Gi");
    cr_expect_eq(get_request(1)->max_response, AS_KUBE_SIZED_OBJECT_MAX);
}

Test(kubernetes_fields, a_change_is_a_patch_of_the_object_as_it_is_now)
{
    discover();
    answer("GET", CLAIM_PATH, 200, CLAIM_OF("10Gi", "100"));
    answer("PATCH", PATCH_PATH, 200, CLAIM_OF("12Gi", "101"));
    answer("POST", EVENTS_PATH, 201, "{}");
    scale(port, claim, 10, 12, "100*1Gi");
    cr_expect_eq(result.outcome, AS_REASON_APPLIED, "%s", result.message);
    cr_expect_str_eq(result.method, "PATCH");
    cr_expect_str_eq(result.path, CLAIM_PATH);
    cr_expect_eq(result.attempts, 2);
    const struct world_request *patch = get_request(2), *post = get_request(1);
    cr_expect_str_eq(patch->body,
                     "[{\"op\":\"test\",\"path\":\"/spec/resources/requests/storage\",\"value\":"
                     "\"10Gi\"},{\"op\":\"replace\",\"path\":\"/metadata/resourceVersion\","
                     "\"value\":\"100\"},{\"op\":\"replace\",\"path\":\"/spec/resources/requests/"
                     "storage\",\"value\":\"12Gi\"}]");
    cr_expect_not_null(strstr(patch->headers, "Content-Type: application/json-patch+json\n"));
    cr_expect_not_null(strstr(post->body, "\"message\":\"New size: 12 (12Gi); reason: rule slow"));
    cr_expect_not_null(strstr(post->body, "\"uid\":\"u-1\""));
}

/* The unit was changed by a reload, after the decision: its sizes are others. */
Test(kubernetes_fields, an_object_that_is_not_as_observed_is_a_conflict_without_a_change)
{
    static const struct {
        const char *body;
        int32_t from;
        const char *version;
    } cases[] = {
        {CLAIM_OF("10Gi", "101"), 10, "100*1Gi"},
        {CLAIM_OF("10Gi", "100"), 10, "100*2Gi"},
        {CLAIM_OF("10Gi", "100"), 10, "100"},
        {CLAIM_OF("10Gi", "100"), 9, "100*1Gi"},
    };
    discover();
    for (size_t i = 0; i < AS_ARRAY_SIZE(cases); i++) {
        const size_t before = world.request_count;
        answer("GET", CLAIM_PATH, 200, cases[i].body);
        scale(port, claim, cases[i].from, 12, cases[i].version);
        cr_expect_eq(result.outcome, AS_REASON_CONFLICT, "%zu", i);
        cr_expect_not(result.is_ambiguous);
        cr_expect_str_eq(result.message, "the object has changed since it was observed");
        cr_expect_eq(world.request_count, before + 1);
    }
}

Test(kubernetes_fields, every_failure_of_a_change)
{
    static const struct {
        enum as_http_outcome transport;
        int status;
        const char *body;
        enum as_reason reason;
        bool is_ambiguous;
    } cases[] = {
        {AS_HTTP_ANSWERED, 409, STATUS("changed", ""), AS_REASON_CONFLICT, false},
        {AS_HTTP_ANSWERED, 422, STATUS("the test failed", ""), AS_REASON_CONFLICT, false},
        {AS_HTTP_ANSWERED, 422, STATUS("too large", "\"causes\":[{\"field\":\"spec\"}]"),
         AS_REASON_REJECTED, false},
        {AS_HTTP_ANSWERED, 403, STATUS("no", ""), AS_REASON_FORBIDDEN, false},
        {AS_HTTP_ANSWERED, 404, STATUS("gone", "\"name\":\"data\""), AS_REASON_TARGET_NOT_FOUND,
         false},
        {AS_HTTP_ANSWERED, 200, CLAIM_OF("11Gi", "101"), AS_REASON_REJECTED, true},
        {AS_HTTP_ANSWERED, 200, "{}", AS_REASON_REJECTED, true},
        {AS_HTTP_TIMEOUT, 0, "", AS_REASON_TIMEOUT, true},
    };
    discover();
    for (size_t i = 0; i < AS_ARRAY_SIZE(cases); i++) {
        answer("GET", CLAIM_PATH, 200, CLAIM_OF("10Gi", "100"));
        world_answer(&world,
                     (struct world_answer){"PATCH", PATCH_PATH, .outcome = cases[i].transport,
                                           .status = cases[i].status, .body = cases[i].body});
        if (cases[i].reason != AS_REASON_CONFLICT && cases[i].reason != AS_REASON_TARGET_NOT_FOUND)
            answer("POST", EVENTS_PATH, 201, "{}");
        scale(port, claim, 10, 12, "100*1Gi");
        cr_expect_eq(result.outcome, cases[i].reason, "%zu: %d %s", i, result.outcome,
                     result.message);
        cr_expect_eq(result.is_ambiguous, cases[i].is_ambiguous, "%zu", i);
        if (cases[i].status == 200 && result.outcome == AS_REASON_REJECTED && i == 5)
            cr_expect_str_eq(result.message, "asked for size 12 (12Gi), but the cluster made it 11 "
                                             "(11Gi) (an admission webhook?)");
    }
}

Test(kubernetes_fields, what_cannot_be_read_is_not_changed)
{
    discover();
    answer("GET", CLAIM_PATH, 200, CLAIM_OF("much", "100"));
    answer("POST", EVENTS_PATH, 201, "{}");
    scale(port, claim, 10, 12, "100*1Gi");
    cr_expect_eq(result.outcome, AS_REASON_REJECTED);
    cr_expect_not(result.is_ambiguous);
    cr_expect(strstr(result.message, "spec.resources.requests.storage: expected an integer or a "
                                     "quantity, found \"much\""),
              "%s", result.message);
    answer("GET", CLAIM_PATH, 200, CLAIM_OF("10Gi", "100"));
    scale(port, claim, 10, 9, "100*1Gi");
    cr_expect_eq(result.outcome, AS_REASON_REJECTED);
    cr_expect_str_eq(result.message, "a PersistentVolumeClaim never shrinks");
}

Test(kubernetes_fields, the_replicas_of_a_kind_with_a_scale_are_no_field)
{
    struct as_target_ref *ref = make_field_ref("example.com/v1", "Pool", "p", "spec.replicas", "");
    answer("GET", "/apis/example.com/v1", 200,
           "{\"groupVersion\":\"example.com/v1\",\"resources\":[{\"name\":\"pools\",\"kind\":"
           "\"Pool\",\"namespaced\":true},{\"name\":\"pools/scale\",\"kind\":\"Scale\",\"group\":"
           "\"autoscaling\",\"version\":\"v1\"}]}");
    observe(port, ref);
    cr_expect_eq(observation.outcome, AS_REASON_REJECTED);
    cr_expect_str_eq(observation.message,
                     "the kind has a scale subresource: `field: spec.replicas` is not needed");
    as_target_ref_free(ref);
}

/* Who set it, if it is not what we set. */
Test(kubernetes_fields, a_field_that_others_have_changed_names_who_it_was)
{
    static const char managed[] =
        "{\"kind\":\"PersistentVolumeClaim\",\"metadata\":{\"uid\":\"u-1\",\"resourceVersion\":"
        "\"101\",\"managedFields\":[{\"manager\":\"alertscaler\",\"time\":\"2026-11-24T10:00:00Z\","
        "\"fieldsV1\":{\"f:spec\":{\"f:resources\":{\"f:requests\":{\"f:storage\":{}}}}}},{"
        "\"manager\":\"argo\",\"time\":\"2026-11-24T10:00:09Z\",\"fieldsV1\":{\"f:spec\":{"
        "\"f:resources\":{\"f:requests\":{\"f:storage\":{}}}}}}]},\"spec\":{\"resources\":{"
        "\"requests\":{\"storage\":\"10Gi\"}}}}";
    static const struct {
        bool has_own_size;
        int32_t own_size;
        const char *by;
    } cases[] = {{false, 0, ""}, {true, 10, ""}, {true, 12, "argo"}};
    discover();
    for (size_t i = 0; i < AS_ARRAY_SIZE(cases); i++) {
        const size_t before = world.request_count;
        answer("GET", CLAIM_PATH, 200, managed);
        port->observe(port, 7, claim,
                      &(struct as_observe_request){.has_own_size = cases[i].has_own_size,
                                                   .own_size = cases[i].own_size},
                      keep_observation, NULL);
        world_run(&world);
        cr_expect_str_eq(observation.changed_by, cases[i].by);
        cr_expect_eq(world.request_count, before + 1, "of the object as it was read");
    }
}

/* Without the uid, `kubectl describe` does not find the Event. */
Test(kubernetes_fields, a_failed_change_that_was_not_observed_before_has_an_event_with_the_uid)
{
    answer("GET", "/api/v1", 200, CORE);
    answer("GET", CLAIM_PATH, 200, CLAIM_OF("10Gi", "100"));
    answer("PATCH", PATCH_PATH, 403, STATUS("no", ""));
    answer("POST", EVENTS_PATH, 201, "{}");
    scale(port, claim, 10, 12, "100*1Gi");
    cr_expect_eq(result.outcome, AS_REASON_FORBIDDEN);
    cr_expect_not_null(strstr(get_request(1)->body, "\"uid\":\"u-1\""));
}

static enum as_permit permit_none(void *context)
{
    (void)context;
    return AS_PERMIT_NONE;
}

/* The term of the leader has ended while the object was read. */
Test(kubernetes_fields, no_change_is_sent_when_another_may_lead)
{
    discover();
    const size_t before = world.request_count;
    env.get_permit = permit_none;
    answer("GET", CLAIM_PATH, 200, CLAIM_OF("10Gi", "100"));
    scale(port, claim, 10, 12, "100*1Gi");
    cr_expect_eq(result.outcome, AS_REASON_SUPERSEDED);
    cr_expect_not(result.is_ambiguous);
    cr_expect_str_eq(result.message, "given up: another may lead by now");
    cr_expect_eq(world.request_count, before + 1, "the object was read");
}

/* The object is read anew before its change. */
Test(kubernetes_fields, a_path_that_is_gone_at_the_change_is_looked_up_again)
{
    discover();
    world_advance(&world, AS_KUBE_DISCOVERY_REFRESH_US);
    answer("GET", CLAIM_PATH, 200, CLAIM_OF("10Gi", "100"));
    answer("PATCH", PATCH_PATH, 404, "404 page not found\n");
    answer("GET", "/api/v1", 200, CORE);
    answer("GET", CLAIM_PATH, 200, CLAIM_OF("10Gi", "100"));
    answer("PATCH", PATCH_PATH, 200, CLAIM_OF("12Gi", "101"));
    answer("POST", EVENTS_PATH, 201, "{}");
    scale(port, claim, 10, 12, "100*1Gi");
    cr_expect_eq(result.outcome, AS_REASON_APPLIED, "%s", result.message);
    cr_expect_eq(result.attempts, 4);
}
