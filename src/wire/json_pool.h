/*
 * jansson's memory for one document that a peer sent: taken from a pool, given back all at once,
 * and capped.
 *
 * Between enter and leave all that jansson allocates in this thread comes from the pool, and what
 * it frees stays there until the pool is left; so no value may be kept beyond it.
 */
#ifndef ALERTSCALER_WIRE_JSON_POOL_H
#define ALERTSCALER_WIRE_JSON_POOL_H

#include <stdbool.h>
#include <stddef.h>

/* At most `max` bytes: beyond them jansson fails, and json_pool_is_exhausted tells why. Pools are
 * not nested. */
void json_pool_enter(size_t max);
bool json_pool_is_exhausted(void);
void json_pool_leave(void);

#endif
