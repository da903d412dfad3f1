/*
 * digitalocean.c: node pools of DOKS: requests, answers, errors; and the token of an account.
 */
#include <errno.h>

#include "op_driver.h"

#define POOLS "https://api.digitalocean.com/v2/kubernetes/clusters/c-1/node_pools"
#define PAGE  POOLS "?page=1&per_page=200"
#define POOL  POOLS "/p-2"
#define NODE(id, droplet, state)                                                                   \
    "{\"id\":\"" id "\",\"name\":\"web-" id "\",\"status\":{\"state\":\"" state                    \
    "\"},\"droplet_id\":\"" droplet "\",\"created_at\":\"2024-05-17T09:00:00Z\"}"
#define PAIR NODE("n-1", "11", "running") "," NODE("n-2", "12", "running")

static struct driver_group given;
static struct as_cloud_op *op;

static void begin(enum as_group_verb verb)
{
    given.field_count = 0;
    given.op.view = (struct as_group_view){.min = -1, .max = -1};
    driver_field(&given, "cluster", "c-1");
    driver_field(&given, "name", "web");
    op = &given.op.op;
    driver_begin(&given, "digitalocean", verb);
}

static void end(void)
{
    driver_end(&given);
}

TestSuite(digitalocean, .fini = end);

/* Tells the list of pools: another one, and the one that is meant. */
static void answer_pool(int count, const char *rest, const char *nodes)
{
    char body[4096];
    snprintf(body, sizeof(body),
             "{\"node_pools\":[{\"id\":\"p-1\",\"name\":\"other\",\"count\":9,\"nodes\":[]},"
             "{\"id\":\"p-2\",\"name\":\"web\",\"size\":\"s-1vcpu-2gb\",\"count\":%d,%s"
             "\"nodes\":[%s]}],\"links\":{\"pages\":{}},\"meta\":{\"total\":2}}",
             count, rest, nodes);
    driver_answer(op, 200, body);
}

static void begin_change(enum as_group_verb verb, int32_t from, int32_t to)
{
    given.op.from = from;
    given.op.to = to;
    begin(verb);
}

/* ---- reading ---- */

Test(digitalocean, reads_a_pool)
{
    begin(AS_GROUP_READ);
    driver_expect(op, "GET", PAGE, "");
    driver_expect_headers(op, "");
    cr_assert_not(op->request.is_change || op->request.is_plain);
    answer_pool(4, "\"auto_scale\":false,\"min_nodes\":0,\"max_nodes\":0,",
                PAIR "," NODE("n-3", "", "provisioning") "," NODE("n-4", "14", "draining") "," NODE(
                    "n-5", "15", "deleting"));
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    const struct as_group_view *view = &given.op.view;
    cr_assert_eq(view->size, 4);
    cr_assert_eq(view->instance_count, 5);
    driver_expect_instance(&given, 0, "n-1 digitalocean://11 - running");
    driver_expect_instance(&given, 2, "n-3 n-3 - pending");
    driver_expect_instance(&given, 3, "n-4 digitalocean://14 - leaving");
    driver_expect_instance(&given, 4, "n-5 digitalocean://15 - leaving");
    cr_assert(view->instances[0].created.set);
    cr_assert_eq(view->instances[0].created.at.us, INT64_C(1715936400) * AS_US_PER_S);
    cr_assert_null(view->controller);
    cr_assert(view->in_progress, "of four only three are coming");
}

Test(digitalocean, a_pool_has_one_resource_by_its_name_and_by_its_id)
{
    static const char *const names[] = {"web", "p-2"};
    for (size_t i = 0; i < AS_ARRAY_SIZE(names); i++) {
        given.field_count = 0;
        driver_field(&given, "name", names[i]);
        driver_field(&given, "cluster", "c-1");
        op = &given.op.op;
        driver_begin(&given, "digitalocean", AS_GROUP_READ);
        answer_pool(2, "", PAIR);
        driver_expect_end(op, AS_CLOUD_OP_OK, "");
        driver_expect_backing(&given, "digitalocean/p-2 ");
        driver_end(&given);
        given.op.view = (struct as_group_view){.min = -1, .max = -1};
    }
}

