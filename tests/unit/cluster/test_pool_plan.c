/*
 * What holds for every plan, in random worlds. A model that places pods one by one says which nodes
 * are unneeded.
 */
#include <alertscaler/base/random.h>

#include "../engine/pool_world.h"

#define WORLDS 400
#define MIB    (INT64_C(1) << 20)

static struct as_random dice;

static int64_t roll(int64_t from, int64_t to)
{
    return from + (int64_t)as_random_get_below(&dice, (uint64_t)(to - from + 1));
}

static bool chance(int percent)
{
    return roll(1, 100) <= percent;
}

/* Random worlds */

static const struct as_taint taint = {"dedicated", "x", AS_TAINT_NO_SCHEDULE};
static const struct as_toleration toleration = {.key = "dedicated", .is_exists = true};
static const struct as_host_port port = {"0.0.0.0", "TCP", 80};
static const char *const zones[] = {"a", "b"};

static void add_group(struct world *world, int number)
{
    const int32_t size = (int32_t)roll(0, 12);
    const int64_t cpu = 1000 * roll(1, 3), memory = 4096 * MIB;
    struct as_snapshot_group *group = world_add_group(world, world_name(world, 'g', number), cpu,
                                                      memory, size, (int32_t)roll(0, 15));
    group->min = (int32_t)roll(0, 3);
    group->coming = chance(30) ? (int32_t)roll(0, size) : 0;
    group->nodes -= group->coming;
    group->cpu -= group->coming * cpu;
    group->memory -= group->coming * memory;
    group->is_member = number == 0 || chance(90);
    group->has_priority = chance(50);
    group->priority = (int32_t)roll(0, 2);
    group->template_.shape.labels =
        world_labels(world, "topology.kubernetes.io/zone", zones[roll(0, 1)]);
    group->template_.shape.taints = &taint;
    group->template_.shape.taint_count = chance(25);
    if (chance(15))
        group->closed = chance(50) ? AS_REASON_COOLDOWN : AS_REASON_PAUSED;
    if (chance(10))
        group->template_ = (struct as_node_template){.source = AS_NODE_TEMPLATE_NONE};
}

static void add_pod_class(struct world *world)
{
    static const uint32_t budgets[] = {0, 1};
    struct as_snapshot_pod_class *pod_class =
        world_add_pod_class(world, 100 * roll(0, 15), 128 * MIB * roll(0, 10));
    pod_class->digest = as_random_get(&dice);
    pod_class->pod.priority = (int32_t)roll(0, 1);
    pod_class->pod.tolerations = &toleration;
    pod_class->pod.toleration_count = chance(50);
    pod_class->pod.ports = &port;
    pod_class->pod.port_count = chance(10);
    pod_class->pod.loner = chance(10) ? (uint64_t)roll(1, 2) : 0;
    pod_class->pod.unchecked = chance(20) ? AS_UNCHECKED_VOLUMES : 0;
    pod_class->budgets = budgets;
    pod_class->budget_count = chance(20) ? (size_t)roll(1, 2) : 0;
    if (chance(20))
        pod_class->pod.zone = zones[roll(0, 1)];
    if (chance(20))
        pod_class->pod.selector =
            world_labels(world, "topology.kubernetes.io/zone", zones[roll(0, 1)]);
}

