/*
 * Actions: the intent is committed before the size is set, the outcome with its lock afterwards.
 *
 * If the answer to a request is lost, the request may have been carried out, or may still be. It is
 * stored as the target's `in_doubt`. If the size is then found as requested, the request is
 * recorded as applied and starts its lock, so that the same incident does not act twice. `in_doubt`
 * ends when it is found, when its condition cannot hold any more, or after IN_DOUBT_US. Meanwhile
 * the target is decided again, but only the same size may be requested: then it does not matter
 * which request wins.
 */
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/decide/sized.h>

#include "engine_aliases.h"
#include "engine_concerns.h"
#include "engine_effects.h"
#include "engine_incidents.h"
#include "engine_phases.h"
#include "engine_pools.h"
#include "engine_registry.h"
#include "engine_state.h"

static struct intent *intent_free(struct intent *intent)
{
    if (!intent)
        return NULL;
    free((char *)(uintptr_t)intent->state.rule);
    names_free(intent->take, intent->take_count);
    request_free(intent->used);
    free(intent);
    return NULL;
}

/* `returned`: how many came back that were to leave: no increase, but a decrease that ended early.
 */
static void action_note_change(const struct as_engine *engine, struct target *target,
                               const struct intent *intent, int32_t returned)
{
    const struct as_moment now = moment_now(engine);
    if (intent->state.to <= intent->state.from) /* equal: a decrease in vain */
        target->locks.last_down = target->locks.last_step_down = now;
    else if (intent->state.to - intent->state.from > returned)
        target->locks.last_up = now;
    if (returned > 0)
        target->locks.last_return = now;
}

static struct intent *action_begin(struct as_engine *engine, struct target *target,
                                   const struct as_observation *observation, int32_t to,
                                   const char *decision, const char *rule)
{
    struct intent *intent = as_xcalloc(1, sizeof(*intent));
    as_ulid_print(engine->wall, &engine->random, intent->state.action_id);
    memcpy(intent->state.decision_id, decision, AS_ULID_SIZE);
    intent->state.rule = as_xstrdup(rule ? rule : "");
    intent->state.from = observation->replicas;
    intent->state.to = to;
    memcpy(intent->state.version, observation->version, sizeof(intent->state.version));
    intent->state.at = moment_now(engine);
    intent->serial = engine->next_serial;
    intent->generation = engine->generation;
    intent->state.is_of_alert = evaluation_is_of_alert(engine, target, intent);
    target->intent = intent;
    limits_note_begun(engine, target, intent->state.from, intent->state.to);
    return intent;
}

static void take_names(struct intent *intent, const char *const *names, size_t count)
{
    intent->take = as_xcalloc(count, sizeof(*intent->take));
    for (; intent->take_count < count; intent->take_count++)
        intent->take[intent->take_count] = as_xstrdup(names[intent->take_count]);
}

/* Of an assignment, or of the plan of a group that is a pool of itself: the nodes that leave. */
static void name_nodes(const struct target *target, const struct as_observation *observation,
                       struct intent *intent)
{
    const struct group *group = group_find((struct target *)(uintptr_t)target, intent->state.rule);
    const struct as_pool_plan *plan = observation->plan;
    const size_t count = (size_t)(intent->state.from - intent->state.to);
    if (intent->state.to >= intent->state.from)
        return;
    if (assignment_is_of(target, intent))
        take_names(intent, (const char *const *)assignment_get(target)->take,
                   assignment_get(target)->take_count < count ? assignment_get(target)->take_count
                                                              : count);
    else if (plan && group && group->rule->action.is_take)
        take_names(intent, plan->take, plan->take_count < count ? plan->take_count : count);
}

static struct marks get_marks(const struct as_engine *engine, const struct target *target,
                              const struct intent *intent)
{
    struct marks marks = {0};
    FOR_CONCERNS (engine, concern)
        if (concern->mark)
            concern->mark(target, intent, &marks);
    return marks;
}

