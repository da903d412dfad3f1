/*
 * Node groups of an account: see the header. Before a change the group is read again, because most
 * clouds have no conditional change; a change since the decision is a conflict.
 *
 * Long because the course of one call is read as one.
 */
#include "node_group.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bsd/sys/queue.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>
#include <alertscaler/decide/target.h>

#include "node_leave.h"
#include "nodeless.h"
#include "provider_account.h"
#include "provider_fault.h"
#include "shrink.h"
#include <alertscaler/kube/instance_nodes.h>
#include <alertscaler/kube/scale_request.h>
#include <alertscaler/kube/target_outcome.h>

/* How often and how long an operation is polled after a change: an early error of the provider (no
 * quota, no machines) is reported with the action. */
#define POLL_EVERY_US (2 * AS_US_PER_S)
#define POLL_MAX_US   (60 * AS_US_PER_S)

struct node_group {
    struct as_target_port port;
    const struct as_access_env *env;
    const struct as_group_provider *provider;
    struct as_account *account;
    struct as_leave *leave;
    struct as_nodeless *nodeless;
    const struct as_clusters *clusters;
    LIST_HEAD(, call) calls;
};

/* One observe (scaled is NULL) or scale. */
struct call {
    LIST_ENTRY(call) entry;
    struct node_group *owner;
    struct as_target_ref *ref;
    uint64_t ticket;
    as_target_observed_fn *observed;
    as_target_scaled_fn *scaled;
    void *context;
    struct as_scale_request wanted; /* of a scale */
    bool with_nodes, with_members;  /* of an observe */
    struct as_group_talk talk;      /* the present one */
    struct as_account_call *transfer;
    struct as_nodes_reading *reading;
    struct as_shrink *shrink;
    struct as_leave_return *returning;
    struct as_cluster_link *cluster; /* whose nodes the instances are; NULL: none */
    struct as_leave_group leaves;
    struct as_leave_sight sight; /* the group without what leaves */
    int32_t size;                /* the provider's */
    int32_t returned;            /* nodes that were to leave, and are back in service */
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

static void free_call(struct call *call)
{
    if (call->transfer)
        as_account_cancel(call->transfer);
    if (call->reading)
        as_nodes_read_cancel(call->reading);
    if (call->shrink)
        as_shrink_cancel(call->shrink);
    if (call->returning)
        as_leave_return_cancel(call->returning);
    if (call->ask)
        as_cluster_watch_cancel(call->ask);
    as_arena_deinit(&call->texts);
    if (call->timer)
        call->owner->env->loop->cancel_timer(call->owner->env->loop, call->timer);
    as_talk_deinit(&call->talk.talk);
    as_target_ref_free(call->ref);
    as_scale_request_deinit(&call->wanted);
    free(call->operation);
    LIST_REMOVE(call, entry);
    free(call);
}

static void take_outcome(struct call *call)
{
    call->attempts += call->talk.talk.sent;
    as_fault_take(&call->talk, &call->outcome, &call->request);
}

static void refuse(struct call *call, enum as_reason reason, const char *message)
{
    as_outcome_init_local(&call->outcome, reason, message);
}

static void tell_observed(const struct call *call)
{
    const struct as_group_view *view = &call->talk.view;
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
        observation.lacking_since = view->shortage_since;
        observation.drain_failed = call->sight.failed;
        observation.names_instances = !view->chooses;
        observation.is_relative = call->owner->provider->is_relative;
        observation.backing = view->backing;
        observation.backing_count = view->backing_count;
        memcpy(observation.version, view->version, sizeof(observation.version));
        observation.nodes = call->with_nodes ? &call->seen : NULL;
        observation.members = call->with_members ? &call->members : NULL;
    }
    call->observed(call->context, call->ticket, &observation);
}

static void tell_scaled(const struct call *call)
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
    call->scaled(call->context, call->ticket, &result);
}

static void finish(struct call *call)
{
    if (call->scaled)
        tell_scaled(call);
    else
        tell_observed(call);
    free_call(call);
}

static void talk(struct call *call, enum as_group_verb verb, as_account_done_fn *done)
{
    struct as_group_talk *group = &call->talk;
    as_talk_deinit(&group->talk);
    as_account_init_talk(call->owner->account, group);
    group->verb = verb;
    group->group = call->ref;
    group->credential = call->wanted.credential;
    group->from = call->size;
    group->to = call->to;
    group->version = call->wanted.version;
    group->select = call->wanted.nodes ? call->wanted.nodes->select : NULL;
    group->idempotency = call->wanted.decision_id;
    group->operation = call->operation;
    call->transfer = as_account_start(call->owner->account, group, done, call);
}

