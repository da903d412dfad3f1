/* JSON as a tree: the kinds of numbers, and the time that a long document takes. */
#include <criterion/criterion.h>
#include <string.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/doc/json_tree.h>

Test(json_tree, numbers_with_a_fraction_or_an_exponent_are_real)
{
    static const char text[] = "[0,-12,9223372036854775807,9223372036854775808,1.5,1e3,-2E-1]";
    static const enum tree_kind kinds[] = {TREE_INTEGER, TREE_INTEGER, TREE_INTEGER, TREE_REAL,
                                           TREE_REAL,    TREE_REAL,    TREE_REAL};
    AS_CLEANUP(tree_deinit) struct tree tree = TREE_INIT(TREE_NO_LIMIT);
    struct as_error error = AS_ERROR_INIT;
    cr_assert_eq(tree_load(&tree, text, strlen(text), &error), 0, "%s", error.text);
    cr_assert_eq(tree.root->size, AS_ARRAY_SIZE(kinds));
    size_t i = 0;
    for (const struct tree_value *item = tree.root->first; item; item = item->next, i++)
        cr_assert_eq(item->kind, kinds[i], "%zu", i);
    cr_assert_eq(tree.root->first->next->integer, -12);
}

/* Each number is read by itself: 3 MiB take a moment, not minutes. */
Test(json_tree, many_numbers_take_linear_time)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf text = AS_BUF_INIT((size_t)4 * 1024 * 1024);
    AS_CLEANUP(tree_deinit) struct tree tree = TREE_INIT(TREE_NO_LIMIT);
    struct as_error error = AS_ERROR_INIT;
    as_buf_append_char(&text, '[');
    while (text.size < (size_t)3 * 1024 * 1024)
        as_buf_append_str(&text, "0,");
    as_buf_append_str(&text, "0]");
    cr_assert_eq(tree_load(&tree, text.data, text.size, &error), 0, "%s", error.text);
    cr_assert_gt(tree.root->size, 1000000);
}
