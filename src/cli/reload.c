/*
 * `alertscaler reload`: makes a running daemon reload its configuration.
 */
#include <stdio.h>
#include <string.h>

#include "http_call.h"

#define UNCHANGED "unchanged"

/* The daemon has found no changed file: "unchanged: ...". */
static bool is_unchanged(const struct as_buf *text)
{
    return text->size >= strlen(UNCHANGED) && memcmp(text->data, UNCHANGED, strlen(UNCHANGED)) == 0;
}

static int run(const struct as_args *args)
{
    struct as_error error = AS_ERROR_INIT;
    AS_CLEANUP(http_answer_deinit) struct http_answer answer = {0};
    const struct as_buf nothing = AS_BUF_INIT(0);
    if (http_call_run(args, "/-/reload", &nothing, &answer, &error) != 0)
        return as_cli_fail(args, "%s", error.text);
    if (answer.status != 200)
        return http_answer_refuse(args, &answer);
    puts(is_unchanged(&answer.body) ? UNCHANGED : "reloaded");
    return AS_EXIT_OK;
}

static const struct as_option options[] = {
    AS_OPTION_URL, AS_OPTION_TOKEN_FILE, AS_OPTION_CA_FILE, {0}};

const struct as_command as_command_reload = {
    .name = "reload",
    .operands = "",
    .summary = "Makes a running daemon reload its configuration and rules.",
    .help = "All or nothing: a file with errors changes nothing. Prints `reloaded`, or\n"
            "`unchanged` if no file has changed. The daemon needs\n"
            "--web.enable-admin-api; SIGHUP does the same without it.",
    .options = options,
    .run = run,
};
