/*
 * Did it help? Workloads whose pods are waited for, the effects of actions, and rules whose actions
 * do not help. Each action of an alert has exactly one effect, whatever happens in between.
 */
#include "engine_harness.h"

#define HOUR 3600

static const struct spec shop = {
    .targets = {{.name = "web", .min = 1, .max = 40, .up = 60, .down = 60, .ready_timeout = 300}},
    .rules = {{.name = "slow", .match = {"alertname=Slow"}, .target = "web", .up = 2},
              {.name = "idle", .match = {"alertname=Idle"}, .target = "web", .down = 1}},
};

static const struct spec plain = {
    .targets = {{.name = "web", .min = 1, .max = 40, .up = 60, .down = 60}},
    .rules =
        {{.name = "slow", .match = {"alertname=Slow"}, .target = "web", .up = 2, .max_steps = 1}},
};

static const struct spec tried = {
    .targets = {{.name = "web", .min = 1, .max = 40, .up = 60, .down = 60}},
    .rules = {{.name = "slow",
               .match = {"alertname=Slow"},
               .target = "web",
               .up = 2,
               .max_steps = 1,
               .ineffective_after = 2}},
};

/* Its pods are counted by the scale's own status. */
static struct virtual_target *start(struct harness *harness)
{
    struct virtual_target *web = harness_target(harness, "web");
    web->pods_unknown = true;
    tick(harness, 60);
    (void)said(harness);
    return web;
}

static struct as_target_view web_view;
static unsigned ineffective;

static void take_view(void *context, const struct as_target_view *view)
{
    (void)context;
    web_view = *view;
}

static void take_ineffective(void *context, const struct as_ineffective_view *view)
{
    (void)context;
    cr_expect_str_eq(view->target_name, "web");
    cr_expect_str_eq(view->rule, "slow");
    cr_expect_eq(view->until.mono.us - view->since.mono.us, AS_US_PER_DAY);
    ineffective++;
}

static bool did_not_come(struct harness *h)
{
    as_engine_visit_targets(h->engine, h->mono, h->wall, take_view, NULL);
    return web_view.did_not_come;
}

static bool is_ineffective(struct harness *h)
{
    ineffective = 0;
    as_engine_visit_ineffective(h->engine, NULL, h->mono, h->wall, take_ineffective, NULL);
    return ineffective > 0;
}

Test(engine_evaluations, a_workload_is_in_progress_until_its_pods_are_ready)
{
    WITH(h, shop);
    struct virtual_target *web = start(&h);
    web->has_no_capacity = true;
    fire(&h, "Slow", 990);
    cr_assert(has(said(&h), "acted web 4>6 applied"));
    tick(&h, 120);
    cr_expect(has(said(&h), "in_progress"));
    cr_expect_eq(h.last_in_progress_by, AS_IN_PROGRESS_SCALE_UP);
    cr_expect_eq(web->size, 6);
    web->has_no_capacity = false;
    web->missing = 0;
    tick(&h, 20);
    cr_expect(has(said(&h), "acted web 6>8 applied"), "all are ready: the next step");
    cr_expect_not(did_not_come(&h));
    harness_stop(&h);
}

Test(engine_evaluations, what_is_not_ready_in_time_stops_steps_up_until_the_number_changes)
{
    WITH(h, shop);
    struct virtual_target *web = start(&h);
    web->has_no_capacity = true;
    fire(&h, "Slow", 990);
    cr_assert(has(said(&h), "acted web 4>6 applied"));
    tick(&h, 330);
    const char *text = said(&h);
    cr_expect_eq(count(text, "late web 6 ready 4"), 1, "%s", text);
    cr_expect(has(text, "did_not_come"), "%s", text);
    cr_expect(did_not_come(&h));
    tick(&h, HOUR / 2);
    cr_expect_eq(web->size, 6, "no step up");
    web->missing = 1;
    tick(&h, 30);
    text = said(&h);
    cr_expect(has(text, "acted web 6>8 applied"), "one more is ready: %s", text);
    cr_expect_not(did_not_come(&h));
    harness_stop(&h);
}

