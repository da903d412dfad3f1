/*
 * google.c, credentials_google.c: every request byte by byte, every answer, every class of error of
 * managed instance groups, zonal and regional.
 */
#include "google_groups.h"

static struct talker_group given;
static struct as_talk *talk;

static void begin_in(const char *key, const char *place, enum as_group_verb verb)
{
    talker_option(&given, "project", "shop");
    talker_option(&given, "endpoint", "http://127.0.0.1:5000/");
    talker_field(&given, "name", "workers");
    talker_field(&given, key, place);
    given.talk.idempotency = ULID;
    talk = &given.talk.talk;
    talker_begin(&given, "gce", verb);
}

static void begin(enum as_group_verb verb)
{
    begin_in("zone", "europe-west1-b", verb);
}

static void begin_change(enum as_group_verb verb, int32_t from, int32_t to)
{
    given.talk.from = from;
    given.talk.to = to;
    begin(verb);
}

static void answer_size(int size)
{
    char body[64];
    snprintf(body, sizeof(body), "{\"id\":\"11\",\"targetSize\":%d}", size);
    talker_answer(talk, 200, body);
}

/* The group is read once more. */
static void begin_removal(const char *const *ids, size_t count)
{
    given.talk.instances = ids;
    given.talk.instance_count = count;
    begin_change(AS_GROUP_REMOVE, (int32_t)count, 0);
    talker_expect(talk, "GET", WORKERS, "");
    answer_size((int)count);
    google_members(talk, ids, count);
}

static void end(void)
{
    talker_end(&given);
}

TestSuite(gce, .fini = end);

/* ---- reading ---- */

Test(gce, reads_size_instances_zones)
{
    begin(AS_GROUP_READ);
    talker_expect(talk, "GET", WORKERS, "");
    talker_expect_headers(talk, "");
    cr_assert_not(talk->request.is_change);
    talker_answer(talk, 200,
                  "{\"id\":\"11\",\"name\":\"workers\",\"targetSize\":3,\"fingerprint\":\"abc=\","
                  "\"status\":{\"isStable\":true},\"currentActions\":{\"none\":3}}");
    talker_expect(talk, "POST", WORKERS LIST, "");
    cr_assert_not(talk->request.is_change, "a list is a question");
    talker_answer(talk, 200,
                  "{\"managedInstances\":[" INSTANCE("w-1", RUNS) "," INSTANCE(
                      "w-2", RUNS) "," INSTANCE("w-3", RUNS) "]}");
    talker_expect_end(talk, AS_TALK_OK, "");
    cr_assert_eq(given.talk.view.size, 3);
    cr_assert_eq(given.talk.view.min, -1);
    cr_assert_eq(given.talk.view.max, -1);
    cr_assert_not(given.talk.view.in_progress);
    cr_assert_null(given.talk.view.controller);
    cr_assert_null(given.talk.view.shortage);
    cr_assert_str_eq(given.talk.view.version, "", "nothing can be set on condition of it");
    talker_expect_backing(&given, "gce/11 ");
    cr_assert_eq(given.talk.view.instance_count, 3);
    talker_expect_instance(&given, 0,
                           "europe-west1-b/workers/w-1 gce://shop/europe-west1-b/w-1 "
                           "europe-west1-b running");
}

Test(gce, reads_page_after_page)
{
    begin(AS_GROUP_READ);
    talker_answer(talk, 200, "{\"id\":\"11\",\"targetSize\":2}");
    talker_answer(talk, 200,
                  "{\"managedInstances\":[" INSTANCE("w-1", RUNS) "],\"nextPageToken\":\"a+/=\"}");
    talker_expect(talk, "POST", WORKERS LIST "&pageToken=a%2B%2F%3D", "");
    talker_answer(talk, 200, "{\"managedInstances\":[" INSTANCE("w-2", RUNS) "]}");
    talker_expect_end(talk, AS_TALK_OK, "");
    cr_assert_eq(given.talk.view.instance_count, 2);
}

Test(gce, gives_up_pages_that_never_end)
{
    begin(AS_GROUP_READ);
    talker_answer(talk, 200, "{\"id\":\"11\",\"targetSize\":2}");
    while (talk->want == AS_TALK_SEND)
        talker_answer(talk, 200, "{\"nextPageToken\":\"again\"}");
    talker_expect_end(talk, AS_TALK_CONFIGURATION, "given up after 2 pages: it never ends");
}

