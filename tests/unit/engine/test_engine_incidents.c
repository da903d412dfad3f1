/*
 * The engine's incidents, by each requirement of docs/receiver.md: one incident, one answer, even
 * if Alertmanager's peers repeat, lose, reorder or duplicate notifications.
 */
#include <alertscaler/base/attr.h>

#include "engine_harness.h"

static const struct spec slow_and_idle = {
    .targets = {{.name = "web", .min = 1, .max = 20, .up = 60, .down = 300}},
    .rules =
        {{.name = "slow", .match = {"alertname=Slow"}, .target = "web", .up = 2},
         {.name = "idle", .match = {"alertname=Idle"}, .target = "web", .down = 1},
         {.name = "off", .match = {"alertname=Off"}, .target = "web", .up = 1, .disabled = true}},
};

#define FIRST_STEP                                                                                 \
    "said queued; opened; answered; observe web; decided web 4>6 scaled by slow; scale web 4>6; "  \
    "acted web 4>6 applied"

Test(engine_incidents, firing_scales_once_and_is_answered_first)
{
    WITH(h, slow_and_idle);
    fire(&h, "Slow", 990);
    cr_said(&h, FIRST_STEP);
    cr_assert_eq(harness_target(&h, "web")->size, 6);
    harness_stop(&h);
}

Test(engine_incidents, a_repeat_does_nothing)
{
    WITH(h, slow_and_idle);
    fire(&h, "Slow", 990);
    (void)said(&h);
    fire(&h, "Slow", 990);
    cr_said(&h, "said duplicate; answered");
    fire(&h, "Slow", 980); /* merging of Prometheis moves the start back */
    cr_said(&h, "said duplicate; answered");
    harness_stop(&h);
}

/* These are answered before the disk has their record; so nothing else may hang on it. */
Test(engine_incidents, a_repeat_is_what_changes_nothing_and_leads_to_nothing)
{
    static const struct test_alert two[] = {{.labels = "Slow", .starts = 990},
                                            {.labels = "Unknown", .starts = 990}};
    WITH(h, slow_and_idle);
    fire(&h, "Slow", 990);
    cr_assert_eq(h.repeats, 0, "opened");
    fire(&h, "Slow", 990);
    cr_assert_eq(h.repeats, 1);
    fire(&h, "Unknown", 990);
    cr_assert_eq(h.repeats, 1, "no rule");
    harness_notify(&h, "alertscaler", two, 2);
    cr_assert_eq(h.repeats, 1, "not each is a duplicate");
    harness_notify(&h, "alertscaler", two, 0);
    cr_assert_eq(h.repeats, 1, "no alert");
    harness_notify(&h, "another", two, 1);
    cr_assert_eq(h.repeats, 1, "its receiver is stored");
    tick(&h, 6000);
    fire(&h, "Slow", 990);
    cr_assert_eq(h.repeats, 1, "that it was seen is stored");
    resolve(&h, "Slow", 990);
    cr_assert_eq(h.repeats, 1, "closed");
    fire(&h, "Slow", 990);
    cr_assert_eq(h.repeats, 1, "stale");
    harness_stop(&h);
}

Test(engine_incidents, a_later_start_is_a_new_incident_because_the_resolved_was_lost)
{
    WITH(h, slow_and_idle);
    fire(&h, "Slow", 990);
    (void)said(&h);
    tick(&h, 10);
    fire(&h, "Slow", 1005);
    cr_said(&h, "said queued; superseded; effect web 4>6 by slow ready - resolved - unknown; "
                "opened; answered; observe web; decided web 6 cooldown (8) by slow");
    harness_stop(&h);
}

#define AHEAD 5000000 /* on the wall clock of the test, which starts at 1000 */

