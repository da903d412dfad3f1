/*
 * The plan of a pool, and the nodes that leave. The phases are gone through in order; each step
 * does parts of them until its fits are spent. The phases of growth are in pool_fit.c.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/attr.h>

#include "pool_work.h"

/*
 * Which unneeded nodes leave now, and what is remembered of nodes until the next look. As in
 * Cluster Autoscaler, a node that only waits for others to leave (at_once) counts for the minima.
 */

#define POOL_NO_ROOM_US (5 * AS_US_PER_MIN) /* so long a node without room comes last */
#define LOOKS_US        (5 * AS_US_PER_MIN) /* looks further apart do not make a row */
#define AFTER_FAIL_US   (3 * AS_US_PER_MIN) /* none leaves after a failed drain */

static bool pool_is_younger(const struct as_pool_work *work, as_maybe_time time, int64_t us)
{
    return time.set && as_time_add(time.at.us, us) > work->request.terms.now.us;
}

/* Since when the node has been unneeded, in an unbroken row of looks. */
static as_maybe_time pool_get_since(const struct as_pool_work *work, size_t node)
{
    const struct as_unneeded *known = work->take.known[node];
    const bool is_broken = known && known->seen.set &&
                           as_time_add(known->seen.at.us, LOOKS_US) < work->request.terms.now.us;
    return known && !is_broken ? known->since : (as_maybe_time){.set = false};
}

/* Minima */

/* What a group's nodes have that do not leave already; those on their way are none yet. */
static int64_t count_staying(const struct as_snapshot_group *group, int64_t all)
{
    const int64_t leaving = group->size >= 0 ? group->nodes - group->size : 0;
    return leaving > 0 ? as_amount_add(all, -pool_get_average(all, group->nodes), (uint64_t)leaving)
                       : all;
}

static void pool_margins_init(struct as_pool_work *work)
{
    const struct as_snapshot *snapshot = work->snapshot;
    struct pool_margins *margins = &work->take.margins;
    const struct as_pool_config *config = work->request.config;
    *margins = (struct pool_margins){
        .groups = as_arena_alloc(work->arena, snapshot->group_count, sizeof(*margins->groups)),
        .nodes = (int64_t)work->plan.size - work->request.terms.min,
        .cpu = -config->cpu.min,
        .memory = -config->memory.min,
        .empty = (int64_t)config->at_once_empty - (int64_t)snapshot->leaving_empty,
        .drained = (int64_t)config->at_once_drain - (int64_t)snapshot->leaving_drained,
    };
    for (size_t i = 0; i < snapshot->group_count; i++) {
        const struct as_snapshot_group *group = &snapshot->groups[i];
        margins->groups[i] = (int64_t)group->size - group->min;
        if (!group->is_member)
            continue;
        margins->cpu = as_amount_add(margins->cpu, count_staying(group, group->cpu), 1);
        margins->memory = as_amount_add(margins->memory, count_staying(group, group->memory), 1);
    }
}

/* The snapshot says what a node has for pods, and what its group has on average: the larger counts.
 */
static int64_t plan_get_amount(const struct as_snapshot_node *node, int64_t all, int64_t nodes,
                               enum as_res resource)
{
    const int64_t allocatable = node->node.allocatable.amount[resource];
    const int64_t average = pool_get_average(all, nodes);
    return allocatable > average ? allocatable : average;
}

static int64_t get_cpu(const struct as_pool_work *work, const struct as_snapshot_node *node)
{
    const struct as_snapshot_group *group = &work->snapshot->groups[node->group];
    return plan_get_amount(node, group->cpu, group->nodes, AS_RES_CPU);
}

static int64_t get_memory(const struct as_pool_work *work, const struct as_snapshot_node *node)
{
    const struct as_snapshot_group *group = &work->snapshot->groups[node->group];
    return plan_get_amount(node, group->memory, group->nodes, AS_RES_MEMORY);
}

