/*
 * Emptying nodes of one cluster before their instances are deleted: cordon and taint, evict the
 * pods through the eviction API, wait until they are gone.
 *
 * What is done to a node stands in an annotation on it, with the time and the decision, so that it
 * can be undone after a crash (as_drain_recover). Undoing takes back our own doing only: a node
 * that was cordoned before stays so.
 *
 * DaemonSet pods, mirror pods and finished pods are left. A pod that may not be evicted
 * (wire/kube_nodes.h) ends the drain before anything is evicted.
 */
#ifndef ALERTSCALER_SRC_TARGET_DRAIN_H
#define ALERTSCALER_SRC_TARGET_DRAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/access/kube_client.h>
#include <alertscaler/base/attr.h>

#include "outcome.h"

struct as_drains; /* of one cluster */
struct as_drain;

/* Borrows the client until it is freed. `owner`: who we are among those that drain nodes of this
 * cluster, at most 63 bytes; only nodes with its mark are recovered. Copied. */
struct as_drains *as_drains_new(struct as_kube_client *client, const char *owner) AS_MUST_USE;
/* Cancels all, with no callback after it. Marks of drains under way stay on their nodes, for the
 * next recovery. */
struct as_drains *as_drains_free(struct as_drains *drains);
/* No drain, undo or recovery is under way; one that is due later is none. */
bool as_drains_is_idle(const struct as_drains *drains) AS_MUST_USE;

struct as_drain_request { /* copied */
    const char *node;
    const char *provider_id; /* the node's has to end with it (nodes.h), else it is another one */
    const char *decision_id;
    int64_t timeout_us; /* from its turn until it is empty */
    int64_t grace_us;   /* -1: the pods' own */
};

enum as_drain_end {
    AS_DRAIN_DONE,      /* empty; cordoned and marked, until the instance is gone or undone */
    AS_DRAIN_NO_NODE,   /* there is no such node (any more): nothing to be drained */
    AS_DRAIN_FAILED,    /* and undone */
    AS_DRAIN_CANCELLED, /* likewise */
    AS_DRAIN_STUCK      /* failed or cancelled, and could not be undone: recovery goes on trying */
};

struct as_drain_result { /* good during the callback */
    const char *node;
    enum as_drain_end end;
    struct as_outcome outcome; /* applied; else why: timeout (the deadline), forbidden, ... with
                                  words: "drain node n1: pod shop/web-1: Cannot evict pod as ..." */
    unsigned evicted;          /* pods */
};

typedef void as_drain_done_fn(void *context, const struct as_drain_result *result);

/*
 * At most AS_DRAINS_MAX at a time, the others wait for their turn. `done` comes exactly once, in a
 * later turn of the loop. One drain a node: a second one beside it fails.
 */
struct as_drain *as_drain_start(struct as_drains *drains, const struct as_drain_request *request,
                                as_drain_done_fn *done, void *context) AS_MUST_USE;
/* Gives up and undoes; `done` comes when that is over, with CANCELLED or STUCK. */
void as_drain_cancel(struct as_drain *drain);

/*
 * After DONE the node is held (recovery leaves it alone) until one of these: release, as its
 * instance is gone or going; undo, as its instance stays. Undo tells as a drain: FAILED with an
 * outcome of `applied` where it was undone, NO_NODE, STUCK.
 */
void as_drain_release(struct as_drains *drains, const char *node);
void as_drain_undo_start(struct as_drains *drains, const char *node, as_drain_done_fn *done,
                         void *context);

/*
 * Undoes what a process that is no more left behind: nodes with our mark that are neither drained
 * nor held here. `undone`: how many. After a failure, and where a drain was stuck, it is begun anew
 * every AS_DRAIN_RECOVER_US. `done` comes in a later turn, after each.
 */
typedef void as_drain_recovered_fn(void *context, const struct as_outcome *outcome,
                                   unsigned undone);
void as_drain_recover(struct as_drains *drains, as_drain_recovered_fn *done, void *context);

#endif
