/*
 * The promises about nodes (docs/pools.md), by the true state of the cluster:
 *
 *   - no size above a maximum of a group or a pool, none below a group's minimum by a decrease;
 *   - no node leaves with a pod that may not be evicted;
 *   - nothing is bought beyond the pods that wait, whoever has bought before: another pool, a
 *     former leader, a daemon that was killed;
 *   - what waits and fits a group with capacity runs in the end, whatever other groups lack;
 *   - under constant load nodes do not come and go;
 *   - nobody leaves while monitoring, the watch of the cluster or the provider is lost.
 */
#include "pools.h"

#include <string.h>

#define SHARE_MAX_US    (40 * SECOND) /* from a decision to the request of a share */
#define PROOF_US        MINUTE
#define UNREGISTERED_US (31 * SECOND) /* OVERDUE_US of the engine, and the time of its request */
#define CALM_US         (45 * MINUTE) /* locks and back-offs are over: half an hour at most */
#define TURNS_MAX       3

/* ---- what a purchase is for ---- */

struct room {
    int64_t cpu, memory;
    uint64_t loners;
    int group;
};

struct packing {
    struct room rooms[2 * FLEET_NODES];
    size_t count;
};

static bool take_room(struct room *room, const struct as_pod_class *pod_class)
{
    const int64_t cpu = pod_class->requests.amount[AS_RES_CPU];
    const int64_t memory = pod_class->requests.amount[AS_RES_MEMORY];
    if (cpu > room->cpu || memory > room->memory || (pod_class->loner & room->loners))
        return false;
    room->cpu -= cpu;
    room->memory -= memory;
    room->loners |= pod_class->loner;
    return true;
}

static void add_room(const struct fleet *fleet, int group, struct packing *packing)
{
    const struct fleet_group *of = &fleet->groups[group];
    if (packing->count < AS_ARRAY_SIZE(packing->rooms))
        packing->rooms[packing->count++] = (struct room){of->cpu, of->memory, 0, group};
}

/* The open Ready nodes that the look saw, with what is left on them. */
static void add_ready(const struct fleet *fleet, struct packing *packing)
{
    for (int i = 0; i < FLEET_NODES; i++) {
        const struct fleet_node *node = &fleet->nodes[i];
        if (!node->is_used || !node->is_ready || node->is_marked)
            continue;
        add_room(fleet, node->group, packing);
        for (size_t j = 0; j < FLEET_PODS; j++) {
            if (fleet->pods[j].is_used && fleet->pods[j].node == i)
                (void)take_room(&packing->rooms[packing->count - 1],
                                &fleet->pod_classes[fleet->pods[j].pod_class]);
        }
    }
}

/* Instances that are surely still awaited: young ones of a known group that has not lacked
 * capacity. */
static void add_coming(const struct world *world, struct packing *packing)
{
    const struct pools *pools = world->pools;
    const struct fleet *fleet = &pools->fleet;
    for (size_t i = 0; i < FLEET_NODES; i++) {
        const struct fleet_node *node = &fleet->nodes[i];
        if (!node->is_used || node->is_ready || node->is_marked ||
            !rules_find_target(world, fleet->groups[node->group].name))
            continue;
        const bool is_young =
            fleet->now.us - node->made.us < fleet->groups[node->group].ready_timeout_us - MINUTE;
        const bool is_sure = pools->moods[node->group] == MOOD_WELL &&
                             world->now - pools->mood_at[node->group] > 40 * MINUTE;
        if (is_young && (is_sure || pools->mood_at[node->group] == 0))
            add_room(fleet, node->group, packing);
    }
}

struct queue {
    const struct fleet *fleet;
    size_t pods[FLEET_PODS];
    size_t count;
};

static int64_t get_cpu(const struct queue *queue, size_t i)
{
    const struct fleet_pod *pod = &queue->fleet->pods[queue->pods[i]];
    return queue->fleet->pod_classes[pod->pod_class].requests.amount[AS_RES_CPU];
}

