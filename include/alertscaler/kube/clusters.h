/*
 * The clusters of the settings, whose nodes may be the instances of node groups.
 */
#ifndef ALERTSCALER_KUBE_CLUSTERS_H
#define ALERTSCALER_KUBE_CLUSTERS_H

#include <stddef.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/kube/env.h>
#include <alertscaler/kube/kube_client.h>
#include <alertscaler/rules/settings.h>

#include <alertscaler/kube/cluster_watch.h>
#include <alertscaler/kube/drain.h>
#include <alertscaler/kube/nodes_see.h>
#include <alertscaler/kube/target_outcome.h>

struct as_clusters;

struct as_cluster_link {
    const struct as_clusters *owner;
    const char *name;
    struct as_kube_access *access; /* NULL: `missing` says why */
    struct as_kube_client client;
    struct as_drains *drains;
    struct as_cluster_watch *watch; /* what is known of its nodes and pods */
    struct as_nodes_seer *seer;
    struct as_error missing;
    bool is_clean; /* by the last recovery no node has a mark of ours */
};

struct as_clusters {
    struct as_cluster_link *items;
    size_t count;
    bool is_retired; /* others take over: what these know is out of date */
};

/* Borrows both arguments. Reads kubeconfigs, but sends no requests yet. */
void as_clusters_init(struct as_clusters *clusters, const struct as_settings *settings,
                      const struct as_access_env *env);
void as_clusters_deinit(struct as_clusters *clusters); /* cancels everything */

/* NULL if there is no cluster of this name. */
struct as_cluster_link *as_clusters_find(const struct as_clusters *clusters, const char *name);

#endif
