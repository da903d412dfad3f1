/*
 * Operators' orders: carried out or refused, and recorded before the answer.
 *
 * An ordered size is stored with its target until it is set or given up: the promise to set it
 * survives a crash. It is handled like every action: observed, the intent committed, set, the
 * outcome committed. Locks, limits, `after` and pauses do not stop it; the kill switch ends it.
 * While the kill switch is set, each order that can lead to a change is refused.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/decide/sized.h>

#include "engine_aliases.h"
#include "engine_concerns.h"
#include "engine_effects.h"
#include "engine_registry.h"

/* Targets that can be paused at once: an order costs memory and state. */
#define PAUSED_MAX  10000
#define MESSAGE_MAX 512
/* An ordered size is given up if it could not be set for so long: nobody expects it any more. */
#define ORDER_MAX_US (10 * AS_US_PER_MIN)

static const char stopped[] = "given up: the kill switch was set";

static struct as_ordered_state *get_ordered(const struct target *target)
{
    return target->parts[CONCERN_COMMANDS];
}

/* The only target of the entry with this name; NULL: none, or several. */
static struct target *find_by_name(struct as_engine *engine, const char *name, size_t *count_out)
{
    struct target *found = NULL, *target;
    *count_out = 0;
    for (size_t i = 0; i < engine->ruleset->target_count; i++) {
        if (strcmp(engine->ruleset->targets[i]->name, name) != 0)
            continue;
        LIST_FOREACH (target, target_get_members(engine, engine->ruleset->targets[i]), of_entry) {
            found = target;
            ++*count_out;
        }
    }
    return *count_out == 1 ? found : NULL;
}

/* The only HTTP group in use that an earlier version gave this id; NULL: none, or several. */
static struct target *find_by_former_id(struct as_engine *engine, const char *id, size_t *count_out)
{
    struct target *found = NULL, *target;
    RB_FOREACH (target, target_tree, &engine->targets) {
        if (!target->config || !as_target_ref_has_id(target->ref, id))
            continue;
        found = target;
        ++*count_out;
    }
    return *count_out == 1 ? found : NULL;
}

/* A reference for an id that a template of the rule files may give later; NULL: none may. A node
 * group gets its address, so that its aliases are known (engine_aliases.h). */
static struct as_target_ref *find_coming(const struct as_engine *engine, const char *id)
{
    for (size_t i = 0; i < engine->ruleset->target_count; i++) {
        const struct as_target_config *entry = engine->ruleset->targets[i];
        struct as_target_ref *ref;
        if (!as_target_may_have_id(entry, id))
            continue;
        ref = as_target_ref_of_group(entry, id);
        return ref ? ref : target_ref_of_id(id);
    }
    return NULL;
}

struct deed { /* an order being carried out */
    struct as_operator_command_record *record;
    struct target *target;
    struct waiter *waiter; /* evaluates targets after the commit; made when needed */
    bool wakes, wakes_all;
};

static void command_refuse(struct as_engine *engine, struct deed *deed,
                           enum as_operator_command_outcome outcome, const char *format, ...)
    AS_PRINTF(4, 5);
static void command_refuse(struct as_engine *engine, struct deed *deed,
                           enum as_operator_command_outcome outcome, const char *format, ...)
{
    char text[MESSAGE_MAX];
    va_list list;
    va_start(list, format);
    (void)vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    deed->record->outcome = outcome;
    deed->record->message = as_arena_strdup(&engine->arena, text);
}

/* Narrowed credentials have equal parts of half of the pauses. False: the order is refused. */
static bool may_pause(struct as_engine *engine, struct deed *deed)
{
    const char *who = deed->record->order->who;
    const size_t part = (size_t)as_engine_get_part(engine, who, PAUSED_MAX);
    if (!deed->target || pauses_get(deed->target)->is_set || engine->paused_count < part)
        return true;
    if (engine->paused_count >= PAUSED_MAX) {
        command_refuse(engine, deed, AS_OPERATOR_COMMAND_REFUSED,
                       "%d targets are paused already: pause all", PAUSED_MAX);
        return false;
    }
    if (pauses_count_of(engine, who) < part)
        return true;
    command_refuse(engine, deed, AS_OPERATOR_COMMAND_REFUSED,
                   "the credential %s has paused %zu targets already", who, part);
    return false;
}

