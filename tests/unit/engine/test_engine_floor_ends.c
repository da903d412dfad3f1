/*
 * Floors of targets that no rule leads to any more: they end in time, and hold again if a rule
 * leads there again before.
 */
#include "engine_harness.h"

#include <string.h>

static const struct spec spec = {
    .targets = {{.name = "web", .min = 1, .max = 20, .up = 60, .down = 60}},
    .rules = {{.name = "idle", .match = {"alertname=Idle"}, .target = "web", .down = 3}},
};
static const struct spec others = {
    .targets = {{.name = "db"}},
    .rules = {{.name = "idle", .match = {"alertname=Idle"}, .target = "db", .down = 3}},
};

static void start(struct harness *harness)
{
    harness_start(harness, &spec);
    harness_order(harness, (struct as_operator_command){.kind = AS_OPERATOR_COMMAND_FLOOR,
                                                        .target = "web",
                                                        .replicas = 12,
                                                        .for_us = 7200 * AS_US_PER_S});
    cr_assert_eq(harness_target(harness, "web")->size, 12);
    tick(harness, 3700); /* no lock is left */
    harness_reload(harness, &others);
    (void)said(harness);
}

Test(engine_floor_ends, it_ends_though_no_rule_leads_there)
{
    struct harness h = {0};
    start(&h);
    tick(&h, 3400);
    cr_assert_null(strstr(said(&h), "floor"));
    tick(&h, 120);
    const char *text = said(&h);
    cr_assert_not_null(strstr(text, "floor web done"), "%s", text);
    harness_stop(&h);
}

Test(engine_floor_ends, it_holds_again_with_the_rules_of_before)
{
    struct harness h = {0};
    start(&h);
    harness_target(&h, "web")->size = 5; /* somebody else */
    tick(&h, 120);
    harness_crash(&h, 1);
    cr_assert_eq(harness_target(&h, "web")->size, 5);
    harness_reload(&h, &spec);
    tick(&h, 120);
    cr_assert_eq(harness_target(&h, "web")->size, 12);
    harness_stop(&h);
}

Test(engine_floor_ends, a_decrease_that_was_decided_before_is_not_sent)
{
    WITH(h, spec);
    h.hold_calls = true;
    fire(&h, "Idle", 990);
    h.hold_calls = false;
    h.hold_commits = true;
    harness_settle(&h); /* it is decided, and its intent waits to be committed */
    cr_assert_not_null(strstr(said(&h), "decided web 4>1 scaled by idle"));
    harness_order(&h, (struct as_operator_command){.kind = AS_OPERATOR_COMMAND_FLOOR,
                                                   .target = "web",
                                                   .replicas = 4,
                                                   .for_us = 600 * AS_US_PER_S});
    h.hold_commits = false;
    harness_settle(&h);
    const char *text = said(&h);
    cr_assert_not_null(strstr(text, "floor web done"), "%s", text);
    cr_assert_null(strstr(text, "scale web"), "%s", text);
    cr_assert_eq(harness_target(&h, "web")->size, 4);
    harness_stop(&h);
}
