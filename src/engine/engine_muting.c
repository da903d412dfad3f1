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
#include "engine_muting.h"

#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>

#include "engine_bindings.h"
#include "engine_registry.h"

#define NOTIFIERS_MAX 64
#define UNMUTED_MAX   AS_ALERT_LIST_MAX

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

void muting_note_receiver(struct as_engine *engine, const char *receiver)
{
    if (engine->notifier_count == NOTIFIERS_MAX || has_notified(engine, receiver))
        return;
    engine->notifiers =
        as_xrealloc_array(engine->notifiers, engine->notifier_count + 1, sizeof(char *));
    engine->notifiers[engine->notifier_count++] = as_xstrdup(receiver);
}

static bool is_ours(const struct as_engine *engine, const char *receiver)
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
static bool counts(const struct as_engine *engine, const struct incident *incident,
                   const char *receiver)
{
    return is_ours(engine, receiver) ||
           (incident && incident->is_open && incident_has_receiver(incident, receiver));
}

static bool counts_for_any(const struct as_engine *engine, const struct as_digest *digest,
                           const char *receiver)
{
    struct incident *incident = incident_find_first(engine, digest);
    while (incident && !counts(engine, incident, receiver))
        incident = incident_find_next(incident);
    return incident || is_ours(engine, receiver);
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

/* The list's order is that of the array. */
void muting_note_list(struct as_engine *engine, const struct as_alert_list *list)
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

enum muting muting_judge(struct as_engine *engine, const struct as_listed_alert *alert,
                         const struct incident *incident, const char *const **receivers_out,
                         size_t *count_out)
{
    const char **receivers = as_arena_alloc(&engine->arena, alert->route_count, sizeof(char *));
    size_t muted = 0, unknown = 0, sent = 0;
    for (size_t i = 0; i < alert->route_count && !alert->is_suppressed; i++) {
        const struct as_listed_route *route = &alert->routes[i];
        if (!counts(engine, incident, route->receiver))
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
