/*
 * Changes that wait for a person: what is asked, who may answer, and that no rule changes a size by
 * more than its `above` without an approval that covers it.
 */
#include <stdio.h>
#include <stdlib.h>

#include <alertscaler/base/attr.h>

#include "engine_harness.h"

#define ASKS(n)                                                                                    \
    {                                                                                              \
        .is_set = true, .above = (n), .for_us = 900 * AS_US_PER_S                                  \
    }

/* Size 4; the rule wants 4 more each minute. */
static const struct spec big = {
    .targets = {{.name = "web", .min = 1, .max = 20, .up = 60, .down = 60}},
    .rules =
        {{.name = "big", .match = {"alertname=Big"}, .target = "web", .up = 4, .approval = ASKS(3)},
         {.name = "small", .match = {"alertname=Small"}, .target = "web", .up = 1},
         {.name = "calm", .match = {"alertname=Calm"}, .target = "web", .down = 2}},
};

static void answer(struct harness *harness, enum as_operator_command_kind kind, const char *id)
{
    harness_order(harness, (struct as_operator_command){.kind = kind, .request = id});
}

static void approve(struct harness *harness)
{
    char id[AS_ULID_SIZE];
    memcpy(id, harness->last_request, sizeof(id));
    answer(harness, AS_OPERATOR_COMMAND_APPROVE, id);
}

static void deny(struct harness *harness)
{
    char id[AS_ULID_SIZE];
    memcpy(id, harness->last_request, sizeof(id));
    answer(harness, AS_OPERATOR_COMMAND_DENY, id);
}

Test(engine_approvals, a_change_waits_and_is_done_when_it_is_approved)
{
    WITH(h, big);
    fire(&h, "Big", 990);
    cr_said(&h, "said queued; opened; answered; observe web; decided web 4 needs_approval (8) by "
                "big; asked web 4>8 by big");
    tick(&h, 600);
    cr_assert_eq(harness_target(&h, "web")->size, 4);
    cr_assert_null(strstr(said(&h), "asked"), "it is asked once");
    approve(&h);
    cr_said(&h, "approve web done; approved web 4>8 by big; answered; observe web; "
                "decided web 4>8 scaled by big after 1; used web 4>8 by big; scale web 4>8; "
                "acted web 4>8 applied with approval");
    harness_stop(&h);
}

Test(engine_approvals, small_steps_add_up_within_an_hour)
{
    static const struct spec steps = {
        .targets = {{.name = "web", .min = 1, .max = 20, .up = 60, .down = 60}},
        .rules = {{.name = "slow",
                   .match = {"alertname=Slow"},
                   .target = "web",
                   .up = 1,
                   .approval = ASKS(3)}},
    };
    WITH(h, steps);
    fire(&h, "Slow", 990);
    tick(&h, 3000);
    cr_assert_eq(harness_target(&h, "web")->size, 7, "3 steps are free");
    deny(&h);
    (void)said(&h);
    harness_crash(&h, 1);
    tick(&h, 500);
    cr_assert_eq(harness_target(&h, "web")->size, 7, "a restart forgets no step");
    tick(&h, 3600 + 300);
    cr_assert_eq(harness_target(&h, "web")->size, 10, "those of the first minutes are an hour old");
    harness_stop(&h);
}

Test(engine_approvals, it_is_not_asked_again_for_an_hour_after_nobody_answered)
{
    WITH(h, big);
    fire(&h, "Big", 990);
    (void)said(&h);
    tick(&h, 899);
    cr_assert_null(strstr(said(&h), "expired"));
    tick(&h, 1);
    cr_said(&h, "observe web; expired web 4>8 by big; "
                "decided web 4 not_approved (8) by big after 1");
    approve(&h);
    cr_said(&h, "approve web nothing_to_do; answered");
    cr_assert_str_eq(h.last_message, "its time is over");
    tick(&h, 3540);
    cr_assert_null(strstr(said(&h), "asked"));
    tick(&h, 120);
    cr_assert_not_null(strstr(said(&h), "asked web 4>8 by big"));
    harness_stop(&h);
}

