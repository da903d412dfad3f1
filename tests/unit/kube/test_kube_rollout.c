/*
 * Rollouts of workloads: their members, kind by kind, and the request of the Kubernetes adapter for
 * the object behind a scale.
 */
#include <alertscaler/kube/kube_target.h>
#include <alertscaler/kube/target_outcome.h>

#include "kube/kube_rollout.h"
#include "support.h"

#define DEPLOYMENT "apps/v1", "Deployment"
#define STATEFUL   "apps/v1", "StatefulSet"
#define ARGO       "argoproj.io/v1alpha1", "Rollout"
#define CLONES     "apps.kruise.io/v1alpha1", "CloneSet"

#define META(generation)                                                                           \
    "{\"metadata\":{\"generation\":" generation                                                    \
    ",\"annotations\":{\"deployment.kubernetes.io/revision\":\"7\"}},"
#define SPEC(more)     "\"spec\":{\"replicas\":10" more "},"
#define STATUS(status) "\"status\":{" status "}}"
#define COUNTS(total, updated)                                                                     \
    "\"observedGeneration\":3,\"replicas\":" total ",\"updatedReplicas\":" updated
#define PROGRESSING(status, reason)                                                                \
    ",\"conditions\":[{\"type\":\"Available\",\"status\":\"False\"},{\"type\":\"Progressing\","    \
    "\"status\":\"" status "\",\"reason\":\"" reason "\"}]"
#define REVISIONS(current, update)                                                                 \
    ",\"currentRevision\":\"" current "\",\"updateRevision\":\"" update "\""
#define PARTITION(number)                                                                          \
    ",\"updateStrategy\":{\"type\":\"RollingUpdate\",\"rollingUpdate\":{\"partition\":" number "}" \
    "}"
#define HASHES(stable, current) ",\"stableRS\":\"" stable "\",\"currentPodHash\":\"" current "\""
#define ARGO_COUNTS(observed, total, updated)                                                      \
    "\"observedGeneration\":\"" observed "\",\"replicas\":" total ",\"updatedReplicas\":" updated

TestSuite(kube_rollout);

