/*
 * Rules while incidents stay open: repetition without help from Alertmanager, steps, vetoes,
 * bounds, dry runs.
 */
#include <stdio.h>

#include <alertscaler/base/attr.h>

#include "engine_harness.h"

#define ONE_TARGET(...) .targets = {{.name = "web", .min = 1, .max = 20, __VA_ARGS__}}
#define SLOW            .name = "slow", .match = {"alertname=Slow"}, .target = "web"
#define IDLE            .name = "idle", .match = {"alertname=Idle"}, .target = "web"

#define WAIT_FOR(harness, seconds, text)                                                           \
    do {                                                                                           \
        tick(&(harness), (seconds)-1);                                                             \
        (void)said(&(harness));                                                                    \
        tick(&(harness), 1);                                                                       \
        cr_said(&(harness), text);                                                                 \
    } while (0)

Test(engine_rules, an_open_incident_acts_again_each_time_the_lock_expires)
{
    static const struct spec spec = {ONE_TARGET(.up = 120), .rules = {{SLOW, .up = 2}}};
    WITH(h, spec);
    fire(&h, "Slow", 990);
    (void)said(&h);
    tick(&h, 119);
    cr_said(&h, "");
    tick(&h, 1);
    cr_said(&h,
            "observe web; decided web 6>8 scaled by slow; scale web 6>8; acted web 6>8 applied");
    tick(&h, 6 * 120);
    cr_assert_eq(harness_target(&h, "web")->size, 20);
    (void)said(&h);
    tick(&h, 600);
    cr_assert(strstr(said(&h), "decided web 20 at_max by slow"));
    tick(&h, 600);
    cr_assert_not(strstr(said(&h), "decided"), "a repeated decision fills the log");
    harness_stop(&h);
}

Test(engine_rules, every_is_waited_for_beyond_the_lock)
{
    static const struct spec spec = {ONE_TARGET(.up = 60), .rules = {{SLOW, .up = 2, .every = 90}}};
    WITH(h, spec);
    fire(&h, "Slow", 990);
    WAIT_FOR(h, 60, "observe web; decided web 6 no_change by slow");
    WAIT_FOR(h, 30,
             "observe web; decided web 6>8 scaled by slow; scale web 6>8; acted web 6>8 applied");
    harness_stop(&h);
}

Test(engine_rules, the_lock_is_waited_for_beyond_every)
{
    static const struct spec spec = {ONE_TARGET(.up = 60), .rules = {{SLOW, .up = 2, .every = 10}}};
    WITH(h, spec);
    fire(&h, "Slow", 990);
    WAIT_FOR(h, 60,
             "observe web; decided web 6>8 scaled by slow; scale web 6>8; acted web 6>8 applied");
    harness_stop(&h);
}

Test(engine_rules, every_works_without_a_lock)
{
    static const struct spec spec = {ONE_TARGET(.up = 0), .rules = {{SLOW, .up = 2, .every = 10}}};
    WITH(h, spec);
    fire(&h, "Slow", 990);
    WAIT_FOR(h, 10,
             "observe web; decided web 6>8 scaled by slow; scale web 6>8; acted web 6>8 applied");
    WAIT_FOR(h, 10,
             "observe web; decided web 8>10 scaled by slow; scale web 8>10; "
             "acted web 8>10 applied");
    harness_stop(&h);
}

Test(engine_rules, max_steps_is_the_most_an_incident_gets)
{
    static const struct spec spec = {ONE_TARGET(.up = 60),
                                     .rules = {{SLOW, .up = 2, .max_steps = 2}}};
    WITH(h, spec);
    fire(&h, "Slow", 990);
    tick(&h, 3600);
    cr_assert_eq(harness_target(&h, "web")->size, 8);
    (void)said(&h);
    fire(&h, "Slow", 990);
    cr_said(&h, "said max_steps; answered");
    fire(&h, "Slow", 1700); /* another incident */
    tick(&h, 3600);
    cr_assert_eq(harness_target(&h, "web")->size, 12);
    harness_stop(&h);
}

