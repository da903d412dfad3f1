/*
 * google.c, credentials_google.c: every request byte by byte, every answer, every class of error of
 * managed instance groups, zonal and regional.
 */
#include "google_groups.h"

static struct driver_group given;
static struct as_cloud_op *op;

static void begin_in(const char *key, const char *place, enum as_group_verb verb)
{
    driver_option(&given, "project", "shop");
    driver_option(&given, "endpoint", "http://127.0.0.1:5000/");
    driver_field(&given, "name", "workers");
    driver_field(&given, key, place);
    given.op.idempotency = ULID;
    op = &given.op.op;
    driver_begin(&given, "gce", verb);
}

static void begin(enum as_group_verb verb)
{
    begin_in("zone", "europe-west1-b", verb);
}

static void begin_change(enum as_group_verb verb, int32_t from, int32_t to)
{
    given.op.from = from;
    given.op.to = to;
    begin(verb);
}

static void answer_size(int size)
{
    char body[64];
    snprintf(body, sizeof(body), "{\"id\":\"11\",\"targetSize\":%d}", size);
    driver_answer(op, 200, body);
}

/* The group is read once more. */
static void begin_removal(const char *const *ids, size_t count)
{
    given.op.instances = ids;
    given.op.instance_count = count;
    begin_change(AS_GROUP_REMOVE, (int32_t)count, 0);
    driver_expect(op, "GET", WORKERS, "");
    answer_size((int)count);
    google_members(op, ids, count);
}

static void end(void)
{
    driver_end(&given);
}

TestSuite(gce, .fini = end);

/* ---- reading ---- */

Test(gce, reads_size_instances_zones)
{
    begin(AS_GROUP_READ);
    driver_expect(op, "GET", WORKERS, "");
    driver_expect_headers(op, "");
    cr_assert_not(op->request.is_change);
    driver_answer(op, 200,
                  "{\"id\":\"11\",\"name\":\"workers\",\"targetSize\":3,\"fingerprint\":\"abc=\","
                  "\"status\":{\"isStable\":true},\"currentActions\":{\"none\":3}}");
    driver_expect(op, "POST", WORKERS LIST, "");
    cr_assert_not(op->request.is_change, "a list is a question");
    driver_answer(op, 200,
                  "{\"managedInstances\":[" INSTANCE("w-1", RUNS) "," INSTANCE(
                      "w-2", RUNS) "," INSTANCE("w-3", RUNS) "]}");
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    cr_assert_eq(given.op.view.size, 3);
    cr_assert_eq(given.op.view.min, -1);
    cr_assert_eq(given.op.view.max, -1);
    cr_assert_not(given.op.view.in_progress);
    cr_assert_null(given.op.view.controller);
    cr_assert_null(given.op.view.shortage);
    cr_assert_str_eq(given.op.view.version, "", "nothing can be set on condition of it");
    driver_expect_backing(&given, "gce/11 ");
    cr_assert_eq(given.op.view.instance_count, 3);
    driver_expect_instance(&given, 0,
                           "europe-west1-b/workers/w-1 gce://shop/europe-west1-b/w-1 "
                           "europe-west1-b running");
}

Test(gce, reads_page_after_page)
{
    begin(AS_GROUP_READ);
    driver_answer(op, 200, "{\"id\":\"11\",\"targetSize\":2}");
    driver_answer(op, 200,
                  "{\"managedInstances\":[" INSTANCE("w-1", RUNS) "],\"nextPageToken\":\"a+/=\"}");
    driver_expect(op, "POST", WORKERS LIST "&pageToken=a%2B%2F%3D", "");
    driver_answer(op, 200, "{\"managedInstances\":[" INSTANCE("w-2", RUNS) "]}");
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    cr_assert_eq(given.op.view.instance_count, 2);
}

Test(gce, gives_up_pages_that_never_end)
{
    begin(AS_GROUP_READ);
    driver_answer(op, 200, "{\"id\":\"11\",\"targetSize\":2}");
    while (op->want == AS_CLOUD_OP_SEND)
        driver_answer(op, 200, "{\"nextPageToken\":\"again\"}");
    driver_expect_end(op, AS_CLOUD_OP_CONFIGURATION, "given up after 2 pages: it never ends");
}

Test(gce, an_empty_group_has_no_instances)
{
    begin(AS_GROUP_READ);
    driver_answer(op, 200, "{\"id\":\"11\",\"targetSize\":0}");
    driver_answer(op, 200, "{}");
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    cr_assert_eq(given.op.view.size, 0);
    cr_assert_eq(given.op.view.instance_count, 0);
}

Test(gce, a_regional_group_names_each_instances_zone)
{
    begin_in("region", "europe-west1", AS_GROUP_READ);
    const char *base = COMPUTE "projects/shop/regions/europe-west1/instanceGroupManagers/workers";
    driver_expect(op, "GET", base, "");
    driver_answer(op, 200, "{\"id\":\"11\",\"targetSize\":1}");
    driver_answer(op, 200,
                  "{\"managedInstances\":[{\"instance\":\"" AT("europe-west1-d", "w-1") "\"," RUNS
                                                                                        "}]}");
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    driver_expect_instance(&given, 0,
                           "europe-west1-d/workers/w-1 gce://shop/europe-west1-d/w-1 "
                           "europe-west1-d running");
}