Test(engine_approvals, a_denial_is_an_answer)
{
    WITH(h, big);
    fire(&h, "Big", 990);
    (void)said(&h);
    deny(&h);
    cr_said(&h, "deny web done; denied web 4>8 by big; answered; observe web; "
                "decided web 4 not_approved (8) by big");
    approve(&h);
    cr_assert_str_eq(h.last_message, "it was denied");
    tick(&h, 600);
    cr_assert_eq(harness_target(&h, "web")->size, 4);
    resolve(&h, "Big", 990);
    fire(&h, "Big", 1700);
    cr_assert_not_null(strstr(said(&h), "asked web 4>8 by big"), "another incident asks");
    harness_stop(&h);
}

Test(engine_approvals, two_answers_to_one_request)
{
    WITH(h, big);
    char id[AS_ULID_SIZE];
    fire(&h, "Big", 990);
    memcpy(id, h.last_request, sizeof(id));
    h.hold_calls = true;
    answer(&h, AS_OPERATOR_COMMAND_APPROVE, id);
    answer(&h, AS_OPERATOR_COMMAND_APPROVE, id);
    cr_assert_str_eq(h.last_message, "it is approved already");
    h.hold_calls = false;
    harness_settle(&h);
    cr_assert_eq(harness_target(&h, "web")->size, 8);
    (void)said(&h);
    answer(&h, AS_OPERATOR_COMMAND_APPROVE, id);
    cr_said(&h, "approve ? unknown_request; answered");
    tick(&h, 60);
    cr_assert_not_null(strstr(said(&h), "asked web 8>12 by big"), "the next change asks anew");
    cr_assert_eq(harness_target(&h, "web")->size, 8, "it is used once");
    harness_stop(&h);
}

Test(engine_approvals, an_approval_can_be_taken_back)
{
    WITH(h, big);
    fire(&h, "Big", 990);
    h.hold_calls = true;
    approve(&h);
    deny(&h);
    h.hold_calls = false;
    harness_settle(&h);
    tick(&h, 300);
    cr_assert_eq(harness_target(&h, "web")->size, 4);
    harness_stop(&h);
}

Test(engine_approvals, forged_ids_are_unknown)
{
    WITH(h, big);
    fire(&h, "Big", 990);
    (void)said(&h);
    static const char *const ids[] = {"", "web", "00000000000000000000000000",
                                      "01ARZ3NDEKTSV4RRFFQ69G5FAV0000000000000000000"};
    for (size_t i = 0; i < AS_ARRAY_SIZE(ids); i++) {
        answer(&h, AS_OPERATOR_COMMAND_APPROVE, ids[i]);
        cr_said(&h, "approve ? unknown_request; answered");
    }
    tick(&h, 60);
    cr_assert_eq(harness_target(&h, "web")->size, 4);
    harness_stop(&h);
}

Test(engine_approvals, others_act_meanwhile_and_nobody_shrinks)
{
    WITH(h, big);
    fire(&h, "Big", 990);
    fire(&h, "Calm", 990);
    tick(&h, 120);
    cr_assert_eq(harness_target(&h, "web")->size, 4, "what waits still wants to grow");
    (void)said(&h);
    fire(&h, "Small", 990);
    cr_assert_not_null(strstr(said(&h), "decided web 4>5 scaled by small"));
    cr_assert_eq(harness_target(&h, "web")->size, 5);
    approve(&h);
    tick(&h, 60);
    cr_assert_eq(harness_target(&h, "web")->size, 8, "no further than what was shown");
    harness_stop(&h);
}

/* The step of another rule does not answer a wish that waits. */
Test(engine_approvals, what_waits_keeps_its_steps)
{
    static const struct spec once = {
        .targets = {{.name = "web", .min = 1, .max = 20, .up = 60, .down = 60}},
        .rules = {{.name = "big",
                   .match = {"alertname=Big"},
                   .target = "web",
                   .up = 4,
                   .max_steps = 1,
                   .approval = ASKS(3)},
                  {.name = "small",
                   .match = {"alertname=Small"},
                   .target = "web",
                   .up = 1,
                   .max_steps = 1}},
    };
    WITH(h, once);
    fire(&h, "Big", 990);
    fire(&h, "Small", 990);
    cr_assert_eq(harness_target(&h, "web")->size, 5);
    deny(&h);
    cr_assert_not_null(strstr(said(&h), "decided web 5 cooldown (9) by big"));
    cr_assert_eq(harness_target(&h, "web")->size, 5);
    harness_stop(&h);
}

