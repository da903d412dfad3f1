/*
 * Drains of a cluster's nodes: which drains run, which wait for a slot, and which nodes are
 * reserved. The steps of one drain:
 *
 * - mark: its slot -> the version of the eviction API -> read the node: may it be drained? -> read
 *   its pods: may all be evicted? -> mark the node
 * - check: its slot -> read the node: is its mark ours?
 * - look: as check -> read its pods: is the node empty?
 * - empty: as look -> a slot among the drains that evict -> (read its pods -> evict each pod that
 *   is still there), repeated until no pod is left
 *
 * Nothing is marked before the last question is answered. A failure ends with drain_undo. A
 * failed eviction of a pod is repeated until the deadline, unless waiting cannot help. A node
 * that other replicas have left marked is found and restored by the recovery.
 */
#include <alertscaler/kube/drain.h>

#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bsd/sys/queue.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>
#include <alertscaler/kube/kube_documents.h>
#include <alertscaler/kube/kube_nodes.h>
#include <alertscaler/kube/nodes.h>
#include <alertscaler/kube/target_outcome.h>

#include <alertscaler/kube/kube_client.h>

/* State. A drain is in the list of its owner from drain_new to drain_report. */

struct held {
    LIST_ENTRY(held) entry;
    char *node;
    bool is_unwanted; /* its mark is to be removed, once it is found */
};

struct recovery;

enum drain_slot { SLOT_LOOK, SLOT_EVICT, SLOT_COUNT };

struct as_drains {
    struct as_kube_client *client;
    char *owner;
    char eviction_version[AS_KUBE_EVICTION_VERSION_SIZE]; /* "": not asked yet */
    TAILQ_HEAD(drain_list, as_drain) drains;              /* in the order of their start */
    LIST_HEAD(, held) held;
    unsigned running[SLOT_COUNT];
    as_mono_time since;               /* of the first recovery */
    as_drain_recovered_fn *recovered; /* NULL: no recovery was requested */
    void *recovered_context;
    struct recovery *recovery;       /* the running recovery; NULL */
    struct as_timer *recovery_timer; /* of the next recovery; NULL */
};

/* Waits for exactly one of: its slot, request, list, timer; and always for the deadline. */
struct as_drain {
    TAILQ_ENTRY(as_drain) entry;
    struct as_drains *owner;
    as_drain_done_fn *done;
    void *context;
    enum as_drain_task task;
    char *name, *provider_id, *target, *decision_id;
    bool evicts;
    int64_t timeout_us, grace_us;
    unsigned keep;

    struct as_kube_request *request;
    struct as_kube_pages *list;
    struct as_timer *timer, *deadline;
    enum drain_slot slot;
    bool is_waiting; /* for its slot */
    bool has_slot;
    bool may_be_marked; /* a mark was sent, or was there */
    bool is_marked;
    bool is_undoing;
    unsigned undo_attempts;

    struct as_buf body;             /* the Node as read, for the patch */
    struct as_kube_node_pods pods;  /* of this round */
    size_t next_pod;                /* is evicted next, if its fate says so */
    int64_t wait_us;                /* until the next round, if the API server asked for it */
    char obstacle[AS_MESSAGE_SIZE]; /* why the last pod was not evicted or is not gone; "" */
    struct as_drain_result result;
};

static void drain_begin(void *context); /* starts a drain whose slot is free */

/* Undoes what was done to the node. Then reports the given result, or STUCK. */
static void drain_undo(struct as_drain *drain);

static void recovery_begin_later(struct as_drains *drains);
static void recovery_free(struct recovery *recovery);

/* Slots, reserved nodes and the end of a drain. */

struct as_drains *as_drains_new(struct as_kube_client *client, const char *owner)
{
    struct as_drains *drains = as_xcalloc(1, sizeof(*drains));
    drains->client = client;
    drains->owner = as_xstrdup(owner);
    TAILQ_INIT(&drains->drains);
    LIST_INIT(&drains->held);
    return drains;
}

static void drains_cancel_timer(struct as_drain *drain, struct as_timer **timer)
{
    const struct as_access_env *env = drain->owner->client->env;
    env->loop->cancel_timer(env->loop, *timer);
    *timer = NULL;
}

static void drain_stop(struct as_drain *drain)
{
    if (drain->request)
        as_kube_request_cancel(drain->request);
    if (drain->list)
        as_kube_pages_cancel(drain->list);
    drains_cancel_timer(drain, &drain->timer);
    drains_cancel_timer(drain, &drain->deadline);
    drain->request = NULL;
    drain->list = NULL;
    drain->is_waiting = false;
}

/* The drain waits for nothing, and is in no list. */
static void free_drain(struct as_drain *drain)
{
    as_buf_deinit(&drain->body);
    as_kube_node_pods_deinit(&drain->pods);
    free(drain->name);
    free(drain->provider_id);
    free(drain->target);
    free(drain->decision_id);
    free(drain);
}

