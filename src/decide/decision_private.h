/*
 * The words for the core's enums in decision documents, for reading and writing.
 */
#ifndef ALERTSCALER_SRC_DECIDE_DECISION_PRIVATE_H
#define ALERTSCALER_SRC_DECIDE_DECISION_PRIVATE_H

#include <alertscaler/doc/json_reader.h>

extern const struct as_read_word as_decision_phases[];
extern const struct as_read_word as_decision_selects[];
extern const struct as_read_word as_decision_policy_types[];
extern const struct as_read_word as_decision_resources[];
extern const struct as_read_word as_decision_ways[];

/* Actions have their own decoder: decision_action.c. Steps are in the arena. */
struct as_arena;
struct as_action;
void as_decision_decode_action(struct as_reader *proposal, struct as_arena *arena, int32_t version,
                               struct as_action *action_out);

/* `approval` of a proposal: decision_approval.c. */
struct as_approval_terms;
struct as_json_writer;
void as_decision_decode_approval(struct as_reader *proposal, struct as_arena *arena,
                                 struct as_approval_terms *terms_out);
void as_decision_write_approval(struct as_json_writer *json, const struct as_approval_terms *terms);

#endif
