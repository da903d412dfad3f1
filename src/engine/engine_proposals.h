/*
 * What rules want now.
 */
#ifndef ALERTSCALER_SRC_ENGINE_ENGINE_PROPOSALS_H
#define ALERTSCALER_SRC_ENGINE_ENGINE_PROPOSALS_H

#include "engine_state.h"

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

void proposals_gather(struct as_engine *engine, struct target *target, bool with_dry,
                      struct proposals *proposals_out);
bool proposals_lack_proof(struct as_engine *engine, const struct target *target,
                          const struct proposals *proposals,
                          const struct as_proposal_result *results,
                          const struct as_decision *decision);
/* Asks for the approval that the decision with this id lacks. */
void proposals_ask(struct as_engine *engine, struct target *target,
                   const struct proposals *proposals, const struct as_proposal_result *results,
                   const struct as_decision *decision, const char *id);
/* Id of the request that the decision rests on; NULL: none. */
const char *proposals_find_approval(const struct proposals *proposals,
                                    const struct as_proposal_result *results);
void proposals_note_wishes(const struct proposals *proposals,
                           const struct as_proposal_result *results, int32_t replicas);
void proposals_note_values(const struct proposals *proposals,
                           const struct as_proposal_result *results, int32_t replicas);
void proposals_check_pods(struct as_engine *engine, const struct as_observation *observation,
                          struct proposals *proposals);

#endif
