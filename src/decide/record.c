/*
 * The words of the action log's records: of their kinds, and of what orders, approvals, notices,
 * incidents and effects say. Also the memory of a notification, which its record describes.
 *
 * Words are stored and are public: they never change. The module writes no record (log/record.c).
 */
#include <alertscaler/decide/record.h>

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/decide/approval.h>
#include <alertscaler/decide/notice.h>
#include <alertscaler/decide/notification.h>
#include <alertscaler/decide/operator_command.h>

/* Size and release of a notification; the payload's decoder makes it. */

static size_t notification_measure_text(const char *text)
{
    return text ? AS_ALLOC_EXTRA + strlen(text) + 1 : 0;
}

size_t as_notification_measure(const struct as_notification *notification)
{
    size_t bytes = AS_ALLOC_EXTRA + sizeof(*notification) + AS_ALLOC_EXTRA +
                   notification->alert_count * sizeof(*notification->alerts) +
                   notification_measure_text(notification->receiver) +
                   notification_measure_text(notification->group_key) +
                   notification_measure_text(notification->reason) +
                   notification_measure_text(notification->external_url);
    for (size_t i = 0; i < notification->alert_count; i++) {
        const struct as_alert *alert = &notification->alerts[i];
        bytes += notification_measure_text(alert->problem) + as_labels_measure(alert->labels) +
                 as_labels_measure(alert->annotations) +
                 notification_measure_text(alert->generator_url);
    }
    return bytes;
}

struct as_notification *as_notification_free(struct as_notification *notification)
{
    if (!notification)
        return NULL;
    for (size_t i = 0; i < notification->alert_count; i++) {
        free(notification->alerts[i].problem);
        as_labels_free(notification->alerts[i].labels);
        as_labels_free(notification->alerts[i].annotations);
        free(notification->alerts[i].generator_url);
    }
    free(notification->alerts);
    free(notification->receiver);
    free(notification->group_key);
    free(notification->reason);
    free(notification->external_url);
    free(notification->remote);
    free(notification->credential);
    free(notification->traceparent);
    free(notification);
    return NULL;
}

/* Words */

const char *as_approval_answer_get_word(enum as_approval_answer answer)
{
    static const char *const words[AS_APPROVAL_ANSWER_COUNT] = {
        [AS_APPROVAL_WAITING] = "waiting", [AS_APPROVAL_APPROVED] = "approved",
        [AS_APPROVAL_DENIED] = "denied",   [AS_APPROVAL_EXPIRED] = "expired",
        [AS_APPROVAL_VOID] = "void",
    };
    return words[answer];
}

const char *as_approval_use_get_word(enum as_approval_use use)
{
    static const char *const words[AS_APPROVAL_USE_COUNT] = {
        [AS_APPROVAL_FREE] = NULL,         [AS_APPROVAL_ASKS] = "asks",
        [AS_APPROVAL_AWAITED] = "awaited", [AS_APPROVAL_REFUSED] = "refused",
        [AS_APPROVAL_USED] = "used",
    };
    return words[use];
}

const char *as_approval_event_get_word(enum as_approval_event event)
{
    static const char *const words[AS_APPROVAL_EVENT_COUNT] = {
        [AS_APPROVAL_ON_ASKED] = "asked",       [AS_APPROVAL_ON_APPROVED] = "approved",
        [AS_APPROVAL_ON_DENIED] = "denied",     [AS_APPROVAL_ON_EXPIRED] = "expired",
        [AS_APPROVAL_ON_VOID] = "void",         [AS_APPROVAL_ON_USED] = "used",
        [AS_APPROVAL_ON_RETURNED] = "returned",
    };
    return words[event];
}

const struct as_notice_row *as_notice_kind_get_row(enum as_notice_kind kind)
{
#define ROW(enumerator, ...) [enumerator] = {__VA_ARGS__},
    static const struct as_notice_row rows[AS_NOTICE_KIND_COUNT] = {
        AS_NOTICES(ROW)[AS_NOTICE_TEST] = {"test", "AlertscalerTest", "A sample, sent by hand.",
                                           false},
        [AS_NOTICE_CLUSTER_UNREACHABLE] = {"cluster_unreachable", "AlertscalerClusterUnreachable",
                                           "The API server of a cluster does not answer.", false}};
    return &rows[kind];
}

const char *as_notice_phase_get_word(enum as_notice_phase phase)
{
    static const char *const words[AS_NOTICE_PHASE_COUNT] = {
        [AS_NOTICE_EVENT] = "event", [AS_NOTICE_BEGIN] = "begin", [AS_NOTICE_END] = "end"};
    return words[phase];
}

