/*
 * The engine's state: the structs that its modules share. docs/architecture.md lists the modules,
 * and which module may use which.
 *
 * Long because target, incident and engine are read as one.
 */
#ifndef ALERTSCALER_SRC_ENGINE_ENGINE_STATE_H
#define ALERTSCALER_SRC_ENGINE_ENGINE_STATE_H

#include <stdlib.h>

#include <bsd/sys/queue.h>
#include <bsd/sys/tree.h>
#define uthash_fatal(msg) abort() /* as for each small allocation of ours */
#include <uthash.h>

#include <alertscaler/base/arena.h>
#include <alertscaler/base/random.h>
#include <alertscaler/base/shares.h>
#include <alertscaler/decide/ruleset.h>
#include <alertscaler/engine/engine.h>
#include <alertscaler/engine/state.h>

TAILQ_HEAD(evaluation_list, evaluation); /* engine_evaluations.c */
TAILQ_HEAD(turn_list, turn);             /* engine_limits.c */
TAILQ_HEAD(after_list, after);           /* engine_after.c */
TAILQ_HEAD(pool_list, pool);             /* engine_pools.h */
TAILQ_HEAD(backing_list, backing);       /* engine_aliases.c */
TAILQ_HEAD(paused_list, paused);         /* engine_pauses.c */
#define OTHER_GENERATION UINT64_MAX      /* the target's rules have changed since */

struct group;
struct request;
struct target;

/* How long a request whose answer was lost may still be carried out by the other side. */
#define IN_DOUBT_US (90 * AS_US_PER_S)
/* A start further ahead of the clock is ignored: the time of arrival counts, until a valid start
 * comes. Clocks are wrong by less. */
#define CLOCK_OFF_US (5 * AS_US_PER_MIN)

struct binding { /* one open incident, one rule that matches it, one target */
    TAILQ_ENTRY(binding) in_group;
    struct incident *incident;
    struct group *group;
    uint32_t steps;
    struct as_moment applied;
    int32_t origin; /* the size before the first step; -1: unknown */
};
TAILQ_HEAD(binding_list, binding);

struct group { /* the open incidents of one rule on one target */
    RB_ENTRY(group) in_target;
    struct target *target;
    const struct as_rule *rule;
    struct binding_list bindings; /* by the serials of their incidents */
    size_t count;
    bool wants_up;  /* in the last decision */
    bool has_value; /* in the last decision */
    double value;   /* as in struct as_rule_view */
    bool has_size;  /* in the last decision */
    int32_t size;   /* as `desired` in struct as_rule_view */
    enum as_reason reason;
    struct as_moment missing_since;
};
RB_HEAD(group_tree, group);

struct incident {
    RB_ENTRY(incident) by_digest;   /* and owner */
    char *always;                   /* name of the `always` rule whose incident it is; else NULL */
    struct as_incident_state state; /* owns its texts, lists and labels; placed beside what searches
                                       read. The progress is that of its bindings, and `kept`. */
    TAILQ_ENTRY(incident) in_order; /* of open ones by `seen`, of resolved ones by `resolved` */
    uint64_t serial;                /* in order of opening */
    as_mono_time seen_stored;
    size_t bytes;            /* as last counted */
    struct as_share *share;  /* of the narrowed credential that alone has sent it */
    size_t charged;          /* to the share */
    as_mono_time *reported;  /* of each credential: its last report since the start; INT64_MIN */
    as_mono_time listed;     /* request time of the last list that gave `updated_at`; INT64_MIN */
    as_wall_time updated_at; /* by Alertmanager's clock, the latest */
    as_mono_time late_until; /* until then a firing notification may be older than the silence */
    uint64_t seen_call_id;   /* lists with later call ids were requested after it was last seen */
    unsigned missed;         /* later lists in a row that did not name it */
    struct binding *bindings;
    uint32_t binding_count;
    struct as_progress *kept; /* progress of rules that it is not bound to (now) */
    uint32_t kept_count;
};
RB_HEAD(incident_tree, incident);
TAILQ_HEAD(incident_list, incident);

struct ask { /* a query for one target's next decision */
    RB_ENTRY(ask) by_call_id;
    TAILQ_ENTRY(ask) in_target;
    struct target *target;
    const struct as_rule *rule; /* that asked first; NULL: not of the present rules */
    uint64_t call_id;
    struct as_query query;
    bool is_answered;
    struct as_query_result result;
    struct as_arena arena; /* of its texts and samples */
};
RB_HEAD(ask_tree, ask);
TAILQ_HEAD(ask_list, ask);

struct held { /* an observation that waits for answers to queries */
    struct as_observation observation;
    struct as_arena arena;
};

