/*
 * Incidents: opened by the first firing, kept open by repeats, held while Alertmanager suppresses
 * the alert, closed by resolved, by a newer start or by expiry. Notifications and the list of
 * alerts are handled alike: a notification's firing alert is like a listed alert with one receiver.
 *
 * A credential that may not trigger every rule of an alert has its own incident of it. What its
 * sender says (start, end, receiver, annotations, URLs) changes nothing for rules beyond its reach.
 * Each incident of an alert is bound to the rules that its own senders may trigger. What a rule has
 * done for one of them counts for all of them.
 *
 * A resolved incident is remembered until the stale window has passed, even if its firing never
 * came: a retrying peer of Alertmanager may deliver the old firing after the resolved.
 *
 * The module evaluates no target: it only makes targets due.
 */
#include "engine_incidents.h"

#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>

#include "engine_concerns.h"
#include "engine_effects.h"
#include "engine_registry.h"
#include "engine_state.h"

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

/* credential NULL: a report for all credentials that sent the alert. */
static void incident_note(struct incident *incident, const char *credential, as_mono_time at)
{
    for (uint32_t i = 0; i < incident->state.credential_count; i++) {
        const bool is_for = !credential || strcmp(incident->state.credentials[i], credential) == 0;
        if (is_for && at.us > incident->reported[i].us)
            incident->reported[i] = at;
    }
}

static bool incident_is_awaited(const struct target *target)
{
    return (target->verdict.set && target->verdict.reason == AS_REASON_UNCONFIRMED) ||
           (target->dry_verdict.set && target->dry_verdict.reason == AS_REASON_UNCONFIRMED);
}

static void touch_those_who_wait(struct as_engine *engine, struct cause *cause,
                                 const struct incident *incident)
{
    for (uint32_t i = 0; i < incident->binding_count; i++) {
        struct target *target = incident->bindings[i].group->target;
        if (incident_is_awaited(target))
            cause_touch(engine, cause, incident, target);
    }
}

static void news_note(struct as_engine *engine, struct cause *cause, struct incident *incident)
{
    if (!cause->notification)
        return;
    incident_note(incident, cause->credential, engine->mono);
    touch_those_who_wait(engine, cause, incident);
}

