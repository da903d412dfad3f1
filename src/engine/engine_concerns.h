/*
 * The concerns of a target: each has state on a target and a say in its decisions. Phases,
 * decisions and actions call the hooks of all concerns, in the order of the table. Behind the
 * table, a section for each concern has the functions that other modules call.
 *
 * A concern knows no phase. Its module defines its state, its hooks and its row.
 */
#ifndef ALERTSCALER_SRC_ENGINE_ENGINE_CONCERNS_H
#define ALERTSCALER_SRC_ENGINE_ENGINE_CONCERNS_H

#include <stdbool.h>

#include "engine_phases.h"
#include "engine_state.h"

struct other_object {             /* why the sizes of a target mean nothing any more */
    const char *cause, *given_up; /* for what ends; for an action that is given up */
};

struct change { /* of the size, without a decision */
    int32_t to;
    const char *cause; /* id of the decision or command that led to it; borrowed */
    bool is_ordered, is_narrowed, is_clean_up; /* as in struct intent */
    as_maybe_time later_than;
};

struct marks {          /* what an action is, beside a change of the size */
    bool is_take_back;  /* of instances that did not come */
    bool is_put_back;   /* of the size before a rollout that did not end */
    bool is_catch_up;   /* for pods that came later: no change of the target */
    bool is_assignment; /* of the target's pool */
    bool is_for_pods;   /* an increase for pods that wait */
};

struct action {
    struct intent *intent;
    const struct as_scale_result *result;
    struct as_action_record *record; /* its message may be replaced by a better one */
    struct marks marks;              /* from before the hooks */
    bool is_late;                    /* found to be done when the target was observed again */
};

/* Kinds of blocks, as bits. BLOCK_OF_POOL in a question: the blocks of the target's pool count,
 * too.
 */
enum block_kind {
    BLOCK_PAUSE = 1,        /* and the kill switch, of this target or of all */
    BLOCK_RULE = 2,         /* a rule with `hold` whose alert fires and is not silenced */
    BLOCK_SCHEDULE = 4,     /* a schedule with `hold` */
    BLOCK_DID_NOT_COME = 8, /* the last increase did not come */
    BLOCK_INEFFECTIVE = 16, /* a rule did not help: of this rule alone */
    BLOCK_OF_POOL = 32,
    BLOCK_ROLLOUT = 64, /* a rollout is under way, or this is not known */
};
#define BLOCK_HOLDS (BLOCK_PAUSE | BLOCK_RULE | BLOCK_SCHEDULE)
#define BLOCK_OWN   (BLOCK_HOLDS | BLOCK_DID_NOT_COME)

struct block { /* a reason why a target must not be scaled in these directions */
    enum as_ways ways;
    unsigned kind;
    bool is_of_all;          /* a pause of all targets, or the kill switch */
    const char *name, *rule; /* as in struct as_forbidden; borrowed from the state or the rules */
    as_maybe_time until;
};
typedef void block_visit_fn(void *context, const struct block *block);

/* A moment, and for whom blocks are listed. */
struct block_query {
    const struct as_engine *engine;
    as_mono_time now;
    as_wall_time wall;
    block_visit_fn *visit;
    void *context;
};

/* A row: a hook for each place where phases, decisions and actions call all concerns. NULL: the
 * concern has no part in it. */
