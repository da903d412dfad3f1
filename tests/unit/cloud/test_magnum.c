/*
 * Node groups of OpenStack Magnum: every request byte by byte, and the results of its answers (as
 * Magnum 15 gives them).
 */
#include "op_driver.h"

#define BASE    "https://magnum/v1/clusters/prod"
#define GROUP   BASE "/nodegroups/default-worker"
#define RESIZE  BASE "/actions/resize"
#define VERSION "OpenStack-API-Version: container-infra 1.10\n"
#define UUID    "483203a3-dbee-4a9c-9d65-9820512f4df8"

/* `more`: members behind, with a ',' before each */
#define NODE_GROUP(count, status, more)                                                            \
    "{\"uuid\":\"" UUID "\",\"name\":\"default-worker\",\"cluster_id\":\"c\",\"role\":\"worker\"," \
    "\"updated_at\":\"2024-05-17T10:00:00+00:00\",\"node_count\":" count ",\"status\":\"" status   \
    "\"" more "}"
#define CLUSTER(status) "{\"uuid\":\"c\",\"status\":\"" status "\",\"status_reason\":\"why\"}"
#define ERROR(status, detail)                                                                      \
    "{\"errors\":[{\"request_id\":\"\",\"code\":\"client\",\"status\":" status ",\"title\":\"t\"," \
    "\"detail\":\"" detail "\",\"links\":[]}]}"

static struct as_cloud_op *begin(struct driver_group *given, enum as_group_verb verb)
{
    given->credentials.endpoint = (char *)"https://magnum/v1";
    driver_field(given, "cluster", "prod");
    driver_field(given, "name", "default-worker");
    driver_begin(given, "magnum", verb);
    return &given->op.op;
}

static void expect_question(const struct as_cloud_op *op, const char *url)
{
    driver_expect(op, "GET", url, "");
    driver_expect_headers(op, VERSION);
    cr_assert_not(op->request.is_change);
    cr_assert_not(op->request.is_plain);
}

/* ---- reading ---- */

Test(magnum, group_is_read)
{
    struct driver_group given = {0};
    struct as_cloud_op *op = begin(&given, AS_GROUP_READ);
    expect_question(op, GROUP);
    driver_respond(op, (struct as_http_response){
                           .status = 200,
                           .fields = "x-openstack-request-id\0req-1\0",
                           .body = NODE_GROUP("3", "UPDATE_COMPLETE",
                                              ",\"min_node_count\":1,\"max_node_count\":6,"
                                              "\"status_reason\":\"Stack UPDATE completed\","
                                              "\"node_addresses\":[\"10.0.0.4\",\"10.0.0.5\"]")});
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    const struct as_group_view *view = &given.op.view;
    cr_expect_eq(view->size, 3);
    cr_expect_eq(view->min, 1);
    cr_expect_eq(view->max, 6);
    cr_expect_not(view->in_progress);
    cr_expect_null(view->controller);
    cr_expect_null(view->shortage);
    cr_expect_str_eq(view->version, "");
    driver_expect_backing(&given, "magnum/" UUID " "); /* also by its name */
    cr_expect_str_eq(view->node_label, "magnum.openstack.org/nodegroup=default-worker");
    cr_assert_eq(view->instance_count, 2);
    driver_expect_instance(&given, 0, "10.0.0.4 10.0.0.4 - running");
    cr_expect_str_eq(op->request_id, "req-1");
    driver_end(&given);
}