static void news_note_listed(struct as_engine *engine, struct cause *cause,
                             struct incident *incident, const struct as_listed_alert *alert)
{
    const bool is_first = incident->listed.us == INT64_MIN;
    if (!is_first && alert->updated_at.us < incident->updated_at.us)
        return; /* from another Alertmanager behind the same address: no proof */
    if (!is_first && alert->updated_at.us > incident->updated_at.us) {
        incident_note(incident, NULL, incident->listed);
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
    for (uint32_t i = 0; i < incident->state.credential_count; i++) {
        if (incident->reported[i].us > latest.us &&
            scope_lets(engine, incident->state.credentials[i], group->rule, group->target->ref))
            latest = incident->reported[i];
    }
    return latest;
}

/*
 * Time intervals of Alertmanager, as its lists show them: `mute_time_intervals` and
 * `active_time_intervals` of routes.
 *
 * Alertmanager checks the intervals of a group only when it flushes the group, and its list shows
 * the result of the last flush. A new group counts as unmuted until its first flush, and the
 * present mark may be one group_interval old. So a list proves that Alertmanager sends an alert
 * only if all lists show the alert as unmuted for the route's whole wait (as_listed_route).
 *
 * These times are in memory, and count from the request of a list. They begin anew after a restart
 * of alertscaler or Alertmanager, after a list that could not be read, with a later start of the
 * alert, and while the alert is inhibited: Alertmanager does not check the intervals then.
 */

#define NOTIFIERS_MAX 64
#define UNMUTED_MAX   AS_ALERT_LIST_MAX

/* What a list proves about an alert that fires. */
enum muting {
    MUTING_SENT,    /* Alertmanager sends it, to a receiver that counts */
    MUTING_UNKNOWN, /* neither */
    MUTING_SILENCED /* it is silenced, inhibited, or muted by time */
};

/* An alert in an unmuted group of a receiver, in each list since then. */
struct unmuted {
    struct as_digest digest;
    char *receiver;
    as_wall_time starts_at;
    as_mono_time since;
};

static bool has_notified(const struct as_engine *engine, const char *receiver)
{
    for (uint32_t i = 0; i < engine->notifier_count; i++) {
        if (strcmp(engine->notifiers[i], receiver) == 0)
            return true;
    }
    return false;
}

/* A notification for this receiver was received, from a credential that may trigger all rules. */
static void muting_note_receiver(struct as_engine *engine, const char *receiver)
{
    if (engine->notifier_count == NOTIFIERS_MAX || has_notified(engine, receiver))
        return;
    engine->notifiers =
        as_xrealloc_array(engine->notifiers, engine->notifier_count + 1, sizeof(char *));
    engine->notifiers[engine->notifier_count++] = as_xstrdup(receiver);
}

static bool incident_is_ours(const struct as_engine *engine, const char *receiver)
{
    const struct as_engine_config *config = &engine->config;
    if (config->receiver_count == 0)
        return has_notified(engine, receiver);
    for (size_t i = 0; i < config->receiver_count; i++) {
        if (strcmp(config->receivers[i], receiver) == 0)
            return true;
    }
    return false;
}

/* The receivers that count for an alert: ours, and those that sent its incident. */
static bool incident_counts(const struct as_engine *engine, const struct incident *incident,
                            const char *receiver)
{
    return incident_is_ours(engine, receiver) ||
           (incident && incident->state.is_open && incident_has_receiver(incident, receiver));
}

static bool counts_for_any(const struct as_engine *engine, const struct as_digest *digest,
                           const char *receiver)
{
    struct incident *incident = incident_find_first(engine, digest);
    while (incident && !incident_counts(engine, incident, receiver))
        incident = incident_find_next(incident);
    return incident || incident_is_ours(engine, receiver);
}

static int unmuted_compare(const void *a, const void *b)
{
    const struct unmuted *x = a, *y = b;
    const int order = as_digest_compare(&x->digest, &y->digest);
    return order != 0 ? order : strcmp(x->receiver, y->receiver);
}

/* NULL: the last list does not have it. */
static struct unmuted *unmuted_find(const struct as_engine *engine,
                                    const struct as_listed_alert *alert, const char *receiver)
{
    const struct unmuted key = {.digest = alert->digest, .receiver = (char *)(uintptr_t)receiver};
    return engine->unmuted_count == 0 ? NULL
                                      : bsearch(&key, engine->unmuted, engine->unmuted_count,
                                                sizeof(key), unmuted_compare);
}

static void unmuted_clear(struct as_engine *engine)
{
    for (size_t i = 0; i < engine->unmuted_count; i++)
        free(engine->unmuted[i].receiver);
    free(engine->unmuted);
    engine->unmuted = NULL;
    engine->unmuted_count = 0;
}

static bool is_waited_for(struct as_engine *engine, const struct as_listed_alert *alert,
                          const struct as_listed_route *route)
{
    return route->wait_us > 0 && route->wait_us != AS_LISTED_NEVER && !route->is_muted &&
           !alert->is_inhibited && counts_for_any(engine, &alert->digest, route->receiver) &&
           bindings_check(engine, alert->labels, route->receiver) == BIND_OK;
}

/* Before the alerts of a list, or its error, are handled. The list's order is that of the array. */
static void muting_note_list(struct as_engine *engine, const struct as_alert_list *list)
{
    struct unmuted *array = NULL;
    size_t count = 0, capacity = 0;
    if (list->error || list->is_anew)
        unmuted_clear(engine);
    for (size_t i = 0; i < list->count; i++) {
        const struct as_listed_alert *alert = &list->alerts[i];
        for (size_t k = 0; k < alert->route_count && count < UNMUTED_MAX; k++) {
            const struct as_listed_route *route = &alert->routes[k];
            if (!is_waited_for(engine, alert, route))
                continue;
            const struct unmuted *before = unmuted_find(engine, alert, route->receiver);
            const bool goes_on = before && !starts_later(alert->starts_at, before->starts_at);
            array = as_xgrow(array, count, &capacity, sizeof(*array));
            array[count++] = (struct unmuted){
                .digest = alert->digest,
                .receiver = as_xstrdup(route->receiver),
                .starts_at = alert->starts_at,
                .since = goes_on ? before->since : engine->list_asked,
            };
        }
    }
    unmuted_clear(engine);
    engine->unmuted = array;
    engine->unmuted_count = count;
}

static bool is_sent(const struct as_engine *engine, const struct as_listed_alert *alert,
                    const struct as_listed_route *route)
{
    if (route->is_muted || route->wait_us == AS_LISTED_NEVER)
        return false;
    if (route->wait_us == 0)
        return true;
    const struct unmuted *unmuted = unmuted_find(engine, alert, route->receiver);
    return unmuted && engine->list_asked.us - unmuted->since.us >= route->wait_us;
}

/* The receivers that count are the configured ones (else those that have notified us), and those of
 * the incident if it is open (NULL: none). Sets the receivers that get the alert for certain: in
 * the engine's arena, none unless MUTING_SENT. */
static enum muting muting_judge(struct as_engine *engine, const struct as_listed_alert *alert,
                                const struct incident *incident, const char *const **receivers_out,
                                size_t *count_out)
{
    const char **receivers = as_arena_alloc(&engine->arena, alert->route_count, sizeof(char *));
    size_t muted = 0, unknown = 0, sent = 0;
    for (size_t i = 0; i < alert->route_count && !alert->is_suppressed; i++) {
        const struct as_listed_route *route = &alert->routes[i];
        if (!incident_counts(engine, incident, route->receiver))
            continue;
        if (is_sent(engine, alert, route))
            receivers[sent++] = route->receiver;
        else if (route->is_muted)
            muted++;
        else
            unknown++;
    }
    *receivers_out = receivers;
    *count_out = sent;
    if (sent > 0)
        return MUTING_SENT;
    return alert->is_suppressed || (muted > 0 && unknown == 0) ? MUTING_SILENCED : MUTING_UNKNOWN;
}

void muting_deinit(struct as_engine *engine)
{
    unmuted_clear(engine);
    for (uint32_t i = 0; i < engine->notifier_count; i++)
        free(engine->notifiers[i]);
    free(engine->notifiers);
}

#define RECEIVERS_MAX 64 /* per incident */

/* The owner's incident; if none, the shared one. */
static const struct incident *find_known(const struct as_engine *engine,
                                         const struct as_digest *digest, const char *owner,
                                         const struct incident *own)
{
    return own || !*owner ? own : incident_find(engine, digest, "");
}

static void touch_targets(struct as_engine *engine, struct cause *cause,
                          const struct incident *incident)
{
    for (uint32_t i = 0; i < incident->binding_count; i++)
        cause_touch(engine, cause, incident, incident->bindings[i].group->target);
}

/* False: no new receivers, or no room for them. */
static bool add_receivers(struct incident *incident, const struct as_listed_alert *alert)
{
    const size_t before = incident->state.receiver_count;
    for (size_t i = 0; i < alert->receiver_count && incident->state.receiver_count < RECEIVERS_MAX;
         i++) {
        if (!incident_has_receiver(incident, alert->receivers[i]))
            incident_add_receiver(incident, alert->receivers[i]);
    }
    return incident->state.receiver_count > before;
}

static void set_seen(const struct as_engine *engine, struct incident *incident)
{
    incident->state.seen = moment_now(engine);
    incident->seen_call_id = engine->next_call_id;
    incident->missed = 0;
}

static struct incident *incident_new(struct as_engine *engine, const struct cause *cause,
                                     const struct as_listed_alert *alert, const char *owner,
                                     bool is_open)
{
    struct incident *incident = as_xcalloc(1, sizeof(*incident));
    const struct as_moment now = moment_now(engine);
    incident->state.key.digest = alert->digest;
    incident->state.key.owner = as_xstrdup(owner);
    incident->state.fingerprint = alert->fingerprint;
    incident->serial = ++engine->next_serial;
    incident->state.is_open = is_open;
    incident->state.is_undated = is_ahead(engine, alert->starts_at);
    incident->state.starts_at = incident->state.is_undated ? now.wall : alert->starts_at;
    incident->state.opened = now;
    incident->state.resolved = is_open ? AS_MOMENT_NEVER : now;
    incident->state.silenced = AS_MOMENT_NEVER;
    incident->seen_stored = now.mono;
    incident->listed.us = INT64_MIN;
    set_seen(engine, incident);
    (void)add_receivers(incident, alert);
    (void)incident_add_credential(incident, cause->credential);
    return incident;
}

static struct as_alert_outcome outcome_of(enum as_reason reason)
{
    return (struct as_alert_outcome){.reason = reason};
}

/* Copies the rules: a later alert of the same notification may unbind the incident. */
static struct as_alert_outcome outcome_bound(struct as_engine *engine,
                                             const struct incident *incident, bool is_queued,
                                             enum as_reason reason)
{
    const size_t count = incident->binding_count;
    const char **rules = as_arena_alloc(&engine->arena, count, sizeof(char *));
    for (size_t i = 0; i < count; i++)
        rules[i] = incident->bindings[i].group->rule->name;
    return (struct as_alert_outcome){
        .is_queued = is_queued, .reason = reason, .rules = rules, .rule_count = count};
}

static struct as_alert_outcome incident_open(struct as_engine *engine, struct cause *cause,
                                             const struct as_listed_alert *alert, const char *owner)
{
    struct incident *incident = incident_new(engine, cause, alert, owner, true);
    switch (bindings_make(engine, incident, alert->labels, alert->annotations)) {
    case BIND_OK: break;
    case BIND_NO_RULE:
        incident_free(incident);
        if (cause->notification && !as_labels_are_own(alert->labels))
            unmatched_note(engine, alert->labels, alert->receivers, alert->receiver_count);
        return outcome_of(AS_REASON_NO_RULE);
    case BIND_DISABLED: incident_free(incident); return outcome_of(AS_REASON_RULE_DISABLED);
    case BIND_NOT_ALLOWED: incident_free(incident); return outcome_of(AS_REASON_TARGET_NOT_ALLOWED);
    case BIND_FORBIDDEN: incident_free(incident); return outcome_of(AS_REASON_FORBIDDEN);
    }
    incident->state.labels = as_labels_copy(alert->labels);
    incident->state.annotations = as_labels_copy(alert->annotations);
    (void)incident_take_links(incident, alert->generator_url, alert->external_url);
    incident_insert(engine, incident);
    effect_put_incident(engine, incident);
    struct as_incident_record *record =
        effect_incident_record(engine, incident, AS_INCIDENT_OPENED, cause->notification);
    for (uint32_t i = 0; i < incident->binding_count; i++)
        target_wake(engine, incident->bindings[i].group->target);
    touch_targets(engine, cause, incident);
    news_note(engine, cause, incident);
    struct as_alert_outcome outcome = outcome_bound(engine, incident, true, AS_REASON_NO_CHANGE);
    if (incident->state.is_undated) {
        record->claimed = (as_maybe_time){true, alert->starts_at};
        outcome.is_ahead = true;
    }
    return outcome;
}

/* Ends an open incident. Its targets are evaluated again: its vetoes are gone. `state`: the
 * AS_STATE_REASON of an alert that ended without a result of its query: then nothing follows;
 * NULL: none. */
static void incident_end(struct as_engine *engine, struct cause *cause, struct incident *incident,
                         enum as_incident_event event, const char *state)
{
    effect_incident_record(engine, incident, event, cause->notification)->state =
        as_arena_strdup(&engine->arena, state);
    touch_targets(engine, cause, incident);
    if (event == AS_INCIDENT_CLOSED && !state)
        endings_begin(engine, incident);
    evaluation_on_end(engine, incident, event == AS_INCIDENT_CLOSED && !state);
    bindings_drop(engine, incident);
}

static bool is_used_up(const struct incident *incident)
{
    for (uint32_t i = 0; i < incident->binding_count; i++) {
        if (!binding_is_used_up(&incident->bindings[i]))
            return false;
    }
    return incident->binding_count > 0;
}

static bool is_annotated_anew(struct as_engine *engine, struct cause *cause,
                              struct incident *incident, const struct as_listed_alert *alert)
{
    if (as_labels_equal(incident->state.annotations, alert->annotations))
        return false;
    if (!as_annotations_find_state(incident->state.annotations) !=
        !as_annotations_find_state(alert->annotations))
        touch_targets(engine, cause, incident); /* the alert may lower sizes now, or no more */
    struct incident *old = as_xcalloc(1, sizeof(*old)); /* effects may still point to them */
    old->state.annotations = incident->state.annotations;
    TAILQ_INSERT_TAIL(&engine->graveyard, old, in_order);
    incident->state.annotations = as_labels_copy(alert->annotations);
    return true;
}

/* The alert came through another Alertmanager receiver, or from a credential that may trigger more:
 * so more rules match it. */
static bool is_rerouted(struct as_engine *engine, struct cause *cause, struct incident *incident,
                        const struct as_listed_alert *alert)
{
    const bool is_new_receiver = add_receivers(incident, alert);
    if (!incident_add_credential(incident, cause->credential) && !is_new_receiver)
        return false;
    bindings_remake(engine, incident);
    touch_targets(engine, cause, incident);
    return true;
}

/* Held, or no longer held: both change what it proposes. */
static bool is_held_anew(struct as_engine *engine, struct cause *cause, struct incident *incident,
                         bool is_suppressed)
{
    if (incident_is_held(incident) == is_suppressed)
        return false;
    incident->state.silenced = is_suppressed ? moment_now(engine) : AS_MOMENT_NEVER;
    incident->late_until.us = as_time_add(engine->mono.us, engine->config.stale_window_us);
    (void)effect_incident_record(engine, incident,
                                 is_suppressed ? AS_INCIDENT_SILENCED : AS_INCIDENT_UNSILENCED,
                                 cause->notification);
    touch_targets(engine, cause, incident);
    return true;
}

static void see_again(struct as_engine *engine, struct incident *incident)
{
    TAILQ_REMOVE(&engine->open, incident, in_order);
    TAILQ_INSERT_TAIL(&engine->open, incident, in_order);
    set_seen(engine, incident);
}

/* Stores `seen`, if something else has changed too or the stored one is too old. */
static void store_seen(struct as_engine *engine, struct incident *incident, bool is_changed)
{
    const int64_t age = engine->mono.us - incident->seen_stored.us;
    if (!is_changed && age <= engine->config.incident_expiry_us / SEEN_STORE_PART)
        return;
    incident->seen_stored = engine->mono;
    effect_put_incident(engine, incident);
}

/* Alertmanager lists the alert of an open incident. Nothing else changes. */
static void incident_see_listed(struct as_engine *engine, struct cause *cause,
                                struct incident *incident, bool is_suppressed)
{
    see_again(engine, incident);
    store_seen(engine, incident, is_held_anew(engine, cause, incident, is_suppressed));
}

static struct as_alert_outcome repeat(struct as_engine *engine, struct cause *cause,
                                      struct incident *incident,
                                      const struct as_listed_alert *alert)
{
    see_again(engine, incident);

    const uint32_t bound = incident->binding_count;
    const bool is_covered = scope_covers(engine, cause->credential, incident);
    /* a rule may take its size from them */
    const bool annotated = is_covered && is_annotated_anew(engine, cause, incident, alert);
    const bool linked =
        is_covered && incident_take_links(incident, alert->generator_url, alert->external_url);
    const bool rerouted = is_rerouted(engine, cause, incident, alert);
    const bool turned = is_held_anew(engine, cause, incident, alert->is_suppressed);
    news_note(engine, cause, incident);
    if (annotated || linked)
        room_account(engine, incident);
    store_seen(engine, incident, annotated || linked || rerouted || turned);
    return outcome_bound(engine, incident, turned || incident->binding_count > bound,
                         is_used_up(incident) ? AS_REASON_MAX_STEPS : AS_REASON_DUPLICATE);
}

/* Alertmanager's peers retry and deliver out of order: a firing that comes shortly after the alert
 * was found suppressed may be older. It must not end a silence that an operator has just set. If it
 * is true, the next list says so. */
static bool is_older_than_silence(const struct as_engine *engine, const struct cause *cause,
                                  const struct incident *incident)
{
    return incident_is_held(incident) && cause->notification &&
           engine->mono.us < incident->late_until.us;
}

/* Whether a firing begins a later stretch of firing than the incident's. A start ahead of the clock
 * continues an open incident. An undated incident has a guessed start, which any valid start
 * replaces; if the incident has ended, the alert fires again. */
static bool is_later_stretch(const struct as_engine *engine, struct incident *incident,
                             as_wall_time starts_at)
{
    const bool has_no_date = is_ahead(engine, starts_at);
    if (incident->state.is_open && incident->state.is_undated && !has_no_date) {
        incident->state.starts_at = starts_at;
        incident->state.is_undated = false;
        incident->seen_stored.us = INT64_MIN / 2; /* to be stored */
        return false;
    }
    if (has_no_date)
        return !incident->state.is_open && !incident->state.is_undated;
    return incident->state.is_undated || starts_later(starts_at, incident->state.starts_at);
}

/* The alert fires. */
static struct as_alert_outcome incident_see(struct as_engine *engine, struct cause *cause,
                                            const struct as_listed_alert *alert)
{
    const char *owner = scope_get_owner(engine, cause->credential, alert->labels);
    struct incident *incident = incident_find(engine, &alert->digest, owner);
    const struct incident *known = find_known(engine, &alert->digest, owner, incident);
    const bool is_open = incident && incident->state.is_open;
    if (alert->is_suppressed) /* opens nothing; an open incident is held, whenever it began */
        return is_open ? repeat(engine, cause, incident, alert) : outcome_of(AS_REASON_SILENCED);
    if (known && !scope_reaches(engine, cause->credential, known, alert))
        return outcome_of(AS_REASON_FORBIDDEN);
    if (!incident)
        return incident_open(engine, cause, alert, owner);

    const bool is_newer = is_later_stretch(engine, incident, alert->starts_at);
    if ((is_open && is_newer && !scope_covers(engine, cause->credential, incident)))
        return outcome_of(AS_REASON_FORBIDDEN);
    if (is_open && !is_newer && is_older_than_silence(engine, cause, incident))
        return outcome_bound(engine, incident, false, AS_REASON_SILENCED);
    if (is_open && !is_newer)
        return repeat(engine, cause, incident, alert);
    if (!is_open && !is_newer &&
        engine->mono.us - incident->state.resolved.mono.us < engine->config.stale_window_us)
        return outcome_of(AS_REASON_STALE);

    if (is_open) /* its resolved was lost */
        incident_end(engine, cause, incident, AS_INCIDENT_SUPERSEDED, NULL);
    incident_bury(engine, incident);
    struct as_alert_outcome outcome = incident_open(engine, cause, alert, owner);
    if (!outcome.is_queued) /* else it was replaced */
        effect_delete_incident(engine, incident);
    return outcome;
}

/* Remembers that the alert was resolved, so that an older firing which comes later is
 * recognized. */
static struct as_alert_outcome remember_resolved(struct as_engine *engine,
                                                 const struct cause *cause,
                                                 const struct as_listed_alert *alert,
                                                 const char *owner)
{
    switch (bindings_check(engine, alert->labels, alert->receivers[0])) {
    case BIND_NO_RULE: return outcome_of(AS_REASON_NO_RULE);
    case BIND_DISABLED: return outcome_of(AS_REASON_RULE_DISABLED);
    case BIND_OK:
    case BIND_NOT_ALLOWED:
    case BIND_FORBIDDEN: break;
    }
    struct incident *incident = incident_new(engine, cause, alert, owner, false);
    incident_insert(engine, incident);
    effect_put_incident(engine, incident);
    return outcome_of(AS_REASON_DUPLICATE);
}

/* Marks the incident as resolved now. `starts_at` may be of a later stretch than the one seen: then
 * its firing is still on the way. */
static void set_resolved(struct as_engine *engine, struct incident *incident,
                         as_wall_time starts_at)
{
    if (incident->state.is_open) {
        TAILQ_REMOVE(&engine->open, incident, in_order);
        engine->open_count--;
    } else {
        TAILQ_REMOVE(&engine->resolved, incident, in_order);
    }
    incident->state.is_open = false;
    incident->state.silenced = AS_MOMENT_NEVER;
    incident->state.resolved = moment_now(engine);
    set_seen(engine, incident);
    if (!is_ahead(engine, starts_at) && starts_at.us != incident->state.starts_at.us &&
        (incident->state.is_undated || starts_at.us > incident->state.starts_at.us)) {
        incident->state.starts_at = starts_at;
        incident->state.is_undated = false;
    }
    TAILQ_INSERT_TAIL(&engine->resolved, incident, in_order);
    effect_put_incident(engine, incident);
}

/* The alert of an open incident has stopped firing. */
static void incident_close(struct as_engine *engine, struct cause *cause, struct incident *incident,
                           as_wall_time starts_at, const char *state)
{
    incident_end(engine, cause, incident, AS_INCIDENT_CLOSED, state);
    set_resolved(engine, incident, starts_at);
}

static struct as_alert_outcome handle_resolved(struct as_engine *engine, struct cause *cause,
                                               const struct as_listed_alert *alert,
                                               as_wall_time ends_at)
{
    const char *owner = scope_get_owner(engine, cause->credential, alert->labels);
    struct incident *incident = incident_find(engine, &alert->digest, owner);
    const struct incident *known = find_known(engine, &alert->digest, owner, incident);
    if (!scope_reaches(engine, cause->credential, known, alert) ||
        (known && !scope_covers(engine, cause->credential, known)))
        return outcome_of(AS_REASON_FORBIDDEN);
    if (!incident)
        return remember_resolved(engine, cause, alert, owner);
    if (!incident->state.is_open) {
        if (alert->starts_at.us > incident->state.starts_at.us &&
            !is_ahead(engine, alert->starts_at))
            set_resolved(engine, incident, alert->starts_at);
        return outcome_of(AS_REASON_DUPLICATE);
    }
    /* a late end of an earlier stretch */
    if (!incident->state.is_undated && alert->starts_at.us < incident->state.starts_at.us &&
        ends_at.us < incident->state.starts_at.us)
        return outcome_of(AS_REASON_STALE);

    if (incident_add_credential(incident, cause->credential))
        bindings_remake(engine, incident);
    const struct as_alert_outcome outcome =
        outcome_bound(engine, incident, true, AS_REASON_NO_CHANGE);
    incident_close(engine, cause, incident, alert->starts_at,
                   as_annotations_find_state(alert->annotations));
    return outcome;
}

static struct as_alert_outcome handle_alert(struct as_engine *engine, struct cause *cause,
                                            const struct as_notification *notification,
                                            const struct as_alert *alert)
{
    if (alert->problem)
        return outcome_of(AS_REASON_INVALID);
    if (as_labels_are_own(alert->labels))
        return outcome_of(AS_REASON_OWN_ALERT);
    const char *const receiver = notification->receiver;
    const struct as_listed_alert seen = {
        .digest = alert->digest,
        .fingerprint = alert->fingerprint,
        .starts_at = alert->starts_at,
        .labels = alert->labels,
        .annotations = alert->annotations,
        .generator_url = alert->generator_url,
        .external_url = notification->external_url,
        .receivers = &receiver,
        .receiver_count = 1,
    };
    const bool may_prove = scope_is_whole(engine, cause->credential);
    struct as_alert_outcome outcome;
    if (alert->status == AS_ALERT_RESOLVED) {
        outcome = handle_resolved(engine, cause, &seen, alert->ends_at);
    } else {
        if (may_prove)
            watchdog_see(engine, alert->labels);
        outcome = incident_see(engine, cause, &seen);
    }
    outcome.is_watchdog = may_prove && !outcome.is_queued && outcome.reason == AS_REASON_NO_RULE &&
                          watchdog_matches(engine, alert->labels);
    return outcome;
}

/* All are known, and have no consequences. */
static bool are_repeats(const struct as_alert_outcome *outcomes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const enum as_reason reason = outcomes[i].reason;
        if (outcomes[i].is_queued ||
            (reason != AS_REASON_DUPLICATE && reason != AS_REASON_MAX_STEPS))
            return false;
    }
    return count > 0;
}

