/*
 * The engine's own structures. Who changes what:
 *
 *   engine.c            steps, deadlines, tickets
 *   engine_effects.c    the list of effects of one step
 *   engine_incidents.c  incidents: opened, repeated, held, resolved, expired
 *   engine_alerts.c     the list of what fires; the watchdog
 *   engine_bindings.c   which open incident proposes something on which target; reload
 *   engine_targets.c    a target's phases and timers
 *   engine_sources.c    queries, and values from labels and annotations
 *   engine_proposals.c  what rules want now
 *   engine_news.c       when their alerts were last reported as firing
 *   engine_endings.c    what they want because an incident was resolved
 *   engine_decisions.c  from observation and proposals to a decision and its record
 *   engine_history.c    what a target remembers: its changes, recommendations
 *   engine_limits.c     how much may be begun and removed over all targets
 *   engine_after.c      which target waits for which others
 *   engine_orders.c     what operators order
 *   engine_pauses.c     pauses and the kill switch
 *   engine_growth.c     increases of node groups that have not come yet
 *   engine_actions.c    intents, results, what may have been done unseen
 *   engine_steps.c      for which incidents a change was a step
 *   engine_room.c       the memory that incidents take
 *   engine_scopes.c     what the credentials reach through which incidents came
 *   engine_objects.c    another object under the same name
 *   engine_owners.c     several incidents of one alert
 *   engine_restore.c    incidents from the store
 *   engine_restore_targets.c  targets and intents from the store; aliases of one
 *   engine_view.c       for metrics and the API
 *
 * Long because so many source files share one state machine.
 */
#ifndef ALERTSCALER_CORE_ENGINE_PRIVATE_H
#define ALERTSCALER_CORE_ENGINE_PRIVATE_H

#include <sys/queue.h>

#include <bsd/sys/tree.h>

#include <alertscaler/base/arena.h>
#include <alertscaler/base/random.h>
#include <alertscaler/core/engine.h>
#include <alertscaler/core/rule_index.h>

/* An incident without `every` and without a lock to wait for is looked at again this often. */
#define REEVALUATE_US (60 * AS_US_PER_S)
/* Named targets without incidents are observed this often, fewer than this many a second in all. */
#define REFRESH_US         (60 * AS_US_PER_S)
#define REFRESH_PER_SECOND 50
/* How long a request whose answer was lost may still be carried out by the other side. */
#define MAYBE_US         (90 * AS_US_PER_S)
#define MAYBE_LOOK_US    (5 * AS_US_PER_S) /* and how often it is looked for, while others wait */
#define BACKOFF_FIRST_US (1 * AS_US_PER_S)
#define BACKOFF_MAX_US   (60 * AS_US_PER_S)
#define BACKOFF_REFUSED_US                                                                         \
    (15 * AS_US_PER_S) /* first wait after forbidden, not found, rejected                          \
                        */
/* A new incident does not wait so long for a target that was not found: it may be there by now.
 * However many come, the target is not looked at more often than this. */
#define NOT_FOUND_LOOK_US  (5 * AS_US_PER_S)
#define RETRY_AFTER_MAX_US (10 * AS_US_PER_MIN)
#define CONFLICTS_AT_ONCE  3 /* conflicts in a row that are answered without waiting */
#define KEEP_LOCKS_US      AS_US_PER_DAY
#define LOOK_AGAIN_MIN_US  (10 * AS_US_PER_MS)
/* How often a node group that is to grow is looked at. */
#define GROWTH_LOOK_US (15 * AS_US_PER_S)
/* An operator's size that could not be set for so long is given up: nobody expects it any more. */
#define ORDER_MAX_US (10 * AS_US_PER_MIN)
/* How long a target waits at most for those that it is to be scaled after. */
#define AFTER_MAX_US (30 * AS_US_PER_S)
/* What is dated ahead of the clock by more has no date: it counts as begun when it came, until one
 * that can be true is given. Clocks are wrong by less. */
#define CLOCK_OFF_US (5 * AS_US_PER_MIN)
/* `seen` of an incident is stored when it is older than this part of the expiry. */
#define SEEN_STORE_PART 16

struct target;
struct group;

struct binding { /* one open incident, one rule that matches it, one target */
    TAILQ_ENTRY(binding) in_group;
    struct incident *incident;
    struct group *group;
    uint32_t steps;
    struct as_moment applied;
    int32_t origin; /* the size before the first step; -1: not known */
};
TAILQ_HEAD(binding_list, binding);

struct group { /* the open incidents of one rule on one target */
    RB_ENTRY(group) in_target;
    struct target *target;
    const struct as_rule *rule;
    struct binding_list bindings; /* by the serials of their incidents */
    size_t count;
    bool wants_up; /* in the last decision */
};
RB_HEAD(group_tree, group);

