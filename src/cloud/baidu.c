/*
 * Baidu AI Cloud: a node group of a Kubernetes cluster (CCE, version 2 of its API), and the keys of
 * an account: https://cloud.baidu.com/doc/CCE/s/fkgajuzkj (node groups),
 * https://cloud.baidu.com/doc/CCE/s/bkgajpkps (errors).
 *
 * The API has no conditional changes: the group is read again before each change, and left alone if
 * its size has changed since the decision. A scale-up sets an absolute size. Nodes are removed by
 * name, and the size falls with them. Both start tasks that can be polled.
 */
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>

#include "provider_answer.h"
#include "providers.h"

#define PAGE_SIZE 100
#define PREFIX    "/api/cce/service/v2"

struct state {
    const char *root;  /* of the API */
    const char *group; /* URL of the node group */
    int page;
};

static struct state *baidu_get_state(struct as_cloud_op *op)
{
    return as_group_get(op)->state;
}

/* ---- errors ---- */

/* By the last word of the code ("cce.warning.NoSuchObject"), as a glob; the first match counts. */
static const struct answer_word codes[] = {
    {"InvalidAccessKeyId", AS_CLOUD_OP_UNAUTHORIZED},
    {"SignatureDoesNotMatch", AS_CLOUD_OP_UNAUTHORIZED},
    {"*SessionToken*", AS_CLOUD_OP_UNAUTHORIZED},
    {"*SecurityToken*", AS_CLOUD_OP_UNAUTHORIZED},
    {"AccessDenied", AS_CLOUD_OP_PERMISSION},
    {"RequestExpired", AS_CLOUD_OP_RETRY},
    {"RequestTimeTooSkewed", AS_CLOUD_OP_RETRY},
    {"Http400", AS_CLOUD_OP_RETRY},
    {"TooManyRequests", AS_CLOUD_OP_THROTTLED},
    {"*RateLimit*", AS_CLOUD_OP_THROTTLED},
    {"*Throttl*", AS_CLOUD_OP_THROTTLED},
    {"*Quota*", AS_CLOUD_OP_CAPACITY},
    {"*Insufficient*", AS_CLOUD_OP_CAPACITY},
    {"*NotEnough*", AS_CLOUD_OP_CAPACITY},
    {"*SoldOut*", AS_CLOUD_OP_CAPACITY},
    {"*NoSuchObject", AS_CLOUD_OP_GONE},
    {"*NotFound", AS_CLOUD_OP_GONE},
    {"*Busy*", AS_CLOUD_OP_BUSY},
    {"*Conflict*", AS_CLOUD_OP_BUSY},
    {"*Processing*", AS_CLOUD_OP_BUSY},
    {"*InProgress*", AS_CLOUD_OP_BUSY},
    {NULL, 0},
};

static enum as_cloud_op_fault judge_code(const char *code, enum as_cloud_op_fault fallback)
{
    const char *dot = strrchr(code, '.');
    return answer_judge(codes, dot ? dot + 1 : code, fallback);
}

/* Tasks, and machines that were not delivered, give their reason only in words. */
static bool baidu_is_shortage(const char *message)
{
    static const char *const words[] = {"quota",   "insufficient", "not enough", "sold out",
                                        "soldout", "no stock",     NULL};
    return answer_has_word(message, words);
}

/* {"code": "cce.warning.AccessDenied", "message": "...", "requestId": "..."} */
static bool baidu_is_good(struct as_cloud_op *op)
{
    if (as_cloud_op_is_good(op))
        return true;
    const json_t *error = op->http_status ? answer_peek_json(op) : NULL;
    const char *code = answer_text(error, "code"), *message = answer_text(error, "message");
    as_cloud_op_take_request_id(op, answer_text(error, "requestId"));
    if (*code || *message)
        as_cloud_op_fail(op, judge_code(code, op->fault), "%s: HTTP %d %s: %s",
                         op->request.operation, op->http_status, code, message);
    return false;
}

static const json_t *take_answer(struct as_cloud_op *op)
{
    const json_t *document = baidu_is_good(op) ? answer_json(op) : NULL;
    as_cloud_op_take_request_id(op, answer_text(document, "requestID"));
    return document;
}

/* ---- changes ---- */

static void on_task(struct as_cloud_op *op)
{
    const json_t *document = take_answer(op);
    const char *task = answer_text(document, "taskID");
    if (!document)
        return;
    if (!*task) {
        (void)answer_misses(op, "taskID");
        op->is_ambiguous = true;
        return;
    }
    as_group_get(op)->started = as_cloud_op_print(op, "%s", task);
    as_cloud_op_end(op);
}