Test(gce, an_empty_group_has_no_instances)
{
    begin(AS_GROUP_READ);
    talker_answer(talk, 200, "{\"id\":\"11\",\"targetSize\":0}");
    talker_answer(talk, 200, "{}");
    talker_expect_end(talk, AS_TALK_OK, "");
    cr_assert_eq(given.talk.view.size, 0);
    cr_assert_eq(given.talk.view.instance_count, 0);
}

Test(gce, a_regional_group_names_each_instances_zone)
{
    begin_in("region", "europe-west1", AS_GROUP_READ);
    const char *base = COMPUTE "projects/shop/regions/europe-west1/instanceGroupManagers/workers";
    talker_expect(talk, "GET", base, "");
    talker_answer(talk, 200, "{\"id\":\"11\",\"targetSize\":1}");
    talker_answer(talk, 200,
                  "{\"managedInstances\":[{\"instance\":\"" AT("europe-west1-d", "w-1") "\"," RUNS
                                                                                        "}]}");
    talker_expect_end(talk, AS_TALK_OK, "");
    talker_expect_instance(&given, 0,
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
    talker_answer(talk, 200, "{\"id\":\"11\",\"targetSize\":26}");
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        snprintf(next, sizeof(next), "more-%zu", i);
        snprintf(body, sizeof(body),
                 "{\"managedInstances\":[{\"instance\":\"%s\",%s}],\"nextPageToken\":\"%s\"}",
                 AT("z", "w"), rows[i].rest, i + 1 < AS_ARRAY_SIZE(rows) ? next : "");
        talker_answer(talk, 200, body);
        snprintf(want, sizeof(want), "z/workers/w gce://shop/z/w z %s", rows[i].want);
        talker_expect_instance(&given, i, want);
    }
    talker_expect_end(talk, AS_TALK_OK, "");
}

/* A standby pool is beside the size. */
Test(gce, instances_held_ready_are_no_part_of_the_group)
{
    begin(AS_GROUP_READ);
    talker_answer(
        talk, 200,
        "{\"id\":\"11\",\"targetSize\":1,\"targetSuspendedSize\":1,\"targetStoppedSize\":1}");
    talker_answer(talk, 200,
                  "{\"managedInstances\":[" INSTANCE("w-1", RUNS) "," INSTANCE(
                      "w-2", "\"instanceStatus\":\"SUSPENDED\",\"currentAction\":"
                             "\"NONE\"") "," INSTANCE("w-3", "\"instanceStatus\":"
                                                             "\"TERMINATED\","
                                                             "\"currentAction\":"
                                                             "\"NONE\"") "]}");
    talker_expect_end(talk, AS_TALK_OK, "");
    cr_assert_eq(given.talk.view.size, 1);
    cr_assert_eq(given.talk.view.instance_count, 1);
}

#define NO_MACHINES                                                                                \
    "\"lastAttempt\":{\"errors\":{\"errors\":[{\"code\":\"ZONE_RESOURCE_POOL_EXHAUSTED\","         \
    "\"message\":\"The zone has no such machines.\"}]}}"

Test(gce, tells_why_instances_do_not_come)
{
    begin(AS_GROUP_READ);
    talker_answer(
        talk, 200,
        "{\"id\":\"11\",\"targetSize\":3,\"currentActions\":{\"creating\":2,\"none\":1}}");
    talker_answer(
        talk, 200,
        "{\"managedInstances\":[" INSTANCE("w-1", RUNS ",\"lastAttempt\":{}") "," INSTANCE(
            "w-2",
            "\"currentAction\":\"CREATING\"," NO_MACHINES) "," INSTANCE("w-3",
                                                                        "\"currentAction\":"
                                                                        "\"CREATING_WITHOUT_"
                                                                        "RETRIES\""
                                                                        "," NO_MACHINES) "]"
                                                                                         "}");
    talker_expect_end(talk, AS_TALK_OK, "");
    cr_assert(given.talk.view.in_progress);
    cr_assert_str_eq(given.talk.view.shortage,
                     "ZONE_RESOURCE_POOL_EXHAUSTED: The zone has no such machines.");
    cr_assert_eq(given.talk.view.instances[1].state, AS_INSTANCE_PENDING, "it is tried again");
    cr_assert(given.talk.view.instances[1].is_unhealthy);
    cr_assert_eq(given.talk.view.instances[2].state, AS_INSTANCE_FAILED, "it is not");
}

