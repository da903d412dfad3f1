/*
 * How much memory incidents take, and whether one more notification may bring others. Counted is
 * what grows with what peers send: incidents with their texts and bindings, and the targets that
 * templates make for them.
 *
 * A credential that is narrowed has half of the room: whoever holds one cannot take it all from
 * those who may everything.
 */
#include "engine_private.h"

#include <string.h>

#define BLOCK        ((size_t)16) /* what the allocator adds to one, with its rounding */
#define TARGET_BYTES (sizeof(struct target) + sizeof(struct group) + 1024) /* texts, its index */

static size_t measure_labels(const struct as_labels *labels)
{
    return labels
               ? BLOCK + sizeof(*labels) + labels->count * sizeof(labels->items[0]) + labels->bytes
               : 0;
}

static size_t measure_texts(char *const *texts, size_t count)
{
    size_t bytes = count > 0 ? BLOCK : 0;
    for (size_t i = 0; i < count; i++)
        bytes += sizeof(*texts) + BLOCK + strlen(texts[i]) + 1;
    return bytes;
}

static size_t measure(const struct incident *incident)
{
    return BLOCK + sizeof(*incident) + measure_labels(incident->labels) +
           measure_labels(incident->annotations) +
           measure_texts(incident->receivers, incident->receiver_count) +
           measure_texts(incident->credentials, incident->credential_count) +
           incident->credential_count * (BLOCK + sizeof(*incident->reported)) +
           incident->binding_count * (BLOCK + sizeof(struct binding)) +
           incident->kept_count * (BLOCK + sizeof(struct as_progress));
}

void room_account(struct as_engine *engine, struct incident *incident)
{
    engine->incident_bytes -= incident->bytes;
    incident->bytes = measure(incident);
    engine->incident_bytes += incident->bytes;
}

void room_give_back(struct as_engine *engine, struct incident *incident)
{
    engine->incident_bytes -= incident->bytes;
    incident->bytes = 0;
}

/* Targets with an address of their own do not count: the rule files say how many there are. */
size_t room_get_used(const struct as_engine *engine)
{
    const size_t templated = engine->target_count - engine->named_count;
    return engine->incident_bytes + templated * TARGET_BYTES;
}

/* Something would be remembered, or more of it. */
static bool brings_more(const struct as_engine *engine, const char *credential,
                        const struct as_alert *alert)
{
    const char *owner = scope_spans(engine, credential, alert->labels) ? "" : credential;
    const struct incident *incident = incident_find(engine, &alert->digest, owner);
    if (!incident || alert->status == AS_ALERT_RESOLVED)
        return !incident;
    return measure_labels(alert->labels) + measure_labels(alert->annotations) >
           measure_labels(incident->labels) + measure_labels(incident->annotations);
}

bool as_engine_has_room(const struct as_engine *engine, const struct as_notification *notification)
{
    const uint64_t most = engine->config.incident_bytes_max;
    const uint64_t share = scope_is_whole(engine, notification->credential) ? most : most / 2;
    if (most == 0 || room_get_used(engine) < share)
        return true;
    for (size_t i = 0; i < notification->alert_count; i++) {
        const struct as_alert *alert = &notification->alerts[i];
        if (!alert->problem && brings_more(engine, notification->credential, alert))
            return false;
    }
    return true;
}
