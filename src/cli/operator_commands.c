/*
 * Commands by which an operator acts on a daemon: pause, resume, scale, floor, unlock, approve,
 * deny, reload and kill-switch. All but kill-switch send one request to the running daemon. They
 * decide nothing: the daemon checks the permission and the values.
 */
#include <curl/curl.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/file.h>
#include <alertscaler/base/number.h>
#include <alertscaler/base/safe_text.h>
#include <alertscaler/base/str.h>
#include <alertscaler/base/time.h>
#include <alertscaler/decide/operator_command.h>
#include <alertscaler/rules/config.h>

#include "cli.h"
#include "http_call.h"

#define AS_OPTION_REASON                                                                           \
    {                                                                                              \
        .name = "reason", .value = "TEXT", .help = "Why, for the action log; required",            \
    }
#define AS_OPTION_ALL                                                                              \
    {                                                                                              \
        .name = "all", .help = "All targets at once, instead of TARGET",                           \
    }

#define OPERATOR_NEEDS                                                                             \
    "TARGET is a name in the rule files, or an id. The daemon needs --web.enable-admin-api, and\n" \
    "the token the permission admin. Exit status 1 if the daemon refuses."

/* --- an operator command as a request, and its answer --- */

#define BODY_MAX ((size_t)64 * 1024)

/* TARGET or --all: AS_EXIT_OK with the target (NULL: all), or AS_EXIT_USAGE after an error
 * message. */
static int operator_find_target(const struct as_args *args, const char **target_out)
{
    const bool is_all = as_args_has(args, "all");
    if (is_all == (args->operand_count > 0))
        return as_cli_fail(args, is_all ? "either a TARGET or --all, not both"
                                        : "a TARGET is needed, or --all");
    *target_out = is_all ? NULL : args->operands[0];
    return AS_EXIT_OK;
}

static char *make_path_below(const char *what, const char *name, const char *word)
{
    char *escaped = curl_easy_escape(NULL, name, 0);
    char *path = as_xasprintf("/api/v1/%s/%s/%s", what, escaped ? escaped : "", word);
    curl_free(escaped);
    return path;
}

static char *operator_make_path(enum as_operator_command_kind kind, const char *target)
{
    const char *word = as_operator_command_kind_get_word(kind);
    if (as_operator_command_kind_is_answer(kind))
        return make_path_below("approvals", target, word);
    if (!target)
        return as_xasprintf("/api/v1/%s", word);
    return make_path_below("targets", target, word);
}

static const char *operator_get_text(const json_t *data, const char *key)
{
    const char *text = json_string_value(json_object_get(data, key));
    return text ? text : "";
}

/* One line in the past tense. */
static void print_words(enum as_operator_command_kind kind, const json_t *data)
{
    const char *target = operator_get_text(data, "target"),
               *until = operator_get_text(data, "until");
    as_safe_text_put(stdout, *target ? target : "all targets");
    switch (kind) {
    case AS_OPERATOR_COMMAND_PAUSE:
        fputs(*until ? ": paused until " : ": paused until resumed", stdout);
        as_safe_text_put(stdout, until);
        break;
    case AS_OPERATOR_COMMAND_RESUME: fputs(": resumed", stdout); break;
    case AS_OPERATOR_COMMAND_SCALE:
        printf(": to be set to %" JSON_INTEGER_FORMAT ", command ",
               json_integer_value(json_object_get(data, "replicas")));
        as_safe_text_put(stdout, operator_get_text(data, "id"));
        break;
    case AS_OPERATOR_COMMAND_FLOOR:
        if (*until)
            printf(": not below %" JSON_INTEGER_FORMAT " until ",
                   json_integer_value(json_object_get(data, "replicas")));
        else
            fputs(": the floor is ended", stdout);
        as_safe_text_put(stdout, until);
        break;
    case AS_OPERATOR_COMMAND_UNLOCK: fputs(": unlocked", stdout); break;
    case AS_OPERATOR_COMMAND_APPROVE: fputs(": approved", stdout); break;
    case AS_OPERATOR_COMMAND_DENY: fputs(": denied", stdout); break;
    case AS_OPERATOR_COMMAND_KIND_COUNT: break;
    }
    putchar('\n');
}

static int operator_print_answer(const struct as_args *args, enum as_operator_command_kind kind,
                                 const struct http_answer *answer)
{
    json_t *json = http_answer_load(args, answer);
    const json_t *data = json_object_get(json, "data");
    int status = AS_EXIT_OK;
    if (!json_is_object(data)) {
        status = as_cli_fail(args, "the answer is not alertscaler's");
    } else if (as_args_wants_json(args)) {
        as_cli_print_json(data, JSON_INDENT(2), stdout);
    } else {
        print_words(kind, data);
    }
    json_decref(json);
    return status;
}

