/*
 * What a rule may do, and when, for the incidents that it is bound to.
 */
#include "engine_groups.h"

#include <string.h>

#include <alertscaler/base/alloc.h>

struct group *group_find(struct target *target, const char *rule)
{
    struct group *group;
    RB_FOREACH (group, group_tree, &target->groups) {
        if (strcmp(group->rule->name, rule) == 0)
            return group;
    }
    return NULL;
}

struct group *group_get(struct target *target, const struct as_rule *rule)
{
    struct group key = {.rule = rule};
    struct group *group = RB_FIND(group_tree, &target->groups, &key);
    if (group)
        return group;
    group = as_xcalloc(1, sizeof(*group));
    group->target = target;
    group->rule = rule;
    TAILQ_INIT(&group->bindings);
    RB_INSERT(group_tree, &target->groups, group);
    return group;
}

bool rule_keeps_progress(const struct as_rule *rule, const struct as_target_config *config)
{
    if (rule->max_steps || rule->every_us || rule->on_resolved.kind == AS_ENDING_GIVE_BACK)
        return true;
    /* without a lock whose end would repeat it, a rule acts once for an incident */
    if (as_action_is_absolute(&rule->action))
        return false;
    return rule->action.kind == AS_ACTION_SCALE_UP
               ? config->bounds.cooldown.up_us == 0
               : as_cooldown_get_down_after_down(&config->bounds.cooldown) == 0;
}

bool binding_is_used_up(const struct binding *binding)
{
    const struct as_rule *rule = binding->group->rule;
    return rule->max_steps && binding->steps >= rule->max_steps;
}

/* When the rule may act for this incident (again), if the incident is not held. Ignores the
 * target's lock. */
as_mono_time binding_get_due_unheld(const struct binding *binding)
{
    const struct as_rule *rule = binding->group->rule;
    if (binding_is_used_up(binding))
        return AS_MONO_NEVER;
    if (binding->steps == 0 || !rule_keeps_progress(rule, binding->group->target->config))
        return (as_mono_time){INT64_MIN};
    if (rule->every_us)
        return (as_mono_time){as_time_add(binding->applied.mono.us, rule->every_us)};
    const struct as_cooldown *cooldown = &binding->group->target->config->bounds.cooldown;
    const bool has_lock = rule->action.kind == AS_ACTION_SCALE_DOWN
                              ? as_cooldown_get_down_after_down(cooldown) > 0
                              : cooldown->up_us > 0;
    return has_lock || as_action_is_absolute(&rule->action) ? (as_mono_time){INT64_MIN}
                                                            : AS_MONO_NEVER;
}

as_mono_time binding_get_due(const struct binding *binding)
{
    return incident_is_held(binding->incident) ? AS_MONO_NEVER : binding_get_due_unheld(binding);
}

/* The earliest time at which a binding that is not due now will be due. */
as_mono_time bindings_get_next_due(const struct as_engine *engine, struct target *target)
{
    as_mono_time next = AS_MONO_NEVER;
    struct group *group;
    const struct binding *binding;
    RB_FOREACH (group, group_tree, &target->groups) {
        if (!rule_keeps_progress(group->rule, target->config))
            continue;
        TAILQ_FOREACH (binding, &group->bindings, in_group) {
            const as_mono_time due = binding_get_due(binding);
            if (due.us > engine->mono.us && due.us < next.us)
                next = due;
        }
    }
    return next;
}
