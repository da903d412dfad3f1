/*
 * Results of tests as text, in the form of `promtool test rules`:
 *
 *   Unit Testing: tests/checkout.yaml
 *     FAILED:
 *       slow checkout grows
 *         at 1s, target checkout (tests/checkout.yaml:14)
 *           replicas: expected 7, got 6
 *         what was decided on it up to then:
 *           0s       4 -> 6  scaled by checkout-is-slow
 *         why: Nothing stood against it.
 *
 * Texts that come from files are printed without what a terminal would take for a command.
 */
#include "test_print.h"

#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/time.h>

#include <alertscaler/base/safe_text.h>

#define RED   "\x1b[31m"
#define GREEN "\x1b[32m"
#define BOLD  "\x1b[1m"
#define RESET "\x1b[0m"

bool test_file_has_failed(const struct test_file *file)
{
    for (size_t i = 0; i < file->count; i++) {
        if (file->results[i].failure_count > 0)
            return true;
    }
    return false;
}

static void put_colored(FILE *out, bool colors, const char *color, const char *text)
{
    if (colors)
        fputs(color, out);
    as_safe_text_put(out, text);
    if (colors)
        fputs(RESET, out);
}

static void put_labels(FILE *out, const struct as_labels *labels)
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
        put_labels(out, event->alert.labels);
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

void test_print_failure(const struct test_file *file, const struct test_failure *failure,
                        bool colors, FILE *out)
{
    put_place(file, failure->event, out);
    for (size_t i = 0; i < failure->difference_count; i++) {
        const struct test_difference *difference = &failure->differences[i];
        fprintf(out, "        %s: expected ", test_aspect_get_word(difference->aspect));
        put_colored(out, colors, GREEN, difference->expected);
        fputs(", got ", out);
        put_colored(out, colors, RED, difference->got);
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

void test_print_text(const struct test_file *file, bool colors, FILE *out)
{
    fputs("Unit Testing: ", out);
    as_safe_text_put(out, file->tests->path);
    fputs("\n  ", out);
    if (!test_file_has_failed(file)) {
        put_colored(out, colors, GREEN, "SUCCESS");
        fputs("\n\n", out);
        return;
    }
    put_colored(out, colors, RED, "FAILED:");
    fputc('\n', out);
    for (size_t i = 0; i < file->count; i++) {
        const struct test_result *result = &file->results[i];
        if (result->failure_count == 0)
            continue;
        fputs("    ", out);
        put_colored(out, colors, BOLD, result->test->name);
        fputc('\n', out);
        for (size_t j = 0; j < result->failure_count; j++)
            test_print_failure(file, &result->failures[j], colors, out);
        print_unanswered(result, out);
    }
    fputc('\n', out);
}
