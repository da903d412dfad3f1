/*
 * json_set_alloc_funcs is the only hook jansson has, and it is global: outside a pool the functions
 * are those for libraries (base/alloc.h).
 */
#include "json_pool.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

#include <jansson.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/arena.h>

static _Thread_local struct {
    bool is_entered, is_exhausted;
    size_t left;
    struct as_arena arena; /* its spare chunks are kept from document to document */
} pool;

static pthread_key_t thread_end;

static void give_back_arena(void *arena)
{
    as_arena_deinit(arena);
}

static void watch_thread_ends(void)
{
    if (pthread_key_create(&thread_end, give_back_arena) != 0)
        abort(); /* a process has 1,024 of them */
}

static void *pool_malloc(size_t size)
{
    if (!pool.is_entered)
        return as_library_malloc(size);
    if (size > pool.left) {
        pool.is_exhausted = true;
        return NULL;
    }
    pool.left -= size;
    return as_arena_alloc_raw(&pool.arena, size);
}

static void pool_free(void *memory)
{
    if (!pool.is_entered)
        free(memory);
}

void json_pool_enter(size_t max)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    assert(!pool.is_entered);
    pthread_once(&once, watch_thread_ends);
    pthread_setspecific(thread_end, &pool.arena);
    json_set_alloc_funcs(pool_malloc, pool_free);
    pool.is_entered = true;
    pool.is_exhausted = false;
    pool.left = max;
}

bool json_pool_is_exhausted(void)
{
    return pool.is_exhausted;
}

void json_pool_leave(void)
{
    assert(pool.is_entered);
    pool.is_entered = false;
    as_arena_reset(&pool.arena);
}
