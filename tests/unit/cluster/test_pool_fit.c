/*
 * How a pool grows for pods that wait. The cases are those of docs/pools.md and of Cluster
 * Autoscaler's scale-up orchestrator, which the headings name by their step.
 */
#include "../engine/pool_world.h"

#define GIB (INT64_C(1) << 30)

static struct world *world;

static void begin(void)
{
    world = world_new();
}

static void end(void)
{
    world_free(world);
}

TestSuite(pool_fit, .init = begin, .fini = end);

static struct as_snapshot_group *add_group(const char *name, int32_t size, int32_t max)
{
    return world_add_group(world, name, 4000, 16 * GIB, size, max);
}

/* Which group gets how many nodes */

struct group_row {
    int64_t cpu;
    int32_t size, max, coming, in_doubt;
    enum as_reason closed;
    bool has_priority;
    int32_t priority;
};

#define GROUP(cpu_, size_, max_, ...)                                                              \
    {                                                                                              \
        .cpu = (cpu_), .size = (size_), .max = (max_), __VA_ARGS__                                 \
    }

static const struct {
    const char *what;
    struct group_row groups[3];
    struct {
        int64_t cpu, memory;
        uint32_t count;
    } pods[3];
    int32_t max; /* of the pool; 0: none */
    int64_t cpu_max;
    enum as_pool_filter choose;
    bool balance;
    int32_t fit[3];
    enum as_reason reason;
} rows[] = {
    {"nobody waits", {GROUP(4000, 2, 9)}, .fit = {2}, .reason = AS_REASON_NO_CHANGE},
    {"one node", {GROUP(4000, 2, 9)}, {{1000, 1, 4}}, .fit = {3}, .reason = AS_REASON_SCALED},
    {"as many as the pods need",
     {GROUP(4000, 2, 9)},
     {{3000, 1, 2}, {1000, 1, 3}},
     .fit = {5},
     .reason = AS_REASON_SCALED},

    /* 2: what is on its way */
    {"ten nodes that boot are not ordered again elsewhere",
     {GROUP(4000, 10, 20, .coming = 10), GROUP(4000, 3, 20)},
     {{4000, 1, 10}},
     .fit = {10, 3},
     .reason = AS_REASON_NO_CHANGE},
    {"the eleventh pod gets a node",
     {GROUP(4000, 10, 20, .coming = 10), GROUP(4000, 3, 20)},
     {{4000, 1, 11}},
     .fit = {11, 3},
     .reason = AS_REASON_SCALED},
    {"what is on its way in a closed group counts",
     {GROUP(4000, 10, 20, .coming = 10, .closed = AS_REASON_COOLDOWN), GROUP(4000, 3, 20)},
     {{4000, 1, 10}},
     .fit = {10, 3},
     .reason = AS_REASON_NO_CHANGE},

    /* 3: what is closed */
    {"at its max", {GROUP(4000, 9, 9)}, {{1000, 1, 1}}, .fit = {9}, .reason = AS_REASON_AT_MAX},
    {"paused",
     {GROUP(4000, 2, 9, .closed = AS_REASON_PAUSED)},
     {{1000, 1, 1}},
     .fit = {2},
     .reason = AS_REASON_PAUSED},
    {"in a back-off: another group instead",
     {GROUP(4000, 2, 9, .closed = AS_REASON_COOLDOWN), GROUP(2000, 2, 9)},
     {{1000, 1, 1}},
     .fit = {2, 3},
     .reason = AS_REASON_SCALED},
    {"the reason is that of the group that would take the pod",
     {GROUP(1000, 2, 9, .closed = AS_REASON_PAUSED), GROUP(4000, 9, 9)},
     {{2000, 1, 1}},
     .fit = {2, 9},
     .reason = AS_REASON_AT_MAX},
    {"an increase in doubt counts against the group's max",
     {GROUP(4000, 7, 9, .in_doubt = 2)},
     {{1000, 1, 1}},
     .fit = {7},
     .reason = AS_REASON_AT_MAX},
    {"and against the pool's",
     {GROUP(4000, 2, 9, .in_doubt = 2, .closed = AS_REASON_COOLDOWN), GROUP(4000, 2, 9)},
     {{4000, 1, 3}},
     .max = 7,
     .fit = {2, 3},
     .reason = AS_REASON_SCALED},
    {"and against the pool's cpu",
     {GROUP(4000, 2, 9, .in_doubt = 2, .closed = AS_REASON_COOLDOWN), GROUP(4000, 2, 9)},
     {{4000, 1, 3}},
     .cpu_max = 28000,
     .fit = {2, 3},
     .reason = AS_REASON_SCALED},
    {"but its nodes are no room",
     {GROUP(4000, 2, 9, .in_doubt = 2, .closed = AS_REASON_COOLDOWN), GROUP(4000, 2, 9)},
     {{4000, 1, 2}},
     .fit = {2, 4},
     .reason = AS_REASON_SCALED},
    {"no group could ever take it",
     {GROUP(4000, 2, 9), GROUP(2000, 9, 9)},
     {{5000, 1, 1}},
     .fit = {2, 9},
     .reason = AS_REASON_NO_GROUP},

    /* 4: estimates */
    {"at most up to the group's max: some of the pods count",
     {GROUP(4000, 2, 4)},
     {{4000, 1, 100}},
     .fit = {4},
     .reason = AS_REASON_SCALED},
    {"at most up to the pool's max",
     {GROUP(4000, 2, 40)},
     {{4000, 1, 100}},
     .max = 5,
     .fit = {5},
     .reason = AS_REASON_SCALED},
    {"at most 1,000 nodes at once",
     {GROUP(4000, 2, 4000)},
     {{4000, 1, 2000}},
     .fit = {1002},
     .reason = AS_REASON_SCALED},
    {"the pool is at its max",
     {GROUP(4000, 2, 40), GROUP(4000, 3, 9)},
     {{4000, 1, 1}},
     .max = 5,
     .fit = {2, 3},
     .reason = AS_REASON_AT_MAX},

    /* 5: the choice */
    {"least waste",
     {GROUP(16000, 0, 9), GROUP(4000, 0, 9)},
     {{3500, 1, 1}},
     .fit = {0, 1},
     .reason = AS_REASON_SCALED},
    {"of equal ones the first",
     {GROUP(4000, 0, 9), GROUP(4000, 0, 9)},
     {{1000, 1, 1}},
     .fit = {1},
     .reason = AS_REASON_SCALED},
    {"most pods",
     {GROUP(4000, 0, 1), GROUP(16000, 0, 1)},
     {{4000, 1, 4}},
     .choose = AS_POOL_MOST_PODS,
     .fit = {0, 1},
     .reason = AS_REASON_SCALED},
    {"least nodes",
     {GROUP(4000, 0, 9), GROUP(16000, 0, 9)},
     {{4000, 1, 4}},
     .choose = AS_POOL_LEAST_NODES,
     .fit = {0, 1},
     .reason = AS_REASON_SCALED},
    {"priority",
     {GROUP(4000, 0, 9, .has_priority = true, .priority = 1),
      GROUP(4000, 0, 9, .has_priority = true, .priority = 2)},
     {{4000, 1, 1}},
     .choose = AS_POOL_PRIORITY,
     .fit = {0, 1},
     .reason = AS_REASON_SCALED},
    {"a group that could take no pod is no option",
     {GROUP(2000, 0, 9, .has_priority = true, .priority = 9), GROUP(4000, 0, 9)},
     {{4000, 1, 1}},
     .choose = AS_POOL_PRIORITY,
     .fit = {0, 1},
     .reason = AS_REASON_SCALED},

    /* 6: caps */
    {"floor(left / per node) by cpu",
     {GROUP(4000, 2, 40)},
     {{4000, 1, 9}},
     .cpu_max = 4000 * 4 + 3999,
     .fit = {4},
     .reason = AS_REASON_SCALED},
    {"nothing left by cpu",
     {GROUP(4000, 2, 40)},
     {{4000, 1, 9}},
     .cpu_max = 4000 * 2 + 3999,
     .fit = {2},
     .reason = AS_REASON_AT_MAX},
    {"a smaller node still has room",
     {GROUP(8000, 2, 40), GROUP(2000, 0, 40)},
     {{2000, 1, 8}},
     .cpu_max = 8000 * 2 + 5000,
     .fit = {2, 2},
     .reason = AS_REASON_SCALED},
    {"what is on its way counts",
     {GROUP(4000, 4, 40, .coming = 2)},
     {{4000, 1, 9}},
     .cpu_max = 4000 * 5,
     .fit = {5},
     .reason = AS_REASON_SCALED},

    /* 7: balance */
    {"similar groups share",
     {GROUP(4000, 1, 9), GROUP(4000, 3, 9), GROUP(4000, 2, 9)},
     {{4000, 1, 6}},
     .balance = true,
     .fit = {4, 4, 4},
     .reason = AS_REASON_SCALED},
    {"below each max, and with the room of all",
     {GROUP(4000, 1, 2), GROUP(4000, 3, 4), GROUP(4000, 2, 9)},
     {{4000, 1, 6}},
     .balance = true,
     .fit = {2, 4, 6},
     .reason = AS_REASON_SCALED},
    {"without balance one group",
     {GROUP(4000, 1, 9), GROUP(4000, 3, 9), GROUP(4000, 2, 9)},
     {{4000, 1, 6}},
     .fit = {7, 3, 2},
     .reason = AS_REASON_SCALED},
    {"groups of other nodes do not share",
     {GROUP(4000, 1, 9), GROUP(4100, 1, 9)},
     {{4000, 1, 4}},
     .balance = true,
     .fit = {5, 1},
     .reason = AS_REASON_SCALED},
    {"a closed group does not share",
     {GROUP(4000, 1, 9), GROUP(4000, 1, 9, .closed = AS_REASON_COOLDOWN)},
     {{4000, 1, 4}},
     .balance = true,
     .fit = {5, 1},
     .reason = AS_REASON_SCALED},
    {"the pool's max holds for all that share",
     {GROUP(4000, 1, 9), GROUP(4000, 1, 9)},
     {{4000, 1, 4}},
     .max = 5,
     .balance = true,
     .fit = {3, 2},
     .reason = AS_REASON_SCALED},
};

