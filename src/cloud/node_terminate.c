/*
 * Termination of nodes: nodes that are marked to leave their groups. Each is in one state:
 *
 *   waits    for its time, a permit, or the next try
 *   looked   a drain works on it: looks at it, or empties it
 *   ready    to be deleted, with all of the group that are ready by then
 *   sent     its deletion is under way
 *   returns  it is being put back into service
 *   over     removed or back; remembered as long as what is read may not show it yet
 *
 * A group's size while deletions are under way: providers lower it before or after they stop
 * listing an instance. So as long as a removal is open, and what is read lies between the size
 * before it and the size after it, the size after it counts.
 *
 * Not here: draining (kube/drain.h).
 */
#include "node_terminate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bsd/sys/queue.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/arena.h>
#include <alertscaler/base/log.h>
#include <alertscaler/base/random.h>
#include <alertscaler/base/str.h>
#include <alertscaler/kube/target_outcome.h>

#include "provider_answer.h"

/*
 * The provider's removal of instances:
 *
 *   one request -> follow its operation -> look until the instances are gone, ten minutes at most
 *
 * After a failure the group is read: some instances may be gone all the same.
 */

#define LOOK_EVERY_US (5 * AS_US_PER_S)    /* while waiting for instances to be gone */
#define LOOK_MAX_US   (10 * AS_US_PER_MIN) /* then the provider is left alone with them */

struct as_removal {
    struct as_removal_request request;
    as_removal_done_fn *done;
    void *context;
    struct as_arena arena;
    int32_t from;
    char version[AS_VERSION_SIZE];
    bool has_names; /* instances of the provider have names */
    bool is_sent;
    bool *are_gone;        /* by `ids`: the provider said so in its answer */
    bool *stays;           /* by `ids` */
    const char *operation; /* that deletes them, while it runs; NULL */
    struct as_group_op op;
    struct as_account_call *call;
    struct as_timer *timer;
    as_mono_time poll_at, poll_until;
    struct as_removal_result result;
};

static as_mono_time removal_get_mono(const struct as_removal *removal)
{
    return removal->request.env->clock->get_mono(removal->request.env->clock);
}

void as_removal_cancel(struct as_removal *removal)
{
    if (removal->call)
        as_account_cancel(removal->call);
    removal->request.env->loop->cancel_timer(removal->request.env->loop, removal->timer);
    as_cloud_op_deinit(&removal->op.op);
    as_arena_deinit(&removal->arena);
    free(removal);
}

static void removal_finish(struct as_removal *removal, bool is_known)
{
    removal->result.is_known = is_known;
    removal->result.stays = removal->stays;
    removal->result.gone = 0;
    for (size_t i = 0; i < removal->request.count; i++)
        removal->result.gone += !removal->stays[i];
    removal->done(removal->context, &removal->result);
    as_removal_cancel(removal);
}

static void keep_all(struct as_removal *removal, bool is_known)
{
    memset(removal->stays, true, removal->request.count * sizeof(*removal->stays));
    removal_finish(removal, is_known);
}

static void finish_with(struct as_removal *removal, const char *words)
{
    as_outcome_set_message(&removal->result.outcome, words);
    removal_finish(removal, true);
}

static void op(struct as_removal *removal, enum as_group_verb verb, as_account_done_fn *done)
{
    const struct as_removal_request *request = &removal->request;
    struct as_group_op *group = &removal->op;
    as_cloud_op_deinit(&group->op);
    as_account_init_op(request->account, group);
    group->verb = verb;
    group->group = request->group;
    group->from = removal->from;
    group->to = removal->from - (int32_t)request->count;
    group->version = removal->version;
    group->idempotency = request->idempotency;
    group->instances = request->ids;
    group->nodes = request->nodes;
    group->instance_count = request->count;
    group->operation = removal->operation;
    removal->call = as_account_start(request->account, group, done, removal);
}

/* Whether the last READ still lists it. If instances have no names, the question is whether the
 * provider is still working. An instance that the provider has declared gone is not waited for: its
 * list is behind. */
static bool is_there(const struct as_removal *removal, size_t i)
{
    const struct as_group_view *view = &removal->op.view;
    if (!removal->has_names)
        return view->in_progress;
    return !removal->are_gone[i] && as_group_is_present(view, removal->request.ids[i]);
}

static size_t removal_count_left(const struct as_removal *removal)
{
    size_t left = 0;
    for (size_t i = 0; i < removal->request.count; i++)
        left += is_there(removal, i);
    return left;
}

static void removal_poll(void *context);

/* Waits in short steps, so that a stop is noticed. */
static void removal_schedule_poll(struct as_removal *removal)
{
    struct as_loop *loop = removal->request.env->loop;
    const int64_t left_us = removal->poll_at.us - removal_get_mono(removal).us;
    const int64_t step_us = left_us < LOOK_EVERY_US ? left_us : LOOK_EVERY_US;
    removal->timer = loop->start_timer(loop, step_us, removal_poll, removal);
}