static void drains_free_held(struct held *held)
{
    LIST_REMOVE(held, entry);
    free(held->node);
    free(held);
}

struct as_drains *as_drains_free(struct as_drains *drains)
{
    struct as_drain *drain;
    struct held *held;
    if (!drains)
        return NULL;
    recovery_free(drains->recovery);
    drains->client->env->loop->cancel_timer(drains->client->env->loop, drains->recovery_timer);
    while ((drain = TAILQ_FIRST(&drains->drains)) != NULL) {
        TAILQ_REMOVE(&drains->drains, drain, entry);
        drain_stop(drain);
        free_drain(drain);
    }
    while ((held = LIST_FIRST(&drains->held)) != NULL)
        drains_free_held(held);
    free(drains->owner);
    free(drains);
    return NULL;
}

bool as_drains_is_idle(const struct as_drains *drains)
{
    return TAILQ_EMPTY(&drains->drains) && !drains->recovery;
}

static struct held *drains_find_held(const struct as_drains *drains, const char *node)
{
    struct held *held;
    LIST_FOREACH (held, &drains->held, entry)
        if (strcmp(held->node, node) == 0)
            return held;
    return NULL;
}

static bool drain_is_held(const struct as_drains *drains, const char *node)
{
    const struct held *held = drains_find_held(drains, node);
    return held && !held->is_unwanted;
}

bool as_drain_is_unwanted(const struct as_drains *drains, const char *node)
{
    const struct held *held = drains_find_held(drains, node);
    return held && held->is_unwanted;
}

void as_drain_release(struct as_drains *drains, const char *node)
{
    struct held *held = drains_find_held(drains, node);
    if (held)
        drains_free_held(held);
}

static void drains_hold(struct as_drains *drains, const char *node, bool is_unwanted)
{
    struct held *held = drains_find_held(drains, node);
    if (!held) {
        held = as_xcalloc(1, sizeof(*held));
        held->node = as_xstrdup(node);
        LIST_INSERT_HEAD(&drains->held, held, entry);
    }
    held->is_unwanted = is_unwanted;
}

void as_drain_hold(struct as_drains *drains, const char *node)
{
    drains_hold(drains, node, false);
}

static void drain_find_later(struct as_drain *drain)
{
    drains_hold(drain->owner, drain->name, true);
    recovery_begin_later(drain->owner);
}

static struct as_drain *drain_find(const struct as_drains *drains, const char *node)
{
    struct as_drain *drain;
    TAILQ_FOREACH (drain, &drains->drains, entry)
        if (strcmp(drain->name, node) == 0)
            return drain;
    return NULL;
}

static struct as_drain *drain_new(struct as_drains *drains, const char *node,
                                  as_drain_done_fn *done, void *context)
{
    struct as_drain *drain = as_xcalloc(1, sizeof(*drain));
    drain->owner = drains;
    drain->done = done;
    drain->context = context;
    drain->name = as_xstrdup(node);
    drain->body = AS_BUF_INIT(AS_KUBE_NODE_MAX);
    drain->result.node = drain->name;
    drain->result.end = AS_DRAIN_FAILED;
    drain->result.outcome.reason = AS_REASON_APPLIED;
    TAILQ_INSERT_TAIL(&drains->drains, drain, entry);
    return drain;
}

/* Grants slots to the drains that have waited longest, in the next turn of the loop. */
static void drains_grant_slots(struct as_drains *drains)
{
    static const unsigned most[SLOT_COUNT] = {AS_DRAIN_LOOKS_MAX, AS_DRAINS_MAX};
    const struct as_access_env *env = drains->client->env;
    struct as_drain *drain;
    TAILQ_FOREACH (drain, &drains->drains, entry) {
        if (!drain->is_waiting || drains->running[drain->slot] >= most[drain->slot])
            continue;
        drains->running[drain->slot]++;
        drain->is_waiting = false;
        drain->has_slot = true;
        drain->timer = env->loop->start_timer(env->loop, 0, drain_begin, drain);
    }
}

static void drains_return_slot(struct as_drain *drain)
{
    if (drain->has_slot)
        drain->owner->running[drain->slot]--;
    drain->has_slot = false;
}

static void drain_request_slot(struct as_drain *drain, enum drain_slot slot)
{
    drains_return_slot(drain);
    drain->slot = slot;
    drain->is_waiting = true;
    drains_grant_slots(drain->owner);
}

