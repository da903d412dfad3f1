/*
 * Bounds in force: of the entry, of schedules, of the other side, and floors by hand.
 *
 * Bounds follow from the state and the time of the present event alone. The module enforces no
 * bound: decisions do (decide/).
 */
#include <alertscaler/base/alloc.h>

#include "engine_concerns.h"
#include "engine_registry.h"

/*
 * Floors by hand. A floor is counted from its order, so that a restart does not make it longer. It
 * is part of the bounds in force (target_get_bounds), which every look enforces.
 */

void floor_set(struct as_engine *engine, struct target *target,
               const struct as_operator_command *order)
{
    floor_assign(&target->floor, &(struct as_floor_state){
                                     .size = order->replicas,
                                     .since = moment_now(engine),
                                     .for_us = order->for_us,
                                     .who = order->who,
                                     .reason = order->reason,
                                 });
}

bool floor_forbids(const struct as_engine *engine, const struct target *target,
                   const struct intent *intent)
{
    return target->floor.size > 0 && *intent->state.rule && !intent->state.is_ordered &&
           intent->state.to < intent->state.from &&
           intent->state.to < target_get_bounds(engine, target).min;
}

as_mono_time floor_get_end(const struct target *target)
{
    const struct as_floor_state *floor = &target->floor;
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

void schedules_fill(struct as_engine *engine, const struct target *target,
                    const struct as_observation *observation, struct as_decide_input *input)
{
    const struct as_target_config *config = target->config;
    const struct as_schedule_bounds bounds = target_get_bounds(engine, target);
    input->config.min = bounds.min;
    input->config.max = bounds.max;
    narrow(&input->config.min, &input->config.max, observation);
    if (bounds.in_force == 0 && !bounds.has_min)
        return;
    input->floor = target->floor.size;
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

void schedules_remake(struct as_engine *engine, struct target *target)
{
    const struct as_target_config *entry = target_find_entry(engine, target);
    if (!entry || (entry->schedule_count == 0 && target->floor.size == 0))
        return;
    target_set_config(engine, target, entry);
    target->dirty = true;
}

as_mono_time schedules_get_due(const struct as_engine *engine, const struct target *target)
{
    if (!target->config || (target->config->schedule_count == 0 && target->floor.size == 0))
        return AS_MONO_NEVER;
    const as_maybe_time change = target_get_bounds(engine, target).change;
    if (!change.set)
        return AS_MONO_NEVER;
    return (as_mono_time){as_time_add(engine->mono.us, change.at.us - engine->wall.us)};
}

static void schedules_add_blocks(struct as_engine *engine, const struct target *target,
                                 struct blocks *blocks)
{
    const struct as_target_config *config = target->config;
    const uint32_t in_force = target_get_bounds(engine, target).in_force;

    for (size_t i = 0; i < config->schedule_count; i++) {
        const struct as_schedule *schedule = &config->schedules[i];
        if ((in_force >> i & 1) && schedule->hold != AS_WAYS_NONE)
            blocks_add(engine, blocks,
                       (struct as_forbidden){.ways = schedule->hold,
                                             .by = AS_HOLDER_SCHEDULE,
                                             .name = schedule->name});
    }
}

const struct concern concern_schedules = {
    .name = "schedules",
    .add_blocks = schedules_add_blocks,
    .fill_input = schedules_fill,
};
