/*
 * Copies of records that another replica wrote, in files beside the action log (log_file.h): which
 * records are missing, and what of another replica's answer is written.
 *
 * A gap is filled from its end. The record behind the gap has the hash of the gap's last record,
 * and each record has the hash of the record before it. So each part is proven before it is
 * written, also if an attacker sent the part. A check from the begin of the gap would prove
 * nothing, because anybody can add valid records to a chain.
 *
 * All functions run in the thread of the history.
 */
#ifndef ALERTSCALER_LOG_LOG_COPY_H
#define ALERTSCALER_LOG_LOG_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>
#include <alertscaler/log/log_history.h>
#include <alertscaler/log/log_index.h>
#include <alertscaler/port/audit.h>

#define AS_LOG_COPY_FILES_MAX 1000

struct as_log_copy_gap {
    int64_t first, last;             /* numbers of the records */
    char hash[AS_AUDIT_HASH_SIZE];   /* of the last one, as the record behind it says */
    char before[AS_AUDIT_HASH_SIZE]; /* of the record before the first one; "": not known */
};

struct as_log_copy_search {
    const char *log_path;
    const char *instance; /* of this replica, as in its records */
    int64_t above, below; /* only gaps whose last record is between these numbers */
};

/* The newest gap. A gap before all records counts only if a `start` record names another replica
 * that led: else rotation has deleted the records. 1; 0: no gap; or a negative errno with an error:
 * -EAGAIN if the files are not all indexed. */
int as_log_copy_find(const struct as_log_history_view *view,
                     const struct as_log_copy_search *search, struct as_log_copy_gap *gap_out,
                     struct as_error *error) AS_MUST_USE;

enum as_log_copy_outcome {
    AS_LOG_COPY_DONE,    /* a file was written */
    AS_LOG_COPY_SHORT,   /* the answer ends before the gap's last record: ask for fewer records */
    AS_LOG_COPY_NOTHING, /* the other replica lacks the gap's last record */
    AS_LOG_COPY_WRONG,   /* the answer has records that are not those of the gap: see the error */
    AS_LOG_COPY_FULL,    /* the copies have their largest size, and all are newer */
    AS_LOG_COPY_FAILED   /* the file could not be written: see the error */
};

struct as_log_copy_answer { /* all borrowed */
    const struct as_log_copy_gap *gap;
    int64_t first;        /* the records that were asked for: up to the last one of the gap */
    const char *log_path; /* of our own log */
    const char *replica;  /* for the name of the file */
    const char *lines;    /* JSON Lines, as of GET /api/v1/log */
    size_t size;
    bool has_more;      /* the other replica says that it has more records */
    uint64_t bytes_max; /* of all copies together: the oldest are deleted */
    uint64_t free_min;  /* bytes that stay free on the disk */
};

struct as_log_copy_result {
    enum as_log_copy_outcome outcome;
    int64_t first;  /* of the records that were written */
    uint64_t count; /* of them; of SHORT: good records in the answer */
    int64_t above;  /* the copies are full: gaps up to this number are not wanted; 0: unknown */
    struct as_error error;
};

/* Checks the answer, and writes what is good of it to replica-NAME-LOG.from-NUMBER. */
void as_log_copy_take(const struct as_log_copy_answer *answer,
                      struct as_log_copy_result *result_out);

#endif
