/*
 * Promises: every RFC 3339 text of years 1 to 9999 and nothing else is read; what is printed reads
 * back; durations are those of Prometheus.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <criterion/criterion.h>

#include <alertscaler/base/random.h>
#include <alertscaler/base/str.h>
#include <alertscaler/base/time.h>

#define YEAR_1_US   (INT64_C(-62135596800) * AS_US_PER_S)
#define YEAR_END_US (INT64_C(253402300800) * AS_US_PER_S - 1)

Test(time, rfc3339_is_read)
{
    static const struct {
        const char *text, *printed;
    } table[] = {
        {"1970-01-01T00:00:00Z", "1970-01-01T00:00:00.000000Z"},
        {"1969-12-31T23:59:59.999999Z", "1969-12-31T23:59:59.999999Z"},
        {"2026-11-20t10:00:00z", "2026-11-20T10:00:00.000000Z"},
        {"2026-11-20T10:00:00+00:00", "2026-11-20T10:00:00.000000Z"},
        {"2026-11-20T10:00:00-00:00", "2026-11-20T10:00:00.000000Z"},
        {"2026-11-20T10:00:00+05:45", "2026-11-20T04:15:00.000000Z"},
        {"2026-11-20T20:00:00-12:30", "2026-11-21T08:30:00.000000Z"},
        {"2026-01-01T00:00:00+23:59", "2025-12-31T00:01:00.000000Z"},
        {"2026-11-20T10:00:00.1Z", "2026-11-20T10:00:00.100000Z"},
        {"2026-11-20T10:00:00.123456Z", "2026-11-20T10:00:00.123456Z"},
        {"2026-11-20T10:00:00.123456789Z", "2026-11-20T10:00:00.123456Z"},
        {"2026-11-20T10:00:00.000000999+01:00", "2026-11-20T09:00:00.000000Z"},
        {"1969-12-31T23:59:59.9999999Z", "1969-12-31T23:59:59.999999Z"},
        {"2024-02-29T12:00:00Z", "2024-02-29T12:00:00.000000Z"},
        {"2000-02-29T12:00:00Z", "2000-02-29T12:00:00.000000Z"},
        {"2024-02-29T23:30:00-01:00", "2024-03-01T00:30:00.000000Z"},
        {"2016-12-31T23:59:60Z", "2016-12-31T23:59:59.999999Z"},
        {"2016-12-31T23:59:60.5Z", "2016-12-31T23:59:59.999999Z"},
        {"2017-01-01T00:59:60+01:00", "2016-12-31T23:59:59.999999Z"},
        {"0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000000Z"},
        {"0001-01-01T01:00:00+01:00", "0001-01-01T00:00:00.000000Z"},
        {"9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999999Z"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(table); i++) {
        as_wall_time time = {0};
        char printed[AS_RFC3339_SIZE];
        cr_expect_eq(as_wall_time_parse(table[i].text, strlen(table[i].text), &time), 0, "%s",
                     table[i].text);
        as_wall_time_print(time, printed);
        cr_expect_str_eq(printed, table[i].printed, "%s", table[i].text);
    }
}

Test(time, what_is_not_rfc3339_is_refused)
{
    static const char *const table[] = {
        "",
        "2026",
        "2026-11-20",
        "2026-11-20T10:00Z",
        "2026-11-20T10:00:00",
        "2026-11-20 10:00:00Z",
        "2026-11-20T10:00:00ZZ",
        "2026-11-20T10:00:00Z ",
        " 2026-11-20T10:00:00Z",
        "2026-11-20T10:00:00.Z",
        "2026-11-20T10:00:00,5Z",
        "2026-11-20T10:00:00.1234567890Z",
        "2026-11-20T10:00:00+0100",
        "2026-11-20T10:00:00+01",
        "2026-11-20T10:00:00+24:00",
        "2026-11-20T10:00:00+01:60",
        "2026-11-20T10:00:00 01:00",
        "2026-00-20T10:00:00Z",
        "2026-13-20T10:00:00Z",
        "2026-11-00T10:00:00Z",
        "2026-11-31T10:00:00Z",
        "2023-02-29T10:00:00Z",
        "1900-02-29T10:00:00Z",
        "2024-02-30T10:00:00Z",
        "2026-11-20T24:00:00Z",
        "2026-11-20T10:60:00Z",
        "2026-11-20T10:00:61Z",
        "2026-11-20T10:00:60Z",
        "2016-12-31T23:59:60+01:00",
        "0000-12-31T23:59:59Z",
        "0001-01-01T00:00:00+00:01",
        "9999-12-31T23:59:59-00:01",
        "-026-11-20T10:00:00Z",
        "12026-11-20T10:00:00Z",
        "2026-1-20T10:00:00Z",
        "2O26-11-20T10:00:00Z",
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(table); i++) {
        as_wall_time time = {4711};
        cr_expect_eq(as_wall_time_parse(table[i], strlen(table[i]), &time), -EINVAL, "%s",
                     table[i]);
        cr_expect_eq(time.us, 4711, "%s: out-parameter touched", table[i]);
    }
}

/* No prefix of a good text is one itself (but those that only miss the end of the fraction), and
 * none is read past its size: the copy has no NUL behind it, so the sanitizer would see it. */
