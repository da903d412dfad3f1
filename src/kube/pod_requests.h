/*
 * What a whole pod requests, as the scheduler counts it: Kubernetes' PodRequests
 * (component-helpers/resource/helpers.go).
 */
#ifndef ALERTSCALER_SRC_KUBE_POD_REQUESTS_H
#define ALERTSCALER_SRC_KUBE_POD_REQUESTS_H

#include <alertscaler/doc/json_reader.h>

/* In cores and bytes, AS_RESOURCE_COUNT of them; `absent` where nothing in `spec` names the
 * resource. What cannot be read is an error of the reader. */
void pod_requests_read(struct as_reader *spec, double absent, double requests_out[]);

#endif
