/*
 * Paths of the Kubernetes API. Every segment from outside is checked and escaped.
 */
#ifndef ALERTSCALER_SRC_KUBE_KUBE_PATH_H
#define ALERTSCALER_SRC_KUBE_KUBE_PATH_H

#include <alertscaler/base/attr.h>
#include <alertscaler/base/buf.h>

/* Appends "/apis/apps/v1" or "/api/v1". 0, or -EINVAL if `api_version` is not an apiVersion. */
int as_kube_path_append_version(struct as_buf *path, const char *api_version) AS_MUST_USE;

/* Appends "/" and the segment. 0, or -EINVAL if the segment is empty, "." or "..". */
int as_kube_path_append(struct as_buf *path, const char *segment) AS_MUST_USE;

/* Appends '?' or '&', then name=value. `name` is not escaped. */
void as_kube_path_append_parameter(struct as_buf *path, const char *name, const char *value);

#endif
