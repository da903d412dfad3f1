/*
 * jansson's only hook is json_set_alloc_funcs, and it is global: outside a pool the functions are
 * those for libraries (base/alloc.h).
 */
#include "json_pool.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/arena.h>
#include <alertscaler/base/str.h>

static _Thread_local struct {
    bool is_entered, is_exhausted;
    size_t left;
    struct as_arena arena; /* its spare chunks are kept between documents */
} pool;

static pthread_key_t thread_end;

static void give_back_arena(void *arena)
{
    as_arena_deinit(arena);
}

static void watch_thread_ends(void)
{
    if (pthread_key_create(&thread_end, give_back_arena) != 0)
        abort(); /* out of TLS keys: a process has 1,024 */
}

void *json_pool_alloc(size_t size)
{
    assert(pool.is_entered);
    if (size > pool.left) {
        pool.is_exhausted = true;
        return NULL;
    }
    pool.left -= size;
    return as_arena_alloc_raw(&pool.arena, size);
}

static void *pool_malloc(size_t size)
{
    return pool.is_entered ? json_pool_alloc(size) : as_library_malloc(size);
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

/* jansson quotes the place from the document, and may cut inside a character. */
static void set_syntax_error(struct as_error *error, const json_error_t *syntax)
{
    char text[JSON_ERROR_TEXT_LENGTH];

    as_str_copy_line(syntax->text, text, sizeof(text));
    as_error_set(error, "not JSON: line %d, column %d: %s", syntax->line, syntax->column, text);
}

int json_pool_load(const char *json, size_t size, const json_t **root_out, struct as_error *error)
{
    json_error_t syntax = {.line = 0};
    const json_t *root = json_loadb(json, size, JSON_REJECT_DUPLICATES, &syntax);
    const enum json_error_code code = json_error_code(&syntax);

    if (root) {
        *root_out = root;
        return 0;
    }
    if (code == json_error_null_character || code == json_error_null_byte_in_key)
        as_error_set(error, "not JSON that can be read: a NUL in a text");
    else if (pool.is_exhausted)
        as_error_set(error, "too many values for a document of this size");
    else
        set_syntax_error(error, &syntax);
    return -EINVAL;
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