struct incident {
    RB_ENTRY(incident) by_digest;   /* and owner */
    struct as_incident_key key;     /* with an owner of its own; beside what a search reads too */
    TAILQ_ENTRY(incident) in_order; /* of open ones by `seen`, of resolved ones by `resolved` */
    uint64_t fingerprint;           /* shown */
    uint64_t serial;                /* in order of opening */
    bool is_open;
    as_wall_time starts_at;
    bool is_undated; /* as in as_incident_state */
    struct as_moment opened, seen, resolved;
    as_mono_time seen_stored;
    size_t bytes; /* as they were last counted */
    char **receivers;
    uint32_t receiver_count;
    char **credentials;     /* through which it came */
    as_mono_time *reported; /* of each credential: when it last was, since the start; INT64_MIN */
    uint32_t credential_count;
    as_mono_time listed;       /* the last list that said `updated_at` was asked for; INT64_MIN */
    as_wall_time updated_at;   /* by Alertmanager's clock, the latest */
    struct as_moment silenced; /* since when it is held; unset: not */
    as_mono_time late_until;   /* a firing notification may be older than the silence until then */
    uint64_t seen_ticket;      /* lists with later tickets were asked for after it was last seen */
    unsigned missed;           /* of those, in a row, as many did not name it */
    struct as_labels *labels, *annotations;
    struct binding *bindings;
    uint32_t binding_count;
    struct as_progress *kept; /* progress of rules that it is not bound to (yet, or any more) */
    uint32_t kept_count;
    bool is_united; /* of two incidents of earlier versions */
};
RB_HEAD(incident_tree, incident);
TAILQ_HEAD(incident_list, incident);

struct ask { /* a query for one target's next decision */
    RB_ENTRY(ask) by_ticket;
    TAILQ_ENTRY(ask) in_target;
    struct target *target;
    const struct as_rule *rule; /* that asked first; good as long as the target's generation is */
    uint64_t ticket;
    struct as_query query;
    bool is_answered;
    struct as_query_result result;
    struct as_arena arena; /* of its texts and samples */
};
RB_HEAD(ask_tree, ask);
TAILQ_HEAD(ask_list, ask);

struct ending { /* what a rule still has to do because its incident was resolved */
    TAILQ_ENTRY(ending) in_target;
    const struct as_rule *rule;
    struct as_ending_state state;
};
TAILQ_HEAD(ending_list, ending);

struct held { /* an observation while queries are not answered yet */
    struct as_observation observation;
    struct as_arena arena;
};

enum phase {
    PHASE_IDLE,
    PHASE_OBSERVING,
    PHASE_SAMPLING, /* observed; answers to queries are awaited */
    PHASE_INTENT,   /* its commit is awaited */
    PHASE_SCALING,  /* the answer is awaited */
    PHASE_OUTCOME   /* its commit is awaited */
};

struct pause { /* an operator's, or the kill switch */
    bool is_set;
    struct as_moment since;
    int64_t for_us; /* 0: until resumed */
    char *who, *reason;
};

struct ordered { /* a size that an operator ordered, and that is not set yet */
    bool is_set;
    char id[AS_ULID_SIZE]; /* of the command */
    int32_t replicas;
    bool force, is_stopped; /* by the kill switch, while its request is on its way */
    struct as_moment at;
};

struct growth { /* of a node group: its last increase, while not all of it has come */
    bool is_open;
    bool is_ordered;       /* by an operator */
    bool is_refused;       /* the provider said that it has no capacity */
    char id[AS_ULID_SIZE]; /* of the decision, or the command */
    int32_t from, to;
    int32_t missing; /* before it: instances that did not serve */
    struct as_moment since;
    struct as_moment failed; /* when an increase last failed; unset: none, or one came since */
    int64_t back_off_us;     /* after `failed` */
};

struct locks { /* of cooldowns, and of a back-off */
    struct as_moment up, down;
    struct as_cooldown cooldown;
};

struct intent {
    char action_id[AS_ULID_SIZE], decision_id[AS_ULID_SIZE];
    bool is_ordered; /* by an operator: the decision's id is that of the command */
    char *rule;
    int32_t from, to;
    char *version;
    struct as_moment at;
    as_mono_time sent, until;
    enum as_reason outcome;
    uint64_t serial;      /* of the youngest incident when it was decided */
    uint64_t generation;  /* of the rules that decided it */
    bool restored;        /* from the store: nobody knows yet */
    struct intent *older; /* restored under another spelling of the target; or NULL */
};

struct store_keys { /* under which the store has something, as an earlier version wrote it */
    char **items;
    size_t count, capacity;
};

struct lock_cause { /* to be shown with the lock; not stored */
    bool is_set, is_ordered;
    char id[AS_ULID_SIZE]; /* of the decision or the command */
    char *rule;
};

struct asked { /* what the next decision answers: notifications since the last */
    char (*ids)[AS_ULID_SIZE];
    size_t count, capacity;
    uint64_t total, told; /* told: as many have had a record of a failed observation */
    char last[AS_ULID_SIZE];
    as_mono_time first;    /* arrival of the oldest */
    as_wall_time youngest; /* startsAt of the alert that started last */
};

