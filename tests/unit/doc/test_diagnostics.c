/*
 * The list of diagnostics: order, limit, form for people.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/doc/diagnostics.h>

static struct as_diagnostics diagnostics;

static void teardown(void)
{
    as_diagnostics_deinit(&diagnostics);
}

TestSuite(diagnostics, .fini = teardown);

static void add(const char *file, uint32_t line, uint32_t column, const char *message)
{
    as_diagnostics_add(&diagnostics, &(struct as_diagnostic){
                                         .file = file,
                                         .line = line,
                                         .column = column,
                                         .end_column = column + 2,
                                         .message = message,
                                         .excerpt = line ? "0123456789" : NULL,
                                         .excerpt_column = 1,
                                     });
}

static char *print(void)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    as_diagnostics_print(&diagnostics, out);
    fclose(out);
    return text;
}

static void assert_printed(const char *expected)
{
    char *text = print();
    cr_assert_str_eq(text, expected);
    free(text);
}

/* By file, line and column, then as added; what was found twice is said once. */
Test(diagnostics, order)
{
    add("b", 2, 1, "5");
    add("a", 10, 2, "4");
    add("a", 10, 1, "2");
    add("a", 10, 1, "3");
    add("a", 10, 1, "3");
    add("a", 9, 7, "1");
    as_diagnostics_sort(&diagnostics);
    cr_assert_eq(diagnostics.count, 5);
    for (size_t i = 0; i < diagnostics.count; i++)
        cr_assert_eq(diagnostics.items[i].message[0], (char)('1' + i));
}

Test(diagnostics, form)
{
    add("x.yaml", 5, 3, "first");
    add("x.yaml", 0, 0, "whole file");
    as_diagnostics_sort(&diagnostics);
    assert_printed("x.yaml: error: whole file\n"
                   "x.yaml:5:3: error: first\n"
                   "    5 | 0123456789\n"
                   "      |   ^~\n");
}

/* A part of a long line, and a mark that does not go over its end. */
Test(diagnostics, parts_of_lines)
{
    as_diagnostics_add(&diagnostics, &(struct as_diagnostic){.severity = AS_SEVERITY_WARNING,
                                                             .file = "x",
                                                             .line = 1,
                                                             .column = 102,
                                                             .end_column = 200,
                                                             .message = "m",
                                                             .excerpt = "\xC3\xA4"
                                                                        "bcd",
                                                             .excerpt_column = 100});
    assert_printed("x:1:102: warning: m\n    1 | \xC3\xA4"
                   "bcd\n      |   ^~\n");
    cr_assert_not(diagnostics.has_error);
}

/* A line that one entry hides is shown by none. */
Test(diagnostics, hidden_lines)
{
    add("x", 1, 1, "shows it");
    as_diagnostics_add(&diagnostics, &(struct as_diagnostic){
                                         .file = "x", .line = 1, .column = 5, .message = "hides"});
    add("x", 2, 1, "another line");
    as_diagnostics_sort(&diagnostics);
    cr_assert_null(diagnostics.items[0].excerpt);
    cr_assert_null(diagnostics.items[1].excerpt);
    cr_assert_not_null(diagnostics.items[2].excerpt);
}

/* A file cannot play with the terminal. */
Test(diagnostics, control_characters)
{
    as_diagnostics_add(&diagnostics, &(struct as_diagnostic){.file = "x\033[2J",
                                                             .line = 1,
                                                             .column = 1,
                                                             .end_column = 2,
                                                             .message = "a\nb\xC2\x9B"
                                                                        "c\xC3\xA4",
                                                             .excerpt = "\ta\xFF\x7F",
                                                             .excerpt_column = 1});
    assert_printed("x?[2J:1:1: error: a?b?c\xC3\xA4\n    1 |  a??\n      | ^\n");
}

/* The first thousand are kept, the others counted. */
Test(diagnostics, limit)
{
    for (uint32_t i = 0; i < AS_DIAGNOSTICS_MAX + 9000; i++)
        add("x", i + 1, 1, "m");
    cr_assert_eq(diagnostics.count, AS_DIAGNOSTICS_MAX);
    cr_assert_eq(diagnostics.more, 9000);
    char *text = print();
    cr_assert_not_null(strstr(text, "\n... and 9000 more errors\n"));
    cr_assert_null(strstr(text, "more warning"));
    free(text);
}

/* Warnings that are only counted are told too, and an error behind them is not lost. */
Test(diagnostics, limit_of_warnings)
{
    for (uint32_t i = 0; i < AS_DIAGNOSTICS_MAX + 2; i++)
        as_diagnostics_add(&diagnostics, &(struct as_diagnostic){.severity = AS_SEVERITY_WARNING,
                                                                 .file = "x",
                                                                 .line = i + 1,
                                                                 .column = 1,
                                                                 .message = "m"});
    cr_assert_not(diagnostics.has_error);
    add("x", 1, 1, "m");
    cr_assert(diagnostics.has_error);
    char *text = print();
    cr_assert_not_null(strstr(text, "\n... and 1 more error\n... and 2 more warnings\n"));
    free(text);
}