Test(engine_approvals, a_wish_to_shrink_limits_the_others)
{
    static const struct spec downs = {
        .targets = {{.name = "web", .min = 1, .max = 20, .up = 60, .down = 60}},
        .rules = {{.name = "slow",
                   .match = {"alertname=Slow"},
                   .target = "web",
                   .down = 2,
                   .approval = ASKS(1)},
                  {.name = "deep", .match = {"alertname=Deep"}, .target = "web", .down = 3}},
    };
    WITH(h, downs);
    fire(&h, "Slow", 990);
    cr_assert_not_null(strstr(said(&h), "decided web 4 needs_approval (2) by slow; asked web 4>2"));
    fire(&h, "Deep", 990);
    cr_assert_not_null(strstr(said(&h), "decided web 4>2 scaled by deep"));
    cr_assert_eq(harness_target(&h, "web")->size, 2);
    harness_stop(&h);
}

Test(engine_approvals, the_end_of_the_incident_ends_the_request)
{
    WITH(h, big);
    fire(&h, "Big", 990);
    (void)said(&h);
    resolve(&h, "Big", 990);
    cr_said(&h, "said queued; closed; answered; void web 4>8 by big; observe web");
    approve(&h);
    cr_assert_not_null(strstr(said(&h), "unknown_request"));
    harness_stop(&h);
}

Test(engine_approvals, an_approval_is_void_after_another_rule)
{
    static struct spec changed;
    changed = big;
    changed.rules[0].up = 5;
    WITH(h, big);
    fire(&h, "Big", 990);
    h.hold_calls = true;
    approve(&h);
    (void)said(&h);
    harness_reload(&h, &changed);
    h.hold_calls = false;
    harness_settle(&h);
    cr_assert_not_null(strstr(said(&h), "void web 4>8 by big"));
    cr_assert_eq(harness_target(&h, "web")->size, 4);
    cr_assert_str_neq(h.last_request, "");
    approve(&h);
    cr_assert_eq(harness_target(&h, "web")->size, 9);
    harness_stop(&h);
}

Test(engine_approvals, a_reload_that_leaves_the_rule_alone_does_not_matter)
{
    static struct spec changed;
    changed = big;
    changed.rules[1].up = 2;
    WITH(h, big);
    fire(&h, "Big", 990);
    harness_reload(&h, &changed);
    cr_assert_null(strstr(said(&h), "void"));
    approve(&h);
    cr_assert_eq(harness_target(&h, "web")->size, 8);
    harness_stop(&h);
}

Test(engine_approvals, a_new_object_is_another_question)
{
    WITH(h, big);
    harness_target(&h, "web")->uid = "a";
    fire(&h, "Big", 990);
    char id[AS_ULID_SIZE];
    memcpy(id, h.last_request, sizeof(id));
    harness_target(&h, "web")->uid = "b";
    tick(&h, 60);
    cr_assert_not_null(strstr(said(&h), "void web 4>8 by big"));
    cr_assert_str_neq(h.last_request, id);
    answer(&h, AS_OPERATOR_COMMAND_APPROVE, id);
    tick(&h, 60);
    cr_assert_eq(harness_target(&h, "web")->size, 4);
    approve(&h);
    cr_assert_eq(harness_target(&h, "web")->size, 8);
    harness_stop(&h);
}

Test(engine_approvals, a_size_in_another_unit_is_another_question)
{
    WITH(h, big);
    harness_target(&h, "web")->uid = "a*1Gi";
    fire(&h, "Big", 990);
    harness_target(&h, "web")->uid = "a*2Gi";
    approve(&h);
    cr_assert_eq(harness_target(&h, "web")->size, 4);
    const char *text = said(&h);
    cr_assert_not_null(strstr(text, "void web 4>8 by big; "), "%s", text);
    cr_assert_str_eq(h.last_void, "sizes are counted in another unit now");
    harness_stop(&h);
}

Test(engine_approvals, an_object_made_anew_between_the_answer_and_the_look)
{
    WITH(h, big);
    harness_target(&h, "web")->uid = "a";
    fire(&h, "Big", 990);
    harness_target(&h, "web")->uid = "b";
    approve(&h);
    cr_assert_eq(harness_target(&h, "web")->size, 4);
    cr_assert_not_null(strstr(said(&h), "void web 4>8 by big"));
    harness_stop(&h);
}

