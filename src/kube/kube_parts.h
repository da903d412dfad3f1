/*
 * Which fields of Kubernetes' objects are read: for JSON by their names, for Protocol Buffers by
 * their numbers.
 */
#ifndef ALERTSCALER_SRC_KUBE_KUBE_PARTS_H
#define ALERTSCALER_SRC_KUBE_KUBE_PARTS_H

#include <alertscaler/doc/json_tree.h>

enum kube_part_kind { /* of Protocol Buffers */
                      KUBE_TEXT,
                      KUBE_NUMBER,
                      KUBE_BOOLEAN,
                      KUBE_TIME,   /* meta/v1's Time: in JSON a text of RFC 3339 */
                      KUBE_OBJECT, /* a message */
                      KUBE_TEXTS,
                      KUBE_OBJECTS,
                      KUBE_TEXT_MAP, /* where there are parts, only those entries */
                      KUBE_QUANTITY_MAP
};

#define KUBE_PARTS_MAX 16 /* rows of a table */

extern const struct tree_part kube_node_parts[], kube_pod_parts[], kube_budget_parts[];
/* Names only: of pods and budgets, of nodes. */
extern const struct tree_part kube_name_parts[], kube_node_name_parts[];

#endif
