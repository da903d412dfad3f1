/*
 * Actions: intents before them, outcomes after them, failures, and requests whose outcome is
 * unknown.
 */
#include <stdio.h>

#include <alertscaler/base/attr.h>

#include "engine_harness.h"

static const struct spec slow = {
    .targets = {{.name = "web", .min = 1, .max = 20, .up = 60, .down = 60}},
    .rules = {{.name = "slow", .match = {"alertname=Slow"}, .target = "web", .up = 2},
              {.name = "worse", .match = {"alertname=Worse"}, .target = "web", .up = 5}},
};

/* Somebody else, or a status update. */
static void touch(struct harness *harness, int32_t size)
{
    struct virtual_target *target = harness_target(harness, "web");
    target->version++;
    if (size >= 0)
        target->size = size;
}

Test(engine_actions, the_size_is_set_only_after_its_intent_is_committed)
{
    WITH(h, slow);
    h.hold_calls = true;
    fire(&h, "Slow", 990);
    h.hold_commits = true;
    h.hold_calls = false;
    (void)said(&h);
    harness_settle(&h);
    cr_said(&h, "decided web 4>6 scaled by slow");
    cr_assert_eq(as_store_memory_get_count(h.memory, AS_STORE_INTENT), 0);
    h.hold_commits = false;
    h.hold_calls = true;
    harness_settle(&h);
    cr_said(&h, "scale web 4>6");
    cr_assert_eq(as_store_memory_get_count(h.memory, AS_STORE_INTENT), 1);
    h.hold_calls = false;
    harness_settle(&h);
    cr_said(&h, "acted web 4>6 applied");
    cr_assert_eq(as_store_memory_get_count(h.memory, AS_STORE_INTENT), 0);
    cr_assert_eq(as_store_memory_get_count(h.memory, AS_STORE_TARGET), 1);
    harness_stop(&h);
}

Test(engine_actions, a_commit_slower_than_the_lock_delays_nothing_further)
{
    WITH(h, slow);
    h.hold_calls = true;
    fire(&h, "Slow", 990);
    h.hold_calls = false;
    harness_settle(&h);
    tick(&h, 60); /* 6>8 */
    h.hold_commits = true;
    tick(&h, 60); /* the intent of 8>10 waits */
    h.hold_commits = false;
    h.hold_calls = true;
    harness_settle(&h); /* sent */
    h.hold_commits = true;
    h.hold_calls = false;
    harness_settle(&h); /* done, its outcome waits for longer than its lock */
    tick(&h, 70);
    (void)said(&h);
    h.hold_commits = false;
    harness_settle(&h);
    cr_said(&h, "observe web; decided web 10>12 scaled by slow; scale web 10>12; "
                "acted web 10>12 applied");
    harness_stop(&h);
}

Test(engine_actions, a_conflict_is_observed_and_decided_again_at_once)
{
    WITH(h, slow);
    h.hold_calls = true;
    fire(&h, "Slow", 990);
    h.hold_calls = false;
    h.hold_commits = true;
    harness_settle(&h);
    touch(&h, 5);
    (void)said(&h);
    h.hold_commits = false;
    harness_settle(&h);
    cr_said(&h, "scale web 4>6; acted web 4>6 conflict; observe web; "
                "decided web 5>7 scaled by slow; scale web 5>7; acted web 5>7 applied");
    harness_stop(&h);
}

Test(engine_actions, endless_conflicts_slow_down)
{
    WITH(h, slow);
    for (size_t i = 0; i < AS_ARRAY_SIZE(h.scripts); i++)
        harness_script(&h, (struct scale_script){.outcome = AS_REASON_CONFLICT});
    fire(&h, "Slow", 990);
    cr_assert_eq(count(said(&h), "conflict"), 4);
    tick(&h, 30);
    cr_assert(strstr(said(&h), "applied"));
    harness_stop(&h);
}

Test(engine_actions, throttled_waits_as_long_as_it_is_told)
{
    WITH(h, slow);
    harness_script(&h, (struct scale_script){.outcome = AS_REASON_THROTTLED,
                                             .retry_after_us = 30 * AS_US_PER_S});
    fire(&h, "Slow", 990);
    cr_assert(strstr(said(&h), "acted web 4>6 throttled"));
    fire(&h, "Slow,pod=b", 990); /* more alerts do not make it faster */
    tick(&h, 29);
    cr_said(&h, "said queued; opened; answered");
    tick(&h, 1);
    cr_said(&h, "observe web; decided web 4>6 scaled by slow; scale web 4>6; "
                "acted web 4>6 applied");
    h.observation = AS_REASON_THROTTLED;
    h.observation_retry_after_us = 24 * 3600 * AS_US_PER_S; /* at most ten minutes of it */
    tick(&h, 60);
    cr_said(&h, "observe web; failed web throttled");
    h.observation = AS_REASON_APPLIED;
    tick(&h, 600);
    cr_assert(strstr(said(&h), "applied"));
    harness_stop(&h);
}

