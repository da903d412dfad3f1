/*
 * Finds the rules that match an alert. The cost does not depend on the number of rules that cannot
 * match: each rule is indexed by one equality (or plain alternation `a|b|c`) matcher, if possible
 * with a value that few rules share. Rules without such a matcher are tried for every alert.
 */
#ifndef ALERTSCALER_DECIDE_RULE_INDEX_H
#define ALERTSCALER_DECIDE_RULE_INDEX_H

#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/decide/ruleset.h>
#include <alertscaler/model/labels.h>

struct as_rule_index;

/* Borrows the rule set, which must outlive the index. */
struct as_rule_index *as_rule_index_new(const struct as_ruleset *ruleset) AS_MUST_USE;
struct as_rule_index *as_rule_index_free(struct as_rule_index *index);

/*
 * The indices of all rules (also disabled ones) whose matchers match and whose receivers include
 * one of `receivers` (NULL: any), ascending. The array belongs to the index and is valid until the
 * next call.
 */
size_t as_rule_index_match(struct as_rule_index *index, const struct as_labels *labels,
                           const char *const *receivers, size_t receiver_count,
                           const uint32_t **rules_out);

AS_DEFINE_CLEANUP(struct as_rule_index *, as_rule_index_free)

#endif
