/*
 * The parts of the sandbox that tests use one by one: files, Landlock, seccomp.
 */
#ifndef ALERTSCALER_SRC_DAEMON_SANDBOX_PRIVATE_H
#define ALERTSCALER_SRC_DAEMON_SANDBOX_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <seccomp.h>

#include "sandbox.h"

enum sandbox_access {
    SANDBOX_READ = 1,
    SANDBOX_WRITE = 2, /* and create, rename and remove regular files */
    SANDBOX_RUN = 4,   /* execute */
};

struct sandbox_place { /* a file, or a folder with its content */
    char *path;        /* absolute, without symbolic links */
    unsigned access;
    bool is_ours; /* named by the configuration, not the system */
    dev_t device; /* with the inode: the kernel's identity of the folder */
    ino_t number;
};

struct sandbox_files {
    struct sandbox_place *places;
    size_t count, capacity;
    bool runs_programs; /* credential plugins */
    char *program;      /* one of these */
};

/* The files of a configuration, and the system's that every process needs. */
void sandbox_files_collect(struct sandbox_files *files, const struct as_sandbox_config *config);
void sandbox_files_deinit(struct sandbox_files *files);
/* Whether the place, or a folder above it, is allowed with all of this access. */
bool sandbox_files_cover(const struct sandbox_files *files, const char *path, unsigned access);

/* The kernel's level, 0: none. */
int sandbox_landlock_get_level(void);
/* For this thread and those it starts. 0 or a negative errno. Missing places are skipped. */
int sandbox_landlock_enter(int level, const struct sandbox_files *files) AS_MUST_USE;

/* The filter for an architecture (SCMP_ARCH_...): strict (an allow-list), or a
 * deny-list if programs run; seccomp_release it. `pid` is the process's own. */
int sandbox_seccomp_make(uint32_t arch, bool runs_programs, int pid,
                         scmp_filter_ctx *filter_out) AS_MUST_USE;
/* Loads it for all threads. 0 or a negative errno. */
int sandbox_seccomp_enter(bool runs_programs) AS_MUST_USE;

#endif
