/*
 * Forbidden directions of a target: who forbids each, read from where it is known.
 *
 * The list is made anew for each question, and is not stored. The module decides nothing: gates of
 * the decision apply the list.
 */
#include <alertscaler/base/attr.h>

#include "engine_concerns.h"
#include "engine_registry.h"

static bool is_held_by_schedule(const struct as_engine *engine, const struct target *target,
                                enum as_ways way)
{
    const struct as_target_config *config = target->config;
    const uint32_t in_force = config ? target_get_bounds(engine, target).in_force : 0;

    for (size_t i = 0; in_force && i < config->schedule_count; i++) {
        if ((in_force >> i & 1) && (config->schedules[i].hold & way))
            return true;
    }
    return false;
}

bool group_holds(const struct group *group)
{
    const struct binding *binding;
    if (group->rule->dry_run || group->rule->action.hold == AS_WAYS_NONE)
        return false;
    TAILQ_FOREACH (binding, &group->bindings, in_group) {
        if (!incident_is_held(binding->incident))
            return true;
    }
    return false;
}

static bool is_held_by_rule(const struct target *target, enum as_ways way)
{
    struct group *group;
    RB_FOREACH (group, group_tree, (struct group_tree *)(uintptr_t)&target->groups) {
        if ((group->rule->action.hold & way) && group_holds(group))
            return true;
    }
    return false;
}

/* What is forbidden on a pool is forbidden on its groups: also after they got their assignments. */
static void pool_add_blocks(struct as_engine *engine, const struct target *target,
                            struct blocks *blocks)
{
    const struct target *pool = target_find_pool(engine, target);
    struct group *group;
    if (!pool)
        return;
    pauses_add_block(engine, pauses_get(pool), blocks);
    RB_FOREACH (group, group_tree, (struct group_tree *)(uintptr_t)&pool->groups) {
        if (group_holds(group))
            blocks_add(engine, blocks,
                       (struct as_forbidden){.ways = group->rule->action.hold,
                                             .by = AS_HOLDER_RULE,
                                             .name = group->rule->name});
    }
}

bool forbidden_is_with_pool(const struct as_engine *engine, const struct target *target,
                            enum as_ways way)
{
    const struct target *pool = target_find_pool(engine, target);
    return forbidden_is(engine, target, way) || (pool && forbidden_is(engine, pool, way));
}

bool forbidden_is_held(const struct as_engine *engine, const struct target *target,
                       enum as_ways way)
{
    return pauses_find_in(engine, target, way) || is_held_by_rule(target, way) ||
           is_held_by_schedule(engine, target, way);
}

bool forbidden_is(const struct as_engine *engine, const struct target *target, enum as_ways way)
{
    return forbidden_is_held(engine, target, way) ||
           (way == AS_WAYS_UP && target_did_not_come(target, engine->mono));
}

static void blocks_fill_input(struct as_engine *engine, const struct target *target,
                              const struct as_observation *observation,
                              struct as_decide_input *input)
{
    struct blocks blocks = {0};
    (void)observation;
    FOR_CONCERNS (engine, concern)
        if (concern->add_blocks)
            concern->add_blocks(engine, target, &blocks);
    input->forbidden = blocks.rows;
    input->forbidden_count = blocks.count;
}

const struct concern concern_forbidden = {
    .name = "forbidden",
    .add_blocks = pool_add_blocks,
    .fill_input = blocks_fill_input,
};
