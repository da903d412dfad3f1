/*
 * SQLite's memory comes from the general allocator, but is freed with as_release: it holds pages
 * and statements of the state, which is not secret.
 */
#include "sqlite_memory.h"

#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include <alertscaler/base/alloc.h>

static void *allocate(int size)
{
    return malloc((size_t)size);
}

static int get_size(void *memory)
{
    return memory ? (int)malloc_usable_size(memory) : 0;
}

static void *resize(void *memory, int size)
{
    const size_t room = malloc_usable_size(memory), wanted = (size_t)size;
    if (wanted <= room && wanted >= room / 2)
        return memory;
    void *moved = malloc(wanted);
    if (moved) {
        memcpy(moved, memory, wanted < room ? wanted : room);
        as_release(memory);
    }
    return moved;
}

static int round_up(int size)
{
    return (size + 7) & ~7;
}

static int begin(void *context)
{
    return SQLITE_OK;
}

static void end(void *context)
{
}

static void configure(void)
{
    static const sqlite3_mem_methods methods = {
        .xMalloc = allocate,
        .xFree = as_release,
        .xRealloc = resize,
        .xSize = get_size,
        .xRoundup = round_up,
        .xInit = begin,
        .xShutdown = end,
    };
    (void)sqlite3_config(SQLITE_CONFIG_MALLOC, &methods); /* too late if SQLite is in use */
}

void as_sqlite_set_memory(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, configure);
}
