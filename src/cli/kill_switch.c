/*
 * `alertscaler kill-switch`: makes or removes the file of the kill switch, where there is no shell
 * to do it (an image). It asks no daemon, and reads no rule file: it must work when those have
 * errors.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/file.h>
#include <alertscaler/rules/config.h>

#include "cli.h"

static int set(const char *path, const char *reason, struct as_error *error)
{
    AS_CLEANUP(as_free_p) char *line = as_xasprintf("%s\n", reason);
    const int status = as_file_replace(path, 0666, line, strlen(line));
    if (status)
        as_error_set_errno(error, status, "%s", path);
    return status;
}

static int clear(const char *path, struct as_error *error)
{
    if (unlink(path) == 0 || errno == ENOENT)
        return 0;
    const int status = -errno;
    as_error_set_errno(error, status, "%s", path);
    return status;
}

static int load(const char *config_file, struct as_config **config_out, struct as_error *error)
{
    const char *const no_rules[] = {NULL};
    struct as_diagnostics diagnostics = AS_DIAGNOSTICS_INIT;
    const int status =
        as_config_load_with_rules(config_file, no_rules, 0, config_out, &diagnostics);
    as_diagnostics_deinit(&diagnostics);
    if (status < 0)
        as_error_set_errno(error, status, "%s", config_file);
    else if (status)
        as_error_set(error, "%s has errors: see `alertscaler check`", config_file);
    return status;
}

static int run(const struct as_args *args)
{
    const bool is_on = strcmp(args->operands[0], "on") == 0;
    const char *reason = args->operand_count > 1 ? args->operands[1] : "";
    if (!is_on && (strcmp(args->operands[0], "off") != 0 || args->operand_count > 1))
        return as_cli_fail(args, "write `on [REASON]` or `off`");
    AS_CLEANUP(as_config_free_p) struct as_config *config = NULL;
    struct as_error error = AS_ERROR_INIT;
    if (load(config_option_tell(args), &config, &error) != 0)
        return as_cli_fail(args, "%s", error.text);
    const char *path = config->settings.kill_switch.file;
    if (!path)
        return as_cli_fail(args, "%s has no kill_switch.file", config->path);
    if ((is_on ? set(path, reason, &error) : clear(path, &error)) != 0)
        return as_cli_fail(args, "%s", error.text);
    printf("the kill switch is %s: %s\n", is_on ? "on" : "off", path);
    return AS_EXIT_OK;
}

static const struct as_option options[] = {
    AS_OPTION_CONFIG_FILE("The configuration, whose kill_switch.file it is."), {0}};

const struct as_command as_command_kill_switch = {
    .name = "kill-switch",
    .operands = "on [REASON] | off",
    .summary = "Stops every action of the daemon on this machine at once, or lets it go on.",
    .help =
        "Makes the file that the configuration names as kill_switch.file, with REASON in it, or "
        "removes\nthe file. It needs no credential, and works when rule files have errors.",
    .options = options,
    .operands_min = 1,
    .operands_max = 2,
    .run = run,
};
