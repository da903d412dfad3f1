/*
 * Shared by pause, resume, scale, unlock, approve and deny: sends an order and prints its outcome.
 */
#ifndef ALERTSCALER_SRC_CLI_ORDER_CALL_H
#define ALERTSCALER_SRC_CLI_ORDER_CALL_H

#include <jansson.h>

#include <alertscaler/decide/order.h>

#include "http_call.h"

/* The command's table must have AS_OPTION_REASON, AS_OPTION_URL, AS_OPTION_TOKEN_FILE and
 * AS_OPTION_OUTPUT. `target`: of approve and deny the id of the request; NULL: all. Takes over
 * `body` and adds the reason, which approve and deny do not need. Returns the exit status. */
int order_call_run(const struct as_args *args, enum as_order_kind kind, const char *target,
                   json_t *body);

/* TARGET or --all: AS_EXIT_OK with the target (NULL: all), or AS_EXIT_USAGE after an error
 * message. */
int order_call_find_target(const struct as_args *args, const char **target_out);

#define AS_OPTION_REASON                                                                           \
    {                                                                                              \
        .name = "reason", .value = "TEXT", .help = "Why, for the action log; required",            \
    }
#define AS_OPTION_ALL                                                                              \
    {                                                                                              \
        .name = "all", .help = "All targets at once, instead of TARGET",                           \
    }

#define ORDER_CALL_NEEDS                                                                           \
    "TARGET is a name in the rule files, or an id. The daemon needs --web.enable-admin-api, and\n" \
    "the token the permission admin. Exit status 1 if the daemon refuses."

#endif
