/*
 * Words of commands.
 */
#include <alertscaler/core/command.h>

const char *as_command_kind_get_word(enum as_command_kind kind)
{
    static const char *const words[AS_COMMAND_KIND_COUNT] = {
        [AS_COMMAND_PAUSE] = "pause",
        [AS_COMMAND_RESUME] = "resume",
        [AS_COMMAND_SCALE] = "scale",
        [AS_COMMAND_UNLOCK] = "unlock",
    };
    return words[kind];
}

const char *as_command_outcome_get_word(enum as_command_outcome outcome)
{
    static const char *const words[AS_COMMAND_OUTCOME_COUNT] = {
        [AS_COMMAND_DONE] = "done",
        [AS_COMMAND_UNKNOWN_TARGET] = "unknown_target",
        [AS_COMMAND_OUT_OF_BOUNDS] = "out_of_bounds",
        [AS_COMMAND_NOTHING_TO_DO] = "nothing_to_do",
        [AS_COMMAND_REFUSED] = "refused",
    };
    return words[outcome];
}