Test(gce, names_the_autoscaler_that_sets_the_size)
{
    begin(AS_GROUP_READ);
    talker_answer(
        talk, 200,
        "{\"id\":\"11\",\"targetSize\":1,\"status\":{\"autoscaler\":\"https://www.googleapis.com/"
        "compute/v1/" ZONE "/autoscalers/workers-as\"}}");
    talker_answer(talk, 200, "{}");
    talker_expect_end(talk, AS_TALK_OK, "");
    cr_assert_str_eq(given.talk.view.controller, "Google's autoscaler workers-as");
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
        given = (struct talker_group){0};
        begin(AS_GROUP_READ);
        snprintf(body, sizeof(body), "{\"id\":\"11\",\"targetSize\":1,\"currentActions\":%s}",
                 rows[i].actions);
        talker_answer(talk, 200, body);
        cr_expect_eq(given.talk.view.in_progress, rows[i].is_in_progress, "%s", rows[i].actions);
        if (i + 1 < AS_ARRAY_SIZE(rows))
            talker_end(&given);
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
        given = (struct talker_group){0};
        begin(AS_GROUP_READ);
        talker_answer(talk, 200, rows[i].body);
        talker_expect_end(talk, AS_TALK_RETRY, rows[i].message);
        cr_assert_not(talk->is_ambiguous);
        if (i + 1 < AS_ARRAY_SIZE(rows))
            talker_end(&given);
    }
}

Test(gce, refuses_a_group_that_is_too_large)
{
    begin(AS_GROUP_READ);
    talker_answer(talk, 200, "{\"id\":\"11\",\"targetSize\":20001}");
    talker_expect_end(talk, AS_TALK_CONFIGURATION, "the group has more than 20000 instances");
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
        given = (struct talker_group){0};
        begin(AS_GROUP_READ);
        talker_answer(talk, 200, "{\"id\":\"11\",\"targetSize\":1}");
        snprintf(body, sizeof(body), "{\"managedInstances\":[{\"instance\":\"%s\",%s}]}", urls[i],
                 RUNS);
        talker_answer(talk, 200, body);
        talker_expect_end(talk, AS_TALK_RETRY,
                          "list_managed_instances: the answer has no instance");
        if (i + 1 < AS_ARRAY_SIZE(urls))
            talker_end(&given);
    }
}

Test(gce, what_has_no_name_yet_is_no_instance)
{
    begin(AS_GROUP_READ);
    talker_answer(talk, 200, "{\"id\":\"11\",\"targetSize\":1}");
    talker_answer(talk, 200, "{\"managedInstances\":[{\"currentAction\":\"CREATING\"},7]}");
    talker_expect_end(talk, AS_TALK_OK, "");
    cr_assert_eq(given.talk.view.instance_count, 0);
}

/* ---- growing ---- */

Test(gce, grows_to_a_size_once)
{
    begin_change(AS_GROUP_GROW, 3, 5);
    talker_expect(talk, "GET", WORKERS, "");
    talker_answer(talk, 200, "{\"id\":\"11\",\"targetSize\":3}");
    /* the id of one change is always the same: SHA-256 of the ULID and the change */
    talker_expect(talk, "POST",
                  WORKERS "/resize?size=5&requestId=8b6dee0d-c4ee-42d9-9d25-23141c7bb5b8", "");
    talker_expect_headers(talk, "");
    cr_assert(talk->request.is_change);
    talker_answer(talk, 200, OPERATION("operation-17"));
    talker_expect_end(talk, AS_TALK_OK, "");
    cr_assert_str_eq(given.talk.started, ZONE "/operations/operation-17");
    cr_assert_str_eq(talk->request_id, "operation-17", "as the cloud's audit log has it");
}

Test(gce, a_regional_group_grows_in_its_region)
{
    given.talk.from = 1;
    given.talk.to = 2;
    begin_in("region", "europe-west1", AS_GROUP_GROW);
    talker_answer(talk, 200, "{\"id\":\"11\",\"targetSize\":1}");
    cr_assert(as_str_starts_with(talk->request.url,
                                 COMPUTE "projects/shop/regions/europe-west1/"
                                         "instanceGroupManagers/workers/resize?size=2&requestId="));
    talker_answer(talk, 200, OPERATION("op"));
    cr_assert_str_eq(given.talk.started, "projects/shop/regions/europe-west1/operations/op");
}

