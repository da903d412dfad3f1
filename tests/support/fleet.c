/*
 * A cluster with node groups: see the header.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/decide/target.h>

#include "fleet.h"

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

static void make_pod_class(struct fleet *fleet, int pod_class, int64_t cpu, int64_t memory)
{
    struct as_pod_class *made = &fleet->pod_classes[pod_class];
    char name[16];
    snprintf(name, sizeof(name), "s%d", pod_class);
    *made = (struct as_pod_class){
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
    make_pod_class(fleet, 0, 500, 256 * MIB);
    make_pod_class(fleet, 1, 900, 1024 * MIB);
    make_pod_class(fleet, 2, 300, 128 * MIB);
    fleet->pod_classes[2].selector = make_labels(fleet, "pool", groups[0].name, NULL);
    make_pod_class(fleet, 3, 100, 64 * MIB);
    fleet->pod_classes[3].loner = 1;
    make_pod_class(fleet, 4, 200, 64 * MIB);
    fleet->pod_classes[4].eviction = AS_EVICTION_REFUSED;
    make_pod_class(fleet, 5, 1000000, 64 * MIB);
    make_pod_class(fleet, FLEET_DAEMON, 0, 0);
    fleet->pod_classes[FLEET_DAEMON].eviction = AS_EVICTION_DAEMON;
    make_pod_class(fleet, FLEET_PORT, 100, 64 * MIB);
    for (int i = FLEET_DAEMON; i <= FLEET_PORT; i++) {
        static const struct as_host_port port = {.ip = "0.0.0.0", .protocol = "TCP", .port = 9100};
        fleet->pod_classes[i].ports = &port;
        fleet->pod_classes[i].port_count = 1;
    }
    for (size_t i = 0; i < count; i++)
        fleet->labels[i] = make_labels(fleet, "pool", groups[i].name, NULL);
}

void fleet_deinit(struct fleet *fleet)
{
    as_arena_deinit(&fleet->arena);
}

void fleet_add_pods(struct fleet *fleet, int pod_class, unsigned count)
{
    for (size_t i = 0; i < FLEET_PODS && count > 0; i++) {
        struct fleet_pod *pod = &fleet->pods[i];
        if (pod->is_used)
            continue;
        *pod = (struct fleet_pod){
            .is_used = true, .pod_class = pod_class, .node = -1, .created = fleet->now};
        count--;
    }
    assert(count == 0);
}

void fleet_remove_pods(struct fleet *fleet, int pod_class, unsigned count)
{
    for (size_t i = FLEET_PODS; i-- > 0 && count > 0;) {
        if (!fleet->pods[i].is_used || fleet->pods[i].pod_class != pod_class)
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
        node->labels = make_labels(fleet, "pool", of->name, node->name);
        missing--;
    }
    assert(missing <= 0);
}

/* The time begins anew when more are missing. */
static void see_missing(struct fleet *fleet, size_t group)
{
    struct fleet_group *of = &fleet->groups[group];
    const int32_t missing = of->size - count_instances(fleet, group);
    if (missing <= 0 || missing > of->missing)
        of->missing_since = fleet->now;
    of->missing = missing > 0 ? missing : 0;
}

static void add_daemon(struct fleet *fleet, const struct fleet_node *node)
{
    size_t i = 0;
    while (i < FLEET_PODS && fleet->pods[i].is_used)
        i++;
    assert(i < FLEET_PODS);
    fleet->pods[i] = (struct fleet_pod){.is_used = true,
                                        .pod_class = FLEET_DAEMON,
                                        .node = (int)(node - fleet->nodes),
                                        .created = fleet->now};
}