struct concern {
    const char *name;
    size_t size;                         /* of its state on a target; 0: it has none */
    void (*init)(struct target *target); /* its state is zeros */
    void (*deinit)(struct target *target);
    /* The stored form: to it, in the step's memory, and from it, before the first event. */
    void (*store)(struct as_engine *engine, const struct target *target,
                  struct as_target_state *state);
    void (*restore)(struct as_engine *engine, struct target *target,
                    const struct as_target_state *state);
    /* The target is new, or has another entry of the rule files. */
    void (*on_entry)(struct as_engine *engine, struct target *target);
    /* After new rules, and after a restart: finds again what its state needs of the rules. True:
     * the target is to be stored. */
    bool (*remake)(struct as_engine *engine, struct target *target);
    /* `former` is the same target under another id: moves what belongs to its name. Commits. */
    void (*unite)(struct as_engine *engine, struct target *target, struct target *former);
    /* It goes on after a restart although no alert has given the target's address yet. */
    bool (*needs_address)(const struct target *target);
    void (*fill_view)(const struct target *target, as_mono_time now, as_wall_time wall,
                      struct as_target_view *view);
    /* Something wants the target to be observed and decided. */
    bool (*is_using)(const struct as_engine *engine, const struct target *target);
    /* Until when a target that nothing uses must be remembered; INT64_MIN: not at all. */
    as_mono_time (*get_forget_time)(const struct target *target);
    /* Another object has the name, or sizes are counted in another unit. To be stored. */
    void (*forget_sizes)(struct as_engine *engine, struct target *target,
                         const struct other_object *why);
    /* The target was observed; commits what it changes. */
    void (*on_observed)(struct as_engine *engine, struct target *target,
                        const struct as_observation *observation);
    /* The target could not be observed. True: it is to be stored. */
    bool (*on_unseen)(struct as_engine *engine, struct target *target, enum as_reason outcome);
    /* May request a size without a decision: the first concern that requests one (true) is the last
     * one that is asked. */
    bool (*claim)(struct as_engine *engine, struct target *target,
                  const struct as_observation *observation, struct change *change_out);
    /* Before a decision: ends what is over. True: the target is to be stored. */
    bool (*review)(struct as_engine *engine, struct target *target, int32_t replicas);
    void (*fill_input)(struct as_engine *engine, const struct target *target,
                       const struct as_observation *observation, struct as_decide_input *input);
    /* Visits the blocks of the target. */
    void (*visit_blocks)(const struct block_query *query, const struct target *target);
    /* Sets the marks that are the concern's. */
    void (*mark)(const struct target *target, const struct intent *intent, struct marks *marks);
    /* Why a committed intent must not be sent; NULL: it may. The first obstacle counts. Static
     * memory. */
    const char *(*find_obstacle)(const struct as_engine *engine, const struct target *target,
                                 const struct intent *intent);
    /* The intent was not sent. */
    void (*on_unsent)(struct as_engine *engine, struct target *target, struct intent *intent);
    /* The size is set, or its change was accepted. The target still has its former size. It is
     * stored afterwards. */
    void (*on_applied)(struct as_engine *engine, struct target *target,
                       const struct action *action);
    /* The request has failed, or its answer was lost. */
    void (*on_failed)(struct as_engine *engine, struct target *target, const struct action *action);
    /* The target is idle: ends what is over. True: the target is to be stored. */
    bool (*on_idle)(struct as_engine *engine, struct target *target);
    /* The target stays idle: others may go on. */
    void (*release)(struct as_engine *engine, struct target *target);
    /* How soon an idle target must be observed; INT64_MAX: the concern does not say. */
    int64_t (*get_observe_us)(const struct as_engine *engine, const struct target *target);
    /* The target goes out of memory. */
    void (*forget)(struct as_engine *engine, struct target *target);
};

/* The table, in the order in which each hook is called. The order matters where a hook has effects:
 * the simulator's digests notice another one. ROW(ID, name): CONCERN_ID is the index of the row
 * concern_name. */
#define ENGINE_CONCERNS(ROW)                                                                       \
    ROW(HISTORY, history)                                                                          \
    ROW(PAUSES, pauses)                                                                            \
    ROW(LIMITS, limits)                                                                            \
    ROW(ALIASES, aliases)                                                                          \
    ROW(POOLS, pools)                                                                              \
    ROW(AFTER, after)                                                                              \
    ROW(CONTENTION, contention)                                                                    \
    ROW(ENDINGS, endings)                                                                          \
    ROW(INCIDENTS, incidents)                                                                      \
    ROW(ALWAYS, always)                                                                            \
    ROW(SCALEUPS, scaleups)                                                                        \
    ROW(RESIZES, resizes)                                                                          \
    ROW(EVALUATIONS, evaluations)                                                                  \
    ROW(IN_DOUBT, in_doubt)                                                                        \
    ROW(METRIC_GAPS, metric_gaps)                                                                  \
    ROW(COMMANDS, commands)                                                                        \
    ROW(APPROVALS, approvals)                                                                      \
    ROW(SCHEDULES, schedules)                                                                      \
    ROW(SCHEDULE_ENDS, schedule_ends)                                                              \
    ROW(LISTINGS, listings)                                                                        \
    ROW(UNREGISTERED, unregistered)                                                                \
    ROW(ROLLOUTS, rollouts)                                                                        \
    ROW(BLOCKS, blocks)                                                                            \
    ROW(TEMPLATES, templates)                                                                      \
    ROW(UNMATCHED, unmatched)