Test(magnum, states_of_a_group)
{
    static const struct {
        const char *status, *more;
        bool in_progress;
        const char *shortage, *controller;
        int32_t min, max;
    } rows[] = {
        {"CREATE_COMPLETE", "", false, NULL, NULL, -1, -1},
        {"UPDATE_IN_PROGRESS", ",\"max_node_count\":null", true, NULL, NULL, -1, -1},
        {"CREATE_IN_PROGRESS", ",\"max_node_count\":0,\"min_node_count\":0", true, NULL, NULL, 0,
         -1},
        {"UPDATE_FAILED", ",\"status_reason\":\"No valid host\"", false,
         "UPDATE_FAILED: No valid host", NULL, -1, -1},
        {"CREATE_FAILED", "", false, "CREATE_FAILED: ", NULL, -1, -1},
        {"UPDATE_COMPLETE", ",\"labels\":{\"auto_scaling_enabled\":\"True\"}", false, NULL,
         "the cluster's own autoscaler (label auto_scaling_enabled)", -1, -1},
        {"UPDATE_COMPLETE", ",\"labels\":{\"auto_scaling_enabled\":true}", false, NULL,
         "the cluster's own autoscaler (label auto_scaling_enabled)", -1, -1},
        {"UPDATE_COMPLETE", ",\"labels\":{\"auto_scaling_enabled\":\"false\"}", false, NULL, NULL,
         -1, -1},
        {"UPDATE_COMPLETE", ",\"labels\":7,\"node_addresses\":[7,\"\"]", false, NULL, NULL, -1, -1},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        struct driver_group given = {0};
        char body[1024];
        struct as_cloud_op *op = begin(&given, AS_GROUP_READ);
        snprintf(body, sizeof(body), NODE_GROUP("3", "%s", "%s"), rows[i].status, rows[i].more);
        driver_answer(op, 200, body);
        driver_expect_end(op, AS_CLOUD_OP_OK, "");
        const struct as_group_view *view = &given.op.view;
        cr_expect_eq(view->in_progress, rows[i].in_progress, "row %zu", i);
        cr_expect(as_str_equal(view->shortage, rows[i].shortage), "row %zu", i);
        cr_expect(as_str_equal(view->controller, rows[i].controller), "row %zu", i);
        cr_expect_eq(view->min, rows[i].min, "row %zu", i);
        cr_expect_eq(view->max, rows[i].max, "row %zu", i);
        cr_expect_eq(view->instance_count, 0, "row %zu", i);
        driver_end(&given);
    }
}