/* A resize is absolute: it would take away what somebody else has added. */
Test(gce, does_not_set_a_size_that_has_changed)
{
    begin_change(AS_GROUP_GROW, 3, 5);
    talker_answer(talk, 200, "{\"id\":\"11\",\"targetSize\":7}");
    talker_expect_end(talk, AS_TALK_BUSY, "its size is 7, not 3: somebody else has set it");
}

Test(gce, does_not_work_against_an_autoscaler)
{
    begin_change(AS_GROUP_GROW, 3, 5);
    talker_answer(talk, 200, "{\"id\":\"11\",\"targetSize\":3,\"status\":{\"autoscaler\":\"as\"}}");
    talker_expect_end(talk, AS_TALK_CONFIGURATION,
                      "Google's autoscaler as sets the size of this group: two would undo each "
                      "other's work; switch one off");
}

Test(gce, does_not_grow_beyond_all_bounds)
{
    begin_change(AS_GROUP_GROW, 3, INT32_MAX);
    talker_answer(talk, 200, "{\"id\":\"11\",\"targetSize\":3}");
    talker_expect_end(talk, AS_TALK_CONFIGURATION, "a group has at most 20000 instances");
}

Test(gce, an_answer_that_was_lost_leaves_it_open)
{
    begin_change(AS_GROUP_GROW, 3, 5);
    talker_answer(talk, 200, "{\"id\":\"11\",\"targetSize\":3}");
    talker_break(talk, AS_HTTP_TIMEOUT, "timed out");
    talker_expect_end(talk, AS_TALK_TIMEOUT, "resize: timed out");
    cr_assert(talk->is_ambiguous);
}

Test(gce, an_answer_that_cannot_be_read_leaves_it_open)
{
    begin_change(AS_GROUP_GROW, 3, 5);
    talker_answer(talk, 200, "{\"id\":\"11\",\"targetSize\":3}");
    talker_answer(talk, 200, "<html>");
    cr_assert_eq(talk->fault, AS_TALK_RETRY);
    cr_assert(talk->is_ambiguous);
    talker_end(&given);

    static const char *const names[] = {"{}", "{\"name\":\"a b\"}", "{\"name\":\"../x\"}"};
    for (size_t i = 0; i < AS_ARRAY_SIZE(names); i++) {
        given = (struct talker_group){0};
        begin_change(AS_GROUP_GROW, 3, 5);
        talker_answer(talk, 200, "{\"id\":\"11\",\"targetSize\":3}");
        talker_answer(talk, 200, names[i]);
        talker_expect_end(talk, AS_TALK_RETRY, "resize: the answer has no name");
        cr_assert(talk->is_ambiguous);
        if (i + 1 < AS_ARRAY_SIZE(names))
            talker_end(&given);
    }
}

Test(gce, an_operation_may_fail_at_once)
{
    begin_change(AS_GROUP_GROW, 3, 5);
    talker_answer(talk, 200, "{\"id\":\"11\",\"targetSize\":3}");
    talker_answer(talk, 200,
                  "{\"name\":\"op\",\"status\":\"DONE\",\"error\":{\"errors\":[{\"code\":"
                  "\"QUOTA_EXCEEDED\",\"message\":\"Quota 'CPUS' exceeded.  Limit: 8.0\"}]}}");
    talker_expect_end(talk, AS_TALK_CAPACITY,
                      "resize: QUOTA_EXCEEDED: Quota 'CPUS' exceeded.  Limit: 8.0");
}

/* ---- errors ---- */

