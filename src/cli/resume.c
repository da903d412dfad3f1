/*
 * `alertscaler resume`: ends a pause.
 */
#include "order_call.h"

static int run(const struct as_args *args)
{
    const char *target;
    const int status = order_call_find_target(args, &target);
    if (status != AS_EXIT_OK)
        return status;
    return order_call_run(args, AS_ORDER_RESUME, target, json_object());
}

static const struct as_option options[] = {
    AS_OPTION_ALL,     AS_OPTION_REASON, AS_OPTION_URL, AS_OPTION_TOKEN_FILE,
    AS_OPTION_CA_FILE, AS_OPTION_OUTPUT, {0},
};

const struct as_command as_command_resume = {
    .name = "resume",
    .operands = "[TARGET]",
    .summary = "Ends a pause: of one target, or that of all.",
    .help =
        "Alerts that still fire are decided again at once. A pause of all targets and pauses of\n"
        "single targets end separately.\n" ORDER_CALL_NEEDS,
    .options = options,
    .operands_max = 1,
    .run = run,
};
