/*
 * The state of `alertscaler replay --rules`, and its report.
 */
#ifndef ALERTSCALER_SRC_CLI_REPLAY_RULES_H
#define ALERTSCALER_SRC_CLI_REPLAY_RULES_H

#include <bsd/sys/tree.h>
#define uthash_fatal(msg) abort() /* as for each small allocation of ours */
#include <uthash.h>

#include "comparison.h"
#include "replay_private.h"
#include "replay_reports.h"
#include "replay_scopes.h"
#include "replay_values.h"

struct item { /* a waiting record */
    RB_ENTRY(item) by_time;
    int64_t at;
    uint64_t order;
    bool is_foreign; /* decision: somebody else changed the size */
    json_t *record;
};

RB_HEAD(item_tree, item);

struct logged { /* a target in the log */
    UT_hash_handle hh;
    char *id, *key;
    int64_t decided; /* last time; INT64_MIN: never */
    int32_t size;    /* the log's latest */
    int32_t first;   /* found by reading ahead; -1: unknown */
    bool is_known;   /* to the comparison */
};

struct replay {
    const struct as_args *args;
    const char *approvals; /* --approvals */
    struct as_config *config;
    struct replay_scopes scopes;
    struct as_rehearsal *rehearsal;
    struct replay_values *values;
    struct replay_reports *reports;
    struct comparison *comparison;
    struct item_tree waiting;
    size_t waiting_count;
    struct logged *targets;
    uint64_t order, notifications, unknown_repeats, silenced, cut, foreign, forbidden;
    size_t unknown;      /* targets whose first size is not found yet */
    int64_t first, last; /* times of records */
    uint64_t clock_changes;
    int64_t shift; /* added to the log's times after a clock change */
    bool is_started;
    json_t *warnings;
    struct as_error *error;
    int status;
};

/* Prints the comparison, with what it could not know. 0; or a negative errno with an error. */
int replay_rules_report(struct replay *replay, struct as_error *error) AS_MUST_USE;

#endif