/* What is being done with an instance counts before what state it is in. */
Test(gce, knows_what_becomes_of_an_instance)
{
    static const struct {
        const char *rest, *want;
    } rows[] = {
        {RUNS, "running"},
        {"\"currentAction\":\"VERIFYING\",\"instanceStatus\":\"RUNNING\"", "running"},
        {"\"currentAction\":\"REFRESHING\",\"instanceStatus\":\"RUNNING\"", "running"},
        {"\"currentAction\":\"NONE\",\"instanceStatus\":\"STAGING\"", "pending"},
        {"\"currentAction\":\"NONE\",\"instanceStatus\":\"PROVISIONING\"", "pending"},
        {"\"currentAction\":\"NONE\",\"instanceStatus\":\"REPAIRING\"", "pending"},
        {"\"currentAction\":\"CREATING\"", "pending"},
        {"\"currentAction\":\"CREATING_WITHOUT_RETRIES\"", "pending"},
        {"\"currentAction\":\"RECREATING\",\"instanceStatus\":\"RUNNING\"", "pending"},
        {"\"currentAction\":\"RESTARTING\",\"instanceStatus\":\"RUNNING\"", "pending"},
        {"\"currentAction\":\"RESUMING\",\"instanceStatus\":\"SUSPENDED\"", "pending"},
        {"\"currentAction\":\"STARTING\",\"instanceStatus\":\"TERMINATED\"", "pending"},
        {"\"currentAction\":\"DELETING\",\"instanceStatus\":\"RUNNING\"", "leaving"},
        {"\"currentAction\":\"ABANDONING\",\"instanceStatus\":\"RUNNING\"", "leaving"},
        {"\"currentAction\":\"STOPPING\",\"instanceStatus\":\"RUNNING\"", "leaving"},
        {"\"currentAction\":\"SUSPENDING\",\"instanceStatus\":\"RUNNING\"", "leaving"},
        {"\"currentAction\":\"NONE\",\"instanceStatus\":\"STOPPING\"", "failed"},
        {"\"currentAction\":\"NONE\",\"instanceStatus\":\"PENDING_STOP\"", "failed"},
        {"\"currentAction\":\"NONE\",\"instanceStatus\":\"TERMINATED\"", "failed"},
        {"\"currentAction\":\"NONE\",\"instanceStatus\":\"STOPPED\"", "failed"},
        {"\"currentAction\":\"NONE\",\"instanceStatus\":\"SUSPENDED\"", "failed"},
        {RUNS ",\"instanceHealth\":[{\"detailedHealthState\":\"HEALTHY\"}]", "running"},
        {RUNS ",\"instanceHealth\":[{\"detailedHealthState\":\"UNHEALTHY\"}]", "running unhealthy"},
        {RUNS ",\"instanceHealth\":[{\"detailedHealthState\":\"TIMEOUT\"}]", "running unhealthy"},
        {RUNS ",\"preservedStateFromConfig\":{\"metadata\":{\"a\":\"b\"}}", "running protected"},
        {RUNS ",\"preservedStateFromPolicy\":{}", "running"},
    };
    char body[2048], want[256], next[32];
    begin(AS_GROUP_READ);
    driver_answer(op, 200, "{\"id\":\"11\",\"targetSize\":26}");
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        snprintf(next, sizeof(next), "more-%zu", i);
        snprintf(body, sizeof(body),
                 "{\"managedInstances\":[{\"instance\":\"%s\",%s}],\"nextPageToken\":\"%s\"}",
                 AT("z", "w"), rows[i].rest, i + 1 < AS_ARRAY_SIZE(rows) ? next : "");
        driver_answer(op, 200, body);
        snprintf(want, sizeof(want), "z/workers/w gce://shop/z/w z %s", rows[i].want);
        driver_expect_instance(&given, i, want);
    }
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
}

/* A standby pool is beside the size. */
Test(gce, instances_held_ready_are_no_part_of_the_group)
{
    begin(AS_GROUP_READ);
    driver_answer(
        op, 200,
        "{\"id\":\"11\",\"targetSize\":1,\"targetSuspendedSize\":1,\"targetStoppedSize\":1}");
    driver_answer(op, 200,
                  "{\"managedInstances\":[" INSTANCE("w-1", RUNS) "," INSTANCE(
                      "w-2", "\"instanceStatus\":\"SUSPENDED\",\"currentAction\":"
                             "\"NONE\"") "," INSTANCE("w-3", "\"instanceStatus\":"
                                                             "\"TERMINATED\","
                                                             "\"currentAction\":"
                                                             "\"NONE\"") "]}");
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    cr_assert_eq(given.op.view.size, 1);
    cr_assert_eq(given.op.view.instance_count, 1);
}

#define NO_MACHINES                                                                                \
    "\"lastAttempt\":{\"errors\":{\"errors\":[{\"code\":\"ZONE_RESOURCE_POOL_EXHAUSTED\","         \
    "\"message\":\"The zone has no such machines.\"}]}}"

