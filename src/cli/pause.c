/*
 * `alertscaler pause`: stops scaling for a while.
 */
#include "order_call.h"

#include <alertscaler/base/time.h>

static int run(const struct as_args *args)
{
    const char *target, *duration = as_args_get(args, "for");
    const bool is_down = as_args_has(args, "down"), is_up = as_args_has(args, "up");
    struct as_error error = AS_ERROR_INIT;
    int64_t us;
    const int status = order_call_find_target(args, &target);
    if (status != AS_EXIT_OK)
        return status;
    if (duration && as_duration_parse(duration, &us, &error) != 0)
        return as_cli_fail(args, "--for: %s", error.text);
    json_t *body = json_object();
    if (is_down != is_up)
        json_object_set_new(body, "direction", json_string(is_down ? "down" : "up"));
    if (duration)
        json_object_set_new(body, "for", json_string(duration));
    return order_call_run(args, AS_ORDER_PAUSE, target, body);
}

static const struct as_option options[] = {
    AS_OPTION_ALL,
    {.name = "for",
     .value = "DURATION",
     .help = "How long: 90s, 1h30m, 2d (default: until it is resumed)"},
    {.name = "down", .help = "Only stops scaling down: the size may still grow"},
    {.name = "up", .help = "Only stops scaling up: the size may still shrink"},
    AS_OPTION_REASON,
    AS_OPTION_URL,
    AS_OPTION_TOKEN_FILE,
    AS_OPTION_CA_FILE,
    AS_OPTION_OUTPUT,
    {0},
};

const struct as_command as_command_pause = {
    .name = "pause",
    .operands = "[TARGET]",
    .summary = "Stops scaling for a while in a running daemon: one target, or all.",
    .help =
        "Alerts are still received, and decisions made and recorded. At the end of the pause the\n"
        "alerts that still fire are decided again at once. A later pause of the same target\n"
        "replaces this one, with --down and --up too.\n" ORDER_CALL_NEEDS,
    .options = options,
    .operands_max = 1,
    .run = run,
};
