/*
 * Pauses and the kill switch: nothing is set while one holds, everything else continues, and
 * waiting decisions are made when it ends.
 */
#include <stdio.h>

#include <alertscaler/base/attr.h>

#include "engine_harness.h"

static const struct spec slow = {
    .targets = {{.name = "web", .min = 1, .max = 20, .up = 60, .down = 60},
                {.name = "db", .min = 1, .max = 20, .up = 60, .down = 60}},
    .rules = {{.name = "slow", .match = {"alertname=Slow"}, .target = "web", .up = 2},
              {.name = "stuck", .match = {"alertname=Stuck"}, .target = "db", .up = 1}},
};

static const struct spec templated = {
    .targets = {{.name = "any",
                 .address = "{{ .Labels.app }}",
                 .allow = "*",
                 .min = 1,
                 .max = 20,
                 .up = 60,
                 .down = 60}},
    .rules = {{.name = "slow", .match = {"alertname=Slow"}, .target = "any", .up = 2}},
};

static void order(struct harness *harness, enum as_operator_command_kind kind, const char *target,
                  int64_t seconds)
{
    harness_order(harness, (struct as_operator_command){
                               .kind = kind, .target = target, .for_us = seconds * AS_US_PER_S});
}

Test(engine_pauses, a_paused_target_is_decided_but_not_scaled)
{
    WITH(h, slow);
    order(&h, AS_OPERATOR_COMMAND_PAUSE, "web", 0);
    cr_said(&h, "pause web done; answered");
    fire(&h, "Slow", 990);
    cr_said(&h, "said queued; opened; answered; observe web; decided web 4 paused (6) by slow");
    fire(&h, "Stuck", 990);
    cr_assert_not_null(strstr(said(&h), "scale db 4>5"), "the others go on");
    tick(&h, 3600);
    cr_assert_null(strstr(said(&h), "scale web"));
    order(&h, AS_OPERATOR_COMMAND_RESUME, "web", 0);
    cr_said(&h, "resume web done; answered; observe web; decided web 4>6 scaled by slow after 60; "
                "scale web 4>6; acted web 4>6 applied");
    harness_stop(&h);
}

Test(engine_pauses, a_pause_ends_by_itself)
{
    WITH(h, slow);
    order(&h, AS_OPERATOR_COMMAND_PAUSE, "web", 90);
    fire(&h, "Slow", 990);
    tick(&h, 89);
    cr_assert_eq(harness_target(&h, "web")->size, 4);
    (void)said(&h);
    tick(&h, 1);
    cr_said(&h, "resume web done; observe web; decided web 4>6 scaled by slow after 1; "
                "scale web 4>6; acted web 4>6 applied");
    harness_stop(&h);
}

Test(engine_pauses, all_are_paused_and_resumed_at_once)
{
    WITH(h, slow);
    order(&h, AS_OPERATOR_COMMAND_PAUSE, NULL, 600);
    cr_said(&h, "pause all done; answered");
    fire(&h, "Slow", 990);
    fire(&h, "Stuck", 990);
    tick(&h, 599);
    cr_assert_null(strstr(said(&h), "scale "));
    tick(&h, 1);
    const char *text = said(&h);
    cr_assert_not_null(strstr(text, "resume all done"));
    cr_assert_not_null(strstr(text, "scale web 4>6"));
    cr_assert_not_null(strstr(text, "scale db 4>5"));

    order(&h, AS_OPERATOR_COMMAND_PAUSE, NULL, 0);
    (void)said(&h);
    tick(&h, 3600);
    cr_assert_null(strstr(said(&h), "scale "));
    order(&h, AS_OPERATOR_COMMAND_RESUME, NULL, 0);
    text = said(&h);
    cr_assert_not_null(strstr(text, "scale web 6>8"));
    cr_assert_not_null(strstr(text, "scale db 5>6"));
    harness_stop(&h);
}

Test(engine_pauses, what_is_decided_but_not_sent_is_held_back)
{
    WITH(h, slow);
    h.hold_commits = true;
    fire(&h, "Slow", 990);
    h.hold_commits = false;
    h.hold_calls = true;
    harness_settle(&h); /* the notification is durable */
    h.hold_calls = false;
    h.hold_commits = true;
    harness_settle(&h); /* decided; the intent waits for the disk */
    (void)said(&h);
    order(&h, AS_OPERATOR_COMMAND_PAUSE, "web", 0);
    h.hold_commits = false;
    harness_settle(&h);
    cr_said(&h, "pause web done; acted web 4>6 superseded; answered; observe web; "
                "decided web 4 paused (6) by slow");
    harness_stop(&h);
}