static void commit_intent(struct as_engine *engine, struct target *target)
{
    effect_put_intent(engine, target, target->intent, false);
    struct waiter *waiter = effect_commit_awaited(engine);
    waiter->target = target;
    target->pins++;
    target_set_phase(engine, target, PHASE_INTENT);
}

void actions_begin(struct as_engine *engine, struct target *target,
                   const struct as_observation *observation, const struct outcome *outcome)
{
    const struct as_decision *decision = &outcome->decision;
    struct intent *intent =
        action_begin(engine, target, observation, decision->desired, outcome->id, decision->rule);
    name_nodes(target, observation, intent);
    if (outcome->approval) {
        approvals_use(engine, target, outcome->approval, intent);
        effect_put_target(engine, target);
    }
    commit_intent(engine, target);
}

/* No rule counts it. */
void actions_begin_change(struct as_engine *engine, struct target *target,
                          const struct as_observation *observation, const struct change *change)
{
    struct intent *intent =
        action_begin(engine, target, observation, change->to, change->cause, NULL);
    intent->state.is_ordered = change->is_ordered;
    intent->is_narrowed = change->is_narrowed;
    intent->is_clean_up = change->is_clean_up;
    intent->later_than = change->later_than;
    commit_intent(engine, target);
}

static const char *get_alert_name(struct target *target, const char *rule)
{
    const struct group *group = group_find(target, rule);
    return group ? as_labels_get(TAILQ_FIRST(&group->bindings)->incident->state.labels, "alertname")
                 : "";
}

static void action_send(struct as_engine *engine, struct target *target)
{
    struct intent *intent = target->intent;
    const struct marks marks = get_marks(engine, target, intent);
    target_set_phase(engine, target, PHASE_SCALING);
    intent->sent = engine->mono;
    struct as_scale_request *request = as_arena_alloc(&engine->arena, 1, sizeof(*request));
    *request = (struct as_scale_request){
        .from = intent->state.from,
        .to = intent->state.to,
        .credential = intent->state.is_ordered && !intent->is_narrowed
                          ? NULL
                          : target_note_sender(engine, target),
        .decision_id = intent->state.decision_id,
        .is_ordered = intent->state.is_ordered,
        .is_take_back = marks.is_take_back,
        .is_clean_up = intent->is_clean_up,
        .is_put_back = marks.is_put_back,
        .later_than = intent->later_than,
        .rule = intent->state.rule,
        .alert = get_alert_name(target, intent->state.rule),
        .nodes = target_get_nodes(target),
        .take = (const char *const *)intent->take,
        .take_count = intent->take_count,
        .policy = target_get_policy(target),
    };
    request->backing = alias_get_resources(target, &request->backing_count);
    memcpy(request->version, intent->state.version, strlen(intent->state.version) + 1);
    struct as_effect *effect = effect_add(engine, AS_EFFECT_SCALE);
    effect->call_id = target->call_id;
    effect->call.ref = target->ref;
    effect->call.request = request;
}

/* After a scale: the end of the lock, else when a rule is due again. */
static as_mono_time get_next_observation(const struct as_engine *engine, struct target *target,
                                         bool is_up)
{
    as_mono_time next = {as_time_add(engine->mono.us, REEVALUATE_US)};
    if (!target->config)
        return next;
    const struct as_cooldown *cooldown = &target->config->bounds.cooldown;
    const int64_t lock = is_up ? cooldown->up_us : as_cooldown_get_down_after_down(cooldown);
    const as_mono_time sampled = sources_get_next_due(engine, target);
    if (lock > 0) {
        next.us = as_time_add(engine->mono.us, lock);
        return sampled.us < next.us ? sampled
                                    : next; /* windows need the samples of the lock, too */
    }
    const as_mono_time due = decisions_get_next_due(engine, target);
    return due.us < next.us ? due : next;
}

