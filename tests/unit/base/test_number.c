/*
 * Promises: one accepted form per number, the whole text, exact limits, out-parameter untouched on
 * failure; a printed double reads back as the same bits, in the shortest text.
 */
#include <errno.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include <alertscaler/base/number.h>
#include <alertscaler/base/random.h>

Test(number, i64)
{
    static const struct {
        const char *text;
        int error;
        int64_t number;
    } table[] = {
        {"0", 0, 0},
        {"-0", 0, 0},
        {"7", 0, 7},
        {"-7", 0, -7},
        {"9223372036854775807", 0, INT64_MAX},
        {"-9223372036854775808", 0, INT64_MIN},
        {"9223372036854775808", -ERANGE, 0},
        {"-9223372036854775809", -ERANGE, 0},
        {"18446744073709551616", -ERANGE, 0},
        {"99999999999999999999999999999999999999999999", -ERANGE, 0},
        {"", -EINVAL, 0},
        {"-", -EINVAL, 0},
        {"+1", -EINVAL, 0},
        {"--1", -EINVAL, 0},
        {" 1", -EINVAL, 0},
        {"1 ", -EINVAL, 0},
        {"01", -EINVAL, 0},
        {"-01", -EINVAL, 0},
        {"00", -EINVAL, 0},
        {"0x10", -EINVAL, 0},
        {"1_000", -EINVAL, 0},
        {"1.0", -EINVAL, 0},
        {"1e3", -EINVAL, 0},
        {"1a", -EINVAL, 0},
        {"\xd9\xa1", -EINVAL, 0},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(table); i++) {
        int64_t number = 4711;
        cr_expect_eq(as_number_parse_i64(table[i].text, strlen(table[i].text), &number),
                     table[i].error, "\"%s\"", table[i].text);
        cr_expect_eq(number, table[i].error ? 4711 : table[i].number, "\"%s\"", table[i].text);
    }
}

Test(number, size_is_obeyed_and_nul_is_no_digit)
{
    int64_t number = 0;
    double real = 0;
    cr_expect_eq(as_number_parse_i64("12345", 3, &number), 0);
    cr_expect_eq(number, 123);
    cr_expect_eq(as_number_parse_i64("12\0", 3, &number), -EINVAL);
    cr_expect_eq(as_number_parse_double("1.2345", 3, &real), 0);
    cr_expect_float_eq(real, 1.2, 0);
    cr_expect_eq(as_number_parse_double("1.2\0", 4, &real), -EINVAL);
}

Test(number, hexadecimal)
{
    static const struct {
        const char *text;
        int error;
        uint64_t number;
    } table[] = {
        {"0", 0, 0},
        {"7be9cc40aa9853c5", 0, UINT64_C(0x7be9cc40aa9853c5)},
        {"DEADbeef", 0, UINT64_C(0xdeadbeef)},
        {"ffffffffffffffff", 0, UINT64_MAX},
        {"0000000000000001", 0, 1},
        {"00000000000000001", -ERANGE, 0},
        {"", -EINVAL, 0},
        {"0x1", -EINVAL, 0},
        {"-1", -EINVAL, 0},
        {"1 ", -EINVAL, 0},
        {"g", -EINVAL, 0},
        {"@", -EINVAL, 0},
        {"1\x01", -EINVAL, 0},
        {"0000000000000000g", -EINVAL, 0},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(table); i++) {
        uint64_t number = 4711;
        cr_expect_eq(as_number_parse_u64_hex(table[i].text, strlen(table[i].text), &number),
                     table[i].error, "\"%s\"", table[i].text);
        cr_expect_eq(number, table[i].error ? 4711 : table[i].number, "\"%s\"", table[i].text);
    }
}

Test(number, doubles)
{
    static const struct {
        const char *text;
        int error;
        double number;
    } table[] = {
        {"0", 0, 0},
        {"-0", 0, 0},
        {"0.1", 0, 0.1},
        {"-12.50", 0, -12.5},
        {"1e3", 0, 1000},
        {"1E+3", 0, 1000},
        {"12e-1", 0, 1.2},
        {"1e0003", 0, 1000},
        {"1.7976931348623157e308", 0, DBL_MAX},
        {"4.9406564584124654e-324", 0, 4.9406564584124654e-324},
        {"1e-400", 0, 0},
        {"1e400", -ERANGE, 0},
        {"-1e400", -ERANGE, 0},
        {"1e99999999999999999999", -ERANGE, 0},
        {"", -EINVAL, 0},
        {"-", -EINVAL, 0},
        {"+1", -EINVAL, 0},
        {".5", -EINVAL, 0},
        {"5.", -EINVAL, 0},
        {"5.e1", -EINVAL, 0},
        {"1e", -EINVAL, 0},
        {"1e+", -EINVAL, 0},
        {"1e1.5", -EINVAL, 0},
        {"01.5", -EINVAL, 0},
        {"1,5", -EINVAL, 0},
        {"1.5 ", -EINVAL, 0},
        {" 1.5", -EINVAL, 0},
        {"1_0", -EINVAL, 0},
        {"0x1p3", -EINVAL, 0},
        {"inf", -EINVAL, 0},
        {"+Inf", -EINVAL, 0},
        {"NaN", -EINVAL, 0},
        {"1f", -EINVAL, 0},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(table); i++) {
        double number = 4711;
        cr_expect_eq(as_number_parse_double(table[i].text, strlen(table[i].text), &number),
                     table[i].error, "\"%s\"", table[i].text);
        cr_expect(number == (table[i].error ? 4711 : table[i].number), "\"%s\"", table[i].text);
    }
}

