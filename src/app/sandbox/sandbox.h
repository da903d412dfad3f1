/*
 * What the daemon gives up once it has read its configuration and listens, before it opens its
 * state and starts any thread: whatever is opened later, also after a failed disk or by a new
 * leader, is opened under the same restrictions.
 *
 *   memory        no core dumps, and nobody of the same user reads it (before any secret is read)
 *   capabilities  none, and no_new_privs: none by executing something either
 *   Landlock      files: reads what the configuration names and the system's libraries, writes the
 *                 folders of state and action log only; no new TCP listener; signals to nobody
 *   seccomp       an allow-list of system calls; what only an intruder calls ends the process
 *
 * A kubeconfig with a credential plugin needs to run that program, which inherits all of this: the
 * filter is a deny-list then, and everything may be read and executed.
 */
#ifndef ALERTSCALER_SRC_APP_SANDBOX_SANDBOX_H
#define ALERTSCALER_SRC_APP_SANDBOX_SANDBOX_H

#include <alertscaler/app/adapters.h>
#include <alertscaler/app/daemon.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>
#include <alertscaler/config/config.h>

struct as_sandbox; /* what is in force */

/* Before secrets are read. 0, also where the mode is off; or a negative errno. */
int as_sandbox_protect_memory(enum as_sandbox_mode mode, struct as_error *error) AS_MUST_USE;

struct as_sandbox_config { /* borrowed for the call */
    enum as_sandbox_mode mode;
    const struct as_config *config;
    const char *web_config_file;       /* NULL: none */
    const struct as_web_settings *web; /* what stands there; NULL likewise */
    const struct as_adapters *adapters;
    struct as_outside *outside;
};

/*
 * Never undone, and only for the calling thread and those it starts from now on. 0 with what is in
 * force, which is logged; or a negative errno with an error where the mode asks for more than there
 * is.
 */
int as_sandbox_enter(const struct as_sandbox_config *config, struct as_sandbox **sandbox_out,
                     struct as_error *error) AS_MUST_USE;
struct as_sandbox *as_sandbox_free(struct as_sandbox *sandbox); /* forgets, does not undo */

/* Whether what another configuration names can be used under what is in force: 0; or -EACCES with
 * an error that says what a restart is needed for. */
int as_sandbox_check(const struct as_sandbox *sandbox, const struct as_sandbox_config *config,
                     struct as_error *error) AS_MUST_USE;

/* Adds to an error why the file could not be read, where the sandbox is the reason. */
void as_sandbox_explain(const struct as_sandbox *sandbox, const char *path, struct as_error *error);

AS_DEFINE_CLEANUP(struct as_sandbox *, as_sandbox_free)

#endif
