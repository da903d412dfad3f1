/*
 * The generic HTTP node group: its documents, a target adapter without nodes, and a provider for
 * groups with nodes.
 *
 * Not here: credentials. The login is that of `http_config`.
 */
#include <alertscaler/cloud/http_group.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bsd/sys/queue.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>
#include <alertscaler/doc/json_reader.h>
#include <alertscaler/doc/json_writer.h>
#include <alertscaler/kube/target_outcome.h>
#include <alertscaler/monitoring/http_auth.h>

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

/* The target adapter. One call is one request. The version of an observation is the group's entity
 * tag, which is sent back unchanged in If-Match. */

struct http_group {
    struct as_target_port port;
    const struct as_access_env *env;
    struct as_http_auth *auth;
    int64_t timeout_us;
    LIST_HEAD(, call) calls;
};

/* One observe (scaled is NULL) or scale. Waits for its transfer, or for the turn of the loop that
 * reports that it could not start. */
struct call {
    LIST_ENTRY(call) entry;
    struct http_group *owner;
    uint64_t call_id;
    as_target_observed_fn *observed;
    as_target_scaled_fn *scaled;
    void *context;
    struct as_http_call *transfer;
    struct as_timer *timer;
    struct as_outcome outcome;
    struct as_http_group group; /* of a successful observation */
    unsigned attempts;
    char path[512];
};

static void http_group_free_call(struct call *call)
{
    const struct as_access_env *env = call->owner->env;
    if (call->transfer)
        env->http->cancel(env->http, call->transfer);
    if (call->timer)
        env->loop->cancel_timer(env->loop, call->timer);
    LIST_REMOVE(call, entry);
    free(call);
}

static void http_group_report_observed(const struct call *call)
{
    struct as_observation observation = {
        .replicas = call->group.size,
        .status_replicas = call->group.size,
        .min = call->group.min,
        .max = call->group.max,
        .in_progress = call->group.in_progress,
    };
    as_outcome_fill_observation(&call->outcome, &observation);
    memcpy(observation.version, call->group.etag, sizeof(observation.version));
    call->observed(call->context, call->call_id, &observation);
}

static void http_group_report_scaled(const struct call *call)
{
    struct as_scale_result result = {.attempts = call->attempts, .method = "PUT"};
    as_outcome_fill_result(&call->outcome, &result);
    memcpy(result.path, call->path, sizeof(result.path));
    call->scaled(call->context, call->call_id, &result);
}

static void http_group_finish(void *context)
{
    struct call *call = context;
    call->timer = NULL;
    if (call->scaled)
        http_group_report_scaled(call);
    else
        http_group_report_observed(call);
    http_group_free_call(call);
}

static void fail_later(struct call *call, enum as_reason reason, const char *message)
{
    const struct as_access_env *env = call->owner->env;
    as_outcome_init_local(&call->outcome, reason, message);
    call->timer = env->loop->start_timer(env->loop, 0, http_group_finish, call);
}

static void http_group_take_group(struct call *call, const struct as_http_response *response)
{
    struct as_error error = AS_ERROR_INIT;
    if (http_group_decode_answer(response->body, response->body_size, response->etag, &call->group,
                                 &error) == 0)
        return;
    call->outcome.reason = AS_REASON_REJECTED;
    as_outcome_set_message(&call->outcome, error.text);
}

static void http_group_answered(void *context, const struct as_http_response *response)
{
    struct call *call = context;
    const struct as_clock *clock = call->owner->env->clock;
    call->transfer = NULL;
    as_outcome_init(&call->outcome, response, call->scaled != NULL, clock->get_wall(clock));
    if (call->outcome.reason != AS_REASON_APPLIED) {
        char message[AS_MESSAGE_SIZE];
        as_http_group_decode_message(response->body, response->body_size, message);
        as_outcome_set_message(&call->outcome, message);
    } else if (!call->scaled) {
        http_group_take_group(call, response);
    }
    http_group_finish(call);
}

