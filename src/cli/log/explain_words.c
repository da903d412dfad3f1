/*
 * Complete by construction: a reason or gate that is added without its words does not compile.
 */
#include "explain_words.h"

const char *explain_reason(enum as_reason reason)
{
    switch (reason) {
    case AS_REASON_SCALED: return "Nothing stood against it.";
    case AS_REASON_ABOVE_MAX:
        return "The size was found above max and is brought back, because of enforce_bounds.";
    case AS_REASON_BELOW_MIN:
        return "The size was found below min and is brought back, because of enforce_bounds.";
    case AS_REASON_NO_CHANGE:
        return "The rules want the size that already is, or have nothing to say.";
    case AS_REASON_AT_MAX: return "More was wanted, but the size already is at or above max.";
    case AS_REASON_AT_MIN: return "Less was wanted, but the size already is at or below min.";
    case AS_REASON_WITHIN_TOLERANCE: return "The tracked value is close enough to its goal.";
    case AS_REASON_STABILIZED:
        return "The stabilization window holds it: an earlier recommendation still counts.";
    case AS_REASON_RATE_LIMITED:
        return "The scaling policies allow no more change within their period.";
    case AS_REASON_VETOED:
        return "Less was wanted by one rule, but another open incident wants the size to stay.";
    case AS_REASON_METRIC_UNAVAILABLE:
        return "A value that is needed is not there, and without it the size does not go down.";
    case AS_REASON_COOLDOWN: return "The target is locked after an earlier change of its size.";
    case AS_REASON_PAUSED: return "An operator has paused the target.";
    case AS_REASON_IN_PROGRESS: return "The last change is still being carried out.";
    case AS_REASON_GUARDED: return "The rule's guard does not allow a scale-down.";
    case AS_REASON_UNCONFIRMED:
        return "The rule's alert was not reported as firing since the last scale-down.";
    case AS_REASON_BUDGET: return "A limit over all targets is used up.";
    case AS_REASON_DRY_RUN: return "It would have been done, but for dry_run.";
    case AS_REASON_DISABLED:
        return "The size is 0 while min is above 0: somebody switched the target off.";
    case AS_REASON_NO_RULE: return "No rule matches the alert.";
    case AS_REASON_DUPLICATE: return "It repeats what is already known.";
    case AS_REASON_INVALID: return "The alert could not be read.";
    case AS_REASON_STALE: return "It is an old firing that came after its resolved.";
    case AS_REASON_SILENCED: return "The alert is silenced or inhibited in Alertmanager.";
    case AS_REASON_TARGET_NOT_ALLOWED:
        return "The alert's labels do not lead to a target that the rule's author allowed.";
    case AS_REASON_MAX_STEPS: return "The incident has used up the rule's max_steps.";
    case AS_REASON_RULE_DISABLED: return "Only rules with enabled: false match.";
    case AS_REASON_APPLIED: return "The size was set.";
    case AS_REASON_CONFLICT:
        return "Somebody else changed the target meanwhile; it is looked at again.";
    case AS_REASON_TARGET_NOT_FOUND: return "The target does not exist.";
    case AS_REASON_FORBIDDEN: return "The credentials do not allow it.";
    case AS_REASON_UNREACHABLE: return "The other side could not be reached, or failed.";
    case AS_REASON_THROTTLED: return "The other side asked to come back later.";
    case AS_REASON_REJECTED: return "The other side refused the request as wrong.";
    case AS_REASON_TIMEOUT: return "No answer came in time; it may have been done.";
    case AS_REASON_SUPERSEDED: return "It was given up, because something newer replaced it.";
    case AS_REASON_COUNT: break;
    }
    return "";
}

const char *explain_gate(enum as_gate gate)
{
    switch (gate) {
    case AS_GATE_SWITCHED_OFF: return "0 with min above 0 is left alone";
    case AS_GATE_OUT_OF_BOUNDS: return "brought back into its bounds";
    case AS_GATE_COMBINE: return "the highest size that a rule wants";
    case AS_GATE_STABILIZE: return "no further than the stabilization window allows";
    case AS_GATE_POLICIES: return "no faster than the scaling policies allow";
    case AS_GATE_BOUNDS: return "the bound ahead";
    case AS_GATE_COOLDOWN: return "the lock after an earlier change";
    case AS_GATE_HOLDS: return "paused, in progress, guarded, unconfirmed or out of budget";
    case AS_GATE_DRY_RUN: return "nothing is set in a dry run";
    case AS_GATE_COUNT: break;
    }
    return "";
}
