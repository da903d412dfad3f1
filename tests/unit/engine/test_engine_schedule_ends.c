/*
 * The end of schedules: what a `min` has added goes, and the size before a `max: 0` returns. A size
 * of a rule, a person or another controller stays.
 */
#include <alertscaler/base/attr.h>

#include "engine_harness.h"

/* The wall clock of the tests starts at 1000, sizes at 4. */
#define OFFICE(...)                                                                                \
    {                                                                                              \
        .name = "office", .from = 1100, .to = 1500, .min = 8, __VA_ARGS__                          \
    }
#define NIGHT                                                                                      \
    {                                                                                              \
        .name = "night", .from = 1100, .to = 1500, .is_zero = true                                 \
    }
#define WEB(...)                                                                                   \
    {                                                                                              \
        .name = "web", .min = 2, .max = 20, __VA_ARGS__                                            \
    }

#define RULES                                                                                      \
    .rules = {{.name = "slow", .match = {"alertname=Slow"}, .target = "web", .up = 2},             \
              {.name = "idle",                                                                     \
               .match = {"alertname=Idle"},                                                        \
               .target = "web",                                                                    \
               .down = 1,                                                                          \
               .guard = "none",                                                                    \
               .every = 3600}}

static const struct spec keep = {.targets = {WEB(.schedules = {OFFICE(.end = AS_SCHEDULE_KEEP)})},
                                 RULES};
static const struct spec before = {
    .targets = {WEB(.schedules = {OFFICE(.end = AS_SCHEDULE_BEFORE)})}, RULES};
static const struct spec to_min = {.targets = {WEB(.schedules = {OFFICE(.end = AS_SCHEDULE_MIN)})},
                                   RULES};
static const struct spec locked = {
    .targets = {WEB(.down = 600, .schedules = {OFFICE(.end = AS_SCHEDULE_BEFORE)})}, RULES};
static const struct spec night = {.targets = {WEB(.schedules = {NIGHT})}, RULES};

static int32_t size_of(struct harness *harness)
{
    return harness_target(harness, "web")->size;
}

/* Another controller does. */
static void set_size(struct harness *harness, int32_t size)
{
    harness_target(harness, "web")->size = size;
    harness_target(harness, "web")->version++;
}

static void order(struct harness *harness, int32_t replicas, bool force)
{
    harness_order(harness, (struct as_operator_command){.kind = AS_OPERATOR_COMMAND_SCALE,
                                                        .target = "web",
                                                        .replicas = replicas,
                                                        .force = force});
}

Test(engine_schedule_ends, what_a_min_has_added_goes)
{
    const struct spec *specs[] = {&keep, &before, &to_min};
    for (size_t i = 0; i < AS_ARRAY_SIZE(specs); i++) {
        struct harness h = {0};
        harness_start(&h, specs[i]);
        tick(&h, 100);
        cr_assert_eq(size_of(&h), 8);
        tick(&h, 399);
        (void)said(&h);
        cr_assert_eq(size_of(&h), 8);
        tick(&h, 1);
        if (specs[i] == &keep)
            cr_said(&h, "observe web");
        else
            cr_said(&h, "observe web; decided web 8>4 schedule_ended; scale web 8>4; "
                        "acted web 8>4 applied");
        tick(&h, 600);
        cr_assert_eq(size_of(&h), specs[i] == &keep ? 8 : 4, "and no further");
        harness_stop(&h);
    }
}

Test(engine_schedule_ends, a_size_above_the_min_was_not_added)
{
    WITH(h, before);
    set_size(&h, 10);
    tick(&h, 600);
    cr_assert_eq(size_of(&h), 10);
    harness_stop(&h);
}

Test(engine_schedule_ends, nothing_goes_that_a_rule_has_set)
{
    WITH(h, before);
    tick(&h, 200);
    fire(&h, "Slow", 1190);
    resolve(&h, "Slow", 1190);
    cr_assert_eq(size_of(&h), 10);
    tick(&h, 600);
    cr_assert_eq(size_of(&h), 10);
    harness_stop(&h);
}

