/*
 * What a credential may trigger: names of rules and of targets, with `*` for any text. The engine
 * stores with each incident the credentials that sent it. A rule acts on it only if one of them may
 * trigger that rule on that target. For operators' orders only the targets count.
 *
 * The target of a scaling policy is "NAMESPACE/POLICY", its rule "NAMESPACE/POLICY/RULE". A pattern
 * without a slash never matches them, nor the id of such a target: a credential for rule files does
 * not reach policies. A credential without patterns reaches everything.
 */
#ifndef ALERTSCALER_MODEL_SCOPE_H
#define ALERTSCALER_MODEL_SCOPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/attr.h>

struct as_scope { /* all borrowed */
    const char *credential;
    const char *const *rules; /* patterns of rule names; count 0: every rule */
    size_t rule_count;
    const char *const
        *targets; /* patterns of target names in the rule files or of ids; count 0: every target */
    size_t target_count;
};

/* Persons whom a proxy reports have names with this beginning; their scope is that of the name. */
#define AS_SCOPE_PROXIED     "proxy:"
#define AS_SCOPE_ALL_PROXIED AS_SCOPE_PROXIED "*"

/* `pattern` has `*` for any text, also none; other characters match themselves. Time: at most the
 * product of both lengths. */
bool as_scope_match(const char *pattern, const char *text) AS_MUST_USE;

/* Whether there is a text that both patterns match. */
bool as_scope_may_meet(const char *left, const char *right) AS_MUST_USE;

/* The credential "" (no credentials configured, or Alertmanager's own list) may trigger everything.
 * A credential without a scope (removed meanwhile) may trigger nothing. */
bool as_scope_allows(const struct as_scope *scopes, size_t count, const char *credential,
                     const char *rule, const char *target_name, const char *target_id) AS_MUST_USE;

/* The same for an order, which has no rule. `target_name` NULL or "": only the id is known,
 * and only a pattern with a slash matches it. */
bool as_scope_allows_target(const struct as_scope *scopes, size_t count, const char *credential,
                            const char *target_name, const char *target_id) AS_MUST_USE;

/* Whether the credential is unrestricted: "", or one without patterns. */
bool as_scope_is_whole(const struct as_scope *scopes, size_t count,
                       const char *credential) AS_MUST_USE;

/* What the credential may have of a limit: `most`; a narrowed one an equal part of half of it. */
uint64_t as_scope_get_part(const struct as_scope *scopes, size_t count, const char *credential,
                           uint64_t most) AS_MUST_USE;

#endif
