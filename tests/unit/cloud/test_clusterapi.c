/*
 * clusterapi.c: every request byte by byte, the fields read of each kind, a
 * change after one of its steps fails, and the removal of marks exactly where necessary.
 */
#include "op_driver.h"

#define API  "/apis/cluster.x-k8s.io"
#define BASE API "/v1beta1/namespaces/infra"
#define MD   BASE "/machinedeployments/web"
#define LIST BASE "/machines?limit=100&labelSelector=cluster.x-k8s.io%2Fdeployment-name%3Dweb"
#define MARKED                                                                                     \
    "{\"metadata\":{\"annotations\":{\"cluster.x-k8s.io/delete-machine\":\"alertscaler\"}}}"
#define UNMARKED "{\"metadata\":{\"annotations\":{\"cluster.x-k8s.io/delete-machine\":null}}}"
#define GROUP(size)                                                                                \
    "{\"metadata\":{\"generation\":7,\"resourceVersion\":\"90\",\"uid\":\"u-1\"},\"spec\":{"       \
    "\"replicas\":" #size "},\"status\":{\"observedGeneration\":7,"                                \
    "\"selector\":\"cluster.x-k8s.io/deployment-name=web\"}}"
#define MACHINE(name, set, phase)                                                                  \
    "{\"metadata\":{\"name\":\"" name "\",\"creationTimestamp\":\"2024-05-17T10:20:30Z\","         \
    "\"ownerReferences\":[{\"kind\":\"MachineSet\",\"name\":\"" set "\"}]},"                       \
    "\"spec\":{\"providerID\":\"x:///" name "\",\"failureDomain\":\"a\"},"                         \
    "\"status\":{\"phase\":\"" phase "\"}}"
#define MACHINES(items) "{\"metadata\":{},\"items\":[" items "]}"
#define MISSING(there, size)                                                                       \
    "only " there " of its " size " Machines are there: others are leaving, or not made yet"
#define THREE                                                                                      \
    MACHINES(MACHINE("m1", "s", "Running") "," MACHINE("m2", "s", "Running") "," MACHINE(          \
        "m3", "s", "Running"))
#define STATUS(message) "{\"kind\":\"Status\",\"message\":\"" message "\"}"
#define SCALE(size)     "{\"kind\":\"Scale\",\"spec\":{\"replicas\":" #size "}}"

static struct driver_group given;
static struct as_cloud_op *op;

static void begin_kind(enum as_group_verb verb, const char *kind)
{
    driver_field(&given, "namespace", "infra");
    driver_field(&given, "name", "web");
    if (kind)
        driver_field(&given, "kind", kind);
    op = &given.op.op;
    driver_begin(&given, "clusterapi", verb);
}

/* Up to the group itself. */
static void begin(enum as_group_verb verb)
{
    begin_kind(verb, NULL);
    driver_expect(op, "GET", API, "");
    driver_answer(op, 200, "{\"preferredVersion\":{\"version\":\"v1beta1\"}}");
    driver_expect(op, "GET", MD, "");
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
    given = (struct driver_group){0};
}

TestSuite(clusterapi, .fini = end);