/* A step up to 6 whose pods are not ready in time, for an alert that is over. */
static struct virtual_target *start_with_a_late_step(struct harness *h)
{
    struct virtual_target *web = start(h);
    web->has_no_capacity = true;
    fire(h, "Slow", 990);
    tick(h, 330);
    resolve(h, "Slow", 990);
    (void)said(h);
    return web;
}

Test(engine_evaluations, steps_down_go_on)
{
    WITH(h, shop);
    (void)start_with_a_late_step(&h);
    fire(&h, "Idle", 1400);
    tick(&h, 5);
    cr_expect(has(said(&h), "acted web 6>5 applied"));
    harness_stop(&h);
}

/* The rule that asked is not the only one that stops: nothing that comes would be ready. */
Test(engine_evaluations, no_other_rule_steps_up_either_and_orders_are_carried_out)
{
    static const struct spec two = {
        .targets =
            {{.name = "web", .min = 1, .max = 40, .up = 60, .down = 60, .ready_timeout = 300}},
        .rules = {{.name = "slow", .match = {"alertname=Slow"}, .target = "web", .up = 2},
                  {.name = "errors", .match = {"alertname=Errors"}, .target = "web", .up = 5}},
    };
    WITH(h, two);
    struct virtual_target *web = start_with_a_late_step(&h);
    fire(&h, "Errors", 1400);
    tick(&h, 120);
    cr_expect(has(said(&h), "did_not_come"));
    cr_expect_eq(web->size, 6);
    harness_order(&h, (struct as_operator_command){
                          .kind = AS_OPERATOR_COMMAND_SCALE, .target = "web", .replicas = 9});
    tick(&h, 5);
    cr_expect(has(said(&h), "ordered web 6>9 applied"));
    harness_stop(&h);
}

Test(engine_evaluations, a_crash_or_a_fail_over_keeps_the_stop_and_says_it_once)
{
    WITH(h, shop);
    struct virtual_target *web = start(&h);
    web->has_no_capacity = true;
    fire(&h, "Slow", 990);
    tick(&h, 100);
    harness_crash(&h, 30);
    web = harness_target(&h, "web");
    tick(&h, 250);
    cr_expect_eq(count(said(&h), "late web"), 1);
    harness_crash(&h, 30);
    tick(&h, 600);
    const char *text = said(&h);
    cr_expect_eq(count(text, "late web"), 0, "%s", text);
    cr_expect_eq(web->size, 6);
    cr_expect(did_not_come(&h));
    harness_stop(&h);
}

Test(engine_evaluations, another_object_has_nothing_to_wait_for)
{
    WITH(h, shop);
    struct virtual_target *web = start(&h);
    web->uid = "one";
    web->has_no_capacity = true;
    fire(&h, "Slow", 990);
    tick(&h, 330);
    cr_expect(did_not_come(&h));
    web->uid = "two";
    tick(&h, 60);
    cr_expect_not(did_not_come(&h));
    harness_stop(&h);
}

Test(engine_evaluations, a_reload_without_ready_timeout_ends_the_waiting)
{
    WITH(h, shop);
    struct virtual_target *web = start(&h);
    web->has_no_capacity = true;
    fire(&h, "Slow", 990);
    tick(&h, 330);
    cr_expect(did_not_come(&h));
    harness_reload(&h, &plain);
    tick(&h, 60);
    cr_expect_not(did_not_come(&h));
    harness_stop(&h);
}

Test(engine_evaluations, pods_are_listed_only_while_something_needs_them)
{
    WITH(h, shop);
    (void)start(&h);
    tick(&h, 120);
    cr_expect_not(has(said(&h), "with pods"), "nothing is open");
    fire(&h, "Slow", 990);
    cr_expect(has(said(&h), "observe web with pods"));
    harness_stop(&h);
}

Test(engine_evaluations, the_effect_is_recorded_when_the_alert_is_resolved)
{
    WITH(h, plain);
    (void)start(&h);
    fire(&h, "Slow", 990);
    cr_assert(has(said(&h), "acted web 4>6 applied"));
    tick(&h, 90);
    resolve(&h, "Slow", 990);
    cr_expect(has(said(&h), "effect web 4>6 by slow ready - resolved 90 resolved"));
    tick(&h, 2 * HOUR);
    cr_expect_eq(count(said(&h), "effect"), 0, "once");
    harness_stop(&h);
}

