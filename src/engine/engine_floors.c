/*
 * Floors by hand. A floor is counted from its order, so that a restart does not make it longer. It
 * is part of the bounds in force (target_get_bounds), which every look enforces.
 */
#include "engine_floors.h"

#include <alertscaler/base/alloc.h>

static void fill(struct floor *floor, const struct as_floor_state *state)
{
    floor_free(floor);
    *floor = (struct floor){
        .size = state->size,
        .since = state->since,
        .for_us = state->for_us,
        .who = as_xstrdup(state->who),
        .reason = as_xstrdup(state->reason),
    };
}

void floor_set(struct as_engine *engine, struct target *target, const struct as_order *order)
{
    fill(&target->floor, &(struct as_floor_state){
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
    return target->floor.size > 0 && *intent->rule && !intent->is_ordered &&
           intent->to < intent->from && intent->to < target_get_bounds(engine, target).min;
}

as_mono_time floor_get_end(const struct target *target)
{
    const struct floor *floor = &target->floor;
    if (floor->size == 0)
        return AS_MONO_NEVER;
    return (as_mono_time){as_time_add(floor->since.mono.us, floor->for_us)};
}

void floor_fill_state(struct as_engine *engine, const struct target *target,
                      struct as_target_state *state)
{
    const struct floor *floor = &target->floor;
    if (floor->size == 0)
        return;
    struct as_floor_state *copy = as_arena_alloc(&engine->arena, 1, sizeof(*copy));
    *copy = (struct as_floor_state){
        .size = floor->size,
        .since = floor->since,
        .for_us = floor->for_us,
        .who = as_arena_strdup(&engine->arena, floor->who),
        .reason = as_arena_strdup(&engine->arena, floor->reason),
    };
    state->floor = copy;
}

/* Of two spellings of one target the higher floor counts. */
void floor_take_state(struct target *target, const struct as_target_state *state)
{
    if (state->floor && state->floor->size > target->floor.size)
        fill(&target->floor, state->floor);
}