Test(clusterapi, reads_a_machine_deployment)
{
    begin(AS_GROUP_READ);
    driver_answer(op, 200,
                  "{\"metadata\":{\"uid\":\"u-1\",\"generation\":7,\"annotations\":{"
                  "\"cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size\":\"1\","
                  "\"cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size\":\"9\"}},"
                  "\"spec\":{\"replicas\":5},\"status\":{\"observedGeneration\":6,"
                  "\"selector\":\"cluster.x-k8s.io/deployment-name=web\"}}");
    driver_expect(op, "GET", LIST, "");
    driver_answer(op, 200,
                  "{\"metadata\":{\"continue\":\"a/b\"},\"items\":[" MACHINE(
                      "m1", "s", "Running") "," MACHINE("m2", "s", "Provisioned") "]}");
    driver_expect(op, "GET", LIST "&continue=a%2Fb", "");
    driver_answer(
        op, 200,
        MACHINES(MACHINE("m3", "s", "Deleting") "," MACHINE(
            "m4", "s",
            "") ",{\"metadata\":{"
                "\"name\":\"m5\",\"annotations\":{\"cluster.x-k8s.io/delete-machine\":\"\"}},"
                "\"status\":{\"phase\":\"Failed\",\"failureReason\":\"CreateError\","
                "\"failureMessage\":\"no quota\"}},{\"metadata\":{\"name\":\"m6\","
                "\"deletionTimestamp\":\"2024-05-17T10:20:30Z\"},\"status\":{\"phase\":"
                "\"Running\"}}"));
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    driver_expect_backing(&given, "kubernetes/u-1 ");
    const struct as_group_view *view = &given.op.view;
    cr_assert_eq(view->size, 5);
    cr_assert_eq(view->min, 1);
    cr_assert_eq(view->max, 9);
    cr_assert(view->in_progress, "the controller has not seen the last change");
    cr_assert_eq(view->instance_count, 6);
    driver_expect_instance(&given, 0, "m1 x:///m1 a running");
    driver_expect_instance(&given, 1, "m2 x:///m2 a pending");
    driver_expect_instance(&given, 2, "m3 x:///m3 a leaving");
    driver_expect_instance(&given, 3, "m4 x:///m4 a pending");
    driver_expect_instance(&given, 4, "m5 m5 - failed unhealthy");
    driver_expect_instance(&given, 5, "m6 m6 - leaving");
    cr_assert(view->instances[0].created.set);
    cr_assert_str_eq(view->shortage, "CreateError: no quota");
    cr_assert_null(view->no_increase);
    cr_assert_str_eq(view->no_removal, MISSING("4", "5"));
}

Test(clusterapi, reads_other_kinds)
{
    begin_kind(AS_GROUP_READ, "MachineSet");
    driver_answer(op, 200, "{\"preferredVersion\":{\"version\":\"v1beta2\"}}");
    driver_expect(op, "GET", API "/v1beta2/namespaces/infra/machinesets/web", "");
    driver_answer(op, 200,
                  "{\"metadata\":{\"uid\":\"u-1\"},\"spec\":{\"replicas\":0},\"status\":{"
                  "\"selector\":\"a=b,c\"}}");
    driver_expect(op, "GET",
                  API "/v1beta2/namespaces/infra/machines?limit=100&labelSelector=a%3Db%2Cc", "");
    driver_answer(op, 200, MACHINES(""));
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    cr_assert_eq(given.op.view.size, 0);
    cr_assert_eq(given.op.view.max, -1);
    end();
    begin_kind(AS_GROUP_READ, "Deployment");
    driver_expect_end(op, AS_CLOUD_OP_CONFIGURATION,
                      "`kind` is not MachineDeployment, MachineSet or MachinePool, but Deployment");
}

static void read_pool(enum as_group_verb verb, const char *machines)
{
    begin_kind(verb, "MachinePool");
    driver_answer(op, 200, "{\"preferredVersion\":{\"version\":\"v1beta1\"}}");
    driver_expect(op, "GET", BASE "/machinepools/web", "");
    driver_answer(op, 200,
                  "{\"metadata\":{\"uid\":\"u-1\"},\"spec\":{\"replicas\":3,\"providerIDList\":["
                  "\"x://1\",\"x://2\",7,\"\"]}}");
    driver_expect(op, "GET",
                  BASE "/machines?limit=100&labelSelector=cluster.x-k8s.io%2Fpool-name%3Dweb", "");
    driver_answer(op, 200, machines);
}

