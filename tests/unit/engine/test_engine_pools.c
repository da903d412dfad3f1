/*
 * Pools in the engine: their decisions reach their groups as shares, groups that fail lose their
 * turn to the others, and pools of one cluster decide in turn. The cluster is a fleet (fleet.h).
 */
#include "engine_pool.h"

static const struct spec workers = {.targets = {CHEAP_AND_DEAR}, .rules = {WAIT_AND_IDLE}};

Test(engine_pools, pods_that_wait_bring_nodes_and_the_pool_rests)
{
    struct harness h = {0};
    start(&h, &workers);
    fleet_add_pods(&fleet, 0, 6);
    tick(&h, 60);
    (void)said(&h);
    fire(&h, "Wait", 1000);
    const char *text = said(&h);
    cr_expect(has(text, "decided both 1>3 scaled by wait"), "%s", text);
    cr_expect(has(text, "decided cheap 0>2 scaled by wait"), "%s", text);
    cr_expect(has(text, "acted cheap 0>2 applied"), "%s", text);
    tick(&h, 300);
    text = said(&h);
    cr_expect_not(has(text, "scale "), "what is on its way is enough: %s", text);
    cr_expect_eq(fleet_count_waiting(&fleet), 0);
    stop(&h);
}

static unsigned held; /* targets on which the rule `wait` is held */

static void count_held(void *context, const struct as_target_view *view)
{
    held += as_engine_is_ineffective(((struct harness *)context)->engine, view->id, "wait");
}

static unsigned count_held_targets(struct harness *h)
{
    held = 0;
    as_engine_visit_targets(h->engine, h->mono, h->wall, count_held, h);
    return held;
}

/* Actions are those of the groups; the hold is the pool's, and so one of each of its groups. */
Test(engine_pools, a_rule_that_did_not_help_is_held_on_the_pool)
{
    struct harness h = {0};
    struct spec spec = workers;
    spec.rules[0].ineffective_after = 1;
    start(&h, &spec);
    fleet_add_pods(&fleet, 0, 6);
    tick(&h, 60);
    fire(&h, "Wait", 1000);
    tick(&h, 300);
    cr_expect_eq(fleet.groups[0].size, 2);
    cr_expect_eq(count_held_targets(&h), 0);
    (void)said(&h);
    tick(&h, 3600);
    const char *text = said(&h);
    cr_expect(has(text, "not_resolved held"), "%s", text);
    cr_expect_eq(count_held_targets(&h), 3, "the pool and its groups");
    fleet_add_pods(&fleet, 0, 6);
    tick(&h, 120);
    text = said(&h);
    cr_expect(has(text, "ineffective"), "%s", text);
    cr_expect_eq(fleet.groups[0].size, 2);
    harness_crash(&h, 5);
    cr_expect_eq(count_held_targets(&h), 3, "it outlasts a crash");
    harness_order(
        &h, (struct as_operator_command){.kind = AS_OPERATOR_COMMAND_RESUME, .target = "both"});
    tick(&h, 60);
    cr_expect_eq(count_held_targets(&h), 0);
    cr_expect_gt(fleet.groups[0].size, 2);
    stop(&h);
}

/* Else `explain` would tell of nodes as they were minutes ago. */
Test(engine_pools, a_change_of_what_is_unneeded_is_recorded)
{
    struct harness h = {0};
    start(&h, &workers);
    fleet.groups[0].size = 3;
    tick(&h, 120);
    fire(&h, "Idle", 1000);
    tick(&h, 60);
    cr_expect(has(said(&h), "decided both 4 no_change"));
    tick(&h, 120);
    cr_expect_not(has(said(&h), "decided both"), "nothing has changed");
    fleet_add_pods(&fleet, 0, 2);
    tick(&h, 75);
    const char *text = said(&h);
    cr_expect_eq(count(text, "decided both 4 no_change"), 1, "%s", text);
    stop(&h);
}

