/*
 * Which node is which instance of a group, out of nodes that are known: listed ones, or the facts
 * about their cluster. A node belongs to an instance if its spec.providerID equals
 * as_instance.provider_id (or its id), or ends with it behind a '/' or '.'; for Azure ignoring
 * case. If the provider does not name instances (as_group_view.node_label), the nodes with the
 * labels are the instances.
 */
#ifndef ALERTSCALER_KUBE_INSTANCE_NODES_H
#define ALERTSCALER_KUBE_INSTANCE_NODES_H

#include <stdbool.h>
#include <stddef.h>

#include <alertscaler/base/arena.h>
#include <alertscaler/cluster/cluster.h>
#include <alertscaler/kube/kube_nodes.h>
#include <alertscaler/port/group_view.h>

#include <alertscaler/kube/nodes.h>

/* Whether the node with this spec.providerID is the instance. */
bool as_node_is_instance(const char *node_provider_id, const char *provider_id);

struct as_instance_nodes {
    size_t count;
    struct as_instance *instances;  /* our own copy */
    struct as_instance_node *found; /* one per instance, in the view's order */
    const char *label;              /* as_group_view.node_label: the nodes are the instances */
    bool knows_nodes;               /* by the names that they have in the cluster */
    struct as_arena texts;
};

void as_instance_nodes_init(struct as_instance_nodes *of, const struct as_group_view *view);
void as_instance_nodes_deinit(struct as_instance_nodes *of);

/* At most once. `nodes` have the labels, and are borrowed as long as `found` is read. */
void as_instance_nodes_match(struct as_instance_nodes *of, const struct as_kube_node *nodes,
                             size_t count);
/* Instead of as_instance_nodes_match: finds the nodes among the facts, also those with the labels.
 * The marks of such nodes have no texts. */
void as_instance_nodes_match_facts(struct as_instance_nodes *of, const struct as_cluster *cluster);

#endif
