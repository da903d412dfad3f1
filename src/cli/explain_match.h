/*
 * Why a rule does not match an alert.
 */
#ifndef ALERTSCALER_SRC_CLI_EXPLAIN_MATCH_H
#define ALERTSCALER_SRC_CLI_EXPLAIN_MATCH_H

#include <stddef.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/decide/ruleset.h>
#include <alertscaler/model/labels.h>

/* The first obstacle, for free(): a matcher, the receivers (ignored if `receiver` is NULL),
 * `enabled: false`. NULL: it matches. */
char *explain_find_obstacle(const struct as_rule *rule, const struct as_labels *labels,
                            const char *receiver) AS_MUST_USE;

/* All obstacles of a rule that does not match: matchers, or `enabled: false`; for free(). */
char *explain_list_obstacles(const struct as_rule *rule,
                             const struct as_labels *labels) AS_MUST_USE;

/* Number of its matchers that do not match. */
size_t explain_count_obstacles(const struct as_rule *rule, const struct as_labels *labels);

/* Whether a rule does not match, but almost. Matchers that fail only by case are near. Apart from
 * these one matcher may fail, if another matcher for a value is near or matches, or if its value is
 * spelled almost like the alert's. */
bool explain_is_near(const struct as_rule *rule, const struct as_labels *labels) AS_MUST_USE;

char *explain_print_matcher(const struct as_matcher *matcher) AS_MUST_USE; /* a="b", for free() */

#endif