Test(kube_rollout, the_members_of_each_kind)
{
    static const struct {
        const char *what, *api_version, *kind, *json;
        enum as_rollout_progress progress;
        const char *revision;
    } cases[] = {
        {"all pods are there", DEPLOYMENT, META("3") SPEC("") STATUS(COUNTS("10", "10")),
         AS_PROGRESS_NONE, "7"},
        {"the controller has not seen the change", DEPLOYMENT,
         META("4") SPEC("") STATUS(COUNTS("10", "10")), AS_PROGRESS_UNDER_WAY, "7"},
        {"no status yet", DEPLOYMENT, META("1") SPEC("") STATUS(""), AS_PROGRESS_UNDER_WAY, "7"},
        {"a surge", DEPLOYMENT, META("3") SPEC("") STATUS(COUNTS("15", "10")),
         AS_PROGRESS_UNDER_WAY, "7"},
        {"old pods", DEPLOYMENT, META("3") SPEC("") STATUS(COUNTS("10", "4")),
         AS_PROGRESS_UNDER_WAY, "7"},
        {"Recreate: the old pods are gone, an absent count is 0", DEPLOYMENT,
         META("3") SPEC("") STATUS("\"observedGeneration\":3"), AS_PROGRESS_UNDER_WAY, "7"},
        {"Recreate: the reason is that of the last rollout", DEPLOYMENT,
         META("3") SPEC("") STATUS(COUNTS("0", "0") PROGRESSING("True", "NewReplicaSetAvailable")),
         AS_PROGRESS_UNDER_WAY, "7"},
        {"pods that are not available are no rollout", DEPLOYMENT,
         META("3") SPEC("") STATUS(COUNTS("10", "10") ",\"availableReplicas\":2"), AS_PROGRESS_NONE,
         "7"},
        {"pods of a larger size that a quota refuses are no rollout", DEPLOYMENT,
         META("3") SPEC("") STATUS(COUNTS("6", "6") PROGRESSING("True", "NewReplicaSetAvailable")),
         AS_PROGRESS_NONE, "7"},
        {"a rollout that begins", DEPLOYMENT,
         META("3") SPEC("") STATUS(COUNTS("6", "6") PROGRESSING("True", "ReplicaSetUpdated")),
         AS_PROGRESS_UNDER_WAY, "7"},
        {"failed", DEPLOYMENT,
         META("3") SPEC("")
             STATUS(COUNTS("12", "3") PROGRESSING("False", "ProgressDeadlineExceeded")),
         AS_PROGRESS_NONE, "7"},
        {"the failure is that of an earlier generation", DEPLOYMENT,
         META("4") SPEC("")
             STATUS(COUNTS("12", "3") PROGRESSING("False", "ProgressDeadlineExceeded")),
         AS_PROGRESS_UNDER_WAY, "7"},
        {"paused", DEPLOYMENT, META("4") SPEC(",\"paused\":true") STATUS(COUNTS("12", "3")),
         AS_PROGRESS_NONE, "7"},

        {"all pods are there", STATEFUL,
         META("3") SPEC("") STATUS(COUNTS("10", "10") REVISIONS("db-1", "db-1")), AS_PROGRESS_NONE,
         "db-1"},
        {"pods of a larger size", STATEFUL,
         META("3") SPEC("") STATUS(COUNTS("4", "4") REVISIONS("db-1", "db-1")), AS_PROGRESS_NONE,
         "db-1"},
        {"old pods", STATEFUL,
         META("3") SPEC("") STATUS(COUNTS("10", "4") REVISIONS("db-1", "db-2")),
         AS_PROGRESS_UNDER_WAY, "db-2"},
        {"a rollout that is taken back", STATEFUL,
         META("3") SPEC("") STATUS(COUNTS("10", "6") REVISIONS("db-1", "db-1")),
         AS_PROGRESS_UNDER_WAY, "db-1"},
        {"one pod is being replaced", STATEFUL,
         META("3") SPEC("") STATUS(COUNTS("9", "9") REVISIONS("db-1", "db-2")),
         AS_PROGRESS_UNDER_WAY, "db-2"},
        {"the partition is not reached", STATEFUL,
         META("3") SPEC(PARTITION("7")) STATUS(COUNTS("10", "2") REVISIONS("db-1", "db-2")),
         AS_PROGRESS_UNDER_WAY, "db-2"},
        {"pods below the partition keep the old revision", STATEFUL,
         META("3") SPEC(PARTITION("7")) STATUS(COUNTS("10", "3") REVISIONS("db-1", "db-2")),
         AS_PROGRESS_NONE, "db-2"},
        {"a partition above the size", STATEFUL,
         META("3") SPEC(PARTITION("20")) STATUS(COUNTS("10", "0") REVISIONS("db-1", "db-2")),
         AS_PROGRESS_NONE, "db-2"},
        {"nothing replaces the pods", STATEFUL,
         META("3") SPEC(",\"updateStrategy\":{\"type\":\"OnDelete\"}")
             STATUS(COUNTS("10", "2") REVISIONS("db-1", "db-2")),
         AS_PROGRESS_NONE, "db-2"},

        {"all pods are there", ARGO,
         META("3") SPEC("") STATUS(ARGO_COUNTS("3", "10", "10") HASHES("a", "a")), AS_PROGRESS_NONE,
         "a"},
        {"the generation is a text", ARGO,
         META("12") SPEC("") STATUS(ARGO_COUNTS("9", "10", "10") HASHES("a", "a")),
         AS_PROGRESS_UNDER_WAY, "a"},
        {"the hash of old versions says nothing", ARGO,
         META("12") SPEC("") STATUS(ARGO_COUNTS("6c9f", "10", "10") HASHES("a", "a")),
         AS_PROGRESS_NONE, "a"},
        {"a canary", ARGO, META("3") SPEC("") STATUS(ARGO_COUNTS("3", "12", "2") HASHES("a", "b")),
         AS_PROGRESS_UNDER_WAY, "b"},
        {"a canary that waits for a person", ARGO,
         META("3") SPEC("") STATUS(ARGO_COUNTS("3", "12", "2") HASHES(
             "a", "b") ",\"phase\":\"Paused\","
                       "\"pauseConditions\":[{\"reason\":\"CanaryPauseStep\"}]"),
         AS_PROGRESS_NONE, "b"},
        {"paused in its spec", ARGO,
         META("3") SPEC(",\"paused\":true") STATUS(ARGO_COUNTS("3", "12", "2") HASHES("a", "b")),
         AS_PROGRESS_NONE, "b"},
        {"aborted", ARGO,
         META("3") SPEC("") STATUS(ARGO_COUNTS("3", "12", "2") HASHES("a", "b") ",\"abort\":true"),
         AS_PROGRESS_NONE, "b"},
        {"failed", ARGO,
         META("3") SPEC("") STATUS(ARGO_COUNTS("3", "12", "2") HASHES("a", "b")
                                       PROGRESSING("False", "ProgressDeadlineExceeded")),
         AS_PROGRESS_NONE, "b"},
        {"the old stack of a blue-green rollout", ARGO,
         META("3") SPEC("") STATUS(ARGO_COUNTS("3", "20", "10") HASHES("b", "b")), AS_PROGRESS_NONE,
         "b"},

        {"a canary that is taken back", ARGO,
         META("3") SPEC("") STATUS(ARGO_COUNTS("3", "10", "2") HASHES("a", "a")),
         AS_PROGRESS_UNDER_WAY, "a"},

        {"an unknown kind with a revision", CLONES,
         META("3") SPEC("") STATUS(COUNTS("10", "4") REVISIONS("a", "b")), AS_PROGRESS_UNDER_WAY,
         "b"},
        {"an unknown kind with the counts", CLONES, META("3") SPEC("") STATUS(COUNTS("10", "4")),
         AS_PROGRESS_UNDER_WAY, ""},
        {"an unknown kind at its end", CLONES, META("3") SPEC("") STATUS(COUNTS("10", "10")),
         AS_PROGRESS_NONE, ""},
        {"an unknown kind with a generation only", CLONES,
         META("4") SPEC("") STATUS("\"observedGeneration\":3"), AS_PROGRESS_UNDER_WAY, ""},
        {"an unknown kind that says nothing", CLONES, META("4") SPEC("") STATUS(""),
         AS_PROGRESS_NONE, ""},
        {"another group's Deployment", "example.com/v1", "Deployment",
         META("4") SPEC("") STATUS(""), AS_PROGRESS_NONE, ""},
        {"members of wrong types", DEPLOYMENT,
         "{\"metadata\":[],\"spec\":\"x\",\"status\":{\"observedGeneration\":{},\"replicas\":\"4\","
         "\"updatedReplicas\":null,\"conditions\":{}}}",
         AS_PROGRESS_UNDER_WAY, ""},
        {"no object", DEPLOYMENT, "[]", AS_PROGRESS_UNKNOWN, ""},
        {"no JSON", DEPLOYMENT, "<html>", AS_PROGRESS_UNKNOWN, ""},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(cases); i++) {
        struct as_rollout_seen seen;
        as_kube_rollout_decode(cases[i].api_version, cases[i].kind, cases[i].json,
                               strlen(cases[i].json), &seen);
        cr_expect_eq(seen.progress, cases[i].progress, "%s: %s: %d, not %d", cases[i].kind,
                     cases[i].what, seen.progress, cases[i].progress);
        cr_expect_str_eq(seen.revision, cases[i].revision, "%s: %s: %s", cases[i].kind,
                         cases[i].what, seen.revision);
        cr_expect_eq(seen.why[0] != '\0', seen.progress == AS_PROGRESS_UNKNOWN, "%s: %s",
                     cases[i].what, seen.why);
    }
}

