/*
 * Schedules: both ends are events, a min in force is enforced at every look, and nothing of the
 * past decides: only the wall clock does.
 */
#include <alertscaler/base/attr.h>

#include "engine_harness.h"

/* The wall clock of the tests starts at 1000. */
static const struct spec office = {
    .targets = {{.name = "web",
                 .min = 1,
                 .max = 10,
                 .up = 60,
                 .down = 60,
                 .schedules = {{.name = "office", .from = 1100, .to = 1500, .min = 6}}},
                {.name = "db", .min = 0, .max = 10}},
    .rules =
        {{.name = "slow", .match = {"alertname=Slow"}, .target = "web", .up = 2},
         {.name = "idle", .match = {"alertname=Idle"}, .target = "web", .down = 1, .every = 60}},
};

static const struct spec sleeper = {
    .targets = {{.name = "web",
                 .min = 0,
                 .max = 10,
                 .schedules = {{.name = "office", .from = 1100, .to = 1500, .min = 3}}},
                {.name = "off",
                 .min = 1,
                 .max = 10,
                 .schedules = {{.name = "office", .from = 1100, .to = 1500, .min = 3}}}},
};

static const struct spec sale = {
    .targets = {{.name = "web",
                 .min = 1,
                 .max = 5,
                 .schedules = {{.name = "sale", .from = 1100, .to = 1500, .max = 9}}}},
    .rules = {{.name = "slow", .match = {"alertname=Slow"}, .target = "web", .up = 3, .every = 60}},
};

static const struct spec templated = {
    .targets = {{.name = "any",
                 .address = "{{ .Labels.app }}",
                 .allow = "*",
                 .min = 1,
                 .max = 10,
                 .schedules = {{.name = "office", .from = 1500, .to = 200000, .min = 6}}}},
    .rules = {{.name = "slow", .match = {"alertname=Slow"}, .target = "any", .up = 1}},
};

Test(engine_schedules, both_ends_are_events)
{
    WITH(h, office);
    tick(&h, 99);
    cr_assert_eq(harness_target(&h, "web")->size, 4);
    (void)said(&h);
    tick(&h, 1);
    cr_said(&h, "observe web; decided web 4>6 below_min; scale web 4>6; "
                "acted web 4>6 applied");
    tick(&h, 399);
    (void)said(&h);
    tick(&h, 1);
    cr_said(&h, "observe web"); /* nothing brings it down */
    cr_assert_eq(harness_target(&h, "web")->size, 6);
    harness_stop(&h);
}

Test(engine_schedules, a_size_that_others_lower_is_raised_at_the_next_look)
{
    WITH(h, office);
    tick(&h, 150);
    harness_target(&h, "web")->size = 2;
    tick(&h, 60);
    cr_assert_eq(harness_target(&h, "web")->size, 6);
    tick(&h, 400);
    harness_target(&h, "web")->size = 2;
    tick(&h, 600);
    cr_assert_eq(harness_target(&h, "web")->size, 2, "the schedule is over");
    harness_stop(&h);
}

Test(engine_schedules, no_rule_goes_below_a_min_in_force)
{
    WITH(h, office);
    tick(&h, 100);
    harness_target(&h, "web")->size = 8;
    fire(&h, "Idle", 1090);
    tick(&h, 300);
    cr_assert_geq(harness_target(&h, "web")->size, 6);
    fire(&h, "Idle", 1090);
    tick(&h, 60);
    fire(&h, "Idle", 1090);
    cr_assert_eq(harness_target(&h, "web")->size, 6);
    tick(&h, 40); /* it is over */
    fire(&h, "Idle", 1090);
    tick(&h, 60);
    cr_assert_lt(harness_target(&h, "web")->size, 6);
    harness_stop(&h);
}

Test(engine_schedules, one_wakes_a_target_from_0_if_its_own_min_is_0)
{
    WITH(h, sleeper);
    harness_target(&h, "web")->size = harness_target(&h, "off")->size = 0;
    tick(&h, 100);
    cr_assert_eq(harness_target(&h, "web")->size, 3);
    cr_assert_eq(harness_target(&h, "off")->size, 0, "somebody has switched it off");
    harness_stop(&h);
}

Test(engine_schedules, a_max_that_ends_lowers_nothing)
{
    WITH(h, sale);
    tick(&h, 100);
    fire(&h, "Slow", 1090);
    tick(&h, 120);
    cr_assert_eq(harness_target(&h, "web")->size, 9);
    tick(&h, 1000);
    cr_assert_eq(harness_target(&h, "web")->size, 9);
    cr_assert_not_null(strstr(said(&h), "at_max"));
    harness_stop(&h);
}

