/*
 * Options of the commands that try rules: --rules, and sizes by --replicas.
 */
#ifndef ALERTSCALER_SRC_CLI_RULES_OPTION_H
#define ALERTSCALER_SRC_CLI_RULES_OPTION_H

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>
#include <alertscaler/rules/config.h>
#include <alertscaler/tools/rehearsal.h>

#include "cli.h"

/*
 * Loads `path`: a folder (its *.yaml and *.yml) or a rule file, with the settings of --config.file
 * if given; or a configuration with its rule files. 0; or AS_EXIT_NO or AS_EXIT_USAGE after
 * printing all problems.
 */
int rules_load(const struct as_args *args, const char *path,
               struct as_config **config_out) AS_MUST_USE;

/* The same for a file that is one http_config: see as_config_load_http. */
int rules_load_http(const struct as_args *args, const char *path,
                    struct as_config **config_out) AS_MUST_USE;

/* As in the daemon, but with a fixed seed. */
struct as_engine_config rules_get_engine_config(const struct as_config *config);

/* Sets the sizes of --replicas NAME=N. 0; -EINVAL with an error. */
int rules_set_replicas(const struct as_args *args, const struct as_ruleset *ruleset,
                       struct as_rehearsal *rehearsal, struct as_error *error) AS_MUST_USE;

#define AS_OPTION_REPLICAS                                                                         \
    {                                                                                              \
        .name = "replicas", .value = "NAME=N", .repeats = true,                                    \
        .help = "A target's initial size; NAME is its name in the rules, or its id",               \
    }

#endif
