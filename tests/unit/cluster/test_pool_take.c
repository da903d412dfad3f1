/*
 * Which nodes a pool can do without. The cases are those of docs/pools.md, and of Cluster
 * Autoscaler's planner, removal simulator, unneeded nodes and scale-down budgets.
 */
#include "../engine/pool_world.h"

#define GIB (INT64_C(1) << 30)
#define FOR (10 * AS_US_PER_MIN)

static struct world *world;
static struct as_unneeded known[WORLD_NODES];

static void begin(void)
{
    world = world_new();
    world_add_group(world, "a", 4000, 16 * GIB, 20, 40);
}

static void end(void)
{
    world_free(world);
}

TestSuite(pool_take, .init = begin, .fini = end);

static struct as_unneeded *know(const char *node, int64_t ago)
{
    struct as_unneeded *unneeded = &known[world->snapshot.unneeded_count++];
    *unneeded = (struct as_unneeded){
        .node = node,
        .since = {.set = true, .at = {WORLD_NOW - ago}},
        .seen = {.set = true, .at = {WORLD_NOW - 15 * AS_US_PER_S}},
    };
    world->snapshot.unneeded = known;
    return unneeded;
}

/* A candidate that has been unneeded for longer than `for`. */
static struct as_snapshot_node *add_idle(const char *name, uint32_t group,
                                         const struct as_snapshot_pod_class *pod_class,
                                         uint32_t count)
{
    know(name, FOR + 1);
    return world_add_candidate(world, name, group, pod_class, count);
}

static const char *print_taken(const struct as_pool_plan *plan)
{
    static char text[4096];
    int size = 0;
    text[0] = '\0';
    for (size_t i = 0; i < plan->take_count; i++)
        size +=
            snprintf(text + size, sizeof(text) - (size_t)size, "%s%s", i ? " " : "", plan->take[i]);
    return text;
}

#define EXPECT_TAKEN(plan, expected)                                                               \
    cr_expect_str_eq(print_taken(plan), expected, "taken: %s", print_taken(plan))
#define EXPECT_STAYS(plan, index, why)                                                             \
    cr_expect_eq((plan)->stays[index], why, "%s: %d", world->nodes[index].node.name,               \
                 (int)(plan)->stays[index])

static const struct as_unneeded *find(const struct as_pool_plan *plan, const char *name)
{
    for (size_t i = 0; i < plan->unneeded_count; i++)
        if (strcmp(plan->unneeded[i].node, name) == 0)
            return &plan->unneeded[i];
    return NULL;
}

/* 2: who is unneeded */

Test(pool_take, a_node_whose_pods_fit_elsewhere_is_unneeded)
{
    struct as_snapshot_pod_class *pod_class = world_add_pod_class(world, 1000, GIB);
    add_idle("n1", 0, pod_class, 2);
    world_add_node(world, "n2", 0, 1000);
    world_add_node(world, "n3", 0, 1000);
    const struct as_pool_plan plan = world_plan(world);
    EXPECT_TAKEN(&plan, "n1");
    cr_expect_eq(plan.take_size, 19);
    cr_expect_eq(plan.groups[0].take_to, 19);
    cr_expect_eq(plan.take_group[0], 0);
    EXPECT_STAYS(&plan, 0, AS_STAY_COUNT);
}

Test(pool_take, every_pod_must_fit_else_none_of_them_uses_room)
{
    struct as_snapshot_pod_class *large = world_add_pod_class(world, 1500, GIB);
    struct as_snapshot_pod_class *small = world_add_pod_class(world, 900, GIB);
    add_idle("n1", 0, large, 2)->utilization = 1;
    add_idle("n2", 0, small, 1)->utilization = 2;
    world_add_node(world, "n3", 0, 1500);
    world->nodes[1].is_ready = false; /* it leaves, and receives nothing */
    world->groups[0].unneeded.unready_for_us = FOR;
    const struct as_pool_plan plan = world_plan(world);
    EXPECT_TAKEN(&plan, "n2");
    EXPECT_STAYS(&plan, 0, AS_STAY_NO_ROOM);
    cr_expect_eq(plan.kept[AS_STAY_NO_ROOM], 1);
}