static const struct {
    enum as_reason outcome;
    unsigned most; /* attempts in an hour: waits grow to a minute */
} failures[] = {
    {AS_REASON_FORBIDDEN, 130},   {AS_REASON_TARGET_NOT_FOUND, 130}, {AS_REASON_REJECTED, 130},
    {AS_REASON_UNREACHABLE, 135}, {AS_REASON_TIMEOUT, 135},          {AS_REASON_THROTTLED, 135},
};

Test(engine_actions, a_target_that_cannot_be_observed_is_asked_less_and_less)
{
    for (size_t i = 0; i < AS_ARRAY_SIZE(failures); i++) {
        WITH(h, slow);
        h.observation = failures[i].outcome;
        fire(&h, "Slow", 990);
        tick(&h, 3600);
        const char *text = said(&h);
        cr_assert_eq(count(text, "failed"), 1, "recorded once: %s", text);
        cr_assert_leq(count(text, "observe"), failures[i].most, "%s",
                      as_reason_get_word(failures[i].outcome));
        cr_assert_geq(count(text, "observe"), 55);
        h.observation = AS_REASON_APPLIED;
        tick(&h, 60);
        cr_assert(strstr(said(&h), "decided web 4>6 scaled by slow"));
        harness_stop(&h);
    }
}

Test(engine_actions, a_target_that_cannot_be_scaled_is_asked_less_and_less)
{
    for (size_t i = 0; i < AS_ARRAY_SIZE(failures); i++) {
        WITH(h, slow);
        h.always = (struct scale_script){.outcome = failures[i].outcome};
        fire(&h, "Slow", 990);
        tick(&h, 3600);
        const char *text = said(&h);
        cr_assert_leq(count(text, "scale web"), failures[i].most, "%u %s", count(text, "scale web"),
                      as_reason_get_word(failures[i].outcome));
        cr_assert_geq(count(text, "scale web"), 55);
        cr_assert_eq(count(text, "cooldown"), 0, "a failure starts no lock");
        harness_stop(&h);
    }
}

Test(engine_actions, a_notification_during_an_outage_gets_a_record_then_and_a_decision_later)
{
    WITH(h, slow);
    harness_target(&h, "web")->size = 20;
    fire(&h, "Slow", 990);
    h.observation = AS_REASON_UNREACHABLE;
    tick(&h, 300);
    (void)said(&h);
    fire(&h, "Slow,pod=b", 1200);
    tick(&h, 60);
    cr_assert(strstr(said(&h), "failed web unreachable"));
    tick(&h, 60);
    cr_assert_not(strstr(said(&h), "failed"), "once a notification");
    h.observation = AS_REASON_APPLIED;
    tick(&h, 60);
    cr_assert(strstr(said(&h), "decided web 20 at_max by slow"), "the same as before, but asked");
    cr_assert_eq(h.last_notification_total, 1);
    harness_stop(&h);
}

Test(engine_actions, a_request_whose_answer_was_lost_is_found_to_be_done)
{
    WITH(h, slow);
    harness_script(&h, (struct scale_script){
                           .outcome = AS_REASON_TIMEOUT, .is_ambiguous = true, .is_done = true});
    fire(&h, "Slow", 990);
    (void)said(&h);
    tick(&h, 1);
    cr_said(&h, "observe web; acted web 4>6 applied late");
    cr_assert_eq(as_store_memory_get_count(h.memory, AS_STORE_INTENT), 0);
    tick(&h, 59);
    cr_said(&h, "");
    tick(&h, 1); /* the lock runs from when it was found */
    cr_assert_eq(harness_target(&h, "web")->size, 8);
    harness_stop(&h);
}

