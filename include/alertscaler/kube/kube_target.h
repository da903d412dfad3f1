/*
 * Target adapter: all kinds of one Kubernetes cluster that have a scale subresource. GET and
 * conditional PUT of `scale`; for each action an Event on the scaled object, as HPA does.
 */
#ifndef ALERTSCALER_KUBE_KUBE_TARGET_H
#define ALERTSCALER_KUBE_KUBE_TARGET_H

#include <alertscaler/base/attr.h>
#include <alertscaler/kube/env.h>
#include <alertscaler/kube/kube_access.h>
#include <alertscaler/port/target.h>

/* Takes over `access`; borrows `env`. End it with the port's close, but not from a callback. */
struct as_target_port *as_kubernetes_new(struct as_kube_access *access,
                                         const struct as_access_env *env) AS_MUST_USE;

#endif
