/*
 * The words of the action log's records.
 */
#include <alertscaler/decide/record.h>

const char *as_incident_event_get_word(enum as_incident_event event)
{
    static const char *const words[] = {
        [AS_INCIDENT_OPENED] = "opened",     [AS_INCIDENT_CLOSED] = "closed",
        [AS_INCIDENT_EXPIRED] = "expired",   [AS_INCIDENT_SUPERSEDED] = "superseded",
        [AS_INCIDENT_SILENCED] = "silenced", [AS_INCIDENT_UNSILENCED] = "unsilenced",
    };
    return words[event];
}

const char *as_follow_end_get_word(enum as_follow_end end)
{
    static const char *const words[] = {
        [AS_FOLLOW_RESOLVED] = "resolved",
        [AS_FOLLOW_NOT_RESOLVED] = "not_resolved",
        [AS_FOLLOW_UNKNOWN] = "unknown",
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

const char *as_record_kind_get_word(enum as_record_kind kind)
{
    static const char *const words[AS_RECORD_KIND_COUNT] = {
        [AS_RECORD_START] = "start",       [AS_RECORD_STOP] = "stop",
        [AS_RECORD_RELOAD] = "reload",     [AS_RECORD_NOTIFICATION] = "notification",
        [AS_RECORD_REPEAT] = "repeat",     [AS_RECORD_DECISION] = "decision",
        [AS_RECORD_ACTION] = "action",     [AS_RECORD_INCIDENT] = "incident",
        [AS_RECORD_COMMAND] = "command",   [AS_RECORD_DENIED] = "denied",
        [AS_RECORD_NODES] = "nodes",       [AS_RECORD_NOTIFY] = "notify",
        [AS_RECORD_EFFECT] = "effect",     [AS_RECORD_OTHERS] = "others",
        [AS_RECORD_APPROVAL] = "approval",
    };
    return words[kind];
}
