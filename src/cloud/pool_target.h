/*
 * Pools: looks at several node groups of a cluster together. An observation of a pool, or of a node
 * group that is a pool of itself, has a snapshot and its plan.
 *
 *   the groups, at their providers -> facts -> snapshot -> plan
 *
 * Providers are asked when pods wait or nodes are unneeded, else every AS_POOL_READ_US. Whether
 * pods wait is first read from the facts of the watch, without a question. If pods wait only in the
 * facts that are asked for, the groups are read then, and facts are asked for again. Snapshots and
 * plans are made in slices, during which the facts are held (cluster_watch.h).
 */
#ifndef ALERTSCALER_SRC_CLOUD_POOL_TARGET_H
#define ALERTSCALER_SRC_CLOUD_POOL_TARGET_H

#include <alertscaler/base/attr.h>
#include <alertscaler/kube/env.h>
#include <alertscaler/port/target.h>

#include <alertscaler/kube/cluster_watch.h>

#define AS_POOL_READ_US (2 * AS_US_PER_MIN)

/* `groups` reads node groups. All arguments are borrowed. The port sets no sizes. */
struct as_target_port *as_pool_new(struct as_target_port *groups,
                                   const struct as_clusters *clusters,
                                   const struct as_access_env *env) AS_MUST_USE;

#endif