Test(pool_take, room_is_used_up_on_the_way)
{
    struct as_snapshot_pod_class *pod_class = world_add_pod_class(world, 1000, GIB);
    add_idle("n1", 0, pod_class, 1);
    add_idle("n2", 0, pod_class, 1);
    world->nodes[0].left.amount[AS_RES_CPU] = world->nodes[1].left.amount[AS_RES_CPU] = 0;
    world_add_node(world, "n3", 0, 1999);
    world->config.at_once_drain = 2;
    const struct as_pool_plan plan = world_plan(world);
    EXPECT_TAKEN(&plan, "n1");
    EXPECT_STAYS(&plan, 1, AS_STAY_NO_ROOM);
}

Test(pool_take, a_node_that_receives_a_pod_stays)
{
    struct as_snapshot_pod_class *pod_class = world_add_pod_class(world, 1000, GIB);
    add_idle("n1", 0, pod_class, 1);
    add_idle("n2", 0, pod_class, 1);
    add_idle("n3", 0, pod_class, 1);
    world->config.at_once_drain = 3;
    const struct as_pool_plan plan = world_plan(world);
    EXPECT_TAKEN(&plan, "n1 n3");
    EXPECT_STAYS(&plan, 1, AS_STAY_RECEIVES);
    cr_expect_null(find(&plan, "n2"), "its row is broken");
}

Test(pool_take, a_node_that_is_unneeded_receives_nothing)
{
    struct as_snapshot_pod_class *pod_class = world_add_pod_class(world, 1000, GIB);
    world_add_candidate(world, "n1", 0, NULL, 0);
    add_idle("n2", 0, pod_class, 1);
    const struct as_pool_plan plan = world_plan(world);
    EXPECT_TAKEN(&plan, "");
    EXPECT_STAYS(&plan, 0, AS_STAY_SHORTLY);
    EXPECT_STAYS(&plan, 1, AS_STAY_NO_ROOM);
}

Test(pool_take, nodes_that_are_not_ready_receive_nothing_and_pods_respect_taints_and_ports)
{
    static const struct as_taint taint = {"dedicated", "x", AS_TAINT_NO_SCHEDULE};
    static const struct as_host_port port = {"0.0.0.0", "TCP", 80};
    struct as_snapshot_pod_class *pod_class = world_add_pod_class(world, 1000, GIB);
    const struct as_snapshot_pods guest = {world_index(world, pod_class), 1};
    pod_class->pod.ports = &port;
    pod_class->pod.port_count = 1;
    add_idle("n1", 0, pod_class, 1);
    world_add_node(world, "n2", 0, 4000)->is_ready = false;
    struct as_snapshot_node *tainted = world_add_node(world, "n3", 0, 4000);
    tainted->node.taints = &taint;
    tainted->node.taint_count = 1;
    struct as_snapshot_node *taken = world_add_node(world, "n4", 0, 4000);
    taken->guests = &guest;
    taken->guest_count = 1;
    struct as_pool_plan plan = world_plan(world);
    EXPECT_STAYS(&plan, 0, AS_STAY_NO_ROOM);
    taken->guest_count = 0;
    plan = world_plan(world);
    EXPECT_TAKEN(&plan, "n1");
}

Test(pool_take, only_pods_that_may_preempt_have_the_room_of_expendable_ones)
{
    static const struct as_resources expendable = {.amount = {[AS_RES_CPU] = 1000}};
    struct as_snapshot_pod_class *pod_class = world_add_pod_class(world, 1000, GIB);
    add_idle("n1", 0, pod_class, 1);
    world_add_node(world, "n2", 0, 1500)->expendable = &expendable;
    struct as_pool_plan plan = world_plan(world);
    EXPECT_TAKEN(&plan, "n1");
    pod_class->pod.never_preempts = true;
    plan = world_plan(world);
    EXPECT_STAYS(&plan, 0, AS_STAY_NO_ROOM);
    world->nodes[1].left.amount[AS_RES_CPU] = 2000;
    plan = world_plan(world);
    EXPECT_TAKEN(&plan, "n1");
}

