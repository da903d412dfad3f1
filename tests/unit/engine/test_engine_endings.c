/*
 * `on_resolved`: the actions after an incident was resolved, which need proof that monitoring
 * works. "Losing the monitoring never removes capacity."
 */
#include <alertscaler/base/attr.h>

#include "engine_harness.h"

static const struct spec giving_back = {
    .targets = {{.name = "web", .min = 1, .max = 50, .up = 60, .down = 60}},
    .rules = {{.name = "slow",
               .match = {"alertname=Slow"},
               .target = "web",
               .up = 4,
               .guard = "none",
               .on_resolved = {.give_back = true, .after = 120, .step_percent = 25}},
              {.name = "other", .match = {"alertname=Other"}, .target = "web", .up = 1}},
};

Test(engine_endings, what_an_incident_added_is_given_back_in_steps)
{
    WITH(h, giving_back);
    fire(&h, "Slow", 990);
    tick(&h, 60);
    cr_said(&h,
            "said queued; opened; answered; observe web; decided web 4>8 scaled by slow; "
            "scale web 4>8; acted web 4>8 applied; observe web; decided web 8>12 scaled by slow; "
            "scale web 8>12; acted web 8>12 applied");
    tick(&h, 30);
    resolve(&h, "Slow", 990);
    cr_said(&h, "said queued; closed; effect web 4>8 by slow ready - resolved 90 resolved; "
                "effect web 8>12 by slow ready - resolved 30 resolved; answered; observe web");
    tick(&h, 119);
    cr_assert_null(strstr(said(&h), "decided"));
    tick(&h, 1);
    cr_said(&h, "observe web; decided web 12>10 scaled by slow; scale web 12>10; "
                "acted web 12>10 applied");
    tick(&h, 180);
    cr_said(&h,
            "observe web; decided web 10>8 scaled by slow; scale web 10>8; "
            "acted web 10>8 applied; observe web; decided web 8>6 scaled by slow; "
            "scale web 8>6; acted web 8>6 applied; observe web; decided web 6>4 scaled by slow; "
            "scale web 6>4; acted web 6>4 applied");
    tick(&h, 3600);
    cr_assert_null(strstr(said(&h), "decided"));
    harness_stop(&h);
}

Test(engine_endings, nothing_is_given_back_that_was_not_added)
{
    WITH(h, giving_back);
    harness_target(&h, "web")->size = 50;
    fire(&h, "Slow", 990);
    cr_assert_not_null(strstr(said(&h), "at_max"));
    resolve(&h, "Slow", 990);
    tick(&h, 3600);
    cr_assert_null(strstr(said(&h), "decided"));
    harness_stop(&h);
}

/* Each of these ends a give-back under way: 12 stays. */
static void change_by_hand(struct harness *harness)
{
    harness_target(harness, "web")->size = 11;
}

static void open_another(struct harness *harness)
{
    fire(harness, "Other", harness->wall.us / AS_US_PER_S);
    tick(harness, 1);
    resolve(harness, "Other", harness->wall.us / AS_US_PER_S - 1);
}

static void reload_without(struct harness *harness)
{
    static const struct spec without = {
        .targets = {{.name = "web", .min = 1, .max = 50, .up = 60, .down = 60}},
        .rules = {{.name = "slow", .match = {"alertname=Slow"}, .target = "web", .up = 4}},
    };
    harness_reload(harness, &without);
}

Test(engine_endings, a_give_back_ends_when_something_else_happens)
{
    static void (*const happen[])(struct harness *) = {change_by_hand, open_another,
                                                       reload_without};
    for (size_t i = 0; i < AS_ARRAY_SIZE(happen); i++) {
        WITH(h, giving_back);
        fire(&h, "Slow", 990);
        tick(&h, 1);
        resolve(&h, "Slow", 990);
        tick(&h, 10);
        happen[i](&h);
        (void)said(&h);
        tick(&h, 3600);
        cr_expect_null(strstr(said(&h), "scale "), "row %zu", i);
        harness_stop(&h);
    }
}

