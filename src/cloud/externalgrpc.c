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
#include <alertscaler/cloud/talk.h>

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
    enum as_talk_fault fault;
    bool is_ambiguous; /* a change may have been made in spite of the error */
} statuses[] = {
    {"OK", AS_TALK_OK, false},
    {"CANCELLED", AS_TALK_RETRY, true},
    {"UNKNOWN", AS_TALK_RETRY, true}, /* the status of errors without a status of their own */
    {"INVALID_ARGUMENT", AS_TALK_CONFIGURATION, false},
    {"DEADLINE_EXCEEDED", AS_TALK_TIMEOUT, true},
    {"NOT_FOUND", AS_TALK_GONE, false},
    {"ALREADY_EXISTS", AS_TALK_BUSY, false},
    {"PERMISSION_DENIED", AS_TALK_PERMISSION, false},
    {"RESOURCE_EXHAUSTED", AS_TALK_THROTTLED, false},
    {"FAILED_PRECONDITION", AS_TALK_CONFIGURATION, false},
    {"ABORTED", AS_TALK_BUSY, false},
    {"OUT_OF_RANGE", AS_TALK_CONFIGURATION, false},
    {"UNIMPLEMENTED", AS_TALK_CONFIGURATION, false},
    {"INTERNAL", AS_TALK_RETRY, true},
    {"UNAVAILABLE", AS_TALK_RETRY, true},
    {"DATA_LOSS", AS_TALK_RETRY, true},
    {"UNAUTHENTICATED", AS_TALK_UNAUTHORIZED, false},
};

#define UNKNOWN 2

/* Begins a request that calls `method` ("/package.Service/Method") at `base` (without a slash at
 * its end), with the message. `timeout_us`: sent to the other side; 0: not sent. */
static void grpc_ask(struct as_talk *talk, const char *base, const char *method,
                     const struct as_buf *message, int64_t timeout_us)
{
    struct as_buf *body = &talk->request.body;
    as_talk_ask(talk, "POST", "%s%s", base, method);
    as_talk_header(talk, "Content-Type: application/grpc");
    as_talk_header(talk, "TE: trailers");
    if (timeout_us > 0) {
        const int64_t ms = timeout_us / AS_US_PER_MS;
        as_talk_header(talk, "grpc-timeout: %lldm",
                       (long long)(ms < TIMEOUT_MAX ? ms : TIMEOUT_MAX));
    }
    talk->request.is_http2 = true;
    as_buf_append_char(body, 0); /* not compressed */
    for (int shift = 24; shift >= 0; shift -= 8)
        as_buf_append_char(body, (char)(message->size >> shift & 0xff));
    as_buf_append(body, message->data ? message->data : "", message->size);
    body->failed = body->failed || message->failed;
}

/* ---- answers ---- */

/* Decodes percent-encoded text; invalid sequences stay as they are. */
static void decode_message(const char *text, char message_out[AS_TALK_MESSAGE_SIZE])
{
    size_t size = 0;
    for (; *text && size + 1 < AS_TALK_MESSAGE_SIZE; text++) {
        uint64_t byte = 0;
        const bool is_encoded =
            *text == '%' && as_number_parse_u64_hex(text + 1, strnlen(text + 1, 2), &byte) == 0 &&
            text[2] && byte > 0;
        message_out[size++] = is_encoded ? (char)byte : *text;
        text += is_encoded ? 2 : 0;
    }
    message_out[size] = '\0';
}

static void fail_in_doubt(struct as_talk *talk, enum as_talk_fault fault, const char *why)
{
    as_talk_fail(talk, fault, "%s: %s", talk->request.operation, why);
    talk->is_ambiguous = talk->request.is_change;
}

/* Fails the talk: the message in a good answer is invalid. */
static void grpc_fail_message(struct as_talk *talk, const char *why)
{
    fail_in_doubt(talk, AS_TALK_CONFIGURATION, why);
}