Test(pool_take, pods_that_choose_a_hostname_go_nowhere_else)
{
    struct as_snapshot_pod_class *pod_class = world_add_pod_class(world, 1000, GIB);
    pod_class->pod.selector = world_labels(world, "kubernetes.io/hostname", "n3");
    add_idle("n1", 0, pod_class, 1);
    world_add_node(world, "n2", 0, 4000)->node.labels =
        world_labels(world, "kubernetes.io/hostname", "n2");
    struct as_snapshot_node *named = world_add_node(world, "n3", 0, 999);
    named->node.labels = pod_class->pod.selector;
    struct as_pool_plan plan = world_plan(world);
    EXPECT_STAYS(&plan, 0, AS_STAY_NO_ROOM);
    named->left.amount[AS_RES_CPU] = 1000;
    plan = world_plan(world);
    EXPECT_TAKEN(&plan, "n1");
}

Test(pool_take, budgets_are_used_up_on_the_way)
{
    static const uint32_t budget = 0;
    static const struct {
        int32_t allowed;
        const char *taken;
    } cases[] = {{0, ""}, {1, "n1"}, {2, "n1"}, {3, "n1 n2"}, {4, "n1 n2"}};
    for (size_t i = 0; i < AS_ARRAY_SIZE(cases); i++) {
        struct as_snapshot_pod_class *pod_class = world_add_pod_class(world, 1000, GIB);
        pod_class->budgets = &budget;
        pod_class->budget_count = 1;
        world->budgets[0] = (struct as_snapshot_budget){"shop/web", cases[i].allowed};
        world->snapshot.budget_count = 1;
        add_idle("n1", 0, pod_class, 2);
        add_idle("n2", 0, pod_class, 2);
        world_add_candidate(world, "n3", 0, NULL, 0)->is_candidate = false;
        world->config.at_once_drain = 2;
        world->nodes[0].left.amount[AS_RES_CPU] = world->nodes[1].left.amount[AS_RES_CPU] = 0;
        const struct as_pool_plan plan = world_plan(world);
        EXPECT_TAKEN(&plan, cases[i].taken);
        if (cases[i].allowed < 3)
            EXPECT_STAYS(&plan, 1, AS_STAY_BUDGET);
        end();
        begin();
    }
}

/* Minima: what they keep receives pods */

/* n1: an empty node of a group at its minimum; n2: a node of another one, whose pod fits only
 * there. */
static void add_big_and_small(void)
{
    world->groups[0].nodes = world->groups[0].size = world->groups[0].min = 1;
    world_add_group(world, "small", 2000, 8 * GIB, 1, 9);
    add_idle("n1", 0, NULL, 0);
    add_idle("n2", 1, world_add_pod_class(world, 1000, GIB), 1);
}

Test(pool_take, a_node_at_the_minimum_receives_pods)
{
    add_big_and_small();
    const struct as_pool_plan plan = world_plan(world);
    EXPECT_TAKEN(&plan, "n2");
    EXPECT_STAYS(&plan, 0, AS_STAY_RECEIVES);
    cr_expect_null(find(&plan, "n1"), "its row is broken");
}

Test(pool_take, in_older_documents_a_node_at_the_minimum_receives_none)
{
    add_big_and_small();
    world->request.version = 2;
    const struct as_pool_plan plan = world_plan(world);
    EXPECT_TAKEN(&plan, "");
    EXPECT_STAYS(&plan, 0, AS_STAY_AT_MIN);
    EXPECT_STAYS(&plan, 1, AS_STAY_NO_ROOM);
}

Test(pool_take, each_minimum_keeps_nodes_open_for_pods)
{
    for (int i = 0; i < 4; i++) {
        add_big_and_small();
        world->groups[0].min = i == 0;
        world->groups[0].cpu = 4000;
        world->groups[0].memory = 16 * GIB;
        world->request.terms.min = i == 1; /* of two nodes: one may leave, the empty one */
        world->config.cpu.min = i == 2 ? 4000 : 0;
        world->config.memory.min = i == 3 ? 16 * GIB : 0;
        const struct as_pool_plan plan = world_plan(world);
        EXPECT_TAKEN(&plan, i == 1 ? "n1" : "n2");
        end();
        begin();
    }
}

Test(pool_take, a_node_at_the_minimum_stays_unneeded_while_it_receives_nothing)
{
    world->groups[0].nodes = world->groups[0].size = world->groups[0].min = 2;
    add_idle("n1", 0, NULL, 0);
    add_idle("n2", 0, NULL, 0);
    const struct as_pool_plan plan = world_plan(world);
    EXPECT_STAYS(&plan, 0, AS_STAY_AT_MIN);
    cr_expect_eq(find(&plan, "n1")->since.at.us, WORLD_NOW - FOR - 1);
}