static void fill(size_t row)
{
    static const char *const names[] = {"a", "b", "c"};
    for (size_t i = 0; i < 3; i++) {
        const struct group_row *from = &rows[row].groups[i];
        if (from->cpu == 0)
            continue;
        struct as_snapshot_group *group =
            world_add_group(world, names[i], from->cpu, 16 * GIB, from->size, from->max);
        group->coming = from->coming;
        group->in_doubt = from->in_doubt;
        group->nodes -= from->coming;
        group->cpu -= from->coming * from->cpu;
        group->closed = from->closed;
        group->has_priority = from->has_priority;
        group->priority = from->priority;
    }
    for (size_t i = 0; i < 3 && rows[row].pods[i].count > 0; i++)
        world_add_pending(world, rows[row].pods[i].cpu, rows[row].pods[i].memory,
                          rows[row].pods[i].count);
    world->request.terms.max = rows[row].max > 0 ? rows[row].max : INT32_MAX;
    world->config.cpu.max = rows[row].cpu_max > 0 ? rows[row].cpu_max : AS_POOL_NO_CAP;
    world->config.choose[0] = rows[row].choose;
    world->config.choose_count = 1;
    world->config.balance = rows[row].balance;
}

Test(pool_fit, groups_grow_as_the_page_says)
{
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        fill(i);
        const struct as_pool_plan plan = world_plan(world);
        int32_t size = 0, fit = 0;
        for (size_t k = 0; k < world->snapshot.group_count; k++) {
            size += world->groups[k].size;
            fit += plan.groups[k].fit;
            cr_expect_eq(plan.groups[k].fit, rows[i].fit[k], "%s: %d of %zu", rows[i].what,
                         plan.groups[k].fit, k);
        }
        cr_expect_eq(plan.fit_reason, rows[i].reason, "%s: %s", rows[i].what,
                     as_reason_get_word(plan.fit_reason));
        cr_expect_eq(plan.size, size, "%s", rows[i].what);
        cr_expect_eq(plan.fit_size, fit, "%s", rows[i].what);
        cr_expect_not(plan.is_cut, "%s", rows[i].what);
        end();
        begin();
    }
}