/* The pods that waited at the look, in order or the largest first. */
static void fill_queue(const struct fleet *fleet, bool is_largest_first, struct queue *queue)
{
    *queue = (struct queue){.fleet = fleet};
    for (size_t i = 0; i < FLEET_PODS; i++) {
        const struct fleet_pod *pod = &fleet->pods[i];
        if (!pod->is_used || pod->node >= 0 || !pod->is_unschedulable)
            continue;
        queue->pods[queue->count] = i;
        for (size_t j = queue->count++; is_largest_first && j > 0; j--) {
            if (get_cpu(queue, j) <= get_cpu(queue, j - 1))
                break;
            queue->pods[j] = queue->pods[j - 1];
            queue->pods[j - 1] = i;
        }
    }
}

static bool is_template(const struct fleet *looked, const struct fleet_node *node)
{
    return node->is_used && node->is_ready && !node->is_marked &&
           looked->now.us - node->ready_since.at.us >= AS_NODE_TEMPLATE_READY_US;
}

/* What runs on each node of a group is known once the group has a node. */
static bool seems_to_fit(const struct fleet *looked, const struct fleet_pod *pod, size_t group)
{
    bool is_known = pod->pod_class != FLEET_PORT;
    for (size_t i = 0; i < FLEET_NODES && !is_known; i++)
        is_known = looked->nodes[i].group == (int)group && is_template(looked, &looked->nodes[i]);
    return !is_known || fleet_fits_new(looked, pod, group);
}

/* Pods that have no place, and would fit a new node of the group. */
static int32_t count_homeless_in(const struct queue *queue, struct packing packing, size_t group)
{
    int32_t count = 0;
    for (size_t i = 0; i < queue->count; i++) {
        const struct fleet_pod *pod = &queue->fleet->pods[queue->pods[i]];
        bool is_placed = false;
        for (size_t j = 0; j < packing.count && !is_placed; j++)
            is_placed = fleet_fits_new(queue->fleet, pod, (size_t)packing.rooms[j].group) &&
                        take_room(&packing.rooms[j], &queue->fleet->pod_classes[pod->pod_class]);
        count += !is_placed && seems_to_fit(queue->fleet, pod, group);
    }
    return count;
}

static struct packing reverse(const struct packing *packing)
{
    struct packing reversed = *packing;
    for (size_t i = 0; i < packing->count; i++)
        reversed.rooms[i] = packing->rooms[packing->count - 1 - i];
    return reversed;
}

/* First fit leaves more or fewer, by the order of pods and of rooms: the most that an order
 * leaves. */
static int32_t count_homeless(const struct fleet *fleet, const struct packing *packing,
                              size_t group)
{
    const struct packing rooms[] = {*packing, reverse(packing)};
    int32_t most = 0;
    for (size_t i = 0; i < 2 * AS_ARRAY_SIZE(rooms); i++) {
        struct queue queue;
        fill_queue(fleet, i % 2 == 1, &queue);
        const int32_t count = count_homeless_in(&queue, rooms[i / 2], group);
        most = count > most ? count : most;
    }
    return most;
}

/* ---- growth ---- */

static const struct as_target_config *find_pool(const struct world *world,
                                                const struct as_target_config *group)
{
    return group && group->of_pool != AS_NO_TARGET ? world->daemon.ruleset->targets[group->of_pool]
                                                   : NULL;
}

static void check_pool_max(struct world *world, const struct server_target *target,
                           const struct as_scale_request *request)
{
    const struct as_target_config *pool = find_pool(world, rules_find_target(world, target->id));
    int32_t size = request->to - request->from;
    for (size_t i = 0; pool && i < pool->pool->group_count; i++) {
        const char *name = world->daemon.ruleset->targets[pool->pool->groups[i]]->name;
        for (size_t j = 0; j < FLEET_GROUPS; j++) {
            if (strcmp(world->pools->fleet.groups[j].name, name) == 0)
                size += fleet_get_size(&world->pools->fleet, j);
        }
    }
    if (pool && size > pool->bounds.max)
        fail(world, "%s: %d nodes, above its maximum of %d", pool->name, size, pool->bounds.max);
}

