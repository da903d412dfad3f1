/*
 * PromQL as a text: sample values, and the places of errors.
 */
#include <alertscaler/model/promql.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include <alertscaler/base/attr.h>

Test(promql, templates_get_as_many_letters)
{
    static const struct {
        const char *query, *filled;
        bool has_templates;
    } rows[] = {
        {"up", "up", false},
        {"a{b=\"{{ .Labels.b }}\"}", "a{b=\"xxxxxxxxxxxxxxx\"}", true},
        {"a{b=\"{{b}}-{{c}}\"} + {{", "a{b=\"xxxxx-xxxxx\"} + {{", true},
        {"a}} + {{b", "a}} + {{b", false},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        bool has_templates;
        char *filled = as_promql_fill(rows[i].query, &has_templates);
        cr_expect_str_eq(filled, rows[i].filled);
        cr_expect_eq(has_templates, rows[i].has_templates);
        free(filled);
    }
}

static char selectors[512]; /* "function(name[range in ms])@offset ..." */

static void note_selector(void *context, const struct as_promql_selector *selector)
{
    const size_t size = strlen(selectors);
    (void)snprintf(selectors + size, sizeof(selectors) - size, "%s%.*s(%.*s[%lld])@%zu",
                   size ? " " : "", (int)selector->function_size, selector->function,
                   (int)selector->name_size, selector->name, (long long)(selector->range_us / 1000),
                   selector->offset);
}

Test(promql, selectors)
{
    static const struct {
        const char *query, *selectors;
    } rows[] = {
        {"up", "(up[0])@0"},
        {"", ""},
        {"rate(x[5m])", "rate(x[300000])@5"},
        {"rate( x{a=\"]}\"} [ 1m30s ] offset 1h)", "rate(x[90000])@6"},
        {"rate((x[1m]))", "rate(x[60000])@6"},
        {"rate(x[5m:1m])", "rate(x[0])@5"},
        {"max_over_time(rate(x[1m])[5m:])", "rate(x[60000])@19"},
        {"rate(x[5i])", "rate(x[0])@5"},
        {"rate(x[5m+1m])", "rate(x[0])@5"},
        {"rate(x[", "rate(x[0])@5"},
        {"sum by (pod, a) (x)", "(x[0])@17"},
        {"sum(x) by (pod)", "sum(x[0])@4"},
        {"SUM WITHOUT(a)(x)", "(x[0])@15"},
        {"a / on(b) group_left(c) d", "(a[0])@0 (d[0])@24"},
        {"a and b or c unless d", "(a[0])@0 (b[0])@6 (c[0])@11 (d[0])@20"},
        {"a > bool 5 + b", "(a[0])@0 (b[0])@13"},
        {"a # rate(b[1m])\n+ c", "(a[0])@0 (c[0])@18"},
        {"'a' + \"b\\\"c\" + `d` + e", "(e[0])@21"},
        {"{__name__=\"a\"}[5m]", ""},
        {"a{b='rate(c[1m])' # }\n}[1m]", "(a[60000])@0"},
        {"-x^2 + 1e3 * 0x1f", "(x[0])@1"},
        {"x @ start() + y @ 16.5", "(x[0])@0 (y[0])@14"},
        {"job:x:rate5m[1h]", "(job:x:rate5m[3600000])@0"},
        {"on", ""},
        {"f(g(a), b)", "g(a[0])@4 f(b[0])@8"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        selectors[0] = '\0';
        as_promql_visit_selectors(rows[i].query, note_selector, NULL);
        cr_expect_str_eq(selectors, rows[i].selectors, "%s: %s", rows[i].query, selectors);
    }
}

Test(promql, deep_parentheses)
{
    char query[512];
    memset(query, '(', 200);
    (void)snprintf(query + 200, sizeof(query) - 200, "rate(x[1m]%0201d", 0);
    memset(query + 210, ')', 201);
    selectors[0] = '\0';
    as_promql_visit_selectors(query, note_selector, NULL);
    cr_expect_str_eq(selectors, "(x[60000])@205", "%s", selectors);
}

Test(promql, texts_outside_comments)
{
    cr_expect(as_promql_has_text("a{namespace=\"shop\"}", "shop"));
    cr_expect(as_promql_has_text("shop:a", "shop"));
    cr_expect_not(as_promql_has_text("a # shop", "shop"));
    cr_expect_not(as_promql_has_text("a{b=\"sho\"} # p", "shop"));
    cr_expect(as_promql_has_text("a # no\n{b=\"# shop\"}", "shop"));
    cr_expect_not(as_promql_has_text("", "shop"));
}

Test(promql, places_of_errors)
{
    static const struct {
        const char *query, *error, *message;
        size_t offset;
        bool has_place;
    } rows[] = {
        {"sum(x", "1:6: parse error: unclosed", "parse error: unclosed", 5, true},
        {"sum(x", "invalid parameter \"query\": 1:1: parse error", "parse error", 0, true},
        {"a +\nb +", "2:4: parse error", "parse error", 7, true},
        {"a +\nb", "1:9: behind the line", "behind the line", 3, true},
        {"a", "5:1: behind the text", "behind the text", 0, true},
        {"a", "1:0: before it", "before it", 0, true},
        {"a", "HTTP 422: execution: no", "HTTP 422: execution: no", 77, false},
        {"a", "no 1:2 place", "no 1:2 place", 77, false},
        {"a", "", "", 77, false},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        size_t offset = 77;
        const char *message;
        cr_expect_eq(as_promql_find_place(rows[i].query, rows[i].error, &offset, &message),
                     rows[i].has_place, "row %zu", i);
        cr_expect_eq(offset, rows[i].offset, "row %zu: %zu", i, offset);
        cr_expect_str_eq(message, rows[i].message, "row %zu", i);
    }
}