static void pause(struct as_engine *engine, struct deed *deed)
{
    const struct as_operator_command *order = deed->record->order;
    if (!may_pause(engine, deed))
        return;
    pause_set(engine, deed->target, order);
    if (order->for_us > 0) {
        deed->record->until = (as_maybe_time){true, {as_time_add(engine->wall.us, order->for_us)}};
    }
}

static void resume(struct as_engine *engine, struct deed *deed)
{
    const struct as_pause_state *pause = deed->target ? pauses_get(deed->target) : &engine->pause;
    const bool was_ineffective = evaluation_release(engine, deed->target);
    const bool is_paused = pause->is_set;
    const bool is_contended = deed->target && contention_holds(engine, deed->target);
    if (is_contended) {
        contention_end(engine, deed->target, "resumed by an operator");
        effect_put_target(engine, deed->target);
    }
    if (is_paused)
        pause_clear(engine, deed->target);
    if (is_paused || is_contended || was_ineffective) {
        deed->wakes = true;
        deed->wakes_all = !deed->target;
    } else if (engine->halt.is_set) {
        command_refuse(engine, deed, AS_OPERATOR_COMMAND_NOTHING_TO_DO,
                       "it is the kill switch (%s) that stops everything: it ends where it was set",
                       engine->halt.who);
    } else if (deed->target && engine->pause.is_set) {
        command_refuse(engine, deed, AS_OPERATOR_COMMAND_NOTHING_TO_DO,
                       "not this target is paused, but all at once: resume all");
    } else {
        command_refuse(engine, deed, AS_OPERATOR_COMMAND_NOTHING_TO_DO, "%s not paused",
                       deed->target ? "the target is" : "all targets at once are");
    }
}

static bool lasts(const struct as_engine *engine, struct as_moment since, int64_t us)
{
    return as_moment_is_set(since) && as_time_add(since.mono.us, us) > engine->mono.us;
}

static bool command_holds(const struct as_engine *engine, const struct as_cooldown *cooldown,
                          struct as_moment up, struct as_moment down)
{
    return lasts(engine, up, cooldown->up_us) || lasts(engine, down, cooldown->up_after_down_us) ||
           lasts(engine, up, cooldown->down_us) ||
           lasts(engine, down, as_cooldown_get_down_after_down(cooldown));
}

static bool is_locked(const struct as_engine *engine, const struct target *target)
{
    if (target->config) {
        const struct locks locks = scaleup_get_locks(target, engine->mono);
        return command_holds(engine, &locks.cooldown, locks.up, locks.down) ||
               command_holds(engine, &locks.cooldown, target->locks.dry_last_up,
                             target->locks.dry_last_down);
    }
    /* the present locks are unknown: any remembered one may count */
    const int64_t keep = target->keep_us;
    return lasts(engine, target->locks.last_up, keep) ||
           lasts(engine, target->locks.last_down, keep) ||
           lasts(engine, target->locks.last_return, keep) ||
           lasts(engine, target->locks.dry_last_up, keep) ||
           lasts(engine, target->locks.dry_last_down, keep);
}

static void command_unlock(struct as_engine *engine, struct deed *deed)
{
    struct target *target = deed->target;
    if (!is_locked(engine, target)) {
        command_refuse(
            engine, deed, AS_OPERATOR_COMMAND_NOTHING_TO_DO, "no lock holds the target%s",
            contention_holds(engine, target) ? ": it is contended, which `resume` ends" : "");
        return;
    }
    target->locks.last_up = target->locks.last_down = target->locks.last_return = AS_MOMENT_NEVER;
    target->locks.dry_last_up = target->locks.dry_last_down = AS_MOMENT_NEVER;
    scaleup_end_back_off(target);
    effect_put_target(engine, target);
    deed->wakes = true;
}