Test(engine_pauses, pauses_survive_a_crash_and_end_in_time)
{
    WITH(h, slow);
    order(&h, AS_OPERATOR_COMMAND_PAUSE, "web", 100);
    order(&h, AS_OPERATOR_COMMAND_PAUSE, NULL, 200);
    fire(&h, "Slow", 990);
    (void)said(&h);
    harness_crash(&h, 50);
    cr_assert_null(strstr(said(&h), "scale "));
    h.boot = "boot-2"; /* another boot: the wall clock tells */
    harness_crash(&h, 51);
    tick(&h, 0);
    cr_assert_not_null(strstr(said(&h), "resume web done"));
    tick(&h, 98);
    cr_assert_eq(harness_target(&h, "web")->size, 4);
    tick(&h, 2);
    cr_assert_eq(harness_target(&h, "web")->size, 6);
    harness_crash(&h, 1);
    cr_assert_null(strstr(said(&h), "paused"), "what is over stays over");
    harness_stop(&h);
}

Test(engine_pauses, only_what_is_paused_can_be_resumed)
{
    WITH(h, slow);
    order(&h, AS_OPERATOR_COMMAND_RESUME, "web", 0);
    order(&h, AS_OPERATOR_COMMAND_RESUME, NULL, 0);
    order(&h, AS_OPERATOR_COMMAND_PAUSE, NULL, 0);
    order(&h, AS_OPERATOR_COMMAND_RESUME, "web", 0);
    cr_said(&h, "resume web nothing_to_do; answered; resume all nothing_to_do; answered; "
                "pause all done; answered; resume web nothing_to_do; answered");
    order(&h, AS_OPERATOR_COMMAND_PAUSE, "elsewhere", 0);
    order(&h, AS_OPERATOR_COMMAND_PAUSE, "kubernetes/default/apps/v1/Deployment/shop/other", 0);
    cr_said(&h, "pause ? unknown_target; answered; pause ? unknown_target; answered");
    harness_stop(&h);
}

Test(engine_pauses, a_target_can_be_paused_before_its_first_alert)
{
    static const char id[] = "kubernetes/default/apps/v1/Deployment/shop/web-a";
    WITH(h, templated);
    order(&h, AS_OPERATOR_COMMAND_PAUSE, id, 0);
    cr_said(&h, "pause web-a done; answered");
    harness_crash(&h, 3 * 86400);
    fire(&h, "Slow,app=web-a", 990);
    cr_said(&h, "restarted; said queued; opened; answered; observe web-a; "
                "decided web-a 4 paused (6) by slow");
    order(&h, AS_OPERATOR_COMMAND_RESUME, "any", 0); /* the only one of this entry */
    cr_assert_not_null(strstr(said(&h), "scale web-a 4>6"));
    harness_stop(&h);
}

Test(engine_pauses, of_many_from_one_template_each_goes_by_its_id)
{
    WITH(h, templated);
    fire(&h, "Slow,app=web-a", 990);
    fire(&h, "Slow,app=web-b", 990);
    (void)said(&h);
    order(&h, AS_OPERATOR_COMMAND_PAUSE, "any", 0);
    cr_said(&h, "pause ? unknown_target; answered");
    harness_stop(&h);
}

static void pause_so_many(struct harness *harness, int count)
{
    for (int i = 0; i < count; i++) {
        char id[96];
        (void)snprintf(id, sizeof(id), "kubernetes/default/apps/v1/Deployment/shop/p%d", i);
        order(harness, AS_OPERATOR_COMMAND_PAUSE, id, 0);
    }
    (void)said(harness);
}

/* Found by a reader: the refusal made the target idle in the middle of its request. */
Test(engine_pauses, one_too_many_is_refused_and_touches_nothing)
{
    WITH(h, templated);
    pause_so_many(&h, 10000);
    order(&h, AS_OPERATOR_COMMAND_PAUSE, "kubernetes/default/apps/v1/Deployment/shop/other", 0);
    cr_said(&h, "pause other refused; answered");
    cr_assert_eq(as_engine_get_counts(h.engine).targets, 10000, "made for it, and gone");
    h.hold_calls = true;
    fire(&h, "Slow,app=web-a", 990);
    (void)said(&h);
    order(&h, AS_OPERATOR_COMMAND_PAUSE, "kubernetes/default/apps/v1/Deployment/shop/web-a", 0);
    cr_said(&h, "pause web-a refused; answered");
    h.hold_calls = false;
    harness_settle(&h);
    cr_said(&h, "decided web-a 4>6 scaled by slow; scale web-a 4>6; acted web-a 4>6 applied");
    harness_stop(&h);
}

