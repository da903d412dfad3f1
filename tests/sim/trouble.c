/*
 * Counts the troubles in the worlds so far: trouble that never happens tests nothing.
 */
#include "sim.h"

#include <inttypes.h>
#include <stdio.h>

static uint64_t counts[TROUBLE_COUNT];

static const char *const names[TROUBLE_COUNT] = {
    [TROUBLE_COMMIT_FAILED] = "commit failed, nothing kept",
    [TROUBLE_COMMIT_KEPT] = "commit failed, but kept",
    [TROUBLE_LOG_FAILED] = "append or sync of the log failed",
    [TROUBLE_LINE_TORN] = "line of the log torn",
    [TROUBLE_LINES_LOST] = "lines of the log lost with the power",
    [TROUBLE_REPEATS_AT_RISK] = "power cut within 50 ms of the answer to a repeat",
    [TROUBLE_FULL_STORE] = "disk of the state full for a while",
    [TROUBLE_FULL_LOG] = "disk of the log full for a while",
    [TROUBLE_FULL_BOTH] = "both full for a while",
    [TROUBLE_START_FAILED] = "start refused by a full disk",
    [TROUBLE_KILLED] = "killed with nothing under way",
    [TROUBLE_KILLED_COMMITTING] = "killed while a commit waits",
    [TROUBLE_KILLED_INTENT] = "killed between intent and request",
    [TROUBLE_KILLED_SENT] = "killed before the request's answer",
    [TROUBLE_CRASH_LOOP] = "killed again and again",
    [TROUBLE_POWER_CUT] = "power cut",
    [TROUBLE_REBOOT] = "machine started anew",
    [TROUBLE_STOP] = "asked to stop",
    [TROUBLE_RELOAD] = "new rules with nothing under way",
    [TROUBLE_RELOAD_COMMITTING] = "new rules while a commit waits",
    [TROUBLE_RELOAD_INTENT] = "new rules between intent and request",
    [TROUBLE_RELOAD_SENT] = "new rules before the request's answer",
    [TROUBLE_RELOAD_UNDONE] = "new rules taken back",
    [TROUBLE_CLOCK_SECONDS] = "clock jumps by seconds",
    [TROUBLE_CLOCK_HOURS] = "clock jumps by hours",
    [TROUBLE_CLOCK_YEARS_ON] = "clock jumps on by years",
    [TROUBLE_CLOCK_YEARS_BACK] = "clock jumps back by years",
    [TROUBLE_CLOCK_BEFORE_1970] = "clock jumps before 1970",
    [TROUBLE_CLOCK_RIGHT] = "clock is put right",
    [TROUBLE_REFUSED] = "API server refuses",
    [TROUBLE_ENDED_BADLY] = "change accepted, and its operation failed",
    [TROUBLE_ENDED_BADLY_UNDONE] = "likewise, and the size is what it was",
    [TROUBLE_SILENT] = "request lost, no answer",
    [TROUBLE_DONE_SILENTLY] = "size set, no answer",
    [TROUBLE_DONE_LATE] = "size set long after the time-out",
    [TROUBLE_STALE_READ] = "old size observed",
    [TROUBLE_STALE_READ_OF_OURS] = "size observed from before our change",
    [TROUBLE_OLDER_READ] = "older size served after a fail-over",
    [TROUBLE_ROLLOUT] = "rollout, with other than the pods asked for",
    [TROUBLE_SIZE_CHANGED] = "others change a size",
    [TROUBLE_FIELD_SET] = "field set",
    [TROUBLE_FIELD_ADDED] = "absent field added",
    [TROUBLE_FIELD_CONFLICT] = "field or its object changed before the patch came",
    [TROUBLE_SET_BACK] = "another controller sets a size back",
    [TROUBLE_CONTENDED] = "contended",
    [TROUBLE_CONTENDED_OVER] = "contention over",
    [TROUBLE_CONTENDED_RESTORED] = "contention survives a crash",
    [TROUBLE_TARGET_GONE] = "target taken away",
    [TROUBLE_TARGET_MADE_ANEW] = "another object under the same name",
    [TROUBLE_QUERY_FAILED] = "query without a value",
    [TROUBLE_LIST_FAILED] = "list of alerts fails",
    [TROUBLE_LIST_CUT] = "list of alerts lacks one",
    [TROUBLE_MUTED] = "group muted by time",
    [TROUBLE_MUTED_UNMARKED] = "muted group listed before its flush",
    [TROUBLE_ALERTMANAGER_RESTARTED] = "Alertmanager started anew, without its marks",
    [TROUBLE_MONITORING_DEAD] = "monitoring dead for a while",
    [TROUBLE_PROMETHEUS_DEAD] = "Prometheus dead, Alertmanager goes on listing",
    [TROUBLE_ALWAYS_UP] = "step up by a rule without an alert",
    [TROUBLE_ALWAYS_DOWN] = "step down by a rule without an alert",
    [TROUBLE_ALWAYS_NODES] = "nodes requested or removed by a rule without an alert",
    [TROUBLE_STEP_IN_SILENCE] = "step down after monitoring died",
    [TROUBLE_HELD_IN_SILENCE] = "further step down held back for want of news",
    [TROUBLE_CUT_OFF] = "leader cut off from its lease",
    [TROUBLE_PAUSED] = "leader paused",
    [TROUBLE_PAUSED_INTENT] = "leader paused between intent and request",
    [TROUBLE_PAUSED_SENT] = "leader paused before the request's answer",
    [TROUBLE_TWO_LEADERS] = "another leads while the former one runs",
    [TROUBLE_FORMER_COMMIT] = "commit of a former leader refused",
    [TROUBLE_FORMER_REQUEST] = "request of a former leader held back",
    [TROUBLE_FORMER_REQUEST_LATE] = "request of a former leader arrives",
    [TROUBLE_FORMER_ANSWER] = "200 of a former leader, for what it had stored",
    [TROUBLE_FORMER_ASKED] = "notification sent to a former leader",
    [TROUBLE_ORDER] = "order with nothing under way",
    [TROUBLE_ORDER_COMMITTING] = "order while a commit waits",
    [TROUBLE_ORDER_INTENT] = "order between intent and request",
    [TROUBLE_ORDER_SENT] = "order before the request's answer",
    [TROUBLE_ORDER_PAUSE] = "target paused",
    [TROUBLE_ORDER_PAUSE_ALL] = "all paused",
    [TROUBLE_ORDER_PAUSE_ONE_WAY] = "pause of one direction ordered",
    [TROUBLE_ORDER_FLOOR] = "floor ordered",
    [TROUBLE_ORDER_FLOOR_BACK] = "floor taken back",
    [TROUBLE_ORDER_RESUME] = "resumed",
    [TROUBLE_ORDER_SCALE] = "size ordered",
    [TROUBLE_ORDER_FORCED] = "size ordered beyond the bounds",
    [TROUBLE_ORDER_UNLOCK] = "unlocked",
    [TROUBLE_ORDER_REFUSED] = "order refused",
    [TROUBLE_ORDER_UNANSWERED] = "order recorded, but not answered",
    [TROUBLE_ORDER_OF_FORMER] = "order given to a former leader",
    [TROUBLE_ORDERED_IN_PAUSE] = "size set by order in a pause",
    [TROUBLE_PAUSE_OVER] = "pause ended by time",
    [TROUBLE_OTHER_WAY_IN_PAUSE] = "decided the other way in a pause of one direction",
    [TROUBLE_FLOOR_OVER] = "floor ended by time",
    [TROUBLE_FLOOR_RESTORED] = "floor survives a crash",
    [TROUBLE_FLOOR_HELD] = "target under a floor looked at in the calm",
    [TROUBLE_PAUSE_RESTORED] = "pause found again after a crash",
    [TROUBLE_PAUSE_HELD_BACK] = "decided before a pause, held back by it",
    [TROUBLE_HALT_SET] = "kill switch set",
    [TROUBLE_HALT_ENDED] = "kill switch taken away",
    [TROUBLE_HALT_RESTARTED] = "start under the kill switch",
    [TROUBLE_APPROVAL_ASKED] = "approval asked for",
    [TROUBLE_APPROVAL_APPROVED] = "approved",
    [TROUBLE_APPROVAL_DENIED] = "denied",
    [TROUBLE_APPROVAL_EXPIRED] = "request or approval expired",
    [TROUBLE_APPROVAL_VOID] = "request or approval void",
    [TROUBLE_APPROVAL_USED] = "approval used",
    [TROUBLE_APPROVAL_RETURNED] = "approval returned, as the change was not made",
    [TROUBLE_APPROVAL_AGAIN] = "request answered a second time",
    [TROUBLE_APPROVAL_TOO_LATE] = "request answered when it was over",
    [TROUBLE_APPROVAL_CRASHED] = "crash or other leader while a request waits",
    [TROUBLE_APPROVAL_CHANGED] = "new rules while a request waits",
    [TROUBLE_APPROVAL_FREE] = "step that needs no approval, of a rule with them",
    [TROUBLE_DECIDED_AT_REST] = "size at the end decided again",
    [TROUBLE_SCHEDULE_AT_REST] = "min of a schedule in force at the end",
    [TROUBLE_SCHEDULE_TOOK_BACK] = "end of a schedule took back what it added",
    [TROUBLE_SCHEDULE_SET_0] = "begin of a schedule set 0",
    [TROUBLE_SCHEDULE_RETURNED] = "end of a schedule returned the size before",
    [TROUBLE_HALT_HELD_BACK] = "decided before the kill switch, held back by it",
    [TROUBLE_NO_CAPACITY_REFUSED] = "nodes refused for lack of capacity",
    [TROUBLE_CLEANED_UP] = "instances of others that never became nodes removed",
    [TROUBLE_NO_CAPACITY_ACCEPTED] = "nodes accepted, and none comes for lack of capacity",
    [TROUBLE_GROUP_UNWELL] = "provider of a node group fails for a while",
    [TROUBLE_API_AWAY] = "API server of the cluster away",
    [TROUBLE_WATCH_STOPPED] = "watch of the cluster stops",
    [TROUBLE_LEAVING_HELD] = "node that leaves is held back",
    [TROUBLE_TELL_REFUSED] = "message refused by its receiver",
    [TROUBLE_TELL_ANSWER_LOST] = "message taken, its answer lost",
    [TROUBLE_TELL_SILENT] = "message lost, no answer",
    [TROUBLE_TELL_FORGOTTEN] = "message on its way when its sender ended",
    [TROUBLE_DRAIN_FAILED] = "drain of a node failed",
    [TROUBLE_NODE_RETURNED] = "node that was leaving taken back into service",
    [TROUBLE_GROUP_FAILS] = "request for a node group fails or stays in doubt, as all of them",
    [TROUBLE_ORDERED_IN_VAIN] = "instances ordered by others that never come",
    [TROUBLE_DAEMON_PORT] = "pods wait for a port that a DaemonSet has on each node",
    [TROUBLE_POLICY_GONE] = "policy deleted",
    [TROUBLE_POLICY_BROKEN] = "new generation of a policy broken",
    [TROUBLE_POLICY_PAUSED] = "policy paused by an annotation",
    [TROUBLE_POLICY_RETURNED] = "policy returned",
    [TROUBLE_POLICY_ALONE] = "policy alone changed",
    [TROUBLE_POLICY_AWAITED] = "start with a broken policy, which is awaited",
    [TROUBLE_GROUP_AT_MIN] = "unneeded node looked at that its group's minimum keeps",
};

