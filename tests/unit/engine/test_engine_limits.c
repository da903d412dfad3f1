/*
 * Limits over all targets: no window of time has more actions, or more removed replicas, than
 * allowed; waiting targets are served in turn; no target waits for a free limit.
 */
#include <stdio.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/random.h>

#include "engine_harness.h"

#define A_MINUTE (60 * AS_US_PER_S)

/* Each target has an alert of its own that wants it up, and one that wants it down. */
static const struct spec four = {
    .targets = {{.name = "a", .min = 1, .max = 200},
                {.name = "b", .min = 1, .max = 200},
                {.name = "c", .min = 1, .max = 200},
                {.name = "d", .min = 1, .max = 200}},
    .rules = {{.name = "up-a", .match = {"alertname=UpA"}, .target = "a", .up = 2},
              {.name = "up-b", .match = {"alertname=UpB"}, .target = "b", .up = 2},
              {.name = "up-c", .match = {"alertname=UpC"}, .target = "c", .up = 2},
              {.name = "up-d", .match = {"alertname=UpD"}, .target = "d", .up = 2},
              {.name = "down-a", .match = {"alertname=DownA"}, .target = "a", .down = 1},
              {.name = "down-b", .match = {"alertname=DownB"}, .target = "b", .down = 1},
              {.name = "down-c", .match = {"alertname=DownC"}, .target = "c", .down = 1},
              {.name = "down-d", .match = {"alertname=DownD"}, .target = "d", .down = 1}},
};

static struct as_limits limit_actions(uint32_t max, int64_t per)
{
    return (struct as_limits){.actions_max = max, .actions_per_us = per * AS_US_PER_S};
}

static struct as_limits limit_removal(int64_t percent, int64_t per)
{
    return (struct as_limits){.scale_down_milli_percent = percent * 1000,
                              .scale_down_per_us = per * AS_US_PER_S};
}

#define WITH_LIMITS(name, spec, what)                                                              \
    struct harness name = {.config.limits = what};                                                 \
    harness_start(&(name), &(spec))

static void fire_all(struct harness *harness, const char *const *alerts, size_t number)
{
    struct test_alert list[8];
    for (size_t i = 0; i < number; i++)
        list[i] = (struct test_alert){.labels = alerts[i], .starts = 990};
    harness_notify(harness, "scaler", list, number);
}

/* Up to where the request is on its way, its intent committed. */
static void fire_until_sent(struct harness *harness, const char *name, const char *labels)
{
    struct virtual_target *target = harness_target(harness, name);
    harness->hold_calls = true;
    fire(harness, labels, 990);
    harness->hold_calls = false;
    harness->hold_commits = true;
    harness_settle(harness);
    target->is_hanging = true;
    harness->hold_commits = false;
    harness_settle(harness);
    cr_assert(strstr(said(harness), "scale "));
}

Test(engine_limits, an_action_exactly_as_old_as_the_window_is_outside)
{
    WITH_LIMITS(h, four, limit_actions(1, 25));
    fire(&h, "UpA", 990);
    cr_assert(strstr(said(&h), "acted a 4>6 applied"));
    fire(&h, "UpB", 990);
    cr_said(&h, "said queued; opened; answered; observe b; decided b 4 budget (6) by up-b");
    h.wall.us += 25 * AS_US_PER_S - 1;
    h.mono.us += 25 * AS_US_PER_S - 1;
    fire(&h, "UpB,pod=1", 990);
    cr_said(&h, "said queued; opened; answered; observe b; decided b 4 budget (6) by up-b");
    h.wall.us++;
    h.mono.us++;
    fire(&h, "UpB,pod=2", 990);
    cr_said(&h, "said queued; opened; answered; observe b; decided b 4>6 scaled by up-b; "
                "scale b 4>6; acted b 4>6 applied");
    harness_stop(&h);
}

Test(engine_limits, narrowed_credentials_take_turns_with_others)
{
    static const char *const rules[] = {"up-*"};
    static const struct as_scope scopes[] = {
        {.credential = "whole"},
        {.credential = "flood", .rules = rules, .rule_count = 1},
    };
    struct harness h = {.config = {.limits = limit_actions(1, 25),
                                   .scopes = scopes,
                                   .scope_count = AS_ARRAY_SIZE(scopes)}};
    static const char *const alerts[] = {"UpA", "UpB", "UpC"};
    harness_start(&h, &four);
    h.credential = "flood";
    for (size_t i = 0; i < AS_ARRAY_SIZE(alerts); i++)
        fire(&h, alerts[i], 990);
    h.credential = "whole";
    fire(&h, "UpD", 990);
    cr_assert(strstr(said(&h), "decided d 4 budget (6)"));
    tick(&h, 25);
    cr_assert(strstr(said(&h), "scale d 4>6"), "it comes before b and c, which wait for longer");
    tick(&h, 25);
    cr_assert(strstr(said(&h), "scale b 4>6"));
    harness_stop(&h);
}