/* Else every genuine notification would be older, and nothing would close the incident. */
Test(engine_incidents, a_start_to_come_outranks_no_real_one)
{
    WITH(h, slow_and_idle);
    fire(&h, "Slow", AHEAD);
    cr_said(&h, FIRST_STEP);
    fire(&h, "Slow", AHEAD + 5);
    cr_said(&h, "said duplicate; answered");
    fire(&h, "Slow", 990);
    cr_said(&h, "said duplicate; answered");
    harness_crash(&h, 1);
    (void)said(&h);
    fire(&h, "Slow", AHEAD); /* counts as the incident's, which has a real one now */
    cr_said(&h, "said duplicate; answered");
    fire(&h, "Slow", 1001);
    cr_assert(strstr(
        said(&h),
        "said queued; superseded; effect web 4>6 by slow ready - resolved - unknown; opened"));
    resolve(&h, "Slow", 1001);
    cr_assert(strstr(said(&h), "closed"));
    harness_stop(&h);
}

Test(engine_incidents, whatever_the_date_a_resolved_closes)
{
    WITH(h, slow_and_idle);
    fire(&h, "Slow", AHEAD);
    (void)said(&h);
    resolve(&h, "Slow", 980); /* a real one */
    cr_assert(strstr(said(&h), "closed"));
    fire(&h, "Slow", 1002);
    cr_assert(strstr(said(&h), "opened"));
    resolve(&h, "Slow", AHEAD);
    cr_assert(strstr(said(&h), "closed"));
    fire(&h, "Slow", 1002);
    cr_said(&h, "said stale; answered");
    harness_stop(&h);
}

Test(engine_incidents, a_resolved_dated_to_come_keeps_no_real_firing_out)
{
    WITH(h, slow_and_idle);
    resolve(&h, "Slow", AHEAD);
    (void)said(&h);
    fire(&h, "Slow", AHEAD);
    cr_said(&h, "said stale; answered");
    fire(&h, "Slow", 990);
    cr_assert(strstr(said(&h), "opened"));
    harness_stop(&h);
}

/* Clocks are wrong by less than five minutes. */
Test(engine_incidents, a_start_a_little_ahead_is_a_start)
{
    WITH(h, slow_and_idle);
    fire(&h, "Slow", 990);
    (void)said(&h);
    fire(&h, "Slow", 1300);
    cr_assert(strstr(said(&h), "superseded"));
    fire(&h, "Slow", 1301); /* a second too far */
    cr_said(&h, "said duplicate; answered");
    harness_stop(&h);
}

/* Our clock may be the one that is wrong. */
Test(engine_incidents, a_clock_that_goes_back_and_forth_makes_no_new_incident)
{
    WITH(h, slow_and_idle);
    fire(&h, "Slow", 990);
    (void)said(&h);
    h.wall.us -= AS_US_PER_DAY;
    fire(&h, "Slow", 990);
    cr_said(&h, "said duplicate; answered");
    harness_crash(&h, 1);
    (void)said(&h);
    fire(&h, "Slow", 990);
    cr_said(&h, "said duplicate; answered");
    h.wall.us += AS_US_PER_DAY;
    fire(&h, "Slow", 990);
    cr_said(&h, "said duplicate; answered");
    harness_stop(&h);
}

Test(engine_incidents, a_stale_firing_after_resolved_is_only_recorded)
{
    WITH(h, slow_and_idle);
    fire(&h, "Slow", 990);
    tick(&h, 30);
    resolve(&h, "Slow", 990);
    (void)said(&h);
    tick(&h, 30);
    fire(&h, "Slow", 990);
    cr_said(&h, "said stale; answered");
    tick(&h, 59);
    (void)said(&h);
    fire(&h, "Slow", 990);
    cr_said(&h, "said stale; answered");
    harness_stop(&h);
}

Test(engine_incidents, an_old_start_after_the_stale_window_is_an_incident)
{
    WITH(h, slow_and_idle);
    fire(&h, "Slow", 990);
    resolve(&h, "Slow", 990);
    tick(&h, 121);
    (void)said(&h);
    fire(&h, "Slow", 990);
    cr_said(&h, "said queued; opened; answered; observe web; decided web 6>8 scaled by slow; "
                "scale web 6>8; acted web 6>8 applied");
    harness_stop(&h);
}

