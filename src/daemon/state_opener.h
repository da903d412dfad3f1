/*
 * Opens the state and the action log, which may wait long for a disk or an API server, in its own
 * thread: meanwhile the loop renews the lease, answers requests and signals.
 */
#ifndef ALERTSCALER_SRC_DAEMON_STATE_OPENER_H
#define ALERTSCALER_SRC_DAEMON_STATE_OPENER_H

#include <stdbool.h>

#include <alertscaler/daemon/adapters.h>
#include <alertscaler/log/storage.h>

struct event_base;
struct state_opener;

struct state_opening { /* borrowed until `done` */
    const struct as_adapters *adapters;
    const struct as_settings *settings;
    bool may_create;
    const struct as_store_patience *patience;
    struct as_storage_config storage; /* without store and log */
};

struct state_opened {
    int code; /* 0; or a negative errno, with an error */
    struct as_error error;
    const char *path; /* of the file that could not be opened, from the settings; NULL: neither */
    struct as_storage *storage;
    struct as_store *store; /* owned by the storage */
};

typedef void state_opened_fn(void *context, const struct state_opened *opened);

/* `done` comes once, in a later turn of the loop, which must run until then. Afterwards only the
 * storage is to be freed. */
struct state_opener *state_opener_start(const struct state_opening *opening,
                                        struct event_base *base, state_opened_fn *done,
                                        void *context) AS_MUST_USE;

#endif