/* Takes the document over. */
static struct as_buf print_body(json_t *document)
{
    struct as_buf body = AS_BUF_INIT(BODY_MAX);
    char *text = json_dumps(document, JSON_COMPACT);
    if (text)
        as_buf_append_str(&body, text);
    free(text);
    json_decref(document);
    return body;
}

/* `target`: NULL if the command is about none. Returns AS_EXIT_NO. */
static int operator_refuse(const struct as_args *args, const struct http_answer *answer,
                           const char *target)
{
    const int status = http_answer_refuse(args, answer);
    if (target && answer->status == 404)
        http_suggest_target(args, target);
    return status;
}

/* The command's table must have AS_OPTION_REASON, AS_OPTION_URL, AS_OPTION_TOKEN_FILE and
 * AS_OPTION_OUTPUT. `target`: of approve and deny the id of the request; NULL: all. Takes over
 * `body` and adds the reason, which approve and deny do not need. Returns the exit status. */
static int operator_send(const struct as_args *args, enum as_operator_command_kind kind,
                         const char *target, json_t *body)
{
    const char *reason = as_args_get(args, "reason");
    struct as_error error = AS_ERROR_INIT;
    const bool is_left_out = !reason && as_operator_command_kind_is_answer(kind);
    if (!is_left_out && (as_str_is_empty(reason) || !as_str_is_utf8(reason, strlen(reason)))) {
        json_decref(body);
        return as_cli_fail(args, "--reason=TEXT is needed: why, for the action log");
    }
    if (reason)
        json_object_set_new(body, "reason", json_string(reason));
    AS_CLEANUP(as_buf_deinit) struct as_buf text = print_body(body);
    AS_CLEANUP(as_free_p) char *path = operator_make_path(kind, target);
    AS_CLEANUP(http_answer_deinit) struct http_answer answer = {0};
    if (as_buf_check(&text) != 0)
        return as_cli_fail(args, "--reason: too long");
    if (http_call_run(args, path, &text, &answer, &error) != 0)
        return as_cli_fail(args, "%s", error.text);
    if (answer.status != 200)
        return operator_refuse(args, &answer,
                               as_operator_command_kind_is_answer(kind) ? NULL : target);
    return operator_print_answer(args, kind, &answer);
}

/* --- pause: stops scaling for a while --- */

static int pause_run(const struct as_args *args)
{
    const char *target = NULL, *duration = as_args_get(args, "for");
    const bool is_down = as_args_has(args, "down"), is_up = as_args_has(args, "up");
    struct as_error error = AS_ERROR_INIT;
    int64_t us;
    const int status = operator_find_target(args, &target);
    if (status != AS_EXIT_OK)
        return status;
    if (duration && as_duration_parse(duration, &us, &error) != 0)
        return as_cli_fail(args, "--for: %s", error.text);
    json_t *body = json_object();
    if (is_down != is_up)
        json_object_set_new(body, "direction", json_string(is_down ? "down" : "up"));
    if (duration)
        json_object_set_new(body, "for", json_string(duration));
    return operator_send(args, AS_OPERATOR_COMMAND_PAUSE, target, body);
}

static const struct as_option pause_options[] = {
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

/* --- resume: ends a pause --- */

static int resume_run(const struct as_args *args)
{
    const char *target = NULL;
    const int status = operator_find_target(args, &target);
    if (status != AS_EXIT_OK)
        return status;
    return operator_send(args, AS_OPERATOR_COMMAND_RESUME, target, json_object());
}

static const struct as_option resume_options[] = {
    AS_OPTION_ALL,     AS_OPTION_REASON, AS_OPTION_URL, AS_OPTION_TOKEN_FILE,
    AS_OPTION_CA_FILE, AS_OPTION_OUTPUT, {0},
};

/* --- scale: sets a size by hand --- */

static int scale_run(const struct as_args *args)
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
    return operator_send(args, AS_OPERATOR_COMMAND_SCALE, args->operands[0], body);
}

static const struct as_option scale_options[] = {
    {.name = "force", .help = "Also outside the target's min and max"},
    AS_OPTION_REASON,
    AS_OPTION_URL,
    AS_OPTION_TOKEN_FILE,
    AS_OPTION_CA_FILE,
    AS_OPTION_OUTPUT,
    {0},
};

/* --- floor: a size that a target does not go below, until its end --- */

static int floor_run(const struct as_args *args)
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
    return operator_send(args, AS_OPERATOR_COMMAND_FLOOR, args->operands[0], body);
}

