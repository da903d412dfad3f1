/*
 * Monitoring behind an unreliable network: values that change, queries that fail, and the list of
 * firing alerts, of which a peer that has just started may know only a part.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>

#include "sim.h"

struct sim_source {
    struct as_source_port port;
    struct world *world;
    uint64_t generation;
};

struct inquiry {
    uint64_t call_id, generation; /* generation: of the shell that asked */
    int metric;                   /* -1: the list */
    void *context;
    as_source_queried_fn *queried;
    as_source_listed_fn *listed;
};

const char *const source_queries[METRICS] = {"m0", "m1", "m2", "g0"};

/* What the world says at the moment of the answer. */
static struct as_query_result evaluate(struct world *world, int metric)
{
    struct metric *it = &world->metrics[metric];
    if (world->is_silent || !it->is_there || (!world->is_calm && chance(world, 60))) {
        trouble_note(world, TROUBLE_QUERY_FAILED);
        return (struct as_query_result){.error = "query returned no data"};
    }
    it->answered = world->now;
    return (struct as_query_result){.value = it->value};
}

/* As one of the peers has it, whose flushes are at different times. */
static struct as_listed_route make_route(struct world *world, int group)
{
    const bool is_muted = world->peers[0][group].is_muted || world->peers[1][group].is_muted;
    if (world->intervals[group].applies && !is_muted)
        trouble_note(world, TROUBLE_MUTED_UNMARKED);
    return (struct as_listed_route){
        .receiver = "scaler",
        .is_muted = is_muted,
        .wait_us = world->has_intervals ? world->group_interval + MINUTE : 0,
    };
}

/* Prometheus sends its alerts once a minute. */
static as_wall_time get_update(const struct world *world)
{
    const int64_t at = world->is_silent ? world->silent_since : world->now;
    return (as_wall_time){true_wall(world).us - world->now + at - at % MINUTE +
                          world->alertmanager_us};
}

/* Alertmanager forgets nothing for long: an alert that one list leaves out is in the next. */
static size_t list(struct world *world, struct as_listed_alert *alerts,
                   struct as_listed_route *routes)
{
    size_t count = 0;
    for (int i = 0; i < ALERTS; i++) {
        struct alert *alert = &world->alerts[i];
        const bool is_left_out = !world->is_calm && !alert->was_left_out && chance(world, 40);
        alert->was_left_out = is_left_out;
        if (alert->firing && is_left_out)
            trouble_note(world, TROUBLE_LIST_CUT);
        if (!alert->firing || is_left_out)
            continue;
        const bool may_open = !alert->silenced && !alertmanager_mutes(world, alert->group);
        alert->was_delivered = alert->was_delivered || may_open;
        pools_note_heard(world, alert);
        routes[count] = make_route(world, alert->group);
        alerts[count] = (struct as_listed_alert){
            .digest = alert->digest,
            .fingerprint = alert->fingerprint,
            .is_suppressed = alert->silenced,
            .starts_at = alert->starts_at,
            .updated_at = get_update(world),
            .labels = alert->labels,
            .annotations = alert->no_annotations,
            .routes = &routes[count],
            .route_count = 1,
        };
        count++;
    }
    return count;
}

static int compare_listed(const void *a, const void *b)
{
    const struct as_listed_alert *left = a, *right = b;
    return as_digest_compare(&left->digest, &right->digest);
}

static void on_reply(struct world *world, void *subject, uint64_t argument)
{
    struct inquiry *inquiry = subject;
    if (daemon_is_gone(world, inquiry->generation)) {
        free(inquiry);
        return;
    }
    if (!daemon_enter(world, inquiry->generation, on_reply, inquiry, argument))
        return;
    if (inquiry->metric >= 0) {
        const struct as_query_result result = evaluate(world, inquiry->metric);
        trace(world, "monitoring: asked for %s, %s", source_queries[inquiry->metric],
              result.error ? "which fails" : "answered");
        inquiry->queried(inquiry->context, inquiry->call_id, &result);
    } else {
        struct as_listed_alert alerts[ALERTS];
        struct as_listed_route routes[ALERTS];
        struct as_alert_list answer = {.alerts = alerts, .is_anew = world->is_restarted};
        if ((world->is_silent && !world->is_listing) || (!world->is_calm && chance(world, 150))) {
            answer.error = "no answer";
            trouble_note(world, TROUBLE_LIST_FAILED);
        } else {
            answer.count = list(world, alerts, routes);
            world->is_restarted = false;
            qsort(alerts, answer.count, sizeof(alerts[0]), compare_listed);
        }
        trace(world, "monitoring: a list of %zu%s", answer.count, answer.error ? " fails" : "");
        inquiry->listed(inquiry->context, inquiry->call_id, &answer);
    }
    free(inquiry);
    daemon_poll(world);
    daemon_leave(world);
}

