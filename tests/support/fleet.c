/*
 * A cluster with node groups: see the header.
 */
#include "fleet.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/core/target.h>

#define MIB INT64_C(1048576)

static const struct as_labels *make_labels(struct fleet *fleet, const char *name, const char *value,
                                           const char *hostname)
{
    const struct as_label pairs[] = {{name, value}, {"kubernetes.io/hostname", hostname}};
    const struct as_labels *labels;
    const int status = as_labels_new_in(&fleet->arena, pairs, hostname ? 2 : 1, &labels);
    assert(status == 0);
    (void)status;
    return labels;
}

static void make_shape(struct fleet *fleet, int shape, int64_t cpu, int64_t memory)
{
    struct as_pod_shape *made = &fleet->shapes[shape];
    char name[16];
    snprintf(name, sizeof(name), "s%d", shape);
    *made = (struct as_pod_shape){
        .labels = make_labels(fleet, "app", as_arena_strdup(&fleet->arena, name), NULL),
        .namespace_ = "shop",
        .eviction = AS_EVICTION_ALLOWED,
    };
    made->requests.amount[AS_RES_CPU] = cpu;
    made->requests.amount[AS_RES_MEMORY] = memory;
    made->requests.amount[AS_RES_PODS] = 1;
}

void fleet_init(struct fleet *fleet, const struct fleet_group *groups, size_t count,
                as_wall_time now)
{
    *fleet = (struct fleet){.group_count = count, .now = now, .arena = AS_ARENA_INIT};
    assert(count > 0 && count <= FLEET_GROUPS);
    memcpy(fleet->groups, groups, count * sizeof(*groups));
    make_shape(fleet, 0, 500, 256 * MIB);
    make_shape(fleet, 1, 900, 1024 * MIB);
    make_shape(fleet, 2, 300, 128 * MIB);
    fleet->shapes[2].selector = make_labels(fleet, "pool", groups[0].name, NULL);
    make_shape(fleet, 3, 100, 64 * MIB);
    fleet->shapes[3].loner = 1;
    make_shape(fleet, 4, 200, 64 * MIB);
    fleet->shapes[4].eviction = AS_EVICTION_REFUSED;
    make_shape(fleet, 5, 1000000, 64 * MIB);
}

void fleet_deinit(struct fleet *fleet)
{
    as_arena_deinit(&fleet->arena);
}

void fleet_add_pods(struct fleet *fleet, int shape, unsigned count)
{
    for (size_t i = 0; i < FLEET_PODS && count > 0; i++) {
        struct fleet_pod *pod = &fleet->pods[i];
        if (pod->is_used)
            continue;
        *pod =
            (struct fleet_pod){.is_used = true, .shape = shape, .node = -1, .created = fleet->now};
        count--;
    }
    assert(count == 0);
}

void fleet_remove_pods(struct fleet *fleet, int shape, unsigned count)
{
    for (size_t i = FLEET_PODS; i-- > 0 && count > 0;) {
        if (!fleet->pods[i].is_used || fleet->pods[i].shape != shape)
            continue;
        fleet->pods[i].is_used = false;
        count--;
    }
}

/* ---- instances ---- */

static int32_t count_instances(const struct fleet *fleet, size_t group)
{
    int32_t count = 0;
    for (size_t i = 0; i < FLEET_NODES; i++)
        count += fleet->nodes[i].is_used && fleet->nodes[i].group == (int)group;
    return count;
}

static void make_instances(struct fleet *fleet, size_t group)
{
    const struct fleet_group *of = &fleet->groups[group];
    const int32_t wanted = of->size < of->capacity ? of->size : of->capacity;
    int32_t missing = wanted - count_instances(fleet, group);
    for (size_t i = 0; i < FLEET_NODES && missing > 0; i++) {
        struct fleet_node *node = &fleet->nodes[i];
        if (node->is_used)
            continue;
        *node = (struct fleet_node){.is_used = true, .group = (int)group, .made = fleet->now};
        (void)snprintf(node->name, sizeof(node->name), "%s-%04u", of->name, ++fleet->numbers);
        missing--;
    }
    assert(missing <= 0);
}