Test(engine_limits, one_that_waits_goes_on_the_moment_there_is_room)
{
    WITH_LIMITS(h, four, limit_actions(1, 25));
    fire(&h, "UpA", 990);
    tick(&h, 10);
    fire(&h, "UpB", 990);
    (void)said(&h);
    tick(&h, 14);
    cr_said(&h, "");
    tick(&h, 1);
    cr_said(&h, "observe b; decided b 4>6 scaled by up-b; scale b 4>6; acted b 4>6 applied");
    harness_stop(&h);
}

/* The place is taken with the intent, not with the outcome. */
Test(engine_limits, two_targets_decided_at_once_do_not_both_take_the_last_place)
{
    WITH_LIMITS(h, four, limit_actions(1, 25));
    h.hold_calls = true;
    fire_all(&h, (const char *const[]){"UpA", "UpB"}, 2);
    h.hold_commits = true;
    h.hold_calls = false;
    (void)said(&h);
    harness_settle(&h);
    cr_said(&h, "decided a 4>6 scaled by up-a; decided b 4 budget (6) by up-b");
    h.hold_commits = false;
    harness_settle(&h);
    cr_said(&h, "scale a 4>6; acted a 4>6 applied");
    harness_stop(&h);
}

Test(engine_limits, scale_downs_and_enforced_bounds_count_as_actions_too)
{
    static const struct spec bounded = {
        .targets = {{.name = "a", .min = 1, .max = 20},
                    {.name = "b", .min = 5, .max = 20, .enforce_bounds = true}},
        .rules = {{.name = "down-a", .match = {"alertname=DownA"}, .target = "a", .down = 1}},
    };
    struct harness h = {.config.limits = limit_actions(1, 25)};
    harness_target(&h, "b")->size = 5;
    harness_start(&h, &bounded);
    harness_target(&h, "b")->size = 4;
    tick(&h, 60);
    cr_said(&h, "observe a; observe b; decided b 4>5 below_min; scale b 4>5; "
                "acted b 4>5 applied");
    fire(&h, "DownA", 990);
    cr_assert(strstr(said(&h), "decided a 4 budget (3) by down-a"));
    harness_target(&h, "b")->size = 30;
    tick(&h, 25);
    cr_assert(strstr(said(&h), "acted a 4>3 applied"));
    tick(&h, 24);
    (void)said(&h);
    tick(&h, 60);
    cr_assert(strstr(said(&h), "decided b 30>20 above_max"));
    harness_stop(&h);
}

Test(engine_limits, dry_runs_take_no_place_and_wait_for_none)
{
    struct spec dry = four;
    dry.targets[0].dry_run = true;
    WITH_LIMITS(h, dry, limit_actions(1, 25));
    fire(&h, "UpA", 990);
    cr_assert(strstr(said(&h), "decided a 4 dry_run (6)"));
    fire(&h, "UpB", 990);
    cr_assert(strstr(said(&h), "acted b 4>6 applied"));
    fire(&h, "UpA,pod=1", 990);
    cr_assert(strstr(said(&h), "decided a 4 dry_run (6)"));
    harness_stop(&h);
}

/* ---- how much may be removed */

static const struct {
    int32_t sizes[4];
    int64_t milli_percent;
    unsigned go; /* of four scale-downs by one at once */
} assignments[] = {
    {{4, 4, 4, 4}, 25000, 4},      {{4, 4, 4, 3}, 25000, 4},      {{4, 4, 4, 4}, 18000, 3},
    {{4, 4, 4, 4}, 12500, 2},      {{4, 4, 4, 4}, 12501, 3},      {{4, 4, 4, 4}, 12499, 2},
    {{4, 4, 4, 4}, 1, 1},          {{100, 2, 2, 2}, 1000, 2},     {{97, 1, 1, 1}, 1000, 1},
    {{97, 2, 2, 2}, 3000, 4},      {{150, 150, 2, 2}, 1000, 4},   {{150, 150, 2, 2}, 657, 2},
    {{2, 2, 2, 2}, 100000, 4},     {{150, 150, 150, 150}, 1, 1},  {{150, 150, 150, 150}, 333, 2},
    {{150, 150, 150, 50}, 400, 2}, {{150, 150, 150, 51}, 400, 3},
};

Test(engine_limits, the_share_of_all_replicas_is_rounded_up)
{
    for (size_t i = 0; i < AS_ARRAY_SIZE(assignments); i++) {
        struct harness h = {
            .config.limits = {.scale_down_milli_percent = assignments[i].milli_percent,
                              .scale_down_per_us = A_MINUTE}};
        for (size_t j = 0; j < 4; j++) {
            const char name[] = {(char)('a' + j), '\0'};
            harness_target(&h, name)->size = assignments[i].sizes[j];
        }
        harness_start(&h, &four);
        fire_all(&h, (const char *const[]){"DownA", "DownB", "DownC", "DownD"}, 4);
        const char *text = said(&h);
        unsigned at_min = 0;
        for (size_t j = 0; j < 4; j++)
            at_min += assignments[i].sizes[j] == 1;
        const unsigned go = count(text, "applied");
        cr_assert_eq(go, assignments[i].go < 4 - at_min ? assignments[i].go : 4 - at_min,
                     "row %zu: %s", i, text);
        cr_assert_eq(count(text, "budget"), 4 - at_min - go, "row %zu: %s", i, text);
        harness_stop(&h);
    }
}

