/*
 * The engine's views, as shown by metrics and the API.
 */
#include "engine_harness.h"

#include <stdio.h>

#include <alertscaler/base/attr.h>

static const struct spec spec = {
    .targets = {{.name = "web", .min = 1, .max = 20, .up = 60, .down = 300, .up_after_down = 30}},
    .rules = {{.name = "slow", .match = {"alertname=Slow"}, .target = "web", .up = 2},
              {.name = "all", .match = {"alertname=~\"Slow|Full\""}, .target = "web", .up = 1},
              {.name = "idle", .match = {"alertname=Idle"}, .target = "web", .down = 1}},
};

static void keep_view(void *context, const struct as_target_view *view)
{
    *(struct as_target_view *)context = *view;
}

static struct as_target_view view_of(struct harness *harness)
{
    struct as_target_view view = {0};
    as_engine_visit_targets(harness->engine, harness->mono, harness->wall, keep_view, &view);
    return view;
}

Test(engine_view, a_target_before_and_after_its_first_action)
{
    WITH(h, spec);
    struct as_target_view view = view_of(&h);
    cr_assert_str_eq(view.id, "kubernetes/default/apps/v1/Deployment/shop/web");
    cr_assert_str_eq(view.name, "web");
    cr_assert(view.has_size);
    cr_assert_eq(view.replicas, 4);
    cr_assert_null(view.last_decision);
    cr_assert_not(as_moment_is_set(view.up_locked_until));

    fire(&h, "Slow", 990);
    view = view_of(&h);
    cr_assert_eq(view.replicas, 6);
    cr_assert_eq(view.desired, 6);
    cr_assert_not(view.busy);
    cr_assert_str_eq(view.last_decision, h.last_order);
    cr_assert_str_eq(view.last_rule, "slow");
    cr_assert_eq(view.last_reason, AS_REASON_SCALED);
    cr_assert_eq(view.up_locked_until.mono.us, h.mono.us + 60 * AS_US_PER_S);
    cr_assert_eq(view.up_locked_until.wall.us, h.wall.us + 60 * AS_US_PER_S);
    cr_assert_eq(view.down_locked_until.mono.us, h.mono.us + 300 * AS_US_PER_S);
    harness_stop(&h);
}

Test(engine_view, an_incident_counts_once_however_many_rules_it_has)
{
    WITH(h, spec);
    fire(&h, "Slow", 990);
    cr_assert_eq(view_of(&h).open_incidents, 1);
    fire(&h, "Full", 990);
    cr_assert_eq(view_of(&h).open_incidents, 2);
    resolve(&h, "Slow", 990);
    cr_assert_eq(view_of(&h).open_incidents, 1);
    harness_stop(&h);
}

Test(engine_view, a_failure_is_shown_until_it_is_over)
{
    WITH(h, spec);
    h.observation = AS_REASON_FORBIDDEN;
    fire(&h, "Slow", 990);
    cr_assert_eq(view_of(&h).last_failure, AS_REASON_FORBIDDEN);
    h.observation = AS_REASON_APPLIED;
    tick(&h, 60);
    cr_assert_eq(view_of(&h).last_failure, AS_REASON_APPLIED);
    harness_stop(&h);
}

Test(engine_view, a_failure_to_set_the_size_is_shown_while_it_lasts)
{
    WITH(h, spec);
    h.always = (struct scale_script){.outcome = AS_REASON_FORBIDDEN};
    fire(&h, "Slow", 990);
    for (int i = 0; i < 10; i++) {
        tick(&h, 30);
        cr_assert_eq(view_of(&h).last_failure, AS_REASON_FORBIDDEN);
    }
    harness_stop(&h);
}

Test(engine_view, busy_while_something_is_under_way)
{
    WITH(h, spec);
    h.hold_calls = true;
    fire(&h, "Slow", 990);
    cr_assert(view_of(&h).busy);
    cr_assert_eq(as_engine_get_counts(h.engine).targets_busy, 1);
    cr_assert_not(as_engine_is_idle(h.engine));
    h.hold_calls = false;
    harness_settle(&h);
    cr_assert_not(view_of(&h).busy);
    cr_assert(as_engine_is_idle(h.engine));
    harness_stop(&h);
}

