/*
 * base/quantity.h: sizes in a unit.
 */
#include <errno.h>
#include <string.h>

#include <criterion/criterion.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/quantity.h>

Test(unit, a_unit_is_a_quantity_above_zero)
{
    static const struct {
        const char *text;
        const char *error; /* NULL: a unit */
    } rows[] = {
        {"1Gi", NULL},
        {"64Mi", NULL},
        {"100m", NULL},
        {"0.5", NULL},
        {"1", NULL},
        {"1e3", NULL},
        {"1n", NULL},
        {"999999999", NULL},
        {"0", "a unit of zero counts nothing: expected a quantity above 0"},
        {"0Gi", "a unit of zero counts nothing: expected a quantity above 0"},
        {"0.0m", "a unit of zero counts nothing: expected a quantity above 0"},
        {"", "expected a quantity like 1Gi, 100m or 256"},
        {"-1", "expected a quantity like 1Gi, 100m or 256"},
        {"+1", "expected a quantity like 1Gi, 100m or 256"},
        {"1 Gi", "expected a quantity like 1Gi, 100m or 256"},
        {"1GB", "expected a quantity like 1Gi, 100m or 256"},
        {"Gi", "expected a quantity like 1Gi, 100m or 256"},
        {"16Ei", "expected a quantity below 2^62"},
        {"1e-10", "expected a multiple of 1n, which is Kubernetes' finest quantity"},
        {"1.0000000001", "expected a quantity of at most 9 digits and 23 characters"},
        {"1234567890", "expected a quantity of at most 9 digits and 23 characters"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        struct as_unit unit;
        struct as_error error = AS_ERROR_INIT;
        const int status = as_unit_parse(rows[i].text, &unit, &error);
        cr_expect_eq(status, rows[i].error ? -EINVAL : 0, "%s", rows[i].text);
        cr_expect_str_eq(error.text, rows[i].error ? rows[i].error : "", "%s", rows[i].text);
        if (status == 0)
            cr_expect_str_eq(unit.text, rows[i].text);
    }
}

Test(unit, sizes_are_rounded_up)
{
    static const struct {
        const char *unit, *amount;
        int32_t size;
    } rows[] = {
        {"1Gi", "10Gi", 10},
        {"1Gi", "10240Mi", 10},
        {"1Gi", "10241Mi", 11},
        {"1Gi", "1", 1},
        {"1Gi", "0", 0},
        {"1Gi", "10G", 10},
        {"100m", "1", 10},
        {"100m", "1001m", 11},
        {"100m", "1.0000001", 11},
        {"0.5", "2", 4},
        {"256", "512", 2},
        {"256", "513", 3},
        {"1", "2147483647", INT32_MAX},
        {"1", "2147483648", -ERANGE},
        {"1", "16Ei", -ERANGE},
        {"1", "true", -EINVAL},
        {"1", "-3", -EINVAL},
        {"", "12", 12},
        {"", "12Gi", -EINVAL},
        {"", "1.5", -EINVAL},
        {"", "-3", -ERANGE},
        {"", "2147483648", -ERANGE},
        {"", "", -EINVAL},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        struct as_unit unit = AS_UNIT_NONE;
        int32_t size = -1;
        if (*rows[i].unit)
            cr_assert_eq(as_unit_parse(rows[i].unit, &unit, NULL), 0);
        const int status = as_unit_count(&unit, rows[i].amount, strlen(rows[i].amount), &size);
        cr_expect_eq(status ? status : size, rows[i].size, "%s of %s: %d, %d", rows[i].amount,
                     rows[i].unit, status, size);
    }
}

Test(unit, amounts_are_in_the_units_own_notation)
{
    static const struct {
        const char *unit;
        int32_t size;
        const char *amount, *shown;
    } rows[] = {
        {"1Gi", 40, "40Gi", "40 (40Gi)"},
        {"64Mi", 3, "192Mi", "3 (192Mi)"},
        {"100m", 15, "1500m", "15 (1500m)"},
        {"0.5", 3, "1.5", "3 (1.5)"},
        {"0.5", 4, "2", "4 (2)"},
        {"1.50Gi", 2, "3Gi", "2 (3Gi)"},
        {"1e3", 4, "4e3", "4 (4e3)"},
        {"256", 2, "512", "2 (512)"},
        {"1", 7, "7", "7"},
        {"", 7, "7", "7"},
        {"0.05", 1, "0.05", "1 (0.05)"},
        {"1Gi", 0, "0Gi", "0 (0Gi)"},
        {"007", 2, "14", "2 (14)"},
        {"999999999", INT32_MAX, "2147483644852516353", "2147483647 (2147483644852516353)"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        struct as_unit unit = AS_UNIT_NONE;
        char amount[AS_AMOUNT_SIZE], shown[AS_SIZE_TEXT_SIZE];
        if (*rows[i].unit)
            cr_assert_eq(as_unit_parse(rows[i].unit, &unit, NULL), 0);
        as_unit_print(&unit, rows[i].size, amount);
        cr_expect_str_eq(amount, rows[i].amount);
        cr_expect_str_eq(as_unit_print_size(rows[i].unit, rows[i].size, shown), rows[i].shown);
    }
    char shown[AS_SIZE_TEXT_SIZE];
    cr_expect_str_eq(as_unit_print_size(NULL, 5, shown), "5");
    cr_expect_str_eq(as_unit_print_size("forged", 5, shown), "5");
    cr_expect_str_eq(as_unit_print_size("1Gi", -1, shown), "-1");
}

Test(unit, what_a_quantity_cannot_hold_is_not_countable)
{
    struct as_unit unit = AS_UNIT_NONE;
    cr_assert_eq(as_unit_parse("1Pi", &unit, NULL), 0);
    cr_expect(as_unit_is_countable(&unit, 4095));
    cr_expect_not(as_unit_is_countable(&unit, 4096));
    cr_expect_not(as_unit_is_countable(&unit, INT32_MAX));
}