static bool is_dry(const struct as_engine *engine, const struct target *target)
{
    return engine->config.dry_run || target->config->dry_run;
}

/* For an order that leads to no request. */
static struct as_action_record *record_end(struct as_engine *engine, struct target *target,
                                           enum as_reason outcome, int32_t from)
{
    struct as_action_record *record = as_arena_alloc(&engine->arena, 1, sizeof(*record));
    char *id = as_arena_alloc(&engine->arena, 1, AS_ULID_SIZE);
    as_ulid_print(engine->wall, &engine->random, id);
    *record = (struct as_action_record){
        .id = id,
        .command = as_arena_strdup(&engine->arena, get_ordered(target)->id),
        .sender = as_arena_strdup(&engine->arena, get_ordered(target)->sender),
        .target = target->ref->id,
        .target_name = target->config ? target->config->name : "",
        .target_kind = target->ref->kind,
        .unit = as_sized_get_unit(target->ref),
        .from = from,
        .to = get_ordered(target)->replicas,
        .outcome = outcome,
        .message = "",
        .method = "",
        .path = "",
        .version = "",
        .since_notification_us = -1,
        .since_alert_us = -1,
    };
    effect_add(engine, AS_EFFECT_RECORD_ACTION)->action = record;
    return record;
}

static void command_drop(struct target *target)
{
    as_rows_free_texts(as_ordered_rows, get_ordered(target));
    *get_ordered(target) = (struct as_ordered_state){0};
}

/* The order failed; the target is to be stored. */
static void command_give_up(struct as_engine *engine, struct target *target, enum as_reason outcome,
                            const char *message)
{
    const int32_t from = target->has_size ? target->replicas : -1;
    record_end(engine, target, outcome, from)->message = message;
    command_drop(target);
}

static bool commands_is_of(const struct target *target, const struct intent *intent)
{
    return intent->state.is_ordered && get_ordered(target)->is_set &&
           strcmp(get_ordered(target)->id, intent->state.decision_id) == 0;
}

/* Its request is under way, or may have been carried out: a record will follow. */
static bool is_on_its_way(const struct target *target)
{
    const struct intent *const intents[] = {target->intent, target->in_doubt};
    for (size_t i = 0; i < AS_ARRAY_SIZE(intents); i++) {
        if (intents[i] && commands_is_of(target, intents[i]))
            return true;
    }
    return false;
}

void commands_on_halt(struct as_engine *engine)
{
    struct target *target;
    RB_FOREACH (target, target_tree, &engine->targets) {
        get_ordered(target)->is_stopped = get_ordered(target)->is_set;
        if (!get_ordered(target)->is_set || is_on_its_way(target)) /* it is seen to its end */
            continue;
        command_give_up(engine, target, AS_REASON_SUPERSEDED, stopped);
        effect_put_target(engine, target);
    }
}

