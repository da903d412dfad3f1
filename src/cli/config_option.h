/*
 * The configuration that a command reads: that of --config.file, else the one in the present
 * folder, else the machine's.
 */
#ifndef ALERTSCALER_SRC_CLI_CONFIG_OPTION_H
#define ALERTSCALER_SRC_CLI_CONFIG_OPTION_H

#include "cli.h"

#define CONFIG_HERE    "alertscaler.yaml"
#define CONFIG_MACHINE "/etc/alertscaler/alertscaler.yaml"

/* Prints nothing. */
const char *config_option_find(const struct as_args *args);

/* If it is the machine's without being named, says so on standard error. */
const char *config_option_tell(const struct as_args *args);

#define AS_OPTION_CONFIG_FILE(TEXT)                                                                \
    {                                                                                              \
        .name = "config.file", .value = "FILE",                                                    \
        .help = TEXT " (default: " CONFIG_HERE ", else " CONFIG_MACHINE ")",                       \
    }

#endif