Test(digitalocean, a_pool_at_rest_is_not_in_progress)
{
    begin(AS_GROUP_READ);
    answer_pool(2, "", PAIR);
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    cr_assert_not(given.op.view.in_progress);
}

Test(digitalocean, a_pool_may_be_named_by_its_id)
{
    driver_field(&given, "name", "p-1");
    driver_field(&given, "cluster", "a/b c");
    driver_option(&given, "endpoint", "http://127.0.0.1:5000/");
    op = &given.op.op;
    driver_begin(&given, "digitalocean", AS_GROUP_READ);
    driver_expect(
        op, "GET",
        "http://127.0.0.1:5000/v2/kubernetes/clusters/a%2Fb%20c/node_pools?page=1&per_page=200",
        "");
    answer_pool(2, "", PAIR);
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    cr_assert_eq(given.op.view.size, 9);
}

Test(digitalocean, names_the_pools_own_autoscaler)
{
    begin(AS_GROUP_READ);
    answer_pool(2, "\"auto_scale\":true,\"min_nodes\":1,\"max_nodes\":5,", PAIR);
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    cr_assert_str_eq(given.op.view.controller, "the node pool's own autoscaler (auto_scale)");
}

#define NEXT                                                                                       \
    "{\"node_pools\":[{\"id\":\"p-1\",\"name\":\"other\",\"count\":9}],"                           \
    "\"links\":{\"pages\":{\"next\":\"https://elsewhere/?page=7\"}}}"

Test(digitalocean, pages_are_counted_and_their_addresses_not_followed)
{
    begin(AS_GROUP_READ);
    driver_answer(op, 200, NEXT);
    driver_expect(op, "GET", POOLS "?page=2&per_page=200", "");
    answer_pool(2, "", PAIR);
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
}

Test(digitalocean, pages_that_never_end_do)
{
    begin(AS_GROUP_READ);
    while (op->want == AS_CLOUD_OP_SEND)
        driver_answer(op, 200, NEXT);
    driver_expect_end(op, AS_CLOUD_OP_CONFIGURATION, "given up after 2 pages: it never ends");
}

Test(digitalocean, answers_that_make_no_sense)
{
    static const struct {
        const char *body, *message;
        enum as_cloud_op_fault fault;
    } rows[] = {
        {"{\"node_pools\":[{\"id\":\"p-2\",\"na",
         "list_node_pools: the answer is not JSON: premature end of input near '\"na'",
         AS_CLOUD_OP_RETRY},
        {"<html>", "list_node_pools: the answer is not JSON: '[' or '{' expected near '<'",
         AS_CLOUD_OP_RETRY},
        {"{}", "list_node_pools: the answer has no node_pools", AS_CLOUD_OP_RETRY},
        {"{\"node_pools\":[]}", "the cluster has no node pool web", AS_CLOUD_OP_GONE},
        {"{\"node_pools\":7}", "the cluster has no node pool web", AS_CLOUD_OP_GONE},
        {"{\"node_pools\":[{\"name\":7,\"id\":[]}]}", "the cluster has no node pool web",
         AS_CLOUD_OP_GONE},
        {"{\"node_pools\":[{\"name\":\"web\",\"count\":1}]}",
         "list_node_pools: the answer has no node_pools.id", AS_CLOUD_OP_RETRY},
        {"{\"node_pools\":[{\"name\":\"web\",\"id\":\"p\",\"count\":\"x\"}]}",
         "list_node_pools: the answer has no count", AS_CLOUD_OP_RETRY},
        {"{\"node_pools\":[{\"name\":\"web\",\"id\":\"p\",\"count\":-1}]}",
         "list_node_pools: the answer has no count", AS_CLOUD_OP_RETRY},
        {"{\"node_pools\":[{\"name\":\"web\",\"id\":\"p\",\"count\":1,\"nodes\":[{\"id\":3}]}]}",
         "list_node_pools: the answer has no node_pools.nodes.id", AS_CLOUD_OP_RETRY},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        begin(AS_GROUP_READ);
        driver_answer(op, 200, rows[i].body);
        driver_expect_end(op, rows[i].fault, rows[i].message);
        if (i + 1 < AS_ARRAY_SIZE(rows))
            driver_end(&given);
    }
}