Test(engine_incidents, resolved_closes_and_never_scales_down)
{
    WITH(h, slow_and_idle);
    fire(&h, "Slow", 990);
    (void)said(&h);
    resolve(&h, "Slow", 990);
    cr_said(&h, "said queued; closed; effect web 4>6 by slow ready - resolved 0 resolved; "
                "answered; observe web");
    tick(&h, 3 * 24 * 3600);
    cr_assert_eq(harness_target(&h, "web")->size, 6);
    harness_stop(&h);
}

Test(engine_incidents, resolved_before_firing_makes_the_firing_stale)
{
    WITH(h, slow_and_idle);
    resolve(&h, "Slow", 990);
    cr_said(&h, "said duplicate; answered");
    tick(&h, 60);
    (void)said(&h);
    fire(&h, "Slow", 990);
    cr_said(&h, "said stale; answered");
    fire(&h, "Slow", 1030);
    cr_said(&h, FIRST_STEP);
    harness_stop(&h);
}

Test(engine_incidents, resolved_of_an_earlier_stretch_leaves_the_later_one_open)
{
    WITH(h, slow_and_idle);
    fire(&h, "Slow", 990);
    tick(&h, 20);
    fire(&h, "Slow", 1010); /* its resolved, at 1005, is still on the way */
    (void)said(&h);
    const struct test_alert late = {
        .labels = "Slow", .starts = 990, .is_resolved = true, .ends = 1005};
    harness_notify(&h, "scaler", &late, 1);
    cr_said(&h, "said stale; answered");
    cr_assert_eq(as_engine_get_counts(h.engine).incidents_open, 1);
    harness_stop(&h);
}

Test(engine_incidents, resolved_without_a_usable_end_closes_by_its_start)
{
    WITH(h, slow_and_idle);
    fire(&h, "Slow", 990);
    (void)said(&h);
    const struct test_alert year_one = {
        .labels = "Slow", .starts = 990, .is_resolved = true, .ends = -62135596800};
    harness_notify(&h, "scaler", &year_one, 1);
    cr_said(&h, "said queued; closed; effect web 4>6 by slow ready - resolved 0 resolved; "
                "answered; observe web");
    harness_stop(&h);
}

/* Peer B's old firing comes after peer A has already delivered the resolved of the same, later
 * stretch, while the first stretch's resolved was lost. */
Test(engine_incidents, the_resolved_of_a_later_stretch_makes_its_late_firing_stale)
{
    WITH(h, slow_and_idle);
    fire(&h, "Slow", 990);
    tick(&h, 70);
    (void)said(&h);
    resolve(&h, "Slow", 1050);
    cr_said(&h, "said queued; closed; effect web 4>6 by slow ready - resolved 70 resolved; effect "
                "web 6>8 by slow ready - resolved 10 resolved; answered; observe web");
    fire(&h, "Slow", 1050);
    cr_said(&h, "said stale; answered");
    harness_stop(&h);
}

Test(engine_incidents, a_second_resolved_of_a_later_stretch_is_remembered)
{
    WITH(h, slow_and_idle);
    resolve(&h, "Slow", 990);
    tick(&h, 100);
    resolve(&h, "Slow", 1050);
    tick(&h, 100); /* the first one is forgotten, the second is not */
    (void)said(&h);
    fire(&h, "Slow", 1050);
    cr_said(&h, "said stale; answered");
    harness_stop(&h);
}

Test(engine_incidents, an_incident_not_seen_for_its_expiry_ends)
{
    WITH(h, slow_and_idle);
    h.config.incident_expiry_us = 3600 * AS_US_PER_S;
    harness_reload(&h, &slow_and_idle);
    fire(&h, "Slow", 990);
    harness_target(&h, "web")->size = 20;
    tick(&h, 3000);
    fire(&h, "Slow", 990); /* seen again */
    tick(&h, 3599);
    cr_assert_eq(as_engine_get_counts(h.engine).incidents_open, 1);
    tick(&h, 1);
    cr_assert_eq(as_engine_get_counts(h.engine).incidents_open, 0);
    cr_assert_eq(as_store_memory_get_count(h.memory, AS_STORE_INCIDENT), 0);
    cr_assert(strstr(said(&h), "expired"));
    harness_stop(&h);
}

