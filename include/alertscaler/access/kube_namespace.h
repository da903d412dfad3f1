/*
 * The namespace that objects of our own lie in: the one that is configured, else the pod's own.
 */
#ifndef ALERTSCALER_ACCESS_KUBE_NAMESPACE_H
#define ALERTSCALER_ACCESS_KUBE_NAMESPACE_H

#include <alertscaler/access/env.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>

/* `configured` may be NULL. 0 and memory for free(); -ENOENT with an error where neither is there,
 * -EINVAL where it is no name that a path can have. */
int as_kube_namespace_find(const char *configured, const struct as_access_env *env,
                           char **namespace_out, struct as_error *error) AS_MUST_USE;

#endif
