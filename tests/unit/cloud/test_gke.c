/*
 * google.c: node pools of Kubernetes Engine: their groups, their states, and how a change is spread
 * over zones. test_gce.c tests single groups.
 */
#include "google_groups.h"

#define POOL CONTAINER "projects/shop/locations/europe-west1/clusters/prod/nodePools/workers"
#define MIG_URL(zone, name)                                                                        \
    "\"https://www.googleapis.com/compute/v1/projects/shop/zones/" zone                            \
    "/instanceGroupManagers/" name "\""
#define MIG(zone, name) COMPUTE "projects/shop/zones/" zone "/instanceGroupManagers/" name
#define THREE                                                                                      \
    "{\"status\":\"RUNNING\",\"initialNodeCount\":9,\"autoscaling\":{},\"instanceGroupUrls\":"     \
    "[" MIG_URL("b", "grp-b") "," MIG_URL("c", "grp-c") "," MIG_URL("d", "grp-d") "]}"

static struct driver_group given;
static struct as_cloud_op *op;

static void begin(enum as_group_verb verb)
{
    driver_option(&given, "project", "shop");
    driver_option(&given, "compute_endpoint", "http://127.0.0.1:5000/");
    driver_option(&given, "endpoint", "http://127.0.0.1:5001");
    driver_field(&given, "name", "workers");
    driver_field(&given, "cluster", "prod");
    driver_field(&given, "location", "europe-west1");
    given.op.idempotency = ULID;
    op = &given.op.op;
    driver_begin(&given, "gke", verb);
}

static void begin_change(enum as_group_verb verb, int32_t from, int32_t to)
{
    given.op.from = from;
    given.op.to = to;
    begin(verb);
}

static void end(void)
{
    driver_end(&given);
}

TestSuite(gke, .fini = end);

static void answer_size_of(int size)
{
    char body[64];
    const char *name = strrchr(op->request.url, '/') + 1; /* its id, as names differ */
    snprintf(body, sizeof(body), "{\"id\":\"%s\",\"targetSize\":%d}", name, size);
    driver_answer(op, 200, body);
}

Test(gke, the_size_is_the_sum_of_the_groups)
{
    begin(AS_GROUP_READ);
    driver_expect(op, "GET", POOL, "");
    driver_answer(op, 200, THREE);
    driver_expect(op, "GET", MIG("b", "grp-b"), "");
    answer_size_of(2);
    driver_expect(op, "POST", MIG("b", "grp-b") LIST, "");
    driver_answer(op, 200,
                  "{\"managedInstances\":[{\"instance\":\"" AT("b", "n-1") "\"," RUNS "}]}");
    driver_expect(op, "GET", MIG("c", "grp-c"), "");
    answer_size_of(1);
    driver_answer(op, 200, "{}");
    driver_expect(op, "GET", MIG("d", "grp-d"), "");
    answer_size_of(1);
    driver_expect(op, "POST", MIG("d", "grp-d") LIST, "");
    driver_answer(op, 200,
                  "{\"managedInstances\":[{\"instance\":\"" AT("d", "n-2") "\"," RUNS "}]}");
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    driver_expect_backing(&given, "gce/grp-b gce/grp-c gce/grp-d ");
    cr_assert_eq(given.op.view.size, 4, "not three zones of nine");
    cr_assert_eq(given.op.view.instance_count, 2);
    driver_expect_instance(&given, 0, "b/grp-b/n-1 gce://shop/b/n-1 b running");
    driver_expect_instance(&given, 1, "d/grp-d/n-2 gce://shop/d/n-2 d running");
    cr_assert_null(given.op.view.controller);
    cr_assert_not(given.op.view.in_progress);
    cr_assert_eq(given.op.view.max, -1);
}