Test(engine_actions, a_request_whose_answer_was_lost_is_sent_again_where_it_was_not_done)
{
    WITH(h, slow);
    harness_script(&h, (struct scale_script){.outcome = AS_REASON_TIMEOUT, .is_ambiguous = true});
    fire(&h, "Slow", 990);
    (void)said(&h);
    tick(&h, 1);
    cr_said(&h, "observe web; scale web 4>6; acted web 4>6 applied");
    cr_assert_eq(as_store_memory_get_count(h.memory, AS_STORE_INTENT), 0);
    harness_stop(&h);
}

Test(engine_actions, timeout_then_conflict_then_found_to_be_done)
{
    WITH(h, slow);
    harness_script(&h, (struct scale_script){.outcome = AS_REASON_TIMEOUT, .is_ambiguous = true});
    fire(&h, "Slow", 990);
    (void)said(&h);
    h.hold_calls = true;
    tick(&h, 1); /* observed: not done yet */
    h.hold_calls = false;
    h.hold_commits = true;
    harness_settle(&h); /* decided again */
    touch(&h, 6);       /* now the first request is carried out */
    h.hold_commits = false;
    harness_settle(&h);
    cr_said(&h, "observe web; scale web 4>6; acted web 4>6 conflict; observe web; "
                "acted web 4>6 applied late");
    tick(&h, 59);
    cr_said(&h, "");
    harness_stop(&h);
}

/* Of two requests for different sizes the first could still win unseen: its lock would not be
 * known. */
Test(engine_actions, while_a_request_may_still_be_done_no_other_size_is_asked_for)
{
    WITH(h, slow);
    harness_script(&h, (struct scale_script){.outcome = AS_REASON_TIMEOUT, .is_ambiguous = true});
    fire(&h, "Slow", 990);
    (void)said(&h);
    fire(&h, "Worse", 990);
    tick(&h, 1);
    cr_said(&h, "said queued; opened; answered; observe web; "
                "decided web 4 in_progress (9) by worse");
    cr_expect_eq(h.last_in_progress_by, AS_IN_PROGRESS_IN_DOUBT);
    touch(&h, 6); /* and so it was */
    tick(&h, 60);
    cr_said(&h, "observe web; acted web 4>6 applied late");
    tick(&h, 60);
    cr_assert_eq(harness_target(&h, "web")->size, 11);
    harness_stop(&h);
}

Test(engine_actions, a_request_conditional_on_what_is_gone_cannot_be_done_any_more)
{
    WITH(h, slow);
    harness_script(&h, (struct scale_script){.outcome = AS_REASON_TIMEOUT, .is_ambiguous = true});
    fire(&h, "Slow", 990);
    fire(&h, "Worse", 990);
    touch(&h, -1);
    (void)said(&h);
    tick(&h, 1);
    cr_said(&h, "observe web; decided web 4>9 scaled by worse; scale web 4>9; "
                "acted web 4>9 applied");
    harness_stop(&h);
}

static void show(struct harness *harness, int32_t size, unsigned version)
{
    struct virtual_target *target = harness_target(harness, "web");
    target->size = size;
    target->version = version;
}

/* After a restart or a fail-over, an API server may lack the last changes for a while. */
Test(engine_actions, an_older_size_does_not_say_that_a_request_has_lost)
{
    WITH(h, slow);
    show(&h, 4, 12);
    harness_script(&h, (struct scale_script){
                           .outcome = AS_REASON_TIMEOUT, .is_ambiguous = true, .is_done = true});
    fire(&h, "Slow", 990);
    (void)said(&h);
    show(&h, 3, 9);
    tick(&h, 1);
    cr_said(&h, "observe web; decided web 3 in_progress (5) by slow");
    show(&h, 6, 13);
    tick(&h, 10);
    cr_said(&h, "observe web; acted web 4>6 applied late");
    tick(&h, 50);
    cr_said(&h, "");
    harness_stop(&h);
}

Test(engine_actions, after_a_while_a_request_is_given_up)
{
    WITH(h, slow);
    harness_script(&h, (struct scale_script){.outcome = AS_REASON_TIMEOUT, .is_ambiguous = true});
    harness_target(&h, "web")->has_no_version = true;
    fire(&h, "Slow", 990);
    resolve(&h, "Slow", 990);
    cr_assert_eq(as_store_memory_get_count(h.memory, AS_STORE_INTENT), 1);
    tick(&h, 180);
    cr_assert_eq(as_store_memory_get_count(h.memory, AS_STORE_INTENT), 0);
    (void)said(&h);
    tick(&h, 60);
    cr_said(&h, "observe web");
    harness_stop(&h);
}