static as_mono_time get_mono(const struct call *call)
{
    return call->owner->env->clock->get_mono(call->owner->env->clock);
}

static void end_polling(struct call *call)
{
    if (as_fault_has_failed(&call->talk))
        as_fault_take_end(&call->talk, &call->outcome);
    else if (call->talk.talk.fault != AS_TALK_OK)
        as_outcome_set_message(&call->outcome, call->talk.talk.message);
    finish(call);
}

static void wait_to_poll(struct call *call);

static void polled(void *context)
{
    struct call *call = context;
    call->transfer = NULL;
    call->poll_at.us =
        as_time_add(get_mono(call).us, as_fault_get_pause(&call->talk, POLL_EVERY_US));
    if (as_fault_is_open(&call->talk) && call->poll_at.us <= call->poll_until.us)
        wait_to_poll(call);
    else
        end_polling(call);
}

/* A stop does not wait for the end of an accepted change. */
static void poll_again(void *context)
{
    struct call *call = context;
    call->timer = NULL;
    if (as_access_get_permit(call->owner->env) == AS_PERMIT_FINISH)
        end_polling(call);
    else if (get_mono(call).us < call->poll_at.us)
        wait_to_poll(call);
    else
        talk(call, AS_GROUP_POLL, polled);
}

/* Waits in short steps, so that a stop is noticed. */
static void wait_to_poll(struct call *call)
{
    struct as_loop *loop = call->owner->env->loop;
    const int64_t left_us = call->poll_at.us - get_mono(call).us;
    const int64_t step_us = left_us < POLL_EVERY_US ? left_us : POLL_EVERY_US;
    call->timer = loop->start_timer(loop, step_us, poll_again, call);
}

/* Reads how far a partly accepted change has come. If this fails, the next observations will
 * tell. */
static void part_read(void *context)
{
    struct call *call = context;
    const struct as_group_view *view = &call->talk.view;
    call->transfer = NULL;
    call->attempts += call->talk.talk.sent;
    if (call->talk.talk.fault == AS_TALK_OK && view->size > call->size && view->size <= call->to) {
        call->reached += view->size - call->size;
        as_fault_accept_part(&call->outcome);
    }
    finish(call);
}

static void changed(void *context)
{
    struct call *call = context;
    const bool is_up = call->wanted.to > call->wanted.from;
    call->transfer = NULL;
    take_outcome(call);
    if (call->outcome.reason != AS_REASON_APPLIED && is_up) {
        call->reached = call->wanted.from + call->returned;
        if (call->returned > 0)
            as_fault_accept_part(&call->outcome);
        if (call->talk.has_begun) {
            talk(call, AS_GROUP_READ, part_read);
            return;
        }
    }
    if (call->outcome.reason == AS_REASON_APPLIED && is_up)
        as_leave_note_growth(call->owner->leave, call->ref, call->to - call->size);
    if (call->outcome.reason != AS_REASON_APPLIED || !call->talk.started) {
        finish(call);
        return;
    }
    call->operation = as_xstrdup(call->talk.started);
    call->poll_at.us = as_time_add(get_mono(call).us, as_fault_get_pause(&call->talk, 0));
    call->poll_until.us = as_time_add(get_mono(call).us, POLL_MAX_US);
    if (call->poll_at.us <= call->poll_until.us)
        wait_to_poll(call);
    else
        finish(call);
}

static bool has_changed(const struct call *call)
{
    const struct as_group_view *view = &call->talk.view;
    const struct as_scale_request *wanted = &call->wanted;
    return call->sight.size != wanted->from ||
           (view->version[0] && wanted->version[0] && strcmp(view->version, wanted->version) != 0);
}

static bool has_name(const char *const *names, size_t count, const char *name)
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
    const struct as_group_view *view = &call->talk.view;
    const struct as_scale_request *wanted = &call->wanted;
    for (size_t i = 0; wanted->backing_count > 0 && i < view->backing_count; i++) {
        if (!has_name(wanted->backing, wanted->backing_count, view->backing[i]))
            return true;
    }
    return false;
}

static bool is_beyond_bounds(const struct call *call)
{
    const struct as_leave_sight *sight = &call->sight;
    const int32_t to = call->wanted.to, min = call->talk.view.min;
    return (sight->max >= 0 && to > sight->max && to > sight->size) ||
           (min >= 0 && to < min && to < sight->size);
}