static void baidu_grow(struct as_cloud_op *op)
{
    const struct as_group_op *group = as_group_get(op);
    if (group->view.size == group->to) { /* perhaps by a request whose answer was lost */
        as_cloud_op_end(op);
    } else if (group->view.size != group->from) {
        as_cloud_op_fail(op, AS_CLOUD_OP_BUSY,
                         "the node group has changed since it was looked at: its size is %d",
                         group->view.size);
    } else {
        as_cloud_op_ask(op, "PUT", "%s/scaleup?upToReplicas=%d", baidu_get_state(op)->group,
                        (int)group->to);
        as_cloud_op_send(op, "scale_up", on_task);
    }
}

/* Machines are given back; snapshots of their disks stay. Their pods have been evicted before. */
static void baidu_remove_nodes(struct as_cloud_op *op, as_cloud_op_response_fn *on_response)
{
    const struct as_group_op *group = as_group_get(op);
    json_t *names = json_array();
    for (size_t i = 0; i < group->instance_count; i++)
        json_array_append_new(names, json_string(group->instances[i]));
    as_cloud_op_ask(op, "PUT", "%s/scaledown", baidu_get_state(op)->group);
    as_cloud_op_write_json(op,
                           json_pack("{s:o, s:s, s:{s:b, s:b, s:b, s:b}}", "instancesToBeRemoved",
                                     names, "cleanPolicy", "Delete", "deleteOption", "moveOut", 0,
                                     "deleteResource", 1, "deleteCDSSnapshot", 0, "drainNode", 0));
    as_cloud_op_send(op, "scale_down", on_response);
}

static void remove_chosen(struct as_cloud_op *op)
{
    struct as_group_op *group = as_group_get(op);
    if (!as_group_keep_present(group))
        return;
    if (group->instance_count > 0)
        baidu_remove_nodes(op, on_task);
    else
        as_cloud_op_end(op);
}

/* The new size is not below the remaining nodes, so the service removes no node. */
static void set_replicas(struct as_cloud_op *op)
{
    as_cloud_op_ask(op, "PUT", "%s/replicas", baidu_get_state(op)->group);
    as_cloud_op_write_json(op, json_pack("{s:i}", "replicas", (int)as_group_get(op)->to));
    as_cloud_op_send(op, "set_replicas", on_task);
}

static void on_taken_back(struct as_cloud_op *op)
{
    const struct as_group_op *group = as_group_get(op);
    on_task(op);
    if (op->fault == AS_CLOUD_OP_OK &&
        group->view.size - (int32_t)group->instance_count > group->to)
        set_replicas(op);
}

/* Removes pending nodes by name, failed nodes first. */
static void baidu_take_back(struct as_cloud_op *op)
{
    struct as_group_op *group = as_group_get(op);
    const struct as_group_view *view = &group->view;
    const int32_t present = as_group_count_present(view);
    as_group_choose_missing(group, present - group->to, true);
    const int32_t left = present - (int32_t)group->instance_count;
    if (left > group->to)
        as_cloud_op_fail(op, AS_CLOUD_OP_BUSY, "%d nodes are there: what had not come has by now",
                         left);
    else if (group->instance_count > 0)
        baidu_remove_nodes(op, on_taken_back);
    else if (view->size > group->to)
        set_replicas(op);
    else
        as_cloud_op_end(op);
}

/* ---- nodes ---- */

/* The others: pending, provisioning, provisioned. */
static const struct answer_word phases[] = {
    {"running", AS_INSTANCE_RUNNING},
    {"create_failed", AS_INSTANCE_FAILED},
    {"deleting", AS_INSTANCE_LEAVING},
    {"deleted", AS_INSTANCE_LEAVING},
    {"delete_failed", AS_INSTANCE_LEAVING}, /* no longer part of the size */
    {NULL, 0},
};

static bool add_node(struct as_cloud_op *op, const json_t *node)
{
    struct as_group_view *view = &as_group_get(op)->view;
    const char *machine = answer_text(node, "status.machine.instanceID");
    const char *phase = answer_text(node, "status.instancePhase");
    const struct as_instance instance = {
        .id = answer_text(node, "spec.cceInstanceID"),
        .provider_id = *machine ? as_cloud_op_print(op, "cce://%s", machine) : "",
        .zone = answer_text(node, "spec.vpcConfig.availableZone"),
        .state = answer_judge(phases, phase, AS_INSTANCE_PENDING),
        .is_protected = answer_is_true(node, "spec.scaleDownDisabled"),
        .created = answer_time(node, "createdAt"),
    };
    if (!*instance.id)
        return answer_misses(op, "page.list.spec.cceInstanceID");
    /* by phases only: a node may stay "not ready" forever */
    if (instance.state == AS_INSTANCE_PENDING || strcmp(phase, "deleting") == 0)
        view->in_progress = true;
    return as_group_add_instance(as_group_get(op), &instance);
}

