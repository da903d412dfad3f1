/*
 * The rollout of a workload: whether its pods are being replaced, by one request for the object.
 * That needs the right to get the object itself, as its scale does not say it.
 */
#ifndef ALERTSCALER_SRC_KUBE_KUBE_ROLLOUT_H
#define ALERTSCALER_SRC_KUBE_KUBE_ROLLOUT_H

#include <stddef.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/decide/observation.h>
#include <alertscaler/kube/kube_client.h>

struct as_kube_rollout_ask;

struct as_kube_rollout_of { /* borrowed for the call */
    const char *path;       /* of the object, not of its scale */
    const char *api_version, *kind;
};

/* Of an object as it was read. A body that is no object: its progress is unknown, with the reason.
 */
void as_kube_rollout_decode(const char *api_version, const char *kind, const char *json,
                            size_t size, struct as_rollout_seen *seen_out);

/* An object that could not be read: its progress is unknown, with the reason. */
typedef void as_kube_rollout_done_fn(void *context, const struct as_rollout_seen *seen);

/* `done` is called exactly once, in a later turn of the loop, unless cancelled first. */
struct as_kube_rollout_ask *as_kube_rollout_start(struct as_kube_client *client,
                                                  const struct as_flow *flow,
                                                  const struct as_kube_rollout_of *of,
                                                  as_kube_rollout_done_fn *done,
                                                  void *context) AS_MUST_USE;
void as_kube_rollout_cancel(struct as_kube_rollout_ask *ask);

#endif
