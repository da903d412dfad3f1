/*
 * The nodes and pods that a rehearsal's pools see.
 */
#ifndef ALERTSCALER_SRC_TOOLS_REHEARSAL_POOL_H
#define ALERTSCALER_SRC_TOOLS_REHEARSAL_POOL_H

#include "rehearsal_world.h"

struct world_pool; /* one look at a pool */

/* Each group has as many nodes as its size, as `nodes.template` says, and the pods are placed on
 * them. */
struct world_pool *world_pool_new(const struct world *world, const struct as_pool_request *request,
                                  as_wall_time now);
struct world_pool *world_pool_free(struct world_pool *pool); /* NULL is allowed */
/* Fills in the size of a pool, its survey and its plan, which are the pool's. */
void world_pool_tell(const struct world_pool *pool, struct as_observation *observation);

#endif
