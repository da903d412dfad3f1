/*
 * Firing alerts, and two peers that report them as Alertmanager does: whole groups, at least once,
 * in no order across peers, with retries of what was true when the flush began, and without
 * silenced alerts. Time intervals mute groups: a peer marks a group only when it flushes the group,
 * and forgets the mark with the group's last alert, or when it is started anew.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/model/labels.h>

#include "sim.h"

#define RETRY_FIRST (500 * AS_US_PER_MS)
#define RETRY_MAX   (60 * SECOND)

void alertmanager_drop(struct world *world, struct message *message)
{
    if (--message->users > 0)
        return;
    if (message->order > 0)
        trouble_note_message(world, message->fate);
    free(message);
}

static void on_change(struct world *world, void *subject, uint64_t argument)
{
    struct alert *alert = subject;
    (void)argument;
    if (world->is_calm || (alert->firing && pools_is_watchdog(world, alert)))
        return;
    if (world->is_silent) { /* nobody would say so */
        later(world, MINUTE, on_change, alert, 0);
        return;
    }
    if (alert->firing && chance(world, 100)) {
        alert->silenced = !alert->silenced;
    } else {
        alert->firing = !alert->firing;
        alert->silenced = alert->silenced && alert->firing;
        *(alert->firing ? &alert->starts_at : &alert->ends_at) = true_wall(world);
    }
    trace(world, "alert %016llx %s%s", (unsigned long long)alert->fingerprint,
          alert->firing ? "fires" : "is over", alert->silenced ? ", silenced" : "");
    const int64_t longest = chance(world, 300) ? 30 : 600;
    later(world, between(world, 1, longest) * SECOND, on_change, alert, 0);
}

static bool has_firing(const struct world *world, int group)
{
    for (int i = 0; i < ALERTS; i++) {
        if (world->alerts[i].group == group && world->alerts[i].firing)
            return true;
    }
    return false;
}

/* Flushes are a group_interval and at most 2 s apart. */
bool alertmanager_mutes(const struct world *world, int group)
{
    const struct interval *interval = &world->intervals[group];
    return interval->applies && world->now - interval->since > world->group_interval + 3 * SECOND;
}

static void on_interval(struct world *world, void *subject, uint64_t argument)
{
    struct interval *interval = subject;
    if (world->is_calm)
        return;
    *interval = (struct interval){!interval->applies, world->now};
    trace(world, "group %d is %smuted", (int)argument, interval->applies ? "" : "no longer ");
    if (interval->applies && has_firing(world, (int)argument))
        trouble_note(world, TROUBLE_MUTED);
    if (chance(world, 200)) {
        for (int peer = 0; peer < PEERS; peer++)
            world->peers[peer][argument].is_muted = false;
        world->is_restarted = true;
        trouble_note(world, TROUBLE_ALERTMANAGER_RESTARTED);
    }
    later(world, between(world, 30, 1200) * SECOND, on_interval, interval, argument);
}

static void on_arrival(struct world *world, void *subject, uint64_t argument)
{
    struct message *message = subject;
    uint64_t *newest = &world->newest_delivered[message->group];
    (void)argument;
    if (world->is_silent || (!world->is_calm && chance(world, 25))) { /* it never came */
        message->fate |= FATE_LOST;
        daemon_refuse(world, message);
        return;
    }
    if (message->order < *newest)
        message->fate |= FATE_REORDERED;
    else
        *newest = message->order;
    daemon_deliver(world, message);
}

void alertmanager_post(struct world *world, struct message *message, int64_t delay)
{
    message->users++;
    later(world, delay, on_arrival, message, 0);
}

