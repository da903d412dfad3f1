/*
 * Floors by hand: raised at once, kept until their end, over crashes, also without an incident.
 */
#include <string.h>

#include <alertscaler/base/attr.h>

#include "engine_harness.h"

static const struct spec spec = {
    .targets = {{.name = "web", .min = 1, .max = 20, .up = 60, .down = 60}},
    .rules = {{.name = "idle", .match = {"alertname=Idle"}, .target = "web", .down = 3}},
};

static int32_t get_size(struct harness *harness)
{
    return harness_target(harness, "web")->size;
}

/* Somebody else sets the size, and there is time to look at it. */
static void set_elsewhere(struct harness *harness, int32_t size)
{
    harness_target(harness, "web")->size = size;
    tick(harness, 130);
}

static void order_floor(struct harness *harness, int32_t size, int64_t seconds)
{
    harness_order(harness, (struct as_operator_command){.kind = AS_OPERATOR_COMMAND_FLOOR,
                                                        .target = "web",
                                                        .replicas = size,
                                                        .for_us = seconds * AS_US_PER_S});
}

Test(engine_floors, the_size_is_raised_at_once_without_an_incident)
{
    WITH(h, spec);
    order_floor(&h, 12, 3600);
    cr_assert_eq(get_size(&h), 12);
    set_elsewhere(&h, 5);
    cr_assert_eq(get_size(&h), 12);
    harness_stop(&h);
}

Test(engine_floors, rules_do_not_go_below_it_until_its_end)
{
    WITH(h, spec);
    order_floor(&h, 3, 600);
    fire(&h, "Idle", 990);
    tick(&h, 120);
    cr_assert_eq(get_size(&h), 3);
    tick(&h, 600);
    fire(&h, "Idle", 990);
    tick(&h, 1);
    cr_assert_eq(get_size(&h), 1);
    harness_stop(&h);
}

Test(engine_floors, it_survives_a_crash_with_its_end)
{
    WITH(h, spec);
    order_floor(&h, 12, 600);
    harness_crash(&h, 1);
    set_elsewhere(&h, 5);
    cr_assert_eq(get_size(&h), 12);
    tick(&h, 600);
    set_elsewhere(&h, 5);
    cr_assert_eq(get_size(&h), 5);
    harness_stop(&h);
}

Test(engine_floors, one_above_max_is_refused_and_an_end_needs_a_floor)
{
    WITH(h, spec);
    order_floor(&h, 21, 600);
    cr_assert_not_null(strstr(said(&h), "floor web out_of_bounds"));
    cr_assert_str_eq(h.last_message, "21 is above max, 20");
    harness_order(&h, (struct as_operator_command){
                          .kind = AS_OPERATOR_COMMAND_FLOOR, .target = "web", .is_end = true});
    cr_assert_not_null(strstr(said(&h), "floor web nothing_to_do"));
    cr_assert_eq(get_size(&h), 4);
    harness_stop(&h);
}

Test(engine_floors, taken_back_it_holds_nothing)
{
    WITH(h, spec);
    order_floor(&h, 12, 600);
    harness_order(&h, (struct as_operator_command){
                          .kind = AS_OPERATOR_COMMAND_FLOOR, .target = "web", .is_end = true});
    set_elsewhere(&h, 5);
    cr_assert_eq(get_size(&h), 5);
    harness_stop(&h);
}

Test(engine_floors, none_is_ordered_while_the_kill_switch_is_set)
{
    WITH(h, spec);
    harness_halt(&h, "stop");
    order_floor(&h, 12, 600);
    cr_assert_not_null(strstr(said(&h), "floor web refused"));
    cr_assert_str_eq(h.last_message, "the kill switch (switch) stops everything");
    harness_halt(&h, NULL);
    tick(&h, 130);
    cr_assert_eq(get_size(&h), 4, "what was refused does not come back");
    order_floor(&h, 12, 600);
    cr_assert_eq(get_size(&h), 12);
    harness_halt(&h, "stop");
    harness_order(&h, (struct as_operator_command){
                          .kind = AS_OPERATOR_COMMAND_FLOOR, .target = "web", .is_end = true});
    cr_assert_not_null(strstr(said(&h), "floor web done"), "its end orders no change");
    harness_stop(&h);
}

static const struct spec templated = {
    .targets = {{.name = "any", .address = "{{ .Labels.app }}", .allow = "*", .min = 1, .max = 20}},
    .rules = {{.name = "busy", .match = {"alertname=Busy"}, .target = "any", .up = 1}},
};

Test(engine_floors, of_a_template_it_survives_a_restart_and_a_reload)
{
    WITH(h, templated);
    fire(&h, "Busy,app=web", 990);
    harness_order(&h, (struct as_operator_command){.kind = AS_OPERATOR_COMMAND_FLOOR,
                                                   .target = "any",
                                                   .replicas = 12,
                                                   .for_us = 600 * AS_US_PER_S});
    resolve(&h, "Busy,app=web", 990);
    cr_assert_eq(get_size(&h), 12);
    harness_crash(&h, 1);
    set_elsewhere(&h, 5);
    cr_assert_eq(get_size(&h), 12);
    harness_reload(&h, &templated);
    set_elsewhere(&h, 5);
    cr_assert_eq(get_size(&h), 12);
    tick(&h, 600);
    set_elsewhere(&h, 5);
    cr_assert_eq(get_size(&h), 5);
    harness_stop(&h);
}

Test(engine_floors, after_its_end_the_min_of_a_schedule_counts)
{
    static const struct spec scheduled = {
        .targets = {{.name = "web",
                     .min = 1,
                     .max = 20,
                     .schedules = {{.name = "office", .from = 1000, .to = 9000, .min = 6}}}},
    };
    WITH(h, scheduled);
    order_floor(&h, 12, 60);
    cr_assert_eq(get_size(&h), 12);
    tick(&h, 60);
    harness_target(&h, "web")->size = 3;
    tick(&h, 60);
    cr_assert_eq(get_size(&h), 6);
    harness_stop(&h);
}
