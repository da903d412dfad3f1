/*
 * A further step down of a target needs news: its alert was reported as firing since the last step,
 * or the size comes from a value queried for this decision. Dead monitoring costs each target at
 * most one step down.
 */
#include <alertscaler/base/attr.h>

#include "engine_harness.h"

#define RESYNC 60
#define LOCK   300
#define IDLE   .name = "idle", .match = {"alertname=Idle"}, .target = "web"

#define WEB .targets = {{.name = "web", .min = 1, .max = 20, .up = 180, .down = LOCK}}

static const struct spec idle = {WEB, .rules = {{IDLE, .down = 1}}};

static int32_t get_size(struct harness *harness)
{
    return harness_target(harness, "web")->size;
}

/* At 20, and the first step is made. */
#define START(name, spec)                                                                          \
    WITH(name, spec);                                                                              \
    harness_target(&(name), "web")->size = 20;                                                     \
    fire(&(name), "Idle", 990);                                                                    \
    cr_assert_eq(get_size(&(name)), 19)

/* The example: from 20 to 2 in 90 minutes. */
Test(engine_news, silence_takes_one_step_and_no_more)
{
    START(h, idle);
    tick(&h, 90 * 60);
    cr_assert_eq(get_size(&h), 19);
    cr_assert(strstr(said(&h), "decided web 19 unconfirmed (18) by idle"));
    harness_stop(&h);
}

Test(engine_news, a_repeat_is_followed_by_one_step_at_once)
{
    START(h, idle);
    tick(&h, 2 * LOCK);
    (void)said(&h);
    fire(&h, "Idle", 990);
    cr_said(&h, "said duplicate; answered; observe web; decided web 19>18 scaled by idle after 5; "
                "scale web 19>18; acted web 19>18 applied");
    tick(&h, 10 * LOCK);
    cr_assert_eq(get_size(&h), 18);
    harness_stop(&h);
}

Test(engine_news, a_repeat_during_the_lock_counts_when_it_ends)
{
    START(h, idle);
    tick(&h, LOCK / 2);
    fire(&h, "Idle", 990);
    tick(&h, LOCK / 2 - 1);
    cr_assert_eq(get_size(&h), 19);
    tick(&h, 1);
    cr_assert_eq(get_size(&h), 18);
    harness_stop(&h);
}

/* Nothing that follows from time: another moment, an unlocked target, clocks that are set. */
Test(engine_news, clocks_and_locks_are_no_news)
{
    START(h, idle);
    tick(&h, 60);
    harness_order(
        &h, (struct as_operator_command){.kind = AS_OPERATOR_COMMAND_UNLOCK, .target = "web"});
    cr_assert(strstr(said(&h), "decided web 19 unconfirmed (18) by idle"));
    h.wall.us += AS_US_PER_DAY;
    tick(&h, LOCK);
    h.wall.us -= 3 * AS_US_PER_DAY;
    tick(&h, LOCK);
    cr_assert_eq(get_size(&h), 19);
    fire(&h, "Idle", 990);
    cr_assert_eq(get_size(&h), 18);
    harness_stop(&h);
}

Test(engine_news, what_was_said_to_an_earlier_process_is_no_report)
{
    START(h, idle);
    tick(&h, LOCK / 2);
    fire(&h, "Idle", 990);
    harness_crash(&h, LOCK);
    tick(&h, 10 * LOCK);
    cr_assert_eq(get_size(&h), 19);
    fire(&h, "Idle", 990);
    cr_assert_eq(get_size(&h), 18);
    harness_stop(&h);
}

Test(engine_news, new_rules_forget_no_report)
{
    START(h, idle);
    tick(&h, LOCK / 2);
    fire(&h, "Idle", 990);
    harness_reload(&h, &idle);
    tick(&h, LOCK);
    cr_assert_eq(get_size(&h), 18);
    harness_reload(&h, &idle);
    tick(&h, 10 * LOCK);
    cr_assert_eq(get_size(&h), 18);
    harness_stop(&h);
}

static const char *const idle_only[] = {"idle"}, *const other_only[] = {"other"};
static const struct as_scope scopes[] = {
    {.credential = "idle", .rules = idle_only, .rule_count = 1},
    {.credential = "other", .rules = other_only, .rule_count = 1},
};

/* Whoever may trigger another rule for the same alert only says nothing about this one. */
Test(engine_news, a_report_counts_for_the_rules_that_its_credential_may_trigger)
{
    static const struct spec spec = {
        WEB, .rules = {{IDLE, .down = 1},
                       {.name = "other", .match = {"alertname=Idle"}, .target = "web", .down = 5}}};
    struct harness h = {.config = {.scopes = scopes, .scope_count = AS_ARRAY_SIZE(scopes)}};
    harness_start(&h, &spec);
    harness_target(&h, "web")->size = 20;
    h.credential = "idle";
    fire(&h, "Idle", 990);
    h.credential = "other";
    for (int i = 0; i < 5; i++) {
        tick(&h, LOCK);
        fire(&h, "Idle", 990);
    }
    cr_assert_eq(get_size(&h), 19); /* `idle` wins with 18 */
    h.credential = "idle";
    fire(&h, "Idle", 990);
    cr_assert_eq(get_size(&h), 18);
    harness_stop(&h);
}