Test(engine_rules, without_a_lock_an_incident_acts_once)
{
    static const struct spec spec = {ONE_TARGET(.up = 0), .rules = {{SLOW, .up = 2}}};
    WITH(h, spec);
    fire(&h, "Slow,pod=a", 990);
    tick(&h, 3600);
    cr_assert_eq(harness_target(&h, "web")->size, 6);
    fire(&h, "Slow,pod=b", 990);
    tick(&h, 3600);
    cr_assert_eq(harness_target(&h, "web")->size, 8);
    harness_stop(&h);
}

/* They are decided together, and the higher proposal is the answer to both. */
Test(engine_rules, without_a_lock_two_rules_that_want_up_act_once_together)
{
    static const struct spec spec = {
        ONE_TARGET(.up = 0),
        .rules = {{SLOW, .up = 2},
                  {.name = "full", .match = {"alertname=Full"}, .target = "web", .up = 1}}};
    WITH(h, spec);
    const struct test_alert alerts[] = {{.labels = "Slow", .starts = 990},
                                        {.labels = "Full", .starts = 990}};
    harness_notify(&h, "scaler", alerts, AS_ARRAY_SIZE(alerts));
    tick(&h, 3600);
    cr_assert_eq(harness_target(&h, "web")->size, 6);
    harness_stop(&h);
}

Test(engine_rules, a_late_incident_does_not_count_as_having_taken_part)
{
    static const struct spec spec = {ONE_TARGET(.up = 0),
                                     .rules = {{SLOW, .up = 2, .max_steps = 1}}};
    WITH(h, spec);
    h.hold_calls = true;
    fire(&h, "Slow,pod=a", 990);
    h.hold_calls = false;
    h.hold_commits = true;
    harness_settle(&h); /* decided, the intent is not committed */
    fire(&h, "Slow,pod=b", 990);
    h.hold_commits = false;
    harness_settle(&h);
    tick(&h, 60);
    cr_assert_eq(harness_target(&h, "web")->size, 8);
    harness_stop(&h);
}

static const struct spec up_and_down = {
    ONE_TARGET(.up = 60, .down = 300),
    .rules = {{SLOW, .up = 2, .max_steps = 1}, {IDLE, .down = 1}}};

Test(engine_rules, scale_down_waits_for_its_lock_after_either_direction)
{
    WITH(h, up_and_down);
    fire(&h, "Slow", 990);
    resolve(&h, "Slow", 990);
    (void)said(&h);
    fire(&h, "Idle", 995);
    cr_said(&h, "said queued; opened; answered; observe web; decided web 6 cooldown (5) by idle");
    WAIT_FOR(h, 300,
             "observe web; decided web 6>5 scaled by idle; scale web 6>5; acted web 6>5 applied");
    tick(&h, 60);
    fire(&h, "Idle", 995); /* a further step needs a repeat */
    WAIT_FOR(h, 240,
             "observe web; decided web 5>4 scaled by idle; scale web 5>4; "
             "acted web 5>4 applied");
    fire(&h, "Slow", 1500); /* a scale-up after a scale-down does not wait */
    cr_assert(strstr(said(&h), "acted web 4>6 applied"));
    harness_stop(&h);
}

Test(engine_rules, an_open_incident_that_wants_up_vetoes_also_when_it_is_used_up)
{
    WITH(h, up_and_down);
    fire(&h, "Slow", 990);
    tick(&h, 600);
    (void)said(&h);
    fire(&h, "Idle", 1500);
    cr_said(&h, "said queued; opened; answered; observe web; decided web 6 vetoed by slow "
                "after 9");
    tick(&h, 3600);
    cr_assert_eq(harness_target(&h, "web")->size, 6);
    (void)said(&h);
    resolve(&h, "Slow", 990);
    cr_said(&h, "said queued; closed; answered; observe web; decided web 6>5 scaled by idle "
                "after 60; scale web 6>5; acted web 6>5 applied");
    harness_stop(&h);
}

Test(engine_rules, scale_to_holds_the_size_against_others)
{
    static const struct spec spec = {ONE_TARGET(.up = 60, .down = 60),
                                     .rules = {{SLOW, .to = 8, .has_to = true}, {IDLE, .down = 1}}};
    WITH(h, spec);
    fire(&h, "Slow", 990);
    cr_assert(strstr(said(&h), "acted web 4>8 applied"));
    fire(&h, "Idle", 990);
    cr_assert(strstr(said(&h), "decided web 8 vetoed by slow"));
    harness_target(&h, "web")->size = 5;
    harness_target(&h, "web")->version++;
    tick(&h, 60);
    cr_assert(strstr(said(&h), "acted web 5>8 applied"));
    harness_stop(&h);
}