static const struct spec templated = {
    .targets = {{.name = "web",
                 .address = "{{ .Labels.app }}",
                 .allow = "*",
                 .min = 1,
                 .max = 50,
                 .up = 60,
                 .down = 60}},
    .rules = {{.name = "slow",
               .match = {"alertname=Slow"},
               .target = "web",
               .up = 4,
               .guard = "up{app=\"{{ .Labels.app }}\"}",
               .on_resolved = {.give_back = true, .after = 120}}},
};

Test(engine_endings, a_give_back_goes_on_after_a_crash)
{
    WITH(h, templated);
    h.queries[0] = (struct query_script){"up{app=\"web-a\"}", {.value = 1}};
    fire(&h, "Slow,app=web-a", 990);
    tick(&h, 60);
    harness_crash(&h, 1);
    resolve(&h, "Slow,app=web-a", 990);
    harness_crash(&h, 1);
    (void)said(&h);
    tick(&h, 300);
    cr_assert_not_null(strstr(said(&h), "decided web-a 12>4 scaled by slow; scale web-a 12>4; "
                                        "acted web-a 12>4 applied"));
    tick(&h, 25 * 3600);
    cr_assert_eq(as_store_memory_get_count(h.memory, AS_STORE_TARGET), 0);
    harness_stop(&h);
}

static const struct spec to_two = {
    .targets = {{.name = "web", .min = 1, .max = 50, .up = 60, .down = 60}},
    .rules = {{.name = "slow",
               .match = {"alertname=Slow"},
               .target = "web",
               .up = 4,
               .max_steps = 1,
               .guard = "up == 1",
               .on_resolved = {.to = 2, .has_to = true}}},
};

Test(engine_endings, without_proof_that_monitoring_lives_nothing_is_removed)
{
    WITH(h, to_two);
    fire(&h, "Slow", 990);
    tick(&h, 90);
    resolve(&h, "Slow", 990);
    (void)said(&h);
    tick(&h, 300);
    cr_assert_null(strstr(said(&h), "scale web"));
    h.queries[0] = (struct query_script){"up == 1", {.value = 1}};
    tick(&h, 15);
    cr_said(&h,
            "observe web; query up == 1; decided web 8>2 scaled by slow after 20; scale web 8>2; "
            "acted web 8>2 applied");
    tick(&h, 3600);
    cr_assert_null(strstr(said(&h), "decided"));
    harness_stop(&h);
}

Test(engine_endings, an_ending_without_proof_is_given_up_in_the_end)
{
    WITH(h, to_two);
    fire(&h, "Slow", 990);
    tick(&h, 90);
    resolve(&h, "Slow", 990);
    tick(&h, 25 * 3600);
    h.queries[0] = (struct query_script){"up == 1", {.value = 1}};
    (void)said(&h);
    tick(&h, 3600);
    cr_assert_null(strstr(said(&h), "scale web"));
    harness_stop(&h);
}

/* An alert that is only not seen any more is no end: it says nothing at all. */
Test(engine_endings, expiry_gives_nothing_back)
{
    WITH(h, giving_back);
    fire(&h, "Slow", 990);
    tick(&h, 1);
    harness_target(&h, "web")->size = 8;
    (void)said(&h);
    tick(&h, 30 * 3600);
    const char *text = said(&h);
    cr_assert_not_null(strstr(text, "expired"));
    cr_assert_null(strstr(strstr(text, "expired"), "scale web"));
    harness_stop(&h);
}