static void command_scale(struct as_engine *engine, struct deed *deed)
{
    struct target *target = deed->target;
    const struct as_operator_command *order = deed->record->order;
    if (!target->config || target->ref->field_count == 0) {
        command_refuse(
            engine, deed, AS_OPERATOR_COMMAND_UNKNOWN_TARGET,
            "no rule leads to the target now, so that its address and bounds are not known");
        return;
    }
    if (target->config->pool) {
        command_refuse(engine, deed, AS_OPERATOR_COMMAND_REFUSED,
                       "a pool has no size of its own: order the size of one of its groups");
        return;
    }
    const struct as_schedule_bounds bounds = target_get_bounds(engine, target);
    const char *obstacle = alias_find_obstacle(engine, target);
    if (obstacle) {
        command_refuse(engine, deed, AS_OPERATOR_COMMAND_REFUSED, "%s", obstacle);
    } else if (is_dry(engine, target)) {
        command_refuse(engine, deed, AS_OPERATOR_COMMAND_REFUSED, "dry run: nothing is changed");
    } else if (!order->force && (order->replicas < bounds.min || order->replicas > bounds.max)) {
        command_refuse(engine, deed, AS_OPERATOR_COMMAND_OUT_OF_BOUNDS,
                       "%d is outside %d to %d; add `--force`", order->replicas, bounds.min,
                       bounds.max);
    } else {
        if (get_ordered(target)->is_set && !is_on_its_way(target))
            command_give_up(engine, target, AS_REASON_SUPERSEDED,
                            "a later command came before it was done");
        command_drop(target);
        *get_ordered(target) = (struct as_ordered_state){
            .is_set = true,
            .sender = scope_is_whole(engine, order->who) ? NULL : as_xstrdup(order->who),
            .replicas = order->replicas,
            .force = order->force,
            .at = moment_now(engine),
        };
        memcpy(get_ordered(target)->id, deed->record->id, AS_ULID_SIZE);
        target_note_entry(target);
        target->retry.us = INT64_MIN; /* tries at once, whatever failed before */
        effect_put_target(engine, target);
        deed->wakes = true;
    }
}

static void set_floor(struct as_engine *engine, struct deed *deed)
{
    struct target *target = deed->target;
    const struct as_operator_command *order = deed->record->order;
    if (order->is_end && floor_get(target)->size == 0) {
        command_refuse(engine, deed, AS_OPERATOR_COMMAND_NOTHING_TO_DO, "the target has no floor");
        return;
    }
    if (!order->is_end && (!target->config || target->ref->field_count == 0)) {
        command_refuse(
            engine, deed, AS_OPERATOR_COMMAND_UNKNOWN_TARGET,
            "no rule leads to the target now, so that its address and bounds are not known");
        return;
    }
    if (!order->is_end && target->config->pool) {
        command_refuse(engine, deed, AS_OPERATOR_COMMAND_REFUSED,
                       "a pool has no size of its own: order the floor of one of its groups");
        return;
    }
    const char *obstacle = order->is_end ? NULL : alias_find_obstacle(engine, target);
    if (obstacle) {
        command_refuse(engine, deed, AS_OPERATOR_COMMAND_REFUSED, "%s", obstacle);
        return;
    }
    if (!order->is_end && order->replicas > target_get_bounds(engine, target).max) {
        command_refuse(engine, deed, AS_OPERATOR_COMMAND_OUT_OF_BOUNDS, "%d is above max, %d",
                       order->replicas, target_get_bounds(engine, target).max);
        return;
    }
    if (order->is_end) {
        floor_clear(target);
    } else {
        floor_set(engine, target, order);
        deed->record->until = (as_maybe_time){true, {as_time_add(engine->wall.us, order->for_us)}};
    }
    effect_put_target(engine, target);
    deed->wakes = true;
}

static bool commands_end_floor(struct as_engine *engine, struct target *target)
{
    if (floor_get_end(target).us > engine->mono.us)
        return false;
    struct as_operator_command *order = as_arena_alloc(&engine->arena, 1, sizeof(*order));
    *order = (struct as_operator_command){
        .kind = AS_OPERATOR_COMMAND_FLOOR,
        .is_end = true,
        .target = target->ref->id,
        .who = "",
        .remote = "",
        .reason = "the time of the floor is over",
    };
    floor_clear(target);
    (void)effect_order_record(engine, order, target, schedules_find_bounds(engine, target), 0);
    return true;
}

/* Approve, deny. */
static void answer(struct as_engine *engine, struct deed *deed)
{
    const struct as_operator_command *order = deed->record->order;
    const char *obstacle = approvals_answer(engine, deed->target, order, deed->record->id);
    if (obstacle) {
        command_refuse(engine, deed, AS_OPERATOR_COMMAND_NOTHING_TO_DO, "%s", obstacle);
        return;
    }
    effect_put_target(engine, deed->target);
    deed->wakes = true;
}

