/*
 * One page of a list of the Kubernetes API (PodList, ConfigMapList), item by item.
 */
#ifndef ALERTSCALER_SRC_KUBE_KUBE_LIST_H
#define ALERTSCALER_SRC_KUBE_KUBE_LIST_H

#include <stddef.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>

#include <alertscaler/doc/json_tree.h>

/* `item` is an object, valid for the call only. A result other than 0 ends the list and is
 * returned: -EBADMSG for a wrong item, whose place is then added to the error. */
typedef int kube_item_fn(void *context, const struct tree_value *item, struct as_error *error);

/* 0, with *next_out to be freed: the token of the next page, or NULL if this was the last; the
 * result of `take`; or -EBADMSG with an error that names the place. */
int kube_list_read(const char *json, size_t size, const char *kind, kube_item_fn *take,
                   void *context, char **next_out, struct as_error *error) AS_MUST_USE;

#endif