static void baidu_go_on(struct as_cloud_op *op)
{
    if (as_group_get(op)->verb == AS_GROUP_REMOVE)
        remove_chosen(op);
    else if (as_group_get(op)->verb == AS_GROUP_TAKE_BACK)
        baidu_take_back(op);
    else
        as_cloud_op_end(op);
}

static void ask_for_nodes(struct as_cloud_op *op);

static void on_nodes(struct as_cloud_op *op)
{
    const json_t *document = take_answer(op);
    const json_t *page = answer_find(document, "page");
    const size_t count = answer_count(page, "list");
    if (!document)
        return;
    if (!page) {
        (void)answer_misses(op, "page");
        return;
    }
    for (size_t i = 0; i < count; i++) {
        if (!add_node(op, answer_at(page, "list", i)))
            return;
    }
    /* a page may be shorter than asked for */
    const int32_t seen = (int32_t)as_group_get(op)->view.instance_count;
    const bool is_last = count == 0 || seen >= answer_size(page, "totalCount", 0);
    const char *first = answer_text(answer_at(page, "list", 0), "spec.cceInstanceID");
    if (!is_last && as_cloud_op_turn_page(op, first))
        ask_for_nodes(op);
    else if (is_last)
        baidu_go_on(op);
}

static void ask_for_nodes(struct as_cloud_op *op)
{
    struct state *state = baidu_get_state(op);
    as_cloud_op_ask(op, "GET", "%s/instances?pageNo=%d&pageSize=%d", state->group, ++state->page,
                    PAGE_SIZE);
    as_cloud_op_send(op, "list_instances", on_nodes);
}

/* ---- the group ---- */

static void baidu_take_status(struct as_cloud_op *op, const json_t *status)
{
    struct as_group_view *view = &as_group_get(op)->view;
    const json_t *failed = answer_at(status, "undeliveredMachines.failedMachines", 0);
    if (answer_is_true(status, "pause.paused")) {
        view->no_increase = as_cloud_op_print(op, "the node group is paused: %s",
                                              answer_text(status, "pause.reason"));
        view->no_removal = view->no_increase;
    }
    if (failed)
        view->shortage = as_cloud_op_print(
            op, "%s",
            json_string_value(failed) ? json_string_value(failed) : "machines were not delivered");
}

static void baidu_on_group(struct as_cloud_op *op)
{
    struct as_group_view *view = &as_group_get(op)->view;
    const json_t *document = take_answer(op);
    const json_t *group = answer_find(document, "instanceGroup");
    if (!document ||
        !as_group_add_backing(as_group_get(op), "baidu/%s/%s",
                              as_target_ref_get(as_group_get(op)->group, "cluster"),
                              as_target_ref_get(as_group_get(op)->group, "name")) ||
        !answer_take_size(op, group, "spec.replicas", &view->size))
        return;
    if (answer_is_true(group, "spec.clusterAutoscalerSpec.enabled"))
        view->controller = "CCE's own autoscaler (clusterAutoscalerSpec)";
    baidu_take_status(op, answer_find(group, "status"));
    if (view->controller && as_group_get(op)->verb != AS_GROUP_READ)
        as_cloud_op_fail(
            op, AS_CLOUD_OP_CONFIGURATION,
            "%s sets the size of this group: two would undo each other's work; switch one "
            "off",
            view->controller);
    else if (as_group_get(op)->verb == AS_GROUP_GROW)
        baidu_grow(op);
    else
        ask_for_nodes(op);
}

static void baidu_ask_for_group(struct as_cloud_op *op)
{
    as_cloud_op_ask(op, "GET", "%s", baidu_get_state(op)->group);
    as_cloud_op_send(op, "get_instance_group", baidu_on_group);
}

/* ---- tasks ---- */

static void on_progress(struct as_cloud_op *op)
{
    struct as_group_op *group = as_group_get(op);
    const json_t *document = take_answer(op);
    if (op->fault == AS_CLOUD_OP_GONE) { /* forgotten: the group itself shows the result */
        group->is_done = true;
        as_cloud_op_end(op);
        return;
    }
    const char *phase = answer_text(document, "task.phase");
    const char *message = answer_text(document, "task.errMessage");
    if (!document)
        return;
    group->is_done = strcmp(phase, "Done") == 0 || strcmp(phase, "Aborted") == 0;
    if (strcmp(phase, "Aborted") == 0)
        as_cloud_op_fail(
            op, baidu_is_shortage(message) ? AS_CLOUD_OP_CAPACITY : AS_CLOUD_OP_CONFIGURATION,
            "task %s was aborted: %s", group->operation, message);
    else if (!*phase)
        (void)answer_misses(op, "task.phase");
    else
        as_cloud_op_end(op);
}

