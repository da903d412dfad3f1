/*
 * Checks behind a test, in its `.fini`: Criterion has counted the test by then, and what fails
 * there with cr_expect is printed but passes. Only a crash there makes the program fail.
 */
#ifndef ALERTSCALER_TESTS_FAKES_TEARDOWN_H
#define ALERTSCALER_TESTS_FAKES_TEARDOWN_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

static inline void teardown_expect(bool holds, const char *what_else)
{
    if (holds)
        return;
    fprintf(stderr, "at the end of a test: %s\n", what_else);
    abort();
}

#endif
