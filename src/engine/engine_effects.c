/*
 * The effects of one step, in order, and what decides their order: the targets to be evaluated
 * once the step is committed, and the causes of their next decisions. Effects point into the
 * step's arena or the engine, and are valid until the next step.
 *
 * The module performs nothing: the caller of the step does.
 */
#include "engine_effects.h"

#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/decide/sized.h>

#include "engine_state.h"

struct as_effect *effect_add(struct as_engine *engine, enum as_effect_kind kind)
{
    engine->effects = as_xgrow(engine->effects, engine->effect_count, &engine->effect_capacity,
                               sizeof(*engine->effects));
    struct as_effect *effect = &engine->effects[engine->effect_count++];
    *effect = (struct as_effect){.kind = kind};
    return effect;
}

struct waiter *effect_commit_awaited(struct as_engine *engine)
{
    struct waiter *waiter = as_xcalloc(1, sizeof(*waiter));
    waiter->call_id = ++engine->next_call_id;
    STAILQ_INSERT_TAIL(&engine->waiters, waiter, next);
    effect_add(engine, AS_EFFECT_COMMIT)->call_id = waiter->call_id;
    return waiter;
}

const void *effect_copy(struct as_engine *engine, const void *from, size_t size)
{
    return memcpy(as_arena_alloc(&engine->arena, 1, size), from, size);
}

void effect_commit(struct as_engine *engine)
{
    effect_add(engine, AS_EFFECT_COMMIT);
}

/* The incident of an `always` rule is not stored. */
void effect_put_incident(struct as_engine *engine, struct incident *incident)
{
    if (incident->always)
        return;
    effect_add(engine, AS_EFFECT_PUT_INCIDENT)->incident = incident_fill_state(engine, incident);
}

void effect_delete_incident(struct as_engine *engine, const struct incident *incident)
{
    effect_add(engine, AS_EFFECT_DELETE_INCIDENT)->incident_key = incident->state.key;
}

void effect_put_target(struct as_engine *engine, struct target *target)
{
    target->is_stored = true;
    effect_add(engine, AS_EFFECT_PUT_TARGET)->target = target_fill_state(engine, target);
}

void effect_warn(struct as_engine *engine, struct target *target,
                 const struct as_late_warning *warning)
{
    struct as_late_warning *copy = as_arena_alloc(&engine->arena, 1, sizeof(*copy));
    *copy = *warning;
    copy->decision_id = as_arena_strdup(&engine->arena, warning->decision_id);
    copy->policy = target_get_policy(target);
    effect_put_target(engine, target);
    effect_commit(engine);
    struct as_effect *effect = effect_add(engine, AS_EFFECT_WARN);
    effect->call.ref = target->ref;
    effect->call.late = copy;
}

void effect_put_pause(struct as_engine *engine)
{
    effect_add(engine, AS_EFFECT_PUT_PAUSE)->pause = pause_fill_state(engine, &engine->pause);
}

void effect_delete_target(struct as_engine *engine, struct target *target)
{
    effect_add(engine, AS_EFFECT_DELETE_TARGET)->stored_as = target->ref->key;
}

void effect_put_intent(struct as_engine *engine, struct target *target, const struct intent *intent,
                       bool in_doubt)
{
    effect_add(engine, AS_EFFECT_PUT_INTENT)->intent =
        intent_fill_state(engine, target, intent, in_doubt);
}

void effect_delete_intent(struct as_engine *engine, struct target *target)
{
    effect_add(engine, AS_EFFECT_DELETE_INTENT)->stored_as = target->ref->key;
}

struct as_incident_record *effect_incident_record(struct as_engine *engine,
                                                  const struct incident *incident,
                                                  enum as_incident_event event,
                                                  const char *notification)
{
    struct as_incident_record *record = as_arena_alloc(&engine->arena, 1, sizeof(*record));
    struct as_incident_target *targets =
        as_arena_alloc(&engine->arena, incident->binding_count, sizeof(*targets));
    for (uint32_t i = 0; i < incident->binding_count; i++) {
        targets[i] = binding_get_target(&incident->bindings[i]);
    }
    *record = (struct as_incident_record){
        .event = event,
        .digest = incident->state.key.digest,
        .fingerprint = incident->state.fingerprint,
        .starts_at = incident->state.starts_at,
        .labels = incident->state.labels,
        .notification = notification,
        .targets = targets,
        .target_count = incident->binding_count,
        .incident = &incident->state,
    };
    effect_add(engine, AS_EFFECT_RECORD_INCIDENT)->incident_record = record;
    return record;
}

