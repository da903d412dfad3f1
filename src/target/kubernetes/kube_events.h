/*
 * Events on scaled objects, for those who look with `kubectl describe`: best effort. So many a
 * second and so many at a time; what is more, or fails, is dropped and said once in the log.
 */
#ifndef ALERTSCALER_SRC_TARGET_KUBE_EVENTS_H
#define ALERTSCALER_SRC_TARGET_KUBE_EVENTS_H

#include <alertscaler/access/kube_client.h>
#include <alertscaler/core/observation.h>
#include <alertscaler/core/target.h>

struct as_kube_events;

struct as_kube_events *as_kube_events_new(struct as_kube_client *client) AS_MUST_USE;
struct as_kube_events *as_kube_events_free(struct as_kube_events *events);

/* The uid of a target as last seen: without it `kubectl describe` does not find a failure's event.
 * Remembers the last AS_KUBE_REMEMBERED_UIDS targets. */
void as_kube_events_remember(struct as_kube_events *events, const char *id, const char *uid);

/* SuccessfulRescale; FailedRescale for a failure that a second look does not solve. `namespace_` is
 * "" for a cluster-wide object. */
void as_kube_events_post(struct as_kube_events *events, const struct as_target_ref *ref,
                         const char *namespace_, const struct as_scale_request *request,
                         const struct as_scale_result *result);

#endif
