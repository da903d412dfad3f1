/*
 * Objects of a Kubernetes API server into the facts of a cluster (cluster/cluster_facts.h): one
 * Node, Pod or PodDisruptionBudget (policy/v1) as a watch delivers it. Fields that facts do not
 * need are skipped. Pure.
 *
 * JSON, or Protocol Buffers: the message itself, without the envelope (k8s\0, runtime.Unknown). The
 * numbers of its fields are those of generated.proto in k8s.io/api (core/v1, policy/v1) and
 * k8s.io/apimachinery (pkg/apis/meta/v1, pkg/api/resource). Both forms give the same facts.
 *
 * Requests are Kubernetes' PodRequests (k8s.io/component-helpers, resource/helpers.go). Who may be
 * evicted is what Cluster Autoscaler's documentation says, as in kube/kube_nodes.h.
 */
#ifndef ALERTSCALER_KUBE_KUBE_FACTS_H
#define ALERTSCALER_KUBE_KUBE_FACTS_H

#include <stddef.h>

#include <alertscaler/base/arena.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>
#include <alertscaler/cluster/cluster_facts.h>
#include <alertscaler/kube/kube_stream.h>

/* Bytes of one object; the API server refuses more than about 1.5 MiB. */
#define AS_KUBE_FACT_BYTES_MAX ((size_t)8 * 1024 * 1024)

/* Taints of nodes that leave. */
#define AS_NODE_TAINT_CLUSTER_AUTOSCALER "ToBeDeletedByClusterAutoscaler"
#define AS_NODE_TAINT_ESCALATOR          "atlassian.com/escalator"

struct as_kube_bytes { /* of one object; borrowed for the call */
    enum as_kube_form form;
    const void *data;
    size_t size;
};

/*
 * Makes or replaces the object in the facts; a pod that has finished (Succeeded, Failed) is deleted
 * there. `scratch` is the caller's, so that its memory is used again; it is reset.
 *
 * 0; -EBADMSG with an error that names object and field, the facts being as before; or -E2BIG,
 * where the facts have no room for it. Lists and maps that are read have at most 1,024 entries.
 */
int as_kube_fact_put(struct as_cluster_facts *facts, enum as_cluster_kind kind,
                     const struct as_kube_bytes *bytes, struct as_arena *scratch,
                     struct as_error *error) AS_MUST_USE;

/* Deletes the object, of which only the name is read. 0 or -EBADMSG. */
int as_kube_fact_delete(struct as_cluster_facts *facts, enum as_cluster_kind kind,
                        const struct as_kube_bytes *bytes, struct as_error *error) AS_MUST_USE;

#endif
