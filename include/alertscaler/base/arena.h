/*
 * Memory that is given back all at once. For what lives as long as one step or one document.
 */
#ifndef ALERTSCALER_BASE_ARENA_H
#define ALERTSCALER_BASE_ARENA_H

#include <stddef.h>

#include <alertscaler/base/attr.h>

struct as_arena_chunk;

struct as_arena {
    struct as_arena_chunk *chunks; /* in use, the newest first */
    struct as_arena_chunk *spare;  /* kept by a reset for the next use */
};

#define AS_ARENA_INIT ((struct as_arena){.chunks = NULL})

#define AS_ARENA_KEEP ((size_t)512 * 1024) /* bytes that a reset keeps at the most */

/* Zeroed, aligned for every type; ends the process when there is no memory. `size` may be 0. */
void *as_arena_alloc(struct as_arena *arena, size_t count, size_t size) AS_MUST_USE;
void *as_arena_alloc_raw(struct as_arena *arena, size_t size) AS_MUST_USE;   /* not zeroed */
char *as_arena_strdup(struct as_arena *arena, const char *text) AS_MUST_USE; /* NULL stays NULL */

void as_arena_reset(struct as_arena *arena);  /* frees all allocations; keeps AS_ARENA_KEEP bytes */
void as_arena_deinit(struct as_arena *arena); /* frees everything */

#endif
