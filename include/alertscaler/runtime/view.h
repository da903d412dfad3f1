/*
 * A snapshot of the daemon's parts, for metrics and the API. Everything is borrowed for the call
 * that gets it.
 */
#ifndef ALERTSCALER_RUNTIME_VIEW_H
#define ALERTSCALER_RUNTIME_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/time.h>
#include <alertscaler/cluster/cluster_facts.h>
#include <alertscaler/decide/ruleset.h>
#include <alertscaler/engine/engine.h>
#include <alertscaler/log/storage.h>
#include <alertscaler/model/scope.h>
#include <alertscaler/port/leader.h>
#include <alertscaler/port/target.h>

struct as_external_url;
struct as_others;         /* kube/kube_rivals.h */
struct as_policy_reports; /* runtime/policy_report.h */
struct as_policy_set;     /* rules/policy_set.h */
struct as_query_checks;   /* monitoring/query_checks.h */

struct as_view {
    as_mono_time mono;
    as_wall_time wall, started;
    const struct as_engine *engine; /* NULL after a storage failure or without the lead */
    struct as_storage *storage;     /* NULL in the same cases */
    const struct as_shell *shell;   /* NULL in the same cases */
    uint64_t changes;               /* of the engine: equal numbers mean an equal state */
    const struct as_ruleset *ruleset;
    const struct as_scope *scopes; /* of all credentials */
    size_t scope_count;
    bool has_passwords, has_tokens; /* with which a browser can log in */
    const char *config_digest;
    const struct as_external_url *external_url; /* base of all links that are sent out */
    const char *action_log_path;                /* NULL: no such file */
    const char *not_ready; /* why requests are refused, in short; NULL: ready */
    int64_t incident_expiry_us;
    bool dry_run;
    struct as_leader_view leader;
    unsigned connections;
    size_t unanswered;                 /* notifications that are not durable yet */
    uint64_t cache_hits, cache_misses; /* bodies of notifications found, or not, in the cache */
    size_t cache_bytes;
    const struct as_others *others;             /* who else aims at targets; NULL: nobody */
    const struct as_query_checks *query_checks; /* NULL: none fails */
    struct as_policy_set *policies;             /* NULL: none */
    struct as_policy_reports *policy_reports;   /* NULL: none */
    const struct as_target_port *targets;       /* NULL: none */
    void (*visit_facts)(const struct as_target_port *targets, as_facts_visit_fn *visit,
                        void *context); /* as in adapters.h */
};

typedef void as_view_fn(void *context, struct as_view *view_out);

#endif
