/*
 * Increases of node groups: instances that do not come in time are taken back, the group backs off,
 * and a group without capacity never ratchets up. Serving instances are never removed.
 */
#include "engine_harness.h"

#define READY_TIMEOUT 600 /* seconds, as in rule_spec.c */

static const struct spec workers = {
    .targets = {{.name = "pool", .is_group = true, .min = 1, .max = 20, .up = 60, .down = 60}},
    .rules = {{.name = "busy", .match = {"alertname=Busy"}, .target = "pool", .up = 3},
              {.name = "idle", .match = {"alertname=Idle"}, .target = "pool", .down = 1}},
};

static const struct spec short_after_down = {
    .targets = {{.name = "pool",
                 .is_group = true,
                 .min = 1,
                 .max = 20,
                 .up = 60,
                 .down = 60,
                 .has_down_after_down = true}},
    .rules = {{.name = "busy", .match = {"alertname=Busy"}, .target = "pool", .up = 3}},
};

static struct virtual_target *start(struct harness *harness)
{
    struct virtual_target *pool = harness_target(harness, "pool");
    pool->names_instances = true;
    tick(harness, 60); /* it is seen to name its instances */
    (void)said(harness);
    return pool;
}

static struct as_moment up_lock;
static size_t lock_count;

static void take_view(void *context, const struct as_target_view *view)
{
    (void)context;
    up_lock = view->up_locked_until;
    lock_count++;
}

/* Seconds from now until the target may grow again; 0: it may. */
static int64_t get_up_lock(struct harness *harness)
{
    as_engine_visit_targets(harness->engine, harness->mono, harness->wall, take_view, NULL);
    return as_moment_is_set(up_lock) ? (up_lock.mono.us - harness->mono.us) / AS_US_PER_S : 0;
}

Test(engine_scaleup, what_did_not_come_in_time_is_taken_back_and_the_group_backs_off)
{
    WITH(h, workers);
    struct virtual_target *pool = start(&h);
    pool->has_no_capacity = true;
    pool->words = "no machines";
    fire(&h, "Busy", 990);
    cr_assert(has(said(&h), "acted pool 4>7 applied"));
    tick(&h, READY_TIMEOUT - 20);
    cr_expect_not(has(said(&h), "take back"), "too early");
    tick(&h, 40);
    cr_expect(has(said(&h), "take back pool 7>4; acted pool 7>4 applied"));
    cr_expect_str_eq(h.last_message,
                     "3 requested instances did not come: alertscaler takes the request back, "
                     "and requests no more in the next 5 minutes: no machines");
    cr_expect_eq(pool->size, 4);
    cr_expect_eq(pool->missing, 0);
    const int64_t lock = get_up_lock(&h);
    cr_expect(lock > 300 - 40 && lock <= 300, "%lld", (long long)lock);
    tick(&h, 240);
    cr_expect_not(has(said(&h), "scale pool"), "it backs off");
    tick(&h, 120);
    cr_expect(has(said(&h), "scale pool 4>7"),
              "after five minutes the alert that still fires acts");
    harness_stop(&h);
}

/* It begins like any other action; what never served is no replica that a limit protects. */
Test(engine_scaleup, a_taking_back_waits_for_its_place_within_the_limit_of_actions)
{
    static const struct as_limits limits = {.actions_max = 1,
                                            .actions_per_us = 900 * AS_US_PER_S,
                                            .scale_down_milli_percent = 1000,
                                            .scale_down_per_us = 900 * AS_US_PER_S};
    struct harness h = {.config.limits = limits};
    harness_start(&h, &workers);
    struct virtual_target *pool = start(&h);
    pool->has_no_capacity = true;
    fire(&h, "Busy", 990);
    cr_assert(has(said(&h), "acted pool 4>7 applied"));
    tick(&h, 880);
    cr_expect_not(has(said(&h), "take back"), "one action in a quarter of an hour");
    tick(&h, 60);
    cr_expect(has(said(&h), "take back pool 7>4; acted pool 7>4 applied"));
    harness_stop(&h);
}

