/*
 * A target's history, and the incidents that a change was a step of.
 */
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>

#include "engine_concerns.h"
#include "engine_effects.h"
#include "engine_registry.h"
#include "engine_state.h"

/*
 * A target's history: our changes, for HPA's policies and for the limits over all targets; and
 * recommendations, for HPA's stabilization windows. Both are stored: a restart forgets nothing.
 */

/* HPA allows no longer periods; limits may be longer. */
#define PERIOD_MAX_US (30 * AS_US_PER_MIN)
/* Recommendations of targets with `always` rules alone are committed this often, for all of these
 * targets together. */
#define COMMIT_US (15 * AS_US_PER_S)
/* A target with more changes than this within the span has its oldest two merged. */
#define EVENTS_MAX 1024
/* Only as many recommendations can matter as there are steps between them; above this number the
 * oldest is dropped. */
#define RECOMMENDATIONS_MAX 1024

struct history {
    struct as_past_event *events; /* our changes, ascending by time */
    size_t event_count, event_capacity;
    struct as_past_recommendation *recommendations; /* ascending by time; without irrelevant ones */
    size_t recommendation_count, recommendation_capacity;
    bool is_restored; /* nothing has been recommended since */
    bool is_late;     /* a recommendation is not committed yet */
};

static struct history *get_history(const struct target *target)
{
    return target->parts[CONCERN_HISTORY];
}

const struct as_past_event *history_get_events(const struct target *target, size_t *count_out)
{
    const struct history *history = get_history(target);
    *count_out = history->event_count;
    return history->events;
}

int64_t history_get_span(const struct as_engine *engine)
{
    const struct as_limits *limits = &engine->config.limits;
    int64_t span = PERIOD_MAX_US;
    if (limits->actions_max > 0 && limits->actions_per_us > span)
        span = limits->actions_per_us;
    if (limits->scale_down_milli_percent > 0 && limits->scale_down_per_us > span)
        span = limits->scale_down_per_us;
    if (limits->namespace_actions_max > 0 && limits->namespace_actions_per_us > span)
        span = limits->namespace_actions_per_us;
    return span;
}

static bool history_is_within(const struct as_engine *engine, struct as_moment at, int64_t span)
{
    return engine->mono.us - at.mono.us < span;
}

static int32_t add_changes(int32_t a, int32_t b)
{
    const int64_t sum = (int64_t)a + b;
    return sum > INT32_MAX ? INT32_MAX : sum < -INT32_MAX ? -INT32_MAX : (int32_t)sum;
}

static void history_add_event(struct as_engine *engine, struct target *target, int32_t change)
{
    struct history *history = get_history(target);
    const int64_t span = history_get_span(engine);
    size_t old = 0;
    while (old < history->event_count && !history_is_within(engine, history->events[old].at, span))
        old++;
    if (old == 0 && history->event_count >= EVENTS_MAX) {
        history->events[1].change =
            add_changes(history->events[0].change, history->events[1].change);
        old = 1;
    }
    history->event_count -= old;
    if (old > 0)
        memmove(history->events, history->events + old,
                history->event_count * sizeof(*history->events));
    history->events = as_xgrow(history->events, history->event_count, &history->event_capacity,
                               sizeof(*history->events));
    history->events[history->event_count++] = (struct as_past_event){moment_now(engine), change};
}

static int64_t get_window(const struct target *target)
{
    const struct as_behavior *behavior = &target->config->bounds.behavior;
    return behavior->up.window_us > behavior->down.window_us ? behavior->up.window_us
                                                             : behavior->down.window_us;
}

/*
 * scaleDown's window asks for the highest recommendation in it, scaleUp's for the lowest. A
 * recommendation that is followed by one at least as high and by one at least as low will never be
 * either: it is dropped.
 */
static void leave_out_covered(struct target *target)
{
    struct history *history = get_history(target);
    int32_t low = INT32_MAX, high = -1;
    size_t kept = history->recommendation_count;
    for (size_t i = history->recommendation_count; i-- > 0;) {
        const struct as_past_recommendation *item = &history->recommendations[i];
        if (item->replicas >= low && item->replicas <= high)
            continue;
        low = item->replicas < low ? item->replicas : low;
        high = item->replicas > high ? item->replicas : high;
        history->recommendations[--kept] = *item;
    }
    history->recommendation_count -= kept;
    memmove(history->recommendations, history->recommendations + kept,
            history->recommendation_count * sizeof(*history->recommendations));
}