static const struct spec templated = {
    .targets = {{.name = "any",
                 .address = "{{ .Labels.app }}",
                 .allow = "*",
                 .min = 1,
                 .up = 60,
                 .down = 60}},
    .rules = {{.name = "slow", .match = {"alertname=Slow"}, .target = "any", .up = 2}},
};

Test(engine_actions, a_target_that_vanished_with_an_open_question_is_forgotten)
{
    WITH(h, templated);
    harness_script(&h, (struct scale_script){.outcome = AS_REASON_TIMEOUT, .is_ambiguous = true});
    fire(&h, "Slow,app=web", 990);
    resolve(&h, "Slow,app=web", 990);
    h.observation = AS_REASON_TARGET_NOT_FOUND;
    tick(&h, 300);
    cr_assert_eq(as_store_memory_get_count(h.memory, AS_STORE_INTENT), 0);
    tick(&h, 25 * 3600); /* its lock is kept for a day */
    cr_assert_eq(as_engine_get_counts(h.engine).targets, 0);
    harness_stop(&h);
}

Test(engine_actions, an_old_failure_delays_no_later_incident)
{
    WITH(h, templated);
    fire(&h, "Slow,app=web", 990);
    h.observation = AS_REASON_UNREACHABLE;
    tick(&h, 61);
    resolve(&h, "Slow,app=web", 990);
    h.observation = AS_REASON_APPLIED;
    tick(&h, 600); /* kept for its locks alone */
    (void)said(&h);
    fire(&h, "Slow,app=web", 1600);
    cr_assert(strstr(said(&h), "acted web 6>8 applied"));
    harness_stop(&h);
}

/* Ticks until the target, which fails, has just been looked at, and waits for long. */
static void wait_for_a_look(struct harness *harness)
{
    tick(harness, 300);
    do {
        (void)said(harness);
        tick(harness, 1);
    } while (!strstr(said(harness), "observe web"));
}

Test(engine_actions, a_new_incident_looks_at_once_for_what_was_not_found)
{
    WITH(h, slow);
    h.observation = AS_REASON_TARGET_NOT_FOUND;
    wait_for_a_look(&h);
    tick(&h, 5);
    h.observation = AS_REASON_APPLIED; /* it is created, and then there is an alert for it */
    (void)said(&h);
    fire(&h, "Slow", 990);
    cr_said(&h, "said queued; opened; answered; observe web; decided web 4>6 scaled by slow; "
                "scale web 4>6; acted web 4>6 applied");
    harness_stop(&h);
}

Test(engine_actions, a_new_incident_right_after_a_look_waits_five_seconds)
{
    WITH(h, slow);
    h.observation = AS_REASON_TARGET_NOT_FOUND;
    wait_for_a_look(&h);
    h.observation = AS_REASON_APPLIED;
    tick(&h, 1);
    fire(&h, "Slow", 990);
    cr_said(&h, "said queued; opened; answered");
    tick(&h, 3);
    cr_said(&h, "");
    tick(&h, 1);
    cr_assert(strstr(said(&h), "acted web 4>6 applied"));
    harness_stop(&h);
}

Test(engine_actions, a_storm_of_incidents_for_what_is_not_found_looks_every_five_seconds)
{
    WITH(h, slow);
    h.observation = AS_REASON_TARGET_NOT_FOUND;
    wait_for_a_look(&h);
    (void)said(&h);
    for (int i = 0; i < 300; i++) {
        char labels[32];
        (void)snprintf(labels, sizeof(labels), "Slow,pod=%d", i);
        fire(&h, labels, 990);
        fire(&h, "Slow,pod=0", 990); /* a repeat */
        tick(&h, 1);
    }
    const unsigned looks = count(said(&h), "observe web");
    cr_assert(looks >= 50 && looks <= 60, "%u", looks);
    for (int i = 0; i < 300; i++) { /* repeats alone */
        fire(&h, "Slow,pod=0", 990);
        tick(&h, 1);
    }
    cr_assert_leq(count(said(&h), "observe web"), 10);
    harness_stop(&h);
}

Test(engine_actions, a_new_incident_hastens_no_other_failure)
{
    for (size_t i = 0; i < AS_ARRAY_SIZE(failures); i++) {
        if (failures[i].outcome == AS_REASON_TARGET_NOT_FOUND)
            continue;
        WITH(h, slow);
        h.observation = failures[i].outcome;
        wait_for_a_look(&h);
        tick(&h, 6);
        (void)said(&h);
        fire(&h, "Slow", 990);
        cr_said(&h, "said queued; opened; answered");
        tick(&h, 5);
        cr_said(&h, "");
        harness_stop(&h);
    }
}