Test(clusterapi, a_pool_without_machines_does_not_shrink)
{
    read_pool(AS_GROUP_READ, MACHINES(""));
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    cr_assert_eq(given.op.view.instance_count, 2);
    driver_expect_instance(&given, 1, "x://2 x://2 - running");
    cr_assert(as_str_starts_with(given.op.view.no_removal, "this MachinePool has no Machines"));
    end();
    read_pool(AS_GROUP_READ, THREE);
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    cr_assert_eq(given.op.view.instance_count, 3);
    driver_expect_instance(&given, 0, "m1 x:///m1 a running");
    cr_assert_null(given.op.view.no_removal);
    end();
    given.op.from = 3; /* what never came may be taken back all the same */
    given.op.to = 2;
    read_pool(AS_GROUP_TAKE_BACK, MACHINES(""));
    cr_assert_str_eq(op->request.url, BASE "/machinepools/web/scale");
    driver_answer(op, 200, SCALE(2));
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    end();
    given.op.from = 3;
    given.op.to = 1;
    read_pool(AS_GROUP_TAKE_BACK, MACHINES(""));
    driver_expect_end(op, AS_CLOUD_OP_BUSY, "machines have come meanwhile: 2 run");
}

Test(clusterapi, a_rollout_or_a_pause_lets_nobody_leave)
{
    begin(AS_GROUP_READ);
    driver_answer(op, 200, GROUP(1));
    driver_answer(op, 200,
                  MACHINES(MACHINE("m1", "old", "Deleting") "," MACHINE("m2", "new", "Running")));
    cr_assert_null(given.op.view.no_removal, "the old one is leaving already");
    end();
    begin(AS_GROUP_READ);
    driver_answer(op, 200, GROUP(2));
    driver_answer(op, 200,
                  MACHINES(MACHINE("m1", "old", "Running") "," MACHINE("m2", "new", "Running")));
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    cr_assert(as_str_starts_with(given.op.view.no_removal, "a rollout is under way"));
    cr_assert_null(given.op.view.no_increase);
    end();
    static const char *const paused[] = {
        "{\"metadata\":{\"uid\":\"u-1\"},\"spec\":{\"replicas\":1,\"paused\":true},\"status\":{"
        "\"selector\":\"a=b\"}}",
        "{\"metadata\":{\"uid\":\"u-1\",\"annotations\":{\"cluster.x-k8s.io/paused\":\"\"}},"
        "\"spec\":{\"replicas\":1},\"status\":{\"selector\":\"a=b\"}}"};
    for (size_t i = 0; i < AS_ARRAY_SIZE(paused); i++) {
        begin(AS_GROUP_READ);
        driver_answer(op, 200, paused[i]);
        driver_answer(op, 200, MACHINES(""));
        driver_expect_end(op, AS_CLOUD_OP_OK, "");
        cr_assert_str_eq(given.op.view.no_increase, "it is paused: no controller works at it");
        cr_assert_not_null(given.op.view.no_removal);
        end();
    }
    begin_kind(AS_GROUP_POLL, NULL);
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    cr_assert(given.op.is_done);
}

