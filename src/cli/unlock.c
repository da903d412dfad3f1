/*
 * `alertscaler unlock`: ends a target's locks.
 */
#include "order_call.h"

static int run(const struct as_args *args)
{
    return order_call_run(args, AS_ORDER_UNLOCK, args->operands[0], json_object());
}

static const struct as_option options[] = {
    AS_OPTION_REASON, AS_OPTION_URL, AS_OPTION_TOKEN_FILE, AS_OPTION_CA_FILE, AS_OPTION_OUTPUT, {0},
};

const struct as_command as_command_unlock = {
    .name = "unlock",
    .operands = "TARGET",
    .summary = "Ends the locks that hold a target after an action.",
    .help = "Ends the locks of both directions. Decisions that waited for them are made at "
            "once.\n" ORDER_CALL_NEEDS,
    .options = options,
    .operands_min = 1,
    .operands_max = 1,
    .run = run,
};
