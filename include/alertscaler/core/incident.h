/*
 * What the engine remembers, as the store keeps it: incidents, targets' locks, intents. These are
 * views for the codec of wire/state.h; the engine's own structures are private to it.
 *
 * Times come in both clocks: monotonic for as long as the machine runs, wall for a later boot.
 */
#ifndef ALERTSCALER_CORE_INCIDENT_H
#define ALERTSCALER_CORE_INCIDENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/digest.h>
#include <alertscaler/base/time.h>
#include <alertscaler/core/labels.h>
#include <alertscaler/core/observation.h>
#include <alertscaler/core/target.h>

struct as_moment { /* `mono.us` is INT64_MIN where it never was */
    as_mono_time mono;
    as_wall_time wall;
};

#define AS_MOMENT_NEVER ((struct as_moment){.mono = {INT64_MIN}})

static inline bool as_moment_is_set(struct as_moment moment)
{
    return moment.mono.us != INT64_MIN;
}

/* How often a rule acted for an incident, kept by the names because rules may be reloaded. */
struct as_progress {
    const char *rule;
    const char *target; /* id */
    uint32_t steps;
    struct as_moment applied; /* last action */
    int32_t origin;           /* the size before the first action; -1: not known */
};

/* What tells incidents apart, and where the store has them. */
struct as_incident_key {
    struct as_digest digest; /* of the labels */
    const char *owner;       /* "": of all who may trigger every rule of the alert; else the
                                credential whose own it is, as some of these are beyond it */
    bool has_former;         /* it is kept as earlier versions did: by the sender's fingerprint */
    uint64_t former;
};

struct as_incident_state {
    struct as_incident_key key;
    uint64_t fingerprint; /* as the sender who opened it says: shown, never trusted */
    bool is_open;         /* else resolved, remembered until the stale window has passed */
    as_wall_time starts_at;
    bool is_undated; /* its sender dated it ahead of the clock: it counts as begun when it came */
    struct as_moment opened, seen, resolved;
    struct as_moment silenced;    /* open, and since then kept from being sent by Alertmanager */
    const char *const *receivers; /* through which it came, in that order */
    size_t receiver_count;
    const char *const *credentials; /* likewise; "": nobody's, and trusted */
    size_t credential_count;
    const struct as_labels *labels;
    const struct as_labels *annotations;
    const struct as_progress *progress; /* only of rules for which it matters */
    size_t progress_count;
};

struct as_past_event { /* a change of the size by us */
    struct as_moment at;
    int32_t change;
};

struct as_past_recommendation {
    struct as_moment at;
    int32_t replicas;
};

/* What a rule still has to do on a target because an incident was resolved. */
struct as_ending_state {
    const char *rule;
    const char *incident; /* its digest, as text; of earlier versions' incidents the fingerprint */
    struct as_moment ended;
    int32_t origin; /* give_back: the size to return to */
    int32_t peak;   /* give_back: the size when it ended; -1: not known yet */
    int32_t last;   /* the size as we last left or saw it; another one means someone else's hand;
                       -1: not known yet */
    struct as_moment applied; /* its last step; unset: none so far */
    const char *guard; /* the PromQL of the rule's guard, filled in; "" where there is none */
};

/* A pause that an operator ordered. */
struct as_pause_state {
    struct as_moment since;
    int64_t for_us; /* 0: until it is resumed */
    const char *who, *reason;
};

/* A size that an operator ordered, and that is not set yet. */
struct as_ordered_state {
    const char *id; /* of the command's record */
    int32_t replicas;
    bool force;
    struct as_moment at;
};

/* An increase of a node group that has not come yet, and what came of earlier ones. */
struct as_growth_state {
    const char *id; /* of the decision, or the command (is_ordered) */
    bool is_open, is_ordered, is_refused;
    int32_t from, to, missing;
    struct as_moment since, failed; /* failed: unset where none did */
    int64_t back_off_us;
};

struct as_target_state {
    const char *id, *stored_as;      /* the latter: the store's key, of earlier versions the id */
    const struct as_target_ref *ref; /* NULL: no endings, nothing ordered, no growth open */
    const char *entry;               /* the target's name in the rule files; "" likewise */
    struct as_moment last_up, last_down;         /* successful actions */
    struct as_moment dry_last_up, dry_last_down; /* the same as if, in dry runs */
    struct as_moment last_step_down;             /* our last decrease, also when its lock is gone */
    const char *uid;       /* of the object that this is about; "": not known, or it has none */
    struct as_moment born; /* when it was first seen in the place of another; else unset */
    int64_t keep_us;       /* how long after the last of them the locks may matter */
    const struct as_past_event *events; /* ascending by time */
    size_t event_count;
    const struct as_past_recommendation *recommendations; /* ascending by time */
    size_t recommendation_count;
    const struct as_ending_state *endings;
    size_t ending_count;
    const struct as_pause_state *pause;     /* NULL: not paused */
    const struct as_ordered_state *ordered; /* NULL: nothing is */
    const struct as_growth_state *growth;   /* NULL: nothing is to be known of it */
};

/* Written before a size is set, removed when the outcome is known. */
struct as_intent_state {
    const struct as_target_ref *ref;
    const char *stored_as, *uid; /* as in as_target_state */
    const char *action_id, *decision_id;
    bool is_ordered;  /* by an operator: the decision's id is that of the command */
    const char *rule; /* the winner's name */
    int32_t from, to;
    char version[AS_VERSION_SIZE];
    struct as_moment at;
    bool maybe;             /* sent, and the answer left open whether it was carried out */
    enum as_reason outcome; /* where maybe */
};

#endif
