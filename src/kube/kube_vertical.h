/*
 * The request of one container of a workload's pods as the size of a target: read from, and set in,
 * its pod template or its running pods. The calls are those of a target port (port/target.h).
 */
#ifndef ALERTSCALER_SRC_KUBE_KUBE_VERTICAL_H
#define ALERTSCALER_SRC_KUBE_KUBE_VERTICAL_H

#include <stdbool.h>
#include <stdint.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/kube/kube_client.h>
#include <alertscaler/port/target.h>

#include "kube_events.h"

struct as_kube_vertical;

/* Borrows both. */
struct as_kube_vertical *as_kube_vertical_new(struct as_kube_client *client,
                                              struct as_kube_events *events) AS_MUST_USE;
struct as_kube_vertical *as_kube_vertical_free(struct as_kube_vertical *vertical);

void as_kube_vertical_observe(struct as_kube_vertical *vertical, uint64_t call_id,
                              const struct as_target_ref *ref,
                              const struct as_observe_request *request, as_target_observed_fn *done,
                              void *context);
void as_kube_vertical_scale(struct as_kube_vertical *vertical, uint64_t call_id,
                            const struct as_target_ref *ref, const struct as_scale_request *request,
                            as_target_scaled_fn *done, void *context);
bool as_kube_vertical_is_idle(const struct as_kube_vertical *vertical);

#endif
