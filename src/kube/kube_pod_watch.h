/*
 * Pods of many targets of one cluster, out of watches instead of a list for each evaluation.
 *
 * While more than AS_POD_WATCH_TARGETS targets need their pods, one watch for each of their
 * namespaces keeps what decisions need of its pods. The answer is equal to that of a list. Where
 * no fresh answer is known, the caller lists.
 */
#ifndef ALERTSCALER_SRC_KUBE_KUBE_POD_WATCH_H
#define ALERTSCALER_SRC_KUBE_KUBE_POD_WATCH_H

#include <stdbool.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/kube/kube_client.h>

#include "kube_pods.h"

struct as_pod_watches;

/* Sends nothing before it is needed. `client` outlives it. */
struct as_pod_watches *as_pod_watches_new(struct as_kube_client *client) AS_MUST_USE;
struct as_pod_watches *as_pod_watches_free(struct as_pod_watches *watches); /* NULL is allowed */

/*
 * The target needs the pods of the namespace that the selector (a text, as in a Scale) matches. To
 * be called at each evaluation: a target counts for AS_POD_WATCH_KEEP_US. True: `pods`, which was
 * empty, has them all, and is finished. False: the pods are to be listed; `pods` is empty.
 */
bool as_pod_watches_find(struct as_pod_watches *watches, const char *target, const char *namespace_,
                         const char *selector, struct as_kube_pods *pods) AS_MUST_USE;

#endif