Test(engine_evaluations, with_the_time_until_as_many_were_ready)
{
    WITH(h, shop);
    struct virtual_target *web = start(&h);
    web->has_no_capacity = true;
    fire(&h, "Slow", 990);
    tick(&h, 40);
    resolve(&h, "Slow", 990);
    cr_expect_eq(count(said(&h), "effect"), 0, "its pods are not ready yet");
    tick(&h, 20);
    web->missing = 0;
    tick(&h, 10);
    const char *text = said(&h);
    cr_expect(has(text, "effect web 4>6 by slow ready 6"), "%s", text);
    cr_expect(has(text, "resolved 40 resolved"), "%s", text);
    harness_stop(&h);
}

Test(engine_evaluations, an_alert_that_fires_on_is_not_resolved_after_an_hour)
{
    WITH(h, plain);
    (void)start(&h);
    fire(&h, "Slow", 990);
    tick(&h, HOUR - 1);
    cr_expect_eq(count(said(&h), "effect"), 0);
    tick(&h, 1);
    cr_expect(has(said(&h), "effect web 4>6 by slow ready - resolved - not_resolved"));
    resolve(&h, "Slow", 990);
    tick(&h, 60);
    cr_expect_eq(count(said(&h), "effect"), 0, "once");
    harness_stop(&h);
}

Test(engine_evaluations, the_last_of_the_alerts_that_were_open_counts)
{
    WITH(h, plain);
    (void)start(&h);
    fire(&h, "Slow,path=a", 990);
    (void)said(&h);
    tick(&h, 10);
    fire(&h, "Slow,path=b", 1080); /* after the action */
    resolve(&h, "Slow,path=a", 990);
    const char *text = said(&h);
    cr_expect(has(text, "effect web 4>6 by slow ready - resolved 10 resolved"), "%s", text);
    harness_stop(&h);
}

Test(engine_evaluations, each_action_of_an_incident_has_its_own_effect)
{
    static const struct spec steps = {
        .targets = {{.name = "web", .min = 1, .max = 40, .up = 60, .down = 60}},
        .rules = {{.name = "slow", .match = {"alertname=Slow"}, .target = "web", .up = 2}},
    };
    WITH(h, steps);
    (void)start(&h);
    fire(&h, "Slow", 990);
    tick(&h, 130);
    (void)said(&h);
    resolve(&h, "Slow", 990);
    const char *text = said(&h);
    cr_expect(has(text, "effect web 4>6 by slow ready - resolved 130 resolved"), "%s", text);
    cr_expect(has(text, "effect web 6>8 by slow ready - resolved 70 resolved"), "%s", text);
    cr_expect(has(text, "effect web 8>10 by slow ready - resolved 10 resolved"), "%s", text);
    harness_stop(&h);
}

Test(engine_evaluations, an_order_has_no_effect_record)
{
    WITH(h, plain);
    (void)start(&h);
    harness_order(&h, (struct as_operator_command){
                          .kind = AS_OPERATOR_COMMAND_SCALE, .target = "web", .replicas = 9});
    tick(&h, 2 * HOUR);
    cr_expect_eq(count(said(&h), "effect"), 0);
    harness_stop(&h);
}

Test(engine_evaluations, nobody_knows_of_an_alert_that_expires_or_loses_its_rule)
{
    static const struct spec other = {
        .targets = {{.name = "web", .min = 1, .max = 40}},
        .rules = {{.name = "other", .match = {"alertname=Slow"}, .target = "web", .up = 2}},
    };
    WITH(h, plain);
    (void)start(&h);
    fire(&h, "Slow", 990);
    tick(&h, 60);
    (void)said(&h);
    harness_reload(&h, &other);
    cr_expect(has(said(&h), "effect web 4>6 by slow ready - resolved - unknown"));
    harness_stop(&h);
}