Test(gce, tells_why_instances_do_not_come)
{
    begin(AS_GROUP_READ);
    driver_answer(
        op, 200, "{\"id\":\"11\",\"targetSize\":3,\"currentActions\":{\"creating\":2,\"none\":1}}");
    driver_answer(
        op, 200,
        "{\"managedInstances\":[" INSTANCE("w-1", RUNS ",\"lastAttempt\":{}") "," INSTANCE(
            "w-2",
            "\"currentAction\":\"CREATING\"," NO_MACHINES) "," INSTANCE("w-3",
                                                                        "\"currentAction\":"
                                                                        "\"CREATING_WITHOUT_"
                                                                        "RETRIES\""
                                                                        "," NO_MACHINES) "]"
                                                                                         "}");
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    cr_assert(given.op.view.in_progress);
    cr_assert_str_eq(given.op.view.shortage,
                     "ZONE_RESOURCE_POOL_EXHAUSTED: The zone has no such machines.");
    cr_assert_eq(given.op.view.instances[1].state, AS_INSTANCE_PENDING, "it is tried again");
    cr_assert(given.op.view.instances[1].is_unhealthy);
    cr_assert_eq(given.op.view.instances[2].state, AS_INSTANCE_FAILED, "it is not");
}

Test(gce, names_the_autoscaler_that_sets_the_size)
{
    begin(AS_GROUP_READ);
    driver_answer(
        op, 200,
        "{\"id\":\"11\",\"targetSize\":1,\"status\":{\"autoscaler\":\"https://www.googleapis.com/"
        "compute/v1/" ZONE "/autoscalers/workers-as\"}}");
    driver_answer(op, 200, "{}");
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    cr_assert_str_eq(given.op.view.controller, "Google's autoscaler workers-as");
}

Test(gce, sees_instances_come_and_go)
{
    static const struct {
        const char *actions;
        bool is_in_progress;
    } rows[] = {
        {"{\"none\":1}", false},         {"{\"refreshing\":1}", false},
        {"{\"verifying\":1}", false},    {"{\"creating\":1}", true},
        {"{\"deleting\":1}", true},      {"{\"abandoning\":1}", true},
        {"{\"recreating\":1}", true},    {"{\"resuming\":1}", true},
        {"{\"starting\":1}", true},      {"{\"suspending\":1}", true},
        {"{\"stopping\":1}", true},      {"17", false},
        {"{\"creating\":\"x\"}", false},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        char body[256];
        given = (struct driver_group){0};
        begin(AS_GROUP_READ);
        snprintf(body, sizeof(body), "{\"id\":\"11\",\"targetSize\":1,\"currentActions\":%s}",
                 rows[i].actions);
        driver_answer(op, 200, body);
        cr_expect_eq(given.op.view.in_progress, rows[i].is_in_progress, "%s", rows[i].actions);
        if (i + 1 < AS_ARRAY_SIZE(rows))
            driver_end(&given);
    }
}

/* ---- answers that are none ---- */

