/*
 * Node groups of a driver for Cluster Autoscaler's external providers, over gRPC:
 * https://github.com/kubernetes/autoscaler/tree/master/cluster-autoscaler/cloudprovider/externalgrpc
 *
 * The protocol changes sizes by differences: a call whose answer was lost is never repeated before
 * the size has been read, and every change begins by reading the size. Only the calls that sizes
 * need are used. Credentials come from http_config.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/number.h>
#include <alertscaler/base/protobuf.h>
#include <alertscaler/base/str.h>
#include <alertscaler/base/url.h>
#include <alertscaler/login/cloud_op.h>

#include "providers.h"

/* Unary calls of gRPC as requests of an operation:
 * https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md
 * One message is sent, one comes back, without compression. The result is in grpc-status, in the
 * trailer or, without a message, in the head. Status codes:
 * https://github.com/grpc/grpc/blob/master/doc/statuscodes.md */

#define PREFIX_SIZE  5 /* before a message: whether it is compressed, and its size */
#define TIMEOUT_MAX  INT64_C(99999999) /* in ms; eight digits */
#define STATUS_COUNT AS_ARRAY_SIZE(statuses)

static const struct {
    const char *name;
    enum as_cloud_op_fault fault;
    bool is_ambiguous; /* a change may have been made in spite of the error */
} statuses[] = {
    {"OK", AS_CLOUD_OP_OK, false},
    {"CANCELLED", AS_CLOUD_OP_RETRY, true},
    {"UNKNOWN", AS_CLOUD_OP_RETRY, true}, /* the status of errors without a status of their own */
    {"INVALID_ARGUMENT", AS_CLOUD_OP_CONFIGURATION, false},
    {"DEADLINE_EXCEEDED", AS_CLOUD_OP_TIMEOUT, true},
    {"NOT_FOUND", AS_CLOUD_OP_GONE, false},
    {"ALREADY_EXISTS", AS_CLOUD_OP_BUSY, false},
    {"PERMISSION_DENIED", AS_CLOUD_OP_PERMISSION, false},
    {"RESOURCE_EXHAUSTED", AS_CLOUD_OP_THROTTLED, false},
    {"FAILED_PRECONDITION", AS_CLOUD_OP_CONFIGURATION, false},
    {"ABORTED", AS_CLOUD_OP_BUSY, false},
    {"OUT_OF_RANGE", AS_CLOUD_OP_CONFIGURATION, false},
    {"UNIMPLEMENTED", AS_CLOUD_OP_CONFIGURATION, false},
    {"INTERNAL", AS_CLOUD_OP_RETRY, true},
    {"UNAVAILABLE", AS_CLOUD_OP_RETRY, true},
    {"DATA_LOSS", AS_CLOUD_OP_RETRY, true},
    {"UNAUTHENTICATED", AS_CLOUD_OP_UNAUTHORIZED, false},
};

#define UNKNOWN 2

/* Begins a request that calls `method` ("/package.Service/Method") at `base` (without a slash at
 * its end), with the message. `timeout_us`: sent to the other side; 0: not sent. */
static void grpc_ask(struct as_cloud_op *op, const char *base, const char *method,
                     const struct as_buf *message, int64_t timeout_us)
{
    struct as_buf *body = &op->request.body;
    as_cloud_op_ask(op, "POST", "%s%s", base, method);
    as_cloud_op_header(op, "Content-Type: application/grpc");
    as_cloud_op_header(op, "TE: trailers");
    if (timeout_us > 0) {
        const int64_t ms = timeout_us / AS_US_PER_MS;
        as_cloud_op_header(op, "grpc-timeout: %lldm",
                           (long long)(ms < TIMEOUT_MAX ? ms : TIMEOUT_MAX));
    }
    op->request.is_http2 = true;
    as_buf_append_char(body, 0); /* not compressed */
    for (int shift = 24; shift >= 0; shift -= 8)
        as_buf_append_char(body, (char)(message->size >> shift & 0xff));
    as_buf_append(body, message->data ? message->data : "", message->size);
    body->failed = body->failed || message->failed;
}

/* ---- answers ---- */

