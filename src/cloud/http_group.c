/*
 * The generic HTTP node group: its documents, and the provider. The target's field `url` is the
 * address of a group (the protocol is in docs/targets.md). The nodes of a group with `nodes.select`
 * are known by their labels, and named as the cluster names them.
 *
 * Not here: credentials. The login is that of `http_config`.
 */
#include <alertscaler/cloud/http_group.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <alertscaler/base/str.h>
#include <alertscaler/doc/json_reader.h>
#include <alertscaler/doc/json_writer.h>
#include <alertscaler/kube/target_outcome.h>

#include "provider_answer.h"
#include "providers.h"

/* The documents. Known members are checked strictly, unknown members are ignored: the other side is
 * often a short script. */

int as_http_group_decode(const char *json, size_t size, struct as_http_group *group_out,
                         struct as_error *error)
{
    AS_CLEANUP(tree_deinit) struct tree tree = TREE_INIT(TREE_NO_LIMIT);
    struct as_http_group group = {.size = -1, .min = -1, .max = -1};
    struct as_reader reader;
    int status = tree_load_object(&tree, json, size, error);
    if (status)
        return status;
    as_read_lenient(&reader, tree.root, error);
    as_read_i32(&reader, "size", 0, &group.size);
    as_read_i32(&reader, "min", 0, &group.min);
    as_read_i32(&reader, "max", 0, &group.max);
    as_read_bool(&reader, "in_progress", &group.in_progress);
    as_read_bool(&reader, "removes_by_name", &group.removes_by_name);
    as_read_copy(&reader, "etag", group.etag, sizeof(group.etag));
    as_read_require(&reader, "size");
    if (!as_http_group_etag_is_valid(group.etag))
        as_read_fail(&reader, "etag", "expected printable ASCII");
    status = as_read_result(&reader);
    if (status == 0)
        *group_out = group;
    return status;
}

/* As as_http_group_decode; the entity tag is that of the body, else `etag`, of the answer's header.
 * The error says whose document it is. */
static int http_group_decode_answer(const char *json, size_t size, const char *etag,
                                    struct as_http_group *group_out, struct as_error *error)
{
    struct as_http_group group;
    int status = as_http_group_decode(json, size, &group, error);
    if (status == 0 && as_str_is_empty(group.etag)) {
        if (as_http_group_etag_is_valid(etag)) {
            memcpy(group.etag, etag, strlen(etag) + 1);
        } else {
            as_error_set(error, "ETag: too long, or not printable ASCII");
            status = -EBADMSG;
        }
    }
    if (status)
        as_error_wrap(error, "not a node group's document");
    else
        *group_out = group;
    return status;
}

static void begin_change(struct as_json_writer *json, int32_t size, int32_t observed,
                         struct as_buf *out)
{
    as_json_init(json, out, AS_JSON_ANY_ORDER);
    as_json_begin_object(json);
    as_json_write_member_i64(json, "size", size);
    as_json_write_member_i64(json, "observed", observed);
}

void as_http_group_encode_change(int32_t size, int32_t observed, struct as_buf *out)
{
    struct as_json_writer json;
    begin_change(&json, size, observed, out);
    as_json_end_object(&json);
}

/* With the names of the nodes that leave; without any, only what has not come yet may leave. */
static void http_group_encode_removal(int32_t size, int32_t observed, const char *const *nodes,
                                      size_t count, struct as_buf *out)
{
    struct as_json_writer json;
    begin_change(&json, size, observed, out);
    as_json_write_key(&json, "remove");
    as_json_begin_array(&json);
    for (size_t i = 0; i < count; i++)
        as_json_write_string(&json, nodes[i]);
    as_json_end_array(&json);
    as_json_end_object(&json);
}

void as_http_group_decode_message(const char *json, size_t size, char message_out[AS_MESSAGE_SIZE])
{
    AS_CLEANUP(tree_deinit) struct tree tree = TREE_INIT(TREE_NO_LIMIT);
    const char *text = NULL;
    if (tree_load_object(&tree, json, size, NULL) == 0) {
        text = tree_find_text(tree.root, "message");
        if (!text)
            text = tree_find_text(tree.root, "error");
    }
    as_str_copy_line(text ? text : "", message_out, AS_MESSAGE_SIZE);
}

bool as_http_group_etag_is_valid(const char *etag)
{
    size_t size = strlen(etag);
    return size < AS_VERSION_SIZE && as_str_is_visible(etag, size);
}

/* The provider. A verb is one request; a change has no operation to poll but the group's own
 * `in_progress`. The answer of a group that is no more than a size has the meaning of
 * as_outcome_init, and the limits of one request (target_outcome.h). */

/* ---- answers ---- */

