/*
 * Node groups of an account, as a target adapter. Before a change the group is read again, because
 * most clouds have no conditional change; a change since the decision is a conflict. A group that
 * is no more than a size is changed by one conditional request.
 *
 * Not here: the providers (provider_group.h), their accounts (provider_account.h), the termination
 * of marked nodes (node_terminate.h), removals (node_terminate.h).
 *
 * Long because the course of one call is read as one.
 */
#include "node_group.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bsd/sys/queue.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/arena.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/base/str.h>
#include <alertscaler/base/time.h>
#include <alertscaler/decide/choose.h>
#include <alertscaler/decide/observation.h>
#include <alertscaler/decide/target.h>
#include <alertscaler/kube/env.h>
#include <alertscaler/kube/nodes.h>
#include <alertscaler/kube/target_outcome.h>

#include "node_terminate.h"
#include "provider_account.h"
#include "provider_answer.h"

/* Unregistered instances: instances of node groups that are seen to be no nodes, and since when. In
 * memory: a new process begins anew. A row of looks is broken by a gap of UNREGISTERED_GAP_US, by
 * another cluster, and by a node that may be the instance. So neither a node that was deleted
 * lately nor a wrong cluster makes an instance that serves look as if it had never come. */

struct unregistered; /* of one account */

#define UNREGISTERED_GAP_US     (5 * AS_US_PER_MIN)
#define UNREGISTERED_GROUPS_MAX 1000 /* the one that was looked at longest ago is forgotten */

struct unregistered_instance {
    const char *id;
    as_mono_time since;
};

struct unregistered_group {
    TAILQ_ENTRY(unregistered_group) entry;
    char *key, *cluster;
    bool had_node; /* in this cluster */
    as_mono_time looked;
    struct as_arena texts;
    struct unregistered_instance *items; /* ascending by id */
    size_t count;
};

struct unregistered {
    TAILQ_HEAD(, unregistered_group) groups; /* by the time of their last look */
    size_t count;
};

static struct unregistered *unregistered_new(void)
{
    struct unregistered *unregistered = as_xcalloc(1, sizeof(*unregistered));
    TAILQ_INIT(&unregistered->groups);
    return unregistered;
}

static void unregistered_forget(struct unregistered *unregistered, struct unregistered_group *group)
{
    TAILQ_REMOVE(&unregistered->groups, group, entry);
    unregistered->count--;
    as_arena_deinit(&group->texts);
    free(group->key);
    free(group->cluster);
    free(group);
}

static struct unregistered *unregistered_free(struct unregistered *unregistered)
{
    struct unregistered_group *group;
    while (unregistered && (group = TAILQ_FIRST(&unregistered->groups)))
        unregistered_forget(unregistered, group);
    free(unregistered);
    return NULL;
}

static struct unregistered_group *unregistered_find(const struct unregistered *unregistered,
                                                    const char *key)
{
    struct unregistered_group *group;
    TAILQ_FOREACH (group, &unregistered->groups, entry) {
        if (strcmp(group->key, key) == 0)
            return group;
    }
    return NULL;
}

static int unregistered_compare(const void *a, const void *b)
{
    return strcmp(((const struct unregistered_instance *)a)->id,
                  ((const struct unregistered_instance *)b)->id);
}

static const struct unregistered_instance *find_item(const struct unregistered_group *group,
                                                     const char *id)
{
    const struct unregistered_instance wanted = {.id = id};
    return group->count > 0
               ? bsearch(&wanted, group->items, group->count, sizeof(wanted), unregistered_compare)
               : NULL;
}

static struct unregistered_group *unregistered_add(struct unregistered *unregistered,
                                                   const char *key, const char *cluster)
{
    struct unregistered_group *group = as_xcalloc(1, sizeof(*group));
    if (unregistered->count == UNREGISTERED_GROUPS_MAX)
        unregistered_forget(unregistered, TAILQ_FIRST(&unregistered->groups));
    group->key = as_xstrdup(key);
    group->cluster = as_xstrdup(cluster);
    group->texts = AS_ARENA_INIT;
    TAILQ_INSERT_TAIL(&unregistered->groups, group, entry);
    unregistered->count++;
    return group;
}

static void unregistered_see(struct unregistered_group *group,
                             const struct unregistered_group *former,
                             const struct as_instance_node *node, as_mono_time now)
{
    const struct unregistered_instance *known =
        former ? find_item(former, node->instance->id) : NULL;
    group->had_node = group->had_node || (node->is_found && !node->is_ambiguous);
    if (node->is_found || node->is_ambiguous || node->may_be_nameless ||
        node->instance->state == AS_INSTANCE_LEAVING)
        return;
    group->items[group->count++] = (struct unregistered_instance){
        .id = as_arena_strdup(&group->texts, node->instance->id),
        .since = known ? known->since : now,
    };
}

/* A group (key of its target) and the nodes of the cluster were just read. */
static void unregistered_on_read(struct unregistered *unregistered, const char *group,
                                 const char *cluster, const struct as_instance_node *nodes,
                                 size_t count, as_mono_time now)
{
    struct unregistered_group *former = unregistered_find(unregistered, group);
    if (former && strcmp(former->cluster, cluster) != 0) {
        unregistered_forget(unregistered, former);
        former = NULL;
    }
    struct unregistered_group *seen = unregistered_add(unregistered, group, cluster);
    const bool is_row = former && now.us <= as_time_add(former->looked.us, UNREGISTERED_GAP_US);
    seen->had_node = former && former->had_node;
    seen->looked = now;
    seen->items = as_arena_alloc(&seen->texts, count, sizeof(*seen->items));
    for (size_t i = 0; i < count; i++)
        unregistered_see(seen, is_row ? former : NULL, &nodes[i], now);
    qsort(seen->items, seen->count, sizeof(*seen->items), unregistered_compare);
    if (former)
        unregistered_forget(unregistered, former);
}

