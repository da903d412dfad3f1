/*
 * `alertscaler backtest` from inside: what is asked of Prometheus for a stretch of time, and what
 * is known of alerts, targets and queries over the whole of it.
 *
 * Time goes by in steps, and is read in chunks of so many steps; each chunk is read as a whole
 * before it is played.
 */
#ifndef ALERTSCALER_SRC_CLI_BACKTEST_BACKTEST_PRIVATE_H
#define ALERTSCALER_SRC_CLI_BACKTEST_BACKTEST_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>
#define uthash_fatal(msg) abort() /* as for each small allocation of ours */
#include <uthash.h>

#include <alertscaler/app/rehearsal.h>
#include <alertscaler/base/error.h>
#include <alertscaler/config/config.h>
#include <alertscaler/core/rule_index.h>
#include <alertscaler/core/template.h>

#include "cli.h"
#include "client/http_session.h"
#include "comparison.h"

#define BACKTEST_CHUNK_MAX 5000 /* steps: well below what Prometheus gives at once */
#define BACKTEST_CHUNK_MIN 10

struct history_alert {
    UT_hash_handle hh; /* by the labels' digest */
    struct as_digest digest;
    struct as_labels *labels;
    as_wall_time starts_at;
    bool is_firing;
    as_wall_time told; /* last */
    bool *fires;       /* a step an item; NULL: not in this chunk */
};

struct history_target {
    UT_hash_handle hh;  /* by key */
    char *id, *key;     /* key: core/target.h */
    char *name, *query; /* query NULL: nobody knows its size */
    char *namespace;    /* NULL: it has none */
    int32_t max;
    double *sizes; /* a step an item, NaN: unknown */
    int32_t size;  /* in the history, last; -1: none so far */
    bool is_ours;  /* the rules have acted on it */
};

struct history_series {
    char *pod;
    double *values;
};

struct history_query {
    UT_hash_handle hh; /* by text */
    char *text, *pod_label;
    enum as_query_form form;
    char *target;          /* id, of the pods */
    bool is_used;          /* in this chunk */
    char *error;           /* Prometheus refused it */
    double *values;        /* number */
    unsigned char *counts; /* series a step, up to 2 */
    struct history_series *pods;
    size_t pod_count, pod_capacity;
    struct history_query *asked_for; /* what pods ask for of `resource`; NULL: nothing */
    enum as_resource resource;
    bool is_asked_for; /* it is such a one: no rule's own */
    bool had_data;
};

struct backtest {
    const struct as_args *args;
    struct as_config *config;
    struct as_rule_index *index;
    struct http_session *session;
    struct as_rehearsal *rehearsal;
    struct comparison *comparison;
    struct as_labels *nothing; /* the annotations that history has */
    json_t *warnings;
    int64_t from, to, step;
    int64_t chunk;       /* its first step's time */
    size_t count, steps; /* of this chunk; that are asked for at once */
    struct history_alert *alerts;
    struct history_target *targets;
    struct history_query *queries;
    uint64_t notifications;
    uint64_t sent; /* with repeats */
};

/* --- backtest_history.c --- */

/* Reads the next chunk, smaller ones where the answers are too large. 0, or a negative errno. */
int backtest_read_chunk(struct backtest *backtest, struct as_error *error) AS_MUST_USE;
void backtest_clear_chunk(struct backtest *backtest); /* alerts that ended are forgotten */
void backtest_clear(struct backtest *backtest);       /* everything is */
void backtest_warn(struct backtest *backtest, const char *format, ...) AS_PRINTF(2, 3);

/* --- backtest_binding.c --- */

/* Rules of the alerts of this chunk: their targets and queries become known. 0, or a negative
 * errno. */
int backtest_bind_alerts(struct backtest *backtest, struct as_error *error) AS_MUST_USE;
/* Targets that need no alert to be known. */
int backtest_bind_plain_targets(struct backtest *backtest, struct as_error *error) AS_MUST_USE;
/* By its id, in whatever spelling; NULL: it is none of the rules. */
struct history_target *backtest_find_target(const struct backtest *backtest, const char *id);
/* --target NAME=QUERY is well-formed. */
int backtest_check_target_options(const struct backtest *backtest,
                                  struct as_error *error) AS_MUST_USE;

/* --- backtest_play.c --- */

void backtest_begin(struct backtest *backtest);
void backtest_play_chunk(struct backtest *backtest);

#endif
