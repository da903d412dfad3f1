/*
 * Restores the stored state, before the first event. Earlier versions stored one alert with two
 * fingerprints as two incidents, and two spellings of one object as two targets: these are united.
 */
#include "engine_restore.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>

#include "engine_effects.h"
#include "engine_owners.h"
#include "engine_pauses.h"
#include "engine_registry.h"
#include "engine_scopes.h"
#include "engine_stored.h"
#include "engine_targets.h"

static int compare_seen(const void *a, const void *b)
{
    const struct incident *const *left = a, *const *right = b;
    const int64_t x = (*left)->seen.mono.us, y = (*right)->seen.mono.us;
    return x != y ? (x > y) - (x < y) : ((*left)->serial > (*right)->serial) * 2 - 1;
}

static int compare_resolved(const void *a, const void *b)
{
    const struct incident *const *left = a, *const *right = b;
    const int64_t x = (*left)->resolved.mono.us, y = (*right)->resolved.mono.us;
    return x != y ? (x > y) - (x < y) : ((*left)->serial > (*right)->serial) * 2 - 1;
}

static void sort(struct incident_list *list, int (*compare)(const void *, const void *))
{
    struct incident *incident;
    size_t count = 0, at = 0;
    TAILQ_FOREACH (incident, list, in_order)
        count++;
    struct incident **incidents = as_xcalloc(count + 1, sizeof(struct incident *));
    TAILQ_FOREACH (incident, list, in_order)
        incidents[at++] = incident;
    qsort(incidents, count, sizeof(struct incident *), compare);
    TAILQ_INIT(list);
    for (at = 0; at < count; at++)
        TAILQ_INSERT_TAIL(list, incidents[at], in_order);
    free(incidents);
}

/* Dates ahead of the clock: from an earlier version, or the clock went back. */
static void date(struct as_engine *engine)
{
    struct incident *incident;
    RB_FOREACH (incident, incident_tree, &engine->incidents) {
        if (!is_ahead(engine, incident->starts_at))
            continue;
        incident->starts_at = engine->wall;
        incident->is_undated = true;
    }
}

/* Deletes what earlier versions stored twice, or under keys not used any more. */
static void store_united(struct as_engine *engine)
{
    struct incident *incident;
    for (size_t i = 0; i < engine->former_count; i++)
        effect_delete_former(engine, engine->former[i]);
    free(engine->former);
    engine->former = NULL;
    RB_FOREACH (incident, incident_tree, &engine->incidents) {
        if (incident->is_united)
            effect_put_incident(engine, incident);
    }
    if (engine->effect_count > 0)
        effect_commit(engine);
}

/* After everything is restored: sorts the lists by time, which the next deadline needs; the store
 * has another order. */
void restore_finish(struct as_engine *engine)
{
    sort(&engine->open, compare_seen);
    sort(&engine->resolved, compare_resolved);
    date(engine);
    store_united(engine);
}

static void forget_former(struct as_engine *engine, const struct as_incident_key *key)
{
    if (!key->has_former)
        return;
    engine->former = as_xgrow(engine->former, engine->former_count, &engine->former_capacity,
                              sizeof(*engine->former));
    engine->former[engine->former_count++] = key->former;
}

/* Decides between two incidents of one alert, stored by earlier versions under two fingerprints. */
static bool replaces(const struct incident *incident, const struct incident *same)
{
    if (incident->is_open != same->is_open)
        return incident->is_open;
    return incident->opened.wall.us < same->opened.wall.us;
}

static void unite(struct as_engine *engine, struct incident *stays, const struct incident *goes)
{
    owners_share_progress(stays, goes);
    for (uint32_t i = 0; i < goes->credential_count; i++)
        (void)incident_add_credential(stays, goes->credentials[i]);
    forget_former(engine, &goes->key);
    stays->is_united = true;
}

int as_engine_restore_incident(struct as_engine *engine, const struct as_incident_state *state)
{
    struct incident *same = incident_find(engine, &state->key.digest, state->key.owner);
    if (same && !same->key.has_former && !state->key.has_former)
        return -EEXIST;
    if (state->key.has_former && !state->is_open && state->labels->count == 0) {
        forget_former(engine, &state->key); /* its alert is unknown */
        return 0;
    }
    struct incident *incident = incident_of_state(engine, state);
    if (same && !replaces(incident, same)) {
        unite(engine, same, incident);
        incident_free(incident);
        return 0;
    }
    if (same) {
        unite(engine, incident, same);
        incident_bury(engine, same);
    }
    incident_insert(engine, incident);
    return 0;
}

/* False: the key exists already. */
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

int as_engine_restore_target(struct as_engine *engine, const struct as_target_state *state)
{
    struct target *target = target_get(engine, state->ref ? target_ref_of_stored(engine, state->ref)
                                                          : target_ref_of_id(state->id));
    if (!add_key(&target->stored_as, state->stored_as))
        return -EEXIST;
    target_take_state(engine, target, state);
    pauses_restore(engine, target, state->pause);
    return 0;
}

int as_engine_restore_intent(struct as_engine *engine, const struct as_intent_state *state)
{
    struct target *target = target_get(engine, target_ref_of_stored(engine, state->ref));
    if (!add_key(&target->intents_stored_as, state->stored_as))
        return -EEXIST;
    target_take_intent(engine, target, state);
    return 0;
}

int as_engine_restore_pause(struct as_engine *engine, const struct as_pause_state *state)
{
    pauses_restore(engine, NULL, state);
    return 0;
}