Test(time, size_is_obeyed)
{
    static const char text[] = "2026-11-20T10:00:00.123456+05:45";
    for (size_t size = 0; size < sizeof(text) - 1; size++) {
        as_wall_time time;
        char *copy = malloc(size + (size == 0));
        cr_assert_not_null(copy);
        memcpy(copy, text, size);
        cr_expect_eq(as_wall_time_parse(copy, size, &time), -EINVAL, "size %zu", size);
        free(copy);
    }
}

Test(time, agrees_with_the_c_library_on_the_calendar)
{
    for (int64_t us = YEAR_1_US; us <= YEAR_END_US; us += 17 * AS_US_PER_DAY + 12345678987) {
        char printed[AS_RFC3339_SIZE], expected[64];
        int64_t of_second = (us - YEAR_1_US) % AS_US_PER_S;
        time_t seconds = (us - of_second) / AS_US_PER_S;
        struct tm tm;
        cr_assert_not_null(gmtime_r(&seconds, &tm));
        snprintf(expected, sizeof(expected), "%04d-%02d-%02dT%02d:%02d:%02d.%06dZ",
                 tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec,
                 (int)of_second);
        as_wall_time_print((as_wall_time){us}, printed);
        cr_assert_str_eq(printed, expected);
        as_wall_time back;
        cr_assert_eq(as_wall_time_parse(printed, strlen(printed), &back), 0);
        cr_assert_eq(back.us, us);
    }
}

Test(time, printing_saturates)
{
    char text[AS_RFC3339_SIZE];
    as_wall_time_print((as_wall_time){INT64_MIN}, text);
    cr_expect_str_eq(text, "0001-01-01T00:00:00.000000Z");
    as_wall_time_print((as_wall_time){YEAR_1_US - 1}, text);
    cr_expect_str_eq(text, "0001-01-01T00:00:00.000000Z");
    as_wall_time_print((as_wall_time){YEAR_END_US + 1}, text);
    cr_expect_str_eq(text, "9999-12-31T23:59:59.999999Z");
    as_wall_time_print((as_wall_time){INT64_MAX}, text);
    cr_expect_str_eq(text, "9999-12-31T23:59:59.999999Z");
}

