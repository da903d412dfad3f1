/*
 * The table of commands, and running one of them by argv.
 */
#include <alertscaler/cli/main.h>

#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>

#include "cli.h"

/* In the order in which `alertscaler help` lists them. */
/* one per line, so that two new commands do not conflict in a merge */
/* clang-format off */
static const struct as_command *const commands[] = {
    &as_command_init,
    &as_command_serve,
    &as_command_check,
    &as_command_test,
    &as_command_convert,
    &as_command_schema,
    &as_command_decide,
    &as_command_log,
    &as_command_log_verify,
    &as_command_explain,
    &as_command_effects,
    &as_command_replay,
    &as_command_backtest,
    &as_command_status,
    &as_command_pause,
    &as_command_resume,
    &as_command_scale,
    &as_command_floor,
    &as_command_unlock,
    &as_command_approve,
    &as_command_deny,
    &as_command_kill_switch,
    &as_command_fire,
    &as_command_reload,
    &as_command_notify_test,
    &as_command_version,
    &as_command_completion,
    &as_command_help,
};
/* clang-format on */

size_t as_command_get_all(const struct as_command *const **commands_out)
{
    *commands_out = commands;
    return AS_ARRAY_SIZE(commands);
}

const struct as_command *as_command_find(const char *name)
{
    for (size_t i = 0; i < AS_ARRAY_SIZE(commands); i++) {
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    }
    return NULL;
}

/* "log verify FILE" gives the command "log verify", "log FILE" the command "log". */
static const struct as_command *find_in_arguments(int argc, char **argv, int *words_out)
{
    if (argc >= 3) {
        AS_CLEANUP(as_free_p) char *name = as_xasprintf("%s %s", argv[1], argv[2]);
        const struct as_command *command = as_command_find(name);
        if (command) {
            *words_out = 2;
            return command;
        }
    }
    *words_out = 1;
    return as_command_find(argv[1]);
}

static int fail_unknown(const char *name)
{
    const char *nearest = NULL;
    unsigned best = 3;

    for (size_t i = 0; i < AS_ARRAY_SIZE(commands); i++) {
        unsigned distance = as_str_distance(name, commands[i]->name);
        if (distance < best) {
            best = distance;
            nearest = commands[i]->name;
        }
    }
    fprintf(stderr, "alertscaler: unknown command \"%s\"", name);
    if (nearest)
        fprintf(stderr, ", did you mean \"%s\"?", nearest);
    fputs("\nTry 'alertscaler help'.\n", stderr);
    return AS_EXIT_USAGE;
}

static int run_command(const struct as_command *command, int argc, char **argv,
                       const struct as_adapters *adapters)
{
    struct as_error error = AS_ERROR_INIT;
    struct as_args args;

    if (as_args_parse(command, argc, argv, &args, &error) != 0) {
        fprintf(stderr, "alertscaler %s: %s\nTry 'alertscaler %s --help'.\n", command->name,
                error.text, command->name);
        return AS_EXIT_USAGE;
    }
    args.adapters = adapters;
    int status = AS_EXIT_OK;
    if (args.wants_help)
        as_command_print_help(command, stdout);
    else
        status = command->run(&args);
    as_args_deinit(&args);
    return status;
}

int as_cli_main(int argc, char **argv, const struct as_adapters *adapters)
{
    static char help[] = "help", version[] = "version";
    int words = 1;

    if (argc < 2) {
        as_commands_print(stderr);
        return AS_EXIT_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        argv[1] = help;
    else if (strcmp(argv[1], "--version") == 0)
        argv[1] = version;
    const struct as_command *command = find_in_arguments(argc, argv, &words);
    if (!command)
        return fail_unknown(argv[1]);
    int status = run_command(command, argc - 1 - words, argv + 1 + words, adapters);
    /* A failed write is a failed command. */
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "alertscaler %s: cannot write the output\n", command->name);
        return AS_EXIT_USAGE;
    }
    return status;
}