Test(gce, refuses_answers_of_another_shape)
{
    static const struct {
        const char *body, *message;
    } rows[] = {
        {"", "get_instance_group_manager: the answer is not JSON: '[' or '{' expected near end of "
             "file"},
        {"{\"id\":\"11\",\"targetSize\":3",
         "get_instance_group_manager: the answer is not JSON: '}' expected "
         "near end of file"},
        {"[]", "get_instance_group_manager: the answer has no targetSize"},
        {"{\"targetSize\":1}", "get_instance_group_manager: the answer has no id"},
        {"{\"id\":\"11\",\"targetSize\":-1}",
         "get_instance_group_manager: the answer has no targetSize"},
        {"{\"id\":\"11\",\"targetSize\":{}}",
         "get_instance_group_manager: the answer has no targetSize"},
        {"{\"id\":\"11\",\"targetSize\":2147483648}",
         "get_instance_group_manager: the answer has no targetSize"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        given = (struct driver_group){0};
        begin(AS_GROUP_READ);
        driver_answer(op, 200, rows[i].body);
        driver_expect_end(op, AS_CLOUD_OP_RETRY, rows[i].message);
        cr_assert_not(op->is_ambiguous);
        if (i + 1 < AS_ARRAY_SIZE(rows))
            driver_end(&given);
    }
}

Test(gce, refuses_a_group_that_is_too_large)
{
    begin(AS_GROUP_READ);
    driver_answer(op, 200, "{\"id\":\"11\",\"targetSize\":20001}");
    driver_expect_end(op, AS_CLOUD_OP_CONFIGURATION, "the group has more than 20000 instances");
}

/* Names stand in addresses: they are not taken from just any text. */
Test(gce, refuses_instances_with_other_names)
{
    static const char *const urls[] = {
        "w-1",
        AT("z", "../../projects/other"),
        AT("z", "w?x=y"),
        AT("z", ""),
        AT("z/..", "w"),
        "https://www.googleapis.com/compute/v1/projects/shop/regions/z/instances/w",
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(urls); i++) {
        char body[512];
        given = (struct driver_group){0};
        begin(AS_GROUP_READ);
        driver_answer(op, 200, "{\"id\":\"11\",\"targetSize\":1}");
        snprintf(body, sizeof(body), "{\"managedInstances\":[{\"instance\":\"%s\",%s}]}", urls[i],
                 RUNS);
        driver_answer(op, 200, body);
        driver_expect_end(op, AS_CLOUD_OP_RETRY,
                          "list_managed_instances: the answer has no instance");
        if (i + 1 < AS_ARRAY_SIZE(urls))
            driver_end(&given);
    }
}

Test(gce, what_has_no_name_yet_is_no_instance)
{
    begin(AS_GROUP_READ);
    driver_answer(op, 200, "{\"id\":\"11\",\"targetSize\":1}");
    driver_answer(op, 200, "{\"managedInstances\":[{\"currentAction\":\"CREATING\"},7]}");
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    cr_assert_eq(given.op.view.instance_count, 0);
}

/* ---- growing ---- */

Test(gce, grows_to_a_size_once)
{
    begin_change(AS_GROUP_GROW, 3, 5);
    driver_expect(op, "GET", WORKERS, "");
    driver_answer(op, 200, "{\"id\":\"11\",\"targetSize\":3}");
    /* the id of one change is always the same: SHA-256 of the ULID and the change */
    driver_expect(op, "POST",
                  WORKERS "/resize?size=5&requestId=8b6dee0d-c4ee-42d9-9d25-23141c7bb5b8", "");
    driver_expect_headers(op, "");
    cr_assert(op->request.is_change);
    driver_answer(op, 200, OPERATION("operation-17"));
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    cr_assert_str_eq(given.op.started, ZONE "/operations/operation-17");
    cr_assert_str_eq(op->request_id, "operation-17", "as the cloud's audit log has it");
}

Test(gce, a_regional_group_grows_in_its_region)
{
    given.op.from = 1;
    given.op.to = 2;
    begin_in("region", "europe-west1", AS_GROUP_GROW);
    driver_answer(op, 200, "{\"id\":\"11\",\"targetSize\":1}");
    cr_assert(as_str_starts_with(op->request.url,
                                 COMPUTE "projects/shop/regions/europe-west1/"
                                         "instanceGroupManagers/workers/resize?size=2&requestId="));
    driver_answer(op, 200, OPERATION("op"));
    cr_assert_str_eq(given.op.started, "projects/shop/regions/europe-west1/operations/op");
}

/* A resize is absolute: it would take away what somebody else has added. */
Test(gce, does_not_set_a_size_that_has_changed)
{
    begin_change(AS_GROUP_GROW, 3, 5);
    driver_answer(op, 200, "{\"id\":\"11\",\"targetSize\":7}");
    driver_expect_end(op, AS_CLOUD_OP_BUSY, "its size is 7, not 3: somebody else has set it");
}

Test(gce, does_not_work_against_an_autoscaler)
{
    begin_change(AS_GROUP_GROW, 3, 5);
    driver_answer(op, 200, "{\"id\":\"11\",\"targetSize\":3,\"status\":{\"autoscaler\":\"as\"}}");
    driver_expect_end(op, AS_CLOUD_OP_CONFIGURATION,
                      "Google's autoscaler as sets the size of this group: two would undo each "
                      "other's work; switch one off");
}

Test(gce, does_not_grow_beyond_all_bounds)
{
    begin_change(AS_GROUP_GROW, 3, INT32_MAX);
    driver_answer(op, 200, "{\"id\":\"11\",\"targetSize\":3}");
    driver_expect_end(op, AS_CLOUD_OP_CONFIGURATION, "a group has at most 20000 instances");
}

Test(gce, an_answer_that_was_lost_leaves_it_open)
{
    begin_change(AS_GROUP_GROW, 3, 5);
    driver_answer(op, 200, "{\"id\":\"11\",\"targetSize\":3}");
    driver_break(op, AS_HTTP_TIMEOUT, "timed out");
    driver_expect_end(op, AS_CLOUD_OP_TIMEOUT, "resize: timed out");
    cr_assert(op->is_ambiguous);
}

Test(gce, an_answer_that_cannot_be_read_leaves_it_open)
{
    begin_change(AS_GROUP_GROW, 3, 5);
    driver_answer(op, 200, "{\"id\":\"11\",\"targetSize\":3}");
    driver_answer(op, 200, "<html>");
    cr_assert_eq(op->fault, AS_CLOUD_OP_RETRY);
    cr_assert(op->is_ambiguous);
    driver_end(&given);

    static const char *const names[] = {"{}", "{\"name\":\"a b\"}", "{\"name\":\"../x\"}"};
    for (size_t i = 0; i < AS_ARRAY_SIZE(names); i++) {
        given = (struct driver_group){0};
        begin_change(AS_GROUP_GROW, 3, 5);
        driver_answer(op, 200, "{\"id\":\"11\",\"targetSize\":3}");
        driver_answer(op, 200, names[i]);
        driver_expect_end(op, AS_CLOUD_OP_RETRY, "resize: the answer has no name");
        cr_assert(op->is_ambiguous);
        if (i + 1 < AS_ARRAY_SIZE(names))
            driver_end(&given);
    }
}

Test(gce, an_operation_may_fail_at_once)
{
    begin_change(AS_GROUP_GROW, 3, 5);
    driver_answer(op, 200, "{\"id\":\"11\",\"targetSize\":3}");
    driver_answer(op, 200,
                  "{\"name\":\"op\",\"status\":\"DONE\",\"error\":{\"errors\":[{\"code\":"
                  "\"QUOTA_EXCEEDED\",\"message\":\"Quota 'CPUS' exceeded.  Limit: 8.0\"}]}}");
    driver_expect_end(op, AS_CLOUD_OP_CAPACITY,
                      "resize: QUOTA_EXCEEDED: Quota 'CPUS' exceeded.  Limit: 8.0");
}

/* ---- errors ---- */

Test(gce, knows_errors_by_their_reasons)
{
    static const struct {
        int status;
        const char *reason, *message;
        enum as_cloud_op_fault fault;
    } rows[] = {
        {429, "rateLimitExceeded", "Slow down", AS_CLOUD_OP_THROTTLED},
        {403, "rateLimitExceeded", "Rate Limit Exceeded", AS_CLOUD_OP_THROTTLED},
        {403, "userRateLimitExceeded", "User Rate Limit Exceeded", AS_CLOUD_OP_THROTTLED},
        {403, "quotaExceeded", "Quota exceeded for quota metric 'Queries'", AS_CLOUD_OP_THROTTLED},
        {403, "quotaExceeded", "Quota 'CPUS' exceeded. Limit: 24.0", AS_CLOUD_OP_CAPACITY},
        {503, "zoneResourcePoolExhausted", "No machines", AS_CLOUD_OP_CAPACITY},
        {400, "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS", "No machines", AS_CLOUD_OP_CAPACITY},
        {412, "conditionNotMet", "Fingerprint", AS_CLOUD_OP_BUSY},
        {400, "resourceNotReady", "The resource is not ready", AS_CLOUD_OP_BUSY},
        {400, "resourceInUseByAnotherResource", "In use", AS_CLOUD_OP_BUSY},
        {409, "alreadyExists", "It exists", AS_CLOUD_OP_BUSY},
        {401, "authError", "Invalid Credentials", AS_CLOUD_OP_UNAUTHORIZED},
        {403, "forbidden", "Required 'compute.instanceGroupManagers.get' permission",
         AS_CLOUD_OP_PERMISSION},
        {403, "accessNotConfigured", "Compute Engine API is not enabled",
         AS_CLOUD_OP_CONFIGURATION},
        {404, "notFound", "The resource was not found", AS_CLOUD_OP_GONE},
        {400, "invalid", "Invalid value for field", AS_CLOUD_OP_CONFIGURATION},
        {500, "internalError", "Internal error", AS_CLOUD_OP_RETRY},
        {502, "backendError", "Backend", AS_CLOUD_OP_RETRY},
        {503, "backendError", "Backend", AS_CLOUD_OP_RETRY},
        {408, "timeout", "Timeout", AS_CLOUD_OP_TIMEOUT},
    };
    char want[256];
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        given = (struct driver_group){0};
        begin(AS_GROUP_READ);
        google_error(op, rows[i].status, rows[i].reason, rows[i].message);
        snprintf(want, sizeof(want), "get_instance_group_manager: HTTP %d %s: %s", rows[i].status,
                 rows[i].reason, rows[i].message);
        driver_expect_end(op, rows[i].fault, want);
        cr_assert_not(op->is_ambiguous);
        if (i + 1 < AS_ARRAY_SIZE(rows))
            driver_end(&given);
    }
}