Test(engine_approvals, an_outcome_that_is_certainly_nothing_gives_the_approval_back)
{
    WITH(h, big);
    fire(&h, "Big", 990);
    harness_script(&h, (struct scale_script){.outcome = AS_REASON_CONFLICT});
    approve(&h);
    tick(&h, 10);
    const char *text = said(&h);
    cr_assert_not_null(strstr(text, "acted web 4>8 conflict"), "%s", text);
    cr_assert_not_null(strstr(text, "returned web 4>8 by big"), "%s", text);
    cr_assert_eq(harness_target(&h, "web")->size, 8);
    harness_stop(&h);
}

Test(engine_approvals, a_lost_answer_uses_it_up)
{
    WITH(h, big);
    fire(&h, "Big", 990);
    harness_script(&h, (struct scale_script){.outcome = AS_REASON_TIMEOUT, .is_ambiguous = true});
    approve(&h);
    tick(&h, 30);
    cr_assert_eq(harness_target(&h, "web")->size, 4);
    cr_assert_not_null(strstr(said(&h), "asked web 4>8 by big"));
    harness_stop(&h);
}

/* Kill -9 at each commit: while it waits, when it is approved, when its intent is committed, when
 * it is done. */
Test(engine_approvals, survives_restarts)
{
    WITH(h, big);
    fire(&h, "Big", 990);
    harness_crash(&h, 10);
    cr_assert_null(strstr(said(&h), "void"));
    h.hold_calls = true;
    approve(&h);
    cr_assert_not_null(strstr(said(&h), "approved"));
    h.hold_calls = false;
    harness_crash(&h, 10);
    tick(&h, 1);
    cr_assert_eq(harness_target(&h, "web")->size, 8);
    cr_assert_not_null(strstr(said(&h), "used web 4>8"));
    harness_crash(&h, 70);
    tick(&h, 60);
    cr_assert_eq(harness_target(&h, "web")->size, 8);
    harness_stop(&h);
}

Test(engine_approvals, an_approval_is_gone_with_the_intent_that_a_crash_left)
{
    WITH(h, big);
    fire(&h, "Big", 990);
    h.hold_calls = true;
    char id[AS_ULID_SIZE];
    memcpy(id, h.last_request, sizeof(id));
    approve(&h);
    harness_settle_to_request(&h);
    cr_assert_not_null(strstr(said(&h), "used web 4>8"));
    answer(&h, AS_OPERATOR_COMMAND_DENY, id);
    cr_assert_str_eq(h.last_message, "it was approved, and the change is under way");
    h.hold_calls = false;
    harness_crash(&h, 1);
    tick(&h, 60);
    cr_assert_eq(harness_target(&h, "web")->size, 4, "it was never sent: it is asked anew");
    cr_assert_not_null(strstr(said(&h), "asked web 4>8 by big"));
    harness_stop(&h);
}

Test(engine_approvals, neither_orders_nor_dry_runs_ask)
{
    static struct spec dry;
    dry = big;
    dry.targets[0].dry_run = true;
    WITH(h, dry);
    fire(&h, "Big", 990);
    const char *text = said(&h);
    cr_assert_not_null(strstr(text, "needs_approval (8) by big"), "%s", text);
    cr_assert_null(strstr(text, "asked"));
    harness_reload(&h, &big);
    (void)said(&h);
    harness_order(&h, (struct as_operator_command){
                          .kind = AS_OPERATOR_COMMAND_SCALE, .target = "web", .replicas = 15});
    cr_assert_eq(harness_target(&h, "web")->size, 15);
    harness_stop(&h);
}

Test(engine_approvals, a_pause_is_not_asked_about)
{
    WITH(h, big);
    harness_order(&h,
                  (struct as_operator_command){.kind = AS_OPERATOR_COMMAND_PAUSE, .target = "web"});
    fire(&h, "Big", 990);
    cr_assert_null(strstr(said(&h), "asked"));
    harness_order(
        &h, (struct as_operator_command){.kind = AS_OPERATOR_COMMAND_RESUME, .target = "web"});
    cr_assert_not_null(strstr(said(&h), "asked web 4>8"));
    harness_halt(&h, "stop");
    approve(&h);
    cr_assert_not_null(strstr(said(&h), "approve web refused"));
    harness_halt(&h, NULL);
    approve(&h);
    cr_assert_eq(harness_target(&h, "web")->size, 8);
    harness_stop(&h);
}

