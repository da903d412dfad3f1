/*
 * The shell's structure, for shell.c, shell_calls.c and shell_records.c.
 */
#ifndef ALERTSCALER_SRC_RUNTIME_SHELL_PRIVATE_H
#define ALERTSCALER_SRC_RUNTIME_SHELL_PRIVATE_H

#include <bsd/sys/queue.h>

#include <alertscaler/runtime/shell.h>

#include "repeat.h"
#include <alertscaler/notify/notifier.h>

#define START_TICKET (UINT64_MAX - 1) /* for the start record; the engine counts from 1 */

struct port_calls { /* requests to one pair of ports that are not answered */
    SLIST_ENTRY(port_calls) next;
    struct as_shell *shell;
    const struct as_target_port *targets;
    size_t open;
};
SLIST_HEAD(port_calls_list, port_calls);

struct as_shell {
    struct as_shell_config config;
    char *instance, *boot, *version, *config_digest;
    struct as_engine *engine;
    struct port_calls_list calls; /* the present ports first; former ports while they have calls */
    struct tell *tell;
    const struct as_ruleset *ruleset;
    struct as_storage_batch *batch; /* effects so far, or NULL */
    struct as_buf scratch, key;
    struct repeat_log log;
    char *list_note; /* that was logged last; NULL: none */
    as_mono_time mono;
    as_wall_time wall;
    as_maybe_time dry_since; /* start of the present dry run, or of one that ended during a stop */
    bool has_marks;          /* nodes may have our marks: the store says so */
    bool may_marks_be_new;   /* an action of this process, or of the one before, may still mark */
    bool ready;
    bool is_fenced; /* nothing more is carried out */
};

/* shell.c */
void shell_stamp(struct as_shell *shell); /* the time of what follows */
struct as_buf *shell_scratch_clear(struct as_shell *shell);
/* Appends the record in `scratch` to the batch. */
void shell_append_to(struct as_shell *shell, struct as_storage_batch *batch,
                     const struct as_record_places *places);
void shell_submit(struct as_shell *shell); /* shell->batch */

/* shell_calls.c */
void shell_calls_init(struct as_shell *shell);
void shell_calls_deinit(struct as_shell *shell);
struct port_calls *shell_calls_begin(struct as_shell *shell) AS_MUST_USE; /* the present ports */
struct as_shell *shell_calls_end(struct port_calls *calls) AS_MUST_USE;   /* answered */
/* From now on these are the present ports. */
void shell_calls_use(struct as_shell *shell, struct as_target_port *targets,
                     struct as_source_port *source);

/* shell_records.c */
/* Appends the record in `scratch`, one of the shell's own, as a batch. */
void shell_append_own(struct as_shell *shell, uint64_t ticket,
                      const struct as_record_places *places);
void shell_record_start_or_stop(struct as_shell *shell, enum as_record_kind kind, size_t intents);

#endif