/* ---- errors ---- */

Test(digitalocean, errors_have_classes)
{
    static const struct {
        int status;
        const char *body, *message;
        enum as_cloud_op_fault fault;
    } rows[] = {
        {401, "{\"id\":\"Unauthorized\",\"message\":\"Unable to authenticate you\"}",
         "list_node_pools: HTTP 401 Unauthorized: Unable to authenticate you",
         AS_CLOUD_OP_UNAUTHORIZED},
        {403, "{\"id\":\"Forbidden\",\"message\":\"You are not authorized\"}",
         "list_node_pools: HTTP 403 Forbidden: You are not authorized", AS_CLOUD_OP_PERMISSION},
        {404, "{\"id\":\"not_found\",\"message\":\"cluster not found\"}",
         "list_node_pools: HTTP 404 not_found: cluster not found", AS_CLOUD_OP_GONE},
        {409, "{\"id\":\"conflict\",\"message\":\"upgrade in progress\"}",
         "list_node_pools: HTTP 409 conflict: upgrade in progress", AS_CLOUD_OP_BUSY},
        {422, "{\"id\":\"unprocessable_entity\",\"message\":\"invalid pool\"}",
         "list_node_pools: HTTP 422 unprocessable_entity: invalid pool", AS_CLOUD_OP_CONFIGURATION},
        {422,
         "{\"id\":\"unprocessable_entity\",\"message\":\"validation error: 3 additional nodes but "
         "not enough available Droplet limit\"}",
         "list_node_pools: HTTP 422 unprocessable_entity: validation error: 3 additional nodes but "
         "not enough available Droplet limit",
         AS_CLOUD_OP_CAPACITY},
        {422, "{\"id\":\"unprocessable_entity\",\"message\":\"Size is not available here\"}",
         "list_node_pools: HTTP 422 unprocessable_entity: Size is not available here",
         AS_CLOUD_OP_CAPACITY},
        {429, "{\"id\":\"too_many_requests\",\"message\":\"API Rate limit exceeded.\"}",
         "list_node_pools: HTTP 429 too_many_requests: API Rate limit exceeded.",
         AS_CLOUD_OP_THROTTLED},
        {500, "{\"id\":\"server_error\",\"message\":\"Unexpected server-side error\"}",
         "list_node_pools: HTTP 500 server_error: Unexpected server-side error", AS_CLOUD_OP_RETRY},
        {503, "<html>", "list_node_pools: HTTP 503", AS_CLOUD_OP_RETRY},
        {429, "{\"message\":7}", "list_node_pools: HTTP 429", AS_CLOUD_OP_THROTTLED},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        begin(AS_GROUP_READ);
        driver_respond(op, (struct as_http_response){
                               .status = rows[i].status, .body = rows[i].body, .retry_after = "7"});
        driver_expect_end(op, rows[i].fault, rows[i].message);
        cr_assert_eq(op->retry_after_us, 7 * AS_US_PER_S);
        cr_assert_not(op->is_ambiguous);
        if (i + 1 < AS_ARRAY_SIZE(rows))
            driver_end(&given);
    }
}

Test(digitalocean, names_the_request)
{
    begin(AS_GROUP_READ);
    driver_respond(op,
                   (struct as_http_response){.status = 404,
                                             .fields = "X-Request-Id\0req-1\0",
                                             .body = "{\"id\":\"not_found\",\"message\":\"no\"}"});
    cr_assert_str_eq(op->request_id, "req-1");
    driver_end(&given);
    begin(AS_GROUP_READ);
    driver_answer(op, 404, "{\"id\":\"not_found\",\"message\":\"no\",\"request_id\":\"req-2\"}");
    cr_assert_str_eq(op->request_id, "req-2");
}

