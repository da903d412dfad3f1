/*
 * Promises: an allocation succeeds or the process ends; copies are whole; arrays grow by doubling.
 */
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include <alertscaler/base/alloc.h>

Test(alloc, nothing_is_memory_too)
{
    AS_CLEANUP(as_free_p) void *a = as_xmalloc(0);
    AS_CLEANUP(as_free_p) void *b = as_xcalloc(0, 0);
    AS_CLEANUP(as_free_p) void *c = as_xrealloc_array(NULL, 0, 8);
    cr_expect(a && b && c);
}

Test(alloc, calloc_zeroes)
{
    AS_CLEANUP(as_free_p) unsigned char *memory = as_xcalloc(100, 3);
    for (size_t i = 0; i < 300; i++)
        cr_assert_eq(memory[i], 0);
}

/* volatile: the compiler must not see the size, or it warns of it */
Test(alloc, overflow_of_an_array_ends_the_process, .signal = SIGABRT)
{
    volatile size_t huge = SIZE_MAX / 2 + 1;
    free(as_xrealloc_array(NULL, huge, 4));
}

Test(alloc, overflow_of_growth_ends_the_process, .signal = SIGABRT)
{
    size_t capacity = SIZE_MAX / 2 + 1;
    free(as_xgrow(NULL, capacity, &capacity, 1));
}

Test(alloc, copies_are_whole_and_bounded)
{
    AS_CLEANUP(as_free_p) char *whole = as_xstrdup("checkout");
    AS_CLEANUP(as_free_p) char *bounded = as_xstrndup("checkout", 5);
    AS_CLEANUP(as_free_p) char *shorter = as_xstrndup("shop", 100);
    AS_CLEANUP(as_free_p) char *empty = as_xstrndup("shop", 0);
    AS_CLEANUP(as_free_p) char *printed = as_xasprintf("%s/%d", "shop", 7);
    cr_expect_str_eq(whole, "checkout");
    cr_expect_str_eq(bounded, "check");
    cr_expect_str_eq(shorter, "shop");
    cr_expect_str_eq(empty, "");
    cr_expect_str_eq(printed, "shop/7");
}

Test(alloc, cleanup_forgets_the_pointer)
{
    char *text = as_xstrdup("x");
    as_free_p(&text);
    cr_expect_null(text);
    as_free_p(&text);
}

Test(alloc, growing_moves_seldom_and_keeps_the_elements)
{
    AS_CLEANUP(as_free_p) int *array = NULL;
    size_t capacity = 0, moves = 0;
    for (int i = 0; i < 10000; i++) {
        size_t before = capacity;
        array = as_xgrow(array, (size_t)i, &capacity, sizeof(*array));
        moves += capacity != before;
        cr_assert_gt(capacity, (size_t)i);
        array[i] = i;
    }
    for (int i = 0; i < 10000; i++)
        cr_assert_eq(array[i], i);
    cr_expect_leq(moves, 14);
}

Test(alloc, for_libraries_as_the_functions_that_they_replace)
{
    AS_CLEANUP(as_free_p) unsigned char *zeroes = as_library_calloc(10, 10);
    for (size_t i = 0; i < 100; i++)
        cr_assert_eq(zeroes[i], 0);
    AS_CLEANUP(as_free_p) char *text = as_library_strdup("as it was");
    text = as_library_realloc(text, 2 * AS_ALLOC_SMALL);
    cr_assert_str_eq(text, "as it was");
    text = as_library_realloc(text, 100);
    cr_assert_str_eq(text, "as it was");
    AS_CLEANUP(as_free_p) void *nothing = as_library_malloc(0);
    cr_assert_not_null(nothing);
}