Test(engine_news, the_winning_rules_alert_it_must_be)
{
    static const struct spec spec = {
        WEB,
        .rules = {{IDLE, .down = 1},
                  {.name = "empty", .match = {"alertname=Empty"}, .target = "web", .down = 5}}};
    START(h, spec);
    fire(&h, "Empty", 990);
    tick(&h, 2 * LOCK);
    fire(&h, "Empty", 990);
    tick(&h, 2 * LOCK);
    cr_assert_eq(get_size(&h), 19);
    resolve(&h, "Idle", 990);
    cr_assert_eq(get_size(&h), 14); /* it was reported, and nobody is for more now */
    harness_stop(&h);
}

/* Of several alerts that a rule matches the last report counts. */
Test(engine_news, any_alert_of_the_rule_will_do)
{
    START(h, idle);
    fire(&h, "Idle,pod=b", 990);
    tick(&h, 2 * LOCK);
    cr_assert_eq(get_size(&h), 19);
    fire(&h, "Idle,pod=b", 990);
    cr_assert_eq(get_size(&h), 18);
    harness_stop(&h);
}

/* Every decrease of ours is a step, an operator's too. */
Test(engine_news, an_ordered_decrease_is_a_step)
{
    START(h, idle);
    tick(&h, LOCK / 2);
    fire(&h, "Idle", 990);
    harness_order(&h, (struct as_operator_command){
                          .kind = AS_OPERATOR_COMMAND_SCALE, .target = "web", .replicas = 10});
    cr_assert_eq(get_size(&h), 10);
    tick(&h, 10 * LOCK);
    cr_assert_eq(get_size(&h), 10);
    harness_stop(&h);
}

Test(engine_news, in_a_dry_run_likewise)
{
    static const struct spec dry = {WEB, .rules = {{IDLE, .down = 1, .dry_run = true}}};
    WITH(h, dry);
    fire(&h, "Idle", 990);
    cr_assert(strstr(said(&h), "dry_run (3) by idle"));
    tick(&h, 10 * LOCK);
    cr_assert(strstr(said(&h), "unconfirmed (3) by idle"));
    fire(&h, "Idle", 990);
    cr_assert(strstr(said(&h), "dry_run (3) by idle"));
    harness_stop(&h);
}

Test(engine_news, a_value_of_prometheus_is_news_itself)
{
    static const struct spec tracks = {
        WEB, .rules = {{IDLE, .track_average = 1, .source = {.query = "load"}}}};
    WITH(h, tracks);
    harness_target(&h, "web")->size = 20;
    h.queries[0] = (struct query_script){"load", {.value = 19}};
    h.queries[0].result.value = 15;
    fire(&h, "Idle", 990);
    cr_assert_eq(get_size(&h), 15);
    h.queries[0].result.value = 10;
    tick(&h, LOCK + 15);
    cr_assert_eq(get_size(&h), 10);
    h.queries[0].result.value = 5;
    tick(&h, LOCK + 15);
    cr_assert_eq(get_size(&h), 5);
    harness_stop(&h);
}

Test(engine_news, a_value_of_the_alert_is_not)
{
    static const struct spec evaluations = {
        WEB, .rules = {{IDLE, .down_steps = {{.bound = 5, .amount = {.size = 1}}},
                        .source = {.annotation = "summary"}}}};
    static const struct test_alert low = {.labels = "Idle", .starts = 990, .annotation = "3"};
    static const struct test_alert same = {
        .labels = "Idle,pod=b", .starts = 990, .annotation = "3"};
    WITH(h, evaluations);
    harness_target(&h, "web")->size = 20;
    harness_notify(&h, "scaler", &low, 1);
    tick(&h, 10 * LOCK);
    cr_assert_eq(get_size(&h), 19);
    harness_notify(&h, "scaler", &same, 1); /* which says the same */
    cr_assert_eq(get_size(&h), 18);
    harness_stop(&h);
}

/* ---- Alertmanager's list */

#define START_LISTED(name)                                                                         \
    struct harness name = {.config = {.resync_us = RESYNC * AS_US_PER_S}};                         \
    harness_start(&(name), &idle);                                                                 \
    harness_target(&(name), "web")->size = 20;                                                     \
    fire(&(name), "Idle", 990);                                                                    \
    cr_assert_eq(get_size(&(name)), 19)

static void list(struct harness *harness, const struct test_listed *alert)
{
    harness_list(harness, alert, 1);
}

/* Alertmanager lists alerts until their time is up, though Prometheus is dead. */
Test(engine_news, a_list_that_says_nothing_new_is_no_report)
{
    static const struct test_listed old = {.labels = "Idle", .starts = 990, .updated = 1000};
    START_LISTED(h);
    list(&h, &old);
    tick(&h, 20 * LOCK);
    cr_assert_eq(get_size(&h), 19);
    harness_stop(&h);
}

