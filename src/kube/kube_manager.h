/*
 * Who set an object's size last, by its managedFields: of the object where it was read, else by one
 * request for its metadata. That needs the right to get the object itself.
 */
#ifndef ALERTSCALER_SRC_KUBE_KUBE_MANAGER_H
#define ALERTSCALER_SRC_KUBE_KUBE_MANAGER_H

#include <alertscaler/base/attr.h>
#include <alertscaler/decide/observation.h>
#include <alertscaler/kube/kube_client.h>

/* Of an object as it was read; the field is a path (model/field_path.h). */
void as_kube_manager_read(const char *json, size_t size, const char *field,
                          char manager_out[AS_MANAGER_SIZE]);

/* "": not known, for whatever reason. */
typedef void as_kube_manager_done_fn(void *context, const char *manager);

struct as_kube_manager_ask;

/* Who set spec.replicas. `path` of the object, not of its scale; it is copied. `done` is called
 * exactly once, in a later turn of the loop, unless cancelled first. */
struct as_kube_manager_ask *as_kube_manager_start(struct as_kube_client *client,
                                                  const struct as_flow *flow, const char *path,
                                                  as_kube_manager_done_fn *done,
                                                  void *context) AS_MUST_USE;
void as_kube_manager_cancel(struct as_kube_manager_ask *ask);

#endif
