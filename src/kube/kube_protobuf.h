/*
 * A message of Protocol Buffers as the tree that its JSON form would give: of the fields that a
 * table of parts names (kube_parts.h). All others are skipped.
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

#endif