Test(engine_schedules, the_wall_clock_decides_however_it_jumps)
{
    WITH(h, office);
    tick(&h, 10);
    h.wall.us += 200 * AS_US_PER_S; /* over the begin: seen at the next look */
    tick(&h, 60);
    cr_assert_eq(harness_target(&h, "web")->size, 6);
    h.wall.us -= 200 * AS_US_PER_S; /* back: nothing is in force */
    harness_target(&h, "web")->size = 2;
    tick(&h, 1);
    (void)said(&h);
    cr_assert_eq(harness_target(&h, "web")->size, 2);
    tick(&h, 29); /* the begin, once more */
    tick(&h, 60);
    cr_assert_eq(harness_target(&h, "web")->size, 6);
    h.wall.us += 1000 * AS_US_PER_S; /* over the end */
    harness_target(&h, "web")->size = 2;
    tick(&h, 120);
    cr_assert_eq(harness_target(&h, "web")->size, 2);
    harness_stop(&h);
}

Test(engine_schedules, a_pause_holds_it_and_a_crash_does_not)
{
    WITH(h, office);
    harness_order(&h,
                  (struct as_operator_command){.kind = AS_OPERATOR_COMMAND_PAUSE, .target = "web"});
    tick(&h, 120);
    cr_assert_eq(harness_target(&h, "web")->size, 4);
    cr_assert_not_null(strstr(said(&h), "decided web 4 paused (6)"));
    harness_order(
        &h, (struct as_operator_command){.kind = AS_OPERATOR_COMMAND_RESUME, .target = "web"});
    cr_assert_eq(harness_target(&h, "web")->size, 6);
    harness_target(&h, "web")->size = 2;
    harness_crash(&h, 10);
    cr_assert_eq(harness_target(&h, "web")->size, 6);
    harness_stop(&h);
}

Test(engine_schedules, new_rules_have_new_schedules)
{
    static const struct spec later = {
        .targets = {{.name = "web",
                     .min = 1,
                     .max = 10,
                     .schedules = {{.name = "late", .from = 1200, .to = 1500, .min = 7}}}},
    };
    WITH(h, office);
    tick(&h, 50);
    harness_reload(&h, &later);
    tick(&h, 149);
    cr_assert_eq(harness_target(&h, "web")->size, 4);
    tick(&h, 1);
    cr_assert_eq(harness_target(&h, "web")->size, 7);
    harness_stop(&h);
}

Test(engine_schedules, an_order_keeps_to_the_bounds_in_force)
{
    WITH(h, office);
    tick(&h, 100);
    (void)said(&h);
    harness_order(&h, (struct as_operator_command){
                          .kind = AS_OPERATOR_COMMAND_SCALE, .target = "web", .replicas = 3});
    cr_assert_not_null(strstr(said(&h), "scale web 3 out_of_bounds"));
    harness_order(&h, (struct as_operator_command){
                          .kind = AS_OPERATOR_COMMAND_SCALE, .target = "web", .replicas = 7});
    cr_assert_eq(harness_target(&h, "web")->size, 7);
    harness_stop(&h);
}

Test(engine_schedules, a_template_has_them_while_its_target_is_known)
{
    WITH(h, templated);
    tick(&h, 10);
    cr_assert_eq(harness_target(&h, "web")->size, 4, "no alert has named it");
    fire(&h, "Slow,app=web", 1000);
    resolve(&h, "Slow,app=web", 1000);
    cr_assert_eq(harness_target(&h, "web")->size, 5);
    tick(&h, 490);
    cr_assert_eq(harness_target(&h, "web")->size, 6);
    tick(&h, 60);
    harness_target(&h, "web")->size = 2;
    tick(&h, 60);
    cr_assert_eq(harness_target(&h, "web")->size, 6);
    harness_stop(&h);
}

Test(engine_schedules, a_template_keeps_them_over_a_restart_and_a_reload)
{
    WITH(h, templated);
    fire(&h, "Slow,app=web", 1000);
    resolve(&h, "Slow,app=web", 1000);
    cr_assert_eq(harness_target(&h, "web")->size, 5);
    harness_crash(&h, 10);
    tick(&h, 490);
    cr_assert_eq(harness_target(&h, "web")->size, 6, "no alert has named it since the restart");
    harness_reload(&h, &templated);
    harness_target(&h, "web")->size = 2;
    tick(&h, 60);
    cr_assert_eq(harness_target(&h, "web")->size, 6);
    harness_crash(&h, 10);
    harness_target(&h, "web")->size = 2;
    tick(&h, 60);
    cr_assert_eq(harness_target(&h, "web")->size, 6, "the reload has noted its entry");
    harness_stop(&h);
}

/* A schedule reaches only what an alert could reach now. */
Test(engine_schedules, a_template_has_none_where_new_rules_do_not_allow_the_address)
{
    static const struct spec narrower = {
        .targets = {{.name = "any",
                     .address = "{{ .Labels.app }}",
                     .allow = "db-*",
                     .min = 1,
                     .max = 10,
                     .schedules = {{.name = "office", .from = 1500, .to = 200000, .min = 6}}}},
    };
    WITH(h, templated);
    fire(&h, "Slow,app=web", 1000);
    resolve(&h, "Slow,app=web", 1000);
    harness_reload(&h, &narrower);
    tick(&h, 600);
    cr_assert_eq(harness_target(&h, "web")->size, 5);
    harness_crash(&h, 10);
    tick(&h, 60);
    cr_assert_eq(harness_target(&h, "web")->size, 5);
    harness_stop(&h);
}