/* For the action log: the path, without the query, which may hold a secret. */
static void keep_path(struct call *call, const char *url)
{
    const char *authority = strstr(url, "://");
    const char *path = authority ? strchr(authority + 3, '/') : NULL;
    size_t size = path ? strcspn(path, "?#") : 0;
    snprintf(call->path, sizeof(call->path), "%.*s", (int)size, path ? path : "");
}

static void http_group_start(struct call *call, const struct as_target_ref *ref,
                             const char *credential, const struct as_scale_request *wanted)
{
    const struct as_access_env *env = call->owner->env;
    const char *url = as_target_ref_get(ref, "url");
    const char *headers[4] = {"Accept: application/json"};
    char if_match[AS_VERSION_SIZE + 16];
    AS_CLEANUP(as_buf_deinit) struct as_buf body = AS_BUF_INIT(AS_TARGET_BODY_MAX);
    if (wanted) {
        as_http_group_encode_change(wanted->to, wanted->from, &body);
        headers[1] = "Content-Type: application/json";
        snprintf(if_match, sizeof(if_match), "If-Match: %s", wanted->version);
        headers[2] = as_str_is_empty(wanted->version) ? NULL : if_match;
    }
    struct as_http_request request = {
        .method = wanted ? "PUT" : "GET",
        .url = url,
        .body = body.data,
        .body_size = body.size,
        .timeout_us = call->owner->timeout_us,
        .max_response = AS_TARGET_RESPONSE_MAX,
        .flow = {ref->id, credential},
        .client_name = "http",
        .operation = wanted ? "set_size" : "get_size",
    };
    struct as_error error = AS_ERROR_INIT;
    keep_path(call, url);
    if (as_str_is_empty(url) || (wanted && !as_http_group_etag_is_valid(wanted->version))) {
        fail_later(call, AS_REASON_REJECTED,
                   as_str_is_empty(url) ? "the target has no url" : "not an entity tag");
    } else if (as_http_auth_apply(call->owner->auth, headers, &request, &error) < 0) {
        fail_later(call, AS_REASON_UNREACHABLE, error.text);
    } else {
        call->attempts = 1;
        call->transfer = env->http->start(env->http, &request, http_group_answered, call);
    }
}

static struct call *http_group_new_call(struct as_target_port *port, uint64_t call_id,
                                        void *context)
{
    struct http_group *group = (struct http_group *)port;
    struct call *call = as_xcalloc(1, sizeof(*call));
    call->owner = group;
    call->call_id = call_id;
    call->context = context;
    call->group.min = call->group.max = -1;
    LIST_INSERT_HEAD(&group->calls, call, entry);
    return call;
}

static void http_group_observe(struct as_target_port *self, uint64_t call_id,
                               const struct as_target_ref *ref,
                               const struct as_observe_request *request,
                               as_target_observed_fn *done, void *context)
{
    struct call *call = http_group_new_call(self, call_id, context);
    call->observed = done;
    http_group_start(call, ref, request->credential, NULL);
}

static void http_group_scale(struct as_target_port *self, uint64_t call_id,
                             const struct as_target_ref *ref,
                             const struct as_scale_request *request, as_target_scaled_fn *done,
                             void *context)
{
    struct call *call = http_group_new_call(self, call_id, context);
    call->scaled = done;
    http_group_start(call, ref, request->credential, request);
}

static bool http_group_is_idle(const struct as_target_port *self)
{
    return LIST_EMPTY(&((const struct http_group *)self)->calls);
}

static void http_group_close_port(struct as_target_port *self)
{
    struct http_group *group = (struct http_group *)self;
    struct call *call;
    while ((call = LIST_FIRST(&group->calls)) != NULL)
        http_group_free_call(call);
    as_http_auth_free(group->auth);
    free(group);
}

