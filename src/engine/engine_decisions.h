/*
 * From observation and proposals to a decision and its record.
 */
#ifndef ALERTSCALER_SRC_ENGINE_ENGINE_DECISIONS_H
#define ALERTSCALER_SRC_ENGINE_ENGINE_DECISIONS_H

#include "engine_state.h"

struct outcome { /* of deciding */
    struct as_decision decision;
    const char *id;                 /* of its record, which may be an earlier, equal one */
    bool is_decided;                /* false: nothing was proposed, and no bound enforced */
    bool is_recorded;               /* there are effects to commit */
    as_mono_time due;               /* when the next proposal will be due */
    const char *approval;           /* id of the request that it rests on; NULL: none */
    const struct target *waits_for; /* by `after`, with its decrease; NULL: for none */
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
    bool is_share; /* of a pool */
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

#endif
