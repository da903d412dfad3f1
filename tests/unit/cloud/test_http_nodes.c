/*
 * HTTP node groups with nodes: each request byte by byte, what is read, and that a service which
 * does not promise to remove the named nodes is not trusted to. Which nodes have the labels.
 */
#include <alertscaler/kube/nodes.h>

#include "op_driver.h"

#define URL "http://pool:8080/groups/a?token=secret"

static struct driver_group given;
static struct as_cloud_op *op;

static void begin(enum as_group_verb verb)
{
    given.field_count = 0;
    given.op.view = (struct as_group_view){.min = -1, .max = -1};
    given.op.select = "life=spot,pool=build";
    driver_field(&given, "provider", "mine");
    driver_field(&given, "url", URL);
    op = &given.op.op;
    driver_begin(&given, "http", verb);
}

static void end(void)
{
    driver_end(&given);
}

TestSuite(http_nodes, .fini = end);

static void answer(int status, const char *body, const char *etag)
{
    driver_respond(op, (struct as_http_response){.status = status, .body = body, .etag = etag});
}

Test(http_nodes, reads_a_group)
{
    begin(AS_GROUP_READ);
    driver_expect(op, "GET", URL, "");
    driver_expect_headers(op, "Accept: application/json\n");
    cr_expect_not(op->request.is_change);
    answer(200, "{\"size\":4,\"min\":1,\"max\":9,\"in_progress\":true,\"removes_by_name\":true}",
           "\"v1\"");
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    const struct as_group_view *view = &given.op.view;
    cr_expect(view->size == 4 && view->min == 1 && view->max == 9 && view->in_progress);
    cr_expect(view->knows_nodes);
    cr_expect_str_eq(view->node_label, "life=spot,pool=build");
    cr_expect_str_eq(view->version, "\"v1\"");
    cr_expect_null(view->chooses);
    cr_expect_eq(view->instance_count, 0);
}

Test(http_nodes, a_service_that_promises_nothing_chooses_itself)
{
    begin(AS_GROUP_READ);
    answer(200, "{\"size\":4,\"etag\":\"b\"}", "\"h\"");
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    cr_expect_not_null(given.op.view.chooses);
    cr_expect_str_eq(given.op.view.version, "b");
}

static void begin_change(enum as_group_verb verb, int32_t to)
{
    given.op.from = 4;
    given.op.to = to;
    given.op.version = "\"v1\"";
    begin(verb);
}

Test(http_nodes, asks_for_more)
{
    begin_change(AS_GROUP_GROW, 6);
    driver_expect(op, "PUT", URL, "{\"size\":6,\"observed\":4}");
    driver_expect_headers(
        op, "Accept: application/json\nContent-Type: application/json\nIf-Match: \"v1\"\n");
    cr_expect(op->request.is_change);
    answer(202, "", "");
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
}

Test(http_nodes, names_the_nodes_that_leave)
{
    static const char *const nodes[] = {"node-a", "node-\"b\""};
    given.op.instances = nodes;
    given.op.instance_count = 2;
    begin_change(AS_GROUP_REMOVE, 2);
    driver_expect(op, "PUT", URL,
                  "{\"size\":2,\"observed\":4,\"remove\":[\"node-a\",\"node-\\\"b\\\"\"]}");
    answer(412, "{\"error\":\"size is 5\"}", "");
    driver_expect_end(op, AS_CLOUD_OP_BUSY, "set_size: HTTP 412: size is 5");
    cr_expect_not(op->is_ambiguous);
}

Test(http_nodes, what_has_not_come_is_no_node)
{
    begin_change(AS_GROUP_TAKE_BACK, 3);
    driver_expect(op, "PUT", URL, "{\"size\":3,\"observed\":4,\"remove\":[]}");
    answer(500, "{\"error\":\"disk\"}", "");
    driver_expect_end(op, AS_CLOUD_OP_RETRY, "set_size: HTTP 500: disk");
    cr_expect(op->is_ambiguous);
}

Test(http_nodes, nothing_is_left_to_follow)
{
    begin(AS_GROUP_POLL);
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    cr_expect(given.op.is_done);
}

Test(http_nodes, other_documents_are_refused)
{
    begin(AS_GROUP_READ);
    answer(200, "{\"size\":4,\"removes_by_name\":1}", "");
    driver_expect_end(op, AS_CLOUD_OP_CONFIGURATION,
                      "not a node group's document: removes_by_name: expected true or false");
    end();
    begin(AS_GROUP_READ);
    answer(200, "{\"size\":4}", "\x01");
    driver_expect_end(op, AS_CLOUD_OP_CONFIGURATION,
                      "not a node group's document: ETag: too long, or not printable ASCII");
}

/* ---- which nodes ---- */

Test(http_nodes, nodes_with_all_labels_are_the_instances, .fini = NULL)
{
    static const struct as_label both[] = {{"life", "spot"}, {"pool", "build"}, {"x", "y"}};
    static const struct as_label longer[] = {{"life", "spot"}, {"pool", "builder"}};
    struct as_arena arena = AS_ARENA_INIT;
    struct as_node_fact facts[4] = {{.name = "a", .provider_id = ""},
                                    {.name = "b", .provider_id = "x://b"},
                                    {.name = "c", .provider_id = "x://c"},
                                    {.name = "d", .provider_id = ""}};
    cr_assert_eq(as_labels_new_in(&arena, both, 3, &facts[0].labels), 0);
    cr_assert_eq(as_labels_new_in(&arena, both, 1, &facts[1].labels), 0);
    cr_assert_eq(as_labels_new_in(&arena, longer, 2, &facts[2].labels), 0);
    cr_assert_eq(as_labels_new_in(&arena, both, 2, &facts[3].labels), 0);
    const struct as_cluster cluster = {.nodes = facts, .node_count = 4};
    const struct as_group_view view = {
        .size = 3, .node_label = "life=spot,pool=build", .knows_nodes = true};
    struct as_instance_nodes of;
    as_instance_nodes_init(&of, &view);
    as_instance_nodes_match_facts(&of, &cluster);
    cr_assert_eq(of.count, 2);
    cr_expect_str_eq(of.found[0].instance->id, "a");
    cr_expect_str_eq(of.found[1].instance->id, "d");
    cr_expect(of.found[0].is_found && of.found[1].is_found);
    cr_expect_str_eq(of.found[1].node.name, "d");
    as_instance_nodes_deinit(&of);
    as_arena_deinit(&arena);
}
