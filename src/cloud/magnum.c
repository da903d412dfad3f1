/*
 * OpenStack Magnum: a node group of a Kubernetes cluster:
 * https://docs.openstack.org/api-ref/container-infrastructure-management/
 *
 * Magnum has no conditional changes, and tells only number and addresses of a group's servers. The
 * servers' names come from the nodes, by the label that Magnum gives to each node. A change is
 * accepted before it is checked, and a second change during the first may break both: so every
 * change begins by reading cluster and group.
 */
#include <string.h>

#include <alertscaler/base/str.h>

#include "provider_answer.h"
#include "providers.h"

#define MICROVERSION "1.10" /* the first that can resize to zero; groups came with 1.9 */
#define NODE_LABEL   "magnum.openstack.org/nodegroup"

struct state {
    const char *cluster; /* its URL */
    const char *name;    /* of the group, as in a URL */
};

static struct state *magnum_get_state(struct as_cloud_op *op)
{
    return as_group_get(op)->state;
}

/* ---- errors ---- */

/* Messages of Magnum, and of Heat and Nova behind it; the first match counts. */
static const struct answer_word messages[] = {
    {"no valid host", AS_CLOUD_OP_CAPACITY},
    {"not enough hosts", AS_CLOUD_OP_CAPACITY},
    {"quota", AS_CLOUD_OP_CAPACITY},
    {"limit exceeded", AS_CLOUD_OP_CAPACITY},
    {"no more ip addresses", AS_CLOUD_OP_CAPACITY},
    {"operation in progress", AS_CLOUD_OP_BUSY},
    {"same name", AS_CLOUD_OP_CONFIGURATION}, /* 409: several clusters */
    {NULL, 0},
};

/* {"errors": [{"title", "detail", "max_version"}]}, or Keystone's {"error": {"message"}}. */
static bool magnum_is_good(struct as_cloud_op *op)
{
    if (as_cloud_op_is_good(op))
        return true;
    if (!op->http_status)
        return false;
    const json_t *document = answer_peek_json(op);
    const json_t *error = answer_at(document, "errors", 0);
    const char *detail = answer_text(error, "detail");
    const char *message = *detail ? detail : answer_text(document, "error.message");
    as_cloud_op_take_request_id(op, answer_text(error, "request_id"));
    if (op->http_status == 406)
        as_cloud_op_fail(
            op, AS_CLOUD_OP_CONFIGURATION,
            "this Magnum is too old: it speaks version %s of its API, and " MICROVERSION
            " (of the release Train) is needed",
            *answer_text(error, "max_version") ? answer_text(error, "max_version") : "?");
    else
        as_cloud_op_fail(op,
                         op->http_status == 413
                             ? AS_CLOUD_OP_THROTTLED
                             : answer_judge_message(messages, message, op->fault),
                         "%s: HTTP %d%s%s", op->request.operation, op->http_status,
                         *message ? ": " : "", message);
    return false;
}

/* ---- requests ---- */

static void magnum_ask(struct as_cloud_op *op, const char *method, const char *path,
                       const char *name)
{
    as_cloud_op_ask(op, method, "%s%s%s", magnum_get_state(op)->cluster, path, name);
    as_cloud_op_header(op, "OpenStack-API-Version: container-infra " MICROVERSION);
}

static void ask_group(struct as_cloud_op *op, as_cloud_op_response_fn *on_response)
{
    magnum_ask(op, "GET", "/nodegroups/", magnum_get_state(op)->name);
    as_cloud_op_send(op, "get_nodegroup", on_response);
}

/* ---- the group ---- */

static bool is_in_progress(const char *status)
{
    return as_str_glob("*_IN_PROGRESS", status);
}

/* Whether a label is "True", ignoring case. */
static bool has_autoscaler(const json_t *group)
{
    const json_t *labels = answer_find(group, "labels");
    const json_t *value = json_object_get(labels, "auto_scaling_enabled");
    return json_is_true(value) ||
           (json_is_string(value) && strcasecmp(json_string_value(value), "true") == 0);
}

/* The labels of the group's nodes; `name` is the group's own name. */
static const char *make_label(struct as_cloud_op *op, const char *name)
{
    const char *label = as_group_get(op)->select;
    if (!label)
        label = as_target_ref_get(as_group_get(op)->group, "node_label");
    if (strchr(label, '='))
        return as_cloud_op_print(op, "%s", label);
    return as_cloud_op_print(op, "%s=%s", *label ? label : NODE_LABEL, name);
}

