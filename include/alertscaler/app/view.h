/*
 * What the daemon shows of itself: one look at its parts, for metrics and the API. Everything is
 * borrowed for the call it is passed to.
 */
#ifndef ALERTSCALER_APP_VIEW_H
#define ALERTSCALER_APP_VIEW_H

#include <stdbool.h>
#include <stddef.h>

#include <alertscaler/app/storage.h>
#include <alertscaler/base/time.h>
#include <alertscaler/core/engine.h>
#include <alertscaler/core/ruleset.h>
#include <alertscaler/core/scope.h>
#include <alertscaler/port/leader.h>

struct as_view {
    as_mono_time mono;
    as_wall_time wall, started;
    const struct as_engine *engine; /* NULL while there is none (the storage failed) */
    struct as_storage *storage;     /* NULL likewise */
    const struct as_ruleset *ruleset;
    const struct as_scope *scopes; /* of all credentials */
    size_t scope_count;
    const char *config_digest;
    const char *action_log_path; /* NULL: there is no such file */
    const char *not_ready;       /* why requests are refused, in a few words; NULL: ready */
    bool dry_run;
    struct as_leader_view leader;
    bool shows_locks;
    size_t locks_behind; /* of those that are shown */
    unsigned connections;
    size_t unanswered;                 /* notifications that wait until they are durable */
    uint64_t cache_hits, cache_misses; /* bodies of notifications that were known, and not */
    size_t cache_bytes;
};

typedef void as_view_fn(void *context, struct as_view *view_out);

#endif