/* 2 */

Test(pool_fit, what_is_on_its_way_in_groups_outside_of_the_pool_counts_and_they_do_not_grow)
{
    add_group("mine", 1, 9);
    struct as_snapshot_group *other = add_group("other", 5, 9);
    other->is_member = false;
    other->coming = 2;
    world_add_pending(world, 4000, GIB, 3);
    const struct as_pool_plan plan = world_plan(world);
    cr_expect_eq(plan.size, 1);
    cr_expect_eq(plan.groups[0].fit, 2);
    cr_expect_eq(plan.groups[1].fit, 5);
    cr_expect_not(plan.groups[1].has_option);
}

Test(pool_fit, pods_of_the_highest_priority_get_what_is_on_its_way)
{
    add_group("a", 1, 1)->coming = 1;
    world_add_group(world, "b", 2000, 16 * GIB, 0, 9);
    world_add_pending(world, 2000, GIB, 2)->pod.priority = 1000;
    world_add_pending(world, 4000, GIB, 1)->pod.priority = 0;
    const struct as_pool_plan plan = world_plan(world);
    cr_expect_eq(plan.fit_reason, AS_REASON_AT_MAX, "the large one waits for group a");
    cr_expect_eq(plan.groups[1].fit, 0);
}

/* The scheduler tries equal priorities by age, which is the order of `pending`. */
Test(pool_fit, of_equal_priority_the_oldest_pods_get_what_is_on_its_way)
{
    add_group("a", 1, 1)->coming = 1;
    world_add_group(world, "b", 2000, 16 * GIB, 0, 9);
    world_add_pending(world, 2000, GIB, 2);
    world_add_pending(world, 4000, GIB, 1);
    cr_expect_eq(world_plan(world).groups[1].fit, 0, "the large pod waits for group a");
    world->request.version = 2;
    cr_expect_eq(world_plan(world).groups[1].fit, 2, "the largest first");
}

