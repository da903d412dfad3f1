/*
 * Codecs for the nodes of a cluster and the pods on them: what choosing and draining need. Pure.
 * What the other side adds and we do not need is ignored.
 *
 * Decoders: 0, or -EBADMSG with an error that names object and field, or -E2BIG where a list has
 * more than the caller has room for. Lists are read page by page, as in kubernetes_pods.h.
 */
#ifndef ALERTSCALER_WIRE_KUBE_NODES_H
#define ALERTSCALER_WIRE_KUBE_NODES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/arena.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/error.h>
#include <alertscaler/base/time.h>
#include <alertscaler/core/action.h>

#define AS_NODE_TAINT           "alertscaler.io/draining" /* NoSchedule */
#define AS_NODE_MARK_ANNOTATION "alertscaler.io/drain"    /* a mark, as JSON */

/* What we did to a node, and why; texts are never NULL. */
struct as_kube_node_mark {
    const char *owner, *decision;
    as_wall_time at;
    bool has_cordoned; /* it was not cordoned before */
};

struct as_kube_node {
    const char *name;
    const char *provider_id; /* "" where it has none */
    const char *zone;        /* by its labels; "" where they say none */
    as_maybe_time created;
    bool is_ready;
    bool is_cordoned;
    bool is_marked; /* the mark is there, and can be read */
    struct as_kube_node_mark mark;
    const char *keep; /* why it may not leave, by an annotation of its: Cluster Autoscaler's or
                         ours, scale-down-disabled: "true"; NULL */
    double allocatable[AS_RESOURCE_COUNT]; /* NaN: not told */
};

struct as_kube_nodes {
    size_t max; /* more is an error */
    size_t count, capacity;
    struct as_kube_node *items;
    struct as_arena texts;
};

#define AS_KUBE_NODES_INIT(maximum) ((struct as_kube_nodes){.max = (maximum)})

void as_kube_nodes_clear(struct as_kube_nodes *nodes); /* for a list that begins anew */
void as_kube_nodes_deinit(struct as_kube_nodes *nodes);
int as_kube_nodes_decode(struct as_kube_nodes *nodes, const char *json, size_t size,
                         char **next_out, struct as_error *error) AS_MUST_USE;

/* One Node; texts are memory of the arena. */
int as_kube_node_decode(const char *json, size_t size, struct as_arena *arena,
                        struct as_kube_node *node_out, struct as_error *error) AS_MUST_USE;

/*
 * JSON merge patches for a Node as it was read: cordon, taint and mark it (`mark.has_cordoned` is
 * found out here); take back what the mark says, no more. They name the resourceVersion, so that
 * the API server refuses them where the node has changed since.
 */
int as_kube_node_mark_encode(const char *json, size_t size, const struct as_kube_node_mark *mark,
                             struct as_buf *patch, struct as_error *error) AS_MUST_USE;
int as_kube_node_unmark_encode(const char *json, size_t size, struct as_buf *patch,
                               struct as_error *error) AS_MUST_USE;

enum as_kube_pod_fate {
    AS_KUBE_POD_EVICT,
    AS_KUBE_POD_GOING, /* it is being deleted */
    AS_KUBE_POD_STAYS  /* of a DaemonSet or annotated so, a mirror pod, or finished */
};

struct as_kube_node_pod {
    const char *namespace_, *name, *uid;
    enum as_kube_pod_fate fate;
    as_maybe_time gone_at; /* GOING: when its grace is over */
    /* Why it may not be evicted, as Cluster Autoscaler has it: "shop/db-0: annotated ..."; NULL */
    const char *blocking;
    double requests[AS_RESOURCE_COUNT]; /* as the scheduler counts them; 0 where none is said */
};

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
 * where pods have no such subresource. */
int as_kube_eviction_version_decode(const char *json, size_t size,
                                    char version_out[AS_KUBE_EVICTION_VERSION_SIZE],
                                    struct as_error *error) AS_MUST_USE;

/* Of this very pod (by its uid); grace_s -1: the pod's own. */
void as_kube_eviction_encode(const struct as_kube_node_pod *pod, const char *api_version,
                             int64_t grace_s, struct as_buf *out);

#endif