Test(engine_endings, an_ending_is_vetoed_by_what_still_fires)
{
    static const struct spec spec = {
        .targets = {{.name = "web", .min = 1, .max = 50, .up = 60, .down = 60}},
        .rules = {{.name = "slow",
                   .match = {"alertname=Slow"},
                   .target = "web",
                   .up = 4,
                   .max_steps = 1,
                   .guard = "none",
                   .on_resolved = {.down = 3}},
                  {.name = "keep",
                   .match = {"alertname=Keep"},
                   .target = "web",
                   .to = 8,
                   .has_to = true}},
    };
    WITH(h, spec);
    fire(&h, "Slow", 990);
    fire(&h, "Keep", 990);
    tick(&h, 90);
    resolve(&h, "Slow", 990);
    cr_assert_not_null(strstr(said(&h), "decided web 8 vetoed"));
    resolve(&h, "Keep", 990);
    cr_assert_not_null(strstr(said(&h), "decided web 8>5 scaled by slow"));
    tick(&h, 600);
    cr_assert_null(strstr(said(&h), "decided"));
    harness_stop(&h);
}

static const struct spec ends_at_2 = {
    .targets = {{.name = "web", .min = 1, .max = 50, .up = 60, .down = 60}},
    .rules = {{.name = "slow",
               .match = {"alertname=Slow"},
               .target = "web",
               .up = 4,
               .max_steps = 1,
               .on_resolved = {.to = 2, .has_to = true}}},
};

/* The watchdog proves it where a rule has no guard: seen in time, or not at all. */
Test(engine_endings, a_watchdog_in_time_is_proof)
{
    struct as_matcher watchdog;
    cr_assert_eq(as_matcher_init(&watchdog, "alertname=Watchdog", NULL), 0);
    struct harness h = {.config = {.watchdog = &watchdog,
                                   .watchdog_count = 1,
                                   .watchdog_within_us = 60 * AS_US_PER_S}};
    harness_start(&h, &ends_at_2);
    fire(&h, "Slow", 990);
    tick(&h, 90);
    fire(&h, "Watchdog", 1200); /* before the end: proves nothing of it */
    resolve(&h, "Slow", 990);
    tick(&h, 30);
    fire(&h, "Watchdog", 1200); /* too soon after it: it may end a little later than the others */
    tick(&h, 300);
    cr_assert_null(strstr(said(&h), "scale web 8>2"));
    fire(&h, "Watchdog", 1200);
    tick(&h, 15);
    cr_assert_not_null(strstr(said(&h), "scale web 8>2"));
    harness_stop(&h);
    as_matcher_deinit(&watchdog);
}

/* Alertmanager delivers what it could not while we were away, before the first target is read. */
Test(engine_endings, an_end_before_the_first_look_after_a_restart_gives_back)
{
    WITH(h, giving_back);
    fire(&h, "Slow", 990);
    tick(&h, 60);
    h.hold_calls = true;
    harness_crash(&h, 1);
    resolve(&h, "Slow", 990);
    harness_crash(&h, 1);
    h.hold_calls = false;
    harness_settle(&h);
    (void)said(&h);
    tick(&h, 600);
    cr_assert_not_null(strstr(said(&h), "acted web 12>10 applied"));
    cr_assert_eq(harness_target(&h, "web")->size, 4);
    harness_stop(&h);
}

/* What was under way when the incident ended was added, too. */
Test(engine_endings, an_end_while_the_action_is_under_way_gives_back)
{
    WITH(h, giving_back);
    h.hold_calls = true;
    fire(&h, "Slow", 990);
    h.hold_calls = false;
    h.hold_commits = true;
    harness_settle(&h);
    resolve(&h, "Slow", 990);
    h.hold_commits = false;
    harness_settle(&h);
    cr_assert_eq(harness_target(&h, "web")->size, 8);
    tick(&h, 600);
    cr_assert_eq(harness_target(&h, "web")->size, 4);
    harness_stop(&h);
}

/* Nothing of a target stays when nothing leads to it any more: not after its rule is gone... */
Test(engine_endings, the_ending_of_a_rule_that_is_gone_is_forgotten_with_its_target)
{
    static const struct spec without = {
        .targets = {{.name = "other", .min = 1, .max = 50}},
        .rules = {{.name = "other", .match = {"alertname=Other"}, .target = "other", .up = 1}},
    };
    WITH(h, templated);
    fire(&h, "Slow,app=web-a", 990);
    tick(&h, 1);
    resolve(&h, "Slow,app=web-a", 990);
    harness_reload(&h, &without);
    tick(&h, 25 * 3600);
    cr_assert_eq(as_store_memory_get_count(h.memory, AS_STORE_TARGET), 0);
    cr_assert_eq(as_engine_get_counts(h.engine).targets, 1);
    harness_stop(&h);
}

