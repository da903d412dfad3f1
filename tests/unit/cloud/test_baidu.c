/*
 * baidu.c: node groups of CCE: requests, answers, errors; and the keys of an account.
 */
#include <errno.h>

#include "op_driver.h"

#define API         "https://cce.bj.baidubce.com/api/cce/service/v2"
#define GROUP       API "/cluster/cce-1/instancegroup/cce-ig-1"
#define NODES(page) GROUP "/instances?pageNo=" page "&pageSize=100"
#define NODE(id, machine, phase, rest)                                                             \
    "{\"spec\":{\"cceInstanceID\":\"" id "\",\"vpcConfig\":{\"availableZone\":\"zoneA\"}" rest     \
    "},\"status\":{\"machine\":{\"instanceID\":\"" machine "\"},\"instancePhase\":\"" phase        \
    "\"},\"createdAt\":\"2024-05-17T09:00:00Z\"}"
#define PAIR NODE("n-1", "i-1", "running", "") "," NODE("n-2", "i-2", "running", "")
#define REMOVAL(names)                                                                             \
    "{\"instancesToBeRemoved\":[" names "],\"cleanPolicy\":\"Delete\",\"deleteOption\":"           \
    "{\"moveOut\":false,\"deleteResource\":true,\"deleteCDSSnapshot\":false,\"drainNode\":false}}"
#define TASK "{\"taskID\":\"task-1\",\"requestID\":\"r-9\"}"

static struct driver_group given;
static struct as_cloud_op *op;

static void begin(enum as_group_verb verb)
{
    given.op.view = (struct as_group_view){.min = -1, .max = -1};
    given.field_count = 0;
    driver_field(&given, "cluster", "cce-1");
    driver_field(&given, "name", "cce-ig-1");
    op = &given.op.op;
    driver_begin(&given, "baidu", verb);
}

static void begin_change(enum as_group_verb verb, int32_t from, int32_t to)
{
    given.op.from = from;
    given.op.to = to;
    begin(verb);
}

static void begin_removal(const char *const *ids, size_t count)
{
    given.op.instances = ids;
    given.op.instance_count = count;
    begin_change(AS_GROUP_REMOVE, 3, 3 - (int32_t)count);
    driver_expect(op, "GET", GROUP, "");
}

static void end(void)
{
    driver_end(&given);
    driver_variable_count = 0;
}

TestSuite(baidu, .fini = end);

static void answer_group(int replicas, int ready, const char *spec, const char *status)
{
    char body[2048];
    snprintf(body, sizeof(body),
             "{\"instanceGroup\":{\"spec\":{\"instanceGroupName\":\"web\",\"replicas\":%d%s},"
             "\"status\":{\"readyReplicas\":%d%s}},\"requestID\":\"r-1\"}",
             replicas, spec, ready, status);
    driver_answer(op, 200, body);
}

static void answer_nodes(int total, const char *nodes)
{
    char body[8192];
    snprintf(body, sizeof(body),
             "{\"page\":{\"pageNo\":1,\"pageSize\":100,\"totalCount\":%d,\"list\":[%s]},"
             "\"requestID\":\"r-2\"}",
             total, nodes);
    driver_answer(op, 200, body);
}

/* ---- reading ---- */

Test(baidu, reads_a_group)
{
    begin(AS_GROUP_READ);
    driver_expect(op, "GET", GROUP, "");
    driver_expect_headers(op, "");
    answer_group(2, 2, "", "");
    driver_expect(op, "GET", NODES("1"), "");
    answer_nodes(2, PAIR);
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    driver_expect_backing(&given, "baidu/cce-1/cce-ig-1 ");
    cr_assert_eq(given.op.view.size, 2);
    cr_assert_eq(given.op.view.min, -1);
    cr_assert_eq(given.op.view.max, -1);
    cr_assert_not(given.op.view.in_progress);
    cr_assert_null(given.op.view.controller);
    cr_assert_null(given.op.view.shortage);
    cr_assert_null(given.op.view.no_increase);
    cr_assert_eq(given.op.view.instance_count, 2);
    driver_expect_instance(&given, 0, "n-1 cce://i-1 zoneA running");
    cr_assert(given.op.view.instances[0].created.set);
    cr_assert_str_eq(op->request_id, "r-2");
}

