/*
 * All incidents: found by their alert, added and removed.
 *
 * Also how much memory they use, and whether one more notification may add others. It counts what
 * grows with peers' input: incidents with their texts and bindings, and the targets that templates
 * make for them.
 *
 * All narrowed credentials together may use half of the memory, each an equal part of it.
 */
#include "engine_registry.h"

#include <string.h>

#include <alertscaler/base/alloc.h>

#include "engine_scopes.h"

#define TARGET_BYTES (sizeof(struct target) + sizeof(struct group) + 1024) /* texts, its index */

static size_t measure_texts(char *const *texts, size_t count)
{
    size_t bytes = count > 0 ? AS_ALLOC_EXTRA : 0;
    for (size_t i = 0; i < count; i++)
        bytes += sizeof(*texts) + AS_ALLOC_EXTRA + strlen(texts[i]) + 1;
    return bytes;
}

static size_t measure(const struct incident *incident)
{
    return AS_ALLOC_EXTRA + sizeof(*incident) + as_labels_measure(incident->labels) +
           as_labels_measure(incident->annotations) +
           measure_texts(incident->receivers, incident->receiver_count) +
           measure_texts(incident->credentials, incident->credential_count) +
           incident->credential_count * (AS_ALLOC_EXTRA + sizeof(*incident->reported)) +
           incident->binding_count * (AS_ALLOC_EXTRA + sizeof(struct binding)) +
           incident->kept_count * (AS_ALLOC_EXTRA + sizeof(struct as_progress));
}

static void uncharge(struct as_engine *engine, struct incident *incident)
{
    as_shares_give(&engine->incident_shares, incident->share, incident->charged);
    incident->share = NULL;
    incident->charged = 0;
}

/* A target counts for the incident that was bound to it first. */
static size_t measure_targets(const struct incident *incident)
{
    size_t count = 0;
    for (uint32_t i = 0; i < incident->binding_count; i++) {
        const struct binding *binding = &incident->bindings[i];
        const struct as_target_config *config = binding->group->target->config;
        count +=
            config && config->is_templated && binding == TAILQ_FIRST(&binding->group->bindings);
    }
    return count * TARGET_BYTES;
}

/* Charges the incident to its sender, if that is narrowed. */
static void charge(struct as_engine *engine, struct incident *incident)
{
    const char *sender =
        engine->config.scope_count > 0 ? scope_find_narrowed(engine, incident) : NULL;
    uncharge(engine, incident);
    if (!sender)
        return;
    incident->charged = incident->bytes + measure_targets(incident);
    incident->share = as_shares_take(&engine->incident_shares, sender, incident->charged);
}

void room_account(struct as_engine *engine, struct incident *incident)
{
    engine->incident_bytes -= incident->bytes;
    incident->bytes = measure(incident);
    engine->incident_bytes += incident->bytes;
    charge(engine, incident);
}

struct incident *incident_find_first(const struct as_engine *engine, const struct as_digest *digest)
{
    struct incident key = {.key = {.digest = *digest, .owner = ""}};
    struct incident_tree *tree = (struct incident_tree *)(uintptr_t)&engine->incidents;
    struct incident *first = RB_NFIND(incident_tree, tree, &key);
    return first && as_digest_compare(&first->key.digest, digest) == 0 ? first : NULL;
}

struct incident *incident_find_next(struct incident *incident)
{
    struct incident *next = RB_NEXT(incident_tree, NULL, incident);
    return next && as_digest_compare(&next->key.digest, &incident->key.digest) == 0 ? next : NULL;
}

struct incident *incident_find(const struct as_engine *engine, const struct as_digest *digest,
                               const char *owner)
{
    struct incident key = {.key = {.digest = *digest, .owner = owner}};
    struct incident_tree *tree = (struct incident_tree *)(uintptr_t)&engine->incidents;
    return RB_FIND(incident_tree, tree, &key); /* only searches */
}

bool incident_has_receiver(const struct incident *incident, const char *receiver)
{
    for (uint32_t i = 0; i < incident->receiver_count; i++) {
        if (strcmp(incident->receivers[i], receiver) == 0)
            return true;
    }
    return false;
}

void incident_insert(struct as_engine *engine, struct incident *incident)
{
    RB_INSERT(incident_tree, &engine->incidents, incident);
    room_account(engine, incident);
    if (incident->is_open) {
        TAILQ_INSERT_TAIL(&engine->open, incident, in_order);
        engine->open_count++;
    } else {
        TAILQ_INSERT_TAIL(&engine->resolved, incident, in_order);
    }
}

/* Takes the incident out of the tree and the lists. It is freed at the next step, as effects point
 * to it. */
void incident_bury(struct as_engine *engine, struct incident *incident)
{
    if (incident->is_open) {
        TAILQ_REMOVE(&engine->open, incident, in_order);
        engine->open_count--;
    } else {
        TAILQ_REMOVE(&engine->resolved, incident, in_order);
    }
    engine->incident_bytes -= incident->bytes;
    incident->bytes = 0;
    uncharge(engine, incident);
    RB_REMOVE(incident_tree, &engine->incidents, incident);
    TAILQ_INSERT_TAIL(&engine->graveyard, incident, in_order);
}

/* Targets with a plain address do not count: the rule files limit their number. */
size_t room_get_used(const struct as_engine *engine)
{
    const size_t templated = engine->target_count - engine->named_count;
    return engine->incident_bytes + templated * TARGET_BYTES;
}

/* Whether there would be something new or more to remember. */
static bool brings_more(const struct as_engine *engine, const struct as_notification *notification,
                        const struct as_alert *alert)
{
    const char *credential = notification->credential;
    const char *owner = scope_get_owner(engine, credential, alert->labels);
    const struct incident *incident = incident_find(engine, &alert->digest, owner);
    if (!incident || alert->status == AS_ALERT_RESOLVED)
        return !incident;
    return !incident_has_receiver(incident, notification->receiver) ||
           as_labels_measure(alert->labels) + as_labels_measure(alert->annotations) >
               as_labels_measure(incident->labels) + as_labels_measure(incident->annotations);
}

const char *as_engine_find_narrowed(const struct as_engine *engine, const char *credential)
{
    return scope_is_whole(engine, credential) ? NULL : credential;
}

uint64_t as_engine_get_part(const struct as_engine *engine, const char *credential, uint64_t most)
{
    return as_scope_get_part(engine->config.scopes, engine->config.scope_count, credential, most);
}

/* Whether the credential may bring more. */
static bool has_room(const struct as_engine *engine, const char *credential)
{
    const uint64_t most = engine->config.incident_bytes_max;
    if (most == 0)
        return true;
    return room_get_used(engine) < most && (scope_is_whole(engine, credential) ||
                                            as_shares_get(&engine->incident_shares, credential) <
                                                as_engine_get_part(engine, credential, most));
}

bool as_engine_has_room(const struct as_engine *engine, const struct as_notification *notification)
{
    if (has_room(engine, notification->credential))
        return true;
    for (size_t i = 0; i < notification->alert_count; i++) {
        const struct as_alert *alert = &notification->alerts[i];
        if (!alert->problem && brings_more(engine, notification, alert))
            return false;
    }
    return true;
}
