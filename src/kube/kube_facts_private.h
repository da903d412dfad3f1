/*
 * Facts out of the trees of objects, part by part. What cannot be read is the error of the reader;
 * what is returned then does not matter. Texts are the tree's, lists are memory of the arena.
 */
#ifndef ALERTSCALER_SRC_KUBE_KUBE_FACTS_PRIVATE_H
#define ALERTSCALER_SRC_KUBE_KUBE_FACTS_PRIVATE_H

#include <alertscaler/base/arena.h>
#include <alertscaler/cluster/cluster_facts.h>

#include <alertscaler/doc/json_reader.h>

struct fact_reader {
    struct as_cluster_facts *facts; /* whose names of resources are used */
    struct as_arena *arena;
};

#define FACT_ITEMS_MAX 1024 /* that a list, or an object as a map, may have */

/* The first of the items, or of the members of the map; NULL: none. */
const struct tree_value *fact_read_list(struct as_reader *parent, const char *name,
                                        size_t *count_out);
const struct tree_value *fact_read_map(struct as_reader *parent, const char *name,
                                       size_t *count_out);
/* false, 0 and not set where absent; a time may be "" too. */
bool fact_get_bool(struct as_reader *parent, const char *name);
int64_t fact_get_i64(struct as_reader *parent, const char *name, int64_t low, int64_t high);
as_maybe_time fact_get_time(struct as_reader *parent, const char *name);

/* A DNS subdomain (RFC 1123) of at most 253 bytes, as a name in the API. */
const char *fact_read_name(struct as_reader *metadata, const char *key);

/* Labels, or a nodeSelector; NULL where absent or empty. */
const struct as_labels *fact_read_labels(struct fact_reader *reader, struct as_reader *parent,
                                         const char *name);
/* Whether the set has that name; its value then. */
bool fact_find_label(const struct as_labels *labels, const char *name, const char **value_out);

/* matchExpressions of a node's or a label's selector, appended to `list`. Operators of labels are
 * In, NotIn, Exists and DoesNotExist. False where an operator is not known. */
struct fact_requirements {
    struct as_node_requirement *items; /* with room for all: fact_begin_requirements */
    size_t count;
};
bool fact_read_expressions(struct fact_reader *reader, struct as_reader *parent, const char *name,
                           struct fact_requirements *list);
/* Room for the expressions of `names`, which end with NULL, and for `more`. */
void fact_begin_requirements(struct fact_reader *reader, struct as_reader *parent,
                             const char *const *names, size_t more, struct fact_requirements *list);
/* A LabelSelector: matchLabels and matchExpressions; an operator that is not known is an error. */
void fact_read_selector(struct fact_reader *reader, struct as_reader *selector,
                        struct fact_requirements *list);

/* Adds amounts of resources. Returns a bit for each index that is named; *are_left_out is set where
 * there is no index for a name. */
uint32_t fact_add_amounts(struct fact_reader *reader, struct as_reader *parent, const char *name,
                          bool round_up, struct as_resources *sums, bool *are_left_out);
/* What the whole pod asks for. Returns a bit for each index that is named. */
uint32_t fact_read_requests(struct fact_reader *reader, struct as_reader *spec,
                            struct as_pod_shape *shape);

/* Affinity, spreading, volumes, claims, tolerations and ports; needs namespace and labels. */
void fact_read_placing(struct fact_reader *reader, struct as_reader *spec,
                       struct as_pod_shape *shape);

/* Each reads an object; false: a pod that has finished, of which only the names are read. */
void fact_read_node(struct fact_reader *reader, struct as_reader *root,
                    struct as_node_fact *node_out);
bool fact_read_pod(struct fact_reader *reader, struct as_reader *root,
                   struct as_pod_shape *shape_out, struct as_pod_put *pod_out);
void fact_read_budget(struct fact_reader *reader, struct as_reader *root,
                      struct as_budget_fact *budget_out);

#endif