static void refuse_name(struct as_engine *engine, struct deed *deed, size_t count)
{
    const char *name = deed->record->order->target;
    bool is_templated = false;
    for (size_t i = 0; i < engine->ruleset->target_count; i++)
        is_templated = is_templated || (engine->ruleset->targets[i]->is_templated &&
                                        strcmp(engine->ruleset->targets[i]->name, name) == 0);
    if (count > 1)
        command_refuse(engine, deed, AS_OPERATOR_COMMAND_UNKNOWN_TARGET,
                       "%zu targets come from %s: name one by its id", count, name);
    else if (is_templated)
        command_refuse(engine, deed, AS_OPERATOR_COMMAND_UNKNOWN_TARGET,
                       "no target has come from %s yet: it has templates, so name one by its id",
                       name);
    else
        command_refuse(engine, deed, AS_OPERATOR_COMMAND_UNKNOWN_TARGET,
                       "no such target: it goes by its id, or its name in the rule files");
}

/* NULL: none, or several of this name. A target that does not exist yet can be paused. */
static struct target *command_find(struct as_engine *engine,
                                   const struct as_operator_command *order, size_t *count_out)
{
    struct target *target = target_find_id(engine, order->target), *group = NULL;
    if (!target || !target->config)
        group = find_by_former_id(engine, order->target, count_out);
    if (group || *count_out > 1)
        return group;
    if (!target)
        target = find_by_name(engine, order->target, count_out);
    if (target || order->kind != AS_OPERATOR_COMMAND_PAUSE)
        return target;
    struct as_target_ref *coming = find_coming(engine, order->target);
    return coming ? target_get(engine, coming) : NULL;
}

/* The kill switch refuses each order that can lead to a change, now or after its removal, and each
 * answer to a request. A pause, its end and the end of a floor order no change. */
static bool is_stopped_by_halt(const struct as_operator_command *order)
{
    switch (order->kind) {
    case AS_OPERATOR_COMMAND_SCALE:
    case AS_OPERATOR_COMMAND_UNLOCK:
    case AS_OPERATOR_COMMAND_APPROVE:
    case AS_OPERATOR_COMMAND_DENY: return true;
    case AS_OPERATOR_COMMAND_FLOOR: return !order->is_end;
    case AS_OPERATOR_COMMAND_PAUSE:
    case AS_OPERATOR_COMMAND_RESUME:
    case AS_OPERATOR_COMMAND_KIND_COUNT: break;
    }
    return false;
}

struct target *commands_handle(struct as_engine *engine, const struct as_operator_command *order,
                               uint64_t request)
{
    static void (*const carry_out[AS_OPERATOR_COMMAND_KIND_COUNT])(struct as_engine *,
                                                                   struct deed *) = {
        [AS_OPERATOR_COMMAND_PAUSE] = pause,           [AS_OPERATOR_COMMAND_RESUME] = resume,
        [AS_OPERATOR_COMMAND_SCALE] = command_scale,   [AS_OPERATOR_COMMAND_FLOOR] = set_floor,
        [AS_OPERATOR_COMMAND_UNLOCK] = command_unlock, [AS_OPERATOR_COMMAND_APPROVE] = answer,
        [AS_OPERATOR_COMMAND_DENY] = answer,
    };
    size_t named = 0;
    struct deed deed = {.target = order->request  ? approvals_find(engine, order->request)
                                  : order->target ? command_find(engine, order, &named)
                                                  : NULL};
    deed.record = effect_order_record(engine, order, deed.target,
                                      schedules_find_bounds(engine, deed.target), request);
    if (engine->stopping)
        command_refuse(engine, &deed, AS_OPERATOR_COMMAND_REFUSED, "alertscaler is stopping");
    else if (order->request && !deed.target)
        command_refuse(engine, &deed, AS_OPERATOR_COMMAND_UNKNOWN_REQUEST,
                       "no such request: it was used, or has been over for an hour, or never was");
    else if (order->target && !deed.target)
        refuse_name(engine, &deed, named);
    else if (!scope_allows_order(engine, order->who, deed.target))
        command_refuse(engine, &deed, AS_OPERATOR_COMMAND_REFUSED,
                       "the credential %s may not order %s", order->who,
                       deed.target ? "this target" : "all targets at once");
    else if (engine->halt.is_set && is_stopped_by_halt(order))
        command_refuse(engine, &deed, AS_OPERATOR_COMMAND_REFUSED,
                       "the kill switch (%s) stops everything", engine->halt.who);
    else
        carry_out[order->kind](engine, &deed);

    struct waiter *waiter = effect_commit_awaited(engine);
    waiter->has_request = true;
    waiter->request = request;
    if (deed.wakes_all)
        pauses_touch_all(engine, waiter);
    else if (deed.wakes)
        target_touch(deed.target, waiter);
    return deed.wakes || deed.wakes_all ? NULL : deed.target;
}