/* Decodes percent-encoded text; invalid sequences stay as they are. */
static void decode_message(const char *text, char message_out[AS_CLOUD_OP_MESSAGE_SIZE])
{
    size_t size = 0;
    for (; *text && size + 1 < AS_CLOUD_OP_MESSAGE_SIZE; text++) {
        uint64_t byte = 0;
        const bool is_encoded =
            *text == '%' && as_number_parse_u64_hex(text + 1, strnlen(text + 1, 2), &byte) == 0 &&
            text[2] && byte > 0;
        message_out[size++] = is_encoded ? (char)byte : *text;
        text += is_encoded ? 2 : 0;
    }
    message_out[size] = '\0';
}

static void fail_in_doubt(struct as_cloud_op *op, enum as_cloud_op_fault fault, const char *why)
{
    as_cloud_op_fail(op, fault, "%s: %s", op->request.operation, why);
    op->is_ambiguous = op->request.is_change;
}

/* Fails the op: the message in a good answer is invalid. */
static void grpc_fail_message(struct as_cloud_op *op, const char *why)
{
    fail_in_doubt(op, AS_CLOUD_OP_CONFIGURATION, why);
}

/* Whether it is an answer of gRPC. False after failing the op. */
static bool is_grpc(struct as_cloud_op *op)
{
    const struct as_http_response *answer = op->answer;
    if (answer->outcome == AS_HTTP_ANSWERED && (answer->status == 404 || answer->status == 405)) {
        as_cloud_op_fail(op, AS_CLOUD_OP_CONFIGURATION,
                         "%s: HTTP %d: gRPC is not spoken at this address", op->request.operation,
                         answer->status);
        return false;
    }
    if (!as_cloud_op_is_good(op))
        return false;
    if (strncasecmp(answer->content_type, "application/grpc", strlen("application/grpc")) == 0)
        return true;
    fail_in_doubt(op, AS_CLOUD_OP_CONFIGURATION,
                  as_cloud_op_print(op, "this is not gRPC, but of the type %s",
                                    *answer->content_type ? answer->content_type : "(none)"));
    return false;
}

/* Unknown statuses count as UNKNOWN, as the protocol says. */
static size_t parse_status(const char *text)
{
    char *end;
    const unsigned long status = strtoul(text, &end, 10);
    return *text >= '0' && *text <= '9' && !*end && status < STATUS_COUNT ? (size_t)status
                                                                          : UNKNOWN;
}

/* Whether the call succeeded. False after failing the op. */
static bool grpc_check_status(struct as_cloud_op *op)
{
    char message[AS_CLOUD_OP_MESSAGE_SIZE];
    const char *text = as_http_response_find(op->answer, "grpc-status");
    if (!*text) {
        fail_in_doubt(op, AS_CLOUD_OP_RETRY, "the answer was cut off: it has no grpc-status");
        return false;
    }
    const size_t status = parse_status(text);
    if (status == 0)
        return true;
    decode_message(as_http_response_find(op->answer, "grpc-message"), message);
    as_cloud_op_fail(op, statuses[status].fault, "%s: %s%s%s", op->request.operation,
                     statuses[status].name, *message ? ": " : "", message);
    op->is_ambiguous = op->request.is_change && statuses[status].is_ambiguous;
    return false;
}

/* The message of a good answer, to be read at once. False after failing the op with the other
 * side's words; ambiguous if a change may have been made. */
static bool grpc_take_message(struct as_cloud_op *op, struct as_protobuf_reader *message_out)
{
    if (!is_grpc(op) || !grpc_check_status(op))
        return false;
    const struct as_http_response *answer = op->answer;
    const unsigned char *body = (const unsigned char *)answer->body;
    size_t size = 0;
    for (size_t i = 1; answer->body_size >= PREFIX_SIZE && i < PREFIX_SIZE; i++)
        size = size << 8 | body[i];
    if (answer->body_size < PREFIX_SIZE || size != answer->body_size - PREFIX_SIZE) {
        grpc_fail_message(op, "the answer is not one message");
        return false;
    }
    if (body[0] != 0) {
        grpc_fail_message(op, "the answer is compressed, which was not asked for");
        return false;
    }
    as_protobuf_reader_init(message_out, body + PREFIX_SIZE, size);
    return true;
}

/* The driver */

#define SERVICE "/clusterautoscaler.cloudprovider.v1.externalgrpc.CloudProvider/"

static const char malformed[] = "the answer is not a message of the protocol";

