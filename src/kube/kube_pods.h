/*
 * The pods of a label selector in one namespace of a cluster: a list read page by page.
 */
#ifndef ALERTSCALER_SRC_KUBE_KUBE_PODS_H
#define ALERTSCALER_SRC_KUBE_KUBE_PODS_H

#include <alertscaler/base/attr.h>
#include <alertscaler/kube/kube_client.h>
#include <alertscaler/kube/target_outcome.h>

#include "kubernetes_pods.h"

struct as_kube_pod_list;

/* `pods` are sorted, and valid during the callback; empty unless the outcome is
 * AS_REASON_APPLIED. */
typedef void as_kube_pod_list_done_fn(void *context, const struct as_outcome *outcome,
                                      const struct as_kube_pods *pods);

/* Copies the texts. `done` is called exactly once, in a later turn of the loop, unless cancelled
 * first. */
struct as_kube_pod_list *as_kube_pod_list_start(struct as_kube_client *client,
                                                const struct as_flow *flow, const char *namespace_,
                                                const char *selector,
                                                as_kube_pod_list_done_fn *done,
                                                void *context) AS_MUST_USE;
void as_kube_pod_list_cancel(struct as_kube_pod_list *list);

#endif
