/*
 * Options are read as Prometheus' users type them, and a wrong one is reported, never ignored.
 */
#include <criterion/criterion.h>

#include <string.h>

#include <alertscaler/base/attr.h>

#include "cli/cli.h"

static int run(const struct as_args *args)
{
    return (int)args->operand_count;
}

static const char *const colors[] = {"red", "green", NULL};

static const struct as_option options[] = {
    {.name = "config.file", .value = "FILE", .fallback = "default.yaml", .help = ""},
    {.name = "color", .letter = 'c', .value = "COLOR", .choices = colors, .help = ""},
    {.name = "verbose", .letter = 'v', .help = ""},
    {0},
};

static const struct as_command command = {
    .name = "paint",
    .operands = "WALL...",
    .summary = "",
    .help = "",
    .options = options,
    .operands_min = 1,
    .operands_max = 2,
    .run = run,
};

/* What comes out of a command line: file|color|verbose|operands, or the error. */
static void check(const char *line, const char *expected)
{
    char copy[256], got[512], *argv[16], *rest = copy;
    int argc = 0;
    struct as_args args;
    struct as_error error = AS_ERROR_INIT;

    snprintf(copy, sizeof(copy), "%s", line);
    for (char *word; (word = strsep(&rest, " "));)
        argv[argc++] = word;
    if (as_args_parse(&command, argc, argv, &args, &error) != 0) {
        cr_expect_str_eq(error.text, expected, "%s: %s", line, error.text);
        return;
    }
    if (args.wants_help) {
        snprintf(got, sizeof(got), "help");
    } else {
        const char *color = as_args_get(&args, "color");
        snprintf(got, sizeof(got), "%s|%s|%d|%s %s", as_args_get(&args, "config.file"),
                 color ? color : "-", as_args_has(&args, "verbose"), args.operands[0],
                 args.operand_count > 1 ? args.operands[1] : "-");
    }
    as_args_deinit(&args);
    cr_expect_str_eq(got, expected, "%s: %s", line, got);
}

Test(options, forms_that_are_accepted)
{
    check("north", "default.yaml|-|0|north -");
    check("--config.file=a north", "a|-|0|north -");
    check("--config.file a north", "a|-|0|north -");
    check("north --config.file a south", "a|-|0|north south");
    check("--config.file= north", "|-|0|north -");
    check("--config.file=a=b north", "a=b|-|0|north -");
    check("--config.file --verbose north", "--verbose|-|0|north -");
    check("-c red north", "default.yaml|red|0|north -");
    check("-cred north", "default.yaml|red|0|north -");
    check("--color=green -v north", "default.yaml|green|1|north -");
    check("-- --verbose -v", "default.yaml|-|0|--verbose -v");
    check("- north", "default.yaml|-|0|- north");
    check("--help", "help");
    check("-h --color=red", "help");
}

Test(options, mistakes_are_told)
{
    check("--colour=red north", "unknown option --colour; did you mean --color?");
    check("--verbos north", "unknown option --verbos; did you mean --verbose?");
    check("--hlep", "unknown option --hlep; did you mean --help?");
    check("--something.else north", "unknown option --something.else");
    check("-x north", "unknown option -x");
    check("--color=blue north", "--color: \"blue\" is not one of red, green");
    check("--verbose=1 north", "--verbose takes no value");
    check("north --color", "--color needs a value: --color=COLOR");
    check("-v --verbose north", "--verbose is given twice");
    check("--color", "--color needs a value: --color=COLOR");
    check("-v", "too few arguments: expected WALL...");
    check("a b c", "unexpected argument \"c\"");
}

Test(options, every_command_can_be_found_by_its_name_and_says_what_it_does)
{
    const struct as_command *const *commands;
    size_t count = as_command_get_all(&commands);

    cr_expect_gt(count, 0);
    for (size_t i = 0; i < count; i++) {
        cr_expect_eq(as_command_find(commands[i]->name), commands[i]);
        cr_expect(commands[i]->summary[0] && commands[i]->run && commands[i]->options &&
                  commands[i]->help && commands[i]->operands);
        size_t rows = 0;
        for (const struct as_option *option = commands[i]->options; option->name; option++) {
            cr_expect(option->help[0]);
            rows++;
        }
        cr_expect_lt(rows, AS_OPTIONS_MAX);
    }
}

static const struct as_option listed[] = {
    {.name = "with", .letter = 'w', .value = "THING", .repeats = true, .help = ""},
    {.name = "and", .value = "THING", .repeats = true, .help = ""},
    {0},
};

static const struct as_command lister = {
    .name = "list", .operands = "", .summary = "", .help = "", .options = listed, .run = run};

Test(options, that_repeat_keep_every_value_in_order)
{
    char *words[] = {(char[]){"--with=a"}, (char[]){"--and=x"}, (char[]){"-w"},
                     (char[]){"b"},        (char[]){"-wc"},     (char[]){"--with="}};
    static const char *const expected[] = {"a", "b", "c", ""};
    struct as_args args;
    struct as_error error = AS_ERROR_INIT;
    cr_assert_eq(as_args_parse(&lister, (int)AS_ARRAY_SIZE(words), words, &args, &error), 0, "%s",
                 error.text);
    size_t at = 0;
    for (size_t i = 0; i < AS_ARRAY_SIZE(expected); i++)
        cr_expect_str_eq(as_args_find_next(&args, "with", &at), expected[i]);
    cr_expect_null(as_args_find_next(&args, "with", &at));
    at = 0;
    cr_expect_str_eq(as_args_find_next(&args, "and", &at), "x");
    cr_expect_null(as_args_find_next(&args, "and", &at));
    as_args_deinit(&args);
}
