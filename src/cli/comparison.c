/*
 * A difference counts only after some time: an action that took milliseconds in the log is
 * immediate in a rehearsal, and a query may be answered a moment later.
 */
#include "comparison.h"

#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>

#include "comparison_private.h"

static size_t get_listed(const struct compared *target)
{
    return target->asked_count < ASKED_SHOWN ? (size_t)target->asked_count : ASKED_SHOWN;
}

void compared_free_asked(struct compared *target)
{
    for (size_t i = 0; i < get_listed(target); i++) {
        free(target->asked[i].rule);
        free(target->asked[i].unit);
    }
}


#define LASTS_US (10 * AS_US_PER_S)

int compared_compare(const struct compared *a, const struct compared *b)
{
    return strcmp(a->id, b->id);
}

RB_GENERATE(compared_tree, compared, by_id, compared_compare)

struct comparison *comparison_new(const struct as_ruleset *ruleset, bool with_charts)
{
    struct comparison *comparison = as_xcalloc(1, sizeof(*comparison));
    comparison->ruleset = ruleset;
    comparison->with_charts = with_charts;
    comparison->from = INT64_MAX;
    RB_INIT(&comparison->targets);
    return comparison;
}

static void free_target(struct compared *target)
{
    for (size_t i = 0; i < COMPARISON_SIDES; i++)
        as_timeline_deinit(&target->lines[i]);
    for (size_t i = 0; i < target->band_count; i++)
        as_timeline_band_deinit(&target->bands[i]);
    compared_free_asked(target);
    free(target->id);
    free(target->name);
    free(target->unit);
    free(target);
}

struct comparison *comparison_free(struct comparison *comparison)
{
    struct compared *target, *next;

    if (!comparison)
        return NULL;
    RB_FOREACH_SAFE (target, compared_tree, &comparison->targets, next) {
        RB_REMOVE(compared_tree, &comparison->targets, target);
        free_target(target);
    }
    free(comparison);
    return NULL;
}

static struct compared *find_target(struct comparison *comparison, const char *id)
{
    struct compared key = {.id = (char *)(uintptr_t)id};
    return RB_FIND(compared_tree, &comparison->targets, &key);
}

static void set_name(const struct comparison *comparison, struct compared *target, const char *name)
{
    const struct as_ruleset *ruleset = comparison->ruleset;
    target->name = as_xstrdup(name);
    for (size_t i = 0; i < ruleset->target_count && !target->config; i++) {
        if (strcmp(ruleset->targets[i].name, name) == 0)
            target->config = &ruleset->targets[i];
    }
}

struct compared *comparison_get_target(struct comparison *comparison, const char *id,
                                       const char *name)
{
    struct compared *target = find_target(comparison, id);
    if (target && name && strcmp(target->name, target->id) == 0) { /* its name was unknown */
        free(target->name);
        set_name(comparison, target, name);
    }
    if (target)
        return target;
    target = as_xcalloc(1, sizeof(*target));
    target->id = as_xstrdup(id);
    set_name(comparison, target, name && *name ? name : id);
    RB_INSERT(compared_tree, &comparison->targets, target);
    comparison->count++;
    return target;
}

/* Counts the present difference if it has lasted long enough by `at`. */
static void follow_difference(struct compared *target, int64_t at)
{
    if (!target->differs || at - target->differs_since < LASTS_US)
        return;
    if (!target->is_counted) {
        target->is_counted = true;
        target->difference_count++;
        if (target->difference_count <= DIFFERENCES_SHOWN)
            target->differences[target->difference_count - 1] = (struct difference){
                .from = target->differs_since,
                .sizes = {target->sides[COMPARISON_BEFORE].size,
                          target->sides[COMPARISON_AFTER].size},
            };
    }
    if (target->difference_count <= DIFFERENCES_SHOWN)
        target->differences[target->difference_count - 1].to = at;
}

static void end_difference(struct compared *target, int64_t at)
{
    if (target->is_counted)
        target->differed_us += at - target->differs_since;
    target->differs = target->is_counted = false;
}

static void compare_sizes(struct compared *target, int64_t at)
{
    const struct size_figures *before = &target->sides[COMPARISON_BEFORE];
    const struct size_figures *after = &target->sides[COMPARISON_AFTER];
    const bool differs = before->is_set && after->is_set && before->size != after->size;

    if (!differs && target->differs)
        end_difference(target, at);
    else if (differs && !target->differs)
        target->differs_since = at;
    target->differs = differs;
}