struct as_operator_command_record *effect_order_record(struct as_engine *engine,
                                                       const struct as_operator_command *order,
                                                       const struct target *target,
                                                       const struct as_schedule_bounds *bounds,
                                                       uint64_t request)
{
    struct as_operator_command_record *record = as_arena_alloc(&engine->arena, 1, sizeof(*record));
    const bool has_size = order->kind == AS_OPERATOR_COMMAND_SCALE ||
                          (order->kind == AS_OPERATOR_COMMAND_FLOOR && !order->is_end);
    *record = (struct as_operator_command_record){.order = order,
                                                  .message = "",
                                                  .min = -1,
                                                  .max = -1,
                                                  .replicas = has_size ? order->replicas : -1};
    as_ulid_print(engine->wall, &engine->random, record->id);
    if (target) {
        record->target = as_arena_strdup(&engine->arena, target->ref->id);
        record->target_name = target->config ? target->config->name : "";
    }
    if (bounds) {
        record->min = bounds->min;
        record->max = bounds->max;
    }
    struct as_effect *effect = effect_add(engine, AS_EFFECT_RECORD_COMMAND);
    effect->call_id = request;
    effect->order = record;
    return record;
}

/*
 * The targets to be evaluated once a step is committed, and the causes of their next decisions.
 */

/* Notes the cause of the next decision. */
static void effect_ask(struct as_engine *engine, struct target *target, const char *notification,
                       as_wall_time starts_at)
{
    struct asked *asked = &target->asked;
    target->dirty = true;
    if (asked->total == 0 || starts_at.us > asked->youngest.us)
        asked->youngest = starts_at;
    if (strcmp(asked->last, notification) == 0)
        return;
    memcpy(asked->last, notification, AS_ULID_SIZE);
    if (asked->total++ == 0)
        asked->first = engine->mono;
    if (asked->count < AS_RECORD_LIST_MAX) {
        asked->ids = as_xgrow(asked->ids, asked->count, &asked->capacity, AS_ULID_SIZE);
        memcpy(asked->ids[asked->count++], notification, AS_ULID_SIZE);
    }
}

/* Evaluates the target after the waiter's commit. */
void target_touch(struct target *target, struct waiter *waiter)
{
    target->dirty = true;
    for (size_t i = waiter->kick_count; i-- > 0 && i + 8 > waiter->kick_count;) {
        if (waiter->kick[i] == target)
            return;
    }
    waiter->kick =
        as_xgrow(waiter->kick, waiter->kick_count, &waiter->kick_capacity, sizeof(struct target *));
    waiter->kick[waiter->kick_count++] = target;
    target->pins++;
}

void cause_touch(struct as_engine *engine, struct cause *cause, const struct incident *incident,
                 struct target *target)
{
    if (cause->notification)
        effect_ask(engine, target, cause->notification, incident->state.starts_at);
    cause->touched = as_xgrow(cause->touched, cause->touched_count, &cause->touched_capacity,
                              sizeof(struct target *));
    cause->touched[cause->touched_count++] = target;
}

/* Commits the results of the cause; its targets are evaluated then. */
struct waiter *cause_commit(struct as_engine *engine, struct cause *cause)
{
    struct waiter *waiter = effect_commit_awaited(engine);
    for (size_t i = 0; i < cause->touched_count; i++)
        target_touch(cause->touched[i], waiter);
    free(cause->touched);
    *cause = (struct cause){0};
    return waiter;
}

struct as_action_record *record_action(struct as_engine *engine, const struct target *target,
                                       const struct intent *intent, enum as_reason outcome)
{
    struct as_action_record *record = as_arena_alloc(&engine->arena, 1, sizeof(*record));
    const struct origin *origin = &target->origin;
    const bool is_answer = origin->set && !intent->state.is_ordered; /* to an alert */
    const char *decision = as_arena_strdup(&engine->arena, intent->state.decision_id);
    *record = (struct as_action_record){
        .id = as_arena_strdup(&engine->arena, intent->state.action_id),
        .decision = intent->state.is_ordered ? NULL : decision,
        .command = intent->state.is_ordered ? decision : NULL,
        .sender = intent->is_narrowed ? as_arena_strdup(&engine->arena, target->sender) : NULL,
        .target = target->ref->id,
        .target_name = target->config ? target->config->name : "",
        .target_kind = target->ref->kind,
        .unit = as_sized_get_unit(target->ref),
        .rule =
            intent->state.is_ordered ? NULL : as_arena_strdup(&engine->arena, intent->state.rule),
        .from = intent->state.from,
        .to = intent->state.to,
        .outcome = outcome,
        .message = "",
        .method = "",
        .path = "",
        .version = as_arena_strdup(&engine->arena, intent->state.version),
        .attempts = 1,
        .duration_us = engine->mono.us - intent->sent.us,
        .since_notification_us = is_answer ? engine->mono.us - origin->notified.us : -1,
        .since_alert_us = is_answer ? engine->wall.us - origin->alert.us : -1,
        .approval = intent->state.approval[0]
                        ? as_arena_strdup(&engine->arena, intent->state.approval)
                        : NULL,
    };
    if (is_answer && record->since_alert_us < 0)
        record->since_alert_us = 0;
    effect_add(engine, AS_EFFECT_RECORD_ACTION)->action = record;
    return record;
}