static void pause_for(struct harness *harness, const char *who, int number)
{
    char id[96];
    (void)snprintf(id, sizeof(id), "kubernetes/default/apps/v1/Deployment/shop/%s-%d", who, number);
    harness_order(harness, (struct as_operator_command){
                               .kind = AS_OPERATOR_COMMAND_PAUSE, .target = id, .who = who});
}

Test(engine_pauses, a_narrowed_credential_leaves_room_for_pauses_of_others)
{
    static const char *const own[] = {"*/team-*"};
    static const struct as_scope scopes[] = {
        {.credential = "team", .targets = own, .target_count = 1},
        {.credential = "other", .targets = own, .target_count = 1},
        {.credential = "main"},
    };
    struct harness h = {.config = {.scopes = scopes, .scope_count = AS_ARRAY_SIZE(scopes)}};
    harness_start(&h, &templated);
    for (int i = 0; i < 2500; i++)
        pause_for(&h, "team", i);
    (void)said(&h);
    pause_for(&h, "team", 2500);
    cr_said(&h, "pause team-2500 refused for team; answered");
    cr_expect_str_eq(h.last_message, "the credential team has paused 2500 targets already");
    pause_for(&h, "team", 0);
    cr_said(&h, "pause team-0 done for team; answered");
    pause_for(&h, "main", 1);
    cr_said(&h, "pause main-1 done for main; answered");
    harness_stop(&h);
}

Test(engine_pauses, an_entry_with_templates_and_no_target_yet_is_said_to_be_one)
{
    WITH(h, templated);
    order(&h, AS_OPERATOR_COMMAND_PAUSE, "any", 0);
    cr_said(&h, "pause ? unknown_target; answered");
    cr_assert_not_null(strstr(h.last_message, "no target has come from any yet"), "%s",
                       h.last_message);
    harness_stop(&h);
}

Test(engine_pauses, a_target_that_is_paused_is_not_forgotten_and_then_is)
{
    WITH(h, templated);
    order(&h, AS_OPERATOR_COMMAND_PAUSE, "kubernetes/default/apps/v1/Deployment/shop/web-a", 3600);
    tick(&h, 3599);
    cr_assert_eq(as_engine_get_counts(h.engine).targets, 1);
    tick(&h, 1);
    cr_assert_eq(as_engine_get_counts(h.engine).targets, 0);
    harness_crash(&h, 0);
    cr_assert_eq(as_engine_get_counts(h.engine).targets, 0);
    harness_stop(&h);
}

Test(engine_pauses, the_kill_switch_stops_everything_at_once)
{
    WITH(h, slow);
    harness_halt(&h, "maintenance");
    cr_said(&h, "pause all done for switch");
    harness_halt(&h, "maintenance");
    cr_said(&h, "");
    fire(&h, "Slow", 990);
    cr_said(&h, "said queued; opened; answered; observe web; decided web 4 paused (6) by slow");
    order(&h, AS_OPERATOR_COMMAND_RESUME, NULL, 0);
    cr_said(&h, "resume all nothing_to_do; answered");
    harness_halt(&h, NULL);
    const char *text = said(&h);
    cr_assert_not_null(strstr(text, "resume all done for switch"));
    cr_assert_not_null(strstr(text, "scale web 4>6"));
    harness_stop(&h);
}

Test(engine_pauses, the_kill_switch_holds_back_what_is_not_sent)
{
    WITH(h, slow);
    h.hold_commits = true;
    fire(&h, "Slow", 990);
    h.hold_commits = false;
    h.hold_calls = true;
    harness_settle(&h);
    h.hold_calls = false;
    h.hold_commits = true;
    harness_settle(&h);
    (void)said(&h);
    harness_halt(&h, "stop");
    h.hold_commits = false;
    harness_settle(&h);
    cr_said(&h, "pause all done for switch; acted web 4>6 superseded; observe web; "
                "decided web 4 paused (6) by slow");
    harness_stop(&h);
}

