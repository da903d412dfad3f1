/*
 * What all target adapters share: the meaning of an HTTP answer for a target, by one table; copies
 * of scale requests; and every limit of the adapters.
 */
#ifndef ALERTSCALER_KUBE_TARGET_OUTCOME_H
#define ALERTSCALER_KUBE_TARGET_OUTCOME_H

#include <stdbool.h>
#include <stdint.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/time.h>
#include <alertscaler/decide/observation.h>
#include <alertscaler/port/http.h>

struct as_outcome {
    enum as_reason reason;
    bool is_ambiguous; /* the request may have been carried out in spite of the failure */
    bool is_shortage;  /* for lack of capacity */
    bool is_accepted;  /* the change was accepted and failed later: it counts as done */
    int http_status;   /* 0: no answer */
    int64_t retry_after_us;
    char request_id[AS_REQUEST_ID_SIZE]; /* the request's id from the other side; "": none */
    char message[AS_MESSAGE_SIZE];
};

/*
 * The outcome of a transfer. `is_change`: the request would change something, so a failure after
 * sending is ambiguous. The message is the transport's error or "HTTP 409"; an adapter that finds a
 * better message in the body replaces it.
 */
void as_outcome_init(struct as_outcome *outcome, const struct as_http_response *response,
                     bool is_change, as_wall_time now);

/* An outcome without a transfer: nothing was sent. */
void as_outcome_init_local(struct as_outcome *outcome, enum as_reason reason, const char *message);

/* The transfer has succeeded, but its response is of no use. It has still its HTTP status. */
void as_outcome_reject(struct as_outcome *outcome, bool is_change, const char *message);

/* `message` as one line, cut to fit; an empty message changes nothing. */
void as_outcome_set_message(struct as_outcome *outcome, const char *message);

void as_outcome_fill_observation(const struct as_outcome *outcome,
                                 struct as_observation *observation);
void as_outcome_fill_result(const struct as_outcome *outcome, struct as_scale_result *result);

/*
 * Every limit of the target adapters, in one place.
 */

/* One request. */
#define AS_TARGET_RESPONSE_MAX ((size_t)1 * 1024 * 1024)
#define AS_TARGET_URL_MAX      ((size_t)4096)
#define AS_TARGET_BODY_MAX     ((size_t)16 * 1024) /* of a request */

/* One Pod or workload, or an object of which a field is sized. */
#define AS_KUBE_SIZED_OBJECT_MAX ((size_t)4 * 1024 * 1024)

/* API discovery: size of an answer; the shortest time before asking again after a 404. */
#define AS_KUBE_DISCOVERY_MAX        ((size_t)8 * 1024 * 1024)
#define AS_KUBE_DISCOVERY_REFRESH_US (5 * AS_US_PER_S)

/* A target's pods: pods and bytes in all; pods and bytes of one page of the list; pages (a server
 * may put fewer pods on a page than asked for); and the time for the whole list. */
#define AS_KUBE_PODS_MAX            10000
#define AS_KUBE_PODS_BYTES_MAX      ((size_t)256 * 1024 * 1024)
#define AS_KUBE_PODS_PAGE           500
#define AS_KUBE_PODS_PAGE_BYTES_MAX ((size_t)32 * 1024 * 1024)
#define AS_KUBE_PODS_PAGES_MAX      200
#define AS_KUBE_PODS_TIMEOUT_US     (30 * AS_US_PER_S)

/* Pods out of watches: more targets than this need their pods; how long a target counts, and a
 * namespace is watched, after the last need; namespaces, and memory of their pods, in a cluster;
 * how long a namespace is not watched whose pods do not fit or whose watch is refused. */
#define AS_POD_WATCH_TARGETS    100
#define AS_POD_WATCH_KEEP_US    (10 * AS_US_PER_MIN)
#define AS_POD_WATCH_NAMESPACES 100
#define AS_POD_WATCH_BYTES      ((size_t)32 * 1024 * 1024)
#define AS_POD_WATCH_CLOSED_US  (5 * AS_US_PER_MIN)

/* Who else sizes the targets of a cluster: how often it is looked, also after a failure; objects in
 * one namespace; namespaces and targets that are remembered, and for how long after their last
 * observation. Metadata of one object. */
#define AS_KUBE_OTHERS_EVERY_US       (10 * AS_US_PER_MIN)
#define AS_KUBE_OTHERS_MAX            5000
#define AS_KUBE_OTHERS_NAMESPACES_MAX 1000
#define AS_KUBE_OTHERS_TARGETS_MAX    10000
#define AS_KUBE_OTHERS_KEEP_US        (30 * AS_US_PER_MIN)
#define AS_KUBE_METADATA_MAX          ((size_t)2 * 1024 * 1024)

/* Nodes of a cluster; pods on one node; lists of pods that are read at a time; and the time for all
 * of it. */
#define AS_NODES_MAX        20000
#define AS_NODE_PODS_MAX    2000
#define AS_NODES_PARALLEL   4
#define AS_NODES_TIMEOUT_US (2 * AS_US_PER_MIN)

/* Draining the nodes of one cluster. */
#define AS_DRAINS_MAX        5                  /* nodes whose pods are evicted, at a time */
#define AS_DRAIN_LOOKS_MAX   16                 /* nodes that are looked at or marked, at a time */
#define AS_DRAIN_POLL_US     (2 * AS_US_PER_S)  /* between two tries, or looks for evicted pods */
#define AS_DRAIN_POLL_MAX_US (30 * AS_US_PER_S) /* at most, if the server asks for time */
#define AS_DRAIN_UNDO_TRIES  10
#define AS_DRAIN_RECOVER_US  AS_US_PER_MIN /* until the next look for nodes left behind */
/* A pod that is being deleted counts as gone so long after the end of its grace period, as in
 * Cluster Autoscaler. */
#define AS_DRAIN_LOST_POD_US (30 * AS_US_PER_S)
#define AS_KUBE_NODE_MAX     ((size_t)4 * 1024 * 1024) /* bytes of one Node */

/* Nodes that are marked to leave. */
#define AS_LEAVE_STEP_US  AS_US_PER_S        /* how often due steps are begun */
#define AS_LEAVE_AGAIN_US (15 * AS_US_PER_S) /* until the next try, or look whether it is empty */
/* No deletion is sent so long after the mark of an earlier process was found: that process may have
 * sent one. */
#define AS_LEAVE_FOUND_US (30 * AS_US_PER_S)
/* Marks of earlier versions name no target: after this time nobody goes on with such a node. */
#define AS_LEAVE_ORPHAN_US (5 * AS_US_PER_MIN)

/* Pods that are resized one by one: how often one is looked at, and how long its kubelet has to
 * answer; tries after another writer's changes. */
#define AS_KUBE_RESIZE_LOOK_US AS_US_PER_S
#define AS_KUBE_RESIZE_WAIT_US (10 * AS_US_PER_S)
#define AS_KUBE_RESIZE_TRIES   4

/* Events on scaled objects: requests at a time, and per second on average (with a burst). */
#define AS_KUBE_EVENTS_IN_FLIGHT 16
#define AS_KUBE_EVENTS_PER_S     10
#define AS_KUBE_EVENTS_BURST     50
#define AS_KUBE_REMEMBERED_UIDS  4096

/*
 * A copy of a scale request, which a port's caller lends only for the call.
 */

void as_scale_request_copy(const struct as_scale_request *request,
                           struct as_scale_request *copy_out);
void as_scale_request_deinit(struct as_scale_request *copy);

#endif
