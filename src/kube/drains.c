/*
 * The drains of a cluster: which run, which wait for a turn, which nodes are held. drain.c has the
 * course of one drain.
 */
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>
#include <alertscaler/kube/target_limits.h>

#include "drain_private.h"

struct as_drains *as_drains_new(struct as_kube_client *client, const char *owner)
{
    struct as_drains *drains = as_xcalloc(1, sizeof(*drains));
    drains->client = client;
    drains->owner = as_xstrdup(owner);
    TAILQ_INIT(&drains->drains);
    LIST_INIT(&drains->held);
    return drains;
}

static void cancel_timer(struct as_drain *drain, struct as_timer **timer)
{
    const struct as_access_env *env = drain->owner->client->env;
    env->loop->cancel_timer(env->loop, *timer);
    *timer = NULL;
}

void drain_stop(struct as_drain *drain)
{
    if (drain->request)
        as_kube_request_cancel(drain->request);
    if (drain->list)
        as_node_pod_list_cancel(drain->list);
    cancel_timer(drain, &drain->timer);
    cancel_timer(drain, &drain->deadline);
    drain->request = NULL;
    drain->list = NULL;
    drain->is_waiting = false;
}

/* The drain waits for nothing, and is in no list. */
static void free_drain(struct as_drain *drain)
{
    as_buf_deinit(&drain->body);
    as_kube_node_pods_deinit(&drain->to_evict);
    free(drain->name);
    free(drain->provider_id);
    free(drain->target);
    free(drain->decision_id);
    free(drain);
}

static void free_held(struct held *held)
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
        free_held(held);
    free(drains->owner);
    free(drains);
    return NULL;
}

bool as_drains_is_idle(const struct as_drains *drains)
{
    return TAILQ_EMPTY(&drains->drains) && !drains->recovery;
}

static struct held *find_held(const struct as_drains *drains, const char *node)
{
    struct held *held;
    LIST_FOREACH (held, &drains->held, entry)
        if (strcmp(held->node, node) == 0)
            return held;
    return NULL;
}

bool drain_is_held(const struct as_drains *drains, const char *node)
{
    const struct held *held = find_held(drains, node);
    return held && !held->is_unwanted;
}

bool as_drain_is_unwanted(const struct as_drains *drains, const char *node)
{
    const struct held *held = find_held(drains, node);
    return held && held->is_unwanted;
}

void as_drain_release(struct as_drains *drains, const char *node)
{
    struct held *held = find_held(drains, node);
    if (held)
        free_held(held);
}

static void hold(struct as_drains *drains, const char *node, bool is_unwanted)
{
    struct held *held = find_held(drains, node);
    if (!held) {
        held = as_xcalloc(1, sizeof(*held));
        held->node = as_xstrdup(node);
        LIST_INSERT_HEAD(&drains->held, held, entry);
    }
    held->is_unwanted = is_unwanted;
}

void as_drain_hold(struct as_drains *drains, const char *node)
{
    hold(drains, node, false);
}

void drain_find_later(struct as_drain *drain)
{
    hold(drain->owner, drain->name, true);
    recovery_begin_later(drain->owner);
}

struct as_drain *drain_find(const struct as_drains *drains, const char *node)
{
    struct as_drain *drain;
    TAILQ_FOREACH (drain, &drains->drains, entry)
        if (strcmp(drain->name, node) == 0)
            return drain;
    return NULL;
}

struct as_drain *drain_new(struct as_drains *drains, const char *node, as_drain_done_fn *done,
                           void *context)
{
    struct as_drain *drain = as_xcalloc(1, sizeof(*drain));
    drain->owner = drains;
    drain->done = done;
    drain->context = context;
    drain->name = as_xstrdup(node);
    drain->body = AS_BUF_INIT(AS_KUBE_NODE_MAX);
    drain->to_evict = AS_KUBE_NODE_PODS_INIT(AS_NODE_PODS_MAX);
    drain->result.node = drain->name;
    drain->result.end = AS_DRAIN_FAILED;
    drain->result.outcome.reason = AS_REASON_APPLIED;
    TAILQ_INSERT_TAIL(&drains->drains, drain, entry);
    return drain;
}

/* Gives turns to those that have waited longest, in the next turn of the loop. */
static void give_turns(struct as_drains *drains)
{
    static const unsigned most[TURN_COUNT] = {AS_DRAIN_LOOKS_MAX, AS_DRAINS_MAX};
    const struct as_access_env *env = drains->client->env;
    struct as_drain *drain;
    TAILQ_FOREACH (drain, &drains->drains, entry) {
        if (!drain->is_waiting || drains->running[drain->turn] >= most[drain->turn])
            continue;
        drains->running[drain->turn]++;
        drain->is_waiting = false;
        drain->has_turn = true;
        drain->timer = env->loop->start_timer(env->loop, 0, drain_begin, drain);
    }
}

static void give_back(struct as_drain *drain)
{
    if (drain->has_turn)
        drain->owner->running[drain->turn]--;
    drain->has_turn = false;
}

void drain_take_turn(struct as_drain *drain, enum turn turn)
{
    give_back(drain);
    drain->turn = turn;
    drain->is_waiting = true;
    give_turns(drain->owner);
}

void drain_tell(struct as_drain *drain)
{
    struct as_drains *drains = drain->owner;
    drain_stop(drain);
    give_back(drain);
    if (drain->result.end == AS_DRAIN_DONE)
        as_drain_hold(drains, drain->name);
    if (drain->result.end == AS_DRAIN_STUCK)
        drain_find_later(drain);
    give_turns(drains);
    /* First out of the list: for the callback the drain is over. */
    TAILQ_REMOVE(&drains->drains, drain, entry);
    drain->done(drain->context, &drain->result);
    free_drain(drain);
}

/* Calls */

static void tell_later(void *context)
{
    struct as_drain *drain = context;
    drain->timer = NULL;
    drain_tell(drain);
}

/* Names of nodes come from the API, unless a caller is wrong. */
static bool is_name(const char *node)
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
    if (is_double || !is_name(request->node)) {
        drain_explain(drain, AS_REASON_REJECTED,
                      is_double ? "it is being worked on already" : "this is no node's name");
        drain->timer = env->loop->start_timer(env->loop, 0, tell_later, drain);
        return drain;
    }
    drain_take_turn(drain, TURN_LOOK);
    return drain;
}

void as_drain_drop(struct as_drain *drain)
{
    drain_stop(drain);
    give_back(drain);
    give_turns(drain->owner);
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
