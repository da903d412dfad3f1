/*
 * Asks the clusters about the targets of a configuration: whether each can be read, and who else
 * sizes it.
 */
#ifndef ALERTSCALER_SRC_CLI_CHECK_CLUSTER_H
#define ALERTSCALER_SRC_CLI_CHECK_CLUSTER_H

#include <alertscaler/daemon/adapters.h>
#include <alertscaler/doc/diagnostics.h>
#include <alertscaler/rules/config.h>

/* Warnings: Kubernetes objects without templates that cannot be read, with the reason; HPAs and
 * ScaledObjects that aim at them. Changes nothing. Takes at most a minute. */
void check_cluster(const struct as_config *config, const struct as_adapters *adapters,
                   struct as_diagnostics *diagnostics);

#endif