Test(clusterapi, judges_what_cannot_be_read)
{
    static const struct {
        unsigned answers; /* good ones before it */
        int status;
        const char *body, *message;
        enum as_cloud_op_fault fault;
    } rows[] = {
        {0, 404, STATUS("the server could not find"),
         "Cluster API (cluster.x-k8s.io) is not installed in this cluster",
         AS_CLOUD_OP_CONFIGURATION},
        {0, 403, STATUS("no"), "discover_api: HTTP 403: no", AS_CLOUD_OP_PERMISSION},
        {0, 200, "{}", "discover_api: the answer has no preferredVersion.version",
         AS_CLOUD_OP_RETRY},
        {1, 404, STATUS("machinedeployments \\\"web\\\" not found"),
         "get_group: HTTP 404: machinedeployments \"web\" not found", AS_CLOUD_OP_GONE},
        {1, 403, STATUS("forbidden"), "get_group: HTTP 403: forbidden", AS_CLOUD_OP_PERMISSION},
        {1, 401, STATUS("Unauthorized"), "get_group: HTTP 401: Unauthorized",
         AS_CLOUD_OP_UNAUTHORIZED},
        {1, 429, STATUS("slow down"), "get_group: HTTP 429: slow down", AS_CLOUD_OP_THROTTLED},
        {1, 500, "<html>", "get_group: HTTP 500", AS_CLOUD_OP_RETRY},
        {1, 200, "{\"metadata\":{\"deletionTimestamp\":\"x\"}}",
         "MachineDeployment web is being deleted", AS_CLOUD_OP_GONE},
        {1, 200, "{}", "get_group: the answer has no spec.replicas", AS_CLOUD_OP_RETRY},
        {1, 200, "{\"spec\":{\"replicas\":1}}", "get_group: the answer has no metadata.uid",
         AS_CLOUD_OP_RETRY},
        {1, 200, "{\"spec\":{\"replicas\":-1}}", "get_group: the answer has no spec.replicas",
         AS_CLOUD_OP_RETRY},
        {1, 200, "{\"spec\":{\"replicas\":1}}", "get_group: the answer has no metadata.uid",
         AS_CLOUD_OP_RETRY},
        {1, 200, "{\"metadata\":{\"uid\":\"u-1\"},\"spec\":{\"replicas\":1}}",
         "its status has no selector: no controller has seen it yet", AS_CLOUD_OP_BUSY},
        {2, 410, STATUS("too old"), "list_machines: HTTP 410: too old", AS_CLOUD_OP_BUSY},
        {2, 403, STATUS("forbidden"), "list_machines: HTTP 403: forbidden", AS_CLOUD_OP_PERMISSION},
        {2, 200, MACHINES("{}"), "list_machines: the answer has no items[].metadata.name",
         AS_CLOUD_OP_RETRY},
    };
    static const char *const good[] = {"{\"preferredVersion\":{\"version\":\"v1beta1\"}}",
                                       GROUP(3)};
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        begin_kind(AS_GROUP_READ, NULL);
        for (unsigned at = 0; at < rows[i].answers; at++)
            driver_answer(op, 200, good[at]);
        driver_answer(op, rows[i].status, rows[i].body);
        driver_expect_end(op, rows[i].fault, rows[i].message);
        end();
    }
    begin_kind(AS_GROUP_READ, NULL);
    driver_answer(op, 200, good[0]);
    driver_answer(op, 200, "[");
    cr_assert_eq(op->want, AS_CLOUD_OP_END);
    cr_assert_neq(op->fault, AS_CLOUD_OP_OK);
    end();
    begin_kind(AS_GROUP_READ, NULL);
    driver_break(op, AS_HTTP_UNREACHABLE, "nobody is there");
    driver_expect_end(op, AS_CLOUD_OP_RETRY, "discover_api: nobody is there");
}

Test(clusterapi, a_name_is_no_path)
{
    driver_field(&given, "namespace", "..");
    driver_field(&given, "name", "web");
    op = &given.op.op;
    driver_begin(&given, "clusterapi", AS_GROUP_READ);
    driver_expect_end(op, AS_CLOUD_OP_CONFIGURATION,
                      "`namespace` or `name` is no name of an object");
}

Test(clusterapi, pages_that_never_end_do)
{
    begin(AS_GROUP_READ);
    driver_answer(op, 200, GROUP(3));
    while (op->want == AS_CLOUD_OP_SEND)
        driver_answer(op, 200, "{\"metadata\":{\"continue\":\"x\"},\"items\":[]}");
    driver_expect_end(op, AS_CLOUD_OP_CONFIGURATION, "given up after 2 pages: it never ends");
}

/* ---- growing ---- */

static void expect_scale(const char *body)
{
    driver_expect(op, "PATCH", MD "/scale", body);
    driver_expect_headers(op, "Content-Type: application/json-patch+json\n");
    cr_assert(op->request.is_change);
}

