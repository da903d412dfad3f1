/*
 * The closed list of reason codes: one word for one outcome, the same in the HTTP answer, the
 * action log, the metric label and `explain`. Users script against these words: they never change
 * meaning.
 */
#ifndef ALERTSCALER_CORE_REASON_H
#define ALERTSCALER_CORE_REASON_H

#include <stdbool.h>

#include <alertscaler/base/attr.h>

/* X(enumerator, word, what it means in one sentence) */
#define AS_REASONS(X)                                                                              \
    /* decisions */                                                                                \
    X(AS_REASON_SCALED, "scaled", "the size is to be changed to the decided one")                  \
    X(AS_REASON_ABOVE_MAX, "above_max", "found above max and brought back (enforce_bounds)")       \
    X(AS_REASON_BELOW_MIN, "below_min", "found below min and brought back (enforce_bounds)")       \
    X(AS_REASON_NO_CHANGE, "no_change", "the proposals ask for the size that already is")          \
    X(AS_REASON_AT_MAX, "at_max", "a scale-up was wanted, but the size is at or above max")        \
    X(AS_REASON_AT_MIN, "at_min", "a scale-down was wanted, but the size is at or below min")      \
    X(AS_REASON_WITHIN_TOLERANCE, "within_tolerance", "the value is close enough to its goal")     \
    X(AS_REASON_STABILIZED, "stabilized", "held back by a stabilization window")                   \
    X(AS_REASON_RATE_LIMITED, "rate_limited", "held back by a scaling policy")                     \
    X(AS_REASON_VETOED, "vetoed", "a scale-down was wanted, but another open incident forbids it") \
    X(AS_REASON_METRIC_UNAVAILABLE, "metric_unavailable", "a value needed for it is not there")    \
    X(AS_REASON_COOLDOWN, "cooldown", "the target is locked after an earlier action")              \
    X(AS_REASON_PAUSED, "paused", "an operator paused the target")                                 \
    X(AS_REASON_IN_PROGRESS, "in_progress", "the last change is still being carried out")          \
    X(AS_REASON_GUARDED, "guarded", "the scale-down's guard did not allow it")                     \
    X(AS_REASON_UNCONFIRMED, "unconfirmed",                                                        \
      "the alert was not reported again since the last scale-down")                                \
    X(AS_REASON_BUDGET, "budget", "a limit over all targets is used up")                           \
    X(AS_REASON_DRY_RUN, "dry_run", "would have been done, but for dry_run")                       \
    X(AS_REASON_DISABLED, "disabled", "the size is 0 with min above 0: switched off")              \
    /* alerts that led to no decision */                                                           \
    X(AS_REASON_NO_RULE, "no_rule", "no rule matches the alert")                                   \
    X(AS_REASON_DUPLICATE, "duplicate", "a repeat of what is already known")                       \
    X(AS_REASON_STALE, "stale", "an old firing that came after its resolved")                      \
    X(AS_REASON_SILENCED, "silenced", "the alert is silenced or inhibited in Alertmanager")        \
    X(AS_REASON_TARGET_NOT_ALLOWED, "target_not_allowed",                                          \
      "the labels do not give a target that the rule's author allowed")                            \
    X(AS_REASON_MAX_STEPS, "max_steps", "the incident has used up the rule's max_steps")           \
    X(AS_REASON_RULE_DISABLED, "rule_disabled", "only rules with enabled: false match")            \
    X(AS_REASON_INVALID, "invalid", "the alert cannot be read")                                    \
    /* actions */                                                                                  \
    X(AS_REASON_APPLIED, "applied", "the size was set")                                            \
    X(AS_REASON_CONFLICT, "conflict", "the target was changed meanwhile; observed again")          \
    X(AS_REASON_TARGET_NOT_FOUND, "target_not_found", "the target does not exist")                 \
    X(AS_REASON_FORBIDDEN, "forbidden", "the credentials do not allow it")                         \
    X(AS_REASON_UNREACHABLE, "unreachable", "the other side could not be reached or failed")       \
    X(AS_REASON_THROTTLED, "throttled", "the other side asked to come back later")                 \
    X(AS_REASON_REJECTED, "rejected", "the other side refused the request as wrong")               \
    X(AS_REASON_TIMEOUT, "timeout", "no answer in time; it may have been done")                    \
    X(AS_REASON_SUPERSEDED, "superseded", "given up because something newer replaced it")

#define AS_REASON_ENUM(enumerator, word, meaning) enumerator,
enum as_reason { AS_REASONS(AS_REASON_ENUM) AS_REASON_COUNT };
#undef AS_REASON_ENUM

const char *as_reason_get_word(enum as_reason reason);
const char *as_reason_get_meaning(enum as_reason reason);
bool as_reason_find(const char *word, enum as_reason *reason_out) AS_MUST_USE;

#endif