void incidents_handle(struct as_engine *engine, const struct as_notification *notification,
                      uint64_t request)
{
    struct as_alert_outcome *outcomes =
        as_arena_alloc(&engine->arena, notification->alert_count, sizeof(*outcomes));
    /* first in the log; its outcomes are filled in below, before the effects are read */
    struct as_notification_record *record = as_arena_alloc(&engine->arena, 1, sizeof(*record));
    *record = (struct as_notification_record){.notification = notification, .outcomes = outcomes};
    struct as_effect *effect = effect_add(engine, AS_EFFECT_RECORD_NOTIFICATION);
    effect->call_id = request;
    effect->notification = record;
    const size_t effects = engine->effect_count;

    struct cause cause = {.notification = notification->id, .credential = notification->credential};
    if (scope_is_whole(engine, notification->credential))
        muting_note_receiver(engine, notification->receiver);
    for (size_t i = 0; i < notification->alert_count; i++)
        outcomes[i] = handle_alert(engine, &cause, notification, &notification->alerts[i]);

    record->is_repeat = engine->effect_count == effects && cause.touched_count == 0 &&
                        are_repeats(outcomes, notification->alert_count);
    struct waiter *waiter = cause_commit(engine, &cause);
    waiter->has_request = true;
    waiter->request = request;
    engine->effects[engine->effect_count - 1].is_repeat = record->is_repeat;
}

