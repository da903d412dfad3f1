/*
 * Work on one node: see the header. The steps:
 *
 *   mark    its turn -> which eviction API is served -> read the node: may we have it? -> read its
 *           pods: may all be evicted? -> mark it
 *   check   its turn -> read the node: is it still ours?
 *   look    as check -> read its pods: is it empty?
 *   empty   as look -> a turn among those that evict -> (read its pods -> evict each that is still
 *           there), repeated until no pod is left
 *
 * Nothing is marked before the last question is answered. A failure ends with drain_undo. A failed
 * eviction of a pod is tried again until the deadline, unless waiting cannot help.
 */
#include <alertscaler/kube/drain.h>

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>
#include <alertscaler/kube/kube_documents.h>
#include <alertscaler/kube/kube_path.h>
#include <alertscaler/kube/target_limits.h>

#include "drain_private.h"
#include <alertscaler/kube/instance_nodes.h>

#define FORBIDDEN 403
#define NOT_FOUND 404
#define CONFLICT  409

/* Outcomes */

void drain_explain(struct as_drain *drain, enum as_reason reason, const char *what)
{
    char message[4 * AS_MESSAGE_SIZE];
    snprintf(message, sizeof(message), "drain node %s: %s", drain->name, what);
    drain->result.outcome.reason = reason;
    as_outcome_set_message(&drain->result.outcome, message);
}

struct as_outcome drain_read_outcome(const struct as_drain *drain,
                                     const struct as_http_response *response, bool *names_object)
{
    const struct as_clock *clock = drain->owner->client->env->clock;
    struct as_kube_status status = {0};
    struct as_outcome outcome;
    as_outcome_init(&outcome, response, false, clock->get_wall(clock));
    if (outcome.reason != AS_REASON_APPLIED && outcome.http_status > 0 &&
        as_kube_status_decode(response->body, response->body_size, &status, NULL) == 0) {
        as_outcome_set_message(&outcome, status.message);
        if (outcome.retry_after_us == 0)
            outcome.retry_after_us = status.retry_after_us;
    }
    if (names_object)
        *names_object = status.names_object;
    return outcome;
}

static void leave(struct as_drain *drain)
{
    drain_stop(drain);
    if (drain->may_be_marked)
        drain_undo(drain);
    else
        drain_tell(drain);
}

static void fail(struct as_drain *drain, enum as_reason reason, const char *what)
{
    drain_explain(drain, reason, what);
    leave(drain);
}

/* `right`: the missing right, if the answer is 403. */
static void fail_with(struct as_drain *drain, const struct as_outcome *outcome, const char *right)
{
    char what[2 * AS_MESSAGE_SIZE];
    const bool is_forbidden = outcome->http_status == FORBIDDEN;
    snprintf(what, sizeof(what), "%s%s%s%s", is_forbidden ? "the right \"" : "",
             is_forbidden ? right : "", is_forbidden ? "\" is missing: " : "", outcome->message);
    drain->result.outcome = *outcome;
    fail(drain, outcome->reason, what);
}

static void expire(void *context)
{
    struct as_drain *drain = context;
    char what[2 * AS_MESSAGE_SIZE], time[AS_DURATION_SIZE];
    drain->deadline = NULL;
    as_duration_print(drain->timeout_us, time);
    snprintf(what, sizeof(what), "not empty after %s%s%s", time, *drain->obstacle ? ": " : "",
             drain->obstacle);
    fail(drain, AS_REASON_TIMEOUT, what);
}

/* Requests */

static void send(struct as_drain *drain, const struct as_kube_request_spec *spec,
                 struct as_buf *path, int status, as_kube_request_done_fn *answered)
{
    struct as_kube_request_spec request = *spec;
    assert(status == 0 && as_buf_check(path) == 0); /* names come from the API, and are bounded */
    request.path = path->data;
    drain->request = as_kube_request_start(drain->owner->client, &request, answered, drain);
}

static int write_node_path(const struct as_drain *drain, struct as_buf *path)
{
    as_buf_append_str(path, "/api/v1/nodes");
    return as_kube_path_append(path, drain->name);
}