#define CONCERN_ID(ID, name) CONCERN_##ID,
enum concern_id { ENGINE_CONCERNS(CONCERN_ID) CONCERN_COUNT };
#undef CONCERN_ID

#define CONCERN_ROW(ID, name) extern const struct concern concern_##name;
ENGINE_CONCERNS(CONCERN_ROW)
#undef CONCERN_ROW

extern const struct concern *const engine_concerns[]; /* the last one is NULL */

/* `concern` is each row of the engine's table in turn. */
#define FOR_CONCERNS(engine, concern)                                                              \
    for (const struct concern *const *row_ = (engine)->concerns, *concern; (concern = *row_);      \
         row_++)

/* The first cause counts. */
static inline void input_set_in_progress(struct as_decide_input *input, enum as_in_progress_by by)
{
    if (!input->flags.in_progress)
        input->flags.in_progress_by = by;
    input->flags.in_progress = true;
}

/*
 * Increases of node groups, and of workloads with ready_timeout, that have not arrived yet.
 */

/* How often a growing target is observed, at least. */
#define SCALEUP_OBSERVE_US (15 * AS_US_PER_S)

struct locks { /* of cooldowns, and of a back-off */
    struct as_moment up, down;
    struct as_cooldown cooldown;
};

/* The state, to read. */
static inline const struct as_scaleup_state *scaleup_get(const struct target *target)
{
    return target->parts[CONCERN_SCALEUPS];
}

/* A workload's last increase was not ready in time, or a container's resource could not become the
 * requested size: no rule steps up. */
bool scaleup_did_not_come(const struct target *target, as_mono_time now);
void scaleup_end_back_off(struct target *target);   /* to be stored */
void scaleup_forget_surplus(struct target *target); /* to be stored */
struct locks scaleup_get_locks(const struct target *target, as_mono_time now);
/* The provider reports that the requested instances do not come. True: this is new; to be stored.
 */
bool scaleup_on_shortage(struct as_engine *engine, struct target *target,
                         const struct as_observation *observation);
/* An increase has failed for another reason. To be stored. */
void scaleup_fail(struct as_engine *engine, struct target *target);
/* Whether the group backs off for it: not where it may still be done, or was only too early. */
bool scaleup_is_failure(const struct as_scale_result *result);
/* Only a person, or time, changes this outcome. */
bool scaleup_is_final(enum as_reason outcome);
bool scaleup_is_backing_off(const struct target *target, as_mono_time now);
/* When the back-off ends; unset: there is none. */
as_maybe_time scaleup_get_open_at(const struct as_engine *engine, const struct target *target);
/* Nodes of such increases that are still in the size. */
int32_t scaleup_get_surplus(const struct target *target);
/* Nodes that another controller has requested do not register. True: the group backs off for them
 * from now on; to be stored. */
bool scaleup_note_unregistered(struct as_engine *engine, struct target *target, int32_t count);
/* What a refused increase lacks. */
int32_t scaleup_get_refused(const struct target *target);
int64_t scaleup_get_timeout(const struct target *target); /* of a workload; 0: nobody waits */
/* Instances that serve, or ready pods; where the pods are not known, the pods that there are. */
int32_t scaleup_count_ready(const struct as_observation *observation);
bool scaleup_needs_pods(const struct target *target);

/*
 * A target's bounds in force: its own, those of its schedules, and those that the other side has.
 * They follow from the wall time of the present event alone, so that a clock that jumps leaves
 * nothing behind.
 */

/* The bounds in force: configured ones, and a floor by hand, which never exceeds `max`; the target
 * must have a config. */
struct as_schedule_bounds target_get_bounds_at(const struct target *target, as_mono_time now,
                                               as_wall_time wall);