Test(gce, the_details_of_an_error_say_more_than_its_reason)
{
    begin(AS_GROUP_READ);
    driver_answer(op, 403,
                  "{\"error\":{\"code\":403,\"message\":\"Request had insufficient authentication "
                  "scopes.\",\"errors\":[{\"reason\":\"insufficientPermissions\"}],\"status\":"
                  "\"PERMISSION_DENIED\",\"details\":[{\"@type\":\"x\"},{\"@type\":"
                  "\"type.googleapis.com/google.rpc.ErrorInfo\",\"reason\":"
                  "\"ACCESS_TOKEN_SCOPE_INSUFFICIENT\"}]}}");
    driver_expect_end(op, AS_CLOUD_OP_PERMISSION,
                      "get_instance_group_manager: HTTP 403 ACCESS_TOKEN_SCOPE_INSUFFICIENT: "
                      "Request had insufficient authentication scopes.");
}

Test(gce, an_error_may_name_the_request)
{
    begin(AS_GROUP_READ);
    driver_answer(op, 400,
                  "{\"error\":{\"message\":\"no\",\"details\":[{\"requestId\":7},{\"@type\":"
                  "\"type.googleapis.com/google.rpc.RequestInfo\",\"requestId\":\"0x1f\"},"
                  "{\"reason\":\"RESOURCE_NOT_READY\"}]}}");
    driver_expect_end(op, AS_CLOUD_OP_BUSY,
                      "get_instance_group_manager: HTTP 400 RESOURCE_NOT_READY: no");
    cr_assert_str_eq(op->request_id, "0x1f");
}