void drain_ask_node(struct as_drain *drain, as_kube_request_done_fn *answered)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf path = AS_BUF_INIT(AS_TARGET_URL_MAX);
    const struct as_kube_request_spec spec = {
        .method = "GET", .operation = "get_node", .max_response = AS_KUBE_NODE_MAX};
    send(drain, &spec, &path, write_node_path(drain, &path), answered);
}

void drain_patch_node(struct as_drain *drain, const struct as_buf *patch,
                      as_kube_request_done_fn *answered)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf path = AS_BUF_INIT(AS_TARGET_URL_MAX);
    const struct as_kube_request_spec spec = {
        .method = "PATCH",
        .operation = "patch_node",
        .content_type = "application/merge-patch+json",
        .body = patch->data,
        .body_size = patch->size,
        .max_response = AS_KUBE_NODE_MAX,
    };
    send(drain, &spec, &path, write_node_path(drain, &path), answered);
}

/* Evicting */

static void tell(struct as_drain *drain, enum as_drain_end end)
{
    drain->result.end = end;
    drain_tell(drain);
}

/* A failure that may pass by itself; but an action does not wait for it. */
static bool may_pass(const struct as_drain *drain, const struct as_outcome *outcome)
{
    return drain->task != AS_DRAIN_MARK && outcome->reason != AS_REASON_APPLIED &&
           outcome->reason != AS_REASON_FORBIDDEN && outcome->reason != AS_REASON_REJECTED;
}

static void put_off(struct as_drain *drain, const struct as_outcome *why)
{
    drain->result.outcome = *why;
    drain_explain(drain, why->reason, why->message);
    tell(drain, AS_DRAIN_NOT_YET);
}

/* Without a permit a marked node stays as it is, for later or for another replica. */
static void wait_for_permit(struct as_drain *drain, const char *why)
{
    if (drain->task == AS_DRAIN_MARK) {
        fail(drain, AS_REASON_SUPERSEDED, why);
        return;
    }
    drain_explain(drain, AS_REASON_SUPERSEDED, why);
    tell(drain, AS_DRAIN_NOT_YET);
}

/* False: nothing more is done to the node now. */
static bool may_go_on(struct as_drain *drain)
{
    const struct as_access_env *env = drain->owner->client->env;
    const enum as_permit permit = as_access_get_permit(env);
    const char *why = "";
    if (permit != AS_PERMIT_ALL) {
        wait_for_permit(drain, as_permit_explain(permit));
        return false;
    }
    if (drain->task == AS_DRAIN_MARK)
        return true; /* the action has asked */
    switch (as_access_get_leave_permit(env, drain->target, &why)) {
    case AS_LEAVE_GO: return true;
    case AS_LEAVE_HOLD: wait_for_permit(drain, why); break;
    case AS_LEAVE_GONE: fail(drain, AS_REASON_SUPERSEDED, "no rule leads to its group"); break;
    }
    return false;
}

static void list_pods(struct as_drain *drain);

/* Waits in short steps, even if the API server asks for a long wait: giving up is noticed soon. */
static void wait_on(void *context)
{
    struct as_drain *drain = context;
    const struct as_access_env *env = drain->owner->client->env;
    const int64_t part_us = drain->wait_us < AS_DRAIN_POLL_US ? drain->wait_us : AS_DRAIN_POLL_US;
    drain->timer = NULL;
    if (!may_go_on(drain))
        return;
    if (drain->wait_us <= 0) {
        list_pods(drain);
        return;
    }
    drain->wait_us -= part_us;
    drain->timer = env->loop->start_timer(env->loop, part_us, wait_on, drain);
}

static void wait(struct as_drain *drain)
{
    if (drain->wait_us < AS_DRAIN_POLL_US)
        drain->wait_us = AS_DRAIN_POLL_US;
    if (drain->wait_us > AS_DRAIN_POLL_MAX_US)
        drain->wait_us = AS_DRAIN_POLL_MAX_US;
    wait_on(drain);
}

static void evict_next(struct as_drain *drain);

/* Whether the failure cannot get better by waiting. */
static bool is_final(const struct as_outcome *outcome, bool names_object)
{
    if (outcome->http_status == NOT_FOUND)
        return !names_object; /* the eviction API is missing, not the pod */
    return outcome->reason == AS_REASON_FORBIDDEN ||
           (outcome->reason == AS_REASON_REJECTED && outcome->http_status != CONFLICT);
}