struct state {
    const char *base; /* of the endpoint, without the slash at its end */
    const char *id;   /* of the node group */
};

struct found { /* as in a message; texts are memory of the op */
    const char *id;
    int32_t min, max;          /* of a node group */
    int32_t state;             /* of an instance */
    const char *code, *reason; /* an instance's error */
};

typedef bool read_field_fn(struct as_cloud_op *op, const struct as_protobuf_field *field,
                           struct found *found);

static struct state *externalgrpc_get_state(struct as_cloud_op *op)
{
    return as_group_get(op)->state;
}

/* ---- messages ---- */

/* Unknown fields belong to another version, and are skipped. */
static bool externalgrpc_read_message(struct as_cloud_op *op, struct as_protobuf_reader *reader,
                                      read_field_fn *read_field, struct found *found)
{
    struct as_protobuf_field field;
    while (as_protobuf_next(reader, &field)) {
        if (!read_field(op, &field, found))
            return false;
    }
    return !reader->is_malformed;
}

static bool read_inner(struct as_cloud_op *op, const struct as_protobuf_field *field,
                       read_field_fn *read_field, struct found *found)
{
    struct as_protobuf_reader inner;
    return as_protobuf_get_message(field, &inner) &&
           externalgrpc_read_message(op, &inner, read_field, found);
}

static bool read_node_group(struct as_cloud_op *op, const struct as_protobuf_field *field,
                            struct found *found)
{
    switch (field->number) {
    case 1: return as_protobuf_get_text(field, &op->arena, &found->id);
    case 2: return as_protobuf_get_int32(field, &found->min);
    case 3: return as_protobuf_get_int32(field, &found->max);
    default: return true;
    }
}

static bool read_error(struct as_cloud_op *op, const struct as_protobuf_field *field,
                       struct found *found)
{
    switch (field->number) {
    case 1: return as_protobuf_get_text(field, &op->arena, &found->code);
    case 2: return as_protobuf_get_text(field, &op->arena, &found->reason);
    default: return true;
    }
}

static bool externalgrpc_read_status(struct as_cloud_op *op, const struct as_protobuf_field *field,
                                     struct found *found)
{
    switch (field->number) {
    case 1: return as_protobuf_get_int32(field, &found->state);
    case 2: return read_inner(op, field, read_error, found);
    default: return true;
    }
}

static bool read_instance(struct as_cloud_op *op, const struct as_protobuf_field *field,
                          struct found *found)
{
    switch (field->number) {
    case 1: return as_protobuf_get_text(field, &op->arena, &found->id);
    case 2: return read_inner(op, field, externalgrpc_read_status, found);
    default: return true;
    }
}

/* ---- requests ---- */

static void externalgrpc_ask(struct as_cloud_op *op, const char *method,
                             const struct as_buf *message)
{
    grpc_ask(op, externalgrpc_get_state(op)->base, method, message,
             as_group_get(op)->account->timeout_us);
}

/* A question whose message is the group's name, or empty. */
static void ask_about(struct as_cloud_op *op, const char *method, const char *id,
                      const char *operation, as_cloud_op_response_fn *on_response)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf message = AS_BUF_INIT(AS_CLOUD_OP_BODY_MAX);
    as_protobuf_write_text(&message, 1, id);
    externalgrpc_ask(op, method, &message);
    as_cloud_op_send_question(op, operation, on_response);
}

/* ---- reading ---- */

/* False after failing the op. */
static bool externalgrpc_add_instance(struct as_cloud_op *op, const struct found *found)
{
    static const enum as_instance_state states[] = {
        AS_INSTANCE_RUNNING, /* "unspecified": the driver does not say */
        AS_INSTANCE_RUNNING,
        AS_INSTANCE_PENDING,
        AS_INSTANCE_LEAVING,
    };
    struct as_group_view *view = &as_group_get(op)->view;
    const bool is_known = found->state >= 0 && found->state < (int32_t)AS_ARRAY_SIZE(states);
    struct as_instance instance = {
        .id = found->id,
        .state = is_known ? states[found->state] : AS_INSTANCE_PENDING,
    };
    if (!*found->id) {
        grpc_fail_message(op, "there is an instance without an id");
        return false;
    }
    if (*found->code && instance.state != AS_INSTANCE_LEAVING) {
        instance.state = AS_INSTANCE_FAILED;
        view->shortage = as_cloud_op_print(op, "%s: %s", found->code, found->reason);
    }
    return as_group_add_instance(as_group_get(op), &instance);
}

