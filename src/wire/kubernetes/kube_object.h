/*
 * Objects of the Kubernetes API as JSON, of an expected kind.
 */
#ifndef ALERTSCALER_SRC_WIRE_KUBE_OBJECT_H
#define ALERTSCALER_SRC_WIRE_KUBE_OBJECT_H

#include <stddef.h>

#include <jansson.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>

/* 0, and *object_out is the caller's also where it is of another kind (-EBADMSG). */
int kube_object_load(const char *json, size_t size, const char *kind, json_t **object_out,
                     struct as_error *error) AS_MUST_USE;

#endif
