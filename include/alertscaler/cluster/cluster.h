/*
 * A cluster's nodes and pods, as decisions about nodes read them. Pure data: who reads them from an
 * API server fills them in, who decides borrows them.
 *
 * Amounts are whole: millicores, bytes, pieces. What is asked for is rounded up, what there is is
 * rounded down. Amounts saturate at 2^62.
 *
 * Long because nodes, pods and budgets refer to each other and are read together.
 */
#ifndef ALERTSCALER_CLUSTER_CLUSTER_H
#define ALERTSCALER_CLUSTER_CLUSTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/arena.h>
#include <alertscaler/base/time.h>
#include <alertscaler/model/labels.h>

/* A pod's state besides its resources, in Kubernetes' words. */
enum as_pod_phase {
    AS_POD_PENDING,
    AS_POD_RUNNING,
    AS_POD_SUCCEEDED,
    AS_POD_FAILED,
    AS_POD_UNKNOWN
};

/* Whose a pod is that a target selects. OF_TARGET: the target's, also through its ReplicaSet.
 * OF_OTHER: another object's, or nobody's. OF_GONE: the owner is gone, or it cannot be read. */
enum as_pod_owner { AS_POD_OF_TARGET, AS_POD_OF_OTHER, AS_POD_OF_GONE, AS_POD_OWNER_COUNT };

enum as_tristate { AS_FALSE, AS_TRUE, AS_UNKNOWN };

/* Indices of amounts. Those of extended resources and huge pages begin at AS_RES_NAMED: their
 * meaning is that of one table of names, which the cluster has. */
enum as_res {
    AS_RES_CPU,
    AS_RES_MEMORY,
    AS_RES_EPHEMERAL,
    AS_RES_PODS,
    AS_RES_NAMED,
    AS_RES_MAX = 32
};

#define AS_RES_AMOUNT_MAX ((int64_t)1 << 62)

struct as_res_names {
    size_t count;                 /* of amounts in use: AS_RES_NAMED and those named */
    const char *name[AS_RES_MAX]; /* from AS_RES_NAMED on: "nvidia.com/gpu" */
};

struct as_resources {
    int64_t amount[AS_RES_MAX]; /* 0 where nothing is said */
};

/* sum + amount x count; saturates at 2^62 and at -2^62. */
static inline int64_t as_amount_add(int64_t sum, int64_t amount, uint64_t count)
{
    int64_t product;

    if (__builtin_mul_overflow(amount, count, &product) ||
        __builtin_add_overflow(sum, product, &sum))
        sum = amount < 0 ? INT64_MIN : INT64_MAX;
    if (sum > AS_RES_AMOUNT_MAX)
        return AS_RES_AMOUNT_MAX;
    return sum < -AS_RES_AMOUNT_MAX ? -AS_RES_AMOUNT_MAX : sum;
}

enum as_taint_effect { /* bits: a toleration may be for several */
                       AS_TAINT_NO_SCHEDULE = 1,
                       AS_TAINT_PREFER_NO_SCHEDULE = 2,
                       AS_TAINT_NO_EXECUTE = 4
};

struct as_taint {
    const char *key, *value; /* value "" where none */
    enum as_taint_effect effect;
};

struct as_toleration {
    const char *key;   /* "": every key */
    const char *value; /* of `Equal` */
    bool is_exists;    /* whatever the value */
    unsigned effects;  /* of enum as_taint_effect; none given: all of them */
};

enum as_node_operator {
    AS_NODE_IN,
    AS_NODE_NOT_IN,
    AS_NODE_EXISTS,
    AS_NODE_DOES_NOT_EXIST,
    AS_NODE_GT,
    AS_NODE_LT
};

struct as_node_requirement {
    const char *key; /* of a label; of a field: "metadata.name" */
    enum as_node_operator operator_;
    bool is_field; /* matchFields */
    const char *const *values;
    size_t value_count;
};

struct as_node_term { /* all of them; a term without any matches nothing */
    const struct as_node_requirement *requirements;
    size_t count;
};

struct as_host_port {
    const char *ip;       /* "0.0.0.0" where none is given */
    const char *protocol; /* "TCP", "UDP", "SCTP" */
    uint32_t port;        /* 0 .. 65535 */
};

/* What the predicates do not check (docs/nodes.md): bits. */
enum as_unchecked {
    AS_UNCHECKED_AFFINITY = 1,  /* other required pod affinity or anti-affinity */
    AS_UNCHECKED_SPREAD = 2,    /* topology spread constraints with DoNotSchedule */
    AS_UNCHECKED_VOLUMES = 4,   /* claims, ephemeral and CSI volumes */
    AS_UNCHECKED_CLAIMS = 8,    /* dynamic resources */
    AS_UNCHECKED_RESOURCES = 16 /* more names of resources than AS_RES_MAX */
};