/* Whether an instance of the group was a node of this cluster at any look. */
static bool unregistered_had_node(const struct unregistered *unregistered, const char *group)
{
    const struct unregistered_group *known = unregistered_find(unregistered, group);
    return known && known->had_node;
}

/* Whether the instance was seen to be no node for `us`, as of the last look, and another instance
 * of the group was a node of this cluster. */
static bool unregistered_has(const struct unregistered *unregistered, const char *group,
                             const char *id, int64_t us)
{
    const struct unregistered_group *known = unregistered_find(unregistered, group);
    const struct unregistered_instance *item =
        known && known->had_node ? find_item(known, id) : NULL;
    return item && as_time_add(item->since.us, us) <= known->looked.us;
}

/* Scaling a node group down: chooses instances. If they are nodes of a cluster, these are marked,
 * and leave in the background (node_terminate.h); else the provider deletes the instances together
 * with the size, and is waited for. If a node cannot be marked, its instance stays, and the size
 * with it.
 *
 *   choose -> mark each node
 *          -> delete the instances, where none of them is a node */

struct scale_down;

struct scale_down_request { /* borrowed until done or cancelled */
    const struct as_access_env *env;
    struct as_account *account;
    struct as_terminator *terminator;
    const struct as_terminator_group *group; /* without drains: the instances are not nodes */
    const struct as_scale_request *wanted;
    const struct as_group_view *view; /* just read; without what leaves, its size is wanted->from */
    const struct as_instance_node *nodes; /* one for each instance; borrowed for the call */
    size_t node_count;
    bool had_nodes;        /* an instance of the group was seen to be a node of this cluster */
    const bool *removable; /* of a clean-up, by `nodes`: who may leave, and nobody else; or NULL */
};

struct scale_down_result {
    struct as_outcome outcome; /* applied: at least one instance left, or leaves */
    int32_t reached;           /* the resulting size, if applied or accepted */
    unsigned attempts;         /* requests to the provider */
    struct as_provider_call call;
};

typedef void scale_down_done_fn(void *context, const struct scale_down_result *result);

struct marking { /* of a chosen instance's node */
    struct scale_down *shrink;
    size_t index;
};

struct scale_down {
    struct scale_down_request request;
    scale_down_done_fn *done;
    void *context;
    struct as_arena arena; /* memory of what was chosen */
    struct as_terminating *chosen;
    size_t chosen_count;
    struct marking *markings;
    bool *is_kept;               /* by `chosen`: its node could not be marked */
    size_t marking;              /* nodes that are being marked */
    struct as_outcome failure;   /* of the first node that could not be marked */
    char words[AS_MESSAGE_SIZE]; /* why fewer than wanted; "" */
    struct as_removal *removal;
    struct as_timer *timer; /* tells what was found at once */
    struct scale_down_result result;
};

/* Before the drains are freed, without a turn between. */
static void scale_down_cancel(struct scale_down *shrink)
{
    if (shrink->removal)
        as_removal_cancel(shrink->removal);
    shrink->request.env->loop->cancel_timer(shrink->request.env->loop, shrink->timer);
    as_arena_deinit(&shrink->arena);
    free(shrink);
}

static void scale_down_finish(void *context)
{
    struct scale_down *shrink = context;
    shrink->timer = NULL;
    shrink->done(shrink->context, &shrink->result);
    scale_down_cancel(shrink);
}

static void scale_down_finish_later(struct scale_down *shrink)
{
    const struct as_access_env *env = shrink->request.env;
    shrink->timer = env->loop->start_timer(env->loop, 0, scale_down_finish, shrink);
}

static void scale_down_refuse(struct scale_down *shrink, const char *message)
{
    as_outcome_init_local(&shrink->result.outcome, AS_REASON_REJECTED, message);
    scale_down_finish_later(shrink);
}

/* ---- deleting ---- */

static void scale_down_removed(void *context, const struct as_removal_result *result)
{
    struct scale_down *shrink = context;
    const bool is_done = !result->is_known && result->outcome.is_accepted;
    shrink->removal = NULL;
    shrink->result.outcome = result->outcome;
    shrink->result.attempts = result->attempts;
    shrink->result.call = result->call;
    shrink->result.reached =
        shrink->request.wanted->from - (int32_t)(is_done ? shrink->chosen_count : result->gone);
    if (result->outcome.reason == AS_REASON_APPLIED && !*result->outcome.message)
        as_outcome_set_message(&shrink->result.outcome, shrink->words);
    scale_down_finish(shrink);
}

static void delete_chosen(struct scale_down *shrink)
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
    shrink->removal = as_removal_start(&request, scale_down_removed, shrink);
}

/* ---- marking ---- */

static void all_marked(struct scale_down *shrink)
{
    const struct scale_down_request *request = &shrink->request;
    size_t count = 0;
    for (size_t i = 0; i < shrink->chosen_count; i++)
        if (!shrink->is_kept[i])
            shrink->chosen[count++] = shrink->chosen[i];
    shrink->result.outcome = shrink->failure;
    if (count > 0) {
        as_terminator_add(request->terminator, request->group, shrink->chosen, count,
                          request->wanted->decision_id);
        shrink->result.outcome = (struct as_outcome){.reason = AS_REASON_APPLIED};
        as_outcome_set_message(&shrink->result.outcome, shrink->words);
    }
    shrink->result.reached = request->wanted->from - (int32_t)count;
    scale_down_finish(shrink);
}

