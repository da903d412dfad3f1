/*
 * One page of a list of the Kubernetes API (PodList, ConfigMapList), item by item.
 */
#ifndef ALERTSCALER_SRC_WIRE_KUBERNETES_KUBE_LIST_H
#define ALERTSCALER_SRC_WIRE_KUBERNETES_KUBE_LIST_H

#include <stddef.h>

#include <jansson.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>

/* `item` is an object, good for the call only. Not 0 ends the list with
 * it: -EBADMSG where the item is wrong, and the error then gets its place. */
typedef int kube_item_fn(void *context, const json_t *item, struct as_error *error);

/* 0, with *next_out to be freed: the token that continues the list, or NULL where this was its last
 * page; what `take` returned; or -EBADMSG with an error that says where. */
int kube_list_read(const char *json, size_t size, const char *kind, kube_item_fn *take,
                   void *context, char **next_out, struct as_error *error) AS_MUST_USE;

#endif
