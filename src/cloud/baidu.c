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

static struct state *baidu_get_state(struct as_talk *talk)
{
    return as_group_get(talk)->state;
}

/* ---- errors ---- */

/* By the last word of the code ("cce.warning.NoSuchObject"), as a glob; the first match counts. */
static const struct answer_word codes[] = {
    {"InvalidAccessKeyId", AS_TALK_UNAUTHORIZED},
    {"SignatureDoesNotMatch", AS_TALK_UNAUTHORIZED},
    {"*SessionToken*", AS_TALK_UNAUTHORIZED},
    {"*SecurityToken*", AS_TALK_UNAUTHORIZED},
    {"AccessDenied", AS_TALK_PERMISSION},
    {"RequestExpired", AS_TALK_RETRY},
    {"RequestTimeTooSkewed", AS_TALK_RETRY},
    {"Http400", AS_TALK_RETRY},
    {"TooManyRequests", AS_TALK_THROTTLED},
    {"*RateLimit*", AS_TALK_THROTTLED},
    {"*Throttl*", AS_TALK_THROTTLED},
    {"*Quota*", AS_TALK_CAPACITY},
    {"*Insufficient*", AS_TALK_CAPACITY},
    {"*NotEnough*", AS_TALK_CAPACITY},
    {"*SoldOut*", AS_TALK_CAPACITY},
    {"*NoSuchObject", AS_TALK_GONE},
    {"*NotFound", AS_TALK_GONE},
    {"*Busy*", AS_TALK_BUSY},
    {"*Conflict*", AS_TALK_BUSY},
    {"*Processing*", AS_TALK_BUSY},
    {"*InProgress*", AS_TALK_BUSY},
    {NULL, 0},
};

static enum as_talk_fault judge_code(const char *code, enum as_talk_fault fallback)
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
static bool baidu_is_good(struct as_talk *talk)
{
    if (as_talk_is_good(talk))
        return true;
    const json_t *error = talk->http_status ? answer_peek_json(talk) : NULL;
    const char *code = answer_text(error, "code"), *message = answer_text(error, "message");
    as_talk_take_request_id(talk, answer_text(error, "requestId"));
    if (*code || *message)
        as_talk_fail(talk, judge_code(code, talk->fault), "%s: HTTP %d %s: %s",
                     talk->request.operation, talk->http_status, code, message);
    return false;
}

static const json_t *take_answer(struct as_talk *talk)
{
    const json_t *document = baidu_is_good(talk) ? answer_json(talk) : NULL;
    as_talk_take_request_id(talk, answer_text(document, "requestID"));
    return document;
}

/* ---- changes ---- */

static void hear_task(struct as_talk *talk)
{
    const json_t *document = take_answer(talk);
    const char *task = answer_text(document, "taskID");
    if (!document)
        return;
    if (!*task) {
        (void)answer_misses(talk, "taskID");
        talk->is_ambiguous = true;
        return;
    }
    as_group_get(talk)->started = as_talk_print(talk, "%s", task);
    as_talk_end(talk);
}

static void baidu_grow(struct as_talk *talk)
{
    const struct as_group_talk *group = as_group_get(talk);
    if (group->view.size == group->to) { /* perhaps by a request whose answer was lost */
        as_talk_end(talk);
    } else if (group->view.size != group->from) {
        as_talk_fail(talk, AS_TALK_BUSY,
                     "the node group has changed since it was looked at: its size is %d",
                     group->view.size);
    } else {
        as_talk_ask(talk, "PUT", "%s/scaleup?upToReplicas=%d", baidu_get_state(talk)->group,
                    (int)group->to);
        as_talk_send(talk, "scale_up", hear_task);
    }
}