/* Only what the look could know counts. */
static bool is_disturbed(const struct world *world)
{
    return world->pools->disturbed_at >= world->pools->looked_at - MINUTE;
}

static int32_t decision_count_unregistered(const struct fleet *fleet, int group)
{
    int32_t count = 0;
    for (size_t i = 0; i < FLEET_NODES; i++)
        count += fleet->nodes[i].group == group && fleet_is_overdue(fleet, &fleet->nodes[i]);
    return count;
}

/* At the looks that a decision in force may be of. */
static int32_t get_unregistered(const struct world *world, int group)
{
    const struct pools *pools = world->pools;
    return world->now - pools->unregistered_at[group] <= UNREGISTERED_US
               ? pools->unregistered[group]
               : 0;
}

void check_pools_look(struct world *world)
{
    world->pools->looked_before = world->pools->looked;
    world->pools->looked = world->pools->facts;
    world->pools->looked_at = world->now;
    for (int i = 0; i < FLEET_GROUPS; i++) {
        const int32_t count = decision_count_unregistered(&world->pools->fleet, i);
        if (count < get_unregistered(world, i))
            continue;
        world->pools->unregistered[i] = count;
        world->pools->unregistered_at[i] = world->now;
    }
}

void check_pools_growth(struct world *world, const struct server_target *target,
                        const struct as_scale_request *request)
{
    static struct packing packing;
    const struct pools *pools = world->pools;
    const struct as_rule *rule = rules_find_rule(world, request->rule);
    if (!rule || !rule->action.is_fit || request->is_ordered || is_disturbed(world))
        return;
    check_pool_max(world, target, request);
    packing.count = 0;
    add_ready(&pools->looked, &packing);
    add_coming(world, &packing);
    const int32_t homeless = count_homeless(&pools->looked, &packing, (size_t)target->group);
    if (request->to - request->from > homeless)
        fail(world, "%s: %d nodes are bought for %d pods without a place", target->id,
             request->to - request->from, homeless);
}

/* ---- decreases ---- */

/* By the look's own numbers, with nothing else on the node. */
static bool takes_all_pods(const struct as_snapshot *snapshot, const struct as_snapshot_node *of,
                           const struct as_snapshot_node *node)
{
    struct as_resources left = node->left;
    for (size_t i = 0; i < of->pod_count; i++) {
        const struct as_pod_class *pod_class = &snapshot->pod_classes[of->pods[i].pod_class].pod;
        if (pod_class->loner || pod_class->port_count > 0 ||
            as_node_admits(&node->node, pod_class) != AS_FITS)
            return false;
        for (size_t k = 0; k < AS_RES_NAMED; k++)
            left.amount[k] -= pod_class->requests.amount[k] * (int64_t)of->pods[i].count;
    }
    for (size_t k = 0; k < AS_RES_NAMED; k++)
        if (left.amount[k] < 0)
            return false;
    return true;
}

/* Its pods have a place by this plan, which others may then lack. */
static bool is_moved(const struct pool_look *look, size_t node)
{
    const enum as_stay stay = look->plan.stays[node];
    return look->snapshot.nodes[node].is_candidate && look->snapshot.nodes[node].pod_count > 0 &&
           (stay == AS_STAY_SHORTLY || stay == AS_STAY_AT_ONCE || stay == AS_STAY_AT_MIN ||
            stay == AS_STAY_COUNT);
}

static bool is_at_min(const struct as_snapshot *snapshot, const struct as_snapshot_node *node)
{
    const struct as_snapshot_group *group =
        node->group != AS_SNAPSHOT_NO_GROUP ? &snapshot->groups[node->group] : NULL;
    return group && group->size >= 0 && group->size <= group->min;
}

