/*
 * base/quantity.h: quantities as k8s.io/apimachinery reads them, and nothing else.
 */
#include <criterion/criterion.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <alertscaler/base/quantity.h>
#include <alertscaler/base/random.h>

Test(quantity, every_form_that_the_grammar_has)
{
    static const struct {
        const char *text;
        double number;
    } rows[] = {
        {"0", 0},
        {"1", 1},
        {"007", 7},
        {"128974848", 128974848},
        {"+5", 5},
        {"1.5", 1.5},
        {"0.25", 0.25},
        {"1.", 1},
        {".5", 0.5},
        {"00.5", 0.5},
        {"1.G", 1e9},
        {"100n", 1e-7},
        {"250u", 250e-6},
        {"100m", 0.1},
        {"250m", 0.25},
        {"1500m", 1.5},
        {"0.5m", 0.0005},
        {"100k", 100e3},
        {"129M", 129e6},
        {"1.5M", 1.5e6},
        {"2G", 2e9},
        {"3T", 3e12},
        {"4P", 4e15},
        {"5E", 5e18},
        {"1Ki", 1024},
        {"512Mi", 536870912},
        {"1Gi", 1073741824},
        {"1.5Gi", 1610612736},
        {"2Ti", 2199023255552.0},
        {"1Pi", 1125899906842624.0},
        {"1Ei", 1152921504606846976.0},
        {"0Ki", 0},
        {"0.5Ki", 512},
        {"1e3", 1000},
        {"1E3", 1000},
        {"1e+3", 1000},
        {"1e03", 1000},
        {"15e-1", 1.5},
        {"1.5e2", 150},
        {"129e6", 129e6},
        {"0e99", 0},
        /* larger ones count as the largest */
        {"9223372036854775807", 0x1p63},
        {"9Ei", 0x1p63},
        {"12E", 0x1p63},
        {"1e400", 0x1p63},
        {"1e999999999999999999999999", 0x1p63},
        {"1e-999999999999999999999999", 0},
        {"99999999999999999999999999999999999999999999999999999999999999Ei", 0x1p63},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        double number = -1;
        cr_expect_eq(as_quantity_parse(rows[i].text, strlen(rows[i].text), &number), 0, "%s",
                     rows[i].text);
        cr_expect_eq(number, rows[i].number, "%s: %.17g", rows[i].text, number);
    }
}

Test(quantity, all_else_is_none)
{
    static const char *const rows[] = {
        "",     " ",   "1 ",   " 1",    "+",        "-",   ".",     "-1",    "-0",    "+-1",
        "++1",  "m",   "Ki",   ".m",    "e3",       "1e",  "1e+",   "1e-",   "1e1.5", "1e3k",
        "1K",   "1ki", "1KI",  "1mi",   "1ni",      "1i",  "1B",    "1MB",   "1MiB",  "1 Gi",
        "1,5",  "1_0", "0x10", "1.2.3", "1..2",     "NaN", "Inf",   "inf",   "nan",   "1mm",
        "1Mm",  "1EE", "1E3E", "1e3e3", "\xd9\xa1", "1\n", "1Gi\t", "\"1\"", "one",   "1kk",
        "1Eim", "1g",  "1t",   "1p",    "1Zi",      "1Y",
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        double number = -1;
        cr_expect_eq(as_quantity_parse(rows[i], strlen(rows[i]), &number), -EINVAL, "%s", rows[i]);
        cr_expect_eq(number, -1.0);
    }
    double number;
    cr_expect_eq(as_quantity_parse("1\0", 2, &number), -EINVAL);
    char longest[AS_QUANTITY_MAX + 1];
    memset(longest, '1', sizeof(longest));
    cr_expect_eq(as_quantity_parse(longest, AS_QUANTITY_MAX, &number), 0);
    cr_expect_eq(as_quantity_parse(longest, AS_QUANTITY_MAX + 1, &number), -EINVAL);
}

/* The text is read where it lies: nothing behind it. */
Test(quantity, its_size_counts_not_its_end)
{
    double number;
    cr_assert_eq(as_quantity_parse("25000m", 2, &number), 0);
    cr_expect_eq(number, 25.0);
}

/* Whole units, exactly */

static int64_t scale_text(const char *text, int scale, bool round_up)
{
    int64_t number = -1;
    cr_assert_eq(as_quantity_parse_scaled(text, strlen(text), scale, round_up, &number), 0, "%s",
                 text);
    return number;
}

