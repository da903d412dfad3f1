/*
 * The nodes of a cluster behind the instances of a group: one list of nodes, and the pods on those
 * that are the group's.
 *
 * A node is an instance's where its spec.providerID ends with as_instance.provider_id (or its id)
 * behind a '/' or '.', or is equal to it; of Azure without regard to case. Where the provider does
 * not name instances (as_group_view.node_label), the nodes say which there are.
 */
#ifndef ALERTSCALER_SRC_TARGET_NODES_H
#define ALERTSCALER_SRC_TARGET_NODES_H

#include <stdbool.h>
#include <stddef.h>

#include <alertscaler/access/kube_client.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/core/choose.h>
#include <alertscaler/provider/group.h>

#include "outcome.h"

struct as_nodes_reading;

struct as_instance_node { /* of one instance */
    const struct as_instance *instance;
    bool is_found, is_ambiguous; /* ambiguous: several nodes, or several instances of one node */
    struct as_candidate_node node;
    const char *mark; /* the decision that began to drain it (drain.h); NULL: none */
};

/* `nodes`: one for each instance, in the view's order; good during the callback, as its texts. None
 * where the outcome is not AS_REASON_APPLIED. Its message names the right that is missing. */
typedef void as_nodes_done_fn(void *context, const struct as_outcome *outcome,
                              const struct as_instance_node *nodes, size_t count);

/*
 * Copies what it needs of the view. Without `with_pods` pod_count, requests and blocking_pod
 * are 0 and NULL: enough to know who is ready. `done` comes exactly once, in a later turn of the
 * loop, unless cancelled first.
 */
struct as_nodes_reading *as_nodes_read_start(struct as_kube_client *client,
                                             const struct as_group_view *view, bool with_pods,
                                             as_nodes_done_fn *done, void *context) AS_MUST_USE;
void as_nodes_read_cancel(struct as_nodes_reading *reading);

/* Whether a node of this spec.providerID is the instance. */
bool as_node_is_instance(const char *node_provider_id, const char *provider_id);

#endif
