/*
 * The engine: everything that decides, as a pure state machine. Events go in, effects come out, in
 * order. It reads no clock, does no I/O and logs nothing; equal events give equal effects, to the
 * byte.
 *
 * The life of one action: a notification opens an incident -> commit -> answer 200, observe the
 * target -> decide -> commit the intent -> set the size -> commit the outcome with the lock.
 * `AS_EFFECT_SCALE` comes only after its intent was committed. A target does one thing at a time;
 * alerts that come while it is busy wait for its next decision.
 *
 * Effects between two AS_EFFECT_COMMIT belong to the later one. If a commit fails, the engine must
 * not be used any more: the shell frees it and restores a new one from the store, as after a crash.
 *
 * Long because it is the whole contract: every event and every effect.
 */
#ifndef ALERTSCALER_ENGINE_ENGINE_H
#define ALERTSCALER_ENGINE_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>
#include <alertscaler/base/time.h>
#include <alertscaler/decide/operator_command.h>
#include <alertscaler/decide/record.h>
#include <alertscaler/decide/ruleset.h>
#include <alertscaler/model/scope.h>
#include <alertscaler/model/source.h>

struct as_engine;

/* Limits over all targets. Changes beyond them wait, with the reason `budget`. */
struct as_limits {
    uint32_t actions_max; /* 0: no limit */
    int64_t actions_per_us;
    int64_t scale_down_milli_percent; /* of all replicas of one kind of target; 0: no limit */
    int64_t scale_down_per_us;
    uint32_t namespace_actions_max; /* of the policies of one namespace; 0: no limit */
    int64_t namespace_actions_per_us;
};

/* A line of the trace: an event, a change of a target's state, or an effect. No label values. */
struct as_trace_line {
    const char *kind;   /* "event", "state", "effect" */
    const char *name;   /* of the event, the new state, the effect */
    const char *target; /* id; NULL: of none */
    const char *detail; /* sizes, an outcome, the old state; "": none */
    uint64_t call_id;   /* 0: none */
};

struct as_engine_config {
    int64_t incident_expiry_us;
    int64_t stale_window_us;
    bool dry_run;
    uint64_t seed;            /* for identifiers and jitter; must differ for each engine */
    bool spreads_evaluations; /* of `always` rules, by a hash of the target's id; else all targets
                                 are evaluated at the start, and each `every` later */
    int64_t resync_us;        /* how often to list what is firing; 0: never */
    /* Receivers in Alertmanager, whose alerts a list may open incidents of; borrowed like the rule
     * set. Count 0: the receivers that have notified us. */
    const char *const *receivers;
    size_t receiver_count;
    struct as_limits limits;
    const struct as_matcher *watchdog; /* borrowed like the rule set; count 0: none */
    size_t watchdog_count;
    int64_t watchdog_within_us;
    const struct as_scope *scopes; /* of all credentials; borrowed like the rule set */
    size_t scope_count;
    uint64_t incident_bytes_max; /* limit for as_engine_has_room; 0: no limit */
    /* Called in a step, for each line; the line is borrowed for the call. NULL: no trace. */
    void (*trace)(void *context, const struct as_trace_line *line);
    void *trace_context;
};

enum as_event_kind {
    AS_EVENT_START,        /* after restoring */
    AS_EVENT_NOTIFICATION, /* received */
    AS_EVENT_COMMITTED,    /* the store has committed */
    AS_EVENT_OBSERVED,     /* a target's size was read, or reading failed */
    AS_EVENT_QUERIED,      /* a query was answered, or failed */
    AS_EVENT_LISTED,       /* the list of firing alerts was read, or reading failed */
    AS_EVENT_OBJECTS,      /* the objects of `allow.list` were read, or reading failed */
    AS_EVENT_SCALED,       /* a size was set, or setting failed */
    AS_EVENT_DEADLINE,     /* the time of as_engine_get_next_deadline has come */
    AS_EVENT_RULES,        /* new rules; the old ones may be freed after the step */
    AS_EVENT_ORDER,        /* from an operator */
    AS_EVENT_HALT,         /* the kill switch may have been set or cleared */
    AS_EVENT_STOP          /* nothing new begins after it */
};

