/*
 * The objects that `allow.list` of an entry selects: their namespaces and names. One attempt a
 * call.
 *
 * Left out: objects in namespaces whose names begin with `kube-`, in alertscaler's own namespace,
 * and objects that a controller owns or that are being deleted. At most AS_LISTED_OBJECTS_MAX.
 */
#ifndef ALERTSCALER_SRC_KUBE_KUBE_OBJECT_LIST_H
#define ALERTSCALER_SRC_KUBE_KUBE_OBJECT_LIST_H

#include <stdint.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/kube/kube_client.h>
#include <alertscaler/port/target.h>

#include "kube_discovery.h"

struct as_object_lists;

struct as_object_lists *as_object_lists_new(struct as_kube_client *client,
                                            struct as_kube_discovery *discovery) AS_MUST_USE;
/* Cancels what is under way. */
struct as_object_lists *as_object_lists_free(struct as_object_lists *lists);

/* If `allow.namespaces` has exact names only, these namespaces are listed one by one; else the
 * whole cluster is. `request` is borrowed for the call; `done` as in port/target.h. */
void as_object_list_start(struct as_object_lists *lists, uint64_t call_id,
                          const struct as_object_list_request *request, as_objects_listed_fn *done,
                          void *context);

#endif
