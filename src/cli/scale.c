/*
 * `alertscaler scale`: sets a size by hand.
 */
#include "order_call.h"

#include <string.h>

#include <alertscaler/base/number.h>

static int run(const struct as_args *args)
{
    const char *text = args->operands[1];
    int64_t replicas;
    if (as_number_parse_i64(text, strlen(text), &replicas) != 0 || replicas < 0 ||
        replicas > INT32_MAX)
        return as_cli_fail(args, "\"%s\" is not a size: expected a number from 0", text);
    json_t *body = json_object();
    json_object_set_new(body, "replicas", json_integer(replicas));
    if (as_args_has(args, "force"))
        json_object_set_new(body, "force", json_true());
    return order_call_run(args, AS_ORDER_SCALE, args->operands[0], body);
}

static const struct as_option options[] = {
    {.name = "force", .help = "Also outside the target's min and max"},
    AS_OPTION_REASON,
    AS_OPTION_URL,
    AS_OPTION_TOKEN_FILE,
    AS_OPTION_CA_FILE,
    AS_OPTION_OUTPUT,
    {0},
};

const struct as_command as_command_scale = {
    .name = "scale",
    .operands = "TARGET SIZE",
    .summary = "Sets a target's size through a running daemon, within its bounds.",
    .help = "Locks and pauses do not prevent it. The target's cooldown begins; then the rules "
            "continue.\n"
            "The answer promises that the size will be set, even after a crash: `alertscaler log` "
            "shows\n"
            "the result.\n" ORDER_CALL_NEEDS,
    .options = options,
    .operands_min = 2,
    .operands_max = 2,
    .run = run,
};
