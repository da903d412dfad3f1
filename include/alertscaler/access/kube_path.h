/*
 * Paths of the Kubernetes API. Every segment that comes from outside is checked and escaped.
 */
#ifndef ALERTSCALER_SRC_TARGET_KUBE_PATH_H
#define ALERTSCALER_SRC_TARGET_KUBE_PATH_H

#include <alertscaler/base/attr.h>
#include <alertscaler/base/buf.h>

/* "/apis/apps/v1" or "/api/v1". 0, or -EINVAL where it is no apiVersion. */
int as_kube_path_append_version(struct as_buf *path, const char *api_version) AS_MUST_USE;

/* "/" and the segment. -EINVAL where it is empty, "." or "..". */
int as_kube_path_append(struct as_buf *path, const char *segment) AS_MUST_USE;

/* Behind the path: '?' or '&', and name=value; `name` as it is. */
void as_kube_path_append_parameter(struct as_buf *path, const char *name, const char *value);

#endif
