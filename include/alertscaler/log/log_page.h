/*
 * Pages of the action log: its records in the order of their numbers, read from the log's files. A
 * page begins after a record, or at a time. It needs no index, so it has records of all kinds, up
 * to the line that was written last.
 *
 * The log's writer needs no lock: a rotation while a page is read neither loses nor repeats a
 * record.
 */
#ifndef ALERTSCALER_LOG_LOG_PAGE_H
#define ALERTSCALER_LOG_LOG_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>
#include <alertscaler/base/time.h>

#define AS_LOG_PAGE_LINE_MAX ((size_t)16 << 20) /* a longer line is skipped */

struct as_log_page_record { /* valid during the call */
    const char *line;       /* without the newline, not NUL-terminated */
    size_t size;
    int64_t seq;
    as_wall_time time;
    const char *kind;
    const char *target, *target_name; /* "": it has none */
};

struct as_log_page_query { /* all borrowed */
    const char *log_path;
    int64_t after;       /* records with higher numbers; 0: from the oldest on */
    as_maybe_time since; /* from then on */
    as_maybe_time until; /* up to then */
    int64_t duration_us; /* the page ends after this time, but has read at least one record */
    /* The oldest record first. False: the page ends before this record. */
    bool (*on_record)(void *context, const struct as_log_page_record *record);
    void *context;
};

struct as_log_page {
    int64_t next;     /* `after` of the next page */
    bool has_more;    /* there may be records for it now */
    uint64_t missing; /* numbers between two records that no file has */
    uint64_t skipped; /* lines that are too long, or are no records */
};

/* 0; or a negative errno with an error that names the file. */
int as_log_page_read(const struct as_log_page_query *query, struct as_log_page *page_out,
                     struct as_error *error) AS_MUST_USE;

#endif