const char *as_notice_loss_get_word(enum as_notice_loss loss)
{
    static const char *const words[AS_NOTICE_LOSS_COUNT] = {[AS_NOTICE_OVERFLOW] = "overflow",
                                                            [AS_NOTICE_TOO_OLD] = "too_old",
                                                            [AS_NOTICE_REMOVED] = "removed",
                                                            [AS_NOTICE_UNREADABLE] = "unreadable"};
    return words[loss];
}

const char *as_operator_command_kind_get_word(enum as_operator_command_kind kind)
{
    static const char *const words[AS_OPERATOR_COMMAND_KIND_COUNT] = {
        [AS_OPERATOR_COMMAND_PAUSE] = "pause",   [AS_OPERATOR_COMMAND_RESUME] = "resume",
        [AS_OPERATOR_COMMAND_SCALE] = "scale",   [AS_OPERATOR_COMMAND_FLOOR] = "floor",
        [AS_OPERATOR_COMMAND_UNLOCK] = "unlock", [AS_OPERATOR_COMMAND_APPROVE] = "approve",
        [AS_OPERATOR_COMMAND_DENY] = "deny",
    };
    return words[kind];
}

const char *as_operator_command_outcome_get_word(enum as_operator_command_outcome outcome)
{
    static const char *const words[AS_OPERATOR_COMMAND_OUTCOME_COUNT] = {
        [AS_OPERATOR_COMMAND_DONE] = "done",
        [AS_OPERATOR_COMMAND_UNKNOWN_TARGET] = "unknown_target",
        [AS_OPERATOR_COMMAND_OUT_OF_BOUNDS] = "out_of_bounds",
        [AS_OPERATOR_COMMAND_NOTHING_TO_DO] = "nothing_to_do",
        [AS_OPERATOR_COMMAND_REFUSED] = "refused",
        [AS_OPERATOR_COMMAND_UNKNOWN_REQUEST] = "unknown_request",
    };
    return words[outcome];
}

const char *as_incident_event_get_word(enum as_incident_event event)
{
    static const char *const words[] = {
        [AS_INCIDENT_OPENED] = "opened",     [AS_INCIDENT_CLOSED] = "closed",
        [AS_INCIDENT_EXPIRED] = "expired",   [AS_INCIDENT_SUPERSEDED] = "superseded",
        [AS_INCIDENT_SILENCED] = "silenced", [AS_INCIDENT_UNSILENCED] = "unsilenced",
    };
    return words[event];
}

const char *as_effect_end_get_word(enum as_effect_end end)
{
    static const char *const words[] = {
        [AS_EVALUATION_RESOLVED] = "resolved",
        [AS_EVALUATION_NOT_RESOLVED] = "not_resolved",
        [AS_EVALUATION_UNKNOWN] = "unknown",
    };
    return words[end];
}

const char *as_nodes_event_get_word(enum as_nodes_event event)
{
    static const char *const words[] = {
        [AS_NODES_MARKED] = "marked", [AS_NODES_REMOVED] = "removed", [AS_NODES_KEPT] = "kept"};
    return words[event];
}

const char *as_others_event_get_word(enum as_others_event event)
{
    static const char *const words[AS_OTHERS_EVENT_COUNT] = {[AS_OTHERS_FOUND] = "found",
                                                             [AS_OTHERS_CONTENDED] = "contended",
                                                             [AS_OTHERS_OVER] = "over"};
    return words[event];
}

const char *as_policy_event_get_word(enum as_policy_event event)
{
    static const char *const words[AS_POLICY_EVENT_COUNT] = {[AS_POLICY_IN_FORCE] = "in_force",
                                                             [AS_POLICY_REFUSED] = "refused",
                                                             [AS_POLICY_REMOVED] = "removed"};
    return words[event];
}

const char *as_record_kind_get_word(enum as_record_kind kind)
{
    static const char *const words[AS_RECORD_KIND_COUNT] = {
        [AS_RECORD_START] = "start",     [AS_RECORD_STOP] = "stop",
        [AS_RECORD_RELOAD] = "reload",   [AS_RECORD_NOTIFICATION] = "notification",
        [AS_RECORD_REPEAT] = "repeat",   [AS_RECORD_DECISION] = "decision",
        [AS_RECORD_ACTION] = "action",   [AS_RECORD_INCIDENT] = "incident",
        [AS_RECORD_COMMAND] = "command", [AS_RECORD_DENIED] = "denied",
        [AS_RECORD_NODES] = "nodes",     [AS_RECORD_NOTIFY] = "notify",
        [AS_RECORD_EFFECT] = "effect",   [AS_RECORD_OTHERS] = "others",
        [AS_RECORD_POLICY] = "policy",   [AS_RECORD_APPROVAL] = "approval",
    };
    return words[kind];
}
