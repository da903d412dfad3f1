/*
 * externalgrpc.c: every call byte by byte, every answer and every status; answers that
 * are cut off, of other types, or not gRPC at all.
 */
#include "op_driver.h"

#define SERVICE        "https://driver:8086/clusterautoscaler.cloudprovider.v1.externalgrpc.CloudProvider/"
#define HEADERS        "Content-Type: application/grpc\nTE: trailers\ngrpc-timeout: 10000m\n"
#define BYTES(literal) literal, sizeof(literal) - 1

/* Node groups ng1 (1 to 10) and other; sizes; instances. */
#define GROUPS                                                                                     \
    "\0\0\0\0\x18"                                                                                 \
    "\x0a\x09\x0a\x05other\x18\x63\x0a\x09\x0a\x03ng1\x10\x01\x18\x0a\x52\x00"
#define SIZE_3 "\0\0\0\0\x02\x08\x03"
#define EMPTY  "\0\0\0\0\0"

static struct driver_group given;
static struct as_cloud_op *op;

static void begin_at(const char *endpoint, enum as_group_verb verb)
{
    driver_option(&given, "endpoint", endpoint);
    driver_field(&given, "name", "ng1");
    given.account.timeout_us = 10 * AS_US_PER_S;
    op = &given.op.op;
    driver_begin(&given, "externalgrpc", verb);
}

static void begin(enum as_group_verb verb)
{
    begin_at("https://driver:8086//", verb);
}

static void end(void)
{
    driver_end(&given);
    given = (struct driver_group){0};
}

TestSuite(externalgrpc, .fini = end);

static void expect(const char *method, const char *body, size_t size)
{
    char url[256];
    snprintf(url, sizeof(url), SERVICE "%s", method);
    cr_assert_eq(op->want, AS_CLOUD_OP_SEND, "it has ended: %s", op->message);
    cr_assert_str_eq(op->request.url, url);
    cr_assert_str_eq(op->request.method, "POST");
    cr_assert(op->request.is_http2);
    driver_expect_headers(op, HEADERS);
    cr_assert_eq(op->request.body.size, size, "%zu", op->request.body.size);
    cr_assert_arr_eq(op->request.body.data, body, size);
}

/* `fields` as "name\0value\0...". */
static void answer_with(const char *fields, const char *body, size_t size)
{
    driver_respond(op, (struct as_http_response){.status = 200,
                                                 .body = body,
                                                 .body_size = size,
                                                 .content_type = "application/grpc",
                                                 .fields = fields});
}

static void answer(const char *body, size_t size)
{
    answer_with("grpc-status\0000\0", body, size);
}

/* Up to the question that receives the nodes. */
static void read_up_to_nodes(void)
{
    begin(AS_GROUP_READ);
    answer(BYTES(EMPTY));
    answer(BYTES(GROUPS));
    answer(BYTES(SIZE_3));
    expect("NodeGroupNodes", BYTES("\0\0\0\0\x05\x0a\x03ng1"));
}

Test(externalgrpc, reads_a_group)
{
    begin(AS_GROUP_READ);
    expect("Refresh", BYTES(EMPTY));
    cr_assert_not(op->request.is_change);
    answer(BYTES(EMPTY));
    expect("NodeGroups", BYTES(EMPTY));
    cr_assert_not(op->request.is_change);
    answer(BYTES(GROUPS));
    expect("NodeGroupTargetSize", BYTES("\0\0\0\0\x05\x0a\x03ng1"));
    cr_assert_not(op->request.is_change);
    answer(BYTES(SIZE_3));
    expect("NodeGroupNodes", BYTES("\0\0\0\0\x05\x0a\x03ng1"));
    cr_assert_not(op->request.is_change);
    answer(BYTES("\0\0\0\0\x45"
                 "\x0a\x08\x0a\x02p0\x12\x02\x12\x00" /* unspecified */
                 "\x0a\x08\x0a\x02p1\x12\x02\x08\x01" /* running */
                 "\x0a\x08\x0a\x02p2\x12\x02\x08\x02" /* creating */
                 "\x0a\x08\x0a\x02p3\x12\x02\x08\x03" /* deleting */
                 "\x0a\x15\x0a\x02p4\x12\x0f\x08\x02\x12\x0b\x0a\x02SO\x12\x03out\x18\x01"
                 "\x0a\x04\x0a\x02p5"));
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    const struct as_group_view *view = &given.op.view;
    driver_expect_backing(&given, "externalgrpc/https://driver:8086/ng1 ");
    cr_assert_eq(view->size, 3);
    cr_assert_eq(view->min, 1);
    cr_assert_eq(view->max, 10);
    cr_assert_eq(view->instance_count, 6);
    driver_expect_instance(&given, 0, "p0 p0 - running");
    driver_expect_instance(&given, 1, "p1 p1 - running");
    driver_expect_instance(&given, 2, "p2 p2 - pending");
    driver_expect_instance(&given, 3, "p3 p3 - leaving");
    driver_expect_instance(&given, 4, "p4 p4 - failed");
    driver_expect_instance(&given, 5, "p5 p5 - running");
    cr_assert_str_eq(view->shortage, "SO: out");
}

