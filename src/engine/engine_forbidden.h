/*
 * Directions that are forbidden on a target now, beside what its rules with `hold` propose.
 */
#ifndef ALERTSCALER_SRC_ENGINE_ENGINE_FORBIDDEN_H
#define ALERTSCALER_SRC_ENGINE_ENGINE_FORBIDDEN_H

#include "engine_state.h"

/* The rows are the engine's, for this step; so are their texts. */
void forbidden_fill(struct as_engine *engine, const struct target *target,
                    struct as_decide_input *input);

/* Whether a pause, a rule with `hold` or a schedule forbids this one direction to the whole target.
 */
bool forbidden_is_held(const struct as_engine *engine, const struct target *target,
                       enum as_ways way);

/* The same, or the wait after an increase that did not come. */
bool forbidden_is(const struct as_engine *engine, const struct target *target, enum as_ways way);

/* The same, or to the pool of the group. */
bool forbidden_is_with_pool(const struct as_engine *engine, const struct target *target,
                            enum as_ways way);

/* A rule with `hold` whose alert fires and is not silenced. */
bool group_holds(const struct group *group);

#endif