/* A zone is a location: one pool has one full name. */
Test(gke, the_full_name_of_the_pool_is_one_of_its_resources)
{
    static const char *const links[] = {
        "https://container.googleapis.com/v1/projects/shop/locations/b/clusters/prod/nodePools/w",
        "https://container.googleapis.com/v1/projects/shop/zones/b/clusters/prod/nodePools/w",
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(links); i++) {
        char body[1024];
        snprintf(body, sizeof(body),
                 "{\"selfLink\":\"%s\",\"instanceGroupUrls\":[" MIG_URL("b", "grp-b") "]}",
                 links[i]);
        given = (struct driver_group){0};
        begin(AS_GROUP_READ);
        driver_answer(op, 200, body);
        answer_size_of(2);
        driver_answer(op, 200, "{}");
        driver_expect_end(op, AS_CLOUD_OP_OK, "");
        driver_expect_backing(&given,
                              "gke/projects/shop/locations/b/clusters/prod/nodePools/w gce/grp-b ");
        if (i + 1 < AS_ARRAY_SIZE(links))
            driver_end(&given);
    }
}

static const char *make_pool(const char *rest)
{
    static char body[1024];
    snprintf(body, sizeof(body), "{%s,\"instanceGroupUrls\":[" MIG_URL("b", "grp-b") "]}", rest);
    return body;
}

Test(gke, names_what_else_sets_the_size)
{
    static const struct {
        const char *rest, *controller;
    } rows[] = {
        {"\"autoscaling\":{\"enabled\":true,\"maxNodeCount\":5}",
         "the node pool's own autoscaling"},
        {"\"autoscaling\":{\"enabled\":false}", NULL},
        {"\"autopilotConfig\":{\"enabled\":true}", "GKE Autopilot"},
        {"\"autopilotConfig\":{}", NULL},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        given = (struct driver_group){0};
        begin(AS_GROUP_READ);
        driver_answer(op, 200, make_pool(rows[i].rest));
        answer_size_of(1);
        driver_answer(op, 200, "{}");
        driver_expect_end(op, AS_CLOUD_OP_OK, "");
        cr_assert(as_str_equal(given.op.view.controller, rows[i].controller));
        driver_end(&given);
    }
    static const enum as_group_verb changes[] = {AS_GROUP_GROW, AS_GROUP_TAKE_BACK};
    for (size_t i = 0; i < AS_ARRAY_SIZE(changes); i++) {
        given = (struct driver_group){0};
        begin_change(changes[i], 1, 2);
        driver_answer(op, 200, make_pool(rows[0].rest));
        driver_expect_end(op, AS_CLOUD_OP_CONFIGURATION,
                          "the node pool's own autoscaling sets the size of this group: two would "
                          "undo each other's work; switch one off");
        if (i == 0)
            driver_end(&given);
    }
}

Test(gke, the_pools_state_counts)
{
    static const struct {
        const char *status;
        enum as_cloud_op_fault of_read, of_change;
        const char *message; /* of the change */
    } rows[] = {
        {"RUNNING", AS_CLOUD_OP_OK, AS_CLOUD_OP_OK, ""},
        {"RUNNING_WITH_ERROR", AS_CLOUD_OP_OK, AS_CLOUD_OP_OK, ""},
        {"PROVISIONING", AS_CLOUD_OP_OK, AS_CLOUD_OP_BUSY,
         "the node pool is being changed (PROVISIONING)"},
        {"RECONCILING", AS_CLOUD_OP_OK, AS_CLOUD_OP_BUSY,
         "the node pool is being changed (RECONCILING)"},
        {"STOPPING", AS_CLOUD_OP_GONE, AS_CLOUD_OP_GONE, "the node pool is being deleted"},
        {"ERROR", AS_CLOUD_OP_CONFIGURATION, AS_CLOUD_OP_CONFIGURATION,
         "the node pool has failed: why"},
    };
    char rest[128];
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        snprintf(rest, sizeof(rest), "\"status\":\"%s\",\"conditions\":[{\"message\":\"why\"}]",
                 rows[i].status);
        given = (struct driver_group){0};
        begin(AS_GROUP_READ);
        driver_answer(op, 200, make_pool(rest));
        if (rows[i].of_read == AS_CLOUD_OP_OK) {
            answer_size_of(1);
            driver_answer(op, 200, "{}");
        }
        cr_expect_eq(op->fault, rows[i].of_read);
        cr_expect_eq(given.op.view.in_progress, rows[i].of_change == AS_CLOUD_OP_BUSY);
        driver_end(&given);

        given = (struct driver_group){0};
        begin_change(AS_GROUP_GROW, 1, 2);
        driver_answer(op, 200, make_pool(rest));
        if (rows[i].of_change == AS_CLOUD_OP_OK)
            cr_expect_eq(op->want, AS_CLOUD_OP_SEND);
        else
            driver_expect_end(op, rows[i].of_change, rows[i].message);
        if (i + 1 < AS_ARRAY_SIZE(rows))
            driver_end(&given);
    }
}