Test(externalgrpc, an_instance_that_leaves_with_an_error_leaves)
{
    read_up_to_nodes();
    answer(BYTES("\0\0\0\0\x0e\x0a\x0c\x0a\x02p3\x12\x06\x08\x03\x12\x02\x0a\x00"));
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    driver_expect_instance(&given, 0, "p3 p3 - leaving");
    end();
    read_up_to_nodes();
    answer(BYTES("\0\0\0\0\x0f\x0a\x0d\x0a\x02p3\x12\x07\x08\x03\x12\x03\x0a\x01x"));
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    driver_expect_instance(&given, 0, "p3 p3 - leaving");
    cr_assert_null(given.op.view.shortage);
    end();
    read_up_to_nodes();
    answer(BYTES("\0\0\0\0\x0a\x0a\x08\x0a\x02p9\x12\x02\x08\x09"));
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    driver_expect_instance(&given, 0, "p9 p9 - pending");
}

Test(externalgrpc, a_group_that_is_not_there_is_gone)
{
    begin(AS_GROUP_READ);
    answer(BYTES(EMPTY));
    answer(BYTES("\0\0\0\0\x09\x0a\x07\x0a\x05other"));
    driver_expect_end(op, AS_CLOUD_OP_GONE, "the driver has no node group ng1");
    end();
    begin(AS_GROUP_READ);
    answer(BYTES(EMPTY));
    answer(BYTES(EMPTY));
    driver_expect_end(op, AS_CLOUD_OP_GONE, "the driver has no node group ng1");
}

Test(externalgrpc, grows_by_the_difference)
{
    given.op.from = 3;
    given.op.to = 205;
    begin(AS_GROUP_GROW);
    expect("NodeGroupIncreaseSize", BYTES("\0\0\0\0\x08\x08\xca\x01\x12\x03ng1"));
    cr_assert(op->request.is_change);
    answer(BYTES(EMPTY));
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    cr_assert_null(given.op.started);
}

Test(externalgrpc, takes_back_by_a_negative_difference)
{
    given.op.from = 5;
    given.op.to = 3;
    begin(AS_GROUP_TAKE_BACK);
    expect("NodeGroupDecreaseTargetSize",
           BYTES("\0\0\0\0\x10\x08\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01\x12\x03ng1"));
    cr_assert(op->request.is_change);
    answer(BYTES(EMPTY));
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
}

#define BOTH                                                                                       \
    "\0\0\0\0\x1a"                                                                                 \
    "\x0a\x0b\x0a\x05x://1\x12\x02\x08\x01"                                                        \
    "\x0a\x0b\x0a\x05x://2\x12\x02\x08\x01"

/* The group is read once more, with this size and these instances. */
static void begin_removal(const char *size, size_t size_size, const char *nodes, size_t nodes_size)
{
    begin(AS_GROUP_REMOVE);
    expect("Refresh", BYTES(EMPTY));
    answer(BYTES(EMPTY));
    answer(BYTES(GROUPS));
    answer(size, size_size);
    expect("NodeGroupNodes", BYTES("\0\0\0\0\x05\x0a\x03ng1"));
    answer(nodes, nodes_size);
}

