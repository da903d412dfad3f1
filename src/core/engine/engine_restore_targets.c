/*
 * Targets and their intents as the store remembers them. An earlier version took two spellings of
 * one object for two targets: what it stored of them becomes one. The latest of each lock counts,
 * both histories, the longest pause; and every intent is looked for before anything is decided.
 */
#include "engine_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>

void store_keys_free(struct store_keys *keys)
{
    for (size_t i = 0; i < keys->count; i++)
        free(keys->items[i]);
    free(keys->items);
    *keys = (struct store_keys){0};
}

/* False: it is there already. */
static bool add_key(struct store_keys *keys, const char *key)
{
    for (size_t i = 0; i < keys->count; i++) {
        if (strcmp(keys->items[i], key) == 0)
            return false;
    }
    keys->items = as_xgrow(keys->items, keys->count, &keys->capacity, sizeof(*keys->items));
    keys->items[keys->count++] = as_xstrdup(key);
    return true;
}

/* A reference for an id alone: locks are found by it; the address comes with the first alert or
 * rule. */
struct as_target_ref *target_ref_of_id(const char *id)
{
    const struct as_target_kind *kind = as_target_kind_find_of_id(id);
    return as_target_ref_make(kind ? kind : as_target_kinds[0], id, NULL, 0);
}

static void take_uid(struct target *target, const char *uid)
{
    if (!target->uid[0] && uid && strlen(uid) < sizeof(target->uid))
        memcpy(target->uid, uid, strlen(uid) + 1);
}

int as_engine_restore_target(struct as_engine *engine, const struct as_target_state *state)
{
    struct target *target = target_get(engine, state->ref ? as_target_ref_copy(state->ref)
                                                          : target_ref_of_id(state->id));
    if (!add_key(&target->stored_as, state->stored_as))
        return -EEXIST;
    target->last_up = moment_get_later(target->last_up, state->last_up);
    target->last_down = moment_get_later(target->last_down, state->last_down);
    target->dry_last_up = moment_get_later(target->dry_last_up, state->dry_last_up);
    target->dry_last_down = moment_get_later(target->dry_last_down, state->dry_last_down);
    target->last_step_down = moment_get_later(target->last_step_down, state->last_step_down);
    target->born = moment_get_later(target->born, state->born);
    if (!target->is_stored || target->keep_us < state->keep_us)
        target->keep_us = state->keep_us;
    target->is_stored = true;
    take_uid(target, state->uid);
    history_restore(target, state);
    endings_restore(target, state);
    orders_restore(target, state);
    growth_restore(target, state);
    pauses_restore(engine, target, state->pause);
    return 0;
}

static struct intent *make_intent(const struct as_engine *engine,
                                  const struct as_intent_state *state)
{
    struct intent *intent = as_xcalloc(1, sizeof(*intent));
    memcpy(intent->action_id, state->action_id, strnlen(state->action_id, AS_ULID_SIZE - 1));
    memcpy(intent->decision_id, state->decision_id, strnlen(state->decision_id, AS_ULID_SIZE - 1));
    intent->is_ordered = state->is_ordered;
    intent->rule = as_xstrdup(state->rule);
    intent->from = state->from;
    intent->to = state->to;
    intent->version = as_xstrdup(state->version);
    intent->at = state->at;
    intent->sent = state->at.mono;
    intent->until.us = as_time_add(state->at.mono.us, MAYBE_US);
    intent->outcome = state->outcome;
    intent->serial = engine->next_serial;
    intent->restored = !state->maybe;
    return intent;
}

/* The youngest comes first. */
int as_engine_restore_intent(struct as_engine *engine, const struct as_intent_state *state)
{
    struct target *target = target_get(engine, as_target_ref_copy(state->ref));
    if (!add_key(&target->intents_stored_as, state->stored_as))
        return -EEXIST;
    struct intent *intent = make_intent(engine, state);
    struct intent **place = &target->maybe;
    while (*place && (*place)->at.mono.us >= intent->at.mono.us)
        place = &(*place)->older;
    intent->older = *place;
    *place = intent;
    take_uid(target, state->uid);
    target->dirty = true;
    return 0;
}
