/*
 * `fallback`: a value that stays unavailable raises the size, and never lowers it. Since when it
 * has been so survives crashes and reloads.
 */
#include <string.h>

#include <alertscaler/base/attr.h>

#include "engine_harness.h"

static const struct spec spec = {
    .targets = {{.name = "web", .min = 1, .max = 50, .up = 60, .down = 60}},
    .rules = {{.name = "load",
               .match = {"alertname=Busy"},
               .target = "web",
               .source = {.query = "load"},
               .pass_through = true,
               .fallback = {.after_us = 180 * AS_US_PER_S, .at_least = 6}}},
};

static int32_t get_size(struct harness *harness)
{
    return harness_target(harness, "web")->size;
}

static void give(struct harness *harness, double value)
{
    harness->queries[0] = (struct query_script){"load", {.value = value}};
}

Test(engine_fallback, a_value_that_stays_away_raises_the_size_in_time)
{
    WITH(h, spec);
    fire(&h, "Busy", 990);
    tick(&h, 179);
    cr_assert_eq(get_size(&h), 4);
    tick(&h, 2);
    cr_assert_eq(get_size(&h), 6);
    harness_stop(&h);
}

Test(engine_fallback, it_never_lowers_the_size)
{
    WITH(h, spec);
    harness_target(&h, "web")->size = 9;
    fire(&h, "Busy", 990);
    tick(&h, 600);
    cr_assert_eq(get_size(&h), 9);
    harness_stop(&h);
}

Test(engine_fallback, a_crash_does_not_begin_the_time_anew)
{
    WITH(h, spec);
    fire(&h, "Busy", 990);
    tick(&h, 120);
    harness_crash(&h, 1);
    tick(&h, 61);
    cr_assert_eq(get_size(&h), 6);
    harness_stop(&h);
}

Test(engine_fallback, new_rules_do_not_begin_the_time_anew)
{
    WITH(h, spec);
    fire(&h, "Busy", 990);
    tick(&h, 120);
    harness_reload(&h, &spec);
    tick(&h, 61);
    cr_assert_eq(get_size(&h), 6);
    harness_stop(&h);
}

Test(engine_fallback, a_value_in_between_begins_the_time_anew)
{
    WITH(h, spec);
    fire(&h, "Busy", 990);
    tick(&h, 120);
    give(&h, 4);
    tick(&h, 60);
    h.queries[0].text = NULL;
    tick(&h, 120);
    cr_assert_eq(get_size(&h), 4);
    tick(&h, 90);
    cr_assert_eq(get_size(&h), 6);
    harness_stop(&h);
}

Test(engine_fallback, a_new_incident_begins_the_time_anew)
{
    WITH(h, spec);
    fire(&h, "Busy", 990);
    tick(&h, 170);
    resolve(&h, "Busy", 990);
    tick(&h, 60);
    fire(&h, "Busy", 1200);
    tick(&h, 120);
    cr_assert_eq(get_size(&h), 4);
    tick(&h, 70);
    cr_assert_eq(get_size(&h), 6);
    harness_stop(&h);
}

Test(engine_fallback, after_no_time_at_all_it_comes_with_the_next_look)
{
    static const struct spec at_once = {
        .targets = {{.name = "web", .min = 1, .max = 50, .up = 60, .down = 60}},
        .rules = {{.name = "load",
                   .match = {"alertname=Busy"},
                   .target = "web",
                   .source = {.query = "load"},
                   .pass_through = true,
                   .fallback = {.at_least = 6}}},
    };
    WITH(h, at_once);
    fire(&h, "Busy", 990);
    tick(&h, 1);
    cr_assert_eq(get_size(&h), 6);
    harness_stop(&h);
}
