/*
 * `alertscaler test`: unit tests of rules (docs/testing.md), and their results as text, as JUnit's
 * XML, and as JSON. All files are read and checked before the first test runs.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/error.h>
#include <alertscaler/base/file.h>
#include <alertscaler/base/regex.h>
#include <alertscaler/base/safe_text.h>
#include <alertscaler/base/str.h>
#include <alertscaler/base/time.h>
#include <alertscaler/doc/json_writer.h>

#include "cli.h"
#include "test_run.h"

struct test_file { /* the tests of one file that ran */
    const struct as_rule_tests *tests;
    struct test_result *results;
    double *seconds; /* duration of each test */
    size_t count;
};

/* --- results as text, in the form of `promtool test rules` --- */

/*
 *   Unit Testing: tests/checkout.yaml
 *     FAILED:
 *       slow checkout grows
 *         at 1s, target checkout (tests/checkout.yaml:14)
 *           replicas: expected 7, got 6
 *         what was decided on it up to then:
 *           0s       4 -> 6  scaled by checkout-is-slow
 *         why: 4 plus ceil(50 % of 4) is 6.
 *
 * Texts that come from files are printed without what a terminal would take for a command.
 */

#define RED   "\x1b[31m"
#define GREEN "\x1b[32m"
#define BOLD  "\x1b[1m"
#define RESET "\x1b[0m"

static bool test_file_has_failed(const struct test_file *file)
{
    for (size_t i = 0; i < file->count; i++) {
        if (file->results[i].failure_count > 0)
            return true;
    }
    return false;
}

static void test_put_colored(FILE *out, bool colors, const char *color, const char *text)
{
    if (colors)
        fputs(color, out);
    as_safe_text_put(out, text);
    if (colors)
        fputs(RESET, out);
}

static void test_put_labels(FILE *out, const struct as_labels *labels)
{
    fputc('{', out);
    for (uint32_t i = 0; i < labels->count; i++) {
        fputs(i ? ", " : "", out);
        as_safe_text_put(out, labels->items[i].name);
        fputs("=\"", out);
        as_safe_text_put(out, labels->items[i].value);
        fputc('"', out);
    }
    fputc('}', out);
}

static void put_place(const struct test_file *file, const struct as_rule_test_event *event,
                      FILE *out)
{
    char at[AS_DURATION_SIZE];
    as_duration_print(event->at_us, at);
    fprintf(out, "      at %s, ", at);
    if (event->kind != AS_RULE_TEST_EXPECT_ALERT) {
        fputs("target ", out);
        as_safe_text_put(out, event->target);
    } else {
        fputs("alert ", out);
        test_put_labels(out, event->alert.labels);
    }
    fputs(" (", out);
    as_safe_text_put(out, file->tests->path);
    fprintf(out, ":%u)\n", event->line);
}

static const char *get_history_title(const struct test_failure *failure)
{
    if (failure->event->kind == AS_RULE_TEST_EXPECT_ALERT)
        return "alerts up to then:";
    return failure->why ? "what was decided on it up to then:"
                        : "nothing was decided on it; alerts up to then:";
}

/* The text of one failure, without colors. */
static void test_print_failure(const struct test_file *file, const struct test_failure *failure,
                               bool colors, FILE *out)
{
    put_place(file, failure->event, out);
    for (size_t i = 0; i < failure->difference_count; i++) {
        const struct test_difference *difference = &failure->differences[i];
        fprintf(out, "        %s: expected ", test_aspect_get_word(difference->aspect));
        test_put_colored(out, colors, GREEN, difference->expected);
        fputs(", got ", out);
        test_put_colored(out, colors, RED, difference->got);
        fputc('\n', out);
    }
    fprintf(out, "      %s\n", get_history_title(failure));
    for (size_t i = 0; i < failure->history_count; i++) {
        fputs("        ", out);
        as_safe_text_put(out, failure->history[i]);
        fputc('\n', out);
    }
    if (failure->history_count == 0)
        fputs("        none\n", out);
    if (failure->why)
        fprintf(out, "      why: %s\n", failure->why);
}

