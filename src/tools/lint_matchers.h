/*
 * A list of matchers that all must match: whether a label set can satisfy them, and what they
 * imply. Exact for equalities and plain alternations. All else is assumed possible, and never
 * implied.
 */
#ifndef ALERTSCALER_SRC_TOOLS_LINT_MATCHERS_H
#define ALERTSCALER_SRC_TOOLS_LINT_MATCHERS_H

#include <stdbool.h>
#include <stddef.h>

#include <alertscaler/model/matcher.h>

struct matcher_list { /* borrows the matchers */
    const struct as_matcher **items;
    size_t count, capacity;
};

void matcher_list_deinit(struct matcher_list *list);
void matcher_list_add(struct matcher_list *list, const struct as_matcher *matchers, size_t count);

/* Two matchers (or one, twice) that no label set satisfies together; ascending indices. */
bool matcher_list_find_conflict(const struct matcher_list *list, size_t pair_out[2]);

/* Whether all label sets that satisfy the list satisfy the matcher too. */
bool matcher_list_implies(const struct matcher_list *list, const struct as_matcher *matcher);

/* Whether the list allows only one value of a label. */
bool matcher_list_fixes(const struct matcher_list *list, const char *name);

/* False only if the value certainly does not match: a regular expression may be given up. */
bool matcher_may_match(const struct as_matcher *matcher, const char *value);

/* `severity=~"page|critical"`, cut if long. */
#define MATCHER_TEXT_SIZE 120
const char *matcher_print(const struct as_matcher *matcher, char text_out[MATCHER_TEXT_SIZE]);

#endif