/* False, and nothing is used: a minimum keeps the node. */
static bool pool_margins_use(struct as_pool_work *work, const struct as_snapshot_node *node)
{
    const struct as_pool_config *config = work->request.config;
    struct pool_margins *margins = &work->take.margins;
    const int64_t cpu = get_cpu(work, node), memory = get_memory(work, node);
    if (margins->groups[node->group] < 1 || margins->nodes < 1 ||
        (config->cpu.min > 0 && margins->cpu < cpu) ||
        (config->memory.min > 0 && margins->memory < memory))
        return false;
    margins->groups[node->group]--;
    margins->nodes--;
    margins->cpu -= cpu;
    margins->memory -= memory;
    return true;
}

static void pool_margins_give_back(struct as_pool_work *work, const struct as_snapshot_node *node)
{
    struct pool_margins *margins = &work->take.margins;
    margins->groups[node->group]++;
    margins->nodes++;
    margins->cpu += get_cpu(work, node);
    margins->memory += get_memory(work, node);
}

/* Unneeded for so long that it may leave now. */
static bool pool_is_due(const struct as_pool_work *work, uint32_t index)
{
    const struct as_snapshot_node *node = &work->snapshot->nodes[index];
    const struct as_unneeded_config *config = &work->snapshot->groups[node->group].unneeded;
    const as_maybe_time since = pool_get_since(work, index);
    const int64_t wait = node->is_ready ? config->for_us : config->unready_for_us;
    return since.set && as_time_add(since.at.us, wait) < work->request.terms.now.us;
}

/* AS_STAY_COUNT: an unneeded node leaves now. */
static enum as_stay plan_decide(struct as_pool_work *work, uint32_t index)
{
    const struct as_snapshot_node *node = &work->snapshot->nodes[index];
    struct pool_margins *margins = &work->take.margins;
    int64_t *at_once = node->pod_count > 0 ? &margins->drained : &margins->empty;
    if (!pool_is_due(work, index) ||
        pool_is_younger(work, work->snapshot->drain_failed, AFTER_FAIL_US))
        return AS_STAY_SHORTLY;
    if (!work->take.is_bounded && !pool_margins_use(work, node))
        return AS_STAY_AT_MIN;
    if (*at_once < 1)
        return AS_STAY_AT_ONCE;
    --*at_once;
    return AS_STAY_COUNT;
}

/* The names, by group, then in the order of the candidates. */
static void list_leaving(struct as_pool_work *work)
{
    const struct pool_take *take = &work->take;
    struct as_pool_plan *plan = &work->plan;
    const char **names = as_arena_alloc(work->arena, take->count, sizeof(*names));
    uint32_t *groups = as_arena_alloc(work->arena, take->count, sizeof(*groups));
    for (uint32_t group = 0; group < work->snapshot->group_count; group++) {
        if (plan->groups[group].take_to == work->snapshot->groups[group].size)
            continue;
        for (size_t i = 0; i < take->count; i++) {
            const struct as_snapshot_node *node = &work->snapshot->nodes[take->order[i]];
            if (plan->stays[take->order[i]] != AS_STAY_COUNT || node->group != group)
                continue;
            names[plan->take_count] = node->node.name;
            groups[plan->take_count++] = group;
        }
    }
    plan->take = names;
    plan->take_group = groups;
}

/* Memory */

static void plan_remember(struct as_pool_plan *plan, const struct as_unneeded *unneeded)
{
    if (unneeded->since.set || unneeded->no_room.set)
        plan->unneeded[plan->unneeded_count++] = *unneeded;
}

static as_maybe_time get_no_room(const struct as_pool_work *work, const struct as_unneeded *known)
{
    return known && pool_is_younger(work, known->no_room, POOL_NO_ROOM_US)
               ? known->no_room
               : (as_maybe_time){.set = false};
}

/* A node of the snapshot. `is_unneeded` by place in the snapshot: it passed this look. */
static void remember_node(struct as_pool_work *work, size_t index, bool is_unneeded)
{
    const as_maybe_time now = {.set = true, .at = work->request.terms.now};
    const as_maybe_time since = pool_get_since(work, index);
    const struct as_snapshot_node *node = &work->snapshot->nodes[index];
    struct as_unneeded unneeded = {.node = node->node.name, .seen = now};
    if (is_unneeded)
        unneeded.since = since.set && since.at.us < now.at.us ? since : now;
    else if (node->is_candidate && work->plan.stays[index] == AS_STAY_NO_ROOM)
        unneeded.no_room = now;
    else
        unneeded.no_room = get_no_room(work, work->take.known[index]);
    plan_remember(&work->plan, &unneeded);
}

