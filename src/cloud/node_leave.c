/*
 * Nodes that leave: see the header. Each is in one state:
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
 */
#include "node_leave.h"

#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/log.h>
#include <alertscaler/base/str.h>
#include <alertscaler/kube/target_limits.h>

#include "node_leave_private.h"

static bool is_leaving(const struct leaving *item) /* and may still stay */
{
    return item->state < SENT;
}

/* Whether the next step may be made now. */
bool leave_may_step(const struct group *group, const char **why_out)
{
    const struct as_access_env *env = group->leave->env;
    const enum as_permit permit = as_access_get_permit(env);
    *why_out = as_permit_explain(permit);
    return permit == AS_PERMIT_ALL &&
           as_access_get_leave_permit(env, group->ref->id, why_out) == AS_LEAVE_GO;
}

/* ---- records ---- */

/* Those of one decision are one record. */
void leave_record(const struct group *group, struct leaving *const *items, size_t count,
                  enum as_nodes_event event, const char *why)
{
    const struct as_access_env *env = group->leave->env;
    const char *names[AS_RECORD_NODES_MAX];
    size_t at = 0;
    while (at < count && env->record_nodes) {
        const char *decision = items[at]->decision;
        struct as_nodes_record told = {.event = event,
                                       .target = group->ref->id,
                                       .decision = decision,
                                       .nodes = names,
                                       .message = why};
        for (; at < count && told.node_count < AS_RECORD_NODES_MAX &&
               strcmp(items[at]->decision, decision) == 0;
             at++)
            names[told.node_count++] = items[at]->node ? items[at]->node : items[at]->id;
        env->record_nodes(env->permit_context, &told);
    }
}

/* ---- who leaves ---- */

static struct group *find_group(const struct as_leave *leave, const struct as_target_ref *ref)
{
    struct group *group;
    LIST_FOREACH (group, &leave->groups, entry)
        if (strcmp(group->ref->id, ref->id) == 0)
            return group;
    return NULL;
}

