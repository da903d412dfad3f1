/*
 * The engine's state as the store keeps it: incidents, targets, intents. What is kept of a target
 * is the engine's own struct too; the rows in engine/state.c say which members are stored.
 *
 * Times have both clocks: monotonic until the machine reboots, wall for after a reboot.
 *
 * Long because all that is stored stands here.
 */
#ifndef ALERTSCALER_DECIDE_INCIDENT_H
#define ALERTSCALER_DECIDE_INCIDENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/encode.h>
#include <alertscaler/base/time.h>
#include <alertscaler/decide/approval.h>
#include <alertscaler/decide/observation.h>
#include <alertscaler/decide/target.h>
#include <alertscaler/model/bounds.h>
#include <alertscaler/model/forbidden.h>
#include <alertscaler/model/labels.h>

struct as_moment { /* `mono.us` is INT64_MIN if unset */
    as_mono_time mono;
    as_wall_time wall;
};

#define AS_MOMENT_NEVER ((struct as_moment){.mono = {INT64_MIN}})

static inline bool as_moment_is_set(struct as_moment moment)
{
    return moment.mono.us != INT64_MIN;
}

/* How often a rule acted for an incident. Names, not pointers: rules may be reloaded. */
struct as_progress {
    const char *rule;
    const char *target; /* id */
    uint32_t steps;
    struct as_moment applied; /* last action */
    int32_t origin;           /* the size before the first action; -1: unknown */
};

/* What identifies an incident, also in the store. */
struct as_incident_key {
    struct as_digest digest; /* of the labels */
    const char *owner; /* "": shared by all credentials that may trigger every rule of the alert;
                          else the only credential that it belongs to */
};

struct as_incident_state {
    struct as_incident_key key;
    uint64_t fingerprint; /* by the sender who opened it: for display, never trusted */
    bool is_open;         /* false: resolved, remembered until the stale window has passed */
    as_wall_time starts_at;
    bool is_undated; /* the sender's start was ahead of the clock: it begins on arrival */
    struct as_moment opened, seen, resolved;
    struct as_moment silenced;    /* open, and suppressed in Alertmanager since then */
    const char *const *receivers; /* that sent it, in order of arrival */
    size_t receiver_count;
    const char *const *credentials; /* that sent it, in order; "": no credential, trusted */
    size_t credential_count;
    const struct as_labels *labels;
    const struct as_labels *annotations;
    const char *generator_url, *external_url; /* the first of a notification; NULL: none yet */
    const struct as_progress *progress;       /* only of rules that need it */
    size_t progress_count;
};

struct as_past_event { /* a size change by us */
    struct as_moment at;
    int32_t change;
};
struct as_past_recommendation {
    struct as_moment at;
    int32_t replicas;
};

/* What a rule still has to do on a target after an incident was resolved. */
struct as_ending_state {
    const char *rule;
    const char *incident; /* its digest, as text; of earlier versions' incidents the fingerprint */
    struct as_moment ended;
    int32_t origin; /* give_back: the size to return to */
    int32_t peak;   /* give_back: the size at the end of the incident; -1: unknown */
    int32_t last; /* the last size that we set or saw (-1: unknown); if it differs, someone else has
                     changed it */
    struct as_moment applied; /* its last step; unset: no step yet */
    const char *guard;        /* the PromQL of the rule's guard, filled in; "": no guard */
};

/*
 * Members that a comment calls "in memory" have no row. The engine owns the texts; in events and
 * effects they are borrowed.
 */

/* Since when a rule with `fallback` lacks its value. */
struct as_metric_gap_state {
    const char *rule;
    struct as_moment since;
};

/* A pause that an operator ordered, or the kill switch. */
struct as_pause_state {
    struct as_moment since;
    int64_t for_us;    /* 0: until resumed */
    enum as_ways ways; /* stored: NONE is both, as in earlier versions */
    const char *who, *reason;
    bool is_set; /* in memory */
};

/* A floor that an operator ordered. */
struct as_floor_state {
    int32_t size; /* 0: none */
    struct as_moment since;
    int64_t for_us;
    const char *who, *reason;
};

