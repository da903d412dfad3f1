/*
 * Memory is wiped when it is freed, whoever frees it: what curl, OpenSSL, libevent, libyaml and we
 * have copied of tokens, passwords and keys is gone when the copy is, and not when something else
 * happens to need the memory. In release builds only: sanitizers have a heap of their own. What
 * surely holds none, and is much, is freed by as_release instead.
 *
 * The C library takes free and realloc of the program for its own and all libraries' use, and
 * offers its own under other names. What realloc would leave behind when it moves is why it is here
 * too.
 */
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>

#define FOR_ALL __attribute__((visibility("default"))) /* also for the libraries */

void __libc_free(void *memory);
void *__libc_realloc(void *memory, size_t size);

FOR_ALL void free(void *memory)
{
    if (!memory)
        return;
    explicit_bzero(memory, malloc_usable_size(memory));
    __libc_free(memory);
}

void as_release(void *memory)
{
    __libc_free(memory);
}

FOR_ALL void *realloc(void *memory, size_t size)
{
    if (!memory)
        return malloc(size);
    if (size == 0) {
        free(memory);
        return NULL;
    }
    const size_t room = malloc_usable_size(memory);
    if (size <= room && size >= room / 2)
        return memory;
    void *moved = malloc(size);
    if (!moved)
        return size <= room ? memory : NULL;
    memcpy(moved, memory, size < room ? size : room);
    free(memory);
    return moved;
}
