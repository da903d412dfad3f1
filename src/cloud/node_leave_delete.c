/*
 * Deleting nodes that are ready for it: all of a group's at once. The group is read before, and
 * what has changed meanwhile is left out.
 */
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/kube/target_limits.h>

#include "node_leave_private.h"
#include "provider_fault.h"

void leave_free_batch(struct batch *batch)
{
    LIST_REMOVE(batch, entry);
    if (batch->call)
        as_account_cancel(batch->call);
    if (batch->removal)
        as_removal_cancel(batch->removal);
    for (size_t i = 0; i < batch->count; i++)
        batch->items[i]->pins--;
    as_talk_deinit(&batch->talk.talk);
    free(batch->items);
    free(batch->ids);
    free(batch->nodes);
    free(batch);
}

/* What may pass is tried again, for as long as a drain may take. A removal that the provider
 * accepted and then failed is an answer. */
static void fail_to_delete(struct leaving *item, const struct as_outcome *outcome)
{
    struct as_leave *leave = item->group->leave;
    const bool is_passing =
        outcome->reason == AS_REASON_CONFLICT || outcome->reason == AS_REASON_THROTTLED ||
        outcome->reason == AS_REASON_UNREACHABLE || outcome->reason == AS_REASON_TIMEOUT;
    const bool may_pass = is_passing && !outcome->is_accepted;
    const as_mono_time now = leave_get_mono(leave);
    if (item->give_up.us == INT64_MAX)
        item->give_up.us = as_time_add(now.us, item->group->drain_timeout_us);
    if (may_pass && now.us < item->give_up.us)
        leave_try_later(item, outcome->retry_after_us);
    else
        leave_put_back(item, outcome->message);
}

static void removed(void *context, const struct as_removal_result *result)
{
    struct batch *batch = context;
    struct group *group = batch->group;
    struct leaving **gone = as_xcalloc(batch->count, sizeof(struct leaving *));
    size_t gone_count = 0;
    batch->removal = NULL;
    for (size_t i = 0; i < batch->count; i++) {
        struct leaving *item = batch->items[i];
        if (result->stays[i]) {
            fail_to_delete(item, &result->outcome);
            continue;
        }
        leave_end(item);
        gone[gone_count++] = item;
    }
    group->base -= (int32_t)gone_count;
    group->sent -= (int32_t)batch->count;
    leave_record(group, gone, gone_count, AS_NODES_REMOVED, result->outcome.message);
    free(gone);
    leave_free_batch(batch);
}

/* Leaves those in the batch that can be deleted now. */
static void sift(struct batch *batch, const struct as_group_view *view)
{
    const int32_t least = view->min > 0 ? view->min : 0;
    int32_t room = view->size - least;
    size_t kept = 0;
    for (size_t i = 0; i < batch->count; i++) {
        struct leaving *item = batch->items[i];
        item->pins--;
        if (item->state != READY)
            continue; /* it is back meanwhile */
        if (!view->node_label && !as_group_is_present(view, item->id)) {
            leave_end_removed(item, "its instance was gone already");
        } else if (room-- <= 0) {
            leave_put_back(item, "the group is at the provider's minimum");
        } else {
            item->pins++;
            batch->items[kept] = item;
            batch->ids[kept] = item->id;
            batch->nodes[kept++] = item->node;
        }
    }
    batch->count = kept;
}

static void send(struct batch *batch, const struct as_group_view *view)
{
    struct group *group = batch->group;
    struct as_leave *leave = group->leave;
    const struct as_removal_request request = {
        .env = leave->env,
        .account = leave->account,
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
    batch->removal = as_removal_start(&request, removed, batch);
}

static void group_read(void *context)
{
    struct batch *batch = context;
    const struct as_group_view *view = &batch->talk.view;
    const char *why = NULL, *closed = view->controller ? view->controller : view->no_removal;
    closed = closed ? closed : view->chooses;
    struct as_outcome outcome;
    struct as_provider_call call;
    batch->call = NULL;
    as_fault_take(&batch->talk, &outcome, &call);
    if (outcome.reason == AS_REASON_APPLIED && closed)
        as_outcome_init_local(&outcome, AS_REASON_CONFLICT, closed);
    if (outcome.reason == AS_REASON_APPLIED && !leave_may_step(batch->group, &why))
        as_outcome_init_local(&outcome, AS_REASON_CONFLICT, why);
    if (outcome.reason == AS_REASON_APPLIED)
        sift(batch, view);
    for (size_t i = 0; i < batch->count && outcome.reason != AS_REASON_APPLIED; i++)
        if (batch->items[i]->state == READY)
            fail_to_delete(batch->items[i], &outcome);
    if (outcome.reason == AS_REASON_APPLIED && batch->count > 0)
        send(batch, view);
    else
        leave_free_batch(batch);
}

/* One request at a time for a group; those that were accepted are waited for side by side. */
static bool is_sending(const struct group *group)
{
    const struct batch *batch;
    LIST_FOREACH (batch, &group->leave->batches, entry)
        if (batch->group == group && !(batch->removal && as_removal_is_sent(batch->removal)))
            return true;
    return false;
}

static int compare_decisions(const void *a, const void *b)
{
    const struct leaving *left = *(struct leaving *const *)a, *right = *(struct leaving *const *)b;
    const int order = strcmp(left->decision, right->decision);
    return order ? order : strcmp(left->id, right->id);
}

static bool can_be_deleted(const struct leaving *item)
{
    return item->state == READY && item->delete.us <= leave_get_mono(item->group->leave).us;
}

void leave_delete_ready(struct group *group)
{
    struct as_leave *leave = group->leave;
    const size_t room = (size_t)leave_count(group, can_be_deleted);
    struct leaving *item;
    if (room == 0 || is_sending(group))
        return;
    struct batch *batch = as_xcalloc(1, sizeof(*batch));
    batch->group = group;
    batch->items = as_xcalloc(room, sizeof(struct leaving *));
    batch->ids = as_xcalloc(room, sizeof(*batch->ids));
    batch->nodes = as_xcalloc(room, sizeof(*batch->nodes));
    LIST_FOREACH (item, &group->nodes, entry)
        if (can_be_deleted(item)) {
            item->pins++;
            batch->items[batch->count++] = item;
        }
    qsort(batch->items, batch->count, sizeof(struct leaving *), compare_decisions);
    as_ulid_print(leave_get_wall(leave), &leave->random, batch->id);
    LIST_INSERT_HEAD(&leave->batches, batch, entry);
    as_account_init_talk(leave->account, &batch->talk);
    batch->talk.verb = AS_GROUP_READ;
    batch->talk.group = group->ref;
    batch->talk.select = group->select;
    batch->call = as_account_start(leave->account, &batch->talk, group_read, batch);
}