/* False: it has taken too long. */
static bool removal_poll_later(struct as_removal *removal, int64_t least_us)
{
    removal->poll_at.us =
        as_time_add(removal_get_mono(removal).us, as_fault_get_pause(&removal->op, least_us));
    if (removal->poll_at.us > removal->poll_until.us)
        return false;
    removal_schedule_poll(removal);
    return true;
}

static void looked(void *context)
{
    struct as_removal *removal = context;
    char words[AS_MESSAGE_SIZE] = "";
    const size_t left = removal_count_left(removal);
    removal->call = NULL;
    removal->result.attempts += removal->op.op.sent;
    const bool is_gone = removal->op.op.fault == AS_CLOUD_OP_GONE ||
                         (removal->op.op.fault == AS_CLOUD_OP_OK && left == 0);
    if (!is_gone && removal_poll_later(removal, LOOK_EVERY_US))
        return;
    if (!is_gone)
        snprintf(words, sizeof(words),
                 "the provider took the call, but %zu of %zu instances are not gone yet", left,
                 removal->request.count);
    finish_with(removal, words);
}

static void followed(void *context);

static void removal_poll(void *context)
{
    struct as_removal *removal = context;
    removal->timer = NULL;
    if (as_access_get_permit(removal->request.env) == AS_PERMIT_FINISH)
        finish_with(removal,
                    "the provider took the call; alertscaler stops before the instances are gone");
    else if (removal_get_mono(removal).us < removal->poll_at.us)
        removal_schedule_poll(removal);
    else if (removal->operation)
        op(removal, AS_GROUP_POLL, followed);
    else
        op(removal, AS_GROUP_READ, looked);
}

/* Some instances may be gone although the removal failed: then the decision is done in part, and
 * doing it again would remove too many. A change that was accepted counts as a step, even if it
 * removed nothing. */
static void judged(void *context)
{
    struct as_removal *removal = context;
    struct as_outcome *outcome = &removal->result.outcome;
    const size_t wanted = removal->request.count;
    const bool is_known = removal->op.op.fault == AS_CLOUD_OP_OK;
    const size_t left = is_known ? removal_count_left(removal) : wanted;
    removal->call = NULL;
    removal->result.attempts += removal->op.op.sent;
    if (left == wanted) {
        keep_all(removal, is_known);
        return;
    }
    for (size_t i = 0; i < wanted; i++)
        removal->stays[i] = is_there(removal, i);
    struct as_error error = AS_ERROR_INIT;
    as_error_set(&error, "%zu of %zu instances are removed: %s", wanted - left, wanted,
                 outcome->message);
    outcome->reason = AS_REASON_APPLIED;
    outcome->is_ambiguous = outcome->is_shortage = false;
    outcome->message[0] = '\0';
    finish_with(removal, left > 0 ? error.text : "");
}

static void removal_judge(struct as_removal *removal)
{
    const bool may_be_done = removal->request.count > 1 || removal->operation; /* at least a part */
    if (may_be_done && removal->has_names)
        op(removal, AS_GROUP_READ, judged);
    else
        keep_all(removal, false);
}

/* Waits for the operation's end before checking whether the instances are gone. */
static void followed(void *context)
{
    struct as_removal *removal = context;
    removal->call = NULL;
    removal->result.attempts += removal->op.op.sent;
    if (as_fault_has_failed(&removal->op)) {
        as_fault_take_end(&removal->op, &removal->result.outcome);
        removal_judge(removal);
        return;
    }
    if (as_fault_is_open(&removal->op) && removal_poll_later(removal, LOOK_EVERY_US))
        return;
    removal->operation = NULL;
    removal->poll_at = removal_get_mono(removal);
    removal_poll(removal);
}

static void keep_gone(struct as_removal *removal)
{
    const struct as_group_op *group = &removal->op;
    for (size_t i = 0; group->are_gone && i < group->instance_count; i++) {
        for (size_t j = 0; j < removal->request.count && group->are_gone[i]; j++)
            removal->are_gone[j] |= strcmp(removal->request.ids[j], group->instances[i]) == 0;
    }
}

static void removed(void *context)
{
    struct as_removal *removal = context;
    removal->call = NULL;
    removal->is_sent = true;
    removal->result.attempts += removal->op.op.sent;
    as_fault_take(&removal->op, &removal->result.outcome, &removal->result.call);
    keep_gone(removal);
    if (removal->op.op.fault != AS_CLOUD_OP_OK) {
        if (removal->op.has_begun)
            as_fault_accept_part(&removal->result.outcome);
        removal_judge(removal);
        return;
    }
    if (removal->op.started)
        removal->operation = as_arena_strdup(&removal->arena, removal->op.started);
    removal->poll_until.us = as_time_add(removal_get_mono(removal).us, LOOK_MAX_US);
    if (!removal_poll_later(removal, 0))
        removal_finish(removal, true);
}

/* The request was answered; what is left is waiting. */
static bool removal_is_sent(const struct as_removal *removal)
{
    return removal->is_sent;
}