/* 16 replicas, a quarter in a minute: what was there when the window began counts. */
Test(engine_limits, what_was_removed_within_the_window_is_part_of_the_whole)
{
    struct harness h = {.config.limits = limit_removal(25, 60)};
    const char *const names[] = {"a", "b", "c", "d"};
    for (size_t i = 0; i < AS_ARRAY_SIZE(names); i++)
        harness_target(&h, names[i])->size = i == 0 ? 10 : 2;
    harness_start(&h, &four);
    for (unsigned i = 0; i < 4; i++) {
        char labels[16];
        (void)snprintf(labels, sizeof(labels), "DownA,pod=%u", i);
        fire(&h, labels, 990);
        cr_assert(strstr(said(&h), "applied"), "%u", i);
        tick(&h, 10);
    }
    (void)said(&h);
    fire(&h, "DownA,pod=x", 990);
    cr_assert(strstr(said(&h), "decided a 6 budget (5) by down-a"));
    tick(&h, 19);
    cr_said(&h, "");
    tick(&h, 1); /* 15 now, of which a quarter is 4 again */
    cr_assert(strstr(said(&h), "acted a 6>5 applied"));
    harness_stop(&h);
}

Test(engine_limits, a_removal_counts_from_when_it_was_done_however_long_that_took)
{
    WITH_LIMITS(h, four, limit_removal(1, 60));
    fire_until_sent(&h, "a", "DownA");
    tick(&h, 59);
    fire(&h, "DownB", 990);
    cr_assert(strstr(said(&h), "decided b 4 budget (3)"));
    tick(&h, 30); /* for as long as it is under way ... */
    cr_assert_not(strstr(said(&h), "decided b"));
    harness_target(&h, "a")->is_hanging = false;
    harness_settle(&h);
    tick(&h, 59); /* ... and for a window after it */
    cr_assert_not(strstr(said(&h), "scaled"));
    tick(&h, 60);
    cr_assert(strstr(said(&h), "acted b 4>3 applied"));
    harness_stop(&h);
}

Test(engine_limits, kinds_of_targets_are_counted_apart)
{
    struct spec mixed = four;
    mixed.targets[1].is_group = true;
    WITH_LIMITS(h, mixed, limit_removal(25, 60));
    harness_target(&h, "b")->size = 4;
    fire_all(&h, (const char *const[]){"DownA", "DownB", "DownC", "DownD"}, 4);
    cr_assert_eq(count(said(&h), "applied"), 4); /* 3 of 12, and 1 of 4 */
    tick(&h, 1);
    (void)said(&h);
    fire_all(&h, (const char *const[]){"DownA,pod=1", "DownB,pod=1"}, 2);
    cr_assert_eq(count(said(&h), "budget"), 2);
    harness_stop(&h);
}

Test(engine_limits, scale_ups_do_not_wait_for_removals)
{
    WITH_LIMITS(h, four, limit_removal(1, 60));
    fire_all(&h, (const char *const[]){"DownA", "DownB", "UpC"}, 3);
    cr_said(&h, "said queued,queued,queued; opened; opened; opened; answered; observe a; "
                "observe b; observe c; decided a 4>3 scaled by down-a; "
                "scale a 4>3; decided b 4 budget (3) by down-b; "
                "decided c 4>6 scaled by up-c; scale c 4>6; acted a 4>3 applied; "
                "acted c 4>6 applied");
    harness_stop(&h);
}

/* It waits for other sizes, not for a turn. */
Test(engine_limits, one_larger_than_the_limit_waits_and_holds_nobody_up)
{
    struct spec large = four;
    large.rules[4].down = 3;
    WITH_LIMITS(h, large, limit_removal(12, 60)); /* 2 of 16 */
    fire(&h, "DownA", 990);
    cr_assert(strstr(said(&h), "decided a 4 budget (1) by down-a"));
    fire_all(&h, (const char *const[]){"DownB", "DownC"}, 2);
    cr_assert_eq(count(said(&h), "applied"), 2);
    tick(&h, 600);
    cr_assert_not(strstr(said(&h), "scaled by down-a"));
    harness_target(&h, "d")->size = 100;
    tick(&h, 180);
    cr_assert(strstr(said(&h), "acted a 4>1 applied"));
    harness_stop(&h);
}

/* ---- what failed */

Test(engine_limits, a_refused_removal_gives_its_place_back)
{
    WITH_LIMITS(h, four, limit_removal(1, 60));
    fire_until_sent(&h, "a", "DownA");
    fire(&h, "DownB", 990);
    cr_assert(strstr(said(&h), "decided b 4 budget (3)"));
    harness_script(&h, (struct scale_script){.outcome = AS_REASON_FORBIDDEN});
    harness_target(&h, "a")->is_hanging = false;
    harness_settle(&h);
    cr_said(&h, "acted a 4>3 forbidden; observe b; decided b 4>3 scaled by down-b; "
                "scale b 4>3; acted b 4>3 applied");
    harness_stop(&h);
}

