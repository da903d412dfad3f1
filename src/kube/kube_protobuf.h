/*
 * A message of Protocol Buffers as the tree that its JSON form would give: of the fields that a
 * table of parts names (see below). All others are skipped.
 */
#ifndef ALERTSCALER_SRC_KUBE_KUBE_PROTOBUF_H
#define ALERTSCALER_SRC_KUBE_KUBE_PROTOBUF_H

#include <stddef.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>
#include <alertscaler/doc/json_tree.h>

/* 0; -EINVAL with an error: not a message, a singular field that comes twice, a text that is not
 * UTF-8 or has a NUL, or too many values for the tree's memory. */
int kube_protobuf_read(struct tree *tree, const void *data, size_t size,
                       const struct tree_part *parts, struct as_error *error) AS_MUST_USE;

/*
 * Which fields of Kubernetes' objects are read: for JSON by their names, for Protocol Buffers by
 * their numbers.
 */

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
