/*
 * What a credential may trigger: names of rules and of targets, with `*` for any text. The engine
 * keeps with each incident through which credentials it came, and a rule acts on it only if one of
 * them may trigger that rule on that target. Orders of operators go by the targets alone.
 */
#ifndef ALERTSCALER_CORE_SCOPE_H
#define ALERTSCALER_CORE_SCOPE_H

#include <stdbool.h>
#include <stddef.h>

#include <alertscaler/base/attr.h>

struct as_scope { /* all borrowed */
    const char *credential;
    const char *const *rules; /* patterns of rule names; count 0: every rule */
    size_t rule_count;
    const char *const
        *targets; /* patterns of target names in the rule files or of ids; count 0: every one */
    size_t target_count;
};

/* `pattern` with `*` for any text, also none; everything else stands for itself. At most the
 * product of both lengths in time. */
bool as_scope_match(const char *pattern, const char *text) AS_MUST_USE;

/* Whether there is a text that both patterns match. */
bool as_scope_may_meet(const char *left, const char *right) AS_MUST_USE;

/* The credential "" (no credentials configured, or Alertmanager's own list) may everything; one
 * that is not among the scopes (removed meanwhile) nothing. */
bool as_scope_allows(const struct as_scope *scopes, size_t count, const char *credential,
                     const char *rule, const char *target_name, const char *target_id) AS_MUST_USE;

/* Likewise of an order, which goes by no rule. `target_name` may be NULL: only the id is known. */
bool as_scope_allows_target(const struct as_scope *scopes, size_t count, const char *credential,
                            const char *target_name, const char *target_id) AS_MUST_USE;

/* Whether nothing is beyond the credential: "", and one without patterns. */
bool as_scope_is_whole(const struct as_scope *scopes, size_t count,
                       const char *credential) AS_MUST_USE;

#endif
