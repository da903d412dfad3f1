/*
 * Promises: an error reads from the outside in, never overflows, is cut between characters, and
 * may be absent.
 */
#include <errno.h>
#include <string.h>

#include <criterion/criterion.h>

#include <alertscaler/base/error.h>
#include <alertscaler/base/str.h>

Test(error, wraps_read_from_the_outside_in)
{
    struct as_error error = AS_ERROR_INIT;
    as_error_set(&error, "HTTP %d", 409);
    as_error_wrap(&error, "patch");
    as_error_wrap(&error, "scale %s", "shop/checkout");
    cr_expect_str_eq(error.text, "scale shop/checkout: patch: HTTP 409");
}

Test(error, wrapping_nothing_is_setting)
{
    struct as_error error = AS_ERROR_INIT;
    as_error_wrap(&error, "lost");
    cr_expect_str_eq(error.text, "lost");
}

Test(error, set_replaces_and_may_quote_itself)
{
    struct as_error error = AS_ERROR_INIT;
    as_error_set(&error, "inner");
    as_error_set(&error, "first %s, again %s", error.text, error.text);
    cr_expect_str_eq(error.text, "first inner, again inner");
    as_error_wrap(&error, "%s", error.text);
    cr_expect_str_eq(error.text, "first inner, again inner: first inner, again inner");
}

Test(error, errno_of_either_sign)
{
    struct as_error error = AS_ERROR_INIT;
    as_error_set_errno(&error, ENOENT, "open %s", "a.yaml");
    cr_expect_str_eq(error.text, "open a.yaml: No such file or directory");
    as_error_set_errno(&error, -EACCES, "open");
    cr_expect_str_eq(error.text, "open: Permission denied");
}

Test(error, absent_error_is_ignored)
{
    as_error_set(NULL, "x");
    as_error_wrap(NULL, "x");
    as_error_set_errno(NULL, EIO, "x");
}

Test(error, too_long_is_cut_between_characters)
{
    for (size_t length = AS_ERROR_SIZE - 10; length < AS_ERROR_SIZE + 10; length++) {
        char head[AS_ERROR_SIZE + 16];
        struct as_error error = AS_ERROR_INIT;
        memset(head, 'x', length);
        head[length] = '\0';
        as_error_set(&error, "%s\xe2\x82\xac\xe2\x82\xac", head);
        size_t size = strlen(error.text);
        cr_assert_lt(size, AS_ERROR_SIZE);
        cr_assert(as_str_is_utf8(error.text, size), "length %zu", length);
        as_error_wrap(&error, "outer");
        size = strlen(error.text);
        cr_assert_lt(size, AS_ERROR_SIZE);
        cr_assert(as_str_is_utf8(error.text, size), "length %zu", length);
        cr_assert(as_str_starts_with(error.text, "outer: x"));
    }
}