static void add_node(struct world *world, int number)
{
    const uint32_t group = (uint32_t)roll(0, (int64_t)world->snapshot.group_count - 1);
    const bool is_candidate = world->groups[group].is_member && chance(60);
    const char *name = world_name(world, 'n', number);
    struct as_snapshot_node *node = world_add_node(world, name, group, 0);
    const size_t pod_classes = world->snapshot.pod_class_count;
    node->node.labels = world_labels(world, "topology.kubernetes.io/zone", zones[roll(0, 1)]);
    node->node.allocatable = node->left = world_amounts(2000, 4096 * MIB, 20);
    node->left.amount[AS_RES_CPU] = 100 * roll(0, 20);
    node->left.amount[AS_RES_MEMORY] = 128 * MIB * roll(0, 32);
    node->is_ready = chance(90);
    node->utilization = (double)roll(0, 3);
    node->is_candidate = is_candidate;
    if (!is_candidate || chance(30))
        return;
    struct as_snapshot_pods *pods = as_arena_alloc(&world->arena, 3, sizeof(*pods));
    for (size_t i = 0; i < 3; i++)
        pods[i] = (struct as_snapshot_pods){(uint32_t)roll(0, (int64_t)pod_classes - 1),
                                            (uint32_t)roll(1, 3)};
    node->pods = pods;
    node->pod_count = (size_t)roll(1, 3);
}

static struct as_unneeded *remember_nodes(struct world *world)
{
    struct as_unneeded *known = as_arena_alloc(&world->arena, WORLD_NODES, sizeof(*known));
    for (size_t i = 0; i < world->snapshot.node_count; i++) {
        struct as_unneeded *item = &known[world->snapshot.unneeded_count];
        item->node = world->nodes[i].node.name;
        item->seen = (as_maybe_time){.set = chance(90), .at = {WORLD_NOW - AS_US_PER_S}};
        item->since.at.us = WORLD_NOW - roll(1, 3) * 9 * AS_US_PER_MIN;
        item->since.set = chance(80);
        item->no_room.set = !item->since.set;
        item->no_room.at.us = WORLD_NOW - roll(1, 9) * AS_US_PER_MIN;
        world->snapshot.unneeded_count += chance(60);
    }
    return known;
}

static struct world *make_world(void)
{
    struct world *world = world_new();
    const int groups = (int)roll(1, 6), pod_classes = (int)roll(1, 12), nodes = (int)roll(0, 20);
    for (int i = 0; i < groups; i++)
        add_group(world, i);
    for (int i = 0; i < pod_classes; i++)
        add_pod_class(world);
    for (int i = 0; i < pod_classes; i++)
        if (chance(50))
            world->pending[world->snapshot.pending_count++] =
                (struct as_snapshot_pods){(uint32_t)i, (uint32_t)roll(0, 30)};
    for (int i = 0; i < nodes; i++)
        add_node(world, i);
    world->snapshot.unneeded = remember_nodes(world);
    world->snapshot.budget_count = 2;
    for (size_t i = 0; i < 2; i++)
        world->budgets[i] = (struct as_snapshot_budget){"a/b", (int32_t)roll(0, 6)};
    world->snapshot.seed = as_random_get(&dice);
    world->config.balance = chance(50);
    world->config.choose_count = (size_t)roll(0, 2);
    world->config.choose[0] = (enum as_pool_filter)roll(0, AS_POOL_FILTER_COUNT - 1);
    world->config.choose[1] = (world->config.choose[0] + 1) % AS_POOL_FILTER_COUNT;
    world->config.at_once_empty = (uint32_t)roll(0, 4);
    world->config.at_once_drain = (uint32_t)roll(0, 4);
    if (chance(40))
        world->request.terms.max = (int32_t)roll(0, 60);
    if (chance(40))
        world->request.terms.min = (int32_t)roll(0, 20);
    if (chance(30))
        world->config.cpu.max = 1000 * roll(0, 100);
    if (chance(30))
        world->config.memory.max = 4096 * MIB * roll(0, 60);
    if (chance(30))
        world->config.cpu.min = 1000 * roll(0, 60);
    return world;
}

/* Growth: bounds, and no pod forgotten */

static int64_t get_cpu(const struct world *world, const struct as_pool_plan *plan,
                       enum as_res resource)
{
    int64_t all = 0;
    for (size_t i = 0; i < world->snapshot.group_count; i++) {
        const struct as_snapshot_group *group = &world->groups[i];
        const int64_t each = group->template_.capacity.amount[resource];
        if (group->is_member)
            all += each * plan->groups[i].fit;
    }
    return all;
}