Test(kube_rollout, a_long_revision_is_cut)
{
    struct as_rollout_seen seen;
    char json[1024], revision[512];
    memset(revision, 'x', sizeof(revision) - 1);
    revision[sizeof(revision) - 1] = '\0';
    snprintf(json, sizeof(json), "{\"status\":{\"updateRevision\":\"%s\"}}", revision);
    as_kube_rollout_decode(STATEFUL, json, strlen(json), &seen);
    cr_assert_eq(strlen(seen.revision), AS_REVISION_SIZE - 1);
}

/* ---- the adapter ---- */

#define PATH       "/apis/apps/v1/namespaces/shop/deployments/web"
#define SCALE_PATH PATH "/scale"
#define APPS                                                                                       \
    "{\"groupVersion\":\"apps/v1\",\"resources\":[{\"name\":\"deployments\",\"kind\":"             \
    "\"Deployment\",\"namespaced\":true},{\"name\":\"deployments/scale\",\"kind\":\"Scale\","      \
    "\"group\":\"autoscaling\",\"version\":\"v1\"}]}"
#define SCALE                                                                                      \
    "{\"kind\":\"Scale\",\"metadata\":{\"name\":\"web\",\"uid\":\"u-1\",\"resourceVersion\":"      \
    "\"100\"},\"spec\":{\"replicas\":10},\"status\":{\"replicas\":15,\"selector\":\"app=web\"}}"
