/*
 * Passes each kind of stored document to its decoder, and the result to the engine.
 */
#include "shell_restore.h"

#include <errno.h>
#include <string.h>

#include <alertscaler/base/digest.h>

#define KEY_SHOWN 256 /* bytes of the key of a row that cannot be read */

struct step;

struct restoring {
    const struct step *step;
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
    if (state->ref->kind->has_nodes)
        restoring->restored->is_any_group = true;
    return as_engine_restore_intent(restoring->engine, state);
}

static int restore_pause(void *context, const struct as_pause_state *state)
{
    struct restoring *restoring = context;
    return as_engine_restore_pause(restoring->engine, state);
}

/* What is read of a kind of rows. */
struct step {
    enum as_store_kind kind;
    int (*read)(struct restoring *restoring, const void *key, size_t key_size, const void *value,
                size_t value_size);
    const char *what;
};

static int read_incident(struct restoring *restoring, const void *key, size_t key_size,
                         const void *value, size_t value_size)
{
    return as_state_decode_incident(value, value_size, restoring->clock, restore_incident,
                                    restoring, restoring->error);
}

static int read_target(struct restoring *restoring, const void *key, size_t key_size,
                       const void *value, size_t value_size)
{
    return as_state_decode_target(value, value_size, restoring->clock, restore_target, restoring,
                                  restoring->error);
}

static int read_intent(struct restoring *restoring, const void *key, size_t key_size,
                       const void *value, size_t value_size)
{
    return as_state_decode_intent(value, value_size, restoring->clock, restore_intent, restoring,
                                  restoring->error);
}

static bool is_key(const char *wanted, const void *key, size_t key_size)
{
    return key_size == strlen(wanted) && memcmp(key, wanted, key_size) == 0;
}

static int read_meta(struct restoring *restoring, const void *key, size_t key_size,
                     const void *value, size_t value_size)
{
    if (is_key(SHELL_MARKS_KEY, key, key_size))
        restoring->restored->has_marks = true;
    if (is_key(SHELL_DRY_KEY, key, key_size)) {
        as_maybe_time *since = &restoring->restored->dry_since;
        since->set = as_wall_time_parse(value, value_size, &since->at) == 0;
        return 0;
    }
    if (!is_key(SHELL_PAUSE_KEY, key, key_size))
        return 0;
    return as_state_decode_pause(value, value_size, restoring->clock, restore_pause, restoring,
                                 restoring->error);
}

/* Names the row: an incident by its digest, as the action log does. */
static void name_row(struct restoring *restoring, const void *key, size_t key_size, int status)
{
    struct as_digest digest;
    char text[AS_DIGEST_TEXT_SIZE];
    if (!*restoring->error->text)
        as_error_set(restoring->error,
                     status == -EEXIST ? "another row is about the same" : "it cannot be restored");
    if (restoring->step->kind == AS_STORE_INCIDENT && key_size >= sizeof(digest.bytes)) {
        memcpy(digest.bytes, key, sizeof(digest.bytes));
        as_digest_print(&digest, text);
        as_error_wrap(restoring->error, "%s", text);
    } else {
        as_error_wrap(restoring->error, "%.*s", key_size < KEY_SHOWN ? (int)key_size : KEY_SHOWN,
                      (const char *)key);
    }
}

static int visit(void *context, const void *key, size_t key_size, const void *value,
                 size_t value_size)
{
    struct restoring *restoring = context;
    *restoring->error = (struct as_error)AS_ERROR_INIT;
    const int status = restoring->step->read(restoring, key, key_size, value, value_size);
    if (status != 0)
        name_row(restoring, key, key_size, status);
    return status;
}

/* Locks come before intents: an intent may belong to an unlocked target. */
int shell_restore(struct as_store *store, const struct as_state_clock *clock,
                  struct as_engine *engine, struct shell_restored *restored_out,
                  struct as_error *error)
{
    static const struct step steps[] = {
        {AS_STORE_INCIDENT, read_incident, "incident"},
        {AS_STORE_TARGET, read_target, "target"},
        {AS_STORE_INTENT, read_intent, "intent"},
        {AS_STORE_META, read_meta, "pause"},
    };
    struct as_error own = AS_ERROR_INIT;
    error = error ? error : &own;
    *restored_out = (struct shell_restored){0};
    struct restoring restoring = {
        .engine = engine, .clock = clock, .restored = restored_out, .error = error};
    for (size_t i = 0; i < AS_ARRAY_SIZE(steps); i++) {
        restoring.step = &steps[i];
        const int status = store->visit(store, steps[i].kind, visit, &restoring, error);
        if (status != 0) {
            as_error_wrap(error, "reading %ss from the state", steps[i].what);
            return status;
        }
    }
    return 0;
}
