/*
 * What the last look at the nodes of a pool or group said, for metrics.
 */
#ifndef ALERTSCALER_SRC_ENGINE_ENGINE_SEEN_H
#define ALERTSCALER_SRC_ENGINE_ENGINE_SEEN_H

#include "engine_state.h"

/* Nothing is kept of a look that knows nothing of nodes. */
void seen_set(const struct as_engine *engine, struct target *target,
              const struct as_observation *observation);
/* Also when the rules change: names are borrowed from them. */
void seen_clear(struct target *target);

#endif