struct as_removal *as_removal_start(const struct as_removal_request *request,
                                    as_removal_done_fn *done, void *context)
{
    struct as_removal *removal = as_xcalloc(1, sizeof(*removal));
    removal->request = *request;
    removal->done = done;
    removal->context = context;
    removal->arena = AS_ARENA_INIT;
    removal->from = request->view->size;
    removal->has_names = !request->view->node_label;
    memcpy(removal->version, request->view->version, sizeof(removal->version));
    removal->are_gone = as_arena_alloc(&removal->arena, request->count, sizeof(*removal->are_gone));
    removal->stays = as_arena_alloc(&removal->arena, request->count, sizeof(*removal->stays));
    as_account_init_op(request->account, &removal->op);
    op(removal, AS_GROUP_REMOVE, removed);
    return removal;
}

/* The states of nodes. */

enum state { WAITS, LOOKED, READY, SENT, RETURNS, OVER };

struct terminating {
    LIST_ENTRY(terminating) entry;
    struct group *group;
    char *id, *provider_id, *decision;
    char *node; /* NULL: the instance has none */
    as_wall_time marked_at;
    as_maybe_time created; /* the node, as last read */
    enum state state;
    bool is_ready;
    bool is_listed; /* in the group, as last read */
    bool is_marked; /* as last read */
    struct as_drain *drain;
    as_mono_time next;    /* nothing is begun before */
    as_mono_time delete;  /* nor is it deleted before */
    as_mono_time give_up; /* deleting it: not tried any more then; INT64_MAX: not tried yet */
    char *why;            /* it returns */
    struct as_terminator_return *returning;
    unsigned pins; /* lists outside of the group's that have it */
};

struct group {
    LIST_ENTRY(group) entry;
    struct as_terminator *terminator;
    struct as_target_ref *ref;
    char *select; /* as_nodes_config.select; NULL */
    struct as_drains *drains;
    enum as_nodes_drain drain;
    int64_t drain_after_us, drain_timeout_us, grace_us;
    unsigned keep; /* of enum as_keep */
    LIST_HEAD(, terminating) nodes;
    int32_t base, sent;   /* the size before the open removals, and what they remove */
    as_maybe_time failed; /* when a node was last put back */
};

struct batch { /* a removal */
    LIST_ENTRY(batch) entry;
    struct group *group;
    struct terminating **items;
    const char **ids, **nodes;
    size_t count;
    char id[AS_ULID_SIZE];
    struct as_group_op op; /* reads the group */
    struct as_account_call *call;
    struct as_removal *removal; /* NULL: still reading */
};

struct as_terminator_return {
    struct terminating **items;
    size_t count;
    int32_t open, returned;
    as_terminator_returned_fn *done; /* NULL: cancelled */
    void *context;
};

struct as_terminator {
    const struct as_access_env *env;
    struct as_account *account;
    struct as_random random;
    LIST_HEAD(, group) groups;
    LIST_HEAD(, batch) batches;
    struct as_timer *timer;
    bool is_retired;
};

static inline as_mono_time terminator_get_mono(const struct as_terminator *terminator)
{
    return terminator->env->clock->get_mono(terminator->env->clock);
}

static inline as_wall_time terminator_get_wall(const struct as_terminator *terminator)
{
    return terminator->env->clock->get_wall(terminator->env->clock);
}

static bool terminator_is_terminating(const struct terminating *item) /* and may still stay */
{
    return item->state < SENT;
}

/* Whether the next step may be made now. */
static bool terminator_may_step(const struct group *group, const char **why_out)
{
    const struct as_access_env *env = group->terminator->env;
    const enum as_permit permit = as_access_get_permit(env);
    *why_out = as_permit_explain(permit);
    return permit == AS_PERMIT_ALL &&
           as_access_get_terminate_permit(env, group->ref->id, why_out) == AS_TERMINATE_GO;
}

/* ---- records ---- */

/* Those of one decision are one record. */
static void terminator_record(const struct group *group, struct terminating *const *items,
                              size_t count, enum as_nodes_event event, const char *why)
{
    const struct as_access_env *env = group->terminator->env;
    const char *names[AS_RECORD_NODES_MAX];
    size_t at = 0;
    while (at < count && env->record_nodes) {
        const char *decision = items[at]->decision;
        struct as_nodes_record record = {.event = event,
                                         .target = group->ref->id,
                                         .decision = decision,
                                         .nodes = names,
                                         .message = why};
        for (; at < count && record.node_count < AS_RECORD_NODES_MAX &&
               strcmp(items[at]->decision, decision) == 0;
             at++)
            names[record.node_count++] = items[at]->node ? items[at]->node : items[at]->id;
        env->record_nodes(env->permit_context, &record);
    }
}

/* ---- who leaves ---- */

static struct group *terminator_find_group(const struct as_terminator *terminator,
                                           const struct as_target_ref *ref)
{
    struct group *group;
    LIST_FOREACH (group, &terminator->groups, entry)
        if (strcmp(group->ref->id, ref->id) == 0)
            return group;
    return NULL;
}

