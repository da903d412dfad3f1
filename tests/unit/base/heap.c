/*
 * The heap of release builds: memory that was freed, or left behind by realloc, is zero before
 * anyone can get it again; and realloc behaves as usual. Without sanitizers, which have their own
 * heap.
 */
#include <criterion/criterion.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>

#define LINKS 32 /* bytes at both ends of a free chunk that the C library keeps its lists in */

static const size_t sizes[] = {100, 1000, 5000, 100000};

/* Not visible as a pointer to freed memory. */
static uintptr_t hide(const void *memory)
{
    volatile uintptr_t hidden = (uintptr_t)memory;
    return hidden;
}

static void expect_wiped(uintptr_t hidden, size_t size)
{
    const volatile unsigned char *memory = (const volatile unsigned char *)hidden;
    for (size_t i = LINKS; i < size - LINKS; i++)
        cr_assert_eq(memory[i], 0, "byte %zu of %zu", i, size);
}

static char *make(size_t size)
{
    char *memory = malloc(size);
    cr_assert_not_null(memory);
    memset(memory, 'S', size);
    return memory;
}

Test(heap, what_is_freed_is_wiped)
{
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        char *memory = make(sizes[i]);
        char *neighbour = malloc(16); /* so that it is not given back to the system */
        const uintptr_t hidden = hide(memory);
        free(memory);
        expect_wiped(hidden, sizes[i]);
        free(neighbour);
    }
    free(NULL);
}

Test(heap, what_is_released_is_left_as_it_is)
{
    char *memory = make(5000);
    char *neighbour = malloc(16);
    const uintptr_t hidden = hide(memory);
    as_release(memory);
    cr_assert_eq(((const volatile char *)hidden)[2500], 'S');
    free(neighbour);
    as_release(NULL);
}

Test(heap, what_realloc_leaves_behind_is_wiped)
{
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        char *memory = make(sizes[i]);
        char *neighbour = malloc(16);
        const uintptr_t hidden = hide(memory);
        char *moved = realloc(memory, 4 * sizes[i]);
        cr_assert_not_null(moved);
        cr_assert_neq(hide(moved), hidden);
        for (size_t k = 0; k < sizes[i]; k++)
            cr_assert_eq(moved[k], 'S');
        expect_wiped(hidden, sizes[i]);
        free(moved);
        free(neighbour);
    }
}

Test(heap, realloc_is_what_it_was)
{
    char *memory = realloc(NULL, 1000);
    cr_assert_not_null(memory);
    memset(memory, 'a', 1000);
    memory = realloc(memory, 990);
    cr_assert(memory && memory[989] == 'a');
    memory = realloc(memory, 10);
    cr_assert(memory && memory[9] == 'a');
    cr_assert_lt(malloc_usable_size(memory), 100, "what is not needed is given back");
    cr_assert_null(realloc(memory, 0));
    memory = malloc(10);
    volatile size_t too_much = PTRDIFF_MAX;
    const uintptr_t kept = hide(memory);
    cr_assert_null(realloc(memory, too_much));
    free((void *)kept);
}
