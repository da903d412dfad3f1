/*
 * Aliases: targets with different addresses that are one node group at their provider. For example,
 * a pool's name and its id, or a node group of EKS and its Auto Scaling group. Only one target may
 * change a group: else a second one evades the max, the locks and the pauses of the first.
 *
 * An observation says which resources are behind a target (decide/observation.h). Of two targets
 * with a common resource:
 *
 *   1. The target of an entry without templates wins. If neither entry has templates, both lose.
 *   2. The target with stored state, or with a request under way, wins.
 *   3. The lower id wins.
 *
 * The loser is observed, and every observation fails with target_not_allowed. A target may change
 * only if the resources of its possible rivals are known too: entries without templates of the same
 * family and, for a target of a template, targets with stored state. Rivals are read first if they
 * were not read since the target got its newest resource. If the reading fails, a target of a
 * template is refused, unless the rival was not found for a minute; a target of an entry without
 * templates is not refused, so that one broken group does not stop all. The broken group itself
 * cannot change without being read.
 *
 * A reload may add an entry without templates while a request for a target is under way. The
 * request is not sent (as_engine_find_new_rival) if both have a common resource, or if the target
 * is of a template and the new entry's resources are not read.
 *
 * The resources are kept in memory, are read anew with every observation, and are forgotten when
 * rules are loaded, because an account may be another one then.
 */
#ifndef ALERTSCALER_SRC_ENGINE_ENGINE_ALIASES_H
#define ALERTSCALER_SRC_ENGINE_ENGINE_ALIASES_H

#include "engine_state.h"

/* Keeps the resources of an observation. True: it was made only for them, for other targets. */
bool aliases_see(struct as_engine *engine, struct target *target,
                 const struct as_observation *observation);

/* The target is observed, if `is_probe` only for its resources. */
void alias_begin_reading(const struct as_engine *engine, struct target *target, bool is_probe);

/* The names of the resources behind the target, as last read. */
const char *const *alias_get_resources(const struct target *target, size_t *count_out);

/* Whether it waits for others' resources. */
bool alias_is_waiting(const struct target *target);

/* Whether the target's next observation is only for its resources. */
bool alias_is_awaited(const struct target *target);

/* Whether others' resources must be read before the target may be changed. If `is_used`, it is made
 * ready when they are read. */
bool alias_must_wait(struct as_engine *engine, struct target *target, bool is_used);

/* Whether rules were loaded since the target was observed: its resources are not known any more. */
bool alias_is_stale(const struct target *target);

/* Why the target may not be changed, for people; memory of the step. NULL: it may. */
const char *alias_find_obstacle(struct as_engine *engine, const struct target *target);

/* Whether another target with a common resource has precedence. */
bool alias_is_refused(const struct as_engine *engine, const struct target *target);

void aliases_on_rules(struct as_engine *engine);

#endif