static void remove_present(struct as_cloud_op *op);

static void externalgrpc_on_nodes(struct as_cloud_op *op)
{
    struct as_protobuf_reader message;
    struct as_protobuf_field field;
    if (!grpc_take_message(op, &message))
        return;
    while (as_protobuf_next(&message, &field)) {
        struct found found = {.id = "", .code = "", .reason = ""};
        if (field.number != 1)
            continue;
        if (!read_inner(op, &field, read_instance, &found)) {
            grpc_fail_message(op, malformed);
            return;
        }
        if (!externalgrpc_add_instance(op, &found))
            return;
    }
    if (message.is_malformed)
        grpc_fail_message(op, malformed);
    else if (as_group_get(op)->verb == AS_GROUP_REMOVE)
        remove_present(op);
    else
        as_cloud_op_end(op);
}

static void externalgrpc_on_size(struct as_cloud_op *op)
{
    struct as_protobuf_reader message;
    struct as_protobuf_field field;
    int32_t size = 0;
    bool is_good = true;
    if (!grpc_take_message(op, &message))
        return;
    while (is_good && as_protobuf_next(&message, &field))
        is_good = field.number != 1 || as_protobuf_get_int32(&field, &size);
    if (!is_good || message.is_malformed || size < 0) {
        grpc_fail_message(op, size < 0 ? "the target size is negative" : malformed);
        return;
    }
    as_group_get(op)->view.size = size;
    ask_about(op, SERVICE "NodeGroupNodes", externalgrpc_get_state(op)->id, "node_group_nodes",
              externalgrpc_on_nodes);
}

/* Drivers know a group only by its id. Two drivers may serve one cloud: this is not seen. */
static bool add_backing(struct as_cloud_op *op)
{
    const struct state *state = externalgrpc_get_state(op);
    AS_CLEANUP(as_buf_deinit) struct as_buf driver = AS_BUF_INIT(AS_BACKING_NAME_SIZE);
    if (as_url_append_normal(state->base, &driver) && as_buf_check(&driver) == 0)
        return as_group_add_backing(as_group_get(op), "externalgrpc/%.*s/%s", (int)driver.size,
                                    driver.data, state->id);
    return as_group_add_backing(as_group_get(op), "externalgrpc/%s/%s", state->base, state->id);
}

static void externalgrpc_on_groups(struct as_cloud_op *op)
{
    struct as_protobuf_reader message;
    struct as_protobuf_field field;
    const char *id = externalgrpc_get_state(op)->id;
    bool is_found = false;
    if (!grpc_take_message(op, &message))
        return;
    while (!is_found && as_protobuf_next(&message, &field)) {
        struct found found = {.id = ""};
        if (field.number != 1)
            continue;
        if (!read_inner(op, &field, read_node_group, &found)) {
            grpc_fail_message(op, malformed);
            return;
        }
        is_found = strcmp(found.id, id) == 0;
        as_group_get(op)->view.min = found.min;
        as_group_get(op)->view.max = found.max;
    }
    if (message.is_malformed)
        grpc_fail_message(op, malformed);
    else if (!is_found)
        as_cloud_op_fail(op, AS_CLOUD_OP_GONE, "the driver has no node group %s", id);
    else if (add_backing(op))
        ask_about(op, SERVICE "NodeGroupTargetSize", id, "node_group_target_size",
                  externalgrpc_on_size);
}

static void externalgrpc_on_refreshed(struct as_cloud_op *op)
{
    struct as_protobuf_reader message;
    if (grpc_take_message(op, &message))
        ask_about(op, SERVICE "NodeGroups", "", "node_groups", externalgrpc_on_groups);
}

/* First tells the driver to refresh: drivers cache their cloud's answers. */
static void externalgrpc_read_group(struct as_cloud_op *op)
{
    ask_about(op, SERVICE "Refresh", "", "refresh", externalgrpc_on_refreshed);
}

/* ---- changing ---- */