#define FROM_TO(from, to)                                                                          \
    "[{\"op\":\"test\",\"path\":\"/spec/replicas\",\"value\":" #from                               \
    "},{\"op\":\"replace\",\"path\":\"/spec/replicas\",\"value\":" #to "}]"

Test(clusterapi, grows_on_condition_of_the_size)
{
    begin_change(AS_GROUP_GROW, 3, 5);
    driver_answer(op, 200, GROUP(3));
    expect_scale(FROM_TO(3, 5));
    driver_respond(op, (struct as_http_response){
                           .status = 200, .body = SCALE(5), .fields = "Audit-Id\0a-1\0"});
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    cr_assert_str_eq(op->request_id, "a-1");
    end();
    begin_change(AS_GROUP_GROW, 3, 5);
    driver_answer(op, 200, GROUP(4));
    driver_expect_end(op, AS_CLOUD_OP_BUSY, "its size is 4 meanwhile");
    end();
    begin_change(AS_GROUP_GROW, 0, 2);
    driver_answer(op, 200, GROUP(0));
    driver_expect(op, "PATCH", MD "/scale",
                  "{\"metadata\":{\"resourceVersion\":\"90\"},\"spec\":{\"replicas\":2}}");
    driver_expect_headers(op, "Content-Type: application/merge-patch+json\n");
    driver_answer(op, 409, STATUS("the object has been modified"));
    driver_expect_end(op, AS_CLOUD_OP_BUSY, "set_scale: HTTP 409: the object has been modified");
    cr_assert_eq(op->http_status, 409);
}

Test(clusterapi, looks_again_where_an_answer_leaves_it_open)
{
    static const struct {
        int status; /* of the change; 0: none came */
        const char *looked;
        int looked_status;
        enum as_cloud_op_fault fault;
        const char *message;
        bool is_ambiguous;
    } rows[] = {
        {0, GROUP(5), 200, AS_CLOUD_OP_OK, "", false},
        {0, GROUP(3), 200, AS_CLOUD_OP_TIMEOUT, "set_scale: late", false},
        {0, GROUP(4), 200, AS_CLOUD_OP_BUSY, "its size is 4 meanwhile", false},
        {0, "{}", 503, AS_CLOUD_OP_TIMEOUT, "set_scale: late", true},
        {503, GROUP(5), 200, AS_CLOUD_OP_OK, "", false},
        {503, "[", 200, AS_CLOUD_OP_RETRY, "set_scale: HTTP 503: etcd", true},
        {422, GROUP(3), 200, AS_CLOUD_OP_CONFIGURATION, "set_scale: HTTP 422: etcd", false},
        {422, GROUP(4), 200, AS_CLOUD_OP_BUSY, "its size is 4 meanwhile", false},
        {422, GROUP(5), 200, AS_CLOUD_OP_BUSY, "its size is 5 meanwhile", false},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        begin_change(AS_GROUP_GROW, 3, 5);
        driver_answer(op, 200, GROUP(3));
        if (rows[i].status)
            driver_answer(op, rows[i].status, STATUS("etcd"));
        else
            driver_break(op, AS_HTTP_TIMEOUT, "late");
        driver_expect(op, "GET", MD, "");
        driver_answer(op, rows[i].looked_status, rows[i].looked);
        driver_expect_end(op, rows[i].fault, rows[i].message);
        cr_assert_eq(op->is_ambiguous, rows[i].is_ambiguous, "%zu", i);
        end();
    }
    begin_change(AS_GROUP_GROW, 3, 5);
    driver_answer(op, 200, GROUP(3));
    driver_answer(op, 200, SCALE(4));
    driver_expect_end(op, AS_CLOUD_OP_CONFIGURATION,
                      "asked for size 5, but the cluster made it 4 (an admission webhook?)");
    cr_assert(op->is_ambiguous);
    end();
    begin_change(AS_GROUP_GROW, 3, 5);
    driver_answer(op, 200, GROUP(3));
    driver_answer(op, 403, STATUS("may not"));
    driver_expect_end(op, AS_CLOUD_OP_PERMISSION, "set_scale: HTTP 403: may not");
}