static const char *const fates[4] = {"retried", "duplicated", "reordered", "lost once"};

static void print_name(int trouble, char *name_out, size_t size)
{
    if (trouble < TROUBLE_MESSAGES) {
        (void)snprintf(name_out, size, "%s", names[trouble]);
        return;
    }
    const unsigned fate = (unsigned)(trouble - TROUBLE_MESSAGES);
    size_t at = (size_t)snprintf(name_out, size, "notification");
    for (unsigned bit = 0; bit < AS_ARRAY_SIZE(fates); bit++) {
        if (fate & 1U << bit)
            at += (size_t)snprintf(name_out + at, size - at, "%s%s", at > 12 ? ", " : " ",
                                   fates[bit]);
    }
    if (fate == 0)
        (void)snprintf(name_out + at, size - at, " sent once");
}

void trouble_note(struct world *world, enum trouble trouble)
{
    (void)world;
    counts[trouble]++;
}

void trouble_note_message(struct world *world, unsigned fate)
{
    (void)world;
    counts[TROUBLE_MESSAGES + fate]++;
}

void trouble_print(FILE *out)
{
    for (int i = 0; i < TROUBLE_COUNT; i++) {
        char name[96];
        print_name(i, name, sizeof(name));
        (void)fprintf(out, "%12" PRIu64 "  %s\n", counts[i], name);
    }
}

int trouble_count_missing(FILE *out)
{
    int missing = 0;
    for (int i = 0; i < TROUBLE_COUNT; i++) {
        char name[96];
        print_name(i, name, sizeof(name));
        if (counts[i] == 0)
            (void)fprintf(out, "NEVER HAPPENED: %s\n", name);
        missing += counts[i] == 0;
    }
    return missing;
}
