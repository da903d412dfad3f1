/*
 * What a decision about a pool, or about a node group that is one of itself, says of its pods,
 * groups and nodes. What the record does not say is computed again from its input.
 */
#ifndef ALERTSCALER_SRC_TOOLS_EXPLAIN_POOL_H
#define ALERTSCALER_SRC_TOOLS_EXPLAIN_POOL_H

#include <stdio.h>

#include <jansson.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/decide/decision.h>

/* Computes the plan of a pool's decision, once. NULL: there is no survey, or it has an error. */
const struct as_decide_input *explain_pool_decide(struct as_decide_document *document) AS_MUST_USE;

/* Each prints nothing for a decision that saw no groups. `decided`: from explain_pool_decide, or
 * NULL. */
void explain_pool_print_error(const json_t *decision, FILE *out);
void explain_pool_print_pods(const json_t *decision, const struct as_decide_input *decided,
                             FILE *out);
void explain_pool_print_groups(const json_t *decision, const struct as_decide_input *decided,
                               FILE *out);
void explain_pool_print_nodes(const json_t *decision, const struct as_decide_input *decided,
                              FILE *out);

#endif