static bool http_is_good(struct as_cloud_op *op)
{
    const struct as_http_response *answer = op->answer;
    struct as_group_op *group = as_group_get(op);
    char message[AS_MESSAGE_SIZE] = "";
    const bool is_good = as_cloud_op_is_good(op), is_ambiguous = op->is_ambiguous;
    if (!is_good)
        as_http_group_decode_message(answer->body, answer->body_size, message);
    if (group->is_size_only) {
        struct as_outcome *outcome = as_arena_alloc(&op->arena, 1, sizeof(*outcome));
        as_outcome_init(outcome, answer, op->request.is_change, op->now);
        as_outcome_set_message(outcome, message);
        group->state = outcome;
    } else if (op->http_status && *message) {
        as_cloud_op_fail(op, op->fault, "%s: HTTP %d: %s", op->request.operation, op->http_status,
                         message);
        op->is_ambiguous = is_ambiguous;
    }
    return is_good;
}

/* The path of a group that is no more than a size has no host and, as everywhere, no query, which
 * may hold a secret. */
static void http_take_outcome(const struct as_group_op *group, struct as_outcome *outcome_out,
                              struct as_provider_call *call_out)
{
    as_fault_take(group, outcome_out, call_out);
    if (!group->is_size_only)
        return;
    if (group->state)
        *outcome_out = *(const struct as_outcome *)group->state;
    const char *authority = strstr(group->op.request.url, "://");
    const char *path = authority ? strchr(authority + 3, '/') : NULL;
    const size_t size = path ? strcspn(path, "?#") : 0;
    snprintf(call_out->path, sizeof(call_out->path), "%.*s", (int)size, path ? path : "");
}

static void http_take_group(struct as_cloud_op *op, const struct as_http_group *group)
{
    struct as_group_view *view = &as_group_get(op)->view;
    view->size = group->size;
    view->min = group->min;
    view->max = group->max;
    view->in_progress = group->in_progress;
    view->node_label = as_group_get(op)->select;
    view->knows_nodes = true;
    if (!group->removes_by_name)
        view->chooses = "the service does not say `removes_by_name`: it may remove another node "
                        "than the chosen one";
    memcpy(view->version, group->etag, sizeof(view->version));
}

/* The entity tag of the body, else of the header. */
static void http_on_group(struct as_cloud_op *op)
{
    const struct as_http_response *answer = op->answer;
    struct as_error error = AS_ERROR_INIT;
    struct as_http_group group;
    if (!http_is_good(op))
        return;
    struct as_outcome *outcome = as_group_get(op)->state;
    if (http_group_decode_answer(answer->body, answer->body_size, answer->etag, &group, &error) ==
        0) {
        http_take_group(op, &group);
        as_cloud_op_end(op);
        return;
    }
    as_cloud_op_fail(op, AS_CLOUD_OP_CONFIGURATION, "%s", error.text);
    if (outcome) {
        outcome->reason = AS_REASON_REJECTED;
        as_outcome_set_message(outcome, error.text);
    }
}

static void http_on_changed(struct as_cloud_op *op)
{
    if (http_is_good(op))
        as_cloud_op_end(op);
}

/* ---- requests ---- */

static void http_encode(struct as_group_op *group)
{
    struct as_buf *body = &group->op.request.body;
    if (group->verb == AS_GROUP_GROW || group->is_size_only)
        as_http_group_encode_change(group->to, group->from, body);
    else
        http_group_encode_removal(group->to, group->from, group->instances,
                                  group->verb == AS_GROUP_REMOVE ? group->instance_count : 0, body);
}

static void http_begin(struct as_group_op *group)
{
    struct as_cloud_op *op = &group->op;
    const bool is_change = group->verb != AS_GROUP_READ;
    const char *url = as_target_ref_get(group->group, "url");
    if (group->verb == AS_GROUP_POLL) {
        group->is_done = true;
        as_cloud_op_end(op);
        return;
    }
    as_cloud_op_ask(op, is_change ? "PUT" : "GET", "%s", url ? url : "");
    as_cloud_op_header(op, "Accept: application/json");
    if (group->is_size_only) {
        op->request.is_plain = true; /* no signature: only a login sends a refused request again */
        op->request.max_response = AS_TARGET_RESPONSE_MAX;
    }
    if (as_str_is_empty(url)) {
        as_cloud_op_fail(op, AS_CLOUD_OP_CONFIGURATION, "the target has no url");
    } else if (!is_change) {
        as_cloud_op_send(op, "get_size", http_on_group);
    } else if (group->is_size_only && !as_http_group_etag_is_valid(group->version)) {
        as_cloud_op_fail(op, AS_CLOUD_OP_CONFIGURATION, "not an entity tag");
    } else {
        as_cloud_op_header(op, "Content-Type: application/json");
        if (!as_str_is_empty(group->version))
            as_cloud_op_header(op, "If-Match: %s", group->version);
        http_encode(group);
        as_cloud_op_send(op, "set_size", http_on_changed);
    }
}

const struct as_group_provider provider_http = {
    .type = "http",
    .is_conditional = true,
    .begin = http_begin,
    .take_outcome = http_take_outcome,
};