/* A node that is not part of the snapshot now; it may have been cut off. */
static void remember_other(struct as_pool_work *work, const struct as_unneeded *known)
{
    const struct as_unneeded unneeded = {.node = known->node,
                                         .no_room = get_no_room(work, known),
                                         .seen = {.set = true, .at = work->request.terms.now}};
    plan_remember(&work->plan, &unneeded);
}

/* Nodes and what is known of them ascend by name. */
static void remember_all(struct as_pool_work *work, const bool *is_unneeded)
{
    const struct as_snapshot *snapshot = work->snapshot;
    const size_t most = snapshot->node_count + snapshot->unneeded_count;
    size_t known = 0;
    work->plan.unneeded = as_arena_alloc(work->arena, most, sizeof(*work->plan.unneeded));
    work->plan.unneeded_count = 0;
    for (size_t i = 0; i < snapshot->node_count; i++) {
        const char *name = snapshot->nodes[i].node.name;
        while (known < snapshot->unneeded_count && strcmp(snapshot->unneeded[known].node, name) < 0)
            remember_other(work, &snapshot->unneeded[known++]);
        known +=
            known < snapshot->unneeded_count && strcmp(snapshot->unneeded[known].node, name) == 0;
        remember_node(work, i, is_unneeded[i]);
    }
    while (known < snapshot->unneeded_count)
        remember_other(work, &snapshot->unneeded[known++]);
}

static bool pool_leave(struct as_pool_work *work)
{
    const struct as_snapshot *snapshot = work->snapshot;
    struct as_pool_plan *plan = &work->plan;
    bool *is_unneeded = as_arena_alloc(work->arena, snapshot->node_count, sizeof(*is_unneeded));
    for (size_t i = 0; i < work->take.count; i++) {
        const uint32_t node = work->take.order[i];
        is_unneeded[node] =
            plan->stays[node] == AS_STAY_COUNT || plan->stays[node] == AS_STAY_AT_MIN;
        if (plan->stays[node] != AS_STAY_COUNT)
            continue;
        plan->stays[node] = plan_decide(work, node);
        if (plan->stays[node] == AS_STAY_COUNT) {
            plan->groups[snapshot->nodes[node].group].take_to--;
            plan->take_size--;
        }
    }
    for (size_t i = 0; i < snapshot->node_count; i++)
        if (snapshot->nodes[i].is_candidate && plan->stays[i] != AS_STAY_COUNT)
            plan->kept[plan->stays[i]]++;
    list_leaving(work);
    remember_all(work, is_unneeded);
    pool_spend(work, 10 * snapshot->node_count + 1);
    return true;
}

/*
 * `take`: which nodes are unneeded. The part above says which of them leave now. Candidates are
 * taken in order: all that are empty, then those whose pods lately had room elsewhere; of each the
 * ones that have been unneeded the longest, the least utilized, by name. The pods of a candidate go
 * first-fit to open Ready nodes that stay. If one pod has no room, none of them moves.
 *
 * From version 3 on, the bounds say how many nodes are simulated as leaving. All others stay open
 * for pods, also those that would be unneeded: AS_STAY_AT_MIN. Nodes that may leave now come first;
 * what a candidate that stays was granted, the next ones in order may use.
 */

#define TAKE_FITS (AS_PACK_FITS_MAX / 4)

enum verdict { VERDICT_UNKNOWN, VERDICT_ADMITTED, VERDICT_REFUSED };

static const struct as_snapshot_node *get_node(const struct as_pool_work *work, size_t node)
{
    return &work->snapshot->nodes[node];
}

/* Candidates */

