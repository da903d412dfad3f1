/*
 * Events on scaled objects, and the same on the scaling policies that they are of, for readers of
 * `kubectl describe`: best effort. Rate and requests at a
 * time are limited; what is beyond the limits, or fails, is dropped, which is logged once.
 */
#ifndef ALERTSCALER_SRC_KUBE_KUBE_EVENTS_H
#define ALERTSCALER_SRC_KUBE_KUBE_EVENTS_H

#include <alertscaler/decide/observation.h>
#include <alertscaler/decide/target.h>
#include <alertscaler/kube/kube_client.h>

struct as_kube_events;

struct as_kube_events *as_kube_events_new(struct as_kube_client *client) AS_MUST_USE;
struct as_kube_events *as_kube_events_free(struct as_kube_events *events);

/* Remembers the uid of a target as last seen: without the uid, `kubectl describe` does not find the
 * Event of a failure. Keeps the last AS_KUBE_REMEMBERED_UIDS targets. */
void as_kube_events_remember(struct as_kube_events *events, const char *id, const char *uid);

/* Posts SuccessfulRescale, or FailedRescale for a failure that another attempt will not solve.
 * `namespace_` is "" for a cluster-wide object. */
void as_kube_events_post(struct as_kube_events *events, const struct as_target_ref *ref,
                         const char *namespace_, const struct as_scale_request *request,
                         const struct as_scale_result *result);

/* Posts an Event on a policy alone. */
void as_kube_events_post_on_policy(struct as_kube_events *events,
                                   const struct as_policy_ref *policy, const char *reason,
                                   const char *message);

/* Posts NotReadyInTime. */
void as_kube_events_warn(struct as_kube_events *events, const struct as_target_ref *ref,
                         const struct as_late_warning *warning);

#endif
