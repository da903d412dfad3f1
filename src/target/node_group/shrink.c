/*
 * Scaling down: see the header.
 *
 *   read nodes -> choose -> drain in parallel -> delete in one call -> wait until they are gone
 */
#include "shrink.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/arena.h>
#include <alertscaler/base/log.h>
#include <alertscaler/base/str.h>

#include "drain/nodes.h"
#include "fault.h"

#define LOOK_EVERY_US (5 * AS_US_PER_S)    /* while waiting for instances to be gone */
#define LOOK_MAX_US   (10 * AS_US_PER_MIN) /* then the provider is left alone with them */

struct leaving { /* a chosen instance */
    struct as_shrink *shrink;
    const char *id, *provider_id;
    const char *name; /* of its node; NULL: it has no node */
    const char *node; /* the same if it must be drained; NULL */
    struct as_drain *drain;
    bool is_drained; /* or needs no drain */
};

struct as_shrink {
    struct as_shrink_request request;
    as_shrink_done_fn *done;
    void *context;
    struct as_arena arena; /* memory of what was chosen */
    struct as_nodes_reading *reading;
    struct leaving *leaving;
    size_t leaving_count, draining, drained;
    const char **ids;            /* of the instances that are deleted */
    bool *are_gone;              /* by `ids`: the provider said so in its answer; NULL */
    const char *operation;       /* that deletes them, while it runs; NULL */
    const char **nodes;          /* names of their nodes; NULL if there are no nodes */
    char words[AS_MESSAGE_SIZE]; /* why fewer than wanted; "" */
    struct as_outcome failure;   /* of the first drain that failed */
    struct as_group_talk talk;
    struct as_account_call *call;
    struct as_timer *timer;
    as_mono_time look_at, look_until;
    struct as_shrink_result result;
};

static as_mono_time get_mono(const struct as_shrink *shrink)
{
    return shrink->request.env->clock->get_mono(shrink->request.env->clock);
}

static void free_shrink(struct as_shrink *shrink)
{
    if (shrink->reading)
        as_nodes_read_cancel(shrink->reading);
    if (shrink->call)
        as_account_cancel(shrink->call);
    if (shrink->timer)
        shrink->request.env->loop->cancel_timer(shrink->request.env->loop, shrink->timer);
    as_talk_deinit(&shrink->talk.talk);
    as_arena_deinit(&shrink->arena);
    free(shrink);
}

static void finish(struct as_shrink *shrink)
{
    shrink->done(shrink->context, &shrink->result);
    free_shrink(shrink);
}

static void fail(struct as_shrink *shrink, enum as_reason reason, const char *message)
{
    as_outcome_init_local(&shrink->result.outcome, reason, message);
    finish(shrink);
}

/* ---- deleting ---- */

static void talk(struct as_shrink *shrink, enum as_group_verb verb, as_account_done_fn *done)
{
    struct as_group_talk *group = &shrink->talk;
    as_talk_deinit(&group->talk);
    as_account_init_talk(shrink->request.account, group);
    group->verb = verb;
    group->group = shrink->request.group;
    group->from = shrink->request.wanted->from;
    group->to = shrink->request.wanted->from - (int32_t)shrink->drained;
    group->version = shrink->request.view->version;
    group->idempotency = shrink->request.wanted->decision_id;
    group->instances = shrink->ids;
    group->nodes = shrink->nodes;
    group->instance_count = shrink->drained;
    group->operation = shrink->operation;
    shrink->call = as_account_start(shrink->request.account, group, done, shrink);
}

/* By then the action has been reported, or is about to be: a remaining mark goes into the log. */
static void undone(void *context, const struct as_drain_result *result)
{
    if (result->end == AS_DRAIN_STUCK)
        as_log(AS_LOG_ERROR, "a node stays cordoned", AS_F("node", result->node),
               AS_F("reason", result->outcome.message));
}