static bool is_too_old(const struct as_engine *engine, const struct as_ordered_state *ordered)
{
    return as_time_add(ordered->at.mono.us, ORDER_MAX_US) <= engine->mono.us;
}

/* Why it cannot be done any more; NULL: it can. */
static const char *command_find_reason_against(const struct as_engine *engine,
                                               const struct target *target,
                                               const struct as_observation *observation)
{
    const struct as_ordered_state *ordered = get_ordered(target);
    const struct as_schedule_bounds bounds = target_get_bounds(engine, target);
    if (is_dry(engine, target))
        return "given up: dry run, nothing is changed";
    if (is_too_old(engine, ordered))
        return "given up: it could not be done for 10 minutes";
    if (ordered->force)
        return NULL;
    if (ordered->replicas < bounds.min || ordered->replicas > bounds.max)
        return "given up: not within min and max, which have changed since it was ordered";
    if ((observation->max >= 0 && ordered->replicas > observation->max) ||
        (observation->min >= 0 && ordered->replicas < observation->min))
        return "given up: not within the bounds that the other side has of its own";
    return NULL;
}

static bool commands_begin(struct as_engine *engine, struct target *target,
                           const struct as_observation *observation)
{
    struct as_ordered_state *ordered = get_ordered(target);
    if (!ordered->is_set || !target->config || engine->stopping ||
        (ordered->is_stopped && is_on_its_way(target)))
        return false;
    const char *against =
        ordered->is_stopped ? stopped : command_find_reason_against(engine, target, observation);
    if (against) {
        command_give_up(engine, target,
                        ordered->is_stopped ? AS_REASON_SUPERSEDED : AS_REASON_REJECTED, against);
        effect_put_target(engine, target);
        effect_commit(engine);
        return false;
    }
    if (ordered->replicas == observation->replicas && !target->in_doubt) {
        record_end(engine, target, AS_REASON_APPLIED, observation->replicas)->message =
            "the size was the one that was ordered";
        command_drop(target);
        effect_put_target(engine, target);
        effect_commit(engine);
        return false;
    }
    if (target->in_doubt &&
        (target->is_relative || target->in_doubt->state.to != ordered->replicas))
        return false; /* a request in question is soon observed again */
    return true;
}

static bool commands_on_failure(struct as_engine *engine, struct target *target,
                                enum as_reason outcome, bool is_recorded)
{
    const bool is_final = outcome == AS_REASON_FORBIDDEN || outcome == AS_REASON_REJECTED ||
                          outcome == AS_REASON_TARGET_NOT_FOUND || outcome == AS_REASON_NO_PODS ||
                          outcome == AS_REASON_TARGET_NOT_ALLOWED ||
                          outcome == AS_REASON_DID_NOT_COME;
    const bool is_stopped =
        get_ordered(target)->is_stopped && !is_on_its_way(target) && !is_recorded;
    if (!get_ordered(target)->is_set ||
        !(is_final || is_stopped || is_too_old(engine, get_ordered(target))))
        return false;
    if (is_recorded)
        command_drop(target);
    else if (is_stopped)
        command_give_up(engine, target, AS_REASON_SUPERSEDED, stopped);
    else
        command_give_up(
            engine, target, outcome,
            outcome == AS_REASON_TARGET_NOT_ALLOWED
                ? "given up: the group belongs to another target, as the record before says"
                : "given up: the target could not be observed");
    return true;
}