/* 3 */

/* A DaemonSet has the port on every node, also on those to come. */
Test(pool_fit, a_pod_whose_host_port_daemons_have_brings_no_node)
{
    static const struct as_host_port port = {"0.0.0.0", "TCP", 9100};
    struct as_snapshot_group *group = add_group("a", 2, 9);
    struct as_snapshot_pod_class *pod = world_add_pending(world, 100, 1, 1);
    pod->pod.ports = &port;
    pod->pod.port_count = 1;
    group->template_.ports = &port;
    group->template_.port_count = 1;
    struct as_pool_plan plan = world_plan(world);
    cr_expect_eq(plan.fit_size, 2);
    cr_expect_eq(plan.fit_reason, AS_REASON_NO_GROUP);
    cr_expect_eq(plan.homeless, 1);
    cr_expect_eq(plan.pod_classes[0].misfit, AS_MISFIT_PORT);

    group->coming = 1; /* it has no place there either */
    plan = world_plan(world);
    cr_expect_eq(plan.homeless, 1);

    add_group("b", 1, 9);
    plan = world_plan(world);
    cr_expect_eq(plan.groups[0].fit, 2);
    cr_expect_eq(plan.groups[1].fit, 2);
}

/* DaemonSets' pods are not what makes groups different, but in documents before version 3. */
Test(pool_fit, similar_groups_may_have_other_numbers_of_daemons)
{
    add_group("a", 2, 9);
    add_group("b", 1, 9)->template_.shape.allocatable.amount[AS_RES_PODS] = 90;
    world_add_pending(world, 3000, 1, 3);
    world->config.balance = true;
    struct as_pool_plan plan = world_plan(world);
    cr_expect_eq(plan.groups[0].fit, 3);
    cr_expect_eq(plan.groups[1].fit, 3);
    world->request.version = 2;
    plan = world_plan(world);
    cr_expect_eq(plan.groups[0].fit, 5);
    cr_expect_eq(plan.groups[1].fit, 1);
}