static inline struct as_schedule_bounds target_get_bounds(const struct as_engine *engine,
                                                          const struct target *target)
{
    return target_get_bounds_at(target, engine->mono, engine->wall);
}

/* In the step's memory; NULL: no target, or its entry is not known. */
const struct as_schedule_bounds *schedules_find_bounds(struct as_engine *engine,
                                                       const struct target *target);

/* After new rules: the target has this entry, and is to be evaluated. */
void schedules_resume(struct as_engine *engine, struct target *target,
                      const struct as_target_config *entry);

/* When the bounds in force change, if the clock does not jump; AS_MONO_NEVER: nothing is known. */
as_mono_time schedules_get_due(const struct as_engine *engine, const struct target *target);

/*
 * The end of schedules: what they have added goes, and the size before a `max: 0` returns.
 */

/* The size that the end of a schedule wants now, if the target has this size. False: none.
 * `*schedule_out` is borrowed from the state. The target must have a config. */
bool schedule_ends_get_size(const struct as_engine *engine, const struct target *target,
                            int32_t replicas, const char **schedule_out, int32_t *size_out);
/* A schedule has set its size. */
static inline bool schedule_ends_is_open(const struct target *target)
{
    const struct as_schedule_size_state *state = target->parts[CONCERN_SCHEDULE_ENDS];
    return state->is_set;
}

/*
 * Objects that `allow.list` of an entry selects: targets without an alert.
 */

/* All targets that are observed only from time to time are observed below this rate. */
#define OBSERVED_PER_SECOND 50

struct listing {
    bool is_listed; /* the last complete list of its entry has shown it, or a later one */
    uint64_t round; /* call id of the last list that has shown it */
};

static inline bool listings_has(const struct target *target)
{
    return ((const struct listing *)target->parts[CONCERN_LISTINGS])->is_listed;
}

/* The target is to be evaluated, at its time among the listed objects. */
void listings_wake(struct as_engine *engine, struct target *target);
/* How much later than others the target is observed. */
int64_t listings_get_offset(const struct as_engine *engine, const struct target *target);
void listings_resume(struct as_engine *engine); /* at start, and after new rules */
void listings_on_deadline(struct as_engine *engine);
void listings_on_listed(struct as_engine *engine, uint64_t call_id,
                        const struct as_object_list *list);

/*
 * Floors that operators order: until its end, the size of a target does not go below one.
 */

/* Its size is 0: the target has no floor. */
static inline const struct as_floor_state *floor_get(const struct target *target)
{
    return target->parts[CONCERN_SCHEDULES];
}

void floor_clear(struct target *target);
/* Replaces an earlier one. The target is to be stored. */
void floor_set(struct as_engine *engine, struct target *target,
               const struct as_operator_command *order);

as_mono_time floor_get_end(const struct target *target); /* NEVER: it has none */

/*
 * Pauses and the kill switch.
 */

void pause_set(struct as_engine *engine, struct target *target,
               const struct as_operator_command *order);
void pause_clear(struct as_engine *engine, struct target *target); /* NULL: the pause of all */
/* The pause of this target alone; `is_set` is false: it has none. */
static inline const struct as_pause_state *pauses_get(const struct target *target)
{
    return target->parts[CONCERN_PAUSES];
}

/* Targets that the credential has paused. */
size_t pauses_count_of(const struct as_engine *engine, const char *credential);
const struct as_pause_note *pauses_note(struct as_engine *engine, const struct target *target);
void pauses_touch_all(struct as_engine *engine, struct waiter *waiter);
/* True: the kill switch was newly set; this is to be committed. */
bool pauses_on_halt(struct as_engine *engine, const struct as_halt *halt);
void pauses_on_deadline(struct as_engine *engine);
void pauses_restore(struct as_engine *engine, struct target *target,
                    const struct as_pause_state *state);

/*
 * Blocks: why a target must not be scaled now. A change is checked in four places:
 *
 *   1. before a decision, and before a change without a decision: the blocks, here
 *   2. the decided size: limits, proof, a request in doubt, `after` (decision_decide)
 *   3. before the request is sent: the hook `find_obstacle`
 *   4. in the provider, on its fresh answer: as_engine_find_terminate_obstacle
 */

