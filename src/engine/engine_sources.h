/*
 * Queries, and values from labels and annotations.
 */
#ifndef ALERTSCALER_SRC_ENGINE_ENGINE_SOURCES_H
#define ALERTSCALER_SRC_ENGINE_ENGINE_SOURCES_H

#include "engine_state.h"

#define ASK_AGAIN_US (15 * AS_US_PER_S) /* if a rule has no `every` */

void sources_drop(struct as_engine *engine, struct target *target);
/* New rules, while an observation goes on: asks what they need too, and does not wait for answers
 * that they do not need. */
void sources_on_rules(struct as_engine *engine, struct target *target);
bool sources_is_same_for_all(const struct as_rule *rule);
const char *sources_get_guard(struct as_engine *engine, const struct as_rule *rule,
                              const struct incident *incident);
void sources_ask(struct as_engine *engine, struct target *target);
struct target *sources_answer(struct as_engine *engine, uint64_t ticket,
                              const struct as_query_result *result);
bool sources_is_guard_met(const struct target *target, const char *text);
void sources_read(struct as_engine *engine, const struct target *target, const struct as_rule *rule,
                  const struct incident *incident, struct as_proposal *proposal,
                  const char **text_out);
bool sources_need_pods(const struct target *target);
bool sources_need_nodes(const struct target *target);
void sources_fill_pods(struct as_engine *engine, const struct target *target,
                       const struct as_observation *observation, struct as_decide_input *input);
int64_t sources_get_interval(const struct target *target);

#endif
