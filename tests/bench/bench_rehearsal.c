/*
 * A simulated month with 100 targets: once with one alert a minute in all, once with one alert a
 * minute on each. Prints the duration, and the memory after a day and at the end; the bounds are 10
 * s for each, and memory that does not grow.
 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/model/labels.h>
#include <alertscaler/tools/simulation.h>

#include "../support/rule_spec.h"
#include "clock.h"

#define TARGETS  100
#define MINUTES  (30 * 24 * 60)
#define START    (INT64_C(1577836800) * AS_US_PER_S) /* 2020-01-01T00:00:00Z */
#define BOUND    10.0
#define MORE_MAX (64 * 1024)
#define RESOLVE  7 /* every so many-th alert of a target ends it */

/* The same target and rule again and again, under other names. */
static struct as_ruleset *make_ruleset(void)
{
    static char names[TARGETS][16], alerts[TARGETS][32];
    struct as_ruleset *all = as_xcalloc(1, sizeof(*all));
    all->targets = as_xcalloc(TARGETS, sizeof(*all->targets));
    all->rules = as_xcalloc(TARGETS, sizeof(*all->rules));
    for (uint32_t i = 0; i < TARGETS; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "web-%u", i);
        (void)snprintf(alerts[i], sizeof(alerts[i]), "app=\"web-%u\"", i);
        const struct spec spec = {
            .targets = {{.name = names[i], .min = 1, .max = 1000, .up = 180, .down = 300}},
            .rules = {{.name = names[i], .match = {alerts[i]}, .target = names[i], .up = 1}},
        };
        struct as_ruleset *one = spec_make_ruleset(&spec);
        all->targets[i] = one->targets[0];
        all->rules[i] = one->rules[0];
        all->targets[i]->number = all->rules[i]->number = i;
        one->target_count = one->rule_count = 0;
        as_ruleset_free(one);
    }
    all->target_count = all->rule_count = TARGETS;
    return all;
}

struct month {
    struct as_ruleset *ruleset;
    struct as_simulation *simulation;
    struct as_labels *labels[TARGETS], *none;
    uint64_t sent[TARGETS];
    as_wall_time starts[TARGETS];
    uint64_t notifications, decisions;
    struct as_random random;
};

static void on_decision(void *context, as_wall_time at, const struct as_decision_record *record)
{
    (void)at;
    (void)record;
    ((struct month *)context)->decisions++;
}

static void send(struct month *month, size_t target)
{
    const as_wall_time now = as_simulation_get_now(month->simulation);
    const uint64_t turn = month->sent[target]++ % RESOLVE;
    char text[] = "", receiver[] = "alertscaler";
    if (turn == 0)
        month->starts[target] = now;
    struct as_alert alert = {
        .status = turn == RESOLVE - 1 ? AS_ALERT_RESOLVED : AS_ALERT_FIRING,
        .digest = as_labels_get_digest(month->labels[target]),
        .fingerprint = as_labels_get_fingerprint(month->labels[target]),
        .starts_at = month->starts[target],
        .ends_at = now,
        .labels = month->labels[target],
        .annotations = month->none,
    };
    struct as_notification notification = {
        .receiver = receiver,
        .group_key = text,
        .reason = text,
        .alerts = &alert,
        .alert_count = 1,
        .remote = text,
        .credential = text,
        .traceparent = text,
    };
    as_ulid_print(now, &month->random, notification.id);
    as_simulation_notify(month->simulation, &notification);
    month->notifications++;
    if (turn == RESOLVE - 1) /* somebody takes away what was added, so that there is more to do */
        as_simulation_set_size(month->simulation, month->ruleset->targets[target]->name, 4);
}

static void month_init(struct month *month)
{
    *month = (struct month){.ruleset = make_ruleset()};
    const struct as_simulation_config config = {
        .ruleset = month->ruleset,
        .engine = {.incident_expiry_us = AS_US_PER_DAY,
                   .stale_window_us = 15 * AS_US_PER_MIN,
                   .seed = 1},
        .start = {START},
        .callbacks = {.decision = on_decision, .context = month},
    };
    as_random_init(&month->random, 1);
    month->simulation = as_simulation_new(&config);
    for (size_t i = 0; i < TARGETS; i++) {
        const char *name = month->ruleset->targets[i]->name;
        const struct as_label pairs[] = {{"alertname", "Slow"}, {"app", name}};
        if (as_labels_new(pairs, AS_ARRAY_SIZE(pairs), &month->labels[i]) != 0)
            abort();
        as_simulation_set_size(month->simulation, name, 4);
    }
    if (as_labels_new(NULL, 0, &month->none) != 0)
        abort();
}

static void month_deinit(struct month *month)
{
    as_simulation_free(month->simulation);
    as_ruleset_free(month->ruleset);
    for (size_t i = 0; i < TARGETS; i++)
        as_labels_free(month->labels[i]);
    as_labels_free(month->none);
}

static size_t get_memory(void)
{
    return mallinfo2().uordblks;
}

/* Returns whether it kept to the bounds. */
static bool run(const char *what, size_t alerts_a_minute)
{
    struct month month;
    size_t target = 0, after_a_day = 0;
    month_init(&month);
    const double start = clock_get_seconds();
    for (int64_t minute = 0; minute < MINUTES; minute++) {
        as_simulation_approach(month.simulation, (as_wall_time){START + minute * AS_US_PER_MIN});
        for (size_t i = 0; i < alerts_a_minute; i++)
            send(&month, target++ % TARGETS);
        if (minute == 24 * 60)
            after_a_day = get_memory();
    }
    const double seconds = clock_get_seconds() - start;
    const size_t at_the_end = get_memory();
    printf("rehearsal: a month of %s: %llu notifications, %llu decisions in %.2f s (at most %.0f); "
           "%zu KiB after a day, %zu at the end\n",
           what, (unsigned long long)month.notifications, (unsigned long long)month.decisions,
           seconds, BOUND, after_a_day / 1024, at_the_end / 1024);
    month_deinit(&month);
    return seconds <= BOUND && at_the_end <= after_a_day + MORE_MAX;
}

int main(void)
{
    const bool on_all = run("one alert a minute on 100 targets", 1);
    const bool on_each = run("one alert a minute on each of 100 targets", TARGETS);
    return !on_all || !on_each;
}
