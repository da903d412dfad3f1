/*
 * The files that a configuration names, for reading: itself, its rule files, the web configuration,
 * secrets, certificates, kubeconfigs, the files of providers, and the files that these name. Not
 * the state, the action log and the kill switch, which change by themselves.
 */
#ifndef ALERTSCALER_SRC_DAEMON_NAMED_FILES_H
#define ALERTSCALER_SRC_DAEMON_NAMED_FILES_H

#include <alertscaler/base/encode.h>

#include "sandbox.h"

/* Some paths may be NULL or empty: a file that is not given. */
void named_files_visit(const struct as_sandbox_config *config, as_file_visitor_fn *visit,
                       void *context);

/* The digest of their names and contents as they are now. */
struct as_digest named_files_hash(const struct as_sandbox_config *config);

#endif