static void check_bounds(const struct world *world, const struct as_pool_plan *plan)
{
    bool grows = false;
    int64_t size = 0;
    for (size_t i = 0; i < world->snapshot.group_count; i++) {
        const struct as_snapshot_group *group = &world->groups[i];
        cr_assert_geq(plan->groups[i].fit, group->size);
        cr_assert(plan->groups[i].fit == group->size || plan->groups[i].fit <= group->max);
        cr_assert(plan->groups[i].fit == group->size || group->closed == AS_REASON_SCALED);
        cr_assert(plan->groups[i].fit == group->size || group->is_member);
        grows |= plan->groups[i].fit > group->size;
        size += group->is_member ? plan->groups[i].fit : 0;
    }
    cr_assert_eq(size, plan->fit_size);
    cr_assert_eq(grows, plan->fit_reason == AS_REASON_SCALED);
    if (!grows)
        return;
    cr_assert_leq(plan->fit_size, world->request.terms.max);
    cr_assert_leq(get_cpu(world, plan, AS_RES_CPU), world->config.cpu.max);
    cr_assert_leq(get_cpu(world, plan, AS_RES_MEMORY), world->config.memory.max);
}

static bool would_take(const struct as_snapshot_group *group, const struct as_pod_class *pod_class,
                       const struct as_res_names *names)
{
    const struct as_node_room room = {.left = group->template_.shape.allocatable};
    return group->is_member && group->template_.source != AS_NODE_TEMPLATE_NONE &&
           as_node_admits(&group->template_.shape, pod_class) == AS_FITS &&
           as_node_room_count(&room, names, pod_class, 1, NULL) == 1;
}

/* Where nothing is on its way: who fits a group that can grow gets a node; else the reason is not
 * that nothing waits. */
static void check_nobody_is_forgotten(const struct world *world, const struct as_pool_plan *plan)
{
    bool could = false, waits = false;
    uint64_t homeless = 0;
    for (size_t i = 0; i < world->snapshot.group_count; i++)
        if (world->groups[i].coming > 0)
            return;
    for (size_t k = 0; k < world->snapshot.pending_count; k++) {
        const struct as_pod_class *pod_class = &world->pod_classes[world->pending[k].pod_class].pod;
        bool has_home = false;
        for (size_t i = 0; i < world->snapshot.group_count && world->pending[k].count > 0; i++) {
            const struct as_snapshot_group *group = &world->groups[i];
            const bool takes = would_take(group, pod_class, &world->snapshot.resources);
            could |= takes && plan->groups[i].skipped == AS_REASON_SCALED;
            has_home |=
                takes || (group->is_member && group->template_.source == AS_NODE_TEMPLATE_NONE);
        }
        waits |= world->pending[k].count > 0;
        homeless += has_home ? 0 : world->pending[k].count;
    }
    cr_assert_eq(plan->homeless, homeless);
    cr_assert_eq(waits, plan->fit_reason != AS_REASON_NO_CHANGE);
    /* A filter may drop every option: `price` where no group has a price. */
    if (world->config.choose[0] != AS_POOL_PRICE && world->config.choose[1] != AS_POOL_PRICE)
        cr_assert_eq(could, plan->fit_reason == AS_REASON_SCALED);
}

Test(pool_plan, growth_stays_within_all_bounds_and_forgets_nobody)
{
    as_random_init(&dice, 1);
    for (int i = 0; i < WORLDS; i++) {
        struct world *world = make_world();
        const struct as_pool_plan plan = world_plan(world);
        check_bounds(world, &plan);
        check_nobody_is_forgotten(world, &plan);
        world_free(world);
    }
}

/* Removal: a model, pod by pod */