Test(engine_scaleup, each_failure_in_a_row_doubles_the_back_off_up_to_half_an_hour)
{
    static const int64_t minutes[] = {5, 10, 20, 30, 30};
    WITH(h, workers);
    struct virtual_target *pool = start(&h);
    pool->has_no_capacity = true;
    fire(&h, "Busy", 990);
    for (size_t i = 0; i < sizeof(minutes) / sizeof(*minutes); i++) {
        int64_t waited = 0;
        while (pool->missing == 0 && waited++ < 4000)
            tick(&h, 1);
        cr_assert_eq(pool->size, 7, "round %zu", i);
        while (pool->missing > 0 && waited++ < 8000)
            tick(&h, 1);
        cr_assert_eq(pool->size, 4, "round %zu: taken back", i);
        const int64_t lock = get_up_lock(&h);
        cr_expect(lock > minutes[i] * 60 - 5 && lock <= minutes[i] * 60, "round %zu: %lld", i,
                  (long long)lock);
    }
    cr_expect_leq(pool->size, 7, "it never ratchets up");
    harness_stop(&h);
}

Test(engine_scaleup, a_failure_while_the_group_backs_off_does_not_double_it)
{
    WITH(h, workers);
    start(&h);
    harness_script(&h, (struct scale_script){.outcome = AS_REASON_REJECTED, .is_shortage = true});
    fire(&h, "Busy", 990);
    cr_assert_gt(get_up_lock(&h), 290);
    tick(&h, 100);
    for (int i = 0; i < 3; i++) {
        harness_script(&h,
                       (struct scale_script){.outcome = AS_REASON_REJECTED, .is_shortage = true});
        harness_order(&h, (struct as_operator_command){
                              .kind = AS_OPERATOR_COMMAND_SCALE, .target = "pool", .replicas = 9});
        tick(&h, 10);
    }
    const int64_t lock = get_up_lock(&h);
    cr_expect(lock > 250 && lock <= 300, "5 minutes from the last one: %lld", (long long)lock);
    harness_stop(&h);
}

Test(engine_scaleup, an_increase_that_comes_ends_the_back_off)
{
    WITH(h, workers);
    struct virtual_target *pool = start(&h);
    pool->has_no_capacity = true;
    fire(&h, "Busy", 990);
    tick(&h, READY_TIMEOUT + 20);
    cr_assert_eq(pool->size, 4);
    pool->has_no_capacity = false;
    tick(&h, 310);
    cr_assert_eq(pool->size, 7, "%s", said(&h));
    pool->has_no_capacity = true;
    tick(&h, 120); /* seen in full; then the next step comes to nothing */
    cr_assert_eq(pool->size, 10);
    int64_t waited = 0;
    while (pool->missing > 0 && waited++ < 1000)
        tick(&h, 1);
    cr_assert_eq(pool->size, 7);
    const int64_t lock = get_up_lock(&h);
    cr_expect(lock > 290 && lock <= 300, "5 minutes again, not 10: %lld", (long long)lock);
    harness_stop(&h);
}

Test(engine_scaleup, what_came_stays_and_only_the_rest_is_taken_back)
{
    WITH(h, workers);
    struct virtual_target *pool = start(&h);
    pool->has_no_capacity = true;
    fire(&h, "Busy", 990);
    pool->missing = 1; /* two of three came */
    tick(&h, READY_TIMEOUT + 20);
    cr_expect(has(said(&h), "take back pool 7>6; acted pool 7>6 applied"));
    harness_stop(&h);
}

Test(engine_scaleup, what_was_missing_before_is_not_taken_back)
{
    WITH(h, workers);
    struct virtual_target *pool = start(&h);
    fire(&h, "Busy", 990);
    cr_assert_eq(pool->size, 7);
    pool->missing = 5; /* two that were there before are not ready any more */
    tick(&h, READY_TIMEOUT + 20);
    cr_expect(has(said(&h), "take back pool 7>4"));
    cr_expect_eq(pool->size, 4);
    harness_stop(&h);
}

Test(engine_scaleup, what_the_provider_needs_at_least_is_not_taken_back)
{
    WITH(h, workers);
    struct virtual_target *pool = start(&h);
    pool->has_no_capacity = true;
    pool->min = 6;
    pool->size = 4;
    fire(&h, "Busy", 990);
    cr_assert_eq(pool->size, 7, "%s", said(&h));
    tick(&h, READY_TIMEOUT + 20);
    cr_expect(has(said(&h), "take back pool 7>6"));
    harness_stop(&h);
}

