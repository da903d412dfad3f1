/*
 * Incidents as the store remembers them, before the first event.
 */
#include "engine_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>

static struct as_progress *copy_progress(const struct as_progress *progress, size_t count)
{
    struct as_progress *copies = as_xcalloc(count + 1, sizeof(*copies));
    for (size_t i = 0; i < count; i++) {
        copies[i] = progress[i];
        copies[i].rule = as_xstrdup(progress[i].rule);
        copies[i].target = as_xstrdup(progress[i].target);
    }
    return copies;
}

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

/* Kept by an earlier version, or the clock went back since. */
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

/* What earlier versions kept twice, or in a way that nothing finds any more. */
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

/* Once all is there: the lists are in the order of their times, which the next deadline relies on;
 * the store gives another. */
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

/* Of two that are one alert, under two fingerprints in earlier versions. */
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
        forget_former(engine, &state->key); /* nobody knows of which alert it was */
        return 0;
    }
    struct incident *incident = as_xcalloc(1, sizeof(*incident));
    incident->key = state->key;
    incident->key.owner = as_xstrdup(state->key.owner);
    incident->fingerprint = state->fingerprint;
    incident->serial = ++engine->next_serial;
    incident->is_open = state->is_open;
    incident->starts_at = state->starts_at;
    incident->is_undated = state->is_undated;
    incident->opened = state->opened;
    incident->seen = state->seen;
    incident->resolved = state->resolved;
    incident->seen_stored = state->seen.mono;
    /* `seen` is stored late, never by more than this */
    if (state->is_open)
        incident->seen.mono.us = as_time_add(incident->seen.mono.us,
                                             engine->config.incident_expiry_us / SEEN_STORE_PART);
    incident->listed.us = INT64_MIN;
    incident->silenced = state->silenced;
    incident->late_until.us = INT64_MIN;
    incident->receivers = as_xcalloc(state->receiver_count + 1, sizeof(*incident->receivers));
    for (size_t i = 0; i < state->receiver_count; i++)
        incident->receivers[incident->receiver_count++] = as_xstrdup(state->receivers[i]);
    for (size_t i = 0; i < state->credential_count; i++)
        (void)incident_add_credential(incident, state->credentials[i]);
    incident->labels = state->labels ? as_labels_copy(state->labels) : NULL;
    incident->annotations = state->annotations ? as_labels_copy(state->annotations) : NULL;
    incident->kept = copy_progress(state->progress, state->progress_count);
    incident->kept_count = (uint32_t)state->progress_count;
    if (same && !replaces(incident, same)) {
        unite(engine, same, incident);
        incident_free(incident);
        return 0;
    }
    if (same) {
        unite(engine, incident, same);
        incident_bury(engine, same);
    }
    RB_INSERT(incident_tree, &engine->incidents, incident);
    if (incident->is_open)
        TAILQ_INSERT_TAIL(&engine->open, incident, in_order);
    else
        TAILQ_INSERT_TAIL(&engine->resolved, incident, in_order);
    engine->open_count += incident->is_open;
    room_account(engine, incident);
    return 0;
}
