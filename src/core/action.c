/*
 * The words of the actions, as in rule files and decision documents.
 */
#include <alertscaler/core/action.h>

#include <assert.h>

const char *as_action_kind_get_word(enum as_action_kind kind)
{
    static const char *const words[AS_ACTION_KIND_COUNT] = {
        [AS_ACTION_SCALE_UP] = "scale_up",         [AS_ACTION_SCALE_DOWN] = "scale_down",
        [AS_ACTION_SCALE_TO] = "scale_to",         [AS_ACTION_TRACK] = "track",
        [AS_ACTION_PASS_THROUGH] = "pass_through",
    };

    assert((size_t)kind < AS_ACTION_KIND_COUNT);
    return words[kind];
}

bool as_action_is_absolute(const struct as_action *action)
{
    return action->is_to ||
           (action->kind != AS_ACTION_SCALE_UP && action->kind != AS_ACTION_SCALE_DOWN);
}