static void ask_for_task(struct as_cloud_op *op)
{
    as_cloud_op_ask(op, "GET", "%s/task/InstanceGroupReplicas/%s", baidu_get_state(op)->root,
                    as_cloud_op_escaped(op, as_group_get(op)->operation));
    as_cloud_op_send(op, "get_task", on_progress);
}

static const char *find_region(struct as_cloud_op *op, const struct as_provider_settings *account)
{
    const char *given = as_account_get(account, "region");
    const char *variable = as_variable_find(op, "BAIDUCLOUD_REGION");
    return given ? given : variable ? variable : "bj";
}

static void baidu_begin(struct as_group_op *group)
{
    static void (*const verbs[AS_GROUP_VERB_COUNT])(struct as_cloud_op *) = {
        [AS_GROUP_READ] = baidu_ask_for_group,   [AS_GROUP_GROW] = baidu_ask_for_group,
        [AS_GROUP_REMOVE] = baidu_ask_for_group, [AS_GROUP_TAKE_BACK] = baidu_ask_for_group,
        [AS_GROUP_POLL] = ask_for_task,
    };
    struct as_cloud_op *op = &group->op;
    struct state *state = as_arena_alloc(&op->arena, 1, sizeof(*state));
    const char *region = find_region(op, group->account);
    const char *usual = as_cloud_op_print(op, "https://cce.%s.baidubce.com", region);
    group->state = state;
    if (!as_region_check(op, region))
        return;
    state->root = as_cloud_op_print(op, "%s" PREFIX,
                                    as_account_get_endpoint(op, group->account, "endpoint", usual));
    state->group =
        as_cloud_op_print(op, "%s/cluster/%s/instancegroup/%s", state->root,
                          as_cloud_op_escaped(op, as_target_ref_get(group->group, "cluster")),
                          as_cloud_op_escaped(op, as_target_ref_get(group->group, "name")));
    verbs[group->verb](op);
}

/* ---- credentials ---- */

/* In the format of Baidu's token service: a job that fetches session tokens stores its answer. */
static void on_file(struct as_cloud_op *op)
{
    const struct as_provider_credentials *found = &as_credentials_get(op)->found;
    const char *text = as_credentials_take_file(op);
    if (!text)
        return;
    json_t *document = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    as_credentials_take_keys(as_credentials_get(op), answer_text(document, "accessKeyId"),
                             answer_text(document, "secretAccessKey"),
                             answer_text(document, "sessionToken"),
                             answer_time(document, "expiration"));
    if (found->key_id && found->secret)
        as_cloud_op_end(op);
    else
        as_cloud_op_fail(op, AS_CLOUD_OP_CONFIGURATION,
                         "%s: not a JSON document with `accessKeyId` and `secretAccessKey`",
                         op->path);
    answer_wipe(document);
    json_decref(document);
}

static void begin_file(struct as_credentials_op *op)
{
    const char *path = as_account_get(op->account, "credentials_file");
    if (path)
        as_cloud_op_read(&op->op, path, on_file);
    else
        as_credentials_not_here(op);
}

static void baidu_begin_environment(struct as_credentials_op *op)
{
    const char *key = as_variable_find(&op->op, "BAIDUCLOUD_ACCESS_KEY");
    const char *secret = as_variable_find(&op->op, "BAIDUCLOUD_SECRET_KEY");
    const char *token = as_variable_find(&op->op, "BAIDUCLOUD_SESSION_TOKEN");
    as_credentials_take_keys(op, key, secret, token, (as_maybe_time){.set = false});
    if (!key && !secret)
        as_credentials_not_here(op);
    else if (key && secret)
        as_cloud_op_end(&op->op);
    else
        as_cloud_op_fail(&op->op, AS_CLOUD_OP_CONFIGURATION, "%s is not set",
                         key ? "BAIDUCLOUD_SECRET_KEY" : "BAIDUCLOUD_ACCESS_KEY");
}

const struct as_group_provider provider_baidu = {
    .type = "baidu",
    .credentials = (const struct as_credentials_source[]){{"credentials_file", begin_file},
                                                          {"environment", baidu_begin_environment},
                                                          {0}},
    .sign = as_sign_bce,
    .begin = baidu_begin,
};