Test(engine_news, a_list_whose_update_moves_on_is_one)
{
    static const struct test_listed alive = {.labels = "Idle", .starts = 990};
    START_LISTED(h);
    list(&h, &alive);
    tick(&h, LOCK);
    cr_assert_eq(get_size(&h), 18);
    tick(&h, 2 * LOCK);
    cr_assert_eq(get_size(&h), 16);
    harness_stop(&h);
}

/* Its clock is compared with itself alone: an update is later than the list before it. */
Test(engine_news, alertmanagers_clock_may_be_wrong)
{
    static const int64_t off[] = {-7 * 86400, 600, 7 * 86400};
    for (size_t i = 0; i < AS_ARRAY_SIZE(off); i++) {
        struct test_listed listed = {.labels = "Idle", .starts = 990, .updated = 10 + off[i] + 1};
        START_LISTED(h);
        list(&h, &listed);
        tick(&h, 4 * RESYNC);
        listed.updated++; /* its last words, between two lists */
        tick(&h, 6 * RESYNC);
        cr_assert_eq(get_size(&h), 18);
        tick(&h, 20 * LOCK);
        cr_assert_eq(get_size(&h), 18);
        harness_stop(&h);
    }
}

/* An update that came before the step, seen after it. */
Test(engine_news, an_update_counts_from_the_list_before_it)
{
    struct test_listed listed = {.labels = "Idle", .starts = 990, .updated = 1000};
    struct harness h = {.config = {.resync_us = RESYNC * AS_US_PER_S}};
    harness_start(&h, &idle);
    harness_target(&h, "web")->size = 20;
    list(&h, &listed);
    tick(&h, RESYNC); /* opens the incident, and makes the step */
    cr_assert_eq(get_size(&h), 19);
    tick(&h, LOCK - 1);
    listed.updated = 1001;
    harness_order(&h, (struct as_operator_command){
                          .kind = AS_OPERATOR_COMMAND_SCALE, .target = "web", .replicas = 15});
    tick(&h, 20 * LOCK);
    cr_assert_eq(get_size(&h), 15);
    harness_stop(&h);
}

/* ---- `to` */

static const struct spec floors = {
    .targets = {{.name = "web", .min = 1, .max = 20, .up = 60, .down = 60}},
    .rules = {{.name = "sale", .match = {"alertname=Sale"}, .target = "web", .up_to = 8},
              {IDLE, .down = 6}},
};

Test(engine_to, up_to_a_size_never_lowers_and_holds_what_it_asked_for)
{
    WITH(h, floors);
    fire(&h, "Sale", 990);
    cr_assert_eq(get_size(&h), 8);
    harness_target(&h, "web")->size = 20; /* somebody wants more */
    tick(&h, 120);
    cr_assert_eq(get_size(&h), 20);
    fire(&h, "Idle", 990);
    cr_assert_eq(get_size(&h), 14);
    tick(&h, 30);
    fire(&h, "Idle", 990);
    tick(&h, 30);
    cr_assert_eq(get_size(&h), 8);
    tick(&h, 60);
    fire(&h, "Idle", 990);
    cr_assert(strstr(said(&h), "decided web 8 vetoed by idle"));
    resolve(&h, "Sale", 990);
    tick(&h, 60);
    cr_assert_eq(get_size(&h), 2);
    harness_stop(&h);
}

/* Used up, it is the floor that it was, and below it the size that is. */
Test(engine_to, once_it_is_a_floor_for_as_long_as_it_fires)
{
    struct spec once = floors;
    once.rules[0].max_steps = 1;
    WITH(h, once);
    fire(&h, "Sale", 990);
    harness_target(&h, "web")->size = 10;
    tick(&h, 60);
    fire(&h, "Idle", 990);
    cr_assert_eq(get_size(&h), 8);
    harness_target(&h, "web")->size = 5; /* somebody's hand: it is not raised again */
    tick(&h, 30);
    fire(&h, "Idle", 990);
    tick(&h, 600);
    cr_assert_eq(get_size(&h), 5);
    harness_stop(&h);
}

/* Without a lock, too, it is done again: what is there already is not doubled. */
Test(engine_to, a_size_that_is_absolute_needs_no_lock)
{
    struct spec unlocked = floors;
    unlocked.targets[0].up = unlocked.targets[0].down = 0;
    WITH(h, unlocked);
    fire(&h, "Sale", 990);
    harness_target(&h, "web")->size = 5;
    tick(&h, 60);
    cr_assert_eq(get_size(&h), 8);
    harness_stop(&h);
}

Test(engine_to, down_to_a_size_never_raises_and_holds_nobody)
{
    static const struct spec spec = {
        .targets = {{.name = "web", .min = 1, .max = 20, .up = 60, .down = 60}},
        .rules = {{.name = "slow", .match = {"alertname=Slow"}, .target = "web", .up = 3},
                  {IDLE, .down_to = 2}},
    };
    WITH(h, spec);
    fire(&h, "Idle", 990);
    cr_assert_eq(get_size(&h), 2);
    harness_target(&h, "web")->size = 1;
    tick(&h, 120);
    cr_assert_eq(get_size(&h), 1);
    fire(&h, "Slow", 990);
    cr_assert_eq(get_size(&h), 4);
    harness_stop(&h);
}