Test(gce, knows_errors_by_their_reasons)
{
    static const struct {
        int status;
        const char *reason, *message;
        enum as_talk_fault fault;
    } rows[] = {
        {429, "rateLimitExceeded", "Slow down", AS_TALK_THROTTLED},
        {403, "rateLimitExceeded", "Rate Limit Exceeded", AS_TALK_THROTTLED},
        {403, "userRateLimitExceeded", "User Rate Limit Exceeded", AS_TALK_THROTTLED},
        {403, "quotaExceeded", "Quota exceeded for quota metric 'Queries'", AS_TALK_THROTTLED},
        {403, "quotaExceeded", "Quota 'CPUS' exceeded. Limit: 24.0", AS_TALK_CAPACITY},
        {503, "zoneResourcePoolExhausted", "No machines", AS_TALK_CAPACITY},
        {400, "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS", "No machines", AS_TALK_CAPACITY},
        {412, "conditionNotMet", "Fingerprint", AS_TALK_BUSY},
        {400, "resourceNotReady", "The resource is not ready", AS_TALK_BUSY},
        {400, "resourceInUseByAnotherResource", "In use", AS_TALK_BUSY},
        {409, "alreadyExists", "It exists", AS_TALK_BUSY},
        {401, "authError", "Invalid Credentials", AS_TALK_UNAUTHORIZED},
        {403, "forbidden", "Required 'compute.instanceGroupManagers.get' permission",
         AS_TALK_PERMISSION},
        {403, "accessNotConfigured", "Compute Engine API is not enabled", AS_TALK_CONFIGURATION},
        {404, "notFound", "The resource was not found", AS_TALK_GONE},
        {400, "invalid", "Invalid value for field", AS_TALK_CONFIGURATION},
        {500, "internalError", "Internal error", AS_TALK_RETRY},
        {502, "backendError", "Backend", AS_TALK_RETRY},
        {503, "backendError", "Backend", AS_TALK_RETRY},
        {408, "timeout", "Timeout", AS_TALK_TIMEOUT},
    };
    char want[256];
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        given = (struct talker_group){0};
        begin(AS_GROUP_READ);
        google_error(talk, rows[i].status, rows[i].reason, rows[i].message);
        snprintf(want, sizeof(want), "get_instance_group_manager: HTTP %d %s: %s", rows[i].status,
                 rows[i].reason, rows[i].message);
        talker_expect_end(talk, rows[i].fault, want);
        cr_assert_not(talk->is_ambiguous);
        if (i + 1 < AS_ARRAY_SIZE(rows))
            talker_end(&given);
    }
}

Test(gce, the_details_of_an_error_say_more_than_its_reason)
{
    begin(AS_GROUP_READ);
    talker_answer(talk, 403,
                  "{\"error\":{\"code\":403,\"message\":\"Request had insufficient authentication "
                  "scopes.\",\"errors\":[{\"reason\":\"insufficientPermissions\"}],\"status\":"
                  "\"PERMISSION_DENIED\",\"details\":[{\"@type\":\"x\"},{\"@type\":"
                  "\"type.googleapis.com/google.rpc.ErrorInfo\",\"reason\":"
                  "\"ACCESS_TOKEN_SCOPE_INSUFFICIENT\"}]}}");
    talker_expect_end(talk, AS_TALK_PERMISSION,
                      "get_instance_group_manager: HTTP 403 ACCESS_TOKEN_SCOPE_INSUFFICIENT: "
                      "Request had insufficient authentication scopes.");
}

Test(gce, an_error_may_name_the_request)
{
    begin(AS_GROUP_READ);
    talker_answer(talk, 400,
                  "{\"error\":{\"message\":\"no\",\"details\":[{\"requestId\":7},{\"@type\":"
                  "\"type.googleapis.com/google.rpc.RequestInfo\",\"requestId\":\"0x1f\"},"
                  "{\"reason\":\"RESOURCE_NOT_READY\"}]}}");
    talker_expect_end(talk, AS_TALK_BUSY,
                      "get_instance_group_manager: HTTP 400 RESOURCE_NOT_READY: no");
    cr_assert_str_eq(talk->request_id, "0x1f");
}

Test(gce, an_error_without_words_is_known_by_its_status)
{
    static const struct {
        int status;
        const char *body;
        enum as_talk_fault fault;
    } rows[] = {
        {503, "<html>", AS_TALK_RETRY},
        {404, "", AS_TALK_GONE},
        {403, "{\"error\":7}", AS_TALK_PERMISSION},
        {403, "{\"error\":{\"errors\":[]}}", AS_TALK_PERMISSION},
        {429, "[]", AS_TALK_THROTTLED},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        char want[64];
        given = (struct talker_group){0};
        begin(AS_GROUP_READ);
        talker_answer(talk, rows[i].status, rows[i].body);
        snprintf(want, sizeof(want), "get_instance_group_manager: HTTP %d", rows[i].status);
        talker_expect_end(talk, rows[i].fault, want);
        if (i + 1 < AS_ARRAY_SIZE(rows))
            talker_end(&given);
    }
}

Test(gce, a_throttled_request_says_when_to_come_back)
{
    begin(AS_GROUP_READ);
    talker_hear(talk, (struct as_http_response){.status = 429, .body = "", .retry_after = "7"});
    cr_assert_eq(talk->fault, AS_TALK_THROTTLED);
    cr_assert_eq(talk->retry_after_us, 7 * AS_US_PER_S);
}