static int32_t get_limit(const struct compared *target, int64_t at)
{
    return target->config ? as_target_config_get_bounds(target->config, (as_wall_time){at}).max
                          : AS_SIZE_MAX;
}

/* The limit changes with the schedules, also while the size stays. */
static void follow_limit(struct compared *target, enum comparison_side side, int64_t at)
{
    struct size_figures *figures = &target->sides[side];
    while (figures->is_set && target->config && target->follows_rules[side]) {
        const as_maybe_time change =
            as_target_config_get_bounds(target->config, (as_wall_time){figures->at}).change;
        if (!change.set || change.at.us >= at)
            break;
        size_figures_set(figures, change.at.us, figures->size, get_limit(target, change.at.us));
    }
}

void comparison_set_size(struct comparison *comparison, enum comparison_side side, const char *id,
                         const char *name, as_wall_time at, int32_t size, int32_t limit)
{
    struct compared *target = comparison_get_target(comparison, id, name);

    comparison->from = at.us < comparison->from ? at.us : comparison->from;
    follow_difference(target, at.us);
    follow_limit(target, side, at.us);
    target->follows_rules[side] = limit == COMPARISON_LIMIT_OF_RULES;
    size_figures_set(&target->sides[side], at.us, size,
                     target->follows_rules[side] ? get_limit(target, at.us) : limit);
    compare_sizes(target, at.us);
    if (comparison->with_charts)
        as_timeline_add(&target->lines[side], at.us, size);
}

void comparison_set_unit(struct comparison *comparison, const char *id, const char *unit)
{
    struct compared *target = find_target(comparison, id);

    if (!target || as_str_is_empty(unit))
        return;
    free(target->unit);
    target->unit = as_xstrdup(unit);
}

void comparison_count_action(struct comparison *comparison, enum comparison_side side,
                             const char *id, const char *name, bool is_up)
{
    struct compared *target = comparison_get_target(comparison, id, name);

    if (is_up)
        target->sides[side].ups++;
    else
        target->sides[side].downs++;
}

static struct as_timeline_band *get_band(struct compared *target, const char *alert)
{
    for (size_t i = 0; i < target->band_count; i++) {
        if (strcmp(target->bands[i].name, alert) == 0)
            return &target->bands[i];
    }
    struct as_timeline_band *last = &target->bands[AS_TIMELINE_BANDS_MAX - 1];
    if (target->band_count == AS_TIMELINE_BANDS_MAX) {
        free(last->name);
        last->name = as_xstrdup("and others");
        return last;
    }
    struct as_timeline_band *band = &target->bands[target->band_count++];
    band->name = as_xstrdup(alert);
    return band;
}

void comparison_set_alert(struct comparison *comparison, const char *id, const char *alert,
                          as_wall_time at, bool fires)
{
    struct compared *target =
        comparison->with_charts ? comparison_get_target(comparison, id, NULL) : NULL;

    if (!target)
        return;
    if (fires)
        as_timeline_band_begin(get_band(target, alert), at.us);
    else
        as_timeline_band_end(get_band(target, alert), at.us);
}

static int compare_names(const void *left, const void *right)
{
    const struct compared *const *a = left, *const *b = right;
    return strcmp((*a)->name, (*b)->name);
}

static void find_shared_names(struct comparison *comparison)
{
    struct compared **list = as_xcalloc(comparison->count + 1, sizeof(*list)), *target;
    size_t count = 0;

    RB_FOREACH (target, compared_tree, &comparison->targets)
        list[count++] = target;
    qsort(list, count, sizeof(*list), compare_names);
    for (size_t i = 1; i < count; i++) {
        if (strcmp(list[i - 1]->name, list[i]->name) == 0)
            list[i - 1]->shares_name = list[i]->shares_name = true;
    }
    free(list);
}

void comparison_end(struct comparison *comparison, as_wall_time at)
{
    struct compared *target;

    find_shared_names(comparison);
    comparison->to = at.us;
    if (comparison->from > at.us)
        comparison->from = at.us;
    RB_FOREACH (target, compared_tree, &comparison->targets) {
        follow_difference(target, at.us);
        end_difference(target, at.us);
        for (enum comparison_side i = 0; i < COMPARISON_SIDES; i++) {
            follow_limit(target, i, at.us);
            size_figures_end(&target->sides[i], at.us);
        }
        for (size_t i = 0; i < target->band_count; i++)
            as_timeline_band_close(&target->bands[i], at.us);
    }
}
