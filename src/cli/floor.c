/*
 * `alertscaler floor`: a size that a target does not go below, until its end.
 */
#include "order_call.h"

#include <string.h>

#include <alertscaler/base/number.h>

static int run(const struct as_args *args)
{
    const char *duration = as_args_get(args, "for");
    const char *text = args->operand_count > 1 ? args->operands[1] : NULL;
    const bool is_end = as_args_has(args, "end");
    int64_t replicas = 0;
    if (is_end == (text != NULL))
        return as_cli_fail(args, "either a SIZE with --for, or --end");
    if (is_end == (duration != NULL))
        return as_cli_fail(args, is_end ? "--end takes no --for" : "--for is needed: how long");
    if (text && (as_number_parse_i64(text, strlen(text), &replicas) != 0 || replicas < 1 ||
                 replicas > INT32_MAX))
        return as_cli_fail(args, "\"%s\" is not a floor: expected a number from 1", text);
    json_t *body = json_object();
    if (is_end) {
        json_object_set_new(body, "end", json_true());
    } else {
        json_object_set_new(body, "replicas", json_integer(replicas));
        json_object_set_new(body, "for", json_string(duration));
    }
    return order_call_run(args, AS_ORDER_FLOOR, args->operands[0], body);
}

static const struct as_option options[] = {
    {.name = "for", .value = "DURATION", .help = "How long: 90s, 1h30m, 2d"},
    {.name = "end", .help = "Takes the floor back before its end"},
    AS_OPTION_REASON,
    AS_OPTION_URL,
    AS_OPTION_TOKEN_FILE,
    AS_OPTION_CA_FILE,
    AS_OPTION_OUTPUT,
    {0},
};

const struct as_command as_command_floor = {
    .name = "floor",
    .operands = "TARGET [SIZE]",
    .summary = "Keeps a target at or above a size for a while, through a running daemon.",
    .help =
        "The size is raised at once if it is below, and rules do not lower it below the floor.\n"
        "A floor above the target's max is refused. At its end the size stays; the rules\n"
        "continue.\n" ORDER_CALL_NEEDS,
    .options = options,
    .operands_min = 1,
    .operands_max = 2,
    .run = run,
};
