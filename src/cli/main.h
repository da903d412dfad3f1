/*
 * The command line: finds the command in the table, reads its options, runs it.
 */
#ifndef ALERTSCALER_SRC_CLI_MAIN_H
#define ALERTSCALER_SRC_CLI_MAIN_H

struct as_adapters;

/* Returns the exit status: 0 success; 1 the answer is no; 2 wrong usage, unreadable input or
 * unwritable output. */
int as_cli_main(int argc, char **argv, const struct as_adapters *adapters);

#endif
