/*
 * Bounds in force: of the entry, of schedules, of the other side, and floors by hand.
 *
 * Bounds follow from the state and the time of the present event alone. The module enforces no
 * bound: decisions do (decide/).
 */
#include <alertscaler/base/alloc.h>

#include "engine_concerns.h"
#include "engine_registry.h"

static struct as_floor_state *get_floor(const struct target *target)
{
    return target->parts[CONCERN_SCHEDULES];
}

struct as_schedule_bounds target_get_bounds_at(const struct target *target, as_mono_time now,
                                               as_wall_time wall)
{
    const struct as_target_config *config = target->config;
    const bool has_schedules = !config->list_selector || listings_has(target);
    struct as_schedule_bounds bounds =
        as_schedules_get_bounds(config->schedules, has_schedules ? config->schedule_count : 0,
                                config->bounds.min, config->bounds.max, wall);
    const struct as_floor_state *floor = floor_get(target);
    const struct as_moment end = lock_get_end(floor->since, floor->for_us, now, wall);
    if (floor->size == 0 || !as_moment_is_set(end))
        return bounds;
    if (floor->size > bounds.min)
        bounds.min = floor->size < bounds.max ? floor->size : bounds.max;
    bounds.has_min = true;
    if (!bounds.change.set || end.wall.us < bounds.change.at.us)
        bounds.change = (as_maybe_time){true, end.wall};
    return bounds;
}

/*
 * Floors by hand. A floor is counted from its order, so that a restart does not make it longer. It
 * is part of the bounds in force (target_get_bounds), which every look enforces.
 */

static void floor_free(struct as_floor_state *floor)
{
    as_rows_free_texts(as_floor_rows, floor);
    *floor = (struct as_floor_state){0};
}

static void floor_assign(struct as_floor_state *floor, const struct as_floor_state *state)
{
    floor_free(floor);
    *floor = *state;
    as_rows_own_texts(as_floor_rows, floor);
}

void floor_set(struct as_engine *engine, struct target *target,
               const struct as_operator_command *order)
{
    floor_assign(get_floor(target), &(struct as_floor_state){
                                        .size = order->replicas,
                                        .since = moment_now(engine),
                                        .for_us = order->for_us,
                                        .who = order->who,
                                        .reason = order->reason,
                                    });
}

void floor_clear(struct target *target)
{
    floor_free(get_floor(target));
}

const struct as_schedule_bounds *schedules_find_bounds(struct as_engine *engine,
                                                       const struct target *target)
{
    if (!target || !target->config)
        return NULL;
    struct as_schedule_bounds *bounds = as_arena_alloc(&engine->arena, 1, sizeof(*bounds));
    *bounds = target_get_bounds(engine, target);
    return bounds;
}

static bool floor_forbids(const struct as_engine *engine, const struct target *target,
                          const struct intent *intent)
{
    return floor_get(target)->size > 0 && *intent->state.rule && !intent->state.is_ordered &&
           intent->state.to < intent->state.from &&
           intent->state.to < target_get_bounds(engine, target).min;
}

as_mono_time floor_get_end(const struct target *target)
{
    const struct as_floor_state *floor = get_floor(target);
    if (floor->size == 0)
        return AS_MONO_NEVER;
    return (as_mono_time){as_time_add(floor->since.mono.us, floor->for_us)};
}

/* The bounds of a decision, and when they change */

/* The other side's bounds narrow the configured ones; if both contradict, its maximum wins. */
static void narrow(int32_t *min, int32_t *max, const struct as_observation *observation)
{
    if (observation->max >= 0 && observation->max < *max)
        *max = observation->max;
    if (observation->min > *min)
        *min = observation->min;
    if (*min > *max)
        *min = *max;
}

static void schedules_fill(struct as_engine *engine, const struct target *target,
                           const struct as_observation *observation, struct as_decide_input *input)
{
    const struct as_target_config *config = target->config;
    const struct as_schedule_bounds bounds = target_get_bounds(engine, target);
    input->config.min = bounds.min;
    input->config.max = bounds.max;
    narrow(&input->config.min, &input->config.max, observation);
    if (bounds.in_force == 0 && !bounds.has_min)
        return;
    input->floor = floor_get(target)->size;
    int32_t own_min = config->bounds.min, own_max = config->bounds.max;
    narrow(&own_min, &own_max, observation);
    const char **names = as_arena_alloc(&engine->arena, config->schedule_count, sizeof(*names));
    for (size_t i = 0; i < config->schedule_count; i++) {
        if (bounds.in_force >> i & 1)
            names[input->schedule_count++] = config->schedules[i].name;
    }
    input->schedules = names;
    input->enforce_min = bounds.has_min;
    input->has_own_min = true;
    input->own_min = own_min;
}