Test(engine_scaleup, an_answer_from_a_cache_does_not_end_the_waiting)
{
    WITH(h, workers);
    struct virtual_target *pool = start(&h);
    pool->has_no_capacity = true;
    fire(&h, "Busy", 990);
    pool->size = 4; /* as it was */
    pool->missing = 0;
    tick(&h, 40);
    pool->size = 7;
    pool->missing = 3;
    tick(&h, READY_TIMEOUT);
    cr_expect_eq(pool->size, 4, "%s", said(&h));
    cr_expect_gt(get_up_lock(&h), 0);
    harness_stop(&h);
}

Test(engine_scaleup, an_instance_that_failed_long_after_does_not_hold_up_the_group)
{
    WITH(h, workers);
    struct virtual_target *pool = start(&h);
    pool->missing = 1;
    tick(&h, 60);
    fire(&h, "Busy", 990);
    cr_expect_eq(pool->size, 7, "%s", said(&h));
    tick(&h, 50);
    fire(&h, "Idle", 990);
    tick(&h, READY_TIMEOUT + 100);
    cr_expect_not(has(said(&h), "take back"), "all that was asked for came");
    harness_stop(&h);
}

Test(engine_scaleup, what_cannot_be_taken_back_does_not_hold_up_the_group_for_ever)
{
    WITH(h, workers);
    struct virtual_target *pool = start(&h);
    pool->has_no_capacity = true;
    fire(&h, "Busy", 990);
    harness_script(&h, (struct scale_script){.outcome = AS_REASON_FORBIDDEN});
    tick(&h, READY_TIMEOUT + 20);
    cr_expect(has(said(&h), "take back pool 7>4; acted pool 7>4 forbidden"));
    cr_expect_gt(get_up_lock(&h), 200, "it backs off all the same");
    harness_order(&h, (struct as_operator_command){
                          .kind = AS_OPERATOR_COMMAND_SCALE, .target = "pool", .replicas = 5});
    tick(&h, 60);
    cr_expect_eq(pool->size, 5, "%s", said(&h));
    harness_stop(&h);
}

Test(engine_scaleup, while_it_is_awaited_nothing_else_is_done)
{
    WITH(h, workers);
    struct virtual_target *pool = start(&h);
    pool->has_no_capacity = true;
    fire(&h, "Busy", 990);
    fire(&h, "Idle", 990);
    tick(&h, READY_TIMEOUT - 30);
    cr_expect_eq(pool->size, 7);
    cr_expect(has(said(&h), "in_progress"));
    harness_stop(&h);
}

Test(engine_scaleup, no_capacity_backs_off_at_once)
{
    WITH(h, workers);
    struct virtual_target *pool = start(&h);
    harness_script(&h, (struct scale_script){.outcome = AS_REASON_REJECTED, .is_shortage = true});
    fire(&h, "Busy", 990);
    cr_expect(has(said(&h), "acted pool 4>7 rejected"));
    tick(&h, 280);
    cr_expect_not(has(said(&h), "scale pool"), "it backs off");
    cr_expect_gt(get_up_lock(&h), 0);
    tick(&h, 60);
    cr_expect(has(said(&h), "scale pool 4>7; acted pool 4>7 applied"));
    cr_expect_eq(pool->size, 7);
    harness_stop(&h);
}

Test(engine_scaleup,
     what_was_refused_for_want_of_capacity_but_stands_in_the_size_is_taken_back_soon)
{
    WITH(h, workers);
    struct virtual_target *pool = start(&h);
    pool->has_no_capacity = true;
    harness_script(&h, (struct scale_script){
                           .outcome = AS_REASON_REJECTED, .is_shortage = true, .is_done = true});
    fire(&h, "Busy", 990);
    cr_assert_eq(pool->size, 7);
    tick(&h, 60);
    cr_expect(has(said(&h), "take back pool 7>4; acted pool 7>4 applied"));
    const int64_t lock = get_up_lock(&h);
    cr_expect(lock > 200 && lock <= 300, "one failure, not two: %lld", (long long)lock);
    cr_expect_not_null(strstr(h.last_message, "in the next 5 minutes"), "%s", h.last_message);
    harness_stop(&h);
}