/* The size that schedules have set on a target (docs/schedules.md#the-end-of-a-schedule). */
struct as_schedule_size_state {
    const char *schedule; /* has set it */
    enum as_schedule_end at_end;
    bool is_zero; /* by `max: 0`; then `at_end` has no meaning */
    bool is_void; /* something else has set a size since: nothing goes, and nothing returns */
    int32_t before, size; /* before the first of the schedules, and the size that they have set */
    const char *version;  /* of the object before it had this size; "": it has none */
    bool is_set;          /* in memory */
};

/* A rollout that is under way. */
struct as_rollout_state {
    struct as_moment since;          /* when it was first seen */
    char revision[AS_REVISION_SIZE]; /* as in as_rollout_seen */
};

/* A size ordered by an operator and not set yet. */
struct as_ordered_state {
    char id[AS_ULID_SIZE]; /* of the command's record */
    int32_t replicas;
    bool force;
    struct as_moment at;
    const char *sender; /* the narrowed credential that ordered it; NULL: one that is not narrowed.
                           Of a target: on the heap */
    bool is_set;        /* in memory, as the rest: */
    bool is_stopped;    /* by the kill switch, while its request is under way */
};

/* The last increase, until all of it has arrived, and the result of earlier increases. */
struct as_scaleup_state {
    char id[AS_ULID_SIZE]; /* of the decision, or the command (is_ordered) */
    bool is_open;
    bool is_ordered; /* by an operator */
    bool is_refused; /* the provider lacks capacity */
    int32_t from, to;
    int32_t missing; /* instances, or pods, that did not serve before it */
    struct as_moment since;
    struct as_moment failed; /* when an increase last failed; unset: never, or one arrived since */
    int64_t back_off_us;     /* after `failed` */
    bool did_not_come;       /* of a workload: not in time, with `ready` pods */
    int32_t ready;
    int32_t surplus;      /* of a pool's group: nodes of increases in doubt that were accepted */
    int32_t surplus_from; /* the size without them */
    struct as_moment surplus_since;
    int32_t unregistered; /* in memory: nodes for which it has backed off */
};

/* An action of an alert whose effect is not known yet (docs/decision.md#did-it-help). */
struct as_evaluation_state {
    const char *action_id, *decision_id, *rule;
    int32_t from, to;
    int32_t missing;               /* not ready before it, and not waited for */
    struct as_moment at;           /* of the decision */
    struct as_moment applied;      /* when the size was set */
    bool awaits_ready;             /* it is an increase, and the number that is ready is known */
    int64_t ready_us, resolved_us; /* after `applied`; -1: not yet */
};

/* How a rule's last actions on a target went. */
struct as_rule_effect_state {
    const char *rule;
    uint32_t in_vain;      /* in a row that did not help */
    struct as_moment held; /* when it was found ineffective; unset: not */
};

/* A size is set back if it is found changed towards the size before ours, so soon after ours. */
#define AS_REVERTED_WITHIN_US (10 * AS_US_PER_MIN)
/* So many within this span are contention: then the target is left alone for as long. */
#define AS_REVERTED_CHANGES_MAX 3
#define AS_CONTENDED_US         AS_US_PER_H

/* The size that we set last, as long as it may still be set back. */
struct as_own_size {
    int32_t from, to;
    struct as_moment at;
    const char *version; /* of the object before the change; "": it has none */
};

struct as_reverted_change {
    struct as_moment at;     /* when it was found */
    int32_t from, to, found; /* we set `from` to `to`, and found this */
    const char *by; /* the manager of the size in the object's managedFields; "": not known */
};

struct as_resize_state {   /* of a container's resource: its last change */
    char id[AS_ULID_SIZE]; /* of the decision, or the command (is_ordered) */
    bool is_open;          /* its rollout has not ended */
    bool is_late;          /* and did not in time: the size before it is put back */
    bool is_ordered;       /* by an operator */
    bool is_above;         /* of pods: `to` is above the template's, which later pods have */
    int32_t from, to;
    bool is_set;            /* in memory, as the rest: */
    int32_t updated;        /* pods of the rollout, */
    struct as_moment moved; /* and when they last became others */
    /* Of pods: when the newest one was made that a resize may have reached, and the resize that is
     * due is only for pods made after this (unset: for all). */
    as_maybe_time newest, later_than;
};

