/*
 * The nodes of a cluster behind the instances of a group: a list of the nodes, and the pods on the
 * group's nodes. Also: which node is which instance, and the pods on one node.
 */
#ifndef ALERTSCALER_KUBE_NODES_H
#define ALERTSCALER_KUBE_NODES_H

#include <stdbool.h>
#include <stddef.h>

#include <alertscaler/base/arena.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/cluster/cluster.h>
#include <alertscaler/decide/choose.h>
#include <alertscaler/kube/kube_client.h>
#include <alertscaler/kube/kube_nodes.h>
#include <alertscaler/kube/target_outcome.h>
#include <alertscaler/port/group_view.h>

struct as_nodes_reading;

struct as_instance_node { /* of one instance */
    const struct as_instance *instance;
    bool is_found, is_ambiguous; /* ambiguous: of several nodes or instances */
    bool may_be_nameless;        /* not found, but a node without a providerID may be it */
    struct as_candidate_node node;
    as_maybe_time created;                /* the node */
    const struct as_kube_node_mark *mark; /* whoever's; NULL: none */
};

/* `nodes`: one per instance, in the view's order; valid during the callback, with its texts. Empty
 * unless the outcome is AS_REASON_APPLIED. The outcome's message names a missing right. */
typedef void as_nodes_done_fn(void *context, const struct as_outcome *outcome,
                              const struct as_instance_node *nodes, size_t count);

/*
 * Copies what it needs of the view. Without `with_pods`, pod_count, requests and blocking_pod are 0
 * and NULL; this suffices to know which nodes are ready. `keep`: of enum as_keep, for blocking_pod.
 * `done` is called exactly once, in a later turn of the loop, unless cancelled first.
 */
struct as_nodes_reading *as_nodes_read_start(struct as_kube_client *client,
                                             const struct as_group_view *view, bool with_pods,
                                             unsigned keep, as_nodes_done_fn *done,
                                             void *context) AS_MUST_USE;
void as_nodes_read_cancel(struct as_nodes_reading *reading);

/*
 * Which node is which instance of a group, out of nodes that are known: listed ones, or the facts
 * about their cluster. A node belongs to an instance if its spec.providerID equals
 * as_instance.provider_id (or its id), or ends with it behind a '/' or '.'; for Azure ignoring
 * case. If the provider does not name instances (as_group_view.node_label), the nodes with the
 * labels are the instances.
 */

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

/* At most once: finds the nodes among the facts, also those with the labels.
 * The marks of such nodes have no texts. */
void as_instance_nodes_match_facts(struct as_instance_nodes *of, const struct as_cluster *cluster);

/* As as_nodes_read_start with pods, for nodes that were found among the facts: at least one, and
 * not by labels. Moves `of`. Copies what it needs of the facts. */
struct as_nodes_reading *as_nodes_read_pods_start(struct as_kube_client *client,
                                                  struct as_instance_nodes *of, unsigned keep,
                                                  as_nodes_done_fn *done,
                                                  void *context) AS_MUST_USE;

/*
 * Complete lists: the nodes (`label`: only those with it; NULL: all of them), and the pods on one
 * node, of all namespaces. The caller frees what was read, and may cancel with
 * as_kube_pages_cancel. It is empty after a failure.
 */
struct as_kube_pages *as_nodes_list(struct as_kube_client *client, const char *label,
                                    struct as_kube_nodes *nodes, as_kube_pages_done_fn *done,
                                    void *context) AS_MUST_USE;
struct as_kube_pages *as_node_pods_list(struct as_kube_client *client, const char *node,
                                        struct as_kube_node_pods *pods, as_kube_pages_done_fn *done,
                                        void *context) AS_MUST_USE;

#endif