Test(engine_actions, after_stop_nothing_is_begun_and_what_is_under_way_is_finished)
{
    WITH(h, slow);
    h.hold_calls = true;
    fire(&h, "Slow", 990);
    harness_send_stop(&h);
    h.hold_calls = false;
    (void)said(&h);
    harness_settle(&h);
    cr_said(&h, "");
    cr_assert(as_engine_is_idle(h.engine));
    fire(&h, "Slow,pod=b", 990); /* still made durable */
    cr_said(&h, "said queued; opened; answered");
    tick(&h, 3600);
    cr_said(&h, "");
    harness_stop(&h);
}

Test(engine_actions, stop_waits_for_the_outcome)
{
    WITH(h, slow);
    h.hold_calls = true;
    fire(&h, "Slow", 990);
    h.hold_calls = false;
    h.hold_commits = true;
    harness_settle(&h);
    h.hold_commits = false;
    h.hold_calls = true;
    harness_settle(&h); /* sent */
    harness_send_stop(&h);
    cr_assert_not(as_engine_is_idle(h.engine));
    h.hold_calls = false;
    harness_settle(&h);
    cr_assert(strstr(said(&h), "acted web 4>6 applied"));
    cr_assert(as_engine_is_idle(h.engine));
    harness_stop(&h);
}

/* Done, but nobody ever heard of it: when the target matters again, its lock is still known. */
Test(engine_actions, a_request_that_is_given_up_leaves_its_lock)
{
    static const struct spec spec = {
        .targets = {{.name = "web",
                     .address = "web-{{ .Labels.app }}",
                     .allow = "web-*",
                     .min = 1,
                     .max = 20,
                     .up = 600,
                     .down = 600}},
        .rules = {{.name = "slow",
                   .match = {"alertname=Slow"},
                   .target = "web",
                   .max_steps = 5,
                   .up = 2}},
    };
    WITH(h, spec);
    harness_script(&h, (struct scale_script){
                           .outcome = AS_REASON_TIMEOUT, .is_ambiguous = true, .is_done = true});
    h.observation = AS_REASON_APPLIED;
    h.hold_calls = true;
    fire(&h, "Slow,app=a", 990);
    h.hold_calls = false;
    harness_settle(&h);
    h.observation = AS_REASON_UNREACHABLE; /* from now on */
    resolve(&h, "Slow,app=a", 990);
    tick(&h, 300);
    cr_assert_eq(as_store_memory_get_count(h.memory, AS_STORE_INTENT), 0, "it was given up");
    h.observation = AS_REASON_APPLIED;
    (void)said(&h);
    fire(&h, "Slow,app=a", 1200);
    cr_said(&h, "said queued; opened; answered; observe web-a; "
                "decided web-a 6 cooldown (8) by slow");
    harness_stop(&h);
}

/* "Two more" twice is four more: while one may be under way, not even the same is asked for. */
Test(engine_actions, a_change_by_so_many_is_not_asked_for_again_while_it_is_in_question)
{
    static const struct spec spec = {
        .targets = {{.name = "pool", .is_group = true, .min = 1, .max = 20, .up = 60, .down = 60}},
        .rules = {{.name = "slow", .match = {"alertname=Slow"}, .target = "pool", .up = 2}},
    };
    WITH(h, spec);
    harness_target(&h, "pool")->is_relative = true;
    harness_script(&h, (struct scale_script){.outcome = AS_REASON_TIMEOUT, .is_ambiguous = true});
    fire(&h, "Slow", 990);
    (void)said(&h);
    tick(&h, 80);
    cr_expect_null(strstr(said(&h), "scale pool 4>6"));
    harness_order(&h, (struct as_operator_command){
                          .kind = AS_OPERATOR_COMMAND_SCALE, .target = "pool", .replicas = 6});
    cr_expect_null(strstr(said(&h), "scale pool 4>6"), "nor by hand");
    tick(&h, 60); /* it did not come about */
    cr_expect_not_null(strstr(said(&h), "scale pool 4>6"));
    harness_stop(&h);
}

/* A cache shows the size of before the request, under yet another version: that says nothing of it.
 */