struct model {
    struct as_node_room rooms[WORLD_NODES];
    bool is_gone[WORLD_NODES], receives[WORLD_NODES], is_done[WORLD_NODES];
    bool is_granted[WORLD_NODES], is_at_min[WORLD_NODES];
    int32_t allowed[WORLD_BUDGETS];
    int64_t groups[WORLD_GROUPS], nodes, cpu; /* that may leave */
};

static int64_t get_rank(const struct world *world, size_t index)
{
    const struct as_unneeded *known = NULL;
    int64_t rank = 0, since = 1 << 20; /* seconds */
    for (size_t i = 0; i < world->snapshot.unneeded_count; i++)
        if (strcmp(world->snapshot.unneeded[i].node, world->nodes[index].node.name) == 0)
            known = &world->snapshot.unneeded[i];
    if (known && known->since.set)
        since -= (WORLD_NOW - known->since.at.us) / AS_US_PER_S;
    rank = world->nodes[index].pod_count > 0;
    rank = 2 * rank +
           (known && known->no_room.set && known->no_room.at.us > WORLD_NOW - 5 * AS_US_PER_MIN);
    rank = (1 << 21) * rank + since;
    return 4 * rank + (int64_t)world->nodes[index].utilization;
}

static size_t find_next(const struct world *world, const struct model *model)
{
    size_t best = SIZE_MAX;
    for (size_t i = 0; i < world->snapshot.node_count; i++)
        if (world->nodes[i].is_candidate && !model->is_done[i] &&
            (best == SIZE_MAX || get_rank(world, i) < get_rank(world, best)))
            best = i;
    return best;
}

static bool place_one(struct world *world, struct model *model, size_t from,
                      const struct as_snapshot_pod_class *pod_class)
{
    for (size_t i = 0; i < world->snapshot.node_count; i++) {
        if (i == from || model->is_gone[i] || !world->nodes[i].is_ready ||
            as_node_admits(&world->nodes[i].node, &pod_class->pod) != AS_FITS ||
            as_node_room_count(&model->rooms[i], &world->snapshot.resources, &pod_class->pod, 1,
                               NULL) == 0)
            continue;
        as_node_room_take(&model->rooms[i], &world->snapshot.resources, &pod_class->pod, 1,
                          &world->arena);
        model->receives[i] = true;
        return true;
    }
    return false;
}

static int compare_pod_classes(const struct as_snapshot_pod_class *a,
                               const struct as_snapshot_pod_class *b)
{
    const int64_t *one = a->pod.requests.amount, *other = b->pod.requests.amount;
    if (a->pod.priority != b->pod.priority)
        return a->pod.priority > b->pod.priority ? -1 : 1;
    if (one[AS_RES_CPU] != other[AS_RES_CPU])
        return one[AS_RES_CPU] > other[AS_RES_CPU] ? -1 : 1;
    if (one[AS_RES_MEMORY] != other[AS_RES_MEMORY])
        return one[AS_RES_MEMORY] > other[AS_RES_MEMORY] ? -1 : 1;
    return a->digest < b->digest ? -1 : a->digest > b->digest;
}

/* The pods of a node one by one, in order: a pod class at a time, which `done` counts. */
static const struct as_snapshot_pod_class *find_pods(const struct world *world,
                                                     const struct as_snapshot_node *node,
                                                     const struct as_snapshot_pod_class *after,
                                                     uint32_t *count_out)
{
    const struct as_snapshot_pod_class *found = NULL;
    *count_out = 0;
    for (size_t i = 0; i < node->pod_count; i++) {
        const struct as_snapshot_pod_class *pod_class =
            &world->pod_classes[node->pods[i].pod_class];
        if ((after && compare_pod_classes(pod_class, after) <= 0) ||
            (found && compare_pod_classes(pod_class, found) > 0))
            continue;
        *count_out = pod_class == found ? *count_out + node->pods[i].count : node->pods[i].count;
        found = pod_class;
    }
    return found;
}

