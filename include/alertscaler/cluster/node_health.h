/*
 * When a cluster or a node group is unwell: so many of its nodes are not Ready that nothing is
 * decided by nodes (docs/nodes.md). Pure.
 */
#ifndef ALERTSCALER_CLUSTER_NODE_HEALTH_H
#define ALERTSCALER_CLUSTER_NODE_HEALTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>
#include <alertscaler/base/time.h>
#include <alertscaler/cluster/cluster.h>

/* Cluster Autoscaler's --max-total-unready-percentage and --ok-total-unready-count. */
#define AS_UNREADY_PERCENT_OK 45
#define AS_UNREADY_COUNT_OK   3

/* Which nodes are still starting: those younger than `ready_timeout_us`, and those with a startup
 * taint (as_node_has_startup_taint). */
struct as_node_starting {
    int64_t ready_timeout_us;
    const char *const *startup_taints; /* keys */
    size_t startup_taint_count;
};

#define AS_NODE_READY_TIMEOUT_US (15 * AS_US_PER_MIN) /* without a node group's `ready_timeout` */

/*
 * More than 45 % of all nodes and more than 3 nodes are not Ready. Nodes that are starting or
 * leaving do not count as not Ready. The error is set if the result is true. The rule is that of
 * Cluster Autoscaler's ClusterStateRegistry.IsClusterHealthy.
 */
bool as_cluster_is_unwell(const struct as_cluster *cluster, const struct as_node_starting *starting,
                          as_wall_time now, struct as_error *error) AS_MUST_USE;

/* `nodes.health` of a node group. In thousandths of a percent. */
struct as_node_health_config {
    int64_t grace_us; /* 0: not configured, the group is never unwell */
    int64_t newest;   /* 1000 to 100000: how many of the nodes older than the grace are looked at */
    int64_t most;     /* 0 to 100000: how many of these may be not Ready */
};

/*
 * Of the nodes older than the grace the newest ceil(`newest` x count) are looked at; of the same
 * age the first by name. The group is unwell if 100 x those that are not Ready / those looked at,
 * rounded down, is above `most`. A cordoned node is looked at, but does not count as not Ready.
 * `nodes` are indices of the group's nodes. The error is set if the result is true. The formula is
 * that of Escalator's isNodegroupHealthy.
 */
bool as_group_is_unwell(const struct as_cluster *cluster, const uint32_t *nodes, size_t node_count,
                        const struct as_node_health_config *health, as_wall_time now,
                        struct as_error *error) AS_MUST_USE;

#endif
