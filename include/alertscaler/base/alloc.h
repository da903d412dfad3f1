/*
 * Small allocations of our own: a failure ends the process (this crash is a tested path). Memory
 * whose size a peer chooses goes into an as_buf; there, failure is an outcome.
 */
#ifndef ALERTSCALER_BASE_ALLOC_H
#define ALERTSCALER_BASE_ALLOC_H

#include <stddef.h>

#include <alertscaler/base/attr.h>

/* What the allocator adds to one block, rounding included; for code that estimates memory use. */
#define AS_ALLOC_EXTRA ((size_t)16)

void *as_xmalloc(size_t size) AS_MUST_USE;
void *as_xcalloc(size_t count, size_t size) AS_MUST_USE; /* zeroed; overflow ends the process */
void *as_xrealloc_array(void *old, size_t count, size_t size) AS_MUST_USE;
char *as_xstrdup(const char *text) AS_MUST_USE;
char *as_xstrndup(const char *text, size_t size) AS_MUST_USE;
char *as_xasprintf(const char *format, ...) AS_MUST_USE AS_PRINTF(1, 2);

/*
 * Allocators for libraries that accept them. When a small allocation fails, many libraries crash or
 * go on with wrong results. So a failure of up to AS_ALLOC_SMALL bytes ends the process, as above;
 * larger requests may return NULL.
 */
#define AS_ALLOC_SMALL ((size_t)1 << 20)
void *as_library_malloc(size_t size);
void *as_library_calloc(size_t count, size_t size);
void *as_library_realloc(void *old, size_t size);
char *as_library_strdup(const char *text);

/* free() for memory that never holds a secret: answers, records, state. In release builds free()
 * itself wipes all memory, whoever allocated it (base/heap.c); as_release does not wipe. */
void as_release(void *memory);

/* Wipes a text that held a secret, then frees it. NULL is allowed. */
void as_wipe_free(char *text);

/* For AS_CLEANUP on locals from the functions above: AS_CLEANUP(as_free_p) char *text. */
void as_free_p(void *pointer_to_pointer);

/*
 * Makes room for one more element in a growing array of `count` elements of `size` bytes, with room
 * for *capacity_io elements. The capacity doubles. Returns the array, which may have moved.
 */
void *as_xgrow(void *array, size_t count, size_t *capacity_io, size_t size) AS_MUST_USE;

#endif