/* Whether it is an answer of gRPC. False after failing the talk. */
static bool is_grpc(struct as_talk *talk)
{
    const struct as_http_response *answer = talk->answer;
    if (answer->outcome == AS_HTTP_ANSWERED && (answer->status == 404 || answer->status == 405)) {
        as_talk_fail(talk, AS_TALK_CONFIGURATION, "%s: HTTP %d: gRPC is not spoken at this address",
                     talk->request.operation, answer->status);
        return false;
    }
    if (!as_talk_is_good(talk))
        return false;
    if (strncasecmp(answer->content_type, "application/grpc", strlen("application/grpc")) == 0)
        return true;
    fail_in_doubt(talk, AS_TALK_CONFIGURATION,
                  as_talk_print(talk, "this is not gRPC, but of the type %s",
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

/* Whether the call succeeded. False after failing the talk. */
static bool grpc_check_status(struct as_talk *talk)
{
    char message[AS_TALK_MESSAGE_SIZE];
    const char *text = as_http_response_find(talk->answer, "grpc-status");
    if (!*text) {
        fail_in_doubt(talk, AS_TALK_RETRY, "the answer was cut off: it has no grpc-status");
        return false;
    }
    const size_t status = parse_status(text);
    if (status == 0)
        return true;
    decode_message(as_http_response_find(talk->answer, "grpc-message"), message);
    as_talk_fail(talk, statuses[status].fault, "%s: %s%s%s", talk->request.operation,
                 statuses[status].name, *message ? ": " : "", message);
    talk->is_ambiguous = talk->request.is_change && statuses[status].is_ambiguous;
    return false;
}

/* The message of a good answer, to be read at once. False after failing the talk with the other
 * side's words; ambiguous if a change may have been made. */
static bool grpc_take_message(struct as_talk *talk, struct as_protobuf_reader *message_out)
{
    if (!is_grpc(talk) || !grpc_check_status(talk))
        return false;
    const struct as_http_response *answer = talk->answer;
    const unsigned char *body = (const unsigned char *)answer->body;
    size_t size = 0;
    for (size_t i = 1; answer->body_size >= PREFIX_SIZE && i < PREFIX_SIZE; i++)
        size = size << 8 | body[i];
    if (answer->body_size < PREFIX_SIZE || size != answer->body_size - PREFIX_SIZE) {
        grpc_fail_message(talk, "the answer is not one message");
        return false;
    }
    if (body[0] != 0) {
        grpc_fail_message(talk, "the answer is compressed, which was not asked for");
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

struct found { /* as in a message; texts are memory of the talk */
    const char *id;
    int32_t min, max;          /* of a node group */
    int32_t state;             /* of an instance */
    const char *code, *reason; /* an instance's error */
};

typedef bool read_field_fn(struct as_talk *talk, const struct as_protobuf_field *field,
                           struct found *found);

static struct state *externalgrpc_get_state(struct as_talk *talk)
{
    return as_group_get(talk)->state;
}

/* ---- messages ---- */

/* Unknown fields belong to another version, and are skipped. */
static bool externalgrpc_read_message(struct as_talk *talk, struct as_protobuf_reader *reader,
                                      read_field_fn *read_field, struct found *found)
{
    struct as_protobuf_field field;
    while (as_protobuf_next(reader, &field)) {
        if (!read_field(talk, &field, found))
            return false;
    }
    return !reader->is_malformed;
}

static bool read_inner(struct as_talk *talk, const struct as_protobuf_field *field,
                       read_field_fn *read_field, struct found *found)
{
    struct as_protobuf_reader inner;
    return as_protobuf_get_message(field, &inner) &&
           externalgrpc_read_message(talk, &inner, read_field, found);
}

static bool read_node_group(struct as_talk *talk, const struct as_protobuf_field *field,
                            struct found *found)
{
    switch (field->number) {
    case 1: return as_protobuf_get_text(field, &talk->arena, &found->id);
    case 2: return as_protobuf_get_int32(field, &found->min);
    case 3: return as_protobuf_get_int32(field, &found->max);
    default: return true;
    }
}

static bool read_error(struct as_talk *talk, const struct as_protobuf_field *field,
                       struct found *found)
{
    switch (field->number) {
    case 1: return as_protobuf_get_text(field, &talk->arena, &found->code);
    case 2: return as_protobuf_get_text(field, &talk->arena, &found->reason);
    default: return true;
    }
}

static bool externalgrpc_read_status(struct as_talk *talk, const struct as_protobuf_field *field,
                                     struct found *found)
{
    switch (field->number) {
    case 1: return as_protobuf_get_int32(field, &found->state);
    case 2: return read_inner(talk, field, read_error, found);
    default: return true;
    }
}

static bool read_instance(struct as_talk *talk, const struct as_protobuf_field *field,
                          struct found *found)
{
    switch (field->number) {
    case 1: return as_protobuf_get_text(field, &talk->arena, &found->id);
    case 2: return read_inner(talk, field, externalgrpc_read_status, found);
    default: return true;
    }
}

/* ---- requests ---- */

static void externalgrpc_ask(struct as_talk *talk, const char *method, const struct as_buf *message)
{
    grpc_ask(talk, externalgrpc_get_state(talk)->base, method, message,
             as_group_get(talk)->account->timeout_us);
}

/* A question whose message is the group's name, or empty. */
static void ask_about(struct as_talk *talk, const char *method, const char *id,
                      const char *operation, as_talk_hear_fn *hear)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf message = AS_BUF_INIT(AS_TALK_BODY_MAX);
    as_protobuf_write_text(&message, 1, id);
    externalgrpc_ask(talk, method, &message);
    as_talk_send_question(talk, operation, hear);
}

/* ---- reading ---- */

/* False after failing the talk. */
static bool externalgrpc_add_instance(struct as_talk *talk, const struct found *found)
{
    static const enum as_instance_state states[] = {
        AS_INSTANCE_RUNNING, /* "unspecified": the driver does not say */
        AS_INSTANCE_RUNNING,
        AS_INSTANCE_PENDING,
        AS_INSTANCE_LEAVING,
    };
    struct as_group_view *view = &as_group_get(talk)->view;
    const bool is_known = found->state >= 0 && found->state < (int32_t)AS_ARRAY_SIZE(states);
    struct as_instance instance = {
        .id = found->id,
        .state = is_known ? states[found->state] : AS_INSTANCE_PENDING,
    };
    if (!*found->id) {
        grpc_fail_message(talk, "there is an instance without an id");
        return false;
    }
    if (*found->code && instance.state != AS_INSTANCE_LEAVING) {
        instance.state = AS_INSTANCE_FAILED;
        view->shortage = as_talk_print(talk, "%s: %s", found->code, found->reason);
    }
    return as_group_add_instance(as_group_get(talk), &instance);
}

static void remove_present(struct as_talk *talk);

static void externalgrpc_on_nodes(struct as_talk *talk)
{
    struct as_protobuf_reader message;
    struct as_protobuf_field field;
    if (!grpc_take_message(talk, &message))
        return;
    while (as_protobuf_next(&message, &field)) {
        struct found found = {.id = "", .code = "", .reason = ""};
        if (field.number != 1)
            continue;
        if (!read_inner(talk, &field, read_instance, &found)) {
            grpc_fail_message(talk, malformed);
            return;
        }
        if (!externalgrpc_add_instance(talk, &found))
            return;
    }
    if (message.is_malformed)
        grpc_fail_message(talk, malformed);
    else if (as_group_get(talk)->verb == AS_GROUP_REMOVE)
        remove_present(talk);
    else
        as_talk_end(talk);
}

static void externalgrpc_on_size(struct as_talk *talk)
{
    struct as_protobuf_reader message;
    struct as_protobuf_field field;
    int32_t size = 0;
    bool is_good = true;
    if (!grpc_take_message(talk, &message))
        return;
    while (is_good && as_protobuf_next(&message, &field))
        is_good = field.number != 1 || as_protobuf_get_int32(&field, &size);
    if (!is_good || message.is_malformed || size < 0) {
        grpc_fail_message(talk, size < 0 ? "the target size is negative" : malformed);
        return;
    }
    as_group_get(talk)->view.size = size;
    ask_about(talk, SERVICE "NodeGroupNodes", externalgrpc_get_state(talk)->id, "node_group_nodes",
              externalgrpc_on_nodes);
}

/* Drivers know a group only by its id. Two drivers may serve one cloud: this is not seen. */
static bool add_backing(struct as_talk *talk)
{
    const struct state *state = externalgrpc_get_state(talk);
    AS_CLEANUP(as_buf_deinit) struct as_buf driver = AS_BUF_INIT(AS_BACKING_NAME_SIZE);
    if (as_url_append_normal(state->base, &driver) && as_buf_check(&driver) == 0)
        return as_group_add_backing(as_group_get(talk), "externalgrpc/%.*s/%s", (int)driver.size,
                                    driver.data, state->id);
    return as_group_add_backing(as_group_get(talk), "externalgrpc/%s/%s", state->base, state->id);
}

static void externalgrpc_on_groups(struct as_talk *talk)
{
    struct as_protobuf_reader message;
    struct as_protobuf_field field;
    const char *id = externalgrpc_get_state(talk)->id;
    bool is_found = false;
    if (!grpc_take_message(talk, &message))
        return;
    while (!is_found && as_protobuf_next(&message, &field)) {
        struct found found = {.id = ""};
        if (field.number != 1)
            continue;
        if (!read_inner(talk, &field, read_node_group, &found)) {
            grpc_fail_message(talk, malformed);
            return;
        }
        is_found = strcmp(found.id, id) == 0;
        as_group_get(talk)->view.min = found.min;
        as_group_get(talk)->view.max = found.max;
    }
    if (message.is_malformed)
        grpc_fail_message(talk, malformed);
    else if (!is_found)
        as_talk_fail(talk, AS_TALK_GONE, "the driver has no node group %s", id);
    else if (add_backing(talk))
        ask_about(talk, SERVICE "NodeGroupTargetSize", id, "node_group_target_size",
                  externalgrpc_on_size);
}

static void externalgrpc_on_refreshed(struct as_talk *talk)
{
    struct as_protobuf_reader message;
    if (grpc_take_message(talk, &message))
        ask_about(talk, SERVICE "NodeGroups", "", "node_groups", externalgrpc_on_groups);
}

/* First tells the driver to refresh: drivers cache their cloud's answers. */
static void externalgrpc_read_group(struct as_talk *talk)
{
    ask_about(talk, SERVICE "Refresh", "", "refresh", externalgrpc_on_refreshed);
}

/* ---- changing ---- */

static void externalgrpc_on_done(struct as_talk *talk)
{
    struct as_protobuf_reader message;
    if (grpc_take_message(talk, &message))
        as_talk_end(talk);
}

/* RESOURCE_EXHAUSTED in place of instances is a shortage of instances. */
static void externalgrpc_on_grown(struct as_talk *talk)
{
    externalgrpc_on_done(talk);
    if (talk->fault == AS_TALK_THROTTLED && talk->http_status == 200)
        talk->fault = AS_TALK_CAPACITY;
}

static void change_size(struct as_talk *talk, const char *method, const char *operation,
                        as_talk_hear_fn *hear)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf message = AS_BUF_INIT(AS_TALK_BODY_MAX);
    as_protobuf_write_int32(&message, 1, as_group_get(talk)->to - as_group_get(talk)->from);
    as_protobuf_write_text(&message, 2, externalgrpc_get_state(talk)->id);
    externalgrpc_ask(talk, method, &message);
    as_talk_send(talk, operation, hear);
}

static void externalgrpc_grow(struct as_talk *talk)
{
    change_size(talk, SERVICE "NodeGroupIncreaseSize", "node_group_increase_size",
                externalgrpc_on_grown);
}

static void externalgrpc_take_back(struct as_talk *talk)
{
    change_size(talk, SERVICE "NodeGroupDecreaseTargetSize", "node_group_decrease_target_size",
                externalgrpc_on_done);
}

/* Drivers identify a node by its providerID or by its name. */
static void remove_instances(struct as_talk *talk)
{
    const struct as_group_talk *group = as_group_get(talk);
    AS_CLEANUP(as_buf_deinit) struct as_buf message = AS_BUF_INIT(AS_TALK_BODY_MAX);
    AS_CLEANUP(as_buf_deinit) struct as_buf node = AS_BUF_INIT(AS_TALK_BODY_MAX);
    for (size_t i = 0; i < group->instance_count; i++) {
        const char *name = group->nodes ? group->nodes[i] : NULL;
        as_buf_clear(&node);
        as_protobuf_write_text(&node, 1, group->instances[i]);
        as_protobuf_write_text(&node, 2, name ? name : "");
        as_protobuf_write_message(&message, 1, &node);
    }
    as_protobuf_write_text(&message, 2, externalgrpc_get_state(talk)->id);
    externalgrpc_ask(talk, SERVICE "NodeGroupDeleteNodes", &message);
    as_talk_send(talk, "node_group_delete_nodes", externalgrpc_on_done);
}

/* The group was read again, because draining took time. */
static void remove_present(struct as_talk *talk)
{
    if (!as_group_keep_present(as_group_get(talk)))
        return;
    if (as_group_get(talk)->instance_count > 0)
        remove_instances(talk);
    else
        as_talk_end(talk);
}

/* There is no operation to poll. */
static void poll_nothing(struct as_talk *talk)
{
    as_group_get(talk)->is_done = true;
    as_talk_end(talk);
}

static void externalgrpc_begin(struct as_group_talk *group)
{
    static void (*const verbs[AS_GROUP_VERB_COUNT])(struct as_talk *) = {
        [AS_GROUP_READ] = externalgrpc_read_group,
        [AS_GROUP_GROW] = externalgrpc_grow,
        [AS_GROUP_REMOVE] = externalgrpc_read_group,
        [AS_GROUP_TAKE_BACK] = externalgrpc_take_back,
        [AS_GROUP_POLL] = poll_nothing,
    };
    struct as_talk *talk = &group->talk;
    struct state *state = as_arena_alloc(&talk->arena, 1, sizeof(*state));
    group->state = state;
    state->base = as_account_get_endpoint(talk, group->account, "endpoint", "");
    if (!as_str_starts_with(state->base, "http://") &&
        !as_str_starts_with(state->base, "https://")) {
        as_talk_fail(talk, AS_TALK_CONFIGURATION,
                     "`endpoint` is not https://host:port, or http:// where TLS is not spoken");
        return;
    }
    state->id = as_target_ref_get(group->group, "name");
    verbs[group->verb](talk);
}

const struct as_group_provider provider_externalgrpc = {
    .type = "externalgrpc",
    .is_relative = true,
    .begin = externalgrpc_begin,
};