/* ---- removing ---- */

Test(gce, removes_instances_by_name)
{
    static const char *const ids[] = {"europe-west1-b/workers/w-1", "europe-west1-b/workers/w-2"};
    begin_removal(ids, 2);
    talker_expect(talk, "POST",
                  WORKERS "/deleteInstances?requestId=bc2caab4-32d9-422d-b871-b313cdd18bd4",
                  "{\"instances\":[\"zones/europe-west1-b/instances/w-1\","
                  "\"zones/europe-west1-b/instances/w-2\"],"
                  "\"skipInstancesOnValidationError\":true}");
    talker_expect_headers(talk, "Content-Type: application/json\n");
    talker_answer(talk, 200, OPERATION("op"));
    talker_expect_end(talk, AS_TALK_OK, "");
    cr_assert_str_eq(given.talk.started, ZONE "/operations/op");
}

Test(gce, a_regional_group_loses_instances_of_all_zones_at_once)
{
    static const char *const ids[] = {"europe-west1-b/workers/w-1", "europe-west1-c/workers/w-2"};
    given.talk.instances = ids;
    given.talk.instance_count = 2;
    given.talk.from = 2;
    begin_in("region", "europe-west1", AS_GROUP_REMOVE);
    answer_size(2);
    google_members(talk, ids, 2);
    cr_assert_str_eq(talk->request.body.data,
                     "{\"instances\":[\"zones/europe-west1-b/instances/w-1\","
                     "\"zones/europe-west1-c/instances/w-2\"],"
                     "\"skipInstancesOnValidationError\":true}");
    talker_answer(talk, 200, OPERATION("op"));
    talker_expect_end(talk, AS_TALK_OK, "");
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
    cr_assert(strstr(talk->request.body.data, "instances/w-999\"]"));
    char *first = strdup(strstr(talk->request.url, "requestId="));
    talker_answer(talk, 200, OPERATION("op-1"));
    cr_assert_str_eq(talk->request.body.data,
                     "{\"instances\":[\"zones/europe-west1-b/instances/w-1000\"],"
                     "\"skipInstancesOnValidationError\":true}");
    cr_assert_str_neq(strstr(talk->request.url, "requestId="), first, "it is another change");
    free(first);
    talker_answer(talk, 200, OPERATION("op-2"));
    talker_expect_end(talk, AS_TALK_OK, "");
    cr_assert_str_eq(given.talk.started, ZONE "/operations/op-1 " ZONE "/operations/op-2");
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
    talker_answer(talk, 200, OPERATION("op-1"));
    for (size_t i = 0; i < 2; i++) {
        google_error(talk, 403, "rateLimitExceeded", "Slow down");
        cr_assert_eq(talk->want, AS_TALK_WAIT);
        as_talk_hear_time(talk, TALKER_NOW);
    }
    google_error(talk, 403, "rateLimitExceeded", "Slow down");
    cr_assert_eq(talk->fault, AS_TALK_THROTTLED);
    cr_assert(talk->is_ambiguous);
}

/* Draining takes its time. */
Test(gce, a_size_that_has_changed_lets_nobody_leave)
{
    static const char *const ids[] = {"europe-west1-b/workers/w-1", "europe-west1-b/workers/w-2"};
    for (int size = 1; size <= 3; size += 2) {
        char want[80];
        given = (struct talker_group){.talk = {.instances = ids, .instance_count = 1}};
        snprintf(want, sizeof(want), "the group has changed since it was looked at: its size is %d",
                 size);
        begin_change(AS_GROUP_REMOVE, 2, 1);
        answer_size(size);
        google_members(talk, ids, 2);
        talker_expect_end(talk, AS_TALK_BUSY, want);
        if (size == 1)
            talker_end(&given);
    }
}

Test(gce, what_is_gone_or_going_is_not_removed_twice)
{
    static const char *const ids[] = {"europe-west1-b/workers/w-1", "europe-west1-b/workers/w-2",
                                      "z/workers", ""};
    given = (struct talker_group){.talk = {.instances = ids, .instance_count = 4}};
    begin_change(AS_GROUP_REMOVE, 5, 1);
    answer_size(3);
    talker_answer(talk, 200,
                  "{\"managedInstances\":[" INSTANCE("w-1", RUNS) "," INSTANCE(
                      "w-2", "\"currentAction\":\"DELETING\"") "]}");
    cr_assert_str_eq(talk->request.body.data,
                     "{\"instances\":[\"zones/europe-west1-b/instances/w-1\"],"
                     "\"skipInstancesOnValidationError\":true}");
    talker_end(&given);
    given = (struct talker_group){.talk = {.instances = ids, .instance_count = 1}};
    begin_change(AS_GROUP_REMOVE, 2, 1);
    answer_size(1);
    talker_answer(talk, 200, "{}");
    talker_expect_end(talk, AS_TALK_OK, "");
    cr_assert_null(given.talk.started);
}