/* Nodes whose instances leave stay as they are; the others take pods again. */
static void let_go(struct as_shrink *shrink, bool is_gone)
{
    struct as_drains *drains = shrink->request.drains;
    for (size_t i = 0; i < shrink->leaving_count; i++) {
        const struct leaving *leaving = &shrink->leaving[i];
        if (!leaving->is_drained || !leaving->node)
            continue;
        if (is_gone)
            as_drain_release(drains, leaving->node);
        else
            as_drain_undo_start(drains, leaving->node, undone, NULL);
    }
}

/* If instances have no names, the question is whether the provider is still working. */
static bool is_there(const struct as_group_view *view, const char *id)
{
    return view->node_label ? view->in_progress : as_group_is_present(view, id);
}

/* How many leaving instances the last READ still lists. An instance that the provider has declared
 * gone is not waited for: its list is behind. */
static size_t count_left(const struct as_shrink *shrink)
{
    size_t left = 0;
    for (size_t i = 0; i < shrink->drained; i++)
        left += !(shrink->are_gone && shrink->are_gone[i]) &&
                is_there(&shrink->talk.view, shrink->ids[i]);
    return left;
}

static void look_again(void *context);

/* Waits in short steps, so that a stop is noticed. */
static void wait_to_look(struct as_shrink *shrink)
{
    struct as_loop *loop = shrink->request.env->loop;
    const int64_t left_us = shrink->look_at.us - get_mono(shrink).us;
    const int64_t step_us = left_us < LOOK_EVERY_US ? left_us : LOOK_EVERY_US;
    shrink->timer = loop->start_timer(loop, step_us, look_again, shrink);
}

/* False: it has taken too long. */
static bool look_later(struct as_shrink *shrink, int64_t least_us)
{
    shrink->look_at.us =
        as_time_add(get_mono(shrink).us, as_fault_get_pause(&shrink->talk, least_us));
    if (shrink->look_at.us > shrink->look_until.us)
        return false;
    wait_to_look(shrink);
    return true;
}

/* The provider has accepted the call and does the rest. */
static void leave(struct as_shrink *shrink)
{
    let_go(shrink, true);
    as_outcome_set_message(&shrink->result.outcome, shrink->words);
    finish(shrink);
}

static void looked(void *context)
{
    struct as_shrink *shrink = context;
    const size_t left = count_left(shrink);
    shrink->call = NULL;
    shrink->result.attempts += shrink->talk.talk.sent;
    const bool is_gone = shrink->talk.talk.fault == AS_TALK_GONE ||
                         (shrink->talk.talk.fault == AS_TALK_OK && left == 0);
    if (!is_gone && look_later(shrink, LOOK_EVERY_US))
        return;
    if (!is_gone)
        snprintf(shrink->words, sizeof(shrink->words),
                 "the provider took the call, but %zu of %zu instances are not gone yet", left,
                 shrink->drained);
    leave(shrink);
}

static void followed(void *context);

static void look_again(void *context)
{
    struct as_shrink *shrink = context;
    shrink->timer = NULL;
    if (as_access_get_permit(shrink->request.env) == AS_PERMIT_FINISH) {
        snprintf(shrink->words, sizeof(shrink->words),
                 "the provider took the call; alertscaler stops before the instances are gone");
        leave(shrink);
    } else if (get_mono(shrink).us < shrink->look_at.us) {
        wait_to_look(shrink);
    } else if (shrink->operation) {
        talk(shrink, AS_GROUP_POLL, followed);
    } else {
        talk(shrink, AS_GROUP_READ, looked);
    }
}

/* Some instances may be gone although the removal failed: then the decision is done in part, and
 * doing it again would remove too many. Instances that still exist stay. A change that was accepted
 * counts as a step, even if it removed nothing. */