static void drain_report(struct as_drain *drain)
{
    struct as_drains *drains = drain->owner;
    drain_stop(drain);
    drains_return_slot(drain);
    if (drain->result.end == AS_DRAIN_DONE)
        as_drain_hold(drains, drain->name);
    if (drain->result.end == AS_DRAIN_STUCK)
        drain_find_later(drain);
    drains_grant_slots(drains);
    /* First out of the list: for the callback the drain is over. */
    TAILQ_REMOVE(&drains->drains, drain, entry);
    drain->done(drain->context, &drain->result);
    free_drain(drain);
}

/* Course of one drain. */

#define FORBIDDEN 403
#define NOT_FOUND 404
#define CONFLICT  409

/* Outcomes */

/* "drain node n1: " and `what` become the outcome's message. */
static void drain_explain(struct as_drain *drain, enum as_reason reason, const char *what)
{
    char message[5 * AS_MESSAGE_SIZE];
    snprintf(message, sizeof(message), "drain node %s: %s", drain->name, what);
    drain->result.outcome.reason = reason;
    as_outcome_set_message(&drain->result.outcome, message);
}

/* The outcome of an answer, with the API server's own words. */
static struct as_outcome drain_read_outcome(const struct as_drain *drain,
                                            const struct as_http_response *response,
                                            bool *names_object)
{
    const struct as_clock *clock = drain->owner->client->env->clock;
    struct as_kube_status status;
    struct as_outcome outcome;
    as_kube_outcome_init(&outcome, response, false, clock->get_wall(clock), &status);
    if (names_object)
        *names_object = status.names_object;
    return outcome;
}

static void drain_finish(struct as_drain *drain)
{
    drain_stop(drain);
    if (drain->may_be_marked)
        drain_undo(drain);
    else
        drain_report(drain);
}

static void drain_fail(struct as_drain *drain, enum as_reason reason, const char *what)
{
    drain_explain(drain, reason, what);
    drain_finish(drain);
}

/* `right`: the missing right, if the answer is 403. */
static void drain_fail_with(struct as_drain *drain, const struct as_outcome *outcome,
                            const char *right)
{
    char what[2 * AS_MESSAGE_SIZE];
    const bool is_forbidden = outcome->http_status == FORBIDDEN;
    snprintf(what, sizeof(what), "%s%s%s%s", is_forbidden ? "the right \"" : "",
             is_forbidden ? right : "", is_forbidden ? "\" is missing: " : "", outcome->message);
    drain->result.outcome = *outcome;
    drain_fail(drain, outcome->reason, what);
}

static void drain_on_deadline(void *context)
{
    struct as_drain *drain = context;
    char what[2 * AS_MESSAGE_SIZE], time[AS_DURATION_SIZE];
    drain->deadline = NULL;
    as_duration_print(drain->timeout_us, time);
    snprintf(what, sizeof(what), "not empty after %s%s%s", time, *drain->obstacle ? ": " : "",
             drain->obstacle);
    drain_fail(drain, AS_REASON_TIMEOUT, what);
}

/* Requests */

static void drain_send(struct as_drain *drain, const struct as_kube_request_spec *spec,
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

/* Sends one request for the node: GET, or PATCH with the body. */
static void drain_read_node(struct as_drain *drain, as_kube_request_done_fn *answered)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf path = AS_BUF_INIT(AS_TARGET_URL_MAX);
    const struct as_kube_request_spec spec = {
        .method = "GET", .operation = "get_node", .max_response = AS_KUBE_NODE_MAX};
    drain_send(drain, &spec, &path, write_node_path(drain, &path), answered);
}

static void drain_patch_node(struct as_drain *drain, const struct as_buf *patch,
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
    drain_send(drain, &spec, &path, write_node_path(drain, &path), answered);
}

/* Evicting */

static void drain_end(struct as_drain *drain, enum as_drain_end end)
{
    drain->result.end = end;
    drain_report(drain);
}

/* A failure that may pass by itself; but an action does not wait for it. */
static bool may_pass(const struct as_drain *drain, const struct as_outcome *outcome)
{
    return drain->task != AS_DRAIN_MARK && outcome->reason != AS_REASON_APPLIED &&
           outcome->reason != AS_REASON_FORBIDDEN && outcome->reason != AS_REASON_REJECTED;
}

static void drain_postpone(struct as_drain *drain, const struct as_outcome *why)
{
    drain->result.outcome = *why;
    drain_explain(drain, why->reason, why->message);
    drain_end(drain, AS_DRAIN_NOT_YET);
}

/* Without a permit a marked node stays as it is, for later or for another replica. */
static void wait_for_permit(struct as_drain *drain, const char *why)
{
    if (drain->task == AS_DRAIN_MARK) {
        drain_fail(drain, AS_REASON_SUPERSEDED, why);
        return;
    }
    drain_explain(drain, AS_REASON_SUPERSEDED, why);
    drain_end(drain, AS_DRAIN_NOT_YET);
}