/* An answer from before the kill switch says nothing about the time after it. */
Test(engine_approvals, the_kill_switch_ends_an_approval_that_is_not_used)
{
    static const struct spec slow = {
        .targets = {{.name = "web", .min = 1, .max = 20, .up = 600}},
        .rules = {{.name = "big",
                   .match = {"alertname=Big"},
                   .target = "web",
                   .up = 4,
                   .approval = ASKS(3)}},
    };
    WITH(h, slow);
    fire(&h, "Big", 990);
    h.observation = AS_REASON_UNREACHABLE;
    approve(&h);
    cr_assert_not_null(strstr(said(&h), "approved web 4>8 by big"));
    harness_halt(&h, "stop");
    const char *text = said(&h);
    cr_assert_not_null(strstr(text, "void web 4>8 by big"), "%s", text);
    h.observation = AS_REASON_APPLIED;
    harness_crash(&h, 1);
    harness_halt(&h, "stop");
    tick(&h, 120);
    harness_halt(&h, NULL);
    tick(&h, 120);
    text = said(&h);
    cr_assert_eq(harness_target(&h, "web")->size, 4, "%s", text);
    cr_assert_not_null(strstr(text, "asked web 4>8 by big"), "a new approval is asked for: %s",
                       text);
    approve(&h);
    cr_assert_eq(harness_target(&h, "web")->size, 8);
    harness_stop(&h);
}

Test(engine_approvals, the_kill_switch_leaves_a_request_that_waits)
{
    WITH(h, big);
    fire(&h, "Big", 990);
    (void)said(&h);
    harness_halt(&h, "stop");
    cr_assert_null(strstr(said(&h), "void"));
    tick(&h, 60);
    harness_halt(&h, NULL);
    tick(&h, 60);
    cr_assert_null(strstr(said(&h), "asked"));
    approve(&h);
    cr_assert_eq(harness_target(&h, "web")->size, 8);
    harness_stop(&h);
}

/* On to the commit of the intent that uses the approval, which is held. */
static void approve_to_intent(struct harness *harness)
{
    harness->hold_calls = true;
    approve(harness);
    harness->hold_calls = false;
    harness->hold_commits = true;
    harness_settle(harness);
    const char *text = said(harness);
    cr_assert_not_null(strstr(text, "used web 4>8 by big"), "%s", text);
}

static void expect_revoked(struct harness *harness)
{
    harness->hold_commits = harness->hold_calls = false;
    harness_settle(harness);
    const char *text = said(harness);
    cr_assert_not_null(strstr(text, "void web 4>8 by big"), "%s", text);
    cr_assert_null(strstr(text, "returned"), "%s", text);
    harness_halt(harness, NULL);
    tick(harness, 300);
    cr_assert_eq(harness_target(harness, "web")->size, 4, "%s", said(harness));
    harness_stop(harness);
}

Test(engine_approvals, the_kill_switch_ends_an_approval_whose_action_is_not_sent)
{
    WITH(h, big);
    fire(&h, "Big", 990);
    approve_to_intent(&h);
    harness_halt(&h, "stop");
    expect_revoked(&h);
}

/* The request was sent before, and meets a conflict after the removal of the switch. */
Test(engine_approvals, the_kill_switch_ends_an_approval_whose_action_changes_nothing)
{
    WITH(h, big);
    fire(&h, "Big", 990);
    harness_script(&h, (struct scale_script){.outcome = AS_REASON_CONFLICT});
    approve_to_intent(&h);
    harness_settle_to_request(&h);
    harness_halt(&h, "stop");
    harness_halt(&h, NULL);
    expect_revoked(&h);
}

/* The rule follows a value: it may want less, or another direction, than what was asked for. */
static const struct spec load = {
    .targets = {{.name = "web", .min = 1, .max = 40, .up = 10, .down = 10}},
    .rules = {{.name = "load",
               .match = {"alertname=Load"},
               .target = "web",
               .source = {.query = "load"},
               .pass_through = true,
               .approval = ASKS(3)}},
};

static void set_load(struct harness *harness, double value)
{
    harness->queries[0] = (struct query_script){"load", {.value = value}};
}