static void boot(struct fleet *fleet, struct fleet_node *node)
{
    const struct fleet_group *of = &fleet->groups[node->group];
    const int64_t age_us = fleet->now.us - node->made.us;
    const bool was_ready = node->is_ready;
    node->is_node = !of->is_broken && age_us >= of->boot_us;
    node->is_ready = node->is_node && age_us >= 2 * of->boot_us && !node->is_cut_off;
    if (node->is_ready != was_ready)
        node->ready_since = (as_maybe_time){true, fleet->now};
}

static void remove_node(struct fleet *fleet, struct fleet_node *node)
{
    for (size_t i = 0; i < FLEET_PODS; i++) {
        struct fleet_pod *pod = &fleet->pods[i];
        if (!pod->is_used || pod->node != (int)(node - fleet->nodes))
            continue;
        pod->node = -1;
        pod->is_unschedulable = false;
        pod->created = fleet->now;
        fleet->evicted++;
    }
    node->is_used = false;
}

static struct fleet_node *find_node(struct fleet *fleet, const char *name)
{
    for (size_t i = 0; i < FLEET_NODES; i++) {
        if (fleet->nodes[i].is_used && strcmp(fleet->nodes[i].name, name) == 0)
            return &fleet->nodes[i];
    }
    return NULL;
}

const struct fleet_node *fleet_find_node(const struct fleet *fleet, const char *name)
{
    return find_node((struct fleet *)fleet, name);
}

bool fleet_set_size(struct fleet *fleet, size_t group, int32_t size, const char *const *take,
                    size_t take_count)
{
    for (size_t i = 0; i < take_count; i++) {
        const struct fleet_node *node = find_node(fleet, take[i]);
        if (!node || node->group != (int)group)
            return false;
    }
    for (size_t i = 0; i < take_count; i++)
        remove_node(fleet, find_node(fleet, take[i]));
    fleet->groups[group].size = size;
    return true;
}

/* ---- the scheduler ---- */

static bool admits(const struct fleet *fleet, const struct as_pod_shape *shape, int group)
{
    return !shape->selector ||
           strcmp(as_labels_get(shape->selector, "pool"), fleet->groups[group].name) == 0;
}

static bool has_room(const struct fleet *fleet, const struct fleet_node *node,
                     const struct as_pod_shape *shape)
{
    int64_t cpu = shape->requests.amount[AS_RES_CPU];
    int64_t memory = shape->requests.amount[AS_RES_MEMORY];
    for (size_t i = 0; i < FLEET_PODS; i++) {
        const struct fleet_pod *pod = &fleet->pods[i];
        if (!pod->is_used || pod->node != (int)(node - fleet->nodes))
            continue;
        const struct as_pod_shape *there = &fleet->shapes[pod->shape];
        if (shape->loner && there->loner == shape->loner)
            return false;
        cpu += there->requests.amount[AS_RES_CPU];
        memory += there->requests.amount[AS_RES_MEMORY];
    }
    return cpu <= fleet->groups[node->group].cpu && memory <= fleet->groups[node->group].memory;
}

static void place(struct fleet *fleet, struct fleet_pod *pod)
{
    const struct as_pod_shape *shape = &fleet->shapes[pod->shape];
    for (size_t i = 0; i < FLEET_NODES && pod->node < 0; i++) {
        const struct fleet_node *node = &fleet->nodes[i];
        if (node->is_used && node->is_ready && !node->is_marked &&
            admits(fleet, shape, node->group) && has_room(fleet, node, shape))
            pod->node = (int)i;
    }
    pod->is_unschedulable = pod->node < 0;
}

void fleet_tick(struct fleet *fleet, as_wall_time now)
{
    fleet->now = now;
    for (size_t i = 0; i < fleet->group_count; i++)
        make_instances(fleet, i);
    for (size_t i = 0; i < FLEET_NODES; i++) {
        if (fleet->nodes[i].is_used)
            boot(fleet, &fleet->nodes[i]);
    }
    for (size_t i = 0; i < FLEET_PODS; i++) {
        if (fleet->pods[i].is_used && fleet->pods[i].node < 0)
            place(fleet, &fleet->pods[i]);
    }
}