/* Whether blocks of these kinds (enum block_kind) forbid a direction to the whole target. With
 * BLOCK_OF_POOL the blocks of its pool count too. */
bool blocks_forbid(const struct as_engine *engine, const struct target *target, enum as_ways ways,
                   unsigned kinds);

/* The same, and nothing is changed in a dry run, or while a request is in doubt. For changes
 * without a decision; the target has an entry. */
bool blocks_forbid_change(const struct as_engine *engine, const struct target *target,
                          enum as_ways way, unsigned kinds);

/*
 * Changes that wait for a person: what is asked, what becomes of it, and who may use it.
 *
 * A request is ended by its time, by the end of its incident, by another rule text, another object
 * or a size that is there already. An approval leaves the target for the intent that uses it, in
 * that intent's commit, so that no second action can rest on it. It comes back only if the action
 * was certainly not done. The kill switch ends each approval, so that no change after its removal
 * rests on an answer from before.
 */

/* What a decision must know of the rule's approvals; is_set is false if the rule needs none. */
struct as_approval_terms approvals_get_terms(struct as_engine *engine, struct target *target,
                                             const struct as_rule *rule);

/* The kill switch is set: ends all approvals that are given and not used. An approval that an
 * action has used ends with an action that was certainly not done. Requests without an answer stay.
 */
void approvals_on_halt(struct as_engine *engine);
as_mono_time approvals_get_next_end(const struct target *target); /* NEVER: no request */

/* After a live decision: ends requests in the other direction. True: the target must be stored. */
bool approvals_apply(struct as_engine *engine, struct target *target,
                     const struct as_decision *decision);
struct desired_approval { /* what to ask */
    const struct as_rule *rule;
    const char *incident, *decision;
    int32_t from, to;
};
void approvals_ask(struct as_engine *engine, struct target *target,
                   const struct desired_approval *desired);

/* The approval with this id goes to the intent (NULL: of a pool, which has none). The target must
 * be stored in the intent's commit. */
void approvals_use(struct as_engine *engine, struct target *target, const char *id,
                   struct intent *intent);
/* The rule has changed the size without an approval. Before the target is stored. */
void approvals_note_step(struct as_engine *engine, struct target *target, const char *rule,
                         int32_t change);

struct request *request_free(struct request *request); /* NULL */
/* Steps without an approval are remembered. */
bool approvals_has_steps(const struct target *target);
/* The rule has a request that is not approved: its proposal was set aside. */
bool approvals_sets_aside(const struct target *target, const struct as_rule *rule);

/* The target with the request; NULL: there is none. */
struct target *approvals_find(const struct as_engine *engine, const char *id);
/* Answers a request. NULL: done, and the target must be stored; else why not. */
const char *approvals_answer(struct as_engine *engine, struct target *target,
                             const struct as_operator_command *order, const char *command);

/*
 * Reverted changes: sizes of ours that other writers set back, and the target that is left alone
 * because of them.
 *
 * A change is reverted: within AS_REVERTED_WITHIN_US after we set A to B, the size is found changed
 * from B towards A, and no request of ours can have done it. Each change of ours is reverted at
 * most once. AS_REVERTED_CHANGES_MAX of them within AS_CONTENDED_US make the target `contended` for
 * as long. Of pods that are resized in place the size is the smallest that they ask for; one that
 * asks for the template's is a new pod.
 */

/* Our size, if another writer may have reverted it. */
void contention_fill_request(const struct as_engine *engine, const struct target *target,
                             struct as_observe_request *request);
/* The target was observed, and no request of ours is in question. Commits what it finds. */
void contention_see(struct as_engine *engine, struct target *target,
                    const struct as_observation *observation);

bool contention_is_set(const struct target *target); /* also if its time is over */
bool contention_holds(const struct as_engine *engine, const struct target *target);
as_mono_time contention_get_end(const struct target *target); /* NEVER: it is not contended */
/* NULL: it is not contended. */
const struct as_contended_note *contention_note(struct as_engine *engine,
                                                const struct target *target);