Test(engine_rules, percentages_and_bounds)
{
    static const struct spec spec = {
        ONE_TARGET(.up = 60, .down = 60),
        .rules = {{SLOW, .up_percent = 50, .at_least = 3}, {IDLE, .down_percent = 50}}};
    WITH(h, spec);
    fire(&h, "Slow", 990);
    tick(&h, 300);
    cr_assert_eq(harness_target(&h, "web")->size, 20); /* 4 7 11 17 20 */
    resolve(&h, "Slow", 990);
    for (int i = 0; i < 10; i++) {
        fire(&h, "Idle", 1300);
        tick(&h, 60);
    }
    cr_assert_eq(harness_target(&h, "web")->size, 1);
    cr_assert(strstr(said(&h), "decided web 1 at_min by idle"));
    harness_stop(&h);
}

Test(engine_rules, the_other_sides_bounds_narrow_ours)
{
    static const struct spec spec = {ONE_TARGET(.up = 60, .down = 60),
                                     .rules = {{SLOW, .up = 9}, {IDLE, .down = 9}}};
    WITH(h, spec);
    harness_target(&h, "web")->max = 7;
    harness_target(&h, "web")->min = 3;
    fire(&h, "Slow", 990);
    cr_assert_eq(harness_target(&h, "web")->size, 7);
    resolve(&h, "Slow", 990);
    fire(&h, "Idle", 990);
    tick(&h, 60);
    cr_assert_eq(harness_target(&h, "web")->size, 3);
    harness_target(&h, "web")->max = 1; /* contradicts its own minimum */
    tick(&h, 1);
    fire(&h, "Idle", 990);
    tick(&h, 59);
    cr_assert_eq(harness_target(&h, "web")->size, 1);
    harness_stop(&h);
}

Test(engine_rules, nothing_happens_while_the_last_change_is_carried_out)
{
    static const struct spec spec = {ONE_TARGET(.up = 60), .rules = {{SLOW, .up = 2}}};
    WITH(h, spec);
    harness_target(&h, "web")->in_progress = true;
    fire(&h, "Slow", 990);
    cr_assert(strstr(said(&h), "decided web 4 in_progress (6) by slow"));
    harness_target(&h, "web")->in_progress = false;
    tick(&h, 60);
    cr_assert(strstr(said(&h), "acted web 4>6 applied"));
    harness_stop(&h);
}

Test(engine_rules, a_size_of_zero_is_a_switch)
{
    static const struct spec spec = {ONE_TARGET(.up = 60), .rules = {{SLOW, .up = 2}}};
    WITH(h, spec);
    harness_target(&h, "web")->size = 0;
    fire(&h, "Slow", 990);
    cr_assert(strstr(said(&h), "decided web 0 disabled"));
    harness_stop(&h);
}

Test(engine_rules, bounds_are_enforced_without_any_incident)
{
    static const struct spec spec = {ONE_TARGET(.up = 60, .enforce_bounds = true),
                                     .rules = {{SLOW, .up = 2}}};
    WITH(h, spec);
    harness_target(&h, "web")->size = 30;
    harness_target(&h, "web")->version++;
    tick(&h, 60);
    cr_said(&h, "observe web; decided web 30>20 above_max; scale web 30>20; "
                "acted web 30>20 applied");
    harness_stop(&h);
}

Test(engine_rules, enforcing_a_bound_is_no_step_of_any_incident)
{
    static const struct spec spec = {
        .targets = {{.name = "web", .min = 3, .max = 20, .up = 60, .enforce_bounds = true}},
        .rules = {{SLOW, .up = 2, .max_steps = 1}}};
    WITH(h, spec);
    harness_target(&h, "web")->size = 2;
    fire(&h, "Slow", 990);
    cr_assert(strstr(said(&h), "decided web 2>3 below_min"));
    tick(&h, 120);
    cr_assert_eq(harness_target(&h, "web")->size, 5);
    tick(&h, 120);
    cr_assert_eq(harness_target(&h, "web")->size, 5);
    harness_stop(&h);
}