struct origin { /* what the change under way goes back to, over retries */
    bool set;
    as_mono_time notified;
    as_wall_time alert; /* startsAt */
};

struct verdict { /* what tells one decision from the next */
    bool set;
    char id[AS_ULID_SIZE];
    enum as_direction direction;
    int32_t replicas, desired, would;
    enum as_reason reason;
    char *rule;
    uint64_t repeats;
};

/* Of limits over all targets. */
struct spent {
    as_mono_time at;
    int64_t amount;
};
struct window {
    struct spent *items; /* ascending by time */
    size_t count, capacity;
    int64_t total;
};
struct turn { /* of one who waits for a place */
    TAILQ_ENTRY(target) link;
    bool is_waiting;
    bool is_current;    /* it was said so by the last decision, or the one being made */
    bool lacks_removal; /* waits for others to have removed, whatever there is of actions */
    int64_t removal;
};

struct turn_after { /* of one that names others in `after` */
    TAILQ_ENTRY(target) link;
    bool is_held, is_begun;       /* begun: `until` counts */
    const struct target *blocker; /* the first that was found at work; may be gone by now */
    as_mono_time until;
};

struct target {
    RB_ENTRY(target) by_id, by_deadline, by_ticket;
    TAILQ_ENTRY(target) in_gone;
    as_mono_time deadline;
    uint64_t ticket;
    enum phase phase;
    struct as_target_ref *ref;
    const struct as_target_config *config; /* NULL: no rule leads to it */
    struct group_tree groups;
    size_t open_bindings;
    uint64_t generation; /* of the rules by which it is being evaluated */
    unsigned pins;       /* waiters that point here */
    bool dirty;          /* something happened since the last decision */
    bool has_size;
    int32_t replicas, status_replicas, desired;
    struct as_moment observed;
    struct as_moment last_up, last_down, dry_last_up, dry_last_down; /* of the locks */
    struct as_moment last_step_down;                                 /* of our decreases */
    int64_t keep_us;
    bool is_stored;                                 /* the store has something of it */
    struct store_keys stored_as, intents_stored_as; /* until they are written anew */
    char uid[AS_UID_SIZE];        /* of the object that this is about; "": not known */
    char former_uid[AS_UID_SIZE]; /* of the one before it, which does not come back */
    struct as_moment born;        /* when it was first seen in the place of another */
    bool is_untold;               /* no decision's record has said so yet */
    struct as_past_event *events; /* our changes, ascending by time */
    size_t event_count, event_capacity;
    struct as_past_recommendation *recommendations; /* ascending by time; none that a later one
                                                       makes meaningless */
    size_t recommendation_count, recommendation_capacity;
    struct ask_list asks;
    size_t ask_count, asks_open;
    bool with_pods; /* they are asked for with the size */
    struct held *held;
    struct ending_list endings; /* by the time of their ends */
    size_t ending_count;
    char *entry;             /* the target's name in the rule files when an incident ended or a size
                                was ordered; or NULL */
    struct intent *intent;   /* being carried out */
    struct intent *maybe;    /* answered by nobody, may still be carried out */
    struct lock_cause cause; /* of the last change of the size */
    unsigned failures, conflicts;
    as_mono_time failed; /* the last time */
    as_mono_time retry;  /* after that; not before, whatever comes */
    enum as_reason failure;
    uint64_t failure_repeats;
    struct pause pause;
    TAILQ_ENTRY(target) of_paused;
    struct ordered ordered;
    struct growth growth;
    bool names_instances, is_relative; /* as last observed */
    struct asked asked;
    struct origin origin;
    struct verdict verdict, dry_verdict;
    char last_decision[AS_ULID_SIZE];
    as_wall_time decided_at;
    LIST_ENTRY(target) of_entry; /* where there is a config: all targets of it */
    struct turn turn;
    struct turn_after turn_after;
    int32_t managed;  /* its size, as far as it counts in the budget */
    int64_t removing; /* by an action under way, or of which nobody knows */
};
RB_HEAD(target_tree, target);
TAILQ_HEAD(target_list, target);
LIST_HEAD(member_list, target);
RB_HEAD(deadline_tree, target);
RB_HEAD(ticket_tree, target);

struct budget {                                 /* over all targets */
    struct window begun;                        /* actions */
    struct window removed[AS_TARGET_KINDS_MAX]; /* replicas, when it was done */
    int64_t removing[AS_TARGET_KINDS_MAX];      /* the targets' sum */
    int64_t managed[AS_TARGET_KINDS_MAX];       /* the targets' sum */
    struct target_list waiting;                 /* the oldest first */
};

