/*
 * Which nodes and pods stay: by annotations, ours and Cluster Autoscaler's, and by what a pod is:
 * https://github.com/kubernetes/autoscaler/blob/master/cluster-autoscaler/FAQ.md
 */
#ifndef ALERTSCALER_SRC_KUBE_KUBE_ANNOTATIONS_H
#define ALERTSCALER_SRC_KUBE_KUBE_ANNOTATIONS_H

#include <alertscaler/base/arena.h>
#include <alertscaler/kube/kube_nodes.h>

#include <alertscaler/doc/json_tree.h>

/* Of nodes; "true" keeps the node. */
#define KEEP_CLUSTER_AUTOSCALER "cluster-autoscaler.kubernetes.io/scale-down-disabled"
#define KEEP_ESCALATOR          "atlassian.com/no-delete" /* any text */
#define KEEP_OURS               "alertscaler.io/scale-down-disabled"

/* Of pods. */
#define SAFE_TO_EVICT      "cluster-autoscaler.kubernetes.io/safe-to-evict"
#define SAFE_LOCAL_VOLUMES "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"
#define DAEMONSET_POD      "cluster-autoscaler.kubernetes.io/daemonset-pod"
#define MIRROR_POD         "kubernetes.io/config.mirror"

/* Why a node stays: "it is annotated ..."; NULL: it may go. */
const char *kube_find_keep(const struct tree_value *annotations, struct as_arena *arena);

/* Our mark on a node. False if there is no valid one. */
bool kube_read_mark(const struct tree_value *annotations, struct as_arena *arena,
                    struct as_kube_node_mark *mark);

/* Of a pod. The kind of its controller; NULL: none. */
const char *kube_find_controller(const struct tree_value *metadata);
/* Whether Kubernetes itself makes a pod of such a controller anew; NULL: no controller. As for
 * Cluster Autoscaler's --skip-nodes-with-custom-controller-pods. */
bool kube_is_replicated(const char *controller);
/* The name of a volume that would be lost with the node; NULL: none. */
const char *kube_find_local_volume(const struct tree_value *spec,
                                   const struct tree_value *annotations);

#endif
