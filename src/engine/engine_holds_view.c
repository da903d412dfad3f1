/*
 * What is forbidden on a target now, for people.
 */
#include "engine_forbidden.h"

static void visit_rules(const struct target *target, as_hold_visit_fn *visit, void *context)
{
    struct group *group;
    RB_FOREACH (group, group_tree, (struct group_tree *)(uintptr_t)&target->groups) {
        const struct as_hold_view view = {
            .ways = group->rule->action.hold, .by = AS_HOLDER_RULE, .name = group->rule->name};
        if (group_holds(group))
            visit(context, &view);
    }
}

static void visit_schedules(const struct target *target, as_mono_time now, as_wall_time wall,
                            as_hold_visit_fn *visit, void *context)
{
    const struct as_target_config *config = target->config;
    const uint32_t in_force = config ? target_get_bounds_at(target, now, wall).in_force : 0;

    for (size_t i = 0; in_force && i < config->schedule_count; i++) {
        const struct as_schedule *schedule = &config->schedules[i];
        const struct as_hold_view view = {.ways = schedule->hold,
                                          .by = AS_HOLDER_SCHEDULE,
                                          .name = schedule->name,
                                          .until = as_schedule_look(schedule, wall).change};
        if ((in_force >> i & 1) && schedule->hold != AS_WAYS_NONE)
            visit(context, &view);
    }
}

void as_engine_visit_holds(const struct as_engine *engine, const struct as_target_ref *ref,
                           as_mono_time now, as_wall_time wall, as_hold_visit_fn *visit,
                           void *context)
{
    struct target key = {.ref = (struct as_target_ref *)(uintptr_t)ref};
    const struct target *target =
        RB_FIND(target_tree, (struct target_tree *)(uintptr_t)&engine->targets, &key);

    if (!target)
        return;
    visit_rules(target, visit, context);
    visit_schedules(target, now, wall, visit, context);
}
