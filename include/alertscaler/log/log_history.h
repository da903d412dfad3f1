/*
 * The thread that reads the action log's history: it opens the index of the log (log_index.h),
 * keeps it up to date, and runs jobs of the event loop on it, one after another. Between two parts
 * of the log that it indexes, a waiting job runs.
 *
 * The history decides nothing. If the index cannot be used, jobs run without it, and the thread
 * tries again later.
 */
#ifndef ALERTSCALER_LOG_LOG_HISTORY_H
#define ALERTSCALER_LOG_LOG_HISTORY_H

#include <stdatomic.h>
#include <stdbool.h>

#include <bsd/sys/queue.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>
#include <alertscaler/log/log_index.h>

#define AS_LOG_HISTORY_JOBS_MAX 16 /* that wait or run; half of them for narrowed credentials */

struct event_base;
struct as_log_history;

struct as_log_history_view {    /* for a job */
    struct as_log_index *index; /* NULL: it cannot be used */
    const char *problem;        /* why the index cannot be used, or lacks records; or "" */
    struct as_log_index_state state;
};

/* The first member of the owner's struct. */
struct as_log_history_job {
    STAILQ_ENTRY(as_log_history_job) link;
    bool is_narrowed; /* of a narrowed credential */
    /* In the thread. What it uses must not change meanwhile. */
    void (*run)(struct as_log_history_job *job, const struct as_log_history_view *view);
    /* In the loop, after `run`; frees the job. */
    void (*done)(struct as_log_history_job *job);
    /* In the loop, in place of `done`, when the history ends before; frees the job. */
    void (*drop)(struct as_log_history_job *job);
};

/* Starts the thread. 0 or a negative errno. */
int as_log_history_new(struct event_base *base, const char *log_path,
                       struct as_log_history **history_out, struct as_error *error) AS_MUST_USE;
/* Ends the present job, and drops all. */
struct as_log_history *as_log_history_free(struct as_log_history *history);

/* Of the action log. */
const char *as_log_history_get_path(const struct as_log_history *history);

/* False: too many jobs wait; the job was not taken. */
bool as_log_history_submit(struct as_log_history *history,
                           struct as_log_history_job *job) AS_MUST_USE;

AS_DEFINE_CLEANUP(struct as_log_history *, as_log_history_free)

#endif