struct waiter { /* for a commit */
    STAILQ_ENTRY(waiter) next;
    uint64_t ticket;
    bool has_request;
    uint64_t request;
    struct target *target; /* whose intent or outcome it is; or NULL */
    struct target **kick;  /* to be evaluated then */
    size_t kick_count, kick_capacity;
};
STAILQ_HEAD(waiter_list, waiter);

/* What incidents begin and end by: a notification, the list of alerts, or time alone. */
struct cause {
    const char *notification; /* its id; NULL where it is none */
    const char *credential;   /* "": nobody's, and trusted */
    struct target **touched;  /* to be evaluated when it is committed; may repeat */
    size_t touched_count, touched_capacity;
};

struct as_engine {
    struct as_engine_config config;
    const struct as_ruleset *ruleset;
    struct as_rule_index *index;
    struct as_random random;
    uint64_t generation; /* of the rules */
    bool stopping;

    as_mono_time mono; /* of the event being handled */
    as_wall_time wall;

    struct incident_tree incidents;
    uint64_t *former; /* keys of earlier versions whose incidents are gone; until the start */
    size_t former_count, former_capacity;
    struct incident_list open, resolved, graveyard; /* graveyard: freed at the next step */
    size_t open_count;
    size_t incident_bytes; /* of all incidents in the tree */
    uint64_t next_serial;

    struct target_tree targets;
    struct deadline_tree deadlines;
    struct ticket_tree tickets;
    struct target_list gone;            /* freed at the next step */
    struct as_target_ref **former_refs; /* likewise: of targets whose address is spelled anew */
    size_t former_ref_count, former_ref_capacity;
    size_t target_count, busy_count, named_count;
    struct budget budget;
    struct member_list *members;  /* one an entry of the rule set */
    struct target_list held_back; /* for those in their `after`; in the order in which they were */

    struct pause pause, halt; /* of all targets: an operator's, the kill switch */
    struct target_list paused;
    size_t paused_count;
    as_mono_time pause_due; /* the first end */

    struct ask_tree asks;     /* that are not answered */
    struct ask_list answered; /* of the last decisions; freed at the next step */

    uint64_t list_ticket;              /* of the list under way; 0: none is */
    as_mono_time list_due, list_asked; /* asked: when the last one was asked for */
    unsigned list_failures;            /* in a row */
    as_mono_time watchdog_seen;

    uint64_t next_ticket;
    struct waiter_list waiters;

    struct as_arena arena; /* of this step's effects */
    struct as_effect *effects;
    size_t effect_count, effect_capacity;
};

static inline struct as_moment moment_now(const struct as_engine *engine)
{
    return (struct as_moment){engine->mono, engine->wall};
}

static inline struct as_moment moment_get_later(struct as_moment a, struct as_moment b)
{
    return a.mono.us >= b.mono.us ? a : b;
}

/* The wall time that belongs to a moment on the timeline of the event being handled: ages stay
 * exact when the clock jumps. */
static inline as_maybe_time moment_get_wall(const struct as_engine *engine, struct as_moment moment)
{
    if (!as_moment_is_set(moment))
        return (as_maybe_time){0};
    return (as_maybe_time){true, {engine->wall.us - (engine->mono.us - moment.mono.us)}};
}

/* Alertmanager keeps its alert from being sent: the incident stays open, and moves nothing. */
static inline bool incident_is_held(const struct incident *incident)
{
    return as_moment_is_set(incident->silenced);
}

static inline bool is_ahead(const struct as_engine *engine, as_wall_time start)
{
    return start.us > as_time_add(engine->wall.us, CLOCK_OFF_US);
}

/* Alertmanager's API cuts startsAt to milliseconds, its notifications do not: one stretch of firing
 * has both. */
static inline bool starts_later(as_wall_time start, as_wall_time than)
{
    return start.us - than.us >= AS_US_PER_MS;
}

RB_PROTOTYPE(incident_tree, incident, by_digest, incident_compare)
RB_PROTOTYPE(target_tree, target, by_id, target_compare)
RB_PROTOTYPE(deadline_tree, target, by_deadline, deadline_compare)
RB_PROTOTYPE(ticket_tree, target, by_ticket, ticket_compare)
RB_PROTOTYPE(group_tree, group, in_target, group_compare)
RB_PROTOTYPE(ask_tree, ask, by_ticket, ask_compare)

/* engine_effects.c */
struct as_effect *effect_add(struct as_engine *engine, enum as_effect_kind kind);
struct waiter *effect_commit_awaited(struct as_engine *engine);
void effect_commit(struct as_engine *engine); /* nobody waits */
void effect_put_incident(struct as_engine *engine, struct incident *incident);
void effect_delete_incident(struct as_engine *engine, const struct incident *incident);
void effect_delete_former(struct as_engine *engine, uint64_t former);
void effect_put_target(struct as_engine *engine, struct target *target);
void effect_delete_target(struct as_engine *engine, struct target *target);
void effect_put_intent(struct as_engine *engine, struct target *target, const struct intent *intent,
                       bool maybe);
