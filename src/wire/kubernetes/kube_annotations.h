/*
 * Annotations, ours and Cluster Autoscaler's, that say which nodes and pods stay:
 * https://github.com/kubernetes/autoscaler/blob/master/cluster-autoscaler/FAQ.md
 */
#ifndef ALERTSCALER_SRC_WIRE_KUBERNETES_KUBE_ANNOTATIONS_H
#define ALERTSCALER_SRC_WIRE_KUBERNETES_KUBE_ANNOTATIONS_H

#include <stdbool.h>
#include <string.h>

/* Of nodes; "true" keeps the node. */
#define KEEP_CLUSTER_AUTOSCALER "cluster-autoscaler.kubernetes.io/scale-down-disabled"
#define KEEP_ESCALATOR          "atlassian.com/no-delete" /* with any value */
#define KEEP_OURS               "alertscaler.io/scale-down-disabled"

/* Of pods. */
#define SAFE_TO_EVICT      "cluster-autoscaler.kubernetes.io/safe-to-evict"
#define SAFE_LOCAL_VOLUMES "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"
#define DAEMONSET_POD      "cluster-autoscaler.kubernetes.io/daemonset-pod"
#define MIRROR_POD         "kubernetes.io/config.mirror"

/* Whether a list with commas has a name. `list` may be NULL. */
static inline bool annotation_has_name(const char *list, const char *name)
{
    const size_t size = strlen(name);
    while (list && *list) {
        list += strspn(list, ", ");
        const size_t part = strcspn(list, ", ");
        if (part == size && part > 0 && strncmp(list, name, size) == 0)
            return true;
        list += part;
    }
    return false;
}

#endif
