/*
 * `alertscaler check --from-cluster`: the scaling policies that an API server has.
 */
#ifndef ALERTSCALER_SRC_CLI_CHECK_POLICIES_H
#define ALERTSCALER_SRC_CLI_CHECK_POLICIES_H

#include <stddef.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/doc/diagnostics.h>

#include "cli.h"

struct checked_policies {
    size_t count, refused;
    char where[80]; /* "namespace shop", "all namespaces" */
};

/* AS_EXIT_OK; or prints which option does not fit to --from-cluster, and returns
 * AS_EXIT_USAGE. */
int check_policies_options(const struct as_args *args) AS_MUST_USE;

/*
 * Loads the configuration, and adds what this program refuses of the policies that the options
 * select, and what it warns of. AS_EXIT_OK; or with an error in `diagnostics`: AS_EXIT_NO if the
 * configuration has errors, AS_EXIT_USAGE if it or the policies cannot be read.
 */
int check_cluster_policies(const struct as_args *args, struct as_diagnostics *diagnostics,
                           struct checked_policies *checked_out) AS_MUST_USE;

#endif