Test(engine_pools, nodes_that_are_unneeded_leave_by_name)
{
    struct harness h = {0};
    start(&h, &workers);
    fleet.groups[0].size = 3;
    tick(&h, 120);
    fire(&h, "Idle", 1000);
    tick(&h, 500);
    cr_expect_eq(fleet.groups[0].size, 3, "not unneeded for long enough");
    tick(&h, 300);
    const char *text = said(&h);
    cr_expect(has(text, "decided both 4>1 scaled by idle"), "%s", text);
    cr_expect(has(text, "acted cheap 3>0 applied"), "%s", text);
    cr_expect_eq(fleet.groups[1].size, 1);
    cr_expect_eq(fleet_count_waiting(&fleet), 0);
    stop(&h);
}

Test(engine_pools, a_group_that_refuses_loses_its_turn_at_once)
{
    struct harness h = {0};
    start(&h, &workers);
    fleet_add_pods(&fleet, 0, 6);
    tick(&h, 60);
    (void)said(&h);
    harness_script(&h, (struct scale_script){.outcome = AS_REASON_REJECTED, .is_shortage = true});
    fire(&h, "Wait", 1000);
    const char *text = said(&h);
    cr_expect(has(text, "acted cheap 0>2 rejected"), "%s", text);
    cr_expect(has(text, "acted dear 1>3 applied"), "%s", text);
    tick(&h, 240);
    text = said(&h);
    cr_expect_not(has(text, "scale cheap"), "it backs off: %s", text);
    cr_expect_eq(fleet_count_waiting(&fleet), 0);
    stop(&h);
}

Test(engine_pools, a_share_that_is_not_applied_goes_to_the_others_after_30_seconds)
{
    struct harness h = {0};
    start(&h, &workers);
    fleet_add_pods(&fleet, 0, 6);
    tick(&h, 60);
    harness_target(&h, "cheap")->in_progress = true; /* only when it is asked for itself */
    (void)said(&h);
    fire(&h, "Wait", 1000);
    const char *text = said(&h);
    cr_expect(has(text, "decided cheap 0 in_progress (2)"), "%s", text);
    cr_expect_eq(h.last_in_progress_by, AS_IN_PROGRESS_PROVIDER);
    tick(&h, 20);
    cr_expect_not(has(said(&h), "scale dear"));
    tick(&h, 30);
    text = said(&h);
    cr_expect(has(text, "acted dear 1>3 applied"), "%s", text);
    stop(&h);
}

Test(engine_pools, a_paused_group_is_closed_and_a_pause_in_between_gives_its_share_back)
{
    struct harness h = {0};
    start(&h, &workers);
    fleet_add_pods(&fleet, 0, 6);
    tick(&h, 60);
    harness_order(
        &h, (struct as_operator_command){.kind = AS_OPERATOR_COMMAND_PAUSE, .target = "cheap"});
    (void)said(&h);
    fire(&h, "Wait", 1000);
    const char *text = said(&h);
    cr_expect(has(text, "acted dear 1>3 applied"), "%s", text);
    cr_expect_not(has(text, "decided cheap"), "%s", text);
    stop(&h);
}

Test(engine_pools, the_lock_begins_with_the_first_share)
{
    struct harness h = {0};
    start(&h, &workers);
    fleet.groups[0].size = 2;
    tick(&h, 120);
    fire(&h, "Idle", 1000);
    tick(&h, 700);
    cr_expect(has(said(&h), "acted cheap 2>0 applied"));
    fleet.groups[0].size = 2; /* somebody else's */
    tick(&h, 30);
    const char *text = said(&h);
    cr_expect_not(has(text, "scale cheap"), "%s", text);
    harness_crash(&h, 1);
    tick(&h, 10);
    cr_expect_eq(fleet.groups[0].size, 2, "unneeded times begin anew");
    stop(&h);
}

Test(engine_pools, a_crash_between_decision_and_share_decides_anew_and_nothing_twice)
{
    struct harness h = {0};
    start(&h, &workers);
    fleet_add_pods(&fleet, 0, 6);
    tick(&h, 60);
    h.hold_calls = true;
    fire(&h, "Wait", 1000);
    harness_settle_to_request(&h);
    (void)said(&h);
    harness_crash(&h, 1);
    h.hold_calls = false;
    harness_settle(&h);
    tick(&h, 120);
    cr_expect_eq(fleet.groups[0].size + fleet.groups[1].size, 3, "%s", said(&h));
    cr_expect_eq(fleet_count_waiting(&fleet), 0);
    stop(&h);
}