/* Adds one instance per address: they are counted, not named. */
static bool add_addresses(struct as_cloud_op *op, const json_t *group)
{
    for (size_t i = 0; i < answer_count(group, "node_addresses"); i++) {
        const char *address = json_string_value(answer_at(group, "node_addresses", i));
        const struct as_instance instance = {.id = address, .state = AS_INSTANCE_RUNNING};
        if (!as_str_is_empty(address) && !as_group_add_instance(as_group_get(op), &instance))
            return false;
    }
    return true;
}

/* The document of an existing group, with the view filled; NULL after failing the op. */
static const json_t *take_group(struct as_cloud_op *op)
{
    struct as_group_view *view = &as_group_get(op)->view;
    const json_t *group = magnum_is_good(op) ? answer_json(op) : NULL;
    if (!group)
        return NULL;
    const char *status = answer_text(group, "status");
    if (as_str_starts_with(status, "DELETE_")) {
        as_cloud_op_fail(op, AS_CLOUD_OP_GONE, "the node group is being deleted");
        return NULL;
    }
    if (strcmp(answer_text(group, "role"), "master") == 0) {
        as_cloud_op_fail(op, AS_CLOUD_OP_CONFIGURATION,
                         "this is a group of master nodes, which Magnum does not resize");
        return NULL;
    }
    const char *uuid = answer_text(group, "uuid");
    if (!answer_take_size(op, group, "node_count", &view->size))
        return NULL;
    if (!*uuid)
        return answer_misses(op, "uuid");
    if (!as_group_add_backing(as_group_get(op), "magnum/%s", uuid) || !add_addresses(op, group))
        return NULL;
    view->min = answer_size(group, "min_node_count", -1);
    view->max = answer_size(group, "max_node_count", -1);
    if (view->max == 0) /* Magnum's word for "no maximum" */
        view->max = -1;
    view->in_progress = is_in_progress(status);
    view->node_label = make_label(op, answer_text(group, "name"));
    if (has_autoscaler(group))
        view->controller = "the cluster's own autoscaler (label auto_scaling_enabled)";
    if (as_str_glob("*_FAILED", status))
        view->shortage =
            as_cloud_op_print(op, "%s: %s", status, answer_text(group, "status_reason"));
    return group;
}

static void magnum_on_group(struct as_cloud_op *op)
{
    if (take_group(op))
        as_cloud_op_end(op);
}

static void magnum_read_group(struct as_cloud_op *op)
{
    ask_group(op, magnum_on_group);
}

/* ---- changing ---- */

static const char *get_change(const json_t *group)
{
    const char *updated = answer_text(group, "updated_at");
    return *updated ? updated : "-";
}

static void on_resized(struct as_cloud_op *op)
{
    if (magnum_is_good(op))
        as_cloud_op_end(op);
}

/* Whether the group is as at the decision; false after ending the op. */
static bool magnum_is_unchanged(struct as_cloud_op *op)
{
    struct as_group_op *group = as_group_get(op);
    const struct as_group_view *view = &group->view;
    const bool is_given_back = group->verb == AS_GROUP_TAKE_BACK;
    const int32_t present = as_group_count_running(view);
    if (view->in_progress)
        as_cloud_op_fail(op, AS_CLOUD_OP_BUSY, "the node group is being changed");
    else if (view->size == group->to || (is_given_back && view->size < group->to))
        as_cloud_op_end(op); /* perhaps by a request whose answer was lost */
    else if (!is_given_back && view->size != group->from)
        as_cloud_op_fail(op, AS_CLOUD_OP_BUSY,
                         "the node group has changed since it was looked at: its size is %d",
                         view->size);
    else if (is_given_back && present > group->to)
        as_cloud_op_fail(
            op, AS_CLOUD_OP_BUSY,
            "the node group has %d servers by now: Magnum would choose which leave, for a "
            "size of %d",
            present, group->to);
    else
        return true;
    return false;
}

/* node_count is always the new size, even when servers are removed by name. */
static void on_group_to_change(struct as_cloud_op *op)
{
    struct as_group_op *group = as_group_get(op);
    const json_t *document = take_group(op);
    if (!document || !magnum_is_unchanged(op))
        return;
    group->started = as_cloud_op_print(op, "%d %s", group->to, get_change(document));
    json_t *body = json_pack("{s:i, s:s}", "node_count", (int)group->to, "nodegroup",
                             answer_text(document, "uuid"));
    if (group->instance_count > 0) {
        json_t *names = json_array();
        for (size_t i = 0; i < group->instance_count; i++)
            json_array_append_new(names, json_string(group->instances[i]));
        json_object_set_new(body, "nodes_to_remove", names);
    }
    magnum_ask(op, "POST", "/actions/resize", "");
    as_cloud_op_write_json(op, body);
    as_cloud_op_send(op, "resize_cluster", on_resized);
}

