/*
 * The two halves of `alertscaler explain`.
 */
#ifndef ALERTSCALER_CLI_EXPLAIN_PRIVATE_H
#define ALERTSCALER_CLI_EXPLAIN_PRIVATE_H

#include "cli.h"

/* What a notification would lead to: --payload. Returns the exit status. */
int explain_payload(const struct as_args *args);

#endif