Test(engine_pools, new_rules_drop_shares_and_the_pool_decides_anew)
{
    struct harness h = {0};
    start(&h, &workers);
    fleet_add_pods(&fleet, 0, 6);
    tick(&h, 60);
    harness_target(&h, "cheap")->in_progress = true;
    fire(&h, "Wait", 1000);
    harness_target(&h, "cheap")->in_progress = false;
    (void)said(&h);
    harness_reload(&h, &workers);
    const char *text = said(&h);
    cr_expect(has(text, "acted cheap 0>2 applied"), "%s", text);
    stop(&h);
}

/* The request of `cheap` is under way when `dear` gets a rule for the same pods. */
Test(engine_pools, new_rules_in_the_middle_of_an_increase_buy_nothing_twice)
{
    static const struct spec first = {
        .targets = {{.name = "cheap", .is_group = true, .max = 10},
                    {.name = "dear", .is_group = true, .min = 1, .max = 10}},
        .rules = {{.name = "a", .match = {"alertname=Wait"}, .target = "cheap", .fit = true}},
    };
    struct harness h = {0};
    struct spec second = first;
    second.rules[0].target = "dear";
    start(&h, &first);
    fleet_add_pods(&fleet, 0, 6);
    tick(&h, 60);
    harness_target(&h, "cheap")->is_slow = true;
    fire(&h, "Wait", 1000);
    cr_assert(has(said(&h), "scale cheap 0>2"));
    harness_reload(&h, &second);
    harness_target(&h, "cheap")->is_slow = false;
    tick(&h, 300);
    const char *text = said(&h);
    cr_expect(has(text, "acted cheap 0>2 applied"), "%s", text);
    cr_expect_eq(fleet.groups[1].size, 1, "%s", text);
    cr_expect_eq(fleet_count_waiting(&fleet), 0, "%s", text);
    stop(&h);
}

Test(engine_pools, two_pools_of_a_cluster_do_not_both_buy_for_one_pod)
{
    static const struct spec two = {
        .targets = {{.name = "cheap", .is_group = true, .max = 10},
                    {.name = "dear", .is_group = true, .min = 1, .max = 10},
                    {.name = "one", .pool = {"cheap"}, .max = 10},
                    {.name = "other", .pool = {"dear"}, .max = 10}},
        .rules = {{.name = "a", .match = {"alertname=Wait"}, .target = "one", .fit = true},
                  {.name = "b", .match = {"alertname=Wait"}, .target = "other", .fit = true}},
    };
    struct harness h = {0};
    start(&h, &two);
    fleet_add_pods(&fleet, 0, 6);
    tick(&h, 60);
    fire(&h, "Wait", 1000);
    tick(&h, 120);
    cr_expect_eq(fleet.groups[0].size + fleet.groups[1].size, 3, "%s", said(&h));
    stop(&h);
}

Test(engine_pools, who_waits_for_a_turn_holds_no_place_within_the_limits)
{
    static const struct spec two = {
        .targets = {{.name = "cheap", .is_group = true, .max = 10},
                    {.name = "dear", .is_group = true, .min = 1, .max = 10},
                    {.name = "one", .pool = {"cheap"}, .max = 10},
                    {.name = "web", .min = 1, .max = 10}},
        .rules =
            {{.name = "a", .match = {"alertname=Wait"}, .target = "one", .fit = true},
             {.name = "b", .match = {"alertname=Late"}, .target = "dear", .fit = true},
             {.name = "c", .match = {"alertname=Web"}, .target = "web", .up = 2, .max_steps = 1}},
    };
    struct harness h = {.config.limits = {.actions_max = 1, .actions_per_us = 90 * AS_US_PER_S}};
    start(&h, &two);
    fleet_add_pods(&fleet, 0, 20);
    tick(&h, 60);
    fire(&h, "Web", 1000); /* takes the only place */
    fire(&h, "Late", 1000);
    fire(&h, "Wait", 1000);
    const char *text = said(&h);
    cr_expect(has(text, "decided dear 1 budget"), "%s", text);
    cr_expect(has(text, "decided cheap 0 budget"), "behind it: %s", text);
    tick(&h, 400);
    cr_expect_eq(fleet_count_waiting(&fleet), 0, "%s", said(&h));
    stop(&h);
}