/* Two more on zones of 3, 1 and 2: both go where the fewest are. */
Test(gke, grows_where_the_fewest_are)
{
    begin_change(AS_GROUP_GROW, 6, 8);
    driver_answer(op, 200, THREE);
    answer_size_of(3);
    answer_size_of(1);
    answer_size_of(2);
    cr_assert(as_str_starts_with(op->request.url, MIG("c", "grp-c") "/resize?size=3&requestId="));
    driver_answer(op, 200, OPERATION("op"));
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    cr_assert_str_eq(given.op.started, "projects/shop/zones/c/operations/op");
}

/* A size that is no multiple of the zones. */
Test(gke, grows_zone_by_zone)
{
    begin_change(AS_GROUP_GROW, 3, 5);
    driver_answer(op, 200, THREE);
    for (size_t i = 0; i < 3; i++)
        answer_size_of(1);
    cr_assert(as_str_starts_with(op->request.url, MIG("b", "grp-b") "/resize?size=2&requestId="));
    char *first = strdup(strstr(op->request.url, "requestId="));
    driver_answer(op, 200, OPERATION("op-1"));
    cr_assert(as_str_starts_with(op->request.url, MIG("c", "grp-c") "/resize?size=2&requestId="));
    cr_assert_str_neq(strstr(op->request.url, "requestId="), first, "each has an id of its own");
    free(first);
    driver_answer(op, 200, OPERATION("op-2"));
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    cr_assert_str_eq(given.op.started, "projects/shop/zones/b/operations/op-1 "
                                       "projects/shop/zones/c/operations/op-2");
}

Test(gke, a_second_zone_that_fails_leaves_it_open)
{
    begin_change(AS_GROUP_GROW, 3, 5);
    driver_answer(op, 200, THREE);
    for (size_t i = 0; i < 3; i++)
        answer_size_of(1);
    driver_answer(op, 200, OPERATION("op-1"));
    google_error(op, 403, "quotaExceeded", "Quota 'CPUS' exceeded.");
    driver_expect_end(op, AS_CLOUD_OP_CAPACITY,
                      "resize: HTTP 403 quotaExceeded: Quota 'CPUS' exceeded.");
    cr_assert(op->is_ambiguous, "one zone has grown");
}

/* By its id it is not done twice; half a change would be decided anew, from the size it came to. */
Test(gke, an_answer_that_is_lost_between_zones_is_asked_for_again)
{
    begin_change(AS_GROUP_GROW, 3, 5);
    driver_answer(op, 200, THREE);
    for (size_t i = 0; i < 3; i++)
        answer_size_of(1);
    char *first = strdup(op->request.url);
    driver_break(op, AS_HTTP_BROKEN, "closed");
    cr_assert_eq(op->want, AS_CLOUD_OP_WAIT);
    cr_assert_eq(op->wait_us, AS_US_PER_S);
    cr_assert_not(op->is_ambiguous);
    as_cloud_op_on_time(op, DRIVER_NOW);
    cr_assert_str_eq(op->request.url, first, "with its id");
    free(first);
    google_error(op, 503, "backendError", "later");
    cr_assert_eq(op->wait_us, 2 * AS_US_PER_S);
    as_cloud_op_on_time(op, DRIVER_NOW);
    driver_answer(op, 200, OPERATION("op-1"));
    cr_assert(as_str_starts_with(op->request.url, MIG("c", "grp-c") "/resize?size=2&requestId="));
    driver_respond(op, (struct as_http_response){.status = 429, .retry_after = "5"});
    cr_assert_eq(op->wait_us, 5 * AS_US_PER_S, "as it was told");
    as_cloud_op_on_time(op, DRIVER_NOW);
    driver_answer(op, 200, OPERATION("op-2"));
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    cr_assert_str_eq(given.op.started, "projects/shop/zones/b/operations/op-1 "
                                       "projects/shop/zones/c/operations/op-2");
}

