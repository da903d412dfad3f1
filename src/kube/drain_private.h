/*
 * The files of a drain share this: drains.c (all drains), drain.c (the course of one drain),
 * drain_undo.c (undoing), and drain_recover.c (what others left behind).
 */
#ifndef ALERTSCALER_SRC_KUBE_DRAIN_PRIVATE_H
#define ALERTSCALER_SRC_KUBE_DRAIN_PRIVATE_H

#include <stdbool.h>

#include <bsd/sys/queue.h>

#include <alertscaler/kube/kube_nodes.h>

#include "node_pods.h"
#include <alertscaler/kube/drain.h>

struct held {
    LIST_ENTRY(held) entry;
    char *node;
    bool is_unwanted; /* its mark is to be removed, once it is found */
};

struct recovery;

enum turn { TURN_LOOK, TURN_EVICT, TURN_COUNT };

struct as_drains {
    struct as_kube_client *client;
    char *owner;
    char eviction_version[AS_KUBE_EVICTION_VERSION_SIZE]; /* "": not asked yet */
    TAILQ_HEAD(drain_list, as_drain) drains;              /* in the order of their start */
    LIST_HEAD(, held) held;
    unsigned running[TURN_COUNT];
    as_mono_time since;               /* of the first recovery */
    as_drain_recovered_fn *recovered; /* NULL: no recovery was requested */
    void *recovered_context;
    struct recovery *recovery;       /* the running recovery; NULL */
    struct as_timer *recovery_timer; /* of the next recovery; NULL */
};

/* Waits for exactly one of: its turn, request, list, timer; and always for the deadline. */
struct as_drain {
    TAILQ_ENTRY(as_drain) entry;
    struct as_drains *owner;
    as_drain_done_fn *done;
    void *context;
    enum as_drain_task task;
    char *name, *provider_id, *target, *decision_id;
    bool evicts;
    int64_t timeout_us, grace_us;
    unsigned keep;

    struct as_kube_request *request;
    struct as_node_pod_list *list;
    struct as_timer *timer, *deadline;
    enum turn turn;
    bool is_waiting; /* for its turn */
    bool has_turn;
    bool may_be_marked; /* a mark was sent, or was there */
    bool is_marked;
    bool is_undoing;
    unsigned undo_tries;

    struct as_buf body;                /* the Node as read, for the patch */
    struct as_kube_node_pods to_evict; /* copies; of this round */
    size_t next_pod;
    int64_t wait_us;                /* until the next round, if the API server asked for it */
    char obstacle[AS_MESSAGE_SIZE]; /* why the last pod was not evicted or is not gone; "" */
    struct as_drain_result result;
};

struct as_drain *drain_new(struct as_drains *drains, const char *node, as_drain_done_fn *done,
                           void *context) AS_MUST_USE;
struct as_drain *drain_find(const struct as_drains *drains, const char *node);
bool drain_is_held(const struct as_drains *drains, const char *node);

void drain_begin(void *context); /* starts a drain whose turn has come */
void drain_take_turn(struct as_drain *drain, enum turn turn); /* in place of the one that it has */
void drain_stop(struct as_drain *drain); /* cancels what it waits for, and the deadline */
void drain_tell(struct as_drain *drain); /* reports the result and frees the drain */

/* "drain node n1: " and `what` become the outcome's message. */
void drain_explain(struct as_drain *drain, enum as_reason reason, const char *what);

/* The outcome of an answer, with the API server's own words. */
struct as_outcome drain_read_outcome(const struct as_drain *drain,
                                     const struct as_http_response *response, bool *names_object);

/* Sends one request for the node: GET, or PATCH with the body. */
void drain_ask_node(struct as_drain *drain, as_kube_request_done_fn *answered);
void drain_patch_node(struct as_drain *drain, const struct as_buf *patch,
                      as_kube_request_done_fn *answered);

/* Undoes what was done to the node. Then reports the given result, or STUCK. */
void drain_undo(struct as_drain *drain);

void drain_find_later(struct as_drain *drain); /* its node may have a mark that is unwanted */
void recovery_begin_later(struct as_drains *drains);
void recovery_free(struct recovery *recovery);

#endif