static const struct as_option floor_options[] = {
    {.name = "for", .value = "DURATION", .help = "How long: 90s, 1h30m, 2d"},
    {.name = "end", .help = "Takes the floor back before its end"},
    AS_OPTION_REASON,
    AS_OPTION_URL,
    AS_OPTION_TOKEN_FILE,
    AS_OPTION_CA_FILE,
    AS_OPTION_OUTPUT,
    {0},
};

/* --- unlock: ends a target's locks --- */

static int unlock_run(const struct as_args *args)
{
    return operator_send(args, AS_OPERATOR_COMMAND_UNLOCK, args->operands[0], json_object());
}

static const struct as_option unlock_options[] = {
    AS_OPTION_REASON, AS_OPTION_URL, AS_OPTION_TOKEN_FILE, AS_OPTION_CA_FILE, AS_OPTION_OUTPUT, {0},
};

/* --- approve, deny: answer a request for an approval --- */

static int approve_run(const struct as_args *args)
{
    return operator_send(args, AS_OPERATOR_COMMAND_APPROVE, args->operands[0], json_object());
}

static int deny_run(const struct as_args *args)
{
    return operator_send(args, AS_OPERATOR_COMMAND_DENY, args->operands[0], json_object());
}

static const struct as_option approve_options[] = {
    {.name = "reason", .value = "TEXT", .help = "Why, for the action log"},
    AS_OPTION_URL,
    AS_OPTION_TOKEN_FILE,
    AS_OPTION_CA_FILE,
    AS_OPTION_OUTPUT,
    {0},
};

#define APPROVE_NEEDS                                                                              \
    "`alertscaler status` shows the ids of what waits. The daemon needs --web.enable-admin-api, "  \
    "and\n"                                                                                        \
    "the token the permission admin. Exit status 1 if the daemon refuses."

/* --- reload: makes a running daemon reload its configuration --- */

#define RELOAD_UNCHANGED "unchanged"

/* The daemon has found no changed file: "unchanged: ...". */
static bool reload_is_unchanged(const struct as_buf *text)
{
    return text->size >= strlen(RELOAD_UNCHANGED) &&
           memcmp(text->data, RELOAD_UNCHANGED, strlen(RELOAD_UNCHANGED)) == 0;
}

static int reload_run(const struct as_args *args)
{
    struct as_error error = AS_ERROR_INIT;
    AS_CLEANUP(http_answer_deinit) struct http_answer answer = {0};
    const struct as_buf nothing = AS_BUF_INIT(0);
    if (http_call_run(args, "/-/reload", &nothing, &answer, &error) != 0)
        return as_cli_fail(args, "%s", error.text);
    if (answer.status != 200)
        return http_answer_refuse(args, &answer);
    puts(reload_is_unchanged(&answer.body) ? RELOAD_UNCHANGED : "reloaded");
    return AS_EXIT_OK;
}

static const struct as_option reload_options[] = {
    AS_OPTION_URL, AS_OPTION_TOKEN_FILE, AS_OPTION_CA_FILE, {0}};

/* --- kill-switch: makes or removes the file of the kill switch --- */

/*
 * The command is for a machine without a shell (an image). It sends no request to a daemon, and
 * reads no rule file: it must work when those have errors.
 */

static int kill_switch_set(const char *path, const char *reason, struct as_error *error)
{
    AS_CLEANUP(as_free_p) char *line = as_xasprintf("%s\n", reason);
    const int status = as_file_replace(path, 0666, line, strlen(line));
    if (status)
        as_error_set_errno(error, status, "%s", path);
    return status;
}

static int kill_switch_clear(const char *path, struct as_error *error)
{
    if (unlink(path) == 0 || errno == ENOENT)
        return 0;
    const int status = -errno;
    as_error_set_errno(error, status, "%s", path);
    return status;
}

static int kill_switch_load(const char *config_file, struct as_config **config_out,
                            struct as_error *error)
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

static int kill_switch_run(const struct as_args *args)
{
    const bool is_on = strcmp(args->operands[0], "on") == 0;
    const char *reason = args->operand_count > 1 ? args->operands[1] : "";
    if (!is_on && (strcmp(args->operands[0], "off") != 0 || args->operand_count > 1))
        return as_cli_fail(args, "write `on [REASON]` or `off`");
    AS_CLEANUP(as_config_free_p) struct as_config *config = NULL;
    struct as_error error = AS_ERROR_INIT;
    if (kill_switch_load(config_option_report(args), &config, &error) != 0)
        return as_cli_fail(args, "%s", error.text);
    const char *path = config->settings.kill_switch.file;
    if (!path)
        return as_cli_fail(args, "%s has no kill_switch.file", config->path);
    if ((is_on ? kill_switch_set(path, reason, &error) : kill_switch_clear(path, &error)) != 0)
        return as_cli_fail(args, "%s", error.text);
    printf("the kill switch is %s: %s\n", is_on ? "on" : "off", path);
    return AS_EXIT_OK;
}

