/*
 * Which pods fit on which nodes. Pure. What is checked, and what is not, is the table of
 * docs/nodes.md; the semantics are those of kube-scheduler's filters NodeResourcesFit,
 * NodeAffinity, TaintToleration and NodePorts. Whether the node is cordoned is asked by the caller
 * (as_node_is_open), as NodeUnschedulable does.
 */
#ifndef ALERTSCALER_CLUSTER_NODE_FIT_H
#define ALERTSCALER_CLUSTER_NODE_FIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/arena.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/cluster/cluster.h>

enum as_misfit { /* the first that fits, in this order */
                 AS_FITS,
                 AS_MISFIT_SELECTOR, /* nodeSelector or required node affinity */
                 AS_MISFIT_TAINT,
                 AS_MISFIT_CPU,
                 AS_MISFIT_MEMORY,
                 AS_MISFIT_EPHEMERAL,
                 AS_MISFIT_PODS,
                 AS_MISFIT_NAMED, /* an extended resource */
                 AS_MISFIT_PORT,
                 AS_MISFIT_LONER,
                 AS_MISFIT_ZONE,
                 AS_MISFIT_COUNT
};
const char *as_misfit_get_word(enum as_misfit misfit); /* for a person: "not enough cpu", ... */

/* A node, or what a new one of a group would be like. */
struct as_node_shape {
    const char *name; /* NULL: a new node, which no matchFields fits */
    const struct as_labels *labels;
    const struct as_taint *taints;
    size_t taint_count;
    struct as_resources allocatable;
};

/* Whether labels and taints let the pod class in at all, whatever is free. Depends on the two only,
 * so that it may be remembered for each pair. */
enum as_misfit as_node_admits(const struct as_node_shape *node,
                              const struct as_pod_class *pod_class) AS_MUST_USE;

/* What is free on one node. Ports and loners are like resources of which each node has one. */
struct as_node_room {
    struct as_resources left;
    const struct as_pod_class **guests; /* pod classes there that have ports or are loners */
    size_t guest_count, guest_capacity;
    /* Requests of expendable pods there, which `left` has too: taken only for pods that never
     * preempt; NULL: none. */
    const struct as_resources *expendable;
};

/* How many pods of the class the room takes, at most `wanted`: by division. `misfit_out` says what
 * stops the next one, AS_FITS where all that are wanted fit; NULL: not asked for. as_node_admits is
 * the caller's. */
uint64_t as_node_room_count(const struct as_node_room *room, const struct as_res_names *names,
                            const struct as_pod_class *pod_class, uint64_t wanted,
                            enum as_misfit *misfit_out) AS_MUST_USE;
/* Takes the room of `count` pods; may leave less than nothing. Guests are memory of the arena. */
void as_node_room_take(struct as_node_room *room, const struct as_res_names *names,
                       const struct as_pod_class *pod_class, uint64_t count,
                       struct as_arena *arena);

#endif