static void judged(void *context)
{
    struct as_shrink *shrink = context;
    struct as_outcome *outcome = &shrink->result.outcome;
    const size_t wanted = shrink->drained;
    const bool is_known = shrink->talk.talk.fault == AS_TALK_OK;
    const size_t left = is_known ? count_left(shrink) : wanted;
    shrink->call = NULL;
    shrink->result.attempts += shrink->talk.talk.sent;
    if (!is_known || left == wanted) {
        if (is_known)
            shrink->result.reached = shrink->request.wanted->from;
        let_go(shrink, false);
        finish(shrink);
        return;
    }
    for (size_t i = 0; i < shrink->leaving_count; i++) {
        struct leaving *leaving = &shrink->leaving[i];
        if (!leaving->is_drained || !is_there(&shrink->talk.view, leaving->id))
            continue;
        leaving->is_drained = false;
        if (leaving->node)
            as_drain_undo_start(shrink->request.drains, leaving->node, undone, NULL);
    }
    let_go(shrink, true);
    struct as_error error = AS_ERROR_INIT;
    as_error_set(&error, "%zu of %zu instances are removed: %s", wanted - left, wanted,
                 outcome->message);
    outcome->reason = AS_REASON_APPLIED;
    outcome->is_ambiguous = outcome->is_shortage = false;
    outcome->message[0] = '\0';
    as_outcome_set_message(outcome, left > 0 ? error.text : shrink->words);
    shrink->result.reached = shrink->request.wanted->from - (int32_t)(wanted - left);
    finish(shrink);
}

static void judge(struct as_shrink *shrink)
{
    const bool may_be_done = shrink->drained > 1 || shrink->operation; /* at least in part */
    if (may_be_done && !shrink->request.view->node_label) {
        talk(shrink, AS_GROUP_READ, judged);
        return;
    }
    let_go(shrink, false);
    finish(shrink);
}

/* Waits for the operation's end before checking whether the instances are gone. */
static void followed(void *context)
{
    struct as_shrink *shrink = context;
    shrink->call = NULL;
    shrink->result.attempts += shrink->talk.talk.sent;
    if (as_fault_has_failed(&shrink->talk)) {
        as_fault_take_end(&shrink->talk, &shrink->result.outcome);
        judge(shrink);
        return;
    }
    if (as_fault_is_open(&shrink->talk) && look_later(shrink, LOOK_EVERY_US))
        return;
    shrink->operation = NULL;
    shrink->look_at = get_mono(shrink);
    look_again(shrink);
}

static void keep_gone(struct as_shrink *shrink)
{
    const struct as_group_talk *group = &shrink->talk;
    if (!group->are_gone)
        return;
    shrink->are_gone = as_arena_alloc(&shrink->arena, shrink->drained, sizeof(*shrink->are_gone));
    for (size_t i = 0; i < group->instance_count; i++) {
        for (size_t j = 0; j < shrink->drained && group->are_gone[i]; j++)
            shrink->are_gone[j] |= strcmp(shrink->ids[j], group->instances[i]) == 0;
    }
}

static void removed(void *context)
{
    struct as_shrink *shrink = context;
    shrink->call = NULL;
    shrink->result.attempts += shrink->talk.talk.sent;
    as_fault_take(&shrink->talk, &shrink->result.outcome, &shrink->result.call);
    keep_gone(shrink);
    if (shrink->talk.talk.fault != AS_TALK_OK) {
        if (shrink->talk.has_begun)
            as_fault_accept_part(&shrink->result.outcome);
        judge(shrink);
        return;
    }
    if (shrink->talk.started)
        shrink->operation = as_arena_strdup(&shrink->arena, shrink->talk.started);
    shrink->result.reached = shrink->request.wanted->from - (int32_t)shrink->drained;
    shrink->look_until.us = as_time_add(get_mono(shrink).us, LOOK_MAX_US);
    if (!look_later(shrink, 0))
        leave(shrink);
}

/* ---- draining ---- */

static void delete_drained(struct as_shrink *shrink)
{
    shrink->ids = as_arena_alloc(&shrink->arena, shrink->leaving_count + 1, sizeof(*shrink->ids));
    shrink->nodes =
        as_arena_alloc(&shrink->arena, shrink->leaving_count + 1, sizeof(*shrink->nodes));
    shrink->drained = 0;
    for (size_t i = 0; i < shrink->leaving_count; i++) {
        if (!shrink->leaving[i].is_drained)
            continue;
        shrink->nodes[shrink->drained] = shrink->leaving[i].name;
        shrink->ids[shrink->drained++] = shrink->leaving[i].id;
    }
    if (shrink->drained > 0) {
        talk(shrink, AS_GROUP_REMOVE, removed);
        return;
    }
    shrink->result.outcome = shrink->failure;
    finish(shrink);
}

