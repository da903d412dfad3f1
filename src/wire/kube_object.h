/*
 * Objects of the Kubernetes API as JSON: one of an expected kind, and one page of a list of them.
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

/* `item` is an object, good for the call. Not 0 ends the list with it. */
typedef int kube_item_fn(void *context, const json_t *item, struct as_error *error);

/* 0, with *next_out to be freed: the token that continues the list, or NULL where this was its last
 * page; what `take` returned; or -EBADMSG with an error that says where. */
int kube_object_read_list(const char *json, size_t size, const char *kind, kube_item_fn *take,
                          void *context, char **next_out, struct as_error *error) AS_MUST_USE;

#endif