/* What the peer would send of its group; false where there is nothing new to say. */
static bool compose(struct world *world, struct peer_group *state, struct message *message)
{
    bool is_new = false;
    for (int i = 0; i < ALERTS; i++) {
        struct alert *alert = &world->alerts[i];
        if (alert->group != message->group)
            continue;
        if (alert->silenced || (state->is_muted && !alert->firing)) {
            state->sent_firing[i] = false; /* its resolved will never come */
            continue;
        }
        if (state->is_muted)
            continue;
        if (!alert->firing && !state->sent_firing[i])
            continue;
        is_new = is_new || !alert->firing || !state->sent_firing[i] ||
                 state->sent_starts[i].us != alert->starts_at.us;
        const int at = message->count++;
        message->items[at].alert = i;
        message->items[at].firing = alert->firing;
        message->items[at].starts_at = alert->starts_at;
        message->items[at].ends_at = alert->ends_at;
        message->items[at].mood = (int)between(world, 0, 2);
        if (alert->firing && !world->story && chance(world, 50)) /* merging of Prometheis */
            message->items[at].starts_at.us -= between(world, 1, 20) * SECOND;
    }
    return is_new || (message->count > 0 && world->now - state->sent_at >= world->repeat_interval);
}

static void note_sent(struct peer_group *state, const struct message *message, int64_t now)
{
    for (int i = 0; i < message->count; i++) {
        const int alert = message->items[i].alert;
        state->sent_firing[alert] = message->items[i].firing;
        state->sent_starts[alert] = message->items[i].starts_at;
    }
    state->sent_at = now;
}

static void on_flush(struct world *world, void *subject, uint64_t argument)
{
    struct peer_group *state = subject;
    const int peer = (int)(argument / GROUPS), group = (int)(argument % GROUPS);
    later(world, world->group_interval + between(world, 0, 2 * SECOND), on_flush, subject,
          argument);
    state->is_muted = world->intervals[group].applies && has_firing(world, group);
    if (state->in_flight || world->is_silent)
        return;
    struct message *message = as_xcalloc(1, sizeof(*message));
    *message = (struct message){.users = 1, .peer = peer, .group = group};
    if (compose(world, state, message)) {
        if (peer > 0 && chance(world, 600)) { /* it has seen that the other peer did it */
            const bool is_muted = state->is_muted;
            *state = world->peers[0][group];
            state->in_flight = false;
            state->is_muted = is_muted;
        } else {
            message->wait = RETRY_FIRST;
            message->give_up = world->now + world->group_interval + peer * 15 * SECOND;
            if (!world->is_calm && chance(world, 100))
                message->give_up = 0; /* the peer ends before it can try again */
            const bool is_held_up = !world->is_calm && chance(world, 60); /* on its way */
            message->order = ++world->next_flush;
            state->in_flight = true;
            alertmanager_post(world, message,
                              is_held_up ? between(world, 10, 120) * SECOND : latency(world));
            if (!world->is_calm && chance(world, 80)) {
                struct message *copy = as_xcalloc(1, sizeof(*copy));
                message->fate |= FATE_DUPLICATED;
                *copy = *message;
                copy->users = 0;
                copy->peer = -1; /* nobody learns of its answer */
                if (chance(world, 500))
                    copy->give_up = 0;
                alertmanager_post(world, copy, between(world, 1, 90) * SECOND);
            }
        }
    }
    alertmanager_drop(world, message);
}

void alertmanager_on_answer(struct world *world, struct message *message, bool durable)
{
    if (durable && !world->is_calm && chance(world, 10)) {
        durable = false; /* the answer was lost on its way */
        message->fate |= FATE_LOST;
    }
    struct peer_group *state =
        message->peer >= 0 ? &world->peers[message->peer][message->group] : NULL;
    if (durable) {
        if (state)
            note_sent(state, message, world->now);
    } else if (world->now + message->wait <= message->give_up) {
        message->fate |= FATE_RETRIED;
        alertmanager_post(world, message, message->wait + latency(world));
        message->wait += message->wait / 2;
        if (message->wait > RETRY_MAX)
            message->wait = RETRY_MAX;
        alertmanager_drop(world, message);
        return;
    }
    if (state)
        state->in_flight = false;
    alertmanager_drop(world, message);
}

static struct as_labels *make_labels(const char *name, const char *value)
{
    const struct as_label pair = {name, value};
    struct as_labels *labels = NULL;
    if (as_labels_new(&pair, value ? 1 : 0, &labels) != 0)
        abort();
    return labels;
}

