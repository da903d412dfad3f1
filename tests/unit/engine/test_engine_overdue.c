/*
 * Instances that never became nodes, and that others ordered: a look for `fit` has them removed,
 * by a recorded decision, never below a minimum, and not while anything says that nothing may be
 * done. The cluster is a fleet (fleet.h).
 */
#include "engine_harness.h"

#define TIMEOUT 600 /* ready_timeout, in seconds */

static const struct spec workers = {
    .targets = {{.name = "cheap", .is_group = true, .min = 2, .max = 10},
                {.name = "dear", .is_group = true, .min = 1, .max = 10},
                {.name = "both", .pool = {"cheap", "dear"}, .max = 12, .down = 60}},
    .rules = {{.name = "wait", .match = {"alertname=Wait"}, .target = "both", .fit = true}},
};

static const struct fleet_group groups[] = {FLEET_GROUP("cheap", 2, 10),
                                            FLEET_GROUP("dear", 1, 10)};

static struct fleet fleet;

/* Two nodes of `cheap`, one of `dear`; then somebody else orders `more` of `cheap`, in vain. */
static void start(struct harness *harness, const struct spec *spec, int32_t more)
{
    harness_start(harness, spec);
    fleet_init(&fleet, groups, AS_ARRAY_SIZE(groups), harness->wall);
    harness->fleet = &fleet;
    tick(harness, 120);
    fleet.groups[0].is_broken = true;
    fleet.groups[0].size += more;
    fire(harness, "Wait", 1000);
    (void)said(harness);
}

static void stop(struct harness *harness)
{
    cr_expect_geq(fleet_count_nodes(&fleet, 0, true), 2, "nodes that serve stay");
    harness_stop(harness);
    fleet_deinit(&fleet);
}

Test(engine_overdue, what_others_ordered_and_never_came_is_removed)
{
    struct harness h = {0};
    start(&h, &workers, 3);
    tick(&h, TIMEOUT - 60);
    const char *text = said(&h);
    cr_expect_not(has(text, "clean up"), "%s", text);
    cr_expect_eq(fleet.groups[0].size, 5);
    tick(&h, 120);
    text = said(&h);
    cr_expect(has(text, "clean up cheap 5>2"), "%s", text);
    cr_expect(has(text, "acted cheap 5>2 applied"), "%s", text);
    cr_expect(has(text, "decided both 6"), "the decision is recorded: %s", text);
    cr_expect_eq(fleet.groups[0].size, 2);
    tick(&h, 600);
    text = said(&h);
    cr_expect_not(has(text, "clean up"), "once: %s", text);
    stop(&h);
}

Test(engine_overdue, a_minimum_is_kept)
{
    struct spec high = workers;
    struct harness h = {0};
    high.targets[0].min = 4;
    start(&h, &high, 3);
    tick(&h, TIMEOUT + 120);
    const char *text = said(&h);
    cr_expect(has(text, "clean up cheap 5>4"), "%s", text);
    cr_expect_eq(fleet.groups[0].size, 4);
    tick(&h, 600);
    cr_expect_eq(fleet.groups[0].size, 4);
    stop(&h);
}

Test(engine_overdue, nothing_is_removed_in_a_pause_under_the_kill_switch_and_in_a_dry_run)
{
    struct spec dry = workers;
    struct harness h = {0};
    start(&h, &workers, 3);
    harness_order(
        &h, (struct as_operator_command){.kind = AS_OPERATOR_COMMAND_PAUSE, .target = "cheap"});
    tick(&h, TIMEOUT + 120);
    cr_expect_eq(fleet.groups[0].size, 5, "the group is paused: %s", said(&h));
    harness_order(
        &h, (struct as_operator_command){.kind = AS_OPERATOR_COMMAND_PAUSE, .target = "both"});
    harness_order(
        &h, (struct as_operator_command){.kind = AS_OPERATOR_COMMAND_RESUME, .target = "cheap"});
    tick(&h, 120);
    cr_expect_eq(fleet.groups[0].size, 5, "the pool is paused: %s", said(&h));
    harness_halt(&h, "stop");
    harness_order(
        &h, (struct as_operator_command){.kind = AS_OPERATOR_COMMAND_RESUME, .target = "both"});
    tick(&h, 120);
    cr_expect_eq(fleet.groups[0].size, 5, "the kill switch is set: %s", said(&h));
    dry.targets[0].dry_run = true;
    harness_reload(&h, &dry);
    harness_halt(&h, NULL);
    tick(&h, 120);
    cr_expect_eq(fleet.groups[0].size, 5, "the group is in a dry run: %s", said(&h));
    harness_reload(&h, &workers);
    tick(&h, 120);
    cr_expect_eq(fleet.groups[0].size, 2, "%s", said(&h));
    stop(&h);
}

Test(engine_overdue, a_group_that_cannot_be_read_is_left_alone)
{
    struct harness h = {0};
    start(&h, &workers, 3);
    fleet.groups[0].is_unreadable = true;
    tick(&h, TIMEOUT + 120);
    cr_expect_eq(fleet.groups[0].size, 5, "%s", said(&h));
    fleet.groups[0].is_unreadable = false;
    tick(&h, 180);
    cr_expect_eq(fleet.groups[0].size, 2, "%s", said(&h));
    stop(&h);
}

Test(engine_overdue, a_crash_removes_nothing_twice)
{
    struct harness h = {0};
    start(&h, &workers, 3);
    for (int i = 0; i < (TIMEOUT + 120) / 30; i++) {
        tick(&h, 30);
        harness_crash(&h, 1);
    }
    tick(&h, 180);
    cr_expect_eq(fleet.groups[0].size, 2, "%s", said(&h));
    stop(&h);
}

Test(engine_overdue, a_removal_that_fails_is_tried_again_later)
{
    struct harness h = {0};
    start(&h, &workers, 3);
    h.always = (struct scale_script){.outcome = AS_REASON_FORBIDDEN};
    tick(&h, TIMEOUT + 600);
    const char *text = said(&h);
    cr_expect(has(text, "acted cheap 5>2 forbidden"), "%s", text);
    cr_expect_eq(fleet.groups[0].size, 5);
    h.always = (struct scale_script){0};
    tick(&h, 300);
    cr_expect_eq(fleet.groups[0].size, 2, "%s", said(&h));
    fleet.groups[0].is_broken = false;
    fleet_add_pods(&fleet, 0, 14);
    tick(&h, 60);
    text = said(&h);
    cr_expect(has(text, "scaled by wait"), "the pool grows at once: %s", text);
    stop(&h);
}

Test(engine_overdue, a_group_without_a_pool_cleans_itself)
{
    static const struct spec lone = {
        .targets = {{.name = "cheap", .is_group = true, .min = 2, .max = 10},
                    {.name = "dear", .is_group = true, .min = 1, .max = 10}},
        .rules = {{.name = "wait", .match = {"alertname=Wait"}, .target = "cheap", .fit = true}},
    };
    struct harness h = {0};
    start(&h, &lone, 3);
    tick(&h, TIMEOUT + 120);
    const char *text = said(&h);
    cr_expect(has(text, "clean up cheap 5>2"), "%s", text);
    cr_expect_eq(fleet.groups[0].size, 2);
    stop(&h);
}
