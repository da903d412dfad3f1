/*
 * Which nodes may leave, as far as each of them alone is concerned, and which of these are looked
 * at now: see docs/nodes.md.
 */
#include <stdlib.h>
#include <string.h>

#include "survey_work.h"

#define NO_ROOM_US (5 * AS_US_PER_MIN) /* so long a node is looked at last */

/* Pods */

/* A system pod with a budget is protected by its budget alone. */
static bool keeps(const struct survey_shape *shape, unsigned keep)
{
    switch (shape->shape.pod.eviction) {
    case AS_EVICTION_REFUSED: return true;
    case AS_EVICTION_SYSTEM: return (keep & AS_KEEP_SYSTEM_PODS) && shape->shape.budget_count == 0;
    case AS_EVICTION_LOCAL_STORAGE: return keep & AS_KEEP_LOCAL_STORAGE;
    case AS_EVICTION_UNREPLICATED: return keep & AS_KEEP_UNREPLICATED;
    case AS_EVICTION_ALLOWED:
    case AS_EVICTION_DAEMON:
    case AS_EVICTION_MIRROR: return false;
    }
    return true;
}

/* Whether it cannot be told where the pod could run. With a claim it may move within its zone. */
static bool is_bound_to(const struct as_node_fact *node, const struct as_pod_shape *shape)
{
    return (shape->unchecked & ~(unsigned)AS_UNCHECKED_VOLUMES) ||
           ((shape->unchecked & AS_UNCHECKED_VOLUMES) && !survey_find_zone(node, shape));
}

/* The API evicts no pod that two budgets select. */
static bool has_disruption(const struct as_survey_work *work, const struct survey_shape *shape)
{
    const size_t count = shape->shape.budget_count;

    return count == 0 || (count == 1 && work->shapes.budgets[shape->shape.budgets[0]]->allowed > 0);
}

static void add_load(struct survey_node *node, uint32_t index, struct survey_shape *shape)
{
    if (shape->stamp != index + 1) {
        shape->stamp = index + 1;
        shape->place = node->load_count;
        node->load[node->load_count++] = (struct survey_load){.shape = shape};
    }
    node->load[shape->place].count++;
}

/* AS_STAY_COUNT: all pods may be evicted. Then the node's load is set. */
static enum as_stay look_at_pods(struct as_survey_work *work, uint32_t index, unsigned keep)
{
    const struct as_node_fact *fact = &work->cluster->nodes[index];
    struct survey_node *node = &work->nodes[index];
    enum as_stay stay = AS_STAY_COUNT;
    size_t count;
    const uint32_t *pods = as_node_pods_get(&work->pods, index, &count);

    node->load = as_arena_alloc(work->arena, count, sizeof(*node->load));
    survey_spend(work, count);
    for (size_t i = 0; i < count; i++) {
        const struct as_pod_fact *pod = &work->cluster->pods[pods[i]];

        if (!survey_must_move(work, pod))
            continue;
        struct survey_shape *shape =
            survey_shapes_take(&work->shapes, pod->shape, survey_find_zone(fact, pod->shape));
        if (keeps(shape, keep) ||
            (is_bound_to(fact, pod->shape) && !survey_is_expendable(work, pod->shape)))
            return AS_STAY_UNEVICTABLE;
        if (!has_disruption(work, shape))
            stay = AS_STAY_BUDGET;
        if (!survey_is_expendable(work, pod->shape))
            add_load(node, index, shape);
    }
    return stay;
}

/* Nodes */

/* Requests of pods placed on the node: pods that wait, are nominated, or must leave their node. */
static void find_placed(struct as_survey_work *work, uint32_t index,
                        struct as_resources *placed_out)
{
    const size_t names = work->cluster->resources.count;
    const struct survey_node *node = &work->nodes[index];
    size_t count;
    const uint32_t *pods = as_node_pods_get(&work->pods, index, &count);

    *placed_out = (struct as_resources){.amount = {0}};
    if (!node->is_receiver)
        return;
    survey_spend(work, count);
    *placed_out = work->cluster->nodes[index].allocatable;
    for (size_t i = 0; i < names; i++) {
        int64_t *placed = &placed_out->amount[i];

        for (size_t j = 0; j < count; j++) {
            const struct as_pod_shape *shape = work->cluster->pods[pods[j]].shape;

            if (!survey_is_expendable(work, shape)) /* others take nothing of the room */
                *placed = as_amount_add(*placed, -shape->requests.amount[i], 1);
        }
        *placed = as_amount_add(*placed, -node->room.left.amount[i], 1);
    }
}

/* A node whose allocatable is not known counts as utilized. */
static bool is_utilized(const struct as_survey_work *work, uint32_t index,
                        const struct as_unneeded_config *config, const struct as_resources *placed,
                        double *percent_out)
{
    double percent = 0;
    const int status = as_node_get_utilization(work->cluster, &work->pods, index, config->ignore,
                                               work->request->config->expendable_below, placed,
                                               work->request->now, &percent, NULL);

    *percent_out = percent;
    return status != 0 || percent > config->below;
}

static enum as_stay find_stay(struct as_survey_work *work, uint32_t index)
{
    const struct as_node_fact *fact = &work->cluster->nodes[index];
    struct survey_node *node = &work->nodes[index];

