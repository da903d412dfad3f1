/*
 * What survives a crash at any moment, a reboot, and new rules.
 */
#include <alertscaler/base/attr.h>

#include "engine_harness.h"

static const struct spec slow = {
    .targets = {{.name = "web", .min = 1, .max = 20, .up = 60, .down = 60}},
    .rules = {{.name = "slow", .match = {"alertname=Slow"}, .target = "web", .up = 2}},
};
static const struct spec once = {
    .targets = {{.name = "web", .min = 1, .max = 20}},
    .rules =
        {{.name = "slow", .match = {"alertname=Slow"}, .target = "web", .up = 2, .max_steps = 1}},
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

/* The alert has come, the intent is committed, the request is on its way. */
static void go_until_sent(struct harness *harness, const char *labels)
{
    harness->hold_calls = true;
    fire(harness, labels, 990);
    harness->hold_calls = false;
    harness->hold_commits = true;
    harness_settle(harness);
    harness->hold_commits = false;
    harness->hold_calls = true;
    harness_settle(harness);
    cr_assert_eq(harness->call_count, 1);
    (void)said(harness);
}

Test(engine_restart, locks_and_incidents_survive)
{
    WITH(h, slow);
    fire(&h, "Slow", 990);
    tick(&h, 20);
    (void)said(&h);
    harness_crash(&h, 10);
    cr_said(&h, "restarted; observe web; decided web 6 cooldown (8) by slow");
    tick(&h, 29);
    cr_said(&h, "");
    tick(&h, 1);
    cr_said(&h,
            "observe web; decided web 6>8 scaled by slow; scale web 6>8; acted web 6>8 applied");
    harness_stop(&h);
}

Test(engine_restart, a_jump_of_the_wall_clock_changes_no_lock)
{
    static const int64_t jumps[] = {-7 * 86400, 7 * 86400};
    for (size_t i = 0; i < AS_ARRAY_SIZE(jumps); i++) {
        WITH(h, slow);
        fire(&h, "Slow", 990);
        tick(&h, 30);
        h.wall.us += jumps[i] * AS_US_PER_S;
        fire(&h, "Slow,pod=b", 990);
        harness_crash(&h, 0);
        tick(&h, 29);
        cr_assert_eq(harness_target(&h, "web")->size, 6);
        tick(&h, 1);
        cr_assert_eq(harness_target(&h, "web")->size, 8);
        harness_stop(&h);
    }
}

Test(engine_restart, after_a_reboot_the_wall_clock_tells_the_age_of_a_lock)
{
    WITH(h, slow);
    fire(&h, "Slow", 990);
    (void)said(&h);
    h.boot = "boot-2";
    h.mono.us = 3 * AS_US_PER_S; /* starts anew */
    h.wall.us += 30 * AS_US_PER_S;
    harness_crash(&h, 0);
    cr_said(&h, "restarted; observe web; decided web 6 cooldown (8) by slow");
    tick(&h, 29);
    cr_assert_eq(harness_target(&h, "web")->size, 6);
    tick(&h, 1);
    cr_assert_eq(harness_target(&h, "web")->size, 8);
    harness_stop(&h);
}

Test(engine_restart, what_was_not_committed_never_happened)
{
    WITH(h, slow);
    h.hold_commits = true;
    fire(&h, "Slow", 990);
    harness_crash(&h, 1);
    h.hold_commits = false;
    harness_settle(&h);
    cr_said(&h, "said queued; opened; restarted; observe web");
    fire(&h, "Slow", 990); /* unanswered, Alertmanager sends it again */
    cr_assert(strstr(said(&h), "acted web 4>6 applied"));
    harness_stop(&h);
}

Test(engine_restart, an_intent_at_its_size_is_closed_as_applied_and_locks)
{
    WITH(h, slow);
    go_until_sent(&h, "Slow");
    harness_target(&h, "web")->size = 6;
    harness_target(&h, "web")->version++;
    h.hold_calls = false;
    harness_crash(&h, 5);
    cr_said(&h, "restarted; observe web; acted web 4>6 applied late");
    cr_assert_eq(as_store_memory_get_count(h.memory, AS_STORE_INTENT), 0);
    harness_crash(&h, 5);
    cr_said(&h, "restarted; observe web; decided web 6 cooldown (8) by slow");
    harness_stop(&h);
}

Test(engine_restart, an_intent_elsewhere_is_decided_anew)
{
    WITH(h, slow);
    go_until_sent(&h, "Slow");
    harness_target(&h, "web")->size = 3;
    harness_target(&h, "web")->version++;
    h.hold_calls = false;
    harness_crash(&h, 5);
    cr_said(&h, "restarted; observe web; acted web 4>6 superseded late; "
                "decided web 3>5 scaled by slow; scale web 3>5; acted web 3>5 applied");
    cr_assert_eq(as_store_memory_get_count(h.memory, AS_STORE_INTENT), 0);
    harness_stop(&h);
}

Test(engine_restart, a_superseded_intent_is_recorded_once_however_often_it_crashes)
{
    WITH(h, slow);
    go_until_sent(&h, "Slow");
    resolve(&h, "Slow", 990);
    h.hold_calls = false;
    (void)said(&h);
    harness_crash(&h, 5);
    cr_said(&h, "restarted; observe web; acted web 4>6 superseded late");
    harness_crash(&h, 5);
    cr_said(&h, "restarted; observe web");
    harness_target(&h, "web")->size = 6; /* it was on its way all the time */
    harness_target(&h, "web")->version++;
    harness_crash(&h, 5);
    cr_said(&h, "restarted; observe web; acted web 4>6 applied late; "
                "effect web 4>6 by slow ready - resolved - unknown");
    harness_crash(&h, 5);
    cr_said(&h, "restarted; observe web");
    harness_stop(&h);
}

Test(engine_restart, a_lost_answer_is_still_a_question_after_a_restart)
{
    WITH(h, slow);
    harness_script(&h, (struct scale_script){.outcome = AS_REASON_TIMEOUT, .is_ambiguous = true});
    fire(&h, "Slow", 990);
    (void)said(&h);
    harness_target(&h, "web")->size = 6;
    harness_target(&h, "web")->version++;
    harness_crash(&h, 5);
    cr_said(&h, "restarted; observe web; acted web 4>6 applied late");
    harness_stop(&h);
}

Test(engine_restart, the_lock_of_an_intent_found_applied_is_kept_as_long_as_it_matters)
{
    WITH(h, templated);
    go_until_sent(&h, "Slow,app=web");
    resolve(&h, "Slow,app=web", 990);
    harness_target(&h, "web")->size = 6;
    harness_target(&h, "web")->version++;
    h.hold_calls = false;
    harness_crash(&h, 5);
    harness_crash(&h, 5);
    (void)said(&h);
    fire(&h, "Slow,app=web", 1005);
    cr_said(&h, "said queued; opened; answered; observe web; "
                "decided web 6 cooldown (8) by slow");
    harness_stop(&h);
}

Test(engine_restart, steps_survive)
{
    WITH(h, once);
    fire(&h, "Slow", 990);
    harness_crash(&h, 5);
    tick(&h, 600);
    cr_assert_eq(harness_target(&h, "web")->size, 6);
    (void)said(&h);
    fire(&h, "Slow", 990);
    cr_said(&h, "said max_steps; answered");
    harness_stop(&h);
}

Test(engine_restart, an_incident_that_opened_after_the_intent_did_not_take_part)
{
    WITH(h, once);
    go_until_sent(&h, "Slow,pod=a");
    tick(&h, 5);
    fire(&h, "Slow,pod=b", 1002);
    harness_target(&h, "web")->size = 6;
    harness_target(&h, "web")->version++;
    harness_crash(&h, 5);
    fire(&h, "Slow,pod=c", 1003);
    h.hold_calls = false;
    harness_settle(&h);
    cr_assert_eq(harness_target(&h, "web")->size, 6);
    tick(&h, 60);
    cr_assert_eq(harness_target(&h, "web")->size, 8);
    tick(&h, 600);
    cr_assert_eq(harness_target(&h, "web")->size, 8);
    harness_stop(&h);
}

Test(engine_restart, resolved_is_remembered_and_expiry_goes_on)
{
    WITH(h, slow);
    resolve(&h, "Slow", 990);
    harness_crash(&h, 60);
    (void)said(&h);
    fire(&h, "Slow", 990);
    cr_said(&h, "said stale; answered");
    fire(&h, "Slow,pod=b", 990);
    for (int i = 0; i < 4; i++) {
        harness_crash(&h, 3600);
        tick(&h, 5 * 3600);
    }
    cr_assert_eq(as_engine_get_counts(h.engine).incidents_open, 1);
    tick(&h, 2 * 3600); /* 24 h and at most a sixteenth more */
    cr_assert_eq(as_engine_get_counts(h.engine).incidents_open, 0);
    harness_stop(&h);
}

Test(engine_restart, a_reload_keeps_locks_and_incidents)
{
    WITH(h, slow);
    fire(&h, "Slow", 990);
    tick(&h, 30);
    (void)said(&h);
    harness_reload(&h, &slow);
    cr_said(&h, "reloaded; observe web; decided web 6 cooldown (8) by slow");
    tick(&h, 30);
    cr_assert_eq(harness_target(&h, "web")->size, 8);
    harness_stop(&h);
}

Test(engine_restart, a_reload_keeps_steps_also_over_rules_without_the_rule)
{
    WITH(h, once);
    fire(&h, "Slow", 990);
    harness_reload(&h, &once);
    harness_reload(&h, &nothing);
    harness_crash(&h, 5);
    harness_reload(&h, &once);
    tick(&h, 600);
    cr_assert_eq(harness_target(&h, "web")->size, 6);
    harness_stop(&h);
}

/* The step that was on its way when the rule went is one of the incident's. */
Test(engine_restart, a_step_whose_rule_goes_before_the_answer_counts_when_it_is_back)
{
    WITH(h, once);
    h.hold_calls = true;
    fire(&h, "Slow", 990);
    harness_settle_to_request(&h);
    cr_assert(h.calls[0].is_scale);
    harness_reload(&h, &nothing);
    h.hold_calls = false;
    harness_settle(&h);
    cr_assert_eq(harness_target(&h, "web")->size, 6);
    harness_crash(&h, 5);
    harness_reload(&h, &once);
    tick(&h, 600);
    cr_assert_eq(harness_target(&h, "web")->size, 6, "max_steps of 1, and another one");
    harness_stop(&h);
}

Test(engine_restart, new_rules_apply_to_open_incidents)
{
    static const struct spec faster = {
        .targets = {{.name = "web", .min = 1, .max = 20, .up = 30, .down = 60}},
        .rules = {{.name = "slow", .match = {"alertname=Slow"}, .target = "web", .up = 5}},
    };
    WITH(h, slow);
    fire(&h, "Slow", 990);
    tick(&h, 10);
    harness_reload(&h, &faster);
    tick(&h, 20);
    cr_assert_eq(harness_target(&h, "web")->size, 11);
    harness_reload(&h, &nothing);
    tick(&h, 600);
    cr_assert_eq(harness_target(&h, "web")->size, 11);
    cr_assert_eq(as_engine_get_counts(h.engine).incidents_open, 1);
    harness_stop(&h);
}

Test(engine_restart, targets_that_no_rule_knows_any_more_are_forgotten)
{
    static const struct spec many = {
        .targets = {{.name = "a"}, {.name = "b"}, {.name = "c"}, {.name = "d"}, {.name = "e"}}};
    WITH(h, many);
    cr_assert_eq(as_engine_get_counts(h.engine).targets, 5);
    harness_reload(&h, &nothing);
    tick(&h, 120);
    cr_assert_eq(as_engine_get_counts(h.engine).targets, 0);
    harness_stop(&h);
}

/* The promise on bounds holds for the rules in force when the request leaves. */
Test(engine_restart, an_intent_decided_by_old_rules_is_not_sent)
{
    static const struct spec smaller = {
        .targets = {{.name = "web", .min = 1, .max = 5, .up = 60, .down = 60}},
        .rules = {{.name = "slow", .match = {"alertname=Slow"}, .target = "web", .up = 2}},
    };
    WITH(h, slow);
    h.hold_calls = true;
    fire(&h, "Slow", 990);
    h.hold_calls = false;
    h.hold_commits = true;
    harness_settle(&h);
    (void)said(&h);
    harness_reload(&h, &smaller);
    h.hold_commits = false;
    harness_settle(&h);
    cr_said(&h, "reloaded; acted web 4>6 superseded; observe web; "
                "decided web 4>5 scaled by slow; scale web 4>5; acted web 4>5 applied");
    cr_assert_eq(as_store_memory_get_count(h.memory, AS_STORE_INTENT), 0);
    harness_stop(&h);
}

Test(engine_restart, a_rule_that_is_new_had_no_part_in_an_action_of_old_rules)
{
    static const struct spec before = {
        .targets = {{.name = "web", .min = 1, .max = 20}},
        .rules = {{.name = "slow", .match = {"alertname=Slow"}, .target = "web", .up = 2}}};
    static const struct spec after = {
        .targets = {{.name = "web", .min = 1, .max = 20}},
        .rules = {{.name = "slow", .match = {"alertname=Slow"}, .target = "web", .up = 2},
                  {.name = "also", .match = {"alertname=Slow"}, .target = "web", .up = 1}}};
    WITH(h, before);
    harness_script(&h, (struct scale_script){
                           .outcome = AS_REASON_TIMEOUT, .is_ambiguous = true, .is_done = true});
    fire(&h, "Slow", 990);
    harness_reload(&h, &after);
    (void)said(&h);
    tick(&h, 120);
    cr_assert_eq(harness_target(&h, "web")->size, 7);
    cr_assert(strstr(said(&h), "acted web 4>6 applied late"));
    harness_stop(&h);
}

Test(engine_restart, a_named_entry_owns_its_address_against_templates)
{
    static const struct spec both = {
        .targets =
            {{.name = "any", .address = "{{ .Labels.app }}", .allow = "*", .min = 1, .up = 60},
             {.name = "web", .min = 1, .up = 60}},
        .rules = {{.name = "any", .match = {"alertname=Slow"}, .target = "any", .up = 2},
                  {.name = "web", .match = {"alertname=Full"}, .target = "web", .up = 3}},
    };
    WITH(h, both);
    fire(&h, "Slow,app=web", 990);
    cr_said(&h, "said target_not_allowed; answered");
    fire(&h, "Full", 990);
    cr_assert(strstr(said(&h), "acted web 4>7 applied"));
    harness_stop(&h);
}

Test(engine_restart, an_address_of_two_templates_belongs_to_the_one_in_use)
{
    static const struct spec two = {
        .targets = {{.name = "a", .address = "{{ .Labels.app }}", .allow = "*", .up = 60},
                    {.name = "b", .address = "{{ .Labels.job }}", .allow = "*", .up = 60}},
        .rules = {{.name = "a", .match = {"alertname=Slow"}, .target = "a", .up = 2},
                  {.name = "b", .match = {"alertname=Full"}, .target = "b", .up = 1}},
    };
    WITH(h, two);
    fire(&h, "Slow,app=web", 990);
    (void)said(&h);
    fire(&h, "Full,job=web", 990);
    cr_said(&h, "said target_not_allowed; answered");
    resolve(&h, "Slow,app=web", 990);
    (void)said(&h);
    fire(&h, "Full,job=web", 990); /* under the lock of before, as the target is the same */
    cr_said(&h, "said queued; opened; answered; observe web; decided web 6 cooldown (7) by b");
    harness_stop(&h);
}

#define TEMPLATE(label)                                                                            \
    "{\"allocatable\":{},\"capacity\":{},\"free\":{},\"labels\":{\"v\":\"" label                   \
    "\"},\"taints\":[]}"

static const struct spec groups = {
    .targets = {{.name = "spot", .is_group = true}, {.name = "steady", .is_group = true}},
    .rules = {{.name = "full",
               .match = {"alertname=Full"},
               .target = "spot",
               .source = {.nodes = AS_NODES_UTILIZATION},
               .up_steps = {{.is_above = true, .bound = 70, .amount = {.size = 1, .at_least = 1}}},
               .every = 10},
              {.name = "other",
               .match = {"alertname=Other"},
               .target = "steady",
               .source = {.nodes = AS_NODES_UTILIZATION},
               .up_steps = {{.is_above = true, .bound = 70, .amount = {.size = 1, .at_least = 1}}},
               .every = 10}},
};

/* What a new node would be like is known after a crash, though the group's last node has left. The
 * other groups of the cluster are known too. */
Test(engine_restart, templates_of_node_groups_survive)
{
    WITH(h, groups);
    harness_target(&h, "spot")->template_ = TEMPLATE("1");
    harness_target(&h, "steady")->template_ = TEMPLATE("2");
    fire(&h, "Full", 990);
    fire(&h, "Other", 990);
    harness_target(&h, "spot")->template_ = harness_target(&h, "steady")->template_ = NULL;
    harness_crash(&h, 0);
    cr_assert_str_eq(h.last_templates, "spot=" TEMPLATE("1") ";steady=" TEMPLATE("2") ";");
    harness_stop(&h);
}

/* A template is written when it changes, and at no other time. */
Test(engine_restart, an_unchanged_template_is_not_written_again)
{
    WITH(h, groups);
    struct virtual_target *spot = harness_target(&h, "spot");
    spot->template_ = TEMPLATE("1");
    fire(&h, "Full", 990);
    const unsigned puts = h.target_puts;
    tick(&h, 60);
    cr_expect_eq(h.target_puts, puts);
    spot->template_ = TEMPLATE("2");
    tick(&h, 60);
    cr_expect_eq(h.target_puts, puts + 1);
    spot->template_ = ""; /* too long to be kept: the former one does not count any more */
    tick(&h, 60);
    cr_expect_eq(h.target_puts, puts + 2);
    cr_expect_str_eq(h.last_templates, "");
    harness_stop(&h);
}

/* A process that died while it marked nodes: those that it had marked leave. */
Test(engine_restart, a_decrease_that_was_marked_in_part_counts_for_that_part)
{
    static const struct spec pool = {
        .targets = {{.name = "pool", .is_group = true, .min = 1, .max = 20, .down = 600}},
        .rules = {{.name = "idle", .match = {"alertname=Idle"}, .target = "pool", .down = 3}},
    };
    WITH(h, pool);
    harness_target(&h, "pool")->names_instances = true;
    go_until_sent(&h, "Idle");
    harness_target(&h, "pool")->size = 2;
    harness_crash(&h, 10);
    h.hold_calls = false;
    harness_settle(&h);
    const char *told = said(&h);
    cr_expect_not_null(strstr(told, "acted pool 4>2 applied"), "%s", told);
    cr_expect_null(strstr(told, "scale"), "%s", told);
    harness_stop(&h);
}