/* The size is set, or its change was accepted: starts the lock, and commits the outcome before the
 * target does anything else. */
static void apply(struct as_engine *engine, struct target *target, const struct action *action)
{
    const struct intent *intent = action->intent;
    const bool is_up = intent->state.to > intent->state.from;
    if (!action->marks.is_catch_up)
        action_note_change(engine, target, intent, action->result->returned);
    FOR_CONCERNS (engine, concern)
        if (concern->on_applied)
            concern->on_applied(engine, target, action);
    target->replicas = target->desired = intent->state.to;
    limits_note_ended(engine, target, intent->state.from, intent->state.to, true);
    target->failures = target->conflicts = 0;
    target->failure = AS_REASON_APPLIED;
    target->origin.set = false;
    target_set_keep(engine, target);
    effect_put_target(engine, target);
    effect_delete_intent(engine, target);
    target_set_deadline(
        engine, target,
        target_limit_observation(engine, target, get_next_observation(engine, target, is_up)));
    target->dirty = target->dirty || commands_get(target)->is_set;
}

static void await_outcome(struct as_engine *engine, struct target *target)
{
    struct waiter *waiter = effect_commit_awaited(engine);
    waiter->target = target;
    target->pins++;
    target_set_phase(engine, target, PHASE_OUTCOME);
}

/* The present intent is over; an earlier request may still be in doubt. */
static void store_in_doubt(struct as_engine *engine, struct target *target)
{
    if (target->in_doubt)
        effect_put_intent(engine, target, target->in_doubt, true);
    else
        effect_delete_intent(engine, target);
}

/* Why the request is not sent: something has changed since it was decided. NULL: nothing has. */
static const char *action_find_obstacle(const struct as_engine *engine, struct target *target,
                                        const struct intent *intent)
{
    if (intent->generation != engine->generation)
        return "not sent, as the rules have changed since it was decided";
    FOR_CONCERNS (engine, concern) {
        const char *obstacle =
            concern->find_obstacle ? concern->find_obstacle(engine, target, intent) : NULL;
        if (obstacle)
            return obstacle;
    }
    return NULL;
}

/* The intent is committed. */
void actions_on_intent(struct as_engine *engine, struct target *target)
{
    struct intent *intent = target->intent;
    const char *obstacle = action_find_obstacle(engine, target, intent);
    if (!obstacle) {
        action_send(engine, target);
        return;
    }
    intent->sent = engine->mono;
    struct as_action_record *record = record_action(engine, target, intent, AS_REASON_SUPERSEDED);
    record->message = obstacle;
    record->attempts = 0;
    limits_note_ended(engine, target, intent->state.from, intent->state.to, false);
    FOR_CONCERNS (engine, concern)
        if (concern->on_unsent)
            concern->on_unsent(engine, target, intent);
    target->intent = intent_free(intent);
    target->dirty = true;
    store_in_doubt(engine, target);
    await_outcome(engine, target);
}

/* Done, or accepted: then it may have failed afterwards, with `result->outcome`. */
static void on_step(struct as_engine *engine, struct target *target, struct action *action)
{
    const struct as_scale_result *result = action->result;
    struct intent *intent = action->intent;
    if (result->is_partial)
        intent->state.to = action->record->to = result->reached;
    /* an earlier request needs an older version: it cannot win any more */
    target->in_doubt = intent_free(target->in_doubt);
    apply(engine, target, action);
    intent_free(intent);
}

void actions_note_next_try(const struct as_engine *engine, const struct target *target,
                           struct as_action_record *record)
{
    record->tries = target->failures;
    if (target->retry.us > engine->mono.us)
        record->next_try = moment_get_wall(engine, (struct as_moment){.mono = target->retry});
}