/* ---- removing ---- */

static void begin_removal(const char *const *names, size_t count)
{
    given.op.instances = names;
    given.op.instance_count = count;
    begin_change(AS_GROUP_REMOVE, 3, 3 - (int32_t)count);
    driver_answer(op, 200, GROUP(3));
    driver_expect(op, "GET", LIST, "");
}

static const char *const two[] = {"m3", "m1"};

static void expect_patch(const char *name, const char *body)
{
    char url[128];
    snprintf(url, sizeof(url), BASE "/machines/%s", name);
    driver_expect(op, "PATCH", url, body);
    driver_expect_headers(op, "Content-Type: application/merge-patch+json\n");
}

Test(clusterapi, marks_who_leaves_before_the_size_is_set)
{
    begin_removal(two, 2);
    driver_answer(op, 200, THREE);
    expect_patch("m3", MARKED);
    driver_answer(op, 200, "{}");
    expect_patch("m1", MARKED);
    driver_answer(op, 200, "{}");
    expect_scale(FROM_TO(3, 1));
    driver_answer(op, 200, SCALE(1));
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
}

#define OTHERS                                                                                     \
    MACHINE("m2", "s", "Running") "," MACHINE("m3", "s", "Running") "," MACHINE("m4", "s", "Failed")

Test(clusterapi, nothing_is_marked_where_the_group_is_not_as_it_was)
{
    static const char *const one[] = {"m1"};
    static const struct {
        const char *machines, *message;
    } rows[] = {
        {MACHINES(MACHINE("m1", "s", "Deleting") "," OTHERS), "Machine m1 is leaving already"},
        {MACHINES(OTHERS), "Machine m1 is leaving already"},
        {MACHINES(MACHINE("m1", "s", "Running") "," MACHINE("m2", "s", "Deleting") "," MACHINE(
             "m3", "s", "Pending")),
         MISSING("2", "3")},
        {MACHINES(MACHINE("m1", "s", "Running")), MISSING("1", "3")},
        {MACHINES(MACHINE("m1", "s", "Running") "," MACHINE("m2", "t", "Running")),
         "a rollout is under way: its Machines are of several MachineSets"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        begin_removal(one, 1);
        driver_answer(op, 200, rows[i].machines);
        driver_expect_end(op, AS_CLOUD_OP_BUSY, rows[i].message);
        end();
    }
    begin_change(AS_GROUP_REMOVE, 4, 3);
    driver_answer(op, 200, GROUP(3));
    driver_answer(op, 200, THREE);
    driver_expect_end(op, AS_CLOUD_OP_BUSY, "its size is 3 meanwhile");
}

/* Up to the size, both marked. */
static void begin_both_marked(void)
{
    begin_removal(two, 2);
    driver_answer(op, 200, THREE);
    driver_answer(op, 200, "{}");
    driver_answer(op, 200, "{}");
    expect_scale(FROM_TO(3, 1));
}

Test(clusterapi, marks_come_off_where_the_size_was_not_set)
{
    begin_both_marked();
    driver_respond(op, (struct as_http_response){
                           .status = 429, .body = STATUS("slow down"), .retry_after = "7"});
    expect_patch("m1", UNMARKED);
    driver_answer(op, 200, "{}");
    expect_patch("m3", UNMARKED);
    driver_answer(op, 404, STATUS("gone"));
    driver_expect_end(op, AS_CLOUD_OP_THROTTLED, "set_scale: HTTP 429: slow down");
    cr_assert_eq(op->http_status, 429);
    cr_assert_eq(op->retry_after_us, 7 * AS_US_PER_S);
    cr_assert_not(op->is_ambiguous);
    end();
    begin_both_marked(); /* it could not be told, and was not set */
    driver_break(op, AS_HTTP_BROKEN, "reset");
    driver_expect(op, "GET", MD, "");
    driver_answer(op, 200, GROUP(3));
    expect_patch("m1", UNMARKED);
    driver_answer(op, 200, "{}");
    expect_patch("m3", UNMARKED);
    driver_answer(op, 200, "{}");
    driver_expect_end(op, AS_CLOUD_OP_RETRY, "set_scale: reset");
    cr_assert_not(op->is_ambiguous);
}

Test(clusterapi, marks_stay_where_the_size_may_have_been_set)
{
    begin_both_marked();
    driver_break(op, AS_HTTP_BROKEN, "reset");
    driver_answer(op, 200, GROUP(1));
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    end();
    begin_both_marked();
    driver_break(op, AS_HTTP_BROKEN, "reset");
    driver_break(op, AS_HTTP_UNREACHABLE, "down");
    driver_expect_end(op, AS_CLOUD_OP_RETRY, "set_scale: reset");
    cr_assert(op->is_ambiguous);
}

Test(clusterapi, a_mark_that_fails_ends_the_removal)
{
    begin_removal(two, 2);
    driver_answer(op, 200, THREE);
    driver_answer(op, 200, "{}");
    driver_answer(op, 404, STATUS("not found"));
    expect_patch("m3", UNMARKED);
    driver_answer(op, 200, "{}");
    driver_expect_end(op, AS_CLOUD_OP_BUSY, "Machine m1 is gone meanwhile");
    end();
    begin_removal(two, 2); /* whether it is marked is not known: it comes off, too */
    driver_answer(op, 200, THREE);
    driver_break(op, AS_HTTP_TIMEOUT, "late");
    expect_patch("m3", UNMARKED);
    driver_answer(op, 500, STATUS("etcd"));
    driver_expect_end(op, AS_CLOUD_OP_TIMEOUT,
                      "mark_machine: late; Machine m3 is still marked: unmark_machine: HTTP 500: "
                      "etcd");
    end();
    begin_removal(two, 2);
    driver_answer(op, 200, THREE);
    driver_answer(op, 403, STATUS("may not"));
    driver_expect_end(op, AS_CLOUD_OP_PERMISSION, "mark_machine: HTTP 403: may not");
}

/* ---- taking back ---- */

Test(clusterapi, takes_back_what_failed_and_then_what_came_last)
{
    begin_change(AS_GROUP_TAKE_BACK, 5, 2);
    driver_answer(op, 200, GROUP(5));
    driver_answer(
        op, 200,
        MACHINES(MACHINE("m1", "s", "Running") "," MACHINE("m2", "s", "Failed") "," MACHINE(
            "m3", "s", "Pending") "," MACHINE("m4", "s", "Provisioning")));
    expect_patch("m2", MARKED);
    driver_answer(op, 200, "{}");
    expect_patch("m4", MARKED);
    driver_answer(op, 200, "{}");
    expect_scale(FROM_TO(5, 2));
    driver_answer(op, 200, SCALE(2));
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
}

Test(clusterapi, takes_back_nothing_that_runs)
{
    begin_change(AS_GROUP_TAKE_BACK, 5, 2);
    driver_answer(op, 200, GROUP(5));
    driver_answer(op, 200, THREE);
    driver_expect_end(op, AS_CLOUD_OP_BUSY, "machines have come meanwhile: 3 run");
    end();
    begin_change(AS_GROUP_TAKE_BACK, 5, 3); /* no Machine has been made of the rest yet */
    driver_answer(op, 200, GROUP(5));
    driver_answer(op, 200, THREE);
    expect_scale(FROM_TO(5, 3));
    end();
    begin_change(AS_GROUP_TAKE_BACK, 5, 3);
    driver_answer(op, 200, GROUP(5));
    driver_answer(op, 200,
                  MACHINES(MACHINE("m1", "s", "Running") "," MACHINE("m2", "t", "Pending")));
    driver_expect_end(op, AS_CLOUD_OP_BUSY,
                      "a rollout is under way: its Machines are of several MachineSets");
}
