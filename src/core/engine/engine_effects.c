/*
 * The effects of one step, in order. What they point to lives in the step's arena or in the engine,
 * and in both cases until the next step.
 */
#include "engine_private.h"

#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>

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
    waiter->ticket = ++engine->next_ticket;
    STAILQ_INSERT_TAIL(&engine->waiters, waiter, next);
    effect_add(engine, AS_EFFECT_COMMIT)->ticket = waiter->ticket;
    return waiter;
}

void effect_commit(struct as_engine *engine)
{
    effect_add(engine, AS_EFFECT_COMMIT);
}

void effect_put_incident(struct as_engine *engine, struct incident *incident)
{
    struct as_incident_state *state = as_arena_alloc(&engine->arena, 1, sizeof(*state));
    *state = incident_get_state(incident);
    struct as_progress *progress = as_arena_alloc(
        &engine->arena, incident->binding_count + incident->kept_count, sizeof(*progress));
    state->progress = progress;
    for (uint32_t i = 0; i < incident->kept_count; i++) { /* bound in the same step, it is freed */
        struct as_progress *kept = &progress[state->progress_count++];
        *kept = incident->kept[i];
        kept->rule = as_arena_strdup(&engine->arena, kept->rule);
        kept->target = as_arena_strdup(&engine->arena, kept->target);
    }
    for (uint32_t i = 0; i < incident->binding_count; i++) {
        const struct binding *binding = &incident->bindings[i];
        if (binding->steps == 0)
            continue;
        progress[state->progress_count++] = (struct as_progress){
            .rule = binding->group->rule->name,
            .target = binding->group->target->ref->id,
            .steps = binding->steps,
            .applied = binding->applied,
            .origin = binding->origin,
        };
    }
    effect_add(engine, AS_EFFECT_PUT_INCIDENT)->incident = state;
    incident->key.has_former = false; /* the effect moves it */
}

void effect_delete_incident(struct as_engine *engine, const struct incident *incident)
{
    effect_add(engine, AS_EFFECT_DELETE_INCIDENT)->incident_key = incident->key;
}

void effect_delete_former(struct as_engine *engine, uint64_t former)
{
    effect_add(engine, AS_EFFECT_DELETE_INCIDENT)->incident_key =
        (struct as_incident_key){.has_former = true, .former = former};
}

/* What an earlier version stored of one target under several ids is one record from now on. */
static void delete_other_spellings(struct as_engine *engine, enum as_effect_kind kind,
                                   struct store_keys *keys, const char *key)
{
    for (size_t i = 0; i < keys->count; i++) {
        if (strcmp(keys->items[i], key) != 0)
            effect_add(engine, kind)->stored_as = as_arena_strdup(&engine->arena, keys->items[i]);
    }
    store_keys_free(keys);
}

void effect_put_target(struct as_engine *engine, struct target *target)
{
    target->is_stored = true;
    delete_other_spellings(engine, AS_EFFECT_DELETE_TARGET, &target->stored_as, target->ref->key);
    struct as_target_state *state = as_arena_alloc(&engine->arena, 1, sizeof(*state));
    *state = (struct as_target_state){
        .id = target->ref->id,
        .stored_as = target->ref->key,
        .last_up = target->last_up,
        .last_down = target->last_down,
        .dry_last_up = target->dry_last_up,
        .dry_last_down = target->dry_last_down,
        .last_step_down = target->last_step_down,
        .uid = target->uid,
        .born = target->born,
        .keep_us = target->keep_us,
        .events = target->events,
        .event_count = target->event_count,
        .recommendations = target->recommendations,
        .recommendation_count = target->recommendation_count,
    };
    endings_fill_state(engine, target, state);
    orders_fill_state(engine, target, state);
    growth_fill_state(engine, target, state);
    pauses_fill_state(engine, target, state);
    effect_add(engine, AS_EFFECT_PUT_TARGET)->target = state;
}

void effect_delete_target(struct as_engine *engine, struct target *target)
{
    delete_other_spellings(engine, AS_EFFECT_DELETE_TARGET, &target->stored_as, target->ref->key);
    effect_add(engine, AS_EFFECT_DELETE_TARGET)->stored_as = target->ref->key;
}

void effect_put_intent(struct as_engine *engine, struct target *target, const struct intent *intent,
                       bool maybe)
{
    delete_other_spellings(engine, AS_EFFECT_DELETE_INTENT, &target->intents_stored_as,
                           target->ref->key);
    struct as_intent_state *state = as_arena_alloc(&engine->arena, 1, sizeof(*state));
    *state = (struct as_intent_state){
        .ref = target->ref,
        .stored_as = target->ref->key,
        .uid = target->uid,
        .action_id = intent->action_id,
        .decision_id = intent->decision_id,
        .is_ordered = intent->is_ordered,
        .rule = intent->rule,
        .from = intent->from,
        .to = intent->to,
        .at = intent->at,
        .maybe = maybe,
        .outcome = intent->outcome,
    };
    const size_t size = strlen(intent->version) + 1;
    memcpy(state->version, intent->version, size < AS_VERSION_SIZE ? size : AS_VERSION_SIZE);
    effect_add(engine, AS_EFFECT_PUT_INTENT)->intent = state;
}

void effect_delete_intent(struct as_engine *engine, struct target *target)
{
    delete_other_spellings(engine, AS_EFFECT_DELETE_INTENT, &target->intents_stored_as,
                           target->ref->key);
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
        .digest = incident->key.digest,
        .fingerprint = incident->fingerprint,
        .starts_at = incident->starts_at,
        .labels = incident->labels,
        .notification = notification,
        .targets = targets,
        .target_count = incident->binding_count,
    };
    effect_add(engine, AS_EFFECT_RECORD_INCIDENT)->incident_record = record;
    return record;
}