Test(pool_fit, every_group_that_is_closed_says_why)
{
    add_group("open", 1, 9);
    add_group("paused", 1, 9)->closed = AS_REASON_PAUSED;
    add_group("full", 9, 9);
    add_group("unknown", 0, 9)->template_.source = AS_NODE_TEMPLATE_NONE;
    struct as_snapshot_group *unread = add_group("unread", -1, 9);
    unread->nodes = 3;
    add_group("not mine", 9, 9)->is_member = false;
    const struct as_pool_plan plan = world_plan(world);
    static const enum as_reason skipped[] = {AS_REASON_SCALED,      AS_REASON_PAUSED,
                                             AS_REASON_AT_MAX,      AS_REASON_NO_TEMPLATE,
                                             AS_REASON_UNREACHABLE, AS_REASON_SCALED};
    for (size_t i = 0; i < AS_ARRAY_SIZE(skipped); i++)
        cr_expect_eq(plan.groups[i].skipped, skipped[i], "%s", world->groups[i].name);
    cr_expect_eq(plan.size, 1 + 1 + 9 + 0 + 3);
    cr_expect_eq(plan.groups[4].fit, 3);
}

Test(pool_fit, without_a_template_nobody_knows_whether_the_group_could_take_the_pods)
{
    add_group("unknown", 0, 9)->template_.source = AS_NODE_TEMPLATE_NONE;
    add_group("small", 1, 9);
    world_add_pending(world, 8000, GIB, 3);
    struct as_pool_plan plan = world_plan(world);
    cr_expect_eq(plan.fit_reason, AS_REASON_NO_TEMPLATE);
    cr_expect_eq(plan.homeless, 0);
    world->groups[0] = world->groups[1];
    plan = world_plan(world);
    cr_expect_eq(plan.fit_reason, AS_REASON_NO_GROUP);
    cr_expect_eq(plan.homeless, 3);
    cr_assert_eq(plan.homeless_count, 1);
    cr_expect_eq(plan.homeless_pods[0].pod_class, 0);
    cr_expect_eq(plan.homeless_pods[0].count, 3);
}

Test(pool_fit, homeless_pods_do_not_keep_the_others_from_a_node)
{
    add_group("a", 1, 9);
    world_add_pending(world, 8000, GIB, 3);
    world_add_pending(world, 1000, GIB, 3);
    const struct as_pool_plan plan = world_plan(world);
    cr_expect_eq(plan.fit_size, 2);
    cr_expect_eq(plan.fit_reason, AS_REASON_SCALED);
    cr_expect_eq(plan.homeless, 3);
    cr_assert_eq(plan.pod_class_count, 2);
    cr_expect_eq(plan.pod_classes[0].misfit, AS_MISFIT_CPU);
    cr_expect_eq(plan.pod_classes[1].misfit, AS_FITS);
}

/* 5 */

Test(pool_fit, an_option_has_what_the_filters_read)
{
    struct as_snapshot_group *group = add_group("a", 1, 9);
    group->has_price = true;
    group->price = 0.5;
    group->template_.capacity.amount[AS_RES_CPU] = 4200;
    group->template_.capacity.amount[AS_RES_NAMED] = 1;
    world_add_pending(world, 1500, 2 * GIB, 5);
    const struct as_pool_plan plan = world_plan(world);
    const struct as_pool_option *option = &plan.groups[0].option;
    cr_assert(plan.groups[0].has_option);
    cr_expect_eq(plan.chosen, 0);
    cr_expect_eq(option->nodes, 3);
    cr_expect_eq(option->pods, 5);
    cr_expect_eq(option->pods_cpu, 7500);
    cr_expect_eq(option->pods_memory, 10 * GIB);
    cr_expect_eq(option->node_cpu, 4200, "the capacity, as Cluster Autoscaler");
    cr_expect_eq(option->node_memory, 16 * GIB);
    cr_expect(option->has_gpu);
    cr_expect(option->has_price);
    cr_expect_eq(option->price, 0.5);
    cr_expect_eq(option->scored, 1U << AS_POOL_LEAST_WASTE);
}

