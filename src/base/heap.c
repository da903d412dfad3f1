/*
 * All memory is wiped when it is freed: copies of tokens, passwords and keys by curl, OpenSSL,
 * libevent, libyaml and ourselves disappear with the memory, not only when it is reused. In release
 * builds only: sanitizers have their own heap. Large memory that surely holds no secret is freed by
 * as_release instead.
 *
 * The C library uses the program's free and realloc for itself and all libraries, and provides its
 * own under other names. realloc is here too because it would leave the old copy when it moves
 * memory.
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