/* A request for an approval, until it is used, or its rule may ask again. */
struct as_approval_state {
    const char *id;       /* what people name it by */
    const char *decision; /* id of the decision that asked */
    const char *rule, *incident;
    const char *uid;         /* of the object; "": it has none */
    struct as_digest digest; /* of the rule */
    bool is_up;
    int32_t from, to; /* sizes at the decision, as shown */
    int64_t for_us;   /* of the rule */
    enum as_approval_answer answer;
    struct as_moment asked, answered; /* answered: unset while it waits */
    const char *who;                  /* answered it; "": nobody */
};

/* A step that a rule with an approval has made without one. */
struct as_free_step {
    const char *rule;
    int32_t change;
    struct as_moment at;
};

/* When the locks of a target began. Members are moments only: of two spellings of a target each
 * later one counts. */
struct as_lock_state {
    struct as_moment last_up, last_down;         /* successful actions */
    struct as_moment dry_last_up, dry_last_down; /* the same in dry runs, as if applied */
    struct as_moment last_step_down;             /* our decreases */
    struct as_moment last_return;                /* nodes that were to leave came back */
};

struct as_target_state {
    const char *id, *stored_as;      /* stored_as: the store's key, in earlier versions the id */
    const struct as_target_ref *ref; /* NULL: not needed before an alert gives the address */
    const char *entry;               /* the target's name in the rule files; "" if ref is NULL */
    struct as_lock_state locks;
    const char *uid;       /* of the present object; "": unknown, or it has none */
    struct as_moment born; /* when it was first seen in place of another object; else unset */
    int64_t keep_us;       /* how long the locks may matter after the last of them */
    const struct as_past_event *events; /* ascending by time */
    size_t event_count;
    const struct as_past_recommendation *recommendations; /* ascending by time */
    size_t recommendation_count;
    const struct as_ending_state *endings;
    size_t ending_count;
    const struct as_metric_gap_state *metric_gaps;
    size_t metric_gap_count;
    const struct as_pause_state *pause;                 /* NULL: not paused */
    const struct as_floor_state *floor;                 /* NULL: none */
    const struct as_schedule_size_state *schedule_size; /* NULL: none */
    const struct as_rollout_state *rollout;             /* NULL: none is under way */
    const struct as_ordered_state *ordered;             /* NULL: none */
    const struct as_scaleup_state *scaleup;             /* NULL: nothing to remember */
    const struct as_resize_state *resize;               /* NULL: nothing to remember */
    const struct as_asked *asked; /* of a pool: pod classes that groups were asked for */
    size_t asked_count;
    const char *template_;                         /* as in as_nodes_seen; NULL: none */
    const struct as_evaluation_state *evaluations; /* ascending by `applied` */
    size_t evaluation_count;
    const struct as_rule_effect_state *rule_effects;
    size_t rule_effect_count;
    const struct as_own_size *own_size;                /* NULL: none that may be set back */
    const struct as_reverted_change *reverted_changes; /* of the last hour, or of the contention */
    size_t reverted_change_count;
    struct as_moment contended; /* left alone since then; unset: not contended */
    const struct as_approval_state *approvals;
    size_t approval_count;
    const struct as_free_step *free_steps; /* ascending by time */
    size_t free_step_count;
};

/* Stored before a size is set, removed when the outcome is known. */
struct as_intent_state {
    const struct as_target_ref *ref;
    const char *stored_as, *uid; /* as in as_target_state */
    char action_id[AS_ULID_SIZE], decision_id[AS_ULID_SIZE];
    bool is_ordered;  /* by an operator: decision_id is the command's */
    bool is_of_alert; /* of an open incident: its effect is followed */
    const char *rule; /* the winner's name */
    int32_t from, to;
    char version[AS_VERSION_SIZE];
    struct as_moment at;
    bool in_doubt;               /* sent, but the answer left open whether it was carried out */
    enum as_reason outcome;      /* if maybe */
    char approval[AS_ULID_SIZE]; /* id of the request that it used; "": none */
    bool marks_nodes;            /* its request marks nodes; not stored */
};

#endif