Test(engine_limits, a_refused_attempt_keeps_its_place_among_the_actions)
{
    WITH_LIMITS(h, four, limit_actions(1, 120));
    h.always = (struct scale_script){.outcome = AS_REASON_FORBIDDEN};
    fire_all(&h, (const char *const[]){"UpA", "UpB"}, 2);
    cr_assert(strstr(said(&h), "decided b 4 budget (6)"));
    tick(&h, 119);
    cr_assert_eq(count(said(&h), "scale "), 0);
    tick(&h, 1200);
    const unsigned attempts = count(said(&h), "scale ");
    cr_assert(attempts >= 9 && attempts <= 11, "%u", attempts);
    harness_stop(&h);
}

Test(engine_limits, a_removal_of_which_nobody_knows_keeps_its_place)
{
    WITH_LIMITS(h, four, limit_removal(1, 30));
    h.always = (struct scale_script){.outcome = AS_REASON_TIMEOUT, .is_ambiguous = true};
    fire(&h, "DownA", 990);
    h.always = (struct scale_script){0};
    harness_target(&h, "a")->failure = AS_REASON_UNREACHABLE;
    fire(&h, "DownB", 990);
    cr_assert(strstr(said(&h), "decided b 4 budget (3)"));
    tick(&h, 80);
    cr_assert_not(strstr(said(&h), "scaled"));
    harness_target(&h, "a")->failure = 0;
    harness_target(&h, "a")->version++; /* it has lost */
    harness_target(&h, "a")->in_progress = true;
    tick(&h, 60);
    cr_assert(strstr(said(&h), "acted b 4>3 applied"));
    harness_stop(&h);
}

Test(engine_limits, its_own_lost_request_does_not_keep_a_target_from_asking_again)
{
    WITH_LIMITS(h, four, limit_removal(1, 30));
    harness_script(&h, (struct scale_script){.outcome = AS_REASON_TIMEOUT, .is_ambiguous = true});
    fire(&h, "DownA", 990);
    tick(&h, 5);
    const char *text = said(&h);
    cr_assert(strstr(text, "acted a 4>3 timeout"), "%s", text);
    cr_assert(strstr(text, "acted a 4>3 applied"), "%s", text);
    fire(&h, "DownB", 990); /* one was removed, not two, not none */
    cr_assert(strstr(said(&h), "decided b 4 budget (3)"));
    tick(&h, 30);
    cr_assert(strstr(said(&h), "acted b 4>3 applied"));
    harness_stop(&h);
}

/* Of two requests for the same the first may still be done when the second is refused. */
Test(engine_limits, a_refused_request_does_not_end_an_older_one_that_may_be_done)
{
    WITH_LIMITS(h, four, limit_removal(1, 30));
    harness_script(&h, (struct scale_script){.outcome = AS_REASON_TIMEOUT, .is_ambiguous = true});
    harness_script(&h, (struct scale_script){.outcome = AS_REASON_FORBIDDEN});
    fire(&h, "DownA", 990);
    tick(&h, 5);
    cr_assert(strstr(said(&h), "acted a 4>3 forbidden"));
    fire(&h, "DownB", 990);
    cr_assert(strstr(said(&h), "decided b 4 budget (3)"));
    harness_stop(&h);
}

/* The outcome is not committed yet: what was removed is not there any more all the same. */
Test(engine_limits, what_is_done_is_not_counted_twice)
{
    struct spec large = four;
    large.rules[4].down = 4;
    WITH_LIMITS(h, large, limit_removal(25, 60)); /* 4 of 16, then 5 of 20 */
    harness_target(&h, "a")->size = 10;
    harness_target(&h, "b")->size = harness_target(&h, "c")->size = 2;
    harness_target(&h, "d")->size = 2;
    tick(&h, 60);
    fire_until_sent(&h, "a", "DownA");
    harness_target(&h, "a")->is_hanging = false;
    h.hold_calls = true;
    fire(&h, "DownB", 990);
    h.hold_calls = false;
    h.hold_commits = true;
    (void)said(&h);
    harness_settle(&h);
    cr_said(&h, "acted a 10>6 applied; decided b 2 budget (1) by down-b");
    h.hold_commits = false;
    harness_settle(&h);
    harness_stop(&h);
}

/* ---- turns */

Test(engine_limits, who_waits_is_served_in_turn)
{
    WITH_LIMITS(h, four, limit_actions(1, 25));
    fire(&h, "UpA", 990);
    tick(&h, 5);
    fire(&h, "UpD", 990);
    tick(&h, 5);
    fire(&h, "UpB", 990);
    tick(&h, 5);
    fire(&h, "UpC", 990);
    (void)said(&h);
    tick(&h, 10);
    cr_said(&h, "observe d; decided d 4>6 scaled by up-d; scale d 4>6; acted d 4>6 applied");
    tick(&h, 25);
    const char *text = said(&h);
    cr_assert(strstr(text, "acted b 4>6 applied"), "%s", text);
    cr_assert_not(strstr(text, "acted c"), "%s", text);
    tick(&h, 25);
    cr_assert(strstr(said(&h), "acted c 4>6 applied"));
    harness_stop(&h);
}

