/*
 * The namespace of alertscaler's own objects: the configured one, else the pod's.
 */
#ifndef ALERTSCALER_KUBE_KUBE_NAMESPACE_H
#define ALERTSCALER_KUBE_KUBE_NAMESPACE_H

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>
#include <alertscaler/kube/env.h>

/* `configured` may be NULL. 0 and memory that the caller frees with free(); or with an error:
 * -ENOENT if both are missing, -EINVAL if the name cannot be part of a path. */
int as_kube_namespace_find(const char *configured, const struct as_access_env *env,
                           char **namespace_out, struct as_error *error) AS_MUST_USE;

#endif