void effect_delete_intent(struct as_engine *engine, struct target *target);
struct as_incident_record *effect_incident_record(struct as_engine *engine,
                                                  const struct incident *incident,
                                                  enum as_incident_event event,
                                                  const char *notification);

/* engine_incidents.c */
void incidents_handle(struct as_engine *engine, const struct as_notification *notification,
                      uint64_t request);
struct incident *incident_find(const struct as_engine *engine, const struct as_digest *digest,
                               const char *owner);
struct as_alert_outcome incident_see(struct as_engine *engine, struct cause *cause,
                                     const struct as_listed_alert *alert);
/* All incidents of one alert: the first, and those behind it; NULL: there is no other. */
struct incident *incident_find_first(const struct as_engine *engine,
                                     const struct as_digest *digest);
struct incident *incident_find_next(struct incident *incident);
void incident_see_listed(struct as_engine *engine, struct cause *cause, struct incident *incident,
                         bool is_suppressed);
void incident_close(struct as_engine *engine, struct cause *cause, struct incident *incident,
                    as_wall_time starts_at);
void cause_touch(struct as_engine *engine, struct cause *cause, const struct incident *incident,
                 struct target *target); /* to be evaluated when the cause is committed */
struct waiter *cause_commit(struct as_engine *engine, struct cause *cause);
void incidents_expire(struct as_engine *engine);
as_mono_time incidents_get_deadline(const struct as_engine *engine);
void incident_insert(struct as_engine *engine, struct incident *incident);
void incident_bury(struct as_engine *engine, struct incident *incident);
void incident_free(struct incident *incident);
struct as_incident_state incident_get_state(const struct incident *incident); /* without progress */
struct as_incident_target binding_get_target(const struct binding *binding);

/* engine_alerts.c */
void alerts_resume(struct as_engine *engine);
void alerts_on_deadline(struct as_engine *engine);
as_mono_time alerts_get_deadline(const struct as_engine *engine);
void alerts_on_listed(struct as_engine *engine, uint64_t ticket, const struct as_alert_list *list);
void watchdog_see(struct as_engine *engine, const struct as_labels *labels);
bool watchdog_is_alive(const struct as_engine *engine);
/* Prometheus evaluates and sends alerts of different groups so far apart (a minute each, unless
 * configured otherwise). */
#define WATCHDOG_SPREAD_US (2 * AS_US_PER_MIN)
bool watchdog_proves(const struct as_engine *engine, struct as_moment moment);
bool watchdog_is_same(const struct as_engine_config *a, const struct as_engine_config *b);

/* engine_bindings.c */
enum bind_result { BIND_OK, BIND_NO_RULE, BIND_DISABLED, BIND_NOT_ALLOWED, BIND_FORBIDDEN };
enum bind_result bindings_make(struct as_engine *engine, struct incident *incident,
                               const struct as_labels *labels, const struct as_labels *annotations);
enum bind_result bindings_check(struct as_engine *engine, const struct as_labels *labels,
                                const char *receiver);
void bindings_remake(struct as_engine *engine, struct incident *incident);
void bindings_drop(struct as_engine *engine, struct incident *incident);
void bindings_remake_all(struct as_engine *engine); /* after new rules */
void bindings_forget_sizes(struct as_engine *engine, struct target *target);
bool rule_keeps_progress(const struct as_rule *rule, const struct as_target_config *config);
bool binding_is_used_up(const struct binding *binding);
as_mono_time binding_get_due_unheld(const struct binding *binding);
as_mono_time binding_get_due(const struct binding *binding); /* never while it is held */
as_mono_time bindings_get_next_due(const struct as_engine *engine, struct target *target);
struct group *group_find(struct target *target, const char *rule);

/* engine_news.c */
void news_note(struct as_engine *engine, struct cause *cause, struct incident *incident);
void news_note_listed(struct as_engine *engine, struct cause *cause, struct incident *incident,
                      const struct as_listed_alert *alert);
/* When someone who may trigger the rule last said that the alert fires; INT64_MIN: nobody since the
 * start. */
as_mono_time news_get(const struct as_engine *engine, const struct binding *binding);

/* engine_room.c */
void room_account(struct as_engine *engine, struct incident *incident); /* after it has changed */
void room_give_back(struct as_engine *engine, struct incident *incident);
size_t room_get_used(const struct as_engine *engine); /* bytes */

/* engine_scopes.c */
bool scope_is_whole(const struct as_engine *engine, const char *credential);
/* The credential may trigger the rule there. */
bool scope_lets(const struct as_engine *engine, const char *credential, const struct as_rule *rule,
                const struct as_target_ref *ref);
/* One of the incident's credentials may trigger the rule there. */
bool scope_allows(const struct as_engine *engine, const struct incident *incident,
                  const struct as_rule *rule, const struct as_target_ref *ref);
/* The credential may trigger some rule that the alert, or its incident (NULL: none), matches. */
bool scope_reaches(struct as_engine *engine, const char *credential,
                   const struct incident *incident, const struct as_listed_alert *alert);
