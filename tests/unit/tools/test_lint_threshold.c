/*
 * Which expressions are thresholds, and which thresholds can hold at once.
 */
#include <stdio.h>

#include <criterion/criterion.h>

#include "tools/lint_sources.h"

static struct as_arena arena;

static void teardown(void)
{
    as_arena_deinit(&arena);
}

TestSuite(lint_threshold, .fini = teardown);

/* "subject [low, high)"; NULL: no threshold */
static const char *show(const char *expression)
{
    static char text[200];
    struct threshold threshold = threshold_parse(&arena, expression);
    if (!threshold.subject)
        return NULL;
    snprintf(text, sizeof(text), "%s %c%g, %g%c", threshold.subject,
             threshold.is_low_out ? '(' : '[', threshold.low, threshold.high,
             threshold.is_high_out ? ')' : ']');
    return text;
}

/* A threshold is one comparison with a number, outside of all parentheses. */
Test(lint_threshold, parse)
{
    static const struct {
        const char *expression, *expected;
    } rows[] = {
        {"x > 5", "x (5, inf]"},
        {"x>=5", "x [5, inf]"},
        {"x < -5.5", "x [-inf, -5.5)"},
        {"x <= 1e3", "x [-inf, 1000]"},
        {"x == 0", "x [0, 0]"},
        {"5 < x", "x (5, inf]"},
        {"5 >= x", "x [-inf, 5]"},
        {"0 == x", "x [0, 0]"},
        {" rate( x{a=\"b > c\", d=~'e'} [5m] )  > 5 # > 6",
         "rate(x{a=\"b > c\",d=~'e'}[5m]) (5, inf]"},
        {"sum by (a)\n(x)\n/ sum(y > 1)\n> 0.8", "sum by(a)(x)/sum(y>1) (0.8, inf]"},
        {"x offset 5m > 5", "x offset 5m (5, inf]"},
        {"order_total > 5", "order_total (5, inf]"},
        {"x{a=\"\\\">\"} > 5", "x{a=\"\\\">\"} (5, inf]"},
        {"x", NULL},
        {"", NULL},
        {"> 5", NULL},
        {"x >", NULL},
        {"x > y", NULL},
        {"x > 5 < 10", NULL},
        {"x != 5", NULL},
        {"x > bool 5", NULL},
        {"x > 5 and y > 5", NULL},
        {"x > 5 OR y", NULL},
        {"x unless y > 5", NULL},
        {"(x > 5)", NULL},
        {"x > 5 * 1024", NULL},
        {"x > 'unclosed", NULL},
        {"absent(x)", NULL},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *found = show(rows[i].expression);
        if (rows[i].expected)
            cr_assert_str_eq(found ? found : "none", rows[i].expected, "%s", rows[i].expression);
        else
            cr_assert_null(found, "%s: %s", rows[i].expression, found);
    }
}

/* Two thresholds overlap where one value satisfies both, and their subjects are the same. */
Test(lint_threshold, overlaps)
{
    static const struct {
        const char *a, *b;
        bool expected;
    } rows[] = {
        {"x > 10", "x > 5", true},      {"x > 5", "x < 10", true},    {"x > 10", "x < 5", false},
        {"x > 5", "x < 5", false},      {"x >= 5", "x < 5", false},   {"x >= 5", "x <= 5", true},
        {"x == 5", "x > 5", false},     {"x == 5", "x >= 5", true},   {"x == 5", "x == 5", true},
        {"x == 5", "x == 6", false},    {"x < 5", "5 > x", true},     {"x > 10", "y > 5", false},
        {"x > 10", "absent(x)", false}, {"a b > 1", "ab > 1", false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct threshold a = threshold_parse(&arena, rows[i].a);
        struct threshold b = threshold_parse(&arena, rows[i].b);
        cr_assert_eq(threshold_overlaps(&a, &b), rows[i].expected, "%s and %s", rows[i].a,
                     rows[i].b);
        cr_assert_eq(threshold_overlaps(&b, &a), rows[i].expected, "%s and %s", rows[i].b,
                     rows[i].a);
    }
}
