/*
 * The way of a target from an event to a change: its phases, its decisions, its actions.
 */
#ifndef ALERTSCALER_SRC_ENGINE_ENGINE_PHASES_H
#define ALERTSCALER_SRC_ENGINE_ENGINE_PHASES_H

#include "engine_state.h"

struct change;
struct ending;

/*
 * How events change a target: evaluated, decided, settled.
 */

/* The target is idle (again): what next? */
void target_settle_down(struct as_engine *engine, struct target *target);
void target_on_deadline(struct as_engine *engine, struct target *target);
void target_on_observed(struct as_engine *engine, struct target *target,
                        const struct as_observation *observation);
void target_on_queried(struct as_engine *engine, uint64_t call_id,
                       const struct as_query_result *result);
void targets_stop_sampling(struct as_engine *engine); /* at a stop */
/* After new rules: observations go on if they are of use. */
void targets_on_rules(struct as_engine *engine);
/* The same for targets of which only the rules have changed; then as targets_settle. */
void targets_change(struct as_engine *engine, const struct target_array *targets);
/* After new rules: all idle targets. */
void targets_settle(struct as_engine *engine);
/* At the end of a step: what became due in it. */
void targets_evaluate_ready(struct as_engine *engine);

/*
 * From observation and proposals to a decision and its record.
 */

struct outcome { /* of deciding */
    struct as_decision decision;
    const char *id;                    /* of its record, which may be an earlier, equal one */
    bool is_decided;                   /* false: nothing was proposed, and no bound enforced */
    bool is_recorded;                  /* there are effects to commit */
    as_mono_time due;                  /* when the next proposal will be due */
    const char *approval;              /* id of the request that it rests on; NULL: none */
    const struct target *waits_for;    /* by `after`, with its decrease; NULL: for none */
    const struct as_proof_note *proof; /* that is missing; or NULL */
    const struct as_give_back_note *give_back; /* or NULL */
};

as_mono_time decisions_get_next_due(const struct as_engine *engine, struct target *target);
void decisions_make(struct as_engine *engine, struct target *target,
                    const struct as_observation *observation, struct outcome *outcome_out);

/*
 * What rules want now.
 */

struct proposer { /* source of a proposal: an incident of a group (NULL: to stay), or an ending */
    struct group *group;
    const struct incident *incident;
    const struct ending *ending;
    bool is_assignment; /* of a pool */
};
struct proposals {
    struct as_proposal *items;
    struct proposer *origins; /* one per item */
    size_t count;
    bool has_dry;                /* the target has a rule with dry_run */
    struct as_digest *incidents; /* the first AS_RECORD_LIST_MAX */
    size_t incident_count;
    uint64_t incident_total;
};

/*
 * Intents, results, and requests with unknown outcome.
 */

void actions_begin(struct as_engine *engine, struct target *target,
                   const struct as_observation *observation, const struct outcome *outcome);
/* Without a decision. */
void actions_begin_change(struct as_engine *engine, struct target *target,
                          const struct as_observation *observation, const struct change *change);
void actions_on_intent(struct as_engine *engine, struct target *target);
void actions_on_scaled(struct as_engine *engine, struct target *target,
                       const struct as_scale_result *result);
bool actions_settle_in_doubt(struct as_engine *engine, struct target *target,
                             const struct as_observation *observation);
void actions_give_up_in_doubt(struct as_engine *engine, struct target *target);
/* NULL: there is no record. */
struct as_action_record *actions_record_failure(struct as_engine *engine, struct target *target,
                                                const struct as_observation *observation);
/* After the back-off. */
void actions_note_next_try(const struct as_engine *engine, const struct target *target,
                           struct as_action_record *record);

#endif