static void drained(void *context, const struct as_drain_result *result)
{
    struct leaving *leaving = context;
    struct as_shrink *shrink = leaving->shrink;
    leaving->drain = NULL;
    leaving->is_drained = result->end == AS_DRAIN_DONE || result->end == AS_DRAIN_NO_NODE;
    if (result->end == AS_DRAIN_NO_NODE)
        leaving->node = NULL;
    if (!leaving->is_drained) {
        if (shrink->failure.reason == AS_REASON_APPLIED)
            shrink->failure = result->outcome;
        snprintf(shrink->words, sizeof(shrink->words), "%s", shrink->failure.message);
    }
    if (--shrink->draining == 0)
        delete_drained(shrink);
}

static void drain_all(struct as_shrink *shrink)
{
    const struct as_nodes_config *nodes = shrink->request.nodes;
    shrink->draining = 1; /* this function itself */
    for (size_t i = 0; i < shrink->leaving_count; i++) {
        struct leaving *leaving = &shrink->leaving[i];
        leaving->shrink = shrink;
        if (!leaving->node || !nodes->drain) {
            leaving->is_drained = true;
            leaving->node = NULL;
            continue;
        }
        const struct as_drain_request request = {
            .node = leaving->node,
            .provider_id = leaving->provider_id,
            .decision_id = shrink->request.wanted->decision_id,
            .timeout_us = nodes->drain_timeout_us,
            .grace_us = nodes->grace_us,
        };
        shrink->draining++;
        leaving->drain = as_drain_start(shrink->request.drains, &request, drained, leaving);
    }
    if (--shrink->draining == 0)
        delete_drained(shrink);
}

/* ---- choosing ---- */

static void fill_candidate(struct as_candidate *candidate, const struct as_instance *instance,
                           const struct as_instance_node *node)
{
    *candidate = (struct as_candidate){
        .id = instance->id,
        .zone = instance->zone,
        .created = instance->created,
        .is_pending = instance->state == AS_INSTANCE_PENDING,
        .is_leaving = instance->state == AS_INSTANCE_LEAVING,
        .is_failed = instance->state == AS_INSTANCE_FAILED || instance->is_unhealthy,
        .is_protected = instance->is_protected,
        .is_ambiguous = node && node->is_ambiguous,
        .node = node && node->is_found ? &node->node : NULL,
    };
}

static const char *get_provider_id(struct as_shrink *shrink, const struct as_instance_node *nodes,
                                   size_t index)
{
    return as_arena_strdup(&shrink->arena,
                           nodes ? nodes[index].instance->provider_id
                                 : shrink->request.view->instances[index].provider_id);
}

/* `nodes`: one per instance (`count`); NULL: the instances are not nodes. */
static void choose(struct as_shrink *shrink, const struct as_instance_node *nodes, size_t count)
{
    const struct as_group_view *view = shrink->request.view;
    const struct as_scale_request *wanted = shrink->request.wanted;
    const struct as_nodes_config *config = shrink->request.nodes;
    const struct as_clock *clock = shrink->request.env->clock;
    struct as_candidate *candidates =
        as_arena_alloc(&shrink->arena, count + 1, sizeof(*candidates));
    for (size_t i = 0; i < count; i++)
        fill_candidate(&candidates[i], nodes ? nodes[i].instance : &view->instances[i],
                       nodes ? &nodes[i] : NULL);
    const struct as_choose_request request = {
        .strategy = config ? config->choose : AS_CHOOSE_OLDEST,
        .has_nodes = nodes != NULL,
        .spares_serving = wanted->is_take_back,
        .ready_timeout_us = config ? config->ready_timeout_us : 0,
        .now = clock->get_wall(clock),
        .candidates = candidates,
        .count = count,
        .size = view->size,
        .min = view->min >= 0 ? view->min : 0,
        .wanted = wanted->from - wanted->to,
    };
    struct as_choice choice;
    as_choose(&request, &shrink->arena, &choice);
    if (choice.shortfall)
        as_str_copy_line(choice.shortfall, shrink->words, sizeof(shrink->words));
    if (choice.chosen_count == 0) {
        fail(shrink, AS_REASON_REJECTED, shrink->words);
        return;
    }
    shrink->leaving = as_arena_alloc(&shrink->arena, choice.chosen_count, sizeof(*shrink->leaving));
    for (size_t i = 0; i < choice.chosen_count; i++) {
        const size_t chosen = choice.chosen[i];
        const struct as_candidate *candidate = &candidates[chosen];
        const char *name =
            candidate->node ? as_arena_strdup(&shrink->arena, candidate->node->name) : NULL;
        shrink->leaving[shrink->leaving_count++] = (struct leaving){
            .id = as_arena_strdup(&shrink->arena, candidate->id),
            .provider_id = get_provider_id(shrink, nodes, chosen),
            .name = name,
            .node = name,
        };
    }
    drain_all(shrink);
}

