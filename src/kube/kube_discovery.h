/*
 * API discovery of one cluster: from apiVersion and kind to the path of the resource and the
 * version of its Scale. The list of a group version is read once and kept. It is read again when it
 * lacks a kind or a path is gone, but at most once every AS_KUBE_DISCOVERY_REFRESH_US. Callers that
 * need the same group version at the same time share one request.
 */
#ifndef ALERTSCALER_SRC_KUBE_KUBE_DISCOVERY_H
#define ALERTSCALER_SRC_KUBE_KUBE_DISCOVERY_H

#include <stdbool.h>

#include <bsd/sys/queue.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/kube/kube_client.h>
#include <alertscaler/kube/kube_documents.h>

#include <alertscaler/kube/target_outcome.h>

struct as_kube_discovery;

struct as_kube_discovery *as_kube_discovery_new(struct as_kube_client *client) AS_MUST_USE;
struct as_kube_discovery *as_kube_discovery_free(struct as_kube_discovery *discovery);

enum as_kube_lookup { AS_KUBE_FOUND, AS_KUBE_ASKING, AS_KUBE_NOT_SCALABLE };

/*
 * FOUND: *resource_out (borrowed until the next call), with a scale subresource if `needs_scale`.
 * ASKING: a request is running; use as_kube_discovery_wait. NOT_SCALABLE: *failure_out says why.
 */
enum as_kube_lookup as_kube_discovery_find(struct as_kube_discovery *discovery,
                                           const char *api_version, const char *kind,
                                           bool needs_scale,
                                           const struct as_kube_resource **resource_out,
                                           struct as_outcome *failure_out) AS_MUST_USE;

struct as_kube_discovery_waiter {
    /* Called once, in a later turn. `failure`: why the cluster was not asked; NULL: find again. */
    void (*ready)(void *context, const struct as_outcome *failure);
    void *context;
    LIST_ENTRY(as_kube_discovery_waiter) entry;
};

LIST_HEAD(as_kube_discovery_waiters, as_kube_discovery_waiter);

/* After ASKING. The caller owns `waiter`, which must not move until called or cancelled. */
void as_kube_discovery_wait(struct as_kube_discovery *discovery, const char *api_version,
                            struct as_kube_discovery_waiter *waiter);
void as_kube_discovery_waiter_cancel(struct as_kube_discovery_waiter *waiter);

/* Reports that a path built from the resource does not exist. True if the next find asks again. */
bool as_kube_discovery_expire(struct as_kube_discovery *discovery,
                              const char *api_version) AS_MUST_USE;

#endif