/* Puts a query of several lines on one. */
static void put_on_one_line(const char *text, FILE *out)
{
    AS_CLEANUP(as_free_p) char *line = as_xstrdup(text);
    char *to = line;
    for (const char *from = line + strspn(line, " \t\r\n"); *from;) {
        const size_t white = strspn(from, " \t\r\n");
        if (white > 0 && from[white])
            *to++ = ' ';
        from += white;
        if (*from)
            *to++ = *from++;
    }
    *to = '\0';
    as_safe_text_put(out, line);
}

static void print_unanswered(const struct test_result *result, FILE *out)
{
    if (result->unanswered_count == 0)
        return;
    fputs("      asked for, but not among the test's `queries`:\n", out);
    for (size_t i = 0; i < result->unanswered_count; i++) {
        fputs("        ", out);
        put_on_one_line(result->unanswered[i], out);
        fputc('\n', out);
    }
}

static void test_print_text(const struct test_file *file, bool colors, FILE *out)
{
    fputs("Unit Testing: ", out);
    as_safe_text_put(out, file->tests->path);
    fputs("\n  ", out);
    if (!test_file_has_failed(file)) {
        test_put_colored(out, colors, GREEN, "SUCCESS");
        fputs("\n\n", out);
        return;
    }
    test_put_colored(out, colors, RED, "FAILED:");
    fputc('\n', out);
    for (size_t i = 0; i < file->count; i++) {
        const struct test_result *result = &file->results[i];
        if (result->failure_count == 0)
            continue;
        fputs("    ", out);
        test_put_colored(out, colors, BOLD, result->test->name);
        fputc('\n', out);
        for (size_t j = 0; j < result->failure_count; j++)
            test_print_failure(file, &result->failures[j], colors, out);
        print_unanswered(result, out);
    }
    fputc('\n', out);
}

/* --- results for programs: JUnit's XML, as CI systems read it, and JSON --- */

/* XML 1.0 cannot represent most control characters: they become '?', as does invalid UTF-8. */

#define JSON_MAX ((size_t)64 * 1024 * 1024)

/* --- XML --- */

/* Number of bytes at `at` that XML cannot represent: a control character, invalid UTF-8, or U+FFFE
 * or U+FFFF. 0: the character is allowed. */
static size_t count_unwritable(const unsigned char *at, bool is_utf8)
{
    if (*at < 0x20 || *at == 0x7F || (*at >= 0x80 && !is_utf8))
        return 1;
    return at[0] == 0xEF && at[1] == 0xBF && (at[2] == 0xBE || at[2] == 0xBF) ? 3 : 0;
}

/* Newlines and quotes are literal in a text, but not in an attribute. */
static void put_xml(FILE *out, const char *text, const char *kept)
{
    static const char special[] = "&<>\"\n\t";
    static const char *const written[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#10;", "&#9;"};
    const bool is_utf8 = as_str_is_utf8(text, strlen(text));
    for (const unsigned char *at = (const unsigned char *)text; *at; at++) {
        const char *found = strchr(kept, *at) ? NULL : strchr(special, *at);
        const size_t bad = found || strchr(kept, *at) ? 0 : count_unwritable(at, is_utf8);
        if (found)
            fputs(written[found - special], out);
        else
            fputc(bad ? '?' : *at, out);
        at += bad ? bad - 1 : 0;
    }
}

static void put_attribute(FILE *out, const char *name, const char *value)
{
    fprintf(out, " %s=\"", name);
    put_xml(out, value, "");
    fputc('"', out);
}

static void put_failure(const struct test_file *file, const struct test_failure *failure, FILE *out)
{
    AS_CLEANUP(as_free_p) char *text = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&text, &size);
    if (!memory)
        abort();
    test_print_failure(file, failure, false, memory);
    if (fclose(memory) != 0)
        abort();
    const struct test_difference *first = &failure->differences[0];
    AS_CLEANUP(as_free_p)
    char *message = as_xasprintf("%s: expected %s, got %s", test_aspect_get_word(first->aspect),
                                 first->expected, first->got);
    fputs("      <failure", out);
    put_attribute(out, "message", message);
    fputc('>', out);
    put_xml(out, text, "\"\n");
    fputs("</failure>\n", out);
}