Test(engine_scaleup, what_was_accepted_and_failed_for_want_of_capacity_is_taken_back_soon)
{
    WITH(h, workers);
    struct virtual_target *pool = start(&h);
    pool->has_no_capacity = true;
    harness_script(&h, (struct scale_script){AS_REASON_REJECTED, .is_accepted = true,
                                             .is_shortage = true, .is_done = true});
    fire(&h, "Busy", 990);
    cr_assert(has(said(&h), "acted pool 4>7 applied"));
    fire(&h, "Idle", 990); /* another look */
    tick(&h, 13);
    cr_expect_not(has(said(&h), "take back"), "the provider's lists have a moment to catch up");
    tick(&h, 17);
    cr_expect(has(said(&h), "take back pool 7>4; acted pool 7>4 applied"));
    const int64_t lock = get_up_lock(&h);
    cr_expect(lock > 240 && lock <= 300, "one failure, not two: %lld", (long long)lock);
    harness_stop(&h);
}

Test(engine_scaleup, a_taking_back_that_was_accepted_in_vain_does_not_hold_up_the_group_for_ever)
{
    WITH(h, workers);
    struct virtual_target *pool = start(&h);
    pool->has_no_capacity = true;
    fire(&h, "Busy", 990);
    harness_script(
        &h, (struct scale_script){AS_REASON_REJECTED, .is_accepted = true, .is_in_vain = true});
    tick(&h, READY_TIMEOUT + 20);
    cr_expect(has(said(&h), "take back pool 7>4; acted pool 7>7 applied"));
    cr_expect_gt(get_up_lock(&h), 200, "it backs off all the same");
    harness_order(&h, (struct as_operator_command){
                          .kind = AS_OPERATOR_COMMAND_SCALE, .target = "pool", .replicas = 5});
    tick(&h, 60);
    cr_expect_eq(pool->size, 5, "%s", said(&h));
    harness_stop(&h);
}

Test(engine_scaleup, a_restart_forgets_neither_the_increase_nor_the_back_off)
{
    WITH(h, workers);
    struct virtual_target *pool = start(&h);
    pool->has_no_capacity = true;
    fire(&h, "Busy", 990);
    tick(&h, 300);
    harness_crash(&h, 100);
    tick(&h, 170);
    cr_expect_eq(pool->size, 7, "too early");
    tick(&h, 60);
    cr_expect_eq(pool->size, 4, "%s", said(&h));
    harness_crash(&h, 10);
    tick(&h, 30);
    const int64_t lock = get_up_lock(&h);
    cr_expect(lock > 150 && lock <= 280, "%lld", (long long)lock);
    cr_expect_eq(pool->size, 4);
    harness_stop(&h);
}

Test(engine_scaleup, a_crash_while_it_is_taken_back_loses_nothing)
{
    WITH(h, workers);
    struct virtual_target *pool = start(&h);
    pool->has_no_capacity = true;
    fire(&h, "Busy", 990);
    harness_script(&h, (struct scale_script){
                           .outcome = AS_REASON_TIMEOUT, .is_ambiguous = true, .is_done = true});
    for (int64_t waited = 0; pool->size == 7 && waited < READY_TIMEOUT + 20; waited++)
        tick(&h, 1);
    cr_assert(has(said(&h), "take back pool 7>4; acted pool 7>4 timeout"));
    harness_crash(&h, 10);
    tick(&h, 30);
    cr_expect(has(said(&h), "acted pool 7>4 applied late"), "it is found to be done");
    cr_expect_eq(pool->size, 4);
    cr_expect_gt(get_up_lock(&h), 200);
    harness_stop(&h);
}

Test(engine_scaleup, neither_a_pause_nor_the_kill_switch_lets_it_be_taken_back)
{
    WITH(h, workers);
    struct virtual_target *pool = start(&h);
    pool->has_no_capacity = true;
    fire(&h, "Busy", 990);
    harness_order(
        &h, (struct as_operator_command){.kind = AS_OPERATOR_COMMAND_PAUSE, .target = "pool"});
    tick(&h, READY_TIMEOUT + 100);
    cr_expect_eq(pool->size, 7);
    harness_halt(&h, "stop");
    harness_order(
        &h, (struct as_operator_command){.kind = AS_OPERATOR_COMMAND_RESUME, .target = "pool"});
    tick(&h, 100);
    cr_expect_eq(pool->size, 7);
    harness_halt(&h, NULL);
    tick(&h, 60);
    cr_expect_eq(pool->size, 4, "%s", said(&h));
    harness_stop(&h);
}