/* The only place above the minimum is not for a node that may leave later. */
Test(pool_take, nodes_that_may_leave_now_come_first_at_a_minimum)
{
    struct as_snapshot_pod_class *pod_class = world_add_pod_class(world, 1000, GIB);
    world->groups[0].min = 19;
    world_add_candidate(world, "n1", 0, NULL, 0);
    add_idle("n2", 0, pod_class, 1);
    world_add_node(world, "n3", 0, 1000);
    struct as_pool_plan plan = world_plan(world);
    EXPECT_TAKEN(&plan, "n2");
    EXPECT_STAYS(&plan, 0, AS_STAY_RECEIVES);
    world->nodes[0].left.amount[AS_RES_CPU] = world->nodes[2].left.amount[AS_RES_CPU] = 0;
    plan = world_plan(world);
    EXPECT_TAKEN(&plan, "");
    EXPECT_STAYS(&plan, 1, AS_STAY_NO_ROOM);
    EXPECT_STAYS(&plan, 0, AS_STAY_AT_MIN);
}

Test(pool_take, what_a_node_that_stays_was_granted_the_next_one_uses)
{
    struct as_snapshot_pod_class *large = world_add_pod_class(world, 3000, GIB);
    struct as_snapshot_pod_class *small = world_add_pod_class(world, 100, GIB);
    world->groups[0].min = 19;
    add_idle("n1", 0, large, 1);
    add_idle("n2", 0, small, 1)->left.amount[AS_RES_CPU] = 2000;
    world->nodes[0].utilization = 1;
    world->nodes[1].utilization = 2;
    world_add_node(world, "n3", 0, 2000);
    const struct as_pool_plan plan = world_plan(world);
    EXPECT_STAYS(&plan, 0, AS_STAY_NO_ROOM);
    EXPECT_TAKEN(&plan, "n2");
}

/* The order of candidates */

Test(pool_take, candidates_are_taken_in_order)
{
    struct as_snapshot_pod_class *pod_class = world_add_pod_class(world, 100, GIB);
    world_add_candidate(world, "n1", 0, pod_class, 1)->utilization = 9;
    world_add_candidate(world, "n2", 0, pod_class, 1)->utilization = 7; /* no room lately */
    world_add_candidate(world, "n3", 0, pod_class, 1)->utilization = 8;
    world_add_candidate(world, "n4", 0, pod_class, 1)->utilization = 8;
    world_add_candidate(world, "n5", 0, pod_class, 1)->utilization = 40; /* the longest */
    world_add_candidate(world, "n6", 0, NULL, 0)->utilization = 50;
    know("n2", FOR + 9)->no_room = (as_maybe_time){.set = true, .at = {WORLD_NOW}};
    know("n5", FOR + 5);
    for (size_t i = 0; i < 5; i++)
        world->nodes[i].left.amount[AS_RES_CPU] = 0;
    world_add_node(world, "n7", 0, 0);
    static const char *const order[] = {"n6", "n5", "n3", "n4", "n1", "n2"};
    for (int room = 0; room < 6; room++) {
        world->nodes[6].left.amount[AS_RES_CPU] = 100 * room;
        const struct as_pool_plan plan = world_plan(world);
        for (int i = 0; i < 6; i++) {
            const struct as_unneeded *unneeded = find(&plan, order[i]);
            cr_expect_eq(unneeded && unneeded->since.set, i <= room, "%s with room for %d",
                         order[i], room);
        }
    }
}

