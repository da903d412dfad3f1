/*
 * Codecs for the resources of one container: of a pod template with the progress of its rollout,
 * and of pods that are resized in place (Kubernetes 1.33 and later). Pure; ignores unknown members.
 *
 * Decoders: 0; or -EBADMSG with an error that names the field; or an outcome of their own.
 */
#ifndef ALERTSCALER_SRC_KUBE_KUBERNETES_RESOURCES_H
#define ALERTSCALER_SRC_KUBE_KUBERNETES_RESOURCES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/arena.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/error.h>
#include <alertscaler/base/quantity.h>
#include <alertscaler/decide/observation.h>

/* On a workload: what the last change of its template replaced, so that it can be put back. */
#define AS_RESIZED_ANNOTATION "alertscaler.io/resized"

#define AS_KUBE_STRATEGIC_MERGE "application/strategic-merge-patch+json" /* patches below */

/* ---- amounts ---- */

struct as_kube_amounts { /* quantities, as written; "": absent */
    char request[AS_QUANTITY_MAX + 1], limit[AS_QUANTITY_MAX + 1];
};

/* The request in units, rounded up. Where the limit stays, *max_out is the largest size whose
 * request is not above it; else -1. 0; -ENOENT: no request; -ERANGE: more than 2^31-1 units. */
int as_kube_amounts_count(const struct as_kube_amounts *amounts, enum as_resource resource,
                          const struct as_unit *unit, bool keep_limit, int32_t *size_out,
                          int32_t *max_out, struct as_error *error) AS_MUST_USE;

/*
 * The amounts of another size. A limit that is not kept stays in the ratio of `base` (where the
 * ratio comes from: its request and its limit), rounded up to the unit. 0; -ERANGE: the request
 * would be above the limit that is kept, or the limit would be too large.
 */
int as_kube_amounts_resize(const struct as_kube_amounts *base, enum as_resource resource,
                           const struct as_unit *unit, bool keep_limit, int32_t size,
                           struct as_kube_amounts *amounts_out, struct as_error *error) AS_MUST_USE;

/* ---- workloads ---- */

struct as_kube_workload_kind { /* a row of the kinds whose pods can be sized */
    const char *kind, *plural;
    bool rolls; /* a change of its template replaces its pods */
};

/* NULL: not such a kind. */
const struct as_kube_workload_kind *as_kube_workload_kind_find(const char *kind);

struct as_kube_part { /* what of a pod is sized; borrowed */
    const char *container;
    enum as_resource resource;
};

struct as_kube_rollout {
    bool is_running;
    bool has_failed;  /* its progressDeadlineSeconds have passed */
    bool has_verdict; /* its controller watches the deadline, and says when it has passed */
    int32_t updated;  /* pods with the present template */
    char message[AS_MESSAGE_SIZE];
};

struct as_kube_workload {
    char uid[AS_UID_SIZE], version[AS_VERSION_SIZE];
    int32_t replicas;               /* wanted */
    bool is_init;                   /* the container is one of initContainers, */
    bool is_sidecar;                /* and keeps running beside the others */
    bool rolls;                     /* a change of the template rolls out now */
    struct as_kube_amounts amounts; /* of the template */
    bool has_former;                /* the annotation has amounts of this part */
    struct as_kube_amounts former;  /* before the last change */
    struct as_kube_rollout rollout;
    char *selector; /* as a labelSelector; owned; NULL: none */
};

#define AS_KUBE_NO_CONTAINER 1 /* the error names those that are there */
int as_kube_workload_decode(const struct as_kube_workload_kind *kind, const char *json, size_t size,
                            const struct as_kube_part *part, struct as_kube_workload *workload_out,
                            struct as_error *error) AS_MUST_USE;
void as_kube_workload_deinit(struct as_kube_workload *workload);

/* A strategic merge patch, on condition of the version. `former` NULL: removes the annotation. */
void as_kube_template_patch_encode(const struct as_kube_part *part,
                                   const struct as_kube_workload *workload,
                                   const struct as_kube_amounts *amounts,
                                   const struct as_kube_amounts *former, struct as_buf *out);

/* ---- pods ---- */

enum as_kube_resize {
    AS_KUBE_RESIZE_NONE,        /* nothing is said */
    AS_KUBE_RESIZE_IN_PROGRESS, /* PodResizeInProgress */
    AS_KUBE_RESIZE_DEFERRED,    /* PodResizePending: no room now, tried again */
    AS_KUBE_RESIZE_INFEASIBLE   /* PodResizePending: never on this node */
};

struct as_kube_sized_pod {
    const char *name;
    char version[AS_VERSION_SIZE];
    as_maybe_time created;
    bool is_living; /* it is neither deleted nor ended, and belongs to the workload */
    bool is_bound;  /* to a node, so that a kubelet answers */
    bool has_container;
    bool is_init, is_sidecar; /* as in as_kube_workload */
    bool restarts;            /* resizePolicy: the container is restarted */
    bool is_answered;         /* the kubelet has seen the present spec */
    bool is_silent; /* its kubelet has not said what it granted: it cannot be resized yet */
    struct as_kube_amounts amounts; /* wanted */
    struct as_kube_amounts granted; /* by the kubelet; "": not said */
    enum as_kube_resize resize;
    const char *message; /* of the condition: "Deferred: ...", or "" */
};

struct as_kube_sized_pods {
    struct as_kube_part part;
    const char *kind, *name, *uid; /* of the workload; borrowed */
    size_t max;                    /* pods; more is -E2BIG */
    size_t count, capacity;
    struct as_kube_sized_pod *items; /* those that are living and have the container */
    size_t without, silent; /* left out: living ones that lack the container; that are silent */
    struct as_arena texts;
};

/* As as_kube_pods_decode. */
int as_kube_sized_pods_decode(struct as_kube_sized_pods *pods, const char *json, size_t size,
                              char **next_out, struct as_error *error) AS_MUST_USE;
void as_kube_sized_pods_finish(struct as_kube_sized_pods *pods); /* sorts, counts the silent */
void as_kube_sized_pods_clear(struct as_kube_sized_pods *pods);
void as_kube_sized_pods_deinit(struct as_kube_sized_pods *pods);

/* One Pod; its texts are kept in pods->texts. */
int as_kube_sized_pod_decode(struct as_kube_sized_pods *pods, const char *json, size_t size,
                             struct as_kube_sized_pod *pod_out, struct as_error *error) AS_MUST_USE;

/* What its kubelet has granted while a resize is deferred or infeasible, else the request. */
const struct as_kube_amounts *as_kube_sized_pod_get(const struct as_kube_sized_pod *pod);

/* A strategic merge patch for the subresource `resize`, on condition of the pod's version. */
void as_kube_resize_patch_encode(const struct as_kube_part *part,
                                 const struct as_kube_sized_pod *pod,
                                 const struct as_kube_amounts *amounts, struct as_buf *out);
const char *as_kube_resource_get_word(enum as_resource resource); /* "cpu", "memory" */

#endif
