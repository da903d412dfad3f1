/*
 * Templates of node groups: what a new node would be like, as last seen on a node. They are stored,
 * so that a group without a node keeps its template over a restart. The engine does not read them.
 */
#ifndef ALERTSCALER_SRC_ENGINE_ENGINE_TEMPLATES_H
#define ALERTSCALER_SRC_ENGINE_ENGINE_TEMPLATES_H

#include "engine_state.h"

/* The templates of all node groups of the cluster. */
void templates_fill(struct as_engine *engine, const char *cluster,
                    struct as_observe_request *request);
/* Stores the templates that were seen, where they are other ones. */
void templates_take(struct as_engine *engine, struct target *target,
                    const struct as_observation *observation);

#endif