/* ... and not after the object is. */
Test(engine_endings, the_ending_on_a_target_that_cannot_be_read_is_given_up)
{
    WITH(h, templated);
    fire(&h, "Slow,app=web-a", 990);
    tick(&h, 1);
    harness_target(&h, "web-a")->failure = AS_REASON_TARGET_NOT_FOUND;
    resolve(&h, "Slow,app=web-a", 990);
    tick(&h, 50 * 3600);
    cr_assert_eq(as_store_memory_get_count(h.memory, AS_STORE_TARGET), 0);
    cr_assert_eq(as_engine_get_counts(h.engine).targets, 0);
    harness_stop(&h);
}

/* What it asks for is there: a size that someone chooses hours later is none of its business. */
Test(engine_endings, an_ending_with_nothing_to_do_is_done)
{
    static const struct spec specs[] = {
        {.targets = {{.name = "web", .min = 1, .max = 50}},
         .rules = {{.name = "slow",
                    .match = {"alertname=Slow"},
                    .target = "web",
                    .to = 4,
                    .has_to = true,
                    .guard = "none",
                    .on_resolved = {.to = 4, .has_to = true}}}},
        {.targets = {{.name = "web", .min = 4, .max = 50}},
         .rules = {{.name = "slow",
                    .match = {"alertname=Slow"},
                    .target = "web",
                    .to = 4,
                    .has_to = true,
                    .guard = "none",
                    .on_resolved = {.down = 2}}}},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(specs); i++) {
        WITH(h, specs[i]);
        fire(&h, "Slow", 990);
        (void)said(&h);
        resolve(&h, "Slow", 990);
        cr_expect_not_null(strstr(said(&h), "decided web 4 "), "row %zu", i);
        tick(&h, 300);
        harness_target(&h, "web")->size = 10;
        tick(&h, 600);
        cr_expect_eq(harness_target(&h, "web")->size, 10, "row %zu", i);
        harness_stop(&h);
    }
}

/* "Once", also as if: a dry run says so once, not every time its lock ends. */
Test(engine_endings, in_a_dry_run_an_ending_is_carried_out_once)
{
    static const struct spec specs[] = {
        {.targets = {{.name = "web", .min = 1, .max = 50, .down = 90, .dry_run = true}},
         .rules = {{.name = "slow",
                    .match = {"alertname=Slow"},
                    .target = "web",
                    .to = 4,
                    .has_to = true,
                    .guard = "none",
                    .on_resolved = {.down = 2}}}},
        {.targets = {{.name = "web", .min = 1, .max = 50, .down = 90}},
         .rules = {{.name = "slow",
                    .match = {"alertname=Slow"},
                    .target = "web",
                    .to = 4,
                    .has_to = true,
                    .guard = "none",
                    .dry_run = true,
                    .on_resolved = {.down = 2}}}},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(specs); i++) {
        WITH(h, specs[i]);
        fire(&h, "Slow", 990);
        tick(&h, 30);
        (void)said(&h);
        resolve(&h, "Slow", 990);
        cr_expect_not_null(strstr(said(&h), "decided web 4 dry_run (2) by slow"), "row %zu", i);
        tick(&h, 3600);
        cr_expect_null(strstr(said(&h), "decided"), "row %zu", i);
        harness_stop(&h);
    }
}

static void end_one(struct harness *harness)
{
    fire(harness, "Slow", 990);
    resolve(harness, "Slow", 990);
    cr_assert_eq(harness_target(harness, "web")->size, 8);
    (void)said(harness);
}