#define PODS_PATH "/api/v1/namespaces/shop/pods?labelSelector=app%3Dweb&limit=500"
#define PODS      "{\"kind\":\"PodList\",\"metadata\":{},\"items\":[]}"

static struct as_target_port *port;
static struct as_target_ref *web;

static void setup_port(void)
{
    setup_world();
    port = as_kubernetes_new(open_access(), &env);
    web = make_ref("apps/v1", "Deployment", "shop", "web");
}

static void teardown_port(void)
{
    if (port)
        port->close(port);
    as_target_ref_free(web);
    teardown_world();
}

TestSuite(kube_rollout_target, .init = setup_port, .fini = teardown_port);

static void answer(const char *method, const char *path, int status, const char *body)
{
    world_answer(&world, (struct world_answer){method, path, .status = status, .body = body});
}

static char role[1024]; /* that the last observation lacked */

static void keep_role(void *context, uint64_t call_id, const struct as_observation *told)
{
    keep_observation(context, call_id, told);
    snprintf(role, sizeof(role), "%s", told->right ? told->right : "");
}

static void observe_with(struct as_observe_request request)
{
    port->observe(port, 7, web, &request, keep_role, NULL);
    world_run(&world);
}

Test(kube_rollout_target, the_object_is_read_where_its_rollout_is_asked_for)
{
    answer("GET", "/apis/apps/v1", 200, APPS);
    answer("GET", SCALE_PATH, 200, SCALE);
    answer("GET", PATH, 200, META("3") SPEC("") STATUS(COUNTS("15", "10")));
    answer("GET", PODS_PATH, 200, PODS);
    observe_with((struct as_observe_request){.with_rollout = true, .with_pods = true});
    cr_assert_eq(observed_count, 1);
    cr_assert_eq(observation.outcome, AS_REASON_APPLIED, "%s", observation.message);
    cr_expect_eq(observation.rollout.progress, AS_PROGRESS_UNDER_WAY);
    cr_expect_str_eq(observation.rollout.revision, "7");
    cr_expect_eq(observation.replicas, 10);
    cr_expect(observation.has_pods);
    cr_expect_str_eq(observation.version, "100", "the scale's, which was read first");
    cr_expect_eq(world.request_count, 4);
    cr_expect_str_eq(world.requests[2].url, "https://k:6443" PATH);
    cr_expect_eq(world.requests[2].max_response, AS_KUBE_SIZED_OBJECT_MAX);
}