/* Magnum's conductor refuses a bad change only after the answer, without telling anybody. */
static void on_cluster(struct as_cloud_op *op)
{
    static const struct answer_word statuses[] = {
        {"DELETE_*", AS_CLOUD_OP_GONE},
        {"*_IN_PROGRESS", AS_CLOUD_OP_BUSY},
        {"*_COMPLETE", AS_CLOUD_OP_OK},
        {"UPDATE_FAILED", AS_CLOUD_OP_OK},
        {NULL, 0},
    };
    const json_t *cluster = magnum_is_good(op) ? answer_json(op) : NULL;
    if (!cluster)
        return;
    const char *status = answer_text(cluster, "status");
    const enum as_cloud_op_fault fault = answer_judge(statuses, status, AS_CLOUD_OP_CONFIGURATION);
    if (fault == AS_CLOUD_OP_OK)
        ask_group(op, on_group_to_change);
    else
        as_cloud_op_fail(op, fault, "the cluster is %s: %s", *status ? status : "without a status",
                         answer_text(cluster, "status_reason"));
}

static void change_group(struct as_cloud_op *op)
{
    magnum_ask(op, "GET", "", "");
    as_cloud_op_send(op, "get_cluster", on_cluster);
}

/* ---- operations ---- */

/* "SIZE TIME": the wanted size, and when the group had last changed before. */
static void on_group_to_poll(struct as_cloud_op *op)
{
    struct as_group_op *group = as_group_get(op);
    const struct as_group_view *view = &group->view;
    const json_t *document = take_group(op);
    const char *before = strchr(group->operation, ' ');
    if (!document)
        return;
    const bool has_failed =
        view->shortage && before && strcmp(before + 1, get_change(document)) != 0;
    const char *reached = as_cloud_op_print(op, "%d ", view->size);
    if (has_failed)
        as_cloud_op_fail(op,
                         answer_judge_message(messages, view->shortage, AS_CLOUD_OP_CONFIGURATION),
                         "%s", view->shortage);
    else
        as_cloud_op_end(op);
    group->is_done =
        has_failed || (!view->in_progress && as_str_starts_with(group->operation, reached));
}

static void poll_group(struct as_cloud_op *op)
{
    ask_group(op, on_group_to_poll);
}

/* ---- which group ---- */

/* A target's key as a part of a URL's path. NULL after failing the op. */
static const char *magnum_take_name(struct as_group_op *group, const char *key)
{
    const char *name = as_target_ref_get(group->group, key);
    if (*name && strcmp(name, ".") != 0 && strcmp(name, "..") != 0)
        return as_cloud_op_escaped(&group->op, name);
    as_cloud_op_fail(&group->op, AS_CLOUD_OP_CONFIGURATION, "`%s` is \"%s\", which is no name", key,
                     name);
    return NULL;
}

static void magnum_begin(struct as_group_op *group)
{
    static void (*const verbs[AS_GROUP_VERB_COUNT])(struct as_cloud_op *) = {
        [AS_GROUP_READ] = magnum_read_group, [AS_GROUP_GROW] = change_group,
        [AS_GROUP_REMOVE] = change_group,    [AS_GROUP_TAKE_BACK] = change_group,
        [AS_GROUP_POLL] = poll_group,
    };
    struct as_cloud_op *op = &group->op;
    struct state *state = as_arena_alloc(&op->arena, 1, sizeof(*state));
    const char *found = group->credentials->endpoint;
    const char *endpoint = as_account_get_endpoint(op, group->account, "endpoint", found);
    const char *cluster = magnum_take_name(group, "cluster");
    const char *name = cluster ? magnum_take_name(group, "name") : NULL;
    if (!name)
        return;
    group->state = state;
    size_t size = endpoint ? strlen(endpoint) : 0;
    while (size > 0 && endpoint[size - 1] == '/')
        size--;
    const bool has_version = size > 3 && strncmp(endpoint + size - 3, "/v1", 3) == 0;
    state->cluster = as_cloud_op_print(op, "%.*s%s/clusters/%s", (int)size,
                                       endpoint ? endpoint : "", has_version ? "" : "/v1", cluster);
    state->name = name;
    verbs[group->verb](op);
}

const struct as_group_provider provider_magnum = {
    .type = "magnum",
    .credentials = openstack_credentials,
    .sign = as_sign_token,
    .begin = magnum_begin,
};