Test(pool_take, who_had_no_room_goes_last_for_five_minutes)
{
    struct as_snapshot_pod_class *pod_class = world_add_pod_class(world, 1000, GIB);
    world_add_candidate(world, "n1", 0, pod_class, 1);
    world_add_candidate(world, "n2", 0, pod_class, 1);
    world->nodes[0].left.amount[AS_RES_CPU] = world->nodes[1].left.amount[AS_RES_CPU] = 0;
    world_add_node(world, "n3", 0, 0);
    struct as_pool_plan plan = world_plan(world);
    cr_assert_eq(plan.unneeded_count, 2);
    cr_expect_eq(plan.unneeded[0].no_room.at.us, WORLD_NOW);
    cr_expect_not(plan.unneeded[0].since.set);

    known[0] = plan.unneeded[0];
    world->snapshot.unneeded = known;
    world->snapshot.unneeded_count = 1;
    world->nodes[2].left.amount[AS_RES_CPU] = 1000;
    world->request.terms.now.us += 5 * AS_US_PER_MIN - 1;
    plan = world_plan(world);
    EXPECT_STAYS(&plan, 0, AS_STAY_NO_ROOM);
    cr_expect_eq(find(&plan, "n1")->no_room.at.us, world->request.terms.now.us);
    world->request.terms.now.us++;
    plan = world_plan(world);
    EXPECT_STAYS(&plan, 1, AS_STAY_NO_ROOM);
    cr_expect(find(&plan, "n1")->since.set);
}

Test(pool_take, who_had_no_room_and_is_not_in_the_snapshot_is_remembered)
{
    know("n0", FOR)->no_room = (as_maybe_time){.set = true, .at = {WORLD_NOW - AS_US_PER_MIN}};
    know("n1", FOR);
    know("n9", FOR)->no_room = (as_maybe_time){.set = true, .at = {WORLD_NOW - FOR}};
    world_add_node(world, "n5", 0, 4000);
    const struct as_pool_plan plan = world_plan(world);
    cr_assert_eq(plan.unneeded_count, 1);
    cr_expect_str_eq(plan.unneeded[0].node, "n0");
    cr_expect_not(plan.unneeded[0].since.set);
    cr_expect_eq(plan.unneeded[0].no_room.at.us, WORLD_NOW - AS_US_PER_MIN);
}

/* 3: for how long */

Test(pool_take, a_node_leaves_when_it_was_unneeded_for_longer_than_it_must)
{
    static const struct {
        const char *what;
        int64_t since, seen; /* ago; -1: never */
        int64_t unready_for_us;
        bool is_unready, leaves, is_new_row;
    } cases[] = {
        {"first seen", -1, -1, FOR, .is_new_row = true},
        {"exactly `for`", FOR, 0, FOR, .leaves = false},
        {"longer", FOR + 1, 0, FOR, .leaves = true},
        {"not Ready: its own time", FOR + 1, 0, 2 * FOR, .is_unready = true},
        {"not Ready, longer", 2 * FOR + 1, 0, 2 * FOR, .is_unready = true, .leaves = true},
        {"not Ready, never", 9 * FOR, 0, AS_UNREADY_NEVER, .is_unready = true},
        {"looks five minutes apart", FOR + 1, 5 * AS_US_PER_MIN, FOR, .leaves = true},
        {"looks further apart", FOR + 1, 5 * AS_US_PER_MIN + 1, FOR, .is_new_row = true},
        {"no time of the last look", FOR + 1, -1, FOR, .leaves = true},
        {"a time in the future", -FOR, 0, FOR, .is_new_row = true},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(cases); i++) {
        struct as_snapshot_node *node = world_add_candidate(world, "n1", 0, NULL, 0);
        node->is_ready = !cases[i].is_unready;
        world->groups[0].unneeded.unready_for_us = cases[i].unready_for_us;
        if (cases[i].since != -1) {
            struct as_unneeded *unneeded = know("n1", cases[i].since);
            unneeded->seen.set = cases[i].seen != -1;
            unneeded->seen.at.us = WORLD_NOW - cases[i].seen;
        }
        const struct as_pool_plan plan = world_plan(world);
        const struct as_unneeded *unneeded = find(&plan, "n1");
        cr_expect_eq(plan.take_count, cases[i].leaves, "%s", cases[i].what);
        if (cases[i].unready_for_us == AS_UNREADY_NEVER) {
            cr_expect_null(unneeded, "%s", cases[i].what);
        } else {
            cr_assert_not_null(unneeded, "%s", cases[i].what);
            cr_expect_eq(unneeded->since.at.us,
                         WORLD_NOW - (cases[i].is_new_row ? 0 : cases[i].since), "%s",
                         cases[i].what);
            cr_expect_eq(unneeded->seen.at.us, WORLD_NOW);
        }
        if (!cases[i].leaves)
            EXPECT_STAYS(&plan, 0, AS_STAY_SHORTLY);
        end();
        begin();
    }
}