/* False: nothing more is done to the node now. */
static bool drain_may_go_on(struct as_drain *drain)
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
    switch (as_access_get_terminate_permit(env, drain->target, &why)) {
    case AS_TERMINATE_GO: return true;
    case AS_TERMINATE_HOLD: wait_for_permit(drain, why); break;
    case AS_TERMINATE_GONE:
        drain_fail(drain, AS_REASON_SUPERSEDED, "no rule leads to its group");
        break;
    }
    return false;
}

static void drain_list_pods(struct as_drain *drain);

/* Waits in short steps, even if the API server asks for a long wait: giving up is noticed soon. */
static void drain_wait_step(void *context)
{
    struct as_drain *drain = context;
    const struct as_access_env *env = drain->owner->client->env;
    const int64_t part_us = drain->wait_us < AS_DRAIN_POLL_US ? drain->wait_us : AS_DRAIN_POLL_US;
    drain->timer = NULL;
    if (!drain_may_go_on(drain))
        return;
    if (drain->wait_us <= 0) {
        drain_list_pods(drain);
        return;
    }
    drain->wait_us -= part_us;
    drain->timer = env->loop->start_timer(env->loop, part_us, drain_wait_step, drain);
}

static void drain_wait(struct as_drain *drain)
{
    if (drain->wait_us < AS_DRAIN_POLL_US)
        drain->wait_us = AS_DRAIN_POLL_US;
    if (drain->wait_us > AS_DRAIN_POLL_MAX_US)
        drain->wait_us = AS_DRAIN_POLL_MAX_US;
    drain_wait_step(drain);
}

static void evict_next(struct as_drain *drain);

/* Whether the failure cannot get better by waiting. */
static bool drain_is_final(const struct as_outcome *outcome, bool names_object)
{
    if (outcome->http_status == NOT_FOUND)
        return !names_object; /* the eviction API is missing, not the pod */
    return outcome->reason == AS_REASON_FORBIDDEN ||
           (outcome->reason == AS_REASON_REJECTED && outcome->http_status != CONFLICT);
}

