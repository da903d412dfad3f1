/*
 * Computes a decision of the action log again, from its recorded input, and compares the result
 * with its recorded output: for `replay`, and for the page of a decision.
 */
#ifndef ALERTSCALER_TOOLS_RECOMPUTE_H
#define ALERTSCALER_TOOLS_RECOMPUTE_H

#include <stddef.h>

#include <jansson.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>

/* The input of a pool's decision lacks the terms of the plan before version 3. To find them costs
 * up to 16 plans. */
enum as_recompute_effort { AS_RECOMPUTE_ONCE, AS_RECOMPUTE_FIND_TERMS };

enum as_recompute_outcome {
    AS_RECOMPUTE_EQUAL,
    AS_RECOMPUTE_DIFFERS,
    AS_RECOMPUTE_UNKNOWN, /* it differs, but the terms are missing and were not searched */
};

/*
 * `line` is the decision's record, and `record` its tree. An outcome; or a negative errno with an
 * error: the input cannot be read. If the outcome is not equal, `*output_out` is the computed
 * output, for the caller. A pool's plan may take 100 ms.
 */
int as_recompute(const char *line, size_t size, const json_t *record,
                 enum as_recompute_effort effort, json_t **output_out,
                 struct as_error *error) AS_MUST_USE;

/* Visits each member of an output that differs. NULL: the output lacks it. */
typedef void as_recompute_difference_fn(void *context, const char *key, const json_t *logged,
                                        const json_t *computed);
void as_recompute_visit_differences(json_t *logged, json_t *computed,
                                    as_recompute_difference_fn *visit, void *context);

#endif