Test(baidu, reads_page_after_page)
{
    begin(AS_GROUP_READ);
    answer_group(3, 3, "", "");
    for (int page = 1; page <= 3; page++) {
        char url[256];
        snprintf(url, sizeof(url), GROUP "/instances?pageNo=%d&pageSize=100", page);
        driver_expect(op, "GET", url, "");
        answer_nodes(3, page == 1   ? NODE("n-1", "i", "running", "")
                        : page == 2 ? NODE("n-2", "i", "running", "")
                                    : NODE("n-3", "i", "running", ""));
    }
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    cr_assert_eq(given.op.view.instance_count, 3);
}

/* The count may be wrong for ever. */
Test(baidu, an_empty_page_is_the_last)
{
    begin(AS_GROUP_READ);
    answer_group(2, 2, "", "");
    answer_nodes(1000000, "");
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
}

Test(baidu, gives_up_pages_that_never_end)
{
    begin(AS_GROUP_READ);
    answer_group(2, 2, "", "");
    while (op->want == AS_CLOUD_OP_SEND)
        answer_nodes(2000000000, NODE("n", "i", "running", ""));
    driver_expect_end(op, AS_CLOUD_OP_CONFIGURATION, "given up after 2 pages: it never ends");
}

Test(baidu, knows_what_becomes_of_a_node)
{
    static const struct {
        const char *phase, *want;
    } rows[] = {
        {"pending", "pending"}, {"provisioning", "pending"},  {"provisioned", "pending"},
        {"running", "running"}, {"create_failed", "failed"},  {"deleting", "leaving"},
        {"deleted", "leaving"}, {"delete_failed", "leaving"}, {"new_one", "pending"},
    };
    char nodes[8192] = "", want[128];
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        const size_t size = strlen(nodes);
        snprintf(nodes + size, sizeof(nodes) - size, "%s" NODE("n", "i", "%s", ""), i ? "," : "",
                 rows[i].phase);
    }
    begin(AS_GROUP_READ);
    answer_group(4, 1, "", "");
    answer_nodes(9, nodes);
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        snprintf(want, sizeof(want), "n cce://i zoneA %s", rows[i].want);
        driver_expect_instance(&given, i, want);
    }
}

/* A node that is not ready, or was not made, may be so for ever: it does not hold up the group. */
Test(baidu, work_is_under_way_while_nodes_come_or_go)
{
    static const struct {
        const char *phase;
        bool in_progress;
    } rows[] = {
        {"pending", true},  {"provisioning", true},   {"provisioned", true},    {"deleting", true},
        {"running", false}, {"create_failed", false}, {"delete_failed", false}, {"deleted", false},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        char nodes[1024];
        snprintf(nodes, sizeof(nodes), PAIR "," NODE("n-3", "i-3", "%s", ""), rows[i].phase);
        given = (struct driver_group){0};
        begin(AS_GROUP_READ);
        answer_group(4, 1, "", "");
        answer_nodes(3, nodes);
        driver_expect_end(op, AS_CLOUD_OP_OK, "");
        cr_expect_eq(given.op.view.in_progress, rows[i].in_progress, "%s", rows[i].phase);
        if (i + 1 < AS_ARRAY_SIZE(rows))
            driver_end(&given);
    }
}

Test(baidu, reads_protection_and_nodes_without_machine)
{
    begin(AS_GROUP_READ);
    answer_group(2, 1, "", "");
    answer_nodes(2, NODE("n-1", "i-1", "running",
                         ",\"scaleDownDisabled\":true") "," NODE("n-2", "", "pending", ""));
    driver_expect_instance(&given, 0, "n-1 cce://i-1 zoneA running protected");
    driver_expect_instance(&given, 1, "n-2 n-2 zoneA pending");
}

