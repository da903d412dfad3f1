/*
 * The engine: everything that decides, as a pure state machine. Events go in, effects come out, in
 * order. It reads no clock, does no I/O and logs nothing; equal events give equal effects, to the
 * byte.
 *
 * The life of one action: a notification opens an incident -> commit -> answer 200, observe the
 * target -> decide -> commit the intent -> set the size -> commit the outcome with the lock.
 * `AS_EFFECT_SCALE` comes only in answer to the event that its intent is committed. Per target one
 * thing at a time; alerts that come while it is busy are one decision later.
 *
 * Effects between two AS_EFFECT_COMMIT belong to the later one. If a commit fails, the engine is of
 * no use any more: the shell frees it and restores a new one from the store, as after a crash.
 *
 * Long because it is the whole contract: every event and every effect.
 */
#ifndef ALERTSCALER_CORE_ENGINE_H
#define ALERTSCALER_CORE_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>
#include <alertscaler/base/time.h>
#include <alertscaler/core/alert_list.h>
#include <alertscaler/core/lock.h>
#include <alertscaler/core/order.h>
#include <alertscaler/core/query.h>
#include <alertscaler/core/record.h>
#include <alertscaler/core/ruleset.h>
#include <alertscaler/core/scope.h>

struct as_engine;

/* Over all targets; what goes beyond them waits, with the reason `budget`. */
struct as_limits {
    uint32_t actions_max; /* 0: no limit */
    int64_t actions_per_us;
    int64_t scale_down_milli_percent; /* of all replicas of a kind of target; 0: no limit */
    int64_t scale_down_per_us;
};

struct as_engine_config {
    int64_t incident_expiry_us;
    int64_t stale_window_us;
    bool dry_run;
    uint64_t seed;     /* for identifiers and jitter; another one for each engine */
    int64_t resync_us; /* how often to list what is firing; 0: never */
    struct as_limits limits;
    const struct as_matcher *watchdog; /* borrowed as the rule set is; count 0: there is none */
    size_t watchdog_count;
    int64_t watchdog_within_us;
    const struct as_scope *scopes; /* of all credentials; borrowed as the rule set is */
    size_t scope_count;
    uint64_t incident_bytes_max; /* what as_engine_has_room goes by; 0: no limit */
};

enum as_event_kind {
    AS_EVENT_START,        /* after restoring */
    AS_EVENT_NOTIFICATION, /* one came */
    AS_EVENT_COMMITTED,    /* the store has it */
    AS_EVENT_OBSERVED,     /* a target's size was read, or not */
    AS_EVENT_QUERIED,      /* a query was answered, or not */
    AS_EVENT_LISTED,       /* the list of what is firing was read, or not */
    AS_EVENT_SCALED,       /* a size was set, or not */
    AS_EVENT_DEADLINE,     /* the time of as_engine_get_next_deadline has come */
    AS_EVENT_RULES,        /* new rules; the old ones may be freed after the step */
    AS_EVENT_ORDER,        /* of an operator */
    AS_EVENT_HALT,         /* the kill switch is set or not: whenever it may have changed */
    AS_EVENT_STOP          /* nothing new is begun after it */
};

struct as_event {
    enum as_event_kind kind;
    as_mono_time mono;
    as_wall_time wall;
    uint64_t ticket; /* the effect's; notification, order: the request's */
    const struct as_notification *notification; /* borrowed for the step */
    const struct as_observation *observation;
    const struct as_query_result *answer;
    const struct as_alert_list *list;
    const struct as_scale_result *result;
    const struct as_order *order;     /* borrowed for the step */
    const struct as_halt *halt;       /* likewise */
    const struct as_ruleset *ruleset; /* borrowed until the next RULES event */
    struct as_engine_config config;   /* with RULES */
};

enum as_effect_kind {
    /* The state */
    AS_EFFECT_PUT_INCIDENT,
    AS_EFFECT_DELETE_INCIDENT,
    AS_EFFECT_PUT_TARGET,
    AS_EFFECT_DELETE_TARGET,
    AS_EFFECT_PUT_INTENT,
    AS_EFFECT_DELETE_INTENT,
    AS_EFFECT_PUT_PAUSE, /* of all targets */
    AS_EFFECT_DELETE_PAUSE,
    /* Records */
    AS_EFFECT_RECORD_NOTIFICATION, /* also the text of the answer */
    AS_EFFECT_RECORD_DECISION,
    AS_EFFECT_RECORD_ACTION,
    AS_EFFECT_RECORD_INCIDENT,
    AS_EFFECT_RECORD_COMMAND, /* `ticket`: the request whose answer it is; 0: none's */
    AS_EFFECT_COMMIT,         /* all of the above since the last; ticket 0: nobody waits */
    /* Calls */
    AS_EFFECT_ANSWER,      /* the request `ticket` is durable: 200 */
    AS_EFFECT_OBSERVE,     /* read the size of `ref` */
    AS_EFFECT_QUERY,       /* evaluate `query` */
    AS_EFFECT_LIST_ALERTS, /* read what is firing */
    AS_EFFECT_SCALE        /* set the size of `ref` */
};

