/*
 * For which incidents a change of the size was a step: those that took part in its decision. It is
 * what `once`, max_steps, `every` and give_back go by.
 */
#include "engine_steps.h"

#include <string.h>

#include "engine/incidents/engine_owners.h"
#include "engine/state/engine_effects.h"
#include "engine/state/engine_groups.h"

/* The winner's rule, and in a scale-up all that wanted up: the highest size is an answer to them
 * too. Which these were is known only of the rules in force. */
static bool group_took_part(const struct as_engine *engine, const struct group *group,
                            const struct intent *intent)
{
    if (group->rule->dry_run || intent->rule[0] == '\0') /* bounds are enforced for nobody */
        return false;
    if (strcmp(group->rule->name, intent->rule) == 0)
        return true;
    if (intent->to < intent->from || intent->generation != engine->generation)
        return false;
    const struct as_action *action = &group->rule->action;
    if (group->rule->source.kind != AS_SOURCE_NONE)
        return group->wants_up; /* by its value then; after a restart nobody knows */
    if (action->kind == AS_ACTION_SCALE_TO || action->is_to)
        return action->kind != AS_ACTION_SCALE_DOWN && action->size > intent->from;
    return action->kind == AS_ACTION_SCALE_UP;
}

static bool incident_took_part(const struct incident *incident, const struct intent *intent)
{
    return incident->serial <= intent->serial && incident->opened.mono.us <= intent->at.mono.us;
}

/* Whether the incident was due when it was decided. By rules that have changed since, that cannot
 * be told any more: then it was. */
static bool binding_was_due(const struct as_engine *engine, const struct binding *binding,
                            const struct intent *intent)
{
    if (incident_is_held(binding->incident) &&
        binding->incident->silenced.mono.us <= intent->at.mono.us)
        return false;
    return intent->generation != engine->generation ||
           binding_get_due_unheld(binding).us <= intent->at.mono.us;
}

/* Its rule has gone meanwhile, and may come back: counts it for those that the rule was for. */
static void count_kept_step(struct as_engine *engine, const struct target *target,
                            const struct intent *intent)
{
    struct incident *incident;
    TAILQ_FOREACH (incident, &engine->open, in_order) {
        for (uint32_t i = 0; i < incident->kept_count; i++) {
            struct as_progress *kept = &incident->kept[i];
            if (strcmp(kept->rule, intent->rule) != 0 ||
                !as_target_is_same(kept->target, target->ref->id) ||
                !incident_took_part(incident, intent))
                continue;
            if (kept->steps++ == 0)
                kept->origin = intent->from;
            kept->applied = moment_now(engine);
            effect_put_incident(engine, incident);
        }
    }
}

void steps_count(struct as_engine *engine, struct target *target, const struct intent *intent)
{
    struct group *group;
    struct binding *binding;
    RB_FOREACH (group, group_tree, &target->groups) {
        if (!group_took_part(engine, group, intent) ||
            !rule_keeps_progress(group->rule, target->config))
            continue;
        TAILQ_FOREACH (binding, &group->bindings, in_group) {
            if (!incident_took_part(binding->incident, intent) ||
                !binding_was_due(engine, binding, intent))
                continue;
            if (binding->steps++ == 0 || binding->origin < 0)
                binding->origin = intent->from;
            binding->applied = moment_now(engine);
            effect_put_incident(engine, binding->incident);
        }
        TAILQ_FOREACH (binding, &group->bindings, in_group) { /* one that came meanwhile */
            const uint32_t steps = binding->steps;
            owners_inherit(engine, binding);
            if (binding->steps != steps)
                effect_put_incident(engine, binding->incident);
        }
    }
    if (intent->rule[0] != '\0' && !group_find(target, intent->rule))
        count_kept_step(engine, target, intent);
}
