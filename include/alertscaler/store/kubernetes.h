/*
 * The store in the API server of a cluster: ConfigMaps of one namespace.
 *
 * A commit is one conditional write of one object, the head, which holds the newest part of a
 * journal and names the objects that hold the rest. That write is what makes it durable, and what
 * keeps a former holder out: opening takes the head over, and every write of one who had it
 * before fails. The records themselves are in shards, which follow when there is time.
 *
 * Least rights: get, list, create and update on configmaps in the namespace.
 *
 * Errors besides those of the network: -ESTALE: another replica has taken the state over, this one
 * must not act any more; -EBADMSG: what is there does not belong together; -EACCES: a right is
 * missing; -ENOSPC: a limit of limits.h is reached.
 */
#ifndef ALERTSCALER_STORE_KUBERNETES_H
#define ALERTSCALER_STORE_KUBERNETES_H

#include <alertscaler/access/env.h>
#include <alertscaler/access/kube_access.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>
#include <alertscaler/port/store.h>

/* Labels of all its objects, as a selector. */
#define AS_STORE_KUBERNETES_SELECTOR                                                               \
    "app.kubernetes.io/managed-by=alertscaler,app.kubernetes.io/component=state"
#define AS_STORE_KUBERNETES_HEAD "alertscaler-state" /* the head's name; others begin with it */

/*
 * The store waits for its answers: it lives on an event loop of its own, which nobody else turns.
 * All of it is used by one thread at a time, as the store.
 */
struct as_store_kubernetes_config {
    const char *namespace_;          /* copied */
    const char *holder;              /* who we are, for people; copied */
    const struct as_access_env *env; /* borrowed until `closed` */
    struct as_kube_access *access;   /* owned by the store, whatever open returns */
    /* Runs the loop until something has happened; with `patience` it comes back now and then. */
    void (*turn)(void *context);
    void (*closed)(void *context); /* last of all, also where opening fails; or NULL */
    void *context;
    const struct as_store_patience *patience; /* borrowed likewise; NULL: without an end */
    uint64_t seed; /* of the names of writes; must differ from run to run */
};

/* Reads all and takes the state over; makes it where there is none. 0, or a negative errno with an
 * error that says what to do. */
int as_store_kubernetes_open(const struct as_store_kubernetes_config *config,
                             struct as_store **store_out, struct as_error *error) AS_MUST_USE;

#endif