Test(pool_fit, random_is_the_seeds)
{
    static const char *const names[] = {"a", "b", "c", "d"};
    unsigned seen = 0;
    for (size_t i = 0; i < 4; i++)
        add_group(names[i], 0, 9);
    world_add_pending(world, 1000, GIB, 1);
    world->config.choose[0] = AS_POOL_RANDOM;
    world->config.choose_count = 1;
    for (world->snapshot.seed = 0; world->snapshot.seed < 64; world->snapshot.seed++) {
        const size_t chosen = world_plan(world).chosen;
        cr_assert_eq(world_plan(world).chosen, chosen);
        seen |= 1U << chosen;
    }
    cr_expect_eq(seen, 15);
}

/* 6 */

Test(pool_fit, memory_caps_as_cpu_does)
{
    add_group("a", 2, 40);
    world_add_pending(world, 4000, GIB, 9);
    world->config.memory.max = 5 * 16 * GIB - 1;
    const struct as_pool_plan plan = world_plan(world);
    cr_expect_eq(plan.fit_size, 4);
    cr_expect_eq(plan.groups[0].option.nodes, 9, "the choice does not know of caps");
}

Test(pool_fit, nodes_that_leave_make_room_under_a_cap)
{
    struct as_snapshot_group *group = add_group("a", 2, 40);
    group->nodes = 4; /* two are marked */
    group->cpu = 4 * 4000;
    world_add_pending(world, 4000, GIB, 9);
    world->config.cpu.max = 4 * 4000;
    cr_expect_eq(world_plan(world).fit_size, 4);
}

/* 7 */

Test(pool_fit, a_similar_group_that_would_not_take_the_pods_gets_no_share)
{
    static const struct as_taint taint = {"dedicated", "x", AS_TAINT_NO_SCHEDULE};
    static const struct as_toleration toleration = {.key = "dedicated", .is_exists = true};
    add_group("a", 3, 9);
    struct as_snapshot_group *tainted = add_group("b", 0, 9);
    tainted->template_.shape.taints = &taint;
    tainted->template_.shape.taint_count = 1;
    world->config.balance = true;
    struct as_snapshot_pod_class *pod_class = world_add_pending(world, 4000, GIB, 3);
    struct as_pool_plan plan = world_plan(world);
    cr_expect_eq(plan.groups[0].fit, 6);
    cr_expect_eq(plan.groups[1].fit, 0);
    cr_expect_eq(plan.groups[1].option.pods, 0);
    pod_class->pod.tolerations = &toleration;
    pod_class->pod.toleration_count = 1;
    plan = world_plan(world);
    cr_expect_eq(plan.groups[0].fit, 3);
    cr_expect_eq(plan.groups[1].fit, 3);
}

Test(pool_fit, ignored_labels_do_not_keep_groups_from_sharing)
{
    char team[] = "team", *ignored[] = {team};
    add_group("a", 0, 9)->template_.shape.labels = world_labels(world, "team", "x");
    add_group("b", 0, 9)->template_.shape.labels = world_labels(world, "team", "y");
    world_add_pending(world, 4000, GIB, 4);
    world->config.balance = true;
    cr_expect_eq(world_plan(world).groups[0].fit, 4);
    world->config.ignore_labels = ignored;
    world->config.ignore_label_count = 1;
    cr_expect_eq(world_plan(world).groups[0].fit, 2);
}

/* Pods that are not checked fully are asked for once */

static struct as_asked asked[2];

static void removal_poll_later(const struct as_pool_plan *plan, int64_t us)
{
    cr_assert_leq(plan->asked_count, AS_ARRAY_SIZE(asked));
    for (size_t i = 0; i < plan->asked_count; i++)
        asked[i] = plan->asked[i];
    world->snapshot.asked = asked;
    world->snapshot.asked_count = plan->asked_count;
    world->request.terms.now.us += us;
}