enum phase {
    PHASE_IDLE,
    PHASE_OBSERVING,
    PHASE_SAMPLING, /* observed; waiting for answers to queries */
    PHASE_INTENT,   /* waiting for its commit */
    PHASE_SCALING,  /* waiting for the answer */
    PHASE_OUTCOME   /* waiting for its commit */
};

struct intent {
    struct as_intent_state state; /* owns its rule; what is said of the target is set when it is
                                     stored, and so is whether it is in doubt */
    bool is_narrowed;             /* ordered by the target's `sender` */
    bool is_clean_up;             /* of instances that never became nodes */
    bool is_resolved;             /* the incident was resolved since */
    as_mono_time sent, until;
    uint64_t serial;     /* of the newest incident at the decision */
    uint64_t generation; /* of the rules at the decision, or OTHER_GENERATION */
    bool restored;       /* from the store: outcome unknown */
    char **take;         /* names of the nodes that leave */
    size_t take_count;
    struct request *used;     /* the approved request, until the outcome is known */
    as_maybe_time later_than; /* of the scale request */
    bool is_revoked;          /* the kill switch was set since: `used` does not come back */
};

struct asked { /* what the next decision answers: notifications since the last one */
    char (*ids)[AS_ULID_SIZE];
    size_t count, capacity;
    uint64_t total, recorded; /* recorded: in a record of a failed observation */
    char last[AS_ULID_SIZE];
    as_mono_time first;    /* arrival of the oldest */
    as_wall_time youngest; /* the latest startsAt */
};

struct origin { /* the cause of the change under way, over retries */
    bool set;
    as_mono_time notified;
    as_wall_time alert; /* startsAt */
};

struct verdict { /* what makes a decision differ from the last one */
    bool set;
    char id[AS_ULID_SIZE];
    enum as_direction direction;
    int32_t replicas, desired, would;
    enum as_reason reason;
    int32_t overdue;
    uint64_t nodes; /* digest of the unneeded nodes, and of how many nodes stay by reason */
    char *rule;
    char *holder; /* if the reason is HELD; or NULL */
    uint64_t repeats;
};

/* For limits over all targets. */
struct spent {
    as_mono_time at;
    int64_t amount;
};
struct window {
    struct spent *items; /* ascending by time */
    size_t count, capacity;
    int64_t total;
};
struct target {
    RB_ENTRY(target) by_id, by_deadline, by_call_id;
    TAILQ_ENTRY(target) in_gone, in_ready;
    as_mono_time deadline;
    uint64_t call_id;
    enum phase phase;
    struct as_target_ref *ref;
    const struct as_target_config *config; /* NULL: no rule uses it */
    struct group_tree groups;
    size_t open_bindings;
    uint64_t generation;           /* of the rules in its present evaluation */
    struct as_digest entry_digest; /* of its entry at the begin of that evaluation */
    unsigned pins;                 /* waiters that point here */
    bool dirty;                    /* something happened since the last decision */
    bool is_ready;                 /* in the engine's ready list */
    bool has_size;
    int32_t replicas, status_replicas, desired;
    int32_t ready; /* of `replicas`, as last seen; -1: not known */
    struct as_moment observed;
    struct as_lock_state locks;
    int64_t keep_us;
    bool is_stored;               /* the store has a record of it */
    char uid[AS_UID_SIZE];        /* of the present object; "": unknown */
    char former_uid[AS_UID_SIZE]; /* of its predecessor, which does not come back */
    struct as_moment born;        /* when it was first seen in place of another */
    bool is_unreported;           /* no decision record says so yet */
    struct ask_list asks;
    size_t ask_count, asks_open;
    bool with_pods, with_owners, with_nodes, with_snapshot; /* they are requested with the size */
    struct held *held;
    char *sender; /* narrowed credential, as last found, or of an order; NULL: none */
    char *entry;  /* the target's name in the rule files when an incident ended or an order came; or
                     NULL */
    struct intent *intent;   /* being carried out */
    struct intent *in_doubt; /* answer lost: may still be carried out */
    unsigned failures, conflicts;
    as_mono_time failed;            /* the last time */
    struct as_moment failing_since; /* the first failure in a row */
    as_mono_time retry;             /* no new try before then */
    enum as_reason failure;
    uint64_t failure_repeats;
    bool names_instances, is_relative; /* as last observed */
    struct asked asked;
    struct origin origin;
    struct verdict verdict, dry_verdict;
    char last_decision[AS_ULID_SIZE];
    as_wall_time decided_at;
    LIST_ENTRY(target) of_entry; /* with a config: all its targets */
    void *parts[]; /* the states of the concerns, by enum concern_id; NULL: no state */
};
RB_HEAD(target_tree, target);
TAILQ_HEAD(target_list, target);
LIST_HEAD(member_list, target);

struct target_array {
    struct target **items;
    size_t count;
};