/* The oldest is slow to be observed: nobody takes its place meanwhile, not one that just came. */
Test(engine_limits, nobody_overtakes)
{
    WITH_LIMITS(h, four, limit_actions(1, 25));
    fire(&h, "UpA", 990);
    fire(&h, "UpB", 990);
    harness_target(&h, "b")->is_hanging = true;
    tick(&h, 25);
    (void)said(&h);
    fire(&h, "UpC", 990);
    cr_assert(strstr(said(&h), "decided c 4 budget (6)"));
    harness_target(&h, "b")->is_hanging = false;
    harness_settle(&h);
    cr_said(&h, "decided b 4>6 scaled by up-b; scale b 4>6; acted b 4>6 applied");
    harness_stop(&h);
}

Test(engine_limits, two_places_are_for_the_two_oldest)
{
    WITH_LIMITS(h, four, limit_actions(2, 25));
    fire_all(&h, (const char *const[]){"UpA", "UpB"}, 2);
    tick(&h, 5);
    fire(&h, "UpD", 990);
    fire(&h, "UpC", 990);
    fire(&h, "UpA,pod=1", 990);
    (void)said(&h);
    tick(&h, 20);
    const char *text = said(&h);
    cr_assert(strstr(text, "acted d 4>6 applied"), "%s", text);
    cr_assert(strstr(text, "acted c 4>6 applied"), "%s", text);
    cr_assert_not(strstr(text, "acted a"), "%s", text);
    tick(&h, 25);
    cr_assert(strstr(said(&h), "acted a 6>8 applied"));
    harness_stop(&h);
}

Test(engine_limits, who_gives_up_leaves_the_place_to_the_next_at_once)
{
    struct spec leaving = four;
    leaving.rules[4].down = 2;
    leaving.rules[5].down = 2;
    WITH_LIMITS(h, leaving, limit_removal(12, 60)); /* 2 of 16 */
    fire(&h, "DownC", 990);
    fire(&h, "DownA", 990); /* 2 more: waits */
    fire(&h, "DownD", 990); /* 1 more would fit, but not before it */
    cr_assert_eq(count(said(&h), "budget"), 2);
    resolve(&h, "DownA", 990);
    const char *text = said(&h);
    cr_assert(strstr(text, "acted d 4>3 applied"), "%s", text);
    harness_stop(&h);
}

/* What it leaves is not enough for the next, and who comes after that one does not overtake. */
Test(engine_limits, nobody_is_called_for_a_place_that_is_too_small)
{
    struct spec leaving = four;
    leaving.rules[4].down = 2;
    leaving.rules[5].down = 2;
    WITH_LIMITS(h, leaving, limit_removal(12, 50)); /* 2 of 16 */
    fire(&h, "DownC", 990);
    fire(&h, "DownA", 990);
    fire(&h, "DownB", 990);
    fire(&h, "DownD", 990);
    (void)said(&h);
    resolve(&h, "DownA", 990);
    cr_said(&h, "said queued; closed; answered; observe a");
    tick(&h, 49);
    cr_said(&h, "");
    tick(&h, 1);
    cr_assert(strstr(said(&h), "acted b 4>2 applied"));
    harness_stop(&h);
}

Test(engine_limits, nobody_looks_before_both_limits_may_let_it_go)
{
    static const struct as_limits both[] = {
        {.actions_max = 1,
         .actions_per_us = 50 * AS_US_PER_S,
         .scale_down_milli_percent = 1000,
         .scale_down_per_us = 20 * AS_US_PER_S},
        {.actions_max = 1,
         .actions_per_us = 20 * AS_US_PER_S,
         .scale_down_milli_percent = 1000,
         .scale_down_per_us = 50 * AS_US_PER_S},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(both); i++) {
        WITH_LIMITS(h, four, both[i]);
        fire_all(&h, (const char *const[]){"DownA", "DownB"}, 2);
        (void)said(&h);
        tick(&h, 49);
        cr_said(&h, "");
        tick(&h, 1);
        cr_said(&h, "observe b; decided b 4>3 scaled by down-b; scale b 4>3; acted b 4>3 applied");
        harness_stop(&h);
    }
}

/* No time makes room for it: it is looked at as often as any other target with an alert. */
Test(engine_limits, one_larger_than_the_limit_does_not_wait_for_a_time)
{
    struct spec large = four;
    large.rules[4].down = 3;
    WITH_LIMITS(h, large, limit_removal(12, 20));
    fire(&h, "DownA", 990);
    (void)said(&h);
    tick(&h, 59);
    cr_said(&h, "");
    harness_stop(&h);
}

Test(engine_limits, who_cannot_be_observed_holds_nobody_up)
{
    WITH_LIMITS(h, four, limit_actions(1, 25));
    fire(&h, "UpA", 990);
    fire(&h, "UpB", 990);
    fire(&h, "UpC", 990);
    harness_target(&h, "b")->failure = AS_REASON_UNREACHABLE;
    (void)said(&h);
    tick(&h, 25);
    const char *text = said(&h);
    cr_assert(strstr(text, "failed b unreachable"), "%s", text);
    cr_assert(strstr(text, "acted c 4>6 applied"), "%s", text);
    harness_stop(&h);
}

