/*
 * What the credentials of a configuration may trigger, for a replay: the engine is told of it, and
 * notifications keep the name of a credential that is known.
 */
#ifndef ALERTSCALER_SRC_CLI_REPLAY_REPLAY_SCOPES_H
#define ALERTSCALER_SRC_CLI_REPLAY_REPLAY_SCOPES_H

#include <stdbool.h>
#include <stddef.h>

#include <alertscaler/config/receiver_settings.h>
#include <alertscaler/core/scope.h>

struct replay_scopes { /* borrows the settings */
    struct as_scope *items;
    size_t count;
};

struct replay_scopes replay_scopes_make(const struct as_receiver_settings *settings);
void replay_scopes_deinit(struct replay_scopes *scopes);

/* Users of a web configuration that `receiver.users` does not name are not known. */
bool replay_scopes_know(const struct replay_scopes *scopes, const char *credential);

#endif