Test(engine_approvals, a_decision_in_the_other_direction_ends_the_request)
{
    WITH(h, load);
    char id[AS_ULID_SIZE];
    set_load(&h, 12);
    fire(&h, "Load", 990);
    cr_assert_not_null(strstr(said(&h), "asked web 4>12 by load"));
    memcpy(id, h.last_request, sizeof(id));
    set_load(&h, 3);
    tick(&h, 60);
    const char *text = said(&h);
    cr_assert_not_null(strstr(text, "void web 4>12 by load"), "%s", text);
    cr_assert_eq(harness_target(&h, "web")->size, 3);
    answer(&h, AS_OPERATOR_COMMAND_APPROVE, id);
    cr_assert_str_eq(h.last_message, "it is void: a decision in the other direction came first");
    set_load(&h, 12);
    tick(&h, 300);
    cr_assert_eq(harness_target(&h, "web")->size, 3);
    cr_assert_not_null(strstr(said(&h), "not_approved (12) by load"), "asked again after an hour");
    tick(&h, 3600);
    cr_assert_not_null(strstr(said(&h), "asked web 3>12 by load"));
    harness_stop(&h);
}

/* Also if it was approved already, and waits for a lock. */
Test(engine_approvals, a_decision_in_the_other_direction_ends_an_approval)
{
    WITH(h, load);
    set_load(&h, 12);
    fire(&h, "Load", 990);
    harness_order(&h,
                  (struct as_operator_command){.kind = AS_OPERATOR_COMMAND_PAUSE, .target = "web"});
    approve(&h);
    cr_assert_not_null(strstr(said(&h), "approved web 4>12"));
    set_load(&h, 2);
    tick(&h, 60);
    harness_order(
        &h, (struct as_operator_command){.kind = AS_OPERATOR_COMMAND_RESUME, .target = "web"});
    cr_assert_not_null(strstr(said(&h), "void web 4>12 by load"));
    set_load(&h, 12);
    tick(&h, 300);
    cr_assert_eq(harness_target(&h, "web")->size, 2);
    harness_stop(&h);
}

Test(engine_approvals, the_size_is_decided_anew_when_the_answer_comes)
{
    static const struct {
        double wanted;
        int32_t size;
    } rows[] = {{12, 12}, {10, 10}, {30, 12}, {4, 4}};
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        WITH(h, load);
        set_load(&h, 12);
        fire(&h, "Load", 990);
        set_load(&h, rows[i].wanted);
        approve(&h);
        cr_expect_eq(harness_target(&h, "web")->size, rows[i].size, "%g: %d", rows[i].wanted,
                     harness_target(&h, "web")->size);
        tick(&h, 600);
        cr_expect_eq(harness_target(&h, "web")->size, rows[i].size, "later %g", rows[i].wanted);
        harness_stop(&h);
    }
}

Test(engine_approvals, an_approval_that_is_not_used_in_time_is_over)
{
    WITH(h, big);
    fire(&h, "Big", 990);
    harness_order(&h,
                  (struct as_operator_command){.kind = AS_OPERATOR_COMMAND_PAUSE, .target = "web"});
    tick(&h, 600);
    approve(&h);
    tick(&h, 899);
    cr_assert_null(strstr(said(&h), "expired"), "its time begins with the answer");
    tick(&h, 1);
    cr_assert_not_null(strstr(said(&h), "expired web 4>8 by big"));
    harness_order(
        &h, (struct as_operator_command){.kind = AS_OPERATOR_COMMAND_RESUME, .target = "web"});
    tick(&h, 60);
    cr_assert_eq(harness_target(&h, "web")->size, 4);
    harness_stop(&h);
}

/* Each request is answered; the time at which a person answers does not let another change in. */
Test(engine_approvals, no_size_is_reached_that_was_not_shown)
{
    WITH(h, load);
    int32_t shown = 4, large = 0;
    fire(&h, "Load", 990);
    for (int i = 0; i < 400; i++) {
        set_load(&h, 5 + i * 7 % 34);
        tick(&h, 97);
        const char *asked = strstr(said(&h), "asked web ");
        if (asked)
            cr_assert_eq(sscanf(asked, "asked web %*d>%d", &shown), 1);
        const int32_t size = harness_target(&h, "web")->size;
        if (i % 3 == 0)
            approve(&h);
        const int32_t after = harness_target(&h, "web")->size;
        const bool is_large = abs(after - size) > 3;
        large += is_large;
        cr_assert(!is_large || (after > size ? after <= shown : after >= shown),
                  "%d: from %d to %d, shown %d", i, size, after, shown);
    }
    cr_assert_gt(large, 3);
    harness_stop(&h);
}