/* Each limit lets go of one that only the other keeps. */
Test(engine_limits, one_that_lacks_a_removal_takes_no_place_among_the_actions)
{
    struct as_limits both = limit_removal(1, 600);
    both.actions_max = 1;
    both.actions_per_us = 25 * AS_US_PER_S;
    WITH_LIMITS(h, four, both);
    fire(&h, "DownA", 990);
    fire(&h, "DownB", 990);
    tick(&h, 25);
    (void)said(&h);
    fire(&h, "UpC", 990);
    cr_assert(strstr(said(&h), "acted c 4>6 applied"));
    tick(&h, 575);
    cr_assert(strstr(said(&h), "acted b 4>3 applied"));
    harness_stop(&h);
}

/* ---- restarts and reloads */

Test(engine_limits, a_restart_forgets_nothing)
{
    WITH_LIMITS(h, four, limit_actions(2, 60));
    fire(&h, "UpA", 990);
    tick(&h, 10);
    fire(&h, "UpB", 990);
    fire(&h, "UpC", 990);
    (void)said(&h);
    harness_crash(&h, 10);
    cr_assert(strstr(said(&h), "decided c 4 budget (6)"));
    tick(&h, 39);
    cr_said(&h, "");
    tick(&h, 1);
    cr_said(&h, "observe c; decided c 4>6 scaled by up-c; scale c 4>6; acted c 4>6 applied");
    harness_crash(&h, 0);
    fire(&h, "UpD", 990);
    cr_assert(strstr(said(&h), "decided d 4 budget (6)"));
    harness_stop(&h);
}

Test(engine_limits, a_reboot_forgets_no_removal)
{
    WITH_LIMITS(h, four, limit_removal(1, 600));
    fire(&h, "DownA", 990);
    h.boot = "boot-2";
    h.mono.us = AS_US_PER_S;
    h.wall.us += 300 * AS_US_PER_S;
    harness_crash(&h, 0);
    fire(&h, "DownB", 990);
    cr_assert(strstr(said(&h), "decided b 4 budget (3)"));
    tick(&h, 299);
    cr_assert_not(strstr(said(&h), "scaled"));
    tick(&h, 60);
    cr_assert(strstr(said(&h), "acted b 4>3 applied"));
    harness_stop(&h);
}

/* A target without rules, incidents or locks is forgotten: not while a limit remembers it. */
Test(engine_limits, a_restart_remembers_targets_that_are_gone)
{
    static const struct spec templated = {
        .targets =
            {{.name = "a", .min = 1, .max = 20},
             {.name = "any", .address = "{{ .Labels.app }}", .allow = "*", .min = 1, .max = 20}},
        .rules = {{.name = "up-a", .match = {"alertname=UpA"}, .target = "a", .up = 2},
                  {.name = "up", .match = {"alertname=Slow"}, .target = "any", .up = 1}},
    };
    WITH_LIMITS(h, templated, limit_actions(1, (int64_t)3 * 86400));
    fire(&h, "Slow,app=x", 990);
    resolve(&h, "Slow,app=x", 990);
    tick(&h, (int64_t)2 * 86400);
    harness_crash(&h, 1);
    (void)said(&h);
    fire(&h, "UpA", 990);
    cr_assert(strstr(said(&h), "decided a 4 budget (6)"));
    tick(&h, 86400);
    cr_assert(strstr(said(&h), "acted a 4>6 applied"));
    harness_stop(&h);
}

/* More than it remembers one by one: pairs are taken for one, and count as long as the later. */
Test(engine_limits, a_long_window_forgets_nothing_either)
{
    struct spec wide = four;
    wide.targets[0].max = 1000000;
    enum { MANY = 4500 };
    WITH_LIMITS(h, wide, limit_actions(MANY, 86400));
    for (unsigned i = 0; i < MANY; i++) {
        fire(&h, "UpA", 990 + i);
        resolve(&h, "UpA", 990 + i);
        cr_assert(strstr(said(&h), "applied"), "%u", i);
        tick(&h, 1);
    }
    fire_all(&h, (const char *const[]){"UpB", "UpC", "UpD"}, 3);
    cr_assert_eq(count(said(&h), "budget"), 3);
    tick(&h, 86400 - MANY); /* the first has just left the window */
    cr_assert_leq(count(said(&h), "applied"), 1);
    tick(&h, 60);
    cr_assert_geq(count(said(&h), "applied"), 2);
    harness_stop(&h);
}

/* Between intent and outcome; whether it was done is not known. */
static const struct {
    const char *first, *second, *held;
    struct as_limits limits;
    bool was_done;
} crashes[] = {
    {"UpA", "UpB", "decided b 4 budget (6)", {.actions_max = 1, .actions_per_us = A_MINUTE}, true},
    {"UpA", "UpB", "decided b 4 budget (6)", {.actions_max = 1, .actions_per_us = A_MINUTE}, false},
    {"DownA",
     "DownB",
     "decided b 4 budget (3)",
     {.scale_down_milli_percent = 1000, .scale_down_per_us = A_MINUTE},
     true},
    {"DownA",
     "DownB",
     "decided b 4 budget (3)",
     {.scale_down_milli_percent = 1000, .scale_down_per_us = A_MINUTE},
     false},
};

