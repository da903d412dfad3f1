/* The JSON writer: compact and canonical, escapes only what it must, cannot overflow. */
#include <criterion/criterion.h>
#include <criterion/redirect.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>

#include <jansson.h>

#include <alertscaler/base/random.h>
#include <alertscaler/doc/json_writer.h>

Test(json_writer, writes_every_kind_of_value_without_spaces)
{
    struct as_buf buf = AS_BUF_INIT(1000);
    struct as_json_writer json;

    as_json_init(&json, &buf, 0);
    as_json_begin_object(&json);
    as_json_write_key(&json, "a");
    as_json_begin_array(&json);
    as_json_write_i64(&json, INT64_MIN);
    as_json_write_double(&json, 0.1);
    as_json_write_double(&json, NAN);
    as_json_write_double(&json, -INFINITY);
    as_json_write_null(&json);
    as_json_begin_array(&json);
    as_json_end_array(&json);
    as_json_begin_object(&json);
    as_json_end_object(&json);
    as_json_write_raw(&json, "{\"x\":1}", 7);
    as_json_end_array(&json);
    as_json_write_member(&json, "b", "text");
    as_json_write_member_bool(&json, "c", true);
    as_json_write_member_bool(&json, "d", false);
    as_json_write_member_i64(&json, "e", 42);
    as_json_write_key(&json, "f");
    as_json_begin_object(&json);
    as_json_write_member(&json, "a", "");
    as_json_end_object(&json);
    as_json_end_object(&json);
    cr_assert_eq(as_buf_check(&buf), 0);
    cr_assert_str_eq(buf.data,
                     "{\"a\":[-9223372036854775808,0.1,null,null,null,[],{},{\"x\":1}],"
                     "\"b\":\"text\",\"c\":true,\"d\":false,\"e\":42,\"f\":{\"a\":\"\"}}");
    as_buf_deinit(&buf);
}

Test(json_writer, a_bare_value_is_a_document_too)
{
    struct as_buf buf = AS_BUF_INIT(100);
    struct as_json_writer json;

    as_json_init(&json, &buf, 0);
    as_json_write_string(&json, "x");
    cr_assert_str_eq(buf.data, "\"x\"");
    as_buf_deinit(&buf);
}

static const struct {
    const char *text;
    size_t size;
    unsigned flags;
    const char *json;
} strings[] = {
#define S(text) text, sizeof(text) - 1
    {S(""), 0, "\"\""},
    {S("plain text that is longer than eight bytes"), 0,
     "\"plain text that is longer than eight bytes\""},
    {S("\"\\/"), 0, "\"\\\"\\\\/\""},
    {S("\b\f\n\r\t"), 0, "\"\\b\\f\\n\\r\\t\""},
    {S("\0\x01\x1f\x7f"), 0, "\"\\u0000\\u0001\\u001f\x7f\""},
    {S("1234567\n"), 0, "\"1234567\\n\""},
    {S("12345678\n"), 0, "\"12345678\\n\""},
    {S("\n12345678"), 0, "\"\\n12345678\""},
    {S("<a href='x'>&</a>"), 0, "\"<a href='x'>&</a>\""},
    {S("<a>&"), AS_JSON_HTML, "\"\\u003ca\\u003e\\u0026\""},
    {S("a\xE2\x80\xA8"
       "b\xE2\x80\xA9"),
     AS_JSON_HTML, "\"a\\u2028b\\u2029\""},
    {S("a\xE2\x80\xA8"
       "b"),
     0,
     "\"a\xE2\x80\xA8"
     "b\""},
    {S("\xE2\x80\xA7\xE2\x80\xAA"), AS_JSON_HTML, "\"\xE2\x80\xA7\xE2\x80\xAA\""},
    /* UTF-8 goes through, at its edges too */
    {S("\xC2\x80\xDF\xBF\xE0\xA0\x80\xED\x9F\xBF\xEE\x80\x80\xEF\xBF\xBF"), 0,
     "\"\xC2\x80\xDF\xBF\xE0\xA0\x80\xED\x9F\xBF\xEE\x80\x80\xEF\xBF\xBF\""},
    {S("\xF0\x90\x80\x80\xF4\x8F\xBF\xBF"), 0, "\"\xF0\x90\x80\x80\xF4\x8F\xBF\xBF\""},
    {S("12345\xF0\x9F\x99\x82"
       "12345678\xC3\xA9"),
     0,
     "\"12345\xF0\x9F\x99\x82"
     "12345678\xC3\xA9\""},
    /* what is not becomes U+FFFD, byte by byte */
    {S("a\xFF"
       "b"),
     0,
     "\"a\xEF\xBF\xBD"
     "b\""},
    {S("\xC3"), 0, "\"\xEF\xBF\xBD\""},
    {S("\xC3("), 0, "\"\xEF\xBF\xBD(\""},
    {S("\xE2\x80"), 0, "\"\xEF\xBF\xBD\xEF\xBF\xBD\""},
    {S("\xE2\x80"), AS_JSON_HTML, "\"\xEF\xBF\xBD\xEF\xBF\xBD\""},
    {S("\xC0\x80"), 0, "\"\xEF\xBF\xBD\xEF\xBF\xBD\""},
    {S("\xE0\x80\x80"), 0, "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\""},
    {S("\xED\xA0\x80"), 0, "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\""},
    {S("\xF4\x90\x80\x80"), 0, "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\""},
#undef S
};