/* The limit holds the increase for longer than its facts are good; then fewer pods wait. */
Test(engine_pools, what_a_limit_has_held_for_long_is_decided_anew)
{
    static const struct spec two = {
        .targets = {{.name = "cheap", .is_group = true, .max = 10},
                    {.name = "dear", .is_group = true, .min = 1, .max = 10},
                    {.name = "one", .pool = {"cheap"}, .max = 10},
                    {.name = "web", .min = 1, .max = 10}},
        .rules =
            {{.name = "a", .match = {"alertname=Wait"}, .target = "one", .fit = true},
             {.name = "c", .match = {"alertname=Web"}, .target = "web", .up = 2, .max_steps = 1}},
    };
    struct harness h = {.config.limits = {.actions_max = 1, .actions_per_us = 900 * AS_US_PER_S}};
    start(&h, &two);
    fleet_add_pods(&fleet, 0, 12);
    tick(&h, 60);
    fire(&h, "Web", 1000); /* takes the only place */
    fire(&h, "Wait", 1000);
    cr_assert(has(said(&h), "decided cheap 0 budget (3) by a"));
    fleet_remove_pods(&fleet, 0, 10);
    tick(&h, 1000);
    const char *text = said(&h);
    cr_expect(has(text, "acted cheap 0>1 applied"), "%s", text);
    cr_expect_eq(fleet.groups[0].size, 1, "%s", text);
    stop(&h);
}

/* Its share waits for a place within the limits when the alert ends. */
Test(engine_pools, what_no_incident_wants_any_more_is_not_bought)
{
    static const struct spec two = {
        .targets = {{.name = "cheap", .is_group = true, .max = 10},
                    {.name = "dear", .is_group = true, .min = 1, .max = 10},
                    {.name = "one", .pool = {"cheap"}, .max = 10},
                    {.name = "web", .min = 1, .max = 10}},
        .rules =
            {{.name = "a", .match = {"alertname=Wait"}, .target = "one", .fit = true},
             {.name = "c", .match = {"alertname=Web"}, .target = "web", .up = 2, .max_steps = 1}},
    };
    struct harness h = {.config.limits = {.actions_max = 1, .actions_per_us = 90 * AS_US_PER_S}};
    start(&h, &two);
    fleet_add_pods(&fleet, 0, 20);
    tick(&h, 60);
    fire(&h, "Web", 1000); /* takes the only place */
    fire(&h, "Wait", 1000);
    const char *text = said(&h);
    cr_expect(has(text, "decided cheap 0 budget"), "%s", text);
    resolve(&h, "Wait", 1000);
    tick(&h, 400);
    cr_expect_eq(fleet.groups[0].size, 0, "%s", said(&h));
    stop(&h);
}

Test(engine_pools, a_dry_run_of_the_pool_changes_nothing)
{
    struct spec dry = workers;
    dry.targets[2].dry_run = true;
    struct harness h = {0};
    start(&h, &dry);
    fleet_add_pods(&fleet, 0, 6);
    tick(&h, 60);
    (void)said(&h);
    fire(&h, "Wait", 1000);
    const char *text = said(&h);
    cr_expect(has(text, "decided both 1 dry_run (3)"), "%s", text);
    tick(&h, 60);
    cr_expect_not(has(said(&h), "scale "));
    stop(&h);
}

Test(engine_pools, an_order_for_a_pool_is_refused_and_one_for_a_group_is_done)
{
    struct harness h = {0};
    start(&h, &workers);
    harness_order(&h, (struct as_operator_command){
                          .kind = AS_OPERATOR_COMMAND_SCALE, .target = "both", .replicas = 5});
    cr_expect_str_eq(h.last_message,
                     "a pool has no size of its own: order the size of one of its groups");
    harness_order(&h, (struct as_operator_command){
                          .kind = AS_OPERATOR_COMMAND_SCALE, .target = "cheap", .replicas = 2});
    cr_expect_eq(fleet.groups[0].size, 2);
    stop(&h);
}