/* A node that is not Ready does not leave where its group says `unready_for: never`. */
static bool may_leave(const struct as_pool_work *work, const struct as_snapshot_node *node)
{
    const struct as_unneeded_config *config = &work->snapshot->groups[node->group].unneeded;
    return node->is_ready || config->unready_for_us != AS_UNREADY_NEVER;
}

struct candidate {
    uint32_t node;
    bool has_pods, was_no_room;
    int64_t since;
    double utilization;
};

static int compare_candidates(const void *a, const void *b)
{
    const struct candidate *left = a, *right = b;
    if (left->has_pods != right->has_pods)
        return left->has_pods ? 1 : -1;
    if (left->was_no_room != right->was_no_room)
        return left->was_no_room ? 1 : -1;
    if (left->since != right->since)
        return left->since < right->since ? -1 : 1;
    if (left->utilization != right->utilization)
        return left->utilization < right->utilization ? -1 : 1;
    return left->node < right->node ? -1 : 1;
}

static struct candidate make_candidate(const struct as_pool_work *work, size_t index)
{
    const struct as_unneeded *known = work->take.known[index];
    const as_maybe_time since = pool_get_since(work, index);
    return (struct candidate){
        .node = (uint32_t)index,
        .has_pods = get_node(work, index)->pod_count > 0,
        .was_no_room = known && pool_is_younger(work, known->no_room, POOL_NO_ROOM_US),
        .since = since.set ? since.at.us : INT64_MAX,
        .utilization = get_node(work, index)->utilization,
    };
}

static void order_candidates(struct as_pool_work *work)
{
    const size_t count = work->snapshot->node_count;
    struct candidate *candidates = as_arena_alloc(work->arena, count, sizeof(*candidates));
    struct pool_take *take = &work->take;
    for (size_t i = 0; i < count; i++) {
        if (!get_node(work, i)->is_candidate)
            continue;
        work->plan.stays[i] = AS_STAY_SHORTLY;
        if (may_leave(work, get_node(work, i)))
            candidates[take->count++] = make_candidate(work, i);
    }
    if (take->count > 1)
        qsort(candidates, take->count, sizeof(*candidates), compare_candidates);
    take->order = as_arena_alloc(work->arena, take->count, sizeof(*take->order));
    for (size_t i = 0; i < take->count; i++)
        take->order[i] = candidates[i].node;
}

/* Both lists ascend by name. */
static void match_known(struct as_pool_work *work)
{
    const struct as_snapshot *snapshot = work->snapshot;
    work->take.known = as_arena_alloc(work->arena, snapshot->node_count, sizeof(*work->take.known));
    for (size_t i = 0, next = 0; i < snapshot->node_count; i++) {
        const char *name = get_node(work, i)->node.name;
        while (next < snapshot->unneeded_count && strcmp(snapshot->unneeded[next].node, name) < 0)
            next++;
        if (next < snapshot->unneeded_count && strcmp(snapshot->unneeded[next].node, name) == 0)
            work->take.known[i] = &snapshot->unneeded[next];
    }
}

/* Nodes that may receive */

static bool may_receive(const struct as_snapshot_node *node)
{
    return node->is_ready;
}

static void update_bin(struct pool_bin *bin, const struct as_node_room *room)
{
    bin->cpu = room->left.amount[AS_RES_CPU];
    bin->memory = room->left.amount[AS_RES_MEMORY];
    bin->pods = room->left.amount[AS_RES_PODS];
}

static struct as_node_room plan_make_room(struct as_pool_work *work,
                                          const struct as_snapshot_node *node)
{
    struct as_node_room room = {.left = node->left,
                                .expendable = node->expendable,
                                .guest_count = node->guest_count,
                                .guest_capacity = node->guest_count};
    room.guests = as_arena_alloc(work->arena, room.guest_count, sizeof(*room.guests));
    for (size_t i = 0; i < room.guest_count; i++)
        room.guests[i] = &work->snapshot->pod_classes[node->guests[i].pod_class].pod;
    return room;
}

