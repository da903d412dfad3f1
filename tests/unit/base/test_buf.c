/*
 * Promises: never more than the maximum; an append that does not fit changes nothing and sticks;
 * the bytes are always NUL-terminated; taking hands over ownership.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/buf.h>

Test(buf, appends_of_every_kind)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf buf = AS_BUF_INIT(1000);
    as_buf_append(&buf, "ab\0c", 4);
    as_buf_append(&buf, NULL, 0);
    as_buf_append_str(&buf, "de");
    as_buf_append_char(&buf, '!');
    as_buf_append_i64(&buf, INT64_MIN);
    as_buf_printf(&buf, "%s=%d", "x", 5);
    cr_expect_eq(as_buf_check(&buf), 0);
    cr_expect_eq(buf.size, 7 + 20 + 3);
    cr_expect_arr_eq(buf.data, "ab\0cde!-9223372036854775808x=5", buf.size + 1);
}

/* For each maximum, byte by byte and in one piece: exactly the maximum fits. */
Test(buf, exactly_the_maximum_fits)
{
    for (size_t max = 0; max < 300; max++) {
        char text[301];
        memset(text, 'x', sizeof(text));
        text[max] = '\0';
        AS_CLEANUP(as_buf_deinit) struct as_buf bytes = AS_BUF_INIT(max);
        AS_CLEANUP(as_buf_deinit) struct as_buf whole = AS_BUF_INIT(max);
        AS_CLEANUP(as_buf_deinit) struct as_buf printed = AS_BUF_INIT(max);
        for (size_t i = 0; i < max; i++)
            as_buf_append_char(&bytes, 'x');
        as_buf_append(&whole, text, max);
        as_buf_printf(&printed, "%s", text);
        cr_assert_eq(as_buf_check(&bytes) | as_buf_check(&whole) | as_buf_check(&printed), 0,
                     "max %zu", max);
        cr_assert(bytes.size == max && whole.size == max && printed.size == max);
        as_buf_append_char(&bytes, 'y');
        as_buf_append(&whole, text, 1);
        as_buf_printf(&printed, "%d", 7);
        cr_assert_eq(as_buf_check(&bytes), -EMSGSIZE);
        cr_assert_eq(as_buf_check(&whole), -EMSGSIZE);
        cr_assert_eq(as_buf_check(&printed), -EMSGSIZE);
        cr_assert(bytes.size == max && whole.size == max && printed.size == max);
        cr_assert(max == 0 || strcmp(bytes.data, text) == 0);
        cr_assert(max == 0 || strcmp(whole.data, text) == 0);
        cr_assert(max == 0 || strcmp(printed.data, text) == 0);
    }
}

Test(buf, what_does_not_fit_leaves_no_trace)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf buf = AS_BUF_INIT(8);
    as_buf_append_str(&buf, "abc");
    as_buf_printf(&buf, "%s", "123456");
    cr_expect_str_eq(buf.data, "abc");
    cr_expect_eq(buf.size, 3);
    as_buf_append_char(&buf, 'd'); /* would fit, but comes after the failure */
    cr_expect_str_eq(buf.data, "abc");
    cr_expect_null(as_buf_reserve(&buf, 1));
    as_buf_clear(&buf);
    cr_expect_eq(as_buf_check(&buf), 0);
    as_buf_append_str(&buf, "12345678");
    cr_expect_eq(as_buf_check(&buf), 0);
    cr_expect_str_eq(buf.data, "12345678");
}

Test(buf, clear_keeps_the_memory)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf buf = AS_BUF_INIT(100);
    as_buf_clear(&buf);
    as_buf_append_str(&buf, "abc");
    const char *before = buf.data;
    as_buf_clear(&buf);
    cr_expect_eq(buf.size, 0);
    cr_expect_str_eq(buf.data, "");
    as_buf_append_str(&buf, "xyz");
    cr_expect_eq(buf.data, before);
}

Test(buf, reserve_then_fill)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf buf = AS_BUF_INIT(1000);
    as_buf_append_str(&buf, "head ");
    char *end = as_buf_reserve(&buf, 900);
    cr_assert_not_null(end);
    cr_expect_str_eq(buf.data, "head ");
    memcpy(end, "tail", 5);
    buf.size += 4;
    cr_expect_str_eq(buf.data, "head tail");
    cr_expect_null(as_buf_reserve(&buf, SIZE_MAX));
    cr_expect_eq(as_buf_check(&buf), -EMSGSIZE);
}

Test(buf, absurd_sizes_fail_and_do_not_wrap)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf buf = AS_BUF_INIT(SIZE_MAX);
    as_buf_append_str(&buf, "x");
    cr_expect_null(as_buf_reserve(&buf, SIZE_MAX - 1));
    cr_expect_eq(as_buf_check(&buf), -EMSGSIZE);
    cr_expect_str_eq(buf.data, "x");
}

Test(buf, taking_leaves_it_empty)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf buf = AS_BUF_INIT(10);
    size_t size = 99;
    AS_CLEANUP(as_free_p) char *nothing = as_buf_take(&buf, &size);
    cr_expect_str_eq(nothing, "");
    cr_expect_eq(size, 0);
    as_buf_append_str(&buf, "abc");
    AS_CLEANUP(as_free_p) char *text = as_buf_take(&buf, &size);
    cr_expect_str_eq(text, "abc");
    cr_expect_eq(size, 3);
    cr_expect_null(buf.data);
    as_buf_append_str(&buf, "0123456789");
    cr_expect_eq(as_buf_check(&buf), 0);
    as_buf_append_char(&buf, 'x');
    cr_expect_eq(as_buf_check(&buf), -EMSGSIZE, "the maximum outlives the taking");
}

Test(buf, a_wiped_one_is_empty_and_can_be_used_again)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf buf = AS_BUF_INIT(10);
    as_buf_wipe(&buf);
    as_buf_append_str(&buf, "0123456789x");
    as_buf_append_str(&buf, "secret");
    as_buf_wipe(&buf);
    cr_expect_null(buf.data);
    cr_expect_eq(buf.size, 0);
    as_buf_append_str(&buf, "abc");
    cr_expect_eq(as_buf_check(&buf), 0);
    cr_expect_str_eq(buf.data, "abc");
}
