/*
 * Operators' sizes and unlocks: recorded, durable, carried out once, and stopped only by the kill
 * switch.
 */
#include <alertscaler/base/attr.h>

#include "engine_harness.h"

static const struct spec slow = {
    .targets = {{.name = "web", .min = 1, .max = 20, .up = 60, .down = 60}},
    .rules = {{.name = "slow", .match = {"alertname=Slow"}, .target = "web", .up = 2}},
};
static const struct spec dry = {
    .targets = {{.name = "web", .min = 1, .max = 20, .up = 60, .down = 60, .dry_run = true}},
    .rules = {{.name = "slow", .match = {"alertname=Slow"}, .target = "web", .up = 2}},
};
static const struct spec narrow = {
    .targets = {{.name = "web", .min = 1, .max = 8, .up = 60, .down = 60}},
    .rules = {{.name = "slow", .match = {"alertname=Slow"}, .target = "web", .up = 2}},
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
static const struct spec nothing = {0};

static void scale(struct harness *harness, const char *target, int32_t replicas)
{
    harness_order(harness, (struct as_operator_command){.kind = AS_OPERATOR_COMMAND_SCALE,
                                                        .target = target,
                                                        .replicas = replicas});
}

static void force(struct harness *harness, int32_t replicas)
{
    harness_order(harness, (struct as_operator_command){.kind = AS_OPERATOR_COMMAND_SCALE,
                                                        .target = "web",
                                                        .replicas = replicas,
                                                        .force = true});
}

Test(engine_commands, a_size_is_set_and_begins_the_cooldown)
{
    WITH(h, slow);
    scale(&h, "web", 10);
    cr_said(&h, "scale web 10 done; answered; observe web; scale web 4>10; "
                "ordered web 4>10 applied");
    fire(&h, "Slow", 990);
    cr_said(&h, "said queued; opened; answered; observe web; decided web 10 cooldown (12) by slow");
    tick(&h, 60);
    cr_said(&h, "observe web; decided web 10>12 scaled by slow; scale web 10>12; "
                "acted web 10>12 applied");
    harness_stop(&h);
}

Test(engine_commands, locks_and_pauses_do_not_stop_it)
{
    WITH(h, slow);
    fire(&h, "Slow", 990);
    harness_order(&h, (struct as_operator_command){.kind = AS_OPERATOR_COMMAND_PAUSE});
    (void)said(&h);
    scale(&h, "kubernetes/default/apps/v1/Deployment/shop/web", 3);
    cr_said(&h, "scale web 3 done; answered; observe web; scale web 6>3; ordered web 6>3 applied");
    harness_stop(&h);
}

Test(engine_commands, bounds_hold_unless_forced)
{
    WITH(h, slow);
    scale(&h, "web", 21);
    scale(&h, "web", 0);
    cr_said(&h, "scale web 21 out_of_bounds; answered; scale web 0 out_of_bounds; answered");
    force(&h, 0);
    cr_said(&h, "scale web 0 done; answered; observe web; scale web 4>0; ordered web 4>0 applied");
    harness_stop(&h);
}

Test(engine_commands, the_other_sides_bounds_hold_too)
{
    WITH(h, slow);
    harness_target(&h, "web")->max = 6;
    scale(&h, "web", 10);
    cr_said(&h, "scale web 10 done; answered; observe web; ordered web 4>10 rejected");
    tick(&h, 3600);
    cr_assert_null(strstr(said(&h), "scale "));
    harness_stop(&h);
}

Test(engine_commands, a_size_that_already_is_starts_no_lock)
{
    WITH(h, slow);
    scale(&h, "web", 4);
    cr_said(&h, "scale web 4 done; answered; observe web; ordered web 4>4 applied");
    fire(&h, "Slow", 990);
    cr_assert_not_null(strstr(said(&h), "scale web 4>6"));
    harness_stop(&h);
}

Test(engine_commands, a_conflict_is_observed_again)
{
    WITH(h, slow);
    harness_script(&h, (struct scale_script){.outcome = AS_REASON_CONFLICT});
    scale(&h, "web", 10);
    cr_said(&h, "scale web 10 done; answered; observe web; scale web 4>10; "
                "ordered web 4>10 conflict; observe web; scale web 4>10; "
                "ordered web 4>10 applied");
    harness_stop(&h);
}

Test(engine_commands, what_is_refused_for_good_is_given_up)
{
    WITH(h, slow);
    harness_script(&h, (struct scale_script){.outcome = AS_REASON_FORBIDDEN});
    scale(&h, "web", 10);
    tick(&h, 3600);
    const char *text = said(&h);
    cr_assert_not_null(strstr(text, "ordered web 4>10 forbidden"));
    cr_assert_null(strstr(strstr(text, "forbidden"), "scale "));
    harness_stop(&h);
}

/* Found by chance: the refusal of a rule's request took the order with it. */
Test(engine_commands, a_rule_that_is_refused_ends_no_order)
{
    WITH(h, slow);
    harness_script(&h, (struct scale_script){.outcome = AS_REASON_TIMEOUT, .is_ambiguous = true});
    fire(&h, "Slow", 990);
    harness_script(&h, (struct scale_script){.outcome = AS_REASON_FORBIDDEN});
    scale(&h, "web", 10);
    (void)said(&h);
    tick(&h, 300);
    cr_assert_not_null(strstr(said(&h), "10 applied"));
    harness_stop(&h);
}

Test(engine_commands, what_cannot_be_done_is_tried_for_ten_minutes)
{
    WITH(h, slow);
    h.observation = AS_REASON_UNREACHABLE;
    scale(&h, "web", 10);
    tick(&h, 590);
    cr_assert_null(strstr(said(&h), "ordered"));
    tick(&h, 120);
    cr_assert_not_null(strstr(said(&h), "ordered web 4>10 unreachable"));
    h.observation = AS_REASON_APPLIED;
    tick(&h, 120);
    cr_assert_eq(harness_target(&h, "web")->size, 4);
    harness_stop(&h);
}

Test(engine_commands, it_is_done_as_soon_as_it_can_be)
{
    WITH(h, slow);
    h.observation = AS_REASON_UNREACHABLE;
    scale(&h, "web", 10);
    tick(&h, 100);
    h.observation = AS_REASON_APPLIED;
    tick(&h, 60);
    cr_assert_eq(harness_target(&h, "web")->size, 10);
    harness_stop(&h);
}

/* The answer says that it will be done: so it is, after a crash at any moment, and once. */
Test(engine_commands, what_is_answered_is_done_after_a_crash)
{
    for (unsigned commits = 1; commits <= 3; commits++) {
        WITH(h, slow);
        h.hold_commits = true;
        scale(&h, "web", 10);
        for (unsigned i = 0; i < commits; i++) { /* the order, the intent, the outcome */
            h.hold_commits = false;
            h.hold_calls = true;
            harness_settle(&h);
            if (i + 1 == commits)
                break;
            h.hold_calls = false;
            h.hold_commits = true;
            harness_settle(&h);
        }
        h.hold_commits = h.hold_calls = false;
        harness_crash(&h, 1);
        tick(&h, 300);
        cr_expect_eq(harness_target(&h, "web")->size, 10, "%u", commits);
        const char *text = said(&h), *applied = strstr(text, "10 applied");
        cr_expect(applied && !strstr(applied + 1, "10 applied"), "%u: %s", commits, text);
        fire(&h, "Slow", 990);
        harness_stop(&h);
    }
}

Test(engine_commands, an_answer_that_is_lost_does_nothing_twice)
{
    WITH(h, slow);
    harness_script(&h, (struct scale_script){
                           .outcome = AS_REASON_TIMEOUT, .is_ambiguous = true, .is_done = true});
    scale(&h, "web", 10);
    tick(&h, 5);
    cr_said(&h, "scale web 10 done; answered; observe web; scale web 4>10; "
                "ordered web 4>10 timeout; observe web; ordered web 4>10 applied late");
    fire(&h, "Slow", 990);
    cr_assert_not_null(strstr(said(&h), "cooldown"));
    harness_stop(&h);
}

Test(engine_commands, the_last_order_counts)
{
    WITH(h, slow);
    h.hold_calls = true;
    scale(&h, "web", 10);
    scale(&h, "web", 12);
    h.hold_calls = false;
    harness_settle(&h);
    cr_said(&h, "scale web 10 done; answered; observe web; scale web 12 done; "
                "earlier order web 4>10 superseded; answered; scale web 4>12; "
                "ordered web 4>12 applied");
    harness_stop(&h);
}

Test(engine_commands, one_that_comes_while_another_is_sent_is_next)
{
    WITH(h, slow);
    harness_target(&h, "web")->is_hanging = true;
    scale(&h, "web", 10);
    harness_target(&h, "web")->is_hanging = false;
    h.hold_commits = true;
    harness_settle(&h);
    harness_target(&h, "web")->is_hanging = true;
    h.hold_commits = false;
    harness_settle(&h);
    (void)said(&h);
    scale(&h, "web", 12);
    harness_target(&h, "web")->is_hanging = false;
    harness_settle(&h);
    cr_said(&h, "scale web 12 done; answered; earlier order web 4>10 applied; observe web; "
                "scale web 10>12; ordered web 10>12 applied");
    harness_stop(&h);
}

Test(engine_commands, nothing_is_set_in_a_dry_run)
{
    WITH(h, dry);
    scale(&h, "web", 10);
    cr_said(&h, "scale web 10 refused; answered");
    harness_stop(&h);
}

Test(engine_commands, the_kill_switch_stops_orders_too)
{
    WITH(h, slow);
    h.observation = AS_REASON_UNREACHABLE;
    scale(&h, "web", 10);
    harness_halt(&h, "stop");
    cr_assert_not_null(strstr(said(&h), "all done for switch; earlier order web 4>10 superseded"));
    h.observation = AS_REASON_APPLIED;
    scale(&h, "web", 12);
    cr_assert_not_null(strstr(said(&h), "scale web 12 refused"));
    harness_halt(&h, NULL);
    tick(&h, 600);
    cr_assert_eq(harness_target(&h, "web")->size, 4, "what was stopped does not come back");
    harness_stop(&h);
}

/* Its request may have been carried out, or not: it is recorded once, and not sent again. */
Test(engine_commands, the_kill_switch_ends_what_is_on_its_way)
{
    WITH(h, slow);
    harness_script(&h, (struct scale_script){.outcome = AS_REASON_TIMEOUT, .is_ambiguous = true});
    scale(&h, "web", 10);
    (void)said(&h);
    harness_halt(&h, "stop");
    cr_said(&h, "pause all done for switch");
    tick(&h, 30);
    harness_halt(&h, NULL);
    tick(&h, 600);
    cr_assert_null(strstr(said(&h), "scale "));
    cr_assert_eq(harness_target(&h, "web")->size, 4);
    harness_stop(&h);
}

Test(engine_commands, new_bounds_and_new_rules_end_what_waits)
{
    WITH(h, slow);
    h.observation = AS_REASON_UNREACHABLE;
    scale(&h, "web", 10);
    h.observation = AS_REASON_APPLIED;
    harness_reload(&h, &narrow);
    tick(&h, 60);
    cr_assert_not_null(strstr(said(&h), "ordered web 4>10 rejected"));
    h.observation = AS_REASON_UNREACHABLE;
    scale(&h, "web", 8);
    harness_reload(&h, &nothing);
    cr_assert_not_null(strstr(said(&h), "ordered web 4>8 superseded"));
    harness_stop(&h);
}

Test(engine_commands, a_target_of_a_template_is_found_again_after_a_restart)
{
    WITH(h, templated);
    fire(&h, "Slow,app=web-a", 990);
    resolve(&h, "Slow,app=web-a", 990);
    h.observation = AS_REASON_UNREACHABLE;
    scale(&h, "any", 10);
    h.observation = AS_REASON_APPLIED;
    harness_crash(&h, 30);
    cr_assert_eq(harness_target(&h, "web-a")->size, 10);
    harness_stop(&h);
}

Test(engine_commands, what_an_operator_set_is_not_given_back)
{
    static const struct spec giving_back = {
        .targets = {{.name = "web", .min = 1, .max = 50, .up = 60, .down = 60}},
        .rules = {{.name = "slow",
                   .match = {"alertname=Slow"},
                   .target = "web",
                   .up = 4,
                   .guard = "none",
                   .on_resolved = {.give_back = true, .after = 120}}},
    };
    WITH(h, giving_back);
    fire(&h, "Slow", 990);
    resolve(&h, "Slow", 990);
    tick(&h, 60);
    scale(&h, "web", 20);
    (void)said(&h);
    tick(&h, 3600);
    cr_assert_null(strstr(said(&h), "scale "));
    harness_stop(&h);
}

/* Each order that can lead to a change is refused; a pause and its end are not. */
Test(engine_commands, what_the_kill_switch_refuses)
{
    static const struct {
        enum as_operator_command_kind kind;
        const char *said;
    } orders[] = {
        {AS_OPERATOR_COMMAND_SCALE, "scale web 6 refused"},
        {AS_OPERATOR_COMMAND_FLOOR, "floor web refused"},
        {AS_OPERATOR_COMMAND_UNLOCK, "unlock web refused"},
        {AS_OPERATOR_COMMAND_PAUSE, "pause web done"},
        {AS_OPERATOR_COMMAND_RESUME, "resume web done"},
    };
    WITH(h, slow);
    fire(&h, "Slow", 990);
    (void)said(&h);
    harness_halt(&h, "stop");
    for (size_t i = 0; i < AS_ARRAY_SIZE(orders); i++) {
        harness_order(&h, (struct as_operator_command){.kind = orders[i].kind,
                                                       .target = "web",
                                                       .replicas = 6,
                                                       .for_us = 600 * AS_US_PER_S});
        const char *text = said(&h);
        cr_expect_not_null(strstr(text, orders[i].said), "%s: %s", orders[i].said, text);
    }
    harness_halt(&h, NULL);
    tick(&h, 10);
    cr_expect_null(strstr(said(&h), "scale web"), "the lock of the first step still holds");
    harness_stop(&h);
}

Test(engine_commands, an_unlocked_target_acts_at_once)
{
    WITH(h, slow);
    harness_order(
        &h, (struct as_operator_command){.kind = AS_OPERATOR_COMMAND_UNLOCK, .target = "web"});
    cr_said(&h, "unlock web nothing_to_do; answered");
    fire(&h, "Slow", 990);
    (void)said(&h);
    harness_order(
        &h, (struct as_operator_command){.kind = AS_OPERATOR_COMMAND_UNLOCK, .target = "web"});
    cr_said(&h, "unlock web done; answered; observe web; decided web 6>8 scaled by slow; "
                "scale web 6>8; acted web 6>8 applied");
    harness_crash(&h, 1);
    cr_assert_not_null(strstr(said(&h), "cooldown"));
    harness_order(
        &h, (struct as_operator_command){.kind = AS_OPERATOR_COMMAND_UNLOCK, .target = "web"});
    cr_assert_not_null(strstr(said(&h), "scale web 8>10"));
    harness_stop(&h);
}

Test(engine_commands, only_a_lock_that_holds_is_ended)
{
    static const struct spec short_down = {
        .targets = {{.name = "web", .min = 1, .max = 20, .up = 600, .down = 60}},
    };
    WITH(h, short_down);
    scale(&h, "web", 3);
    tick(&h, 61); /* a scale-down locks no scale-up here */
    (void)said(&h);
    harness_order(
        &h, (struct as_operator_command){.kind = AS_OPERATOR_COMMAND_UNLOCK, .target = "web"});
    cr_said(&h, "unlock web nothing_to_do; answered");
    scale(&h, "web", 5);
    tick(&h, 61);
    (void)said(&h);
    harness_order(
        &h, (struct as_operator_command){.kind = AS_OPERATOR_COMMAND_UNLOCK, .target = "web"});
    cr_said(&h, "unlock web done; answered; observe web");
    harness_stop(&h);
}

Test(engine_commands, nothing_new_is_ordered_while_it_stops)
{
    WITH(h, slow);
    harness_send_stop(&h);
    (void)said(&h);
    scale(&h, "web", 10);
    cr_said(&h, "scale web 10 refused; answered");
    harness_stop(&h);
}
