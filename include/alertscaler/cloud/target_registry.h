/*
 * All targets behind one port: a call goes to the adapter of the target's kind, chosen by `cluster`
 * or `provider`.
 *
 * If the settings name no cluster and none can be found, targets of the cluster `default` answer
 * `unreachable` with the reason: a configuration with only node groups needs no cluster. A
 * configured cluster must be usable.
 */
#ifndef ALERTSCALER_CLOUD_TARGET_REGISTRY_H
#define ALERTSCALER_CLOUD_TARGET_REGISTRY_H

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>
#include <alertscaler/cluster/cluster_facts.h>
#include <alertscaler/decide/target_kind.h>
#include <alertscaler/kube/env.h>
#include <alertscaler/kube/kube_access.h>
#include <alertscaler/port/target.h>
#include <alertscaler/rules/settings.h>

/*
 * Borrows settings and env until the port is closed (not from a callback). 0; or a negative errno
 * with an error that names the cluster and what is wrong with its kubeconfig.
 */
int as_target_registry_new(const struct as_settings *settings, const struct as_access_env *env,
                           struct as_target_port **port_out, struct as_error *error) AS_MUST_USE;

/*
 * Puts nodes back into service that an earlier process marked and that nobody goes on with. It
 * lists all nodes of all clusters. The result goes to the environment's `nodes_recovered`.
 */
void as_target_registry_recover(struct as_target_port *port);

/* Each cluster whose nodes and pods are watched and have been listed. */
void as_target_registry_visit_facts(const struct as_target_port *port, as_facts_visit_fn *visit,
                                    void *context);

/* Another port takes over: begins no more steps of nodes that leave. */
void as_target_registry_retire(struct as_target_port *port);

/*
 * How targets in a cluster are reached: one row a kind. Those of a provider are reached as it says
 * (cloud/provider_group.h).
 */

struct as_target_adapter {
    const struct as_target_kind *kind;
    /* Observes and sizes all targets of this kind in one cluster. Takes `access` over; `env` is
     * borrowed until the port is closed. */
    struct as_target_port *(*open)(struct as_kube_access *access, const struct as_access_env *env);
};

extern const struct as_target_adapter as_target_adapters[]; /* a row without kind at the end */

#endif
