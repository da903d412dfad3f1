/*
 * Options and operands of commands: the parser, the helpers that all commands call, and the kinds
 * of values that several commands take: labels, times, the configuration, rules to try.
 *
 * A command's table decides what is parsed: --name=value, --name value, --flag, -o value, -ovalue;
 * options and operands in any order; "--" ends the options. An option given twice is an error
 * unless it repeats: one value would be ignored.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/error.h>
#include <alertscaler/base/number.h>
#include <alertscaler/base/safe_text.h>
#include <alertscaler/base/str.h>
#include <alertscaler/rules/config.h>
#include <alertscaler/tools/engine_config.h>
#include <alertscaler/tools/simulation.h>

#include "cli.h"

/* --- labels and annotations: NAME=VALUE --- */

/* The text is split at the first "="; as_labels_new checks the rest. */

static int label_split(const char *text, const char *what, char **copy_out,
                       struct as_label *label_out, struct as_error *error)
{
    const size_t size = strcspn(text, "=");
    if (size == 0 || text[size] == '\0') {
        as_error_set(error, "\"%s\" is not %s %s: expected NAME=VALUE", text,
                     *what == 'a' ? "an" : "a", what);
        return -EINVAL;
    }
    if (!as_str_is_utf8(text, strlen(text))) {
        as_error_set(error, "%s %s is not UTF-8", *what == 'a' ? "an" : "a", what);
        return -EINVAL;
    }
    char *copy = *copy_out = as_xstrdup(text);
    copy[size] = '\0';
    *label_out = (struct as_label){copy, copy + size + 1};
    return 0;
}

int label_arguments_parse(const char *const *texts, size_t count, const char *what,
                          struct as_labels **labels_out, struct as_error *error)
{
    struct as_label *items = as_xcalloc(count + 1, sizeof(*items));
    char **copies = as_xcalloc(count + 1, sizeof(*copies));
    int status = 0;
    for (size_t i = 0; i < count && status == 0; i++)
        status = label_split(texts[i], what, &copies[i], &items[i], error);
    if (status == 0) {
        status = as_labels_new(items, count, labels_out);
        if (status != 0)
            as_error_set(error, status == -EEXIST ? "a %s is given twice" : "the %ss are too large",
                         what);
    }
    for (size_t i = 0; i < count; i++)
        free(copies[i]);
    free(copies);
    free(items);
    return status;
}

/* --- times: shorter forms are completed for the one strict parser --- */

#define DAY_SIZE    10 /* 2026-11-20 */
#define MINUTE_SIZE 16 /* 2026-11-20T14:03 */

as_wall_time moment_get_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (as_wall_time){(int64_t)now.tv_sec * AS_US_PER_S + now.tv_nsec / 1000};
}

static int moment_parse_time(const char *text, as_wall_time *time_out)
{
    char whole[64];
    size_t size = strlen(text);

    if (size == DAY_SIZE)
        snprintf(whole, sizeof(whole), "%sT00:00:00Z", text);
    else if (size > MINUTE_SIZE && size < 32 && text[MINUTE_SIZE] != ':')
        snprintf(whole, sizeof(whole), "%.*s:00%s", MINUTE_SIZE, text, text + MINUTE_SIZE);
    else
        return as_wall_time_parse(text, size, time_out);
    return as_wall_time_parse(whole, strlen(whole), time_out);
}

int moment_parse(const char *option, const char *text, as_wall_time now, as_wall_time *time_out,
                 struct as_error *error)
{
    int64_t ago = 0;

    if (moment_parse_time(text, time_out) == 0)
        return 0;
    if (strcmp(text, "now") != 0 && as_duration_parse(text, &ago, NULL) != 0) {
        as_error_set(error,
                     "--%s: \"%s\" is neither a time (2026-11-20T14:00:00Z) nor a duration (2h30m)",
                     option, text);
        return -EINVAL;
    }
    time_out->us = as_time_add(now.us, -ago);
    return 0;
}

/* --- the configuration --- */

/* The file in the present folder comes first: a user who works on rules means that one. */

const char *config_option_find(const struct as_args *args)
{
    const char *given = as_args_get(args, "config.file");
    if (given)
        return given;
    return access(CONFIG_HERE, F_OK) == 0 ? CONFIG_HERE : CONFIG_MACHINE;
}