static void make_bins(struct as_pool_work *work)
{
    struct pool_take *take = &work->take;
    const size_t count = work->snapshot->node_count;
    take->bins = as_arena_alloc(work->arena, count, sizeof(*take->bins));
    take->rooms = as_arena_alloc(work->arena, count, sizeof(*take->rooms));
    for (size_t i = 0; i < count; i++) {
        const struct as_snapshot_node *node = get_node(work, i);
        if (!may_receive(node))
            continue;
        take->rooms[take->bin_count] = plan_make_room(work, node);
        take->bins[take->bin_count] = (struct pool_bin){.node = (uint32_t)i};
        update_bin(&take->bins[take->bin_count], &take->rooms[take->bin_count]);
        take->bin_count++;
    }
    take->undos = as_arena_alloc(work->arena, take->bin_count, sizeof(*take->undos));
    take->touched_by = as_arena_alloc(work->arena, take->bin_count, sizeof(*take->touched_by));
}

/* The pod classes that some candidate has, for the labels that they read. */
static void init_classes(struct as_pool_work *work)
{
    const struct as_snapshot *snapshot = work->snapshot;
    struct as_pending *used = as_arena_alloc(work->arena, snapshot->pod_class_count, sizeof(*used));
    size_t count = 0;
    for (size_t i = 0; i < snapshot->pod_class_count; i++)
        used[i].pod_class = &snapshot->pod_classes[i].pod;
    for (size_t i = 0; i < work->take.count; i++) {
        const struct as_snapshot_node *node = get_node(work, work->take.order[i]);
        for (size_t k = 0; k < node->pod_count; k++)
            used[node->pods[k].pod_class].count++;
    }
    for (size_t i = 0; i < snapshot->pod_class_count; i++)
        if (used[i].count > 0)
            used[count++] = used[i];
    as_node_classes_init(&work->take.classes, used, count, work->take.bin_count, work->arena);
}

static void grant(struct as_pool_work *work)
{
    struct pool_take *take = &work->take;
    take->is_granted =
        as_arena_alloc(work->arena, work->snapshot->node_count, sizeof(*take->is_granted));
    for (int is_due = 1; is_due >= 0; is_due--)
        for (size_t i = 0; i < take->count; i++)
            if (pool_is_due(work, take->order[i]) == is_due)
                take->is_granted[take->order[i]] =
                    pool_margins_use(work, get_node(work, take->order[i]));
}

static bool pool_take_begin(struct as_pool_work *work)
{
    const struct as_snapshot *snapshot = work->snapshot;
    struct pool_take *take = &work->take;
    work->plan.stays = as_arena_alloc(work->arena, snapshot->node_count, sizeof(*work->plan.stays));
    for (size_t i = 0; i < snapshot->node_count; i++)
        work->plan.stays[i] = snapshot->nodes[i].stay;
    take->fits = TAKE_FITS;
    take->allowed = as_arena_alloc(work->arena, snapshot->budget_count, sizeof(*take->allowed));
    for (size_t i = 0; i < snapshot->budget_count; i++)
        take->allowed[i] = snapshot->budgets[i].allowed;
    match_known(work);
    order_candidates(work);
    pool_margins_init(work);
    take->is_bounded = work->request.version >= 3;
    if (take->is_bounded)
        grant(work);
    make_bins(work);
    init_classes(work);
    pool_spend(work, 20 * (snapshot->node_count + snapshot->pod_class_count) + 1);
    return true;
}

/* The nodes' classes; then room for the verdicts. */
static bool pool_take_class(struct as_pool_work *work)
{
    struct pool_take *take = &work->take;
    if (take->at < take->bin_count) {
        struct pool_bin *bin = &take->bins[take->at++];
        const struct as_node_shape *node = &get_node(work, bin->node)->node;
        bin->class = as_node_classes_take(&take->classes, node);
        pool_spend(work, 1 + take->classes.key_count + node->taint_count);
        return false;
    }
    take->class_max = take->classes.count;
    take->verdicts =
        as_arena_alloc(work->arena, work->snapshot->pod_class_count * take->class_max, 1);
    take->at = 0;
    pool_spend(work, 1 + work->snapshot->pod_class_count * take->class_max / 64);
    return true;
}

/* One candidate */