static struct group *terminator_get_group(struct as_terminator *terminator,
                                          const struct as_terminator_group *given)
{
    struct group *group = terminator_find_group(terminator, given->ref);
    if (!group) {
        group = as_xcalloc(1, sizeof(*group));
        group->terminator = terminator;
        group->ref = as_target_ref_copy(given->ref);
        LIST_INIT(&group->nodes);
        LIST_INSERT_HEAD(&terminator->groups, group, entry);
    }
    if (!as_str_equal(group->select, given->config->select)) {
        free(group->select);
        group->select = given->config->select ? as_xstrdup(given->config->select) : NULL;
    }
    group->drains = given->drains;
    group->drain = given->config->drain;
    group->drain_after_us = given->config->drain_after_us;
    group->drain_timeout_us = given->config->drain_timeout_us;
    group->grace_us = given->config->grace_us;
    group->keep = given->config->unneeded.keep;
    return group;
}

static struct terminating *terminator_find(const struct group *group, const char *id)
{
    struct terminating *item;
    LIST_FOREACH (item, &group->nodes, entry)
        if (strcmp(item->id, id) == 0)
            return item;
    return NULL;
}

static void terminator_free_node(struct terminating *item)
{
    LIST_REMOVE(item, entry);
    free(item->id);
    free(item->provider_id);
    free(item->decision);
    free(item->node);
    free(item->why);
    free(item);
}

static void terminator_set_timer(struct as_terminator *terminator);

static struct terminating *terminator_add_node(struct group *group,
                                               const struct as_terminating *given,
                                               const char *decision)
{
    struct terminating *item = as_xcalloc(1, sizeof(*item));
    item->group = group;
    item->id = as_xstrdup(given->id);
    item->provider_id = as_xstrdup(given->provider_id);
    item->node = given->node ? as_xstrdup(given->node) : NULL;
    item->decision = as_xstrdup(decision);
    item->marked_at = terminator_get_wall(group->terminator);
    item->is_listed = item->is_marked = item->is_ready = true;
    item->next = item->delete = terminator_get_mono(group->terminator);
    item->give_up.us = INT64_MAX;
    LIST_INSERT_HEAD(&group->nodes, item, entry);
    if (item->node)
        as_drain_hold(group->drains, item->node);
    terminator_set_timer(group->terminator);
    return item;
}

void as_terminator_add(struct as_terminator *terminator, const struct as_terminator_group *given,
                       const struct as_terminating *items, size_t count, const char *decision)
{
    struct group *group = terminator_get_group(terminator, given);
    struct terminating **added = as_xcalloc(count, sizeof(struct terminating *));
    for (size_t i = 0; i < count; i++) {
        struct terminating *former = terminator_find(group, items[i].id);
        if (former && former->pins == 0)
            terminator_free_node(former); /* it is over: who leaves is not chosen */
        added[i] = terminator_add_node(group, &items[i], decision);
    }
    terminator_record(group, added, count, AS_NODES_MARKED, "");
    free(added);
}

bool as_terminator_has(const struct as_terminator *terminator, const struct as_target_ref *ref,
                       const char *id)
{
    const struct group *group = terminator_find_group(terminator, ref);
    const struct terminating *item = group ? terminator_find(group, id) : NULL;
    return item && item->state != OVER;
}

/* ---- ends ---- */

/* It is over. */
static void terminator_end(struct terminating *item)
{
    if (item->drain)
        as_drain_drop(item->drain);
    item->drain = NULL;
    item->state = OVER;
    if (item->node && !as_drain_is_unwanted(item->group->drains, item->node))
        as_drain_release(item->group->drains, item->node);
}

static void terminator_end_removed(struct terminating *item, const char *why)
{
    terminator_end(item);
    terminator_record(item->group, &item, 1, AS_NODES_REMOVED, why);
}

static void end_kept(struct terminating *item, const char *why)
{
    terminator_end(item);
    item->group->failed = (as_maybe_time){true, terminator_get_wall(item->group->terminator)};
    as_log(AS_LOG_WARN, "a node stays", AS_F("target", item->group->ref->id),
           AS_F("node", item->node ? item->node : item->id), AS_F("reason", why));
    terminator_record(item->group, &item, 1, AS_NODES_KEPT, why);
}

static void free_return(struct as_terminator_return *returning)
{
    free(returning->items);
    free(returning);
}

static void terminator_give_back(struct as_terminator_return *returning)
{
    terminator_record(returning->items[0]->group, returning->items, returning->count, AS_NODES_KEPT,
                      "taken back: more are needed");
    for (size_t i = 0; i < returning->count; i++)
        returning->items[i]->pins--;
    if (returning->done)
        returning->done(returning->context, returning->returned);
    free_return(returning);
}

