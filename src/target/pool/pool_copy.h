/*
 * A copy of what the engine asks of a pool, which it lends only for the call.
 */
#ifndef ALERTSCALER_SRC_TARGET_POOL_POOL_COPY_H
#define ALERTSCALER_SRC_TARGET_POOL_POOL_COPY_H

#include <alertscaler/base/arena.h>
#include <alertscaler/core/observation.h>

/* Memory of the arena, but for addresses and what nodes are configured to be: call the deinit
 * before the arena's. */
void as_pool_request_copy(const struct as_pool_request *request, struct as_arena *arena,
                          struct as_pool_request *copy_out);
void as_pool_request_deinit(struct as_pool_request *copy);

#endif
