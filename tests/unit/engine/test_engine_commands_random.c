/*
 * Orders, alerts, faults, crashes and the kill switch in any order: rules set nothing during a
 * pause, and nothing is set under the kill switch; each order that was answered as accepted gets a
 * recorded outcome in the end. A failing seed is printed, and fails again.
 */
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/random.h>

#include "engine_harness.h"

#define SEEDS 400
#define STEPS 60

static const struct spec spec = {
    .targets = {{.name = "web", .min = 1, .max = 20, .up = 60, .down = 60}},
    .rules = {{.name = "slow", .match = {"alertname=Slow"}, .target = "web", .up = 2},
              {.name = "idle", .match = {"alertname=Idle"}, .target = "web", .down = 1}},
};

struct run {
    struct harness harness;
    struct as_random random;
    uint64_t seed;
    bool paused, all_paused; /* answered so, without an end, and nobody ordered otherwise */
    bool halted;
    bool is_due; /* an ordered size was answered, and not told of so far */
};

static int64_t below(struct run *run, uint64_t limit)
{
    return (int64_t)as_random_get_below(&run->random, limit);
}

/* What was set by a request that was also sent within this step; one that is seen late was not. */
static bool was_set(const char *text, const char *what)
{
    for (const char *at = strstr(text, what); at; at = strstr(at + 1, what)) {
        const size_t size = strcspn(at, ";");
        const char *applied = memmem(at, size, " applied", 8);
        if (applied && !memmem(at, size, " late", 5) && at[strlen(what)] != '\0')
            return true;
    }
    return false;
}

static bool is_order(const char *text, bool *answered_out)
{
    const char *done = strstr(text, " done");
    const bool is_scale = strncmp(text, "scale web ", 10) == 0 && done && done < strchr(text, ';');
    *answered_out = is_scale && strstr(done, "; answered");
    return is_scale;
}

static void look(struct run *run, bool was_paused, bool was_halted)
{
    const char *text = said(&run->harness);
    bool is_answered;
    if (was_paused && (run->paused || run->all_paused))
        cr_assert_not(was_set(text, "acted web "), "seed %llu, paused: %s",
                      (unsigned long long)run->seed, text);
    if (was_halted && run->halted)
        cr_assert_not(was_set(text, "acted web ") || was_set(text, "ordered web "),
                      "seed %llu, halted: %s", (unsigned long long)run->seed, text);
    if (is_order(text, &is_answered))
        run->is_due = is_answered;
    if (strstr(text, "ordered web ") || strstr(text, "earlier order web "))
        run->is_due = run->is_due && !(strstr(text, " applied") || strstr(text, " rejected") ||
                                       strstr(text, " forbidden") || strstr(text, " superseded") ||
                                       strstr(text, " unreachable"));
}

static void give(struct run *run, enum as_operator_command_kind kind, const char *target)
{
    const bool has_end = below(run, 2) == 0;
    struct as_operator_command order = {.kind = kind, .target = target};
    if (kind == AS_OPERATOR_COMMAND_PAUSE && has_end)
        order.for_us = (1 + below(run, 300)) * AS_US_PER_S;
    order.replicas = (int32_t)(1 + below(run, 20));
    if (kind == AS_OPERATOR_COMMAND_PAUSE || kind == AS_OPERATOR_COMMAND_RESUME)
        *(target ? &run->paused : &run->all_paused) = kind == AS_OPERATOR_COMMAND_PAUSE && !has_end;
    harness_order(&run->harness, order);
}

static void disturb(struct run *run)
{
    static const struct scale_script scripts[] = {
        {.outcome = AS_REASON_CONFLICT},
        {.outcome = AS_REASON_UNREACHABLE},
        {.outcome = AS_REASON_FORBIDDEN},
        {.outcome = AS_REASON_TIMEOUT, .is_ambiguous = true},
        {.outcome = AS_REASON_TIMEOUT, .is_ambiguous = true, .is_done = true},
    };
    struct virtual_target *target = harness_target(&run->harness, "web");
    if (run->harness.script_count < 4)
        harness_script(&run->harness, scripts[below(run, AS_ARRAY_SIZE(scripts))]);
    if (below(run, 4) == 0) {
        target->size = (int32_t)below(run, 20);
        target->version++;
    }
    run->harness.observation = below(run, 6) == 0 ? AS_REASON_UNREACHABLE : AS_REASON_APPLIED;
}

/* Something is under way when the process ends. */
static void crash(struct run *run)
{
    struct harness *harness = &run->harness;
    harness->hold_calls = below(run, 2) == 0;
    harness->hold_commits = !harness->hold_calls && below(run, 2) == 0;
    tick(harness, below(run, 70));
    harness->hold_commits = false;
    harness->hold_calls = run->halted; /* the daemon looks at the switch before anything is set */
    harness_crash(harness, below(run, 100));
    if (run->halted)
        harness_halt(harness, "stop");
    harness->hold_calls = false;
    harness_settle(harness);
}

static void take_step(struct run *run)
{
    static const char *const alerts[] = {"Slow", "Slow,pod=b", "Idle"};
    struct harness *harness = &run->harness;
    const char *target = below(run, 2) ? "web" : NULL;
    switch (below(run, 12)) {
    case 0:
    case 1: fire(harness, alerts[below(run, 3)], 990 + below(run, 3)); break;
    case 2: resolve(harness, alerts[below(run, 3)], 990); break;
    case 3: give(run, AS_OPERATOR_COMMAND_PAUSE, target); break;
    case 4: give(run, AS_OPERATOR_COMMAND_RESUME, target); break;
    case 5: give(run, AS_OPERATOR_COMMAND_SCALE, "web"); break;
    case 6: give(run, AS_OPERATOR_COMMAND_UNLOCK, "web"); break;
    case 7:
        run->halted = !run->halted;
        harness_halt(harness, run->halted ? "stop" : NULL);
        break;
    case 8: disturb(run); break;
    case 9: crash(run); break;
    default: tick(harness, 1 + below(run, 120)); break;
    }
}

static void calm_down(struct run *run)
{
    struct harness *harness = &run->harness;
    harness->script_count = 0;
    harness->observation = AS_REASON_APPLIED;
    run->halted = run->paused = run->all_paused = false;
    harness_halt(harness, NULL);
    give(run, AS_OPERATOR_COMMAND_RESUME, NULL);
    give(run, AS_OPERATOR_COMMAND_RESUME, "web");
    tick(harness, 1800);
    look(run, false, false);
    cr_assert_not(run->is_due, "seed %llu: an order of which nothing was heard",
                  (unsigned long long)run->seed);
}

Test(engine_commands_random, hold_whatever_happens)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct run run = {.seed = seed};
        as_random_init(&run.random, seed);
        run.harness.config.seed = seed;
        harness_start(&run.harness, &spec);
        for (unsigned i = 0; i < STEPS; i++) {
            const bool was_paused = run.paused || run.all_paused, was_halted = run.halted;
            take_step(&run);
            look(&run, was_paused, was_halted);
        }
        calm_down(&run);
        harness_stop(&run.harness);
    }
}
