/*
 * The decision: everything known about one target at one moment in, a size and a reason out. Pure:
 * no clock, no I/O, no allocation, no state. The reference is docs/decision.md; the code has the
 * gates in the same order. Sizes are 0 .. 2^31-1 and saturate. Values are doubles; NaN and
 * infinities are "unavailable". Times in the future count as now. The cost is linear in pods,
 * samples, events and recommendations.
 *
 * Long because the document and its answer are read together.
 */
#ifndef ALERTSCALER_DECIDE_DECIDE_H
#define ALERTSCALER_DECIDE_DECIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>
#include <alertscaler/base/time.h>
#include <alertscaler/cluster/cluster.h>
#include <alertscaler/cluster/nodes_seen.h>
#include <alertscaler/cluster/pool_plan.h>
#include <alertscaler/decide/approval.h>
#include <alertscaler/model/action.h>
#include <alertscaler/model/bounds.h>
#include <alertscaler/model/forbidden.h>
#include <alertscaler/model/reason.h>
#include <alertscaler/model/source.h>

/* The gates of a decision, in their order (docs/decision.md#the-gates).
 * X(enumerator, word, what the gate does, in a few words) */
#define AS_GATES(X)                                                                                \
    X(AS_GATE_SWITCHED_OFF, "switched_off", "0 with min above 0 is left alone")                    \
    X(AS_GATE_OUT_OF_BOUNDS, "out_of_bounds", "brought back into its bounds")                      \
    X(AS_GATE_COMBINE, "combine", "the highest size that a rule wants")                            \
    X(AS_GATE_STABILIZE, "stabilize", "no further than the stabilization window allows")           \
    X(AS_GATE_POLICIES, "policies", "no faster than the scaling policies allow")                   \
    X(AS_GATE_BOUNDS, "bounds", "the bound ahead")                                                 \
    X(AS_GATE_COOLDOWN, "cooldown", "the lock after an earlier change")                            \
    X(AS_GATE_HOLDS, "holds",                                                                      \
      "paused, contended, in progress, guarded, unconfirmed or out of budget")                     \
    X(AS_GATE_APPROVAL, "approval", "what waits for a person is left out")                         \
    X(AS_GATE_DRY_RUN, "dry_run", "nothing is set in a dry run")

#define AS_GATE_ENUM(enumerator, word, meaning) enumerator,
enum as_gate { AS_GATES(AS_GATE_ENUM) AS_GATE_COUNT };
const char *as_gate_get_word(enum as_gate gate);
const char *as_gate_get_meaning(enum as_gate gate);

/* What is still in progress. X(enumerator, word, what it is, as a sentence) */
#define AS_IN_PROGRESS_CAUSES(X)                                                                   \
    X(AS_IN_PROGRESS_PROVIDER, "provider", "The other side still carries out a change.")           \
    X(AS_IN_PROGRESS_SCALE_UP, "scale_up", "Not all of the last increase is ready.")               \
    X(AS_IN_PROGRESS_RESIZE, "resize", "Pods still get the last size of the resource.")            \
    X(AS_IN_PROGRESS_IN_DOUBT, "in_doubt", "The outcome of an earlier request is not known.")      \
    X(AS_IN_PROGRESS_AFTER, "after", "A target that comes first by `after` still has its size.")

#define AS_IN_PROGRESS_ENUM(enumerator, word, meaning) enumerator,
enum as_in_progress_by {
    AS_IN_PROGRESS_NONE,
    AS_IN_PROGRESS_CAUSES(AS_IN_PROGRESS_ENUM) AS_IN_PROGRESS_COUNT
};
const char *as_in_progress_by_get_word(enum as_in_progress_by by); /* NONE: NULL */

struct as_pod_container {
    const char *name;
    double resource[AS_RESOURCE_COUNT]; /* NaN if absent */
};

struct as_pod {
    const char *name; /* "" if not given: has no samples */
    enum as_pod_phase phase;
    enum as_tristate ready;
    bool deleting;
    enum as_pod_owner owner; /* for rules by owner */
    as_maybe_time start_time, ready_since;
    double resource[AS_RESOURCE_COUNT];        /* of the whole pod; NaN if absent */
    const struct as_pod_container *containers; /* those that rules name */
    size_t container_count;
};

#define AS_INCIDENT_ALWAYS "always" /* the `incident` of an `always` rule */

struct as_proposal {
    const char *rule;     /* NULL if not given */
    const char *schedule; /* has ended; the action is the size that its end wants. NULL: a rule's */
    const char *incident; /* NULL if none is named */
    struct as_action action;
    bool has_value;
    double value;
    const struct as_sample *samples; /* NULL if not given; ascending by pod, each pod once */
    size_t sample_count;
    struct as_fallback fallback;
    as_maybe_time unavailable_since; /* unset: it is there, or nobody knows */
    enum as_nodes_word nodes; /* the value is this one of `observed.nodes`; NONE: it is given */
    const char *error;        /* why there is no value; NULL: there is a value */
    /* After a scale-down the next one needs a newer `reported` time of the alert (unset: not
     * reported at all). False: the size rests on a value asked for this decision, or on another
     * kind of proof. */
    bool needs_news;
    as_maybe_time reported;
    struct as_approval_terms approval;
};

struct as_scale_event {
    as_wall_time at;
    int32_t change;
};

