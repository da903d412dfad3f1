/*
 * A copy of a scale request, which a port's caller lends only for the call.
 */
#ifndef ALERTSCALER_KUBE_SCALE_REQUEST_H
#define ALERTSCALER_KUBE_SCALE_REQUEST_H

#include <alertscaler/decide/observation.h>

void as_scale_request_copy(const struct as_scale_request *request,
                           struct as_scale_request *copy_out);
void as_scale_request_deinit(struct as_scale_request *copy);

#endif