size_t fleet_count_nodes(const struct fleet *fleet, size_t group, bool only_ready)
{
    size_t count = 0;
    for (size_t i = 0; i < FLEET_NODES; i++) {
        const struct fleet_node *node = &fleet->nodes[i];
        count += node->is_used && node->is_node && node->group == (int)group &&
                 (node->is_ready || !only_ready);
    }
    return count;
}

size_t fleet_count_waiting(const struct fleet *fleet)
{
    size_t count = 0;
    for (size_t i = 0; i < FLEET_PODS; i++)
        count += fleet->pods[i].is_used && fleet->pods[i].node < 0;
    return count;
}

bool fleet_fits_new(const struct fleet *fleet, const struct fleet_pod *pod, size_t group)
{
    const struct as_pod_shape *shape = &fleet->shapes[pod->shape];
    return admits(fleet, shape, (int)group) &&
           shape->requests.amount[AS_RES_CPU] <= fleet->groups[group].cpu &&
           shape->requests.amount[AS_RES_MEMORY] <= fleet->groups[group].memory;
}

/* ---- what an API server and a provider would tell ---- */

static int compare_nodes(const void *a, const void *b)
{
    return strcmp(((const struct as_node_fact *)a)->name, ((const struct as_node_fact *)b)->name);
}

static void fill_amounts(struct as_resources *resources, const struct fleet_group *group)
{
    resources->amount[AS_RES_CPU] = group->cpu;
    resources->amount[AS_RES_MEMORY] = group->memory;
    resources->amount[AS_RES_PODS] = 110;
}

static void fill_nodes(struct fleet *fleet, struct as_arena *arena, struct as_cluster *cluster)
{
    struct as_node_fact *nodes = as_arena_alloc(arena, FLEET_NODES, sizeof(*nodes));
    for (size_t i = 0; i < FLEET_NODES; i++) {
        const struct fleet_node *node = &fleet->nodes[i];
        if (!node->is_used || !node->is_node)
            continue;
        struct as_node_fact *fact = &nodes[cluster->node_count++];
        *fact = (struct as_node_fact){
            .name = node->name,
            .provider_id = node->name,
            .labels = make_labels(fleet, "pool", fleet->groups[node->group].name, node->name),
            .has_cpu = true,
            .has_memory = true,
            .is_ready = node->is_ready,
            .is_cordoned = node->is_marked,
            .leaving = node->is_marked ? AS_NODE_LEAVING_OURS : 0,
            .created = node->made,
            .ready_since = node->ready_since,
        };
        fill_amounts(&fact->allocatable, &fleet->groups[node->group]);
        fact->capacity = fact->allocatable;
    }
    qsort(nodes, cluster->node_count, sizeof(*nodes), compare_nodes);
    cluster->nodes = nodes;
}

static uint32_t find_fact(const struct as_cluster *cluster, const char *name)
{
    for (size_t i = 0; i < cluster->node_count; i++) {
        if (strcmp(cluster->nodes[i].name, name) == 0)
            return (uint32_t)i;
    }
    return AS_NO_NODE;
}

static void fill_pods(const struct fleet *fleet, struct as_arena *arena, struct as_cluster *cluster)
{
    struct as_pod_fact *pods = as_arena_alloc(arena, FLEET_PODS, sizeof(*pods));
    for (size_t i = 0; i < FLEET_PODS; i++) {
        const struct fleet_pod *pod = &fleet->pods[i];
        char name[16];
        if (!pod->is_used)
            continue;
        (void)snprintf(name, sizeof(name), "pod-%zu", i);
        pods[cluster->pod_count++] = (struct as_pod_fact){
            .namespace_ = "shop",
            .name = as_arena_strdup(arena, name),
            .shape = &fleet->shapes[pod->shape],
            .node = pod->node < 0 ? AS_NO_NODE : find_fact(cluster, fleet->nodes[pod->node].name),
            .nominated = AS_NO_NODE,
            .is_bound = pod->node >= 0,
            .is_unschedulable = pod->is_unschedulable,
            .created = pod->created,
        };
    }
    cluster->pods = pods;
}