Test(engine_limits, a_crash_between_intent_and_outcome_keeps_the_place)
{
    for (size_t i = 0; i < AS_ARRAY_SIZE(crashes); i++) {
        WITH_LIMITS(h, four, crashes[i].limits);
        fire_until_sent(&h, "a", crashes[i].first);
        if (crashes[i].was_done) {
            harness_target(&h, "a")->size = crashes[i].first[0] == 'U' ? 6 : 3;
            harness_target(&h, "a")->version++;
        }
        harness_crash(&h, 1); /* a is not seen yet */
        fire(&h, crashes[i].second, 990);
        const char *text = said(&h);
        cr_assert(strstr(text, crashes[i].held), "row %zu: %s", i, text);
        harness_target(&h, "a")->is_hanging = false;
        harness_settle(&h);
        tick(&h, 45);
        text = said(&h);
        if (crashes[i].was_done)
            cr_assert(strstr(text, "applied late"), "row %zu: %s", i, text);
        cr_assert_leq(count(text, "applied"), 1, "row %zu: %s", i, text);
        tick(&h, 300);
        cr_assert(strstr(said(&h), "acted b"), "row %zu", i);
        harness_stop(&h);
    }
}

Test(engine_limits, a_limit_that_comes_with_a_reload_knows_what_was_before)
{
    WITH_LIMITS(h, four, (struct as_limits){0});
    fire_all(&h, (const char *const[]){"DownA", "UpB"}, 2);
    tick(&h, 10);
    h.config.limits = limit_actions(2, 25);
    harness_reload(&h, &four);
    (void)said(&h);
    fire(&h, "UpC", 990);
    cr_assert(strstr(said(&h), "decided c 4 budget (6)"));
    h.config.limits = limit_removal(1, 60);
    harness_reload(&h, &four);
    const char *text = said(&h);
    cr_assert(strstr(text, "acted c 4>6 applied"), "%s", text);
    fire(&h, "DownD", 990);
    cr_assert(strstr(said(&h), "decided d 4 budget (3)"));
    h.config.limits = (struct as_limits){0};
    harness_reload(&h, &four);
    cr_assert(strstr(said(&h), "acted d 4>3 applied"));
    harness_stop(&h);
}

Test(engine_limits, targets_that_no_rule_leads_to_any_more_are_not_under_management)
{
    WITH_LIMITS(h, four, limit_removal(10, 60)); /* 2 of 16 */
    struct spec two = four;
    memset(&two.targets[2], 0, 2 * sizeof(two.targets[0]));
    two.rules[2] = two.rules[4];
    two.rules[3] = two.rules[5];
    memset(&two.rules[4], 0, 4 * sizeof(two.rules[0]));
    harness_reload(&h, &two); /* 1 of 8 */
    (void)said(&h);
    fire_all(&h, (const char *const[]){"DownA", "DownB"}, 2);
    cr_assert_eq(count(said(&h), "applied"), 1);
    harness_stop(&h);
}

/* It has no lock, and its alert is over. */
Test(engine_limits, targets_that_are_forgotten_are_not_under_management)
{
    static const struct spec templated = {
        .targets =
            {{.name = "a", .min = 1, .max = 20},
             {.name = "any", .address = "{{ .Labels.app }}", .allow = "*", .min = 1, .max = 20}},
        .rules = {{.name = "down-a", .match = {"alertname=DownA"}, .target = "a", .down = 2},
                  {.name = "up", .match = {"alertname=Slow"}, .target = "any", .up = 1}},
    };
    for (unsigned i = 0; i < 2; i++) {
        WITH_LIMITS(h, templated, limit_removal(10, 60));
        fire(&h, "Slow,app=big", 990);
        harness_target(&h, "big")->size = 1000;
        fire(&h, "Slow,app=big,pod=1", 990); /* at its maximum: nothing happens */
        if (i == 1) {
            resolve(&h, "Slow,app=big", 990);
            resolve(&h, "Slow,app=big,pod=1", 990);
            tick(&h, (int64_t)2 * 86400);
        }
        (void)said(&h);
        fire(&h, "DownA", 990);
        cr_assert(strstr(said(&h), i == 1 ? "decided a 4 budget (2)" : "acted a 4>2 applied"));
        harness_stop(&h);
    }
}

/* ---- whatever happens */

struct tally { /* of what the targets were asked for and did */
    struct {
        int64_t at;
        int32_t amount;
    } begun[4096], removed[4096];
    size_t begun_count, removed_count;
    int64_t milli_percent;
    unsigned run;
};

static void tally_request(struct harness *h, const struct queued_call *call, bool is_done)
{
    struct tally *tally = h->listener;
    const int32_t removal = call->request.from - call->request.to;
    cr_assert_lt(tally->begun_count, AS_ARRAY_SIZE(tally->begun));
    tally->begun[tally->begun_count++].at = call->at.us;
    if (!is_done || removal <= 0)
        return;
    tally->removed[tally->removed_count].at = h->mono.us;
    tally->removed[tally->removed_count++].amount = removal;
    int64_t removed = 0, all = 0;
    for (size_t i = 0; i < tally->removed_count; i++)
        removed += h->mono.us - tally->removed[i].at < A_MINUTE ? tally->removed[i].amount : 0;
    for (size_t i = 0; i < h->target_count; i++)
        all += h->targets[i].size;
    if (tally->milli_percent > 0)
        cr_assert_leq(removed, ((all + removed) * tally->milli_percent + 99999) / 100000,
                      "run %u: %lld of %lld", tally->run, (long long)removed, (long long)all);
}