Test(gke, an_answer_that_never_comes_is_given_up)
{
    begin_change(AS_GROUP_GROW, 3, 5);
    driver_answer(op, 200, THREE);
    for (size_t i = 0; i < 3; i++)
        answer_size_of(1);
    for (size_t i = 0; i < 2; i++) {
        google_error(op, 503, "backendError", "later");
        as_cloud_op_on_time(op, DRIVER_NOW);
    }
    google_error(op, 503, "backendError", "later");
    driver_expect_end(op, AS_CLOUD_OP_RETRY, "resize: HTTP 503 backendError: later");
    cr_assert(op->is_ambiguous);
}

Test(gke, what_is_throttled_for_long_is_not_waited_for)
{
    begin_change(AS_GROUP_GROW, 3, 5);
    driver_answer(op, 200, THREE);
    for (size_t i = 0; i < 3; i++)
        answer_size_of(1);
    driver_respond(op, (struct as_http_response){.status = 429, .retry_after = "11"});
    driver_expect_end(op, AS_CLOUD_OP_THROTTLED, "resize: HTTP 429");
}

/* One request is looked after by who decides: it is done, or not. */
Test(gke, one_request_is_not_made_again)
{
    begin_change(AS_GROUP_GROW, 3, 4);
    driver_answer(op, 200, THREE);
    for (size_t i = 0; i < 3; i++)
        answer_size_of(1);
    google_error(op, 503, "backendError", "later");
    driver_expect_end(op, AS_CLOUD_OP_RETRY, "resize: HTTP 503 backendError: later");
}

/* Of three, two in the first group and one in the second: the pool is read once more. */
static void begin_removal(const char *const ids[3])
{
    const char *const first[] = {ids[0], ids[2]};
    given.op.instances = ids;
    given.op.instance_count = 3;
    begin_change(AS_GROUP_REMOVE, 3, 0);
    driver_answer(op, 200, THREE);
    answer_size_of(2);
    google_members(op, first, 2);
    answer_size_of(1);
    google_members(op, &ids[1], 1);
    answer_size_of(0);
    google_members(op, NULL, 0);
}

Test(gke, a_removal_between_groups_is_asked_for_again)
{
    static const char *const ids[] = {"b/grp-b/n-1", "c/grp-c/n-2", "b/grp-b/n-3"};
    begin_removal(ids);
    char *first = strdup(op->request.url), *body = strdup(op->request.body.data);
    driver_break(op, AS_HTTP_TIMEOUT, "late");
    as_cloud_op_on_time(op, DRIVER_NOW);
    cr_assert_str_eq(op->request.url, first);
    cr_assert_str_eq(op->request.body.data, body);
    free(first);
    free(body);
    driver_answer(op, 200, OPERATION("op-1"));
    google_error(op, 500, "internalError", "oh");
    as_cloud_op_on_time(op, DRIVER_NOW);
    cr_assert_str_eq(op->request.body.data, "{\"instances\":[\"zones/c/instances/n-2\"],"
                                            "\"skipInstancesOnValidationError\":true}");
    driver_answer(op, 200, OPERATION("op-2"));
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
}

/* The ids say where the instances are: one request a group, in the order they came. */
Test(gke, removes_instances_group_by_group)
{
    static const char *const ids[] = {"b/grp-b/n-1", "c/grp-c/n-2", "b/grp-b/n-3"};
    begin_removal(ids);
    cr_assert(as_str_starts_with(op->request.url, MIG("b", "grp-b") "/deleteInstances?requestId="));
    cr_assert_str_eq(op->request.body.data,
                     "{\"instances\":[\"zones/b/instances/n-1\",\"zones/b/instances/n-3\"],"
                     "\"skipInstancesOnValidationError\":true}");
    driver_answer(op, 200, OPERATION("op-1"));
    cr_assert(as_str_starts_with(op->request.url, MIG("c", "grp-c") "/deleteInstances?requestId="));
    cr_assert_str_eq(op->request.body.data, "{\"instances\":[\"zones/c/instances/n-2\"],"
                                            "\"skipInstancesOnValidationError\":true}");
    driver_answer(op, 200, OPERATION("op-2"));
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    cr_assert_str_eq(given.op.started, "projects/shop/zones/b/operations/op-1 "
                                       "projects/shop/zones/c/operations/op-2");
}