/* Where no other pods move, a node that its group's minimum keeps is open for those of a node. */
void check_pools_plan(struct world *world, const struct pool_look *look)
{
    const struct as_snapshot *snapshot = &look->snapshot;
    const struct as_pool_plan *plan = &look->plan;
    size_t moved = 0;
    if (!plan->stays || plan->is_cut)
        return;
    if (plan->kept[AS_STAY_AT_MIN] > 0)
        trouble_note(world, TROUBLE_GROUP_AT_MIN);
    for (size_t i = 0; i < snapshot->node_count; i++)
        moved += is_moved(look, i);
    for (size_t i = 0; i < snapshot->node_count && moved == 0; i++) {
        const struct as_snapshot_node *node = &snapshot->nodes[i];
        if (!node->is_candidate || plan->stays[i] != AS_STAY_NO_ROOM)
            continue;
        for (size_t k = 0; k < snapshot->node_count; k++) {
            const struct as_snapshot_node *other = &snapshot->nodes[k];
            if (k != i && other->is_ready && is_at_min(snapshot, other) &&
                takes_all_pods(snapshot, node, other))
                fail(world, "%s has no room for its pods, but %s has, which its minimum keeps",
                     node->node.name, other->node.name);
        }
    }
}

static const struct fleet_node *find_named(const struct fleet *fleet, const char *name)
{
    const struct fleet_node *node = fleet_find_node(fleet, name);
    return node && node->is_node ? node : NULL;
}

/* NULL: by that look it may leave. */
static const char *why_it_stays(const struct fleet *looked, const struct server_target *target,
                                const char *name)
{
    const struct fleet_node *node = find_named(looked, name);
    if (!node || node->group != target->group)
        return "is not its node";
    return fleet_may_leave(looked, node) ? NULL : "has a pod that may not move";
}

static void check_proof(struct world *world, const struct server_target *target,
                        const struct as_rule *rule)
{
    const int64_t within = world->daemon.config.watchdog_within_us;
    if (rule->guard_kind == AS_GUARD_ABSENT && !rule->is_always &&
        world->now - world->pools->heard_at > within + SHARE_MAX_US + PROOF_US)
        fail(world, "%s: nodes leave, though the watchdog is not heard of", target->id);
}

/* No more than never became nodes, by the look of the decision, or now. Which of them still are no
 * nodes, the provider's side looks again, as fleet_clean_up does here. And not blindly. */
void check_pools_clean_up(struct world *world, const struct server_target *target,
                          const struct as_scale_request *request)
{
    const struct pools *pools = world->pools;
    const int32_t now = decision_count_unregistered(&pools->fleet, target->group);
    const int32_t then = get_unregistered(world, target->group);
    const int32_t overdue = now > then ? now : then;
    if (request->from - request->to > overdue)
        fail(world, "%s: %d are cleaned up, and %d are no nodes", target->id,
             request->from - request->to, overdue);
    if (request->take_count > 0 || request->rule[0])
        fail(world, "%s: a clean-up with names or a rule", target->id);
    if (world->now - pools->facts_at > FACTS_FRESH_US + SHARE_MAX_US)
        fail(world, "%s: a clean-up, though nothing is known of the cluster", target->id);
}

void check_pools_take(struct world *world, const struct server_target *target,
                      const struct as_scale_request *request)
{
    const struct pools *pools = world->pools;
    const struct as_rule *rule = rules_find_rule(world, request->rule);
    if (!rule || !rule->action.is_take || request->is_ordered)
        return;
    if (request->take_count == 0)
        fail(world, "%s: a decrease by %s that names no nodes", target->id, rule->name);
    for (size_t i = 0; i < request->take_count; i++) {
        const char *why = why_it_stays(&pools->looked, target, request->take[i]);
        /* what was on its way at the last look was decided by the one before */
        if (why && why_it_stays(&pools->looked_before, target, request->take[i]))
            fail(world, "%s: %s %s", target->id, request->take[i], why);
    }
    if (world->now - pools->facts_at > FACTS_FRESH_US + SHARE_MAX_US)
        fail(world, "%s: nodes leave, though nothing is known of the cluster", target->id);
    check_proof(world, target, rule);
}