Test(gce, an_error_without_words_is_known_by_its_status)
{
    static const struct {
        int status;
        const char *body;
        enum as_cloud_op_fault fault;
    } rows[] = {
        {503, "<html>", AS_CLOUD_OP_RETRY},
        {404, "", AS_CLOUD_OP_GONE},
        {403, "{\"error\":7}", AS_CLOUD_OP_PERMISSION},
        {403, "{\"error\":{\"errors\":[]}}", AS_CLOUD_OP_PERMISSION},
        {429, "[]", AS_CLOUD_OP_THROTTLED},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        char want[64];
        given = (struct driver_group){0};
        begin(AS_GROUP_READ);
        driver_answer(op, rows[i].status, rows[i].body);
        snprintf(want, sizeof(want), "get_instance_group_manager: HTTP %d", rows[i].status);
        driver_expect_end(op, rows[i].fault, want);
        if (i + 1 < AS_ARRAY_SIZE(rows))
            driver_end(&given);
    }
}

Test(gce, a_throttled_request_says_when_to_come_back)
{
    begin(AS_GROUP_READ);
    driver_respond(op, (struct as_http_response){.status = 429, .body = "", .retry_after = "7"});
    cr_assert_eq(op->fault, AS_CLOUD_OP_THROTTLED);
    cr_assert_eq(op->retry_after_us, 7 * AS_US_PER_S);
}

/* ---- removing ---- */

Test(gce, removes_instances_by_name)
{
    static const char *const ids[] = {"europe-west1-b/workers/w-1", "europe-west1-b/workers/w-2"};
    begin_removal(ids, 2);
    driver_expect(op, "POST",
                  WORKERS "/deleteInstances?requestId=bc2caab4-32d9-422d-b871-b313cdd18bd4",
                  "{\"instances\":[\"zones/europe-west1-b/instances/w-1\","
                  "\"zones/europe-west1-b/instances/w-2\"],"
                  "\"skipInstancesOnValidationError\":true}");
    driver_expect_headers(op, "Content-Type: application/json\n");
    driver_answer(op, 200, OPERATION("op"));
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    cr_assert_str_eq(given.op.started, ZONE "/operations/op");
}

Test(gce, a_regional_group_loses_instances_of_all_zones_at_once)
{
    static const char *const ids[] = {"europe-west1-b/workers/w-1", "europe-west1-c/workers/w-2"};
    given.op.instances = ids;
    given.op.instance_count = 2;
    given.op.from = 2;
    begin_in("region", "europe-west1", AS_GROUP_REMOVE);
    answer_size(2);
    google_members(op, ids, 2);
    cr_assert_str_eq(op->request.body.data,
                     "{\"instances\":[\"zones/europe-west1-b/instances/w-1\","
                     "\"zones/europe-west1-c/instances/w-2\"],"
                     "\"skipInstancesOnValidationError\":true}");
    driver_answer(op, 200, OPERATION("op"));
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
}

Test(gce, removes_a_thousand_at_a_time)
{
    static char names[1001][48];
    static const char *ids[1001];
    for (size_t i = 0; i < AS_ARRAY_SIZE(ids); i++) {
        snprintf(names[i], sizeof(names[i]), "europe-west1-b/workers/w-%zu", i);
        ids[i] = names[i];
    }
    begin_removal(ids, 1001);
    cr_assert(strstr(op->request.body.data, "instances/w-999\"]"));
    char *first = strdup(strstr(op->request.url, "requestId="));
    driver_answer(op, 200, OPERATION("op-1"));
    cr_assert_str_eq(op->request.body.data,
                     "{\"instances\":[\"zones/europe-west1-b/instances/w-1000\"],"
                     "\"skipInstancesOnValidationError\":true}");
    cr_assert_str_neq(strstr(op->request.url, "requestId="), first, "it is another change");
    free(first);
    driver_answer(op, 200, OPERATION("op-2"));
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    cr_assert_str_eq(given.op.started, ZONE "/operations/op-1 " ZONE "/operations/op-2");
}

/* The first thousand are going: nobody must take the failure for nothing done. */
Test(gce, what_was_removed_before_a_failure_leaves_it_open)
{
    static char names[1001][48];
    static const char *ids[1001];
    for (size_t i = 0; i < AS_ARRAY_SIZE(ids); i++) {
        snprintf(names[i], sizeof(names[i]), "europe-west1-b/workers/w-%zu", i);
        ids[i] = names[i];
    }
    begin_removal(ids, 1001);
    driver_answer(op, 200, OPERATION("op-1"));
    for (size_t i = 0; i < 2; i++) {
        google_error(op, 403, "rateLimitExceeded", "Slow down");
        cr_assert_eq(op->want, AS_CLOUD_OP_WAIT);
        as_cloud_op_on_time(op, DRIVER_NOW);
    }
    google_error(op, 403, "rateLimitExceeded", "Slow down");
    cr_assert_eq(op->fault, AS_CLOUD_OP_THROTTLED);
    cr_assert(op->is_ambiguous);
}