static void put_suite(const struct test_file *file, FILE *out)
{
    size_t failed = 0;
    double seconds = 0;
    for (size_t i = 0; i < file->count; i++) {
        failed += file->results[i].failure_count > 0;
        seconds += file->seconds[i];
    }
    fputs("  <testsuite", out);
    put_attribute(out, "name", file->tests->path);
    fprintf(out, " tests=\"%zu\" failures=\"%zu\" errors=\"0\" time=\"%.6f\">\n", file->count,
            failed, seconds);
    for (size_t i = 0; i < file->count; i++) {
        const struct test_result *result = &file->results[i];
        fputs("    <testcase", out);
        put_attribute(out, "classname", file->tests->path);
        put_attribute(out, "name", result->test->name);
        fprintf(out, " time=\"%.6f\"%s>\n", file->seconds[i], result->failure_count > 0 ? "" : "/");
        for (size_t j = 0; j < result->failure_count; j++)
            put_failure(file, &result->failures[j], out);
        if (result->failure_count > 0)
            fputs("    </testcase>\n", out);
    }
    fputs("  </testsuite>\n", out);
}

static void test_print_junit(const struct test_file *files, size_t count, FILE *out)
{
    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n", out);
    for (size_t i = 0; i < count; i++)
        put_suite(&files[i], out);
    fputs("</testsuites>\n", out);
}

/* --- JSON --- */

static void write_differences(struct as_json_writer *json, const struct test_failure *failure)
{
    as_json_write_key(json, "differences");
    as_json_begin_object(json);
    for (size_t i = 0; i < failure->difference_count; i++) {
        const struct test_difference *difference = &failure->differences[i];
        as_json_write_key(json, test_aspect_get_word(difference->aspect));
        as_json_begin_object(json);
        as_json_write_member(json, "expected", difference->expected);
        as_json_write_member(json, "got", difference->got);
        as_json_end_object(json);
    }
    as_json_end_object(json);
}

static void write_subject(struct as_json_writer *json, const struct as_rule_test_event *event)
{
    if (event->kind != AS_RULE_TEST_EXPECT_ALERT) {
        as_json_write_member(json, "target", event->target);
        return;
    }
    const struct as_labels *labels = event->alert.labels;
    as_json_write_key(json, "alert");
    as_json_begin_object(json);
    for (uint32_t i = 0; i < labels->count; i++)
        as_json_write_member(json, labels->items[i].name, labels->items[i].value);
    as_json_end_object(json);
}

static void write_failure(struct as_json_writer *json, const struct test_failure *failure)
{
    char at[AS_DURATION_SIZE];
    as_duration_print(failure->event->at_us, at);
    as_json_begin_object(json);
    as_json_write_member_i64(json, "line", failure->event->line);
    as_json_write_member(json, "at", at);
    write_subject(json, failure->event);
    write_differences(json, failure);
    as_json_write_key(json, "history");
    as_json_begin_array(json);
    for (size_t i = 0; i < failure->history_count; i++)
        as_json_write_string(json, failure->history[i]);
    as_json_end_array(json);
    if (failure->why)
        as_json_write_member(json, "why", failure->why);
    as_json_end_object(json);
}

