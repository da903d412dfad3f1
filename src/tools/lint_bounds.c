/*
 * Sizes that a rule asks for against the bounds of its target: sizes beyond them are never reached.
 */
#include "lint_run.h"

#include <inttypes.h>
#include <string.h>

static void check_size(struct lint_run *run, const struct lint_rule *rule, int64_t size,
                       const struct as_yaml_node *node)
{
    const struct as_bounds_config *bounds = &rule->target->bounds;
    const bool is_above = size > bounds->max;
    if (size >= bounds->min && !is_above)
        return;
    lint_warn(run, rule->tree, node,
              "%" PRId64 " is %s of target `%s` (%" PRId32 "), and the size never comes to it",
              size, is_above ? "above `max`" : "below `min`", rule->target->name,
              is_above ? bounds->max : bounds->min);
}

/* A step larger than the distance between the bounds always ends at a bound. */
static void check_step(struct lint_run *run, const struct lint_rule *rule,
                       const struct as_amount *amount, const struct as_yaml_node *map, bool is_up)
{
    const struct as_bounds_config *bounds = &rule->target->bounds;
    const struct as_yaml_node *by = as_yaml_find(map, "by");
    if (!by || amount->is_percent || bounds->min == bounds->max ||
        amount->size <= bounds->max - bounds->min)
        return;
    lint_warn(run, rule->tree, by,
              "every step goes to `%s`: this is more than lies between `min` (%" PRId32
              ") and `max` (%" PRId32 ") of target `%s`; a percentage is written `%" PRId64 "%%`",
              is_up ? "max" : "min", bounds->min, bounds->max, rule->target->name, amount->size);
}

static void check_action(struct lint_run *run, const struct lint_rule *rule,
                         const struct as_action *action, const struct as_yaml_node *map)
{
    const struct as_yaml_node *body = as_yaml_find(map, as_action_kind_get_word(action->kind));
    const struct as_yaml_node *steps = as_yaml_find(body, "steps");
    const bool is_up = action->kind == AS_ACTION_SCALE_UP;
    if (action->kind == AS_ACTION_SCALE_TO && !steps)
        check_size(run, rule, action->size, body);
    for (size_t i = 0; steps && action->kind == AS_ACTION_SCALE_TO && i < action->step_count; i++)
        check_size(run, rule, action->steps[i].amount.size, as_yaml_find(steps->items[i], "size"));
    if (!is_up && action->kind != AS_ACTION_SCALE_DOWN)
        return;
    if (!steps)
        check_step(run, rule, &action->amount, body, is_up);
    for (size_t i = 0; steps && i < action->step_count; i++)
        check_step(run, rule, &action->steps[i].amount, steps->items[i], is_up);
}

void lint_check_bounds(struct lint_run *run, const struct lint_rule *rule)
{
    const struct as_ending *ending = &rule->rule->on_resolved;
    check_action(run, rule, &rule->rule->action, rule->node);
    if (ending->kind == AS_ENDING_SCALE)
        check_action(run, rule, &ending->action, as_yaml_find(rule->node, "on_resolved"));
}