void incidents_expire(struct as_engine *engine)
{
    struct cause time_alone = {.credential = ""};
    const size_t effects = engine->effect_count;
    struct incident *incident;
    while ((incident = TAILQ_FIRST(&engine->open)) &&
           incident->state.seen.mono.us + engine->config.incident_expiry_us <= engine->mono.us) {
        incident_end(engine, &time_alone, incident, AS_INCIDENT_EXPIRED, NULL);
        incident_bury(engine, incident);
        effect_delete_incident(engine, incident);
    }
    while ((incident = TAILQ_FIRST(&engine->resolved)) &&
           incident->state.resolved.mono.us + engine->config.stale_window_us <= engine->mono.us) {
        incident_bury(engine, incident);
        effect_delete_incident(engine, incident);
    }
    if (engine->effect_count > effects)
        cause_commit(engine, &time_alone);
}

as_mono_time incidents_get_deadline(const struct as_engine *engine)
{
    as_mono_time deadline = AS_MONO_NEVER;
    const struct incident *incident = TAILQ_FIRST(&engine->open);
    if (incident)
        deadline.us = as_time_add(incident->state.seen.mono.us, engine->config.incident_expiry_us);
    incident = TAILQ_FIRST(&engine->resolved);
    if (incident) {
        const int64_t end =
            as_time_add(incident->state.resolved.mono.us, engine->config.stale_window_us);
        if (end < deadline.us)
            deadline.us = end;
    }
    return deadline;
}

