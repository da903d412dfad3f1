/*
 * Owners of pods: which pods of a list a target owns.
 *
 * A pod names its controller. If that is not the target, the controller is read, because the target
 * may own it: a Deployment owns its pods through ReplicaSets. One level is read, and no list.
 */
#ifndef ALERTSCALER_SRC_KUBE_KUBE_OWNERS_H
#define ALERTSCALER_SRC_KUBE_KUBE_OWNERS_H

#include <alertscaler/base/attr.h>
#include <alertscaler/kube/kube_client.h>

#include "kube_discovery.h"
#include "kube_pods.h"

struct as_kube_owners;

#define AS_KUBE_OWNERS_MAX                                                                         \
    64 /* controllers that are read for one target; the pods of more are marked as of an owner     \
          that is gone */

/* Called once, in a later turn of the loop, unless cancelled first. `failure`: why the owners are
 * not known, never that the target is not there; then the pods are not marked. NULL: they are. */
typedef void as_kube_owners_done_fn(void *context, const struct as_outcome *failure);

struct as_kube_owners_spec {
    struct as_kube_client *client;
    struct as_kube_discovery *discovery;
    struct as_flow flow;            /* copied */
    const char *namespace_;         /* of the pods; valid until `done`, like the rest */
    const char *api_version, *kind; /* of the target */
    const char *uid;
    struct as_kube_pods *pods; /* finished; they get `owner`, with name and error */
    as_kube_owners_done_fn *done;
    void *context;
};

/* NULL: nothing had to be read, the pods are marked, and `done` is not called. */
struct as_kube_owners *as_kube_owners_start(const struct as_kube_owners_spec *spec) AS_MUST_USE;
void as_kube_owners_cancel(struct as_kube_owners *owners);

#endif