Test(baidu, tells_why_machines_do_not_come)
{
    begin(AS_GROUP_READ);
    answer_group(3, 2, "",
                 ",\"undeliveredMachines\":{\"failedMachines\":[\"no stock of bcc.g5.c2m8\"]}");
    cr_assert_str_eq(given.op.view.shortage, "no stock of bcc.g5.c2m8");
    answer_nodes(2, PAIR);
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
}

Test(baidu, a_paused_group_is_not_changed)
{
    begin(AS_GROUP_READ);
    answer_group(2, 2, "", ",\"pause\":{\"paused\":true,\"reason\":\"arrears\"}");
    cr_assert_str_eq(given.op.view.no_increase, "the node group is paused: arrears");
    cr_assert_str_eq(given.op.view.no_removal, "the node group is paused: arrears");
}

Test(baidu, does_not_work_against_an_autoscaler)
{
    static const char spec[] = ",\"clusterAutoscalerSpec\":{\"enabled\":true,\"minReplicas\":1}";
    begin(AS_GROUP_READ);
    answer_group(2, 2, spec, "");
    cr_assert_str_eq(given.op.view.controller, "CCE's own autoscaler (clusterAutoscalerSpec)");
    answer_nodes(2, PAIR);
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    driver_end(&given);
    given = (struct driver_group){0};
    begin_change(AS_GROUP_GROW, 2, 4);
    answer_group(2, 2, spec, "");
    driver_expect_end(op, AS_CLOUD_OP_CONFIGURATION,
                      "CCE's own autoscaler (clusterAutoscalerSpec) sets the size of this group: "
                      "two would undo each other's work; switch one off");
}

/* ---- changes ---- */

Test(baidu, grows_to_a_size)
{
    begin_change(AS_GROUP_GROW, 2, 4);
    driver_expect(op, "GET", GROUP, "");
    answer_group(2, 2, "", "");
    driver_expect(op, "PUT", GROUP "/scaleup?upToReplicas=4", "");
    driver_expect_headers(op, "");
    cr_assert(op->request.is_change);
    driver_answer(op, 200, TASK);
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    cr_assert_str_eq(given.op.started, "task-1");
    cr_assert_str_eq(op->request_id, "r-9");
}

Test(baidu, does_not_set_a_size_that_has_changed)
{
    begin_change(AS_GROUP_GROW, 2, 4);
    answer_group(3, 3, "", "");
    driver_expect_end(op, AS_CLOUD_OP_BUSY,
                      "the node group has changed since it was looked at: its size is 3");
}

Test(baidu, what_is_done_is_not_done_again)
{
    begin_change(AS_GROUP_GROW, 2, 4);
    answer_group(4, 2, "", "");
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    cr_assert_null(given.op.started);
}

Test(baidu, an_answer_that_was_lost_leaves_it_open)
{
    begin_change(AS_GROUP_GROW, 2, 4);
    answer_group(2, 2, "", "");
    driver_break(op, AS_HTTP_BROKEN, "closed");
    driver_expect_end(op, AS_CLOUD_OP_RETRY, "scale_up: closed");
    cr_assert(op->is_ambiguous);
    driver_end(&given);
    given = (struct driver_group){0};
    begin_change(AS_GROUP_GROW, 2, 4);
    answer_group(2, 2, "", "");
    driver_answer(op, 200, "{}");
    driver_expect_end(op, AS_CLOUD_OP_RETRY, "scale_up: the answer has no taskID");
    cr_assert(op->is_ambiguous);
}

Test(baidu, removes_nodes_by_name)
{
    static const char *const ids[] = {"n-2", "n-9", "n-3"};
    begin_removal(ids, 3);
    answer_group(3, 3, "", "");
    driver_expect(op, "GET", NODES("1"), "");
    answer_nodes(3, PAIR "," NODE("n-3", "i-3", "deleting", ""));
    driver_expect(op, "PUT", GROUP "/scaledown", REMOVAL("\"n-2\""));
    driver_expect_headers(op, "Content-Type: application/json\n");
    driver_answer(op, 200, TASK);
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    cr_assert_str_eq(given.op.started, "task-1");
}