static void evicted(void *context, const struct as_http_response *response, unsigned attempts)
{
    struct as_drain *drain = context;
    const struct as_kube_node_pod *pod = &drain->to_evict.items[drain->next_pod++];
    bool names_object;
    struct as_outcome outcome = drain_read_outcome(drain, response, &names_object);
    char what[2 * AS_MESSAGE_SIZE];
    drain->request = NULL;
    if (outcome.reason == AS_REASON_APPLIED) {
        drain->result.evicted++;
    } else if (outcome.http_status != NOT_FOUND || !names_object) {
        snprintf(what, sizeof(what), "pod %s/%s: %s", pod->namespace_, pod->name, outcome.message);
        as_str_copy_line(what, drain->obstacle, sizeof(drain->obstacle));
        if (outcome.retry_after_us > drain->wait_us)
            drain->wait_us = outcome.retry_after_us;
    }
    if (outcome.reason != AS_REASON_APPLIED && is_final(&outcome, names_object)) {
        if (outcome.http_status == NOT_FOUND)
            *drain->owner->eviction_version = '\0';
        as_outcome_set_message(&outcome, drain->obstacle);
        fail_with(drain, &outcome, "pods/eviction: create");
        return;
    }
    evict_next(drain);
}

static int write_eviction_path(const struct as_kube_node_pod *pod, struct as_buf *path)
{
    as_buf_append_str(path, "/api/v1/namespaces");
    int status = as_kube_path_append(path, pod->namespace_);
    as_buf_append_str(path, "/pods");
    if (!status)
        status = as_kube_path_append(path, pod->name);
    as_buf_append_str(path, "/eviction");
    return status;
}

static void evict_next(struct as_drain *drain)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf path = AS_BUF_INIT(AS_TARGET_URL_MAX);
    AS_CLEANUP(as_buf_deinit) struct as_buf body = AS_BUF_INIT(AS_TARGET_BODY_MAX);
    const int64_t grace_s = drain->grace_us < 0 ? -1 : drain->grace_us / AS_US_PER_S;
    if (drain->next_pod == drain->to_evict.count) {
        wait(drain);
        return;
    }
    if (!may_go_on(drain))
        return;
    const struct as_kube_node_pod *pod = &drain->to_evict.items[drain->next_pod];
    as_kube_eviction_encode(pod, drain->owner->eviction_version, grace_s, &body);
    const struct as_kube_request_spec spec = {
        .method = "POST",
        .operation = "evict_pod",
        .body = body.data,
        .body_size = body.size,
        .max_response = AS_TARGET_RESPONSE_MAX,
    };
    send(drain, &spec, &path, write_eviction_path(pod, &path), evicted);
}

/* Whether the kubelet does not end the pod, or a finalizer keeps its object: this may never end. */
static bool is_lost(const struct as_drain *drain, const struct as_kube_node_pod *pod)
{
    const struct as_clock *clock = drain->owner->client->env->clock;
    return pod->gone_at.set &&
           clock->get_wall(clock).us - pod->gone_at.at.us >= AS_DRAIN_LOST_POD_US;
}

static void keep_pod(struct as_drain *drain, const struct as_kube_node_pod *pod)
{
    struct as_kube_node_pods *kept = &drain->to_evict;
    kept->items = as_xgrow(kept->items, kept->count, &kept->capacity, sizeof(*kept->items));
    kept->items[kept->count++] = (struct as_kube_node_pod){
        .namespace_ = as_arena_strdup(&kept->texts, pod->namespace_),
        .name = as_arena_strdup(&kept->texts, pod->name),
        .uid = as_arena_strdup(&kept->texts, pod->uid),
    };
}

/* Sorts out the pods to evict, and whether others are still terminating. */
static bool sort_pods(struct as_drain *drain, const struct as_kube_node_pods *pods)
{
    bool is_any_going = false;
    as_kube_node_pods_clear(&drain->to_evict);
    drain->next_pod = 0;
    for (size_t i = 0; i < pods->count; i++) {
        const struct as_kube_node_pod *pod = &pods->items[i];
        if (pod->fate == AS_KUBE_POD_EVICT)
            keep_pod(drain, pod);
        if (pod->fate != AS_KUBE_POD_GOING || is_lost(drain, pod))
            continue;
        is_any_going = true;
        snprintf(drain->obstacle, sizeof(drain->obstacle),
                 "pod %.63s/%.150s was evicted, and has not ended", pod->namespace_, pod->name);
    }
    return is_any_going;
}

