/*
 * PromQL as a text: sample values, and the places of errors.
 */
#include <alertscaler/model/promql.h>

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
