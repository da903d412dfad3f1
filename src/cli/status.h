/*
 * `alertscaler status`: once (status.c), and repeated (status_watch.c).
 */
#ifndef ALERTSCALER_SRC_CLI_STATUS_H
#define ALERTSCALER_SRC_CLI_STATUS_H

#include <stdio.h>

#include "cli.h"

/* Prints the status once. Returns the exit status, with the problem, for free(); with 0 the problem
 * is only a warning, or NULL. */
int status_print(const struct as_args *args, FILE *out, char **problem_out);

/* Repeats until interrupted. */
int status_watch(const struct as_args *args);

#endif
