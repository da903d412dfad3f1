/*
 * All incidents: found by their alert, added and removed; several incidents of one alert.
 *
 * Also how much memory they use, and whether one more notification may add others. It counts what
 * grows with peers' input: incidents with their texts and bindings, and the targets that templates
 * make for them. All narrowed credentials together may use half of the memory, each an equal part
 * of it.
 */
#include <bsd/sys/queue.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>

#include "engine_effects.h"
#include "engine_registry.h"
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

/*
 * Several incidents of one alert: one that is shared by all credentials that may trigger every rule
 * of the alert, and one for each other credential (engine_incidents.c). What a rule has done for
 * one of them counts for all of them: `once` is once.
 */

static struct as_progress *find_kept(struct incident *incident, const struct as_progress *progress)
{
    for (uint32_t i = 0; i < incident->kept_count; i++) {
        struct as_progress *kept = &incident->kept[i];
        if (strcmp(kept->rule, progress->rule) == 0 &&
            as_target_is_same(kept->target, progress->target))
            return kept;
    }
    return NULL;
}

void owners_share_progress(struct incident *incident, const struct incident *from)
{
    for (uint32_t i = 0; i < from->kept_count; i++) {
        const struct as_progress *progress = &from->kept[i];
        struct as_progress *kept = find_kept(incident, progress);
        if (!kept) {
            incident->kept = as_xrealloc_array(incident->kept, incident->kept_count + 1,
                                               sizeof(*incident->kept));
            kept = &incident->kept[incident->kept_count++];
            *kept = *progress;
            kept->rule = as_xstrdup(progress->rule);
            kept->target = as_xstrdup(progress->target);
        } else if (progress->steps > kept->steps) {
            kept->steps = progress->steps;
            kept->applied = progress->applied;
            kept->origin = progress->origin;
        }
    }
}

void owners_inherit(const struct as_engine *engine, struct binding *binding)
{
    struct incident *other = incident_find_first(engine, &binding->incident->key.digest);
    for (; other; other = incident_find_next(other)) {
        if (starts_later(binding->incident->starts_at, other->starts_at))
            continue; /* another stretch of firing */
        for (uint32_t i = 0; other != binding->incident && i < other->binding_count; i++) {
            const struct binding *same = &other->bindings[i];
            if (same->group != binding->group || same->steps <= binding->steps)
                continue;
            binding->steps = same->steps;
            binding->applied = same->applied;
            binding->origin = same->origin;
        }
    }
}

static bool is_configured(const struct as_engine *engine, const char *credential)
{
    for (size_t i = 0; i < engine->config.scope_count; i++) {
        if (strcmp(engine->config.scopes[i].credential, credential) == 0)
            return true;
    }
    return credential[0] == '\0';
}

/* "" if one of its senders spans the alert; else its first sender that is configured. */
static const char *find_owner(const struct as_engine *engine, const struct incident *incident)
{
    for (uint32_t i = 0; i < incident->credential_count; i++) {
        if (scope_spans(engine, incident->credentials[i], incident->labels))
            return "";
    }
    for (uint32_t i = 0; i < incident->credential_count; i++) {
        if (is_configured(engine, incident->credentials[i]))
            return incident->credentials[i];
    }
    return incident->key.owner; /* no sender is left: keeps its owner */
}

static void change_owner(struct as_engine *engine, struct incident *incident, const char *owner)
{
    struct incident *other = incident_find(engine, &incident->key.digest, owner);
    char *copy = as_xstrdup(owner);
    const struct as_incident_key former = {incident->key.digest,
                                           as_arena_strdup(&engine->arena, incident->key.owner),
                                           incident->key.has_former, incident->key.former};
    effect_add(engine, AS_EFFECT_DELETE_INCIDENT)->incident_key = former;
    if (other && other->is_open) {
        owners_share_progress(other, incident);
        for (uint32_t i = 0; i < incident->credential_count; i++)
            (void)incident_add_credential(other, incident->credentials[i]);
        effect_put_incident(engine, other);
        incident_bury(engine, incident);
        free(copy);
        return;
    }
    if (other) {
        effect_delete_incident(engine, other);
        incident_bury(engine, other);
    }
    RB_REMOVE(incident_tree, &engine->incidents, incident);
    free((char *)(uintptr_t)incident->key.owner);
    incident->key.owner = copy;
    incident->key.has_former = false;
    RB_INSERT(incident_tree, &engine->incidents, incident);
    effect_put_incident(engine, incident);
}

static char **copy_texts(char *const *texts, uint32_t count)
{
    char **copy = as_xcalloc(count + 1, sizeof(*copy));
    for (uint32_t i = 0; i < count; i++)
        copy[i] = as_xstrdup(texts[i]);
    return copy;
}

/* Gives one of several senders an incident of its own. */
static void split_off(struct as_engine *engine, const struct incident *incident,
                      const char *credential, as_mono_time reported)
{
    if (incident_find(engine, &incident->key.digest, credential))
        return;
    struct incident *own = as_xmalloc(sizeof(*own));
    *own = *incident;
    own->key.owner = as_xstrdup(credential);
    own->key.has_former = false;
    own->serial = ++engine->next_serial;
    own->bytes = own->charged = 0;
    own->share = NULL;
    own->receivers = copy_texts(incident->receivers, incident->receiver_count);
    own->credentials = NULL;
    own->reported = NULL;
    own->credential_count = 0;
    (void)incident_add_credential(own, credential);
    own->reported[0] = reported;
    own->labels = as_labels_copy(incident->labels);
    own->annotations = as_labels_copy(incident->annotations);
    own->kept = NULL;
    own->kept_count = 0;
    owners_share_progress(own, incident);
    incident_insert(engine, own);
    effect_put_incident(engine, own);
}

/* Leaves only the first credential. */
static void split(struct as_engine *engine, struct incident *incident)
{
    while (incident->credential_count > 1) {
        char *credential = incident->credentials[--incident->credential_count];
        split_off(engine, incident, credential, incident->reported[incident->credential_count]);
        free(credential);
    }
}

/* A credential that now spans its alert uses the shared incident; its own one would get no more
 * reports. A shared incident without such a sender becomes its senders' own. */
void owners_find(struct as_engine *engine)
{
    struct incident *incident, *next;
    const size_t effects = engine->effect_count;
    TAILQ_FOREACH_SAFE (incident, &engine->open, in_order, next) {
        const char *owner = find_owner(engine, incident);
        if (strcmp(owner, incident->key.owner) == 0)
            continue;
        if (owner[0] != '\0')
            split(engine, incident);
        change_owner(engine, incident, owner);
    }
    if (engine->effect_count > effects)
        effect_commit(engine);
}
