/*
 * One matcher in Alertmanager's syntax and meaning: name="v", !=, =~, !~; quotes optional for plain
 * values; UTF-8 names in quotes; regular expressions anchored at both ends; an absent label is "".
 * If a regular expression is given up at a limit, neither =~ nor !~ matches: no label can bypass a
 * rule.
 */
#ifndef ALERTSCALER_MODEL_MATCHER_H
#define ALERTSCALER_MODEL_MATCHER_H

#include <stdbool.h>
#include <stddef.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>
#include <alertscaler/base/regex.h>
#include <alertscaler/model/labels.h>

enum as_matcher_op {
    AS_MATCHER_EQUAL,
    AS_MATCHER_NOT_EQUAL,
    AS_MATCHER_REGEX,
    AS_MATCHER_NOT_REGEX
};

struct as_matcher {
    char *name;
    char *value;
    enum as_matcher_op op;
    struct as_regex *regex; /* of =~ and !~, else NULL */
};

/* Fills the caller's memory. 0; or -EINVAL with an error that names the place in the text and what
 * is expected. */
int as_matcher_init(struct as_matcher *matcher, const char *text,
                    struct as_error *error) AS_MUST_USE;
void as_matcher_deinit(struct as_matcher *matcher);
bool as_matcher_match_value(const struct as_matcher *matcher, const char *value);
bool as_matcher_match(const struct as_matcher *matcher, const struct as_labels *labels);

/* The only values that a matcher can match: that of an equality, or those of a regular expression
 * that is a plain alternation like `a|b|c`. False, and nothing to deinit, for any other. */
struct as_matcher_values {
    char *text;         /* owns the words */
    const char **items; /* sorted, without duplicates */
    size_t count;       /* at least 1 */
};

bool as_matcher_find_values(const struct as_matcher *matcher,
                            struct as_matcher_values *values_out) AS_MUST_USE;
void as_matcher_values_deinit(struct as_matcher_values *values);

#endif