Test(baidu, what_is_gone_is_not_removed_twice)
{
    static const char *const ids[] = {"n-9"};
    begin_removal(ids, 1);
    answer_group(2, 2, "", "");
    answer_nodes(2, PAIR);
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    cr_assert_null(given.op.started);
}

/* Draining takes its time. */
Test(baidu, a_size_that_has_changed_lets_nobody_leave)
{
    static const char *const ids[] = {"n-2"};
    static const int sizes[] = {2, 4};
    for (size_t i = 0; i < AS_ARRAY_SIZE(sizes); i++) {
        char want[80];
        given = (struct driver_group){0};
        snprintf(want, sizeof(want), "the group has changed since it was looked at: its size is %d",
                 sizes[i]);
        begin_removal(ids, 1);
        answer_group(sizes[i], sizes[i], "", "");
        answer_nodes(2, PAIR);
        driver_expect_end(op, AS_CLOUD_OP_BUSY, want);
        cr_assert_not(op->is_ambiguous);
        if (i == 0)
            driver_end(&given);
    }
}

Test(baidu, takes_back_by_name_then_by_size)
{
    begin_change(AS_GROUP_TAKE_BACK, 6, 2);
    answer_group(6, 2, "", "");
    answer_nodes(5, PAIR "," NODE("n-3", "", "pending", "") "," NODE(
                        "n-4", "", "create_failed", "") "," NODE("n-5", "", "deleting", ""));
    driver_expect(op, "PUT", GROUP "/scaledown", REMOVAL("\"n-4\",\"n-3\""));
    driver_answer(op, 200, TASK);
    driver_expect(op, "PUT", GROUP "/replicas", "{\"replicas\":2}");
    driver_answer(op, 200, TASK);
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
}

Test(baidu, takes_back_what_has_no_node_yet)
{
    begin_change(AS_GROUP_TAKE_BACK, 4, 2);
    answer_group(4, 2, "", "");
    answer_nodes(2, PAIR);
    driver_expect(op, "PUT", GROUP "/replicas", "{\"replicas\":2}");
    driver_answer(op, 200, TASK);
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
}

Test(baidu, takes_nothing_back_that_has_come)
{
    begin_change(AS_GROUP_TAKE_BACK, 4, 1);
    answer_group(4, 2, "", "");
    answer_nodes(3, PAIR "," NODE("n-3", "", "pending", ""));
    driver_expect_end(op, AS_CLOUD_OP_BUSY, "2 nodes are there: what had not come has by now");
}

Test(baidu, nothing_is_taken_back_twice)
{
    begin_change(AS_GROUP_TAKE_BACK, 4, 2);
    answer_group(2, 2, "", "");
    answer_nodes(2, PAIR);
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    driver_end(&given);
    given = (struct driver_group){0};
    begin_change(AS_GROUP_TAKE_BACK, 3, 2);
    answer_group(3, 2, "", "");
    answer_nodes(3, PAIR "," NODE("n-3", "", "pending", ""));
    driver_answer(op, 403, "{\"code\":\"AccessDenied\",\"message\":\"no\"}");
    driver_expect_end(op, AS_CLOUD_OP_PERMISSION, "scale_down: HTTP 403 AccessDenied: no");
}

/* ---- tasks ---- */

