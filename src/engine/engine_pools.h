/*
 * Pools, and node groups that are pools of themselves: what their observation has to tell, what is
 * remembered of it, and how a pool's decision reaches its groups.
 *
 * Pools of one cluster decide in turn: each from its observation until its assignments are settled.
 */
#ifndef ALERTSCALER_SRC_ENGINE_ENGINE_POOLS_H
#define ALERTSCALER_SRC_ENGINE_ENGINE_POOLS_H

#include "engine_concerns.h"
#include "engine_phases.h"
#include "engine_state.h"

struct assignment {                     /* what a pool has decided for this group */
    struct target *pool;                /* NULL: none */
    char *rule, decision[AS_ULID_SIZE]; /* of the pool */
    int32_t to;
    bool is_up, is_rest; /* is_rest: of what an earlier increase lacks */
    char **take;         /* names of the nodes that leave */
    size_t take_count;
    as_mono_time until;
    as_mono_time proof_until; /* later its facts are too old: it is not requested */
    uint64_t serial;          /* of the newest incident at the decision */
    struct as_moment at;
};

struct overdue {   /* instances that never became nodes, as a pool's decision has them leave */
    int32_t count; /* 0: none */
    int32_t size;  /* of the group then */
    char decision[AS_ULID_SIZE];
    as_mono_time until;
};

struct pool {               /* of a pool, or of a node group that is one of itself */
    TAILQ_ENTRY(pool) link; /* of pools that have their turn, or wait for it */
    struct target *target;
    bool has_turn, is_waiting;
    unsigned assignments; /* not settled */
    bool is_short;        /* an increase has failed: the pool's lock does not hold the next one */
    as_mono_time looked;  /* the last time */
    uint64_t waiting;     /* pods, then */
    int32_t surplus;      /* nodes of all groups, then */
    struct as_arena texts;
    struct as_unneeded *unneeded; /* in memory alone */
    size_t unneeded_count;
    struct as_arena asked_texts;
    struct as_asked *asked; /* stored */
    size_t asked_count;
    struct as_pool_seen *seen; /* by the last look; NULL: nothing */
};

struct pool_state { /* of a target */
    struct assignment assignment;
    struct pool pool;
};

/* To read. Its pool is NULL: the target has no assignment. */
static inline const struct assignment *assignment_get(const struct target *target)
{
    const struct pool_state *state = target->parts[CONCERN_POOLS];
    return &state->assignment;
}

static inline const struct pool *pool_get(const struct target *target)
{
    const struct pool_state *state = target->parts[CONCERN_POOLS];
    return &state->pool;
}

/* How often a pool looks, where its rules do not say `every`; AS_UNNEEDED_GAP_US is longer. */
#define POOL_OBSERVE_US (15 * AS_US_PER_S)

/* Whether the target has rules with `fit` or `take` in force. */
bool pool_is_asked(const struct target *target);
/* True: the target must stay idle, and is made ready: its assignments are not settled (a deadline
 * ends them), or other pools come first. */
bool pool_is_assigning(struct as_engine *engine, struct target *target);
/* True: another pool of the cluster has its turn; the target is made ready when that is over.
 * False: it has its turn now, if it looks for `fit` or `take`. */
bool pool_must_wait(struct as_engine *engine, struct target *target);
/* The pool has decided by a plan: nothing of an increase is missing. */
void pool_end_step(struct target *target);

/* Whose nodes they are. */
const char *pool_get_cluster(const struct as_engine *engine, const struct target *target);

/* NULL: it does not have its turn. Memory of the step. */
const struct as_pool_request *pool_make_request(struct as_engine *engine, struct target *target);

/* Remembers what the plan says; true: what is stored has changed. `grows`: as the plan says. */
bool pool_remember(struct as_engine *engine, struct target *target,
                   const struct as_observation *observation, bool grows);
/* Assignments, turns, and what is remembered in memory alone are over. */
void pools_on_rules(struct as_engine *engine);

/* A pool wants another size: gives assignments to its groups. */
void pool_assign(struct as_engine *engine, struct target *target,
                 const struct as_observation *observation, const struct outcome *outcome);

/*
 * Instances that never became nodes, whoever ordered them: a pool's decision says how many of each
 * group leave, and the group lets them go as soon as it can. They never served: the limit of
 * removals does not hold them. They are not stored: after a restart, and with new rules, the pool
 * decides anew. What an increase of alertscaler's lacks is taken back instead (engine_scaleup.c).
 */

#define OVERDUE_US (30 * AS_US_PER_S) /* then the pool decides anew */

/* The target has decided: tells its groups, which are looked at next. */
void unregistered_report(struct as_engine *engine, struct target *target,
                         const struct as_observation *observation, const struct outcome *outcome);

/*
 * Assignments: what a pool has decided for one of its groups. The group decides and acts by itself,
 * with the assignment as its only proposal.
 *
 * An assignment ends when it is applied, when it has failed, or after ASSIGNMENT_US. It does not
 * end while its request is open, while `after` holds the group, or while a limit over all targets
 * holds an increase. An increase that such a limit has held for longer is decided anew when it has
 * its place; a decrease that such a limit holds, or that still fails after ASSIGNMENT_US, at once,
 * with a new proof. If an increase fails, the group backs off and its pool decides
 * the rest at once. An assignment that is not asked for yet ends with the last incident of its
 * rule. Assignments are not stored: after a restart, and after new rules, pools decide anew.
 */

#define ASSIGNMENT_US         (30 * AS_US_PER_S)
#define ASSIGNMENT_OBSERVE_US (5 * AS_US_PER_S) /* how often its group is observed meanwhile */

/* Drops an assignment that is not requested yet, if no incident wants it any more, or if a limit
 * has held it for too long and has a place for it now. */
void assignment_review(struct as_engine *engine, struct target *group);
/* The group is held, and not decided before; the assignment does not end earlier. */
void assignment_prolong(struct target *group, as_mono_time until);
/* The group decided to stay at its size. */
void assignment_on_stay(struct as_engine *engine, struct target *group, enum as_reason reason);

/* The kill switch is set: ends the assignments that are not requested yet. Their pools decide anew
 * after its removal, with a new approval where the rule needs it. */
void assignments_on_halt(struct as_engine *engine);

bool assignment_is_of(const struct target *group, const struct intent *intent);

#endif