static void scale_down_marked(void *context, const struct as_drain_result *result)
{
    const struct marking *marking = context;
    struct scale_down *shrink = marking->shrink;
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

static void mark_chosen(struct scale_down *shrink)
{
    const struct as_terminator_group *group = shrink->request.group;
    for (size_t i = 0; i < shrink->chosen_count; i++) {
        const struct as_terminating *chosen = &shrink->chosen[i];
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
        struct as_drain *drain =
            as_drain_start(group->drains, &request, scale_down_marked, marking);
        (void)drain; /* it is not dropped */
    }
}

/* ---- choosing ---- */

/* Where the decision has named the nodes, no other one takes the place of one that stays. */
static bool scale_down_is_named(const struct as_scale_request *wanted,
                                const struct as_instance_node *node)
{
    for (size_t i = 0; i < wanted->take_count; i++) {
        if (node && node->is_found && strcmp(wanted->take[i], node->node.name) == 0)
            return true;
    }
    return wanted->take_count == 0;
}

/* It is ours already, or another alertscaler's. */
static bool is_leaving(const struct scale_down *shrink, const struct as_instance *instance,
                       const struct as_instance_node *node)
{
    const struct as_terminator_group *group = shrink->request.group;
    return instance->state == AS_INSTANCE_LEAVING ||
           as_terminator_has(shrink->request.terminator, group->ref, instance->id) ||
           (node && node->mark &&
            strcmp(node->mark->owner, as_drains_get_owner(group->drains)) != 0);
}

/* Of a clean-up only what never became a node. */
static bool scale_down_is_allowed(const struct scale_down *shrink,
                                  const struct as_instance_node *node)
{
    const struct scale_down_request *request = &shrink->request;
    if (!request->wanted->is_clean_up)
        return true;
    return request->removable && node && request->removable[node - request->nodes];
}

static void fill_candidate(const struct scale_down *shrink, struct as_candidate *candidate,
                           const struct as_instance *instance, const struct as_instance_node *node)
{
    *candidate = (struct as_candidate){
        .id = instance->id,
        .zone = instance->zone,
        .created = instance->created,
        .is_pending = instance->state == AS_INSTANCE_PENDING,
        .is_leaving = is_leaving(shrink, instance, node) ||
                      !scale_down_is_named(shrink->request.wanted, node) ||
                      !scale_down_is_allowed(shrink, node),
        .is_failed = instance->state == AS_INSTANCE_FAILED || instance->is_unhealthy,
        .is_protected = instance->is_protected,
        .is_ambiguous = node && node->is_ambiguous,
        .node = node && node->is_found ? &node->node : NULL,
    };
}

/* `nodes`: NULL: the instances are not nodes. */
static const struct as_instance *get_instance(const struct scale_down *shrink, size_t i)
{
    return shrink->request.nodes ? shrink->request.nodes[i].instance
                                 : &shrink->request.view->instances[i];
}

static void take_chosen(struct scale_down *shrink, const struct as_choice *choice,
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
        shrink->chosen[i] = (struct as_terminating){
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

static void scale_down_choose(struct scale_down *shrink)
{
    const struct scale_down_request *given = &shrink->request;
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
        scale_down_refuse(shrink, shrink->words);
    else
        take_chosen(shrink, &choice, candidates);
}

/* A node without its instance must not be named: the provider would remove another instance. */
static bool has_left_nodes(struct scale_down *shrink)
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
static bool is_blind(struct scale_down *shrink)
{
    const struct scale_down_request *request = &shrink->request;
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

/* `done` is called exactly once, in a later turn, unless cancelled. */
static struct scale_down *scale_down_start(const struct scale_down_request *request,
                                           scale_down_done_fn *done, void *context)
{
    struct scale_down *shrink = as_xcalloc(1, sizeof(*shrink));
    shrink->request = *request;
    shrink->done = done;
    shrink->context = context;
    shrink->arena = AS_ARENA_INIT;
    shrink->failure.reason = AS_REASON_APPLIED;
    if (request->nodes && (has_left_nodes(shrink) || is_blind(shrink)))
        scale_down_refuse(shrink, shrink->words);
    else if (!request->nodes && request->view->node_label)
        scale_down_refuse(shrink, "which instance is to leave can be told by its node only: set "
                                  "`nodes.cluster` to the cluster that the group belongs to");
    else
        scale_down_choose(shrink);
    return shrink;
}

/* The calls of the adapter */

/* How often and how long an operation is polled after a change: an early error of the provider (no
 * quota, no machines) is reported with the action. */
#define POLL_EVERY_US (2 * AS_US_PER_S)
#define POLL_MAX_US   (60 * AS_US_PER_S)

struct node_group {
    struct as_target_port port;
    const struct as_access_env *env;
    const struct as_group_provider *provider;
    struct as_account *account;
    struct as_terminator *terminator;
    struct unregistered *unregistered;
    const struct as_clusters *clusters;
    LIST_HEAD(, call) calls;
};

/* One observe (scaled is NULL) or scale. */
struct call {
    LIST_ENTRY(call) entry;
    struct node_group *owner;
    struct as_target_ref *ref;
    uint64_t call_id;
    as_target_observed_fn *observed;
    as_target_scaled_fn *scaled;
    void *context;
    as_mono_time began;
    struct as_scale_request wanted; /* of a scale */
    bool with_nodes, with_members;  /* of an observe */
    struct as_group_op op;          /* the present one */
    struct as_account_call *transfer;
    struct as_nodes_reading *reading;
    struct scale_down *shrink;
    struct as_terminator_return *returning;
    struct as_cluster_link *cluster; /* whose nodes the instances are; NULL: none */
    struct as_terminator_group leaves;
    struct as_terminator_view sight; /* the group without what leaves */
    int32_t size;                    /* the provider's */
    int32_t returned;                /* nodes that were to leave, and are back in service */
    struct as_cluster_ask *ask;
    struct as_arena texts; /* of `names` and `seen` */
    const char **names;    /* of the group's nodes */
    size_t name_count;
    struct as_nodes_seen seen;
    struct as_group_members members;
    struct as_timer *timer;
    int32_t ready;   /* running instances; if the group has nodes, those with a ready node */
    char *operation; /* started by the change; NULL: none */
    as_mono_time poll_at, poll_until;
    char shortage[AS_MESSAGE_SIZE]; /* why instances that are taken back did not come; "" */
    unsigned attempts;
    int32_t to;      /* for the provider */
    int32_t reached; /* if it is a step */
    struct as_provider_call request;
    struct as_outcome outcome;
};

static void node_group_free_call(struct call *call)
{
    if (call->transfer)
        as_account_cancel(call->transfer);
    if (call->reading)
        as_nodes_read_cancel(call->reading);
    if (call->shrink)
        scale_down_cancel(call->shrink);
    if (call->returning)
        as_terminator_return_cancel(call->returning);
    if (call->ask)
        as_cluster_watch_cancel(call->ask);
    as_arena_deinit(&call->texts);
    if (call->timer)
        call->owner->env->loop->cancel_timer(call->owner->env->loop, call->timer);
    as_cloud_op_deinit(&call->op.op);
    as_target_ref_free(call->ref);
    as_scale_request_deinit(&call->wanted);
    free(call->operation);
    LIST_REMOVE(call, entry);
    free(call);
}

/* The instances of the group are not known. */
static bool is_size_only(const struct call *call)
{
    const struct as_nodes_config *nodes = call->wanted.nodes;
    return call->owner->provider->is_conditional && !(nodes && nodes->select);
}

static void take_outcome(struct call *call)
{
    const struct as_group_provider *provider = call->owner->provider;
    call->attempts += call->op.op.sent;
    if (provider->take_outcome)
        provider->take_outcome(&call->op, &call->outcome, &call->request);
    else
        as_fault_take(&call->op, &call->outcome, &call->request);
}

static void node_group_refuse(struct call *call, enum as_reason reason, const char *message)
{
    as_outcome_init_local(&call->outcome, reason, message);
}

static void node_group_report_observed(const struct call *call)
{
    const struct as_group_view *view = &call->op.view;
    struct as_observation observation = {.min = -1, .max = -1};
    as_outcome_fill_observation(&call->outcome, &observation);
    if (call->outcome.reason == AS_REASON_APPLIED) {
        observation.replicas = call->sight.size;
        observation.status_replicas = call->ready;
        observation.marked = view->size - call->sight.size;
        observation.min = view->min;
        observation.max = call->sight.max;
        /* What the provider works on does not keep nodes from coming back. */
        observation.in_progress = view->in_progress && call->sight.returnable == 0;
        observation.lacks_capacity = view->shortage && as_group_count_present(view) < view->size;
        observation.gap_since = view->shortage_since;
        observation.drain_failed = call->sight.failed;
        observation.names_instances = !view->chooses && !is_size_only(call);
        observation.is_relative = call->owner->provider->is_relative;
        observation.backing = view->backing;
        observation.backing_count = view->backing_count;
        memcpy(observation.version, view->version, sizeof(observation.version));
        observation.nodes = call->with_nodes ? &call->seen : NULL;
        observation.members = call->with_members ? &call->members : NULL;
    }
    call->observed(call->context, call->call_id, &observation);
}

static void node_group_report_scaled(const struct call *call)
{
    const bool is_step = call->outcome.reason == AS_REASON_APPLIED || call->outcome.is_accepted;
    struct as_scale_result result = {
        .attempts = call->attempts,
        .is_partial = is_step && call->reached != call->wanted.to,
        .reached = call->reached,
        .returned = call->returned,
    };
    as_outcome_fill_result(&call->outcome, &result);
    if (result.outcome == AS_REASON_APPLIED && !*result.message)
        memcpy(result.message, call->shortage, sizeof(result.message));
    memcpy(result.method, call->request.method, sizeof(result.method));
    memcpy(result.path, call->request.path, sizeof(result.path));
    call->scaled(call->context, call->call_id, &result);
}

static void node_group_finish(struct call *call)
{
    if (call->scaled)
        node_group_report_scaled(call);
    else
        node_group_report_observed(call);
    node_group_free_call(call);
}

static void node_group_op(struct call *call, enum as_group_verb verb, as_account_done_fn *done)
{
    struct as_group_op *group = &call->op;
    as_cloud_op_deinit(&group->op);
    as_account_init_op(call->owner->account, group);
    group->verb = verb;
    group->group = call->ref;
    group->credential = call->wanted.credential;
    group->from = call->size;
    group->to = call->to;
    group->version = call->wanted.version;
    group->is_size_only = is_size_only(call);
    group->select = call->wanted.nodes ? call->wanted.nodes->select : NULL;
    group->idempotency = call->wanted.decision_id;
    group->operation = call->operation;
    call->transfer = as_account_start(call->owner->account, group, done, call);
}

static as_mono_time node_group_get_mono(const struct call *call)
{
    return call->owner->env->clock->get_mono(call->owner->env->clock);
}

static void node_group_end_polling(struct call *call)
{
    if (as_fault_has_failed(&call->op))
        as_fault_take_end(&call->op, &call->outcome);
    else if (call->op.op.fault != AS_CLOUD_OP_OK)
        as_outcome_set_message(&call->outcome, call->op.op.message);
    node_group_finish(call);
}

static void wait_to_poll(struct call *call);

static void node_group_polled(void *context)
{
    struct call *call = context;
    call->transfer = NULL;
    call->poll_at.us =
        as_time_add(node_group_get_mono(call).us, as_fault_get_pause(&call->op, POLL_EVERY_US));
    if (as_fault_is_open(&call->op) && call->poll_at.us <= call->poll_until.us)
        wait_to_poll(call);
    else
        node_group_end_polling(call);
}

/* A stop does not wait for the end of an accepted change. */
static void poll_again(void *context)
{
    struct call *call = context;
    call->timer = NULL;
    if (as_access_get_permit(call->owner->env) == AS_PERMIT_FINISH)
        node_group_end_polling(call);
    else if (node_group_get_mono(call).us < call->poll_at.us)
        wait_to_poll(call);
    else
        node_group_op(call, AS_GROUP_POLL, node_group_polled);
}

/* Waits in short steps, so that a stop is noticed. */
static void wait_to_poll(struct call *call)
{
    struct as_loop *loop = call->owner->env->loop;
    const int64_t left_us = call->poll_at.us - node_group_get_mono(call).us;
    const int64_t step_us = left_us < POLL_EVERY_US ? left_us : POLL_EVERY_US;
    call->timer = loop->start_timer(loop, step_us, poll_again, call);
}

/* Reads how far a partly accepted change has come. If this fails, the next observations will
 * tell. */
static void part_read(void *context)
{
    struct call *call = context;
    const struct as_group_view *view = &call->op.view;
    call->transfer = NULL;
    call->attempts += call->op.op.sent;
    if (call->op.op.fault == AS_CLOUD_OP_OK && view->size > call->size && view->size <= call->to) {
        call->reached += view->size - call->size;
        as_fault_accept_part(&call->outcome);
    }
    node_group_finish(call);
}

static void node_group_changed(void *context)
{
    struct call *call = context;
    const bool is_up = call->wanted.to > call->wanted.from;
    call->transfer = NULL;
    take_outcome(call);
    if (call->outcome.reason != AS_REASON_APPLIED && is_up) {
        call->reached = call->wanted.from + call->returned;
        if (call->returned > 0)
            as_fault_accept_part(&call->outcome);
        if (call->op.has_begun) {
            node_group_op(call, AS_GROUP_READ, part_read);
            return;
        }
    }
    if (call->outcome.reason == AS_REASON_APPLIED && is_up)
        as_terminator_note_increase(call->owner->terminator, call->ref, call->to - call->size);
    if (call->outcome.reason != AS_REASON_APPLIED || !call->op.started) {
        node_group_finish(call);
        return;
    }
    call->operation = as_xstrdup(call->op.started);
    call->poll_at.us = as_time_add(node_group_get_mono(call).us, as_fault_get_pause(&call->op, 0));
    call->poll_until.us = as_time_add(node_group_get_mono(call).us, POLL_MAX_US);
    if (call->poll_at.us <= call->poll_until.us)
        wait_to_poll(call);
    else
        node_group_finish(call);
}

static bool node_group_has_changed(const struct call *call)
{
    const struct as_group_view *view = &call->op.view;
    const struct as_scale_request *wanted = &call->wanted;
    return call->sight.size != wanted->from ||
           (view->version[0] && wanted->version[0] && strcmp(view->version, wanted->version) != 0);
}

static bool node_group_has_name(const char *const *names, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(names[i], name) == 0)
            return true;
    }
    return false;
}

/* Other resources were not compared with those of other targets. */
static bool has_other_backing(const struct call *call)
{
    const struct as_group_view *view = &call->op.view;
    const struct as_scale_request *wanted = &call->wanted;
    for (size_t i = 0; wanted->backing_count > 0 && i < view->backing_count; i++) {
        if (!node_group_has_name(wanted->backing, wanted->backing_count, view->backing[i]))
            return true;
    }
    return false;
}

static bool is_beyond_bounds(const struct call *call)
{
    const struct as_terminator_view *sight = &call->sight;
    const int32_t to = call->wanted.to, min = call->op.view.min;
    return (sight->max >= 0 && to > sight->max && to > sight->size) ||
           (min >= 0 && to < min && to < sight->size);
}

/* Why the provider cannot make the change now; NULL: it can, or is not needed for it. */
static const char *node_group_find_closed(const struct call *call)
{
    const struct as_group_view *view = &call->op.view;
    const struct as_scale_request *wanted = &call->wanted;
    if (wanted->to > wanted->from)
        return wanted->to - wanted->from > call->sight.returnable ? view->no_increase : NULL;
    return wanted->is_take_back && as_group_count_present(view) < view->size ? NULL
                                                                             : view->no_removal;
}

/* Whether the group's present state does not allow the change: then the call is refused. */
static bool node_group_find_obstacle(struct call *call)
{
    const struct as_group_view *view = &call->op.view;
    const char *closed = node_group_find_closed(call);
    struct as_error error = AS_ERROR_INIT;
    enum as_reason reason = AS_REASON_REJECTED;
    if (node_group_has_changed(call)) {
        reason = AS_REASON_CONFLICT;
        as_error_set(&error, "the group has changed since it was decided: its size is %d",
                     call->sight.size);
    } else if (has_other_backing(call)) {
        reason = AS_REASON_CONFLICT;
        as_error_set(&error, "the resources behind the group have changed since it was decided");
    } else if (is_beyond_bounds(call)) {
        as_error_set(&error, "%d is not within the group's own bounds, %d and %d", call->wanted.to,
                     view->min, call->sight.max);
    } else if (closed) {
        as_error_set(&error, "%s", closed);
    } else {
        return false;
    }
    node_group_refuse(call, reason, error.text);
    return true;
}

static bool is_controlled(struct call *call)
{
    struct as_error error = AS_ERROR_INIT;
    if (!call->op.view.controller)
        return false;
    as_error_set(&error,
                 "%s sets the size of this group: turn it off there, or do not scale it here",
                 call->op.view.controller);
    node_group_refuse(call, AS_REASON_REJECTED, error.text);
    return true;
}

/* The cluster whose nodes are the instances, if any. False after refusing the call. */
static bool find_cluster(struct call *call)
{
    const struct as_nodes_config *nodes = call->wanted.nodes;
    if (!nodes || !nodes->cluster || is_size_only(call))
        return true;
    struct as_cluster_link *cluster = as_clusters_find(call->owner->clusters, nodes->cluster);
    if (cluster && cluster->access) {
        call->cluster = cluster;
        call->leaves.drains = cluster->drains;
        return true;
    }
    struct as_error error = AS_ERROR_INIT;
    as_error_set(&error, "%s", cluster ? cluster->missing.text : "there is no such one");
    as_error_wrap(&error, "the nodes of the group are in cluster %s", nodes->cluster);
    node_group_refuse(call, AS_REASON_UNREACHABLE, error.text);
    return false;
}

/* ---- scaling up ---- */

/* Nodes that were to leave come back first; the rest is asked of the provider. */
static void ask_for_rest(struct call *call)
{
    const int32_t rest = call->wanted.to - call->wanted.from - call->returned;
    if (rest <= 0) {
        call->outcome.reason = AS_REASON_APPLIED;
        node_group_finish(call);
        return;
    }
    call->to = call->size + rest;
    node_group_op(call, AS_GROUP_GROW, node_group_changed);
}

static void node_group_returned(void *context, int32_t count)
{
    struct call *call = context;
    call->returning = NULL;
    call->returned = count;
    ask_for_rest(call);
}

static void node_group_grow(struct call *call)
{
    const int32_t more = call->wanted.to - call->wanted.from;
    call->returning = as_terminator_take_back(call->owner->terminator, call->ref, more,
                                              node_group_returned, call);
    if (!call->returning)
        ask_for_rest(call);
}

/* ---- scaling down ---- */

static void node_group_shrunk(void *context, const struct scale_down_result *result)
{
    struct call *call = context;
    call->shrink = NULL;
    call->outcome = result->outcome;
    call->attempts += result->attempts;
    call->request = result->call;
    call->reached = result->reached;
    node_group_finish(call);
}

/* Whether it was seen to be no node for ready_timeout. */
static bool has_no_node(const struct call *call, const struct as_instance *instance)
{
    return unregistered_has(call->owner->unregistered, call->ref->key, instance->id,
                            call->wanted.nodes->ready_timeout_us);
}

/* Of an instance that is no node. Not every provider says when it was made. */
static bool node_group_has_unregistered(const struct call *call, const struct as_instance *instance)
{
    const struct as_clock *clock = call->owner->env->clock;
    if (instance->state == AS_INSTANCE_FAILED)
        return true;
    return instance->created.set ? clock->get_wall(clock).us - instance->created.at.us >=
                                       call->wanted.nodes->ready_timeout_us
                                 : has_no_node(call, instance);
}

/* Beyond doubt: neither what we are about to remove, nor what somebody protects. */
static bool is_removable(const struct call *call, const struct as_instance_node *node)
{
    const struct as_instance *instance = node->instance;
    return !node->is_found && instance->state != AS_INSTANCE_LEAVING && !instance->is_protected &&
           node_group_has_unregistered(call, instance) && has_no_node(call, instance) &&
           !as_terminator_has(call->owner->terminator, call->ref, instance->id);
}

/* `nodes`: NULL: the instances are not nodes. */
static void node_group_shrink(struct call *call, const struct as_instance_node *nodes, size_t count)
{
    bool *removable = NULL;
    if (call->wanted.is_clean_up) {
        removable = as_arena_alloc(&call->texts, count, sizeof(*removable));
        for (size_t i = 0; i < count; i++)
            removable[i] = is_removable(call, &nodes[i]);
    }
    const struct scale_down_request request = {
        .env = call->owner->env,
        .account = call->owner->account,
        .terminator = call->owner->terminator,
        .group = &call->leaves,
        .wanted = &call->wanted,
        .view = &call->op.view,
        .nodes = nodes,
        .node_count = count,
        .had_nodes = unregistered_had_node(call->owner->unregistered, call->ref->key),
        .removable = removable,
    };
    call->shrink = scale_down_start(&request, node_group_shrunk, call);
}

/* Instances that never came have no names: for these only the size is lowered. Instances that came
 * but do not serve are removed by name; if there are both kinds, the next time. */
static void node_group_take_back(struct call *call, const struct as_instance_node *nodes,
                                 size_t count)
{
    const struct as_group_view *view = &call->op.view;
    const int32_t present = as_group_count_present(view),
                  terminating = call->size - call->sight.size;
    if (view->shortage)
        as_str_copy_line(view->shortage, call->shortage, sizeof(call->shortage));
    if (present >= view->size) {
        node_group_shrink(call, nodes, count);
        return;
    }
    call->to = call->wanted.to + terminating;
    if (call->to < present)
        call->to = present;
    call->reached = call->to - terminating;
    node_group_op(call, AS_GROUP_TAKE_BACK, node_group_changed);
}

/* The provider chooses which instances leave: never where the decision has chosen. */
static void node_group_lower(struct call *call)
{
    if (call->wanted.take_count > 0) {
        node_group_refuse(call, AS_REASON_REJECTED, call->op.view.chooses);
        node_group_finish(call);
        return;
    }
    call->to = call->wanted.to + call->size - call->sight.size;
    node_group_op(call, AS_GROUP_TAKE_BACK, node_group_changed);
}

static void node_group_change(struct call *call, const struct as_instance_node *nodes, size_t count)
{
    if (node_group_find_obstacle(call))
        node_group_finish(call);
    else if (call->wanted.to < call->wanted.from && call->op.view.chooses)
        node_group_lower(call);
    else if (call->wanted.to > call->wanted.from)
        node_group_grow(call);
    else if (call->wanted.is_take_back)
        node_group_take_back(call, nodes, count);
    else
        node_group_shrink(call, nodes, count);
}

/* ---- reading ---- */

static int node_group_compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Instances that are no nodes (yet); of those without a time it may still be said that they come.
 */
static void node_group_count_members(struct call *call, const struct as_instance_node *nodes,
                                     size_t count)
{
    int64_t missing = call->size;
    call->members = (struct as_group_members){.nodes = call->names};
    for (size_t i = 0; i < count; i++) {
        missing -= nodes[i].instance->state != AS_INSTANCE_LEAVING;
        if (nodes[i].is_found || nodes[i].instance->state == AS_INSTANCE_LEAVING)
            continue;
        if (node_group_has_unregistered(call, nodes[i].instance))
            call->members.overdue++;
        else
            call->members.young++;
        call->members.removable += is_removable(call, &nodes[i]);
    }
    call->members.coming = call->members.young + (missing > 0 ? (int32_t)missing : 0);
    qsort(call->names, call->name_count, sizeof(*call->names), node_group_compare_names);
    call->members.node_count = call->name_count;
}

/* A node that leaves does not count any more. */
static void count_ready(struct call *call, const struct as_instance_node *nodes, size_t count)
{
    call->ready = 0;
    call->name_count = 0;
    call->names = as_arena_alloc(&call->texts, count, sizeof(*call->names));
    for (size_t i = 0; i < count; i++) {
        const struct as_instance *instance = nodes[i].instance;
        call->ready += instance->state == AS_INSTANCE_RUNNING && nodes[i].is_found &&
                       nodes[i].node.is_ready &&
                       !as_terminator_has(call->owner->terminator, call->ref, instance->id);
        if (nodes[i].is_found && !nodes[i].is_ambiguous)
            call->names[call->name_count++] = as_arena_strdup(&call->texts, nodes[i].node.name);
    }
    node_group_count_members(call, nodes, count);
}

static void node_group_count_unregistered(struct call *call, const struct as_instance_node *nodes,
                                          size_t count)
{
    unregistered_on_read(call->owner->unregistered, call->ref->key, call->wanted.nodes->cluster,
                         nodes, count, node_group_get_mono(call));
}

static void nodes_listed(void *context, const struct as_outcome *outcome,
                         const struct as_instance_node *nodes, size_t count)
{
    struct call *call = context;
    call->reading = NULL;
    if (outcome->reason != AS_REASON_APPLIED) {
        call->outcome = *outcome;
        node_group_finish(call);
        return;
    }
    node_group_count_unregistered(call, nodes, count);
    as_terminator_observe(call->owner->terminator, &call->leaves, &call->op.view, nodes, count,
                          &call->sight);
    if (call->scaled) {
        node_group_change(call, nodes, count);
        return;
    }
    count_ready(call, nodes, count);
    node_group_finish(call);
}

static bool needs_pods(const struct call *call)
{
    return call->scaled && call->wanted.to < call->wanted.from && !call->wanted.is_clean_up;
}

static void list_nodes(struct call *call)
{
    call->reading = as_nodes_read_start(&call->cluster->client, &call->op.view, needs_pods(call),
                                        call->wanted.nodes->unneeded.keep, nodes_listed, call);
}

static void node_group_see_nodes(struct call *call, const struct as_cluster *cluster)
{
    const struct as_clock *clock = call->owner->env->clock;
    const struct as_nodes_see_request request = {.cluster = cluster,
                                                 .group = call->ref->key,
                                                 .names = call->names,
                                                 .name_count = call->name_count,
                                                 .coming = call->members.coming,
                                                 .config = call->wanted.nodes,
                                                 .now = clock->get_wall(clock),
                                                 .texts = &call->texts};
    as_nodes_see(call->cluster->seer, &request, &call->seen);
}

/* Facts do not say whose a mark is: a group with marked nodes is listed. */
static bool has_leaving(const struct call *call, const struct as_instance_nodes *of)
{
    for (size_t i = 0; i < of->count; i++) {
        if (of->found[i].mark ||
            as_terminator_has(call->owner->terminator, call->ref, of->found[i].instance->id))
            return true;
    }
    return false;
}

/* Whether a change may rest on these facts. A watch tells a little later than a list: a new node
 * may not be among them yet, and its instance must not leave as if it had none. */
static bool is_certain(const struct call *call, const struct as_instance_nodes *of)
{
    if (has_leaving(call, of))
        return false;
    if (call->wanted.to > call->wanted.from)
        return true;
    for (size_t i = 0; i < of->count; i++) {
        if (!of->found[i].is_found || of->found[i].is_ambiguous)
            return false;
    }
    return of->count > 0 && !of->label;
}

static void change_by_facts(struct call *call, struct as_instance_nodes *of)
{
    if (!is_certain(call, of))
        list_nodes(call);
    else if (needs_pods(call))
        call->reading = as_nodes_read_pods_start(
            &call->cluster->client, of, call->wanted.nodes->unneeded.keep, nodes_listed, call);
    else
        nodes_listed(call, &(struct as_outcome){.reason = AS_REASON_APPLIED}, of->found, of->count);
}

static void use_facts(struct call *call, const struct as_cluster *cluster)
{
    AS_CLEANUP(as_instance_nodes_deinit) struct as_instance_nodes of;
    as_instance_nodes_init(&of, &call->op.view);
    as_instance_nodes_match_facts(&of, cluster);
    if (call->scaled) {
        change_by_facts(call, &of);
        return;
    }
    node_group_count_unregistered(call, of.found, of.count);
    count_ready(call, of.found, of.count);
    if (call->with_nodes)
        node_group_see_nodes(call, cluster);
    if (has_leaving(call, &of)) {
        list_nodes(call);
        return;
    }
    as_terminator_observe(call->owner->terminator, &call->leaves, &call->op.view, of.found,
                          of.count, &call->sight);
    node_group_finish(call);
}

/* Without facts there is no value of a source `nodes`, but the size counts as ever. */
static void node_group_facts_known(void *context, const struct as_cluster *cluster,
                                   const struct as_error *error)
{
    struct call *call = context;
    call->ask = NULL;
    if (cluster) {
        use_facts(call, cluster);
        return;
    }
    call->seen.error = as_arena_strdup(&call->texts, error->text);
    list_nodes(call);
}

/* A change rests on what was received after its call began: by the watch, else by a list. Only an
 * observation of a rule with `nodes` starts the watches. */
static void read_nodes(struct call *call)
{
    struct as_cluster_watch *watch = call->cluster->watch;
    const struct as_cluster *cluster;
    if (call->with_nodes)
        call->ask = as_cluster_watch_ask(watch, node_group_facts_known, call);
    else if ((cluster = call->scaled ? as_cluster_watch_find_since(watch, call->began)
                                     : as_cluster_watch_find(watch)))
        use_facts(call, cluster);
    else
        list_nodes(call);
}

static void node_group_was_read(void *context)
{
    struct call *call = context;
    const struct as_group_view *view = &call->op.view;
    call->transfer = NULL;
    take_outcome(call);
    call->size = view->size;
    call->sight = (struct as_terminator_view){.size = view->size, .max = view->max};
    call->ready = is_size_only(call) ? view->size : as_group_count_running(view);
    call->seen.error = "the instances of the group are no nodes of a cluster";
    if (call->outcome.reason != AS_REASON_APPLIED || is_controlled(call) || !find_cluster(call))
        node_group_finish(call);
    else if (call->cluster)
        read_nodes(call);
    else if (call->scaled)
        node_group_change(call, NULL, 0);
    else
        node_group_finish(call);
}

/* ---- port ---- */

static struct call *node_group_new_call(struct as_target_port *port, uint64_t call_id,
                                        const struct as_target_ref *ref, void *context)
{
    struct node_group *group = (struct node_group *)port;
    struct call *call = as_xcalloc(1, sizeof(*call));
    call->owner = group;
    call->call_id = call_id;
    call->ref = as_target_ref_copy(ref);
    call->leaves.ref = call->ref;
    call->context = context;
    call->began = node_group_get_mono(call);
    as_account_init_op(group->account, &call->op);
    LIST_INSERT_HEAD(&group->calls, call, entry);
    return call;
}

static void restore_templates(const struct node_group *group,
                              const struct as_observe_request *request)
{
    const char *name = request->with_nodes && request->nodes ? request->nodes->cluster : NULL;
    const struct as_cluster_link *cluster = name ? as_clusters_find(group->clusters, name) : NULL;
    if (cluster && cluster->access)
        as_nodes_seer_restore(cluster->seer, request->templates, request->template_count);
}

static void node_group_observe(struct as_target_port *self, uint64_t call_id,
                               const struct as_target_ref *ref,
                               const struct as_observe_request *request,
                               as_target_observed_fn *done, void *context)
{
    struct call *call = node_group_new_call(self, call_id, ref, context);
    call->observed = done;
    call->with_nodes = request->with_nodes;
    call->with_members = request->with_members;
    restore_templates(call->owner, request);
    as_scale_request_copy(
        &(struct as_scale_request){.credential = request->credential, .nodes = request->nodes},
        &call->wanted);
    call->leaves.config = call->wanted.nodes;
    node_group_op(call, AS_GROUP_READ, node_group_was_read);
}

static void node_group_scale(struct as_target_port *self, uint64_t call_id,
                             const struct as_target_ref *ref,
                             const struct as_scale_request *request, as_target_scaled_fn *done,
                             void *context)
{
    struct call *call = node_group_new_call(self, call_id, ref, context);
    call->scaled = done;
    as_scale_request_copy(request, &call->wanted);
    call->leaves.config = call->wanted.nodes;
    call->reached = call->to = request->to;
    call->size = request->from;
    if (is_size_only(call))
        node_group_op(call, request->to > request->from ? AS_GROUP_GROW : AS_GROUP_TAKE_BACK,
                      node_group_changed);
    else
        node_group_op(call, AS_GROUP_READ, node_group_was_read);
}

static bool node_group_is_idle(const struct as_target_port *self)
{
    const struct node_group *group = (const struct node_group *)self;
    return LIST_EMPTY(&group->calls) && as_terminator_is_idle(group->terminator);
}

static void node_group_close_port(struct as_target_port *self)
{
    struct node_group *group = (struct node_group *)self;
    struct call *call;
    while ((call = LIST_FIRST(&group->calls)))
        node_group_free_call(call);
    as_terminator_free(group->terminator);
    unregistered_free(group->unregistered);
    as_account_free(group->account);
    free(group);
}

void as_node_group_retire(struct as_target_port *port)
{
    as_terminator_retire(((struct node_group *)port)->terminator);
}

struct as_target_port *as_node_group_new(const struct as_group_provider *provider,
                                         const struct as_provider_settings *settings,
                                         const struct as_access_env *env,
                                         const struct as_clusters *clusters,
                                         struct as_cluster_link *cluster)
{
    struct node_group *group = as_xcalloc(1, sizeof(*group));
    group->port = (struct as_target_port){node_group_observe,
                                          node_group_scale,
                                          node_group_is_idle,
                                          node_group_close_port,
                                          NULL,
                                          NULL};
    group->env = env;
    group->provider = provider;
    group->clusters = clusters;
    group->account = as_account_new(provider, settings, env, cluster ? &cluster->client : NULL);
    group->terminator = as_terminator_new(env, group->account);
    group->unregistered = unregistered_new();
    LIST_INIT(&group->calls);
    return &group->port;
}