/* Draining takes its time. */
Test(gce, a_size_that_has_changed_lets_nobody_leave)
{
    static const char *const ids[] = {"europe-west1-b/workers/w-1", "europe-west1-b/workers/w-2"};
    for (int size = 1; size <= 3; size += 2) {
        char want[80];
        given = (struct driver_group){.op = {.instances = ids, .instance_count = 1}};
        snprintf(want, sizeof(want), "the group has changed since it was looked at: its size is %d",
                 size);
        begin_change(AS_GROUP_REMOVE, 2, 1);
        answer_size(size);
        google_members(op, ids, 2);
        driver_expect_end(op, AS_CLOUD_OP_BUSY, want);
        if (size == 1)
            driver_end(&given);
    }
}

Test(gce, what_is_gone_or_going_is_not_removed_twice)
{
    static const char *const ids[] = {"europe-west1-b/workers/w-1", "europe-west1-b/workers/w-2",
                                      "z/workers", ""};
    given = (struct driver_group){.op = {.instances = ids, .instance_count = 4}};
    begin_change(AS_GROUP_REMOVE, 5, 1);
    answer_size(3);
    driver_answer(op, 200,
                  "{\"managedInstances\":[" INSTANCE("w-1", RUNS) "," INSTANCE(
                      "w-2", "\"currentAction\":\"DELETING\"") "]}");
    cr_assert_str_eq(op->request.body.data,
                     "{\"instances\":[\"zones/europe-west1-b/instances/w-1\"],"
                     "\"skipInstancesOnValidationError\":true}");
    driver_end(&given);
    given = (struct driver_group){.op = {.instances = ids, .instance_count = 1}};
    begin_change(AS_GROUP_REMOVE, 2, 1);
    answer_size(1);
    driver_answer(op, 200, "{}");
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    cr_assert_null(given.op.started);
}

Test(gce, an_autoscaler_that_came_meanwhile_is_respected)
{
    static const char *const ids[] = {"europe-west1-b/workers/w-1"};
    given = (struct driver_group){.op = {.instances = ids, .instance_count = 1}};
    begin_change(AS_GROUP_REMOVE, 1, 0);
    driver_answer(op, 200,
                  "{\"id\":\"11\",\"targetSize\":1,\"status\":{\"autoscaler\":\"x/web\"}}");
    google_members(op, ids, 1);
    driver_expect_end(op, AS_CLOUD_OP_CONFIGURATION,
                      "Google's autoscaler web sets the size of this group: two would undo each "
                      "other's work; switch one off");
}

/* ---- taking back ---- */

static void read_three(const char *second, const char *third)
{
    char body[2048];
    driver_answer(op, 200, "{\"id\":\"11\",\"targetSize\":3}");
    snprintf(body, sizeof(body),
             "{\"managedInstances\":[" INSTANCE("w-1", RUNS) ",{\"instance\":\"" AT(
                 "z", "w-2") "\",%s},{\"instance\":\"" AT("z", "w-3") "\",%s}]}",
             second, third);
    driver_answer(op, 200, body);
}

Test(gce, takes_back_by_name_first_what_failed)
{
    begin_change(AS_GROUP_TAKE_BACK, 3, 2);
    read_three("\"currentAction\":\"CREATING\"", "\"currentAction\":\"CREATING\"," NO_MACHINES);
    cr_assert_str_eq(op->request.body.data, "{\"instances\":[\"zones/z/instances/w-3\"],"
                                            "\"skipInstancesOnValidationError\":true}");
    driver_answer(op, 200, OPERATION("op"));
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
}

Test(gce, takes_back_all_that_has_not_come)
{
    begin_change(AS_GROUP_TAKE_BACK, 3, 1);
    read_three("\"currentAction\":\"CREATING\"", "\"currentAction\":\"CREATING\"," NO_MACHINES);
    cr_assert_str_eq(op->request.body.data,
                     "{\"instances\":[\"zones/z/instances/w-3\",\"zones/z/instances/w-2\"],"
                     "\"skipInstancesOnValidationError\":true}");
}

Test(gce, takes_nothing_back_that_has_come)
{
    begin_change(AS_GROUP_TAKE_BACK, 3, 1);
    read_three("\"currentAction\":\"CREATING\"", RUNS);
    driver_expect_end(op, AS_CLOUD_OP_BUSY,
                      "only 1 of 2 instances have not come: the others have, in the meantime");
}

Test(gce, nothing_is_taken_back_twice)
{
    begin_change(AS_GROUP_TAKE_BACK, 5, 3);
    read_three(RUNS, RUNS);
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    cr_assert_null(given.op.started);
}

/* ---- operations ---- */

static void begin_poll(const char *operation)
{
    given.op.operation = operation;
    begin(AS_GROUP_POLL);
}

Test(gce, polls_operations_until_all_are_done)
{
    begin_poll(ZONE "/operations/op-1 " ZONE "/operations/op-2");
    driver_expect(op, "GET", COMPUTE ZONE "/operations/op-1", "");
    driver_answer(op, 200, "{\"name\":\"op-1\",\"status\":\"DONE\"}");
    driver_expect(op, "GET", COMPUTE ZONE "/operations/op-2", "");
    driver_answer(op, 200, "{\"name\":\"op-2\",\"status\":\"RUNNING\"}");
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    cr_assert_not(given.op.is_done);
    driver_end(&given);

    given = (struct driver_group){0};
    begin_poll(ZONE "/operations/op-2");
    driver_answer(op, 200, "{\"name\":\"op-2\",\"status\":\"DONE\"}");
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    cr_assert(given.op.is_done);
}