Test(engine_incidents, duplicates_in_one_notification_are_one)
{
    WITH(h, slow_and_idle);
    const struct test_alert alerts[] = {{.labels = "Slow", .starts = 990},
                                        {.labels = "Slow", .starts = 990},
                                        {.labels = "Slow", .starts = 980}};
    harness_notify(&h, "scaler", alerts, AS_ARRAY_SIZE(alerts));
    cr_said(&h, "said queued,duplicate,duplicate; opened; answered; observe web; "
                "decided web 4>6 scaled by slow; scale web 4>6; acted web 4>6 applied");
    harness_stop(&h);
}

Test(engine_incidents, all_that_can_happen_to_one_alert_in_one_notification)
{
    WITH(h, slow_and_idle);
    const struct test_alert alerts[] = {
        {.labels = "Slow", .starts = 980},
        {.labels = "Slow", .starts = 980, .annotation = "changed"},
        {.labels = "Slow", .starts = 985},
        {.labels = "Slow", .starts = 985, .is_resolved = true},
        {.labels = "Slow", .starts = 985},
        {.labels = "Slow", .starts = 990, .annotation = "again"},
    };
    harness_notify(&h, "scaler", alerts, AS_ARRAY_SIZE(alerts));
    cr_said(&h, "said queued,duplicate,queued,queued,stale,queued; "
                "opened; superseded; opened; closed; opened; answered; observe web; "
                "decided web 4>6 scaled by slow; scale web 4>6; acted web 4>6 applied");
    harness_stop(&h);
}

Test(engine_incidents, changed_annotations_alone_do_nothing_but_are_stored)
{
    WITH(h, slow_and_idle);
    fire(&h, "Slow", 990);
    (void)said(&h);
    const uint64_t commits = as_store_memory_get_commits(h.memory);
    const struct test_alert changed = {.labels = "Slow", .starts = 990, .annotation = "worse"};
    harness_notify(&h, "scaler", &changed, 1);
    cr_said(&h, "said duplicate; answered");
    cr_assert_eq(as_store_memory_get_commits(h.memory), commits + 1);
    harness_stop(&h);
}

static void keep_state(void *context, const struct as_incident_state *state,
                       const struct as_incident_target *targets, size_t count)
{
    struct as_incident_state *kept = context;
    *kept = *state;
}

static void check_links(const struct harness *h, const char *generator_url,
                        const char *external_url)
{
    struct as_incident_state state = {0};
    as_engine_visit_incidents(h->engine, keep_state, &state);
    cr_assert_str_eq(state.generator_url ? state.generator_url : "", generator_url);
    cr_assert_str_eq(state.external_url ? state.external_url : "", external_url);
}

/* The peers of a cluster send different URLs: were the last one kept, each notification would write
 * to the store. */
Test(engine_incidents, the_first_urls_are_kept_and_stored_once)
{
    WITH(h, slow_and_idle);
    fire(&h, "Slow", 990);
    check_links(&h, "", "");
    uint64_t commits = as_store_memory_get_commits(h.memory);
    struct test_alert alert = {.labels = "Slow", .starts = 990, .generator_url = "http://a/graph"};
    harness_notify(&h, "scaler", &alert, 1);
    check_links(&h, "http://a/graph", "");
    alert.external_url = "http://am-0";
    harness_notify(&h, "scaler", &alert, 1);
    check_links(&h, "http://a/graph", "http://am-0");
    cr_assert_eq(as_store_memory_get_commits(h.memory), commits + 2);
    alert.generator_url = "http://b/graph";
    alert.external_url = "http://am-1";
    harness_notify(&h, "scaler", &alert, 1);
    check_links(&h, "http://a/graph", "http://am-0");
    harness_crash(&h, 1);
    check_links(&h, "http://a/graph", "http://am-0");
    fire(&h, "Slow", 995); /* a later stretch */
    check_links(&h, "", "");
    harness_stop(&h);
}

