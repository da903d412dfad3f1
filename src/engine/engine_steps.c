/*
 * Which incidents a size change was a step of: those that took part in its decision. `once`,
 * max_steps, `every` and give_back use this.
 */
#include "engine_steps.h"

#include <string.h>

#include "engine_effects.h"
#include "engine_groups.h"
#include "engine_owners.h"
#include "engine_requests.h"

/* What the rule wants has no approval: it was set aside. */
static bool is_set_aside(struct target *target, const struct as_rule *rule)
{
    const struct request *request = request_find(target, rule->name);
    return request && request->state.answer != AS_APPROVAL_APPROVED;
}

/* The winner's rule took part; in a scale-up also all rules that wanted up and had not to wait for
 * an approval: the highest size answers them too. They are known only while the rules are the
 * same. */
static bool group_took_part(const struct as_engine *engine, struct target *target,
                            const struct group *group, const struct intent *intent)
{
    if (group->rule->dry_run || intent->rule[0] == '\0') /* enforced bounds have no rule */
        return false;
    if (strcmp(group->rule->name, intent->rule) == 0)
        return true;
    if (intent->to < intent->from || intent->generation != engine->generation ||
        is_set_aside(target, group->rule))
        return false;
    const struct as_action *action = &group->rule->action;
    if (group->rule->source.kind != AS_SOURCE_NONE)
        return group->wants_up; /* by its value at the decision; unknown after a restart */
    if (action->kind == AS_ACTION_SCALE_TO || action->is_to)
        return action->kind != AS_ACTION_SCALE_DOWN && action->size > intent->from;
    return action->kind == AS_ACTION_SCALE_UP;
}

static bool incident_took_part(const struct incident *incident, const struct intent *intent)
{
    return incident->serial <= intent->serial && incident->opened.mono.us <= intent->at.mono.us;
}

/* Whether the incident was due at the decision. After a change of rules this is unknown: then it
 * was. */
static bool binding_was_due(const struct as_engine *engine, const struct binding *binding,
                            const struct intent *intent)
{
    if (incident_is_held(binding->incident) &&
        binding->incident->silenced.mono.us <= intent->at.mono.us)
        return false;
    return intent->generation != engine->generation ||
           binding_get_due_unheld(binding).us <= intent->at.mono.us;
}

/* The rule is gone, but may come back: counts the step for its incidents. */
static void count_kept_step(struct as_engine *engine, const struct target *target,
                            const struct intent *intent)
{
    struct incident *incident;
    TAILQ_FOREACH (incident, &engine->open, in_order) {
        for (uint32_t i = 0; i < incident->kept_count; i++) {
            struct as_progress *kept = &incident->kept[i];
            if (strcmp(kept->rule, intent->rule) != 0 ||
                !as_target_ref_has_id(target->ref, kept->target) ||
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
        if (!group_took_part(engine, target, group, intent) ||
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
        TAILQ_FOREACH (binding, &group->bindings, in_group) { /* for those that came meanwhile */
            const uint32_t steps = binding->steps;
            owners_inherit(engine, binding);
            if (binding->steps != steps)
                effect_put_incident(engine, binding->incident);
        }
    }
    if (intent->rule[0] != '\0' && !group_find(target, intent->rule))
        count_kept_step(engine, target, intent);
}
