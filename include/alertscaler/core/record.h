/*
 * What goes into the action log, as the engine and the app hand it over. docs/action-log.md
 * describes the fields; wire/record.h encodes them. All pointers are borrowed until the next step
 * of the engine.
 */
#ifndef ALERTSCALER_CORE_RECORD_H
#define ALERTSCALER_CORE_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/core/decide.h>
#include <alertscaler/core/incident.h>
#include <alertscaler/core/notification.h>
#include <alertscaler/core/observation.h>
#include <alertscaler/core/order.h>

/* What became of one alert of a notification. */
struct as_alert_outcome {
    bool is_queued;
    bool is_ahead;            /* dated ahead of the clock, and the first of its incident */
    enum as_reason reason;    /* where not queued */
    const char *const *rules; /* names of the rules it is bound to */
    size_t rule_count;
};

struct as_notification_record {
    const struct as_notification *notification;
    const struct as_alert_outcome *outcomes; /* one an alert, same order */
    bool is_repeat; /* each is `duplicate` or `max_steps`, and nothing comes of them */
};

/* A notification that says and does nothing that a record before does not say. How far back that
 * record is at most, by its time, in records, and in bytes of them. */
#define AS_REPEAT_REACH_US      (10 * AS_US_PER_MIN)
#define AS_REPEAT_REACH_RECORDS 10000
#define AS_REPEAT_REACH_BYTES   (UINT64_C(64) << 20)
struct as_repeat_record {
    const struct as_notification *notification;
    const char *same_as;         /* id of the record with the details */
    size_t duplicate, max_steps; /* alerts with these outcomes: all of them */
};

#define AS_RECORD_LIST_MAX 32 /* ids named in a decision's lists; more are only counted */

struct as_pause_note { /* the pause that a decision fell into */
    const char *who, *reason;
    bool is_of_all; /* targets, not of this one alone */
    bool has_until;
    as_wall_time until;
};

struct as_decision_record {
    const char *id;
    const char *target;      /* id */
    const char *target_name; /* as in the rule file */
    const struct as_target_kind *target_kind;
    const char (*notifications)[AS_ULID_SIZE]; /* came since the decision before */
    size_t notification_count;                 /* listed */
    uint64_t notification_total;
    const struct as_digest *incidents;
    size_t incident_count;
    uint64_t incident_total;
    const struct as_decide_input *input;
    const struct as_proposal_result *results;
    const struct as_decision *output;
    const char *rules_digest;
    uint64_t repeats;                  /* equal decisions since the record before */
    int64_t since_notification_us;     /* -1: none is behind it */
    int64_t since_alert_us;            /* from the startsAt of the youngest alert; -1 likewise */
    const struct as_pause_note *pause; /* NULL: not paused */
    const char *former_uid; /* the first decision about another object of the name; else NULL */
};

struct as_action_record {
    const char *id;
    const char *decision; /* id; NULL where only the observation failed, and with a command */
    const char *command;  /* id; NULL where no operator ordered it */
    const char *target, *target_name;
    const struct as_target_kind *target_kind;
    const char *rule; /* NULL likewise */
    bool has_sizes;   /* else only the observation failed */
    int32_t from, to; /* from: -1 where it was never seen */
    bool is_late;     /* not by the answer, but seen at a later look */
    enum as_reason outcome;
    int http_status;
    const char *message, *method, *path, *version;
    const char *request_id; /* the other side's name for the request; "" or NULL: none */
    unsigned attempts;
    int64_t duration_us;
    uint64_t repeats;                              /* equal failures since the record before */
    int64_t since_notification_us, since_alert_us; /* -1: unknown */
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
    bool has_replicas;
    int32_t replicas; /* when last seen */
};

struct as_incident_record {
    enum as_incident_event event;
    struct as_digest digest;
    uint64_t fingerprint;
    as_wall_time starts_at;
    as_maybe_time claimed; /* opened: the start that the sender gave, where it cannot be */
    const struct as_labels *labels;
    const char *notification; /* id; NULL where none caused it */
    const struct as_incident_target *targets;
    size_t target_count;
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
    AS_RECORD_KIND_COUNT
};
const char *as_record_kind_get_word(enum as_record_kind kind);

#endif