static bool fits_elsewhere(struct world *world, struct model *model, size_t index)
{
    const struct as_snapshot_pod_class *pod_class = NULL;
    uint32_t count;
    while ((pod_class = find_pods(world, &world->nodes[index], pod_class, &count)) != NULL) {
        for (size_t i = 0; i < pod_class->budget_count; i++)
            if (model->allowed[pod_class->budgets[i]] < 1)
                return false;
        for (uint32_t i = 0; i < count; i++)
            if (!place_one(world, model, index, pod_class))
                return false;
    }
    return true;
}

static void use_budgets(struct world *world, struct model *model, size_t index)
{
    const struct as_snapshot_pod_class *pod_class = NULL;
    uint32_t count;
    while ((pod_class = find_pods(world, &world->nodes[index], pod_class, &count)) != NULL)
        for (size_t i = 0; i < pod_class->budget_count; i++) {
            int32_t *allowed = &model->allowed[pod_class->budgets[i]];
            *allowed = *allowed > (int32_t)count ? *allowed - (int32_t)count : 0;
        }
}

/* What the minima allow: first to nodes that may leave now, in order. */

static bool is_due(const struct world *world, size_t index)
{
    const struct as_snapshot_node *node = &world->nodes[index];
    const struct as_unneeded_config *config = &world->groups[node->group].unneeded;
    for (size_t i = 0; i < world->snapshot.unneeded_count; i++)
        if (strcmp(world->snapshot.unneeded[i].node, node->node.name) == 0)
            return world->snapshot.unneeded[i].since.set &&
                   WORLD_NOW - world->snapshot.unneeded[i].since.at.us >
                       (node->is_ready ? config->for_us : config->unready_for_us);
    return false;
}

static int64_t get_node_cpu(const struct world *world, size_t index)
{
    const struct as_snapshot_group *group = &world->groups[world->nodes[index].group];
    const int64_t average = group->nodes > 0 ? group->cpu / group->nodes : 0, own = 2000;
    return own > average ? own : average;
}

static bool may_go(const struct world *world, struct model *model, size_t index)
{
    const int64_t cpu = get_node_cpu(world, index);
    int64_t *group = &model->groups[world->nodes[index].group];
    if (*group < 1 || model->nodes < 1 || (world->config.cpu.min > 0 && model->cpu < cpu))
        return false;
    --*group;
    model->nodes--;
    model->cpu -= cpu;
    return true;
}

static void grant(struct world *world, struct model *model)
{
    size_t index;
    model->nodes = -world->request.terms.min;
    model->cpu = -world->config.cpu.min;
    for (size_t i = 0; i < world->snapshot.group_count; i++) {
        const struct as_snapshot_group *group = &world->groups[i];
        model->groups[i] = group->size - group->min;
        model->nodes += group->is_member ? group->size : 0;
        model->cpu += group->is_member ? group->cpu : 0;
    }
    for (int due = 1; due >= 0; due--) {
        while ((index = find_next(world, model)) != SIZE_MAX) {
            model->is_done[index] = true;
            if (is_due(world, index) == due)
                model->is_granted[index] = may_go(world, model, index);
        }
        memset(model->is_done, 0, sizeof(model->is_done));
    }
}

static void withdraw(const struct world *world, struct model *model, size_t index)
{
    if (!model->is_granted[index])
        return;
    model->groups[world->nodes[index].group]++;
    model->nodes++;
    model->cpu += get_node_cpu(world, index);
}

