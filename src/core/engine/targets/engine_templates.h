/*
 * Templates of node groups: what a new node would be like, as last seen on a node. They are stored,
 * so that a group without a node keeps its template over a restart. The engine does not read them.
 */
#ifndef ALERTSCALER_SRC_CORE_ENGINE_TARGETS_ENGINE_TEMPLATES_H
#define ALERTSCALER_SRC_CORE_ENGINE_TARGETS_ENGINE_TEMPLATES_H

#include "engine/state/engine_state.h"

/* The templates of the target's node group and of all others of its cluster. */
void templates_fill(struct as_engine *engine, const struct target *target,
                    struct as_observe_request *request);
/* Stores the template that was seen, if it is another one. `nodes` may be NULL. */
void templates_take(struct as_engine *engine, struct target *target,
                    const struct as_nodes_seen *nodes);

#endif
