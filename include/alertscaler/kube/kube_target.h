/*
 * Target adapter for the objects of one Kubernetes cluster: it observes and sets the replicas of
 * the scale subresource, a field, or the resource of a container. Each action has an Event on the
 * scaled object, as with the HPA.
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
