/*
 * What monitoring says: incidents of notifications and of lists of alerts, and the values that
 * rules read from queries, labels and annotations.
 */
#ifndef ALERTSCALER_SRC_ENGINE_ENGINE_INCIDENTS_H
#define ALERTSCALER_SRC_ENGINE_ENGINE_INCIDENTS_H

#include "engine_effects.h"
#include "engine_state.h"

/* Incidents: opened, repeated, held, resolved, expired */

void incidents_handle(struct as_engine *engine, const struct as_notification *notification,
                      uint64_t request);
void incidents_expire(struct as_engine *engine);
as_mono_time incidents_get_deadline(const struct as_engine *engine);

/*
 * When the alerts of incidents were last reported as firing.
 */

/* When a credential that may trigger the rule last reported the alert as firing; INT64_MIN: never
 * since the start. */
as_mono_time news_get(const struct as_engine *engine, const struct binding *binding);

/* Forgets what lists said about time intervals. */
void muting_deinit(struct as_engine *engine);

/*
 * The list of firing alerts.
 */

void alerts_resume(struct as_engine *engine);
void alerts_on_deadline(struct as_engine *engine);
as_mono_time alerts_get_deadline(const struct as_engine *engine);
void alerts_on_listed(struct as_engine *engine, uint64_t call_id, const struct as_alert_list *list);

/*
 * Queries, and values from labels and annotations.
 */

#define ASK_AGAIN_US (15 * AS_US_PER_S) /* if a rule has no `every` */

void sources_drop(struct as_engine *engine, struct target *target);
/* New rules, while an observation goes on: asks what they need too, and does not wait for answers
 * that they do not need. */
void sources_on_rules(struct as_engine *engine, struct target *target);
bool sources_is_same_for_all(const struct as_rule *rule);
const char *sources_get_guard(struct as_engine *engine, const struct as_rule *rule,
                              const struct incident *incident);
void sources_ask(struct as_engine *engine, struct target *target);
struct target *sources_answer(struct as_engine *engine, uint64_t call_id,
                              const struct as_query_result *result);
bool sources_is_guard_met(const struct target *target, const char *text);
void sources_read(struct as_engine *engine, const struct target *target, const struct as_rule *rule,
                  const struct incident *incident, struct as_proposal *proposal,
                  const char **text_out);
bool sources_need_pods(const struct target *target);
bool sources_need_owners(const struct target *target); /* of the pods */
bool sources_need_nodes(const struct target *target);
/* Without the template. NULL stays NULL. */
const struct as_nodes_seen *sources_copy_nodes(struct as_arena *arena,
                                               const struct as_nodes_seen *nodes);
void sources_fill_pods(struct as_engine *engine, const struct target *target,
                       const struct as_observation *observation, struct as_decide_input *input);
as_mono_time sources_get_next_due(const struct as_engine *engine, const struct target *target);

#endif