Test(magnum, groups_that_cannot_be_scaled)
{
    static const struct {
        const char *body;
        enum as_cloud_op_fault fault;
        const char *message;
    } rows[] = {
        {NODE_GROUP("3", "DELETE_IN_PROGRESS", ""), AS_CLOUD_OP_GONE,
         "the node group is being deleted"},
        {"{\"role\":\"master\",\"node_count\":3}", AS_CLOUD_OP_CONFIGURATION,
         "this is a group of master nodes, which Magnum does not resize"},
        {NODE_GROUP("\"many\"", "UPDATE_COMPLETE", ""), AS_CLOUD_OP_RETRY,
         "get_nodegroup: the answer has no node_count"},
        {"[]", AS_CLOUD_OP_RETRY, "get_nodegroup: the answer has no node_count"},
        {"{\"node_co", AS_CLOUD_OP_RETRY,
         "get_nodegroup: the answer is not JSON: premature end of input near '\"node_co'"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        struct driver_group given = {0};
        struct as_cloud_op *op = begin(&given, AS_GROUP_READ);
        driver_answer(op, 200, rows[i].body);
        driver_expect_end(op, rows[i].fault, rows[i].message);
        driver_end(&given);
    }
}

/* The group's own name is the label's value, also where it is asked for by its UUID. */
Test(magnum, labels_of_nodes)
{
    static const struct {
        const char *given, *label;
    } rows[] = {
        {"", "magnum.openstack.org/nodegroup=default-worker"},
        {"capi.example.org/group", "capi.example.org/group=default-worker"},
        {"pool=a", "pool=a"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        struct driver_group given = {.credentials = {.endpoint = (char *)"https://magnum"}};
        driver_field(&given, "cluster", "prod");
        driver_field(&given, "name", UUID);
        driver_field(&given, "node_label", rows[i].given);
        driver_begin(&given, "magnum", AS_GROUP_READ);
        expect_question(&given.op.op, BASE "/nodegroups/" UUID);
        driver_answer(&given.op.op, 200, NODE_GROUP("3", "UPDATE_COMPLETE", ""));
        cr_expect_str_eq(given.op.view.node_label, rows[i].label);
        driver_end(&given);
    }
}

/* ---- where it is ---- */

Test(magnum, addresses_of_magnum)
{
    static const struct {
        const char *option, *endpoint, *url;
    } rows[] = {
        {NULL, "https://c:9511/v1", "https://c:9511/v1/clusters/a%2Fb/nodegroups/n%3F"},
        {NULL, "https://c:9511/", "https://c:9511/v1/clusters/a%2Fb/nodegroups/n%3F"},
        {NULL, "https://c/container-infra",
         "https://c/container-infra/v1/clusters/a%2Fb/nodegroups/n%3F"},
        {"https://mine/v1//", "https://c", "https://mine/v1/clusters/a%2Fb/nodegroups/n%3F"},
        {"https://mine", NULL, "https://mine/v1/clusters/a%2Fb/nodegroups/n%3F"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        struct driver_group given = {.credentials = {.endpoint = (char *)rows[i].endpoint}};
        if (rows[i].option)
            driver_option(&given, "endpoint", rows[i].option);
        driver_field(&given, "cluster", "a/b");
        driver_field(&given, "name", "n?");
        driver_begin(&given, "magnum", AS_GROUP_READ);
        expect_question(&given.op.op, rows[i].url);
        driver_end(&given);
    }
}

Test(magnum, names_that_are_none)
{
    static const char *const names[][3] = {
        {"..", "n", "`cluster` is \"..\", which is no name"},
        {"c", ".", "`name` is \".\", which is no name"},
        {"c", "", "`name` is \"\", which is no name"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(names); i++) {
        struct driver_group given = {.credentials = {.endpoint = (char *)"https://magnum"}};
        driver_field(&given, "cluster", names[i][0]);
        driver_field(&given, "name", names[i][1]);
        driver_begin(&given, "magnum", AS_GROUP_READ);
        driver_expect_end(&given.op.op, AS_CLOUD_OP_CONFIGURATION, names[i][2]);
        driver_end(&given);
    }
}

/* ---- changing ---- */

/* Up to the group's answer, which is `body`. */
static struct as_cloud_op *begin_change(struct driver_group *given, enum as_group_verb verb,
                                        int32_t from, int32_t to, const char *body)
{
    given->op.from = from;
    given->op.to = to;
    struct as_cloud_op *op = begin(given, verb);
    expect_question(op, BASE);
    driver_answer(op, 200, CLUSTER("UPDATE_COMPLETE"));
    expect_question(op, GROUP);
    driver_answer(op, 200, body);
    return op;
}

static void expect_resize(const struct as_cloud_op *op, const char *body)
{
    driver_expect(op, "POST", RESIZE, body);
    driver_expect_headers(op, VERSION "Content-Type: application/json\n");
    cr_assert(op->request.is_change);
}

Test(magnum, group_grows)
{
    struct driver_group given = {0};
    struct as_cloud_op *op =
        begin_change(&given, AS_GROUP_GROW, 3, 5, NODE_GROUP("3", "CREATE_COMPLETE", ""));
    expect_resize(op, "{\"node_count\":5,\"nodegroup\":\"" UUID "\"}");
    driver_answer(op, 202, "{\"uuid\":\"c\"}");
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    cr_expect_str_eq(given.op.started, "5 2024-05-17T10:00:00+00:00");
    driver_end(&given);
}

/* With the size that is left. */
Test(magnum, servers_leave_by_name)
{
    struct driver_group given = {
        .op = {.instances = (const char *const[]){"6b7f", "8c9d"}, .instance_count = 2}};
    struct as_cloud_op *op =
        begin_change(&given, AS_GROUP_REMOVE, 5, 3, NODE_GROUP("5", "UPDATE_FAILED", ""));
    expect_resize(op, "{\"node_count\":3,\"nodegroup\":\"" UUID
                      "\",\"nodes_to_remove\":[\"6b7f\",\"8c9d\"]}");
    driver_answer(op, 202, "{\"uuid\":\"c\"}");
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    driver_end(&given);
}

Test(magnum, capacity_that_never_came_is_taken_back)
{
    struct driver_group given = {0};
    struct as_cloud_op *op =
        begin_change(&given, AS_GROUP_TAKE_BACK, 0, 2,
                     NODE_GROUP("5", "UPDATE_FAILED", ",\"node_addresses\":[\"a\",\"b\"]"));
    expect_resize(op, "{\"node_count\":2,\"nodegroup\":\"" UUID "\"}");
    driver_end(&given);
}

Test(magnum, what_has_changed_since_is_left_alone)
{
    static const struct {
        enum as_group_verb verb;
        int32_t from, to;
        const char *body;
        enum as_cloud_op_fault fault;
        const char *message;
    } rows[] = {
        {AS_GROUP_GROW, 3, 5, NODE_GROUP("4", "UPDATE_COMPLETE", ""), AS_CLOUD_OP_BUSY,
         "the node group has changed since it was looked at: its size is 4"},
        {AS_GROUP_REMOVE, 3, 2, NODE_GROUP("4", "UPDATE_COMPLETE", ""), AS_CLOUD_OP_BUSY,
         "the node group has changed since it was looked at: its size is 4"},
        {AS_GROUP_GROW, 3, 5, NODE_GROUP("3", "UPDATE_IN_PROGRESS", ""), AS_CLOUD_OP_BUSY,
         "the node group is being changed"},
        {AS_GROUP_TAKE_BACK, 5, 2,
         NODE_GROUP("5", "UPDATE_FAILED", ",\"node_addresses\":[\"a\",\"b\",\"c\"]"),
         AS_CLOUD_OP_BUSY,
         "the node group has 3 servers by now: Magnum would choose which leave, for a size of 2"},
        /* done already, perhaps by a request whose answer was lost */
        {AS_GROUP_GROW, 3, 5, NODE_GROUP("5", "UPDATE_COMPLETE", ""), AS_CLOUD_OP_OK, ""},
        {AS_GROUP_REMOVE, 3, 2, NODE_GROUP("2", "UPDATE_COMPLETE", ""), AS_CLOUD_OP_OK, ""},
        {AS_GROUP_TAKE_BACK, 5, 4, NODE_GROUP("3", "UPDATE_COMPLETE", ""), AS_CLOUD_OP_OK, ""},
        {AS_GROUP_GROW, 3, 5, "{\"node_count\":3}", AS_CLOUD_OP_RETRY,
         "get_nodegroup: the answer has no uuid"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        struct driver_group given = {0};
        struct as_cloud_op *op =
            begin_change(&given, rows[i].verb, rows[i].from, rows[i].to, rows[i].body);
        driver_expect_end(op, rows[i].fault, rows[i].message);
        driver_end(&given);
    }
}

/* Magnum's conductor would refuse without telling. */
Test(magnum, states_of_the_cluster)
{
    static const struct {
        const char *body;
        enum as_cloud_op_fault fault; /* OK: it goes on */
        const char *message;
    } rows[] = {
        {CLUSTER("CREATE_COMPLETE"), AS_CLOUD_OP_OK, ""},
        {CLUSTER("UPDATE_FAILED"), AS_CLOUD_OP_OK, ""},
        {CLUSTER("RESUME_COMPLETE"), AS_CLOUD_OP_OK, ""},
        {CLUSTER("UPDATE_IN_PROGRESS"), AS_CLOUD_OP_BUSY, "the cluster is UPDATE_IN_PROGRESS: why"},
        {CLUSTER("CREATE_FAILED"), AS_CLOUD_OP_CONFIGURATION, "the cluster is CREATE_FAILED: why"},
        {CLUSTER("DELETE_COMPLETE"), AS_CLOUD_OP_GONE, "the cluster is DELETE_COMPLETE: why"},
        {CLUSTER("DELETE_IN_PROGRESS"), AS_CLOUD_OP_GONE, "the cluster is DELETE_IN_PROGRESS: why"},
        {"{}", AS_CLOUD_OP_CONFIGURATION, "the cluster is without a status: "},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        struct driver_group given = {.op = {.from = 3, .to = 5}};
        struct as_cloud_op *op = begin(&given, AS_GROUP_GROW);
        driver_answer(op, 200, rows[i].body);
        if (rows[i].fault == AS_CLOUD_OP_OK)
            expect_question(op, GROUP);
        else
            driver_expect_end(op, rows[i].fault, rows[i].message);
        driver_end(&given);
    }
}

/* ---- errors ---- */

Test(magnum, errors)
{
    static const struct {
        int status;
        const char *body;
        enum as_cloud_op_fault fault;
        const char *message;
    } rows[] = {
        {400,
         ERROR("400", "Resizing default-worker outside the allowed range: min_node_count = 1, "
                      "max_node_count = 6"),
         AS_CLOUD_OP_CONFIGURATION,
         "resize_cluster: HTTP 400: Resizing default-worker outside the allowed range: "
         "min_node_count = 1, max_node_count = 6"},
        {400, ERROR("400", "Nodegroup ng already has an operation in progress."), AS_CLOUD_OP_BUSY,
         "resize_cluster: HTTP 400: Nodegroup ng already has an operation in progress."},
        {401,
         "{\"error\":{\"code\":401,\"title\":\"Unauthorized\",\"message\":\"The request you have "
         "made requires authentication.\"}}",
         AS_CLOUD_OP_UNAUTHORIZED,
         "resize_cluster: HTTP 401: The request you have made requires authentication."},
        {403, ERROR("403", "Policy doesn't allow cluster:resize to be performed."),
         AS_CLOUD_OP_PERMISSION,
         "resize_cluster: HTTP 403: Policy doesn't allow cluster:resize to be performed."},
        {403, ERROR("403", "Resource quota exceeded: cores"), AS_CLOUD_OP_CAPACITY,
         "resize_cluster: HTTP 403: Resource quota exceeded: cores"},
        {404, ERROR("404", "Cluster prod could not be found."), AS_CLOUD_OP_GONE,
         "resize_cluster: HTTP 404: Cluster prod could not be found."},
        {404, "404 page not found", AS_CLOUD_OP_GONE, "resize_cluster: HTTP 404"},
        {406,
         "{\"errors\":[{\"max_version\":\"1.8\",\"min_version\":\"1.1\",\"code\":"
         "\"magnum.microversion-unsupported\",\"title\":\"Requested microversion is unsupported\"}"
         "]}",
         AS_CLOUD_OP_CONFIGURATION,
         "this Magnum is too old: it speaks version 1.8 of its API, and 1.10 (of the release "
         "Train) is needed"},
        {406, "", AS_CLOUD_OP_CONFIGURATION,
         "this Magnum is too old: it speaks version ? of its API, and 1.10 (of the release Train) "
         "is needed"},
        {409, ERROR("409", "Conflict."), AS_CLOUD_OP_BUSY, "resize_cluster: HTTP 409: Conflict."},
        {409,
         ERROR("409", "Multiple clusters exist with same name. Please use the cluster uuid "
                      "instead."),
         AS_CLOUD_OP_CONFIGURATION,
         "resize_cluster: HTTP 409: Multiple clusters exist with same name. Please use the cluster "
         "uuid instead."},
        {413, "", AS_CLOUD_OP_THROTTLED, "resize_cluster: HTTP 413"},
        {429, ERROR("429", "slow"), AS_CLOUD_OP_THROTTLED, "resize_cluster: HTTP 429: slow"},
        {500, ERROR("500", "(pymysql) lost"), AS_CLOUD_OP_RETRY,
         "resize_cluster: HTTP 500: (pymysql) lost"},
        {503, "<html/>", AS_CLOUD_OP_RETRY, "resize_cluster: HTTP 503"},
        {200, "", AS_CLOUD_OP_OK, ""},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        struct driver_group given = {0};
        struct as_cloud_op *op =
            begin_change(&given, AS_GROUP_GROW, 3, 5, NODE_GROUP("3", "CREATE_COMPLETE", ""));
        driver_respond(op, (struct as_http_response){
                               .status = rows[i].status, .retry_after = "7", .body = rows[i].body});
        driver_expect_end(op, rows[i].fault, rows[i].message);
        cr_expect_eq(op->is_ambiguous, rows[i].status >= 500);
        cr_expect_eq(op->retry_after_us, 7 * AS_US_PER_S);
        driver_end(&given);
    }
}

Test(magnum, answer_that_does_not_come_leaves_it_open)
{
    struct driver_group given = {0};
    struct as_cloud_op *op =
        begin_change(&given, AS_GROUP_GROW, 3, 5, NODE_GROUP("3", "CREATE_COMPLETE", ""));
    driver_break(op, AS_HTTP_TIMEOUT, "too slow");
    driver_expect_end(op, AS_CLOUD_OP_TIMEOUT, "resize_cluster: too slow");
    cr_expect(op->is_ambiguous);
    driver_end(&given);
}

/* An id in the body is the answer's own. */
Test(magnum, request_ids)
{
    struct driver_group given = {0};
    struct as_cloud_op *op = begin(&given, AS_GROUP_READ);
    driver_answer(op, 404, "{\"errors\":[{\"request_id\":\"req-7\",\"detail\":\"no\"}]}");
    cr_expect_str_eq(op->request_id, "req-7");
    driver_end(&given);
}

/* ---- operations ---- */

Test(magnum, operation_is_followed)
{
    static const struct {
        const char *operation, *body;
        bool is_done;
        enum as_cloud_op_fault fault;
        const char *message;
    } rows[] = {
        /* the conductor has not begun */
        {"5 2024-05-17T10:00:00+00:00", NODE_GROUP("3", "UPDATE_COMPLETE", ""), false,
         AS_CLOUD_OP_OK, ""},
        {"5 2024-05-17T09:00:00+00:00", NODE_GROUP("5", "UPDATE_IN_PROGRESS", ""), false,
         AS_CLOUD_OP_OK, ""},
        {"5 2024-05-17T09:00:00+00:00", NODE_GROUP("5", "UPDATE_COMPLETE", ""), true,
         AS_CLOUD_OP_OK, ""},
        /* a failure of before */
        {"5 2024-05-17T10:00:00+00:00",
         NODE_GROUP("3", "UPDATE_FAILED", ",\"status_reason\":\"old\""), false, AS_CLOUD_OP_OK, ""},
        {"5 2024-05-17T09:00:00+00:00",
         NODE_GROUP("3", "UPDATE_FAILED", ",\"status_reason\":\"stack is gone\""), true,
         AS_CLOUD_OP_CONFIGURATION, "UPDATE_FAILED: stack is gone"},
        {"5 -", NODE_GROUP("5", "UPDATE_FAILED", ",\"status_reason\":\"No valid host was found.\""),
         true, AS_CLOUD_OP_CAPACITY, "UPDATE_FAILED: No valid host was found."},
        {"5 -", NODE_GROUP("5", "UPDATE_FAILED", ",\"status_reason\":\"Quota exceeded for cores\""),
         true, AS_CLOUD_OP_CAPACITY, "UPDATE_FAILED: Quota exceeded for cores"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        struct driver_group given = {.op = {.operation = rows[i].operation}};
        struct as_cloud_op *op = begin(&given, AS_GROUP_POLL);
        expect_question(op, GROUP);
        driver_answer(op, 200, rows[i].body);
        driver_expect_end(op, rows[i].fault, rows[i].message);
        cr_expect_eq(given.op.is_done, rows[i].is_done, "row %zu", i);
        driver_end(&given);
    }
}

Test(magnum, group_that_goes_while_it_is_followed)
{
    struct driver_group given = {.op = {.operation = "5 -"}};
    struct as_cloud_op *op = begin(&given, AS_GROUP_POLL);
    driver_answer(op, 404, ERROR("404", "Nodegroup default-worker could not be found."));
    driver_expect_end(op, AS_CLOUD_OP_GONE,
                      "get_nodegroup: HTTP 404: Nodegroup default-worker could not be found.");
    cr_expect_not(given.op.is_done);
    driver_end(&given);
}
