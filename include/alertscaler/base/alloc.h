/*
 * Memory of our own: small allocations whose failure ends the process (a crash is a tested path).
 * Memory whose size a peer chooses goes through as_buf, whose failure is an outcome.
 */
#ifndef ALERTSCALER_BASE_ALLOC_H
#define ALERTSCALER_BASE_ALLOC_H

#include <stddef.h>

#include <alertscaler/base/attr.h>

/* Bytes that the allocator adds to one block, with its rounding: for those who count memory. */
#define AS_ALLOC_EXTRA ((size_t)16)

void *as_xmalloc(size_t size) AS_MUST_USE;
void *as_xcalloc(size_t count, size_t size) AS_MUST_USE; /* zeroed; overflow ends the process */
void *as_xrealloc_array(void *old, size_t count, size_t size) AS_MUST_USE;
char *as_xstrdup(const char *text) AS_MUST_USE;
char *as_xstrndup(const char *text, size_t size) AS_MUST_USE;
char *as_xasprintf(const char *format, ...) AS_MUST_USE AS_PRINTF(1, 2);

/*
 * For libraries that take functions for their memory. Many of them go on where they are refused a
 * little, without what they needed it for, or crash. So up to AS_ALLOC_SMALL bytes are there or the
 * process ends, as above; more than that may be NULL.
 */
#define AS_ALLOC_SMALL ((size_t)1 << 20)
void *as_library_malloc(size_t size);
void *as_library_calloc(size_t count, size_t size);
void *as_library_realloc(void *old, size_t size);
char *as_library_strdup(const char *text);

/* free() for what never holds a secret: answers, records, state. free() itself wipes all memory in
 * release builds, whoever allocated it (app/process/heap.c), and this does not. */
void as_release(void *memory);

/* Frees a text that held a secret, or NULL, after wiping it. */
void as_wipe_free(char *text);

/* For AS_CLEANUP on locals got from the functions above: AS_CLEANUP(as_free_p) char *text. */
void as_free_p(void *pointer_to_pointer);

/*
 * Makes room for one more element in a growing array: *array_io has `count` elements of `size`
 * bytes and room for *capacity_io. Doubles. Returns the (possibly moved) array.
 */
void *as_xgrow(void *array, size_t count, size_t *capacity_io, size_t size) AS_MUST_USE;

#endif