Test(engine_incidents, many_alerts_on_one_target_are_one_decision)
{
    WITH(h, slow_and_idle);
    const struct test_alert alerts[] = {{.labels = "Slow,pod=a", .starts = 990},
                                        {.labels = "Slow,pod=b", .starts = 991},
                                        {.labels = "Idle,pod=a", .starts = 992},
                                        {.labels = "Slow,pod=c", .starts = 993}};
    harness_notify(&h, "scaler", alerts, AS_ARRAY_SIZE(alerts));
    cr_said(&h, "said queued,queued,queued,queued; opened; opened; opened; opened; answered; "
                "observe web; decided web 4>6 scaled by slow; scale web 4>6; "
                "acted web 4>6 applied");
    harness_stop(&h);
}

Test(engine_incidents, alerts_that_come_while_the_target_is_busy_are_one_decision_later)
{
    WITH(h, slow_and_idle);
    h.hold_calls = true;
    fire(&h, "Slow,pod=a", 990);
    fire(&h, "Slow,pod=b", 990);
    fire(&h, "Slow,pod=c", 990);
    cr_said(&h, "said queued; opened; answered; observe web; said queued; opened; answered; "
                "said queued; opened; answered");
    h.hold_calls = false;
    harness_settle(&h);
    cr_said(&h, "decided web 4>6 scaled by slow; scale web 4>6; acted web 4>6 applied");
    harness_stop(&h);
}

Test(engine_incidents, one_alert_may_scale_many_targets_side_by_side)
{
    static const struct spec both = {
        .targets = {{.name = "web", .min = 1, .up = 60}, {.name = "db", .min = 1, .up = 60}},
        .rules = {{.name = "slow", .match = {"alertname=Slow"}, .target = "web", .up = 2},
                  {.name = "full", .match = {"alertname=~\"Slow|Full\""}, .target = "db", .up = 1}},
    };
    WITH(h, both);
    fire(&h, "Slow", 990);
    cr_said(
        &h,
        "said queued; opened; answered; observe web; observe db; "
        "decided web 4>6 scaled by slow; scale web 4>6; "
        "decided db 4>5 scaled by full; scale db 4>5; acted web 4>6 applied; acted db 4>5 applied");
    harness_stop(&h);
}

Test(engine_incidents, own_alerts_lead_to_no_rule_and_keep_nothing)
{
    WITH(h, slow_and_idle);
    fire(&h, "Slow,alertscaler_instance=here", 990);
    cr_said(&h, "said own_alert; answered");
    fire(&h, "Slow,alertscaler_instance=elsewhere", 990);
    cr_said(&h, "said own_alert; answered");
    resolve(&h, "Slow,alertscaler_instance=here", 990);
    cr_said(&h, "said own_alert; answered");
    cr_assert_eq(as_store_memory_get_count(h.memory, AS_STORE_INCIDENT), 0);
    harness_stop(&h);
}

Test(engine_incidents, no_rule_and_disabled_rules_say_so_and_keep_nothing)
{
    WITH(h, slow_and_idle);
    fire(&h, "Unknown", 990);
    cr_said(&h, "said no_rule; answered");
    fire(&h, "Off", 990);
    cr_said(&h, "said rule_disabled; answered");
    resolve(&h, "Unknown", 990);
    cr_said(&h, "said no_rule; answered");
    resolve(&h, "Off", 990);
    cr_said(&h, "said rule_disabled; answered");
    cr_assert_eq(as_store_memory_get_count(h.memory, AS_STORE_INCIDENT), 0);
    harness_stop(&h);
}

static const struct spec templated = {
    .targets = {{.name = "any",
                 .address = "{{ .Labels.app }}",
                 .allow = "web-*",
                 .min = 1,
                 .up = 60,
                 .down = 60}},
    .rules = {{.name = "slow", .match = {"alertname=Slow"}, .target = "any", .up = 2}},
};

Test(engine_incidents, each_result_of_a_template_is_a_target_of_its_own)
{
    WITH(h, templated);
    const struct test_alert alerts[] = {{.labels = "Slow,app=web-a", .starts = 990},
                                        {.labels = "Slow,app=web-b", .starts = 990}};
    harness_notify(&h, "scaler", alerts, AS_ARRAY_SIZE(alerts));
    cr_said(&h, "said queued,queued; opened; opened; answered; observe web-a; observe web-b; "
                "decided web-a 4>6 scaled by slow; scale web-a 4>6; "
                "decided web-b 4>6 scaled by slow; scale web-b 4>6; acted web-a 4>6 applied; "
                "acted web-b 4>6 applied");
    harness_stop(&h);
}