Test(externalgrpc, removes_by_provider_id_and_name)
{
    static const char *const ids[] = {"x://1", "x://2"}, *const nodes[] = {"one", NULL};
    given.op.instances = ids;
    given.op.instance_count = 2;
    given.op.nodes = nodes;
    given.op.from = 3;
    given.op.to = 1;
    begin_removal(BYTES(SIZE_3), BYTES(BOTH));
    expect("NodeGroupDeleteNodes", BYTES("\0\0\0\0\x1c"
                                         "\x0a\x0c\x0a\x05x://1\x12\x03one"
                                         "\x0a\x07\x0a\x05x://2\x12\x03ng1"));
    cr_assert(op->request.is_change);
    answer(BYTES(EMPTY));
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    end();
    given.op.instances = ids + 1;
    given.op.instance_count = 1;
    given.op.from = 3;
    given.op.to = 2;
    begin_removal(BYTES(SIZE_3), BYTES(BOTH));
    expect("NodeGroupDeleteNodes", BYTES("\0\0\0\0\x0e\x0a\x07\x0a\x05x://2\x12\x03ng1"));
}

/* Draining takes its time. */
Test(externalgrpc, a_size_that_has_changed_lets_nobody_leave)
{
    static const char *const ids[] = {"x://1"};
    for (int from = 2; from <= 4; from += 2) {
        given.op.instances = ids;
        given.op.instance_count = 1;
        given.op.from = from;
        given.op.to = from - 1;
        begin_removal(BYTES(SIZE_3), BYTES(BOTH));
        driver_expect_end(op, AS_CLOUD_OP_BUSY,
                          "the group has changed since it was looked at: its size is 3");
        end();
    }
    given.op.instances = ids; /* gone already */
    given.op.instance_count = 1;
    given.op.from = 4;
    given.op.to = 3;
    begin_removal(BYTES(SIZE_3), BYTES(EMPTY));
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
}

Test(externalgrpc, a_removal_that_does_not_fit_is_not_sent)
{
    enum { COUNT = 300 };
    static char id[1024];
    const char *ids[COUNT];
    memset(id, 'x', sizeof(id) - 1);
    for (size_t i = 0; i < COUNT; i++)
        ids[i] = id;
    given.op.instances = ids;
    given.op.instance_count = COUNT;
    given.op.from = COUNT;
    struct as_buf list = AS_BUF_INIT(2048);
    as_buf_append(&list, BYTES("\0\0\0\x04\x09\x0a\x86\x08\x0a\xff\x07"));
    as_buf_append_str(&list, id);
    as_buf_append(&list, BYTES("\x12\x02\x08\x01"));
    begin_removal(BYTES("\0\0\0\0\x03\x08\xac\x02"), list.data, list.size);
    as_buf_deinit(&list);
    driver_expect_end(op, AS_CLOUD_OP_CONFIGURATION,
                      "node_group_delete_nodes: the request is larger than 262144 bytes");
}

Test(externalgrpc, has_no_operations)
{
    begin(AS_GROUP_POLL);
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    cr_assert(given.op.is_done);
}

/* ---- statuses ---- */