/*
 * Alertmanager's list of alerts, read from its API at start and then every resync_us, one list at a
 * time. And the watchdog: an alert that always fires, as proof that monitoring works.
 *
 * The list repairs what notifications do not say or what was lost: it opens missed incidents,
 * closes those whose alerts are gone, and holds silenced, inhibited or muted ones, for which
 * Alertmanager sends nothing, not even their resolved. It opens incidents only of alerts that
 * Alertmanager sends for certain (muting_judge).
 *
 * A list is as old as its request. A notification received since then is newer and wins.
 *
 * Nothing here is stored: a restart begins with a list, counts missing incidents from 0, and waits
 * for the watchdog.
 */

/* An incident is closed after so many lists in a row without it. One list proves nothing: a
 * restarted Alertmanager lists no alerts until Prometheus has sent them again. */
#define LISTS_MISSED    2
#define LIST_BACKOFF_US (5 * AS_US_PER_S) /* after an error; doubled up to resync_us */

static void request_list(struct as_engine *engine)
{
    engine->list_due = AS_MONO_NEVER;
    if (engine->stopping || engine->config.resync_us == 0)
        return;
    engine->list_call_id = ++engine->next_call_id;
    engine->list_asked = engine->mono;
    effect_add(engine, AS_EFFECT_LIST_ALERTS)->call_id = engine->list_call_id;
}