/* A name that begins like another's is another one. */
Test(gke, tells_groups_apart)
{
    static const char *const ids[] = {"b/grp/n-1", "b/grp-2/n-2", "b2/grp/n-3"};
    given.op.instances = ids;
    given.op.instance_count = 3;
    begin_change(AS_GROUP_REMOVE, 3, 0);
    driver_answer(op, 200,
                  "{\"status\":\"RUNNING\",\"instanceGroupUrls\":[" MIG_URL("b", "grp") "," MIG_URL(
                      "b", "grp-2") "," MIG_URL("b2", "grp") "]}");
    for (size_t i = 0; i < 3; i++) {
        answer_size_of(1);
        google_members(op, &ids[i], 1);
    }
    for (size_t i = 0; i < 3; i++)
        driver_answer(op, 200, OPERATION("op"));
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
}

Test(gke, takes_back_from_each_group_what_has_not_come)
{
    begin_change(AS_GROUP_TAKE_BACK, 6, 4);
    driver_answer(op, 200, THREE);
    static const char *const zones[] = {"b", "c", "d"};
    for (size_t i = 0; i < 3; i++) {
        char body[512];
        answer_size_of(2);
        snprintf(body, sizeof(body),
                 "{\"managedInstances\":[{\"instance\":\"%s/%s/instances/n-%zu\",%s},"
                 "{\"instance\":\"%s/%s/instances/m-%zu\",%s}]}",
                 "https://www.googleapis.com/compute/v1/projects/shop/zones", zones[i], i, RUNS,
                 "https://www.googleapis.com/compute/v1/projects/shop/zones", zones[i], i,
                 i == 0 ? RUNS : "\"currentAction\":\"CREATING\"");
        driver_answer(op, 200, body);
    }
    cr_assert_str_eq(op->request.body.data, "{\"instances\":[\"zones/c/instances/m-1\"],"
                                            "\"skipInstancesOnValidationError\":true}");
    cr_assert(as_str_starts_with(op->request.url, MIG("c", "grp-c") "/deleteInstances"));
    driver_answer(op, 200, OPERATION("op-1"));
    cr_assert(as_str_starts_with(op->request.url, MIG("d", "grp-d") "/deleteInstances"));
    driver_answer(op, 200, OPERATION("op-2"));
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
}

Test(gke, polls_the_operations_of_the_groups)
{
    given.op.operation = "projects/shop/zones/b/operations/op-1";
    begin(AS_GROUP_POLL);
    driver_expect(op, "GET", COMPUTE "projects/shop/zones/b/operations/op-1", "");
    driver_answer(op, 200, "{\"status\":\"DONE\"}");
    cr_assert(given.op.is_done);
}

