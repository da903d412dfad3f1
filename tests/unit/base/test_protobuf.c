/*
 * protobuf.c: decoded fields equal the encoded ones; malformed input ends the reading, whatever
 * sizes it claims. Examples are those of the encoding's own guide.
 */
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include <alertscaler/base/protobuf.h>

#define BYTES(literal) literal, sizeof(literal) - 1

static struct as_buf buf;
static struct as_arena arena;

static void begin(void)
{
    buf = AS_BUF_INIT(1024);
    arena = AS_ARENA_INIT;
}

static void end(void)
{
    as_buf_deinit(&buf);
    as_arena_deinit(&arena);
}

TestSuite(protobuf, .init = begin, .fini = end);

static void expect_written(const char *bytes, size_t size)
{
    cr_assert_eq(buf.size, size, "%zu", buf.size);
    cr_assert_arr_eq(buf.data, bytes, size);
    as_buf_clear(&buf);
}

Test(protobuf, writes)
{
    as_protobuf_write_int32(&buf, 1, 150);
    expect_written(BYTES("\x08\x96\x01"));
    as_protobuf_write_int32(&buf, 1, -2);
    expect_written(BYTES("\x08\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"));
    as_protobuf_write_text(&buf, 2, "testing");
    expect_written(BYTES("\x12\x07testing"));
    as_protobuf_write_int32(&buf, 16, INT32_MAX);
    expect_written(BYTES("\x80\x01\xff\xff\xff\xff\x07"));
    AS_CLEANUP(as_buf_deinit) struct as_buf inner = AS_BUF_INIT(64);
    as_protobuf_write_message(&buf, 3, &inner);
    expect_written(BYTES("\x1a\x00"));
    as_protobuf_write_int32(&inner, 1, 150);
    as_protobuf_write_message(&buf, 3, &inner);
    expect_written(BYTES("\x1a\x03\x08\x96\x01"));
    as_protobuf_write_int32(&buf, 1, 0);
    as_protobuf_write_text(&buf, 1, "");
    cr_assert_eq(buf.size, 0, "defaults are not written");
}

Test(protobuf, reads_each_type)
{
    struct as_protobuf_reader reader, inner;
    struct as_protobuf_field field;
    const char *text = "";
    int32_t number = 0;
    as_protobuf_reader_init(&reader, BYTES("\x08\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"
                                           "\x11\x01\x02\x03\x04\x05\x06\x07\x08"
                                           "\x1d\x01\x02\x03\x04"
                                           "\x22\x05z\xc3\xbcge"
                                           "\xfa\xff\xff\xff\x0f\x02\x08\x07"));
    cr_assert(as_protobuf_next(&reader, &field) && as_protobuf_get_int32(&field, &number));
    cr_assert_eq(field.number, 1);
    cr_assert_eq(number, -2);
    cr_assert_not(as_protobuf_get_text(&field, &arena, &text));
    cr_assert_not(as_protobuf_get_message(&field, &inner));
    cr_assert(as_protobuf_next(&reader, &field) && field.type == AS_PROTOBUF_FIXED64 &&
              field.size == 8);
    cr_assert(as_protobuf_next(&reader, &field) && field.type == AS_PROTOBUF_FIXED32 &&
              field.size == 4);
    cr_assert_not(as_protobuf_get_int32(&field, &number), "fixed numbers are no int32");
    cr_assert(as_protobuf_next(&reader, &field) && as_protobuf_get_text(&field, &arena, &text));
    cr_assert_str_eq(text, "z\xc3\xbcge");
    cr_assert_not(as_protobuf_get_int32(&field, &number));
    cr_assert(as_protobuf_next(&reader, &field) && as_protobuf_get_message(&field, &inner));
    cr_assert_eq(field.number, (1U << 29) - 1, "the largest");
    cr_assert(as_protobuf_next(&inner, &field) && as_protobuf_get_int32(&field, &number) &&
              number == 7);
    cr_assert_not(as_protobuf_next(&inner, &field));
    cr_assert_not(as_protobuf_next(&reader, &field));
    cr_assert_not(reader.is_malformed || inner.is_malformed);
}

Test(protobuf, what_is_empty_is_a_message)
{
    struct as_protobuf_reader reader;
    struct as_protobuf_field field;
    as_protobuf_reader_init(&reader, "", 0);
    cr_assert_not(as_protobuf_next(&reader, &field) || reader.is_malformed);
}

Test(protobuf, refuses_what_is_malformed)
{
    static const struct {
        const char *bytes;
        size_t size;
        const char *what;
    } rows[] = {
        {BYTES("\x08"), "a tag alone"},
        {BYTES("\x80"), "half a tag"},
        {BYTES("\x08\x96"), "half a varint"},
        {BYTES("\x00\x01"), "field 0"},
        {BYTES("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"), "65 bits"},
        {BYTES("\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00"), "11 bytes"},
        {BYTES("\x88\x80\x80\x80\x10\x01"), "a tag of 33 bits"},
        {BYTES("\x0a\x02x"), "a text that is cut off"},
        {BYTES("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), "2^64 - 1 bytes"},
        {BYTES("\x0a\xff\xff\xff\xff\x07x"), "2 GiB"},
        {BYTES("\x09\x01\x02\x03\x04\x05\x06\x07"), "7 bytes of 8"},
        {BYTES("\x0d\x01\x02\x03"), "3 bytes of 4"},
        {BYTES("\x0b\x08\x01\x0c"), "a group"},
        {BYTES("\x0c"), "the end of a group"},
        {BYTES("\x0e\x01"), "type 6"},
        {BYTES("\x0f\x01"), "type 7"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct as_protobuf_reader reader;
        struct as_protobuf_field field;
        char *copy = malloc(rows[i].size); /* a byte too many read is seen */
        memcpy(copy, rows[i].bytes, rows[i].size);
        as_protobuf_reader_init(&reader, copy, rows[i].size);
        cr_expect_not(as_protobuf_next(&reader, &field), "%s", rows[i].what);
        cr_expect(reader.is_malformed, "%s", rows[i].what);
        cr_expect_not(as_protobuf_next(&reader, &field), "%s: it stays so", rows[i].what);
        free(copy);
    }
}

Test(protobuf, refuses_values_that_are_no_such)
{
    struct as_protobuf_reader reader;
    struct as_protobuf_field field;
    const char *text = "kept";
    int32_t number = 5;
    as_protobuf_reader_init(&reader, BYTES("\x08\x80\x80\x80\x80\x08"
                                           "\x08\xff\xff\xff\xff\xf7\xff\xff\xff\xff\x01"
                                           "\x0a\x03"
                                           "a\0b"
                                           "\x0a\x02\xc3("));
    cr_assert(as_protobuf_next(&reader, &field));
    cr_assert_not(as_protobuf_get_int32(&field, &number), "2^31");
    cr_assert(as_protobuf_next(&reader, &field));
    cr_assert_not(as_protobuf_get_int32(&field, &number), "-2^31 - 1");
    cr_assert_eq(number, 5);
    cr_assert(as_protobuf_next(&reader, &field));
    cr_assert_not(as_protobuf_get_text(&field, &arena, &text), "a NUL");
    cr_assert(as_protobuf_next(&reader, &field));
    cr_assert_not(as_protobuf_get_text(&field, &arena, &text), "not UTF-8");
    cr_assert_str_eq(text, "kept");
    cr_assert_not(reader.is_malformed);
}
