/*
 * The source `nodes` (docs/nodes.md): sums over the nodes of a group or a cluster, and its values;
 * and the utilization of one node. Pure.
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

enum as_nodes_value {
    AS_NODES_UTILIZATION, /* 100 x requests / allocatable of open nodes: the larger of cpu, memory
                           */
    AS_NODES_COUNT,       /* of open nodes */
    AS_NODES_CORES,       /* allocatable cpu of open nodes */
    AS_NODES_VALUE_COUNT
};
const char *as_nodes_value_get_word(enum as_nodes_value value); /* "utilization", ... */

/* The utilization if something is requested and nothing is allocatable. */
#define AS_NODES_UTILIZATION_MAX 1000000

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
    const struct as_resources *template_; /* allocatable of a new node (of as_node_template, as a
                                             whole); NULL: no template */
};

#define AS_NODE_SUMS 2 /* AS_RES_CPU in millicores, AS_RES_MEMORY in bytes */

struct as_node_sums {
    uint64_t open; /* nodes */
    /* Requests of pending pods and of pods on the nodes, also on nodes that are not open. DaemonSet
     * and mirror pods do not count. */
    int64_t requested[AS_NODE_SUMS];
    int64_t allocatable[AS_NODE_SUMS]; /* of open nodes */
    const char *lacking[AS_NODE_SUMS]; /* the first open node (borrowed from the cluster) whose
                                          allocatable is missing or 0; NULL: none */
    bool has_template;
    int64_t template_[AS_NODE_SUMS]; /* allocatable of a new node */
};

void as_node_sums_init(struct as_node_sums *sums, const struct as_node_sums_request *request);

/* 0; -ENODATA with an error that says why there is no value: an allocatable that the value needs is
 * missing or 0. If no node is open, the utilization is computed over one new node; without a
 * template it is AS_NODES_UTILIZATION_MAX if anything is requested, else 0. */
int as_node_sums_get_value(const struct as_node_sums *sums, enum as_nodes_value value,
                           double *value_out, struct as_error *error) AS_MUST_USE;

/* Whether a pod has a nodeSelector or required node affinity. */
bool as_pod_has_selector(const struct as_pod_shape *shape);

/*
 * Whether a pending pod counts for the group of this template: the pod has a nodeSelector or
 * required node affinity, this template satisfies both, and none of the other groups' templates
 * does. Taints do not matter. `others` may hold NULL, for a group without a template.
 */
bool as_pod_selects(const struct as_pod_shape *shape, const struct as_node_shape *template_,
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
 * pods request something. 0; -ENODATA with an error: allocatable cpu or memory is missing or 0. The
 * formula is that of Cluster Autoscaler's simulator/utilization.
 */
int as_node_get_utilization(const struct as_cluster *cluster, const struct as_node_pods *pods,
                            uint32_t node, unsigned ignore, as_wall_time now, double *percent_out,
                            struct as_error *error) AS_MUST_USE;

#endif