/* What the windows say now; without a window, or a recommendation in it, 0. */
struct results {
    int32_t lowest, highest;
};

static struct results get_results(const struct as_engine *engine, const struct target *target)
{
    const struct history *history = get_history(target);
    const struct as_behavior *behavior = &target->config->bounds.behavior;
    struct results results = {0};
    for (size_t i = 0; i < history->recommendation_count; i++) {
        const struct as_past_recommendation *item = &history->recommendations[i];
        if (history_is_within(engine, item->at, behavior->up.window_us) &&
            (results.lowest == 0 || item->replicas < results.lowest))
            results.lowest = item->replicas;
        if (history_is_within(engine, item->at, behavior->down.window_us) &&
            item->replicas > results.highest)
            results.highest = item->replicas;
    }
    return results;
}

/*
 * A target with `always` rules alone has a recommendation every few seconds. One that changes no
 * window's result is not committed: after a restart the present size counts as a recommendation,
 * which holds the size at least as long. The others are committed together. A crash loses those of
 * the last seconds.
 */
static void postpone_commit(struct as_engine *engine, struct history *history)
{
    const int64_t due = as_time_add(engine->history_committed.us, COMMIT_US);
    history->is_late = true;
    if (engine->history_due.us == AS_MONO_NEVER.us)
        engine->history_due.us = due > engine->mono.us ? due : engine->mono.us;
}

void history_on_deadline(struct as_engine *engine)
{
    struct target *target;
    if (engine->history_due.us > engine->mono.us)
        return;
    RB_FOREACH (target, target_tree, &engine->targets) {
        if (!get_history(target)->is_late)
            continue;
        get_history(target)->is_late = false;
        effect_put_target(engine, target);
    }
    engine->history_due = AS_MONO_NEVER;
    engine->history_committed = engine->mono;
    effect_commit(engine);
}

/* True: it is to be committed. */
bool history_add_recommendation(struct as_engine *engine, struct target *target, int32_t replicas)
{
    struct history *history = get_history(target);
    const int64_t window = target->config->bounds.has_behavior ? get_window(target) : 0;
    const bool is_continuous = always_is_alone(target);
    if (window == 0)
        return false;
    const struct results before = is_continuous ? get_results(engine, target) : (struct results){0};
    size_t old = 0;
    while (old < history->recommendation_count &&
           !history_is_within(engine, history->recommendations[old].at, window))
        old++;
    if (old == 0 && history->recommendation_count >= RECOMMENDATIONS_MAX)
        old = 1;
    history->recommendation_count -= old;
    if (old > 0)
        memmove(history->recommendations, history->recommendations + old,
                history->recommendation_count * sizeof(*history->recommendations));
    history->recommendations =
        as_xgrow(history->recommendations, history->recommendation_count,
                 &history->recommendation_capacity, sizeof(*history->recommendations));
    history->recommendations[history->recommendation_count++] =
        (struct as_past_recommendation){moment_now(engine), replicas};
    leave_out_covered(target);
    history->is_restored = false;
    if (!is_continuous)
        return true;
    const struct results after = get_results(engine, target);
    if (after.lowest != before.lowest || after.highest != before.highest)
        postpone_commit(engine, history);
    return false;
}

/* As in HPA, the first observed size counts as a recommendation: so windows hold from the
 * beginning. */
void history_begin(struct as_engine *engine, struct target *target, int32_t replicas)
{
    struct history *history = get_history(target);
    const size_t count = history->recommendation_count;
    const bool is_outdated =
        count > 0 && history->is_restored && always_is_alone(target) &&
        !history_is_within(engine, history->recommendations[count - 1].at, get_window(target));
    if (count == 0 || is_outdated)
        (void)history_add_recommendation(engine, target, replicas);
}

/* By another object of the same name: it counts only in the limits over all targets. */
static bool is_of_former(const struct target *target, struct as_moment at)
{
    return as_moment_is_set(target->born) && at.mono.us < target->born.mono.us;
}