Test(externalgrpc, judges_statuses)
{
    static const struct {
        const char *fields, *words;
        enum as_cloud_op_fault fault;
        bool is_ambiguous;
    } rows[] = {
        {"grpc-status\0001\0", "CANCELLED", AS_CLOUD_OP_RETRY, true},
        {"grpc-status\0002\0grpc-message\0NodeGroup \"a\", not found\0",
         "UNKNOWN: NodeGroup \"a\", not found", AS_CLOUD_OP_RETRY, true},
        {"grpc-status\0003\0grpc-message\0no%20delta\0", "INVALID_ARGUMENT: no delta",
         AS_CLOUD_OP_CONFIGURATION, false},
        {"grpc-status\0004\0", "DEADLINE_EXCEEDED", AS_CLOUD_OP_TIMEOUT, true},
        {"grpc-status\0005\0", "NOT_FOUND", AS_CLOUD_OP_GONE, false},
        {"grpc-status\0006\0", "ALREADY_EXISTS", AS_CLOUD_OP_BUSY, false},
        {"grpc-status\0007\0", "PERMISSION_DENIED", AS_CLOUD_OP_PERMISSION, false},
        {"grpc-status\0008\0grpc-message\0quota\0", "RESOURCE_EXHAUSTED: quota",
         AS_CLOUD_OP_CAPACITY, false},
        {"grpc-status\0009\0", "FAILED_PRECONDITION", AS_CLOUD_OP_CONFIGURATION, false},
        {"grpc-status\00010\0", "ABORTED", AS_CLOUD_OP_BUSY, false},
        {"grpc-status\00011\0", "OUT_OF_RANGE", AS_CLOUD_OP_CONFIGURATION, false},
        {"grpc-status\00012\0", "UNIMPLEMENTED", AS_CLOUD_OP_CONFIGURATION, false},
        {"grpc-status\00013\0", "INTERNAL", AS_CLOUD_OP_RETRY, true},
        {"grpc-status\00014\0", "UNAVAILABLE", AS_CLOUD_OP_RETRY, true},
        {"grpc-status\00015\0", "DATA_LOSS", AS_CLOUD_OP_RETRY, true},
        {"grpc-status\00016\0", "UNAUTHENTICATED", AS_CLOUD_OP_UNAUTHORIZED, false},
        {"grpc-status\00017\0", "UNKNOWN", AS_CLOUD_OP_RETRY, true},
        {"grpc-status\000-1\0", "UNKNOWN", AS_CLOUD_OP_RETRY, true},
        {"grpc-status\0000x\0", "UNKNOWN", AS_CLOUD_OP_RETRY, true},
        {"grpc-status\000184467440737095516160\0", "UNKNOWN", AS_CLOUD_OP_RETRY, true},
    };
    char message[AS_CLOUD_OP_MESSAGE_SIZE];
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        given.op.to = 1;
        begin(AS_GROUP_GROW);
        answer_with(rows[i].fields, "", 0);
        snprintf(message, sizeof(message), "node_group_increase_size: %s", rows[i].words);
        driver_expect_end(op, rows[i].fault, message);
        cr_assert_eq(op->is_ambiguous, rows[i].is_ambiguous, "%s", rows[i].words);
        end();
        begin(AS_GROUP_READ);
        answer_with(rows[i].fields, "", 0);
        cr_assert_eq(op->fault,
                     rows[i].fault == AS_CLOUD_OP_CAPACITY ? AS_CLOUD_OP_THROTTLED : rows[i].fault);
        cr_assert_not(op->is_ambiguous, "a question changes nothing");
        end();
    }
    begin(AS_GROUP_POLL); /* for the end */
}

Test(externalgrpc, decodes_messages)
{
    static const struct {
        const char *fields, *words;
    } rows[] = {
        {"grpc-status\0003\0grpc-message\000100%\0", "100%"},
        {"grpc-status\0003\0grpc-message\0%4\0", "%4"},
        {"grpc-status\0003\0grpc-message\0%zz%41%c3%BC\0", "%zzA\xc3\xbc"},
        {"grpc-status\0003\0grpc-message\0a%0ab\0", "a b"},
        {"grpc-status\0003\0grpc-message\0a%00b\0", "a%00b"},
        {"grpc-status\0003\0grpc-message\0%ff\0", "?"},
    };
    char message[AS_CLOUD_OP_MESSAGE_SIZE];
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        begin(AS_GROUP_READ);
        answer_with(rows[i].fields, "", 0);
        snprintf(message, sizeof(message), "refresh: INVALID_ARGUMENT: %s", rows[i].words);
        driver_expect_end(op, AS_CLOUD_OP_CONFIGURATION, message);
        end();
    }
    static char fields[2048] = "grpc-status\0003\0grpc-message";
    memset(fields + 27, '%', 1024);
    begin(AS_GROUP_READ);
    answer_with(fields, "", 0);
    cr_assert_eq(strlen(op->message), AS_CLOUD_OP_MESSAGE_SIZE - 1);
}