/* A node without its instance must not be named: the provider would remove another instance. */
static bool has_left_nodes(struct as_shrink *shrink, size_t count)
{
    const struct as_group_view *view = shrink->request.view;
    if (!view->node_label || count <= (size_t)view->size)
        return false;
    snprintf(shrink->words, sizeof(shrink->words),
             "%zu nodes have the label %s, but the group has %d instances: delete the nodes whose "
             "instances are gone",
             count, view->node_label, view->size);
    return true;
}

/* If no instance has a node, it is the wrong cluster, or the nodes have no providerID: serving
 * machines would be removed without a drain. But when a growth from 0 is taken back, all instances
 * may go. */
static bool is_blind(struct as_shrink *shrink, const struct as_instance_node *nodes, size_t count)
{
    const struct as_scale_request *wanted = shrink->request.wanted;
    size_t running = 0, found = 0;
    for (size_t i = 0; i < count; i++) {
        running += nodes[i].instance->state == AS_INSTANCE_RUNNING;
        found += nodes[i].is_found;
    }
    if (running == 0 || found > 0 || (wanted->is_take_back && wanted->to == 0))
        return false;
    snprintf(shrink->words, sizeof(shrink->words),
             "none of the %zu instances is a node of cluster %s by its spec.providerID: set "
             "`nodes.cluster` to theirs, or to none",
             count, shrink->request.nodes->cluster);
    return true;
}

static void nodes_read(void *context, const struct as_outcome *outcome,
                       const struct as_instance_node *nodes, size_t count)
{
    struct as_shrink *shrink = context;
    shrink->reading = NULL;
    if (outcome->reason == AS_REASON_APPLIED &&
        (has_left_nodes(shrink, count) || is_blind(shrink, nodes, count))) {
        fail(shrink, AS_REASON_REJECTED, shrink->words);
        return;
    }
    if (outcome->reason == AS_REASON_APPLIED) {
        choose(shrink, nodes, count);
        return;
    }
    shrink->result.outcome = *outcome;
    finish(shrink);
}

static void begin_without_nodes(void *context)
{
    struct as_shrink *shrink = context;
    shrink->timer = NULL;
    if (shrink->request.view->node_label)
        fail(shrink, AS_REASON_REJECTED,
             "which instance is to leave can be told by its node only: set `nodes.cluster` to the "
             "cluster that the group belongs to");
    else
        choose(shrink, NULL, shrink->request.view->instance_count);
}

struct as_shrink *as_shrink_start(const struct as_shrink_request *request, as_shrink_done_fn *done,
                                  void *context)
{
    struct as_shrink *shrink = as_xcalloc(1, sizeof(*shrink));
    shrink->request = *request;
    shrink->done = done;
    shrink->context = context;
    shrink->arena = AS_ARENA_INIT;
    shrink->failure.reason = AS_REASON_APPLIED;
    as_account_init_talk(request->account, &shrink->talk);
    if (request->client)
        shrink->reading =
            as_nodes_read_start(request->client, request->view, true, nodes_read, shrink);
    else
        shrink->timer =
            request->env->loop->start_timer(request->env->loop, 0, begin_without_nodes, shrink);
    return shrink;
}

void as_shrink_cancel(struct as_shrink *shrink)
{
    free_shrink(shrink);
}