struct as_effect { /* everything borrowed until the next step */
    enum as_effect_kind kind;
    bool is_repeat; /* commit: nothing but repeats, and nothing comes of them */
    uint64_t ticket;
    union {
        const struct as_incident_state *incident;
        const struct as_target_state *target;
        const struct as_intent_state *intent;
        const struct as_pause_state *pause;
        struct as_incident_key incident_key; /* delete incident; owner NULL: the former one alone */
        const char *stored_as;               /* delete target, delete intent: the store's key */
        const struct as_notification_record *notification;
        const struct as_decision_record *decision;
        const struct as_action_record *action;
        const struct as_incident_record *incident_record;
        const struct as_order_record *order;
        struct {
            const struct as_target_ref *ref;
            const struct as_scale_request *request; /* scale */
            const struct as_observe_request *observe;
        } call;
        const struct as_query *query;
    };
};

struct as_effects {
    const struct as_effect *items;
    size_t count;
};

struct as_engine *as_engine_new(const struct as_engine_config *config,
                                const struct as_ruleset *ruleset) AS_MUST_USE;
struct as_engine *as_engine_free(struct as_engine *engine);

/* From the store, incidents first, before AS_EVENT_START; everything is copied. -EEXIST when the
 * same comes twice; but of two of earlier versions that are the same alert the one that is open,
 * else the older one stays, with the larger progress of both. */
int as_engine_restore_incident(struct as_engine *engine,
                               const struct as_incident_state *state) AS_MUST_USE;
int as_engine_restore_target(struct as_engine *engine,
                             const struct as_target_state *state) AS_MUST_USE;
int as_engine_restore_intent(struct as_engine *engine,
                             const struct as_intent_state *state) AS_MUST_USE;
int as_engine_restore_pause(struct as_engine *engine,
                            const struct as_pause_state *state) AS_MUST_USE; /* of all targets */

/* One step. The effects are good until the next one. An event that fits nothing (an unknown ticket)
 * is ignored. */
void as_engine_step(struct as_engine *engine, const struct as_event *event,
                    struct as_effects *effects_out);

/* When AS_EVENT_DEADLINE is due; AS_MONO_NEVER where nothing is. */
as_mono_time as_engine_get_next_deadline(const struct as_engine *engine);

/* No target is being observed or scaled, and no commit is awaited. */
bool as_engine_is_idle(const struct as_engine *engine);

struct as_engine_counts {
    size_t incidents_open, targets, targets_busy;
    size_t targets_paused; /* one by one: not by the pause of all or the kill switch */
    size_t incident_bytes; /* memory of incidents and their targets, as near as it is counted */
};
struct as_engine_counts as_engine_get_counts(const struct as_engine *engine);

/* Whether the notification may be handled: incidents take less memory than they may (half of it for
 * a credential that is narrowed), or it brings nothing that would take more: repeats and resolved
 * alerts of what is remembered. What it brings at most comes on top of the limit. */
bool as_engine_has_room(const struct as_engine *engine,
                        const struct as_notification *notification) AS_MUST_USE;

/* Of the open incidents, those that set a size as soon as their targets are decided and nothing
 * else stops it: not held, and bound by a rule that is not a dry run and not used up. `late`: of
 * these, the ones that were opened at `since` or later. */
struct as_acting_counts {
    size_t acting, late;
};
struct as_acting_counts as_engine_count_acting(const struct as_engine *engine, as_wall_time since);

struct as_pause_view {
    bool is_set;
    bool is_halt; /* the kill switch: without `since` */
    const char *who, *reason;
    struct as_moment since, until; /* until: unset where it lasts until it is resumed */
};

/* Of all targets at once: the kill switch, else an operator's pause. */
struct as_pause_view as_engine_get_pause(const struct as_engine *engine, as_mono_time now,
                                         as_wall_time wall);

/* A look at what is there, for metrics and the API; pointers are good until the next step. */
struct as_target_view {
    const char *id, *name;
    const struct as_target_ref *ref;
    const struct as_target_config *config; /* NULL: no rule leads to it any more */
    bool has_size;
    int32_t replicas, status_replicas, desired;
    struct as_moment seen;
    struct as_moment up_locked_until, down_locked_until; /* unset: not locked */
    struct as_pause_view pause;                          /* of this target alone */
    bool has_order; /* an operator ordered a size that is not set yet */
    int32_t ordered;
    size_t open_incidents;
    const char *last_decision; /* id; NULL */
    enum as_reason last_reason;
    as_wall_time last_at;
    const char *last_rule; /* NULL */
    bool busy;
    enum as_reason last_failure; /* AS_REASON_APPLIED: none */
};
typedef void as_target_visit_fn(void *context, const struct as_target_view *view);
void as_engine_visit_targets(const struct as_engine *engine, as_mono_time now, as_wall_time wall,
                             as_target_visit_fn *visit, void *context);
/* Of each target that is locked, ascending by its key (core/target.h). */
typedef void as_lock_visit_fn(void *context, const struct as_lock *lock);
void as_engine_visit_locks(const struct as_engine *engine, as_mono_time now, as_wall_time wall,
                           as_lock_visit_fn *visit, void *context);
typedef void as_incident_visit_fn(void *context, const struct as_incident_state *state,
                                  const struct as_incident_target *targets, size_t target_count);
void as_engine_visit_incidents(const struct as_engine *engine, as_incident_visit_fn *visit,
                               void *context);

#endif