static bool commands_remake(struct as_engine *engine, struct target *target)
{
    if (!get_ordered(target)->is_set)
        return false;
    target->dirty = true;
    if (target_recover_config(engine, target))
        return false;
    command_give_up(engine, target, AS_REASON_SUPERSEDED, "no rule leads to the target any more");
    return true;
}

static void commands_forget_sizes(struct as_engine *engine, struct target *target,
                                  const struct other_object *why)
{
    if (get_ordered(target)->is_set)
        command_give_up(engine, target, AS_REASON_SUPERSEDED, why->given_up);
}

void commands_end(struct target *target, const struct intent *intent)
{
    if (commands_is_of(target, intent))
        command_drop(target);
}

static bool commands_are_using(const struct as_engine *engine, const struct target *target)
{
    (void)engine;
    return get_ordered(target)->is_set;
}

static bool commands_review(struct as_engine *engine, struct target *target, int32_t replicas)
{
    (void)replicas;
    return commands_end_floor(engine, target);
}

static bool commands_on_unseen(struct as_engine *engine, struct target *target,
                               enum as_reason outcome)
{
    return commands_on_failure(engine, target, outcome, false);
}

static bool commands_claim(struct as_engine *engine, struct target *target,
                           const struct as_observation *observation, struct change *change_out)
{
    const struct as_ordered_state *ordered = get_ordered(target);
    if (!commands_begin(engine, target, observation))
        return false;
    *change_out = (struct change){.to = ordered->replicas,
                                  .cause = ordered->id,
                                  .is_ordered = true,
                                  .is_narrowed = ordered->sender != NULL};
    return true;
}

static void commands_store(struct as_engine *engine, const struct target *target,
                           struct as_target_state *state)
{
    const struct as_ordered_state *ordered = get_ordered(target);
    if (ordered->is_set)
        state->ordered =
            as_rows_copy(&engine->arena, as_ordered_rows, ordered, 1, sizeof(*ordered));
}

static void commands_restore(struct as_engine *engine, struct target *target,
                             const struct as_target_state *state)
{
    struct as_ordered_state *ordered = get_ordered(target);
    (void)engine;
    if (!state->ordered)
        return;
    *ordered = *state->ordered;
    as_rows_own_texts(as_ordered_rows, ordered);
    ordered->is_set = true;
}

static bool commands_need_address(const struct target *target)
{
    return get_ordered(target)->is_set;
}

static void commands_fill_view(const struct target *target, as_mono_time now, as_wall_time wall,
                               struct as_target_view *view)
{
    const struct as_ordered_state *ordered = get_ordered(target);
    (void)now, (void)wall;
    view->has_order = ordered->is_set;
    view->ordered = ordered->replicas;
}

static void commands_on_applied(struct as_engine *engine, struct target *target,
                                const struct action *action)
{
    (void)engine;
    commands_end(target, action->intent);
}

static void commands_on_failed(struct as_engine *engine, struct target *target,
                               const struct action *action)
{
    if (commands_is_of(target, action->intent) && !action->result->is_ambiguous &&
        commands_on_failure(engine, target, action->result->outcome, true))
        effect_put_target(engine, target);
}

const struct concern concern_commands = {
    .name = "commands",
    .remake = commands_remake,
    .on_applied = commands_on_applied,
    .on_failed = commands_on_failed,
    .size = sizeof(struct as_ordered_state),
    .deinit = command_drop,
    .store = commands_store,
    .restore = commands_restore,
    .fill_view = commands_fill_view,
    .needs_address = commands_need_address,
    .is_using = commands_are_using,
    .forget_sizes = commands_forget_sizes,
    .on_unseen = commands_on_unseen,
    .claim = commands_claim,
    .review = commands_review,
    .on_idle = commands_end_floor,
};
