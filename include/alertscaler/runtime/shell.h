/*
 * The shell around the engine: stamps events with the time, steps the engine, and carries out the
 * effects in order through ports. The daemon runs it on real ports, the simulator in a virtual
 * world.
 *
 * After a storage failure the shell cannot be used: its engine is ahead of the durable state. The
 * owner frees it, answers all waiting requests 503, and restores a new shell from the store, as
 * after a crash.
 */
#ifndef ALERTSCALER_RUNTIME_SHELL_H
#define ALERTSCALER_RUNTIME_SHELL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>
#include <alertscaler/engine/engine.h>
#include <alertscaler/log/record.h>
#include <alertscaler/log/storage.h>
#include <alertscaler/notify/notifier.h>
#include <alertscaler/port/clock.h>
#include <alertscaler/port/source.h>
#include <alertscaler/port/store.h>
#include <alertscaler/port/target.h>

struct as_shell;

/* The whole record in the log to which small records of a body's repeats refer: stored with the
 * decoded body, filled by a shell. All zero: none. */
struct as_record_base {
    uint64_t epoch;          /* of the shell and its rules; 0: none */
    uint64_t file;           /* number in the action log */
    uint64_t records, bytes; /* appended by the shell before it */
    uint64_t said;           /* digest of the credential and the outcome of each alert */
    as_wall_time time;
    char id[AS_ULID_SIZE];
};

/* Appends the record of an effect to the (empty) buffer. False: the effect has none, or it is of a
 * notification, whose record depends on earlier ones. */
bool as_effect_encode_record(const struct as_effect *effect, const struct as_record_header *header,
                             struct as_buf *out, struct as_record_places *places_out);

struct as_shell_callbacks {
    /* Sees each effect before it is carried out. `record`: its record as the action log gets it;
     * NULL: it has none, or it is of a notification. The outcome of a request comes with its record
     * (AS_EFFECT_RECORD_NOTIFICATION, AS_EFFECT_RECORD_COMMAND), but is durable only with
     * AS_EFFECT_ANSWER: answer it then. */
    void (*effect)(void *context, const struct as_effect *effect, const struct as_buf *record);
    void (*deadline)(void *context, as_mono_time deadline); /* call as_shell_wake then */
    /* Whether we still lead, asked right before each SCALE and each ANSWER; NULL: always. After a
     * no, nothing more is carried out, and `fenced` is called once: free the shell in a later
     * turn. */
    bool (*may_act)(void *context);
    void (*fenced)(void *context);
    void *context;
};

struct as_shell_config {
    const struct as_clock *clock;
    struct as_target_port *targets;
    struct as_source_port *source;
    struct as_storage *storage;
    const char *instance;                 /* for records; copied */
    const char *boot;                     /* identifies this run of the machine; copied */
    const char *version, *config_digest;  /* copied */
    const char *revision;                 /* of the sources; NULL: not known; copied */
    const struct as_leader_term *leaders; /* for the `start` record; borrowed during the call */
    size_t leader_count;
    struct as_engine_config engine;
    const struct as_ruleset *ruleset; /* borrowed until as_shell_reload */
    struct as_notifier_config notifier;
    struct as_shell_callbacks callbacks;
};

/*
 * Restores the engine from `store` (whose thread must not be started yet), appends the `start`
 * record and begins. 0; -EBADMSG for damaged state, -EEXIST for contradicting state, or the store's
 * error.
 */
int as_shell_new(const struct as_shell_config *config, struct as_store *store,
                 struct as_shell **shell_out, struct as_error *error) AS_MUST_USE;
struct as_shell *as_shell_free(struct as_shell *shell);

/* Passes a notification to the engine; its record's effect comes within the call. */
void as_shell_notify(struct as_shell *shell, const struct as_notification *notification,
                     uint64_t request);

/* The same for an operator's order. Both kinds of requests share one number space. */
void as_shell_order(struct as_shell *shell, const struct as_operator_command *order,
                    uint64_t request);

/* The state of the kill switch; call it whenever it may have changed. */
void as_shell_halt(struct as_shell *shell, const struct as_halt *halt);

void as_shell_on_durable(struct as_shell *shell,
                         uint64_t call_id); /* from the storage's callback with status 0 */
/* From the storage's callback of the same name. */
void as_shell_on_hashed(struct as_shell *shell, uint64_t number, const char *hash);
void as_shell_wake(struct as_shell *shell);

/* The receivers of `notify`, and how far behind they are. */
void as_shell_visit_receivers(const struct as_shell *shell, as_notifier_visit_fn *visit,
                              void *context);

/* New rules and settings; the old rule set may be freed afterwards. `notifier` NULL: as before. */
void as_shell_reload(struct as_shell *shell, const struct as_ruleset *ruleset,
                     const struct as_engine_config *engine, const char *config_digest,
                     struct as_target_port *targets, struct as_source_port *source,
                     const struct as_notifier_config *notifier, const char *credential);
/* Whether these targets, or the source that was in use with them, still have to answer. */
bool as_shell_has_calls(const struct as_shell *shell, const struct as_target_port *targets);
void as_shell_record_failed_reload(struct as_shell *shell, const char *credential,
                                   const char *problem);
void as_shell_record_denied(struct as_shell *shell, const struct as_denied_record *record);
/* Who aims at a target: what the engine does not know of. */
void as_shell_record_others(struct as_shell *shell, const struct as_others_record *record);
/* A scaling policy is in force, is refused, or is gone. */
void as_shell_record_policy(struct as_shell *shell, const struct as_policy_record *record);
void as_shell_record_nodes(struct as_shell *shell, const struct as_nodes_record *record);

/* Whether the state says that nodes may have our marks: an earlier process was about to mark some,
 * or it knew a node group. */
bool as_shell_may_have_marks(const struct as_shell *shell) AS_MUST_USE;
/* No node has a mark of ours. Ignored if an action may have marked one since the start. */
void as_shell_forget_marks(struct as_shell *shell);

/* Begins nothing new from now on. Once as_shell_is_idle, the last call is as_shell_record_stop. */
void as_shell_stop(struct as_shell *shell);
bool as_shell_is_idle(const struct as_shell *shell);
void as_shell_record_stop(struct as_shell *shell);

const struct as_engine *as_shell_get_engine(const struct as_shell *shell);
/* Counts steps of the engine and records: equal numbers mean an equal state. */
uint64_t as_shell_count_changes(const struct as_shell *shell);
bool as_shell_is_ready(const struct as_shell *shell); /* its start record is durable */

AS_DEFINE_CLEANUP(struct as_shell *, as_shell_free)

#endif