Test(engine_endings, goes_on_where_the_entry_has_another_name)
{
    WITH(h, giving_back);
    end_one(&h);
    struct spec renamed = giving_back;
    renamed.targets[0].name = "shop-web";
    renamed.targets[0].address = "web";
    renamed.rules[0].target = renamed.rules[1].target = "shop-web";
    harness_reload(&h, &renamed);
    tick(&h, 150);
    cr_assert_eq(harness_target(&h, "web")->size, 7);
    harness_crash(&h, 5);
    tick(&h, 600);
    cr_assert_eq(harness_target(&h, "web")->size, 4);
    harness_stop(&h);
}

/* No rule leads to the former object any more. */
Test(engine_endings, ends_where_the_entry_has_another_address)
{
    WITH(h, giving_back);
    end_one(&h);
    struct spec moved = giving_back;
    moved.targets[0].address = "web-2";
    harness_reload(&h, &moved);
    tick(&h, 3600);
    cr_assert_eq(harness_target(&h, "web")->size, 8);
    cr_assert_null(strstr(said(&h), "scale "));
    harness_stop(&h);
}

/* What a target does next, as pages and the API show it. */

static struct as_next_view next_view;
static size_t next_count;

static void take_next(void *context, const struct as_next_view *view)
{
    (void)context;
    next_view = *view;
    next_count++;
}

static void visit_next(void *context, const struct as_target_view *view)
{
    const struct harness *harness = context;
    as_engine_visit_next(harness->engine, view->ref, harness->mono, harness->wall, take_next, NULL);
}

static void look_next(struct harness *harness)
{
    next_count = 0;
    as_engine_visit_targets(harness->engine, harness->mono, harness->wall, visit_next, harness);
}

Test(engine_endings, a_size_stays_where_the_rule_has_no_on_resolved)
{
    static const struct spec staying = {
        .targets = {{.name = "web", .min = 1, .max = 50, .up = 60, .down = 60}},
        .rules = {{.name = "slow", .match = {"alertname=Slow"}, .target = "web", .up = 4}},
    };
    WITH(h, staying);
    look_next(&h);
    cr_expect_eq(next_count, 0, "nothing was decided");
    fire(&h, "Slow", 990);
    look_next(&h);
    cr_expect_eq(next_count, 0, "the incident is open");
    resolve(&h, "Slow", 990);
    look_next(&h);
    cr_assert_eq(next_count, 1);
    cr_expect_eq(next_view.effect, AS_NEXT_STAYS);
    cr_expect_str_eq(next_view.rule, "slow");
    cr_expect_eq(next_view.size, 8);
    cr_expect_eq(next_view.wait, AS_NEXT_NOW);
    harness_order(&h, (struct as_operator_command){
                          .kind = AS_OPERATOR_COMMAND_SCALE, .target = "web", .replicas = 5});
    look_next(&h);
    cr_expect_eq(next_count, 0, "the size is an operator's");
    harness_stop(&h);
}

Test(engine_endings, each_step_says_what_it_gives_back_of_what)
{
    WITH(h, giving_back);
    fire(&h, "Slow", 990);
    tick(&h, 60);
    resolve(&h, "Slow", 990); /* at 12, from 4 */
    look_next(&h);
    cr_assert_eq(next_count, 1);
    cr_expect_eq(next_view.effect, AS_NEXT_GIVES_BACK);
    cr_expect_eq(next_view.wait, AS_NEXT_NOW);
    cr_expect_eq(next_view.size, 10);
    cr_expect_eq(next_view.amount, 2);
    cr_expect_eq(next_view.added, 8);
    cr_expect_eq(next_view.step, 1);
    cr_expect_eq(next_view.steps, 4);
    cr_expect_eq(next_view.from.mono.us - h.mono.us, 120 * AS_US_PER_S);
    tick(&h, 120);
    cr_assert_not_null(strstr(said(&h), "decided web 12>10 scaled by slow"));
    cr_expect_eq(h.last_step.step, 1);
    look_next(&h);
    cr_expect_eq(next_view.step, 2);
    cr_expect_not(as_moment_is_set(next_view.from));
    tick(&h, 60);
    cr_expect_eq(h.last_step.step, 2);
    cr_expect_eq(h.last_step.steps, 4);
    cr_expect_eq(h.last_step.added, 8);
    cr_expect_eq(h.last_step.amount, 2);
    tick(&h, 180);
    look_next(&h);
    cr_expect_eq(next_count, 0, "all is given back");
    fire(&h, "Slow", 2000);
    cr_expect_eq(h.last_step.step, 0, "an increase gives nothing back");
    harness_stop(&h);
}

