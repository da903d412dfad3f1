/*
 * The pods on one node, of all namespaces.
 */
#ifndef ALERTSCALER_SRC_KUBE_NODE_PODS_H
#define ALERTSCALER_SRC_KUBE_NODE_PODS_H

#include <alertscaler/base/attr.h>
#include <alertscaler/kube/kube_client.h>
#include <alertscaler/kube/kube_nodes.h>

#include <alertscaler/kube/target_outcome.h>

struct as_node_pod_list;

/* `pods` are valid during the callback; empty unless the outcome is AS_REASON_APPLIED. */
typedef void as_node_pod_list_done_fn(void *context, const struct as_outcome *outcome,
                                      const struct as_kube_node_pods *pods);

/* `done` is called exactly once, in a later turn of the loop, unless cancelled first. */
struct as_node_pod_list *as_node_pod_list_start(struct as_kube_client *client, const char *node,
                                                as_node_pod_list_done_fn *done,
                                                void *context) AS_MUST_USE;
void as_node_pod_list_cancel(struct as_node_pod_list *list);

#endif
