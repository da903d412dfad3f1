/*
 * PromQL as a text. There is no parser here: the server, or promtool, decides whether a query is
 * right.
 */
#ifndef ALERTSCALER_MODEL_PROMQL_H
#define ALERTSCALER_MODEL_PROMQL_H

#include <stdbool.h>
#include <stddef.h>

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

#endif