Test(baidu, asks_after_a_task)
{
    static const struct {
        const char *body, *message;
        enum as_cloud_op_fault fault;
        bool is_done;
    } rows[] = {
        {"{\"task\":{\"id\":\"t/1\",\"phase\":\"Pending\"}}", "", AS_CLOUD_OP_OK, false},
        {"{\"task\":{\"phase\":\"Processing\"}}", "", AS_CLOUD_OP_OK, false},
        {"{\"task\":{\"phase\":\"Done\"}}", "", AS_CLOUD_OP_OK, true},
        {"{\"task\":{\"phase\":\"Aborted\",\"errMessage\":\"BCC quota exceeded\"}}",
         "task t/1 was aborted: BCC quota exceeded", AS_CLOUD_OP_CAPACITY, true},
        {"{\"task\":{\"phase\":\"Aborted\",\"errMessage\":\"Insufficient stock\"}}",
         "task t/1 was aborted: Insufficient stock", AS_CLOUD_OP_CAPACITY, true},
        {"{\"task\":{\"phase\":\"Aborted\",\"errMessage\":\"the subnet is gone\"}}",
         "task t/1 was aborted: the subnet is gone", AS_CLOUD_OP_CONFIGURATION, true},
        {"{\"task\":7}", "get_task: the answer has no task.phase", AS_CLOUD_OP_RETRY, false},
        {"{", "get_task: the answer is not JSON: string or '}' expected near end of file",
         AS_CLOUD_OP_RETRY, false},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        given = (struct driver_group){.op.operation = "t/1"};
        begin(AS_GROUP_POLL);
        driver_expect(op, "GET", API "/task/InstanceGroupReplicas/t%2F1", "");
        driver_answer(op, 200, rows[i].body);
        driver_expect_end(op, rows[i].fault, rows[i].message);
        cr_expect_eq(given.op.is_done, rows[i].is_done, "%s", rows[i].body);
        if (i + 1 < AS_ARRAY_SIZE(rows))
            driver_end(&given);
    }
}

Test(baidu, a_task_that_is_forgotten_is_over)
{
    given.op.operation = "t";
    begin(AS_GROUP_POLL);
    driver_answer(op, 404, "{\"code\":\"cce.warning.NoSuchObject\",\"message\":\"none\"}");
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    cr_assert(given.op.is_done);
}

/* ---- errors ---- */

Test(baidu, knows_errors_by_their_codes)
{
    static const struct {
        int status;
        const char *code;
        enum as_cloud_op_fault fault;
    } rows[] = {
        {403, "AccessDenied", AS_CLOUD_OP_PERMISSION},
        {403, "cce.warning.AccessDenied", AS_CLOUD_OP_PERMISSION},
        {403, "InvalidAccessKeyId", AS_CLOUD_OP_UNAUTHORIZED},
        {403, "SignatureDoesNotMatch", AS_CLOUD_OP_UNAUTHORIZED},
        {400, "InvalidSessionToken", AS_CLOUD_OP_UNAUTHORIZED},
        {400, "ExpiredSecurityToken", AS_CLOUD_OP_UNAUTHORIZED},
        {400, "RequestExpired", AS_CLOUD_OP_RETRY},
        {403, "RequestTimeTooSkewed", AS_CLOUD_OP_RETRY},
        {400, "Http400", AS_CLOUD_OP_RETRY},
        {500, "cce.error.InternalError", AS_CLOUD_OP_RETRY},
        {503, "ServiceUnavailable", AS_CLOUD_OP_RETRY},
        {429, "TooManyRequests", AS_CLOUD_OP_THROTTLED},
        {400, "BceRateLimitExceeded", AS_CLOUD_OP_THROTTLED},
        {400, "cce.warning.Throttling", AS_CLOUD_OP_THROTTLED},
        {400, "cce.warning.QuotaExceeded", AS_CLOUD_OP_CAPACITY},
        {400, "Instance.InsufficientStock", AS_CLOUD_OP_CAPACITY},
        {400, "ResourceNotEnough", AS_CLOUD_OP_CAPACITY},
        {400, "FlavorSoldOut", AS_CLOUD_OP_CAPACITY},
        {404, "cce.warning.NoSuchObject", AS_CLOUD_OP_GONE},
        {400, "cce.warning.ClusterNotFound", AS_CLOUD_OP_GONE},
        {409, "Anything", AS_CLOUD_OP_BUSY},
        {400, "cce.warning.ClusterBusy", AS_CLOUD_OP_BUSY},
        {400, "StatusConflict", AS_CLOUD_OP_BUSY},
        {400, "cce.warning.InstanceGroupProcessing", AS_CLOUD_OP_BUSY},
        {400, "TaskInProgress", AS_CLOUD_OP_BUSY},
        {400, "cce.warning.InvalidParam", AS_CLOUD_OP_CONFIGURATION},
        {400, "cce.warning.MalformedJSON", AS_CLOUD_OP_CONFIGURATION},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        char body[256], want[256];
        given = (struct driver_group){0};
        begin(AS_GROUP_READ);
        snprintf(body, sizeof(body),
                 "{\"code\":\"%s\",\"message\":\"words\",\"requestId\":\"r-7\"}", rows[i].code);
        snprintf(want, sizeof(want), "get_instance_group: HTTP %d %s: words", rows[i].status,
                 rows[i].code);
        driver_answer(op, rows[i].status, body);
        driver_expect_end(op, rows[i].fault, want);
        cr_expect_str_eq(op->request_id, "r-7");
        if (i + 1 < AS_ARRAY_SIZE(rows))
            driver_end(&given);
    }
}

