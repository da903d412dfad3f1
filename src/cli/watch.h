/*
 * `--watch` of a command that prints what a daemon knows: the output again and again, until it is
 * interrupted.
 */
#ifndef ALERTSCALER_SRC_CLI_WATCH_H
#define ALERTSCALER_SRC_CLI_WATCH_H

#include <stdio.h>

#include <alertscaler/base/attr.h>

#include "cli.h"

/* Prints once. Returns the exit status, with the problem for free(): NULL if there is none; with
 * AS_EXIT_OK a warning. */
typedef int watch_print_fn(const struct as_args *args, FILE *out, char **problem_out);

/* The command's table must have WATCH_OPTIONS and AS_OPTION_OUTPUT. Returns the exit status. */
int watch_run(const struct as_args *args, watch_print_fn *print) AS_MUST_USE;

/* Two rows. */
#define WATCH_OPTIONS                                                                              \
    {.name = "watch", .letter = 'w', .help = "Refreshes the table until it is interrupted"},       \
    {                                                                                              \
        .name = "interval", .value = "DURATION", .fallback = "2s",                                 \
        .help = "With --watch: time between refreshes",                                            \
    }

#endif