enum as_eviction_class { /* why a pod may be evicted or not, when its node is to leave */
                         AS_EVICTION_ALLOWED,
                         AS_EVICTION_REFUSED,       /* annotated so */
                         AS_EVICTION_SYSTEM,        /* of kube-system, without a budget */
                         AS_EVICTION_LOCAL_STORAGE, /* emptyDir or hostPath */
                         AS_EVICTION_UNREPLICATED,  /* nobody would make it anew */
                         AS_EVICTION_DAEMON,        /* of a DaemonSet: it goes with its node */
                         AS_EVICTION_MIRROR         /* a static pod: it goes with its node */
};

/*
 * What placing and evicting read of a pod. Equal pods are one pod class with a count: who fills pod
 * classes in makes equal ones the same object, so that they compare by address. No owner, no names.
 */
struct as_pod_class {
    struct as_resources requests; /* max(sum of containers, largest init container) + overhead, with
                                     sidecars and pod-level requests; AS_RES_PODS is 1 */
    const struct as_labels *selector; /* nodeSelector; NULL: none */
    bool has_affinity;                /* required node affinity: one of the terms must match */
    const struct as_node_term *terms;
    size_t term_count;
    const struct as_toleration *tolerations;
    size_t toleration_count;
    const struct as_host_port *ports;
    size_t port_count;
    uint64_t loner; /* required anti-affinity by hostname that matches the pod itself: pods with the
                       same number do not share a node; 0: none */
    /* Its namespace, and those of its labels by which budgets select. */
    const struct as_labels *labels;
    const char *namespace_;
    /* The only zone in which it may run, because its claim is there; NULL: anywhere. Volumes are
     * not watched, so the facts do not say it: snapshot_pod_classes.c sets the zone of the pod's
     * node.
     */
    const char *zone;
    int32_t priority;
    bool never_preempts; /* preemptionPolicy: Never */
    unsigned unchecked;  /* of enum as_unchecked */
    enum as_eviction_class eviction;
};

struct as_pod_fact {
    const char *namespace_, *name;
    const struct as_pod_class *pod_class;
    uint32_t node;         /* index into the nodes; AS_NO_NODE: not bound, or to an unknown node */
    uint32_t nominated;    /* the same of the node that preemption nominated */
    bool is_bound;         /* to a node, known or not */
    bool is_unschedulable; /* the scheduler said so: PodScheduled is False, Unschedulable */
    bool is_leaving;       /* it has a deletionTimestamp */
    as_wall_time created;
    as_maybe_time gone_at; /* leaving: when its grace is over */
};
#define AS_NO_NODE UINT32_MAX

/* What a node's taints and annotations say of its leaving; bits. */
enum as_node_leaving {
    AS_NODE_LEAVING_OURS = 1, /* our mark */
    AS_NODE_LEAVING_CLUSTER_AUTOSCALER = 2,
    AS_NODE_LEAVING_ESCALATOR = 4
};

struct as_node_fact {
    const char *name, *provider_id; /* provider_id "" where it has none */
    const struct as_labels *labels;
    const struct as_taint *taints;
    size_t taint_count;
    struct as_resources allocatable, capacity;
    bool has_cpu, has_memory; /* allocatable says them, above 0 */
    bool is_ready, is_cordoned;
    unsigned leaving; /* of enum as_node_leaving */
    const char *keep; /* why it may not leave, by an annotation of its; NULL */
    as_wall_time created;
    as_maybe_time ready_since; /* when its readiness last changed */
    as_maybe_time marked_at;   /* with our mark */
};

struct as_budget_fact { /* PodDisruptionBudget */
    const char *namespace_, *name;
    /* Its selector, as matchers of labels; without any it selects every pod of the namespace;
     * is_nothing: a null selector, which selects none. */
    const struct as_node_requirement *requirements;
    size_t count;
    bool is_nothing;
    int32_t allowed; /* disruptions left now */
};

/* A node is open when it is neither cordoned nor leaving, ready or not. */
static inline bool as_node_is_open(const struct as_node_fact *node)
{
    return !node->is_cordoned && node->leaving == 0;
}

struct as_cluster {
    struct as_res_names resources;
    const struct as_node_fact *nodes; /* ascending by name (bytes) */
    size_t node_count;
    const struct as_pod_fact *pods; /* without finished ones */
    size_t pod_count;
    const struct as_budget_fact *budgets;
    size_t budget_count;
};

/*
 * An index of the pods on each node of a cluster. Pure.
 */

struct as_node_pods {
    const uint32_t *pods;   /* indices of bound pods: by node, then ascending */
    const uint32_t *starts; /* where each node's pods start in `pods`; one more entry: the end */
};

/* Memory of the arena. A pod's node must be a node of the cluster or AS_NO_NODE. */
void as_node_pods_init(struct as_node_pods *pods, const struct as_cluster *cluster,
                       struct as_arena *arena);

/* The indices of the pods on a node. */
static inline const uint32_t *as_node_pods_get(const struct as_node_pods *pods, uint32_t node,
                                               size_t *count_out)
{
    *count_out = pods->starts[node + 1] - pods->starts[node];
    return pods->pods + pods->starts[node];
}

#endif
