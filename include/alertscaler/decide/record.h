/*
 * Records of the action log, as the engine and the app hand them over. docs/action-log.md describes
 * the fields; log/record.h encodes them. All pointers are borrowed until the next step of the
 * engine.
 *
 * Long because all records stand together.
 */
#ifndef ALERTSCALER_DECIDE_RECORD_H
#define ALERTSCALER_DECIDE_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/decide/decide.h>
#include <alertscaler/decide/incident.h>
#include <alertscaler/decide/notice.h>
#include <alertscaler/decide/notification.h>
#include <alertscaler/decide/observation.h>
#include <alertscaler/decide/operator_command.h>

/* The outcome of one alert of a notification. */
struct as_alert_outcome {
    bool is_queued;
    bool is_ahead;            /* its start is ahead of the clock, and it opens its incident */
    bool is_watchdog;         /* no rule matches the alert, and no rule has to: not in the log */
    enum as_reason reason;    /* if not queued */
    const char *const *rules; /* names of the rules that it is bound to */
    size_t rule_count;
};

struct as_notification_record {
    const struct as_notification *notification;
    const struct as_alert_outcome *outcomes; /* one per alert, same order */
    bool is_repeat; /* every outcome is `duplicate` or `max_steps`, without consequences */
};

/* A notification that only repeats an earlier record. Limits for the distance to that record: time,
 * records, and bytes. */
#define AS_REPEAT_REACH_US      (10 * AS_US_PER_MIN)
#define AS_REPEAT_REACH_RECORDS 10000
#define AS_REPEAT_REACH_BYTES   (UINT64_C(64) << 20)
struct as_repeat_record {
    const struct as_notification *notification;
    const char *same_as;           /* id of the record that has the details */
    uint64_t duplicate, max_steps; /* alerts with this outcome: together all alerts */
};

#define AS_RECORD_LIST_MAX 32 /* ids listed in a decision; more are only counted */

/* One object that sizes the target too. */
struct as_other {
    const char *kind; /* "HorizontalPodAutoscaler" or "ScaledObject" */
    const char *name; /* in the target's namespace */
    int32_t min, max; /* its bounds; -1: not said */
    bool is_paused;   /* a ScaledObject: it sets no size, or only the one that both bounds are */
};
#define AS_OTHERS_MAX 16 /* named of one target */

enum as_others_event {
    AS_OTHERS_FOUND,     /* who aims at the target, whenever that has changed */
    AS_OTHERS_CONTENDED, /* the target is left alone from now on */
    AS_OTHERS_OVER,      /* no longer */
    AS_OTHERS_EVENT_COUNT
};
const char *as_others_event_get_word(enum as_others_event event);

struct as_others_found {
    const struct as_other *items;
    size_t count; /* 0: no other object sizes the target any more */
};

/* A contention: at its beginning, and in force at a decision. */
struct as_contended_note {
    const struct as_reverted_change *reverted_changes;
    size_t reverted_change_count;
    as_wall_time until;
};

struct as_others_record { /* in the action log: kind `others` */
    enum as_others_event event;
    const char *target;                        /* id */
    const char *target_name;                   /* as in the rule file; "": no rule leads to it */
    const struct as_others_found *found;       /* found; else NULL */
    const struct as_contended_note *contended; /* contended; else NULL */
    const char *message;                       /* over: why; else NULL */
};

enum as_policy_event {
    AS_POLICY_IN_FORCE, /* it came, or it has changed */
    AS_POLICY_REFUSED,  /* its present generation is not in force */
    AS_POLICY_REMOVED,
    AS_POLICY_EVENT_COUNT
};
const char *as_policy_event_get_word(enum as_policy_event event);

struct as_policy_record { /* in the action log: kind `policy` */
    enum as_policy_event event;
    const char *namespace, *name, *uid;
    int64_t generation;
    const char *reason;  /* of its condition `Ready`; NULL: removed */
    const char *message; /* refused: why; else NULL */
    const char *spec;    /* JSON; NULL: of a generation from before the start, or removed */
};

struct as_pause_note { /* the pause in force at a decision */
    enum as_ways ways;
    const char *who, *reason;
    bool is_of_all; /* of all targets, not only this target's */
    as_maybe_time until;
};

struct as_proof_note {      /* the missing proof, if the decision is `guarded` */
    const char *state;      /* AS_STATE_REASON of the alert; NULL: it has none */
    const char *query;      /* of the rule's guard; NULL: the watchdog is the proof */
    as_maybe_time reported; /* watchdog: the last report; unset: none since the start */
    int64_t every_us;       /* watchdog: between its last reports; -1: not known */
};

struct as_give_back_note { /* a step of `give_back` */
    const char *incident;  /* its digest */
    uint32_t step, steps;
    int32_t added, amount; /* by the incident; to be given back in this step */
};

struct as_decision_record {
    const char *id;
    const char *target;      /* id */
    const char *target_name; /* as in the rule file */
    const struct as_target_kind *target_kind;
    const char *unit;                          /* that sizes count (decide/sized.h); "": none */
    const char (*notifications)[AS_ULID_SIZE]; /* since the previous decision */
    size_t notification_count;                 /* listed */
    uint64_t notification_total;
    const struct as_digest *incidents;
    size_t incident_count;
    uint64_t incident_total;
    const struct as_decide_input *input;
    const struct as_proposal_result *results;
    const struct as_decision *output;
    const char *rules_digest;
    uint64_t repeats;                          /* equal decisions since the previous record */
    int64_t since_notification_us;             /* -1: none caused it */
    int64_t since_alert_us;                    /* since the latest startsAt; -1: no alert */
    const struct as_pause_note *pause;         /* NULL: not paused */
    const struct as_contended_note *contended; /* NULL: not contended */
    const struct as_proof_note *proof;         /* NULL: none is missing */
    const struct as_give_back_note *give_back; /* NULL: the winner gives nothing back */
    const char *pool_decision; /* id of the pool's decision that it carries out; or NULL */
    const char *waits_for;     /* name of the target that holds the decrease, by `after`; or NULL */
    const char *former_uid; /* the old UID, at the first decision about a new object; else NULL */
};

