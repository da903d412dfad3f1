/*
 * The shell around the engine: stamps events with the time, steps the engine, and carries out the
 * effects in order through ports. The daemon runs it on real ones, the simulator in a virtual
 * world.
 *
 * When the storage fails, the shell is of no more use (its engine is ahead of what is durable): the
 * owner frees it and restores a new one from the store, as after a crash. Everything that waits has
 * to be answered 503 then.
 */
#ifndef ALERTSCALER_APP_SHELL_H
#define ALERTSCALER_APP_SHELL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/app/storage.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>
#include <alertscaler/core/engine.h>
#include <alertscaler/port/clock.h>
#include <alertscaler/port/source.h>
#include <alertscaler/port/store.h>
#include <alertscaler/port/target.h>
#include <alertscaler/wire/record.h>

struct as_shell;

/* Where the log has the details of a body's repeats: kept beside what was decoded of that body, and
 * filled by a shell. All zero: nowhere. */
struct as_record_base {
    uint64_t epoch;          /* of the shell and its rules; 0: none */
    uint64_t file;           /* of the action log */
    uint64_t records, bytes; /* which the shell had appended before it */
    uint64_t said;           /* digest of the credential and of what became of each alert */
    as_wall_time time;
    char id[AS_ULID_SIZE];
};

struct as_shell_callbacks {
    /* Sees each effect before it is carried out. What became of a request is known with its record
     * (AS_EFFECT_RECORD_NOTIFICATION, AS_EFFECT_RECORD_COMMAND), but durable only with
     * AS_EFFECT_ANSWER: answer it then. */
    void (*effect)(void *context, const struct as_effect *effect);
    void (*deadline)(void *context, as_mono_time deadline); /* call as_shell_wake then */
    /* Whether we still lead, asked right before each SCALE and each ANSWER; NULL: always. Where it
     * says no, nothing is carried out any more, and `fenced` says so once: free the shell in a
     * later turn. */
    bool (*may_act)(void *context);
    void (*fenced)(void *context);
    void *context;
};

struct as_shell_config {
    const struct as_clock *clock;
    struct as_target_port *targets;
    struct as_source_port *source;
    struct as_storage *storage;
    const char *instance;                /* for records; copied */
    const char *boot;                    /* identifies this run of the machine; copied */
    const char *version, *config_digest; /* copied */
    struct as_engine_config engine;
    const struct as_ruleset *ruleset; /* borrowed until as_shell_reload */
    struct as_shell_callbacks callbacks;
};

/*
 * Restores the engine from `store` (whose thread has not been started yet), appends the `start`
 * record and begins. 0; -EBADMSG for damaged state, -EEXIST for contradicting state, or the store's
 * error.
 */
int as_shell_new(const struct as_shell_config *config, struct as_store *store,
                 struct as_shell **shell_out, struct as_error *error) AS_MUST_USE;
struct as_shell *as_shell_free(struct as_shell *shell);

/* Hands a notification over; the effect that records it comes within the call. */
void as_shell_notify(struct as_shell *shell, const struct as_notification *notification,
                     uint64_t request);

/* The same for an operator's order. Requests of both kinds share their numbers. */
void as_shell_order(struct as_shell *shell, const struct as_order *order, uint64_t request);

/* What the kill switch says; to be told whenever it may have changed. */
void as_shell_halt(struct as_shell *shell, const struct as_halt *halt);

void as_shell_on_durable(struct as_shell *shell,
                         uint64_t ticket); /* of the storage's callback, status 0 */
void as_shell_wake(struct as_shell *shell);

/* New rules and settings; the old rule set may be freed afterwards. */
void as_shell_reload(struct as_shell *shell, const struct as_ruleset *ruleset,
                     const struct as_engine_config *engine, const char *config_digest,
                     struct as_target_port *targets, struct as_source_port *source,
                     const char *credential);
void as_shell_record_failed_reload(struct as_shell *shell, const char *credential,
                                   const char *problem);
void as_shell_record_denied(struct as_shell *shell, const struct as_denied_record *record);

/* Begins nothing new from here on. When as_shell_is_idle, as_shell_record_stop is the last thing to
 * do. */
void as_shell_stop(struct as_shell *shell);
bool as_shell_is_idle(const struct as_shell *shell);
void as_shell_record_stop(struct as_shell *shell);

const struct as_engine *as_shell_get_engine(const struct as_shell *shell);
bool as_shell_is_ready(const struct as_shell *shell); /* its start record is durable */

AS_DEFINE_CLEANUP(struct as_shell *, as_shell_free)

#endif