/* Which nodes are unneeded. */
static void run_model(struct world *world, struct model *model)
{
    struct model *before = as_arena_alloc(&world->arena, 1, sizeof(*before));
    size_t index;
    for (size_t i = 0; i < world->snapshot.node_count; i++)
        model->rooms[i].left = world->nodes[i].left;
    for (size_t i = 0; i < world->snapshot.budget_count; i++)
        model->allowed[i] = world->budgets[i].allowed;
    grant(world, model);
    while ((index = find_next(world, model)) != SIZE_MAX) {
        model->is_done[index] = true;
        if (model->receives[index]) {
            withdraw(world, model, index);
            continue;
        }
        *before = *model;
        for (size_t i = 0; i < world->snapshot.node_count; i++) { /* guests of its own */
            struct as_node_room *room = &model->rooms[i];
            room->guest_capacity = room->guest_count;
        }
        const bool fits = fits_elsewhere(world, model, index);
        if (fits && (model->is_granted[index] || may_go(world, model, index))) {
            use_budgets(world, model, index);
            model->is_gone[index] = true;
        } else {
            *model = *before;
            withdraw(world, model, index);
            model->is_at_min[index] = fits;
        }
    }
}

static bool is_unneeded(const struct as_pool_plan *plan, const char *name)
{
    for (size_t i = 0; i < plan->unneeded_count; i++)
        if (strcmp(plan->unneeded[i].node, name) == 0)
            return plan->unneeded[i].since.set;
    return false;
}

static void check_taken(const struct world *world, const struct as_pool_plan *plan)
{
    int32_t left[WORLD_GROUPS];
    uint64_t empty = 0;
    for (size_t i = 0; i < world->snapshot.group_count; i++)
        left[i] = world->groups[i].size;
    for (size_t i = 0; i < plan->take_count; i++) {
        size_t node = 0;
        while (strcmp(world->nodes[node].node.name, plan->take[i]) != 0)
            node++;
        cr_assert(is_unneeded(plan, plan->take[i]));
        cr_assert_eq(world->nodes[node].group, plan->take_group[i]);
        left[plan->take_group[i]]--;
        empty += world->nodes[node].pod_count == 0;
    }
    for (size_t i = 0; i < world->snapshot.group_count; i++) {
        cr_assert_eq(left[i], plan->groups[i].take_to);
        cr_assert(left[i] == world->groups[i].size || left[i] >= world->groups[i].min);
    }
    cr_assert_eq(plan->take_size, plan->size - (int32_t)plan->take_count);
    cr_assert(plan->take_count == 0 || plan->take_size >= world->request.terms.min);
    cr_assert_leq(empty, world->config.at_once_empty);
    cr_assert_leq(plan->take_count - empty, world->config.at_once_drain);
}

Test(pool_plan, nothing_is_unneeded_whose_pods_do_not_fit_elsewhere)
{
    size_t unneeded = 0, taken = 0, stays = 0, at_min = 0;
    as_random_init(&dice, 2);
    for (int i = 0; i < WORLDS; i++) {
        struct world *world = make_world();
        struct model *model = as_arena_alloc(&world->arena, 1, sizeof(*model));
        const struct as_pool_plan plan = world_plan(world);
        run_model(world, model);
        for (size_t k = 0; k < world->snapshot.node_count; k++) {
            const char *name = world->nodes[k].node.name;
            const bool is_at_min = model->is_at_min[k] && !model->receives[k];
            cr_assert_eq(is_unneeded(&plan, name), model->is_gone[k] || is_at_min, "world %d, %s",
                         i, name);
            unneeded += model->is_gone[k];
            stays += world->nodes[k].is_candidate && !model->is_gone[k];
            at_min += is_at_min;
        }
        check_taken(world, &plan);
        taken += plan.take_count;
        world_free(world);
    }
    cr_expect_gt(unneeded, WORLDS);
    cr_expect_gt(taken, WORLDS / 2);
    cr_expect_gt(stays, WORLDS / 2);
    cr_expect_gt(at_min, WORLDS / 4);
}