/* It may trigger whatever rule these labels can match, through any receiver and with any
 * annotations: nothing that it says of the alert touches what is beyond it. */
bool scope_spans(const struct as_engine *engine, const char *credential,
                 const struct as_labels *labels);
/* Whose incident of the alert it is that the credential speaks about. */
const char *scope_get_owner(const struct as_engine *engine, const char *credential,
                            const struct as_labels *labels);
/* It may trigger every rule that the incident is bound to. */
bool scope_covers(const struct as_engine *engine, const char *credential,
                  const struct incident *incident);
/* An operator's order for the target (NULL: all of them). */
bool scope_allows_order(const struct as_engine *engine, const char *credential,
                        const struct target *target);
bool incident_has_receiver(const struct incident *incident, const char *receiver);
bool incident_add_credential(struct incident *incident, const char *credential);

/* engine_owners.c */
/* What rules have done for `from` counts for the incident as well. Neither is bound now. */
void owners_share_progress(struct incident *incident, const struct incident *from);
/* The same for one binding, from the other incidents of its alert. */
void owners_inherit(const struct as_engine *engine, struct binding *binding);
/* After new rules or credentials, while no incident is bound: whose each is. */
void owners_find(struct as_engine *engine);

/* engine_targets.c */
struct target *target_get(struct as_engine *engine, struct as_target_ref *ref_taken);
/* The target of an address that the entry gives; NULL where the target is another entry's: the one
 * with a plain address, else the one in use. */
struct target *target_claim(struct as_engine *engine, const struct as_target_config *config,
                            struct as_target_ref *ref_taken);
struct target *target_free(struct target *target);
void target_touch(struct as_engine *engine, struct target *target, struct waiter *waiter);
void target_ask(struct as_engine *engine, struct target *target, const char *notification,
                as_wall_time starts_at);
void target_evaluate(struct as_engine *engine, struct target *target);
/* After new rules, and after a restart: its entry, found again by its name. False: none. */
bool target_recover_config(struct as_engine *engine, struct target *target);
/* How its instances are nodes; NULL: it is no node group. */
const struct as_nodes_config *target_get_nodes(const struct target *target);
void target_set_phase(struct as_engine *engine, struct target *target, enum phase phase);
void target_set_deadline(struct as_engine *engine, struct target *target, as_mono_time deadline);
void target_set_deadline_in(struct as_engine *engine, struct target *target, int64_t us);
/* `next`, but soon enough to see that another object has the target's name. */
as_mono_time target_limit_look(const struct as_engine *engine, const struct target *target,
                               as_mono_time next);
void target_hasten(struct as_engine *engine, struct target *target);
void target_back_off(struct as_engine *engine, struct target *target, enum as_reason outcome,
                     int64_t retry_after_us);
void target_set_keep(const struct as_engine *engine, struct target *target);
void target_settle_down(struct as_engine *engine,
                        struct target *target); /* idle again: what next? */
void target_on_observed(struct as_engine *engine, struct target *target,
                        const struct as_observation *observation);
void target_on_queried(struct as_engine *engine, uint64_t ticket,
                       const struct as_query_result *result);
void target_on_deadline(struct as_engine *engine, struct target *target);
void targets_make_named(struct as_engine *engine);
void targets_stop_sampling(struct as_engine *engine);
void asked_clear(struct asked *asked);

/* engine_decisions.c */
struct outcome { /* of deciding */
    struct as_decision decision;
    const char *id;   /* of its record, which may be an earlier one that says the same */
    bool is_decided;  /* else nothing was proposed, and no bound enforced */
    bool is_recorded; /* there are effects to commit */
    as_mono_time due; /* when a proposal that is not due now will be */
};
as_mono_time decisions_get_next_due(const struct as_engine *engine, struct target *target);
void decisions_make(struct as_engine *engine, struct target *target,
                    const struct as_observation *observation, struct outcome *outcome_out);

/* engine_sources.c */
#define ASK_AGAIN_US (15 * AS_US_PER_S) /* where a rule does not say `every` */
#define SOURCES_NO_GUARD                                                                           \
    "# the guard's templates cannot be filled in" /* never met: it is not asked */
void ask_free(struct ask *ask);
void sources_ask(struct as_engine *engine, struct target *target);
void sources_drop(struct as_engine *engine, struct target *target);
struct target *sources_answer(struct as_engine *engine, uint64_t ticket,
                              const struct as_query_result *result);
const char *sources_get_guard(struct as_engine *engine, const struct as_rule *rule,
                              const struct incident *incident);
bool sources_is_guard_met(const struct target *target, const char *text);
bool sources_is_same_for_all(const struct as_rule *rule);
void sources_read(struct as_engine *engine, const struct target *target, const struct as_rule *rule,
                  const struct incident *incident, struct as_proposal *proposal,
                  const char **text_out);