Test(number, absurdly_long_doubles_are_out_of_range)
{
    enum { SIZE = 1 << 20 };
    char *text = malloc(SIZE);
    cr_assert_not_null(text);
    double number = 4711;
    memset(text, '1', SIZE);
    cr_expect_eq(as_number_parse_double(text, SIZE, &number), -ERANGE);
    text[1] = '.';
    cr_expect_eq(as_number_parse_double(text, 700, &number), 0);
    cr_expect_eq(as_number_parse_double(text, SIZE, &number), -ERANGE);
    free(text);
}

Test(number, sizes)
{
    static const struct {
        const char *text;
        int error;
        uint64_t bytes;
    } table[] = {
        {"0", 0, 0},
        {"512", 0, 512},
        {"512B", 0, 512},
        {"1kB", 0, 1000},
        {"1KB", 0, 1000},
        {"1KiB", 0, 1024},
        {"16MiB", 0, UINT64_C(16) << 20},
        {"1GB", 0, UINT64_C(1000000000)},
        {"3TiB", 0, UINT64_C(3) << 40},
        {"18446744073709551615", 0, UINT64_MAX},
        {"18446744073709551616", -ERANGE, 0},
        {"16777216TiB", -ERANGE, 0},
        {"", -EINVAL, 0},
        {"MiB", -EINVAL, 0},
        {"-1", -EINVAL, 0},
        {"+1", -EINVAL, 0},
        {"1.5GiB", -EINVAL, 0},
        {"016MiB", -EINVAL, 0},
        {"16 MiB", -EINVAL, 0},
        {"16mib", -EINVAL, 0},
        {"16M", -EINVAL, 0},
        {"16MiBs", -EINVAL, 0},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(table); i++) {
        uint64_t bytes = 4711;
        cr_expect_eq(as_number_parse_size(table[i].text, &bytes), table[i].error, "\"%s\"",
                     table[i].text);
        cr_expect_eq(bytes, table[i].error ? 4711 : table[i].bytes, "\"%s\"", table[i].text);
    }
}

Test(number, percentages)
{
    static const struct {
        const char *text;
        int error;
        int64_t milli;
    } table[] = {
        {"0%", 0, 0},
        {"50%", 0, 50000},
        {"12.5%", 0, 12500},
        {"0.001%", 0, 1},
        {"12.34%", 0, 12340},
        {"250%", 0, 250000},
        {"9223372036854775.807%", 0, INT64_MAX},
        {"9223372036854775.808%", -ERANGE, 0},
        {"9223372036854776%", -ERANGE, 0},
        {"99999999999999999999%", -ERANGE, 0},
        {"", -EINVAL, 0},
        {"%", -EINVAL, 0},
        {"50", -EINVAL, 0},
        {"50 %", -EINVAL, 0},
        {"-5%", -EINVAL, 0},
        {"+5%", -EINVAL, 0},
        {"05%", -EINVAL, 0},
        {".5%", -EINVAL, 0},
        {"5.%", -EINVAL, 0},
        {"1.0001%", -EINVAL, 0},
        {"5%%", -EINVAL, 0},
        {"1e1%", -EINVAL, 0},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(table); i++) {
        int64_t milli = 4711;
        cr_expect_eq(as_number_parse_percent(table[i].text, &milli), table[i].error, "\"%s\"",
                     table[i].text);
        cr_expect_eq(milli, table[i].error ? 4711 : table[i].milli, "\"%s\"", table[i].text);
    }
}

Test(number, printed_integers_read_back)
{
    static const int64_t table[] = {0, 1, -1, 9, 10, -10, 1234567890, INT64_MAX, INT64_MIN};
    for (size_t i = 0; i < AS_ARRAY_SIZE(table); i++) {
        char text[AS_NUMBER_SIZE];
        int64_t back;
        const size_t size = as_number_print_i64(table[i], text);
        cr_expect_eq(size, strlen(text));
        cr_assert_eq(as_number_parse_i64(text, size, &back), 0, "%s", text);
        cr_expect_eq(back, table[i], "%s", text);
    }
}

Test(number, doubles_are_printed_short)
{
    static const struct {
        double number;
        const char *text;
    } table[] = {
        {0, "0"},
        {-0.0, "-0"},
        {0.1, "0.1"},
        {0.1 + 0.2, "0.30000000000000004"},
        {1.0 / 3, "0.3333333333333333"},
        {420, "420"},
        {-420, "-420"},
        {-1e15, "-1e+15"},
        {100000000, "100000000"},
        {999999999999999, "999999999999999"},
        {1e15, "1e+15"},
        {1e100, "1e+100"},
        {-2.5e-7, "-2.5e-07"},
        {DBL_MAX, "1.7976931348623157e+308"},
        {DBL_MIN, "2.2250738585072014e-308"},
        {-DBL_MIN, "-2.2250738585072014e-308"},
        {4.9406564584124654e-324, "5e-324"},
        {9007199254740992, "9007199254740992"},
        {NAN, "NaN"},
        {INFINITY, "+Inf"},
        {-INFINITY, "-Inf"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(table); i++) {
        char text[AS_NUMBER_SIZE];
        as_number_print_double(table[i].number, text);
        cr_expect_str_eq(text, table[i].text);
    }
}

Test(number, printed_doubles_read_back)
{
    struct as_random random;
    as_random_init(&random, 1);
    for (int i = 0; i < 50000; i++) {
        uint64_t bits = as_random_get(&random);
        double number, back;
        char text[AS_NUMBER_SIZE];
        memcpy(&number, &bits, sizeof(number));
        if (!isfinite(number))
            continue;
        as_number_print_double(number, text);
        cr_assert_eq(as_number_parse_double(text, strlen(text), &back), 0, "%s", text);
        cr_assert_arr_eq(&back, &number, sizeof(number), "%s", text);
    }
}
