/*
 * Several incidents of one alert: one that is shared by all credentials that may trigger every rule
 * of the alert, and one for each other credential (engine_incidents.c). What a rule has done for
 * one of them counts for all of them: `once` is once.
 */
#include "engine_owners.h"

#include <stdlib.h>
#include <string.h>

#include <bsd/sys/queue.h>

#include <alertscaler/base/alloc.h>

#include "engine_effects.h"
#include "engine_registry.h"
#include "engine_scopes.h"

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
