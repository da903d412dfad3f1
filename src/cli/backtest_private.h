/*
 * The parts of `alertscaler backtest`: the history that is read from Prometheus, and the known
 * alerts, targets and queries of the whole time.
 *
 * Time is divided into steps, and read in chunks of steps; each chunk is read completely before it
 * is played.
 */
#ifndef ALERTSCALER_SRC_CLI_BACKTEST_PRIVATE_H
#define ALERTSCALER_SRC_CLI_BACKTEST_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>
#define uthash_fatal(msg) abort() /* as for each small allocation of ours */
#include <uthash.h>

#include <alertscaler/base/error.h>
#include <alertscaler/decide/rule_index.h>
#include <alertscaler/model/template.h>
#include <alertscaler/rules/config.h>
#include <alertscaler/tools/rehearsal.h>

#include "cli.h"
#include "comparison.h"
#include "http_session.h"

#define BACKTEST_CHUNK_MAX 5000 /* steps: well below Prometheus' limit for one answer */
#define BACKTEST_CHUNK_MIN 10

struct history_alert {
    UT_hash_handle hh; /* by the labels' digest */
    struct as_digest digest;
    struct as_labels *labels;
    as_wall_time starts_at;
    bool is_firing;
    as_wall_time told; /* last notification */
    bool *fires;       /* one per step; NULL: not in this chunk */
};

struct history_target {
    UT_hash_handle hh;  /* by key */
    char *id, *key;     /* key: decide/target.h */
    char *name, *query; /* query NULL: its size is unknown */
    char *namespace;    /* NULL: it has none */
    const struct as_target_config *config;
    double *sizes; /* one per step, NaN: unknown */
    int32_t size;  /* the latest in the history; -1: none yet */
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
    char *target;          /* id of the pods' target */
    bool is_used;          /* in this chunk */
    char *error;           /* if Prometheus refused it */
    double *values;        /* for numbers */
    unsigned char *counts; /* number of series per step, up to 2 */
    struct history_series *pods;
    size_t pod_count, pod_capacity;
    struct history_query *asked_for; /* what pods request of `resource`; NULL: not needed */
    enum as_resource resource;
    bool is_asked_for; /* used only as an asked_for, not by a rule */
    bool had_data;
};

struct backtest {
    const struct as_args *args;
    struct as_config *config;
    struct as_rule_index *index;
    struct http_session *session;
    struct as_rehearsal *rehearsal;
    struct comparison *comparison;
    struct as_labels *nothing; /* the empty annotations of the history */
    json_t *warnings;
    int64_t from, to, step;
    int64_t chunk;       /* time of its first step */
    size_t count, steps; /* in this chunk; requested at once */
    struct history_alert *alerts;
    struct history_target *targets;
    struct history_query *queries;
    uint64_t notifications;
    uint64_t sent; /* including repeats */
};

/* --- backtest_history.c --- */

/* Reads the next chunk, or smaller ones if answers are too large. 0, or a negative errno. */
int backtest_read_chunk(struct backtest *backtest, struct as_error *error) AS_MUST_USE;
void backtest_clear_chunk(struct backtest *backtest); /* drops alerts that have ended */
void backtest_clear(struct backtest *backtest);       /* drops everything */
void backtest_warn(struct backtest *backtest, const char *format, ...) AS_PRINTF(2, 3);

/* --- backtest_binding.c --- */

/* Finds the rules of this chunk's alerts, and adds their targets and queries. 0, or a negative
 * errno. */
int backtest_bind_alerts(struct backtest *backtest, struct as_error *error) AS_MUST_USE;
/* Adds the targets that need no alert. */
int backtest_bind_plain_targets(struct backtest *backtest, struct as_error *error) AS_MUST_USE;
/* By its id in any spelling; NULL: not a target of the rules. */
struct history_target *backtest_find_target(const struct backtest *backtest, const char *id);
/* Checks the syntax of --target NAME=QUERY. */
int backtest_check_target_options(const struct backtest *backtest,
                                  struct as_error *error) AS_MUST_USE;

/* --- backtest_play.c --- */

void backtest_begin(struct backtest *backtest);
void backtest_play_chunk(struct backtest *backtest);

#endif
