/*
 * The store in a cluster's API server: ConfigMaps of one namespace.
 *
 * A commit is one conditional write of one object, the head. The head holds the newest part of a
 * journal and names the objects that hold the older parts. This write makes the commit durable and
 * keeps a former holder out: opening takes the head over, and every write of the former holder then
 * fails. The records themselves are in shards, which are updated later, when there is time.
 *
 * Required rights: get, list, create and update on configmaps in the namespace.
 *
 * Errors, besides those of the network: -ESTALE: another replica has taken the state over, and this
 * replica must not act any more; -EBADMSG: the objects do not fit together; -EACCES: a right is
 * missing; -ENOSPC: a limit of kube_state.h is reached.
 */
#ifndef ALERTSCALER_KUBE_KUBE_STORE_H
#define ALERTSCALER_KUBE_KUBE_STORE_H

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>
#include <alertscaler/kube/env.h>
#include <alertscaler/kube/kube_access.h>
#include <alertscaler/port/store.h>

/* The labels of all its objects, as a selector. */
#define AS_STORE_KUBERNETES_SELECTOR                                                               \
    "app.kubernetes.io/managed-by=alertscaler,app.kubernetes.io/component=state"
#define AS_STORE_KUBERNETES_HEAD "alertscaler-state" /* the head's name; prefix of the others */

/*
 * The store blocks while it waits for answers, so it needs an event loop of its own. Store and loop
 * are used by one thread at a time.
 */
struct as_store_kubernetes_config {
    const char *namespace_;          /* copied */
    const char *holder;              /* our name, shown to people; copied */
    const struct as_access_env *env; /* borrowed until `closed` is called */
    struct as_kube_access *access;   /* owned by the store, even if open fails */
    /* Runs the loop until something has happened; with `deadline` it also returns in between. */
    void (*turn)(void *context);
    void (*closed)(void *context); /* called last, also when open fails; or NULL */
    void *context;
    const struct as_store_deadline *deadline; /* borrowed until `closed`; NULL: no limit */
    uint64_t seed; /* for the names of writes; must differ between runs */
};

/* Reads the whole state and takes it over; creates it if there is none. 0, or a negative errno with
 * an error that says what to do. */
int as_store_kubernetes_open(const struct as_store_kubernetes_config *config,
                             struct as_store **store_out, struct as_error *error) AS_MUST_USE;

#endif