struct as_recommendation {
    as_wall_time at;
    int32_t replicas;
};

/*
 * Versions of the input document. Each document is decided by the rules of its own version, for
 * ever (docs/decision.md#versions): new fields or other arithmetic need a new version.
 */
enum { AS_DECIDE_OLDEST_VERSION = 1, AS_DECIDE_VERSION = 3 };

struct as_decide_input {
    int32_t version; /* AS_DECIDE_VERSION, or the version of the document that was read */
    as_wall_time now;
    const char *target;             /* its id; NULL if not given */
    struct as_bounds_config config; /* its bounds are those in force */
    bool has_own_min;               /* else it is that of `config` */
    int32_t own_min;                /* below it, at 0, the target is switched off */
    int32_t floor;                  /* by hand, for the log: it is in `min`; 0: none */
    bool enforce_min, enforce_max;  /* also without enforce_bounds */
    bool is_scheduled_zero;         /* the size 0 is a schedule's: the target is not switched off */
    const char *const *schedules;   /* names of those in force */
    size_t schedule_count;
    bool dry_run;
    int32_t replicas, status_replicas;
    int32_t marked; /* nodes that are to leave, in the provider's size, not in `replicas` */
    bool has_pods;
    const struct as_pod *pods; /* ascending by name (bytes) */
    size_t pod_count;
    const struct as_nodes_seen *nodes;  /* NULL: not asked for */
    const struct as_snapshot *snapshot; /* of a pool; NULL: none */
    const struct as_pool_config *pool;  /* of the snapshot; NULL: none */
    const struct as_pool_plan *plan;    /* of the snapshot (as_pool_begin); NULL: it has an error */
    /* Of the plan, which was made before; from version 3 on. NULL: `now`, the bounds of `config`,
     * and what the proposals ask for. */
    const struct as_pool_plan_terms *plan_terms;
    as_maybe_time last_up, last_down;    /* of the locks */
    as_maybe_time last_step_down;        /* also after its lock was ended */
    const struct as_scale_event *events; /* ascending by time */
    size_t event_count;
    const struct as_recommendation *recommendations;
    size_t recommendation_count;
    struct {
        bool paused, contended, in_progress, budget_exhausted, guarded;
        enum as_in_progress_by in_progress_by; /* for people: decisions do not read it */
    } flags;
    const struct as_forbidden *forbidden; /* beside the rules with `hold`, which are proposals */
    size_t forbidden_count;
    const struct as_proposal *proposals;
    size_t proposal_count;
};

enum as_direction { AS_DIRECTION_NONE, AS_DIRECTION_UP, AS_DIRECTION_DOWN };
const char *as_direction_get_word(enum as_direction direction); /* "none", "up", "down" */

struct as_proposal_result {
    bool has_size;
    int32_t desired;
    bool within_tolerance;
    bool
        has_no_effect; /* neither a size nor missing: no step was crossed, or the size is at `to` */
    bool is_floor;     /* no opinion, but no decrease may end below `desired` */
    bool is_missing;   /* its value is unavailable, also if it has a size by `fallback` */
    bool is_hold;      /* no opinion, but it forbids a direction */
    const struct as_forbidden *ban; /* keeps its rule at the present size; NULL: nothing */
    enum as_reason reason;          /* when !has_size */
    bool has_value;                 /* `nodes` of the proposal gave it */
    double value;
    bool has_average; /* samples per pod: what the ready pods use, in the unit of the goal */
    double average;
    enum as_approval_use approval;
};

enum as_limit { /* bits, in the order of listing */
                AS_LIMIT_MIN = 1,
                AS_LIMIT_MAX = 2,
                AS_LIMIT_STABILIZATION = 4,
                AS_LIMIT_POLICY = 8
};

struct as_decision {
    enum as_direction direction; /* of `would` if there is one, else of `desired` */
    int32_t replicas, desired;
    bool has_would;
    int32_t would; /* the size that a lock, hold or dry run held back */
    enum as_reason reason;
    const char *rule;              /* the winning proposal's, or NULL */
    struct as_holder_name held_by; /* if as_reason_has_holder(reason) */
    size_t trail_count;
    struct {
        enum as_gate gate;
        int32_t desired;
    } trail[AS_GATE_COUNT];
    unsigned limited_by; /* of enum as_limit */
    bool has_recommendation;
    int32_t recommendation; /* combined, before stabilization; the caller stores it */
    as_maybe_time next_evaluation;
    int32_t overdue; /* instances that never became nodes and leave now, by groups of the plan:
                        beside the size, which stays */
    bool is_asking;  /* for the approval of the result with AS_APPROVAL_ASKS */
    int32_t asked;   /* the size to ask for */
};

/* Decides. `results` has room for input->proposal_count results, filled in the same order.
 * `decision_out` borrows its texts from the input. The input must be valid (the decoder and the
 * engine ensure it). */
void as_decide(const struct as_decide_input *input, struct as_proposal_result *results,
               struct as_decision *decision_out);

/* From v: 3 on values of nodes are computed from the integer sums, and none is made up. */
bool as_decide_has_exact_nodes(const struct as_decide_input *input);

int32_t as_decide_count_ready(const struct as_decide_input *input); /* pods; if unknown: replicas */
/* Ready pods that count for a rule: without `pods: owned`, all of them. */
int32_t as_decide_count_tracked(const struct as_decide_input *input, const struct as_track *track);

#endif