/* Why the provider cannot make the change now; NULL: it can, or is not needed for it. */
static const char *find_closed(const struct call *call)
{
    const struct as_group_view *view = &call->talk.view;
    const struct as_scale_request *wanted = &call->wanted;
    if (wanted->to > wanted->from)
        return wanted->to - wanted->from > call->sight.returnable ? view->no_growth : NULL;
    return wanted->is_take_back && as_group_count_present(view) < view->size ? NULL
                                                                             : view->no_removal;
}

/* Whether the group's present state does not allow the change: then the call is refused. */
static bool find_obstacle(struct call *call)
{
    const struct as_group_view *view = &call->talk.view;
    const char *closed = find_closed(call);
    struct as_error error = AS_ERROR_INIT;
    enum as_reason reason = AS_REASON_REJECTED;
    if (has_changed(call)) {
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
    refuse(call, reason, error.text);
    return true;
}

static bool is_controlled(struct call *call)
{
    struct as_error error = AS_ERROR_INIT;
    if (!call->talk.view.controller)
        return false;
    as_error_set(&error,
                 "%s sets the size of this group: turn it off there, or do not scale it here",
                 call->talk.view.controller);
    refuse(call, AS_REASON_REJECTED, error.text);
    return true;
}

/* The cluster whose nodes are the instances, if any. False after refusing the call. */
static bool find_cluster(struct call *call)
{
    const struct as_nodes_config *nodes = call->wanted.nodes;
    if (!nodes || !nodes->cluster)
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
    refuse(call, AS_REASON_UNREACHABLE, error.text);
    return false;
}

/* ---- scaling up ---- */

/* Nodes that were to leave come back first; the rest is asked of the provider. */
static void ask_for_rest(struct call *call)
{
    const int32_t rest = call->wanted.to - call->wanted.from - call->returned;
    if (rest <= 0) {
        call->outcome.reason = AS_REASON_APPLIED;
        finish(call);
        return;
    }
    call->to = call->size + rest;
    talk(call, AS_GROUP_GROW, changed);
}

static void returned(void *context, int32_t count)
{
    struct call *call = context;
    call->returning = NULL;
    call->returned = count;
    ask_for_rest(call);
}

static void grow(struct call *call)
{
    const int32_t more = call->wanted.to - call->wanted.from;
    call->returning = as_leave_take_back(call->owner->leave, call->ref, more, returned, call);
    if (!call->returning)
        ask_for_rest(call);
}

/* ---- scaling down ---- */

static void shrunk(void *context, const struct as_shrink_result *result)
{
    struct call *call = context;
    call->shrink = NULL;
    call->outcome = result->outcome;
    call->attempts += result->attempts;
    call->request = result->call;
    call->reached = result->reached;
    finish(call);
}

/* Whether it was seen to be no node for ready_timeout. */
static bool is_nodeless(const struct call *call, const struct as_instance *instance)
{
    return as_nodeless_has(call->owner->nodeless, call->ref->key, instance->id,
                           call->wanted.nodes->ready_timeout_us);
}

/* Of an instance that is no node. Not every provider says when it was made. */
static bool is_overdue(const struct call *call, const struct as_instance *instance)
{
    const struct as_clock *clock = call->owner->env->clock;
    if (instance->state == AS_INSTANCE_FAILED)
        return true;
    return instance->created.set ? clock->get_wall(clock).us - instance->created.at.us >=
                                       call->wanted.nodes->ready_timeout_us
                                 : is_nodeless(call, instance);
}

/* Beyond doubt: neither what we are about to remove, nor what somebody protects. */
static bool is_removable(const struct call *call, const struct as_instance_node *node)
{
    const struct as_instance *instance = node->instance;
    return !node->is_found && instance->state != AS_INSTANCE_LEAVING && !instance->is_protected &&
           is_overdue(call, instance) && is_nodeless(call, instance) &&
           !as_leave_has(call->owner->leave, call->ref, instance->id);
}

/* `nodes`: NULL: the instances are not nodes. */
static void shrink(struct call *call, const struct as_instance_node *nodes, size_t count)
{
    bool *removable = NULL;
    if (call->wanted.is_clean_up) {
        removable = as_arena_alloc(&call->texts, count, sizeof(*removable));
        for (size_t i = 0; i < count; i++)
            removable[i] = is_removable(call, &nodes[i]);
    }
    const struct as_shrink_request request = {
        .env = call->owner->env,
        .account = call->owner->account,
        .leave = call->owner->leave,
        .group = &call->leaves,
        .wanted = &call->wanted,
        .view = &call->talk.view,
        .nodes = nodes,
        .node_count = count,
        .had_nodes = as_nodeless_had_node(call->owner->nodeless, call->ref->key),
        .removable = removable,
    };
    call->shrink = as_shrink_start(&request, shrunk, call);
}

/* Instances that never came have no names: for these only the size is lowered. Instances that came
 * but do not serve are removed by name; if there are both kinds, the next time. */
static void take_back(struct call *call, const struct as_instance_node *nodes, size_t count)
{
    const struct as_group_view *view = &call->talk.view;
    const int32_t present = as_group_count_present(view), leaving = call->size - call->sight.size;
    if (view->shortage)
        as_str_copy_line(view->shortage, call->shortage, sizeof(call->shortage));
    if (present >= view->size) {
        shrink(call, nodes, count);
        return;
    }
    call->to = call->wanted.to + leaving;
    if (call->to < present)
        call->to = present;
    call->reached = call->to - leaving;
    talk(call, AS_GROUP_TAKE_BACK, changed);
}

/* The provider chooses which instances leave: never where the decision has chosen. */
static void lower(struct call *call)
{
    if (call->wanted.take_count > 0) {
        refuse(call, AS_REASON_REJECTED, call->talk.view.chooses);
        finish(call);
        return;
    }
    call->to = call->wanted.to + call->size - call->sight.size;
    talk(call, AS_GROUP_TAKE_BACK, changed);
}

static void change(struct call *call, const struct as_instance_node *nodes, size_t count)
{
    if (find_obstacle(call))
        finish(call);
    else if (call->wanted.to < call->wanted.from && call->talk.view.chooses)
        lower(call);
    else if (call->wanted.to > call->wanted.from)
        grow(call);
    else if (call->wanted.is_take_back)
        take_back(call, nodes, count);
    else
        shrink(call, nodes, count);
}

/* ---- reading ---- */

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Instances that are no nodes (yet); of those without a time it may still be said that they come.
 */
static void count_members(struct call *call, const struct as_instance_node *nodes, size_t count)
{
    int64_t missing = call->size;
    call->members = (struct as_group_members){.nodes = call->names};
    for (size_t i = 0; i < count; i++) {
        missing -= nodes[i].instance->state != AS_INSTANCE_LEAVING;
        if (nodes[i].is_found || nodes[i].instance->state == AS_INSTANCE_LEAVING)
            continue;
        if (is_overdue(call, nodes[i].instance))
            call->members.overdue++;
        else
            call->members.young++;
        call->members.removable += is_removable(call, &nodes[i]);
    }
    call->members.coming = call->members.young + (missing > 0 ? (int32_t)missing : 0);
    qsort(call->names, call->name_count, sizeof(*call->names), compare_names);
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
                       !as_leave_has(call->owner->leave, call->ref, instance->id);
        if (nodes[i].is_found && !nodes[i].is_ambiguous)
            call->names[call->name_count++] = as_arena_strdup(&call->texts, nodes[i].node.name);
    }
    count_members(call, nodes, count);
}