Test(pool_fit, a_pod_whose_claim_lies_in_another_zone_does_not_make_a_node_come_and_go)
{
    struct as_snapshot_group *group = add_group("a", 1, 9);
    struct as_snapshot_pod_class *pod_class = world_add_pending(world, 4000, GIB, 1);
    pod_class->pod.unchecked = AS_UNCHECKED_VOLUMES;
    struct as_pool_plan plan = world_plan(world);
    cr_expect_eq(plan.fit_size, 2);
    cr_assert_eq(plan.asked_count, 1, "stored before the increase");
    cr_expect_eq(plan.asked[0].pod_class, pod_class->digest);
    cr_expect_str_eq(plan.asked[0].group, "a");
    cr_expect_eq(plan.asked[0].at.us, WORLD_NOW);
    cr_expect_not(plan.asked[0].is_in_vain);

    group->size = 2;
    group->coming = 1;
    removal_poll_later(&plan, AS_US_PER_MIN - 1);
    plan = world_plan(world);
    cr_assert_eq(plan.asked_count, 1);
    cr_expect_eq(plan.asked[0].at.us, WORLD_NOW, "not stored at every look");
    removal_poll_later(&plan, 5 * AS_US_PER_MIN);
    plan = world_plan(world);
    cr_expect_eq(plan.fit_size, 2, "the node is on its way");
    cr_assert_eq(plan.asked_count, 1);
    cr_expect_eq(plan.asked[0].at.us, world->request.terms.now.us);
    cr_expect_not(plan.asked[0].is_in_vain);

    group->coming = 0;
    world->pending[0].count = 0; /* it would have room on the new node, but waits */
    pod_class->waiting = 1;
    removal_poll_later(&plan, 3 * AS_US_PER_MIN - 1);
    plan = world_plan(world);
    cr_assert_eq(plan.asked_count, 1);
    cr_expect_not(plan.asked[0].is_in_vain,
                  "the scheduler has two minutes, and `at` is up to one minute old");

    removal_poll_later(&plan, 1);
    plan = world_plan(world);
    cr_assert_eq(plan.asked_count, 1);
    cr_expect(plan.asked[0].is_in_vain);

    world->pending[0].count = 1; /* the node has left */
    group->size = 1;
    removal_poll_later(&plan, 3 * AS_US_PER_H - 1);
    plan = world_plan(world);
    cr_expect_eq(plan.fit_size, 1);
    cr_expect_eq(plan.fit_reason, AS_REASON_NO_GROUP);
    cr_expect_eq(plan.homeless, 0);
    cr_assert_eq(plan.pod_class_count, 1);
    cr_expect(plan.pod_classes[0].is_in_vain);

    removal_poll_later(&plan, 1);
    plan = world_plan(world);
    cr_expect_eq(plan.fit_size, 2, "asked again after three hours");
    cr_assert_eq(plan.asked_count, 1);
    cr_expect_not(plan.asked[0].is_in_vain);
}

static void add_asked(const struct as_snapshot_pod_class *pod_class, size_t group, bool is_in_vain)
{
    asked[world->snapshot.asked_count++] = (struct as_asked){
        .pod_class = pod_class->digest,
        .template_ = world->groups[group].template_digest,
        .group = world->groups[group].name,
        .at = {WORLD_NOW - AS_US_PER_H},
        .is_in_vain = is_in_vain,
    };
    world->snapshot.asked = asked;
}

Test(pool_fit, another_group_is_asked_where_one_was_asked_in_vain)
{
    add_group("a", 1, 9);
    add_group("b", 1, 9);
    struct as_snapshot_pod_class *pod_class = world_add_pending(world, 4000, GIB, 1);
    pod_class->pod.unchecked = AS_UNCHECKED_SPREAD;
    add_asked(pod_class, 0, true);
    world->config.balance = true;
    const struct as_pool_plan plan = world_plan(world);
    cr_expect_eq(plan.groups[0].fit, 1);
    cr_expect_eq(plan.groups[1].fit, 2);
    cr_expect_eq(plan.asked_count, 2);
}

Test(pool_fit, a_pair_in_vain_is_asked_again_once_the_groups_template_changes)
{
    struct as_snapshot_group *group = add_group("a", 1, 9);
    struct as_snapshot_pod_class *pod_class = world_add_pending(world, 1000, GIB, 1);
    pod_class->pod.unchecked = AS_UNCHECKED_VOLUMES;
    add_asked(pod_class, 0, true);
    cr_expect_eq(world_plan(world).fit_size, 1);
    group->template_digest++;
    const struct as_pool_plan plan = world_plan(world);
    cr_expect_eq(plan.fit_size, 2);
    cr_assert_eq(plan.asked_count, 1);
    cr_expect_not(plan.asked[0].is_in_vain);
}