bool sources_need_pods(const struct target *target);
void sources_fill_pods(struct as_engine *engine, const struct target *target,
                       const struct as_observation *observation, struct as_decide_input *input);
int64_t sources_get_interval(const struct target *target);

/* engine_endings.c */
void endings_begin(struct as_engine *engine, const struct incident *incident);
bool endings_review(struct as_engine *engine, struct target *target, int32_t replicas);
bool ending_get_action(const struct as_engine *engine, const struct ending *ending,
                       int32_t replicas, struct as_action *action_out);
bool endings_finish(struct as_engine *engine, struct target *target,
                    const struct as_decision *decision, bool is_live);
bool ending_is_proven(const struct as_engine *engine, const struct target *target,
                      const struct ending *ending);
as_mono_time endings_get_next_due(const struct as_engine *engine, const struct target *target);
void endings_on_applied(struct as_engine *engine, struct target *target, const char *rule,
                        int32_t from, int32_t to);
bool endings_remake(struct as_engine *engine, struct target *target);
void endings_forget_sizes(struct target *target); /* of give_back: they are another object's */
void endings_restore(struct target *target, const struct as_target_state *state);
void endings_fill_state(struct as_engine *engine, const struct target *target,
                        struct as_target_state *state);
void endings_free(struct target *target);

/* engine_proposals.c */
struct proposer { /* where a proposal comes from: an incident of a group (NULL: to stay), or an
                     ending */
    struct group *group;
    const struct incident *incident;
    const struct ending *ending;
};
struct proposals {
    struct as_proposal *items;
    struct proposer *origins; /* one an item */
    size_t count;
    bool has_dry;                /* a rule with dry_run is among the target's */
    struct as_digest *incidents; /* the first AS_RECORD_LIST_MAX */
    size_t incident_count;
    uint64_t incident_total;
};
void proposals_gather(struct as_engine *engine, struct target *target, bool with_dry,
                      struct proposals *proposals_out);
void sources_check_pods(struct as_engine *engine, const struct as_observation *observation,
                        struct proposals *proposals); /* of engine_sources.c */
bool proposals_lack_proof(struct as_engine *engine, const struct target *target,
                          const struct proposals *proposals,
                          const struct as_proposal_result *results,
                          const struct as_decision *decision);
void proposals_note_wishes(const struct proposals *proposals,
                           const struct as_proposal_result *results, int32_t replicas);

/* engine_history.c */
int64_t history_get_span(const struct as_engine *engine); /* of the changes that are kept */
void history_add_event(struct as_engine *engine, struct target *target, int32_t change);
void history_begin(struct as_engine *engine, struct target *target, int32_t replicas);
bool history_add_recommendation(struct as_engine *engine, struct target *target, int32_t replicas);
void history_fill(struct as_engine *engine, const struct target *target,
                  struct as_decide_input *input);
void history_restore(struct target *target, const struct as_target_state *state);
void history_free(struct target *target);

/* engine_limits.c */
void limits_init(struct as_engine *engine);
void limits_deinit(struct as_engine *engine);
/* True: the change would exceed a limit now, and the target waits for its turn. */
bool limits_refuse(struct as_engine *engine, struct target *target, int32_t from, int32_t to);
/* When one that was refused may fit; AS_MONO_NEVER: not by time alone. */
as_mono_time limits_get_free_time(const struct as_engine *engine, const struct target *target,
                                  int32_t from, int32_t to);
void limits_note_begun(struct as_engine *engine, struct target *target, int32_t from, int32_t to);
/* With the new size and `maybe` in the target: it does not end while it may still be done. */
void limits_note_ended(struct as_engine *engine, struct target *target, int32_t from, int32_t to,
                       bool applied);
void limits_on_evaluate(struct target *target);
void limits_on_idle(struct as_engine *engine, struct target *target);
void limits_forget(struct as_engine *engine, struct target *target);
void limits_restore(struct as_engine *engine);
void limits_on_rules(struct as_engine *engine, const struct as_limits *old);

/* engine_after.c */
void after_init(struct as_engine *engine);
void after_deinit(struct as_engine *engine);
void after_reset(struct as_engine *engine); /* for a rule set, before its entries have targets */
void target_set_config(struct as_engine *engine, struct target *target,
                       const struct as_target_config *config);
bool after_must_wait(struct as_engine *engine, struct target *target);
void after_release(struct as_engine *engine, struct target *target);
void after_forget(struct as_engine *engine, struct target *target);

/* engine_orders.c */
void orders_handle(struct as_engine *engine, const struct as_order *order, uint64_t request);
void orders_on_halt(struct as_engine *engine); /* to be committed */
struct as_order_record *orders_record(struct as_engine *engine, const struct as_order *order,
                                      const struct target *target, uint64_t request);
/* The target is seen. True: what was ordered has begun; false: nothing is to be done now. */
bool orders_begin(struct as_engine *engine, struct target *target,
                  const struct as_observation *observation);
