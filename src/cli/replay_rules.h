/*
 * `alertscaler replay --rules`.
 */
#ifndef ALERTSCALER_SRC_CLI_REPLAY_RULES_H
#define ALERTSCALER_SRC_CLI_REPLAY_RULES_H

#include "cli.h"
#include "log_reader.h"

/* Replays the notifications under other rules (--rules). Returns the exit status. */
int replay_rules(const struct as_args *args, const struct log_files *files);

#endif
