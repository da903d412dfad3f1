/*
 * `alertscaler status`: one look (status.c), and one after the other (status_watch.c).
 */
#ifndef ALERTSCALER_SRC_CLI_CLIENT_STATUS_H
#define ALERTSCALER_SRC_CLI_CLIENT_STATUS_H

#include <stdio.h>

#include "cli.h"

/* One look. The exit status; but for 0 with what is wrong, for free(). With 0 that is a warning,
 * and may be NULL. */
int status_print(const struct as_args *args, FILE *out, char **problem_out);

/* Looks until it is interrupted. */
int status_watch(const struct as_args *args);

#endif
