/*
 * What the source `nodes` sees of a group or a cluster (nodes_seen.h), and how much of one node is
 * asked for. Pure.
 */
#ifndef ALERTSCALER_CORE_NODE_SUMS_H
#define ALERTSCALER_CORE_NODE_SUMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>
#include <alertscaler/base/time.h>
#include <alertscaler/core/cluster.h>
#include <alertscaler/core/node_fit.h>
#include <alertscaler/core/node_pods.h>
#include <alertscaler/core/nodes_seen.h>

struct as_pod_count {
    const struct as_pod_shape *shape;
    uint64_t count;
};

struct as_node_sums_request {
    const struct as_cluster *cluster;
    const struct as_node_pods *pods; /* of the cluster */
    const uint32_t *nodes;           /* indices; NULL: all nodes of the cluster */
    size_t node_count;
    const struct as_pod_count *pending; /* pods that wait for a node of these (as_pod_selects) */
    size_t pending_count;
    const struct as_node_shape *template_; /* of a new node; NULL: none */
};

/* Pods count on open nodes and others; those of DaemonSets and mirror pods do not. Borrows from the
 * cluster. */
void as_nodes_seen_init(struct as_nodes_seen *seen, const struct as_node_sums_request *request);

/* nodeSelector or required node affinity: it names nodes. */
bool as_pod_has_selector(const struct as_pod_shape *shape);

/* Whether a pending pod counts for the group of a template: it names nodes, the template's labels
 * are such, and those of no other group's template. `others` may hold NULL: no template. */
bool as_pod_selects(const struct as_pod_shape *shape, const struct as_node_shape *template_,
                    const struct as_node_shape *const *others, size_t other_count) AS_MUST_USE;

/* GPUs and the like. Of a node that has any, only they count. */
bool as_resource_is_accelerator(const char *name);

/* Whose requests are taken off requests and allocatable: bits. */
enum as_node_ignore { AS_NODE_IGNORE_DAEMONSETS = 1, AS_NODE_IGNORE_MIRROR = 2 };

/* A pod that is still there this long after its grace does not count. */
#define AS_POD_LATE_US (30 * AS_US_PER_S)

/*
 * How much of a node is asked for, in percent: the larger of cpu and memory, or of its accelerators
 * alone. AS_NODES_UTILIZATION_MAX where the ignored pods leave nothing and anything is asked for.
 * 0; -ENODATA with an error: the allocatable is missing or 0. As Cluster Autoscaler's
 * simulator/utilization.
 */
int as_node_get_utilization(const struct as_cluster *cluster, const struct as_node_pods *pods,
                            uint32_t node, unsigned ignore, as_wall_time now, double *percent_out,
                            struct as_error *error) AS_MUST_USE;

#endif