/* ---- what is no answer of gRPC ---- */

Test(externalgrpc, judges_what_is_not_grpc)
{
    static const struct {
        struct as_http_response answer;
        const char *words;
        enum as_cloud_op_fault fault;
        bool is_ambiguous;
    } rows[] = {
        {{.status = 404},
         "HTTP 404: gRPC is not spoken at this address",
         AS_CLOUD_OP_CONFIGURATION,
         0},
        {{.status = 405},
         "HTTP 405: gRPC is not spoken at this address",
         AS_CLOUD_OP_CONFIGURATION,
         0},
        {{.status = 401}, "HTTP 401", AS_CLOUD_OP_UNAUTHORIZED, false},
        {{.status = 403}, "HTTP 403", AS_CLOUD_OP_PERMISSION, false},
        {{.status = 429}, "HTTP 429", AS_CLOUD_OP_THROTTLED, false},
        {{.status = 503}, "HTTP 503", AS_CLOUD_OP_RETRY, true},
        {{.status = 200, .content_type = "text/html", .fields = "grpc-status\0000\0"},
         "this is not gRPC, but of the type text/html",
         AS_CLOUD_OP_CONFIGURATION,
         true},
        {{.status = 200}, "this is not gRPC, but of the type (none)", AS_CLOUD_OP_CONFIGURATION, 1},
        {{.status = 200, .content_type = "application/grpc+proto", .fields = "a\0b\0"},
         "the answer was cut off: it has no grpc-status",
         AS_CLOUD_OP_RETRY,
         true},
        {{.outcome = AS_HTTP_UNREACHABLE, .error = "nobody"}, "nobody", AS_CLOUD_OP_RETRY, false},
        {{.outcome = AS_HTTP_BROKEN, .error = "reset"}, "reset", AS_CLOUD_OP_RETRY, true},
        {{.outcome = AS_HTTP_TIMEOUT, .error = "late"}, "late", AS_CLOUD_OP_TIMEOUT, true},
        {{.outcome = AS_HTTP_TOO_LARGE, .error = "huge"}, "huge", AS_CLOUD_OP_CONFIGURATION, true},
    };
    char message[AS_CLOUD_OP_MESSAGE_SIZE];
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        begin(AS_GROUP_GROW);
        driver_respond(op, rows[i].answer);
        snprintf(message, sizeof(message), "node_group_increase_size: %s", rows[i].words);
        driver_expect_end(op, rows[i].fault, message);
        cr_assert_eq(op->is_ambiguous, rows[i].is_ambiguous, "%s", rows[i].words);
        end();
    }
    begin(AS_GROUP_POLL);
}

Test(externalgrpc, judges_frames)
{
    static const struct {
        const char *body;
        size_t size;
        const char *words;
    } rows[] = {
        {BYTES("\0\0\0\0"), "the answer is not one message"},
        {BYTES("\0\0\0\0\1"), "the answer is not one message"},
        {BYTES("\0\0\0\0\0\0"), "the answer is not one message"},
        {BYTES("\0\xff\xff\xff\xff\0"), "the answer is not one message"},
        {BYTES("\1\0\0\0\0"), "the answer is compressed, which was not asked for"},
    };
    char message[AS_CLOUD_OP_MESSAGE_SIZE];
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        begin(AS_GROUP_GROW);
        answer(rows[i].body, rows[i].size);
        snprintf(message, sizeof(message), "node_group_increase_size: %s", rows[i].words);
        driver_expect_end(op, AS_CLOUD_OP_CONFIGURATION, message);
        cr_assert(op->is_ambiguous, "the driver has said that it is done");
        end();
    }
    begin(AS_GROUP_GROW);
    answer_with("grpc-status\0000\0", "", 0);
    driver_expect_end(op, AS_CLOUD_OP_CONFIGURATION,
                      "node_group_increase_size: the answer is not one message");
}

/* ---- messages that are not those of the protocol ---- */

#define MALFORMED "the answer is not a message of the protocol"

