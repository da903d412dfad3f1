/*
 * `alertscaler help`, and each command's --help, from the tables.
 */
#include <string.h>

#include "cli.h"

#define INDENT 32 /* column of explanations; after a longer option they begin on the next line */

void as_commands_print(FILE *out)
{
    const struct as_command *const *commands;
    size_t count = as_command_get_all(&commands);

    fputs("alertscaler scales Kubernetes workloads and node groups by Alertmanager's alerts.\n\n"
          "Usage: alertscaler COMMAND [OPTION...]\n\n"
          "Commands:\n",
          out);
    for (size_t i = 0; i < count; i++)
        fprintf(out, "  %-12s  %s\n", commands[i]->name, commands[i]->summary);
    fputs("\n'alertscaler COMMAND --help' explains a command.\n"
          "Exit status: 0 done; 1 the answer is no; 2 wrong usage or unreadable input.\n",
          out);
}

static void print_option(const struct as_option *option, FILE *out)
{
    int width = option->letter ? fprintf(out, "  -%c, --%s", option->letter, option->name)
                               : fprintf(out, "      --%s", option->name);

    if (option->value)
        width += fprintf(out, "=%s", option->value);
    if (width >= INDENT)
        width = fprintf(out, "\n") - 1;
    fprintf(out, "%*s%s", INDENT - width, "", option->help);
    if (option->fallback)
        fprintf(out, " (default: %s)", option->fallback);
    fputc('\n', out);
}

void as_command_print_help(const struct as_command *command, FILE *out)
{
    static const struct as_option help = {.name = "help", .letter = 'h', .help = "this text"};

    fprintf(out, "Usage: alertscaler %s [OPTION...]%s%s\n\n%s\n", command->name,
            command->operands[0] ? " " : "", command->operands, command->summary);
    if (command->help[0])
        fprintf(out, "\n%s\n", command->help);
    fputs("\nOptions:\n", out);
    for (const struct as_option *option = command->options; option->name; option++)
        print_option(option, out);
    print_option(&help, out);
}

static int run(const struct as_args *args)
{
    if (args->operand_count == 0) {
        as_commands_print(stdout);
        return AS_EXIT_OK;
    }
    char name[64];
    snprintf(name, sizeof(name), "%s%s%s", args->operands[0], args->operand_count > 1 ? " " : "",
             args->operand_count > 1 ? args->operands[1] : "");
    const struct as_command *command = as_command_find(name);
    if (!command)
        return as_cli_fail(args, "there is no command \"%s\"", name);
    as_command_print_help(command, stdout);
    return AS_EXIT_OK;
}

static const struct as_option options[] = {{0}};

const struct as_command as_command_help = {
    .name = "help",
    .operands = "[COMMAND]",
    .summary = "Lists the commands, or explains one.",
    .help = "",
    .options = options,
    .operands_max = 2,
    .run = run,
};