static void plan_spend(struct as_pool_work *work, uint64_t fits)
{
    pool_spend(work, fits);
    work->take.fits -= fits < work->take.fits ? fits : work->take.fits;
}

static void remember_room(struct as_pool_work *work, size_t bin)
{
    struct pool_take *take = &work->take;
    if (take->touched_by[bin] == take->at + 1)
        return;
    take->touched_by[bin] = take->at + 1;
    take->undos[take->undo_count++] = (struct pool_undo){(uint32_t)bin, take->rooms[bin]};
}

static void undo(struct as_pool_work *work)
{
    struct pool_take *take = &work->take;
    for (size_t i = 0; i < take->undo_count; i++) {
        const uint32_t bin = take->undos[i].bin;
        take->rooms[bin] = take->undos[i].room;
        update_bin(&take->bins[bin], &take->rooms[bin]);
        take->touched_by[bin] = 0;
    }
}

static bool plan_has_enough(const struct pool_bin *bin, const struct as_resources *requests)
{
    const int64_t *need = requests->amount;
    return (need[AS_RES_CPU] <= 0 || bin->cpu >= need[AS_RES_CPU]) &&
           (need[AS_RES_MEMORY] <= 0 || bin->memory >= need[AS_RES_MEMORY]) &&
           (need[AS_RES_PODS] <= 0 || bin->pods >= need[AS_RES_PODS]);
}

static bool plan_is_admitted(struct as_pool_work *work, const struct pool_bin *bin,
                             uint32_t pod_class, bool reads_name)
{
    const struct pool_take *take = &work->take;
    const struct as_node_shape *node = &get_node(work, bin->node)->node;
    uint8_t *verdict = &take->verdicts[pod_class * take->class_max + bin->class];
    if (*verdict == VERDICT_UNKNOWN || reads_name) {
        plan_spend(work, 10 + node->taint_count);
        *verdict = as_node_admits(node, &work->snapshot->pod_classes[pod_class].pod) == AS_FITS
                       ? VERDICT_ADMITTED
                       : VERDICT_REFUSED;
    }
    return *verdict == VERDICT_ADMITTED;
}

/* A node stays while it is no candidate that was found unneeded. */
static bool plan_stays(const struct as_pool_work *work, uint32_t node)
{
    return node != work->take.order[work->take.at] && work->plan.stays[node] != AS_STAY_COUNT;
}

/* Places equal pods, first-fit. False: one has no room. */
static bool place(struct as_pool_work *work, const struct as_snapshot_pods *pods)
{
    struct pool_take *take = &work->take;
    const struct as_pod_class *pod_class = &work->snapshot->pod_classes[pods->pod_class].pod;
    const bool reads_name = as_pod_class_reads_name(pod_class);
    uint64_t left = pods->count;
    size_t i;
    for (i = 0; i < take->bin_count && left > 0; i++) {
        struct pool_bin *bin = &take->bins[i];
        if (!plan_has_enough(bin, &pod_class->requests) || !plan_stays(work, bin->node) ||
            !plan_is_admitted(work, bin, pods->pod_class, reads_name))
            continue;
        const uint64_t count =
            as_node_room_count(&take->rooms[i], &work->snapshot->resources, pod_class, left, NULL);
        plan_spend(work, 1 + take->rooms[i].guest_count * (1 + pod_class->port_count));
        if (count == 0)
            continue;
        remember_room(work, i);
        as_node_room_take(&take->rooms[i], &work->snapshot->resources, pod_class, count,
                          work->arena);
        update_bin(bin, &take->rooms[i]);
        left -= count;
    }
    plan_spend(work, 1 + i);
    return left == 0;
}

/* As in Cluster Autoscaler, a budget with one disruption left allows that a node leaves with
 * several of its pods: they are evicted one after the other. */
static bool has_disruptions(const struct as_pool_work *work, const struct as_snapshot_node *node)
{
    for (size_t i = 0; i < node->pod_count; i++) {
        const struct as_snapshot_pod_class *pod_class =
            &work->snapshot->pod_classes[node->pods[i].pod_class];
        for (size_t k = 0; k < pod_class->budget_count && node->pods[i].count > 0; k++)
            if (work->take.allowed[pod_class->budgets[k]] < 1)
                return false;
    }
    return true;
}