static const char *find_blocking(const struct as_kube_node_pods *pods, unsigned keep)
{
    for (size_t i = 0; i < pods->count; i++)
        if (as_kube_node_pod_blocks(&pods->items[i], keep))
            return pods->items[i].blocking;
    return NULL;
}

static void mark(struct as_drain *drain);

static void take_pods(struct as_drain *drain, const struct as_kube_node_pods *pods)
{
    const bool is_any_left = sort_pods(drain, pods) || drain->to_evict.count > 0;
    if (!is_any_left)
        tell(drain, AS_DRAIN_DONE);
    else if (drain->task == AS_DRAIN_LOOK)
        tell(drain, AS_DRAIN_NOT_YET);
    else if (drain->turn == TURN_LOOK)
        drain_take_turn(drain, TURN_EVICT);
    else
        evict_next(drain);
}

static void listed(void *context, const struct as_outcome *outcome,
                   const struct as_kube_node_pods *pods)
{
    struct as_drain *drain = context;
    const char *blocking =
        drain->evicts || drain->task == AS_DRAIN_MARK ? find_blocking(pods, drain->keep) : NULL;
    char what[4 * AS_MESSAGE_SIZE];
    drain->list = NULL;
    if (may_pass(drain, outcome) && drain->turn == TURN_EVICT) {
        as_str_copy_line(outcome->message, drain->obstacle, sizeof(drain->obstacle));
        drain->wait_us = outcome->retry_after_us;
        wait(drain);
    } else if (may_pass(drain, outcome)) {
        put_off(drain, outcome);
    } else if (outcome->reason != AS_REASON_APPLIED) {
        drain->result.outcome = *outcome;
        fail(drain, outcome->reason, outcome->message);
    } else if (blocking) {
        snprintf(what, sizeof(what), "pod %s", blocking);
        fail(drain, AS_REASON_REJECTED, what);
    } else if (drain->task == AS_DRAIN_MARK) {
        mark(drain);
    } else {
        take_pods(drain, pods);
    }
}

static void list_pods(struct as_drain *drain)
{
    drain->list = as_node_pod_list_start(drain->owner->client, drain->name, listed, drain);
}

/* Marking */

static void ask_node(struct as_drain *drain);

static void marked(void *context, const struct as_http_response *response, unsigned attempts)
{
    struct as_drain *drain = context;
    const struct as_outcome outcome = drain_read_outcome(drain, response, NULL);
    drain->request = NULL;
    if (outcome.reason == AS_REASON_APPLIED) {
        tell(drain, AS_DRAIN_DONE);
    } else if (outcome.http_status == CONFLICT || outcome.http_status == NOT_FOUND) {
        ask_node(drain);
    } else {
        fail_with(drain, &outcome, "nodes: patch");
    }
}

static void mark(struct as_drain *drain)
{
    const struct as_clock *clock = drain->owner->client->env->clock;
    AS_CLEANUP(as_buf_deinit) struct as_buf patch = AS_BUF_INIT(AS_KUBE_NODE_MAX);
    struct as_error error = AS_ERROR_INIT;
    const struct as_kube_node_mark text = {
        .owner = drain->owner->owner,
        .decision = drain->decision_id,
        .target = drain->target,
        .at = clock->get_wall(clock),
    };
    if (as_kube_node_mark_encode(drain->body.data, drain->body.size, &text, &patch, &error) < 0) {
        fail(drain, AS_REASON_REJECTED, error.text);
        return;
    }
    if (!may_go_on(drain))
        return;
    drain->may_be_marked = true;
    drain_patch_node(drain, &patch, marked);
}