/* Also where the rule comes back to the same size. */
Test(engine_schedule_ends, nothing_goes_after_a_rule_has_come_back)
{
    WITH(h, before);
    tick(&h, 200);
    fire(&h, "Slow", 1190);
    resolve(&h, "Slow", 1190);
    fire(&h, "Idle", 1190);
    resolve(&h, "Idle", 1190);
    cr_assert_eq(size_of(&h), 9);
    set_size(&h, 8);
    tick(&h, 600);
    cr_assert_eq(size_of(&h), 8);
    harness_stop(&h);
}

Test(engine_schedule_ends, nothing_goes_that_a_person_or_another_controller_has_set)
{
    for (int by = 0; by < 3; by++) {
        struct harness h = {0};
        harness_start(&h, &before);
        tick(&h, 200);
        if (by == 0)
            order(&h, 9, false);
        else
            set_size(&h, by == 1 ? 9 : 3); /* 3 is raised to 8 again */
        tick(&h, 120);
        cr_assert_eq(size_of(&h), by == 2 ? 8 : 9);
        harness_crash(&h, 10);
        tick(&h, 600);
        cr_assert_eq(size_of(&h), by == 2 ? 8 : 9);
        harness_stop(&h);
    }
}

/* The next day is a new begin. */
Test(engine_schedule_ends, a_size_of_others_ends_with_the_schedule)
{
    static const struct spec daily = {
        .targets = {WEB(.schedules = {{.name = "office",
                                       .zone = "UTC",
                                       .from = 3600,
                                       .to = 7200,
                                       .min = 8,
                                       .end = AS_SCHEDULE_BEFORE}})},
    };
    WITH(h, daily);
    tick(&h, 4000);
    set_size(&h, 9);
    tick(&h, 4000);
    cr_assert_eq(size_of(&h), 9);
    set_size(&h, 5);
    tick(&h, 86400 - 4000);
    cr_assert_eq(size_of(&h), 8);
    tick(&h, 4000);
    cr_assert_eq(size_of(&h), 5);
    harness_stop(&h);
}

Test(engine_schedule_ends, it_is_remembered_over_a_crash_and_a_reload)
{
    WITH(h, before);
    tick(&h, 200);
    harness_crash(&h, 10);
    cr_assert_eq(size_of(&h), 8);
    harness_reload(&h, &before);
    tick(&h, 280);
    cr_assert_eq(size_of(&h), 8);
    harness_crash(&h, 60); /* over the end */
    tick(&h, 60);
    cr_assert_eq(size_of(&h), 4);
    harness_stop(&h);
}

/* Without a state nothing is known of the size before. */
Test(engine_schedule_ends, a_missed_begin_takes_at_most_what_was_added)
{
    static const struct spec later = {
        .targets = {WEB(.schedules = {{.name = "office",
                                       .from = 0,
                                       .to = 1500,
                                       .min = 3,
                                       .end = AS_SCHEDULE_BEFORE}})},
    };
    struct harness h = {0};
    harness_start(&h, &later);
    tick(&h, 600);
    cr_assert_eq(size_of(&h), 4, "it was above the min");
    harness_stop(&h);
}

Test(engine_schedule_ends, cooldown_and_pause_delay_it)
{
    WITH(h, locked);
    tick(&h, 100);
    cr_assert_eq(size_of(&h), 8);
    (void)said(&h);
    tick(&h, 400);
    cr_assert(has(said(&h), "decided web 8 cooldown (4)"));
    harness_order(&h,
                  (struct as_operator_command){.kind = AS_OPERATOR_COMMAND_PAUSE, .target = "web"});
    tick(&h, 400);
    cr_assert_eq(size_of(&h), 8);
    cr_assert(has(said(&h), "decided web 8 paused (4)"));
    harness_crash(&h, 10);
    harness_order(
        &h, (struct as_operator_command){.kind = AS_OPERATOR_COMMAND_RESUME, .target = "web"});
    tick(&h, 60);
    cr_assert_eq(size_of(&h), 4);
    harness_stop(&h);
}