Test(json_writer, strings_are_escaped_where_they_must_be_and_nowhere_else)
{
    for (size_t i = 0; i < sizeof(strings) / sizeof(strings[0]); i++) {
        struct as_buf buf = AS_BUF_INIT(1000);
        struct as_json_writer json;
        /* memory of exactly this size: reading past the end is seen by the sanitizer */
        char *text = malloc(strings[i].size ? strings[i].size : 1);
        memcpy(text, strings[i].text, strings[i].size);
        as_json_init(&json, &buf, strings[i].flags);
        as_json_write_string_size(&json, text, strings[i].size);
        cr_assert_str_eq(buf.data, strings[i].json, "row %zu: %s", i, buf.data);
        free(text);
        as_buf_deinit(&buf);
    }
}

Test(json_writer, random_bytes_become_json_that_reads_back)
{
    struct as_random random;

    as_random_init(&random, 1);
    for (int round = 0; round < 2000; round++) {
        char text[40];
        size_t size = as_random_get_below(&random, sizeof(text));
        bool is_ascii = round % 2;
        for (size_t i = 0; i < size; i++)
            text[i] = (char)(is_ascii ? 1 + as_random_get_below(&random, 127)
                                      : as_random_get_below(&random, 256));
        struct as_buf buf = AS_BUF_INIT(1000);
        struct as_json_writer json;
        as_json_init(&json, &buf, round % 4 < 2 ? AS_JSON_HTML : 0);
        as_json_write_string_size(&json, text, size);
        json_t *value = json_loadb(buf.data, buf.size, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
        cr_assert_not_null(value, "%s", buf.data);
        if (is_ascii) {
            cr_assert_eq(json_string_length(value), size);
            cr_assert_eq(memcmp(json_string_value(value), text, size), 0);
        }
        json_decref(value);
        as_buf_deinit(&buf);
    }
}

Test(json_writer, a_full_buffer_stays_within_its_maximum_and_says_so)
{
    for (size_t max = 0; max < 30; max++) {
        struct as_buf buf = AS_BUF_INIT(max);
        struct as_json_writer json;
        as_json_init(&json, &buf, 0);
        as_json_begin_object(&json);
        as_json_write_member(&json, "a", "12345678");
        as_json_write_member(&json, "b", "1\n");
        as_json_end_object(&json); /* 26 bytes */
        cr_assert_leq(buf.size, max);
        cr_assert_eq(as_buf_check(&buf), max < 26 ? -EMSGSIZE : 0, "%zu", max);
        as_buf_deinit(&buf);
    }
}

Test(json_writer, appends_to_what_is_there)
{
    struct as_buf buf = AS_BUF_INIT(100);
    struct as_json_writer json;

    as_buf_append_str(&buf, "first\n");
    as_json_init(&json, &buf, 0);
    as_json_begin_object(&json);
    as_json_write_member_i64(&json, "a", 1);
    as_json_end_object(&json);
    cr_assert_str_eq(buf.data, "first\n{\"a\":1}");
    as_buf_deinit(&buf);
}

static void write_keys(const char *const *keys, size_t count, unsigned flags)
{
    struct as_buf buf = AS_BUF_INIT(1000);
    struct as_json_writer json;

    as_json_init(&json, &buf, flags);
    as_json_begin_object(&json);
    for (size_t i = 0; i < count; i++)
        as_json_write_member_i64(&json, keys[i], 0);
    as_json_end_object(&json);
    as_buf_deinit(&buf);
}

#define WRITE_KEYS(flags, ...)                                                                     \
    write_keys((const char *const[]){__VA_ARGS__},                                                 \
               sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *), flags)

Test(json_writer, keys_in_byte_order_are_canonical)
{
    WRITE_KEYS(0, "", "A", "a", "aa", "ab", "b", "\xC3\xA9");
    WRITE_KEYS(AS_JSON_ANY_ORDER, "b", "a", "a");
}

Test(json_writer, keys_out_of_order_are_a_bug, .signal = SIGABRT)
{
    cr_redirect_stderr();
    WRITE_KEYS(0, "a", "c", "b");
}

Test(json_writer, a_key_that_comes_twice_is_a_bug, .signal = SIGABRT)
{
    cr_redirect_stderr();
    WRITE_KEYS(0, "a", "b", "b");
}

Test(json_writer, a_prefix_behind_the_longer_key_is_a_bug, .signal = SIGABRT)
{
    cr_redirect_stderr();
    WRITE_KEYS(0, "ab", "a");
}

Test(json_writer, a_value_without_key_is_a_bug, .signal = SIGABRT)
{
    struct as_buf buf = AS_BUF_INIT(1000);
    struct as_json_writer json;

    cr_redirect_stderr();
    as_json_init(&json, &buf, 0);
    as_json_begin_object(&json);
    as_json_write_i64(&json, 1);
}