struct as_event {
    enum as_event_kind kind;
    as_mono_time mono;
    as_wall_time wall;
    uint64_t call_id; /* of the effect; notification, order: of the request */
    const struct as_notification *notification; /* borrowed for the step */
    const struct as_observation *observation;
    const struct as_query_result *answer;
    const struct as_alert_list *list;
    const struct as_object_list *objects; /* borrowed for the step */
    const struct as_scale_result *result;
    const struct as_operator_command *order; /* borrowed for the step */
    const struct as_halt *halt;              /* borrowed for the step */
    const struct as_ruleset *ruleset;        /* borrowed until the next RULES event */
    struct as_engine_config config;          /* with RULES */
};

enum as_effect_kind {
    /* State */
    AS_EFFECT_PUT_INCIDENT,
    AS_EFFECT_DELETE_INCIDENT,
    AS_EFFECT_PUT_TARGET,
    AS_EFFECT_DELETE_TARGET,
    AS_EFFECT_PUT_INTENT,
    AS_EFFECT_DELETE_INTENT,
    AS_EFFECT_PUT_PAUSE, /* the pause of all targets */
    AS_EFFECT_DELETE_PAUSE,
    /* Records */
    AS_EFFECT_RECORD_NOTIFICATION, /* also the text of the answer */
    AS_EFFECT_RECORD_DECISION,
    AS_EFFECT_RECORD_ACTION,
    AS_EFFECT_RECORD_INCIDENT,
    AS_EFFECT_RECORD_EVALUATION,
    AS_EFFECT_RECORD_OTHERS,
    AS_EFFECT_RECORD_COMMAND, /* `ticket`: the request that it answers; 0: none */
    AS_EFFECT_RECORD_APPROVAL,
    AS_EFFECT_COMMIT, /* all effects above since the last commit; ticket 0: nobody waits */
    /* Calls */
    AS_EFFECT_ANSWER,       /* the request `ticket` is durable: send 200 */
    AS_EFFECT_OBSERVE,      /* read the size of `ref` */
    AS_EFFECT_QUERY,        /* evaluate `query` */
    AS_EFFECT_LIST_ALERTS,  /* read the firing alerts */
    AS_EFFECT_LIST_OBJECTS, /* read the objects of `allow.list` of `entry` */
    AS_EFFECT_SCALE,        /* set the size of `ref` */
    AS_EFFECT_WARN          /* an increase of `ref` did not become ready in time */
};

struct as_effect { /* everything borrowed until the next step */
    enum as_effect_kind kind;
    bool is_repeat; /* commit: only repeats, without consequences */
    uint64_t call_id;
    union {
        const struct as_incident_state *incident;
        const struct as_target_state *target;
        const struct as_intent_state *intent;
        const struct as_pause_state *pause;
        struct as_incident_key incident_key; /* delete incident */
        const char *stored_as;               /* delete target, delete intent: the store's key */
        const struct as_notification_record *notification;
        const struct as_decision_record *decision;
        const struct as_action_record *action;
        const struct as_incident_record *incident_record;
        const struct as_effect_record *evaluation;
        const struct as_operator_command_record *order;
        const struct as_others_record *others;
        const struct as_approval_record *approval;
        struct {
            const struct as_target_ref *ref;
            const struct as_scale_request *request; /* scale */
            const struct as_observe_request *observe;
            const struct as_late_warning *late; /* warn */
        } call;
        const struct as_query *query;
        const struct as_target_config *entry; /* list objects */
    };
};

struct as_effects {
    const struct as_effect *items;
    size_t count;
};

struct as_engine *as_engine_new(const struct as_engine_config *config,
                                const struct as_ruleset *ruleset) AS_MUST_USE;
struct as_engine *as_engine_free(struct as_engine *engine);

/* From the store, incidents first, before AS_EVENT_START; everything is copied. -EEXIST if two rows
 * are about the same incident, target or intent; -EBADMSG if the key of a row is not that of its
 * target. */
int as_engine_restore_incident(struct as_engine *engine,
                               const struct as_incident_state *state) AS_MUST_USE;
int as_engine_restore_target(struct as_engine *engine,
                             const struct as_target_state *state) AS_MUST_USE;
int as_engine_restore_intent(struct as_engine *engine,
                             const struct as_intent_state *state) AS_MUST_USE;