/* A node that is stuck is put back by the recovery, before long. */
static void leave_undone(void *context, const struct as_drain_result *result)
{
    struct terminating *item = context;
    struct as_terminator_return *returning = item->returning;
    if (result->end == AS_DRAIN_STUCK)
        as_log(AS_LOG_ERROR, "a node stays cordoned", AS_F("node", result->node),
               AS_F("reason", result->outcome.message));
    if (!returning) {
        end_kept(item, item->why);
        return;
    }
    item->returning = NULL;
    terminator_end(item);
    item->group->failed = (as_maybe_time){true, terminator_get_wall(item->group->terminator)};
    returning->returned += result->end != AS_DRAIN_NO_NODE;
    if (--returning->open == 0)
        terminator_give_back(returning);
}

static void terminator_put_back(struct terminating *item, const char *why)
{
    if (!item->node) {
        end_kept(item, why);
        return;
    }
    if (item->drain)
        as_drain_drop(item->drain);
    item->drain = NULL;
    item->state = RETURNS;
    free(item->why);
    item->why = as_xstrdup(why);
    as_drain_undo_start(item->group->drains, item->node, leave_undone, item);
}

static void terminator_retry_later(struct terminating *item, int64_t us)
{
    item->state = WAITS;
    item->next.us = as_time_add(terminator_get_mono(item->group->terminator).us,
                                us > AS_LEAVE_AGAIN_US ? us : AS_LEAVE_AGAIN_US);
}

static int32_t terminator_count(const struct group *group,
                                bool (*is_one)(const struct terminating *))
{
    const struct terminating *item;
    int32_t found = 0;
    LIST_FOREACH (item, &group->nodes, entry)
        found += is_one(item);
    return found;
}

/* Deleting nodes that are ready for it: all of a group's at once. The group is read before, and
 * what has changed meanwhile is left out. */

static void terminator_free_batch(struct batch *batch)
{
    LIST_REMOVE(batch, entry);
    if (batch->call)
        as_account_cancel(batch->call);
    if (batch->removal)
        as_removal_cancel(batch->removal);
    for (size_t i = 0; i < batch->count; i++)
        batch->items[i]->pins--;
    as_cloud_op_deinit(&batch->op.op);
    free(batch->items);
    free(batch->ids);
    free(batch->nodes);
    free(batch);
}

/* What may pass is tried again, for as long as a drain may take. A removal that the provider
 * accepted and then failed is an answer. */
static void fail_to_delete(struct terminating *item, const struct as_outcome *outcome)
{
    struct as_terminator *terminator = item->group->terminator;
    const bool is_passing =
        outcome->reason == AS_REASON_CONFLICT || outcome->reason == AS_REASON_THROTTLED ||
        outcome->reason == AS_REASON_UNREACHABLE || outcome->reason == AS_REASON_TIMEOUT;
    const bool may_pass = is_passing && !outcome->is_accepted;
    const as_mono_time now = terminator_get_mono(terminator);
    if (item->give_up.us == INT64_MAX)
        item->give_up.us = as_time_add(now.us, item->group->drain_timeout_us);
    if (may_pass && now.us < item->give_up.us)
        terminator_retry_later(item, outcome->retry_after_us);
    else
        terminator_put_back(item, outcome->message);
}

static void terminator_on_removed(void *context, const struct as_removal_result *result)
{
    struct batch *batch = context;
    struct group *group = batch->group;
    struct terminating **gone = as_xcalloc(batch->count, sizeof(struct terminating *));
    size_t gone_count = 0;
    batch->removal = NULL;
    for (size_t i = 0; i < batch->count; i++) {
        struct terminating *item = batch->items[i];
        if (result->stays[i]) {
            fail_to_delete(item, &result->outcome);
            continue;
        }
        terminator_end(item);
        gone[gone_count++] = item;
    }
    group->base -= (int32_t)gone_count;
    group->sent -= (int32_t)batch->count;
    terminator_record(group, gone, gone_count, AS_NODES_REMOVED, result->outcome.message);
    free(gone);
    terminator_free_batch(batch);
}

/* Leaves those in the batch that can be deleted now. */
static void terminator_sift(struct batch *batch, const struct as_group_view *view)
{
    const int32_t least = view->min > 0 ? view->min : 0;
    int32_t room = view->size - least;
    size_t kept = 0;
    for (size_t i = 0; i < batch->count; i++) {
        struct terminating *item = batch->items[i];
        item->pins--;
        if (item->state != READY)
            continue; /* it is back meanwhile */
        if (!view->node_label && !as_group_is_present(view, item->id)) {
            terminator_end_removed(item, "its instance was gone already");
        } else if (room-- <= 0) {
            terminator_put_back(item, "the group is at the provider's minimum");
        } else {
            item->pins++;
            batch->items[kept] = item;
            batch->ids[kept] = item->id;
            batch->nodes[kept++] = item->node;
        }
    }
    batch->count = kept;
}