struct as_target_port *as_http_group_new(const struct as_provider_settings *settings,
                                         const struct as_access_env *env)
{
    struct http_group *group = as_xcalloc(1, sizeof(*group));
    group->port = (struct as_target_port){http_group_observe, http_group_scale, http_group_is_idle,
                                          http_group_close_port, NULL};
    group->env = env;
    group->auth = as_http_auth_new(&settings->http, env->clock);
    group->timeout_us = settings->timeout_us;
    LIST_INIT(&group->calls);
    return &group->port;
}

/* The provider of groups with nodes. A verb is one request; a change has no operation to follow but
 * the group's own `in_progress`. */

/* ---- answers ---- */

static bool http_nodes_is_good(struct as_cloud_op *op)
{
    char message[AS_MESSAGE_SIZE];
    if (as_cloud_op_is_good(op))
        return true;
    const bool is_ambiguous = op->is_ambiguous;
    if (op->http_status) {
        as_http_group_decode_message(op->answer->body, op->answer->body_size, message);
        if (*message)
            as_cloud_op_fail(op, op->fault, "%s: HTTP %d: %s", op->request.operation,
                             op->http_status, message);
        op->is_ambiguous = is_ambiguous;
    }
    return false;
}

static void http_nodes_take_group(struct as_cloud_op *op, const struct as_http_group *group)
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
static void http_nodes_on_group(struct as_cloud_op *op)
{
    const struct as_http_response *answer = op->answer;
    struct as_error error = AS_ERROR_INIT;
    struct as_http_group group;
    if (!http_nodes_is_good(op))
        return;
    const int status =
        http_group_decode_answer(answer->body, answer->body_size, answer->etag, &group, &error);
    if (status) {
        as_cloud_op_fail(op, AS_CLOUD_OP_CONFIGURATION, "%s", error.text);
        return;
    }
    http_nodes_take_group(op, &group);
    as_cloud_op_end(op);
}

static void http_nodes_on_changed(struct as_cloud_op *op)
{
    if (http_nodes_is_good(op))
        as_cloud_op_end(op);
}

/* ---- requests ---- */

static void http_nodes_read_group(struct as_cloud_op *op, const char *url)
{
    as_cloud_op_ask(op, "GET", "%s", url);
    as_cloud_op_header(op, "Accept: application/json");
    as_cloud_op_send(op, "get_size", http_nodes_on_group);
}

static void http_nodes_change_group(struct as_cloud_op *op, const char *url)
{
    const struct as_group_op *group = as_group_get(op);
    as_cloud_op_ask(op, "PUT", "%s", url);
    as_cloud_op_header(op, "Accept: application/json");
    as_cloud_op_header(op, "Content-Type: application/json");
    if (!as_str_is_empty(group->version))
        as_cloud_op_header(op, "If-Match: %s", group->version);
    if (group->verb == AS_GROUP_GROW)
        as_http_group_encode_change(group->to, group->from, &op->request.body);
    else
        http_group_encode_removal(group->to, group->from, group->instances,
                                  group->verb == AS_GROUP_REMOVE ? group->instance_count : 0,
                                  &op->request.body);
    as_cloud_op_send(op, "set_size", http_nodes_on_changed);
}

static void http_nodes_begin(struct as_group_op *group)
{
    const char *url = as_target_ref_get(group->group, "url");
    if (group->verb == AS_GROUP_POLL) {
        group->is_done = true;
        as_cloud_op_end(&group->op);
    } else if (as_str_is_empty(url)) {
        as_cloud_op_fail(&group->op, AS_CLOUD_OP_CONFIGURATION, "the target has no url");
    } else if (group->verb == AS_GROUP_READ) {
        http_nodes_read_group(&group->op, url);
    } else {
        http_nodes_change_group(&group->op, url);
    }
}

const struct as_group_provider as_http_nodes = {.type = "http", .begin = http_nodes_begin};