Test(engine_rules, a_named_target_is_looked_at_now_and_then_and_nothing_is_recorded)
{
    static const struct spec spec = {ONE_TARGET(.up = 60), .rules = {{SLOW, .up = 2}}};
    WITH(h, spec);
    tick(&h, 180);
    cr_said(&h, "observe web; observe web; observe web");
    harness_stop(&h);
}

Test(engine_rules, a_dry_target_does_everything_but_the_change)
{
    static const struct spec spec = {ONE_TARGET(.up = 60, .dry_run = true),
                                     .rules = {{SLOW, .up = 2}}};
    WITH(h, spec);
    fire(&h, "Slow", 990);
    cr_said(&h, "said queued; opened; answered; observe web; "
                "decided web 4 dry_run (6) by slow");
    fire(&h, "Slow,pod=b", 990);
    cr_said(&h, "said queued; opened; answered; observe web; "
                "decided web 4 cooldown (6) by slow");
    tick(&h, 60);
    cr_said(&h, "observe web; decided web 4 dry_run (6) by slow");
    cr_assert_eq(harness_target(&h, "web")->size, 4);
    harness_stop(&h);
}

Test(engine_rules, everything_may_be_dry)
{
    static const struct spec spec = {ONE_TARGET(.up = 60), .rules = {{SLOW, .up = 2}}};
    WITH(h, spec);
    h.config.dry_run = true;
    harness_reload(&h, &spec);
    (void)said(&h);
    fire(&h, "Slow", 990);
    cr_assert(strstr(said(&h), "decided web 4 dry_run (6) by slow"));
    h.config.dry_run = false; /* the dry clock holds nothing up that is real */
    harness_reload(&h, &spec);
    cr_assert(strstr(said(&h), "acted web 4>6 applied"));
    harness_stop(&h);
}

Test(engine_rules, a_dry_rule_neither_moves_nor_vetoes)
{
    static const struct spec spec = {
        ONE_TARGET(.up = 60, .down = 60),
        .rules = {{SLOW, .up = 2, .dry_run = true}, {IDLE, .down = 1}}};
    WITH(h, spec);
    fire(&h, "Slow", 990);
    cr_said(&h, "said queued; opened; answered; observe web; "
                "decided web 4 dry_run (6) by slow");
    fire(&h, "Idle", 990);
    cr_said(&h, "said queued; opened; answered; observe web; decided web 4 cooldown (6) by slow; "
                "decided web 4>3 scaled by idle; scale web 4>3; acted web 4>3 applied");
    harness_stop(&h);
}

/* The decision that an action names is the one that ordered it. */
Test(engine_rules, a_dry_decision_beside_it_is_not_the_one_that_an_action_names)
{
    static const struct spec spec = {
        ONE_TARGET(.up = 60, .down = 60),
        .rules = {{SLOW, .up = 2, .dry_run = true}, {IDLE, .down = 1}}};
    WITH(h, spec);
    const struct test_alert alerts[] = {{.labels = "Slow", .starts = 990},
                                        {.labels = "Idle", .starts = 990}};
    harness_script(&h, (struct scale_script){.outcome = AS_REASON_UNREACHABLE});
    harness_notify(&h, "scaler", alerts, AS_ARRAY_SIZE(alerts));
    cr_assert(strstr(said(&h), "acted web 4>3 unreachable"));
    tick(&h, 2); /* the live decision is the same, the dry one is another */
    cr_said(&h, "observe web; decided web 4 cooldown (6) by slow; scale web 4>3; "
                "acted web 4>3 applied");
    cr_assert_eq(h.misnamed_decisions, 0);
    harness_stop(&h);
}

Test(engine_rules, equal_decisions_are_counted_and_a_notification_is_always_answered)
{
    static const struct spec spec = {ONE_TARGET(.up = 60), .rules = {{SLOW, .up = 2}}};
    WITH(h, spec);
    harness_target(&h, "web")->size = 20;
    fire(&h, "Slow", 990);
    tick(&h, 300);
    (void)said(&h);
    fire(&h, "Slow,pod=b", 990);
    cr_said(&h, "said queued; opened; answered; observe web; "
                "decided web 20 at_max by slow after 5");
    harness_stop(&h);
}

