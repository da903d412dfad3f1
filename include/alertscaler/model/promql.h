/*
 * PromQL as a text. There is no parser here: the server, or promtool, decides whether a query is
 * right.
 */
#ifndef ALERTSCALER_MODEL_PROMQL_H
#define ALERTSCALER_MODEL_PROMQL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/attr.h>

/*
 * The query with a sample value for each template, for free(). A template stands only inside a
 * string literal: the value has as many letters as the template, so that places stay the same.
 */
char *as_promql_fill(const char *query, bool *has_templates_out) AS_MUST_USE;

/*
 * The place in a server's error: "1:5: parse error: unexpected ..." is at the offset 4 of the
 * query. `message_out` is the text behind the place. False: the error has no place, and the message
 * is the whole error.
 */
bool as_promql_find_place(const char *query, const char *error, size_t *offset_out,
                          const char **message_out);

/*
 * The selectors of a query that names their metric. Comments, strings and labels are no selectors.
 * The texts belong to the query.
 */
struct as_promql_selector {
    const char *name; /* of the metric */
    size_t name_size;
    const char *function; /* that it is an argument of, perhaps of a part of it; size 0: none */
    size_t function_size;
    size_t offset;    /* of the name in the query */
    int64_t range_us; /* 0: none, or not a plain duration; that of a subquery is not its range */
};
typedef void as_promql_selector_fn(void *context, const struct as_promql_selector *selector);
void as_promql_visit_selectors(const char *query, as_promql_selector_fn *visit, void *context);

/* The query has this text, also in a string, but not in a comment. */
bool as_promql_has_text(const char *query, const char *text);

#endif
