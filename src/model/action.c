/*
 * Actions: their words, as in rule files and decision documents, and which step counts.
 */
#include <alertscaler/model/action.h>

#include <assert.h>

const char *as_action_kind_get_word(enum as_action_kind kind)
{
    static const char *const words[AS_ACTION_KIND_COUNT] = {
        [AS_ACTION_SCALE_UP] = "scale_up",         [AS_ACTION_SCALE_DOWN] = "scale_down",
        [AS_ACTION_SCALE_TO] = "scale_to",         [AS_ACTION_TRACK] = "track",
        [AS_ACTION_PASS_THROUGH] = "pass_through", [AS_ACTION_HOLD] = "hold",
    };

    assert((size_t)kind < AS_ACTION_KIND_COUNT);
    return words[kind];
}

bool as_action_is_absolute(const struct as_action *action)
{
    return action->is_to || action->is_fit || action->is_take ||
           (action->kind != AS_ACTION_SCALE_UP && action->kind != AS_ACTION_SCALE_DOWN);
}

/* cluster-proportional-autoscaler's ladder; below its first step, the first step. */
static const struct as_step *find_rung(const struct as_action *action, double value)
{
    size_t i = action->step_count - 1;

    while (i > 0 && !(action->steps[i].bound <= value))
        i--;
    return &action->steps[i];
}

/* Except for scale_to as AWS step scaling: the last step whose bound the value strictly crosses. */
const struct as_step *as_action_find_step(const struct as_action *action, double value)
{
    if (action->kind == AS_ACTION_SCALE_TO && action->step_count > 0)
        return find_rung(action, value);
    for (size_t i = action->step_count; i > 0; i--) {
        const struct as_step *step = &action->steps[i - 1];
        if (step->is_above ? value > step->bound : value < step->bound)
            return step;
    }
    return NULL;
}

bool as_action_has_goal(const struct as_action *action)
{
    for (size_t i = 0; i < action->step_count; i++) {
        if (action->steps[i].to > 0)
            return true;
    }
    return false;
}
