/*
 * Tables of fields: see the header. The numbers are those of generated.proto in k8s.io/api 0.37 and
 * k8s.io/apimachinery 0.37, where they never change.
 */
#include "kube_parts.h"

#include <alertscaler/kube/kube_facts.h>
#include <alertscaler/kube/kube_nodes.h>

#include "kube_annotations.h"

static const struct tree_part nothing[] = {{.name = NULL}};

/* meta/v1 */

static const struct tree_part owner[] = {
    {"kind", 1, KUBE_TEXT, NULL},
    {"controller", 6, KUBE_BOOLEAN, NULL},
    {.name = NULL},
};

static const struct tree_part label_requirement[] = {
    {"key", 1, KUBE_TEXT, NULL},
    {"operator", 2, KUBE_TEXT, NULL},
    {"values", 3, KUBE_TEXTS, NULL},
    {.name = NULL},
};

static const struct tree_part label_selector[] = {
    {"matchLabels", 1, KUBE_TEXT_MAP, NULL},
    {"matchExpressions", 2, KUBE_OBJECTS, label_requirement},
    {.name = NULL},
};

static const struct tree_part name_only[] = {
    {"name", 1, KUBE_TEXT, NULL},
    {"namespace", 3, KUBE_TEXT, NULL},
    {.name = NULL},
};

const struct tree_part kube_name_parts[] = {
    {"metadata", 1, KUBE_OBJECT, name_only},
    {.name = NULL},
};

/* A node has no namespace: a bad one is not read. */
static const struct tree_part node_name_only[] = {
    {"name", 1, KUBE_TEXT, NULL},
    {.name = NULL},
};

const struct tree_part kube_node_name_parts[] = {
    {"metadata", 1, KUBE_OBJECT, node_name_only},
    {.name = NULL},
};

/* Conditions of nodes and pods: core/v1's NodeCondition and PodCondition have the same numbers. */
static const struct tree_part condition[] = {
    {"type", 1, KUBE_TEXT, NULL},
    {"status", 2, KUBE_TEXT, NULL},
    {"lastTransitionTime", 4, KUBE_TIME, NULL},
    {"reason", 5, KUBE_TEXT, NULL},
    {.name = NULL},
};

/* Node */

static const struct tree_part node_annotations[] = {
    {.name = AS_NODE_MARK_ANNOTATION},
    {.name = KEEP_CLUSTER_AUTOSCALER},
    {.name = KEEP_OURS},
    {.name = KEEP_ESCALATOR},
    {.name = NULL},
};

static const struct tree_part node_metadata[] = {
    {"name", 1, KUBE_TEXT, NULL},
    {"creationTimestamp", 8, KUBE_TIME, NULL},
    {"labels", 11, KUBE_TEXT_MAP, NULL},
    {"annotations", 12, KUBE_TEXT_MAP, node_annotations},
    {.name = NULL},
};

static const struct tree_part taint[] = {
    {"key", 1, KUBE_TEXT, NULL},
    {"value", 2, KUBE_TEXT, NULL},
    {"effect", 3, KUBE_TEXT, NULL},
    {.name = NULL},
};

static const struct tree_part node_spec[] = {
    {"providerID", 3, KUBE_TEXT, NULL},
    {"unschedulable", 4, KUBE_BOOLEAN, NULL},
    {"taints", 5, KUBE_OBJECTS, taint},
    {.name = NULL},
};

static const struct tree_part node_status[] = {
    {"capacity", 1, KUBE_QUANTITY_MAP, NULL},
    {"allocatable", 2, KUBE_QUANTITY_MAP, NULL},
    {"conditions", 4, KUBE_OBJECTS, condition},
    {.name = NULL},
};

const struct tree_part kube_node_parts[] = {
    {"metadata", 1, KUBE_OBJECT, node_metadata},
    {"spec", 2, KUBE_OBJECT, node_spec},
    {"status", 3, KUBE_OBJECT, node_status},
    {.name = NULL},
};

/* Pod */

static const struct tree_part pod_annotations[] = {
    {.name = SAFE_TO_EVICT}, {.name = SAFE_LOCAL_VOLUMES},
    {.name = DAEMONSET_POD}, {.name = MIRROR_POD},
    {.name = NULL},
};

static const struct tree_part pod_metadata[] = {
    {"name", 1, KUBE_TEXT, NULL},
    {"namespace", 3, KUBE_TEXT, NULL},
    {"creationTimestamp", 8, KUBE_TIME, NULL},
    {"deletionTimestamp", 9, KUBE_TIME, NULL},
    {"labels", 11, KUBE_TEXT_MAP, NULL},
    {"annotations", 12, KUBE_TEXT_MAP, pod_annotations},
    {"ownerReferences", 13, KUBE_OBJECTS, owner},
    {.name = NULL},
};

static const struct tree_part empty_dir[] = {
    {"medium", 1, KUBE_TEXT, NULL},
    {.name = NULL},
};

static const struct tree_part volume_source[] = {
    {"hostPath", 1, KUBE_OBJECT, nothing},
    {"emptyDir", 2, KUBE_OBJECT, empty_dir},
    {"persistentVolumeClaim", 10, KUBE_OBJECT, nothing},
    {"csi", 28, KUBE_OBJECT, nothing},
    {"ephemeral", 29, KUBE_OBJECT, nothing},
    {.name = NULL},
};