Test(quantity_scaled, rounds_only_what_is_left_over)
{
    static const struct {
        const char *text;
        int scale;
        int64_t down, up;
    } rows[] = {
        {"0", 3, 0, 0},
        {"0.000", 3, 0, 0},
        {"1", 3, 1000, 1000},
        {"250m", 3, 250, 250},
        {"0.5m", 3, 0, 1},
        {"1.0001", 3, 1000, 1001},
        {"1.9999", 3, 1999, 2000},
        {"1n", 3, 0, 1},
        {"1n", 0, 0, 1},
        {"1999999u", 3, 1999, 2000},
        {"1e-999999999999999999999999", 3, 0, 1},
        {"0e-9", 3, 0, 0},
        {"1e3", 3, 1000000, 1000000},
        {"15e-1", 0, 1, 2},
        {"128974848", 0, 128974848, 128974848},
        {"100m", 0, 0, 1},
        {"1.5Gi", 0, 1610612736, 1610612736},
        {"0.1Ki", 0, 102, 103},
        {"0.3Mi", 0, 314572, 314573},
        {"1.0000000000000000000000000000000000000001Ki", 0, 1024, 1025},
        {"0.0009765625Ki", 0, 1, 1},
        {"0.00000000000000000086736173798840354720596224069595336914062Ei", 0, 0, 1},
        {"9007199254740993", 0, 9007199254740993, 9007199254740993},
        {"4Ei", 0, AS_QUANTITY_SCALED_MAX, AS_QUANTITY_SCALED_MAX},
        {"4611686018427387903.5", 0, AS_QUANTITY_SCALED_MAX - 1, AS_QUANTITY_SCALED_MAX},
        {"9Ei", 0, AS_QUANTITY_SCALED_MAX, AS_QUANTITY_SCALED_MAX},
        {"5E", 3, AS_QUANTITY_SCALED_MAX, AS_QUANTITY_SCALED_MAX},
        {"1e999999999999999999999999", 0, AS_QUANTITY_SCALED_MAX, AS_QUANTITY_SCALED_MAX},
        {"0e999999999999999999999999", 0, 0, 0},
        {"99999999999999999999999999999999999999999999999999999999999999Ei", 0,
         AS_QUANTITY_SCALED_MAX, AS_QUANTITY_SCALED_MAX},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        cr_expect_eq(scale_text(rows[i].text, rows[i].scale, false), rows[i].down, "%s",
                     rows[i].text);
        cr_expect_eq(scale_text(rows[i].text, rows[i].scale, true), rows[i].up, "%s", rows[i].text);
    }
}

/* Any text of the grammar: within one unit and a double's precision of the other reader, up and
 * down at most one apart; any other text is refused by both. */
Test(quantity_scaled, agrees_with_the_double)
{
    static const char letters[] = "0123456789000.mMkKnuGiTPEe+-";
    static const char *const suffixes[] = {"",  "m",  "n",  "u",  "k",  "M",  "G",   "T",  "P",
                                           "E", "Ki", "Mi", "Gi", "Ti", "Pi", "e-7", "E+5"};
    struct as_random random;
    unsigned good = 0;
    as_random_init(&random, 7);
    for (int i = 0; i < 200000; i++) {
        char text[32];
        size_t size = as_random_get_below(&random, 12) + 1;
        for (size_t k = 0; k < size; k++)
            text[k] = letters[as_random_get_below(&random, i % 2 ? sizeof(letters) - 1 : 14)];
        text[size] = '\0';
        if (i % 2 == 0)
            size +=
                (size_t)snprintf(text + size, 8, "%s",
                                 suffixes[as_random_get_below(&random, AS_ARRAY_SIZE(suffixes))]);
        const int scale = i % 4 < 2 ? 0 : 3;
        double number;
        int64_t down, up;
        const int status = as_quantity_parse(text, size, &number);
        cr_assert_eq(as_quantity_parse_scaled(text, size, scale, false, &down), status, "%s", text);
        cr_assert_eq(as_quantity_parse_scaled(text, size, scale, true, &up), status, "%s", text);
        if (status != 0)
            continue;
        good++;
        number = fmin(scale ? number * 1000 : number, 0x1p62);
        const double slack = number * 0x1p-50 + 1;
        cr_assert(up == down || up == down + 1, "%s", text);
        cr_assert(fabs((double)down - number) <= slack && fabs((double)up - number) <= slack,
                  "%s: %g", text, number);
    }
    cr_expect_gt(good, 50000u);
}
