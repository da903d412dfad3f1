/*
 * Who else sizes the targets of a cluster: HPAs and KEDA's ScaledObjects that aim at them. They are
 * listed once for each namespace with targets: when the first target of it is seen, and every
 * AS_KUBE_OTHERS_EVERY_US while one is observed. Without the right, or without KEDA, the rest goes
 * on; the log says so once.
 */
#ifndef ALERTSCALER_SRC_KUBE_KUBE_OTHERS_H
#define ALERTSCALER_SRC_KUBE_KUBE_OTHERS_H

#include <alertscaler/base/attr.h>
#include <alertscaler/decide/target.h>
#include <alertscaler/kube/kube_client.h>

struct as_kube_others_watch;

/* Tells env->others_found of the client. */
struct as_kube_others_watch *as_kube_others_new(struct as_kube_client *client) AS_MUST_USE;
struct as_kube_others_watch *as_kube_others_free(struct as_kube_others_watch *watch);

/* A target's scale was observed in this namespace. `credential`: as in as_observe_request; narrowed
 * credentials have at most half of the namespaces and targets. */
void as_kube_others_note(struct as_kube_others_watch *watch, const struct as_target_ref *ref,
                         const char *credential);

#endif