static void drain_on_evicted(void *context, const struct as_http_response *response,
                             unsigned attempts)
{
    struct as_drain *drain = context;
    const struct as_kube_node_pod *pod = &drain->pods.items[drain->next_pod++];
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
    if (outcome.reason != AS_REASON_APPLIED && drain_is_final(&outcome, names_object)) {
        if (outcome.http_status == NOT_FOUND)
            *drain->owner->eviction_version = '\0';
        as_outcome_set_message(&outcome, drain->obstacle);
        drain_fail_with(drain, &outcome, "pods/eviction: create");
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
    const struct as_kube_node_pods *pods = &drain->pods;
    while (drain->next_pod < pods->count && pods->items[drain->next_pod].fate != AS_KUBE_POD_EVICT)
        drain->next_pod++;
    if (drain->next_pod == pods->count) {
        drain_wait(drain);
        return;
    }
    if (!drain_may_go_on(drain))
        return;
    const struct as_kube_node_pod *pod = &pods->items[drain->next_pod];
    as_kube_eviction_encode(pod, drain->owner->eviction_version, grace_s, &body);
    const struct as_kube_request_spec spec = {
        .method = "POST",
        .operation = "evict_pod",
        .body = body.data,
        .body_size = body.size,
        .max_response = AS_TARGET_RESPONSE_MAX,
    };
    drain_send(drain, &spec, &path, write_eviction_path(pod, &path), drain_on_evicted);
}

/* Whether the kubelet does not end the pod, or a finalizer keeps its object: this may never end. */
static bool drain_is_pod_lost(const struct as_drain *drain, const struct as_kube_node_pod *pod)
{
    const struct as_clock *clock = drain->owner->client->env->clock;
    return pod->gone_at.set &&
           clock->get_wall(clock).us - pod->gone_at.at.us >= AS_DRAIN_LOST_POD_US;
}

/* Whether a pod is to be evicted, or still terminating. */
static bool drain_is_any_left(struct as_drain *drain)
{
    bool is_any_left = false;
    for (size_t i = 0; i < drain->pods.count; i++) {
        const struct as_kube_node_pod *pod = &drain->pods.items[i];
        is_any_left = is_any_left || pod->fate == AS_KUBE_POD_EVICT;
        if (pod->fate != AS_KUBE_POD_GOING || drain_is_pod_lost(drain, pod))
            continue;
        is_any_left = true;
        snprintf(drain->obstacle, sizeof(drain->obstacle),
                 "pod %.63s/%.150s was evicted, and has not ended", pod->namespace_, pod->name);
    }
    return is_any_left;
}

static const char *drain_find_blocking(const struct as_kube_node_pods *pods, unsigned keep)
{
    for (size_t i = 0; i < pods->count; i++)
        if (as_kube_node_pod_blocks(&pods->items[i], keep))
            return pods->items[i].blocking;
    return NULL;
}

static void drain_mark(struct as_drain *drain);

static void drain_accept_pods(struct as_drain *drain)
{
    if (!drain_is_any_left(drain))
        drain_end(drain, AS_DRAIN_DONE);
    else if (drain->task == AS_DRAIN_LOOK)
        drain_end(drain, AS_DRAIN_NOT_YET);
    else if (drain->slot == SLOT_LOOK)
        drain_request_slot(drain, SLOT_EVICT);
    else
        evict_next(drain);
}

static void drain_on_pods(void *context, const struct as_outcome *outcome)
{
    struct as_drain *drain = context;
    const char *blocking = drain->evicts || drain->task == AS_DRAIN_MARK
                               ? drain_find_blocking(&drain->pods, drain->keep)
                               : NULL;
    char what[4 * AS_MESSAGE_SIZE];
    drain->list = NULL;
    if (may_pass(drain, outcome) && drain->slot == SLOT_EVICT) {
        as_str_copy_line(outcome->message, drain->obstacle, sizeof(drain->obstacle));
        drain->wait_us = outcome->retry_after_us;
        drain_wait(drain);
    } else if (may_pass(drain, outcome)) {
        drain_postpone(drain, outcome);
    } else if (outcome->reason != AS_REASON_APPLIED) {
        drain->result.outcome = *outcome;
        drain_fail(drain, outcome->reason, outcome->message);
    } else if (blocking) {
        snprintf(what, sizeof(what), "pod %s", blocking);
        drain_fail(drain, AS_REASON_REJECTED, what);
    } else if (drain->task == AS_DRAIN_MARK) {
        drain_mark(drain);
    } else {
        drain_accept_pods(drain);
    }
}

static void drain_list_pods(struct as_drain *drain)
{
    as_kube_node_pods_deinit(&drain->pods);
    drain->next_pod = 0;
    drain->list =
        as_node_pods_list(drain->owner->client, drain->name, &drain->pods, drain_on_pods, drain);
}

/* Marking */

static void drain_check_node(struct as_drain *drain);

static void drain_on_marked(void *context, const struct as_http_response *response,
                            unsigned attempts)
{
    struct as_drain *drain = context;
    const struct as_outcome outcome = drain_read_outcome(drain, response, NULL);
    drain->request = NULL;
    if (outcome.reason == AS_REASON_APPLIED) {
        drain_end(drain, AS_DRAIN_DONE);
    } else if (outcome.http_status == CONFLICT || outcome.http_status == NOT_FOUND) {
        drain_check_node(drain);
    } else {
        drain_fail_with(drain, &outcome, "nodes: patch");
    }
}

static void drain_mark(struct as_drain *drain)
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
        drain_fail(drain, AS_REASON_REJECTED, error.text);
        return;
    }
    if (!drain_may_go_on(drain))
        return;
    drain->may_be_marked = true;
    drain_patch_node(drain, &patch, drain_on_marked);
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

static void drain_accept_node(struct as_drain *drain, const struct as_http_response *response,
                              const struct as_kube_node *node)
{
    char text[AS_MESSAGE_SIZE];
    const bool undo_is_ours =
        node->is_marked && as_str_equal(node->mark.owner, drain->owner->owner);
    if (drain->task != AS_DRAIN_MARK && !undo_is_ours) {
        drain_explain(drain, AS_REASON_SUPERSEDED, "somebody else has removed its mark");
        drain_end(drain, AS_DRAIN_UNMARKED);
        return;
    }
    const char *objection = find_objection(drain, node, text);
    if (objection) {
        drain_fail(drain, AS_REASON_REJECTED, objection);
    } else if (drain->task == AS_DRAIN_CHECK) {
        drain_end(drain, AS_DRAIN_DONE);
    } else {
        as_buf_clear(&drain->body);
        as_buf_append(&drain->body, response->body, response->body_size);
        drain_list_pods(drain);
    }
}

static void drain_on_node(void *context, const struct as_http_response *response, unsigned attempts)
{
    struct as_drain *drain = context;
    const struct as_outcome outcome = drain_read_outcome(drain, response, NULL);
    struct as_error error = AS_ERROR_INIT;
    struct as_arena arena = AS_ARENA_INIT;
    struct as_kube_node node;
    drain->request = NULL;
    if (outcome.http_status == NOT_FOUND) {
        drain_end(drain, AS_DRAIN_NO_NODE);
    } else if (may_pass(drain, &outcome)) {
        drain_postpone(drain, &outcome);
    } else if (outcome.reason != AS_REASON_APPLIED) {
        drain_fail_with(drain, &outcome, "nodes: get");
    } else if (as_kube_node_decode(response->body, response->body_size, &arena, &node, &error) <
               0) {
        drain_fail(drain, AS_REASON_REJECTED, error.text);
    } else {
        drain_accept_node(drain, response, &node);
    }
    as_arena_deinit(&arena);
}