static void terminator_send(struct batch *batch, const struct as_group_view *view)
{
    struct group *group = batch->group;
    struct as_terminator *terminator = group->terminator;
    const struct as_removal_request request = {
        .env = terminator->env,
        .account = terminator->account,
        .group = group->ref,
        .view = view,
        .idempotency = batch->id,
        .ids = batch->ids,
        .nodes = batch->nodes,
        .count = batch->count,
    };
    for (size_t i = 0; i < batch->count; i++)
        batch->items[i]->state = SENT;
    if (group->sent == 0)
        group->base = view->size;
    group->sent += (int32_t)batch->count;
    batch->removal = as_removal_start(&request, terminator_on_removed, batch);
}

static void terminator_on_group_read(void *context)
{
    struct batch *batch = context;
    const struct as_group_view *view = &batch->op.view;
    const char *why = NULL, *closed = view->controller ? view->controller : view->no_removal;
    closed = closed ? closed : view->chooses;
    struct as_outcome outcome;
    struct as_provider_call call;
    batch->call = NULL;
    as_fault_take(&batch->op, &outcome, &call);
    if (outcome.reason == AS_REASON_APPLIED && closed)
        as_outcome_init_local(&outcome, AS_REASON_CONFLICT, closed);
    if (outcome.reason == AS_REASON_APPLIED && !terminator_may_step(batch->group, &why))
        as_outcome_init_local(&outcome, AS_REASON_CONFLICT, why);
    if (outcome.reason == AS_REASON_APPLIED)
        terminator_sift(batch, view);
    for (size_t i = 0; i < batch->count && outcome.reason != AS_REASON_APPLIED; i++)
        if (batch->items[i]->state == READY)
            fail_to_delete(batch->items[i], &outcome);
    if (outcome.reason == AS_REASON_APPLIED && batch->count > 0)
        terminator_send(batch, view);
    else
        terminator_free_batch(batch);
}

/* One request at a time for a group; those that were accepted are waited for side by side. */
static bool is_sending(const struct group *group)
{
    const struct batch *batch;
    LIST_FOREACH (batch, &group->terminator->batches, entry)
        if (batch->group == group && !(batch->removal && removal_is_sent(batch->removal)))
            return true;
    return false;
}

static int compare_decisions(const void *a, const void *b)
{
    const struct terminating *left = *(struct terminating *const *)a,
                             *right = *(struct terminating *const *)b;
    const int order = strcmp(left->decision, right->decision);
    return order ? order : strcmp(left->id, right->id);
}

static bool can_be_deleted(const struct terminating *item)
{
    return item->state == READY &&
           item->delete.us <= terminator_get_mono(item->group->terminator).us;
}

static void terminator_delete_ready(struct group *group)
{
    struct as_terminator *terminator = group->terminator;
    const size_t room = (size_t)terminator_count(group, can_be_deleted);
    struct terminating *item;
    if (room == 0 || is_sending(group))
        return;
    struct batch *batch = as_xcalloc(1, sizeof(*batch));
    batch->group = group;
    batch->items = as_xcalloc(room, sizeof(struct terminating *));
    batch->ids = as_xcalloc(room, sizeof(*batch->ids));
    batch->nodes = as_xcalloc(room, sizeof(*batch->nodes));
    LIST_FOREACH (item, &group->nodes, entry)
        if (can_be_deleted(item)) {
            item->pins++;
            batch->items[batch->count++] = item;
        }
    qsort(batch->items, batch->count, sizeof(struct terminating *), compare_decisions);
    as_ulid_print(terminator_get_wall(terminator), &terminator->random, batch->id);
    LIST_INSERT_HEAD(&terminator->batches, batch, entry);
    as_account_init_op(terminator->account, &batch->op);
    batch->op.verb = AS_GROUP_READ;
    batch->op.group = group->ref;
    batch->op.select = group->select;
    batch->call =
        as_account_start(terminator->account, &batch->op, terminator_on_group_read, batch);
}

/* ---- growth takes nodes back ---- */

static bool is_returnable(const struct terminating *item)
{
    return terminator_is_terminating(item) && item->node && item->is_ready && item->is_listed;
}

/* Ids of decisions ascend with time. The nodes of one decision are marked one after the other. */
static int compare_newest(const void *a, const void *b)
{
    const struct terminating *left = *(struct terminating *const *)a,
                             *right = *(struct terminating *const *)b;
    const int64_t left_us = left->created.set ? left->created.at.us : INT64_MIN;
    const int64_t right_us = right->created.set ? right->created.at.us : INT64_MIN;
    const int decision = strcmp(right->decision, left->decision);
    if (decision != 0)
        return decision;
    if (left_us != right_us)
        return left_us > right_us ? -1 : 1;
    return strcmp(left->id, right->id);
}

