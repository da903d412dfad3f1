/*
 * Resize of the pods of a target in place, one by one: a patch of the subresource `resize` of each
 * pod that does not have the size yet. No version of the workload guards the pods, because it does
 * not change with them. A pod whose node can never have the size is put back, and ends the run.
 */
#ifndef ALERTSCALER_SRC_KUBE_KUBE_RESIZE_H
#define ALERTSCALER_SRC_KUBE_KUBE_RESIZE_H

#include <stdbool.h>
#include <stdint.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/quantity.h>
#include <alertscaler/base/time.h>
#include <alertscaler/kube/kube_client.h>
#include <alertscaler/kube/target_outcome.h>

#include "kubernetes_resources.h"

struct as_kube_resize_run;

/* Called once, in a later turn. The outcome is APPLIED, or NO_PODS if there is no pod any more,
 * with a message that counts the pods; or why it ended early: then `is_accepted` says that pods
 * were resized before. */
typedef void as_kube_resize_done_fn(void *context, const struct as_outcome *outcome,
                                    unsigned attempts);

struct as_kube_resize_spec { /* all borrowed until it is done or cancelled */
    struct as_kube_client *client;
    struct as_flow flow; /* its target also for permits */
    const char *namespace_;
    struct as_kube_sized_pods *pods;
    const struct as_unit *unit;
    bool keep_limit;
    const struct as_kube_amounts *template_amounts; /* the ratio of limits */
    int32_t from, to;
    as_maybe_time later_than; /* only pods made after it; unset: all */
    as_kube_resize_done_fn *done;
    void *context;
};

struct as_kube_resize_run *as_kube_resize_start(const struct as_kube_resize_spec *spec) AS_MUST_USE;
void as_kube_resize_cancel(struct as_kube_resize_run *run);

#endif