/* Why the node must not leave; NULL: it may. */
static const char *find_objection(const struct as_drain *drain, const struct as_kube_node *node,
                                  char text[AS_MESSAGE_SIZE])
{
    const bool is_same = *drain->provider_id
                             ? as_node_is_instance(node->provider_id, drain->provider_id)
                             : as_str_is_empty(node->provider_id);
    if (!is_same)
        snprintf(text, AS_MESSAGE_SIZE, "its spec.providerID is \"%.100s\", not one of \"%.80s\"",
                 node->provider_id, drain->provider_id);
    else if (node->keep)
        snprintf(text, AS_MESSAGE_SIZE, "%s", node->keep);
    else if (node->is_marked && !as_str_equal(node->mark.owner, drain->owner->owner))
        snprintf(text, AS_MESSAGE_SIZE, "another alertscaler is draining it: %.64s",
                 node->mark.owner);
    else
        return NULL;
    return text;
}

static void take_node(struct as_drain *drain, const struct as_http_response *response,
                      const struct as_kube_node *node)
{
    char text[AS_MESSAGE_SIZE];
    const bool is_ours = node->is_marked && as_str_equal(node->mark.owner, drain->owner->owner);
    if (drain->task != AS_DRAIN_MARK && !is_ours) {
        drain_explain(drain, AS_REASON_SUPERSEDED, "somebody else has removed its mark");
        tell(drain, AS_DRAIN_UNMARKED);
        return;
    }
    const char *objection = find_objection(drain, node, text);
    if (objection) {
        fail(drain, AS_REASON_REJECTED, objection);
    } else if (drain->task == AS_DRAIN_CHECK) {
        tell(drain, AS_DRAIN_DONE);
    } else {
        as_buf_clear(&drain->body);
        as_buf_append(&drain->body, response->body, response->body_size);
        list_pods(drain);
    }
}

static void node_read(void *context, const struct as_http_response *response, unsigned attempts)
{
    struct as_drain *drain = context;
    const struct as_outcome outcome = drain_read_outcome(drain, response, NULL);
    struct as_error error = AS_ERROR_INIT;
    struct as_arena arena = AS_ARENA_INIT;
    struct as_kube_node node;
    drain->request = NULL;
    if (outcome.http_status == NOT_FOUND) {
        tell(drain, AS_DRAIN_NO_NODE);
    } else if (may_pass(drain, &outcome)) {
        put_off(drain, &outcome);
    } else if (outcome.reason != AS_REASON_APPLIED) {
        fail_with(drain, &outcome, "nodes: get");
    } else if (as_kube_node_decode(response->body, response->body_size, &arena, &node, &error) <
               0) {
        fail(drain, AS_REASON_REJECTED, error.text);
    } else {
        take_node(drain, response, &node);
    }
    as_arena_deinit(&arena);
}

static void ask_node(struct as_drain *drain)
{
    drain_ask_node(drain, node_read);
}

static void discovered(void *context, const struct as_http_response *response, unsigned attempts)
{
    struct as_drain *drain = context;
    const struct as_outcome outcome = drain_read_outcome(drain, response, NULL);
    struct as_error error = AS_ERROR_INIT;
    char *version = drain->owner->eviction_version;
    drain->request = NULL;
    if (may_pass(drain, &outcome))
        put_off(drain, &outcome);
    else if (outcome.reason != AS_REASON_APPLIED)
        fail_with(drain, &outcome, "get /api/v1");
    else if (as_kube_eviction_version_decode(response->body, response->body_size, version, &error) <
             0)
        fail(drain, AS_REASON_REJECTED, error.text);
    else if (!*version)
        fail(drain, AS_REASON_REJECTED, "the cluster has no eviction API (policy/v1)");
    else
        ask_node(drain);
}

void drain_begin(void *context)
{
    struct as_drain *drain = context;
    const struct as_access_env *env = drain->owner->client->env;
    drain->timer = NULL;
    if (!may_go_on(drain))
        return;
    if (drain->turn == TURN_EVICT)
        drain->deadline = env->loop->start_timer(env->loop, drain->timeout_us, expire, drain);
    if (!drain->evicts || *drain->owner->eviction_version) {
        ask_node(drain);
        return;
    }
    const struct as_kube_request_spec spec = {.method = "GET",
                                              .path = "/api/v1",
                                              .operation = "discover",
                                              .max_response = AS_KUBE_DISCOVERY_MAX};
    drain->request = as_kube_request_start(drain->owner->client, &spec, discovered, drain);
}