struct seen_locks {
    size_t count;
    struct as_lock last;
    char rule[40], decision[40], command[40];
};

static void keep_lock(void *context, const struct as_lock *lock)
{
    struct seen_locks *seen = context;
    seen->count++;
    seen->last = *lock;
    snprintf(seen->rule, sizeof(seen->rule), "%s", lock->rule ? lock->rule : "");
    snprintf(seen->decision, sizeof(seen->decision), "%s", lock->decision ? lock->decision : "");
    snprintf(seen->command, sizeof(seen->command), "%s", lock->command ? lock->command : "");
}

static struct seen_locks locks_of(struct harness *harness)
{
    struct seen_locks seen = {0};
    as_engine_visit_locks(harness->engine, harness->mono, harness->wall, keep_lock, &seen);
    return seen;
}

Test(engine_view, a_lock_says_until_when_and_what_it_goes_back_to)
{
    WITH(h, spec);
    cr_assert_eq(locks_of(&h).count, 0);
    fire(&h, "Slow", 990);
    const as_wall_time set = h.wall;
    char decision[40];
    snprintf(decision, sizeof(decision), "%s", h.last_order);
    tick(&h, 10);
    struct seen_locks seen = locks_of(&h);
    cr_assert_eq(seen.count, 1);
    cr_expect_str_eq(seen.last.target, "kubernetes/default/apps/v1/Deployment/shop/web");
    cr_expect_not(seen.last.is_in_flight);
    cr_expect_eq(seen.last.since.us, set.us);
    cr_expect(seen.last.up_until.set && seen.last.down_until.set);
    cr_expect_eq(seen.last.up_until.at.us, set.us + 60 * AS_US_PER_S);
    cr_expect_eq(seen.last.down_until.at.us, set.us + 300 * AS_US_PER_S);
    cr_expect_str_eq(seen.rule, "slow");
    cr_expect_str_eq(seen.decision, decision, "of the change, not of the last look");
    cr_expect_str_eq(seen.command, "");
    resolve(&h, "Slow", 990);
    tick(&h, 60);
    seen = locks_of(&h);
    cr_assert_eq(seen.count, 1);
    cr_expect_not(seen.last.up_until.set);
    tick(&h, 300);
    cr_assert_eq(locks_of(&h).count, 0);
    harness_stop(&h);
}

Test(engine_view, a_request_under_way_is_a_lock_without_an_end)
{
    WITH(h, spec);
    h.hold_calls = true;
    fire(&h, "Slow", 990);
    cr_assert_eq(locks_of(&h).count, 0, "looking at it locks nothing");
    h.hold_calls = false;
    h.always = (struct scale_script){.outcome = AS_REASON_TIMEOUT, .is_ambiguous = true};
    harness_settle(&h);
    const struct seen_locks seen = locks_of(&h);
    cr_assert_eq(seen.count, 1);
    cr_expect(seen.last.is_in_flight);
    cr_expect_not(seen.last.up_until.set || seen.last.down_until.set);
    cr_expect_str_eq(seen.rule, "slow");
    cr_expect_str_eq(seen.decision, h.last_order);
    harness_stop(&h);
}

struct seen_incidents {
    size_t count, targets;
    bool is_open;
};

static void count_incident(void *context, const struct as_incident_state *state,
                           const struct as_incident_target *targets, size_t target_count)
{
    struct seen_incidents *seen = context;
    seen->count++;
    seen->targets += target_count;
    seen->is_open = state->is_open;
    for (size_t i = 0; i < target_count; i++)
        cr_assert_eq(targets[i].replicas, 6);
}

Test(engine_view, incidents_with_their_rules)
{
    WITH(h, spec);
    struct seen_incidents seen = {0};
    fire(&h, "Slow", 990);
    as_engine_visit_incidents(h.engine, count_incident, &seen);
    cr_assert_eq(seen.count, 1);
    cr_assert_eq(seen.targets, 2);
    cr_assert(seen.is_open);
    harness_stop(&h);
}