Test(engine_schedule_ends, an_open_incident_holds_it_back)
{
    static const struct spec quiet = {
        .targets = {WEB(.schedules = {OFFICE(.end = AS_SCHEDULE_BEFORE)})},
        .rules =
            {{.name = "hold", .match = {"alertname=Hold"}, .target = "web", .hold = AS_WAYS_UP},
             {.name = "steps",
              .match = {"alertname=Steps"},
              .target = "web",
              .source = {.annotation = "load"},
              .down_steps = {{.bound = 1, .amount = {.size = 1}}},
              .guard = "none"}},
    };
    static const char *const alerts[] = {"Hold", "Steps"};
    for (size_t i = 0; i < AS_ARRAY_SIZE(alerts); i++) {
        struct harness h = {0};
        harness_start(&h, &quiet);
        tick(&h, 200);
        fire(&h, alerts[i], 1190);
        (void)said(&h);
        tick(&h, 500);
        cr_assert_eq(size_of(&h), 8, "%s", alerts[i]);
        resolve(&h, alerts[i], 1190);
        tick(&h, 60);
        cr_assert_eq(size_of(&h), 4, "%s", alerts[i]);
        harness_stop(&h);
    }
}

/* The incident that scales down does so, although the end of the schedule waits for another one. */
Test(engine_schedule_ends, an_incident_that_scales_down_is_not_held_back_by_the_end)
{
    static const struct spec spec = {
        .targets = {WEB(.schedules = {OFFICE(.end = AS_SCHEDULE_BEFORE)})},
        .rules =
            {{.name = "hold", .match = {"alertname=Hold"}, .target = "web", .hold = AS_WAYS_UP},
             {.name = "idle",
              .match = {"alertname=Idle"},
              .target = "web",
              .down = 1,
              .guard = "none",
              .every = 3600}},
    };
    WITH(h, spec);
    tick(&h, 200);
    fire(&h, "Hold", 1190);
    tick(&h, 400);
    cr_assert_eq(size_of(&h), 8, "the end waits");
    fire(&h, "Idle", 1590);
    cr_assert_eq(size_of(&h), 7);
    harness_stop(&h);
}

/* An `always` rule has no incident: its value decides, and without the value nothing goes. */
Test(engine_schedule_ends, a_missing_value_holds_it_back)
{
    static const struct spec spec = {
        .targets = {WEB(.schedules = {OFFICE(.end = AS_SCHEDULE_BEFORE)})},
        .rules = {{.name = "load",
                   .always = true,
                   .target = "web",
                   .every = 15,
                   .source = {.query = "load"},
                   .track_average = 10}},
    };
    struct harness h = {.queries = {{"load", {.value = 30}}}};
    harness_start(&h, &spec);
    cr_assert_eq(size_of(&h), 3);
    tick(&h, 100);
    cr_assert_eq(size_of(&h), 8);
    h.queries[0].text = NULL;
    tick(&h, 600);
    cr_assert_eq(size_of(&h), 8);
    cr_assert(has(said(&h), "metric_unavailable"));
    h.queries[0] = (struct query_script){"load", {.value = 60}};
    tick(&h, 60);
    cr_assert_eq(size_of(&h), 6, "the highest wins: %d", size_of(&h));
    harness_stop(&h);
}

static const struct spec two = {
    .targets = {WEB(.schedules = {OFFICE(.end = AS_SCHEDULE_BEFORE),
                                  {.name = "peak", .from = 1200, .to = 1300, .min = 12}})},
};