Test(engine_rules, a_decision_names_at_most_a_page_of_notifications_and_counts_all)
{
    static const struct spec spec = {
        ONE_TARGET(.up = 60),
        .rules = {{SLOW, .up = 2},
                  {.name = "also", .match = {"alertname=Slow"}, .target = "web", .up = 1}}};
    WITH(h, spec);
    h.hold_calls = true;
    for (int i = 0; i < 40; i++) {
        char labels[32];
        (void)snprintf(labels, sizeof(labels), "Slow,pod=%d", i);
        fire(&h, labels, 990);
    }
    h.hold_calls = false;
    harness_settle(&h);
    cr_assert_eq(h.last_notification_total, 40);
    cr_assert_eq(h.last_notification_count, AS_RECORD_LIST_MAX);
    harness_stop(&h);
}

#define SHOP_RULES(step)                                                                           \
    .rules = {{SLOW, .up = 2},                                                                     \
              {.name = "full", .match = {"alertname=Full"}, .target = "db", .up = (step)}}

/* A group that answers in 1.5 s, and one reload a second: no observation of it ever ended. */
Test(engine_rules, an_observation_outlasts_new_rules_of_other_targets)
{
    static const struct spec one = {.targets = {{.name = "web", .min = 1, .max = 20, .up = 60},
                                                {.name = "db", .min = 1, .max = 20}},
                                    SHOP_RULES(1)};
    static const struct spec other = {.targets = {{.name = "web", .min = 1, .max = 20, .up = 60},
                                                  {.name = "db", .min = 1, .max = 30}},
                                      SHOP_RULES(2)};
    WITH(h, one);
    h.hold_calls = true;
    fire(&h, "Slow", 990);
    (void)said(&h);
    for (int i = 0; i < 5; i++) {
        harness_reload(&h, i % 2 == 0 ? &other : &one);
        tick(&h, 1);
        cr_assert_not(strstr(said(&h), "observe web"), "it goes on");
    }
    h.hold_calls = false;
    harness_settle(&h);
    cr_assert(strstr(said(&h), "decided web 4>6 scaled by slow; scale web 4>6; "
                               "acted web 4>6 applied"));
    cr_assert_eq(harness_target(&h, "web")->size, 6);
    harness_stop(&h);
}

Test(engine_rules, a_target_with_another_entry_is_observed_anew)
{
    static const struct spec one = {ONE_TARGET(.up = 60), .rules = {{SLOW, .up = 2}}};
    static const struct spec other = {ONE_TARGET(.up = 60, .dry_run = true),
                                      .rules = {{SLOW, .up = 2}}};
    WITH(h, one);
    h.hold_calls = true;
    fire(&h, "Slow", 990);
    (void)said(&h);
    harness_reload(&h, &other);
    h.hold_calls = false;
    harness_settle(&h);
    cr_said(&h, "reloaded; observe web; decided web 4 dry_run (6) by slow");
    harness_stop(&h);
}

/* The alert goes on, and the rule that it triggers has another name again and again. */
Test(engine_rules, what_former_rules_have_done_is_limited)
{
    char name[16] = "up-0000";
    const struct spec spec = {
        .targets = {{.name = "web", .min = 1, .max = 9999}},
        .rules = {{.name = name, .match = {"alertname=Slow"}, .target = "web", .up = 1}}};
    size_t bytes = 0;
    WITH(h, spec);
    fire(&h, "Slow", 990);
    for (int i = 1; i <= 1200; i++) {
        (void)snprintf(name, sizeof(name), "up-%04d", i);
        harness_reload(&h, &spec);
        (void)said(&h);
        if (i == 1100)
            bytes = as_engine_get_counts(h.engine).incident_bytes;
    }
    cr_expect_eq(harness_target(&h, "web")->size, 4 + 1201, "each rule has acted");
    cr_expect_eq(as_engine_get_counts(h.engine).incident_bytes, bytes);
    harness_stop(&h);
}