static struct inquiry *inquire(struct as_source_port *self, uint64_t call_id, void *context)
{
    struct sim_source *source = (struct sim_source *)self;
    struct inquiry *inquiry = as_xcalloc(1, sizeof(*inquiry));
    inquiry->call_id = call_id;
    inquiry->generation = source->generation;
    inquiry->context = context;
    inquiry->metric = -1;
    later(source->world, latency(source->world), on_reply, inquiry, 0);
    return inquiry;
}

static void port_query(struct as_source_port *self, uint64_t call_id, const struct as_query *query,
                       as_source_queried_fn *done, void *context)
{
    struct world *world = ((struct sim_source *)self)->world;
    struct inquiry *inquiry = inquire(self, call_id, context);
    inquiry->queried = done;
    for (int i = 0; i < METRICS; i++) {
        if (strcmp(query->text, source_queries[i]) == 0)
            inquiry->metric = i;
    }
    if (inquiry->metric < 0)
        fail(world, "a query that no rule has: %s", query->text);
}

static void port_list(struct as_source_port *self, uint64_t call_id, as_source_listed_fn *done,
                      void *context)
{
    inquire(self, call_id, context)->listed = done;
}

static void port_close(struct as_source_port *self)
{
    free(self); /* answers on their way are not heard any more */
}

struct as_source_port *source_open_port(struct world *world)
{
    struct sim_source *source = as_xcalloc(1, sizeof(*source));
    source->port =
        (struct as_source_port){.query = port_query, .list_alerts = port_list, .close = port_close};
    source->world = world;
    source->generation = world->daemon.generation;
    return &source->port;
}

static void on_metric(struct world *world, void *subject, uint64_t argument)
{
    struct metric *metric = subject;
    (void)argument;
    if (world->is_calm)
        return;
    metric->is_there = !chance(world, 150);
    metric->value = (double)between(world, -2, 24) / 2;
    trace(world, "monitoring: %s is %g%s", source_queries[metric - world->metrics], metric->value,
          metric->is_there ? "" : ", gone");
    later(world, between(world, 5, 300) * SECOND, on_metric, metric, 0);
}

static void on_revival(struct world *world, void *subject, uint64_t argument)
{
    (void)subject;
    (void)argument;
    if (world->is_silent)
        trace(world, "monitoring: lives again");
    world->is_silent = false;
}

static void on_death(struct world *world, void *subject, uint64_t argument)
{
    (void)subject;
    (void)argument;
    if (world->is_calm)
        return;
    world->is_silent = true;
    world->silent_since = world->now;
    world->is_listing = chance(world, 500);
    trouble_note(world, world->is_listing ? TROUBLE_PROMETHEUS_DEAD : TROUBLE_MONITORING_DEAD);
    trace(world, "monitoring: is dead%s", world->is_listing ? ", but for Alertmanager" : "");
    check_silence_begin(world);
    later(world, between(world, 5, 30) * MINUTE, on_revival, NULL, 0);
}

void source_start(struct world *world)
{
    world->alertmanager_us = between(world, -3600, 3600) * SECOND;
    if (chance(world, 500))
        later(world, between(world, 10, 900) * SECOND, on_death, NULL, 0);

    for (int i = 0; i < METRICS; i++) {
        world->metrics[i].answered = INT64_MIN;
        on_metric(world, &world->metrics[i], 0);
    }
}

void source_calm_down(struct world *world)
{
    on_revival(world, NULL, 0);
    for (int i = 0; i < METRICS; i++)
        world->metrics[i].is_there = true;
}

void source_stop(struct world *world)
{
    struct event *event;
    RB_FOREACH (event, event_tree, &world->events) {
        if (event->happen == on_reply)
            free(event->subject);
    }
}