struct as_action_record {
    const char *id;
    const char *decision; /* id; NULL if only the observation failed, and for a command */
    const char *command;  /* id; NULL: not ordered by an operator */
    const char *sender;   /* narrowed credential of the command; NULL: none; not recorded */
    const char *target, *target_name;
    const struct as_target_kind *target_kind;
    const char *unit; /* that sizes count (decide/sized.h); "": none */
    const char *rule; /* NULL: none */
    int32_t from, to; /* from: -1 if never seen; to: -1 if only the observation failed */
    bool is_late;     /* learned from a later observation, not from the answer */
    enum as_reason outcome;
    int http_status;
    const char *message, *method, *path, *version;
    const char *request_id; /* the other side's id for the request; "" or NULL: none */
    unsigned attempts;
    uint32_t tries;         /* failures of the target in a row, with this one; 0: no failure */
    as_maybe_time next_try; /* of a failure; unset: at once, or never */
    int64_t duration_us;
    uint64_t repeats;                              /* equal failures since the previous record */
    int64_t since_notification_us, since_alert_us; /* -1: unknown */
    const char *approval; /* id of the request that it rests on; NULL: none */
};

/* What became of an action: record kind `effect`. */
enum as_effect_end {
    AS_EVALUATION_RESOLVED,
    AS_EVALUATION_NOT_RESOLVED, /* not within AS_EVALUATION_US */
    AS_EVALUATION_UNKNOWN       /* cannot be known: docs/action-log.md says when */
};
#define AS_EVALUATION_US AS_US_PER_H
const char *as_effect_end_get_word(enum as_effect_end end);

struct as_effect_record {
    const char *action, *decision; /* ids */
    const char *target, *target_name, *rule;
    int32_t from, to;
    int64_t ready_us, resolved_us; /* after the action; -1: not, or not known */
    enum as_effect_end end;
    uint32_t
        in_vain;  /* actions of the rule in a row that did not help; 0 without ineffective_after */
    bool is_held; /* from now on the rule is ineffective */
    as_wall_time until; /* if is_held */
};

enum as_incident_event {
    AS_INCIDENT_OPENED,
    AS_INCIDENT_CLOSED,
    AS_INCIDENT_EXPIRED,
    AS_INCIDENT_SUPERSEDED,
    AS_INCIDENT_SILENCED,
    AS_INCIDENT_UNSILENCED
};
const char *as_incident_event_get_word(enum as_incident_event event);

struct as_incident_target {
    const char *target; /* id */
    const char *rule;
    int32_t replicas; /* when last seen; -1: never seen */
};

struct as_incident_record {
    enum as_incident_event event;
    struct as_digest digest;
    uint64_t fingerprint;
    as_wall_time starts_at;
    as_maybe_time claimed; /* opened: the sender's start, if it cannot be true */
    const char *state;     /* closed: its AS_STATE_REASON; NULL: it has none */
    const struct as_labels *labels;
    const char *notification; /* id; NULL: not caused by one */
    const struct as_incident_target *targets;
    size_t target_count;
    const struct as_incident_state
        *incident; /* as it is remembered; NULL: not known; not recorded */
};

struct as_approval_record {
    enum as_approval_event event;
    const struct as_approval_state *request;
    const char *target, *target_name;
    const char *unit; /* of the sizes; "": none */
    const struct as_target_kind *target_kind;
    as_maybe_time until; /* asked, approved, returned: its end */
    const char *command; /* approved, denied: id of the order's record; else NULL */
    const char *action;  /* used, returned: id of the action's record; NULL: of a pool */
    const char *message; /* why; "" */
};

enum as_record_kind {
    AS_RECORD_START,
    AS_RECORD_STOP,
    AS_RECORD_RELOAD,
    AS_RECORD_NOTIFICATION,
    AS_RECORD_REPEAT,
    AS_RECORD_DECISION,
    AS_RECORD_ACTION,
    AS_RECORD_INCIDENT,
    AS_RECORD_COMMAND,
    AS_RECORD_DENIED,
    AS_RECORD_NODES,
    AS_RECORD_NOTIFY,
    AS_RECORD_EFFECT,
    AS_RECORD_OTHERS,
    AS_RECORD_APPROVAL,
    AS_RECORD_POLICY,
    AS_RECORD_KIND_COUNT
};
const char *as_record_kind_get_word(enum as_record_kind kind);

/*
 * The record of the action log about nodes that leave their group. Pointers are borrowed for the
 * call.
 */

/* What happened to nodes of a group that were chosen to leave. */
enum as_nodes_event {
    AS_NODES_MARKED,  /* cordoned and marked: they count no more */
    AS_NODES_REMOVED, /* their instances are gone */
    AS_NODES_KEPT     /* they are back in service, or another process has marked them */
};
const char *as_nodes_event_get_word(enum as_nodes_event event);

#define AS_RECORD_NODES_MAX 100 /* in one record; more are several records */

struct as_nodes_record {
    enum as_nodes_event event;
    const char *target;       /* id */
    const char *target_name;  /* as in the rule file; "": unknown */
    const char *decision;     /* id of the decision or command that chose them; "": unknown */
    const char *const *nodes; /* names; of an instance without a node its id */
    size_t node_count;
    const char *message; /* why; "": none */
};

#endif