static void drain_check_node(struct as_drain *drain)
{
    drain_read_node(drain, drain_on_node);
}

static void drain_on_discovered(void *context, const struct as_http_response *response,
                                unsigned attempts)
{
    struct as_drain *drain = context;
    const struct as_outcome outcome = drain_read_outcome(drain, response, NULL);
    struct as_error error = AS_ERROR_INIT;
    char *version = drain->owner->eviction_version;
    drain->request = NULL;
    if (may_pass(drain, &outcome))
        drain_postpone(drain, &outcome);
    else if (outcome.reason != AS_REASON_APPLIED)
        drain_fail_with(drain, &outcome, "get /api/v1");
    else if (as_kube_eviction_version_decode(response->body, response->body_size, version, &error) <
             0)
        drain_fail(drain, AS_REASON_REJECTED, error.text);
    else if (!*version)
        drain_fail(drain, AS_REASON_REJECTED, "the cluster has no eviction API (policy/v1)");
    else
        drain_check_node(drain);
}

static void drain_begin(void *context)
{
    struct as_drain *drain = context;
    const struct as_access_env *env = drain->owner->client->env;
    drain->timer = NULL;
    if (!drain_may_go_on(drain))
        return;
    if (drain->slot == SLOT_EVICT)
        drain->deadline =
            env->loop->start_timer(env->loop, drain->timeout_us, drain_on_deadline, drain);
    if (!drain->evicts || *drain->owner->eviction_version) {
        drain_check_node(drain);
        return;
    }
    const struct as_kube_request_spec spec = {.method = "GET",
                                              .path = "/api/v1",
                                              .operation = "discover",
                                              .max_response = AS_KUBE_DISCOVERY_MAX};
    drain->request = as_kube_request_start(drain->owner->client, &spec, drain_on_discovered, drain);
}

/*
 * Undo of the changes to a node. It is repeated where this may help: a node that stays cordoned
 * by mistake is unused capacity.
 */

static void undo_retry(void *context)
{
    struct as_drain *drain = context;
    drain->timer = NULL;
    drain_undo(drain);
}

static void undo_end_stuck(struct as_drain *drain, const struct as_outcome *outcome)
{
    char what[3 * AS_MESSAGE_SIZE];
    const bool has_failed = drain->result.outcome.reason != AS_REASON_APPLIED;
    snprintf(what, sizeof(what), "it stays cordoned, as that could not be undone: %s%s%s",
             outcome->message, has_failed ? "; before: " : "",
             has_failed ? drain->result.outcome.message : "");
    drain_explain(drain, outcome->reason, what);
    drain->result.end = AS_DRAIN_STUCK;
    drain_report(drain);
}

static bool undo_may_help(const struct as_outcome *outcome)
{
    return outcome->http_status == CONFLICT || outcome->reason == AS_REASON_UNREACHABLE ||
           outcome->reason == AS_REASON_TIMEOUT || outcome->reason == AS_REASON_THROTTLED;
}

static void undo_fail(struct as_drain *drain, const struct as_outcome *outcome)
{
    const struct as_access_env *env = drain->owner->client->env;
    int64_t delay_us = AS_DRAIN_POLL_US << (drain->undo_attempts < 4 ? drain->undo_attempts : 4);
    if (!undo_may_help(outcome) || ++drain->undo_attempts >= AS_DRAIN_UNDO_TRIES) {
        undo_end_stuck(drain, outcome);
        return;
    }
    if (outcome->http_status == CONFLICT)
        delay_us = 0;
    if (outcome->retry_after_us > delay_us)
        delay_us = outcome->retry_after_us;
    if (delay_us > AS_DRAIN_POLL_MAX_US)
        delay_us = AS_DRAIN_POLL_MAX_US;
    drain->timer = env->loop->start_timer(env->loop, delay_us, undo_retry, drain);
}

static void undo_on_unmarked(void *context, const struct as_http_response *response,
                             unsigned attempts)
{
    struct as_drain *drain = context;
    const struct as_outcome outcome = drain_read_outcome(drain, response, NULL);
    drain->request = NULL;
    if (outcome.reason == AS_REASON_APPLIED || outcome.http_status == NOT_FOUND)
        drain_report(drain);
    else
        undo_fail(drain, &outcome);
}

/* Whether the node has our marks. */
static bool undo_is_ours(const struct as_drain *drain, const struct as_http_response *response)
{
    struct as_arena arena = AS_ARENA_INIT;
    struct as_kube_node node;
    const bool is_other =
        as_kube_node_decode(response->body, response->body_size, &arena, &node, NULL) == 0 &&
        (!node.is_marked || !as_str_equal(node.mark.owner, drain->owner->owner));
    as_arena_deinit(&arena);
    return !is_other;
}

