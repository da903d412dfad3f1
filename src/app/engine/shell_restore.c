/*
 * Passes each kind of stored document to its decoder, and the result to the engine.
 */
#include "shell_restore.h"

#include <string.h>

struct restoring {
    struct as_engine *engine;
    const struct as_state_clock *clock;
    struct shell_restored *restored;
    struct as_error *error;
};

static int restore_incident(void *context, const struct as_incident_state *state)
{
    struct restoring *restoring = context;
    return as_engine_restore_incident(restoring->engine, state);
}

static int restore_target(void *context, const struct as_target_state *state)
{
    struct restoring *restoring = context;
    return as_engine_restore_target(restoring->engine, state);
}

static int restore_intent(void *context, const struct as_intent_state *state)
{
    struct restoring *restoring = context;
    restoring->restored->intents++;
    return as_engine_restore_intent(restoring->engine, state);
}

static int visit_incident(void *context, const void *key, size_t key_size, const void *value,
                          size_t value_size)
{
    struct restoring *restoring = context;
    return as_state_decode_incident(value, value_size, restoring->clock, restore_incident,
                                    restoring, restoring->error);
}

static int visit_target(void *context, const void *key, size_t key_size, const void *value,
                        size_t value_size)
{
    struct restoring *restoring = context;
    return as_state_decode_target(value, value_size, restoring->clock, restore_target, restoring,
                                  restoring->error);
}

static int visit_intent(void *context, const void *key, size_t key_size, const void *value,
                        size_t value_size)
{
    struct restoring *restoring = context;
    return as_state_decode_intent(value, value_size, restoring->clock, restore_intent, restoring,
                                  restoring->error);
}

static int restore_pause(void *context, const struct as_pause_state *state)
{
    struct restoring *restoring = context;
    return as_engine_restore_pause(restoring->engine, state);
}

static int visit_meta(void *context, const void *key, size_t key_size, const void *value,
                      size_t value_size)
{
    struct restoring *restoring = context;
    if (key_size == strlen(SHELL_DRY_KEY) && memcmp(key, SHELL_DRY_KEY, key_size) == 0) {
        as_maybe_time *since = &restoring->restored->dry_since;
        since->set = as_wall_time_parse(value, value_size, &since->at) == 0;
        return 0;
    }
    if (key_size != strlen(SHELL_PAUSE_KEY) || memcmp(key, SHELL_PAUSE_KEY, key_size) != 0)
        return 0;
    return as_state_decode_pause(value, value_size, restoring->clock, restore_pause, restoring,
                                 restoring->error);
}

/* Locks come before intents: an intent may belong to an unlocked target. */
int shell_restore(struct as_store *store, const struct as_state_clock *clock,
                  struct as_engine *engine, struct shell_restored *restored_out,
                  struct as_error *error)
{
    static const struct {
        enum as_store_kind kind;
        as_store_visit_fn *visit;
        const char *what;
    } steps[] = {
        {AS_STORE_INCIDENT, visit_incident, "incident"},
        {AS_STORE_TARGET, visit_target, "target"},
        {AS_STORE_INTENT, visit_intent, "intent"},
        {AS_STORE_META, visit_meta, "pause"},
    };
    *restored_out = (struct shell_restored){0};
    struct restoring restoring = {engine, clock, restored_out, error};
    for (size_t i = 0; i < AS_ARRAY_SIZE(steps); i++) {
        const int status = store->visit(store, steps[i].kind, steps[i].visit, &restoring, error);
        if (status != 0) {
            as_error_wrap(error, "reading %ss from the state file", steps[i].what);
            return status;
        }
    }
    return 0;
}