void schedules_resume(struct as_engine *engine, struct target *target,
                      const struct as_target_config *entry)
{
    target_set_config(engine, target, entry);
    if (listings_has(target))
        listings_wake(engine, target);
    else
        target->dirty = true;
}

/* Schedules and a floor go on without an alert that names their target anew. */
static bool schedules_remake(struct as_engine *engine, struct target *target)
{
    const struct as_target_config *entry = target_find_entry(engine, target);
    if (!entry || (entry->schedule_count == 0 && floor_get(target)->size == 0))
        return false;
    schedules_resume(engine, target, entry);
    return false;
}

as_mono_time schedules_get_due(const struct as_engine *engine, const struct target *target)
{
    if (!target->config || (target->config->schedule_count == 0 && floor_get(target)->size == 0))
        return AS_MONO_NEVER;
    const as_maybe_time change = target_get_bounds(engine, target).change;
    if (!change.set)
        return AS_MONO_NEVER;
    return (as_mono_time){as_time_add(engine->mono.us, change.at.us - engine->wall.us)};
}

static void schedules_store(struct as_engine *engine, const struct target *target,
                            struct as_target_state *state)
{
    const struct as_floor_state *floor = get_floor(target);
    if (floor->size > 0)
        state->floor = as_rows_copy(&engine->arena, as_floor_rows, floor, 1, sizeof(*floor));
}

static void schedules_restore(struct as_engine *engine, struct target *target,
                              const struct as_target_state *state)
{
    (void)engine;
    if (state->floor)
        floor_assign(get_floor(target), state->floor);
}

static bool floor_is_set(const struct target *target)
{
    return get_floor(target)->size > 0;
}

/* A floor holds again if a rule leads to the target again. */
static as_mono_time floor_get_forget_time(const struct target *target)
{
    return floor_is_set(target) ? floor_get_end(target) : (as_mono_time){INT64_MIN};
}

static void schedules_fill_view(const struct target *target, as_mono_time now, as_wall_time wall,
                                struct as_target_view *view)
{
    const struct as_floor_state *floor = get_floor(target);
    if (target->config)
        view->bounds = target_get_bounds_at(target, now, wall);
    if (floor->size > 0)
        view->floor = (struct as_floor_view){
            .size = floor->size,
            .who = floor->who,
            .reason = floor->reason,
            .since = floor->since,
            .until = lock_get_end(floor->since, floor->for_us, now, wall),
        };
}

static const char *floor_find_obstacle(const struct as_engine *engine, const struct target *target,
                                       const struct intent *intent)
{
    return floor_forbids(engine, target, intent)
               ? "not sent, as a floor has been ordered since it was decided"
               : NULL;
}

static void schedules_visit_blocks(const struct block_query *query, const struct target *target)
{
    const struct as_target_config *config = target->config;
    const uint32_t in_force =
        config ? target_get_bounds_at(target, query->now, query->wall).in_force : 0;

    for (size_t i = 0; in_force && i < config->schedule_count; i++) {
        const struct as_schedule *schedule = &config->schedules[i];
        if ((in_force >> i & 1) && schedule->hold != AS_WAYS_NONE)
            query->visit(query->context,
                         &(struct block){.ways = schedule->hold,
                                         .kind = BLOCK_SCHEDULE,
                                         .name = schedule->name,
                                         .until = as_schedule_state(schedule, query->wall).change});
    }
}

const struct concern concern_schedules = {
    .name = "schedules",
    .remake = schedules_remake,
    .find_obstacle = floor_find_obstacle,
    .size = sizeof(struct as_floor_state),
    .deinit = floor_clear,
    .store = schedules_store,
    .restore = schedules_restore,
    .needs_address = floor_is_set,
    .fill_view = schedules_fill_view,
    .get_forget_time = floor_get_forget_time,
    .visit_blocks = schedules_visit_blocks,
    .fill_input = schedules_fill,
};
