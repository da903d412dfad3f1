/*
 * Scaling down: see the header.
 *
 *   choose -> mark each node
 *          -> delete the instances, where none of them is a node
 */
#include "shrink.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/arena.h>
#include <alertscaler/base/str.h>

#include "removal.h"

struct marking { /* of a chosen instance's node */
    struct as_shrink *shrink;
    size_t index;
};

struct as_shrink {
    struct as_shrink_request request;
    as_shrink_done_fn *done;
    void *context;
    struct as_arena arena; /* memory of what was chosen */
    struct as_leaving *chosen;
    size_t chosen_count;
    struct marking *markings;
    bool *is_kept;               /* by `chosen`: its node could not be marked */
    size_t marking;              /* nodes that are being marked */
    struct as_outcome failure;   /* of the first node that could not be marked */
    char words[AS_MESSAGE_SIZE]; /* why fewer than wanted; "" */
    struct as_removal *removal;
    struct as_timer *timer; /* tells what was found at once */
    struct as_shrink_result result;
};

void as_shrink_cancel(struct as_shrink *shrink)
{
    if (shrink->removal)
        as_removal_cancel(shrink->removal);
    shrink->request.env->loop->cancel_timer(shrink->request.env->loop, shrink->timer);
    as_arena_deinit(&shrink->arena);
    free(shrink);
}

static void finish(void *context)
{
    struct as_shrink *shrink = context;
    shrink->timer = NULL;
    shrink->done(shrink->context, &shrink->result);
    as_shrink_cancel(shrink);
}

static void finish_later(struct as_shrink *shrink)
{
    const struct as_access_env *env = shrink->request.env;
    shrink->timer = env->loop->start_timer(env->loop, 0, finish, shrink);
}

static void refuse(struct as_shrink *shrink, const char *message)
{
    as_outcome_init_local(&shrink->result.outcome, AS_REASON_REJECTED, message);
    finish_later(shrink);
}

/* ---- deleting ---- */

static void removed(void *context, const struct as_removal_result *result)
{
    struct as_shrink *shrink = context;
    const bool is_done = !result->is_known && result->outcome.is_accepted;
    shrink->removal = NULL;
    shrink->result.outcome = result->outcome;
    shrink->result.attempts = result->attempts;
    shrink->result.call = result->call;
    shrink->result.reached =
        shrink->request.wanted->from - (int32_t)(is_done ? shrink->chosen_count : result->gone);
    if (result->outcome.reason == AS_REASON_APPLIED && !*result->outcome.message)
        as_outcome_set_message(&shrink->result.outcome, shrink->words);
    finish(shrink);
}

static void delete_chosen(struct as_shrink *shrink)
{
    const char **ids = as_arena_alloc(&shrink->arena, shrink->chosen_count, sizeof(*ids));
    for (size_t i = 0; i < shrink->chosen_count; i++)
        ids[i] = shrink->chosen[i].id;
    const struct as_removal_request request = {
        .env = shrink->request.env,
        .account = shrink->request.account,
        .group = shrink->request.group->ref,
        .view = shrink->request.view,
        .idempotency = shrink->request.wanted->decision_id,
        .ids = ids,
        .count = shrink->chosen_count,
    };
    shrink->removal = as_removal_start(&request, removed, shrink);
}

/* ---- marking ---- */

static void all_marked(struct as_shrink *shrink)
{
    const struct as_shrink_request *request = &shrink->request;
    size_t count = 0;
    for (size_t i = 0; i < shrink->chosen_count; i++)
        if (!shrink->is_kept[i])
            shrink->chosen[count++] = shrink->chosen[i];
    shrink->result.outcome = shrink->failure;
    if (count > 0) {
        as_leave_add(request->leave, request->group, shrink->chosen, count,
                     request->wanted->decision_id);
        shrink->result.outcome = (struct as_outcome){.reason = AS_REASON_APPLIED};
        as_outcome_set_message(&shrink->result.outcome, shrink->words);
    }
    shrink->result.reached = request->wanted->from - (int32_t)count;
    finish(shrink);
}