static void undo_on_node(void *context, const struct as_http_response *response, unsigned attempts)
{
    struct as_drain *drain = context;
    AS_CLEANUP(as_buf_deinit) struct as_buf patch = AS_BUF_INIT(AS_KUBE_NODE_MAX);
    struct as_outcome outcome = drain_read_outcome(drain, response, NULL);
    struct as_error error = AS_ERROR_INIT;
    drain->request = NULL;
    if (outcome.http_status == NOT_FOUND) {
        if (drain->result.outcome.reason == AS_REASON_APPLIED)
            drain->result.end = AS_DRAIN_NO_NODE;
        drain_report(drain);
    } else if (outcome.reason != AS_REASON_APPLIED) {
        undo_fail(drain, &outcome);
    } else if (!undo_is_ours(drain, response)) {
        if (drain->may_be_marked && !drain->is_marked)
            drain_find_later(drain); /* a mark may still be on its way */
        drain_report(drain);
    } else if (as_kube_node_unmark_encode(response->body, response->body_size, &patch, &error) <
               0) {
        as_outcome_init_local(&outcome, AS_REASON_REJECTED, error.text);
        undo_end_stuck(drain, &outcome);
    } else if (as_access_get_permit(drain->owner->client->env) == AS_PERMIT_NONE) {
        as_outcome_init_local(&outcome, AS_REASON_SUPERSEDED, as_permit_explain(AS_PERMIT_NONE));
        undo_end_stuck(drain, &outcome); /* the next leader finds the mark */
    } else {
        drain_patch_node(drain, &patch, undo_on_unmarked);
    }
}

static void drain_undo(struct as_drain *drain)
{
    drain->is_undoing = true;
    drain_read_node(drain, undo_on_node);
}

/*
 * Recovery: undoes the drains that no replica continues. It reads a list of nodes, then handles
 * one node after the other.
 */

struct recovery {
    struct as_drains *owner;
    struct as_kube_pages *pages;
    struct as_kube_nodes nodes;
    size_t next;
    unsigned undone;
    bool is_outdated;          /* recovery was requested again */
    bool is_any_left;          /* somebody may still go on with a node */
    bool is_any_ours;          /* another node with our mark is worked on */
    struct as_outcome outcome; /* the first failure */
};

static void recovery_free(struct recovery *recovery)
{
    if (!recovery)
        return;
    if (recovery->pages)
        as_kube_pages_cancel(recovery->pages);
    as_kube_nodes_deinit(&recovery->nodes);
    free(recovery);
}

static void recovery_finish(struct recovery *recovery)
{
    struct as_drains *drains = recovery->owner;
    drains->recovery = NULL;
    if (recovery->is_outdated || recovery->is_any_left ||
        recovery->outcome.reason != AS_REASON_APPLIED)
        recovery_begin_later(drains);
    drains->recovered(drains->recovered_context, &recovery->outcome, recovery->undone,
                      recovery->is_any_left || recovery->is_any_ours ||
                          recovery->outcome.reason != AS_REASON_APPLIED);
    recovery_free(recovery);
}

static void recovery_continue(struct recovery *recovery);

static void recovery_on_undone(void *context, const struct as_drain_result *result)
{
    struct recovery *recovery = context;
    if (result->end == AS_DRAIN_STUCK && recovery->outcome.reason == AS_REASON_APPLIED)
        recovery->outcome = result->outcome;
    if (result->end == AS_DRAIN_FAILED)
        recovery->undone++;
    recovery_continue(recovery);
}

static bool recovery_is_ours(const struct as_drains *drains, const struct as_kube_node *node)
{
    return node->is_marked && as_str_equal(node->mark.owner, drains->owner);
}

static bool is_worked_on(const struct as_drains *drains, const struct as_kube_node *node)
{
    return drain_find(drains, node->name) || drain_is_held(drains, node->name);
}

static bool is_nobodys(const struct as_drains *drains, const struct as_kube_node *node)
{
    const struct as_access_env *env = drains->client->env;
    const struct as_kube_node_mark *mark = &node->mark;
    const char *why;
    if (as_drain_is_unwanted(drains, node->name))
        return true;
    if (*mark->target)
        return as_access_get_terminate_permit(env, mark->target, &why) == AS_TERMINATE_GONE;
    return env->clock->get_mono(env->clock).us >= as_time_add(drains->since.us, AS_LEAVE_ORPHAN_US);
}

