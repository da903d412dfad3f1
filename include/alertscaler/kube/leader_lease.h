/*
 * Leader election among replicas with a Lease in the cluster, by client-go's protocol: kubectl
 * shows the Lease, and other tools understand it.
 */
#ifndef ALERTSCALER_KUBE_LEADER_LEASE_H
#define ALERTSCALER_KUBE_LEADER_LEASE_H

#include <stdint.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/kube/env.h>
#include <alertscaler/kube/kube_access.h>
#include <alertscaler/port/leader.h>

struct as_lease_leader_config { /* texts are copied */
    const char *namespace_, *name;
    const char *identity; /* unique to this process; not the pod's name, which a restart keeps */
    int64_t duration_us, renew_deadline_us, retry_us; /* see state.lease */
    uint64_t seed;
};

/* Takes over `access`. `env` is borrowed; give it an HTTP client of its own, so that a renewal
 * never queues behind other requests. */
struct as_leader *as_lease_leader_new(const struct as_lease_leader_config *config,
                                      struct as_kube_access *access,
                                      const struct as_access_env *env) AS_MUST_USE;

#endif