/* Ends it once its time is over; commits. */
void contention_review(struct as_engine *engine, struct target *target);
/* Ends it now, and forgets what led to it. To be committed with the target. `why`: static or of the
 * step. */
void contention_end(struct as_engine *engine, struct target *target, const char *why);

/* Whether an object was changed between the two. False if either is "" (it has no version), and for
 * a smaller number: the server lacks the last changes, e.g. after a fail-over. */
bool version_is_newer(const char *version, const char *than);
/* The view may lack a change of the object that had the version `than` before. */
bool version_lacks(const char *version, const char *than);

/*
 * Effect evaluations: did it help? An action of an alert is evaluated until its effect is known.
 */

/* Whether an open incident of its rule wants the change. */
bool evaluation_is_of_alert(struct as_engine *engine, struct target *target,
                            const struct intent *intent);
/* Call it before the incident's bindings are dropped; belongs to the commit of its end. */
void evaluation_on_end(struct as_engine *engine, const struct incident *incident, bool is_resolved);
void evaluation_on_deadline(struct as_engine *engine);
as_mono_time evaluation_get_deadline(const struct as_engine *engine);
/* After new rules and after a restart: ends evaluations whose cause is gone. Not the hook `remake`:
 * the pools of all targets must be known. */
void evaluations_remake(struct as_engine *engine, struct target *target);
void evaluations_free_all(struct as_engine *engine);
bool evaluations_are_open(const struct target *target); /* it has one */

/* Whether the rule is held on the target or, as effects are those of the pool, on its pool. */
bool evaluation_holds(const struct as_engine *engine, const struct target *target,
                      const char *rule);
/* Ends the target's holds; NULL: those of all targets. True: there were some; to be committed. */
bool evaluation_release(struct as_engine *engine, struct target *target);

/*
 * What rules want after an incident was resolved.
 */

struct ending { /* what a rule still has to do after its incident was resolved */
    TAILQ_ENTRY(ending) in_target;
    const struct as_rule *rule;
    struct as_ending_state state;
};
TAILQ_HEAD(ending_list, ending);

void endings_begin(struct as_engine *engine, const struct incident *incident);
static inline const struct ending_list *endings_get(const struct target *target)
{
    return target->parts[CONCERN_ENDINGS];
}
bool endings_are_open(const struct target *target); /* it has one */
void endings_sleep(struct target *target);          /* their policy is awaited */
bool ending_get_action(const struct as_engine *engine, const struct ending *ending,
                       int32_t replicas, struct as_action *action_out);
bool endings_finish(struct as_engine *engine, struct target *target,
                    const struct as_decision *decision, bool is_live);
bool ending_is_proven(const struct as_engine *engine, const struct target *target,
                      const struct ending *ending);
as_mono_time endings_get_next_due(const struct as_engine *engine, const struct target *target);
/* In the step's memory. NULL: the ending gives nothing back. */
const struct as_give_back_note *ending_note_step(struct as_engine *engine,
                                                 const struct ending *ending, int32_t replicas);

/*
 * The watchdog: an alert that always fires.
 */

bool watchdog_matches(const struct as_engine *engine, const struct as_labels *labels);
void watchdog_see(struct as_engine *engine, const struct as_labels *labels);
bool watchdog_is_alive(const struct as_engine *engine, as_mono_time now);
void watchdog_fill_note(const struct as_engine *engine, struct as_proof_note *note);
bool watchdog_is_same(const struct as_engine_config *a, const struct as_engine_config *b);

/*
 * Metric gaps: since when rules with `fallback` lack their values, of each rule on a target.
 */

/* Tells the proposals what their rules fall back to, and since when they lack their values. */
void metric_gaps_fill(struct as_engine *engine, const struct target *target,
                      struct proposals *proposals);
/* Begins and ends stretches without a value. True: the target is to be stored. */
bool metric_gaps_note(struct as_engine *engine, struct target *target,
                      const struct proposals *proposals, const struct as_proposal_result *results);
/* Forgets those of rules that have no open incident any more. True: the target is to be stored. */
bool metric_gaps_drop(struct target *target);
/* When a rule first falls back. */
as_mono_time metric_gaps_get_next_due(const struct as_engine *engine, struct target *target);

