/*
 * The files that `alertscaler init` writes: those of src/cli/init, made part of the program by
 * embed.py.
 */
#ifndef ALERTSCALER_SRC_CLI_INIT_H
#define ALERTSCALER_SRC_CLI_INIT_H

struct init_file {
    const char *name; /* below the new folder, at most one folder deep; NULL: the end */
    const char *text;
};

extern const struct init_file init_files[];

#endif