Test(pool_fit, what_was_asked_is_forgotten_where_it_no_longer_counts)
{
    static const struct {
        const char *what;
        int32_t coming;
        uint32_t pending;
        enum as_reason closed;
        bool is_gone, is_kept, is_in_vain;
    } cases[] = {
        {"nodes are on their way", .coming = 1, .pending = 2, .is_kept = true},
        {"such a pod still waits", .pending = 1, .is_kept = true, .is_in_vain = true},
        {"no such pod waits", .pending = 0},
        {"the increase failed", .pending = 1, .closed = AS_REASON_COOLDOWN},
        {"the group is gone", .pending = 1, .is_gone = true},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(cases); i++) {
        struct as_snapshot_group *group = add_group("a", 9, 9);
        struct as_snapshot_pod_class *pod_class =
            world_add_pending(world, 4000, GIB, cases[i].pending);
        pod_class->pod.unchecked = AS_UNCHECKED_VOLUMES;
        add_asked(pod_class, 0, false);
        group->coming = cases[i].coming;
        group->closed = cases[i].closed;
        group->name = cases[i].is_gone ? "b" : "a";
        const struct as_pool_plan plan = world_plan(world);
        cr_expect_eq(plan.asked_count, cases[i].is_kept, "%s", cases[i].what);
        cr_expect(plan.asked_count == 0 || plan.asked[0].is_in_vain == cases[i].is_in_vain, "%s",
                  cases[i].what);
        end();
        begin();
    }
}

Test(pool_fit, pods_that_are_checked_are_never_noted)
{
    add_group("a", 1, 9);
    struct as_snapshot_pod_class *pod_class = world_add_pending(world, 4000, GIB, 1);
    add_asked(pod_class, 0, true);
    const struct as_pool_plan plan = world_plan(world);
    cr_expect_eq(plan.fit_size, 2, "a full check does not ask what was in vain");
    cr_expect(plan.asked[0].is_in_vain);
}

Test(pool_fit, at_most_so_many_pairs_are_remembered_and_the_oldest_goes)
{
    static struct as_asked many[AS_ASKED_MAX];
    add_group("a", 1, 9);
    struct as_snapshot_pod_class *pod_class = world_add_pending(world, 4000, GIB, 1);
    pod_class->pod.unchecked = AS_UNCHECKED_VOLUMES;
    for (size_t i = 0; i < AS_ASKED_MAX; i++)
        many[i] = (struct as_asked){
            .pod_class = 1000 + i,
            .template_ = world->groups[0].template_digest,
            .group = "a",
            .at = {WORLD_NOW - (i == 7 ? 100 : 50)},
            .is_in_vain = true,
        };
    world->snapshot.asked = many;
    world->snapshot.asked_count = AS_ASKED_MAX;
    const struct as_pool_plan plan = world_plan(world);
    cr_assert_eq(plan.asked_count, AS_ASKED_MAX);
    cr_expect_eq(plan.asked[7].pod_class, pod_class->digest);
    cr_expect_eq(plan.asked[8].pod_class, 1008);
}

/* Limits of the work */

Test(pool_fit, work_ends_and_what_was_packed_by_then_counts)
{
    for (int i = 0; i < 60; i++)
        world_add_group(world, world_name(world, 'g', i), 4000, 16 * GIB, 0, 1000);
    world_add_pending(world, 1, 1, 1);
    for (int i = 1; i < WORLD_POD_CLASSES; i++)
        world_add_pending(world, 2001 + i, GIB, 1);
    const struct as_pool_plan plan = world_plan(world);
    cr_expect(plan.is_cut);
    cr_expect_eq(plan.fit_reason, AS_REASON_SCALED);
    for (size_t i = 0; i < 60; i++) {
        cr_expect_gt(plan.groups[i].option.nodes, 100);
        cr_expect_lt(plan.groups[i].option.nodes, WORLD_POD_CLASSES - 1);
        cr_expect_eq(plan.groups[i].option.nodes, plan.groups[0].option.nodes, "an even split");
    }
}