static const struct as_option kill_switch_options[] = {
    AS_OPTION_CONFIG_FILE("The configuration, whose kill_switch.file it is."), {0}};

/* --- the table --- */

const struct as_command as_commands_of_operators[] = {
    [AS_OPERATOR_PAUSE] =
        {
            .name = "pause",
            .operands = "[TARGET]",
            .summary = "Stops scaling for a while in a running daemon: one target, or all.",
            .help = "Alerts are still received, and decisions made and recorded. At the end of the "
                    "pause the\n"
                    "alerts that still fire are decided again at once. A later pause of the same "
                    "target\n"
                    "replaces this one, with --down and --up too.\n" OPERATOR_NEEDS,
            .options = pause_options,
            .operands_max = 1,
            .names = "targets",
            .run = pause_run,
        },
    [AS_OPERATOR_RESUME] =
        {
            .name = "resume",
            .operands = "[TARGET]",
            .summary = "Ends a pause: of one target, or that of all.",
            .help = "Alerts that still fire are decided again at once. A pause of all targets and "
                    "pauses of\n"
                    "single targets end separately.\n" OPERATOR_NEEDS,
            .options = resume_options,
            .operands_max = 1,
            .names = "targets",
            .run = resume_run,
        },
    [AS_OPERATOR_SCALE] =
        {
            .name = "scale",
            .operands = "TARGET SIZE",
            .summary = "Sets a target's size through a running daemon, within its bounds.",
            .help =
                "Locks and pauses do not prevent it. The target's cooldown begins; then the rules "
                "continue.\n"
                "The answer promises that the size will be set, even after a crash: `alertscaler "
                "log` "
                "shows\n"
                "the result.\n" OPERATOR_NEEDS,
            .options = scale_options,
            .operands_min = 2,
            .operands_max = 2,
            .names = "targets",
            .run = scale_run,
        },
    [AS_OPERATOR_FLOOR] =
        {
            .name = "floor",
            .operands = "TARGET [SIZE]",
            .summary = "Keeps a target at or above a size for a while, through a running daemon.",
            .help =
                "The size is raised at once if it is below, and rules do not lower it below the "
                "floor.\n"
                "A floor above the target's max is refused. At its end the size stays; the rules\n"
                "continue.\n" OPERATOR_NEEDS,
            .options = floor_options,
            .operands_min = 1,
            .operands_max = 2,
            .names = "targets",
            .run = floor_run,
        },
    [AS_OPERATOR_UNLOCK] =
        {
            .name = "unlock",
            .operands = "TARGET",
            .summary = "Ends the locks that hold a target after an action.",
            .help = "Ends the locks of both directions. Decisions that waited for them are made at "
                    "once.\n" OPERATOR_NEEDS,
            .options = unlock_options,
            .operands_min = 1,
            .operands_max = 1,
            .names = "targets",
            .run = unlock_run,
        },
    [AS_OPERATOR_APPROVE] =
        {
            .name = "approve",
            .operands = "ID",
            .summary = "Lets a change happen that waits for an approval.",
            .help = "The size is decided anew, and goes no further than the request says. An "
                    "approval is "
                    "used\n"
                    "once.\n" APPROVE_NEEDS,
            .options = approve_options,
            .operands_min = 1,
            .operands_max = 1,
            .run = approve_run,
        },
    [AS_OPERATOR_DENY] =
        {
            .name = "deny",
            .operands = "ID",
            .summary = "Refuses a change that waits for an approval.",
            .help =
                "The rule asks again after an hour at the earliest, or for another incident. An "
                "approval that\n"
                "is not used yet is taken back.\n" APPROVE_NEEDS,
            .options = approve_options,
            .operands_min = 1,
            .operands_max = 1,
            .run = deny_run,
        },
    [AS_OPERATOR_RELOAD] =
        {
            .name = "reload",
            .operands = "",
            .summary = "Makes a running daemon reload its configuration and rules.",
            .help = "All or nothing: a file with errors changes nothing. Prints `reloaded`, or\n"
                    "`unchanged` if no file has changed. The daemon needs\n"
                    "--web.enable-admin-api; SIGHUP does the same without it.",
            .options = reload_options,
            .run = reload_run,
        },
    [AS_OPERATOR_KILL_SWITCH] =
        {
            .name = "kill-switch",
            .operands = "on [REASON] | off",
            .summary =
                "Stops every action of the daemon on this machine at once, or lets it go on.",
            .help =
                "Makes the file that the configuration names as kill_switch.file, with REASON in "
                "it, or "
                "removes\nthe file. It needs no credential, and works when rule files have errors.",
            .options = kill_switch_options,
            .operands_min = 1,
            .operands_max = 2,
            .run = kill_switch_run,
        },
};
