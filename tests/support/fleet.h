/*
 * A small cluster with node groups, nodes, pods and a scheduler, for tests of pools: instances
 * boot, become Ready nodes, take pods, and leave. Everything is decided by the calls and by time.
 *
 * All pods are of FLEET_POD_CLASSES pod classes, all nodes of a group are alike.
 */
#ifndef ALERTSCALER_TESTS_FLEET_H
#define ALERTSCALER_TESTS_FLEET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/cluster/pool_plan.h>
#include <alertscaler/cluster/snapshot.h>
#include <alertscaler/decide/observation.h>

#define FLEET_GROUPS      4
#define FLEET_NODES       128
#define FLEET_PODS        512
#define FLEET_POD_CLASSES 8

struct fleet_group {
    const char *name;    /* also its nodes' label "pool" */
    int32_t size;        /* that the provider was asked for */
    int32_t min, max;    /* of the rule file */
    int32_t capacity;    /* instances that the provider has */
    int64_t boot_us;     /* until an instance is a node, and as long again until it is Ready */
    int64_t cpu, memory; /* of a node: millicores, bytes */
    int64_t ready_timeout_us;
    bool is_broken;              /* its instances never become nodes */
    bool is_unreadable, is_busy; /* busy: the provider is changing it */
    as_maybe_time drain_failed;
    double price;
    int32_t missing; /* instances that it was asked for and does not have */
    as_wall_time missing_since;
};

/* An initializer: nodes of two cores and 8 GiB, for which the provider has room and which come in
 * time. `size` is its minimum too. */
#define FLEET_GROUP(name_, size_, max_)                                                            \
    {                                                                                              \
        .name = (name_), .size = (size_), .min = (size_), .max = (max_), .capacity = 100,          \
        .boot_us = 20 * AS_US_PER_S, .cpu = 2000, .memory = INT64_C(8) << 30,                      \
        .ready_timeout_us = 10 * AS_US_PER_MIN                                                     \
    }

struct fleet_node {
    bool is_used;
    char name[32];
    int group;
    as_wall_time made; /* the instance; it is a node boot_us later */
    bool is_node, is_ready, is_cut_off, is_marked;
    as_maybe_time ready_since;
    const struct as_labels *labels;
    int64_t leaves_us; /* for whom deletes it: when it goes on */
};

struct fleet_pod {
    bool is_used;
    int pod_class; /* index */
    int node;      /* -1: it waits */
    bool is_unschedulable;
    as_wall_time created;
};

struct fleet {
    struct fleet_group groups[FLEET_GROUPS];
    size_t group_count;
    struct fleet_node nodes[FLEET_NODES];
    struct fleet_pod pods[FLEET_PODS];
    struct as_pod_class pod_classes[FLEET_POD_CLASSES];
    const struct as_labels *labels[FLEET_GROUPS]; /* of a new node */
    unsigned numbers;                             /* of names given */
    struct as_arena arena;
    as_wall_time now;
    unsigned evicted; /* pods whose node left */
    bool has_daemons; /* each node has a pod of FLEET_DAEMON, from its first moment on */
};

#define FLEET_DAEMON 6 /* pod class of a DaemonSet with a host port */
#define FLEET_PORT   7 /* pod class that wants the same host port */

/* The pod classes: 0 and 1 fit everywhere, 2 only where "pool" is the first group's name, 3 is
 * alone on its node, 4 may not be evicted, 5 is larger than any node. */
void fleet_init(struct fleet *fleet, const struct fleet_group *groups, size_t count,
                as_wall_time now);
void fleet_deinit(struct fleet *fleet);

void fleet_add_pods(struct fleet *fleet, int pod_class, unsigned count);
void fleet_remove_pods(struct fleet *fleet, int pod_class, unsigned count); /* the newest first */

/* Instances are made and boot, nodes become Ready, the scheduler places pods first-fit by name and
 * calls the others Unschedulable. Pods on a node that is gone wait again. */
void fleet_tick(struct fleet *fleet, as_wall_time now);

/* What the provider does with a request: `take` leave at once, with their pods evicted. False:
 * refused (a name that is no instance of the group). */
bool fleet_set_size(struct fleet *fleet, size_t group, int32_t size, const char *const *take,
                    size_t take_count);

/* A group's size as adapters of node groups tell it: without the nodes that are marked to leave. */
int32_t fleet_get_size(const struct fleet *fleet, size_t group);
bool fleet_may_leave(const struct fleet *fleet,
                     const struct fleet_node *node);             /* its pods let it */
void fleet_delete(struct fleet *fleet, struct fleet_node *node); /* with its instance */
/* Marked nodes are back in service; then what a growth asked for and did not get is given up. Both
 * return how many of `count`. */
int32_t fleet_return(struct fleet *fleet, size_t group, int32_t count);
int32_t fleet_take_back(struct fleet *fleet, size_t group, int32_t count);
/* Deletes instances that are no nodes ready_timeout after they were made; how many of `count`. */
int32_t fleet_clean_up(struct fleet *fleet, size_t group, int32_t count);
bool fleet_is_overdue(const struct fleet *fleet, const struct fleet_node *node);

size_t fleet_count_nodes(const struct fleet *fleet, size_t group, bool only_ready);
size_t fleet_count_waiting(const struct fleet *fleet);
/* Whether a pod that waits would fit an empty node of the group. */
bool fleet_fits_new(const struct fleet *fleet, const struct fleet_pod *pod, size_t group);
struct fleet_node *fleet_find_newest(struct fleet *fleet, size_t group); /* open; NULL: none */
const struct fleet_node *fleet_find_node(const struct fleet *fleet, const char *name);

/* What the adapter would answer to this request. Memory of the arena. */
void fleet_snapshot(struct fleet *fleet, const struct as_pool_request *request,
                    struct as_arena *arena, struct as_snapshot *snapshot_out,
                    struct as_pool_plan *plan_out);
/* Likewise, with nodes and pods as they were when `facts` was copied from the fleet. */
void fleet_snapshot_from(const struct fleet *fleet, const struct fleet *facts,
                         const struct as_pool_request *request, struct as_arena *arena,
                         struct as_snapshot *snapshot_out, struct as_pool_plan *plan_out);

#endif
