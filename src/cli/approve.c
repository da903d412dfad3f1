/*
 * `alertscaler approve`, `alertscaler deny`: answer a request for an approval.
 */
#include "order_call.h"

static int approve(const struct as_args *args)
{
    return order_call_run(args, AS_ORDER_APPROVE, args->operands[0], json_object());
}

static int deny(const struct as_args *args)
{
    return order_call_run(args, AS_ORDER_DENY, args->operands[0], json_object());
}

static const struct as_option options[] = {
    {.name = "reason", .value = "TEXT", .help = "Why, for the action log"},
    AS_OPTION_URL,
    AS_OPTION_TOKEN_FILE,
    AS_OPTION_CA_FILE,
    AS_OPTION_OUTPUT,
    {0},
};

#define NEEDS                                                                                      \
    "`alertscaler status` shows the ids of what waits. The daemon needs --web.enable-admin-api, "  \
    "and\n"                                                                                        \
    "the token the permission admin. Exit status 1 if the daemon refuses."

const struct as_command as_command_approve = {
    .name = "approve",
    .operands = "ID",
    .summary = "Lets a change happen that waits for an approval.",
    .help = "The size is decided anew, and goes no further than the request says. An approval is "
            "used\n"
            "once.\n" NEEDS,
    .options = options,
    .operands_min = 1,
    .operands_max = 1,
    .run = approve,
};

const struct as_command as_command_deny = {
    .name = "deny",
    .operands = "ID",
    .summary = "Refuses a change that waits for an approval.",
    .help = "The rule asks again after an hour at the earliest, or for another incident. An "
            "approval that\n"
            "is not used yet is taken back.\n" NEEDS,
    .options = options,
    .operands_min = 1,
    .operands_max = 1,
    .run = deny,
};