static void boot(struct fleet *fleet, struct fleet_node *node)
{
    const struct fleet_group *of = &fleet->groups[node->group];
    const int64_t age_us = fleet->now.us - node->made.us;
    const bool was_ready = node->is_ready, was_node = node->is_node;
    node->is_node = node->is_node || (!of->is_broken && age_us >= of->boot_us);
    if (node->is_node && !was_node && fleet->has_daemons)
        add_daemon(fleet, node);
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
        if (pod->pod_class == FLEET_DAEMON) {
            pod->is_used = false;
            continue;
        }
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

struct fleet_node *fleet_find_newest(struct fleet *fleet, size_t group)
{
    for (size_t i = FLEET_NODES; i-- > 0;) {
        struct fleet_node *node = &fleet->nodes[i];
        if (node->is_used && node->group == (int)group && !node->is_marked)
            return node;
    }
    return NULL;
}

/* ---- leaving, one by one ---- */

int32_t fleet_get_size(const struct fleet *fleet, size_t group)
{
    int32_t size = fleet->groups[group].size;
    for (size_t i = 0; i < FLEET_NODES; i++) {
        const struct fleet_node *node = &fleet->nodes[i];
        size -= node->is_used && node->is_marked && node->group == (int)group;
    }
    return size;
}

bool fleet_may_leave(const struct fleet *fleet, const struct fleet_node *node)
{
    for (size_t i = 0; i < FLEET_PODS; i++) {
        const struct fleet_pod *pod = &fleet->pods[i];
        if (pod->is_used && pod->node == (int)(node - fleet->nodes) &&
            fleet->pod_classes[pod->pod_class].eviction == AS_EVICTION_REFUSED)
            return false;
    }
    return true;
}

void fleet_delete(struct fleet *fleet, struct fleet_node *node)
{
    remove_node(fleet, node);
    fleet->groups[node->group].size--;
}

int32_t fleet_return(struct fleet *fleet, size_t group, int32_t count)
{
    int32_t returned = 0;
    for (size_t i = FLEET_NODES; i-- > 0 && returned < count;) {
        struct fleet_node *node = &fleet->nodes[i];
        if (!node->is_used || node->group != (int)group || !node->is_marked || !node->is_ready)
            continue;
        node->is_marked = false;
        returned++;
    }
    return returned;
}

int32_t fleet_take_back(struct fleet *fleet, size_t group, int32_t count)
{
    const int32_t absent = fleet->groups[group].size - count_instances(fleet, group);
    int32_t taken = absent < count ? absent : count;
    fleet->groups[group].size -= taken;
    for (size_t i = FLEET_NODES; i-- > 0 && taken < count;) {
        struct fleet_node *node = &fleet->nodes[i];
        if (!node->is_used || node->group != (int)group || node->is_ready || node->is_marked)
            continue;
        fleet_delete(fleet, node);
        taken++;
    }
    return taken;
}

bool fleet_is_overdue(const struct fleet *fleet, const struct fleet_node *node)
{
    return node->is_used && !node->is_node &&
           fleet->now.us - node->made.us >= fleet->groups[node->group].ready_timeout_us;
}

int32_t fleet_clean_up(struct fleet *fleet, size_t group, int32_t count)
{
    int32_t cleaned = 0;
    for (size_t i = 0; i < FLEET_NODES && cleaned < count; i++) {
        struct fleet_node *node = &fleet->nodes[i];
        if (node->group != (int)group || !fleet_is_overdue(fleet, node))
            continue;
        fleet_delete(fleet, node);
        cleaned++;
    }
    return cleaned;
}

/* ---- the scheduler ---- */

static bool admits(const struct fleet *fleet, const struct as_pod_class *pod_class, int group)
{
    return !pod_class->selector ||
           strcmp(as_labels_get(pod_class->selector, "pool"), fleet->groups[group].name) == 0;
}

struct load { /* of a node */
    int64_t cpu, memory;
    uint64_t loners; /* bits */
    bool has_port;   /* the only one that pod classes want is taken */
};

static void add_load(struct load *load, const struct as_pod_class *pod_class)
{
    load->cpu += pod_class->requests.amount[AS_RES_CPU];
    load->memory += pod_class->requests.amount[AS_RES_MEMORY];
    load->loners |= pod_class->loner;
    load->has_port |= pod_class->port_count > 0;
}

static bool has_room(const struct fleet *fleet, const struct fleet_node *node,
                     const struct load *load, const struct as_pod_class *pod_class)
{
    struct load with = *load;
    add_load(&with, pod_class);
    return !(pod_class->loner & load->loners) && !(pod_class->port_count > 0 && load->has_port) &&
           with.cpu <= fleet->groups[node->group].cpu &&
           with.memory <= fleet->groups[node->group].memory;
}

static void place(struct fleet *fleet, struct fleet_pod *pod, struct load *loads)
{
    const struct as_pod_class *pod_class = &fleet->pod_classes[pod->pod_class];
    for (size_t i = 0; i < FLEET_NODES && pod->node < 0; i++) {
        const struct fleet_node *node = &fleet->nodes[i];
        if (!node->is_used || !node->is_ready || node->is_marked ||
            !admits(fleet, pod_class, node->group) || !has_room(fleet, node, &loads[i], pod_class))
            continue;
        pod->node = (int)i;
        add_load(&loads[i], pod_class);
    }
    pod->is_unschedulable = pod->node < 0;
}

static void schedule(struct fleet *fleet)
{
    struct load loads[FLEET_NODES] = {0};
    for (size_t i = 0; i < FLEET_PODS; i++) {
        const struct fleet_pod *pod = &fleet->pods[i];
        if (pod->is_used && pod->node >= 0)
            add_load(&loads[pod->node], &fleet->pod_classes[pod->pod_class]);
    }
    for (size_t i = 0; i < FLEET_PODS; i++) {
        if (fleet->pods[i].is_used && fleet->pods[i].node < 0)
            place(fleet, &fleet->pods[i], loads);
    }
}

void fleet_tick(struct fleet *fleet, as_wall_time now)
{
    fleet->now = now;
    for (size_t i = 0; i < fleet->group_count; i++) {
        make_instances(fleet, i);
        see_missing(fleet, i);
    }
    for (size_t i = 0; i < FLEET_NODES; i++) {
        if (fleet->nodes[i].is_used)
            boot(fleet, &fleet->nodes[i]);
    }
    schedule(fleet);
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
    const struct as_pod_class *pod_class = &fleet->pod_classes[pod->pod_class];
    return admits(fleet, pod_class, (int)group) &&
           !(fleet->has_daemons && pod_class->port_count > 0) &&
           pod_class->requests.amount[AS_RES_CPU] <= fleet->groups[group].cpu &&
           pod_class->requests.amount[AS_RES_MEMORY] <= fleet->groups[group].memory;
}