int as_engine_restore_pause(struct as_engine *engine,
                            const struct as_pause_state *state) AS_MUST_USE; /* of all targets */

/* One step. The effects are valid until the next step. An event with an unknown ticket is
 * ignored. */
void as_engine_step(struct as_engine *engine, const struct as_event *event,
                    struct as_effects *effects_out);

/* When AS_EVENT_DEADLINE is due; AS_MONO_NEVER: nothing is due. */
as_mono_time as_engine_get_next_deadline(const struct as_engine *engine);

/* No target is being observed or scaled, and no commit is awaited. */
bool as_engine_is_idle(const struct as_engine *engine);

struct as_engine_counts {
    size_t incidents_open, targets, targets_busy;
    size_t targets_paused; /* paused one by one: without the pause of all and the kill switch */
    size_t incident_bytes; /* memory of incidents and their targets, estimated */
    uint64_t incident_bytes_max;  /* its limit; 0: no limit */
    uint64_t evaluations_skipped; /* of `always` rules: their predecessors had not ended */
};
struct as_engine_counts as_engine_get_counts(const struct as_engine *engine);

/* The credential if it is narrowed; else NULL. */
const char *as_engine_find_narrowed(const struct as_engine *engine, const char *credential);
/* As as_scope_get_part, with the engine's scopes. */
uint64_t as_engine_get_part(const struct as_engine *engine, const char *credential, uint64_t most);

/* Whether the notification may be handled: the memory of incidents is below its limit (for a
 * narrowed credential, also its own part of the limit), or the notification needs no more memory
 * (repeats and resolved alerts of known incidents). One notification may exceed the limit by what
 * it brings. */
bool as_engine_has_room(const struct as_engine *engine,
                        const struct as_notification *notification) AS_MUST_USE;

/* Counts the open incidents that set a size as soon as their target is decided: not held, and bound
 * by a rule that is not in dry run and not used up. `late`: those opened at `since` or later. */
struct as_acting_counts {
    size_t acting, late;
};
struct as_acting_counts as_engine_count_acting(const struct as_engine *engine, as_wall_time since);

struct as_pause_view {
    bool is_set;
    bool is_halt; /* the kill switch: `since` is unset */
    enum as_ways ways;
    const char *who, *reason;
    struct as_moment since, until; /* until: unset if it has no end */
};

/* The pause of all targets: the kill switch, else an operator's pause. */
struct as_pause_view as_engine_get_pause(const struct as_engine *engine, as_mono_time now,
                                         as_wall_time wall);

/* Why nodes of a node group that are marked to leave must wait now: a pause, the kill switch, a dry
 * run, a stop, or no proof that monitoring works (the watchdog, if there is one). NULL: they go on;
 * "": there is no such group any more. */
const char *as_engine_find_terminate_obstacle(const struct as_engine *engine, const char *target,
                                              as_mono_time now);
/* During a request to change the target: the other target that may be the same node group by rules
 * that were loaded since the decision. It has precedence, and the request must not be sent. NULL:
 * none. */
const char *as_engine_find_new_rival(const struct as_engine *engine, const char *target);
/* Whether the restored state knew a node group that may have nodes with our marks: its instances
 * are nodes, or no rule leads to it any more. */
bool as_engine_has_restored_groups(const struct as_engine *engine) AS_MUST_USE;
/* The target's name in the rule files; "" if it has none. */
const char *as_engine_find_name(const struct as_engine *engine, const char *target);

/* The narrowed credential whose alerts alone cause work for the target; NULL: none. */
const char *as_engine_find_sender(const struct as_engine *engine, const char *target);

/* Whether the target is left alone, as others set its size back. */
bool as_engine_is_contended(const struct as_engine *engine, const char *target);

/* Whether the rule is held on the target, or on its pool, as its last actions did not help. */
bool as_engine_is_ineffective(const struct as_engine *engine, const char *target, const char *rule);

/* Open incidents, also of `always` rules, that are bound to the target; 0: none, or there is no
 * such target. */
size_t as_engine_count_open(const struct as_engine *engine, const char *target);

