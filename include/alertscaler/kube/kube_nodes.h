/*
 * Codecs for the nodes of a cluster and their pods: what choosing and draining nodes need. Pure.
 * Unknown members are ignored.
 *
 * Decoders: 0, or -EBADMSG with an error that names object and field, or -E2BIG if a list is longer
 * than the caller's limit. Lists are read page by page, as in kube_pods.h.
 */
#ifndef ALERTSCALER_KUBE_KUBE_NODES_H
#define ALERTSCALER_KUBE_KUBE_NODES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/arena.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/error.h>
#include <alertscaler/base/time.h>
#include <alertscaler/cluster/pool.h>
#include <alertscaler/model/action.h>

#define AS_NODE_TAINT           "alertscaler.io/draining" /* NoSchedule */
#define AS_NODE_MARK_ANNOTATION "alertscaler.io/drain"    /* the mark, as JSON */

/* What we did to a node, and why. Texts are never NULL. */
struct as_kube_node_mark {
    const char *owner, *decision;
    const char *target; /* id of the group's target; "": not said, by an earlier version */
    as_wall_time at;
    bool has_cordoned; /* we cordoned it: it was not cordoned before */
};

struct as_kube_node {
    const char *name;
    const char *provider_id; /* "": unknown */
    const char *zone;        /* from its labels; "": unknown */
    as_maybe_time created;
    bool is_ready;
    bool is_cordoned;
    bool is_marked; /* it has a valid mark */
    struct as_kube_node_mark mark;
    const char *keep; /* the annotation that forbids its removal, Cluster Autoscaler's or ours
                         (scale-down-disabled: "true") or Escalator's (no-delete); or NULL */
    double allocatable[AS_RESOURCE_COUNT]; /* NaN: unknown */
};

struct as_kube_nodes {
    size_t max; /* more is an error */
    size_t count, capacity;
    struct as_kube_node *items;
    struct as_arena texts;
};

#define AS_KUBE_NODES_INIT(maximum) ((struct as_kube_nodes){.max = (maximum)})

void as_kube_nodes_clear(struct as_kube_nodes *nodes); /* before a list is read again */
void as_kube_nodes_deinit(struct as_kube_nodes *nodes);
int as_kube_nodes_decode(struct as_kube_nodes *nodes, const char *json, size_t size,
                         char **next_out, struct as_error *error) AS_MUST_USE;

/* One Node; its texts are in the arena. */
int as_kube_node_decode(const char *json, size_t size, struct as_arena *arena,
                        struct as_kube_node *node_out, struct as_error *error) AS_MUST_USE;

/*
 * JSON merge patches for a Node as it was read: cordon, taint and mark it (computes the written
 * `has_cordoned`); undo what the mark says, nothing else. They contain the resourceVersion, so that
 * the API server refuses them if the node has changed since.
 */
int as_kube_node_mark_encode(const char *json, size_t size, const struct as_kube_node_mark *mark,
                             struct as_buf *patch, struct as_error *error) AS_MUST_USE;
int as_kube_node_unmark_encode(const char *json, size_t size, struct as_buf *patch,
                               struct as_error *error) AS_MUST_USE;

enum as_kube_pod_fate {
    AS_KUBE_POD_EVICT,
    AS_KUBE_POD_GOING, /* it is being deleted */
    AS_KUBE_POD_STAYS  /* of a DaemonSet, a mirror pod, finished, or annotated to stay */
};

struct as_kube_node_pod {
    const char *namespace_, *name, *uid;
    enum as_kube_pod_fate fate;
    as_maybe_time gone_at; /* GOING: end of its grace period */
    /* Why it must not be evicted, by Cluster Autoscaler's rules: "shop/db-0: annotated ..."; or
     * NULL */
    const char *blocking;
    unsigned keep; /* of enum as_keep: `blocking` counts only if `nodes.keep` has it; 0: always */
    double requests[AS_RESOURCE_COUNT]; /* as the scheduler counts them; 0 if it requests nothing */
};

/* Whether the pod keeps its node; `keep`: of enum as_keep, by `nodes.keep`. */
static inline bool as_kube_node_pod_blocks(const struct as_kube_node_pod *pod, unsigned keep)
{
    return pod->blocking && (pod->keep == 0 || (pod->keep & keep) != 0);
}

struct as_kube_node_pods {
    size_t max; /* more is an error */
    size_t count, capacity;
    struct as_kube_node_pod *items;
    struct as_arena texts;
};

#define AS_KUBE_NODE_PODS_INIT(maximum) ((struct as_kube_node_pods){.max = (maximum)})

void as_kube_node_pods_clear(struct as_kube_node_pods *pods);
void as_kube_node_pods_deinit(struct as_kube_node_pods *pods);
int as_kube_node_pods_decode(struct as_kube_node_pods *pods, const char *json, size_t size,
                             char **next_out, struct as_error *error) AS_MUST_USE;

#define AS_KUBE_EVICTION_VERSION_SIZE 32

/* From the APIResourceList of v1: the apiVersion of Eviction, "policy/v1" or "policy/v1beta1"; ""
 * if pods have no such subresource. */
int as_kube_eviction_version_decode(const char *json, size_t size,
                                    char version_out[AS_KUBE_EVICTION_VERSION_SIZE],
                                    struct as_error *error) AS_MUST_USE;

/* Evicts only the pod with this uid; grace_s -1: the pod's own grace period. */
void as_kube_eviction_encode(const struct as_kube_node_pod *pod, const char *api_version,
                             int64_t grace_s, struct as_buf *out);

#endif