struct as_notification *alertmanager_write(struct world *world, const struct message *message)
{
    static const char *const moods[] = {NULL, "bad", "worse"};
    struct as_notification *notification = as_xcalloc(1, sizeof(*notification));
    (void)snprintf(notification->id, sizeof(notification->id), "N%025llu",
                   (unsigned long long)++world->next_notification);
    notification->receiver = as_xstrdup("scaler");
    notification->group_key = as_xstrdup("{}");
    notification->reason = as_xstrdup("");
    notification->remote = as_xstrdup("192.0.2.1");
    notification->credential = as_xstrdup("");
    notification->traceparent = as_xstrdup("");
    notification->alerts = as_xcalloc((size_t)message->count + 1, sizeof(struct as_alert));
    notification->alert_count = (size_t)message->count;
    for (int i = 0; i < message->count; i++) {
        struct alert *alert = &world->alerts[message->items[i].alert];
        notification->alerts[i] = (struct as_alert){
            .status = message->items[i].firing ? AS_ALERT_FIRING : AS_ALERT_RESOLVED,
            .digest = alert->digest,
            .fingerprint = alert->fingerprint,
            .starts_at = message->items[i].starts_at,
            .ends_at = message->items[i].ends_at,
            .labels = as_labels_copy(alert->labels),
            .annotations = make_labels("summary", moods[message->items[i].mood]),
        };
        alert->was_delivered = alert->was_delivered || message->items[i].firing;
        if (message->items[i].firing)
            pools_note_heard(world, alert);
    }
    return notification;
}

static void make_alert(struct alert *alert, int i)
{
    char name[8], app[16];
    (void)snprintf(name, sizeof(name), "A%d", i % GROUPS);
    (void)snprintf(app, sizeof(app), i % 7 == 6 ? "other" : "app-%d", i / GROUPS);
    const struct as_label pairs[] = {{"alertname", name}, {"app", app}};
    if (as_labels_new(pairs, AS_ARRAY_SIZE(pairs), &alert->labels) != 0)
        abort();
    alert->no_annotations = make_labels("summary", NULL);
    alert->digest = as_labels_get_digest(alert->labels);
    alert->fingerprint = as_labels_get_fingerprint(alert->labels);
    alert->group = i % GROUPS;
}

void alertmanager_start(struct world *world)
{
    world->group_interval = between(world, 5, 60) * SECOND;
    world->repeat_interval = between(world, 60, 900) * SECOND;
    world->has_intervals = !world->story && chance(world, 400);
    for (int i = 0; i < ALERTS; i++) {
        make_alert(&world->alerts[i], i);
        later(world, between(world, 0, 300) * SECOND, on_change, &world->alerts[i], 0);
    }
    for (int group = 0; group < GROUPS && world->has_intervals; group++) {
        if (group != world->alerts[0].group || !pools_is_watchdog(world, &world->alerts[0]))
            later(world, between(world, 0, 600) * SECOND, on_interval, &world->intervals[group],
                  (uint64_t)group);
    }
    for (int peer = 0; peer < PEERS; peer++) {
        for (int group = 0; group < GROUPS; group++)
            later(world, between(world, 0, world->group_interval), on_flush,
                  &world->peers[peer][group], (uint64_t)(peer * GROUPS + group));
    }
}

/* Nobody silences or mutes anything any more. The watchdog fires at last: a list without it proves
 * no end.
 */
void alertmanager_calm_down(struct world *world)
{
    struct alert *watchdog = &world->alerts[0];
    for (int i = 0; i < ALERTS; i++)
        world->alerts[i].silenced = false;
    for (int i = 0; i < GROUPS; i++)
        world->intervals[i] = (struct interval){false, world->now};
    if (pools_is_watchdog(world, watchdog) && !watchdog->firing) {
        watchdog->firing = true;
        watchdog->starts_at = true_wall(world);
        trace(world, "alert %016llx fires", (unsigned long long)watchdog->fingerprint);
    }
    world->repeat_interval = 20 * MINUTE;
    world->group_interval = 5 * MINUTE;
}

void alertmanager_stop(struct world *world)
{
    struct event *event;
    RB_FOREACH (event, event_tree, &world->events) {
        if (event->happen == on_arrival)
            alertmanager_drop(world, event->subject);
    }
    for (int i = 0; i < ALERTS; i++) {
        as_labels_free(world->alerts[i].labels);
        as_labels_free(world->alerts[i].no_annotations);
    }
}