Test(gce, an_operation_that_is_forgotten_is_over)
{
    begin_poll(ZONE "/operations/op-1 " ZONE "/operations/op-2");
    google_error(op, 404, "notFound", "The resource was not found");
    driver_expect(op, "GET", COMPUTE ZONE "/operations/op-2", "");
    google_error(op, 404, "notFound", "The resource was not found");
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    cr_assert(given.op.is_done);
}

Test(gce, an_operation_that_is_done_may_have_failed)
{
    static const struct {
        const char *code;
        enum as_cloud_op_fault fault;
    } rows[] = {
        {"QUOTA_EXCEEDED", AS_CLOUD_OP_CAPACITY},
        {"ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS", AS_CLOUD_OP_CAPACITY},
        {"VM_MIN_COUNT_NOT_REACHED", AS_CLOUD_OP_RETRY},
        {"IP_SPACE_EXHAUSTED", AS_CLOUD_OP_CAPACITY},
        {"PERMISSIONS_ERROR", AS_CLOUD_OP_PERMISSION},
        {"RESOURCE_NOT_READY", AS_CLOUD_OP_BUSY},
        {"RESOURCE_NOT_FOUND", AS_CLOUD_OP_GONE},
        {"RATE_LIMIT_EXCEEDED", AS_CLOUD_OP_THROTTLED},
        {"INTERNAL_ERROR", AS_CLOUD_OP_RETRY},
        {"", AS_CLOUD_OP_RETRY},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        char body[256], want[128];
        given = (struct driver_group){0};
        begin_poll(ZONE "/operations/op");
        snprintf(body, sizeof(body),
                 "{\"name\":\"op\",\"status\":\"DONE\",\"error\":{\"errors\":[{\"code\":\"%s\","
                 "\"message\":\"no\"}]}}",
                 rows[i].code);
        driver_answer(op, 200, body);
        snprintf(want, sizeof(want), "operation op: %s: no", rows[i].code);
        driver_expect_end(op, rows[i].fault, want);
        cr_expect(given.op.is_done, "it does not go on");
        if (i + 1 < AS_ARRAY_SIZE(rows))
            driver_end(&given);
    }
}

/* ---- addresses ---- */

Test(gce, a_group_is_in_a_zone_or_a_region)
{
    static const struct {
        const char *zone, *region, *message;
    } rows[] = {
        {"", "", "a group has either a `zone` or a `region`: this one has neither"},
        {"a", "b", "a group has either a `zone` or a `region`: this one has both"},
    };
    for (size_t i = 0; i < 2; i++) {
        given = (struct driver_group){0};
        op = &given.op.op;
        driver_option(&given, "project", "shop");
        driver_field(&given, "name", "workers");
        driver_field(&given, "zone", rows[i].zone);
        driver_field(&given, "region", rows[i].region);
        driver_begin(&given, "gce", AS_GROUP_READ);
        driver_expect_end(op, AS_CLOUD_OP_CONFIGURATION, rows[i].message);
        if (i == 0)
            driver_end(&given);
    }
}

static void expect_project(const char *want)
{
    char url[256];
    op = &given.op.op;
    driver_field(&given, "name", "a b");
    driver_field(&given, "zone", "z");
    driver_begin(&given, "gce", AS_GROUP_READ);
    snprintf(url, sizeof(url),
             "https://compute.googleapis.com/compute/v1/projects/%s/zones/z/instanceGroupManagers/"
             "a%%20b",
             want);
    driver_expect(op, "GET", url, "");
    driver_end(&given);
}

/* The nearest to the group that says it. */
Test(gce, finds_the_project)
{
    given = (struct driver_group){.credentials = {.project = (char[]){"of-credentials"}}};
    expect_project("of-credentials");
    driver_set("GOOGLE_CLOUD_PROJECT", "of-environment");
    given = (struct driver_group){.credentials = {.project = (char[]){"of-credentials"}}};
    expect_project("of-environment");
    given = (struct driver_group){.credentials = {.project = (char[]){"of-credentials"}}};
    driver_option(&given, "project", "of-account");
    expect_project("of-account");
    given = (struct driver_group){.credentials = {.project = (char[]){"of-credentials"}}};
    driver_option(&given, "project", "of-account");
    driver_field(&given, "project", "example.com:of-group");
    expect_project("example.com%3Aof-group");

    given = (struct driver_group){0};
    driver_set("GOOGLE_CLOUD_PROJECT", "");
    op = &given.op.op;
    driver_field(&given, "name", "workers");
    driver_field(&given, "zone", "z");
    driver_begin(&given, "gce", AS_GROUP_READ);
    driver_expect_end(op, AS_CLOUD_OP_CONFIGURATION,
                      "the project is not known: set `project` of the provider");
}