Test(time, short_form_has_no_needless_digits)
{
    static const struct {
        int64_t us;
        const char *text;
    } table[] = {
        {0, "1970-01-01T00:00:00Z"},
        {250000, "1970-01-01T00:00:00.25Z"},
        {1, "1970-01-01T00:00:00.000001Z"},
        {100000, "1970-01-01T00:00:00.1Z"},
        {10 * AS_US_PER_S, "1970-01-01T00:00:10Z"},
        {-1, "1969-12-31T23:59:59.999999Z"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(table); i++) {
        char text[AS_RFC3339_SIZE];
        as_wall_time_print_short((as_wall_time){table[i].us}, text);
        cr_expect_str_eq(text, table[i].text);
    }
}

Test(time, durations_are_read_and_printed)
{
    static const struct {
        const char *text;
        int64_t us;
        const char *printed;
    } table[] = {
        {"0", 0, "0s"},
        {"0s", 0, "0s"},
        {"0h0ms", 0, "0s"},
        {"1ms", AS_US_PER_MS, "1ms"},
        {"100ms", 100 * AS_US_PER_MS, "100ms"},
        {"90s", 90 * AS_US_PER_S, "1m30s"},
        {"5m", 5 * AS_US_PER_MIN, "5m"},
        {"1h30m", 90 * AS_US_PER_MIN, "1h30m"},
        {"0000005m", 5 * AS_US_PER_MIN, "5m"},
        {"1d", AS_US_PER_DAY, "1d"},
        {"36h", 36 * AS_US_PER_H, "1d12h"},
        {"2w", 14 * AS_US_PER_DAY, "2w"},
        {"90d", 90 * AS_US_PER_DAY, "90d"},
        {"1y", 365 * AS_US_PER_DAY, "1y"},
        {"1y2w3d4h5m6s7ms",
         (365 + 14 + 3) * AS_US_PER_DAY + 4 * AS_US_PER_H + 5 * AS_US_PER_MIN + 6 * AS_US_PER_S +
             7 * AS_US_PER_MS,
         "382d4h5m6s7ms"},
        {"100y", 36500 * AS_US_PER_DAY, "100y"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(table); i++) {
        int64_t us = -1;
        char printed[AS_DURATION_SIZE];
        cr_expect_eq(as_duration_parse(table[i].text, &us, NULL), 0, "%s", table[i].text);
        cr_expect_eq(us, table[i].us, "%s: %" PRId64, table[i].text, us);
        as_duration_print(us, printed);
        cr_expect_str_eq(printed, table[i].printed, "%s", table[i].text);
    }
}

Test(time, bad_durations_are_refused_with_a_reason)
{
    static const struct {
        const char *text;
        int error;
    } table[] = {
        {"", -EINVAL},
        {"5", -EINVAL},
        {"00", -EINVAL},
        {"m", -EINVAL},
        {"-5m", -EINVAL},
        {"+5m", -EINVAL},
        {"5 m", -EINVAL},
        {" 5m", -EINVAL},
        {"5m ", -EINVAL},
        {"5M", -EINVAL},
        {"1.5h", -EINVAL},
        {"30m1h", -EINVAL},
        {"1m1m", -EINVAL},
        {"1ms1s", -EINVAL},
        {"5min", -EINVAL},
        {"1us", -EINVAL},
        {"1sm", -EINVAL},
        {"1h30", -EINVAL},
        {"100y1ms", -ERANGE},
        {"101y", -ERANGE},
        {"5000w1000000d", -ERANGE},
        {"9223372036854775807ms", -ERANGE},
        {"99999999999999999999999999y", -ERANGE},
        {"99999999999999999999999999y1x", -EINVAL},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(table); i++) {
        int64_t us = 4711;
        struct as_error error = AS_ERROR_INIT;
        cr_expect_eq(as_duration_parse(table[i].text, &us, &error), table[i].error, "\"%s\"",
                     table[i].text);
        cr_expect_eq(us, 4711);
        cr_expect(as_str_starts_with(error.text, "\""), "\"%s\": no reason", table[i].text);
    }
}

Test(time, durations_below_a_unit_and_below_zero)
{
    char text[AS_DURATION_SIZE];
    as_duration_print(999, text);
    cr_expect_str_eq(text, "0s");
    as_duration_print(-999, text);
    cr_expect_str_eq(text, "0s");
    as_duration_print(1500, text);
    cr_expect_str_eq(text, "1ms");
    as_duration_print(-90 * AS_US_PER_S, text);
    cr_expect_str_eq(text, "-1m30s");
    as_duration_print(INT64_MIN, text);
    cr_expect_str_eq(text, "-106751991d4h54s775ms");
    as_duration_print(INT64_MAX, text);
    cr_expect_str_eq(text, "106751991d4h54s775ms");
}

Test(time, printed_durations_read_back)
{
    struct as_random random;
    as_random_init(&random, 1);
    for (int i = 0; i < 20000; i++) {
        uint64_t limit = UINT64_C(1) << (1 + as_random_get_below(&random, 41));
        int64_t us = (int64_t)as_random_get_below(&random, limit) * AS_US_PER_MS, back;
        char text[AS_DURATION_SIZE];
        us %= 36500 * AS_US_PER_DAY;
        as_duration_print(us, text);
        cr_assert_eq(as_duration_parse(text, &back, NULL), 0, "%s", text);
        cr_assert_eq(back, us, "%s", text);
    }
}

Test(time, addition_saturates)
{
    cr_expect_eq(as_time_add(2, -5), -3);
    cr_expect_eq(as_time_add(INT64_MAX, 1), INT64_MAX);
    cr_expect_eq(as_time_add(1, INT64_MAX), INT64_MAX);
    cr_expect_eq(as_time_add(INT64_MIN, -1), INT64_MIN);
    cr_expect_eq(as_time_add(-1, INT64_MIN), INT64_MIN);
    cr_expect_eq(as_time_add(INT64_MAX, INT64_MIN), -1);
}
