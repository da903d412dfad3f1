/*
 * Alertmanager's list of alerts, read from its API at start and then every resync_us, one list at a
 * time. And the watchdog: an alert that always fires, as proof that monitoring works.
 *
 * The list repairs what notifications do not say or what was lost: it opens missed incidents,
 * closes those whose alerts are gone, and holds silenced, inhibited or muted ones, for which
 * Alertmanager sends nothing, not even their resolved. It opens incidents only of alerts that
 * Alertmanager sends for certain (engine_incidents.c).
 *
 * A list is as old as its request. A notification received since then is newer and wins.
 *
 * Nothing here is stored: a restart begins with a list, counts missing incidents from 0, and waits
 * for the watchdog.
 */
#include "engine_alerts.h"

#include "engine_effects.h"
#include "engine_incidents.h"
#include "engine_registry.h"
#include "engine_watchdog.h"

/* An incident is closed after so many lists in a row without it. One list proves nothing: a
 * restarted Alertmanager lists no alerts until Prometheus has sent them again. */
#define LISTS_MISSED    2
#define LIST_BACKOFF_US (5 * AS_US_PER_S) /* after an error; doubled up to resync_us */

static void request_list(struct as_engine *engine)
{
    engine->list_due = AS_MONO_NEVER;
    if (engine->stopping || engine->config.resync_us == 0)
        return;
    engine->list_ticket = ++engine->next_ticket;
    engine->list_asked = engine->mono;
    effect_add(engine, AS_EFFECT_LIST_ALERTS)->ticket = engine->list_ticket;
}

/* At start, and when the configuration may have changed. */
void alerts_resume(struct as_engine *engine)
{
    if (engine->list_ticket) /* its answer continues */
        return;
    const int64_t due = as_time_add(engine->mono.us, engine->config.resync_us);
    if (engine->list_due.us == AS_MONO_NEVER.us || engine->config.resync_us == 0)
        request_list(engine);
    else if (engine->list_due.us > due)
        engine->list_due.us = due;
}

void alerts_on_deadline(struct as_engine *engine)
{
    if (engine->list_due.us <= engine->mono.us)
        request_list(engine);
}

as_mono_time alerts_get_deadline(const struct as_engine *engine)
{
    return engine->list_due;
}

static void set_due(struct as_engine *engine, bool has_failed)
{
    const int64_t longest = engine->config.resync_us;
    int64_t delay = has_failed ? LIST_BACKOFF_US : longest;
    for (unsigned i = 0; i < engine->list_failures && delay < longest; i++)
        delay *= 2;
    engine->list_failures = has_failed ? engine->list_failures + 1 : 0;
    engine->list_due.us = as_time_add(engine->mono.us, delay < longest ? delay : longest);
}

/* The incident of all credentials that may trigger every rule of the alert. */
static void handle_shared(struct as_engine *engine, struct cause *cause, uint64_t ticket,
                          const struct as_listed_alert *alert)
{
    struct incident *shared = incident_find(engine, &alert->digest, "");
    const bool is_open = shared && shared->is_open;
    const bool is_older = shared && shared->seen_ticket >= ticket;
    struct as_listed_alert seen = *alert;
    const enum muting muting =
        muting_judge(engine, alert, shared, &seen.receivers, &seen.receiver_count);
    seen.is_suppressed = muting == MUTING_SILENCED;
    if (muting == MUTING_UNKNOWN && is_open && !is_older)
        incident_see_listed(engine, cause, shared, incident_is_held(shared));
    if (muting == MUTING_UNKNOWN)
        return;
    if (!is_older || (!seen.is_suppressed && !is_ahead(engine, alert->starts_at) &&
                      starts_later(alert->starts_at, shared->starts_at)))
        (void)incident_see(engine, cause, &seen);
}

static void handle_owned(struct as_engine *engine, struct cause *cause,
                         const struct as_listed_alert *alert, struct incident *incident)
{
    const char *const *receivers;
    size_t count;
    const enum muting muting = muting_judge(engine, alert, incident, &receivers, &count);
    const bool is_held =
        muting == MUTING_UNKNOWN ? incident_is_held(incident) : muting == MUTING_SILENCED;
    incident_see_listed(engine, cause, incident, is_held);
}

static void handle_listed(struct as_engine *engine, struct cause *cause, uint64_t ticket,
                          const struct as_listed_alert *alert)
{
    handle_shared(engine, cause, ticket, alert);
    struct incident *incident = incident_find_first(engine, &alert->digest);
    for (; incident; incident = incident_find_next(incident)) {
        if (!incident->is_open)
            continue;
        if (incident->key.owner[0] != '\0' && incident->seen_ticket < ticket)
            handle_owned(engine, cause, alert, incident);
        news_note_listed(engine, cause, incident, alert);
    }
}

/* No listed incident has a `seen_ticket` below the list's, nor has one with a notification
 * since. */
static void close_unnamed(struct as_engine *engine, struct cause *cause, uint64_t ticket)
{
    struct incident *incident;
    RB_FOREACH (incident, incident_tree, &engine->incidents) {
        if (incident->is_open && incident->seen_ticket < ticket &&
            ++incident->missed >= LISTS_MISSED)
            incident_close(engine, cause, incident, incident->starts_at);
    }
}

/* With a watchdog configured, a list without it is incomplete, as is a list with unreadable alerts:
 * then absence does not prove that an alert ended. */
void alerts_on_listed(struct as_engine *engine, uint64_t ticket, const struct as_alert_list *list)
{
    if (ticket == 0 || ticket != engine->list_ticket)
        return;
    engine->list_ticket = 0;
    if (engine->stopping || engine->config.resync_us == 0)
        return;
    set_due(engine, list->error != NULL);
    muting_note_list(engine, list);
    if (list->error)
        return;

    struct cause cause = {.credential = ""};
    const size_t effects = engine->effect_count;
    bool lives_on = engine->config.watchdog_count == 0;
    for (size_t i = 0; i < list->count; i++) {
        const struct as_listed_alert *alert = &list->alerts[i];
        if (as_labels_are_own(alert->labels))
            continue;
        const bool lives = watchdog_matches(engine, alert->labels);
        lives_on = lives_on || lives;
        if (lives && !alert->is_suppressed)
            engine->watchdog_seen = engine->mono;
        handle_listed(engine, &cause, ticket, alert);
    }
    if (lives_on && list->unread == 0)
        close_unnamed(engine, &cause, ticket);
    if (engine->effect_count > effects || cause.touched_count > 0)
        cause_commit(engine, &cause);
}
