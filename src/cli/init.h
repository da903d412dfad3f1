/*
 * The files that `alertscaler init` writes: embed.py builds those in src/cli/init into the program.
 */
#ifndef ALERTSCALER_SRC_CLI_INIT_H
#define ALERTSCALER_SRC_CLI_INIT_H

struct init_file {
    const char *name; /* in the new folder, at most one level below; NULL: the end */
    const char *text;
};

extern const struct init_file init_files[];
extern const struct init_file init_kubernetes_files[]; /* `--kubernetes` */

#endif
