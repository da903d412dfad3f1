/*
 * Memory for one document of a peer: taken from a pool, freed all at once, and capped.
 *
 * Between enter and leave all of jansson's allocations in this thread come from the pool, and freed
 * memory stays there until leave; so no value may be kept longer.
 */
#ifndef ALERTSCALER_SRC_WIRE_JSON_JSON_POOL_H
#define ALERTSCALER_SRC_WIRE_JSON_JSON_POOL_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>

/* At most `max` bytes: beyond them jansson fails, and json_pool_is_exhausted is true. Pools are not
 * nested. */
void json_pool_enter(size_t max);
void *json_pool_alloc(size_t size) AS_MUST_USE; /* not zeroed; NULL beyond `max` */

/* jansson's tree of a document; duplicate names are refused. -EINVAL with an error. */
int json_pool_load(const char *json, size_t size, const json_t **root_out,
                   struct as_error *error) AS_MUST_USE;
bool json_pool_is_exhausted(void);
void json_pool_leave(void);

#endif