static void count_pauses(void *context, const struct as_target_view *view)
{
    if (view->pause.is_set) {
        ++*(size_t *)context;
        cr_expect_str_eq(view->pause.reason, "test");
        cr_expect_eq(view->pause.until.wall.us, 1060 * AS_US_PER_S);
    }
}

Test(engine_pauses, can_be_seen)
{
    WITH(h, slow);
    size_t count = 0;
    cr_assert_not(as_engine_get_pause(h.engine, h.mono, h.wall).is_set);
    order(&h, AS_OPERATOR_COMMAND_PAUSE, "web", 60);
    as_engine_visit_targets(h.engine, h.mono, h.wall, count_pauses, &count);
    cr_expect_eq(count, 1);
    order(&h, AS_OPERATOR_COMMAND_PAUSE, NULL, 0);
    struct as_pause_view view = as_engine_get_pause(h.engine, h.mono, h.wall);
    cr_expect(view.is_set && !view.is_halt && !as_moment_is_set(view.until));
    harness_halt(&h, "fire");
    view = as_engine_get_pause(h.engine, h.mono, h.wall);
    cr_expect(view.is_set && view.is_halt);
    cr_expect_str_eq(view.reason, "fire");
    harness_stop(&h);
}

static size_t count_paused(const struct harness *harness)
{
    return as_engine_get_counts(harness->engine).targets_paused;
}

Test(engine_pauses, targets_that_are_paused_one_by_one_are_counted)
{
    WITH(h, slow);
    cr_expect_eq(count_paused(&h), 0);
    order(&h, AS_OPERATOR_COMMAND_PAUSE, NULL, 0);
    harness_halt(&h, "fire");
    cr_expect_eq(count_paused(&h), 0, "all at once is something else");
    order(&h, AS_OPERATOR_COMMAND_PAUSE, "web", 0);
    order(&h, AS_OPERATOR_COMMAND_PAUSE, "db", 60);
    cr_expect_eq(count_paused(&h), 2);
    order(&h, AS_OPERATOR_COMMAND_PAUSE, "web", 0);
    cr_expect_eq(count_paused(&h), 2, "a longer pause is no second one");
    harness_crash(&h, 1);
    cr_expect_eq(count_paused(&h), 2, "a restart forgets none");
    tick(&h, 60);
    cr_expect_eq(count_paused(&h), 1, "one has ended by itself");
    order(&h, AS_OPERATOR_COMMAND_RESUME, NULL, 0);
    cr_expect_eq(count_paused(&h), 1);
    order(&h, AS_OPERATOR_COMMAND_RESUME, "web", 0);
    cr_expect_eq(count_paused(&h), 0);
    harness_stop(&h);
}

/* ---- nodes that leave: asked before each step of theirs ---- */

static const struct spec grouped = {
    .targets = {{.name = "pool", .is_group = true, .min = 1, .max = 20},
                {.name = "web", .min = 1, .max = 20}},
    .rules = {{.name = "idle", .match = {"alertname=Idle"}, .target = "pool", .down = 1}},
};

static const char *find_obstacle(struct harness *harness, const char *name)
{
    return as_engine_find_terminate_obstacle(harness->engine, harness_target(harness, name)->id,
                                             harness->mono);
}

Test(engine_pauses, nodes_that_leave_wait_in_a_pause_and_under_the_kill_switch)
{
    WITH(h, grouped);
    cr_expect_null(find_obstacle(&h, "pool"));
    order(&h, AS_OPERATOR_COMMAND_PAUSE, "pool", 60);
    cr_expect_str_eq(find_obstacle(&h, "pool"), "paused");
    tick(&h, 60);
    cr_expect_null(find_obstacle(&h, "pool"), "the pause is over");
    order(&h, AS_OPERATOR_COMMAND_PAUSE, NULL, 60);
    cr_expect_str_eq(find_obstacle(&h, "pool"), "paused");
    harness_stop(&h);
}

Test(engine_pauses, nodes_of_no_group_of_the_rules_do_not_leave)
{
    WITH(h, grouped);
    cr_expect_str_eq(find_obstacle(&h, "web"), "", "it has no nodes");
    cr_expect_str_eq(as_engine_find_terminate_obstacle(h.engine, "node_group/mine/other", h.mono),
                     "");
    cr_expect_str_eq(as_engine_find_name(h.engine, harness_target(&h, "pool")->id), "pool");
    cr_expect_str_eq(as_engine_find_name(h.engine, "node_group/mine/other"), "");
    harness_stop(&h);
}