/* The targets of an entry of the rule set. */
struct entry_members {
    const struct as_target_config *config;
    struct member_list list;
    UT_hash_handle hh;
};
RB_HEAD(deadline_tree, target);
RB_HEAD(call_id_tree, target);

struct budget {                                 /* over all targets */
    struct window begun;                        /* actions */
    struct window removed[AS_TARGET_KINDS_MAX]; /* replicas, when removed */
    int64_t removing[AS_TARGET_KINDS_MAX];      /* sum over the targets */
    int64_t managed[AS_TARGET_KINDS_MAX];       /* sum over the targets */
    struct turn_list waiting;                   /* oldest first */
};

struct waiter { /* for a commit */
    STAILQ_ENTRY(waiter) next;
    uint64_t call_id;
    bool has_request;
    uint64_t request;
    struct target *target; /* of the intent or outcome; or NULL */
    struct target **kick;  /* evaluated then */
    size_t kick_count, kick_capacity;
};
STAILQ_HEAD(waiter_list, waiter);

struct listings {           /* of all entries (engine_listings.c) */
    uint64_t call_id;       /* of the list under way; 0: none */
    size_t entry;           /* its index in the rule set */
    as_mono_time due;       /* of the next round */
    as_mono_time *complete; /* of each entry, as in struct as_list_view; NULL: not started */
};

/* An HTTP group whose id is its name. */
struct target_place {
    char *key; /* of the id that its URL gives */
    struct target *target;
};

struct as_engine {
    struct as_engine_config config;
    const struct concern *const *concerns; /* rows; the last one is NULL */
    const struct as_ruleset *ruleset;
    struct as_rule_index *index;
    struct as_random random;
    uint64_t generation; /* of the rules; changes of a few policies do not count */
    bool stopping;
    bool has_restored_groups; /* as_engine_has_restored_groups */

    as_mono_time mono; /* of the event being handled */
    as_wall_time wall;

    struct incident_tree incidents;
    struct incident_list open, resolved, graveyard; /* graveyard: freed at the next step */
    struct incident_list always;                    /* of `always` rules, in the rules' order */
    uint64_t evaluations_skipped;                   /* engine_always.c */
    as_mono_time started;
    as_mono_time history_due, history_committed; /* engine_history.c */
    size_t open_count;
    size_t incident_bytes;            /* of all incidents in the tree */
    struct as_shares incident_shares; /* in these, and in targets that templates made for them */
    uint64_t next_serial;

    struct target_tree targets;
    struct deadline_tree deadlines;
    struct call_id_tree call_ids;
    struct target_list gone;            /* freed at the next step */
    struct target_list ready;           /* evaluated at the end of this step */
    struct as_target_ref **former_refs; /* freed at the next step: of targets with a new spelling */
    size_t former_ref_count, former_ref_capacity;
    size_t target_count, busy_count, named_count;
    size_t listed_count; /* targets that a list has shown */
    struct listings listings;
    struct target_place *places; /* of HTTP groups with a plain address and a name; by key */
    size_t place_count;
    struct budget budget;
    struct entry_members *members; /* by config; entries without targets may be missing */
    bool has_templates;            /* some entry of the rule set */
    struct after_list held_back;   /* waiting for their `after`; in order of waiting */
    struct pool_list
        snapshots_begun; /* pools that have their turn: from observation to assignments settled */
    struct pool_list snapshots_waiting;
    struct backing_list candidates;      /* all targets that may be others, too */
    struct backing_list backing_waiting; /* candidates that wait for others' resources */
    struct evaluation_list evaluations;  /* of all targets, by `applied` */

    struct as_pause_state pause, halt; /* of all targets: by an operator; by the kill switch */
    struct paused_list paused;         /* targets with a pause of their own */
    size_t paused_count;
    as_mono_time pause_due; /* the first end */

    struct ask_tree asks;     /* not answered yet */
    struct ask_list answered; /* of the last decisions; freed at the next step */

    uint64_t list_call_id;             /* of the list under way; 0: none */
    as_mono_time list_due, list_asked; /* asked: time of the last request */
    unsigned list_failures;            /* in a row */
    char **notifiers;                  /* receivers that have notified us (engine_incidents.c) */
    uint32_t notifier_count;
    struct unmuted *unmuted; /* by the last list (engine_incidents.c) */
    size_t unmuted_count;
    as_mono_time watchdog_seen;
    int64_t watchdog_every_us; /* between its last reports; 0: not known */

    uint64_t next_call_id;
    struct waiter_list waiters;

    struct as_arena arena; /* of this step's effects */
    struct as_effect *effects;
    size_t effect_count, effect_capacity;
};

/* FNV-1a over more bytes. */
#define ENGINE_HASH_INIT UINT64_C(0xcbf29ce484222325)
static inline uint64_t engine_hash(uint64_t state, const void *data, size_t size)
{
    const unsigned char *bytes = data;
    for (size_t i = 0; i < size; i++)
        state = (state ^ bytes[i]) * UINT64_C(0x100000001b3);
    return state;
}

