/*
 * Small allocations: see the header. A failure is abort() without a message: there may be no memory
 * to write one, and recovery must survive a crash anyway.
 */
#include <alertscaler/base/alloc.h>

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_CAPACITY 8

/* malloc(0) may return NULL; as_xmalloc never does. */
void *as_xmalloc(size_t size)
{
    void *memory = malloc(size ? size : 1);
    if (!memory)
        abort();
    return memory;
}

void *as_xcalloc(size_t count, size_t size)
{
    void *memory = calloc(count ? count : 1, size ? size : 1);
    if (!memory)
        abort();
    return memory;
}

void *as_xrealloc_array(void *old, size_t count, size_t size)
{
    size_t total;
    if (__builtin_mul_overflow(count, size, &total))
        abort();
    void *memory = realloc(old, total ? total : 1);
    if (!memory)
        abort();
    return memory;
}

void *as_library_malloc(size_t size)
{
    return size <= AS_ALLOC_SMALL ? as_xmalloc(size) : malloc(size);
}

void *as_library_calloc(size_t count, size_t size)
{
    size_t total;
    if (__builtin_mul_overflow(count, size, &total))
        return NULL;
    return total <= AS_ALLOC_SMALL ? as_xcalloc(count, size) : calloc(count, size);
}

void *as_library_realloc(void *old, size_t size)
{
    return size <= AS_ALLOC_SMALL ? as_xrealloc_array(old, 1, size) : realloc(old, size);
}

char *as_library_strdup(const char *text)
{
    const size_t size = strlen(text) + 1;
    char *copy = as_library_malloc(size);
    return copy ? memcpy(copy, text, size) : NULL;
}

char *as_xstrdup(const char *text)
{
    size_t size = strlen(text) + 1;
    return memcpy(as_xmalloc(size), text, size);
}

char *as_xstrndup(const char *text, size_t size)
{
    size_t length = strnlen(text, size);
    char *copy = as_xmalloc(length + 1);
    memcpy(copy, text, length);
    copy[length] = '\0';
    return copy;
}

char *as_xasprintf(const char *format, ...)
{
    char *text;
    va_list arguments;
    va_start(arguments, format);
    int size = vasprintf(&text, format, arguments);
    va_end(arguments);
    if (size < 0)
        abort();
    return text;
}

/* The program's own version is in base/heap.c. */
__attribute__((weak)) void as_release(void *memory)
{
    free(memory);
}

void as_wipe_free(char *text)
{
    if (text)
        explicit_bzero(text, strlen(text));
    free(text);
}

void as_free_p(void *pointer_to_pointer)
{
    void **pointer = pointer_to_pointer;
    free(*pointer);
    *pointer = NULL;
}

void *as_xgrow(void *array, size_t count, size_t *capacity_io, size_t size)
{
    if (count < *capacity_io)
        return array;
    size_t capacity = *capacity_io ? *capacity_io : FIRST_CAPACITY / 2;
    if (__builtin_mul_overflow(capacity, (size_t)2, &capacity))
        abort();
    array = as_xrealloc_array(array, capacity, size);
    *capacity_io = capacity;
    return array;
}
