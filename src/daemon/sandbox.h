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

#endif