/* A snapshot for metrics and the API; pointers are valid until the next step. */
struct as_target_view {
    const char *id, *name;
    const struct as_target_ref *ref;
    const struct as_target_config *config; /* NULL: no rule uses it any more */
    struct as_schedule_bounds bounds;      /* in force, if there is a config */
    bool has_size;
    int32_t replicas, status_replicas, desired;
    struct as_moment seen;
    struct as_moment up_locked_until, down_locked_until; /* unset: not locked */
    struct as_pause_view pause;                          /* of this target alone */
    struct as_floor_view {
        int32_t size; /* 0: none */
        const char *who, *reason;
        struct as_moment since, until;
    } floor;        /* ordered by an operator */
    bool has_order; /* an operator's ordered size is not set yet */
    int32_t ordered;
    struct as_moment contended_until;                  /* left alone; unset: not contended */
    const struct as_reverted_change *reverted_changes; /* of the last hour, or of the contention */
    size_t reverted_change_count;
    const char *waits_for; /* name of the target that holds it back, by `after`; NULL: none */
    size_t open_incidents;
    const char *last_decision; /* id; or NULL */
    enum as_reason last_reason;
    as_wall_time last_at;
    const char *last_rule; /* or NULL */
    bool busy;
    enum as_reason last_failure;              /* AS_REASON_APPLIED: none */
    uint32_t tries;                           /* that failed in a row */
    struct as_moment failing_since, next_try; /* unset: no failure, or the next try is at once */
    const struct as_pool_seen *nodes; /* by the last look; NULL: nothing, or no alert fires */
    bool did_not_come;                /* an increase did not come, or not in time: no step up */
    int32_t ready;                    /* pods of a workload with ready_timeout; -1: not known */
    struct as_namespace_limit_view {
        const char *namespace; /* NULL: none, or the last reason is not `budget` */
        uint32_t actions;      /* that may begin within: */
        int64_t per_us;
    } namespace_limit; /* that has refused the last change */
    struct as_unmatched_view {
        int64_t alerts; /* in notifications, since this generation is in force; 0: none */
        const char *last_alert, *rule; /* the last one's `alertname`, and the rule */
    } unmatched; /* of a policy: alerts that its rules match but for the label of the namespace */
};
typedef void as_target_visit_fn(void *context, const struct as_target_view *view);
/* Appends the state of the target with this id, as the rows of engine/state.h print it. False:
 * there is no such target. */
bool as_engine_encode_target(const struct as_engine *engine, const char *id, struct as_buf *out);

void as_engine_visit_targets(const struct as_engine *engine, as_mono_time now, as_wall_time wall,
                             as_target_visit_fn *visit, void *context);
/* The target with this id. False: there is no such target. */
bool as_engine_visit_target(const struct as_engine *engine, const char *id, as_mono_time now,
                            as_wall_time wall, as_target_visit_fn *visit, void *context);
/* A cluster with targets that were observed, or that did not answer. It is unreachable if requests
 * about a target fail without an answer, and no target of the cluster was observed since. */
struct as_cluster_view {
    const char *cluster;
    struct as_moment unreachable_since; /* the first of these failures; unset: it is reachable */
};
typedef void as_cluster_visit_fn(void *context, const struct as_cluster_view *view);
void as_engine_visit_clusters(const struct as_engine *engine, as_cluster_visit_fn *visit,
                              void *context);
/* When the target was last observed since the start; INT64_MIN: never. `cluster_out`: its cluster,
 * valid until the next step; "": it is in none. */
as_mono_time as_engine_find_observed(const struct as_engine *engine, const char *target,
                                     const char **cluster_out);
/* An entry with `allow.list`. */
struct as_list_view {
    const char *entry;     /* its name */
    size_t objects;        /* that are targets of it by a list */
    as_mono_time complete; /* time of its last complete list; before the first, of the rules */
};
typedef void as_list_visit_fn(void *context, const struct as_list_view *view);
void as_engine_visit_lists(const struct as_engine *engine, as_list_visit_fn *visit, void *context);
/* What a rule with an open incident saw at the last decision about its target. */
struct as_rule_view {
    const struct as_target_ref *ref;
    const struct as_target_config *target;
    const struct as_rule *rule;
    bool has_value;
    double value; /* as the rule compares it: with a goal per pod, of a pod; of several incidents
                     the highest */
    bool has_desired;
    int32_t desired;                /* the size that it wants */
    enum as_reason reason;          /* why it wants no size, or the present one; else `scaled` */
    struct as_moment missing_since; /* its value; unset: it is there */
    size_t alerts;                  /* open incidents; 0: only that of an `always` rule */
};
typedef void as_rule_visit_fn(void *context, const struct as_rule_view *view);
void as_engine_visit_rules(const struct as_engine *engine, as_rule_visit_fn *visit, void *context);
/* Of one target. */
void as_engine_visit_target_rules(const struct as_engine *engine, const char *id,
                                  as_rule_visit_fn *visit, void *context);