struct as_terminator_return *as_terminator_take_back(struct as_terminator *terminator,
                                                     const struct as_target_ref *ref,
                                                     int32_t wanted,
                                                     as_terminator_returned_fn *done, void *context)
{
    const struct group *group = terminator_find_group(terminator, ref);
    struct terminating *item, **items = NULL;
    size_t count = 0, room = 0;
    if (!group || wanted <= 0)
        return NULL;
    LIST_FOREACH (item, &group->nodes, entry) {
        if (!is_returnable(item))
            continue;
        items = as_xgrow(items, count, &room, sizeof(struct terminating *));
        items[count++] = item;
    }
    if (count == 0)
        return NULL;
    qsort(items, count, sizeof(struct terminating *), compare_newest);
    struct as_terminator_return *returning = as_xcalloc(1, sizeof(*returning));
    returning->items = items;
    returning->count = count < (size_t)wanted ? count : (size_t)wanted;
    returning->open = (int32_t)returning->count;
    returning->done = done;
    returning->context = context;
    for (size_t i = 0; i < returning->count; i++) {
        items[i]->returning = returning;
        items[i]->pins++;
        terminator_put_back(items[i], "");
    }
    return returning;
}

void as_terminator_return_cancel(struct as_terminator_return *returning)
{
    returning->done = NULL;
}

void as_terminator_note_increase(struct as_terminator *terminator, const struct as_target_ref *ref,
                                 int32_t more)
{
    struct group *group = terminator_find_group(terminator, ref);
    if (group)
        group->base += more;
}

/* ---- what is read ---- */

static struct terminating *find_mark(struct group *group, const struct as_instance_node *node)
{
    const struct as_terminating found = {node->instance->id, node->instance->provider_id,
                                         node->node.name};
    struct terminating *item = terminator_add_node(group, &found, node->mark->decision);
    item->marked_at = node->mark->at;
    item->delete.us = as_time_add(item->next.us, AS_LEAVE_FOUND_US);
    as_log(AS_LOG_INFO, "a node that was marked before leaves", AS_F("node", item->node),
           AS_F("target", group->ref->id), AS_F("decision", item->decision));
    return item;
}

static bool has_our_mark(const struct group *group, const struct as_instance_node *node)
{
    return node->is_found && !node->is_ambiguous && node->mark &&
           strcmp(node->mark->owner, as_drains_get_owner(group->drains)) == 0 &&
           !as_drain_is_unwanted(group->drains, node->node.name);
}

static void terminator_see(struct group *group, const struct as_instance_node *node, bool may_find)
{
    const bool is_there = node->instance->state != AS_INSTANCE_LEAVING;
    const bool is_marked = has_our_mark(group, node);
    struct terminating *item = terminator_find(group, node->instance->id);
    if (!item && is_marked && is_there && may_find)
        item = find_mark(group, node);
    if (!item)
        return;
    item->is_listed = is_there;
    item->is_marked = is_marked;
    item->is_ready = node->is_found && node->node.is_ready;
    item->created = node->created;
}

/* What is over is forgotten once it is not seen any more. */
static void see_gone(struct terminating *item)
{
    if (!item->is_listed && terminator_is_terminating(item))
        terminator_end_removed(item, "its instance was gone already");
    if (item->state == OVER && item->pins == 0 && !(item->is_listed && item->is_marked))
        terminator_free_node(item);
}

static bool counts_no_more(const struct terminating *item)
{
    return item->is_listed && (terminator_is_terminating(item) || item->state == RETURNS);
}

static bool terminator_is_sent(const struct terminating *item)
{
    return item->is_listed && item->state == SENT;
}

static int32_t terminator_get_size(const struct group *group, const struct as_group_view *view)
{
    const int32_t waiting = terminator_count(group, counts_no_more),
                  after = group->base - group->sent;
    const bool is_between = group->sent > 0 && view->size <= group->base && view->size >= after;
    const int32_t size = is_between
                             ? after - waiting
                             : view->size - waiting - terminator_count(group, terminator_is_sent);
    return size > 0 ? size : 0;
}

void as_terminator_observe(struct as_terminator *terminator,
                           const struct as_terminator_group *given,
                           const struct as_group_view *view, const struct as_instance_node *nodes,
                           size_t node_count, struct as_terminator_view *sight_out)
{
    struct group *group = terminator_get_group(terminator, given);
    /* If the nodes are the instances, one too many is a node whose instance is gone. */
    const bool may_find = !view->node_label || node_count <= (size_t)view->size;
    struct terminating *item, *next;
    LIST_FOREACH (item, &group->nodes, entry)
        item->is_listed = item->is_marked = item->is_ready = false;
    for (size_t i = 0; i < node_count; i++)
        terminator_see(group, &nodes[i], may_find);
    LIST_FOREACH_SAFE(item, &group->nodes, entry, next)
    see_gone(item);
    *sight_out = (struct as_terminator_view){.size = terminator_get_size(group, view),
                                             .max = view->max,
                                             .returnable = terminator_count(group, is_returnable),
                                             .failed = group->failed};
    if (view->max >= 0) /* what does not come back takes its place until it is gone */
        sight_out->max -= view->size - sight_out->size - sight_out->returnable;
}

/* ---- looking and emptying ---- */