const char *config_option_report(const struct as_args *args)
{
    const char *path = config_option_find(args);
    if (!as_args_has(args, "config.file") && path[0] == '/')
        fprintf(stderr, "alertscaler %s: there is no %s here: reading %s\n", args->command->name,
                CONFIG_HERE, path);
    return path;
}

/* --- the parser --- */

const char *const as_output_choices[] = {"text", "json", NULL};

struct scan {
    struct as_args args;
    char *const *argv;
    int argc, at;
    struct as_error *error;
};

static const struct as_option *find_option(const struct as_command *command, const char *name,
                                           size_t size)
{
    for (const struct as_option *option = command->options; option->name; option++) {
        if (strlen(option->name) == size && memcmp(option->name, name, size) == 0)
            return option;
    }
    return NULL;
}

static int unknown_option(const struct scan *scan, const char *name, size_t size)
{
    AS_CLEANUP(as_free_p) char *copy = as_xstrndup(name, size);
    const char *nearest = "help";
    unsigned best = as_str_distance(copy, nearest);
    for (const struct as_option *option = scan->args.command->options; option->name; option++) {
        unsigned distance = as_str_distance(copy, option->name);
        if (distance < best) {
            best = distance;
            nearest = option->name;
        }
    }
    if (best <= 1 + size / 4)
        as_error_set(scan->error, "unknown option --%s; did you mean --%s?", copy, nearest);
    else
        as_error_set(scan->error, "unknown option --%s", copy);
    return -EINVAL;
}

static int check_choice(const struct scan *scan, const struct as_option *option, const char *value)
{
    if (!option->choices)
        return 0;
    for (const char *const *choice = option->choices; *choice; choice++) {
        if (strcmp(*choice, value) == 0)
            return 0;
    }
    struct as_spelling spelling = as_spelling_begin(value);
    as_error_set(scan->error, "--%s: \"%s\" is not one of", option->name, value);
    for (const char *const *choice = option->choices; *choice; choice++) {
        size_t used = strlen(scan->error->text);
        snprintf(scan->error->text + used, sizeof(scan->error->text) - used, "%s %s",
                 choice == option->choices ? "" : ",", *choice);
        as_spelling_offer(&spelling, *choice);
    }
    AS_CLEANUP(as_free_p) char *hint = as_spelling_end(&spelling);
    const size_t used = strlen(scan->error->text);
    snprintf(scan->error->text + used, sizeof(scan->error->text) - used, "%s", hint);
    return -EINVAL;
}

/* `attached` is the value in the same argument, or NULL. */
static int args_parse_option(struct scan *scan, const struct as_option *option,
                             const char *attached)
{
    struct as_args *args = &scan->args;
    const char **slot = &args->values[option - args->command->options];
    if (*slot && !option->repeats) {
        as_error_set(scan->error, "--%s is given twice", option->name);
        return -EINVAL;
    }
    if (!option->value) {
        if (attached) {
            as_error_set(scan->error, "--%s takes no value", option->name);
            return -EINVAL;
        }
        *slot = "";
        return 0;
    }
    if (!attached && scan->at == scan->argc) {
        as_error_set(scan->error, "--%s needs a value: --%s=%s", option->name, option->name,
                     option->value);
        return -EINVAL;
    }
    *slot = attached ? attached : scan->argv[scan->at++];
    if (option->repeats)
        args->given[args->given_count++] = (struct as_given){option, *slot};
    return check_choice(scan, option, *slot);
}

static int parse_long(struct scan *scan, const char *text)
{
    size_t size = strcspn(text, "=");
    const char *attached = text[size] ? text + size + 1 : NULL;
    const struct as_option *option = find_option(scan->args.command, text, size);
    if (option)
        return args_parse_option(scan, option, attached);
    if (strcmp(text, "help") == 0) {
        scan->args.wants_help = true;
        return 0;
    }
    return unknown_option(scan, text, size);
}

static int parse_short(struct scan *scan, const char *text)
{
    for (const struct as_option *option = scan->args.command->options; option->name; option++) {
        if (option->letter == text[0] && (option->value || text[1] == '\0'))
            return args_parse_option(scan, option, text[1] ? text + 1 : NULL);
    }
    if (strcmp(text, "h") == 0) {
        scan->args.wants_help = true;
        return 0;
    }
    as_error_set(scan->error, "unknown option -%s", text);
    return -EINVAL;
}