/* A rule that is held on a target because its last actions did not help. */
struct as_ineffective_view {
    const struct as_target_ref *ref;
    const char *target_name; /* in the rule files; "": in none any more */
    bool is_templated;
    const char *rule;
    struct as_moment since, until;
};
typedef void as_ineffective_visit_fn(void *context, const struct as_ineffective_view *view);
/* `ref`: of this target; NULL: of all. */
void as_engine_visit_ineffective(const struct as_engine *engine, const struct as_target_ref *ref,
                                 as_mono_time now, as_wall_time wall,
                                 as_ineffective_visit_fn *visit, void *context);
/* What happens on a target after an incident, or which report a further step waits for. */
#define AS_NEXT_EFFECTS(X)                                                                         \
    X(AS_NEXT_STAYS, "stays")                                                                      \
    X(AS_NEXT_GIVES_BACK, "gives_back")                                                            \
    X(AS_NEXT_SCALES, "scales")                                                                    \
    X(AS_NEXT_WAITS, "waits")
#define AS_NEXT_WAITS_FOR(X)                                                                       \
    X(AS_NEXT_NOW, NULL)                                                                           \
    X(AS_NEXT_GUARD, "guard")                                                                      \
    X(AS_NEXT_WATCHDOG, "watchdog")                                                                \
    X(AS_NEXT_REPORT, "report")
#define AS_NEXT_ENUM(enumerator, word) enumerator,
enum as_next_effect { AS_NEXT_EFFECTS(AS_NEXT_ENUM) AS_NEXT_EFFECT_COUNT };
enum as_next_wait { AS_NEXT_WAITS_FOR(AS_NEXT_ENUM) AS_NEXT_WAIT_COUNT };
#undef AS_NEXT_ENUM
struct as_next_view {
    enum as_next_effect effect;
    const char *rule;
    int32_t size;          /* stays, waits: the size; else after the next step; -1: not known */
    int32_t amount, added; /* gives_back: in the next step; by the incident. 0: not known */
    uint32_t step, steps;
    enum as_next_wait wait;
    struct as_moment from;         /* not before; unset: now */
    struct as_moment silent_since; /* the watchdog's last report, if it is late; else unset */
    const char *alert;             /* waits: the name of the alert; else NULL */
};
typedef void as_next_visit_fn(void *context, const struct as_next_view *view);
void as_engine_visit_next(const struct as_engine *engine, const struct as_target_ref *ref,
                          as_mono_time now, as_wall_time wall, as_next_visit_fn *visit,
                          void *context);
/* Requests for approvals: those that wait, and those whose rule may not ask again yet. */
struct as_approval_view {
    const char *target, *name, *unit; /* unit "": none */
    bool is_templated;
    struct as_approval_state state;
    as_wall_time until; /* waiting, approved: its end; else when the rule may ask again */
};
typedef void as_approval_visit_fn(void *context, const struct as_approval_view *view);
void as_engine_visit_approvals(const struct as_engine *engine, as_mono_time now, as_wall_time wall,
                               as_approval_visit_fn *visit, void *context);
typedef void as_incident_visit_fn(void *context, const struct as_incident_state *state,
                                  const struct as_incident_target *targets, size_t target_count);
void as_engine_visit_incidents(const struct as_engine *engine, as_incident_visit_fn *visit,
                               void *context);
/* The same for one of them, which was visited before: nothing has changed since. */
void as_engine_visit_incident(const struct as_engine *engine, const struct as_incident_state *state,
                              as_incident_visit_fn *visit, void *context);

#endif