static struct group *get_group(struct as_leave *leave, const struct as_leave_group *given)
{
    struct group *group = find_group(leave, given->ref);
    if (!group) {
        group = as_xcalloc(1, sizeof(*group));
        group->leave = leave;
        group->ref = as_target_ref_copy(given->ref);
        LIST_INIT(&group->nodes);
        LIST_INSERT_HEAD(&leave->groups, group, entry);
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

static struct leaving *find(const struct group *group, const char *id)
{
    struct leaving *item;
    LIST_FOREACH (item, &group->nodes, entry)
        if (strcmp(item->id, id) == 0)
            return item;
    return NULL;
}

static void free_leaving(struct leaving *item)
{
    LIST_REMOVE(item, entry);
    free(item->id);
    free(item->provider_id);
    free(item->decision);
    free(item->node);
    free(item->why);
    free(item);
}

static void wake(struct as_leave *leave);

static struct leaving *add(struct group *group, const struct as_leaving *given,
                           const char *decision)
{
    struct leaving *item = as_xcalloc(1, sizeof(*item));
    item->group = group;
    item->id = as_xstrdup(given->id);
    item->provider_id = as_xstrdup(given->provider_id);
    item->node = given->node ? as_xstrdup(given->node) : NULL;
    item->decision = as_xstrdup(decision);
    item->marked_at = leave_get_wall(group->leave);
    item->is_listed = item->is_marked = item->is_ready = true;
    item->next = item->delete = leave_get_mono(group->leave);
    item->give_up.us = INT64_MAX;
    LIST_INSERT_HEAD(&group->nodes, item, entry);
    if (item->node)
        as_drain_hold(group->drains, item->node);
    wake(group->leave);
    return item;
}

void as_leave_add(struct as_leave *leave, const struct as_leave_group *given,
                  const struct as_leaving *items, size_t count, const char *decision)
{
    struct group *group = get_group(leave, given);
    struct leaving **added = as_xcalloc(count, sizeof(struct leaving *));
    for (size_t i = 0; i < count; i++) {
        struct leaving *former = find(group, items[i].id);
        if (former && former->pins == 0)
            free_leaving(former); /* it is over: who leaves is not chosen */
        added[i] = add(group, &items[i], decision);
    }
    leave_record(group, added, count, AS_NODES_MARKED, "");
    free(added);
}

bool as_leave_has(const struct as_leave *leave, const struct as_target_ref *ref, const char *id)
{
    const struct group *group = find_group(leave, ref);
    const struct leaving *item = group ? find(group, id) : NULL;
    return item && item->state != OVER;
}

/* ---- ends ---- */

void leave_end(struct leaving *item)
{
    if (item->drain)
        as_drain_drop(item->drain);
    item->drain = NULL;
    item->state = OVER;
    if (item->node && !as_drain_is_unwanted(item->group->drains, item->node))
        as_drain_release(item->group->drains, item->node);
}

void leave_end_removed(struct leaving *item, const char *why)
{
    leave_end(item);
    leave_record(item->group, &item, 1, AS_NODES_REMOVED, why);
}

static void end_kept(struct leaving *item, const char *why)
{
    leave_end(item);
    item->group->failed = (as_maybe_time){true, leave_get_wall(item->group->leave)};
    as_log(AS_LOG_WARN, "a node stays", AS_F("target", item->group->ref->id),
           AS_F("node", item->node ? item->node : item->id), AS_F("reason", why));
    leave_record(item->group, &item, 1, AS_NODES_KEPT, why);
}

static void free_return(struct as_leave_return *returning)
{
    free(returning->items);
    free(returning);
}

static void give_back(struct as_leave_return *returning)
{
    leave_record(returning->items[0]->group, returning->items, returning->count, AS_NODES_KEPT,
                 "taken back: more are needed");
    for (size_t i = 0; i < returning->count; i++)
        returning->items[i]->pins--;
    if (returning->done)
        returning->done(returning->context, returning->returned);
    free_return(returning);
}

/* A node that is stuck is put back by the recovery, before long. */
static void undone(void *context, const struct as_drain_result *result)
{
    struct leaving *item = context;
    struct as_leave_return *returning = item->returning;
    if (result->end == AS_DRAIN_STUCK)
        as_log(AS_LOG_ERROR, "a node stays cordoned", AS_F("node", result->node),
               AS_F("reason", result->outcome.message));
    if (!returning) {
        end_kept(item, item->why);
        return;
    }
    item->returning = NULL;
    leave_end(item);
    item->group->failed = (as_maybe_time){true, leave_get_wall(item->group->leave)};
    returning->returned += result->end != AS_DRAIN_NO_NODE;
    if (--returning->open == 0)
        give_back(returning);
}

void leave_put_back(struct leaving *item, const char *why)
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
    as_drain_undo_start(item->group->drains, item->node, undone, item);
}

void leave_try_later(struct leaving *item, int64_t us)
{
    item->state = WAITS;
    item->next.us = as_time_add(leave_get_mono(item->group->leave).us,
                                us > AS_LEAVE_AGAIN_US ? us : AS_LEAVE_AGAIN_US);
}

/* ---- growth takes nodes back ---- */

static bool is_returnable(const struct leaving *item)
{
    return is_leaving(item) && item->node && item->is_ready && item->is_listed;
}

/* Ids of decisions ascend with time. The nodes of one decision are marked one after the other. */
static int compare_newest(const void *a, const void *b)
{
    const struct leaving *left = *(struct leaving *const *)a, *right = *(struct leaving *const *)b;
    const int64_t left_us = left->created.set ? left->created.at.us : INT64_MIN;
    const int64_t right_us = right->created.set ? right->created.at.us : INT64_MIN;
    const int decision = strcmp(right->decision, left->decision);
    if (decision != 0)
        return decision;
    if (left_us != right_us)
        return left_us > right_us ? -1 : 1;
    return strcmp(left->id, right->id);
}

struct as_leave_return *as_leave_take_back(struct as_leave *leave, const struct as_target_ref *ref,
                                           int32_t wanted, as_leave_returned_fn *done,
                                           void *context)
{
    const struct group *group = find_group(leave, ref);
    struct leaving *item, **items = NULL;
    size_t count = 0, room = 0;
    if (!group || wanted <= 0)
        return NULL;
    LIST_FOREACH (item, &group->nodes, entry) {
        if (!is_returnable(item))
            continue;
        items = as_xgrow(items, count, &room, sizeof(struct leaving *));
        items[count++] = item;
    }
    if (count == 0)
        return NULL;
    qsort(items, count, sizeof(struct leaving *), compare_newest);
    struct as_leave_return *returning = as_xcalloc(1, sizeof(*returning));
    returning->items = items;
    returning->count = count < (size_t)wanted ? count : (size_t)wanted;
    returning->open = (int32_t)returning->count;
    returning->done = done;
    returning->context = context;
    for (size_t i = 0; i < returning->count; i++) {
        items[i]->returning = returning;
        items[i]->pins++;
        leave_put_back(items[i], "");
    }
    return returning;
}

void as_leave_return_cancel(struct as_leave_return *returning)
{
    returning->done = NULL;
}

void as_leave_note_growth(struct as_leave *leave, const struct as_target_ref *ref, int32_t more)
{
    struct group *group = find_group(leave, ref);
    if (group)
        group->base += more;
}

/* ---- what is read ---- */

static struct leaving *find_mark(struct group *group, const struct as_instance_node *node)
{
    const struct as_leaving found = {node->instance->id, node->instance->provider_id,
                                     node->node.name};
    struct leaving *item = add(group, &found, node->mark->decision);
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

static void see(struct group *group, const struct as_instance_node *node, bool may_find)
{
    const bool is_there = node->instance->state != AS_INSTANCE_LEAVING;
    const bool is_marked = has_our_mark(group, node);
    struct leaving *item = find(group, node->instance->id);
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
static void see_gone(struct leaving *item)
{
    if (!item->is_listed && is_leaving(item))
        leave_end_removed(item, "its instance was gone already");
    if (item->state == OVER && item->pins == 0 && !(item->is_listed && item->is_marked))
        free_leaving(item);
}

int32_t leave_count(const struct group *group, bool (*is_one)(const struct leaving *))
{
    const struct leaving *item;
    int32_t found = 0;
    LIST_FOREACH (item, &group->nodes, entry)
        found += is_one(item);
    return found;
}

static bool counts_no_more(const struct leaving *item)
{
    return item->is_listed && (is_leaving(item) || item->state == RETURNS);
}

static bool is_sent(const struct leaving *item)
{
    return item->is_listed && item->state == SENT;
}

static int32_t get_size(const struct group *group, const struct as_group_view *view)
{
    const int32_t waiting = leave_count(group, counts_no_more), after = group->base - group->sent;
    const bool is_between = group->sent > 0 && view->size <= group->base && view->size >= after;
    const int32_t size =
        is_between ? after - waiting : view->size - waiting - leave_count(group, is_sent);
    return size > 0 ? size : 0;
}

void as_leave_see(struct as_leave *leave, const struct as_leave_group *given,
                  const struct as_group_view *view, const struct as_instance_node *nodes,
                  size_t node_count, struct as_leave_sight *sight_out)
{
    struct group *group = get_group(leave, given);
    /* If the nodes are the instances, one too many is a node whose instance is gone. */
    const bool may_find = !view->node_label || node_count <= (size_t)view->size;
    struct leaving *item, *next;
    LIST_FOREACH (item, &group->nodes, entry)
        item->is_listed = item->is_marked = item->is_ready = false;
    for (size_t i = 0; i < node_count; i++)
        see(group, &nodes[i], may_find);
    LIST_FOREACH_SAFE(item, &group->nodes, entry, next)
    see_gone(item);
    *sight_out = (struct as_leave_sight){.size = get_size(group, view),
                                         .max = view->max,
                                         .returnable = leave_count(group, is_returnable),
                                         .failed = group->failed};
    if (view->max >= 0) /* what does not come back takes its place until it is gone */
        sight_out->max -= view->size - sight_out->size - sight_out->returnable;
}

/* ---- looking and emptying ---- */

static void looked(void *context, const struct as_drain_result *result)
{
    struct leaving *item = context;
    const char *why = result->outcome.message;
    item->drain = NULL;
    switch (result->end) {
    case AS_DRAIN_DONE:
    case AS_DRAIN_NO_NODE: item->state = READY; break;
    case AS_DRAIN_NOT_YET: leave_try_later(item, result->outcome.retry_after_us); break;
    case AS_DRAIN_UNMARKED:
    case AS_DRAIN_FAILED:
    case AS_DRAIN_STUCK: end_kept(item, why); break;
    }
}

/* What a marked node needs by now; false: time. */
static bool find_task(const struct leaving *item, enum as_drain_task *task_out)
{
    const struct group *group = item->group;
    const int64_t age = leave_get_wall(group->leave).us - item->marked_at.us;
    *task_out = group->drain == AS_NODES_DRAIN_TRUE ? AS_DRAIN_EMPTY : AS_DRAIN_CHECK;
    if (group->drain != AS_NODES_DRAIN_WAIT || age >= group->drain_timeout_us)
        return true;
    *task_out = AS_DRAIN_LOOK;
    return age >= group->drain_after_us;
}

static void look(struct leaving *item)
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
    if (item->next.us > leave_get_mono(group->leave).us)
        return;
    if (!item->node) {
        item->state = READY;
    } else if (find_task(item, &request.task)) {
        item->state = LOOKED;
        item->drain = as_drain_start(group->drains, &request, looked, item);
    }
}

/* ---- steps ---- */

static void step_group(struct group *group)
{
    const char *why = "";
    struct leaving *item, *next;
    const bool is_gone =
        as_access_get_leave_permit(group->leave->env, group->ref->id, &why) == AS_LEAVE_GONE;
    LIST_FOREACH_SAFE(item, &group->nodes, entry, next)
    if (is_gone && is_leaving(item))
        leave_put_back(item, "no rule leads to its group any more");
    if (!leave_may_step(group, &why))
        return;
    LIST_FOREACH (item, &group->nodes, entry)
        if (item->state == WAITS)
            look(item);
    leave_delete_ready(group);
}

static void step(void *context)
{
    struct as_leave *leave = context;
    struct group *group;
    leave->timer = NULL;
    LIST_FOREACH (group, &leave->groups, entry)
        step_group(group);
    LIST_FOREACH (group, &leave->groups, entry)
        if (leave_count(group, is_leaving) > 0)
            wake(leave);
}

static void wake(struct as_leave *leave)
{
    struct as_loop *loop = leave->env->loop;
    if (!leave->timer && !leave->is_retired)
        leave->timer = loop->start_timer(loop, AS_LEAVE_STEP_US, step, leave);
}

/* ---- all of it ---- */

struct as_leave *as_leave_new(const struct as_access_env *env, struct as_account *account)
{
    struct as_leave *leave = as_xcalloc(1, sizeof(*leave));
    leave->env = env;
    leave->account = account;
    as_random_init(&leave->random, (uint64_t)leave_get_wall(leave).us);
    LIST_INIT(&leave->groups);
    LIST_INIT(&leave->batches);
    return leave;
}

void as_leave_retire(struct as_leave *leave)
{
    struct group *group;
    struct leaving *item;
    leave->is_retired = true;
    leave->env->loop->cancel_timer(leave->env->loop, leave->timer);
    leave->timer = NULL;
    LIST_FOREACH (group, &leave->groups, entry) {
        LIST_FOREACH (item, &group->nodes, entry) {
            if (item->drain)
                as_drain_drop(item->drain);
            item->drain = NULL;
        }
    }
}

bool as_leave_is_idle(const struct as_leave *leave)
{
    return LIST_EMPTY(&leave->batches); /* the drains tell of the rest */
}

struct as_leave *as_leave_free(struct as_leave *leave)
{
    struct batch *batch;
    struct group *group;
    struct leaving *item;
    if (!leave)
        return NULL;
    leave->env->loop->cancel_timer(leave->env->loop, leave->timer);
    while ((batch = LIST_FIRST(&leave->batches)))
        leave_free_batch(batch);
    while ((group = LIST_FIRST(&leave->groups))) {
        while ((item = LIST_FIRST(&group->nodes))) {
            if (item->returning && --item->returning->open == 0)
                free_return(item->returning);
            free_leaving(item);
        }
        LIST_REMOVE(group, entry);
        as_target_ref_free(group->ref);
        free(group->select);
        free(group);
    }
    free(leave);
    return NULL;
}