Test(gce, an_autoscaler_that_came_meanwhile_is_respected)
{
    static const char *const ids[] = {"europe-west1-b/workers/w-1"};
    given = (struct talker_group){.talk = {.instances = ids, .instance_count = 1}};
    begin_change(AS_GROUP_REMOVE, 1, 0);
    talker_answer(talk, 200,
                  "{\"id\":\"11\",\"targetSize\":1,\"status\":{\"autoscaler\":\"x/web\"}}");
    google_members(talk, ids, 1);
    talker_expect_end(talk, AS_TALK_CONFIGURATION,
                      "Google's autoscaler web sets the size of this group: two would undo each "
                      "other's work; switch one off");
}

/* ---- taking back ---- */

static void read_three(const char *second, const char *third)
{
    char body[2048];
    talker_answer(talk, 200, "{\"id\":\"11\",\"targetSize\":3}");
    snprintf(body, sizeof(body),
             "{\"managedInstances\":[" INSTANCE("w-1", RUNS) ",{\"instance\":\"" AT(
                 "z", "w-2") "\",%s},{\"instance\":\"" AT("z", "w-3") "\",%s}]}",
             second, third);
    talker_answer(talk, 200, body);
}

Test(gce, takes_back_by_name_first_what_failed)
{
    begin_change(AS_GROUP_TAKE_BACK, 3, 2);
    read_three("\"currentAction\":\"CREATING\"", "\"currentAction\":\"CREATING\"," NO_MACHINES);
    cr_assert_str_eq(talk->request.body.data, "{\"instances\":[\"zones/z/instances/w-3\"],"
                                              "\"skipInstancesOnValidationError\":true}");
    talker_answer(talk, 200, OPERATION("op"));
    talker_expect_end(talk, AS_TALK_OK, "");
}

Test(gce, takes_back_all_that_has_not_come)
{
    begin_change(AS_GROUP_TAKE_BACK, 3, 1);
    read_three("\"currentAction\":\"CREATING\"", "\"currentAction\":\"CREATING\"," NO_MACHINES);
    cr_assert_str_eq(talk->request.body.data,
                     "{\"instances\":[\"zones/z/instances/w-3\",\"zones/z/instances/w-2\"],"
                     "\"skipInstancesOnValidationError\":true}");
}

Test(gce, takes_nothing_back_that_has_come)
{
    begin_change(AS_GROUP_TAKE_BACK, 3, 1);
    read_three("\"currentAction\":\"CREATING\"", RUNS);
    talker_expect_end(talk, AS_TALK_BUSY,
                      "only 1 of 2 instances have not come: the others have, in the meantime");
}

Test(gce, nothing_is_taken_back_twice)
{
    begin_change(AS_GROUP_TAKE_BACK, 5, 3);
    read_three(RUNS, RUNS);
    talker_expect_end(talk, AS_TALK_OK, "");
    cr_assert_null(given.talk.started);
}

/* ---- operations ---- */

static void begin_poll(const char *operation)
{
    given.talk.operation = operation;
    begin(AS_GROUP_POLL);
}

Test(gce, polls_operations_until_all_are_done)
{
    begin_poll(ZONE "/operations/op-1 " ZONE "/operations/op-2");
    talker_expect(talk, "GET", COMPUTE ZONE "/operations/op-1", "");
    talker_answer(talk, 200, "{\"name\":\"op-1\",\"status\":\"DONE\"}");
    talker_expect(talk, "GET", COMPUTE ZONE "/operations/op-2", "");
    talker_answer(talk, 200, "{\"name\":\"op-2\",\"status\":\"RUNNING\"}");
    talker_expect_end(talk, AS_TALK_OK, "");
    cr_assert_not(given.talk.is_done);
    talker_end(&given);

    given = (struct talker_group){0};
    begin_poll(ZONE "/operations/op-2");
    talker_answer(talk, 200, "{\"name\":\"op-2\",\"status\":\"DONE\"}");
    talker_expect_end(talk, AS_TALK_OK, "");
    cr_assert(given.talk.is_done);
}