static void on_failure(struct as_engine *engine, struct target *target, const struct action *action)
{
    const struct as_scale_result *result = action->result;
    struct intent *intent = action->intent;
    FOR_CONCERNS (engine, concern)
        if (concern->on_failed)
            concern->on_failed(engine, target, action);
    target->failure = result->outcome;
    if (result->is_ambiguous) {
        intent_free(target->in_doubt);
        target->in_doubt = intent;
        intent->state.outcome = result->outcome;
        intent->until.us = as_time_add(engine->mono.us, IN_DOUBT_US);
    } else {
        limits_note_ended(engine, target, intent->state.from, intent->state.to, false);
        intent_free(intent);
    }
    store_in_doubt(engine, target);
    target_back_off(engine, target, result->outcome, result->retry_after_us);
    actions_note_next_try(engine, target, action->record);
}

void actions_on_scaled(struct as_engine *engine, struct target *target,
                       const struct as_scale_result *result)
{
    struct intent *intent = target->intent;
    const bool is_step = result->outcome == AS_REASON_APPLIED || result->is_accepted;
    struct as_action_record *record =
        record_action(engine, target, intent, is_step ? AS_REASON_APPLIED : result->outcome);
    target->intent = NULL;
    record->http_status = result->http_status;
    record->message = as_arena_strdup(&engine->arena, result->message);
    record->method = as_arena_strdup(&engine->arena, result->method);
    record->path = as_arena_strdup(&engine->arena, result->path);
    record->request_id = as_arena_strdup(&engine->arena, result->request_id);
    record->attempts = result->attempts;
    struct action action = {.intent = intent,
                            .result = result,
                            .record = record,
                            .marks = get_marks(engine, target, intent)};
    if (is_step)
        on_step(engine, target, &action);
    else
        on_failure(engine, target, &action);
    await_outcome(engine, target);
}

static void end_in_doubt(struct as_engine *engine, struct target *target)
{
    struct intent *in_doubt = target->in_doubt;
    target->in_doubt = NULL;
    limits_note_ended(engine, target, in_doubt->state.from, in_doubt->state.to, false);
    intent_free(in_doubt);
    effect_delete_intent(engine, target);
}

static void drop_in_doubt(struct as_engine *engine, struct target *target)
{
    end_in_doubt(engine, target);
    effect_commit(engine);
}

static void record_superseded(struct as_engine *engine, struct target *target,
                              const struct intent *intent, const char *why)
{
    struct as_action_record *record = record_action(engine, target, intent, AS_REASON_SUPERSEDED);
    record->is_late = true;
    record->message = why;
}

/* To be committed. */
static void in_doubt_forget_sizes(struct as_engine *engine, struct target *target,
                                  const struct other_object *why)
{
    if (!target->in_doubt)
        return;
    if (target->in_doubt->state.outcome !=
        AS_REASON_SUPERSEDED) /* else it was recorded after a restart */
        record_superseded(engine, target, target->in_doubt, why->given_up);
    commands_end(target, target->in_doubt); /* recorded here */
    end_in_doubt(engine, target);
}

/* The observation is newer than the request: if it has another version, the request has lost. A
 * node group's observation may be older, from a cache. */
static bool has_lost(const struct target *target, const struct intent *intent,
                     const struct as_observation *observation)
{
    return target->ref->kind->is_current &&
           version_is_newer(observation->version, intent->state.version);
}

/* A process that died while it marked nodes: those that it had marked leave, and count. */
static bool is_done_in_part(const struct target *target, const struct intent *in_doubt,
                            int32_t size)
{
    return in_doubt->restored && target->names_instances && target_get_nodes(target) &&
           in_doubt->state.to < size && size < in_doubt->state.from;
}

