/*
 * The three parts of `alertscaler explain`.
 */
#ifndef ALERTSCALER_SRC_CLI_EXPLAIN_H
#define ALERTSCALER_SRC_CLI_EXPLAIN_H

#include "cli.h"

/* The effects of a notification: --payload. Returns the exit status. */
int explain_payload(const struct as_args *args);

/* Which rules match an alert with the given labels: AS_EXIT_NO if none. */
int explain_labels(const struct as_args *args);

#endif
