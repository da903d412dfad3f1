/*
 * Changes that wait for a person: what is asked, what becomes of it, and who may use it.
 *
 * A request is ended by its time, by the end of its incident, by another rule text, another object
 * or a size that is there already. An approval leaves the target for the intent that uses it, in
 * that intent's commit, so that no second action can rest on it. It comes back only if the action
 * was certainly not done. The kill switch ends each approval, so that no change after its removal
 * rests on an answer from before.
 */
#ifndef ALERTSCALER_SRC_ENGINE_ENGINE_APPROVALS_H
#define ALERTSCALER_SRC_ENGINE_ENGINE_APPROVALS_H

#include "engine_state.h"

/* What a decision must know of the rule's approvals; is_set is false if the rule needs none. */
struct as_approval_terms approvals_get_terms(struct as_engine *engine, struct target *target,
                                             const struct as_rule *rule);

/* Ends requests that are over. True: the target must be stored. */
bool approvals_review(struct as_engine *engine, struct target *target);
/* Those whose size is there already. True: the target must be stored. */
bool approvals_see_size(struct as_engine *engine, struct target *target, int32_t replicas);
/* Ends all; the target must be stored. */
void approvals_forget(struct as_engine *engine, struct target *target, const char *why);
/* The kill switch is set: ends all approvals that are given and not used. An approval that an
 * action has used ends with an action that was certainly not done. Requests without an answer stay.
 */
void approvals_on_halt(struct as_engine *engine);
as_mono_time approvals_get_next_end(const struct target *target); /* NEVER: no request */

/* After a live decision: ends requests in the other direction. True: the target must be stored. */
bool approvals_heed(struct as_engine *engine, struct target *target,
                    const struct as_decision *decision);
struct approval_wish { /* what to ask */
    const struct as_rule *rule;
    const char *incident, *decision;
    int32_t from, to;
};
void approvals_ask(struct as_engine *engine, struct target *target,
                   const struct approval_wish *wish);

/* The approval with this id goes to the intent (NULL: of a pool, which has none). The target must
 * be stored in the intent's commit. */
void approvals_use(struct as_engine *engine, struct target *target, const char *id,
                   struct intent *intent);
/* The intent was certainly not carried out. True: the target must be stored. */
bool approvals_return(struct as_engine *engine, struct target *target, struct intent *intent);
/* The rule has changed the size without an approval. Before the target is stored. */
void approvals_note_step(struct as_engine *engine, struct target *target, const char *rule,
                         int32_t change);

/* The target with the request; NULL: there is none. */
struct target *approvals_find(const struct as_engine *engine, const char *id);
/* Answers a request. NULL: done, and the target must be stored; else why not. */
const char *approvals_answer(struct as_engine *engine, struct target *target,
                             const struct as_order *order, const char *command);

#endif