static void use_disruptions(struct as_pool_work *work, const struct as_snapshot_node *node)
{
    for (size_t i = 0; i < node->pod_count; i++) {
        const struct as_snapshot_pod_class *pod_class =
            &work->snapshot->pod_classes[node->pods[i].pod_class];
        for (size_t k = 0; k < pod_class->budget_count; k++) {
            int32_t *allowed = &work->take.allowed[pod_class->budgets[k]];
            *allowed = node->pods[i].count < (uint32_t)*allowed
                           ? *allowed - (int32_t)node->pods[i].count
                           : 0;
        }
    }
}

/* The node stays: other nodes may use its grant. */
static void withdraw(struct as_pool_work *work, uint32_t node)
{
    if (!work->take.is_bounded || !work->take.is_granted[node])
        return;
    work->take.is_granted[node] = false;
    pool_margins_give_back(work, get_node(work, node));
}

/* Its pods have room elsewhere. */
static bool may_go(struct as_pool_work *work, uint32_t node)
{
    return !work->take.is_bounded || work->take.is_granted[node] ||
           pool_margins_use(work, get_node(work, node));
}

static void end_candidate(struct as_pool_work *work, enum as_stay stay)
{
    struct pool_take *take = &work->take;
    const uint32_t node = take->order[take->at];
    if (stay == AS_STAY_COUNT && !may_go(work, node))
        stay = AS_STAY_AT_MIN;
    work->plan.stays[node] = stay;
    if (stay == AS_STAY_COUNT) {
        use_disruptions(work, get_node(work, node));
        for (size_t i = 0; i < take->undo_count; i++) {
            const uint32_t receiver = take->bins[take->undos[i].bin].node;
            if (work->plan.stays[receiver] == AS_STAY_SHORTLY || /* not looked at yet */
                work->plan.stays[receiver] == AS_STAY_AT_MIN)
                work->plan.stays[receiver] = AS_STAY_RECEIVES;
        }
    } else {
        withdraw(work, node);
        undo(work);
    }
    take->pods = NULL;
    take->undo_count = 0;
    take->at++;
}

static void begin_candidate(struct as_pool_work *work, const struct as_snapshot_node *node)
{
    work->take.pods = pool_sort_pods(work->snapshot, node->pods, node->pod_count, work->arena);
    work->take.pod_at = 0;
    plan_spend(work, 1 + 10 * node->pod_count);
}

/* What was not looked at because the work ended stays as `no_room`: its row is broken. */
static bool pool_take_simulate(struct as_pool_work *work)
{
    struct pool_take *take = &work->take;
    if (take->at == take->count)
        return true;
    const uint32_t index = take->order[take->at];
    const struct as_snapshot_node *node = get_node(work, index);
    if (work->plan.stays[index] == AS_STAY_RECEIVES) {
        withdraw(work, index);
        take->at++;
        plan_spend(work, 1);
    } else if (!take->pods) {
        begin_candidate(work, node);
        if (!has_disruptions(work, node))
            end_candidate(work, AS_STAY_BUDGET);
    } else if (take->pod_at == node->pod_count) {
        end_candidate(work, AS_STAY_COUNT);
        plan_spend(work, 1);
    } else if (take->fits == 0) {
        work->plan.is_cut = true;
        end_candidate(work, AS_STAY_NO_ROOM);
    } else if (!place(work, &take->pods[take->pod_at++])) {
        end_candidate(work, AS_STAY_NO_ROOM);
    }
    return false;
}

/*
 * Instances that never became nodes: how many of each group may be removed. Whatever else closes a
 * group for growth, they leave; but not where nobody may touch the group, or it is being changed.
 */

static bool may_touch(const struct as_snapshot_group *group)
{
    return group->is_member && group->size >= 0 &&
           (group->closed == AS_REASON_SCALED || group->closed == AS_REASON_AT_MAX ||
            group->closed == AS_REASON_COOLDOWN || group->closed == AS_REASON_NO_TEMPLATE);
}