static void externalgrpc_on_done(struct as_cloud_op *op)
{
    struct as_protobuf_reader message;
    if (grpc_take_message(op, &message))
        as_cloud_op_end(op);
}

/* RESOURCE_EXHAUSTED in place of instances is a shortage of instances. */
static void externalgrpc_on_grown(struct as_cloud_op *op)
{
    externalgrpc_on_done(op);
    if (op->fault == AS_CLOUD_OP_THROTTLED && op->http_status == 200)
        op->fault = AS_CLOUD_OP_CAPACITY;
}

static void change_size(struct as_cloud_op *op, const char *method, const char *operation,
                        as_cloud_op_response_fn *on_response)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf message = AS_BUF_INIT(AS_CLOUD_OP_BODY_MAX);
    as_protobuf_write_int32(&message, 1, as_group_get(op)->to - as_group_get(op)->from);
    as_protobuf_write_text(&message, 2, externalgrpc_get_state(op)->id);
    externalgrpc_ask(op, method, &message);
    as_cloud_op_send(op, operation, on_response);
}

static void externalgrpc_grow(struct as_cloud_op *op)
{
    change_size(op, SERVICE "NodeGroupIncreaseSize", "node_group_increase_size",
                externalgrpc_on_grown);
}

static void externalgrpc_take_back(struct as_cloud_op *op)
{
    change_size(op, SERVICE "NodeGroupDecreaseTargetSize", "node_group_decrease_target_size",
                externalgrpc_on_done);
}

/* Drivers identify a node by its providerID or by its name. */
static void remove_instances(struct as_cloud_op *op)
{
    const struct as_group_op *group = as_group_get(op);
    AS_CLEANUP(as_buf_deinit) struct as_buf message = AS_BUF_INIT(AS_CLOUD_OP_BODY_MAX);
    AS_CLEANUP(as_buf_deinit) struct as_buf node = AS_BUF_INIT(AS_CLOUD_OP_BODY_MAX);
    for (size_t i = 0; i < group->instance_count; i++) {
        const char *name = group->nodes ? group->nodes[i] : NULL;
        as_buf_clear(&node);
        as_protobuf_write_text(&node, 1, group->instances[i]);
        as_protobuf_write_text(&node, 2, name ? name : "");
        as_protobuf_write_message(&message, 1, &node);
    }
    as_protobuf_write_text(&message, 2, externalgrpc_get_state(op)->id);
    externalgrpc_ask(op, SERVICE "NodeGroupDeleteNodes", &message);
    as_cloud_op_send(op, "node_group_delete_nodes", externalgrpc_on_done);
}

/* The group was read again, because draining took time. */
static void remove_present(struct as_cloud_op *op)
{
    if (!as_group_keep_present(as_group_get(op)))
        return;
    if (as_group_get(op)->instance_count > 0)
        remove_instances(op);
    else
        as_cloud_op_end(op);
}

/* There is no operation to poll. */
static void poll_nothing(struct as_cloud_op *op)
{
    as_group_get(op)->is_done = true;
    as_cloud_op_end(op);
}

static void externalgrpc_begin(struct as_group_op *group)
{
    static void (*const verbs[AS_GROUP_VERB_COUNT])(struct as_cloud_op *) = {
        [AS_GROUP_READ] = externalgrpc_read_group,
        [AS_GROUP_GROW] = externalgrpc_grow,
        [AS_GROUP_REMOVE] = externalgrpc_read_group,
        [AS_GROUP_TAKE_BACK] = externalgrpc_take_back,
        [AS_GROUP_POLL] = poll_nothing,
    };
    struct as_cloud_op *op = &group->op;
    struct state *state = as_arena_alloc(&op->arena, 1, sizeof(*state));
    group->state = state;
    state->base = as_account_get_endpoint(op, group->account, "endpoint", "");
    if (!as_str_starts_with(state->base, "http://") &&
        !as_str_starts_with(state->base, "https://")) {
        as_cloud_op_fail(op, AS_CLOUD_OP_CONFIGURATION,
                         "`endpoint` is not https://host:port, or http:// where TLS is not spoken");
        return;
    }
    state->id = as_target_ref_get(group->group, "name");
    verbs[group->verb](op);
}

const struct as_group_provider provider_externalgrpc = {
    .type = "externalgrpc",
    .is_relative = true,
    .begin = externalgrpc_begin,
};
