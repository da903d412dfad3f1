/*
 * The engine's requests to ports that are not answered, counted for each pair of ports: after a
 * reload the former ports may only be closed when they have answered.
 */
#include <stdlib.h>

#include <alertscaler/base/alloc.h>

#include "shell_private.h"

static void add(struct as_shell *shell)
{
    struct port_calls *calls = as_xcalloc(1, sizeof(*calls));
    calls->shell = shell;
    calls->targets = shell->config.targets;
    SLIST_INSERT_HEAD(&shell->calls, calls, next);
}

static void remove_if_over(struct port_calls *calls)
{
    struct as_shell *shell = calls->shell;
    if (calls->open > 0 || calls == SLIST_FIRST(&shell->calls))
        return;
    SLIST_REMOVE(&shell->calls, calls, port_calls, next);
    free(calls);
}

void shell_calls_init(struct as_shell *shell)
{
    SLIST_INIT(&shell->calls);
    add(shell);
}

void shell_calls_deinit(struct as_shell *shell)
{
    struct port_calls *calls;
    while ((calls = SLIST_FIRST(&shell->calls))) {
        SLIST_REMOVE_HEAD(&shell->calls, next);
        free(calls);
    }
}

struct port_calls *shell_calls_begin(struct as_shell *shell)
{
    struct port_calls *calls = SLIST_FIRST(&shell->calls);
    calls->open++;
    return calls;
}

struct as_shell *shell_calls_end(struct port_calls *calls)
{
    struct as_shell *shell = calls->shell;
    calls->open--;
    remove_if_over(calls);
    return shell;
}

void shell_calls_use(struct as_shell *shell, struct as_target_port *targets,
                     struct as_source_port *source)
{
    struct port_calls *former = SLIST_FIRST(&shell->calls);
    const bool are_new = targets != shell->config.targets || source != shell->config.source;
    shell->config.targets = targets;
    shell->config.source = source;
    if (!are_new)
        return;
    add(shell);
    remove_if_over(former);
}

bool as_shell_has_calls(const struct as_shell *shell, const struct as_target_port *targets)
{
    const struct port_calls *calls;
    SLIST_FOREACH (calls, &shell->calls, next) {
        if (calls->targets == targets && calls->open > 0)
            return true;
    }
    return false;
}
