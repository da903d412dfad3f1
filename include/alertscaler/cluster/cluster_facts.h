/*
 * What is known of one cluster's nodes, pods and PodDisruptionBudgets, object by object, as a watch
 * tells it; and all of it as a struct as_cluster. Pure.
 *
 * Nothing is known of a kind until its first list has ended, and there is no view until then. A new
 * list of a kind replaces the objects one by one as it comes: what it did not name is gone when it
 * ends. So a view while a kind is listed anew has old and new objects.
 *
 * Of a pod's labels only those are kept by which a budget selects; so budgets are listed first.
 *
 * Memory is limited. Beyond the limit nothing is taken any more and there is no view, until
 * as_cluster_facts_clear.
 */
#ifndef ALERTSCALER_CLUSTER_CLUSTER_FACTS_H
#define ALERTSCALER_CLUSTER_CLUSTER_FACTS_H

#include <stdbool.h>
#include <stddef.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>
#include <alertscaler/base/time.h>
#include <alertscaler/cluster/cluster.h>

struct as_cluster_facts;

#define AS_CLUSTER_FACTS_BYTES                                                                     \
    ((size_t)64 << 20) /* 5,000 nodes with 100,000 pods of 1,000 pod classes */

#define AS_CLUSTER_NAME_MAX 253 /* bytes of a namespace or name: a DNS subdomain; more is a bug */

enum as_cluster_kind {
    AS_CLUSTER_NODES,
    AS_CLUSTER_PODS,
    AS_CLUSTER_BUDGETS,
    AS_CLUSTER_KIND_COUNT
};

struct as_cluster_facts_limits {
    size_t bytes; /* of memory that the facts may take: at least 1 MiB */
};

struct as_cluster_facts *as_cluster_facts_new(const struct as_cluster_facts_limits *limits);
struct as_cluster_facts *as_cluster_facts_free(struct as_cluster_facts *facts);
void as_cluster_facts_clear(struct as_cluster_facts *facts); /* as new */

/* Before a clear or free, which take 20 ms with 100,000 pods: forgets at most so many of the pods.
 * Whether there are more. Ends all views. */
bool as_cluster_facts_forget_pods(struct as_cluster_facts *facts, size_t most);

/* Index of an extended resource or of huge pages in all amounts of these facts; -1: AS_RES_MAX
 * resources are in use. An index keeps its meaning until as_cluster_facts_clear. The name is
 * borrowed. */
int as_cluster_facts_name_resource(struct as_cluster_facts *facts, const char *name) AS_MUST_USE;

void as_cluster_facts_begin_list(struct as_cluster_facts *facts, enum as_cluster_kind kind);
void as_cluster_facts_end_list(struct as_cluster_facts *facts, enum as_cluster_kind kind);

/* There is a budget that selects by a label which was not kept when pods were put: they are to be
 * listed anew. Until then that budget seems to have no pods. */
bool as_cluster_facts_lacks_labels(const struct as_cluster_facts *facts);

/* A pod as it is put: its nodes by their names, which need not be known. */
struct as_pod_put {
    struct as_pod_fact fact; /* without `node`, `nominated` and `is_bound` */
    const char *node;        /* NULL: not bound */
    const char *nominated;   /* NULL: no node */
};

/* Each makes or replaces one object, which is borrowed for the call: a node by its name, the others
 * by namespace and name. 0, or -E2BIG with an error beyond the limit. Ends all views. */
int as_cluster_facts_put_node(struct as_cluster_facts *facts, const struct as_node_fact *node,
                              struct as_error *error) AS_MUST_USE;
int as_cluster_facts_put_pod(struct as_cluster_facts *facts, const struct as_pod_put *pod,
                             struct as_error *error) AS_MUST_USE;
int as_cluster_facts_put_budget(struct as_cluster_facts *facts, const struct as_budget_fact *budget,
                                struct as_error *error) AS_MUST_USE;

/* Nothing where it is not known. `namespace_` does not matter for a node. Ends all views. */
void as_cluster_facts_delete(struct as_cluster_facts *facts, enum as_cluster_kind kind,
                             const char *namespace_, const char *name);

/*
 * All that is known: nodes ascending by name, budgets by namespace and name, pods in no order. Good
 * until the next change. After a change of one pod it takes no time; after one of a set of nodes a
 * pass over all pods. NULL and an error that says why there is none: not all kinds have been
 * listed, or there was no room.
 */
const struct as_cluster *as_cluster_facts_view(struct as_cluster_facts *facts,
                                               struct as_error *error) AS_MUST_USE;

/* Bytes of memory that the facts take, with what the allocator adds. */
size_t as_cluster_facts_measure(const struct as_cluster_facts *facts);

AS_DEFINE_CLEANUP(struct as_cluster_facts *, as_cluster_facts_free)

/*
 * How much is known of a cluster's nodes and pods, and how old it is: for metrics.
 */

struct as_facts_view {
    const char *cluster; /* its name in the configuration */
    size_t objects[AS_CLUSTER_KIND_COUNT];
    as_mono_time fresh_at; /* until when everything is known, of every kind */
};

/* The view is good for the call. */
typedef void as_facts_visit_fn(void *context, const struct as_facts_view *view);

#endif
