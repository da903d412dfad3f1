/*
 * The scopes of a configuration's credentials, for a replay: the engine gets them, and
 * notifications keep the names of known credentials.
 */
#ifndef ALERTSCALER_SRC_CLI_REPLAY_SCOPES_H
#define ALERTSCALER_SRC_CLI_REPLAY_SCOPES_H

#include <stdbool.h>
#include <stddef.h>

#include <alertscaler/model/scope.h>
#include <alertscaler/rules/receiver_settings.h>

struct replay_scopes { /* borrows the settings */
    struct as_scope *items;
    size_t count;
};

struct replay_scopes replay_scopes_make(const struct as_receiver_settings *settings);
void replay_scopes_deinit(struct replay_scopes *scopes);

/* Users of a web configuration that `receiver.users` does not name are unknown. */
bool replay_scopes_know(const struct replay_scopes *scopes, const char *credential);

#endif
