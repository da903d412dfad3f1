/*
 * What the source `nodes` sees of a group or a cluster (nodes_seen.h), and how much of one node is
 * requested. Pure.
 */
#ifndef ALERTSCALER_CLUSTER_NODE_SUMS_H
#define ALERTSCALER_CLUSTER_NODE_SUMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>
#include <alertscaler/base/time.h>
#include <alertscaler/cluster/cluster.h>
#include <alertscaler/cluster/node_fit.h>
#include <alertscaler/cluster/nodes_seen.h>

struct as_pod_count {
    const struct as_pod_class *pod_class;
    uint64_t count;
};

struct as_node_sums_request {
    const struct as_cluster *cluster;
    const struct as_node_pods *pods; /* of the cluster */
    const uint32_t *nodes;           /* indices; NULL: all nodes of the cluster */
    size_t node_count;
    const struct as_pod_count *pending; /* pods that wait for a node of these (as_pod_selects) */
    size_t pending_count;
    const struct as_resources *template_; /* allocatable of a new node (of as_node_template, as a
                                             whole); NULL: no template */
};

/* Whether a pod counts in the requests: not pods of DaemonSets, mirror and expendable pods. */
bool as_pod_needs_nodes(const struct as_pod_class *pod_class) AS_MUST_USE;

/* Counts the requests of pending pods and of pods on the nodes, also on nodes that are not open.
 * Borrows texts from the cluster. */
void as_nodes_seen_init(struct as_nodes_seen *seen, const struct as_node_sums_request *request);

/* Whether a pod has a nodeSelector or required node affinity. */
bool as_pod_has_selector(const struct as_pod_class *pod_class);

/*
 * Whether a pending pod counts for the group of this template: the pod has a nodeSelector or
 * required node affinity, this template satisfies both, and none of the other groups' templates
 * does. Taints do not matter. `others` may hold NULL, for a group without a template.
 */
bool as_pod_selects(const struct as_pod_class *pod_class, const struct as_node_shape *template_,
                    const struct as_node_shape *const *others, size_t other_count) AS_MUST_USE;

/* Whether an extended resource is a GPU or another accelerator, by a fixed list of names. If a node
 * has accelerators, its utilization counts only these. */
bool as_resource_is_accelerator(const char *name);

/* Pods whose requests are subtracted from requests and allocatable: bits. */
enum as_node_ignore { AS_NODE_IGNORE_DAEMONSETS = 1, AS_NODE_IGNORE_MIRROR = 2 };

/* A pod that is still there this long after its grace period does not count. */
#define AS_POD_LATE_US (30 * AS_US_PER_S)

/*
 * Requests of a node's pods in percent of its allocatable: the larger of cpu and memory, or the
 * largest of its accelerators. AS_NODES_UTILIZATION_MAX if the ignored pods leave nothing and other
 * pods request something. `placed` is requested too; pods of a priority below
 * `expendable_below` do not count. 0; -ENODATA with an error: allocatable cpu or
 * memory is missing or 0. The formula is that of Cluster Autoscaler's simulator/utilization.
 */
int as_node_get_utilization(const struct as_cluster *cluster, const struct as_node_pods *pods,
                            uint32_t node, unsigned ignore, int32_t expendable_below,
                            const struct as_resources *placed, as_wall_time now,
                            double *percent_out, struct as_error *error) AS_MUST_USE;

#endif
