/*
 * When an incident's alert was last reported as firing. Each further step down waits for such a
 * report: silence removes nothing.
 *
 * A notification is a report, for the rules that its credential may trigger. Alertmanager's list is
 * a report if its `updatedAt` is later than in an earlier list: Alertmanager lists alerts for
 * minutes after Prometheus has died. `updatedAt` values are only compared with each other. So the
 * report counts from the request of the earlier list, the earliest time at which it can have come.
 *
 * All this is in memory, in monotonic time: reports to an earlier process do not count, and changes
 * of clocks have no effect.
 */
#include "engine_news.h"

#include <string.h>

#include "engine_effects.h"
#include "engine_scopes.h"

/* credential NULL: a report for all credentials that sent the alert. */
static void note(struct incident *incident, const char *credential, as_mono_time at)
{
    for (uint32_t i = 0; i < incident->credential_count; i++) {
        const bool is_for = !credential || strcmp(incident->credentials[i], credential) == 0;
        if (is_for && at.us > incident->reported[i].us)
            incident->reported[i] = at;
    }
}

static bool is_awaited(const struct target *target)
{
    return (target->verdict.set && target->verdict.reason == AS_REASON_UNCONFIRMED) ||
           (target->dry_verdict.set && target->dry_verdict.reason == AS_REASON_UNCONFIRMED);
}

static void touch_those_who_wait(struct as_engine *engine, struct cause *cause,
                                 const struct incident *incident)
{
    for (uint32_t i = 0; i < incident->binding_count; i++) {
        struct target *target = incident->bindings[i].group->target;
        if (is_awaited(target))
            cause_touch(engine, cause, incident, target);
    }
}

void news_note(struct as_engine *engine, struct cause *cause, struct incident *incident)
{
    if (!cause->notification)
        return;
    note(incident, cause->credential, engine->mono);
    touch_those_who_wait(engine, cause, incident);
}

void news_note_listed(struct as_engine *engine, struct cause *cause, struct incident *incident,
                      const struct as_listed_alert *alert)
{
    const bool is_first = incident->listed.us == INT64_MIN;
    if (!is_first && alert->updated_at.us < incident->updated_at.us)
        return; /* from another Alertmanager behind the same address: no proof */
    if (!is_first && alert->updated_at.us > incident->updated_at.us) {
        note(incident, NULL, incident->listed);
        touch_those_who_wait(engine, cause, incident);
    }
    incident->updated_at = alert->updated_at;
    incident->listed = engine->list_asked;
}

as_mono_time news_get(const struct as_engine *engine, const struct binding *binding)
{
    const struct incident *incident = binding->incident;
    const struct group *group = binding->group;
    as_mono_time latest = {INT64_MIN};
    for (uint32_t i = 0; i < incident->credential_count; i++) {
        if (incident->reported[i].us > latest.us &&
            scope_lets(engine, incident->credentials[i], group->rule, group->target->ref))
            latest = incident->reported[i];
    }
    return latest;
}
