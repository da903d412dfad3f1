/*
 * Checks that the files named in a configuration are readable here and now.
 */
#ifndef ALERTSCALER_SRC_CLI_CHECK_FILES_H
#define ALERTSCALER_SRC_CLI_CHECK_FILES_H

#include <alertscaler/doc/diagnostics.h>
#include <alertscaler/rules/config.h>

/*
 * Errors: files without which the daemon does not start: tokens and secrets of the receiver,
 * kubeconfig files and their contexts. Warnings: all other files, which are read only when a
 * request needs them; and places of state and action log that the present user, who need not be the
 * daemon's, cannot write. The configuration must have loaded without errors, from its path.
 */
void check_files(const struct as_config *config, struct as_diagnostics *diagnostics);

#endif
