/*
 * Metric gaps: since when rules lack their values. A gap begins with the first decision that lacks
 * a value of the rule, and ends with the first one that has all of them, or with the rule's last
 * incident. It is stored with the target, so that a restart does not begin it anew.
 */
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>

#include "engine_concerns.h"
#include "engine_registry.h"

struct metric_gaps {
    struct as_metric_gap_state *items;
    size_t count;
};

static struct metric_gaps *get_gaps(const struct target *target)
{
    return target->parts[CONCERN_METRIC_GAPS];
}

static struct as_metric_gap_state *metric_gap_find(const struct target *target, const char *rule)
{
    const struct metric_gaps *gaps = get_gaps(target);
    for (size_t i = 0; i < gaps->count; i++) {
        if (strcmp(gaps->items[i].rule, rule) == 0)
            return &gaps->items[i];
    }
    return NULL;
}

static void metric_gap_begin(struct target *target, const struct as_metric_gap_state *state)
{
    struct metric_gaps *gaps = get_gaps(target);
    gaps->items = as_xrealloc_array(gaps->items, gaps->count + 1, sizeof(*gaps->items));
    gaps->items[gaps->count] = *state;
    as_rows_own_texts(as_metric_gap_rows, &gaps->items[gaps->count++]);
}

static void metric_gap_end(struct target *target, struct as_metric_gap_state *gap)
{
    struct metric_gaps *gaps = get_gaps(target);
    as_rows_free_texts(as_metric_gap_rows, gap);
    *gap = gaps->items[--gaps->count];
}

/* The rule of a proposal that has, or should have, a value for this decision; NULL: none. */
static const struct as_rule *find_rule(const struct proposer *origin)
{
    const bool is_due = origin->group && origin->incident;
    return is_due && origin->group->rule->fallback.at_least > 0 ? origin->group->rule : NULL;
}

void metric_gaps_fill(struct as_engine *engine, const struct target *target,
                      struct proposals *proposals)
{
    for (size_t i = 0; i < proposals->count; i++) {
        const struct as_rule *rule = find_rule(&proposals->origins[i]);
        const struct as_metric_gap_state *gap = rule ? metric_gap_find(target, rule->name) : NULL;
        if (rule)
            proposals->items[i].fallback = rule->fallback;
        if (gap)
            proposals->items[i].unavailable_since = moment_get_wall(engine, gap->since);
    }
}

bool metric_gaps_note(struct as_engine *engine, struct target *target,
                      const struct proposals *proposals, const struct as_proposal_result *results)
{
    bool is_changed = false;
    for (size_t i = 0; i < proposals->count;) {
        const struct as_rule *rule = find_rule(&proposals->origins[i]);
        bool is_missing = false;
        size_t next = i;
        do /* the proposals of one rule stand together */
            is_missing = is_missing || results[next].is_missing;
        while (++next < proposals->count && find_rule(&proposals->origins[next]) == rule);
        i = next;
        struct as_metric_gap_state *gap = rule ? metric_gap_find(target, rule->name) : NULL;
        if (gap && !is_missing)
            metric_gap_end(target, gap);
        else if (rule && !gap && is_missing)
            metric_gap_begin(target, &(struct as_metric_gap_state){.rule = rule->name,
                                                                   .since = moment_now(engine)});
        else
            continue;
        is_changed = true;
    }
    return is_changed;
}

bool metric_gaps_drop(struct target *target)
{
    struct metric_gaps *gaps = get_gaps(target);
    const size_t before = gaps->count;
    for (size_t i = gaps->count; i > 0; i--) {
        const struct group *group = group_find(target, gaps->items[i - 1].rule);
        if (!group || group->rule->fallback.at_least == 0)
            metric_gap_end(target, &gaps->items[i - 1]);
    }
    return gaps->count != before;
}

as_mono_time metric_gaps_get_next_due(const struct as_engine *engine, struct target *target)
{
    const struct metric_gaps *gaps = get_gaps(target);
    as_mono_time next = AS_MONO_NEVER;
    for (size_t i = 0; i < gaps->count; i++) {
        const struct group *group = group_find(target, gaps->items[i].rule);
        if (!group)
            continue;
        const int64_t after_us = group->rule->fallback.after_us;
        const int64_t due = as_time_add(gaps->items[i].since.mono.us, after_us);
        const bool is_new = after_us == 0 && due == engine->mono.us; /* noted by this decision */
        if ((due > engine->mono.us || is_new) && due < next.us)
            next.us = due;
    }
    return next;
}

static void metric_gaps_deinit(struct target *target)
{
    struct metric_gaps *gaps = get_gaps(target);
    while (gaps->count > 0)
        metric_gap_end(target, &gaps->items[gaps->count - 1]);
    free(gaps->items);
}

static void metric_gaps_store(struct as_engine *engine, const struct target *target,
                              struct as_target_state *state)
{
    const struct metric_gaps *gaps = get_gaps(target);
    state->metric_gaps = gaps->count > 0
                             ? as_rows_copy(&engine->arena, as_metric_gap_rows, gaps->items,
                                            gaps->count, sizeof(*gaps->items))
                             : as_arena_alloc(&engine->arena, 0, 1);
    state->metric_gap_count = gaps->count;
}

static void metric_gaps_restore(struct as_engine *engine, struct target *target,
                                const struct as_target_state *state)
{
    (void)engine;
    for (size_t i = 0; i < state->metric_gap_count; i++) {
        if (!metric_gap_find(target, state->metric_gaps[i].rule)) /* a damaged row may repeat it */
            metric_gap_begin(target, &state->metric_gaps[i]);
    }
}

static bool metric_gaps_review(struct as_engine *engine, struct target *target, int32_t replicas)
{
    (void)engine, (void)replicas;
    return metric_gaps_drop(target);
}

const struct concern concern_metric_gaps = {
    .name = "metric gaps",
    .size = sizeof(struct metric_gaps),
    .deinit = metric_gaps_deinit,
    .store = metric_gaps_store,
    .restore = metric_gaps_restore,
    .review = metric_gaps_review,
};