Test(engine_actions, a_node_group_that_looks_older_may_still_have_been_changed)
{
    static const struct spec spec = {
        .targets = {{.name = "pool", .is_group = true, .min = 1, .max = 20, .up = 60, .down = 60}},
        .rules = {{.name = "slow", .match = {"alertname=Slow"}, .target = "pool", .up = 2},
                  {.name = "worse", .match = {"alertname=Worse"}, .target = "pool", .up = 5}},
    };
    WITH(h, spec);
    harness_script(&h, (struct scale_script){.outcome = AS_REASON_TIMEOUT, .is_ambiguous = true});
    fire(&h, "Slow", 990);
    fire(&h, "Worse", 990);
    (void)said(&h);
    harness_target(&h, "pool")->version--;
    tick(&h, 1);
    cr_said(&h, "observe pool; decided pool 4 in_progress (9) by worse");
    harness_target(&h, "pool")->version += 2;
    harness_target(&h, "pool")->size = 6; /* it comes to light */
    tick(&h, 60);
    cr_assert(strstr(said(&h), "acted pool 4>6 applied late"));
    harness_stop(&h);
}

/* ---- accepted, and failed afterwards ---- */

static const struct spec once = {
    .targets = {{.name = "pool", .is_group = true, .min = 1, .max = 20, .up = 180, .down = 300}},
    .rules =
        {{.name = "busy", .match = {"alertname=Busy"}, .target = "pool", .up = 1, .max_steps = 1},
         {.name = "more", .match = {"alertname=More"}, .target = "pool", .up = 1},
         {.name = "idle", .match = {"alertname=Idle"}, .target = "pool", .down = 1}},
};

static const enum as_reason ends[] = {
    AS_REASON_UNREACHABLE, AS_REASON_CONFLICT,  AS_REASON_REJECTED,        AS_REASON_FORBIDDEN,
    AS_REASON_TIMEOUT,     AS_REASON_THROTTLED, AS_REASON_TARGET_NOT_FOUND};

Test(engine_actions, what_was_accepted_is_a_step_of_a_rule_that_acts_once)
{
    for (size_t i = 0; i < AS_ARRAY_SIZE(ends); i++) {
        WITH(h, once);
        harness_target(&h, "pool")->names_instances = true;
        harness_script(&h, (struct scale_script){ends[i], .is_accepted = true, .is_done = true});
        fire(&h, "Busy", 990);
        cr_expect_not_null(strstr(said(&h), "acted pool 4>5 applied"), "end %zu", i);
        tick(&h, 3600);
        cr_expect_eq(harness_target(&h, "pool")->size, 5, "end %zu: it acted again", i);
        harness_stop(&h);
    }
}

/* Also where the size has not changed in the end. */
Test(engine_actions, what_was_accepted_starts_the_lock)
{
    for (size_t i = 0; i < 2 * AS_ARRAY_SIZE(ends); i++) {
        WITH(h, once);
        harness_target(&h, "pool")->names_instances = true;
        harness_script(
            &h, (struct scale_script){ends[i / 2], .is_accepted = true, .is_done = i % 2 == 0});
        fire(&h, "More", 990);
        (void)said(&h);
        tick(&h, 178);
        cr_expect_eq(count(said(&h), "scale pool"), 0, "end %zu: inside of the lock", i);
        tick(&h, 20);
        cr_expect_eq(count(said(&h), "scale pool"), 1, "end %zu: the lock is over", i);
        harness_stop(&h);
    }
}

Test(engine_actions, a_removal_that_was_accepted_in_vain_starts_the_lock_too)
{
    WITH(h, once);
    harness_script(
        &h, (struct scale_script){AS_REASON_UNREACHABLE, .is_accepted = true, .is_in_vain = true});
    fire(&h, "Idle", 990);
    cr_expect_not_null(strstr(said(&h), "acted pool 4>4 applied"));
    tick(&h, 298);
    cr_expect_eq(count(said(&h), "scale pool"), 0, "inside of the lock");
    tick(&h, 10);
    cr_expect_eq(count(said(&h), "scale pool"), 0, "a further step down needs news");
    fire(&h, "Idle", 990);
    cr_expect_eq(count(said(&h), "scale pool 4>3"), 1);
    harness_stop(&h);
}

Test(engine_actions, a_crash_forgets_no_step_that_was_accepted)
{
    WITH(h, once);
    harness_script(
        &h, (struct scale_script){AS_REASON_UNREACHABLE, .is_accepted = true, .is_done = true});
    fire(&h, "Busy", 990);
    harness_crash(&h, 10);
    tick(&h, 3600);
    cr_expect_eq(harness_target(&h, "pool")->size, 5);
    harness_stop(&h);
}
