/*
 * The three parts of `alertscaler explain`.
 */
#ifndef ALERTSCALER_SRC_CLI_LOG_EXPLAIN_H
#define ALERTSCALER_SRC_CLI_LOG_EXPLAIN_H

#include "cli.h"

/* What a notification would lead to: --payload. Returns the exit status. */
int explain_payload(const struct as_args *args);

/* Which rules match an alert with the labels given as operands: AS_EXIT_NO where none does. */
int explain_labels(const struct as_args *args);

#endif
