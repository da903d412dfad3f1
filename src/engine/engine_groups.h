/*
 * What a rule may do, and when, for the incidents that it is bound to.
 */
#ifndef ALERTSCALER_SRC_ENGINE_ENGINE_GROUPS_H
#define ALERTSCALER_SRC_ENGINE_ENGINE_GROUPS_H

#include "engine_state.h"

struct group *group_find(struct target *target, const char *rule);
/* Creates it if necessary. */
struct group *group_get(struct target *target, const struct as_rule *rule);
bool rule_keeps_progress(const struct as_rule *rule, const struct as_target_config *config);
bool binding_is_used_up(const struct binding *binding);
as_mono_time binding_get_due_unheld(const struct binding *binding);
as_mono_time binding_get_due(const struct binding *binding); /* never while its incident is held */
as_mono_time bindings_get_next_due(const struct as_engine *engine, struct target *target);

#endif