    if (fact->leaving)
        return AS_STAY_LEAVING;
    if (fact->keep)
        return AS_STAY_DISABLED;
    if (node->group == AS_SURVEY_NO_GROUP)
        return AS_STAY_NO_GROUP;
    const struct as_unneeded_config *config = &work->request->members[node->group].unneeded;
    if (work->groups[node->group].stay != AS_STAY_COUNT)
        return work->groups[node->group].stay;
    if (node->is_starting)
        return AS_STAY_STARTING;
    struct as_resources placed;
    find_placed(work, index, &placed);
    if (is_utilized(work, index, config, &placed, &node->utilization))
        return AS_STAY_UTILIZED;
    const enum as_stay stay = look_at_pods(work, index, config->keep);
    return stay == AS_STAY_COUNT && placed.amount[AS_RES_PODS] > 0 ? AS_STAY_RECEIVES : stay;
}

static int compare_unneeded(const void *name, const void *unneeded)
{
    return strcmp(name, ((const struct as_unneeded *)unneeded)->node);
}

static void add_eligible(struct as_survey_work *work, uint32_t index)
{
    const struct as_survey_request *request = work->request;
    const struct survey_node *node = &work->nodes[index];
    struct survey_eligible eligible = {
        .node = index, .utilization = node->utilization, .name = node->shape.name};
    const struct as_unneeded *known =
        request->unneeded_count > 0
            ? bsearch(eligible.name, request->unneeded, request->unneeded_count,
                      sizeof(*request->unneeded), compare_unneeded)
            : NULL;

    if (known) {
        eligible.since = known->since;
        eligible.is_last =
            known->no_room.set && request->now.us - known->no_room.at.us < NO_ROOM_US;
    }
    if (node->load_count == 0)
        work->empty[work->empty_count++] = eligible;
    else
        work->drained[work->drained_count++] = eligible;
}

/* A node under way counts as a drained one until its pods are gone. */
static void count_leaving(struct as_survey_work *work, uint32_t index)
{
    const struct survey_node *node = &work->nodes[index];
    size_t count;
    const uint32_t *pods = as_node_pods_get(&work->pods, index, &count);

    if (!(work->cluster->nodes[index].leaving & AS_NODE_LEAVING_OURS) ||
        node->group == AS_SURVEY_NO_GROUP || !work->request->members[node->group].is_member)
        return;
    survey_spend(work, count);
    for (size_t i = 0; i < count; i++)
        if (survey_must_move(work, &work->cluster->pods[pods[i]]) &&
            !survey_is_expendable(work, work->cluster->pods[pods[i]].shape)) {
            work->survey.leaving_drained++;
            return;
        }
    work->survey.leaving_empty++;
}

void survey_keep(struct as_survey_work *work, uint32_t node, enum as_stay stay)
{
    work->nodes[node].is_candidate = false;
    work->nodes[node].stay = stay;
    work->survey.kept[stay]++;
}

bool survey_find_eligible(struct as_survey_work *work)
{
    const size_t count = work->cluster->node_count;

    if (!work->empty) {
        work->empty = as_arena_alloc(work->arena, count, sizeof(*work->empty));
        work->drained = as_arena_alloc(work->arena, count, sizeof(*work->drained));
    }
    for (; work->slice > 0 && work->at < count; work->at++) {
        const enum as_stay stay = find_stay(work, (uint32_t)work->at);

        survey_spend(work, 4 + work->shapes.cost);
        work->shapes.cost = 0;
        if (stay == AS_STAY_COUNT)
            add_eligible(work, (uint32_t)work->at);
        else
            survey_keep(work, (uint32_t)work->at, stay);
        if (stay == AS_STAY_LEAVING)
            count_leaving(work, (uint32_t)work->at);
    }
    return work->at == count;
}

/* Unneeded the longest first, then the least utilized, then by name. */
static int compare_eligible(const void *a, const void *b)
{
    const struct survey_eligible *left = a, *right = b;

    if (left->is_last != right->is_last)
        return left->is_last ? 1 : -1;
    if (left->since.set != right->since.set)
        return left->since.set ? -1 : 1;
    if (left->since.set && left->since.at.us != right->since.at.us)
        return left->since.at.us < right->since.at.us ? -1 : 1;
    if (left->utilization != right->utilization)
        return left->utilization < right->utilization ? -1 : 1;
    return strcmp(left->name, right->name);
}

/* The first ones; all others stay. */
static void choose(struct as_survey_work *work, struct survey_eligible *eligible, size_t *count,
                   size_t most, enum as_stay stay)
{
    if (*count > 1)
        qsort(eligible, *count, sizeof(*eligible), compare_eligible);
    while (*count > most)
        survey_keep(work, eligible[--*count].node, stay);
}

/* If some waiting pods were not tried, the room that is left is not known: no node leaves. */
bool survey_choose_candidates(struct as_survey_work *work)
{
    survey_spend(work, 16 * (work->empty_count + work->drained_count));
    if (work->pack.is_cut) {
        choose(work, work->empty, &work->empty_count, 0, AS_STAY_NO_ROOM);
        choose(work, work->drained, &work->drained_count, 0, AS_STAY_NO_ROOM);
    }
    choose(work, work->empty, &work->empty_count, AS_SURVEY_NODES_MAX, AS_STAY_AT_ONCE);
    choose(work, work->drained, &work->drained_count, AS_SURVEY_DRAINED_MAX, AS_STAY_AT_ONCE);
    return true;
}
