/*
 * When an incident's alert was last reported as firing. A step down after the first one waits for
 * such a report: silence removes nothing.
 *
 * A notification is one, for the rules that its credential may trigger. Alertmanager's list is one
 * where its `updatedAt` has moved on since an earlier list: Alertmanager lists alerts for minutes
 * after Prometheus has died. Its clock is compared with itself alone, so the report counts from
 * when the earlier list was asked for, the first moment at which it can have come.
 *
 * All of it is kept in memory, in monotonic time: what was said to an earlier process is no report,
 * and clocks that are set change nothing.
 */
#include "engine_news.h"

#include <string.h>

#include "engine/state/engine_causes.h"
#include "engine/state/engine_scopes.h"

/* A credential of NULL: it is a report for everyone through whom the alert came. */
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
        return; /* of another Alertmanager behind the same address: proves nothing */
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
