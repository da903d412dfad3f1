/*
 * API discovery of one cluster: from apiVersion and kind to the path of the resource and the
 * version of its Scale. What a group version serves is asked once and kept; it is asked again when
 * a kind is not in it or a path is gone, but no sooner than after AS_KUBE_DISCOVERY_REFRESH_US.
 * All who need the same group version at a time share one request.
 */
#ifndef ALERTSCALER_SRC_TARGET_KUBE_DISCOVERY_H
#define ALERTSCALER_SRC_TARGET_KUBE_DISCOVERY_H

#include <stdbool.h>

#include <bsd/sys/queue.h>

#include <alertscaler/access/kube_client.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/wire/kubernetes.h>

#include "outcome.h"

struct as_kube_discovery;

struct as_kube_discovery *as_kube_discovery_new(struct as_kube_client *client) AS_MUST_USE;
struct as_kube_discovery *as_kube_discovery_free(struct as_kube_discovery *discovery);

enum as_kube_lookup { AS_KUBE_FOUND, AS_KUBE_ASKING, AS_KUBE_NOT_SCALABLE };

/*
 * FOUND: *resource_out (borrowed until the next call) has a scale subresource. ASKING: the answer
 * is under way: wait. NOT_SCALABLE: *failure_out says why.
 */
enum as_kube_lookup as_kube_discovery_find(struct as_kube_discovery *discovery,
                                           const char *api_version, const char *kind,
                                           const struct as_kube_resource **resource_out,
                                           struct as_outcome *failure_out) AS_MUST_USE;

struct as_kube_discovery_waiter {
    /* Once, in a later turn. `failure`: why the cluster could not be asked; NULL: find again. */
    void (*ready)(void *context, const struct as_outcome *failure);
    void *context;
    LIST_ENTRY(as_kube_discovery_waiter) entry;
};

LIST_HEAD(as_kube_discovery_waiters, as_kube_discovery_waiter);

/* After ASKING. `waiter` is the caller's and stays where it is until it is told or cancelled. */
void as_kube_discovery_wait(struct as_kube_discovery *discovery, const char *api_version,
                            struct as_kube_discovery_waiter *waiter);
void as_kube_discovery_waiter_cancel(struct as_kube_discovery_waiter *waiter);

/* A path built from it does not exist (any more). True where the next find asks again. */
bool as_kube_discovery_expire(struct as_kube_discovery *discovery,
                              const char *api_version) AS_MUST_USE;

#endif
