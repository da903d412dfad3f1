/*
 * An index of the action log's files, and of files of other replicas that were copied beside them,
 * in an SQLite file. It finds records by time, target, rule, reason and id. The index holds nothing
 * that these files lack. If its own file is missing, damaged or of another version, it is built
 * again; records of files that rotation deleted leave it.
 *
 * The index has decisions, actions, effects, operator commands, approvals, incidents, starts, stops
 * and reloads. Notifications and repeats are not in it. For charts it has sums of the minutes of
 * each target.
 *
 * One thread uses an index. It only reads the log's files, so the log's writer needs no lock.
 */
#ifndef ALERTSCALER_LOG_LOG_INDEX_H
#define ALERTSCALER_LOG_LOG_INDEX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/error.h>
#include <alertscaler/base/time.h>
#include <alertscaler/decide/record.h>

#define AS_LOG_INDEX_LINE_MAX ((size_t)16 << 20) /* a longer line is not in the index */

struct as_log_index;

struct as_log_index_config {
    const char *log_path;    /* of the action log; copied */
    uint64_t free_min;       /* bytes that the index leaves free on the disk; 0: none */
    const atomic_bool *stop; /* borrowed; true ends queries with -ECANCELED; may be NULL */
};

/* "/var/lib/alertscaler/history-actions.jsonl.db" for ".../actions.jsonl", for free(). The name
 * does not begin with the log's name, because such a file is a rotated one. */
char *as_log_index_make_path(const char *log_path) AS_MUST_USE;

/* Opens or creates the file. 0; or a negative errno with an error that names it: -EBUSY (another
 * process uses it), -EEXIST (a database of another program has the name), and others. */
int as_log_index_open(const struct as_log_index_config *config, struct as_log_index **index_out,
                      struct as_error *error) AS_MUST_USE;
struct as_log_index *as_log_index_close(struct as_log_index *index);

struct as_log_index_state {
    bool is_current;                   /* all files that were found are indexed */
    uint64_t log_bytes, indexed_bytes; /* of these files */
    uint64_t unreadable;               /* lines that are no record, since the start */
    uint64_t rebuilt;                  /* how often a damaged index was emptied, since the start */
};

/*
 * With `finds_files`, first finds new, renamed, shortened and deleted files of the log. Then it
 * reads the files for some 100 ms, the newest file first, or forgets some thousand records. A
 * damaged index is emptied, logged, and built again. After an error, what is indexed remains;
 * -ENOSPC: too little is free on the disk.
 */
int as_log_index_step(struct as_log_index *index, bool finds_files,
                      struct as_log_index_state *state_out, struct as_error *error) AS_MUST_USE;

struct as_log_row { /* texts are valid during the call */
    int64_t seq;
    as_wall_time time;
    enum as_record_kind kind;
    const char *id; /* "": the kind has none */
    const char *target, *target_name;
    const char *rule;      /* NULL: none */
    const char *reason;    /* of a decision; of others their `outcome` or `event`; NULL: none */
    const char *direction; /* of a decision; else NULL */
    bool has_from, has_to, has_would;
    int32_t from, to; /* of a decision: `replicas` and `desired` */
    int32_t would;
    uint64_t repeats; /* equal decisions or failures since the previous record, without records */
    int64_t file;     /* where the record is, for as_log_index_read_row */
    uint64_t at, size;
};

struct as_log_query {        /* all borrowed */
    unsigned kinds;          /* a bit (1U << kind) for each that is wanted */
    const char *target;      /* an id or a name; NULL: all */
    const char *rule;        /* NULL: all */
    const char *reason;      /* NULL: all */
    as_maybe_time since;     /* from then on */
    as_maybe_time until;     /* up to then */
    const char *before_id;   /* only records before the one with this id; NULL: all */
    as_maybe_time before_at; /* takes its place if the log has no record with this id; if it is
                                not set, `may_see` also holds for that record */
    /* Whether the reader may know of this target; NULL: of all records. With it, records without a
     * target are not found. */
    bool (*may_see)(void *context, const char *target_name, const char *target);
    /* The newest record first; false ends the query. */
    bool (*on_row)(void *context, const struct as_log_row *row);
    void *context;
    as_mono_time deadline; /* of the query; AS_MONO_NEVER: none */
};

/* 0; -ECANCELED: it was stopped; -ETIMEDOUT: the deadline has passed; -ENOENT: `before_id` is not
 * in the log; or a negative errno. Each with an error. */
int as_log_index_find(struct as_log_index *index, const struct as_log_query *query,
                      struct as_error *error) AS_MUST_USE;

struct as_log_minute { /* what decisions and actions say of a target in one minute */
    bool has_size;
    as_wall_time first_at, last_at; /* of the first and the last size */
    int32_t first, last, least, most;
    bool has_value; /* of the rule that won last with a value and a goal */
    as_wall_time value_at;
    const char *rule; /* valid during the call */
    double value, goal;
    uint32_t actions, failures; /* failures: the actions that did not set the size */
};

struct as_log_minutes { /* all borrowed */
    const char *target; /* an id or a name */
    as_wall_time until; /* up to this minute */
    /* The newest minute first; false: no earlier minutes. A minute in which a file was rotated
     * comes twice, and a target with several names in one run for each name. */
    bool (*on_minute)(void *context, const struct as_log_minute *minute);
    void *context;
    as_mono_time deadline; /* AS_MONO_NEVER: none */
};

/* Sums of minutes, for charts of long times. They take a fraction of the time that records take.
 * The results are those of as_log_index_find. */
int as_log_index_visit_minutes(struct as_log_index *index, const struct as_log_minutes *query,
                               struct as_error *error) AS_MUST_USE;

/* Calls `visit` for each target of the log's records; an id may have several names, also "". 0 or a
 * negative errno with an error. */
int as_log_index_visit_targets(struct as_log_index *index,
                               void (*visit)(void *context, const char *id, const char *name),
                               void *context, struct as_error *error) AS_MUST_USE;

/* Appends the line of a row, without the newline; within `on_row` too. 0, or a negative errno with
 * an error; -ENOENT: the log does not have it any more. */
int as_log_index_read_row(struct as_log_index *index, const struct as_log_row *row,
                          struct as_buf *line_out, struct as_error *error) AS_MUST_USE;

struct as_log_gap {      /* records that no indexed file has, between files that have others */
    int64_t first, last; /* numbers */
    as_maybe_time from;  /* of the record before; unset: there is none */
    as_wall_time to;     /* of the record behind */
};

/* The newest gap first; false ends it. Before all files are indexed, gaps may be none. 0, or a
 * negative errno with an error. */
int as_log_index_find_gaps(struct as_log_index *index,
                           bool (*on_gap)(void *context, const struct as_log_gap *gap),
                           void *context, struct as_error *error) AS_MUST_USE;

/* The newest record with this id and one of the kinds, as the query permits: its row, and its line
 * without the newline. -ENOENT: there is none. */
int as_log_index_read(struct as_log_index *index, const struct as_log_query *query, const char *id,
                      struct as_buf *line_out, struct as_error *error) AS_MUST_USE;

/* Of a decision's record, with its `input.proposals` and `output.proposals`: the value and the goal
 * of the proposal of this rule. False: its goal is no value. */
bool as_log_find_value(const json_t *proposals, const json_t *results, const char *rule,
                       double *value_out, double *goal_out) AS_MUST_USE;

AS_DEFINE_CLEANUP(struct as_log_index *, as_log_index_close)

#endif