Test(externalgrpc, judges_messages)
{
    static const struct {
        unsigned answers; /* good ones before it */
        const char *body;
        size_t size;
        const char *message;
    } rows[] = {
        {1, BYTES("\0\0\0\0\1\x0a"), "node_groups: " MALFORMED},
        {1, BYTES("\0\0\0\0\2\x08\x01"), "node_groups: " MALFORMED},
        {1, BYTES("\0\0\0\0\4\x0a\x02\x08\x01"), "node_groups: " MALFORMED},
        {1, BYTES("\0\0\0\0\5\x0a\x03\x12\x01\x61"), "node_groups: " MALFORMED},
        {1, BYTES("\0\0\0\0\5\x0a\x03\x0a\x01\xff"), "node_groups: " MALFORMED},
        {1, BYTES("\0\0\0\0\4\x0a\x02\x0a\x02"), "node_groups: " MALFORMED},
        {2, BYTES("\0\0\0\0\3\x0a\x01\x33"), "node_group_target_size: " MALFORMED},
        {2, BYTES("\0\0\0\0\2\x08\x80"), "node_group_target_size: " MALFORMED},
        {2, BYTES("\0\0\0\0\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
         "node_group_target_size: the target size is negative"},
        {2, BYTES("\0\0\0\0\6\x08\x80\x80\x80\x80\x08"), "node_group_target_size: " MALFORMED},
        {3, BYTES("\0\0\0\0\2\x0a\x00"), "node_group_nodes: there is an instance without an id"},
        {3, BYTES("\0\0\0\0\2\x08\x00"), "node_group_nodes: " MALFORMED},
        {3, BYTES("\0\0\0\0\2\x0a\x01"), "node_group_nodes: " MALFORMED},
        {3, BYTES("\0\0\0\0\x09\x0a\x07\x0a\x01p\x12\x02\x0a\x00"), "node_group_nodes: " MALFORMED},
        {3, BYTES("\0\0\0\0\x09\x0a\x07\x0a\x01p\x12\x02\x10\x00"), "node_group_nodes: " MALFORMED},
        {3, BYTES("\0\0\0\0\x0b\x0a\x09\x0a\x01p\x12\x04\x12\x02\x08\x00"),
         "node_group_nodes: " MALFORMED},
    };
    static const struct {
        const char *body;
        size_t size;
    } good[] = {{BYTES(EMPTY)}, {BYTES(GROUPS)}, {BYTES(SIZE_3)}};
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        begin(AS_GROUP_READ);
        for (unsigned at = 0; at < rows[i].answers; at++)
            answer(good[at].body, good[at].size);
        answer(rows[i].body, rows[i].size);
        driver_expect_end(op, AS_CLOUD_OP_CONFIGURATION, rows[i].message);
        end();
    }
    begin(AS_GROUP_POLL);
}

Test(externalgrpc, too_many_instances_are_told)
{
    const size_t count = AS_GROUP_INSTANCES_MAX + 1;
    AS_CLEANUP(as_buf_deinit) struct as_buf body = AS_BUF_INIT(count * 5 + 5);
    as_buf_append_char(&body, 0);
    for (int shift = 24; shift >= 0; shift -= 8)
        as_buf_append_char(&body, (char)(count * 5 >> shift & 0xff));
    for (size_t i = 0; i < count; i++)
        as_buf_append(&body, "\x0a\x03\x0a\x01p", 5);
    read_up_to_nodes();
    answer(body.data, body.size);
    driver_expect_end(op, AS_CLOUD_OP_CONFIGURATION, "the group has more than 20000 instances");
}

Test(externalgrpc, an_address_says_whether_tls_is_spoken)
{
    static const char *const bad[] = {"driver:8086", "dns:///driver:8086", "", "/"};
    for (size_t i = 0; i < AS_ARRAY_SIZE(bad); i++) {
        begin_at(bad[i], AS_GROUP_READ);
        driver_expect_end(op, AS_CLOUD_OP_CONFIGURATION,
                          "`endpoint` is not https://host:port, or http:// where TLS is not "
                          "spoken");
        end();
    }
    begin_at("http://127.0.0.1:1", AS_GROUP_READ);
    cr_assert_eq(op->want, AS_CLOUD_OP_SEND);
}