Test(pool_take, a_node_that_is_no_candidate_any_more_begins_anew)
{
    add_idle("n1", 0, NULL, 0)->is_candidate = false;
    const struct as_pool_plan plan = world_plan(world);
    cr_expect_eq(plan.unneeded_count, 0);
    EXPECT_STAYS(&plan, 0, AS_STAY_UTILIZED);
}

Test(pool_take, after_a_failed_drain_none_leaves_for_three_minutes)
{
    add_idle("n1", 0, NULL, 0);
    world->snapshot.drain_failed =
        (as_maybe_time){.set = true, .at = {WORLD_NOW - 3 * AS_US_PER_MIN + 1}};
    struct as_pool_plan plan = world_plan(world);
    EXPECT_TAKEN(&plan, "");
    cr_expect(find(&plan, "n1")->since.set, "the row goes on");
    world->snapshot.drain_failed.at.us--;
    plan = world_plan(world);
    EXPECT_TAKEN(&plan, "n1");
}

/* At once, and minima */

static void add_many_idle(int empty, int drained)
{
    struct as_snapshot_pod_class *pod_class = world_add_pod_class(world, 100, GIB);
    for (int i = 0; i < empty + drained; i++)
        add_idle(world_name(world, 'n', i), 0, i < empty ? NULL : pod_class, i < empty ? 0 : 1)
            ->left.amount[AS_RES_CPU] = 0;
    world_add_node(world, "z", 0, 4000);
}

Test(pool_take, so_many_leave_at_once)
{
    static const struct {
        uint32_t empty, drained;
        uint64_t empty_under_way, drained_under_way;
        uint64_t taken_empty, taken_drained;
    } cases[] = {
        {10, 1, 0, 0, 10, 1}, {10, 1, 4, 0, 6, 1},   {10, 1, 12, 1, 0, 0},
        {3, 2, 0, 1, 3, 1},   {100, 5, 0, 0, 15, 4},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(cases); i++) {
        add_many_idle(15, 4);
        world->config.at_once_empty = cases[i].empty;
        world->config.at_once_drain = cases[i].drained;
        world->snapshot.leaving_empty = cases[i].empty_under_way;
        world->snapshot.leaving_drained = cases[i].drained_under_way;
        const struct as_pool_plan plan = world_plan(world);
        const uint64_t taken = cases[i].taken_empty + cases[i].taken_drained;
        cr_expect_eq(plan.take_count, taken, "%zu: %zu", i, plan.take_count);
        cr_expect_eq(plan.kept[AS_STAY_AT_ONCE], 19 - taken);
        cr_expect_eq(plan.unneeded_count, 19, "who waits stays unneeded");
        end();
        begin();
    }
}

Test(pool_take, never_below_the_minima)
{
    static const struct {
        const char *what;
        int32_t group_min, pool_min;
        int64_t cpu_min, memory_min;
        int32_t marked; /* nodes that leave already: they are no part of the size */
        size_t taken;
    } cases[] = {
        {"none", 0, 0, 0, 0, 0, 10},
        {"of the group", 17, 0, 0, 0, 0, 3},
        {"of the group, at it", 20, 0, 0, 0, 0, 0},
        {"of the group, below it", 25, 0, 0, 0, 0, 0},
        {"of the pool", 0, 18, 0, 0, 0, 2},
        {"cpu", 0, 0, 4000 * 16 + 1, 0, 0, 3},
        {"memory", 0, 0, 0, 16 * GIB * 15, 0, 5},
        {"cpu, without nodes that leave", 0, 0, 4000 * 16, 0, 2, 4},
        {"the narrowest", 16, 15, 4000 * 18, 0, 0, 2},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(cases); i++) {
        add_many_idle(12, 0);
        world->groups[0].min = cases[i].group_min;
        world->request.terms.min = cases[i].pool_min;
        world->config.cpu.min = cases[i].cpu_min;
        world->config.memory.min = cases[i].memory_min;
        world->groups[0].nodes += cases[i].marked;
        world->groups[0].cpu += cases[i].marked * 4000;
        const struct as_pool_plan plan = world_plan(world);
        cr_expect_eq(plan.take_count, cases[i].taken, "%s: %zu", cases[i].what, plan.take_count);
        cr_expect_eq(plan.kept[AS_STAY_AT_MIN] + plan.kept[AS_STAY_AT_ONCE], 12 - cases[i].taken,
                     "%s", cases[i].what);
        end();
        begin();
    }
}