static void terminator_on_polled(void *context, const struct as_drain_result *result)
{
    struct terminating *item = context;
    const char *why = result->outcome.message;
    item->drain = NULL;
    switch (result->end) {
    case AS_DRAIN_DONE:
    case AS_DRAIN_NO_NODE: item->state = READY; break;
    case AS_DRAIN_NOT_YET: terminator_retry_later(item, result->outcome.retry_after_us); break;
    case AS_DRAIN_UNMARKED:
    case AS_DRAIN_FAILED:
    case AS_DRAIN_STUCK: end_kept(item, why); break;
    }
}

/* What a marked node needs by now; false: time. */
static bool find_task(const struct terminating *item, enum as_drain_task *task_out)
{
    const struct group *group = item->group;
    const int64_t age = terminator_get_wall(group->terminator).us - item->marked_at.us;
    *task_out = group->drain == AS_NODES_DRAIN_TRUE ? AS_DRAIN_EMPTY : AS_DRAIN_CHECK;
    if (group->drain != AS_NODES_DRAIN_WAIT || age >= group->drain_timeout_us)
        return true;
    *task_out = AS_DRAIN_LOOK;
    return age >= group->drain_after_us;
}

static void terminator_poll(struct terminating *item)
{
    const struct group *group = item->group;
    struct as_drain_request request = {
        .node = item->node,
        .provider_id = item->provider_id,
        .target = group->ref->id,
        .timeout_us = group->drain_timeout_us,
        .grace_us = group->grace_us,
        .keep = group->keep,
    };
    if (item->next.us > terminator_get_mono(group->terminator).us)
        return;
    if (!item->node) {
        item->state = READY;
    } else if (find_task(item, &request.task)) {
        item->state = LOOKED;
        item->drain = as_drain_start(group->drains, &request, terminator_on_polled, item);
    }
}

/* ---- steps ---- */

static void step_group(struct group *group)
{
    const char *why = "";
    struct terminating *item, *next;
    const bool is_gone = as_access_get_terminate_permit(group->terminator->env, group->ref->id,
                                                        &why) == AS_TERMINATE_GONE;
    LIST_FOREACH_SAFE(item, &group->nodes, entry, next)
    if (is_gone && terminator_is_terminating(item))
        terminator_put_back(item, "no rule leads to its group any more");
    if (!terminator_may_step(group, &why))
        return;
    LIST_FOREACH (item, &group->nodes, entry)
        if (item->state == WAITS)
            terminator_poll(item);
    terminator_delete_ready(group);
}

static void terminator_step(void *context)
{
    struct as_terminator *terminator = context;
    struct group *group;
    terminator->timer = NULL;
    LIST_FOREACH (group, &terminator->groups, entry)
        step_group(group);
    LIST_FOREACH (group, &terminator->groups, entry)
        if (terminator_count(group, terminator_is_terminating) > 0)
            terminator_set_timer(terminator);
}

static void terminator_set_timer(struct as_terminator *terminator)
{
    struct as_loop *loop = terminator->env->loop;
    if (!terminator->timer && !terminator->is_retired)
        terminator->timer = loop->start_timer(loop, AS_LEAVE_STEP_US, terminator_step, terminator);
}

/* ---- all of it ---- */

struct as_terminator *as_terminator_new(const struct as_access_env *env, struct as_account *account)
{
    struct as_terminator *terminator = as_xcalloc(1, sizeof(*terminator));
    terminator->env = env;
    terminator->account = account;
    as_random_init(&terminator->random, (uint64_t)terminator_get_wall(terminator).us);
    LIST_INIT(&terminator->groups);
    LIST_INIT(&terminator->batches);
    return terminator;
}

void as_terminator_retire(struct as_terminator *terminator)
{
    struct group *group;
    struct terminating *item;
    terminator->is_retired = true;
    terminator->env->loop->cancel_timer(terminator->env->loop, terminator->timer);
    terminator->timer = NULL;
    LIST_FOREACH (group, &terminator->groups, entry) {
        LIST_FOREACH (item, &group->nodes, entry) {
            if (item->drain)
                as_drain_drop(item->drain);
            item->drain = NULL;
        }
    }
}

bool as_terminator_is_idle(const struct as_terminator *terminator)
{
    return LIST_EMPTY(&terminator->batches); /* the drains tell of the rest */
}

struct as_terminator *as_terminator_free(struct as_terminator *terminator)
{
    struct batch *batch;
    struct group *group;
    struct terminating *item;
    if (!terminator)
        return NULL;
    terminator->env->loop->cancel_timer(terminator->env->loop, terminator->timer);
    while ((batch = LIST_FIRST(&terminator->batches)))
        terminator_free_batch(batch);
    while ((group = LIST_FIRST(&terminator->groups))) {
        while ((item = LIST_FIRST(&group->nodes))) {
            if (item->returning && --item->returning->open == 0)
                free_return(item->returning);
            terminator_free_node(item);
        }
        LIST_REMOVE(group, entry);
        as_target_ref_free(group->ref);
        free(group->select);
        free(group);
    }
    free(terminator);
    return NULL;
}