Test(engine_scaleup, in_a_dry_run_nothing_is_taken_back)
{
    struct spec dry = workers;
    WITH(h, workers);
    struct virtual_target *pool = start(&h);
    pool->has_no_capacity = true;
    fire(&h, "Busy", 990);
    dry.targets[0].dry_run = true;
    harness_reload(&h, &dry);
    tick(&h, READY_TIMEOUT + 100);
    cr_expect_eq(pool->size, 7, "%s", said(&h));
    harness_reload(&h, &workers);
    tick(&h, 60);
    cr_expect_eq(pool->size, 4, "%s", said(&h));
    harness_stop(&h);
}

Test(engine_scaleup, an_operator_may_unlock_what_backs_off)
{
    WITH(h, workers);
    struct virtual_target *pool = start(&h);
    pool->has_no_capacity = true;
    fire(&h, "Busy", 990);
    tick(&h, READY_TIMEOUT + 20);
    cr_assert_eq(pool->size, 4);
    pool->has_no_capacity = false;
    harness_order(
        &h, (struct as_operator_command){.kind = AS_OPERATOR_COMMAND_UNLOCK, .target = "pool"});
    cr_expect_eq(pool->size, 7, "%s", said(&h));
    harness_stop(&h);
}

Test(engine_scaleup, groups_that_name_no_instances_are_left_as_they_are)
{
    WITH(h, workers);
    struct virtual_target *pool = start(&h);
    pool->names_instances = false;
    tick(&h, 60);
    pool->has_no_capacity = true;
    fire(&h, "Busy", 990);
    pool->in_progress = true; /* as its service says */
    tick(&h, READY_TIMEOUT + 100);
    cr_expect_eq(pool->size, 7);
    cr_expect_not(has(said(&h), "take back"));
    harness_stop(&h);
}

Test(engine_scaleup, an_ordered_increase_is_taken_back_too)
{
    WITH(h, workers);
    struct virtual_target *pool = start(&h);
    pool->has_no_capacity = true;
    harness_order(&h, (struct as_operator_command){
                          .kind = AS_OPERATOR_COMMAND_SCALE, .target = "pool", .replicas = 9});
    cr_assert_eq(pool->size, 9, "%s", said(&h));
    tick(&h, READY_TIMEOUT + 20);
    cr_expect_eq(pool->size, 4, "%s", said(&h));
    harness_stop(&h);
}

/* ---- nodes that were to leave come back ---- */

static struct as_moment down_lock;

static void take_down_lock(void *context, const struct as_target_view *view)
{
    (void)context;
    down_lock = view->down_locked_until;
}

static bool is_down_locked(struct harness *harness)
{
    as_engine_visit_targets(harness->engine, harness->mono, harness->wall, take_down_lock, NULL);
    return as_moment_is_set(down_lock) && down_lock.mono.us > harness->mono.us;
}

Test(engine_scaleup, nodes_that_come_back_start_no_lock_for_growth_but_one_for_decreases)
{
    WITH(h, workers);
    start(&h);
    harness_script(
        &h, (struct scale_script){.outcome = AS_REASON_APPLIED, .is_done = true, .returned = 3});
    fire(&h, "Busy", 990);
    cr_assert(has(said(&h), "acted pool 4>7 applied"));
    cr_expect_eq(get_up_lock(&h), 0);
    cr_expect(is_down_locked(&h));
    harness_crash(&h, 5);
    cr_expect(is_down_locked(&h), "it is stored");
    harness_stop(&h);
}

Test(engine_scaleup, nodes_that_come_back_lock_decreases_for_as_long_as_an_increase_does)
{
    WITH(h, short_after_down);
    start(&h);
    harness_script(
        &h, (struct scale_script){.outcome = AS_REASON_APPLIED, .is_done = true, .returned = 3});
    fire(&h, "Busy", 990);
    cr_assert(has(said(&h), "acted pool 4>7 applied"));
    cr_expect(is_down_locked(&h));
    harness_stop(&h);
}

Test(engine_scaleup, what_is_asked_for_besides_them_locks_as_ever)
{
    WITH(h, workers);
    start(&h);
    harness_script(
        &h, (struct scale_script){.outcome = AS_REASON_APPLIED, .is_done = true, .returned = 2});
    fire(&h, "Busy", 990);
    cr_assert(has(said(&h), "acted pool 4>7 applied"));
    cr_expect_gt(get_up_lock(&h), 0);
    cr_expect(is_down_locked(&h));
    harness_stop(&h);
}
