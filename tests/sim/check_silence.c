/*
 * Promise 5 while monitoring is dead: whatever it said before costs each target one step down at
 * most. Nodes that are unneeded are seen anew each time (check_pools.c). What follows the end of an
 * incident, enforced bounds, orders and what is taken back have proofs of their own, and are not
 * counted.
 *
 * A step of which the daemon could not learn (see check.c) is not counted either.
 */
#include "sim.h"

void check_silence_begin(struct world *world)
{
    for (size_t i = 0; i < world->target_count; i++)
        world->targets[i].silent_steps = 0;
}

bool check_is_step_down(const struct world *world, const struct as_scale_request *request)
{
    const struct as_rule *rule = rules_find_rule(world, request->rule);
    return request->to < request->from && rule && !request->is_ordered && !rule->action.is_take &&
           rule->on_resolved.kind == AS_ENDING_NOTHING;
}

void check_silence(struct world *world, struct server_target *target)
{
    if (world->is_silent)
        trouble_note(world, TROUBLE_STEP_IN_SILENCE);
    if (world->is_silent && ++target->silent_steps > 1)
        fail(world, "%s: step down %u while monitoring is dead", target->id, target->silent_steps);
}
