/*
 * Resizes the pods of a workload in place, one by one, through their subresource `resize`
 * (Kubernetes 1.33 and later; KEP-1287).
 *
 * An increase raises only pods that have less, a decrease lowers only those that have more. Before
 * each pod it is asked whether that is still allowed, and the pod is read again: it may be gone, or
 * resized by somebody else. After each its kubelet has AS_KUBE_RESIZE_WAIT_US to answer. A kubelet
 * that defers is no obstacle for the next pod. One that can never do it is: the pod is put back,
 * and the run ends.
 */
#ifndef ALERTSCALER_SRC_KUBE_KUBE_RESIZE_H
#define ALERTSCALER_SRC_KUBE_KUBE_RESIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/kube/kube_client.h>
#include <alertscaler/kube/kubernetes_resources.h>

#include <alertscaler/kube/target_outcome.h>

struct as_kube_resize_run;

/* Called once, in a later turn. The outcome is APPLIED with a message that counts the pods; or why
 * it ended early: then `is_accepted` says that pods were resized before. */
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