Test(digitalocean, no_answer)
{
    begin(AS_GROUP_READ);
    driver_break(op, AS_HTTP_TIMEOUT, "no answer within 10 s");
    driver_expect_end(op, AS_CLOUD_OP_TIMEOUT, "list_node_pools: no answer within 10 s");
    cr_assert_not(op->is_ambiguous);
}

/* ---- growing ---- */

Test(digitalocean, grows_to_an_absolute_count)
{
    begin_change(AS_GROUP_GROW, 2, 5);
    driver_expect(op, "GET", PAGE, "");
    answer_pool(2, "", PAIR);
    driver_expect(op, "PUT", POOL, "{\"name\":\"web\",\"count\":5}");
    driver_expect_headers(op, "Content-Type: application/json\n");
    cr_assert(op->request.is_change);
    driver_answer(op, 202, "{\"node_pool\":{\"id\":\"p-2\",\"count\":5}}");
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    cr_assert_null(given.op.started);
}

Test(digitalocean, a_count_that_somebody_else_changed_is_left_alone)
{
    begin_change(AS_GROUP_GROW, 2, 5);
    answer_pool(3, "", PAIR);
    driver_expect_end(op, AS_CLOUD_OP_BUSY,
                      "the node pool has changed since it was looked at: its count is 3");
    driver_end(&given);
    begin_change(AS_GROUP_GROW, 2, 5);
    answer_pool(5, "", PAIR); /* by a request whose answer was lost */
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
}

Test(digitalocean, a_change_without_an_answer_may_have_been_made)
{
    static const enum as_http_outcome outcomes[] = {AS_HTTP_TIMEOUT, AS_HTTP_BROKEN,
                                                    AS_HTTP_ANSWERED};
    for (size_t i = 0; i < AS_ARRAY_SIZE(outcomes); i++) {
        begin_change(AS_GROUP_GROW, 2, 5);
        answer_pool(2, "", PAIR);
        driver_respond(op, (struct as_http_response){.outcome = outcomes[i], .status = 502});
        cr_assert_eq(op->want, AS_CLOUD_OP_END);
        cr_assert(op->is_ambiguous, "%zu", i);
        if (i + 1 < AS_ARRAY_SIZE(outcomes))
            driver_end(&given);
    }
}

/* ---- removing ---- */

static void begin_removal_of(int count, const char *nodes)
{
    static const char *const ids[] = {"n-1", "n-2", "n-3"};
    given.op.instances = ids;
    given.op.instance_count = 3;
    begin_change(AS_GROUP_REMOVE, 4, 1);
    answer_pool(count, "", nodes);
}

static void begin_removal(const char *nodes)
{
    begin_removal_of(4, nodes);
}

#define DELETE(id) POOL "/nodes/" id "?skip_drain=1"

Test(digitalocean, nodes_leave_by_name)
{
    begin_removal(PAIR "," NODE("n-3", "13", "running") "," NODE("n-4", "14", "running"));
    driver_expect(op, "DELETE", DELETE("n-1"), "");
    driver_expect_headers(op, "");
    driver_answer(op, 202, "");
    driver_expect(op, "DELETE", DELETE("n-2"), "");
    driver_answer(op, 404, "{\"id\":\"not_found\",\"message\":\"node not found\"}");
    driver_expect(op, "DELETE", DELETE("n-3"), "");
    driver_answer(op, 202, "");
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
}

Test(digitalocean, nodes_that_are_leaving_are_not_deleted_twice)
{
    begin_removal(NODE("n-1", "11", "deleting") "," NODE("n-3", "13", "draining"));
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
}