static void marked(void *context, const struct as_drain_result *result)
{
    const struct marking *marking = context;
    struct as_shrink *shrink = marking->shrink;
    if (result->end == AS_DRAIN_NO_NODE) {
        shrink->chosen[marking->index].node = NULL;
    } else if (result->end != AS_DRAIN_DONE) {
        shrink->is_kept[marking->index] = true;
        if (shrink->failure.reason == AS_REASON_APPLIED)
            shrink->failure = result->outcome;
        snprintf(shrink->words, sizeof(shrink->words), "%s", shrink->failure.message);
    }
    if (--shrink->marking == 0)
        all_marked(shrink);
}

static void mark_chosen(struct as_shrink *shrink)
{
    const struct as_leave_group *group = shrink->request.group;
    for (size_t i = 0; i < shrink->chosen_count; i++) {
        const struct as_leaving *chosen = &shrink->chosen[i];
        if (!chosen->node)
            continue;
        const struct as_drain_request request = {
            .task = AS_DRAIN_MARK,
            .node = chosen->node,
            .provider_id = chosen->provider_id,
            .target = group->ref->id,
            .decision_id = shrink->request.wanted->decision_id,
            .evicts = group->config->drain == AS_NODES_DRAIN_TRUE,
            .keep = group->config->unneeded.keep,
        };
        struct marking *marking = &shrink->markings[i];
        *marking = (struct marking){shrink, i};
        shrink->marking++;
        struct as_drain *drain = as_drain_start(group->drains, &request, marked, marking);
        (void)drain; /* it is not dropped */
    }
}

/* ---- choosing ---- */

/* Where the decision has named the nodes, no other one takes the place of one that stays. */
static bool is_named(const struct as_scale_request *wanted, const struct as_instance_node *node)
{
    for (size_t i = 0; i < wanted->take_count; i++) {
        if (node && node->is_found && strcmp(wanted->take[i], node->node.name) == 0)
            return true;
    }
    return wanted->take_count == 0;
}

/* It is ours already, or another alertscaler's. */
static bool is_leaving(const struct as_shrink *shrink, const struct as_instance *instance,
                       const struct as_instance_node *node)
{
    const struct as_leave_group *group = shrink->request.group;
    return instance->state == AS_INSTANCE_LEAVING ||
           as_leave_has(shrink->request.leave, group->ref, instance->id) ||
           (node && node->mark &&
            strcmp(node->mark->owner, as_drains_get_owner(group->drains)) != 0);
}

/* Of a clean-up only what never became a node. */
static bool is_allowed(const struct as_shrink *shrink, const struct as_instance_node *node)
{
    const struct as_shrink_request *request = &shrink->request;
    if (!request->wanted->is_clean_up)
        return true;
    return request->removable && node && request->removable[node - request->nodes];
}

static void fill_candidate(const struct as_shrink *shrink, struct as_candidate *candidate,
                           const struct as_instance *instance, const struct as_instance_node *node)
{
    *candidate = (struct as_candidate){
        .id = instance->id,
        .zone = instance->zone,
        .created = instance->created,
        .is_pending = instance->state == AS_INSTANCE_PENDING,
        .is_leaving = is_leaving(shrink, instance, node) ||
                      !is_named(shrink->request.wanted, node) || !is_allowed(shrink, node),
        .is_failed = instance->state == AS_INSTANCE_FAILED || instance->is_unhealthy,
        .is_protected = instance->is_protected,
        .is_ambiguous = node && node->is_ambiguous,
        .node = node && node->is_found ? &node->node : NULL,
    };
}

/* `nodes`: NULL: the instances are not nodes. */
static const struct as_instance *get_instance(const struct as_shrink *shrink, size_t i)
{
    return shrink->request.nodes ? shrink->request.nodes[i].instance
                                 : &shrink->request.view->instances[i];
}