static int scan_all(struct scan *scan)
{
    bool options_ended = false;
    while (scan->at < scan->argc) {
        const char *text = scan->argv[scan->at++];
        int status = 0;
        if (options_ended || text[0] != '-' || text[1] == '\0')
            scan->args.operands[scan->args.operand_count++] = text;
        else if (strcmp(text, "--") == 0)
            options_ended = true;
        else
            status = text[1] == '-' ? parse_long(scan, text + 2) : parse_short(scan, text + 1);
        if (status)
            return status;
    }
    return 0;
}

static int option_check_operands(const struct scan *scan)
{
    const struct as_command *command = scan->args.command;
    if (scan->args.operand_count > command->operands_max) {
        as_error_set(scan->error, "unexpected argument \"%s\"",
                     scan->args.operands[command->operands_max]);
        return -EINVAL;
    }
    if (scan->args.operand_count < command->operands_min) {
        as_error_set(scan->error, "too few arguments: expected %s", command->operands);
        return -EINVAL;
    }
    return 0;
}

int as_args_parse(const struct as_command *command, int argc, char *const *argv,
                  struct as_args *args_out, struct as_error *error)
{
    struct scan scan = {.args = {.command = command}, .argv = argv, .argc = argc, .error = error};
    scan.args.operands = as_xcalloc((size_t)argc + 1, sizeof(*scan.args.operands));
    scan.args.given = as_xcalloc((size_t)argc + 1, sizeof(*scan.args.given));
    int status = scan_all(&scan);
    if (!status && !scan.args.wants_help)
        status = option_check_operands(&scan);
    if (status) {
        as_args_deinit(&scan.args);
        return status;
    }
    *args_out = scan.args;
    return 0;
}

void as_args_deinit(struct as_args *args)
{
    free(args->operands);
    free(args->given);
    args->operands = NULL;
    args->given = NULL;
}

static size_t option_get_row(const struct as_args *args, const char *name)
{
    const struct as_option *option = find_option(args->command, name, strlen(name));
    if (!option)
        abort(); /* the command requests an option that its table lacks */
    return (size_t)(option - args->command->options);
}

const char *as_args_get(const struct as_args *args, const char *name)
{
    size_t row = option_get_row(args, name);
    return args->values[row] ? args->values[row] : args->command->options[row].fallback;
}

bool as_args_has(const struct as_args *args, const char *name)
{
    return args->values[option_get_row(args, name)] != NULL;
}

const char *as_args_find_next(const struct as_args *args, const char *name, size_t *at_io)
{
    const struct as_option *option = &args->command->options[option_get_row(args, name)];
    while (*at_io < args->given_count) {
        const struct as_given *given = &args->given[(*at_io)++];
        if (given->option == option)
            return given->value;
    }
    return NULL;
}

void as_cli_print_json(const json_t *json, size_t flags, FILE *out)
{
    char *text = json_dumps(json, flags | JSON_ENCODE_ANY); /* a server may send any value */
    if (!text)
        abort(); /* only without memory */
    as_safe_json_put(out, text, strlen(text));
    fputc('\n', out);
    free(text);
}

bool as_args_wants_json(const struct as_args *args)
{
    return strcmp(as_args_get(args, "output"), "json") == 0;
}

struct as_spelling as_spelling_begin(const char *asked)
{
    return (struct as_spelling){.asked = asked, .distance = 2 + (unsigned)strlen(asked) / 4};
}

void as_spelling_offer(struct as_spelling *spelling, const char *name)
{
    const size_t asked = strlen(spelling->asked), size = strlen(name);
    const size_t difference = asked > size ? asked - size : size - asked;
    if (difference >= spelling->distance)
        return;
    const unsigned distance =
        strcasecmp(spelling->asked, name) == 0 ? 0 : as_str_distance(spelling->asked, name);
    if (distance >= spelling->distance)
        return;
    as_free_p(&spelling->nearest);
    spelling->nearest = as_xstrdup(name);
    spelling->distance = distance;
}

char *as_spelling_end(struct as_spelling *spelling)
{
    char *hint = spelling->nearest ? as_xasprintf("; did you mean \"%s\"?", spelling->nearest)
                                   : as_xstrdup("");
    as_free_p(&spelling->nearest);
    return hint;
}