Test(engine_incidents, labels_are_input_not_commands)
{
    static const char *const refused[] = {"Slow", "Slow,app=db", "Slow,app=web-/../x",
                                          "Slow,app=WEB-a", "Slow,app=web-"};
    WITH(h, templated);
    for (size_t i = 0; i < AS_ARRAY_SIZE(refused); i++) {
        fire(&h, refused[i], 990);
        cr_said(&h, "said target_not_allowed; answered");
    }
    cr_assert_eq(as_engine_get_counts(h.engine).targets, 0);
    harness_stop(&h);
}

Test(engine_incidents, a_target_made_by_a_template_is_forgotten_when_its_locks_have_passed)
{
    WITH(h, templated);
    fire(&h, "Slow,app=web-a", 990);
    resolve(&h, "Slow,app=web-a", 990);
    cr_assert_eq(as_store_memory_get_count(h.memory, AS_STORE_TARGET), 1);
    tick(&h, 25 * 3600);
    cr_assert_eq(as_store_memory_get_count(h.memory, AS_STORE_TARGET), 0);
    cr_assert_eq(as_engine_get_counts(h.engine).targets, 0);
    harness_stop(&h);
}

Test(engine_incidents, rules_of_other_receivers_do_not_match)
{
    static const struct spec spec = {
        .targets = {{.name = "web", .min = 1, .up = 60}},
        .rules = {{.name = "slow",
                   .match = {"alertname=Slow"},
                   .target = "web",
                   .receiver = "other",
                   .up = 2}},
    };
    WITH(h, spec);
    fire(&h, "Slow", 990);
    cr_said(&h, "said no_rule; answered");
    harness_stop(&h);
}

/* Two routes of Alertmanager, two rules: each rule sees the alert, whichever notification was
 * first, and neither acts again because of the other's repeats. */
Test(engine_incidents, an_alert_that_comes_through_two_receivers_serves_the_rules_of_both)
{
    static const struct spec spec = {
        .targets = {{.name = "web", .min = 1, .up = 60}, {.name = "api", .min = 1, .up = 60}},
        .rules = {{.name = "slow",
                   .match = {"alertname=Slow"},
                   .target = "web",
                   .receiver = "first",
                   .up = 2,
                   .max_steps = 1},
                  {.name = "also",
                   .match = {"alertname=Slow"},
                   .target = "api",
                   .receiver = "second",
                   .up = 2,
                   .max_steps = 1}},
    };
    WITH(h, spec);
    const struct test_alert alert = {.labels = "Slow", .starts = 990};
    harness_notify(&h, "first", &alert, 1);
    cr_said(&h, "said queued; opened; answered; observe web; decided web 4>6 scaled by slow; "
                "scale web 4>6; acted web 4>6 applied");
    harness_notify(&h, "second", &alert, 1);
    cr_said(&h, "said queued; answered; observe web; observe api; decided web 6 no_change by slow; "
                "decided api 4>6 scaled by also; scale api 4>6; acted api 4>6 applied");
    harness_notify(&h, "first", &alert, 1);
    cr_said(&h, "said max_steps; answered");
    harness_stop(&h);
}

Test(engine_incidents, an_empty_notification_is_answered)
{
    WITH(h, slow_and_idle);
    harness_notify(&h, "scaler", NULL, 0);
    cr_said(&h, "said nothing; answered");
    harness_stop(&h);
}

Test(engine_incidents, nothing_is_answered_before_it_is_durable)
{
    WITH(h, slow_and_idle);
    h.hold_commits = true;
    fire(&h, "Slow", 990);
    fire(&h, "Slow", 990);
    cr_said(&h, "said queued; opened; said duplicate");
    h.hold_commits = false;
    harness_settle(&h);
    cr_said(&h, "answered; observe web; answered; decided web 4>6 scaled by slow; scale web 4>6; "
                "acted web 4>6 applied");
    harness_stop(&h);
}
