/*
 * `alertscaler replay`: runs the action log again: by this program's arithmetic, or under other
 * rules.
 */
#include "cli.h"
#include "replay_private.h"
#include "rules_option.h"

static int run(const struct as_args *args)
{
    struct as_error error = AS_ERROR_INIT;
    struct log_files files;

    if (!as_args_has(args, "rules") && (as_args_has(args, "svg") || as_args_has(args, "replicas") ||
                                        as_args_has(args, "approvals")))
        return as_cli_fail(args, "--svg, --replicas and --approvals need --rules");
    if (log_files_find(args, &files, &error))
        return as_cli_fail(args, "%s", error.text);
    int status = 0;
    if (!as_args_has(args, "rules"))
        status = replay_check(args, &files);
    else if (log_files_keep(&files, &error))
        status = as_cli_fail(args, "%s", error.text);
    else
        status = replay_rules(args, &files);
    log_files_deinit(&files);
    return status;
}

static const struct as_option options[] = {
    {.name = "rules",
     .value = "PATH",
     .help = "Replays the notifications under these rules: a folder, a file, or a configuration"},
    AS_OPTION_REPLICAS,
    {.name = "approvals",
     .value = "WORD",
     .fallback = "logged",
     .choices = (const char *const[]){"logged", "given", "none", NULL},
     .help = "With --rules: changes that wait for a person are answered as in the log, or are "
             "approved at once (given), or never (none)"},
    {.name = "svg",
     .value = "DIR",
     .help = "With --rules: draws a chart of each target into this folder"},
    AS_OPTION_CONFIG_FILE("Names the log if no FILE is given"),
    AS_OPTION_OUTPUT,
    {0},
};

const struct as_command as_command_replay = {
    .name = "replay",
    .operands = "[FILE...]",
    .summary = "Computes the decisions of an action log again, or under other rules.",
    .help =
        "Without --rules: computes every logged decision again from its input, and prints each "
        "that\n"
        "differs. Exit status: 0 none differs; 1 some differ; 2 something cannot be read.\n"
        "With --rules: shows what would have happened, as a table of sizes and actions before and\n"
        "under the new rules.",
    .options = options,
    .operands_max = 100000,
    .run = run,
};