static void take_chosen(struct as_shrink *shrink, const struct as_choice *choice,
                        const struct as_candidate *candidates)
{
    const size_t count = choice->chosen_count;
    bool is_any_node = false;
    shrink->chosen = as_arena_alloc(&shrink->arena, count, sizeof(*shrink->chosen));
    shrink->markings = as_arena_alloc(&shrink->arena, count, sizeof(*shrink->markings));
    shrink->is_kept = as_arena_alloc(&shrink->arena, count, sizeof(*shrink->is_kept));
    for (size_t i = 0; i < count; i++) {
        const struct as_instance *instance = get_instance(shrink, choice->chosen[i]);
        const struct as_candidate_node *node = candidates[choice->chosen[i]].node;
        shrink->chosen[i] = (struct as_leaving){
            .id = as_arena_strdup(&shrink->arena, instance->id),
            .provider_id = as_arena_strdup(&shrink->arena, instance->provider_id),
            .node = node ? as_arena_strdup(&shrink->arena, node->name) : NULL,
        };
        is_any_node = is_any_node || node;
    }
    shrink->chosen_count = count;
    if (is_any_node)
        mark_chosen(shrink);
    else
        delete_chosen(shrink);
}

static void choose(struct as_shrink *shrink)
{
    const struct as_shrink_request *given = &shrink->request;
    const struct as_group_view *view = given->view;
    const struct as_scale_request *wanted = given->wanted;
    const struct as_nodes_config *config = given->group->config;
    const size_t count = given->nodes ? given->node_count : view->instance_count;
    struct as_candidate *candidates = as_arena_alloc(&shrink->arena, count, sizeof(*candidates));
    for (size_t i = 0; i < count; i++)
        fill_candidate(shrink, &candidates[i], get_instance(shrink, i),
                       given->nodes ? &given->nodes[i] : NULL);
    const struct as_choose_request request = {
        .strategy = config ? config->choose : AS_CHOOSE_OLDEST,
        .has_nodes = given->nodes,
        .spares_serving = wanted->is_take_back,
        .ready_timeout_us = config ? config->ready_timeout_us : 0,
        .now = given->env->clock->get_wall(given->env->clock),
        .candidates = candidates,
        .count = count,
        .size = wanted->from,
        .min = view->min >= 0 ? view->min : 0,
        .wanted = wanted->from - wanted->to,
    };
    struct as_choice choice;
    as_choose(&request, &shrink->arena, &choice);
    if (choice.shortfall)
        as_str_copy_line(choice.shortfall, shrink->words, sizeof(shrink->words));
    if (choice.chosen_count == 0)
        refuse(shrink, shrink->words);
    else
        take_chosen(shrink, &choice, candidates);
}

/* A node without its instance must not be named: the provider would remove another instance. */
static bool has_left_nodes(struct as_shrink *shrink)
{
    const struct as_group_view *view = shrink->request.view;
    if (!view->node_label || shrink->request.node_count <= (size_t)view->size)
        return false;
    snprintf(shrink->words, sizeof(shrink->words),
             "%zu nodes have the label %s, but the group has %d instances: delete the nodes whose "
             "instances are gone",
             shrink->request.node_count, view->node_label, view->size);
    return true;
}

/* If no instance has a node, it is the wrong cluster, or the nodes have no providerID: serving
 * machines would be removed without a drain. But when a growth from 0 is taken back, all instances
 * may go, if one of the group was ever a node of this cluster, and no node without a providerID may
 * be one of them. */
static bool is_blind(struct as_shrink *shrink)
{
    const struct as_shrink_request *request = &shrink->request;
    size_t running = 0, found = 0, doubtful = 0;
    for (size_t i = 0; i < request->node_count; i++) {
        running += request->nodes[i].instance->state == AS_INSTANCE_RUNNING;
        found += request->nodes[i].is_found;
        doubtful += request->nodes[i].may_be_nameless;
    }
    if (running == 0 || found > 0 || request->wanted->is_clean_up ||
        (request->wanted->is_take_back && request->wanted->to == 0 && doubtful == 0 &&
         request->had_nodes))
        return false;
    snprintf(shrink->words, sizeof(shrink->words),
             "none of the %zu instances is a node of cluster %s by its spec.providerID: set "
             "`nodes.cluster` to theirs, or to none%s",
             request->node_count, request->group->config->cluster,
             request->wanted->is_take_back ? "; remove what never became a node by hand" : "");
    return true;
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
    if (request->nodes && (has_left_nodes(shrink) || is_blind(shrink)))
        refuse(shrink, shrink->words);
    else if (!request->nodes && request->view->node_label)
        refuse(shrink, "which instance is to leave can be told by its node only: set "
                       "`nodes.cluster` to the cluster that the group belongs to");
    else
        choose(shrink);
    return shrink;
}