/* `before`: once, at the end of the last one. `min`: at each end, down to the min in force. */
Test(engine_schedule_ends, overlapping_schedules_have_one_size_before)
{
    static const enum as_schedule_end ends[] = {AS_SCHEDULE_BEFORE, AS_SCHEDULE_MIN,
                                                AS_SCHEDULE_KEEP};
    for (size_t i = 0; i < AS_ARRAY_SIZE(ends); i++) {
        struct spec spec = two;
        struct harness h = {0};
        spec.targets[0].schedules[1].end = ends[i];
        harness_start(&h, &spec);
        tick(&h, 200);
        cr_assert_eq(size_of(&h), 12);
        tick(&h, 150);
        cr_assert_eq(size_of(&h), ends[i] == AS_SCHEDULE_MIN ? 8 : 12, "%zu", i);
        tick(&h, 300);
        cr_assert_eq(size_of(&h), ends[i] == AS_SCHEDULE_KEEP ? 12 : 4, "%zu", i);
        harness_stop(&h);
    }
}

/* An earlier schedule has made the target smaller: that is not undone by the night. */
Test(engine_schedule_ends, a_night_returns_no_more_than_was_there_at_its_begin)
{
    static const struct spec spec = {
        .targets = {{.name = "web",
                     .min = 1,
                     .max = 20,
                     .enforce_bounds = true,
                     .schedules = {{.name = "quiet",
                                    .from = 1050,
                                    .to = 1100,
                                    .min = 1,
                                    .max = 2,
                                    .end = AS_SCHEDULE_BEFORE},
                                   NIGHT}}},
    };
    WITH(h, spec);
    tick(&h, 60);
    cr_assert_eq(size_of(&h), 2);
    tick(&h, 60);
    cr_assert_eq(size_of(&h), 0);
    tick(&h, 500);
    cr_assert_eq(size_of(&h), 2);
    harness_stop(&h);
}

Test(engine_schedule_ends, adjacent_schedules_have_one_size_before)
{
    static const struct spec spec = {
        .targets = {WEB(.schedules = {OFFICE(.end = AS_SCHEDULE_BEFORE),
                                      {.name = "evening",
                                       .from = 1500,
                                       .to = 1700,
                                       .min = 6,
                                       .end = AS_SCHEDULE_BEFORE}})},
    };
    WITH(h, spec);
    tick(&h, 650);
    cr_assert_eq(size_of(&h), 8);
    tick(&h, 100);
    cr_assert_eq(size_of(&h), 4);
    harness_stop(&h);
}

Test(engine_schedule_ends, a_schedule_that_goes_from_the_rules_takes_nothing)
{
    WITH(h, before);
    tick(&h, 200);
    harness_reload(&h, &keep);
    tick(&h, 600);
    cr_assert_eq(size_of(&h), 8);
    harness_stop(&h);
}

Test(engine_schedule_ends, a_zero_sets_the_size_at_its_begin_and_returns_it)
{
    WITH(h, night);
    tick(&h, 99);
    (void)said(&h);
    tick(&h, 1);
    cr_said(&h, "observe web; decided web 4>0 above_max; scale web 4>0; acted web 4>0 applied");
    fire(&h, "Slow", 1100);
    cr_assert(has(said(&h), "at_max"));
    resolve(&h, "Slow", 1100);
    tick(&h, 399);
    cr_assert_eq(size_of(&h), 0);
    (void)said(&h);
    tick(&h, 1);
    cr_said(&h,
            "observe web; decided web 0>4 schedule_ended; scale web 0>4; acted web 0>4 applied");
    tick(&h, 600);
    cr_assert_eq(size_of(&h), 4);
    harness_stop(&h);
}

Test(engine_schedule_ends, a_zero_is_remembered_over_a_crash)
{
    WITH(h, night);
    tick(&h, 200);
    cr_assert_eq(size_of(&h), 0);
    harness_crash(&h, 10);
    tick(&h, 60);
    cr_assert_eq(size_of(&h), 0);
    harness_crash(&h, 400); /* over the end */
    tick(&h, 60);
    cr_assert_eq(size_of(&h), 4);
    harness_stop(&h);
}

Test(engine_schedule_ends, a_person_wakes_a_target_that_sleeps)
{
    for (int by = 0; by < 2; by++) {
        struct harness h = {0};
        harness_start(&h, &night);
        tick(&h, 200);
        if (by == 0)
            order(&h, 3, true);
        else
            set_size(&h, 3);
        tick(&h, 200);
        cr_assert_eq(size_of(&h), 3, "only the begin sets 0");
        tick(&h, 200);
        cr_assert_eq(size_of(&h), 3, "nothing returns");
        harness_stop(&h);
    }
}