/* Whether one node alone has room for all pods of another one; nothing was placed on it. */
static bool has_room(struct world *world, const struct as_snapshot_node *node,
                     const struct as_snapshot_node *from)
{
    struct as_node_room room = {.left = node->left};
    for (size_t i = 0; i < from->pod_count; i++) {
        const struct as_pod_class *pod_class = &world->pod_classes[from->pods[i].pod_class].pod;
        const uint32_t count = from->pods[i].count;
        if (as_node_admits(&node->node, pod_class) != AS_FITS ||
            as_node_room_count(&room, &world->snapshot.resources, pod_class, count, NULL) < count)
            return false;
        as_node_room_take(&room, &world->snapshot.resources, pod_class, count, &world->arena);
    }
    return node->is_ready;
}

/* Closed for pods: unneeded, and no minimum keeps it. */
static bool is_closed(const struct as_pool_plan *plan, const struct world *world, size_t node)
{
    return is_unneeded(plan, world->nodes[node].node.name) && plan->stays[node] != AS_STAY_AT_MIN;
}

static void check_closed(const struct world *world, const struct as_pool_plan *plan)
{
    int64_t closed[WORLD_GROUPS] = {0}, all = 0, cpu = 0, cpu_closed = 0;
    for (size_t i = 0; i < world->snapshot.node_count; i++) {
        if (!is_closed(plan, world, i))
            continue;
        closed[world->nodes[i].group]++;
        cpu_closed += get_node_cpu(world, i);
        all++;
    }
    for (size_t i = 0; i < world->snapshot.group_count; i++) {
        const struct as_snapshot_group *group = &world->groups[i];
        cr_assert(closed[i] == 0 || closed[i] <= group->size - group->min);
        cpu += group->is_member ? group->cpu : 0;
    }
    cr_assert(all == 0 || all <= plan->size - world->request.terms.min);
    cr_assert(all == 0 || world->config.cpu.min == 0 || cpu - cpu_closed >= world->config.cpu.min);
}

Test(pool_plan, a_node_that_cannot_leave_is_never_closed_for_pods)
{
    size_t pairs = 0;
    as_random_init(&dice, 5);
    for (int i = 0; i < WORLDS; i++) {
        struct world *world = make_world();
        const struct as_pool_plan plan = world_plan(world);
        check_closed(world, &plan);
        for (size_t k = 0; k < world->snapshot.node_count; k++) {
            for (size_t n = 0; n < world->snapshot.node_count; n++) {
                if (plan.stays[k] != AS_STAY_NO_ROOM || plan.stays[n] != AS_STAY_AT_MIN)
                    continue;
                cr_assert_not(has_room(world, &world->nodes[n], &world->nodes[k]), "world %d", i);
                pairs++;
            }
        }
        world_free(world);
    }
    cr_expect_gt(pairs, WORLDS / 8);
}

/* Equal plans */

static void expect_equal(const struct world *world, const struct as_pool_plan *a,
                         const struct as_pool_plan *b)
{
    cr_assert_eq(a->fit_reason, b->fit_reason);
    cr_assert_eq(a->fit_size, b->fit_size);
    cr_assert_eq(a->take_size, b->take_size);
    cr_assert_eq(a->chosen, b->chosen);
    cr_assert_eq(a->homeless, b->homeless);
    cr_assert_eq(a->homeless_count, b->homeless_count);
    cr_assert_eq(a->is_cut, b->is_cut);
    for (size_t i = 0; i < world->snapshot.group_count; i++) {
        cr_assert_eq(a->groups[i].fit, b->groups[i].fit);
        cr_assert_eq(a->groups[i].take_to, b->groups[i].take_to);
        cr_assert_eq(a->groups[i].skipped, b->groups[i].skipped);
        cr_assert_eq(a->groups[i].option.nodes, b->groups[i].option.nodes);
        cr_assert_eq(a->groups[i].option.pods, b->groups[i].option.pods);
        cr_assert_eq(a->groups[i].option.out_by, b->groups[i].option.out_by);
        cr_assert_arr_eq(a->groups[i].option.scores, b->groups[i].option.scores,
                         sizeof(a->groups[i].option.scores));
    }
    cr_assert_eq(a->pod_class_count, b->pod_class_count);
    for (size_t i = 0; i < a->pod_class_count; i++)
        cr_assert_eq(a->pod_classes[i].misfit, b->pod_classes[i].misfit);
    cr_assert_eq(a->take_count, b->take_count);
    for (size_t i = 0; i < a->take_count; i++)
        cr_assert_str_eq(a->take[i], b->take[i]);
    cr_assert_eq(a->unneeded_count, b->unneeded_count);
    for (size_t i = 0; i < a->unneeded_count; i++) {
        cr_assert_str_eq(a->unneeded[i].node, b->unneeded[i].node);
        cr_assert_eq(a->unneeded[i].since.at.us, b->unneeded[i].since.at.us);
        cr_assert_eq(a->unneeded[i].no_room.at.us, b->unneeded[i].no_room.at.us);
    }
    cr_assert_eq(a->asked_count, b->asked_count);
    for (size_t i = 0; i < a->asked_count; i++)
        cr_assert_eq(a->asked[i].pod_class, b->asked[i].pod_class);
    cr_assert_arr_eq(a->kept, b->kept, sizeof(a->kept));
    cr_assert_arr_eq(a->stays, b->stays, world->snapshot.node_count * sizeof(*a->stays));
}