Test(pool_take, five_hundred_empty_nodes_leave_ten_at_a_time)
{
    int32_t size = 600;
    for (int i = 0; i < 500; i++)
        add_idle(world_name(world, 'n', i), 0, NULL, 0);
    world->groups[0].size = size;
    world->groups[0].nodes = size;
    for (int round = 0; round < 50; round++) {
        const struct as_pool_plan plan = world_plan(world);
        cr_assert_eq(plan.take_count, 10);
        for (size_t i = 0; i < plan.take_count; i++) {
            for (size_t k = 0; k < world->snapshot.node_count; k++)
                if (strcmp(world->nodes[k].node.name, plan.take[i]) == 0)
                    world->nodes[k].is_candidate = false;
        }
        size -= 10;
        cr_assert_eq(plan.take_size, size);
        world->groups[0].size = size;
        world->groups[0].nodes = size;
    }
    cr_expect_eq(world_plan(world).take_count, 0);
}

Test(pool_take, names_come_by_group)
{
    world_add_group(world, "b", 4000, 16 * GIB, 5, 9);
    add_idle("n1", 1, NULL, 0);
    add_idle("n2", 0, NULL, 0);
    add_idle("n3", 1, NULL, 0);
    add_idle("n4", 0, NULL, 0);
    const struct as_pool_plan plan = world_plan(world);
    EXPECT_TAKEN(&plan, "n2 n4 n1 n3");
    cr_expect_eq(plan.take_group[1], 0);
    cr_expect_eq(plan.take_group[2], 1);
    cr_expect_eq(plan.groups[0].take_to, 18);
    cr_expect_eq(plan.groups[1].take_to, 3);
    cr_expect_eq(plan.take_size, 21);
}

/* Scenarios */

Test(pool_take, a_full_group_whose_nodes_are_idle_shrinks)
{
    world->groups[0].max = 20;
    world->groups[0].closed = AS_REASON_AT_MAX;
    add_idle("n1", 0, NULL, 0);
    world_add_pending(world, 8000, GIB, 1);
    const struct as_pool_plan plan = world_plan(world);
    EXPECT_TAKEN(&plan, "n1");
    cr_expect_eq(plan.groups[0].skipped, AS_REASON_AT_MAX);
}

Test(pool_take, one_strict_budget_does_not_stop_growth)
{
    static const uint32_t budget = 0;
    struct as_snapshot_pod_class *pod_class = world_add_pending(world, 4000, GIB, 2);
    pod_class->budgets = &budget;
    pod_class->budget_count = 1;
    world->budgets[0] = (struct as_snapshot_budget){"shop/web", 0};
    world->snapshot.budget_count = 1;
    add_idle("n1", 0, pod_class, 1);
    const struct as_pool_plan plan = world_plan(world);
    cr_expect_eq(plan.fit_size, 22);
    EXPECT_STAYS(&plan, 0, AS_STAY_BUDGET);
}

Test(pool_take, without_take_what_is_remembered_stays)
{
    add_idle("n1", 0, NULL, 0);
    world->request.terms.with_take = false;
    const struct as_pool_plan plan = world_plan(world);
    cr_expect_eq(plan.take_size, 20);
    cr_assert_eq(plan.unneeded_count, 1);
    cr_expect_eq(plan.unneeded[0].seen.at.us, known[0].seen.at.us);
    cr_expect_null(plan.stays);
}

Test(pool_take, kept_counts_those_of_the_snapshot_too)
{
    world->snapshot.kept[AS_STAY_UTILIZED] = 7;
    world->snapshot.kept[AS_STAY_NO_ROOM] = 1;
    world_add_candidate(world, "n1", 0, world_add_pod_class(world, 1000, GIB), 1);
    const struct as_pool_plan plan = world_plan(world);
    cr_expect_eq(plan.kept[AS_STAY_UTILIZED], 7);
    cr_expect_eq(plan.kept[AS_STAY_NO_ROOM], 2);
}