int as_cli_fail(const struct as_args *args, const char *format, ...)
{
    char *text = NULL;
    va_list list;

    va_start(list, format);
    if (vasprintf(&text, format, list) < 0)
        abort(); /* only without memory */
    va_end(list);
    fprintf(stderr, "alertscaler %s: ", args->command->name);
    as_safe_text_put_lines(stderr, text);
    fputc('\n', stderr);
    free(text);
    return AS_EXIT_USAGE;
}

/*
 * Rules to try. A folder's files are read in the order of their names, as a glob in `rule_files`
 * would read them.
 */

#define SEED 1

/* With the settings of a given configuration, else with all defaults. */
static int rules_load_files(const struct as_args *args, const char *const *paths, size_t count,
                            struct as_config **config_out, struct as_diagnostics *diagnostics)
{
    const char *settings = as_args_get(args, "config.file");

    if (!as_args_has(args, "config.file"))
        return as_config_load_rules(paths, count, config_out, diagnostics);
    const int status = as_config_load_with_rules(settings, paths, count, config_out, diagnostics);
    if (status < 0)
        (void)as_cli_fail(args, "%s: %s", settings, as_errno_get_text(status));
    return status;
}

static int end_loading(struct as_diagnostics *diagnostics, int status)
{
    as_diagnostics_sort(diagnostics);
    as_diagnostics_print(diagnostics, stderr);
    as_diagnostics_deinit(diagnostics);
    return status < 0 ? AS_EXIT_USAGE : status > 0 ? AS_EXIT_NO : AS_EXIT_OK;
}

int rules_load(const struct as_args *args, const char *path, struct as_config **config_out)
{
    struct as_diagnostics diagnostics = AS_DIAGNOSTICS_INIT;
    struct stat info;
    int status;

    if (stat(path, &info))
        return as_cli_fail(args, "%s: %s", path, strerror(errno));
    if (as_config_find_kind(path) == AS_CONFIG_RULES)
        status = rules_load_files(args, &path, 1, config_out, &diagnostics);
    else if ((status = as_config_load(path, config_out, &diagnostics)) < 0)
        (void)as_cli_fail(args, "%s: %s", path, as_errno_get_text(status));
    return end_loading(&diagnostics, status);
}

int rules_load_http(const struct as_args *args, const char *path, struct as_config **config_out)
{
    struct as_diagnostics diagnostics = AS_DIAGNOSTICS_INIT;
    const int status = as_config_load_http(path, config_out, &diagnostics);

    if (status < 0)
        (void)as_cli_fail(args, "%s: %s", path, as_errno_get_text(status));
    return end_loading(&diagnostics, status);
}

struct as_engine_config rules_get_engine_config(const struct as_config *config)
{
    return as_engine_config_make(&config->settings, SEED);
}

/* 0; -ENOENT with an error. */
static int rules_find_target(const struct as_ruleset *ruleset, const char *name,
                             struct as_error *error)
{
    struct as_spelling spelling = as_spelling_begin(name);
    if (strchr(name, '/')) /* an id */
        return 0;
    for (size_t i = 0; i < ruleset->target_count; i++) {
        if (ruleset->targets[i]->is_templated)
            continue;
        as_spelling_offer(&spelling, ruleset->targets[i]->name);
        if (strcmp(ruleset->targets[i]->name, name) == 0) {
            free(spelling.nearest);
            return 0;
        }
    }
    AS_CLEANUP(as_free_p) char *hint = as_spelling_end(&spelling);
    as_error_set(error,
                 "--replicas: the rules have no target \"%s\" (one with a template is named by "
                 "its id)%s",
                 name, hint);
    return -ENOENT;
}

int rules_set_replicas(const struct as_args *args, const struct as_ruleset *ruleset,
                       struct as_simulation *simulation, struct as_error *error)
{
    const char *text;
    size_t at = 0;

    while ((text = as_args_find_next(args, "replicas", &at))) {
        const char *equals = strrchr(text, '=');
        int64_t size;
        if (!equals || as_number_parse_i64(equals + 1, strlen(equals + 1), &size) != 0 ||
            size < 0 || size > AS_SIZE_MAX) {
            as_error_set(error, "--replicas: \"%s\" is not NAME=N", text);
            return -EINVAL;
        }
        AS_CLEANUP(as_free_p) char *name = as_xstrndup(text, (size_t)(equals - text));
        if (rules_find_target(ruleset, name, error) != 0)
            return -EINVAL;
        as_simulation_set_size(simulation, name, (int32_t)size);
    }
    return 0;
}
