/*
 * `alertscaler test`: unit tests of rules (docs/testing.md). All files are read and checked before
 * the first test runs.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/errno_text.h>
#include <alertscaler/base/file.h>
#include <alertscaler/base/regex.h>

#include "cli.h"
#include "test_print.h"

struct test_files {
    struct as_rule_tests **tests;
    struct test_file *files;
    size_t count;
};

static void test_files_deinit(struct test_files *all)
{
    for (size_t i = 0; i < all->count; i++) {
        for (size_t j = 0; j < all->files[i].count; j++)
            test_result_deinit(&all->files[i].results[j]);
        free(all->files[i].results);
        free(all->files[i].seconds);
        as_rule_tests_free(all->tests[i]);
    }
    free(all->files);
    free(all->tests);
}

/* False after printing all problems, if any file has one. */
static bool load(const struct as_args *args, struct test_files *all)
{
    struct as_diagnostics diagnostics = AS_DIAGNOSTICS_INIT;
    bool is_read = true;
    all->tests = as_xcalloc(args->operand_count, sizeof(struct as_rule_tests *));
    all->files = as_xcalloc(args->operand_count, sizeof(*all->files));
    for (size_t i = 0; i < args->operand_count; i++) {
        struct as_rule_tests *tests = NULL;
        is_read =
            as_rule_tests_load(args->operands[i], &tests, &diagnostics) == AS_CONFIG_OK && is_read;
        if (!tests)
            continue;
        all->tests[all->count] = tests;
        all->files[all->count++].tests = tests;
    }
    as_diagnostics_sort(&diagnostics);
    as_diagnostics_print(&diagnostics, stderr);
    as_diagnostics_deinit(&diagnostics);
    return is_read;
}

/* `--run` may be given several times, and matches any part of a name, as in promtool. */
static int make_patterns(const struct as_args *args, struct as_regex ***patterns_out,
                         size_t *count_out, struct as_error *error)
{
    struct as_regex **patterns = as_xcalloc(args->given_count, sizeof(struct as_regex *));
    size_t count = 0, at = 0;
    const char *text;
    int status = 0;
    while (status == 0 && (text = as_args_find_next(args, "run", &at))) {
        struct as_regex *alone = NULL;
        AS_CLEANUP(as_free_p) char *anywhere = as_xasprintf(".*(?:%s).*", text);
        status = as_regex_new(text, &alone, error); /* its error quotes the user's text */
        if (status == 0)
            status = as_regex_new(anywhere, &patterns[count], error);
        if (status == 0)
            count++;
        as_regex_free(alone);
    }
    *patterns_out = patterns;
    *count_out = count;
    return status;
}

static bool is_wanted(const struct as_rule_test *test, struct as_regex *const *patterns,
                      size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (as_regex_match(patterns[i], test->name))
            return true;
    }
    return count == 0;
}

static double get_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void run_file(struct test_file *file, struct as_regex *const *patterns, size_t count)
{
    const struct as_rule_tests *tests = file->tests;
    file->results = as_xcalloc(tests->test_count, sizeof(*file->results));
    file->seconds = as_xcalloc(tests->test_count, sizeof(*file->seconds));
    for (size_t i = 0; i < tests->test_count; i++) {
        if (!is_wanted(&tests->tests[i], patterns, count))
            continue;
        const double start = get_seconds();
        test_run(tests, &tests->tests[i], &file->results[file->count]);
        file->seconds[file->count++] = get_seconds() - start;
    }
}

static int write_junit(const struct as_args *args, const struct test_files *all)
{
    const char *path = as_args_get(args, "junit");
    if (!path)
        return 0;
    int fd;
    const int status = as_file_open_output(path, &fd);
    if (status)
        return as_cli_fail(args, "%s: %s", path, as_errno_get_text(status));
    FILE *out = fdopen(fd, "w");
    if (!out) {
        close(fd);
        return as_cli_fail(args, "%s: cannot be written", path);
    }
    test_print_junit(all->files, all->count, out);
    const bool is_bad = ferror(out);
    if (fclose(out) != 0 || is_bad)
        return as_cli_fail(args, "%s: cannot be written", path);
    return 0;
}

static bool wants_colors(void)
{
    const char *terminal = getenv("TERM"), *no_color = getenv("NO_COLOR");
    return isatty(STDOUT_FILENO) && !(no_color && *no_color) && terminal &&
           strcmp(terminal, "dumb") != 0;
}

static int run_all(const struct as_args *args, struct test_files *all,
                   struct as_regex *const *patterns, size_t count)
{
    const bool is_json = as_args_wants_json(args), colors = !is_json && wants_colors();
    size_t run = 0;
    bool has_failed = false;
    for (size_t i = 0; i < all->count; i++) {
        run_file(&all->files[i], patterns, count);
        run += all->files[i].count;
        has_failed = test_file_has_failed(&all->files[i]) || has_failed;
        if (!is_json)
            test_print_text(&all->files[i], colors, stdout);
    }
    if (is_json)
        test_print_json(all->files, all->count, stdout);
    const int status = write_junit(args, all);
    if (status == 0 && run == 0) {
        (void)as_cli_fail(args, "no test of these files was run");
        return AS_EXIT_NO;
    }
    return status ? status : has_failed ? AS_EXIT_NO : AS_EXIT_OK;
}

static int run(const struct as_args *args)
{
    AS_CLEANUP(test_files_deinit) struct test_files all = {0};
    struct as_error error = AS_ERROR_INIT;
    struct as_regex **patterns;
    size_t count;
    int status = AS_EXIT_USAGE;
    if (make_patterns(args, &patterns, &count, &error) != 0)
        (void)as_cli_fail(args, "--run: %s", error.text);
    else if (load(args, &all))
        status = run_all(args, &all, patterns, count);
    for (size_t i = 0; i < count; i++)
        as_regex_free(patterns[i]);
    free(patterns);
    return status;
}

static const struct as_option options[] = {
    {.name = "run",
     .value = "REGEX",
     .repeats = true,
     .help = "Only the tests whose names match; may be given several times"},
    {.name = "junit", .value = "FILE", .help = "Writes the results as JUnit's XML too"},
    AS_OPTION_OUTPUT,
    {0},
};

const struct as_command as_command_test = {
    .name = "test",
    .operands = "FILE...",
    .summary = "Runs unit tests of rules.",
    .help =
        "A FILE names rule files, the alerts and data over time, and the expected decisions\n"
        "(docs/testing.md). Time is virtual, nothing outside is touched. Exit status 0: all tests\n"
        "passed; 1: a test failed; 2: a file has errors.",
    .options = options,
    .operands_min = 1,
    .operands_max = SIZE_MAX,
    .run = run,
};
