/*
 * The two halves of `alertscaler replay`.
 */
#ifndef ALERTSCALER_SRC_CLI_REPLAY_PRIVATE_H
#define ALERTSCALER_SRC_CLI_REPLAY_PRIVATE_H

#include "cli.h"
#include "log_reader.h"

/* Computes every logged decision again. Returns the exit status. */
int replay_check(const struct as_args *args, const struct log_files *files);

/* Replays the notifications under other rules (--rules). Returns the exit status. */
int replay_rules(const struct as_args *args, const struct log_files *files);

#endif