Test(gke, refuses_pools_of_another_shape)
{
    static const struct {
        const char *body, *message;
    } rows[] = {
        {"{}", "get_node_pool: the answer has no instanceGroupUrls"},
        {"{\"instanceGroupUrls\":[]}", "get_node_pool: the answer has no instanceGroupUrls"},
        {"{\"instanceGroupUrls\":[7]}",
         "get_node_pool: the answer has no instanceGroupUrls of instance group managers"},
        {"{\"instanceGroupUrls\":[\"https://x/projects/p/regions/r/instanceGroupManagers/m\"]}",
         "get_node_pool: the answer has no instanceGroupUrls of instance group managers"},
        {"{\"instanceGroupUrls\":[\"https://x/projects/p/zones/z/instanceGroupManagers/m/../x\"]}",
         "get_node_pool: the answer has no instanceGroupUrls of instance group managers"},
        {"{\"instanceGroupUrls\":[\"\"]}",
         "get_node_pool: the answer has no instanceGroupUrls of instance group managers"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        given = (struct driver_group){0};
        begin(AS_GROUP_READ);
        driver_answer(op, 200, rows[i].body);
        driver_expect_end(op, AS_CLOUD_OP_RETRY, rows[i].message);
        if (i + 1 < AS_ARRAY_SIZE(rows))
            driver_end(&given);
    }
}

Test(gke, refuses_too_many_groups)
{
    char body[8192] = "{\"instanceGroupUrls\":[";
    for (size_t i = 0; i < 65; i++)
        snprintf(body + strlen(body), sizeof(body) - strlen(body), "%s%s", i ? "," : "",
                 MIG_URL("b", "m"));
    strcat(body, "]}");
    begin(AS_GROUP_READ);
    driver_answer(op, 200, body);
    driver_expect_end(op, AS_CLOUD_OP_CONFIGURATION,
                      "the node pool has more than 64 instance groups");
}

Test(gke, knows_the_errors_of_the_container_api)
{
    static const struct {
        int status;
        const char *body;
        enum as_cloud_op_fault fault;
        const char *message;
    } rows[] = {
        {404,
         "{\"error\":{\"code\":404,\"message\":\"Not found: nodePools/workers.\",\"status\":"
         "\"NOT_FOUND\"}}",
         AS_CLOUD_OP_GONE, "get_node_pool: HTTP 404 NOT_FOUND: Not found: nodePools/workers."},
        {400,
         "{\"error\":{\"code\":400,\"message\":\"Cluster is running incompatible operation "
         "operation-1.\",\"status\":\"FAILED_PRECONDITION\"}}",
         AS_CLOUD_OP_BUSY,
         "get_node_pool: HTTP 400 FAILED_PRECONDITION: Cluster is running incompatible operation "
         "operation-1."},
        {400,
         "{\"error\":{\"code\":400,\"message\":\"Not now\",\"status\":\"FAILED_PRECONDITION\","
         "\"details\":[{\"reason\":\"CLUSTER_ALREADY_HAS_OPERATION\"}]}}",
         AS_CLOUD_OP_BUSY, "get_node_pool: HTTP 400 CLUSTER_ALREADY_HAS_OPERATION: Not now"},
        {400,
         "{\"error\":{\"code\":400,\"message\":\"The pool is odd\",\"status\":"
         "\"FAILED_PRECONDITION\"}}",
         AS_CLOUD_OP_CONFIGURATION, "get_node_pool: HTTP 400 FAILED_PRECONDITION: The pool is odd"},
        {403,
         "{\"error\":{\"code\":403,\"message\":\"no\",\"status\":\"PERMISSION_DENIED\","
         "\"details\":[{\"reason\":\"SERVICE_DISABLED\"}]}}",
         AS_CLOUD_OP_CONFIGURATION, "get_node_pool: HTTP 403 SERVICE_DISABLED: no"},
        {429,
         "{\"error\":{\"code\":429,\"message\":\"slow\",\"status\":\"RESOURCE_EXHAUSTED\","
         "\"details\":[{\"reason\":\"RATE_LIMIT_EXCEEDED\"}]}}",
         AS_CLOUD_OP_THROTTLED, "get_node_pool: HTTP 429 RATE_LIMIT_EXCEEDED: slow"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        given = (struct driver_group){0};
        begin(AS_GROUP_READ);
        driver_answer(op, rows[i].status, rows[i].body);
        driver_expect_end(op, rows[i].fault, rows[i].message);
        if (i + 1 < AS_ARRAY_SIZE(rows))
            driver_end(&given);
    }
}

Test(gke, asks_google_by_default)
{
    op = &given.op.op;
    given.credentials.project = (char[]){"shop"};
    driver_field(&given, "name", "a/b");
    driver_field(&given, "cluster", "c d");
    driver_field(&given, "location", "europe-west1-b");
    driver_begin(&given, "gke", AS_GROUP_READ);
    driver_expect(op, "GET",
                  "https://container.googleapis.com/v1/projects/shop/locations/europe-west1-b/"
                  "clusters/c%20d/nodePools/a%2Fb",
                  "");
    driver_answer(op, 200, make_pool("\"status\":\"RUNNING\""));
    driver_expect(op, "GET",
                  "https://compute.googleapis.com/compute/v1/projects/shop/zones/b/"
                  "instanceGroupManagers/grp-b",
                  "");
}