/* True: the request with unknown outcome was carried out, and its outcome is being committed. */
bool actions_settle_in_doubt(struct as_engine *engine, struct target *target,
                             const struct as_observation *observation)
{
    struct intent *in_doubt = target->in_doubt;
    if (is_done_in_part(target, in_doubt, observation->replicas))
        in_doubt->state.to = observation->replicas;
    if (observation->replicas == in_doubt->state.to) {
        struct as_action_record *record =
            record_action(engine, target, in_doubt, AS_REASON_APPLIED);
        record->is_late = true;
        record->message =
            in_doubt->state.to > in_doubt->state.from && target_find_pool(engine, target)
                ? "found to be done when the target was observed again; other groups may have "
                  "grown meanwhile: only a rule with `take` removes surplus nodes"
                : "found to be done when the target was observed again";
        target->in_doubt = NULL;
        apply(engine, target,
              &(struct action){.intent = in_doubt,
                               .result = &(struct as_scale_result){.outcome = AS_REASON_APPLIED},
                               .record = record,
                               .marks = get_marks(engine, target, in_doubt),
                               .is_late = true});
        intent_free(in_doubt);
        await_outcome(engine, target);
        return true;
    }
    const bool is_news = in_doubt->restored;
    if (is_news) {
        record_superseded(engine, target, in_doubt,
                          "not found to be done after a restart; decided anew");
        in_doubt->state.outcome = AS_REASON_SUPERSEDED;
        in_doubt->restored = false;
    }
    if (has_lost(target, in_doubt, observation) || in_doubt->until.us <= engine->mono.us) {
        drop_in_doubt(engine, target);
    } else if (is_news) {
        effect_put_intent(engine, target, in_doubt, true);
        effect_commit(engine);
    }
    return false;
}

/* Gives up a target that cannot be observed and is not needed any more. Its lock starts all the
 * same: the request may have been carried out, and a later action must not follow it too early. */
void actions_give_up_in_doubt(struct as_engine *engine, struct target *target)
{
    struct intent *in_doubt = target->in_doubt;
    if (in_doubt->until.us > engine->mono.us)
        return;
    if (in_doubt->restored)
        record_superseded(engine, target, in_doubt,
                          "the target could not be observed, and no rule leads to it any more");
    action_note_change(engine, target, in_doubt, 0);
    target_set_keep(engine, target);
    effect_put_target(engine, target);
    drop_in_doubt(engine, target);
}

/* The target could not be observed. Recorded if the failure is new, or if a notification waits for
 * an answer. */
struct as_action_record *actions_record_failure(struct as_engine *engine, struct target *target,
                                                const struct as_observation *observation)
{
    struct asked *asked = &target->asked;
    if (target->failure == observation->outcome && asked->total == asked->recorded) {
        target->failure_repeats++;
        return NULL;
    }
    char *id = as_arena_alloc(&engine->arena, 1, AS_ULID_SIZE);
    as_ulid_print(engine->wall, &engine->random, id);
    struct as_action_record *record = as_arena_alloc(&engine->arena, 1, sizeof(*record));
    *record = (struct as_action_record){
        .id = id,
        .target = target->ref->id,
        .target_name = target->config ? target->config->name : "",
        .target_kind = target->ref->kind,
        .unit = as_sized_get_unit(target->ref),
        .from = -1,
        .to = -1,
        .outcome = observation->outcome,
        .http_status = observation->http_status,
        .message = as_arena_strdup(&engine->arena, observation->message),
        .request_id = as_arena_strdup(&engine->arena, observation->request_id),
        .method = "GET",
        .path = "",
        .version = "",
        .attempts = 1,
        .repeats = target->failure_repeats,
        .since_notification_us = -1,
        .since_alert_us = -1,
    };
    effect_add(engine, AS_EFFECT_RECORD_ACTION)->action = record;
    effect_commit(engine);
    asked->recorded = asked->total;
    target->failure = observation->outcome;
    target->failure_repeats = 0;
    return record;
}

static void in_doubt_deinit(struct target *target)
{
    intent_free(target->intent);
    intent_free(target->in_doubt);
}

const struct concern concern_in_doubt = {
    .name = "requests in doubt",
    .deinit = in_doubt_deinit,
    .forget_sizes = in_doubt_forget_sizes,
};
