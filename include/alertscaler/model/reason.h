/*
 * The closed list of reason codes: one word per outcome, the same in the HTTP answer, the action
 * log, the metric label and `explain`. Users script against these words: their meaning never
 * changes.
 */
#ifndef ALERTSCALER_MODEL_REASON_H
#define ALERTSCALER_MODEL_REASON_H

#include <stdbool.h>

#include <alertscaler/base/attr.h>

/* X(enumerator, word, its meaning in a sentence for people) */
#define AS_REASONS(X)                                                                              \
    /* decisions */                                                                                \
    X(AS_REASON_SCALED, "scaled", "Nothing stood against it.")                                     \
    X(AS_REASON_ABOVE_MAX, "above_max",                                                            \
      "The size was found above max and is brought back, because of enforce_bounds or a "          \
      "schedule.")                                                                                 \
    X(AS_REASON_BELOW_MIN, "below_min",                                                            \
      "The size was found below min and is brought back, because of enforce_bounds or a "          \
      "schedule.")                                                                                 \
    X(AS_REASON_SCHEDULE_ENDED, "schedule_ended",                                                  \
      "A schedule has ended: the size that it added goes, or the size from before it returns.")    \
    X(AS_REASON_NO_CHANGE, "no_change",                                                            \
      "The rules want the size that already is, or have nothing to say.")                          \
    X(AS_REASON_AT_MAX, "at_max", "More was wanted, but the size already is at or above max.")     \
    X(AS_REASON_AT_MIN, "at_min", "Less was wanted, but the size already is at or below min.")     \
    X(AS_REASON_WITHIN_TOLERANCE, "within_tolerance",                                              \
      "The tracked value is close enough to its goal.")                                            \
    X(AS_REASON_STABILIZED, "stabilized",                                                          \
      "The stabilization window holds it: an earlier recommendation still counts.")                \
    X(AS_REASON_RATE_LIMITED, "rate_limited",                                                      \
      "The scaling policies allow no more change within their period.")                            \
    X(AS_REASON_VETOED, "vetoed",                                                                  \
      "Less was wanted by one rule, but another rule wants the size to stay.")                     \
    X(AS_REASON_HELD, "held",                                                                      \
      "This direction is forbidden: by a rule with hold, a pause of one direction or a schedule.") \
    X(AS_REASON_INEFFECTIVE, "ineffective",                                                        \
      "The rule is held, because its last actions did not help.")                                  \
    X(AS_REASON_DID_NOT_COME, "did_not_come",                                                      \
      "The requested capacity did not come in time, or cannot come: no step up now.")              \
    X(AS_REASON_ROLLOUT_UNDER_WAY, "rollout_under_way",                                            \
      "A rollout of the workload is under way, or its progress is not known: the size is not "     \
      "lowered.")                                                                                  \
    X(AS_REASON_METRIC_UNAVAILABLE, "metric_unavailable",                                          \
      "A value that is needed is not there, and without it the size does not go down.")            \
    X(AS_REASON_COOLDOWN, "cooldown", "The target is locked after an earlier change of its size.") \
    X(AS_REASON_PAUSED, "paused", "An operator has paused the target.")                            \
    X(AS_REASON_CONTENDED, "contended",                                                            \
      "Others have set the size back three times within an hour: the target is left alone.")       \
    X(AS_REASON_IN_PROGRESS, "in_progress", "The last change is still being carried out.")         \
    X(AS_REASON_GUARDED, "guarded",                                                                \
      "A scale-down needs proof that monitoring works: from the rule's guard, or the watchdog.")   \
    X(AS_REASON_UNCONFIRMED, "unconfirmed",                                                        \
      "The rule's alert was not reported as firing since the last scale-down.")                    \
    X(AS_REASON_BUDGET, "budget", "A limit over all targets, or of the namespace, is used up.")    \
    X(AS_REASON_NEEDS_APPROVAL, "needs_approval", "It waits until a person approves it.")          \
    X(AS_REASON_NOT_APPROVED, "not_approved",                                                      \
      "A person denied it, or nobody approved it in time.")                                        \
    X(AS_REASON_DRY_RUN, "dry_run", "It would have been done, but for dry_run.")                   \
    X(AS_REASON_NO_GROUP, "no_group", "Pods wait that no node group of the pool could take.")      \
    X(AS_REASON_NO_TEMPLATE, "no_template",                                                        \
      "Nothing is known of what a new node of the group would be like.")                           \
    X(AS_REASON_NO_ROOM, "no_room", "The node's pods fit on no other node.")                       \
    X(AS_REASON_UTILIZED, "utilized", "The node's pods ask for too much of it.")                   \
    X(AS_REASON_DISABLED, "disabled",                                                              \
      "The size is 0 while min is above 0: somebody switched the target off.")                     \
    /* alerts that led to no decision */                                                           \
    X(AS_REASON_NO_RULE, "no_rule", "No rule matches the alert.")                                  \
    X(AS_REASON_DUPLICATE, "duplicate", "It repeats what is already known.")                       \
    X(AS_REASON_STALE, "stale", "It is an old firing that came after its resolved.")               \
    X(AS_REASON_SILENCED, "silenced",                                                              \
      "The alert is silenced, inhibited or muted in Alertmanager.")                                \
    X(AS_REASON_TARGET_NOT_ALLOWED, "target_not_allowed",                                          \
      "The alert's labels do not lead to a target that the rule's author allowed, or the node "    \
      "group belongs to another target.")                                                          \
    X(AS_REASON_MAX_STEPS, "max_steps", "The incident has used up the rule's max_steps.")          \
    X(AS_REASON_RULE_DISABLED, "rule_disabled", "Only rules with enabled: false match.")           \
    X(AS_REASON_OWN_ALERT, "own_alert",                                                            \
      "The alert is alertscaler's own (it has the label alertscaler_instance): no rule sees it.")  \
    X(AS_REASON_INVALID, "invalid", "The alert could not be read.")                                \
    /* actions */                                                                                  \
    X(AS_REASON_APPLIED, "applied", "The size was set.")                                           \
    X(AS_REASON_CONFLICT, "conflict",                                                              \
      "Somebody else changed the target meanwhile; it is looked at again.")                        \
    X(AS_REASON_TARGET_NOT_FOUND, "target_not_found", "The target does not exist.")                \
    X(AS_REASON_NO_PODS, "no_pods", "The target has no pods that could be resized.")               \
    X(AS_REASON_FORBIDDEN, "forbidden", "The credentials do not allow it.")                        \
    X(AS_REASON_UNREACHABLE, "unreachable", "The other side could not be reached, or failed.")     \
    X(AS_REASON_THROTTLED, "throttled", "The other side asked to come back later.")                \
    X(AS_REASON_REJECTED, "rejected", "The other side refused the request as wrong.")              \
    X(AS_REASON_TIMEOUT, "timeout", "No answer came in time; it may have been done.")              \
    X(AS_REASON_SUPERSEDED, "superseded", "It was given up, because something newer replaced it.")

#define AS_REASON_ENUM(enumerator, word, meaning) enumerator,
enum as_reason { AS_REASONS(AS_REASON_ENUM) AS_REASON_COUNT };
#undef AS_REASON_ENUM

const char *as_reason_get_word(enum as_reason reason);
const char *as_reason_get_meaning(enum as_reason reason);
bool as_reason_find(const char *word, enum as_reason *reason_out) AS_MUST_USE;

#endif