Test(engine_pools, a_group_is_a_pool_of_itself)
{
    static const struct spec lone = {
        .targets = {{.name = "cheap", .is_group = true, .max = 10},
                    {.name = "dear", .is_group = true, .min = 1, .max = 10}},
        .rules = {{.name = "wait", .match = {"alertname=Wait"}, .target = "cheap", .fit = true},
                  {.name = "idle",
                   .match = {"alertname=Idle"},
                   .target = "cheap",
                   .take = true,
                   .guard = "none"}},
    };
    struct harness h = {0};
    start(&h, &lone);
    fleet_add_pods(&fleet, 0, 6);
    tick(&h, 60);
    fire(&h, "Wait", 1000);
    tick(&h, 120);
    cr_expect_eq(fleet.groups[0].size, 2, "%s", said(&h));
    resolve(&h, "Wait", 1000);
    fleet_remove_pods(&fleet, 0, 6);
    fire(&h, "Idle", 1200);
    tick(&h, 1500);
    cr_expect_eq(fleet.groups[0].size, 0, "%s", said(&h));
    cr_expect_eq(fleet_count_waiting(&fleet), 0);
    stop(&h);
}

/* A pool asks once for all its groups, and its answer counts once. */
Test(engine_pools, a_pool_asks_once_for_its_groups)
{
    static struct spec asks;
    asks = workers;
    asks.rules[0].approval =
        (struct as_approval_config){.is_set = true, .above = 1, .for_us = 15 * AS_US_PER_MIN};
    struct harness h = {0};
    start(&h, &asks);
    fleet_add_pods(&fleet, 0, 40);
    fire(&h, "Wait", 990);
    tick(&h, 300);
    const char *text = said(&h);
    cr_assert(has(text, "asked both 1>11 by wait"), "%s", text);
    cr_assert_null(strstr(strstr(text, "asked ") + 1, "asked "), "%s", text);
    cr_assert_eq(fleet_count_waiting(&fleet), 40);
    harness_order(&h, (struct as_operator_command){.kind = AS_OPERATOR_COMMAND_APPROVE,
                                                   .request = h.last_request});
    tick(&h, 300);
    text = said(&h);
    cr_assert(has(text, "used both 1>11 by wait"), "%s", text);
    cr_assert_eq(fleet_count_waiting(&fleet), 0, "%s", text);
    stop(&h);
}

/* After a restart its time is over, but `dear` waits for its turn behind `cheap`, which hangs. */
Test(engine_pools, a_request_in_question_waits_for_a_turn, .timeout = 120)
{
    static const struct spec alone = {
        .targets = {{.name = "cheap", .is_group = true, .max = 10},
                    {.name = "dear", .is_group = true, .min = 1, .max = 10}},
        .rules = {{.name = "a", .match = {"alertname=A"}, .target = "cheap", .fit = true},
                  {.name = "b",
                   .match = {"alertname=B"},
                   .target = "dear",
                   .take = true,
                   .guard = "none"}},
    };
    struct harness h = {0};
    start(&h, &alone);
    fleet.groups[1].size = 3;
    tick(&h, 120);
    fire(&h, "B", 1000);
    harness_script(&h, (struct scale_script){.outcome = AS_REASON_TIMEOUT, .is_ambiguous = true});
    bool is_lost = false;
    for (int i = 0; i < 700 && !is_lost; i++) {
        tick(&h, 1);
        is_lost = has(said(&h), "acted dear 3>1 timeout");
    }
    cr_assert(is_lost);
    harness_target(&h, "cheap")->is_hanging = true;
    fire(&h, "A", 1000);
    harness_crash(&h, 300);
    tick(&h, 300);
    harness_target(&h, "cheap")->is_hanging = false;
    harness_settle(&h);
    tick(&h, 900);
    cr_expect_eq(fleet.groups[1].size, 1);
    stop(&h);
}
