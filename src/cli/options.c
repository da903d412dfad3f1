/*
 * Parses options by a command's table: --name=value, --name value, --flag, -o value, -ovalue;
 * options and operands in any order; "--" ends the options. An option given twice is an error
 * unless it repeats: one value would be ignored.
 */
#include "cli.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/safe_text.h>
#include <alertscaler/base/str.h>

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
        as_error_set(scan->error, "unknown option --%s, did you mean --%s?", copy, nearest);
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
    as_error_set(scan->error, "--%s: \"%s\" is not one of", option->name, value);
    for (const char *const *choice = option->choices; *choice; choice++) {
        size_t used = strlen(scan->error->text);
        snprintf(scan->error->text + used, sizeof(scan->error->text) - used, "%s %s",
                 choice == option->choices ? "" : ",", *choice);
    }
    return -EINVAL;
}

/* `attached` is the value in the same argument, or NULL. */
static int take_option(struct scan *scan, const struct as_option *option, const char *attached)
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

static int take_long(struct scan *scan, const char *text)
{
    size_t size = strcspn(text, "=");
    const char *attached = text[size] ? text + size + 1 : NULL;
    const struct as_option *option = find_option(scan->args.command, text, size);
    if (option)
        return take_option(scan, option, attached);
    if (strcmp(text, "help") == 0) {
        scan->args.wants_help = true;
        return 0;
    }
    return unknown_option(scan, text, size);
}

static int take_short(struct scan *scan, const char *text)
{
    for (const struct as_option *option = scan->args.command->options; option->name; option++) {
        if (option->letter == text[0] && (option->value || text[1] == '\0'))
            return take_option(scan, option, text[1] ? text + 1 : NULL);
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
            status = text[1] == '-' ? take_long(scan, text + 2) : take_short(scan, text + 1);
        if (status)
            return status;
    }
    return 0;
}

static int check_operands(const struct scan *scan)
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
        status = check_operands(&scan);
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

static size_t get_row(const struct as_args *args, const char *name)
{
    const struct as_option *option = find_option(args->command, name, strlen(name));
    if (!option)
        abort(); /* the command requests an option that its table lacks */
    return (size_t)(option - args->command->options);
}

const char *as_args_get(const struct as_args *args, const char *name)
{
    size_t row = get_row(args, name);
    return args->values[row] ? args->values[row] : args->command->options[row].fallback;
}

bool as_args_has(const struct as_args *args, const char *name)
{
    return args->values[get_row(args, name)] != NULL;
}

const char *as_args_find_next(const struct as_args *args, const char *name, size_t *at_io)
{
    const struct as_option *option = &args->command->options[get_row(args, name)];
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