/* At start, and when the configuration may have changed. */
void alerts_resume(struct as_engine *engine)
{
    if (engine->list_call_id) /* its answer continues */
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
static void handle_shared(struct as_engine *engine, struct cause *cause, uint64_t call_id,
                          const struct as_listed_alert *alert)
{
    struct incident *shared = incident_find(engine, &alert->digest, "");
    const bool is_open = shared && shared->state.is_open;
    const bool is_older = shared && shared->seen_call_id >= call_id;
    struct as_listed_alert seen = *alert;
    const enum muting muting =
        muting_judge(engine, alert, shared, &seen.receivers, &seen.receiver_count);
    seen.is_suppressed = muting == MUTING_SILENCED;
    if (muting == MUTING_UNKNOWN && is_open && !is_older)
        incident_see_listed(engine, cause, shared, incident_is_held(shared));
    if (muting == MUTING_UNKNOWN)
        return;
    if (!is_older || (!seen.is_suppressed && !is_ahead(engine, alert->starts_at) &&
                      starts_later(alert->starts_at, shared->state.starts_at)))
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

static void handle_listed(struct as_engine *engine, struct cause *cause, uint64_t call_id,
                          const struct as_listed_alert *alert)
{
    handle_shared(engine, cause, call_id, alert);
    struct incident *incident = incident_find_first(engine, &alert->digest);
    for (; incident; incident = incident_find_next(incident)) {
        if (!incident->state.is_open)
            continue;
        if (incident->state.key.owner[0] != '\0' && incident->seen_call_id < call_id)
            handle_owned(engine, cause, alert, incident);
        news_note_listed(engine, cause, incident, alert);
    }
}

/* No listed incident has a `seen_call_id` below the list's, nor has one with a notification
 * since. */
static void close_unnamed(struct as_engine *engine, struct cause *cause, uint64_t call_id)
{
    struct incident *incident;
    RB_FOREACH (incident, incident_tree, &engine->incidents) {
        if (incident->state.is_open && incident->seen_call_id < call_id &&
            ++incident->missed >= LISTS_MISSED)
            incident_close(engine, cause, incident, incident->state.starts_at,
                           as_annotations_find_state(incident->state.annotations));
    }
}

/* With a watchdog configured, a list without it is incomplete, as is a list with unreadable alerts:
 * then absence does not prove that an alert ended. */
void alerts_on_listed(struct as_engine *engine, uint64_t call_id, const struct as_alert_list *list)
{
    if (call_id == 0 || call_id != engine->list_call_id)
        return;
    engine->list_call_id = 0;
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
        handle_listed(engine, &cause, call_id, alert);
    }
    if (lives_on && list->unread == 0)
        close_unnamed(engine, &cause, call_id);
    if (engine->effect_count > effects || cause.touched_count > 0)
        cause_commit(engine, &cause);
}
