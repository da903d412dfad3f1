/*
 * What the daemon gives up after it has read its configuration and listens, before it opens its
 * state and starts any thread: later openings, even after a failed disk or by a new leader, have
 * the same restrictions.
 *
 *   memory        no core dumps, unreadable for other processes (before secrets are read)
 *   capabilities  none, and no_new_privs: none by executing a program either
 *   Landlock      files: reads what the configuration names and the system's libraries, writes only
 *                 the folders of state and action log; no new TCP listener; signals to nobody
 *   seccomp       an allow-list of system calls; calls that only an intruder makes end the process
 *
 * A kubeconfig with a credential plugin needs to run that program, which inherits all of this: then
 * the filter is a deny-list, and everything may be read and executed.
 */
#ifndef ALERTSCALER_SRC_DAEMON_SANDBOX_H
#define ALERTSCALER_SRC_DAEMON_SANDBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <seccomp.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>
#include <alertscaler/daemon/adapters.h>
#include <alertscaler/daemon/daemon.h>
#include <alertscaler/rules/config.h>

struct as_sandbox; /* the restrictions in force */

/* Call before secrets are read. 0, also if the mode is off; or a negative errno. */
int as_sandbox_protect_memory(enum as_sandbox_mode mode, struct as_error *error) AS_MUST_USE;

struct as_sandbox_config { /* borrowed for the call */
    enum as_sandbox_mode mode;
    const struct as_config *config;
    const char *web_config_file;       /* NULL: none */
    const struct as_web_settings *web; /* its content; NULL: none */
    const struct as_adapters *adapters;
    struct as_outside *outside;
};

/*
 * Irreversible; for the calling thread and those it starts later. 0 with the restrictions in force,
 * which are logged; or a negative errno with an error if the mode requires more than is available.
 */
int as_sandbox_enter(const struct as_sandbox_config *config, struct as_sandbox **sandbox_out,
                     struct as_error *error) AS_MUST_USE;
struct as_sandbox *as_sandbox_free(struct as_sandbox *sandbox); /* lifts no restriction */

/* Whether another configuration works under the present restrictions: 0; or -EACCES with an error
 * that says why a restart is needed. */
int as_sandbox_check(const struct as_sandbox *sandbox, const struct as_sandbox_config *config,
                     struct as_error *error) AS_MUST_USE;

/* If the sandbox is the reason that the file could not be read, adds that to the error. */
void as_sandbox_explain(const struct as_sandbox *sandbox, const char *path, struct as_error *error);

AS_DEFINE_CLEANUP(struct as_sandbox *, as_sandbox_free)

/*
 * The parts of the sandbox that tests use one by one: files, Landlock, seccomp.
 */

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
