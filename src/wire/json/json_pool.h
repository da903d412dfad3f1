/*
 * Memory for one document that a peer sent: taken from a pool, given back all at once, and capped.
 *
 * Between enter and leave all that jansson allocates in this thread comes from the pool, and what
 * it frees stays there until the pool is left; so no value may be kept beyond it.
 */
#ifndef ALERTSCALER_SRC_WIRE_JSON_JSON_POOL_H
#define ALERTSCALER_SRC_WIRE_JSON_JSON_POOL_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>

/* At most `max` bytes: beyond them jansson fails, and json_pool_is_exhausted tells why. Pools are
 * not nested. */
void json_pool_enter(size_t max);
void *json_pool_alloc(size_t size) AS_MUST_USE; /* not zeroed; NULL beyond `max` */

/* jansson's tree of a document, whose names come once; -EINVAL and why. */
int json_pool_load(const char *json, size_t size, const json_t **root_out,
                   struct as_error *error) AS_MUST_USE;
bool json_pool_is_exhausted(void);
void json_pool_leave(void);

#endif