Test(kube_rollout_target, others_cost_no_request)
{
    answer("GET", "/apis/apps/v1", 200, APPS);
    answer("GET", SCALE_PATH, 200, SCALE);
    observe_with((struct as_observe_request){0});
    cr_assert_eq(observation.outcome, AS_REASON_APPLIED);
    cr_expect_eq(observation.rollout.progress, AS_PROGRESS_UNKNOWN);
    cr_expect_eq(world.request_count, 2);
}

Test(kube_rollout_target, a_lost_right_is_an_unknown_progress_with_its_reason)
{
    static const struct {
        int status;
        const char *body, *why;
    } cases[] = {
        {403,
         "{\"kind\":\"Status\",\"message\":\"deployments.apps \\\"web\\\" is forbidden\","
         "\"details\":{}}",
         "deployments.apps \"web\" is forbidden; the Role needs `get` of this object"},
        {404, "{\"kind\":\"Status\",\"message\":\"not found\",\"details\":{}}", "not found"},
        {500, "", "HTTP 500"},
        {200, "[]", "expected a JSON object"},
    };
    answer("GET", "/apis/apps/v1", 200, APPS);
    for (size_t i = 0; i < AS_ARRAY_SIZE(cases); i++) {
        answer("GET", SCALE_PATH, 200, SCALE);
        answer("GET", PATH, cases[i].status, cases[i].body);
        observe_with((struct as_observe_request){.with_rollout = true});
        cr_expect_eq(observation.outcome, AS_REASON_APPLIED, "the size is known");
        cr_expect_eq(observation.replicas, 10);
        cr_expect_eq(observation.rollout.progress, AS_PROGRESS_UNKNOWN);
        cr_expect_str_eq(observation.rollout.why, cases[i].why, "%s", observation.rollout.why);
        cr_expect_eq(role[0] != '\0', cases[i].status == 403);
    }
    answer("GET", SCALE_PATH, 200, SCALE);
    answer("GET", PATH, 403, "{\"kind\":\"Status\",\"details\":{}}");
    observe_with((struct as_observe_request){.with_rollout = true});
    static const char *const parts[] = {"resources: [deployments]", "resourceNames: [\"web\"]",
                                        "verbs: [get]"};
    for (size_t i = 0; i < AS_ARRAY_SIZE(parts); i++)
        cr_expect_not_null(strstr(role, parts[i]), "%s: %s", parts[i], role);
}

Test(kube_rollout_target, a_size_that_cannot_be_read_needs_no_rollout)
{
    answer("GET", "/apis/apps/v1", 200, APPS);
    answer("GET", SCALE_PATH, 500, "");
    observe_with((struct as_observe_request){.with_rollout = true});
    cr_expect_eq(observation.outcome, AS_REASON_UNREACHABLE);
    cr_expect_eq(world.request_count, 2);
}

static struct as_timer *closing;

static void close_port(void *context)
{
    (void)context;
    port->close(port);
    port = NULL;
}

/* Closes the port when the answer has been served. */
static struct world_answer serve_and_close(void *context, const struct world_request *request)
{
    (void)context;
    const bool is_scale = strstr(request->url, "/scale") != NULL;
    if (!is_scale)
        closing = world.loop.start_timer(&world.loop, 0, close_port, NULL);
    return (struct world_answer){.status = 200, .body = is_scale ? SCALE : "{}"};
}

Test(kube_rollout_target, nothing_is_reported_after_close)
{
    answer("GET", "/apis/apps/v1", 200, APPS);
    world.serve = serve_and_close;
    port->observe(port, 7, web,
                  &(struct as_observe_request){.with_rollout = true, .with_pods = true},
                  keep_observation, NULL);
    world_run(&world);
    cr_expect_null(port);
    cr_expect_eq(observed_count, 0);
}