static void write_test(struct as_json_writer *json, const struct test_result *result)
{
    as_json_begin_object(json);
    as_json_write_member(json, "name", result->test->name);
    as_json_write_member_i64(json, "line", result->test->line);
    as_json_write_member_bool(json, "passed", result->failure_count == 0);
    as_json_write_key(json, "failures");
    as_json_begin_array(json);
    for (size_t i = 0; i < result->failure_count; i++)
        write_failure(json, &result->failures[i]);
    as_json_end_array(json);
    as_json_write_key(json, "unanswered");
    as_json_begin_array(json);
    for (size_t i = 0; i < result->unanswered_count; i++)
        as_json_write_string(json, result->unanswered[i]);
    as_json_end_array(json);
    as_json_end_object(json);
}

static void test_print_json(const struct test_file *files, size_t count, FILE *out)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf text = AS_BUF_INIT(JSON_MAX);
    struct as_json_writer json;
    as_json_init(&json, &text, AS_JSON_ANY_ORDER);
    as_json_begin_array(&json);
    for (size_t i = 0; i < count; i++) {
        as_json_begin_object(&json);
        as_json_write_member(&json, "file", files[i].tests->path);
        as_json_write_member_bool(&json, "passed", !test_file_has_failed(&files[i]));
        as_json_write_key(&json, "tests");
        as_json_begin_array(&json);
        for (size_t j = 0; j < files[i].count; j++)
            write_test(&json, &files[i].results[j]);
        as_json_end_array(&json);
        as_json_end_object(&json);
    }
    as_json_end_array(&json);
    as_buf_append_char(&text, '\n');
    as_safe_json_put(out, text.data, text.size);
}

/* --- the command --- */

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
static bool test_load(const struct as_args *args, struct test_files *all)
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

static bool test_is_wanted(const struct as_rule_test *test, struct as_regex *const *patterns,
                           size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (as_regex_match(patterns[i], test->name))
            return true;
    }
    return count == 0;
}

static double test_get_seconds(void)
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
        if (!test_is_wanted(&tests->tests[i], patterns, count))
            continue;
        const double start = test_get_seconds();
        test_run(tests, &tests->tests[i], &file->results[file->count]);
        file->seconds[file->count++] = test_get_seconds() - start;
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

static bool test_wants_colors(void)
{
    const char *terminal = getenv("TERM"), *no_color = getenv("NO_COLOR");
    return isatty(STDOUT_FILENO) && !(no_color && *no_color) && terminal &&
           strcmp(terminal, "dumb") != 0;
}

static int run_all(const struct as_args *args, struct test_files *all,
                   struct as_regex *const *patterns, size_t count)
{
    const bool is_json = as_args_wants_json(args), colors = !is_json && test_wants_colors();
    size_t test_run_files = 0;
    bool has_failed = false;
    for (size_t i = 0; i < all->count; i++) {
        run_file(&all->files[i], patterns, count);
        test_run_files += all->files[i].count;
        has_failed = test_file_has_failed(&all->files[i]) || has_failed;
        if (!is_json)
            test_print_text(&all->files[i], colors, stdout);
    }
    if (is_json)
        test_print_json(all->files, all->count, stdout);
    const int status = write_junit(args, all);
    if (status == 0 && test_run_files == 0) {
        (void)as_cli_fail(args, "no test of these files was run");
        return AS_EXIT_NO;
    }
    return status ? status : has_failed ? AS_EXIT_NO : AS_EXIT_OK;
}

static int test_run_files(const struct as_args *args)
{
    AS_CLEANUP(test_files_deinit) struct test_files all = {0};
    struct as_error error = AS_ERROR_INIT;
    struct as_regex **patterns;
    size_t count;
    int status = AS_EXIT_USAGE;
    if (make_patterns(args, &patterns, &count, &error) != 0)
        (void)as_cli_fail(args, "--run: %s", error.text);
    else if (test_load(args, &all))
        status = run_all(args, &all, patterns, count);
    for (size_t i = 0; i < count; i++)
        as_regex_free(patterns[i]);
    free(patterns);
    return status;
}

static const struct as_option test_options[] = {
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
    .options = test_options,
    .operands_min = 1,
    .operands_max = SIZE_MAX,
    .run = test_run_files,
};
