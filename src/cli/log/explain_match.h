/*
 * Why a rule does not match an alert.
 */
#ifndef ALERTSCALER_SRC_CLI_LOG_EXPLAIN_MATCH_H
#define ALERTSCALER_SRC_CLI_LOG_EXPLAIN_MATCH_H

#include <stddef.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/core/labels.h>
#include <alertscaler/core/ruleset.h>

/* The first thing in the way, for free(): a matcher, the receivers (none of them with `receiver`
 * NULL), `enabled: false`. NULL: it matches. */
char *explain_find_obstacle(const struct as_rule *rule, const struct as_labels *labels,
                            const char *receiver) AS_MUST_USE;

/* All matchers in the way of a rule that does not match, or `enabled: false`; for free(). */
char *explain_list_obstacles(const struct as_rule *rule,
                             const struct as_labels *labels) AS_MUST_USE;

/* How many of its matchers do not match. */
size_t explain_count_obstacles(const struct as_rule *rule, const struct as_labels *labels);

/* A rule that does not match, but nearly does. Matchers that fail only by upper and lower case are
 * near; beside them one may fail, if another one that names a value is near or matches, or the
 * value that is asked for is spelt almost like the alert's. */
bool explain_is_near(const struct as_rule *rule, const struct as_labels *labels) AS_MUST_USE;

char *explain_print_matcher(const struct as_matcher *matcher) AS_MUST_USE; /* a="b", for free() */

#endif
