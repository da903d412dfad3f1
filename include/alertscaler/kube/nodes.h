/*
 * The nodes of a cluster behind the instances of a group: a list of the nodes, and the pods on the
 * group's nodes. Which node is which instance: instance_nodes.h.
 */
#ifndef ALERTSCALER_KUBE_NODES_H
#define ALERTSCALER_KUBE_NODES_H

#include <stdbool.h>
#include <stddef.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/decide/choose.h>
#include <alertscaler/kube/kube_client.h>
#include <alertscaler/kube/kube_nodes.h>
#include <alertscaler/port/group_view.h>

#include <alertscaler/kube/target_outcome.h>

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

#endif