static void see_nodeless(struct call *call, const struct as_instance_node *nodes, size_t count)
{
    as_nodeless_see(call->owner->nodeless, call->ref->key, call->wanted.nodes->cluster, nodes,
                    count, get_mono(call));
}

static void nodes_listed(void *context, const struct as_outcome *outcome,
                         const struct as_instance_node *nodes, size_t count)
{
    struct call *call = context;
    call->reading = NULL;
    if (outcome->reason != AS_REASON_APPLIED) {
        call->outcome = *outcome;
        finish(call);
        return;
    }
    see_nodeless(call, nodes, count);
    as_leave_see(call->owner->leave, &call->leaves, &call->talk.view, nodes, count, &call->sight);
    if (call->scaled) {
        change(call, nodes, count);
        return;
    }
    count_ready(call, nodes, count);
    finish(call);
}

static void list_nodes(struct call *call)
{
    const bool with_pods =
        call->scaled && call->wanted.to < call->wanted.from && !call->wanted.is_clean_up;
    call->reading = as_nodes_read_start(&call->cluster->client, &call->talk.view, with_pods,
                                        call->wanted.nodes->unneeded.keep, nodes_listed, call);
}

static void see_nodes(struct call *call, const struct as_cluster *cluster)
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
            as_leave_has(call->owner->leave, call->ref, of->found[i].instance->id))
            return true;
    }
    return false;
}

static void use_facts(struct call *call, const struct as_cluster *cluster)
{
    AS_CLEANUP(as_instance_nodes_deinit) struct as_instance_nodes of;
    as_instance_nodes_init(&of, &call->talk.view);
    as_instance_nodes_match_facts(&of, cluster);
    see_nodeless(call, of.found, of.count);
    count_ready(call, of.found, of.count);
    if (call->with_nodes)
        see_nodes(call, cluster);
    if (has_leaving(call, &of)) {
        list_nodes(call);
        return;
    }
    as_leave_see(call->owner->leave, &call->leaves, &call->talk.view, of.found, of.count,
                 &call->sight);
    finish(call);
}