static const struct tree_part volume[] = {
    {"name", 1, KUBE_TEXT, NULL},
    {"volumeSource", 2, TREE_PART_INLINE, volume_source},
    {.name = NULL},
};

static const struct tree_part resources[] = {
    {"requests", 2, KUBE_QUANTITY_MAP, NULL},
    {.name = NULL},
};

static const struct tree_part port[] = {
    {"hostPort", 2, KUBE_NUMBER, NULL},
    {"containerPort", 3, KUBE_NUMBER, NULL},
    {"protocol", 4, KUBE_TEXT, NULL},
    {"hostIP", 5, KUBE_TEXT, NULL},
    {.name = NULL},
};

static const struct tree_part container[] = {
    {"ports", 6, KUBE_OBJECTS, port},
    {"resources", 8, KUBE_OBJECT, resources},
    {"restartPolicy", 24, KUBE_TEXT, NULL},
    {.name = NULL},
};

static const struct tree_part toleration[] = {
    {"key", 1, KUBE_TEXT, NULL},
    {"operator", 2, KUBE_TEXT, NULL},
    {"value", 3, KUBE_TEXT, NULL},
    {"effect", 4, KUBE_TEXT, NULL},
    {.name = NULL},
};

/* NodeSelectorRequirement has the numbers of LabelSelectorRequirement. */
static const struct tree_part node_term[] = {
    {"matchExpressions", 1, KUBE_OBJECTS, label_requirement},
    {"matchFields", 2, KUBE_OBJECTS, label_requirement},
    {.name = NULL},
};

static const struct tree_part node_selector[] = {
    {"nodeSelectorTerms", 1, KUBE_OBJECTS, node_term},
    {.name = NULL},
};

static const struct tree_part node_affinity[] = {
    {"requiredDuringSchedulingIgnoredDuringExecution", 1, KUBE_OBJECT, node_selector},
    {.name = NULL},
};

static const struct tree_part affinity_term[] = {
    {"labelSelector", 1, KUBE_OBJECT, label_selector},
    {"namespaces", 2, KUBE_TEXTS, NULL},
    {"topologyKey", 3, KUBE_TEXT, NULL},
    {"namespaceSelector", 4, KUBE_OBJECT, label_selector},
    {.name = NULL},
};

static const struct tree_part pod_affinity[] = {
    {"requiredDuringSchedulingIgnoredDuringExecution", 1, KUBE_OBJECTS, affinity_term},
    {.name = NULL},
};

static const struct tree_part affinity[] = {
    {"nodeAffinity", 1, KUBE_OBJECT, node_affinity},
    {"podAffinity", 2, KUBE_OBJECT, pod_affinity},
    {"podAntiAffinity", 3, KUBE_OBJECT, pod_affinity},
    {.name = NULL},
};

static const struct tree_part spread[] = {
    {"whenUnsatisfiable", 3, KUBE_TEXT, NULL},
    {.name = NULL},
};

static const struct tree_part pod_spec[] = {
    {"volumes", 1, KUBE_OBJECTS, volume},
    {"containers", 2, KUBE_OBJECTS, container},
    {"nodeSelector", 7, KUBE_TEXT_MAP, NULL},
    {"nodeName", 10, KUBE_TEXT, NULL},
    {"hostNetwork", 11, KUBE_BOOLEAN, NULL},
    {"affinity", 18, KUBE_OBJECT, affinity},
    {"initContainers", 20, KUBE_OBJECTS, container},
    {"tolerations", 22, KUBE_OBJECTS, toleration},
    {"priority", 25, KUBE_NUMBER, NULL},
    {"preemptionPolicy", 31, KUBE_TEXT, NULL},
    {"overhead", 32, KUBE_QUANTITY_MAP, NULL},
    {"topologySpreadConstraints", 33, KUBE_OBJECTS, spread},
    {"resourceClaims", 39, KUBE_OBJECTS, nothing},
    {"resources", 40, KUBE_OBJECT, resources},
    {.name = NULL},
};

static const struct tree_part pod_status[] = {
    {"phase", 1, KUBE_TEXT, NULL},
    {"conditions", 2, KUBE_OBJECTS, condition},
    {"nominatedNodeName", 11, KUBE_TEXT, NULL},
    {.name = NULL},
};

const struct tree_part kube_pod_parts[] = {
    {"metadata", 1, KUBE_OBJECT, pod_metadata},
    {"spec", 2, KUBE_OBJECT, pod_spec},
    {"status", 3, KUBE_OBJECT, pod_status},
    {.name = NULL},
};

/* PodDisruptionBudget */

static const struct tree_part budget_spec[] = {
    {"selector", 2, KUBE_OBJECT, label_selector},
    {.name = NULL},
};

static const struct tree_part budget_status[] = {
    {"disruptionsAllowed", 3, KUBE_NUMBER, NULL},
    {.name = NULL},
};

const struct tree_part kube_budget_parts[] = {
    {"metadata", 1, KUBE_OBJECT, name_only},
    {"spec", 2, KUBE_OBJECT, budget_spec},
    {"status", 3, KUBE_OBJECT, budget_status},
    {.name = NULL},
};