Test(engine_endings, a_watchdog_that_is_late_is_named)
{
    struct as_matcher watchdog;
    cr_assert_eq(as_matcher_init(&watchdog, "alertname=Watchdog", NULL), 0);
    struct harness h = {.config = {.watchdog = &watchdog,
                                   .watchdog_count = 1,
                                   .watchdog_within_us = 60 * AS_US_PER_S}};
    harness_start(&h, &ends_at_2);
    fire(&h, "Slow", 990);
    tick(&h, 90);
    fire(&h, "Watchdog", 1200);
    tick(&h, 40);
    fire(&h, "Watchdog", 1200);
    tick(&h, 2);
    fire(&h, "Watchdog", 1200); /* the copy of another Alertmanager */
    const int64_t seen = h.wall.us;
    resolve(&h, "Slow", 990);
    look_next(&h);
    cr_assert_eq(next_count, 1);
    cr_expect_eq(next_view.effect, AS_NEXT_SCALES);
    cr_expect_eq(next_view.size, 2);
    cr_expect_eq(next_view.wait, AS_NEXT_WATCHDOG);
    cr_expect_not(as_moment_is_set(next_view.silent_since));
    cr_expect(h.last_has_proof);
    cr_expect_str_eq(h.last_proof_query, "");
    cr_expect_eq(h.last_reported.at.us, seen);
    cr_expect_eq(h.last_every_us, 40 * AS_US_PER_S);
    tick(&h, 61);
    look_next(&h);
    cr_expect_eq(next_view.silent_since.wall.us, seen);
    harness_stop(&h);
    as_matcher_deinit(&watchdog);
}

Test(engine_endings, a_guard_that_is_not_met_is_named)
{
    WITH(h, to_two);
    fire(&h, "Slow", 990);
    tick(&h, 90);
    resolve(&h, "Slow", 990);
    cr_expect(h.last_has_proof);
    cr_expect_str_eq(h.last_proof_query, "up == 1");
    look_next(&h);
    cr_expect_eq(next_view.wait, AS_NEXT_GUARD);
    harness_stop(&h);
}

Test(engine_endings, a_step_down_waits_for_a_report_of_its_alert)
{
    static const struct spec falling = {
        .targets = {{.name = "web", .min = 1, .max = 50, .up = 60, .down = 60}},
        .rules = {{.name = "idle", .match = {"alertname=Idle"}, .target = "web", .down = 1}},
    };
    WITH(h, falling);
    fire(&h, "Idle", 990);
    tick(&h, 90);
    look_next(&h);
    cr_assert_eq(next_count, 1);
    cr_expect_eq(next_view.effect, AS_NEXT_WAITS);
    cr_expect_eq(next_view.wait, AS_NEXT_REPORT);
    cr_expect_str_eq(next_view.alert, "Idle");
    cr_expect_eq(next_view.size, 3);
    harness_stop(&h);
}

/* A failure has its tries and the next one. */
Test(engine_endings, a_failed_action_says_when_the_next_try_is)
{
    WITH(h, giving_back);
    h.always = (struct scale_script){.outcome = AS_REASON_REJECTED};
    fire(&h, "Slow", 990);
    cr_expect_eq(h.last_tries, 1);
    cr_expect(h.last_next_try.set && h.last_next_try.at.us > h.wall.us);
    tick(&h, 60);
    cr_expect_gt(h.last_tries, 1);
    h.always = (struct scale_script){0};
    tick(&h, 120);
    cr_expect_eq(harness_target(&h, "web")->size > 4, true);
    cr_expect_eq(h.last_tries, 0);
    harness_stop(&h);
}
