/*
 * Which unneeded nodes leave now, and what is remembered of nodes until the next look. As in
 * Cluster Autoscaler, a node that only waits for others to leave (at_once) counts for the minima.
 */
#include "pool_work.h"

#include <string.h>

#define LOOKS_US      (5 * AS_US_PER_MIN) /* looks further apart do not make a row */
#define AFTER_FAIL_US (3 * AS_US_PER_MIN) /* none leaves after a failed drain */

bool pool_is_younger(const struct as_pool_work *work, as_maybe_time time, int64_t us)
{
    return time.set && as_time_add(time.at.us, us) > work->request.terms.now.us;
}

as_maybe_time pool_get_since(const struct as_pool_work *work, size_t node)
{
    const struct as_unneeded *known = work->take.known[node];
    const bool is_broken = known && known->seen.set &&
                           as_time_add(known->seen.at.us, LOOKS_US) < work->request.terms.now.us;
    return known && !is_broken ? known->since : (as_maybe_time){.set = false};
}

/* Minima */

/* What a group's nodes have that do not leave already; those on their way are none yet. */
static int64_t count_staying(const struct as_survey_group *group, int64_t all)
{
    const int64_t leaving = group->size >= 0 ? group->nodes - group->size : 0;
    return leaving > 0 ? as_amount_add(all, -pool_get_average(all, group->nodes), (uint64_t)leaving)
                       : all;
}

void pool_margins_init(struct as_pool_work *work)
{
    const struct as_survey *survey = work->survey;
    struct pool_margins *margins = &work->take.margins;
    const struct as_pool_config *config = work->request.config;
    *margins = (struct pool_margins){
        .groups = as_arena_alloc(work->arena, survey->group_count, sizeof(*margins->groups)),
        .nodes = (int64_t)work->plan.size - work->request.terms.min,
        .cpu = -config->cpu.min,
        .memory = -config->memory.min,
        .empty = (int64_t)config->at_once_empty - (int64_t)survey->leaving_empty,
        .drained = (int64_t)config->at_once_drain - (int64_t)survey->leaving_drained,
    };
    for (size_t i = 0; i < survey->group_count; i++) {
        const struct as_survey_group *group = &survey->groups[i];
        margins->groups[i] = (int64_t)group->size - group->min;
        if (!group->is_member)
            continue;
        margins->cpu = as_amount_add(margins->cpu, count_staying(group, group->cpu), 1);
        margins->memory = as_amount_add(margins->memory, count_staying(group, group->memory), 1);
    }
}

/* The survey says what a node has for pods, and what its group has on average: the larger counts.
 */
static int64_t get_amount(const struct as_survey_node *node, int64_t all, int64_t nodes,
                          enum as_res resource)
{
    const int64_t allocatable = node->node.allocatable.amount[resource];
    const int64_t average = pool_get_average(all, nodes);
    return allocatable > average ? allocatable : average;
}

static int64_t get_cpu(const struct as_pool_work *work, const struct as_survey_node *node)
{
    const struct as_survey_group *group = &work->survey->groups[node->group];
    return get_amount(node, group->cpu, group->nodes, AS_RES_CPU);
}

static int64_t get_memory(const struct as_pool_work *work, const struct as_survey_node *node)
{
    const struct as_survey_group *group = &work->survey->groups[node->group];
    return get_amount(node, group->memory, group->nodes, AS_RES_MEMORY);
}

bool pool_margins_use(struct as_pool_work *work, const struct as_survey_node *node)
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

void pool_margins_give_back(struct as_pool_work *work, const struct as_survey_node *node)
{
    struct pool_margins *margins = &work->take.margins;
    margins->groups[node->group]++;
    margins->nodes++;
    margins->cpu += get_cpu(work, node);
    margins->memory += get_memory(work, node);
}

bool pool_is_due(const struct as_pool_work *work, uint32_t index)
{
    const struct as_survey_node *node = &work->survey->nodes[index];
    const struct as_unneeded_config *config = &work->survey->groups[node->group].unneeded;
    const as_maybe_time since = pool_get_since(work, index);
    const int64_t wait = node->is_ready ? config->for_us : config->unready_for_us;
    return since.set && as_time_add(since.at.us, wait) < work->request.terms.now.us;
}