Test(gce, an_operation_that_is_forgotten_is_over)
{
    begin_poll(ZONE "/operations/op-1 " ZONE "/operations/op-2");
    google_error(talk, 404, "notFound", "The resource was not found");
    talker_expect(talk, "GET", COMPUTE ZONE "/operations/op-2", "");
    google_error(talk, 404, "notFound", "The resource was not found");
    talker_expect_end(talk, AS_TALK_OK, "");
    cr_assert(given.talk.is_done);
}

Test(gce, an_operation_that_is_done_may_have_failed)
{
    static const struct {
        const char *code;
        enum as_talk_fault fault;
    } rows[] = {
        {"QUOTA_EXCEEDED", AS_TALK_CAPACITY},
        {"ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS", AS_TALK_CAPACITY},
        {"VM_MIN_COUNT_NOT_REACHED", AS_TALK_RETRY},
        {"IP_SPACE_EXHAUSTED", AS_TALK_CAPACITY},
        {"PERMISSIONS_ERROR", AS_TALK_PERMISSION},
        {"RESOURCE_NOT_READY", AS_TALK_BUSY},
        {"RESOURCE_NOT_FOUND", AS_TALK_GONE},
        {"RATE_LIMIT_EXCEEDED", AS_TALK_THROTTLED},
        {"INTERNAL_ERROR", AS_TALK_RETRY},
        {"", AS_TALK_RETRY},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        char body[256], want[128];
        given = (struct talker_group){0};
        begin_poll(ZONE "/operations/op");
        snprintf(body, sizeof(body),
                 "{\"name\":\"op\",\"status\":\"DONE\",\"error\":{\"errors\":[{\"code\":\"%s\","
                 "\"message\":\"no\"}]}}",
                 rows[i].code);
        talker_answer(talk, 200, body);
        snprintf(want, sizeof(want), "operation op: %s: no", rows[i].code);
        talker_expect_end(talk, rows[i].fault, want);
        cr_expect(given.talk.is_done, "it does not go on");
        if (i + 1 < AS_ARRAY_SIZE(rows))
            talker_end(&given);
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
        given = (struct talker_group){0};
        talk = &given.talk.talk;
        talker_option(&given, "project", "shop");
        talker_field(&given, "name", "workers");
        talker_field(&given, "zone", rows[i].zone);
        talker_field(&given, "region", rows[i].region);
        talker_begin(&given, "gce", AS_GROUP_READ);
        talker_expect_end(talk, AS_TALK_CONFIGURATION, rows[i].message);
        if (i == 0)
            talker_end(&given);
    }
}

static void expect_project(const char *want)
{
    char url[256];
    talk = &given.talk.talk;
    talker_field(&given, "name", "a b");
    talker_field(&given, "zone", "z");
    talker_begin(&given, "gce", AS_GROUP_READ);
    snprintf(url, sizeof(url),
             "https://compute.googleapis.com/compute/v1/projects/%s/zones/z/instanceGroupManagers/"
             "a%%20b",
             want);
    talker_expect(talk, "GET", url, "");
    talker_end(&given);
}

/* The nearest to the group that says it. */
Test(gce, finds_the_project)
{
    given = (struct talker_group){.credentials = {.project = (char[]){"of-credentials"}}};
    expect_project("of-credentials");
    talker_set("GOOGLE_CLOUD_PROJECT", "of-environment");
    given = (struct talker_group){.credentials = {.project = (char[]){"of-credentials"}}};
    expect_project("of-environment");
    given = (struct talker_group){.credentials = {.project = (char[]){"of-credentials"}}};
    talker_option(&given, "project", "of-account");
    expect_project("of-account");
    given = (struct talker_group){.credentials = {.project = (char[]){"of-credentials"}}};
    talker_option(&given, "project", "of-account");
    talker_field(&given, "project", "example.com:of-group");
    expect_project("example.com%3Aof-group");

    given = (struct talker_group){0};
    talker_set("GOOGLE_CLOUD_PROJECT", "");
    talk = &given.talk.talk;
    talker_field(&given, "name", "workers");
    talker_field(&given, "zone", "z");
    talker_begin(&given, "gce", AS_GROUP_READ);
    talker_expect_end(talk, AS_TALK_CONFIGURATION,
                      "the project is not known: set `project` of the provider");
}
