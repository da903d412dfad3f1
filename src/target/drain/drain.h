/*
 * Emptying nodes of one cluster before their instances are deleted: cordon and taint the node,
 * evict its pods through the eviction API, wait until the pods are gone.
 *
 * An annotation on the node records what was done to it, with time and decision, so that it can be
 * undone after a crash (as_drain_recover). Only our own changes are undone: a node that was
 * cordoned before stays cordoned.
 *
 * DaemonSet pods, mirror pods and finished pods are ignored. A pod that may not be evicted
 * (wire/kube_nodes.h) ends the drain before anything is evicted.
 */
#ifndef ALERTSCALER_SRC_TARGET_DRAIN_DRAIN_H
#define ALERTSCALER_SRC_TARGET_DRAIN_DRAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/access/kube_client.h>
#include <alertscaler/base/attr.h>

#include "outcome.h"

struct as_drains; /* of one cluster */
struct as_drain;

/* Borrows the client until it is freed. `owner`: our name among those that drain nodes of this
 * cluster, at most 63 bytes, copied; only nodes with this name in their mark are recovered. */
struct as_drains *as_drains_new(struct as_kube_client *client, const char *owner) AS_MUST_USE;
/* Cancels all drains; no callbacks afterwards. Marks of running drains stay on their nodes, for the
 * next recovery. */
struct as_drains *as_drains_free(struct as_drains *drains);
/* Whether no drain, undo or recovery is running; a recovery that is due later does not count. */
bool as_drains_is_idle(const struct as_drains *drains) AS_MUST_USE;

struct as_drain_request { /* copied */
    const char *node;
    const char *provider_id; /* the node's must end with it (nodes.h), else it is another node */
    const char *decision_id;
    int64_t timeout_us; /* from its turn until it is empty */
    int64_t grace_us;   /* -1: each pod's own */
};

enum as_drain_end {
    AS_DRAIN_DONE,      /* empty; cordoned and marked, until the instance is gone or undone */
    AS_DRAIN_NO_NODE,   /* the node does not exist (any more): nothing to drain */
    AS_DRAIN_FAILED,    /* and undone */
    AS_DRAIN_CANCELLED, /* and undone */
    AS_DRAIN_STUCK      /* failed or cancelled, and undoing failed: recovery keeps trying */
};

struct as_drain_result { /* valid during the callback */
    const char *node;
    enum as_drain_end end;
    struct as_outcome outcome; /* applied; else the reason and "drain node n1: ..." */
    unsigned evicted;          /* pods */
};

typedef void as_drain_done_fn(void *context, const struct as_drain_result *result);

/*
 * At most AS_DRAINS_MAX run at a time, the others wait for their turn. `done` is called exactly
 * once, in a later turn of the loop. A second drain of the same node fails.
 */
struct as_drain *as_drain_start(struct as_drains *drains, const struct as_drain_request *request,
                                as_drain_done_fn *done, void *context) AS_MUST_USE;
/* Gives up and undoes; then `done` is called with CANCELLED or STUCK. */
void as_drain_cancel(struct as_drain *drain);

/*
 * After DONE the node is held (recovery ignores it) until one of these calls. release: its instance
 * is gone or leaving. undo: its instance stays; the result is reported as for a drain: FAILED with
 * an outcome of `applied` if it was undone, else NO_NODE or STUCK.
 */
void as_drain_release(struct as_drains *drains, const char *node);
void as_drain_undo_start(struct as_drains *drains, const char *node, as_drain_done_fn *done,
                         void *context);

/*
 * Undoes what an earlier process left behind: nodes with our mark that are neither drained nor held
 * here. `undone`: how many. After a failure, or if a drain was stuck, it starts again every
 * AS_DRAIN_RECOVER_US. `done` is called in a later turn, after each run.
 */
typedef void as_drain_recovered_fn(void *context, const struct as_outcome *outcome,
                                   unsigned undone);
void as_drain_recover(struct as_drains *drains, as_drain_recovered_fn *done, void *context);

#endif