/* It could not be observed, or (told by a record already) a request failed; true: given up, and the
 * target is to be stored. */
bool orders_on_failure(struct as_engine *engine, struct target *target, enum as_reason outcome,
                       bool is_told);
bool orders_remake(struct as_engine *engine, struct target *target); /* true likewise */
void orders_supersede(struct as_engine *engine, struct target *target, const char *why);
bool orders_is_of(const struct target *target, const struct intent *intent); /* that waits now */
void orders_on_applied(struct target *target, const struct intent *intent);
void orders_restore(struct target *target, const struct as_target_state *state);
void orders_fill_state(struct as_engine *engine, const struct target *target,
                       struct as_target_state *state);

/* engine_growth.c */
struct locks growth_get_locks(const struct target *target, as_mono_time now);
void growth_begin(struct as_engine *engine, struct target *target, const struct intent *intent);
void growth_refuse(struct as_engine *engine, struct target *target); /* for want of capacity */
/* What has not come cannot be taken back either: the group is no longer held up by it. */
void growth_give_up(struct as_engine *engine, struct target *target);
bool growth_is_taken_back(const struct target *target, const struct intent *intent);
/* Before the target is stored. What is to be told of a taking back, else NULL. `why` it did not
 * come, in the provider's words; "" where they are not known. */
const char *growth_on_applied(struct as_engine *engine, struct target *target,
                              const struct intent *intent, const char *why);
bool growth_is_awaited(const struct target *target, const struct as_observation *observation);
/* The target is seen. True: what has not come is being taken back. */
bool growth_review(struct as_engine *engine, struct target *target,
                   const struct as_observation *observation);
bool growth_remake(struct as_engine *engine, struct target *target); /* as orders_remake */
void growth_restore(struct target *target, const struct as_target_state *state);
void growth_fill_state(struct as_engine *engine, const struct target *target,
                       struct as_target_state *state);

/* engine_pauses.c */
void pauses_init(struct as_engine *engine);
void pauses_deinit(struct as_engine *engine);
void pause_set(struct as_engine *engine, struct target *target, const struct as_order *order);
void pause_clear(struct as_engine *engine, struct target *target); /* target NULL: of all */
void pause_free(struct pause *pause);
/* What holds the target now; NULL: nothing does. */
const struct pause *pauses_find(const struct as_engine *engine, const struct target *target);
const struct as_pause_note *pauses_note(struct as_engine *engine, const struct target *target);
/* Why the intent must not be sent; NULL where it may. Static memory. */
const char *pauses_find_obstacle(const struct as_engine *engine, const struct target *target,
                                 const struct intent *intent);
void pauses_on_halt(struct as_engine *engine, const struct as_halt *halt);
void pauses_on_deadline(struct as_engine *engine);
void pauses_touch_all(struct as_engine *engine, struct waiter *waiter);
void pauses_restore(struct as_engine *engine, struct target *target,
                    const struct as_pause_state *state);
void pauses_fill_state(struct as_engine *engine, const struct target *target,
                       struct as_target_state *state);

/* engine_view.c */
struct as_moment lock_get_end(struct as_moment since, int64_t lock_us, as_mono_time now,
                              as_wall_time wall);

/* engine_steps.c */
void steps_count(struct as_engine *engine, struct target *target, const struct intent *intent);

/* engine_actions.c */
struct as_action_record *actions_record_order(struct as_engine *engine, struct target *target,
                                              enum as_reason outcome, int32_t from);
void actions_begin_ordered(struct as_engine *engine, struct target *target,
                           const struct as_observation *observation);
void actions_begin_take_back(struct as_engine *engine, struct target *target,
                             const struct as_observation *observation, int32_t to);
void actions_begin(struct as_engine *engine, struct target *target,
                   const struct as_observation *observation, const struct outcome *outcome);
void actions_on_intent(struct as_engine *engine, struct target *target);
void actions_on_scaled(struct as_engine *engine, struct target *target,
                       const struct as_scale_result *result);
bool actions_settle_maybe(struct as_engine *engine, struct target *target,
                          const struct as_observation *observation);
void actions_give_up_maybe(struct as_engine *engine, struct target *target);
void actions_supersede_maybe(struct as_engine *engine, struct target *target, const char *why);
void actions_record_failure(struct as_engine *engine, struct target *target,
                            const struct as_observation *observation);
void lock_cause_free(struct lock_cause *cause);
struct intent *intent_free(struct intent *intent);

/* engine_objects.c */
/* Before anything is made of an observation. What belongs to another object of the name is dropped,
 * recorded and committed. */
void object_see(struct as_engine *engine, struct target *target, const char *uid);

/* engine_restore_targets.c */
struct as_target_ref *target_ref_of_id(const char *id);
void store_keys_free(struct store_keys *keys);

/* engine_restore.c */
void restore_finish(struct as_engine *engine);

#endif
