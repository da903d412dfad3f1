/*
 * The files that a configuration names: whether they can be read here and now.
 */
#ifndef ALERTSCALER_SRC_CLI_CHECK_CHECK_FILES_H
#define ALERTSCALER_SRC_CLI_CHECK_CHECK_FILES_H

#include <alertscaler/config/config.h>
#include <alertscaler/config/diagnostics.h>

/*
 * Errors for those without which the daemon does not start: tokens and secrets of the receiver,
 * kubeconfig files and their contexts. Warnings for those that are read when a request needs them,
 * and may come until then: all others; and for places of state and action log that cannot be
 * written by who checks, who need not be the daemon's user. The configuration loaded without error,
 * from its path.
 */
void check_files(const struct as_config *config, struct as_diagnostics *diagnostics);

#endif