static size_t find_group(const struct fleet *fleet, const char *name)
{
    for (size_t i = 0; i < fleet->group_count; i++) {
        if (strcmp(fleet->groups[i].name, name) == 0)
            return i;
    }
    abort(); /* the rule file has groups of the fleet only */
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void fill_members(struct fleet *fleet, size_t group, struct as_arena *arena,
                         struct as_survey_member *member)
{
    const struct fleet_group *of = &fleet->groups[group];
    const char **names = as_arena_alloc(arena, FLEET_NODES, sizeof(*names));
    for (size_t i = 0; i < FLEET_NODES; i++) {
        const struct fleet_node *node = &fleet->nodes[i];
        if (!node->is_used || node->group != (int)group)
            continue;
        if (node->is_node)
            names[member->node_count++] = node->name;
        else if (fleet->now.us - node->made.us >= of->ready_timeout_us)
            member->overdue++;
        else
            member->young++;
    }
    qsort(names, member->node_count, sizeof(*names), compare_texts);
    member->nodes = names;
    member->size = of->is_unreadable ? -1 : of->size;
    member->message = of->is_unreadable ? "HTTP 500" : NULL;
    member->ready_timeout_us = of->ready_timeout_us;
}

static struct as_node_template *make_template(struct fleet *fleet, size_t group,
                                              struct as_arena *arena)
{
    struct as_node_template *made = as_arena_alloc(arena, 1, sizeof(*made));
    made->source = AS_NODE_TEMPLATE_CONFIGURED;
    fill_amounts(&made->capacity, &fleet->groups[group]);
    made->allocatable = made->shape.allocatable = made->capacity;
    made->shape.labels = make_labels(fleet, "pool", fleet->groups[group].name, NULL);
    return made;
}

void fleet_survey(struct fleet *fleet, const struct as_pool_request *request,
                  struct as_arena *arena, struct as_survey *survey_out,
                  struct as_pool_plan *plan_out)
{
    struct as_cluster *cluster = as_arena_alloc(arena, 1, sizeof(*cluster));
    struct as_survey_member *members =
        as_arena_alloc(arena, request->member_count, sizeof(*members));
    struct as_survey_request *asked = as_arena_alloc(arena, 1, sizeof(*asked));
    cluster->resources.count = AS_RES_NAMED;
    fill_nodes(fleet, arena, cluster);
    fill_pods(fleet, arena, cluster);
    for (size_t i = 0; i < request->member_count; i++) {
        const struct as_pool_member *given = &request->members[i];
        const size_t group = find_group(fleet, given->name);
        members[i] = (struct as_survey_member){
            .name = given->name,
            .id = given->ref->id,
            .is_member = given->is_member,
            .min = given->min,
            .max = given->max,
            .closed = given->closed,
            .has_open_growth = given->has_open_growth,
            .refused = given->refused,
            .configured = make_template(fleet, group, arena),
            .has_price = fleet->groups[group].price > 0,
            .price = fleet->groups[group].price,
            .unneeded = given->nodes->unneeded,
        };
        fill_members(fleet, group, arena, &members[i]);
    }
    *asked = (struct as_survey_request){
        .cluster = cluster,
        .members = members,
        .member_count = request->member_count,
        .config = request->config,
        .unneeded = request->unneeded,
        .unneeded_count = request->unneeded_count,
        .asked = request->asked,
        .asked_count = request->asked_count,
        .seed = request->seed,
        .now = fleet->now,
    };
    struct as_survey_work *survey = as_survey_begin(asked, arena);
    while (!as_survey_step(survey, UINT64_MAX / 2, survey_out)) {
    }
    const struct as_pool_plan_request wanted = {
        .survey = survey_out,
        .config = request->config,
        .min = request->min,
        .max = request->max,
        .with_fit = request->with_fit,
        .with_take = request->with_take,
        .now = fleet->now,
    };
    struct as_pool_work *plan = as_pool_begin(&wanted, arena);
    while (!as_pool_step(plan, UINT64_MAX / 2, plan_out)) {
    }
}
