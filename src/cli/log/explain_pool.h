/*
 * What a decision about a pool, or about a node group that is one of itself, says of its pods,
 * groups and nodes. What the record does not say is computed again from its input.
 */
#ifndef ALERTSCALER_SRC_CLI_LOG_EXPLAIN_POOL_H
#define ALERTSCALER_SRC_CLI_LOG_EXPLAIN_POOL_H

#include <stdio.h>

#include <jansson.h>

#include <alertscaler/wire/decision.h>

/* Prints nothing for a decision that saw no groups. `document`: of the input, not decided yet;
 * NULL: of an unknown version. */
void explain_pool_print(const json_t *decision, struct as_decide_document *document, FILE *out);

#endif
