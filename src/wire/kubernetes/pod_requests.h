/*
 * What a whole pod requests, as the scheduler counts it: Kubernetes' PodRequests
 * (component-helpers/resource/helpers.go).
 */
#ifndef ALERTSCALER_SRC_WIRE_KUBERNETES_POD_REQUESTS_H
#define ALERTSCALER_SRC_WIRE_KUBERNETES_POD_REQUESTS_H

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>

#include "json/json_tree.h"

/* In cores and bytes, AS_RESOURCE_COUNT of them; NaN: nothing in `spec` names the resource. 0, or
 * -EBADMSG with an error that names the field. */
int pod_requests_read(const struct tree_value *spec, double requests_out[],
                      struct as_error *error) AS_MUST_USE;

#endif