/* Sets plan.overdue, once the sizes are known */
static void pool_unregistered_find(struct as_pool_work *work)
{
    struct as_pool_plan *plan = &work->plan;
    int64_t room = (int64_t)plan->size - work->request.terms.min;
    for (size_t i = 0; i < work->snapshot->group_count && work->request.terms.with_fit; i++) {
        const struct as_snapshot_group *group = &work->snapshot->groups[i];
        int64_t count = may_touch(group) ? group->removable : 0;
        const int64_t above = (int64_t)group->size - group->min;
        count = count < above ? count : above;
        count = count < room ? count : room;
        if (count <= 0)
            continue;
        room -= count;
        plan->groups[i].overdue = (int32_t)count;
        plan->overdue += (int32_t)count;
    }
}

static const struct {
    pool_phase_fn *run;
    bool is_take; /* else fit */
} phases[] = {
    {pool_fit_begin, false},    {pool_fit_place, false},    {pool_fit_observe, false},
    {pool_fit_estimate, false}, {pool_fit_choose, false},   {pool_take_begin, true},
    {pool_take_class, true},    {pool_take_simulate, true}, {pool_leave, true},
};

/* Of a group that cannot be read, the nodes that are known count. */
static int32_t plan_get_size(const struct as_snapshot_group *group)
{
    if (group->size >= 0)
        return group->size;
    return group->nodes < INT32_MAX ? (int32_t)group->nodes : INT32_MAX;
}

static void init_plan(struct as_pool_work *work)
{
    const struct as_snapshot *snapshot = work->snapshot;
    struct as_pool_plan *plan = &work->plan;
    int64_t size = 0;
    *plan = (struct as_pool_plan){
        .terms = work->request.terms,
        .fit_reason = AS_REASON_NO_CHANGE,
        .chosen = AS_POOL_NO_OPTION,
    };
    plan->groups = as_arena_alloc(work->arena, snapshot->group_count, sizeof(*plan->groups));
    for (size_t i = 0; i < snapshot->group_count; i++) {
        const struct as_snapshot_group *group = &snapshot->groups[i];
        plan->groups[i].fit = plan->groups[i].take_to = plan_get_size(group);
        plan->groups[i].skipped = AS_REASON_SCALED;
        size += group->is_member ? plan->groups[i].fit : 0;
    }
    plan->size = size < INT32_MAX ? (int32_t)size : INT32_MAX;
    plan->fit_size = plan->take_size = plan->size;
    memcpy(plan->kept, snapshot->kept, sizeof(plan->kept));
    /* Without `take` it stays as it is. */
    plan->unneeded = as_arena_alloc(work->arena, snapshot->unneeded_count, sizeof(*plan->unneeded));
    plan->unneeded_count = snapshot->unneeded_count;
    for (size_t i = 0; i < snapshot->unneeded_count; i++)
        plan->unneeded[i] = snapshot->unneeded[i];
    pool_asked_review(work);
    pool_unregistered_find(work);
}

struct as_pool_work *as_pool_begin(const struct as_pool_plan_request *request,
                                   struct as_arena *arena)
{
    struct as_pool_work *work = as_arena_alloc(arena, 1, sizeof(*work));
    assert(!request->snapshot->error);
    work->request = *request;
    work->snapshot = request->snapshot;
    work->arena = arena;
    init_plan(work);
    return work;
}

static bool plan_is_asked_for(const struct as_pool_work *work)
{
    return phases[work->phase].is_take ? work->request.terms.with_take
                                       : work->request.terms.with_fit;
}

bool as_pool_step(struct as_pool_work *work, uint64_t fits, struct as_pool_plan *plan_out)
{
    work->slice = fits;
    while (work->phase < AS_ARRAY_SIZE(phases) && work->slice > 0) {
        if (!plan_is_asked_for(work) || phases[work->phase].run(work))
            work->phase++;
    }
    if (work->phase < AS_ARRAY_SIZE(phases))
        return false;
    *plan_out = work->plan;
    return true;
}
