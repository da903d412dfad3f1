/*
 * Target adapter: the node groups of one account of a cloud (cloud/provider_group.h has the
 * providers).
 *
 * A group is scaled up by its size, and scaled down by instances that are chosen here. Where these
 * are nodes, they are marked, and leave in the background; the size does not count them any more.
 * If the provider does not reach the size in time, the observation has a `shortfall`, and the group
 * accepts no growth for a while; this pause doubles each time.
 */
#ifndef ALERTSCALER_SRC_CLOUD_NODE_GROUP_H
#define ALERTSCALER_SRC_CLOUD_NODE_GROUP_H

#include <alertscaler/base/attr.h>
#include <alertscaler/cloud/provider_group.h>
#include <alertscaler/kube/env.h>
#include <alertscaler/port/target.h>
#include <alertscaler/rules/settings.h>

#include <alertscaler/kube/cluster_watch.h>

/* Another port goes on with the nodes that leave. */
void as_node_group_retire(struct as_target_port *port);

/* Borrows all arguments. End it with the port's close, not from a callback, and before the
 * clusters. `cluster`: the API server for a provider that is_kubernetes; else NULL. */
struct as_target_port *as_node_group_new(const struct as_group_provider *provider,
                                         const struct as_provider_settings *settings,
                                         const struct as_access_env *env,
                                         const struct as_clusters *clusters,
                                         struct as_cluster_link *cluster) AS_MUST_USE;

#endif