/* The requests that are under way are carried out or not: nobody hears of it. */
static void crash_at_random(struct harness *h, struct as_random *random)
{
    for (size_t i = 0; i < h->call_count; i++) {
        const struct queued_call *call = &h->calls[i];
        if (!call->is_scale)
            continue;
        const bool is_done = as_random_get_below(random, 2) == 0;
        if (is_done) {
            harness_target(h, call->id)->size = call->request.to;
            harness_target(h, call->id)->version++;
        }
        tally_request(h, call, is_done);
    }
    harness_crash(h, (int64_t)as_random_get_below(random, 20));
}

static void fail_at_random(struct harness *h, struct as_random *random)
{
    static const struct scale_script scripts[] = {
        {.outcome = AS_REASON_FORBIDDEN},
        {.outcome = AS_REASON_CONFLICT},
        {.outcome = AS_REASON_TIMEOUT, .is_ambiguous = true},
        {.outcome = AS_REASON_TIMEOUT, .is_ambiguous = true, .is_done = true},
    };
    if (h->script_count < 4)
        harness_script(h, scripts[as_random_get_below(random, AS_ARRAY_SIZE(scripts))]);
}

static const char *const alerts[] = {"UpA",   "UpB",   "UpC",   "UpD",
                                     "DownA", "DownB", "DownC", "DownD"};

/* Further steps down need it. */
static void repeat_all(struct harness *h, const bool is_firing[AS_ARRAY_SIZE(alerts)])
{
    for (size_t i = 0; i < AS_ARRAY_SIZE(alerts); i++) {
        if (is_firing[i])
            fire(h, alerts[i], 990);
    }
}

static void act_at_random(struct harness *h, struct as_random *random, bool may_crash,
                          bool is_firing[AS_ARRAY_SIZE(alerts)])
{
    const size_t which = as_random_get_below(random, AS_ARRAY_SIZE(alerts));
    const char *alert = alerts[which];
    const char name[] = {(char)(alert[strlen(alert) - 1] - 'A' + 'a'), '\0'};
    struct virtual_target *target = harness_target(h, name);
    const uint64_t what = as_random_get_below(random, 12);
    if (what < 5)
        fire(h, alert, 990);
    else if (what < 8)
        resolve(h, alert, 990);
    else if (what == 8)
        target->is_hanging = !target->is_hanging;
    else if (what == 9)
        target->failure = target->failure ? 0 : AS_REASON_UNREACHABLE;
    else if (what == 10)
        fail_at_random(h, random);
    else if (may_crash && as_random_get_below(random, 3) == 0)
        crash_at_random(h, random);
    if (what < 8)
        is_firing[which] = what < 5;
    harness_settle(h);
    repeat_all(h, is_firing);
    tick(h, (int64_t)as_random_get_below(random, 8));
    (void)said(h);
}

static void run_at_random(struct as_limits limits, unsigned run, bool may_crash,
                          struct tally *tally)
{
    struct spec locked = four;
    struct as_random random;
    bool is_firing[AS_ARRAY_SIZE(alerts)] = {false};
    struct harness h = {.config.limits = limits, .on_request = tally_request, .listener = tally};
    as_random_init(&random, run);
    *tally = (struct tally){.milli_percent = limits.scale_down_milli_percent, .run = run};
    for (size_t i = 0; i < 4; i++) {
        const char name[] = {(char)('a' + i), '\0'};
        locked.targets[i].up = locked.targets[i].down = 5;
        harness_target(&h, name)->size = 40;
    }
    harness_start(&h, &locked);
    for (unsigned i = 0; i < 300; i++)
        act_at_random(&h, &random, may_crash, is_firing);
    harness_stop(&h);
}

/* Without crashes, which forget attempts that failed. */
Test(engine_limits, no_window_ever_has_more_actions)
{
    static struct tally tally;
    size_t total = 0;
    for (unsigned run = 0; run < 30; run++) {
        run_at_random(limit_actions(3, 60), run, false, &tally);
        for (size_t i = 3; i < tally.begun_count; i++)
            cr_assert_geq(tally.begun[i].at - tally.begun[i - 3].at, A_MINUTE, "run %u", run);
        total += tally.begun_count;
    }
    cr_assert_gt(total, 30 * 20, "%zu", total);
}

Test(engine_limits, no_window_ever_has_larger_removals)
{
    static struct tally tally;
    size_t total = 0;
    for (unsigned run = 0; run < 60; run++) {
        run_at_random(limit_removal(run % 2 ? 2 : 5, 60), run, true, &tally);
        total += tally.removed_count;
    }
    cr_assert_gt(total, 60 * 20, "%zu", total);
}