/* Draining takes its time: of three to leave one has gone. */
Test(digitalocean, a_count_that_has_changed_lets_nobody_leave)
{
    static const int counts[] = {2, 5};
    for (size_t i = 0; i < AS_ARRAY_SIZE(counts); i++) {
        char want[80];
        snprintf(want, sizeof(want), "the group has changed since it was looked at: its size is %d",
                 counts[i]);
        begin_removal_of(counts[i], PAIR);
        driver_expect_end(op, AS_CLOUD_OP_BUSY, want);
        cr_assert_not(op->is_ambiguous);
        driver_end(&given);
    }
    begin_removal_of(3, PAIR);
    driver_expect(op, "DELETE", DELETE("n-1"), "");
}

Test(digitalocean, a_removal_that_fails_says_so)
{
    begin_removal(PAIR);
    driver_answer(op, 202, "");
    driver_answer(op, 500, "{\"id\":\"server_error\",\"message\":\"no\"}");
    driver_expect_end(op, AS_CLOUD_OP_RETRY, "delete_node: HTTP 500 server_error: no");
    cr_assert(op->is_ambiguous);
}

/* ---- taking back ---- */

Test(digitalocean, what_never_came_is_taken_back)
{
    begin_change(AS_GROUP_TAKE_BACK, 5, 3);
    answer_pool(5, "", PAIR "," NODE("n-3", "", "provisioning"));
    driver_expect(op, "PUT", POOL, "{\"name\":\"web\",\"count\":3}");
    driver_answer(op, 202, "{}");
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
}

/* DigitalOcean would choose which. */
Test(digitalocean, nodes_that_are_there_are_not_taken_back)
{
    begin_change(AS_GROUP_TAKE_BACK, 3, 2);
    answer_pool(3, "", PAIR "," NODE("n-3", "", "provisioning"));
    driver_expect_end(op, AS_CLOUD_OP_BUSY, "the node pool has 3 nodes by now, for a count of 2");
}

Test(digitalocean, nothing_to_take_back)
{
    begin_change(AS_GROUP_TAKE_BACK, 3, 2);
    answer_pool(2, "", PAIR);
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
}

Test(digitalocean, there_is_no_operation_to_poll)
{
    given.op.operation = "x";
    begin(AS_GROUP_POLL);
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    cr_assert(given.op.is_done);
}

/* ---- credentials ---- */

static struct driver_source source;

static void begin_source(const char *name)
{
    driver_begin_source(&source, as_group_provider_find("digitalocean")->credentials, name);
}

static void end_source(void)
{
    driver_end_source(&source);
}

TestSuite(digitalocean_token, .fini = end_source);

Test(digitalocean_token, of_a_file)
{
    driver_source_option(&source, "token_file", "/run/token");
    begin_source("token file");
    driver_expect_file(&source.op.op, "/run/token");
    driver_content(&source.op.op, "dop_v1_x\n", 0);
    driver_expect_found(&source, NULL, NULL, "dop_v1_x", NULL);
}

Test(digitalocean_token, of_a_file_that_cannot_be_read)
{
    driver_source_option(&source, "token_file", "/run/token");
    begin_source("token file");
    driver_content(&source.op.op, NULL, EACCES);
    driver_expect_end(&source.op.op, AS_CLOUD_OP_CONFIGURATION,
                      "cannot read /run/token: Permission denied");
    cr_assert_not(source.op.is_not_here);
}

Test(digitalocean_token, of_the_environment)
{
    driver_set("DIGITALOCEAN_ACCESS_TOKEN", "dop_v1_y");
    begin_source("environment");
    driver_expect_found(&source, NULL, NULL, "dop_v1_y", NULL);
}

Test(digitalocean_token, may_be_nowhere)
{
    static const char *const names[] = {"token file", "environment"};
    driver_set("DIGITALOCEAN_ACCESS_TOKEN", "");
    for (size_t i = 0; i < AS_ARRAY_SIZE(names); i++) {
        begin_source(names[i]);
        cr_assert(source.op.is_not_here);
        if (i == 0)
            driver_end_source(&source);
    }
}
