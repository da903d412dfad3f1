/*
 * A list of chunks, filled from front to back. The first one is small: most of the arenas that live
 * long hold a few texts. A reset keeps chunks up to the usual size, and up to AS_ARENA_KEEP bytes,
 * so that usual steps and documents need no calls of the allocator.
 */
#include <alertscaler/base/arena.h>

#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>

#define CHUNK_SIZE ((size_t)16 * 1024)
#define FIRST_SIZE ((size_t)448)

struct as_arena_chunk {
    struct as_arena_chunk *next;
    size_t size, used, written; /* written: also before a reset */
    alignas(max_align_t) unsigned char data[];
};

static void chunk_empty(struct as_arena_chunk *chunk)
{
    if (chunk->used > chunk->written)
        chunk->written = chunk->used;
    chunk->used = 0;
}

/* Like free, but wipes only what was written: most of a chunk is not. */
static void chunk_free(struct as_arena_chunk *chunk)
{
    chunk_empty(chunk);
    explicit_bzero(chunk->data, chunk->written);
    as_release(chunk);
}

static struct as_arena_chunk *chunk_get(struct as_arena *arena, size_t size)
{
    const size_t usual = arena->chunks || arena->spare ? CHUNK_SIZE : FIRST_SIZE;
    struct as_arena_chunk **at = &arena->spare, *chunk;
    while (*at && (*at)->size < size)
        at = &(*at)->next;
    if (*at) {
        chunk = *at;
        *at = chunk->next;
        return chunk;
    }
    if (size < usual)
        size = usual;
    chunk = as_xmalloc(sizeof(*chunk) + size);
    *chunk = (struct as_arena_chunk){.size = size};
    return chunk;
}

void *as_arena_alloc_raw(struct as_arena *arena, size_t size)
{
    const size_t align = alignof(max_align_t);
    if (size > SIZE_MAX / 2)
        abort();
    size = (size + align - 1) / align * align;

    struct as_arena_chunk *chunk = arena->chunks;
    if (!chunk || chunk->size - chunk->used < size) {
        chunk = chunk_get(arena, size);
        chunk->next = arena->chunks;
        arena->chunks = chunk;
    }
    void *memory = chunk->data + chunk->used;
    chunk->used += size;
    return memory;
}

void *as_arena_alloc(struct as_arena *arena, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes))
        abort();
    return memset(as_arena_alloc_raw(arena, bytes), 0, bytes);
}

char *as_arena_strdup(struct as_arena *arena, const char *text)
{
    if (!text)
        return NULL;
    const size_t size = strlen(text) + 1;
    return memcpy(as_arena_alloc_raw(arena, size), text, size);
}

void as_arena_reset(struct as_arena *arena)
{
    size_t kept = 0;
    for (const struct as_arena_chunk *chunk = arena->spare; chunk; chunk = chunk->next)
        kept += chunk->size;
    while (arena->chunks) {
        struct as_arena_chunk *chunk = arena->chunks;
        arena->chunks = chunk->next;
        if (chunk->size > CHUNK_SIZE || kept + chunk->size > AS_ARENA_KEEP) {
            chunk_free(chunk);
            continue;
        }
        kept += chunk->size;
        chunk_empty(chunk);
        chunk->next = arena->spare;
        arena->spare = chunk;
    }
}

void as_arena_deinit(struct as_arena *arena)
{
    as_arena_reset(arena);
    while (arena->spare) {
        struct as_arena_chunk *chunk = arena->spare;
        arena->spare = chunk->next;
        chunk_free(chunk);
    }
}