/* Machines are given back; snapshots of their disks stay. Their pods have been evicted before. */
static void baidu_remove_nodes(struct as_talk *talk, as_talk_hear_fn *hear)
{
    const struct as_group_talk *group = as_group_get(talk);
    json_t *names = json_array();
    for (size_t i = 0; i < group->instance_count; i++)
        json_array_append_new(names, json_string(group->instances[i]));
    as_talk_ask(talk, "PUT", "%s/scaledown", baidu_get_state(talk)->group);
    as_talk_write_json(talk,
                       json_pack("{s:o, s:s, s:{s:b, s:b, s:b, s:b}}", "instancesToBeRemoved",
                                 names, "cleanPolicy", "Delete", "deleteOption", "moveOut", 0,
                                 "deleteResource", 1, "deleteCDSSnapshot", 0, "drainNode", 0));
    as_talk_send(talk, "scale_down", hear);
}

static void remove_chosen(struct as_talk *talk)
{
    struct as_group_talk *group = as_group_get(talk);
    if (!as_group_keep_present(group))
        return;
    if (group->instance_count > 0)
        baidu_remove_nodes(talk, hear_task);
    else
        as_talk_end(talk);
}

/* The new size is not below the remaining nodes, so the service removes no node. */
static void set_replicas(struct as_talk *talk)
{
    as_talk_ask(talk, "PUT", "%s/replicas", baidu_get_state(talk)->group);
    as_talk_write_json(talk, json_pack("{s:i}", "replicas", (int)as_group_get(talk)->to));
    as_talk_send(talk, "set_replicas", hear_task);
}

static void hear_taken_back(struct as_talk *talk)
{
    const struct as_group_talk *group = as_group_get(talk);
    hear_task(talk);
    if (talk->fault == AS_TALK_OK && group->view.size - (int32_t)group->instance_count > group->to)
        set_replicas(talk);
}