/*
 * Which target waits for which others, by `after`.
 */

/* True: the target must not be evaluated now; it has a deadline, or is made ready before. */
bool after_must_wait(struct as_engine *engine, struct target *target);
/* The target has decided to decrease. For which target it waits; NULL: for none. It is made ready
 * when that one has settled, and must be looked at again at `until_out`. */
const struct target *after_hold_decrease(struct as_engine *engine, struct target *target,
                                         as_mono_time *until_out);
void after_release(struct as_engine *engine, struct target *target);

/*
 * Operators' orders.
 */

/* The kill switch was set. To be committed. */
void commands_on_halt(struct as_engine *engine);
/* Returns the target to settle if it is idle; or NULL. */
struct target *commands_handle(struct as_engine *engine, const struct as_operator_command *order,
                               uint64_t request);
/* The size that an operator has ordered and that is not set yet; `is_set` is false: none. */
static inline const struct as_ordered_state *commands_get(const struct target *target)
{
    return target->parts[CONCERN_COMMANDS];
}

/* The action has set the ordered size. */
void commands_end(struct target *target, const struct intent *intent);

/*
 * Limits on actions and removals over all targets.
 */

void limits_deinit(struct as_engine *engine);
/* True: the change would exceed a limit now; the target waits for its turn. */
bool limits_refuse(struct as_engine *engine, struct target *target, int32_t from, int32_t to);
/* The limit that has refused the target's last change, if it is that of its namespace. */
struct as_namespace_limit_view limits_get_view(const struct as_engine *engine,
                                               const struct target *target);
/* Whether the target, which waits, has a place for an action now. */
bool limits_have_place(struct as_engine *engine, const struct target *target);
void limits_note_begun(struct as_engine *engine, struct target *target, int32_t from, int32_t to);
/* With the new size and `in_doubt` in the target: while `in_doubt` is open, nothing has ended. */
void limits_note_ended(struct as_engine *engine, struct target *target, int32_t from, int32_t to,
                       bool applied);
/* When a refused change may fit; AS_MONO_NEVER: not by time alone. */
as_mono_time limits_get_free_time(const struct as_engine *engine, const struct target *target,
                                  int32_t from, int32_t to);
void limits_on_evaluate(struct target *target);
/* The target waits no more, or for something else: its place goes to others. */
bool limits_is_waiting(const struct target *target);
void limits_give_up(struct as_engine *engine, struct target *target);
void limits_restore(struct as_engine *engine);
void limits_on_rules(struct as_engine *engine, const struct as_limits *old);

/*
 * The times of `always` rules.
 */

/* The first time after `after` at which the rule is evaluated on the target. */
as_mono_time always_get_due(const struct target *target, const struct as_rule *rule,
                            as_mono_time after);
/* Of all its `always` rules; AS_MONO_NEVER: it has none. */
as_mono_time always_get_next_due(const struct target *target, as_mono_time after);
/* The target has `always` rules, and no alert of another rule fires. */
bool always_is_alone(const struct target *target);
void always_on_evaluate(const struct as_engine *engine, struct target *target);

/*
 * Rollouts of workloads.
 */

/* `rollout: wait`: an observation must say whether a rollout is under way. */
bool rollouts_are_awaited(const struct target *target);

/*
 * Templates of node groups.
 */

/* The templates of all node groups of the cluster. */
void templates_fill(struct as_engine *engine, const char *cluster,
                    struct as_observe_request *request);

/*
 * The trace: one line for each event, each change of a target's state and each effect, through the
 * callback of the engine's configuration. Without the callback the calls cost one comparison.
 */

/* Before the event is handled. */
void trace_event(struct as_engine *engine, const struct as_event *event);

/* Before the target leaves its phase. */
void trace_phase(struct as_engine *engine, const struct target *target, enum phase next);

/* The effects of the step, in order. */
void trace_effects(struct as_engine *engine);

/*
 * Alerts that the rules of policies match but for the label of the namespace.
 */

/* No rule matches the alert of a notification. */
void unmatched_note(struct as_engine *engine, const struct as_labels *labels,
                    const char *const *receivers, size_t receiver_count);

#endif