/* AS_STAY_COUNT: an unneeded node leaves now. */
static enum as_stay decide(struct as_pool_work *work, uint32_t index)
{
    const struct as_survey_node *node = &work->survey->nodes[index];
    struct pool_margins *margins = &work->take.margins;
    int64_t *at_once = node->pod_count > 0 ? &margins->drained : &margins->empty;
    if (!pool_is_due(work, index) ||
        pool_is_younger(work, work->survey->drain_failed, AFTER_FAIL_US))
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
    for (uint32_t group = 0; group < work->survey->group_count; group++) {
        if (plan->groups[group].take_to == work->survey->groups[group].size)
            continue;
        for (size_t i = 0; i < take->count; i++) {
            const struct as_survey_node *node = &work->survey->nodes[take->order[i]];
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

static void remember(struct as_pool_plan *plan, const struct as_unneeded *unneeded)
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

/* A node of the survey. `is_unneeded` by place in the survey: it passed this look. */
static void remember_node(struct as_pool_work *work, size_t index, bool is_unneeded)
{
    const as_maybe_time now = {.set = true, .at = work->request.terms.now};
    const as_maybe_time since = pool_get_since(work, index);
    const struct as_survey_node *node = &work->survey->nodes[index];
    struct as_unneeded unneeded = {.node = node->node.name, .seen = now};
    if (is_unneeded)
        unneeded.since = since.set && since.at.us < now.at.us ? since : now;
    else if (node->is_candidate && work->plan.stays[index] == AS_STAY_NO_ROOM)
        unneeded.no_room = now;
    else
        unneeded.no_room = get_no_room(work, work->take.known[index]);
    remember(&work->plan, &unneeded);
}

/* A node that is not part of the survey now; it may have been cut off. */
static void remember_other(struct as_pool_work *work, const struct as_unneeded *known)
{
    const struct as_unneeded unneeded = {.node = known->node,
                                         .no_room = get_no_room(work, known),
                                         .seen = {.set = true, .at = work->request.terms.now}};
    remember(&work->plan, &unneeded);
}

/* Nodes and what is known of them ascend by name. */
static void remember_all(struct as_pool_work *work, const bool *is_unneeded)
{
    const struct as_survey *survey = work->survey;
    const size_t most = survey->node_count + survey->unneeded_count;
    size_t known = 0;
    work->plan.unneeded = as_arena_alloc(work->arena, most, sizeof(*work->plan.unneeded));
    work->plan.unneeded_count = 0;
    for (size_t i = 0; i < survey->node_count; i++) {
        const char *name = survey->nodes[i].node.name;
        while (known < survey->unneeded_count && strcmp(survey->unneeded[known].node, name) < 0)
            remember_other(work, &survey->unneeded[known++]);
        known += known < survey->unneeded_count && strcmp(survey->unneeded[known].node, name) == 0;
        remember_node(work, i, is_unneeded[i]);
    }
    while (known < survey->unneeded_count)
        remember_other(work, &survey->unneeded[known++]);
}

bool pool_leave(struct as_pool_work *work)
{
    const struct as_survey *survey = work->survey;
    struct as_pool_plan *plan = &work->plan;
    bool *is_unneeded = as_arena_alloc(work->arena, survey->node_count, sizeof(*is_unneeded));
    for (size_t i = 0; i < work->take.count; i++) {
        const uint32_t node = work->take.order[i];
        is_unneeded[node] =
            plan->stays[node] == AS_STAY_COUNT || plan->stays[node] == AS_STAY_AT_MIN;
        if (plan->stays[node] != AS_STAY_COUNT)
            continue;
        plan->stays[node] = decide(work, node);
        if (plan->stays[node] == AS_STAY_COUNT) {
            plan->groups[survey->nodes[node].group].take_to--;
            plan->take_size--;
        }
    }
    for (size_t i = 0; i < survey->node_count; i++)
        if (survey->nodes[i].is_candidate && plan->stays[i] != AS_STAY_COUNT)
            plan->kept[plan->stays[i]]++;
    list_leaving(work);
    remember_all(work, is_unneeded);
    pool_spend(work, 10 * survey->node_count + 1);
    return true;
}