Test(engine_schedule_ends, a_target_that_a_person_has_switched_off_stays_off)
{
    WITH(h, night);
    set_size(&h, 0);
    tick(&h, 200);
    set_size(&h, 3); /* and on, and off again */
    tick(&h, 120);
    cr_assert_eq(size_of(&h), 0, "the schedule has not set 0 before");
    harness_stop(&h);
    struct harness other = {0};
    harness_start(&other, &night);
    set_size(&other, 0);
    tick(&other, 600);
    cr_assert_eq(size_of(&other), 0);
    harness_stop(&other);
}

Test(engine_schedule_ends, a_size_returns_to_at_least_the_min_in_force)
{
    static const struct spec spec = {
        .targets = {WEB(.schedules = {NIGHT,
                                      {.name = "office",
                                       .from = 1500,
                                       .to = 1800,
                                       .min = 6,
                                       .end = AS_SCHEDULE_BEFORE}})},
    };
    WITH(h, spec);
    tick(&h, 200);
    cr_assert_eq(size_of(&h), 0);
    tick(&h, 350);
    cr_assert_eq(size_of(&h), 6);
    tick(&h, 300);
    cr_assert_eq(size_of(&h), 4, "the size before the night");
    harness_stop(&h);
}

/* From 0 policies in percent allow nothing, and a window may hold: the return needs neither. */
Test(engine_schedule_ends, a_size_returns_at_once_despite_cooldown_and_behavior)
{
    static const struct spec spec = {
        .targets = {WEB(.up = 3600, .down = 3600, .up_after_down = 3600,
                        .behavior = &as_behavior_default, .schedules = {NIGHT})},
    };
    WITH(h, spec);
    tick(&h, 200);
    cr_assert_eq(size_of(&h), 0);
    tick(&h, 300);
    cr_assert_eq(size_of(&h), 4);
    harness_stop(&h);
}

/* The templated target is known as long as the schedule's zero waits for its end. */
Test(engine_schedule_ends, a_template_that_sleeps_for_days_wakes)
{
    static const struct spec spec = {
        .targets = {{.name = "any",
                     .address = "{{ .Labels.app }}",
                     .allow = "*",
                     .min = 1,
                     .max = 10,
                     .schedules = {{.name = "weekend",
                                    .from = 1500,
                                    .to = 1500 + 3 * 86400,
                                    .is_zero = true}}}},
        .rules = {{.name = "slow", .match = {"alertname=Slow"}, .target = "any", .up = 1}},
    };
    WITH(h, spec);
    fire(&h, "Slow,app=web", 1000);
    resolve(&h, "Slow,app=web", 1000);
    cr_assert_eq(size_of(&h), 5);
    tick(&h, 600);
    cr_assert_eq(size_of(&h), 0);
    tick(&h, 2 * 86400);
    harness_crash(&h, 10);
    tick(&h, 86400);
    cr_assert_eq(size_of(&h), 5);
    harness_stop(&h);
}

Test(engine_schedule_ends, another_object_has_no_size_before)
{
    WITH(h, before);
    harness_target(&h, "web")->uid = "first";
    tick(&h, 200);
    cr_assert_eq(size_of(&h), 8);
    harness_target(&h, "web")->uid = "other";
    tick(&h, 600);
    cr_assert_eq(size_of(&h), 8);
    harness_stop(&h);
}

/* An API server may show the object as it was before a change. */
Test(engine_schedule_ends, an_old_view_of_the_object_is_no_other_size)
{
    WITH(h, night);
    tick(&h, 200);
    struct virtual_target *web = harness_target(&h, "web");
    cr_assert_eq(web->size, 0);
    web->size = 4;
    web->version--;
    tick(&h, 120);
    web->size = 0;
    web->version++;
    tick(&h, 300);
    cr_assert_eq(web->size, 4);
    harness_stop(&h);
}