Test(baidu, an_error_without_words_is_known_by_its_status)
{
    begin(AS_GROUP_READ);
    driver_answer(op, 502, "<html/>");
    driver_expect_end(op, AS_CLOUD_OP_RETRY, "get_instance_group: HTTP 502");
    driver_end(&given);
    given = (struct driver_group){0};
    begin(AS_GROUP_READ);
    driver_respond(op, (struct as_http_response){.status = 429, .retry_after = "7"});
    driver_expect_end(op, AS_CLOUD_OP_THROTTLED, "get_instance_group: HTTP 429");
    cr_assert_eq(op->retry_after_us, 7 * AS_US_PER_S);
    driver_end(&given);
    given = (struct driver_group){0};
    begin(AS_GROUP_READ);
    driver_break(op, AS_HTTP_TIMEOUT, "no answer within 30 s");
    driver_expect_end(op, AS_CLOUD_OP_TIMEOUT, "get_instance_group: no answer within 30 s");
}

Test(baidu, refuses_answers_of_another_shape)
{
    static const struct {
        const char *group, *nodes, *message;
    } rows[] = {
        {"{}", NULL, "get_instance_group: the answer has no spec.replicas"},
        {"[]", NULL, "get_instance_group: the answer has no spec.replicas"},
        {"{\"instanceGroup\":{\"spec\":{\"replicas\":-1}}}", NULL,
         "get_instance_group: the answer has no spec.replicas"},
        {"{\"instanceGroup\":{\"spec\":{\"replicas\":1}}}", "{}",
         "list_instances: the answer has no page"},
        {"{\"instanceGroup\":{\"spec\":{\"replicas\":1}}}", "{\"page\":{\"list\":[{}]}}",
         "list_instances: the answer has no page.list.spec.cceInstanceID"},
        {"{\"instanceGroup\":{\"spec\":{\"replicas\":1}}}", "{\"page\":{\"list\":[7]}}",
         "list_instances: the answer has no page.list.spec.cceInstanceID"},
        {"{\"instanceGroup\":{\"spec\":{\"replicas\":1}}}",
         "{\"page\":", "list_instances: the answer is not JSON: unexpected token near end of file"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        given = (struct driver_group){0};
        begin(AS_GROUP_READ);
        driver_answer(op, 200, rows[i].group);
        if (rows[i].nodes)
            driver_answer(op, 200, rows[i].nodes);
        driver_expect_end(op, AS_CLOUD_OP_RETRY, rows[i].message);
        if (i + 1 < AS_ARRAY_SIZE(rows))
            driver_end(&given);
    }
}

/* ---- where it is ---- */

Test(baidu, finds_the_region)
{
    static const struct {
        const char *option, *variable, *endpoint, *want;
    } rows[] = {
        {"gz", "su", NULL, "https://cce.gz.baidubce.com"},
        {NULL, "su", NULL, "https://cce.su.baidubce.com"},
        {NULL, "", NULL, "https://cce.bj.baidubce.com"},
        {"gz", NULL, "http://127.0.0.1:1//", "http://127.0.0.1:1"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        given = (struct driver_group){0};
        driver_variable_count = 0;
        if (rows[i].option)
            driver_option(&given, "region", rows[i].option);
        if (rows[i].variable)
            driver_set("BAIDUCLOUD_REGION", rows[i].variable);
        if (rows[i].endpoint)
            driver_option(&given, "endpoint", rows[i].endpoint);
        begin(AS_GROUP_READ);
        cr_expect(as_str_starts_with(op->request.url, rows[i].want), "%s", op->request.url);
        if (i + 1 < AS_ARRAY_SIZE(rows))
            driver_end(&given);
    }
}

/* It becomes part of a host's name. */
Test(baidu, a_region_that_is_none_is_not_asked)
{
    driver_option(&given, "region", "a/b");
    begin(AS_GROUP_READ);
    driver_expect_end(op, AS_CLOUD_OP_CONFIGURATION,
                      "the region \"a/b\" is none: a region is small letters, digits and hyphens");
}

/* ---- who it is ---- */

static struct driver_source source;

static void begin_source(const char *name)
{
    driver_begin_source(&source, as_group_provider_find("baidu")->credentials, name);
}

static void end_source(void)
{
    driver_end_source(&source);
    driver_variable_count = 0;
}

TestSuite(baidu_credentials, .fini = end_source);

Test(baidu_credentials, nothing_is_set_up)
{
    begin_source("credentials_file");
    cr_assert(source.op.is_not_here);
    driver_end_source(&source);
    begin_source("environment");
    cr_assert(source.op.is_not_here);
}

Test(baidu_credentials, of_the_environment)
{
    driver_set("BAIDUCLOUD_ACCESS_KEY", "ak");
    driver_set("BAIDUCLOUD_SECRET_KEY", "sk");
    begin_source("environment");
    driver_expect_found(&source, "ak", "sk", NULL, NULL);
    driver_end_source(&source);
    source = (struct driver_source){0};
    driver_set("BAIDUCLOUD_SESSION_TOKEN", "st");
    begin_source("environment");
    driver_expect_found(&source, "ak", "sk", "st", NULL);
}

Test(baidu_credentials, half_a_key_is_an_error)
{
    driver_set("BAIDUCLOUD_ACCESS_KEY", "ak");
    begin_source("environment");
    driver_expect_end(&source.op.op, AS_CLOUD_OP_CONFIGURATION, "BAIDUCLOUD_SECRET_KEY is not set");
    driver_end_source(&source);
    source = (struct driver_source){0};
    driver_variable_count = 0;
    driver_set("BAIDUCLOUD_SECRET_KEY", "sk");
    begin_source("environment");
    driver_expect_end(&source.op.op, AS_CLOUD_OP_CONFIGURATION, "BAIDUCLOUD_ACCESS_KEY is not set");
}

Test(baidu_credentials, of_a_file)
{
    driver_source_option(&source, "credentials_file", "/s/baidu");
    begin_source("credentials_file");
    driver_expect_file(&source.op.op, "/s/baidu");
    driver_content(&source.op.op,
                   "{\"accessKeyId\":\"ak\",\"secretAccessKey\":\"sk\",\"sessionToken\":\"st\","
                   "\"expiration\":\"2024-05-17T11:00:00Z\",\"userId\":\"u\"}\n",
                   0);
    driver_expect_found(&source, "ak", "sk", "st", NULL);
    cr_assert(source.op.found.expires.set);
}

Test(baidu_credentials, of_a_file_that_is_none)
{
    static const struct {
        const char *content, *message;
    } rows[] = {
        {NULL, "cannot read /s/baidu: Permission denied"},
        {" \n", "/s/baidu is empty"},
        {"ak:sk", "/s/baidu: not a JSON document with `accessKeyId` and `secretAccessKey`"},
        {"{\"accessKeyId\":\"ak\"}",
         "/s/baidu: not a JSON document with `accessKeyId` and `secretAccessKey`"},
        {"[]", "/s/baidu: not a JSON document with `accessKeyId` and `secretAccessKey`"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        source = (struct driver_source){0};
        driver_source_option(&source, "credentials_file", "/s/baidu");
        begin_source("credentials_file");
        driver_content(&source.op.op, rows[i].content, rows[i].content ? 0 : EACCES);
        driver_expect_end(&source.op.op, AS_CLOUD_OP_CONFIGURATION, rows[i].message);
        if (i + 1 < AS_ARRAY_SIZE(rows))
            driver_end_source(&source);
    }
}
