/*
 * Results of tests: as text for people, as JUnit's XML, and as JSON.
 */
#ifndef ALERTSCALER_SRC_CLI_TEST_PRINT_H
#define ALERTSCALER_SRC_CLI_TEST_PRINT_H

#include <stdbool.h>
#include <stdio.h>

#include <alertscaler/base/buf.h>

#include "test_run.h"

struct test_file { /* the tests of one file that ran */
    const struct as_rule_tests *tests;
    struct test_result *results;
    double *seconds; /* duration of each test */
    size_t count;
};

bool test_file_has_failed(const struct test_file *file);

void test_print_text(const struct test_file *file, bool colors, FILE *out);

void test_print_junit(const struct test_file *files, size_t count, FILE *out);
void test_print_json(const struct test_file *files, size_t count, FILE *out);

/* The text of one failure, without colors. */
void test_print_failure(const struct test_file *file, const struct test_failure *failure,
                        bool colors, FILE *out);

#endif