/* Removes pending nodes by name, failed nodes first. */
static void baidu_take_back(struct as_talk *talk)
{
    struct as_group_talk *group = as_group_get(talk);
    const struct as_group_view *view = &group->view;
    const int32_t present = as_group_count_present(view);
    as_group_choose_missing(group, present - group->to, true);
    const int32_t left = present - (int32_t)group->instance_count;
    if (left > group->to)
        as_talk_fail(talk, AS_TALK_BUSY, "%d nodes are there: what had not come has by now", left);
    else if (group->instance_count > 0)
        baidu_remove_nodes(talk, hear_taken_back);
    else if (view->size > group->to)
        set_replicas(talk);
    else
        as_talk_end(talk);
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

static bool add_node(struct as_talk *talk, const json_t *node)
{
    struct as_group_view *view = &as_group_get(talk)->view;
    const char *machine = answer_text(node, "status.machine.instanceID");
    const char *phase = answer_text(node, "status.instancePhase");
    const struct as_instance instance = {
        .id = answer_text(node, "spec.cceInstanceID"),
        .provider_id = *machine ? as_talk_print(talk, "cce://%s", machine) : "",
        .zone = answer_text(node, "spec.vpcConfig.availableZone"),
        .state = answer_judge(phases, phase, AS_INSTANCE_PENDING),
        .is_protected = answer_is_true(node, "spec.scaleDownDisabled"),
        .created = answer_time(node, "createdAt"),
    };
    if (!*instance.id)
        return answer_misses(talk, "page.list.spec.cceInstanceID");
    /* by phases only: a node may stay "not ready" forever */
    if (instance.state == AS_INSTANCE_PENDING || strcmp(phase, "deleting") == 0)
        view->in_progress = true;
    return as_group_add_instance(as_group_get(talk), &instance);
}

static void baidu_go_on(struct as_talk *talk)
{
    if (as_group_get(talk)->verb == AS_GROUP_REMOVE)
        remove_chosen(talk);
    else if (as_group_get(talk)->verb == AS_GROUP_TAKE_BACK)
        baidu_take_back(talk);
    else
        as_talk_end(talk);
}

static void ask_for_nodes(struct as_talk *talk);

static void hear_nodes(struct as_talk *talk)
{
    const json_t *document = take_answer(talk);
    const json_t *page = answer_find(document, "page");
    const size_t count = answer_count(page, "list");
    if (!document)
        return;
    if (!page) {
        (void)answer_misses(talk, "page");
        return;
    }
    for (size_t i = 0; i < count; i++) {
        if (!add_node(talk, answer_at(page, "list", i)))
            return;
    }
    /* a page may be shorter than asked for */
    const int32_t seen = (int32_t)as_group_get(talk)->view.instance_count;
    const bool is_last = count == 0 || seen >= answer_size(page, "totalCount", 0);
    const char *first = answer_text(answer_at(page, "list", 0), "spec.cceInstanceID");
    if (!is_last && as_talk_turn_page(talk, first))
        ask_for_nodes(talk);
    else if (is_last)
        baidu_go_on(talk);
}

static void ask_for_nodes(struct as_talk *talk)
{
    struct state *state = baidu_get_state(talk);
    as_talk_ask(talk, "GET", "%s/instances?pageNo=%d&pageSize=%d", state->group, ++state->page,
                PAGE_SIZE);
    as_talk_send(talk, "list_instances", hear_nodes);
}

/* ---- the group ---- */

static void baidu_take_status(struct as_talk *talk, const json_t *status)
{
    struct as_group_view *view = &as_group_get(talk)->view;
    const json_t *failed = answer_at(status, "undeliveredMachines.failedMachines", 0);
    if (answer_is_true(status, "pause.paused")) {
        view->no_growth = as_talk_print(talk, "the node group is paused: %s",
                                        answer_text(status, "pause.reason"));
        view->no_removal = view->no_growth;
    }
    if (failed)
        view->shortage = as_talk_print(talk, "%s",
                                       json_string_value(failed) ? json_string_value(failed)
                                                                 : "machines were not delivered");
}

static void baidu_hear_group(struct as_talk *talk)
{
    struct as_group_view *view = &as_group_get(talk)->view;
    const json_t *document = take_answer(talk);
    const json_t *group = answer_find(document, "instanceGroup");
    if (!document ||
        !as_group_add_backing(as_group_get(talk), "baidu/%s/%s",
                              as_target_ref_get(as_group_get(talk)->group, "cluster"),
                              as_target_ref_get(as_group_get(talk)->group, "name")) ||
        !answer_take_size(talk, group, "spec.replicas", &view->size))
        return;
    if (answer_is_true(group, "spec.clusterAutoscalerSpec.enabled"))
        view->controller = "CCE's own autoscaler (clusterAutoscalerSpec)";
    baidu_take_status(talk, answer_find(group, "status"));
    if (view->controller && as_group_get(talk)->verb != AS_GROUP_READ)
        as_talk_fail(talk, AS_TALK_CONFIGURATION,
                     "%s sets the size of this group: two would undo each other's work; switch one "
                     "off",
                     view->controller);
    else if (as_group_get(talk)->verb == AS_GROUP_GROW)
        baidu_grow(talk);
    else
        ask_for_nodes(talk);
}

static void baidu_ask_for_group(struct as_talk *talk)
{
    as_talk_ask(talk, "GET", "%s", baidu_get_state(talk)->group);
    as_talk_send(talk, "get_instance_group", baidu_hear_group);
}

/* ---- tasks ---- */

static void hear_progress(struct as_talk *talk)
{
    struct as_group_talk *group = as_group_get(talk);
    const json_t *document = take_answer(talk);
    if (talk->fault == AS_TALK_GONE) { /* forgotten: the group itself shows the result */
        group->is_done = true;
        as_talk_end(talk);
        return;
    }
    const char *phase = answer_text(document, "task.phase");
    const char *message = answer_text(document, "task.errMessage");
    if (!document)
        return;
    group->is_done = strcmp(phase, "Done") == 0 || strcmp(phase, "Aborted") == 0;
    if (strcmp(phase, "Aborted") == 0)
        as_talk_fail(talk, baidu_is_shortage(message) ? AS_TALK_CAPACITY : AS_TALK_CONFIGURATION,
                     "task %s was aborted: %s", group->operation, message);
    else if (!*phase)
        (void)answer_misses(talk, "task.phase");
    else
        as_talk_end(talk);
}

static void ask_for_task(struct as_talk *talk)
{
    as_talk_ask(talk, "GET", "%s/task/InstanceGroupReplicas/%s", baidu_get_state(talk)->root,
                as_talk_escaped(talk, as_group_get(talk)->operation));
    as_talk_send(talk, "get_task", hear_progress);
}

static const char *find_region(struct as_talk *talk, const struct as_provider_settings *account)
{
    const char *given = as_account_get(account, "region");
    const char *variable = as_variable_find(talk, "BAIDUCLOUD_REGION");
    return given ? given : variable ? variable : "bj";
}

static void baidu_begin(struct as_group_talk *group)
{
    static void (*const verbs[AS_GROUP_VERB_COUNT])(struct as_talk *) = {
        [AS_GROUP_READ] = baidu_ask_for_group,   [AS_GROUP_GROW] = baidu_ask_for_group,
        [AS_GROUP_REMOVE] = baidu_ask_for_group, [AS_GROUP_TAKE_BACK] = baidu_ask_for_group,
        [AS_GROUP_POLL] = ask_for_task,
    };
    struct as_talk *talk = &group->talk;
    struct state *state = as_arena_alloc(&talk->arena, 1, sizeof(*state));
    const char *region = find_region(talk, group->account);
    const char *usual = as_talk_print(talk, "https://cce.%s.baidubce.com", region);
    group->state = state;
    if (!as_region_check(talk, region))
        return;
    state->root = as_talk_print(talk, "%s" PREFIX,
                                as_account_get_endpoint(talk, group->account, "endpoint", usual));
    state->group = as_talk_print(talk, "%s/cluster/%s/instancegroup/%s", state->root,
                                 as_talk_escaped(talk, as_target_ref_get(group->group, "cluster")),
                                 as_talk_escaped(talk, as_target_ref_get(group->group, "name")));
    verbs[group->verb](talk);
}

/* ---- credentials ---- */

/* In the format of Baidu's token service: a job that fetches session tokens stores its answer. */
static void hear_file(struct as_talk *talk)
{
    const struct as_provider_credentials *found = &as_credentials_get(talk)->found;
    const char *text = as_credentials_take_file(talk);
    if (!text)
        return;
    json_t *document = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    as_credentials_take_keys(as_credentials_get(talk), answer_text(document, "accessKeyId"),
                             answer_text(document, "secretAccessKey"),
                             answer_text(document, "sessionToken"),
                             answer_time(document, "expiration"));
    if (found->key_id && found->secret)
        as_talk_end(talk);
    else
        as_talk_fail(talk, AS_TALK_CONFIGURATION,
                     "%s: not a JSON document with `accessKeyId` and `secretAccessKey`",
                     talk->path);
    answer_wipe(document);
    json_decref(document);
}

static void begin_file(struct as_credentials_talk *talk)
{
    const char *path = as_account_get(talk->account, "credentials_file");
    if (path)
        as_talk_read(&talk->talk, path, hear_file);
    else
        as_credentials_not_here(talk);
}

static void baidu_begin_environment(struct as_credentials_talk *talk)
{
    const char *key = as_variable_find(&talk->talk, "BAIDUCLOUD_ACCESS_KEY");
    const char *secret = as_variable_find(&talk->talk, "BAIDUCLOUD_SECRET_KEY");
    const char *token = as_variable_find(&talk->talk, "BAIDUCLOUD_SESSION_TOKEN");
    as_credentials_take_keys(talk, key, secret, token, (as_maybe_time){.set = false});
    if (!key && !secret)
        as_credentials_not_here(talk);
    else if (key && secret)
        as_talk_end(&talk->talk);
    else
        as_talk_fail(&talk->talk, AS_TALK_CONFIGURATION, "%s is not set",
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
