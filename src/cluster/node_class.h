/*
 * Classes of nodes: two nodes are of one class where their taints are equal, and the labels that
 * the pod classes at hand read. as_node_admits says the same of all nodes of a class, so it is
 * asked once for each class of nodes and each pod class.
 *
 * Two things differ from node to node and make no classes: the hostname label and the name. A pod
 * class that reads one of them is asked about each node.
 */
#ifndef ALERTSCALER_SRC_CLUSTER_NODE_CLASS_H
#define ALERTSCALER_SRC_CLUSTER_NODE_CLASS_H

#include <alertscaler/cluster/node_pack.h>

struct as_node_class {
    uint64_t digest;
    const struct as_node_shape *node; /* one of them, for its taints */
    const char **values;              /* of the keys; NULL: no such label */
};

struct as_node_classes {
    struct as_arena *arena;
    const char **keys; /* of labels that some pod class reads, ascending */
    size_t key_count;
    struct as_node_class *items;
    uint32_t count;
    uint32_t *slots; /* index into the items + 1; 0: free */
    size_t slot_count;
    const char **scratch; /* values of one node */
};

/* Keys and pod classes are borrowed. At most `node_max` nodes are asked about. */
void as_node_classes_init(struct as_node_classes *classes, const struct as_pending *pending,
                          size_t count, size_t node_max, struct as_arena *arena);
/* The index of its class, which may be a new one. Labels and taints of the node are borrowed. */
uint32_t as_node_classes_take(struct as_node_classes *classes, const struct as_node_shape *node);

bool as_pod_class_reads_name(const struct as_pod_class *pod_class); /* or the hostname */

#endif