/* `for` of the nodes is at least ten minutes, and so is the time from one leaving to the next. */
void check_pools_applied(struct world *world, const struct server_target *target,
                         const struct as_scale_request *request)
{
    struct pools *pools = world->pools;
    const struct as_rule *rule = rules_find_rule(world, request->rule);
    if (!world->is_calm || world->now - pools->calm_at < CALM_US || !rule)
        return;
    if (rule->action.is_take)
        pools->taken_at[target->group] = world->now;
    if (!rule->action.is_fit || pools->taken_at[target->group] == 0)
        return;
    pools->taken_at[target->group] = 0;
    if (++pools->turns > TURNS_MAX)
        fail(world, "%s: nodes come and go under constant load", target->id);
}

void check_pools_leave(struct world *world, const struct fleet_node *node)
{
    const struct fleet *fleet = &world->pools->fleet;
    if (!fleet_may_leave(fleet, node))
        fail(world, "%s is deleted with a pod that may not move", node->name);
    if (world->kill_switch.reason && world->daemon.is_halted)
        fail(world, "%s is deleted under the kill switch", node->name);
}

/* ---- the end of the calm ---- */

void check_pools_calm(struct world *world)
{
    world->pools->calm_at = world->now;
}

struct open_rules {
    const struct as_rule *rules[SPEC_MAX];
    size_t count;
    struct world *world;
};

static void find_fit(void *context, const struct as_incident_state *state,
                     const struct as_incident_target *targets, size_t count)
{
    struct open_rules *open = context;
    for (size_t i = 0; i < count && state->is_open; i++) {
        const struct as_rule *rule = rules_find_rule(open->world, targets[i].rule);
        if (rule && rule->action.is_fit && rule->enabled && !rule->dry_run &&
            open->count < SPEC_MAX)
            open->rules[open->count++] = rule;
    }
}

/* By the gate of that name: somebody has switched it off. */
static bool is_off(const struct as_target_config *config, int32_t size)
{
    return size == 0 && config->bounds.min > 0;
}

static int32_t get_pool_size(const struct world *world, const struct as_pool_config *pool)
{
    int32_t size = 0;
    for (size_t i = 0; i < pool->group_count; i++) {
        const char *name = world->daemon.ruleset->targets[pool->groups[i]]->name;
        for (size_t j = 0; j < FLEET_GROUPS; j++)
            size += strcmp(world->pools->fleet.groups[j].name, name) == 0
                        ? fleet_get_size(&world->pools->fleet, j)
                        : 0;
    }
    return size;
}

/* Whether a rule that is due has this group to grow. */
static bool may_grow(const struct open_rules *open, size_t group)
{
    const struct world *world = open->world;
    const struct pools *pools = world->pools;
    const char *name = pools->fleet.groups[group].name;
    const struct as_target_config *config = rules_find_target(world, name);
    const struct as_target_config *pool = find_pool(world, config);
    const struct as_target_config *decider = pool ? pool : config;
    if (!config || config->dry_run || decider->dry_run || world->daemon.config.dry_run ||
        (int)group == pools->lacking ||
        fleet_get_size(&pools->fleet, group) >= config->bounds.max ||
        is_off(config, fleet_get_size(&pools->fleet, group)))
        return false;
    const int32_t size = pool ? get_pool_size(world, pool->pool) : 0;
    if (pool && (size >= pool->bounds.max || is_off(pool, size)))
        return false;
    for (size_t i = 0; i < open->count; i++) {
        if (open->rules[i]->target == decider)
            return true;
    }
    return false;
}

void check_pools_end(struct world *world)
{
    const struct fleet *fleet = &world->pools->fleet;
    struct open_rules open = {.world = world};
    as_engine_visit_incidents(as_shell_get_engine(world->daemon.shell), find_fit, &open);
    for (size_t i = 0; i < FLEET_PODS; i++) {
        const struct fleet_pod *pod = &fleet->pods[i];
        if (!pod->is_used || pod->node >= 0 || fleet->now.us - pod->created.us < CALM_US)
            continue;
        for (size_t group = 0; group < FLEET_GROUPS; group++) {
            if (fleet_fits_new(fleet, pod, group) && may_grow(&open, group))
                fail(world, "a pod of shape %d still waits after a long calm, though %s may grow",
                     pod->pod_class, fleet->groups[group].name);
        }
    }
}
