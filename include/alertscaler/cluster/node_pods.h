/*
 * An index of the pods on each node of a cluster. Pure.
 */
#ifndef ALERTSCALER_CLUSTER_NODE_PODS_H
#define ALERTSCALER_CLUSTER_NODE_PODS_H

#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/arena.h>
#include <alertscaler/cluster/cluster.h>

struct as_node_pods {
    const uint32_t *pods;   /* indices of bound pods: by node, then ascending */
    const uint32_t *starts; /* where each node's pods start in `pods`; one more entry: the end */
};

/* Memory of the arena. A pod's node must be a node of the cluster or AS_NO_NODE. */
void as_node_pods_init(struct as_node_pods *pods, const struct as_cluster *cluster,
                       struct as_arena *arena);

/* The indices of the pods on a node. */
static inline const uint32_t *as_node_pods_get(const struct as_node_pods *pods, uint32_t node,
                                               size_t *count_out)
{
    *count_out = pods->starts[node + 1] - pods->starts[node];
    return pods->pods + pods->starts[node];
}

#endif