/* Fills in what the decision's windows and policies need. */
static void history_fill(struct as_engine *engine, const struct target *target,
                         const struct as_observation *observation, struct as_decide_input *input)
{
    (void)observation;
    struct history *history = get_history(target);
    if (!input->config.has_behavior)
        return;
    struct as_scale_event *events =
        as_arena_alloc(&engine->arena, history->event_count, sizeof(*events));
    for (size_t i = 0; i < history->event_count; i++) {
        const struct as_past_event *event = &history->events[i];
        if (history_is_within(engine, event->at, PERIOD_MAX_US) && !is_of_former(target, event->at))
            events[input->event_count++] =
                (struct as_scale_event){moment_get_wall(engine, event->at).at, event->change};
    }
    input->events = events;
    struct as_recommendation *recommendations =
        as_arena_alloc(&engine->arena, history->recommendation_count, sizeof(*recommendations));
    for (size_t i = 0; i < history->recommendation_count; i++) {
        const struct as_past_recommendation *item = &history->recommendations[i];
        if (history_is_within(engine, item->at, get_window(target)))
            recommendations[input->recommendation_count++] =
                (struct as_recommendation){moment_get_wall(engine, item->at).at, item->replicas};
    }
    input->recommendations = recommendations;
}

static void history_forget_sizes(struct as_engine *engine, struct target *target,
                                 const struct other_object *why)
{
    (void)engine, (void)why;
    get_history(target)->recommendation_count = 0;
}

static void history_on_applied(struct as_engine *engine, struct target *target,
                               const struct action *action)
{
    history_add_event(engine, target, action->intent->state.to - action->intent->state.from);
}

static void history_deinit(struct target *target)
{
    struct history *history = get_history(target);
    free(history->events);
    free(history->recommendations);
}

static void history_store(struct as_engine *engine, const struct target *target,
                          struct as_target_state *state)
{
    const struct history *history = get_history(target);
    (void)engine;
    state->events = history->events;
    state->event_count = history->event_count;
    state->recommendations = history->recommendations;
    state->recommendation_count = history->recommendation_count;
}

static void history_take_event(struct target *target, const struct as_past_event *event)
{
    struct history *history = get_history(target);
    history->events = as_xgrow(history->events, history->event_count, &history->event_capacity,
                               sizeof(*history->events));
    size_t at = history->event_count++;
    for (; at > 0 && history->events[at - 1].at.mono.us > event->at.mono.us; at--)
        history->events[at] = history->events[at - 1];
    history->events[at] = *event;
}

static void take_recommendation(struct target *target, const struct as_past_recommendation *item)
{
    struct history *history = get_history(target);
    history->recommendations =
        as_xgrow(history->recommendations, history->recommendation_count,
                 &history->recommendation_capacity, sizeof(*history->recommendations));
    size_t at = history->recommendation_count++;
    for (; at > 0 && history->recommendations[at - 1].at.mono.us > item->at.mono.us; at--)
        history->recommendations[at] = history->recommendations[at - 1];
    history->recommendations[at] = *item;
}

static void history_restore(struct as_engine *engine, struct target *target,
                            const struct as_target_state *state)
{
    (void)engine;
    for (size_t i = 0; i < state->event_count; i++)
        history_take_event(target, &state->events[i]);
    for (size_t i = 0; i < state->recommendation_count; i++)
        take_recommendation(target, &state->recommendations[i]);
    get_history(target)->is_restored = true;
}

static void history_unite(struct as_engine *engine, struct target *target, struct target *former)
{
    const struct history *history = get_history(target);
    struct as_target_state state = {0};
    if (history->event_count > 0 || history->recommendation_count > 0)
        return;
    history_store(engine, former, &state);
    history_restore(engine, target, &state);
}

static as_mono_time history_get_forget_time(const struct target *target)
{
    struct history *history = get_history(target);
    const struct as_moment moments[] = {target->locks.last_up,        target->locks.last_down,
                                        target->locks.dry_last_up,    target->locks.dry_last_down,
                                        target->locks.last_step_down, target->locks.last_return};
    as_mono_time forget = {INT64_MIN};
    if (history->event_count > 0) /* also if the locks were ended by hand */
        forget = target_get_kept_until(target, history->events[history->event_count - 1].at);
    for (size_t i = 0; i < AS_ARRAY_SIZE(moments); i++) {
        const as_mono_time kept = target_get_kept_until(target, moments[i]);
        forget = kept.us > forget.us ? kept : forget;
    }
    return forget;
}

const struct concern concern_history = {
    .name = "history",
    .on_applied = history_on_applied,
    .size = sizeof(struct history),
    .deinit = history_deinit,
    .store = history_store,
    .restore = history_restore,
    .unite = history_unite,
    .forget_sizes = history_forget_sizes,
    .get_forget_time = history_get_forget_time,
    .fill_input = history_fill,
};
