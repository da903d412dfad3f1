/*
 * An alert's expression as a threshold: a comparison with a number.
 */
#ifndef ALERTSCALER_SRC_TOOLS_LINT_THRESHOLD_H
#define ALERTSCALER_SRC_TOOLS_LINT_THRESHOLD_H

#include <stdbool.h>

#include <alertscaler/base/arena.h>

struct threshold {
    char *subject; /* without comments and needless spaces; NULL: no threshold */
    double low, high;
    bool is_low_out, is_high_out; /* the bound itself is excluded */
};

/* Understands `SUBJECT OP NUMBER` and `NUMBER OP SUBJECT`. OP: > >= < <= ==. The subject has no
 * comparison, `and`, `or`, `unless` outside of parentheses. */
struct threshold threshold_parse(struct as_arena *arena, const char *expression);

/* Both are thresholds on the same subject, and some value satisfies both. */
bool threshold_overlaps(const struct threshold *a, const struct threshold *b);

#endif