static void recovery_continue(struct recovery *recovery)
{
    struct as_drains *drains = recovery->owner;
    while (recovery->next < recovery->nodes.count) {
        const struct as_kube_node *node = &recovery->nodes.items[recovery->next++];
        if (!recovery_is_ours(drains, node))
            continue;
        if (is_worked_on(drains, node)) {
            recovery->is_any_ours = true;
            continue;
        }
        if (!is_nobodys(drains, node)) {
            recovery->is_any_left = true;
            continue;
        }
        as_drain_undo_start(drains, node->name, recovery_on_undone, recovery);
        return;
    }
    recovery_finish(recovery);
}

static void recovery_on_nodes(void *context, const struct as_outcome *outcome)
{
    struct recovery *recovery = context;
    recovery->pages = NULL;
    recovery->outcome = *outcome;
    recovery_continue(recovery); /* the list is empty after a failure */
}

static void recovery_begin(struct as_drains *drains)
{
    struct recovery *recovery = as_xcalloc(1, sizeof(*recovery));
    recovery->owner = drains;
    drains->recovery = recovery;
    recovery->pages =
        as_nodes_list(drains->client, NULL, &recovery->nodes, recovery_on_nodes, recovery);
}

/* A replica that no longer leads does nothing: the next leader looks for the nodes. */
static void recovery_begin_again(void *context)
{
    struct as_drains *drains = context;
    drains->recovery_timer = NULL;
    if (as_access_get_permit(drains->client->env) != AS_PERMIT_NONE)
        recovery_begin(drains);
}

static void recovery_begin_later(struct as_drains *drains)
{
    struct as_loop *loop = drains->client->env->loop;
    if (drains->recovered && !drains->recovery && !drains->recovery_timer)
        drains->recovery_timer =
            loop->start_timer(loop, AS_DRAIN_RECOVER_US, recovery_begin_again, drains);
}

void as_drain_recover(struct as_drains *drains, as_drain_recovered_fn *done, void *context)
{
    const struct as_clock *clock = drains->client->env->clock;
    if (!drains->recovered)
        drains->since = clock->get_mono(clock);
    drains->recovered = done;
    drains->recovered_context = context;
    if (drains->recovery) {
        drains->recovery->is_outdated = true;
        return;
    }
    drains->client->env->loop->cancel_timer(drains->client->env->loop, drains->recovery_timer);
    drains->recovery_timer = NULL;
    recovery_begin(drains);
}

/* Calls. */

static void drains_report_later(void *context)
{
    struct as_drain *drain = context;
    drain->timer = NULL;
    drain_report(drain);
}

/* Names of nodes come from the API, unless a caller is wrong. */
static bool drains_is_name(const char *node)
{
    return !as_str_is_empty(node) && strlen(node) <= 253 && strcmp(node, ".") != 0 &&
           strcmp(node, "..") != 0;
}

struct as_drain *as_drain_start(struct as_drains *drains, const struct as_drain_request *request,
                                as_drain_done_fn *done, void *context)
{
    const struct as_access_env *env = drains->client->env;
    const bool is_double = drain_find(drains, request->node) != NULL;
    struct as_drain *drain = drain_new(drains, request->node, done, context);
    drain->task = request->task;
    drain->is_marked = drain->may_be_marked = request->task != AS_DRAIN_MARK;
    drain->evicts = request->evicts || request->task == AS_DRAIN_EMPTY;
    drain->provider_id = as_xstrdup(request->provider_id);
    drain->target = as_xstrdup(request->target);
    drain->decision_id = as_xstrdup(request->decision_id ? request->decision_id : "");
    drain->timeout_us = request->timeout_us;
    drain->grace_us = request->grace_us;
    drain->keep = request->keep;
    if (is_double || !drains_is_name(request->node)) {
        drain_explain(drain, AS_REASON_REJECTED,
                      is_double ? "it is being worked on already" : "this is no node's name");
        drain->timer = env->loop->start_timer(env->loop, 0, drains_report_later, drain);
        return drain;
    }
    drain_request_slot(drain, SLOT_LOOK);
    return drain;
}

void as_drain_drop(struct as_drain *drain)
{
    drain_stop(drain);
    drains_return_slot(drain);
    drains_grant_slots(drain->owner);
    TAILQ_REMOVE(&drain->owner->drains, drain, entry);
    free_drain(drain);
}

const char *as_drains_get_owner(const struct as_drains *drains)
{
    return drains->owner;
}

static void undo_later(void *context)
{
    struct as_drain *drain = context;
    drain->timer = NULL;
    drain_undo(drain);
}

void as_drain_undo_start(struct as_drains *drains, const char *node, as_drain_done_fn *done,
                         void *context)
{
    const struct as_access_env *env = drains->client->env;
    struct as_drain *drain = drain_new(drains, node, done, context);
    as_drain_release(drains, node);
    drain->is_undoing = true;
    drain->timer = env->loop->start_timer(env->loop, 0, undo_later, drain);
}