Test(engine_evaluations, exactly_one_effect_over_crashes_at_any_time)
{
    static const int64_t times[] = {0, 1, 59, 1800, HOUR - 1, HOUR, HOUR + 1};
    for (size_t i = 0; i < AS_ARRAY_SIZE(times); i++) {
        WITH(h, plain);
        (void)start(&h);
        fire(&h, "Slow", 990);
        tick(&h, times[i]);
        harness_crash(&h, 5);
        tick(&h, 2 * HOUR);
        harness_crash(&h, 5);
        resolve(&h, "Slow", 990);
        tick(&h, 2 * HOUR);
        const char *text = said(&h);
        cr_expect_eq(count(text, "effect web 4>6 by slow"), 1, "%lld: %s", (long long)times[i],
                     text);
        harness_stop(&h);
    }
}

Test(engine_evaluations, an_alert_that_ends_while_the_request_is_under_way_was_resolved_at_once)
{
    WITH(h, plain);
    (void)start(&h);
    h.hold_calls = true;
    fire(&h, "Slow", 990);
    harness_settle_to_request(&h);
    resolve(&h, "Slow", 990);
    h.hold_calls = false;
    harness_settle(&h);
    const char *text = said(&h);
    cr_expect_eq(count(text, "effect web 4>6 by slow ready - resolved 0 resolved"), 1, "%s", text);
    harness_stop(&h);
}

Test(engine_evaluations, a_clock_that_jumps_changes_no_time)
{
    WITH(h, plain);
    (void)start(&h);
    fire(&h, "Slow", 990);
    tick(&h, 30);
    (void)said(&h);
    h.wall.us += 400 * AS_US_PER_DAY;
    tick(&h, 30);
    resolve(&h, "Slow", 990);
    cr_expect(has(said(&h), "effect web 4>6 by slow ready - resolved 60 resolved"));
    harness_stop(&h);
}

/* Two incidents, an hour each. */
static void act_in_vain(struct harness *h, int64_t starts)
{
    fire(h, "Slow", starts);
    tick(h, HOUR + 1);
    resolve(h, "Slow", starts);
    tick(h, 60);
}

static int64_t get_wall(const struct harness *h)
{
    return h->wall.us / AS_US_PER_S;
}

Test(engine_evaluations, a_rule_whose_last_actions_did_not_help_is_held)
{
    WITH(h, tried);
    struct virtual_target *web = start(&h);
    act_in_vain(&h, get_wall(&h));
    cr_expect(has(said(&h), "not_resolved"));
    cr_expect_not(is_ineffective(&h));
    act_in_vain(&h, get_wall(&h));
    cr_expect(has(said(&h), "not_resolved held"));
    cr_expect(is_ineffective(&h));
    const int32_t size = web->size;
    fire(&h, "Slow", get_wall(&h));
    tick(&h, 60);
    cr_expect(has(said(&h), "ineffective"));
    harness_crash(&h, 5);
    cr_expect(is_ineffective(&h), "it outlasts a crash");
    tick(&h, HOUR);
    cr_expect_eq(web->size, size);
    (void)said(&h);
    harness_order(
        &h, (struct as_operator_command){.kind = AS_OPERATOR_COMMAND_RESUME, .target = "web"});
    tick(&h, 1);
    cr_expect(has(said(&h), "applied"));
    cr_expect_not(is_ineffective(&h));
    cr_expect_eq(web->size, size + 2);
    harness_stop(&h);
}

Test(engine_evaluations, the_hold_ends_after_a_day_and_the_count_begins_anew)
{
    WITH(h, tried);
    struct virtual_target *web = start(&h);
    act_in_vain(&h, get_wall(&h));
    act_in_vain(&h, get_wall(&h));
    cr_assert(is_ineffective(&h));
    tick(&h, 24 * HOUR);
    cr_expect_not(is_ineffective(&h));
    const int32_t size = web->size;
    act_in_vain(&h, get_wall(&h));
    cr_expect_eq(web->size, size + 2);
    cr_expect_not(is_ineffective(&h), "one in vain");
    harness_stop(&h);
}

Test(engine_evaluations, an_action_that_helps_begins_the_count_anew)
{
    WITH(h, tried);
    (void)start(&h);
    act_in_vain(&h, get_wall(&h));
    const int64_t starts = get_wall(&h);
    fire(&h, "Slow", starts);
    tick(&h, 100);
    resolve(&h, "Slow", starts);
    tick(&h, 100);
    act_in_vain(&h, get_wall(&h));
    cr_expect_not(is_ineffective(&h));
    harness_stop(&h);
}
