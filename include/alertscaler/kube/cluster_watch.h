/*
 * The facts about one cluster, kept up to date by watches of its nodes, pods and budgets. They are
 * watched while they are asked for, and AS_CLUSTER_WATCH_KEEP_US longer.
 *
 * Facts are fresh for AS_CLUSTER_WATCH_FRESH_US after the last sign of life of each watch. What is
 * not fresh is not given: a partition is no reason to buy or to remove nodes.
 */
#ifndef ALERTSCALER_KUBE_CLUSTER_WATCH_H
#define ALERTSCALER_KUBE_CLUSTER_WATCH_H

#include <stdbool.h>
#include <stddef.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>
#include <alertscaler/cluster/cluster.h>
#include <alertscaler/cluster/cluster_facts.h>
#include <alertscaler/kube/drain.h>
#include <alertscaler/kube/env.h>
#include <alertscaler/kube/kube_client.h>
#include <alertscaler/kube/nodes_see.h>
#include <alertscaler/kube/target_outcome.h>
#include <alertscaler/rules/settings.h>

struct as_cluster_ask;
struct as_cluster_watch;
struct as_clusters;

#define AS_CLUSTER_WATCH_FRESH_US (2 * AS_US_PER_MIN)
#define AS_CLUSTER_WATCH_KEEP_US  (10 * AS_US_PER_MIN)
#define AS_CLUSTER_WATCH_SYNC_US                                                                   \
    (15 * AS_US_PER_S) /* how long an answer waits for the first lists */
#define AS_CLUSTER_WATCH_LARGE_US                                                                  \
    (5 * AS_US_PER_MIN) /* until what was too large is tried again                                 \
                         */

#define AS_CLUSTER_WATCH_HELD_MAX ((size_t)8 << 20)

#define AS_CLUSTER_WATCH_RELIST_US                                                                 \
    AS_US_PER_MIN /* at least, between lists of pods that budgets ask for */

/* Sends nothing before it is asked. `client` outlives it. */
struct as_cluster_watch *as_cluster_watch_new(struct as_kube_client *client) AS_MUST_USE;
/* Nobody may still wait for an answer. */
struct as_cluster_watch *as_cluster_watch_free(struct as_cluster_watch *watch);

/* `cluster`: good for the callback. NULL: not known, and `error` says why. */
typedef void as_cluster_watch_done_fn(void *context, const struct as_cluster *cluster,
                                      const struct as_error *error);

/* `done` is called exactly once, in a later turn of the loop, unless cancelled first. */
struct as_cluster_ask *as_cluster_watch_ask(struct as_cluster_watch *watch,
                                            as_cluster_watch_done_fn *done,
                                            void *context) AS_MUST_USE;
void as_cluster_watch_cancel(struct as_cluster_ask *ask);

/*
 * Keeps the `cluster` of an answer as it is, beyond its callback, for work that takes several
 * turns. What is heard meanwhile waits: up to AS_CLUSTER_WATCH_HELD_MAX bytes; beyond that the list
 * begins anew, later. One hold at a time: false while there is one.
 */
bool as_cluster_watch_hold(struct as_cluster_watch *watch) AS_MUST_USE;
void as_cluster_watch_release(struct as_cluster_watch *watch);

/* What is known now, good until the next turn of the loop. NULL: nothing is watched, or the facts
 * are not known or not fresh. Starts no watch, and keeps none going. */
const struct as_cluster *as_cluster_watch_find(struct as_cluster_watch *watch);

/* As as_cluster_watch_find, if the watch of the nodes has received an event or a bookmark after
 * `since`, or has listed the nodes after it. NULL, too, while facts are held. */
const struct as_cluster *as_cluster_watch_find_since(struct as_cluster_watch *watch,
                                                     as_mono_time since);

/* False: nothing is watched, or not everything has been listed yet. Facts that are not fresh have a
 * view, too. The cluster's name is not set. */
bool as_cluster_watch_read(struct as_cluster_watch *watch, struct as_facts_view *view_out);

/*
 * The clusters of the settings, whose nodes may be the instances of node groups.
 */

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