Test(pool_plan, the_size_of_steps_changes_nothing)
{
    as_random_init(&dice, 3);
    for (int i = 0; i < WORLDS; i++) {
        struct world *world = make_world();
        const struct as_pool_plan whole = world_plan(world), ones = world_plan_in_steps(world, 1);
        const struct as_pool_plan some = world_plan_in_steps(world, (uint64_t)roll(2, 500));
        expect_equal(world, &whole, &ones);
        expect_equal(world, &whole, &some);
        world_free(world);
    }
}

/* Moves every pod class to another place of the snapshot. */
static void renumber(struct world *world)
{
    const size_t pod_classes = world->snapshot.pod_class_count;
    struct as_snapshot_pod_class *old = as_arena_alloc(&world->arena, pod_classes, sizeof(*old));
    memcpy(old, world->pod_classes, pod_classes * sizeof(*old));
    for (size_t i = 0; i < pod_classes; i++)
        world->pod_classes[pod_classes - 1 - i] = old[i];
    for (size_t i = 0; i < world->snapshot.pending_count; i++)
        world->pending[i].pod_class = (uint32_t)pod_classes - 1 - world->pending[i].pod_class;
    for (size_t i = 0; i < world->snapshot.node_count; i++) {
        struct as_snapshot_node *node = &world->nodes[i];
        struct as_snapshot_pods *pods =
            as_arena_alloc(&world->arena, node->pod_count, sizeof(*pods));
        for (size_t k = 0; k < node->pod_count; k++) {
            pods[k] = node->pods[node->pod_count - 1 - k];
            pods[k].pod_class = (uint32_t)pod_classes - 1 - pods[k].pod_class;
        }
        node->pods = pods;
    }
}

static void shuffle_pending(struct world *world)
{
    for (size_t i = world->snapshot.pending_count; i > 1; i--) {
        const size_t other = (size_t)roll(0, (int64_t)i - 1);
        const struct as_snapshot_pods swapped = world->pending[i - 1];
        world->pending[i - 1] = world->pending[other];
        world->pending[other] = swapped;
    }
}

/* From version 3 on, pods that wait are placed in their order. */
Test(pool_plan, the_order_of_pod_classes_changes_nothing)
{
    as_random_init(&dice, 4);
    for (int i = 0; i < WORLDS; i++) {
        struct world *world = make_world();
        world->request.version = i % 2 == 0 ? 2 : AS_DECIDE_VERSION;
        const struct as_pool_plan plan = world_plan(world);
        renumber(world);
        if (world->request.version < 3)
            shuffle_pending(world);
        const struct as_pool_plan other = world_plan(world);
        expect_equal(world, &plan, &other);
        world_free(world);
    }
}
