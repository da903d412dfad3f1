/*
 * How targets in a cluster are reached: one row a kind. Those of a provider are reached as it says
 * (cloud/provider_group.h).
 */
#ifndef ALERTSCALER_SRC_CLOUD_TARGET_ADAPTERS_H
#define ALERTSCALER_SRC_CLOUD_TARGET_ADAPTERS_H

#include <alertscaler/decide/target_kind.h>
#include <alertscaler/kube/env.h>
#include <alertscaler/kube/kube_access.h>
#include <alertscaler/port/target.h>

struct as_target_adapter {
    const struct as_target_kind *kind;
    /* Observes and sizes all targets of this kind in one cluster. Takes `access` over; `env` is
     * borrowed until the port is closed. */
    struct as_target_port *(*open)(struct as_kube_access *access, const struct as_access_env *env);
};

extern const struct as_target_adapter as_target_adapters[]; /* a row without kind at the end */

#endif
