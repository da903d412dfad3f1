/*
 * Nodes of one cluster that leave: marking one (cordon, taint, annotation), looking whether it is
 * empty, emptying it through the eviction API, and putting it back into service.
 *
 * The annotation records what was done to the node, for which target and decision, so that another
 * process can go on with it or undo it. Only our own changes are undone: a node that was cordoned
 * before stays cordoned.
 *
 * DaemonSet pods, mirror pods and finished pods are ignored. A pod that may not be evicted
 * (kube/kube_nodes.h) ends the work on the node before anything is evicted.
 */
#ifndef ALERTSCALER_KUBE_DRAIN_H
#define ALERTSCALER_KUBE_DRAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/kube/kube_client.h>

#include <alertscaler/kube/target_outcome.h>

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

enum as_drain_task {
    AS_DRAIN_MARK,  /* DONE: cordoned and marked; FAILED: as it was */
    AS_DRAIN_EMPTY, /* a marked node; FAILED: put back into service */
    AS_DRAIN_LOOK,  /* DONE if it is empty, else NOT_YET; changes nothing */
    AS_DRAIN_CHECK  /* DONE although it is not empty */
};

struct as_drain_request { /* copied */
    enum as_drain_task task;
    const char *node;
    const char *provider_id; /* the node's must end with it (nodes.h), else it is another node */
    const char *target;      /* id, of the node's group */
    const char *decision_id; /* MARK */
    bool evicts;             /* MARK: needs the eviction API later; EMPTY does */
    int64_t timeout_us;      /* EMPTY: from its turn until it is empty */
    int64_t grace_us;        /* EMPTY: -1: each pod's own */
    unsigned keep;           /* of enum as_keep: pods that keep the node */
};

enum as_drain_end {
    AS_DRAIN_DONE,     /* held: recovery ignores the node until it is released or undone */
    AS_DRAIN_NO_NODE,  /* the node does not exist (any more) */
    AS_DRAIN_NOT_YET,  /* not empty; or the step is not permitted now, or may work later */
    AS_DRAIN_UNMARKED, /* somebody else has taken our mark away: the node is theirs */
    AS_DRAIN_FAILED,   /* and undone */
    AS_DRAIN_STUCK     /* failed, and undoing failed too */
};

struct as_drain_result { /* valid during the callback */
    const char *node;
    enum as_drain_end end;
    struct as_outcome outcome; /* applied; else the reason and "drain node n1: ..." */
    unsigned evicted;          /* pods */
};

typedef void as_drain_done_fn(void *context, const struct as_drain_result *result);

/*
 * At most AS_DRAIN_LOOKS_MAX nodes are worked on at a time, and of those with pods at most
 * AS_DRAINS_MAX; the others wait for their turn. `done` is called exactly once, in a later turn of
 * the loop. A second one of the same node fails.
 */
struct as_drain *as_drain_start(struct as_drains *drains, const struct as_drain_request *request,
                                as_drain_done_fn *done, void *context) AS_MUST_USE;
/* Ends it at once, without a callback. What was done to the node stays. Not for MARK. */
void as_drain_drop(struct as_drain *drain);

/* A marked node is known here: recovery ignores it. */
void as_drain_hold(struct as_drains *drains, const char *node);
void as_drain_release(struct as_drains *drains, const char *node);
/* Its mark should have been removed: recovery does that. */
bool as_drain_is_unwanted(const struct as_drains *drains, const char *node) AS_MUST_USE;
/* Releases the node, and puts it back into service: FAILED with an outcome of `applied` if this was
 * done, else NO_NODE or STUCK. */
void as_drain_undo_start(struct as_drains *drains, const char *node, as_drain_done_fn *done,
                         void *context);
const char *as_drains_get_owner(const struct as_drains *drains);

/*
 * Undoes what nobody goes on with: nodes with our mark that are neither worked on nor held here,
 * whose target does not exist any more; and, where the mark of an earlier version names no target,
 * those that nobody has held for AS_LEAVE_ORPHAN_US. `undone`: how many. It starts again every
 * AS_DRAIN_RECOVER_US as long as there are others, after a failure, and if one was stuck. `done` is
 * called in a later turn, after each run. `is_any_marked`: a node may have our mark.
 */
typedef void as_drain_recovered_fn(void *context, const struct as_outcome *outcome, unsigned undone,
                                   bool is_any_marked);
void as_drain_recover(struct as_drains *drains, as_drain_recovered_fn *done, void *context);

#endif