static inline struct as_moment moment_now(const struct as_engine *engine)
{
    return (struct as_moment){engine->mono, engine->wall};
}

/* Until when a target remembers the moment; INT64_MIN: it is unset. */
static inline as_mono_time target_get_kept_until(const struct target *target,
                                                 struct as_moment moment)
{
    return as_moment_is_set(moment) ? (as_mono_time){as_time_add(moment.mono.us, target->keep_us)}
                                    : (as_mono_time){INT64_MIN};
}

static inline struct as_moment moment_get_later(struct as_moment a, struct as_moment b)
{
    return a.mono.us >= b.mono.us ? a : b;
}

/* The wall time of a moment, on the timeline of the present event: ages stay exact when the clock
 * jumps. */
static inline as_maybe_time moment_get_wall(const struct as_engine *engine, struct as_moment moment)
{
    if (!as_moment_is_set(moment))
        return (as_maybe_time){0};
    return (as_maybe_time){true, {engine->wall.us - (engine->mono.us - moment.mono.us)}};
}

/* Alertmanager suppresses its alert: the incident stays open, without effect. */
static inline bool incident_is_held(const struct incident *incident)
{
    return as_moment_is_set(incident->state.silenced);
}

static inline bool is_ahead(const struct as_engine *engine, as_wall_time start)
{
    return start.us > as_time_add(engine->wall.us, CLOCK_OFF_US);
}

/* Alertmanager's API truncates startsAt to milliseconds, its notifications do not: both belong to
 * the same stretch of firing. */
static inline bool starts_later(as_wall_time start, as_wall_time than)
{
    return start.us - than.us >= AS_US_PER_MS;
}

RB_PROTOTYPE(incident_tree, incident, by_digest, incident_compare)
RB_PROTOTYPE(target_tree, target, by_id, target_compare)
RB_PROTOTYPE(deadline_tree, target, by_deadline, deadline_compare)
RB_PROTOTYPE(call_id_tree, target, by_call_id, call_id_compare)
RB_PROTOTYPE(group_tree, group, in_target, group_compare)
RB_PROTOTYPE(ask_tree, ask, by_call_id, ask_compare)

struct as_moment lock_get_end(struct as_moment since, int64_t lock_us, as_mono_time now,
                              as_wall_time wall);
void progress_deinit(struct as_progress *progress);
void incident_free(struct incident *incident);
/* Its digest, or "always". */
void incident_print(const struct incident *incident, char text_out[AS_DIGEST_TEXT_SIZE]);
void incident_add_receiver(struct incident *incident, const char *receiver);
/* The first of each is kept: the peers of a cluster send different ones. False: nothing is new. */
bool incident_take_links(struct incident *incident, const char *generator_url,
                         const char *external_url);
bool incident_add_credential(struct incident *incident, const char *credential);
void names_free(char **names, size_t count);
void ask_free(struct ask *ask);
void pause_free(struct as_pause_state *pause);
void asked_clear(struct asked *asked);
void held_free(struct target *target);
/* Takes the reference. In no tree yet; one block with the states of its concerns. */
struct target *target_new(const struct as_engine *engine, struct as_target_ref *ref_taken);
struct target *target_free(const struct as_engine *engine, struct target *target);
/* Borrowed from the rule set. */
struct as_policy_ref target_get_policy(const struct target *target);

/*
 * Converts the engine's state: for the store, and back.
 */

/* An incident's `seen` is stored when the stored one is older than this part of the expiry. */
#define SEEN_STORE_PART 16

struct as_incident_target binding_get_target(const struct binding *binding);
/* In the step's memory. */
struct as_incident_state *incident_fill_state(struct as_engine *engine,
                                              const struct incident *incident);
/* With the next serial; not in the tree yet. */
struct incident *incident_of_state(struct as_engine *engine, const struct as_incident_state *state);
struct as_intent_state *intent_fill_state(struct as_engine *engine, const struct target *target,
                                          const struct intent *intent, bool in_doubt);
void target_take_intent(const struct as_engine *engine, struct target *target,
                        const struct as_intent_state *state);
/* They were decided with other rules, or with other bindings of their incidents. */
void target_outdate_intents(struct target *target);
const struct as_pause_state *pause_fill_state(struct as_engine *engine,
                                              const struct as_pause_state *pause);
struct as_target_state *target_fill_state(struct as_engine *engine, const struct target *target);
/* Of each lock the later one counts. */
void target_unite_locks(struct target *target, const struct as_lock_state *locks);
/* Before the first event, united with that of another spelling of the target; without its pause. */
void target_take_state(struct as_engine *engine, struct target *target,
                       const struct as_target_state *state);

#endif
