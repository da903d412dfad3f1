/*
 * Restores a new engine from the store.
 */
#ifndef ALERTSCALER_SRC_RUNTIME_SHELL_RESTORE_H
#define ALERTSCALER_SRC_RUNTIME_SHELL_RESTORE_H

#include <alertscaler/base/error.h>
#include <alertscaler/engine/engine.h>
#include <alertscaler/engine/state.h>
#include <alertscaler/port/store.h>

/* Keys in AS_STORE_META */
#define SHELL_PAUSE_KEY "pause" /* of all targets */
#define SHELL_DRY_KEY   "dry_run_since"
#define SHELL_MARKS_KEY "marked_nodes" /* since when nodes may have our marks; absent: none has */

struct shell_restored {
    size_t intents;
    as_maybe_time dry_since; /* start of the dry run at the last write to the store */
    bool has_marks;          /* nodes may have our marks */
    bool is_any_group;       /* there is an intent of a node group */
};

/* A negative errno if something is unreadable, with reason and place. */
int shell_restore(struct as_store *store, const struct as_state_clock *clock,
                  struct as_engine *engine, struct shell_restored *restored_out,
                  struct as_error *error) AS_MUST_USE;

#endif