/* Without facts there is no value of a source `nodes`, but the size counts as ever. */
static void facts_known(void *context, const struct as_cluster *cluster,
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

/* What is changed is read anew. Only who wants the nodes starts the watches; others use what they
 * tell. */
static void read_nodes(struct call *call)
{
    const struct as_cluster *cluster;
    if (call->scaled)
        list_nodes(call);
    else if (call->with_nodes)
        call->ask = as_cluster_watch_ask(call->cluster->watch, facts_known, call);
    else if ((cluster = as_cluster_watch_find(call->cluster->watch)))
        use_facts(call, cluster);
    else
        list_nodes(call);
}

static void was_read(void *context)
{
    struct call *call = context;
    const struct as_group_view *view = &call->talk.view;
    call->transfer = NULL;
    take_outcome(call);
    call->size = view->size;
    call->sight = (struct as_leave_sight){.size = view->size, .max = view->max};
    call->ready = as_group_count_running(view);
    call->seen.error = "the instances of the group are no nodes of a cluster";
    if (call->outcome.reason != AS_REASON_APPLIED || is_controlled(call) || !find_cluster(call))
        finish(call);
    else if (call->cluster)
        read_nodes(call);
    else if (call->scaled)
        change(call, NULL, 0);
    else
        finish(call);
}

/* ---- port ---- */

static struct call *new_call(struct as_target_port *port, uint64_t ticket,
                             const struct as_target_ref *ref, void *context)
{
    struct node_group *group = (struct node_group *)port;
    struct call *call = as_xcalloc(1, sizeof(*call));
    call->owner = group;
    call->ticket = ticket;
    call->ref = as_target_ref_copy(ref);
    call->leaves.ref = call->ref;
    call->context = context;
    as_account_init_talk(group->account, &call->talk);
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

static void observe(struct as_target_port *self, uint64_t ticket, const struct as_target_ref *ref,
                    const struct as_observe_request *request, as_target_observed_fn *done,
                    void *context)
{
    struct call *call = new_call(self, ticket, ref, context);
    call->observed = done;
    call->with_nodes = request->with_nodes;
    call->with_members = request->with_members;
    restore_templates(call->owner, request);
    as_scale_request_copy(
        &(struct as_scale_request){.credential = request->credential, .nodes = request->nodes},
        &call->wanted);
    call->leaves.config = call->wanted.nodes;
    talk(call, AS_GROUP_READ, was_read);
}

static void scale(struct as_target_port *self, uint64_t ticket, const struct as_target_ref *ref,
                  const struct as_scale_request *request, as_target_scaled_fn *done, void *context)
{
    struct call *call = new_call(self, ticket, ref, context);
    call->scaled = done;
    as_scale_request_copy(request, &call->wanted);
    call->leaves.config = call->wanted.nodes;
    call->reached = request->to;
    talk(call, AS_GROUP_READ, was_read);
}

static bool is_idle(const struct as_target_port *self)
{
    const struct node_group *group = (const struct node_group *)self;
    return LIST_EMPTY(&group->calls) && as_leave_is_idle(group->leave);
}

static void close_port(struct as_target_port *self)
{
    struct node_group *group = (struct node_group *)self;
    struct call *call;
    while ((call = LIST_FIRST(&group->calls)))
        free_call(call);
    as_leave_free(group->leave);
    as_nodeless_free(group->nodeless);
    as_account_free(group->account);
    free(group);
}

void as_node_group_retire(struct as_target_port *port)
{
    as_leave_retire(((struct node_group *)port)->leave);
}

struct as_target_port *as_node_group_new(const struct as_group_provider *provider,
                                         const struct as_provider_settings *settings,
                                         const struct as_access_env *env,
                                         const struct as_clusters *clusters,
                                         struct as_cluster_link *cluster)
{
    struct node_group *group = as_xcalloc(1, sizeof(*group));
    group->port = (struct as_target_port){observe, scale, is_idle, close_port, NULL};
    group->env = env;
    group->provider = provider;
    group->clusters = clusters;
    group->account = as_account_new(provider, settings, env, cluster ? &cluster->client : NULL);
    group->leave = as_leave_new(env, group->account);
    group->nodeless = as_nodeless_new();
    LIST_INIT(&group->calls);
    return &group->port;
}
