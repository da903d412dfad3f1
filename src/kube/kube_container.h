/*
 * One container of a pod's spec, found by its name.
 */
#ifndef ALERTSCALER_SRC_KUBE_KUBE_CONTAINER_H
#define ALERTSCALER_SRC_KUBE_KUBE_CONTAINER_H

#include <stdbool.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/doc/json_writer.h>
#include <alertscaler/kube/kubernetes_resources.h>

#include <alertscaler/doc/json_tree.h>

/* NULL: none. *is_init_out: it is one of initContainers. `spec` may be NULL. */
const struct tree_value *kube_find_container(const struct tree_value *spec, const char *name,
                                             bool *is_init_out);
bool kube_is_sidecar(const struct tree_value *container); /* of initContainers */

/* Of a container's `resources`, of its spec or its status. False: a value is no quantity. */
bool kube_read_amounts(const struct tree_value *resources, enum as_resource resource,
                       struct as_kube_amounts *amounts_out) AS_MUST_USE;

/* The member "containers" or "initContainers" of a strategic merge patch of a pod's spec. */
void kube_write_container(struct as_json_writer *json, const struct as_kube_part *part,
                          bool is_init, const struct as_kube_amounts *amounts);

#endif
