/*
 * The fields of a Kubernetes Pod that decisions need.
 */
#ifndef ALERTSCALER_SRC_KUBE_KUBERNETES_POD_H
#define ALERTSCALER_SRC_KUBE_KUBERNETES_POD_H

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>
#include <alertscaler/decide/observation.h>

#include <alertscaler/doc/json_tree.h>

/* The name is borrowed from `item`. 0, or -EBADMSG with an error that names pod and field. */
int as_kube_pod_read(const struct tree_value *item, struct as_pod_seen *pod_out,
                     struct as_error *error) AS_MUST_USE;

#endif
