/*
 * Forbidden directions of pools and of their groups: what must not go down keeps its nodes, also
 * those that are marked; nothing is bought for what must not go up, and the others go on.
 */
#include "engine_pool.h"

static const struct spec workers = {
    .targets = {CHEAP_AND_DEAR},
    .rules = {WAIT_AND_IDLE,
              {.name = "keep", .match = {"alertname=Keep"}, .target = "both", .hold = AS_WAYS_DOWN},
              {.name = "stop", .match = {"alertname=Stop"}, .target = "both", .hold = AS_WAYS_UP}},
};

static void pause_way(struct harness *harness, const char *target, enum as_ways ways)
{
    harness_order(harness, (struct as_operator_command){
                               .kind = AS_OPERATOR_COMMAND_PAUSE, .target = target, .ways = ways});
}

static void resume(struct harness *harness, const char *target)
{
    harness_order(harness, (struct as_operator_command){.kind = AS_OPERATOR_COMMAND_RESUME,
                                                        .target = target});
}

Test(engine_pool_holds, a_group_that_must_not_go_down_keeps_its_nodes_and_the_others_lose_theirs)
{
    struct harness h = {0};
    start(&h, &workers);
    fleet.groups[0].size = 3;
    fleet.groups[1].size = 3;
    tick(&h, 120);
    pause_way(&h, "cheap", AS_WAYS_DOWN);
    fire(&h, "Idle", 1000);
    tick(&h, 900);
    cr_expect_eq(fleet.groups[0].size, 3, "%d", fleet.groups[0].size);
    cr_expect_eq(fleet.groups[1].size, 1, "%d", fleet.groups[1].size);
    cr_expect_not(has(said(&h), "decided cheap"), "the plan does not even ask for its nodes");
    resume(&h, "cheap");
    tick(&h, 900);
    cr_expect_eq(fleet.groups[0].size, 0, "%d", fleet.groups[0].size);
    stop(&h);
}

Test(engine_pool_holds, while_a_rule_holds_the_pool_no_node_leaves)
{
    struct harness h = {0};
    start(&h, &workers);
    fleet.groups[0].size = 3;
    tick(&h, 120);
    fire(&h, "Keep", 1000);
    fire(&h, "Idle", 1000);
    tick(&h, 900);
    cr_expect_eq(fleet.groups[0].size, 3);
    cr_expect(has(said(&h), "decided both 4 held"));
    resolve(&h, "Keep", 1000);
    tick(&h, 120);
    cr_expect_eq(fleet.groups[0].size, 0);
    stop(&h);
}

Test(engine_pool_holds, nodes_that_are_marked_wait_while_their_pool_must_not_go_down)
{
    struct harness h = {0};
    start(&h, &workers);
    const char *id = harness_target(&h, "cheap")->id;
    cr_expect_null(as_engine_find_terminate_obstacle(h.engine, id, h.mono));
    fire(&h, "Keep", 1000);
    cr_expect_str_eq(as_engine_find_terminate_obstacle(h.engine, id, h.mono),
                     "held: the size must not go down");
    resolve(&h, "Keep", 1000);
    cr_expect_null(as_engine_find_terminate_obstacle(h.engine, id, h.mono));
    pause_way(&h, "both", AS_WAYS_DOWN);
    cr_expect_str_eq(as_engine_find_terminate_obstacle(h.engine, id, h.mono),
                     "held: the size must not go down");
    resume(&h, "both");
    pause_way(&h, "both", AS_WAYS_UP);
    cr_expect_null(as_engine_find_terminate_obstacle(h.engine, id, h.mono));
    stop(&h);
}

Test(engine_pool_holds, nothing_is_bought_for_a_group_that_must_not_go_up)
{
    struct harness h = {0};
    start(&h, &workers);
    fleet_add_pods(&fleet, 0, 6);
    tick(&h, 60);
    pause_way(&h, "cheap", AS_WAYS_UP);
    (void)said(&h);
    fire(&h, "Wait", 1000);
    const char *text = said(&h);
    cr_expect(has(text, "acted dear 1>3 applied"), "%s", text);
    cr_expect_not(has(text, "decided cheap"), "%s", text);
    stop(&h);
}

Test(engine_pool_holds, nothing_is_bought_while_a_rule_holds_the_pool)
{
    struct harness h = {0};
    start(&h, &workers);
    fleet_add_pods(&fleet, 0, 6);
    tick(&h, 60);
    fire(&h, "Stop", 1000);
    (void)said(&h);
    fire(&h, "Wait", 1000);
    tick(&h, 300);
    cr_expect_eq(fleet.groups[0].size + fleet.groups[1].size, 1);
    cr_expect(has(said(&h), "decided both 1 held"));
    resolve(&h, "Stop", 1000);
    tick(&h, 60);
    cr_expect_eq(fleet_count_waiting(&fleet), 0);
    stop(&h);
}
