/*
 * Directions that are forbidden: by rules with `hold`, and by pauses of one direction.
 */
#include <string.h>

#include <alertscaler/base/attr.h>

#include "engine_harness.h"

static const struct spec consumers = {
    .targets = {{.name = "web", .min = 1, .max = 20, .up = 60, .down = 60}},
    .rules = {{.name = "slow", .match = {"alertname=Slow"}, .target = "web", .up = 2},
              {.name = "idle", .match = {"alertname=Idle"}, .target = "web", .down = 1},
              {.name = "upstream",
               .match = {"alertname=Upstream"},
               .target = "web",
               .hold = AS_WAYS_DOWN}},
};

static void pause_way(struct harness *harness, enum as_ways ways, int64_t seconds)
{
    harness_order(harness, (struct as_operator_command){.kind = AS_OPERATOR_COMMAND_PAUSE,
                                                        .target = "web",
                                                        .for_us = seconds * AS_US_PER_S,
                                                        .ways = ways});
}

Test(engine_holds, nothing_goes_down_while_the_rule_holds)
{
    WITH(h, consumers);
    fire(&h, "Upstream", 990);
    (void)said(&h);
    fire(&h, "Idle", 990);
    cr_said(&h, "said queued; opened; answered; observe web; decided web 4 held by idle");
    tick(&h, 600);
    cr_assert_eq(harness_target(&h, "web")->size, 4);
    harness_stop(&h);
}

Test(engine_holds, the_other_way_is_free)
{
    WITH(h, consumers);
    fire(&h, "Upstream", 990);
    fire(&h, "Slow", 990);
    cr_assert_eq(harness_target(&h, "web")->size, 6);
    harness_stop(&h);
}

Test(engine_holds, the_end_of_the_alert_ends_the_hold_at_once)
{
    WITH(h, consumers);
    fire(&h, "Upstream", 990);
    fire(&h, "Idle", 990);
    (void)said(&h);
    resolve(&h, "Upstream", 990);
    cr_assert_not_null(strstr(said(&h), "scale web 4>3"));
    harness_stop(&h);
}

Test(engine_holds, a_hold_survives_a_restart)
{
    WITH(h, consumers);
    fire(&h, "Upstream", 990);
    fire(&h, "Idle", 990);
    harness_crash(&h, 1);
    tick(&h, 300);
    cr_assert_eq(harness_target(&h, "web")->size, 4);
    harness_stop(&h);
}

Test(engine_holds, an_operators_size_is_set_all_the_same)
{
    WITH(h, consumers);
    fire(&h, "Upstream", 990);
    harness_order(&h, (struct as_operator_command){
                          .kind = AS_OPERATOR_COMMAND_SCALE, .target = "web", .replicas = 2});
    cr_assert_eq(harness_target(&h, "web")->size, 2);
    harness_stop(&h);
}

Test(engine_holds, a_pause_of_one_direction_stops_this_one_alone)
{
    WITH(h, consumers);
    pause_way(&h, AS_WAYS_DOWN, 0);
    fire(&h, "Idle", 990);
    cr_assert_not_null(strstr(said(&h), "decided web 4 held by idle"));
    fire(&h, "Slow", 990);
    cr_assert_eq(harness_target(&h, "web")->size, 6);
    harness_stop(&h);
}

Test(engine_holds, a_pause_of_one_direction_survives_a_restart_and_ends)
{
    WITH(h, consumers);
    pause_way(&h, AS_WAYS_UP, 90);
    harness_crash(&h, 1);
    fire(&h, "Slow", 990);
    cr_assert_not_null(strstr(said(&h), "decided web 4 held by slow"));
    tick(&h, 91);
    cr_assert_eq(harness_target(&h, "web")->size, 6);
    harness_stop(&h);
}

Test(engine_holds, a_later_pause_replaces_the_direction)
{
    WITH(h, consumers);
    pause_way(&h, AS_WAYS_UP, 0);
    pause_way(&h, AS_WAYS_DOWN, 0);
    fire(&h, "Slow", 990);
    cr_assert_eq(harness_target(&h, "web")->size, 6);
    harness_stop(&h);
}
